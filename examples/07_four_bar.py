"""A planar four-bar: its rocker by Freudenstein's equation, three redundant equations, and curves of its coupler.

Run it: python examples/07_four_bar.py    It writes out/07_four_bar.png and out/07_four_bar.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "four_bar.mks"
mech = lw.load(MODEL)
sol = lw.analyse(mech)
print(sol)
assert any(note.startswith("3 equations are redundant") for note in sol.status.notes)

# Freudenstein: K1 cos ψ − K2 cos θ + K3 = cos(θ − ψ), θ the crank's angle and ψ the rocker's.
p = mech.parameters
a, c, r, g = p["crank"], p["coupler"], p["rocker"], p["apart"]
k1, k2, k3 = g / a, g / r, (a**2 - c**2 + r**2 + g**2) / (2 * a * r)
theta = np.radians(30) + sol.time
tip = sol.position("rocker_tip") - sol.position("right")
psi = np.unwrap(np.arctan2(tip[:, 1], tip[:, 0]))
residual = k1 * np.cos(psi) - k2 * np.cos(theta) + k3 - np.cos(theta - psi)
print(f"Freudenstein's equation holds to {np.max(np.abs(residual)):.1e}")
assert np.max(np.abs(residual)) < 1e-12

# The same solved for ψ, as a quadratic in tan(ψ/2).
qa = np.cos(theta) - k1 - k2 * np.cos(theta) + k3
qb = -2 * np.sin(theta)
qc = k1 - (k2 + 1) * np.cos(theta) + k3
exact = 2 * np.arctan2(-qb - np.sqrt(qb**2 - 4 * qa * qc), 2 * qa)
assert np.allclose(np.exp(1j * psi), np.exp(1j * exact), atol=1e-9)

# The ratio of speeds, from the derivative of Freudenstein's equation.
ratio = (np.sin(theta - psi) + k2 * np.sin(theta)) / (np.sin(theta - psi) + k1 * np.sin(psi))
assert np.allclose(sol.angular_velocity("rocker_bar")[:, 2], ratio, atol=1e-9)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for above in np.linspace(0.0, 2.0, 6):
    curve = lw.analyse(mech, parameters={"above": above}).position("pen")
    left.plot(curve[:, 0], curve[:, 1], color=plt.cm.viridis(above / 2.4), label=f"{above:.1f} m")
for name, color in (("crank_tip", "tab:red"), ("rocker_tip", "tab:green")):
    left.plot(*sol.position(name)[:, :2].T, ":", color=color)
corners = np.array([sol.position(n)[0] for n in ("left", "crank_tip", "rocker_tip", "right")])
left.plot(corners[:, 0], corners[:, 1], "o-", color="0.3", linewidth=2)
left.set(aspect="equal", title="Curves of points above the coupler", xlabel="x (m)", ylabel="y (m)")
left.legend(fontsize=8, loc="lower left")
right.plot(np.degrees(theta), np.degrees(exact) % 360, color="tab:blue", linewidth=1, label="Freudenstein")
right.plot(np.degrees(theta)[::5], np.degrees(psi)[::5] % 360, ".", color="tab:red", label="analysis")
right.set(title="The rocker's angle", xlabel="crank (°)", ylabel="rocker (°)")
right.legend()
for axis in (left, right):
    axis.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/07_four_bar.png", dpi=120)
sol.animate("out/07_four_bar.html")
