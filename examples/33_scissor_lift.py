"""A scissor lift whose stages are one REPEAT: the force of its spindle against the closed form by virtual work.

With n stages of arms of length L at the angle θ, the slide at x = L cos θ and the deck at y = n L sin θ. A slow spindle
exerts F = (n W + n² w)/tan θ for the load W and arms of weight w, two in each stage; here inertia is added to it.

Run it: python examples/33_scissor_lift.py    It writes out/33_scissor_lift.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "scissor_lift.mks"
assert len(MODEL.read_text().splitlines()) <= 25
L, g, load, arm, turning, slide = 2.0, 9.81, 300.0, 20.0, 6.7, 5.0


def spindle(n: int, sol: lw.Solution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The angle θ, the force that holds the lift at rest, and that of the motion, by Lagrange's equation in θ."""
    x, rate, change = (f("rise[0]")[:, 0] for f in (sol.position, sol.velocity, sol.acceleration))
    angle = np.arccos(x / L)
    s, c = np.sin(angle), np.cos(angle)
    turn = -rate / (L * s)
    turning_up = -(change + L * c * turn**2) / (L * s)
    middles = np.arange(n) + 0.5
    up = L**2 * (2 * arm * (middles**2).sum() + load * n**2)  # T = θ'² (up cos² θ + along sin² θ + 2 n turning) / 2
    along = L**2 * (arm * n / 2 + slide)
    mass = up * c**2 + along * s**2 + 2 * n * turning
    torque = mass * turning_up + (along - up) * s * c * turn**2
    rest = -g * (n * load + n**2 * arm) / np.tan(angle)
    return angle, rest, rest - torque / (L * s)


runs = {}
for n in (2, 5):
    sol = lw.analyse(lw.load(MODEL, parameters={"n": n}))
    assert sol.status
    angle, rest, moving = spindle(n, sol)
    force = sol.series["spindle.force"].values
    assert np.abs(force - moving).max() < 1e-9 * np.abs(force).max()
    assert np.abs(sol.position("deck")[:, 1] - n * L * np.sin(angle)).max() < 1e-9
    runs[n] = sol, angle, rest, force
    low, high = n * L * np.sin(angle[[0, -1]])
    print(f"{n} stages: {len(sol.mechanism.bodies)} bodies, the deck from {low:.2f} m to {high:.2f} m, ", end="")
    print(f"the spindle from {-force[0] / 1e3:.1f} kN to {-force[-1] / 1e3:.1f} kN")

sol, angle, rest, force = runs[5]
figure, (drawing, curves) = plt.subplots(1, 2, figsize=(11.0, 5.6), width_ratios=(1.25, 1), layout="constrained")
for column, k in enumerate((0, len(angle) // 2, len(angle) - 1)):
    offset = 2.6 * column
    for name, colour, sign in (("rise", "#4682b4", 1.0), ("fall", "#e8a13c", -1.0)):
        for stage in range(1, 6):
            middle = sol.position(f"{name}[{stage}]")[k, :2] + [offset, 0]
            half = 0.5 * L * np.array([np.cos(angle[k]), sign * np.sin(angle[k])])
            ends = np.array([middle - half, middle + half]).T
            drawing.plot(*ends, color=colour, linewidth=5, solid_capstyle="round")
            drawing.plot(*np.c_[ends, middle], "o", color="white", markeredgecolor="0.25", markersize=4)
    deck = sol.position("deck")[k, 1]
    drawing.fill_between([offset - 0.15, offset + 2.15], deck + 0.06, deck + 0.2, color="0.45")
    drawing.fill_between([offset - 0.15, offset + 2.15], -0.2, -0.06, color="0.7")
    x = L * np.cos(angle[k]) + offset
    drawing.annotate("", (x + 0.05, 0), (x + 0.62, 0), arrowprops={"arrowstyle": "-|>", "color": "#c0392b", "lw": 2})
    drawing.text(offset + 1, deck + 0.32, f"{np.degrees(angle[k]):.0f}°, {-force[k] / 1e3:.0f} kN", ha="center")
drawing.set(aspect="equal", xlim=(-0.3, 8.1), ylim=(-0.45, 9.3))
drawing.axis("off")
for n, colour in ((5, "#c0392b"), (2, "#1d6b45")):
    _, angle, rest, force = runs[n]
    curves.plot(np.degrees(angle), -rest / 1e3, color="0.6", linewidth=5)
    curves.plot(np.degrees(angle), -force / 1e3, color=colour, label=f"{n} stages, raised in 4 s")
curves.plot([], [], color="0.6", linewidth=5, label="(n W + n² w)/tan θ, at rest")
curves.set(xlabel="angle of the arms (°)", ylabel="force of the spindle (kN)", ylim=(0, None))
curves.legend()
curves.grid(color="0.9")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/33_scissor_lift.png", dpi=120)
