"""A kilometre of chain, ten thousand links, hung by both ends and swung like a skipping rope: one end is released.

Run it: python examples/05_hanging_chain.py [--links 10000]    It writes out/05_hanging_chain.png.
Ten thousand links take about a minute and a half; the work grows with the square of their number.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from rich.progress import track
from scipy.optimize import brentq

import linkwright as lw

LENGTH, MASS, GRAVITY = 0.1, 1.0, 9.81  # a link of lw.chain: metres, kilograms; m/s²
SPAN = 0.6  # the distance between the ends, in lengths of the chain
END = 1.3  # the end of the simulation, in units of √(length/g)
PULL = 3.3  # the greatest tension, in weights of the chain: determined by trial, and asserted below
SAMPLES = 210  # stored states


def hung(n: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v of a chain along a catenary between two points of one height, turning about the line between them.

    The joint axes of lw.chain are x and y alternately; in the plane of the catenary only joints about y are bent.
    """
    length = n * LENGTH
    u = brentq(lambda u: np.sinh(u) / u - 1 / SPAN, 1e-3, 50.0)  # half the span in units of the catenary's parameter
    arc = LENGTH * np.arange(1, n, 2) + LENGTH - length / 2  # the middle of each pair of links, along the chain
    from_down = np.pi / 2 + np.arctan(arc * 2 * u / (SPAN * length))
    q, v = np.zeros(n), np.zeros(n)
    q[0] = np.pi  # at q = 0 a chain stands upright
    q[1::2] = np.diff(from_down, prepend=0.0)
    v[0] = np.sqrt(GRAVITY / length)
    return q, v


def steps_needed(n: int) -> int:
    """Steps up to END for which RK4 is stable.

    Between two hinges of one direction lie two links: rods of mass 2m and length 2l under the tension T, whose fastest
    wave has ω² = 12 T / (2m 2l). The swing makes T up to PULL times the weight, and RK4
    follows an oscillation as long as ω dt < 2.83.
    """
    fastest = np.sqrt(12.0 * PULL * n * MASS * GRAVITY / (4.0 * MASS * LENGTH))
    return int(np.ceil(END * np.sqrt(n * LENGTH / GRAVITY) * fastest / 2.83))


