"""Friction in pins and guides that follows reactions: a press by its friction circles, a pendulum that dies out.

The press is a slider-crank that pushes 1 kN. Its rod bears a force on a line that touches the friction circles of its
two pins: the driving torque by that drawing, without any iteration, is what the model is held against. The pendulum
loses the same angle with every swing, 2 · coefficient · radius / length.

Run it: python examples/36_pin_friction.py    It writes out/36_pin_friction.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

CRANK, ROD, LOAD, MU = 0.1, 0.3, 1000.0, 0.2
RADII = {"main": 0.05, "crank pin": 0.05, "wrist pin": 0.035}
RATE, SPEED = 0.02, 1e-5  # rad/s: so slow that only the load counts


def press(mu):
    """The slider-crank; light, and without gravity."""
    with lw.Builder("press") as b:
        b.gravity((0.0, 0.0, 0.0))
        crank, rod, slider = (b.body(name, 0.01, inertia=(1e-5, 1e-5, 1e-5)) for name in ("crank", "rod", "slider"))
        for body, x in ((crank, 0.0), (rod, CRANK), (slider, CRANK + ROD)):
            b.place(body, (x, 0, 0))
        b.joint("revolute", b.ground, crank, "main")
        b.joint("revolute", crank, rod, "crank pin", at=(CRANK, 0, 0))
        b.joint("revolute", rod, slider, "wrist pin", at=(ROD, 0, 0))
        guide = {"h": (1, 0, 0), "f": (0, 1, 0)}
        b.joint("prismatic", b.triad(b.ground, **guide), b.triad(slider, **guide), "guide")
        for name, radius in RADII.items():
            b.reaction_friction(name, mu, radius, speed=SPEED, name=f"friction of {name}")
        b.reaction_friction("guide", mu, speed=1e-2 * SPEED, name="friction of guide")
        b.applied_wrench(slider, force=(-LOAD, 0, 0), axes="ground")
        b.driver("joint", "main", RATE * lw.TIME, name="motor")
    return b.build()


def by_friction_circles(angle, mu):
    """The driving torque, the force of the rod and the direction of its line."""
    pin = CRANK * np.array([np.cos(angle), np.sin(angle)])
    tilt = -np.arcsin(pin[1] / ROD)
    tilting = -CRANK * np.cos(angle) / (ROD * np.cos(tilt))  # per angle of the crank
    sliding = -CRANK * np.sin(angle) + ROD * -np.sin(tilt) * tilting
    circle = {name: mu * radius for name, radius in RADII.items()}
    turn_b, turn_c = np.sign(tilting - 1.0), np.sign(tilting)
    line = tilt - np.arcsin((circle["crank pin"] * turn_b + circle["wrist pin"] * turn_c) / ROD)
    force = LOAD / (np.cos(line) - mu * np.abs(np.sin(line)) * np.sign(sliding))
    arm = pin[0] * np.sin(line) - pin[1] * np.cos(line)
    return force * (arm - circle["crank pin"] * turn_b + circle["main"]), force, line


# -- the press: half a turn, in which it pushes; not at its ends, where rates change their signs ----------------------
times = np.radians(np.linspace(185.0, 355.0, 171)) / RATE
torques = {}
for mu in (0.0, MU):
    sol = lw.analyse(press(mu), analysis="inverse dynamic", times=times)
    assert sol.status
    torques[mu] = sol.series["motor.torque"].values
    drawn = by_friction_circles(RATE * times, mu)[0]
    swinging = np.abs(np.cos(RATE * times)) > 0.02  # the rod has a rate against the slider
    assert np.abs(torques[mu] - drawn)[swinging].max() < 1e-4 * np.abs(drawn).max()
lossless, needed = np.trapezoid(torques[0.0], RATE * times), np.trapezoid(torques[MU], RATE * times)
print(f"work of half a turn: {lossless:.1f} J, with friction {needed:.1f} J: efficiency {lossless / needed:.0%}")

# -- a pendulum on a pin ----------------------------------------------------------------------------------------------
LENGTH, PIN, START = 0.5, 0.01, 0.1
with lw.Builder("pendulum") as b:
    bob = b.body("bob", 2.0, com=(0, 0, -LENGTH), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("revolute", b.ground, bob, "pivot", axis=(0, 1, 0))
    b.reaction_friction("pivot", MU, PIN, speed=2e-3, name="pin")
    b.initial("pivot", START)
swings = lw.simulate(b.build(), 8.0, rtol=1e-6, saving=lw.Saving(interval=0.01))
assert swings.status
angle = swings.q[:, 0]
turning = np.flatnonzero(np.diff(np.sign(swings.v[1:, 0]))) + 1
turning = turning[np.abs(angle[turning]) > 0.02]
ends = np.abs(angle[turning])
loss = 2.0 * MU * PIN / LENGTH
print(f"each swing loses {np.degrees(-np.diff(ends).mean()):.3f}°, by 2 μ r / l {np.degrees(loss):.3f}°")
assert np.abs(-np.diff(ends) / loss - 1.0).max() < 0.03

# -- the picture ------------------------------------------------------------------------------------------------------
figure, axes = plt.subplot_mosaic(
    [["press", "press"], ["torque", "pendulum"]], figsize=(11, 8), height_ratios=[1, 1], layout="constrained"
)
ax = axes["press"]
now = np.radians(300.0)
_, force, line = by_friction_circles(now, MU)
pin = CRANK * np.array([np.cos(now), np.sin(now)])
wrist = np.array([pin[0] + np.sqrt(ROD**2 - pin[1] ** 2), 0.0])
ax.plot([-0.08, 0.55], [-0.035, -0.035], color="#878f9a", linewidth=6)
ax.plot([-0.08, 0.55], [0.035, 0.035], color="#878f9a", linewidth=6)
ax.add_patch(plt.Rectangle(wrist - [0.06, 0.03], 0.12, 0.06, color="#CC79A7", alpha=0.5))
for first, second, colour in ((np.zeros(2), pin, "#D55E00"), (pin, wrist, "#0072B2")):
    ax.plot(*np.array([first, second]).T, color=colour, linewidth=9, alpha=0.45, solid_capstyle="round")
labels = ((-0.06, 0.05), (0.085, -0.03), (0.06, -0.055))
for at, label, (name, radius) in zip((np.zeros(2), pin, wrist), labels, RADII.items(), strict=True):
    ax.add_patch(plt.Circle(at, radius, fill=False, color="#555555", linewidth=1))
    ax.add_patch(plt.Circle(at, MU * radius, fill=False, color="#D55E00", linewidth=1.8))
    ax.annotate(name, at + label, ha="center", fontsize=9)
normal = np.array([-np.sin(line), np.cos(line)])
touch = wrist + normal * MU * RADII["wrist pin"]  # the rod turns clockwise against the slider
way = np.array([np.cos(line), np.sin(line)])
ax.plot(*np.array([touch - 0.4 * way, touch + 0.1 * way]).T, color="black", linewidth=1.3, linestyle="--")
x = wrist[0]
ax.annotate("", (x + 0.06, 0), (x + 0.17, 0), arrowprops={"arrowstyle": "-|>", "linewidth": 2})
ax.annotate("1 kN", (x + 0.1, 0.006), fontsize=10)
ax.set(aspect="equal", xlim=(-0.12, 0.56), ylim=(-0.155, 0.075), title="the rod's force touches the friction circles")
ax.axis("off")

ax = axes["torque"]
degrees = np.degrees(RATE * times)
ax.plot(degrees, torques[MU], color="#D55E00", label=f"μ = {MU:g}")
ax.plot(degrees, torques[0.0], color="#0072B2", label="without friction")
drawn = by_friction_circles(RATE * times[::10], MU)[0]
ax.plot(degrees[::10], drawn, "o", color="black", markersize=4, label="drawing")
ax.set(xlabel="crank angle (degrees)", ylabel="driving torque (N m)", title="a press that pushes 1 kN")
ax.legend()
ax.grid(alpha=0.3)
ax = axes["pendulum"]
ax.plot(swings.time, np.degrees(angle), color="#0072B2")
period = 2 * np.pi * np.sqrt((2.0 * LENGTH**2 + 1e-3) / (2.0 * 9.81 * LENGTH))
envelope = np.degrees(np.maximum(START - loss * swings.time / (0.5 * period), 0.0))
for sign in (1, -1):
    label = "2 μ r / l each swing" if sign > 0 else None
    ax.plot(swings.time, sign * envelope, color="black", linewidth=1, linestyle="--", label=label)
ax.set(xlabel="time (s)", ylabel="angle (degrees)", title="a pendulum on a pin of 10 mm")
ax.legend()
ax.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/36_pin_friction.png", dpi=120)
