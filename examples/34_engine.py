"""A V-twin engine: what shakes its foundation, the counterweight that balances it, its torque, and its flywheel.

The report is held against the closed form of the piston's acceleration, and against integrals of the torque.

Run it: python examples/34_engine.py    It writes out/34_engine.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad

import linkwright as lw
from linkwright.analysis.machine_plots import draw_torque

MODEL = Path(__file__).parent / "models" / "engine.mks"
engine = lw.load(MODEL)
forces = lw.machine_forces(engine, fluctuation=0.02)
print(forces.report())

# -- Shaking force in closed form: a part of each rod counts to the crank pin, the other to its piston, whose distance
# from the shaft is r cos θ + √(l² − r² sin² θ), θ from its bank.
p = dict(engine.parameters)
r, rod, w, half = p["r"], p["l"], p["speed"], p["half"]
turning = p["pin"] + 2 * p["big"] * p["rod"]
sliding = p["piston"] + (1 - p["big"]) * p["rod"]


def acceleration(angle):
    s, c, root = np.sin(angle), np.cos(angle), np.sqrt(rod**2 - (r * np.sin(angle)) ** 2)
    return -(w**2) * (r * c + (r**2 * (c**2 - s**2)) / root + (r**2 * s * c) ** 2 / root**3)


def shaking(turn, counterweight=0.0):
    """On ground, for the crank at an angle from upright."""
    force = (turning * r - counterweight) * w**2 * np.array([-np.sin(turn), np.cos(turn)])
    for side in (1, -1):  # the left bank, then the right one
        along = np.array([-side * np.sin(half), np.cos(half)])
        force = force - sliding * acceleration(turn - side * half) * along[:, None]
    return force.T


angle = forces.motor.angle
error = np.abs(forces.shaking_force[:, :2] - shaking(angle)).max()
print(f"shaking force against its closed form: {error:.1e} N of {np.abs(forces.shaking_force).max():.0f} N")
assert error < 1e-8

# -- At 90° the pistons' primary forces add up to a vector that turns with the crank: a counterweight takes all of it.
balance = forces.counterweight("shaft")
print(balance)
assert abs(balance.moment - (turning + sliding) * r) < 1e-12
assert balance.direction @ [0, 1, 0] < -0.999999
balanced = lw.machine_forces(MODEL, parameters={"counterweight": balance.moment}, fluctuation=0.02)
secondary = np.abs(balanced.shaking_force[:, 0]).max()
print(f"with it the shaking force is {secondary:.0f} N at most, across the engine, twice in a turn")
assert np.abs(balanced.shaking_force[:, 1]).max() < 0.03 * secondary  # the secondary forces cancel along y
weight = balance.moment * 9.81 * np.sin(angle)  # all that it changes of the torque
assert np.allclose(balanced.motor.torque, forces.motor.torque + weight, atol=1e-9)

# -- The flywheel: the mean torque is the work of the gas over two turns, and between the extremes of the energy stands
# the integral of the torque less its mean.
cycle = 4 * np.pi
turns = np.linspace(0, cycle, 201)


def torque(turn):
    """That the load takes is −torque: inertia, gas and weight against the velocity of pistons and rods."""
    total = 0.0
    for side, top in ((1, half), (-1, 2 * np.pi - half)):
        t = turn - side * half
        root = np.sqrt(rod**2 - (r * np.sin(t)) ** 2)
        rate = -r * np.sin(t) - r**2 * np.sin(t) * np.cos(t) / root  # of the distance by the angle
        gas = p["gas"] * np.exp(-p["short"] * (1 - np.cos((turn - top - p["late"]) / 2)))
        total += (sliding * (acceleration(t) + 9.81 * np.cos(half)) + gas) * rate
    return total - turning * 9.81 * r * np.sin(turn)


assert np.allclose(forces.motor.torque, torque(angle), atol=1e-7)
mean = quad(torque, 0, cycle, limit=500, epsabs=1e-10)[0] / cycle
assert abs(mean - forces.motor.mean) < 1e-9
flywheel = forces.flywheel
stored = quad(lambda x: mean - torque(x), flywheel.slowest, flywheel.fastest, limit=500, epsabs=1e-10)[0]
assert abs(stored - flywheel.energy) < 1e-7
assert abs(flywheel.inertia - stored / (0.02 * w**2)) < 1e-9
assert abs(torque(flywheel.slowest) - mean) < 1e-6  # an extreme of the energy
print(f"a flywheel of {flywheel.added:.4f} kg m² beside the crank's {flywheel.crank:.4f} kg m²")

# -- The picture.
figure, axes = plt.subplot_mosaic([["engine", "polar"], ["torque", "force"]], figsize=(10.4, 8.2), layout="constrained")
sol, k = forces.solution, 40
ax = axes["engine"]
pin = 1e3 * sol.position("crank_pin")[k, :2]
for side, name, colour in ((1, "1", "#0072B2"), (-1, "2", "#009E73")):
    along = np.array([-side * np.sin(half), np.cos(half)])
    across = np.array([along[1], -along[0]])
    top = 1e3 * sol.position(f"piston{name}")[k, :2]
    bore = [a * across + b * along for a, b in ((-42, 95), (-42, 198), (42, 198), (42, 95))]
    ax.plot(*np.transpose(bore), color="#999999", linewidth=3)
    corners = [top + a * across + b * along for a, b in ((-40, -16), (40, -16), (40, 34), (-40, 34))]
    ax.fill(*np.transpose(corners), facecolor=colour, alpha=0.35, edgecolor=colour, linewidth=1.5)
    ax.plot(*np.array([pin, top]).T, color=colour, linewidth=7, solid_capstyle="round", alpha=0.9)
    ax.plot(*top, "o", color="white", markeredgecolor="#222222", markersize=8)
    ax.annotate(f"cylinder {name}", (-140 * side, 180), ha="center", fontsize=9)
ax.add_patch(plt.Circle((0, 0), 55, facecolor="#f3d9cf", edgecolor="#D55E00", linewidth=1.5, zorder=0))
ax.plot(*np.array([[0, 0], pin]).T, color="#D55E00", linewidth=9, solid_capstyle="round", zorder=1)
weight = 1e3 * sol.position("throw")[k, :2] - pin / np.linalg.norm(pin) * 42
ax.plot(*weight, "o", color="#222222", markersize=17, zorder=2)
ax.annotate(
    "counterweight", weight, (70, -62), ha="left", fontsize=9, arrowprops={"arrowstyle": "-", "color": "#777777"}
)
ax.plot(0, 0, "o", color="white", markeredgecolor="#222222", markersize=9)
ax.plot(*pin, "o", color="white", markeredgecolor="#222222", markersize=9)
ax.set(aspect="equal", xlim=(-205, 205), ylim=(-80, 200), title="The engine, 72° after the crank was upright")
ax.axis("off")

ax = axes["polar"]
white = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
for run, colour, label, y in ((forces, "#0072B2", "without", 4.2), (balanced, "#D55E00", "with", 0.3)):
    ax.plot(*(1e-3 * run.shaking_force[:, :2].T), color=colour)
    ax.annotate(f"{label} counterweight", (0, y), color=colour, fontsize=8, ha="center", bbox=white)
ax.axhline(0, color="#999999", linewidth=0.6)
ax.axvline(0, color="#999999", linewidth=0.6)
ax.set(aspect="equal", xlabel="x (kN)", ylabel="y (kN)", title="Polar diagram of the shaking force")
ax.set(xticks=range(-6, 7, 2), xlim=(-6.6, 6.6), ylim=(-6.2, 6.2))

draw_torque(axes["torque"], forces)
axes["torque"].set_title(f"Torque of the load: a flywheel of {1e3 * flywheel.inertia:.0f} g m² for δ = 2 %")

ax = axes["force"]
for run, colour, label in ((forces, "#0072B2", "without"), (balanced, "#D55E00", "with counterweight")):
    ax.plot(np.degrees(angle), np.linalg.norm(run.shaking_force, axis=1), color=colour, label=label)
few = np.linspace(0, cycle, 41)
for weight, label in ((0.0, "closed form"), (balance.moment, None)):
    ax.plot(
        np.degrees(few), np.linalg.norm(shaking(few, weight), axis=1), ".", color="#222222", markersize=5, label=label
    )
ax.set(xlabel="crank (°)", ylabel="shaking force (N)", ylim=(0, None), xticks=range(0, 721, 90), xlim=(0, 720))
ax.set_title("Size of the shaking force")
ax.legend(fontsize=8)
ax.grid(color="#e6e6e6", linewidth=0.6)
for name in ("polar", "force"):
    axes[name].spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/34_engine.png", dpi=120)
