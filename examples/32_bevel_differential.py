"""An axle's differential with bevel gears: speeds that add up, torques that are equal, and the forces on its spider.

Run it: python examples/32_bevel_differential.py    It writes out/32_bevel_differential.png and .html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).with_name("models") / "bevel_differential.mks"
SIDE, PINION, MODULE = 24, 16, 0.0025
R_SIDE, R_PINION, ALPHA = MODULE * SIDE / 2, MODULE * PINION / 2, np.radians(20)
CONE = np.arctan2(SIDE, PINION)  # of the side gears

mech = lw.load(MODEL)
print(mech.dof())
sol = lw.analyse(mech)
assert sol.status, sol.status
t, series = sol.time, sol.series

names = ("case", "left", "right")
case, left, right = (sol.joint_rate(f"{name}_shaft")[:, 0] for name in names)
assert np.allclose(left + right, 2 * case, atol=1e-6)  # a + b = 2 c

# Moments about the axle: what two pinions do to each wheel.
a_case, a_left, a_right = (sol.joint_acceleration(f"{name}_shaft")[:, 0] for name in names)
teeth = {
    "left": (0.04 * a_left - series["ice.torque"].values) / 2 / R_SIDE,
    "right": (0.04 * a_right - series["asphalt.torque"].values) / 2 / R_SIDE,
}
for name, force in teeth.items():
    for k in (1, 2):
        assert np.allclose(series[f"{name}{k}.force"].values, force, atol=1e-6)
# The pinions are balanced, but for what turns them: both wheels get the same torque.
spin = SIDE / PINION * (a_right - a_left) / 2
assert np.allclose(teeth["left"] - teeth["right"], 4e-5 * spin / R_PINION, atol=1e-6)

# A pin of the spider: the pinion's two tooth forces, what presses it outward, and its own inertia.
both, apart = teeth["left"] + teeth["right"], np.tan(ALPHA) * (teeth["left"] - teeth["right"])
around = both + 0.2 * R_SIDE * a_case
outward = both * np.tan(ALPHA) * np.cos(CONE) + 0.2 * R_SIDE * case**2
for k in (1, 2):
    pin = np.sqrt(sum(series[f"pin{k}.f{axis}"].values ** 2 for axis in "xyz"))
    assert np.allclose(pin, np.sqrt(around**2 + outward**2 + (apart * np.sin(CONE)) ** 2), atol=1e-6)
print(f"at {t[-1]:g} s: left {left[-1]:.0f} rad/s on ice, right {right[-1]:.0f} rad/s, case {case[-1]:.0f} rad/s")
print(f"both wheels get {2 * R_SIDE * teeth['right'][-1]:.2f} N m; {pin[-1]:.0f} N on each pin of the spider")

figure, (drawing, speeds, loads) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained", width_ratios=(1.1, 1, 1))
deep = 0.3  # half the face width, as a part of the distance from where the axes meet
for angle, (axial, radial), color in (
    (0.0, (R_PINION, R_SIDE), "#17a67c"),
    (np.pi, (R_PINION, R_SIDE), "#2f7fc1"),
    (np.pi / 2, (R_SIDE, R_PINION), "#e69f00"),
    (-np.pi / 2, (R_SIDE, R_PINION), "#e69f00"),
):
    inner, outer, back = 1 - deep, 1 + deep, axial * (1 + deep) + 0.008
    x = np.array([axial * inner, axial * outer, back, back, axial * outer, axial * inner])
    y = np.array([radial * inner, radial * outer, radial, -radial, -radial * outer, -radial * inner])
    c, s = np.cos(angle), np.sin(angle)
    drawing.fill(1e3 * (c * x - s * y), 1e3 * (s * x + c * y), color=color, edgecolor="white", linewidth=1.5, zorder=2)
    line = np.array([0.0, 0.085 if radial > axial else 0.062])
    drawing.plot(1e3 * c * line, 1e3 * s * line, color="#4a525c", linewidth=11 if radial > axial else 8, zorder=1)
frame = np.array([[-60, -62], [60, -62], [60, 62], [-60, 62], [-60, -62]]).T
drawing.plot(*frame, color="#a3abb5", linewidth=8, zorder=0)
push = 1e3 * np.array([R_PINION, R_SIDE])
length = 14.0
for sx in (-1, 1):
    for sy in (-1, 1):
        at = push * (sx, sy)
        normal = np.array([-sx * np.sin(CONE), sy * np.cos(CONE)]) * length
        drawing.arrow(*at, *normal, color="#c03020", width=1.0, head_width=4.0, length_includes_head=True, zorder=4)
        drawing.plot(*at, "o", color="#c03020", markersize=5, zorder=5)
pressed = np.tan(ALPHA) * teeth["right"][-1]
text = f"teeth press pinions away with {pressed:.0f} N each;\n{teeth['right'][-1]:.0f} N each along their way (●)"
drawing.text(0, -78, text, ha="center", va="top", color="#c03020", fontsize=10)
drawing.set(aspect="equal", xlim=(-90, 90), ylim=(-100, 75), title="Case, spider and side gears (mm)")
drawing.axis("off")
for values, label, color in ((left, "left, on ice", "#2f7fc1"), (right, "right", "#17a67c"), (case, "case", "#4a525c")):
    speeds.plot(t, values, label=label, color=color)
speeds.set(xlabel="time (s)", ylabel="speed (rad/s)", title="left + right = 2 case")
loads.plot(t, series["engine.torque"].values, color="#4a525c", label="engine on the case (N m)")
loads.plot(t, 2 * R_SIDE * teeth["left"], color="#2f7fc1", label="left wheel gets (N m)")
loads.plot(t, 2 * R_SIDE * teeth["right"], "--", color="#17a67c", label="right wheel gets (N m)")
loads.plot(t, pin / 10, color="#c03020", label="a pin of the spider (10 N)")
loads.set(xlabel="time (s)", title="Equal torques on unequal wheels")
for axes in (speeds, loads):
    axes.legend()
    axes.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/32_bevel_differential.png", dpi=120)
sol.animate("out/32_bevel_differential.html")
