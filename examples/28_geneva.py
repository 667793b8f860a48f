"""A Geneva drive of eight stations as a coupling of angle to angle, against the closed form: motion and torques.

Run it: python examples/28_geneva.py    It writes out/28_geneva.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Polygon

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "geneva.mks"
sol = lw.analyse(MODEL)
assert sol.status
p = dict(sol.mechanism.parameters)
n, centres, speed, inertia = int(p["stations"]), p["centres"], p["speed"], 0.004
m, engaged = np.sin(np.pi / n), np.pi / 2 - np.pi / n

# The textbook's wheel: between -engaged and engaged the pin, at m times the distance of the centres, is in a slot.
turned = speed * sol.time
phi = np.mod(turned + np.pi, 2 * np.pi) - np.pi
moves = np.abs(phi) < engaged
held = np.clip(phi, -engaged, engaged)
away = 1 + m**2 - 2 * m * np.cos(phi)
angle = -(turned - phi) / n - np.arctan2(m * np.sin(held), 1 - m * np.cos(held))
rate = np.where(moves, -m * (np.cos(phi) - m) / away, 0.0) * speed
change = np.where(moves, m * (1 - m**2) * np.sin(phi) / away**2, 0.0) * speed**2

wheel = [part[:, 0] for part in (sol.joint("shaft"), sol.joint_rate("shaft"), sol.joint_acceleration("shaft"))]
for ours, exact, scale in zip(wheel, (angle, rate, change), (1.0, speed, speed**2), strict=True):
    assert np.abs(ours - exact).max() < 1e-12 * scale
torque = {name: sol.series[f"{name}.torque"].values for name in ("slots", "motor")}
assert np.abs(torque["slots"] - inertia * change).max() < 1e-12  # what the slots exert on the wheel
assert np.abs(torque["motor"] * speed - inertia * change * rate).max() < 1e-10  # power in is power of the wheel
stations = -wheel[0][0 :: 1000 // 2] * n / (2 * np.pi)
assert np.allclose(stations, [0, 1, 2])
print(f"peak speed {np.abs(wheel[1]).max() / speed:.4f} of the driver's, m/(1 - m) = {m / (1 - m):.4f}")
print(f"acceleration as the pin enters {np.tan(np.pi / n):.4f} ω², at most {np.abs(wheel[2]).max() / speed**2:.4f} ω²")
print(f"the wheel moves during {engaged / np.pi:.1%} of a turn of the driver")


def parts(driver: float, turn: float) -> list[tuple[object, str, str]]:
    """The wheel with its slots, the locking disc and the pin, in units of the centres' distance."""
    radius, pin, lock = np.cos(np.pi / n), 0.032, m - 0.095
    middles = np.pi + turn + (np.arange(n) + 0.5) * 2 * np.pi / n  # of the arcs that rest on the locking disc
    around = np.linspace(0, 2 * np.pi, 1441)
    edge = np.array([1 + radius * np.cos(around), radius * np.sin(around)])
    for middle in middles:
        at = np.array([1 + np.cos(middle), np.sin(middle)])[:, None]
        d = edge - at
        size = np.hypot(*d)
        edge = np.where(size < lock + 0.008, at + d * (lock + 0.008) / size, edge)
    shapes: list[tuple[object, str, str]] = [(Polygon(edge.T), "#e8a13c", "#6b4512")]
    for k in range(n):
        a = np.pi + turn + k * 2 * np.pi / n
        along, across = np.array([np.cos(a), np.sin(a)]), np.array([-np.sin(a), np.cos(a)])
        bottom, end = 1 - m - 0.012, radius + 0.02
        arc = np.linspace(-np.pi / 2, np.pi / 2, 25)
        inner = [(bottom - pin * np.cos(x)) * along + pin * np.sin(x) * across for x in arc]
        outer = [end * along + pin * across, end * along - pin * across]
        shapes.append((Polygon(np.add([*inner, *outer], [1, 0])), "white", "#6b4512"))
    shapes.append((Circle((1, 0), 0.09), "#6b4512", "#6b4512"))
    cut = driver + np.linspace(engaged + 0.28, 2 * np.pi - engaged - 0.28, 181)  # open where a tip of the wheel passes
    hollow = driver + np.linspace(-engaged - 0.28, engaged + 0.28, 61)
    lobe = [*(lock * np.array([np.cos(x), np.sin(x)]) for x in cut)]
    lobe += [0.62 * lock * np.array([np.cos(x), np.sin(x)]) for x in hollow]
    tip = m * np.array([np.cos(driver), np.sin(driver)])
    side = 0.06 * np.array([-np.sin(driver), np.cos(driver)])
    shapes.append((Polygon([side, tip + 0.7 * side, tip - 0.7 * side, -side]), "#4682b4", "#1d3b55"))
    shapes += [(Polygon(lobe), "#4682b4", "#1d3b55"), (Circle((0, 0), 0.05), "#1d3b55", "#1d3b55")]
    shapes.append((Circle(tuple(tip), 0.9 * pin), "#c0392b", "#5e1a12"))
    return shapes


figure = plt.figure(figsize=(11.5, 6.2), layout="constrained")
grid = figure.add_gridspec(3, 2, width_ratios=(1.05, 1))
drawing = figure.add_subplot(grid[:, 0])
shown = int(np.flatnonzero((phi > -0.6) & (phi < -0.5))[0])
for shape, face, edge in parts(phi[shown], float(np.mod(wheel[0][shown], 2 * np.pi / n))):
    shape.set(facecolor=face, edgecolor=edge, linewidth=1.1)
    drawing.add_patch(shape)
    if face == "white":  # a slot ends at the wheel's rim
        shape.set_clip_path(drawing.patches[0])
drawing.plot([-0.5, 2.1], [0, 0], color="0.5", linestyle=(0, (12, 4, 2, 4)), linewidth=0.8)
ring = np.linspace(-engaged, engaged, 60)
drawing.plot(m * np.cos(ring), m * np.sin(ring), color="#c0392b", linewidth=1.0, linestyle=":")
drawing.annotate(
    "in a slot the pin\nis on this arc",
    (m * np.cos(0.9), m * np.sin(0.9)),
    (-0.5, 0.62),
    arrowprops={"arrowstyle": "-", "color": "0.4"},
    color="0.2",
)
drawing.text(0, -0.5, "driver", ha="center", color="#1d3b55")
drawing.text(1, -1.06, f"wheel, {n} stations", ha="center", color="#6b4512")
drawing.set(xlim=(-0.55, 2.05), ylim=(-1.15, 1.05), aspect="equal")
drawing.axis("off")
rows = (
    (np.degrees(-wheel[0]), "wheel (°)", "#6b4512"),
    (-wheel[1] / speed, "rate / driver's", "#6b4512"),
    (1e3 * torque["motor"], "motor (mN m)", "#1d3b55"),
)
axes = [figure.add_subplot(grid[row, 1]) for row in range(3)]
for axis, (values, label, colour) in zip(axes, rows, strict=True):
    axis.plot(np.degrees(turned), values, color=colour)
    axis.set(ylabel=label, xlim=(0, 720), xticks=range(0, 721, 90))
    axis.grid(color="0.9")
    for begin in (-engaged, 2 * np.pi - engaged, 4 * np.pi - engaged):
        axis.axvspan(*np.degrees([begin, begin + 2 * engaged]), color="#f6e6cb", zorder=0)
axes[0].set_title("shaded: the pin is in a slot; else the wheel is locked", fontsize=10)
axes[-1].set_xlabel("driver (°)")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/28_geneva.png", dpi=120)
