"""Peaucellier's linkage draws an exact straight line; its redundant equations and undriven degrees of freedom.

Run it: python examples/08_peaucellier.py    It writes out/08_peaucellier.png and out/08_peaucellier.html.
"""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "peaucellier.mks"
Path("out").mkdir(exist_ok=True)
mech = lw.load(MODEL)
sol = lw.analyse(mech)
print(sol)

# OC · OP = long² − side², so that P moves on x = (long² − side²) / (2 radius).
p = mech.parameters
line = (p["long"] ** 2 - p["side"] ** 2) / (2 * p["radius"])
pen = sol.position("p_of_ap")
print(f"The line is straight to {np.max(np.abs(pen[:, 0] - line)):.1e} m, and {np.ptp(pen[:, 1]):.2f} m long")
assert np.max(np.abs(pen[:, 0] - line)) < 1e-12
assert np.max(np.abs(pen[:, 2])) < 1e-12
inverse = np.linalg.norm(pen, axis=1) * np.linalg.norm(sol.position("c_of_crank"), axis=1)
assert np.allclose(inverse, p["long"] ** 2 - p["side"] ** 2, atol=1e-12)

# Ten revolute joints have 50 equations for 42 unknowns, and the motor has one more: 9 equations are redundant.
assert any(note.startswith("9 equations are redundant") for note in sol.status.notes)

# With spherical joints at the rhombus 5 degrees of freedom are undriven: bars spin, and the rhombus folds along AB. The
# motion of least norm excites none of these, and the line stays straight.
loose = Path("out") / "peaucellier_loose.mks"
loose.write_text(re.sub("REVOLUTE JOINT ([abcp])", r"SPHERICAL JOINT \1", MODEL.read_text(encoding="utf-8")))
balls = lw.analyse(loose)
print(balls)
assert any(note.startswith("5 ") and "degrees of freedom" in note for note in balls.status.notes)
assert np.max(np.abs(balls.position("p_of_ap") - pen)) < 1e-9

figure, axis = plt.subplots(figsize=(6.5, 6.5), layout="constrained")
bars = {
    "long_a": ("o", "a_of_long"),
    "long_b": ("o", "b_of_long"),
    "ac": ("a_of_long", "c_of_ac"),
    "bc": ("b_of_long", "c_of_bc"),
    "ap": ("a_of_long", "p_of_ap"),
    "bp": ("b_of_long", "p_of_bp"),
    "crank": ("q", "c_of_crank"),
}
colors = {"long_a": "tab:blue", "long_b": "tab:blue", "crank": "tab:red"}
for k, strength in ((15, 0.2), (0, 1.0), (30, 0.5)):
    for bar, ends in bars.items():
        at = np.array([sol.position(name)[k] for name in ends])
        axis.plot(at[:, 0], at[:, 1], "o-", color=colors.get(bar, "tab:green"), alpha=strength, linewidth=2.5)
axis.plot(pen[:, 0], pen[:, 1], color="goldenrod", linewidth=3, label="P")
axis.plot(*sol.position("c_of_crank")[:, :2].T, ":", color="tab:red", label="C")
for name, label in (("o", "O"), ("q", "Q")):
    x, y, _ = sol.position(name)[0]
    axis.annotate(label, (x, y), (x - 0.06, y - 0.3), fontsize=12)
axis.set(aspect="equal", xlabel="x (m)", ylabel="y (m)", title="Peaucellier's linkage: a circle becomes a line")
axis.legend(loc="upper left")
axis.grid(alpha=0.3)
figure.savefig("out/08_peaucellier.png", dpi=120)
sol.animate("out/08_peaucellier.html")
