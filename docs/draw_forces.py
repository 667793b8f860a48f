"""Draw docs/images/bushing.png: the frames of a bushing, and its torque over the angle.

Needs the extra `plot`:  python docs/draw_forces.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Wedge

import linkwright as lw

OUT = Path(__file__).parent / "images"
STEEL, RUBBER, FIRST, SECOND = "#a3abb5", "#efe3c8", "#0072B2", "#D55E00"


def arrow(axis: plt.Axes, start: np.ndarray, end: np.ndarray, colour: str, text: str = "") -> None:
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.8})
    axis.annotate(text, end, (4, 4), textcoords="offset points", color=colour, fontsize=12)


def draw_frames(axis: plt.Axes) -> None:
    """A sleeve about a pin that is off its centre and turned."""
    off, angle = np.array([0.16, 0.1]), 0.45
    axis.add_patch(Wedge((0, 0), 1.25, 0, 360, width=0.2, facecolor=STEEL, edgecolor="none"))
    axis.add_patch(Circle((0, 0), 1.05, facecolor=RUBBER, edgecolor="none"))
    axis.add_patch(Circle(tuple(off), 0.45, facecolor=STEEL, edgecolor="none"))
    for turn, at, colour, names in ((0.0, np.zeros(2), FIRST, "xy"), (angle, off, SECOND, ("x′", "y′"))):
        for k, name in enumerate(names):
            way = np.array([np.cos(turn + k * np.pi / 2), np.sin(turn + k * np.pi / 2)])
            arrow(axis, at, at + 0.85 * way, colour, name)
    axis.annotate("r", 0.5 * off, (-4, 8), textcoords="offset points", fontsize=13, fontweight="bold")
    axis.plot(*np.array([np.zeros(2), off]).T, color="black", linewidth=2.2)
    s = np.linspace(0.0, angle, 30)
    axis.plot(off[0] + 0.62 * np.cos(s), off[1] + 0.62 * np.sin(s), color="black", linewidth=1.2)
    axis.plot([off[0], off[0] + 0.7], [off[1], off[1]], color="black", linewidth=0.7, linestyle=":")
    axis.annotate("θ", off + 0.68 * np.array([np.cos(angle / 2), np.sin(angle / 2)]), fontsize=13)
    axis.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal", title="first frame (sleeve), second frame (pin)")
    axis.axis("off")


def draw_torque(axis: plt.Axes) -> None:
    """The torque about the axis of the turn, by the bushing itself."""
    b = lw.Builder("turn")
    b.gravity((0.0, 0.0, 0.0))
    b.joint("revolute", b.ground, b.body("pin", 1.0, inertia=(1.0, 1.0, 1.0)), "turn")
    b.bushing(b.ground, "pin", 0.0, 1.0)
    mech = b.build()
    angle = np.radians(np.linspace(-359.9, 359.9, 1441))
    torque = mech.forward_dynamics(angle[:, None], np.zeros((1441, 1)), np.zeros((1441, 1)))[:, 0]
    torque[1:][np.abs(np.diff(torque)) > 1.0] = np.nan
    axis.axvspan(-180, 180, color=FIRST, alpha=0.08)
    axis.plot(np.degrees(angle), torque, color=SECOND, linewidth=2)
    axis.set(xlabel="angle (degrees)", ylabel="torque / torsional stiffness (rad)", title="torque")
    axis.set_xticks(range(-360, 361, 90))
    axis.grid(alpha=0.3)


def main() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=[1, 1.35], layout="constrained")
    draw_frames(axes[0])
    draw_torque(axes[1])
    figure.savefig(OUT / "bushing.png", dpi=110)


if __name__ == "__main__":
    main()