def simulated(mech: lw.Mechanism, steps: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, q and v of the first and of `samples` more states, by the classic fourth-order Runge–Kutta method."""
    q, v = hung(mech.nq)
    every = -(-steps // samples)
    dt = END * np.sqrt(mech.nq * LENGTH / GRAVITY) / (every * samples)
    free, states = np.zeros(mech.nv), [(q, v)]
    quiet = not sys.stdout.isatty()
    for _ in track(range(samples), description=f"{mech.nq:,} links, {every * samples:,} steps", disable=quiet):
        for _ in range(every):  # all joints are revolute, so q̇ = v
            a1 = mech.forward_dynamics(q, v, free)
            v2 = v + dt / 2 * a1
            a2 = mech.forward_dynamics(q + dt / 2 * v, v2, free)
            v3 = v + dt / 2 * a2
            a3 = mech.forward_dynamics(q + dt / 2 * v2, v3, free)
            v4 = v + dt * a3
            a4 = mech.forward_dynamics(q + dt * v3, v4, free)
            q = q + dt / 6 * (v + 2 * v2 + 2 * v3 + v4)
            v = v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        states.append((q, v))
    qs, vs = map(np.array, zip(*states, strict=True))
    return dt * every * np.arange(samples + 1), qs, vs


def places(qs: np.ndarray) -> np.ndarray:
    """(states, links + 1, 3): positions of the joints and the tip. Joint axes are x and y alternately."""
    x, y, z = (np.broadcast_to(axis, (len(qs), 3)) for axis in np.eye(3))
    positions = [np.zeros((len(qs), 3))]
    for k, angle in enumerate(qs.T[..., None]):
        c, s = np.cos(angle), np.sin(angle)
        if k % 2 == 0:
            y, z = c * y + s * z, c * z - s * y
        else:
            x, z = c * x - s * z, s * x + c * z
        positions.append(positions[-1] + LENGTH * z)
    return np.stack(positions, axis=1)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--links", type=int, default=10_000, help="number of links of 0.1 m (default 10,000)")
n = parser.parse_args().links
if n < 50:
    parser.error(f"--links {n}: a chain of fewer than 50 links is too coarse for a catenary")

# On a short chain: halving the step divides the error by 2⁴.
short = lw.chain(50)
ends = [simulated(short, factor * steps_needed(50), 1)[1][-1] for factor in (3, 6, 12)]
order = np.log2(np.linalg.norm(ends[1] - ends[0]) / np.linalg.norm(ends[2] - ends[1]))
print(f"order of the integrator, measured on {short.nq} links: {order:.2f}")
assert 3.7 < order < 4.6

chain = lw.chain(n)
start = perf_counter()
time, qs, vs = simulated(chain, steps_needed(n), SAMPLES)
print(f"{n:,} links, {time[-1]:.1f} s of motion in {perf_counter() - start:.1f} s")

# Energy is constant. The scale is the energy that the chain would gain by falling its own length.
weight = n * MASS * GRAVITY
scale = weight * n * LENGTH
kinetic = np.array([chain.kinetic_energy(q, v) for q, v in zip(qs, vs, strict=True)])
potential = np.array([chain.potential_energy(q) for q in qs])
total = kinetic + potential
drift = np.max(np.abs(total - total[0])) / scale
print(f"energy is constant to {drift:.1e} of weight × length")
assert drift < 1e-6

joints = places(qs)
last = chain.pose(qs[-1], chain.bodies[-1].name)[:3, 3]
assert np.allclose(joints[-1, -2], last, atol=1e-9 * n), "the drawn chain is the simulated one"

# Newton's law for the whole chain: the rate of its momentum is the force of gravity and of the hook.
momentum = np.array([chain.momentum(q, v)[:3] for q, v in zip(qs, vs, strict=True)])
force = np.gradient(momentum, time, axis=0) - n * MASS * chain.gravity
pull = np.linalg.norm(force, axis=1) / weight
print(f"the force of the hook is up to {pull.max():.2f} times the chain's weight")
assert pull.max() < PULL, "steps_needed assumes this bound"

INK, FAINT, PAPER, RULE = "#e8ebf5", "#8d97b8", "#0d1226", "#1d2544"
plt.rcParams.update({"text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "xtick.color": FAINT,
                     "ytick.color": FAINT, "axes.edgecolor": "#3a4468", "axes.facecolor": PAPER, "font.size": 10,
                     "axes.titlesize": 11, "axes.titlelocation": "left", "axes.grid": True, "grid.color": RULE,
                     "axes.axisbelow": True})  # fmt: skip
figure = plt.figure(figsize=(14, 7.6), facecolor=PAPER, layout="constrained")
figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12)
figure.suptitle(
    f"{n:,} links, {n * LENGTH:,.0f} m of chain, swung like a skipping rope: one end is released", fontsize=16
)
low, high = joints.min(axis=(0, 1)), joints.max(axis=(0, 1))
pad = 0.08 * (high[2] - low[2])
low, high = low - pad, high + pad * np.array([1.5, 1.0, 1.0])  # room for the times at the right
tall = high[2] - low[2]
grid = figure.add_gridspec(2, 3, width_ratios=[(high[0] - low[0]) / tall, (high[1] - low[1]) / tall, 0.6])
side = figure.add_subplot(grid[:, 0])
front = figure.add_subplot(grid[:, 1], sharey=side)
energies, hook = figure.add_subplot(grid[0, 2]), figure.add_subplot(grid[1, 2])
shown = np.arange(0, SAMPLES + 1, SAMPLES // 14)
colour = plt.get_cmap("plasma")(0.3 + 0.68 * time / time[-1])
thin = np.unique(np.linspace(0, n, min(n, 2000) + 1).astype(int))  # a picture cannot resolve more
for axis, across in ((side, 0), (front, 1)):
    shapes = joints[:, :, [across, 2]]
    tip = shapes[:, -1]
    axis.add_collection(LineCollection(shapes[shown][:, thin], colors=colour[shown], linewidths=1.5, zorder=3))
    axis.plot(*tip.T, color=FAINT, linewidth=1.0, linestyle=(0, (1, 2)), zorder=2)
    axis.scatter(*tip[shown].T, s=18, color=colour[shown], zorder=4)
    axis.scatter(0.0, 0.0, s=60, color=INK, zorder=5)
    axis.set(aspect="equal", xlim=(low[across], high[across]), ylim=(low[2], high[2]))
    axis.annotate("hook", (0, 0), xytext=(0, 8), textcoords="offset points", ha="center")
for k in (0, *shown[4::2]):
    rises = joints[k, -1, 2] > joints[k - 1, -1, 2] and k > 0  # the tip rises again at the end
    side.annotate("release" if k == 0 else f"{time[k]:.1f} s", joints[k, -1, [0, 2]], textcoords="offset points",
                  xytext=(0, -17) if rises else (8, 5), ha="center" if rises else "left", color=colour[k])  # fmt: skip
side.set(xlabel="along the span (m)", ylabel="height (m)", title="From the side")
front.set(xlabel="across (m)", title="From the right")
front.tick_params(labelleft=False)
for name, energy, line in (("kinetic", kinetic, "#f4a259"), ("potential", potential, "#5aa9e6"), ("total", total, INK)):
    energies.plot(time, energy / scale, color=line, linewidth=2)
    energies.annotate(name, (time[-1], energy[-1] / scale), xytext=(-4, 6), textcoords="offset points", color=line,
                      ha="right")  # fmt: skip
energies.set(title=f"Energy / (weight × length): constant to {drift:.0e}", ylim=(-0.6, 0.45))
hook.plot(time, pull, color="#ff6b81", linewidth=2)
hook.set(title="Pull on the hook / weight of the chain", ylim=(0, 1.1 * PULL), xlabel="time (s)")
for axis in (energies, hook):
    axis.set_xlim(0, time[-1])
Path("out").mkdir(exist_ok=True)
figure.savefig("out/05_hanging_chain.png", dpi=120, facecolor=PAPER)
