"""An RSSR linkage in space: the rocker by its input-output equation, and a coupler that does not spin.

Run it: python examples/11_rssr.py    It writes out/11_rssr.png and out/11_rssr.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "rssr.mks"
mech = lw.load(MODEL)
sol = lw.analyse(mech)
print(sol)
assert any(note.startswith("1 ") and "degree of freedom" in note and "rod" in note for note in sol.status.notes)

# With the crank's tip at r and the rocker's axle at o, |o + s (0, cos ψ, sin ψ) − r|² = l² becomes
# A sin ψ + B cos ψ = C.
p = mech.parameters
t = sol.time
tip = p["crank"] * np.stack([np.cos(t), np.sin(t), 0 * t], axis=1)
d = np.array([p["x"], p["y"], p["z"]]) - tip
a, b = 2 * p["rocker"] * d[:, 2], 2 * p["rocker"] * d[:, 1]
c = p["coupler"] ** 2 - p["rocker"] ** 2 - np.sum(d**2, axis=1)
psi = sol.joint("r2")[:, 0]
print(f"A sin ψ + B cos ψ = C holds to {np.max(np.abs(a * np.sin(psi) + b * np.cos(psi) - c)):.1e}")
assert np.max(np.abs(a * np.sin(psi) + b * np.cos(psi) - c)) < 1e-9
middle, half = np.arctan2(a, b), np.arccos(c / np.hypot(a, b))
# The drawing has the rocker upright: of the two assembly modes it is this one, for the whole turn.
exact, other = np.unwrap(middle + half), np.unwrap(middle - half)
assert np.allclose(np.exp(1j * psi), np.exp(1j * exact), atol=1e-9)

# The rate by differentiation: (A cos ψ − B sin ψ) ψ̇ = Ċ − Ȧ sin ψ − Ḃ cos ψ.
dd = -p["crank"] * np.stack([-np.sin(t), np.cos(t), 0 * t], axis=1)
ad, bd, cd = 2 * p["rocker"] * dd[:, 2], 2 * p["rocker"] * dd[:, 1], -2 * np.sum(d * dd, axis=1)
rate = (cd - ad * np.sin(psi) - bd * np.cos(psi)) / (a * np.cos(psi) - b * np.sin(psi))
assert np.allclose(sol.joint_rate("r2")[:, 0], rate, atol=1e-9)

# The motion of least norm has no spin of the coupler about its own length.
along = (sol.position("rod_end") - sol.position("rod")) / p["coupler"]
spin = np.sum(sol.angular_velocity("rod") * along, axis=1)
print(f"The coupler's spin is at most {np.max(np.abs(spin)):.1e} rad/s")
assert np.max(np.abs(spin)) < 1e-9

figure = plt.figure(figsize=(10, 4.6), layout="constrained")
plane, space = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")
plane.plot(np.degrees(t), np.degrees(exact), color="tab:blue", linewidth=1, label="closed form")
plane.plot(np.degrees(t), np.degrees(other), ":", color="0.5", linewidth=1, label="the other assembly mode")
plane.plot(np.degrees(t)[::5], np.degrees(psi)[::5], ".", color="tab:red", label="analysis")
plane.set(title="The rocker's angle", xlabel="crank (°)", ylabel="rocker (°)")
plane.legend(fontsize=8)
plane.grid(alpha=0.3)
for k in range(0, len(t), 15):
    points = np.array([sol.position(name)[k] for name in ("pivot", "crank_tip", "rod_end", "axle")])
    for (start, end), color in zip(((0, 1), (1, 2), (2, 3)), ("tab:red", "tab:blue", "tab:green"), strict=True):
        space.plot(*points[[start, end]].T, color=color, alpha=1.0 if k == 0 else 0.25, linewidth=2)
for name, color in (("crank_tip", "tab:red"), ("rod_mid", "tab:blue"), ("rocker_tip", "tab:green")):
    space.plot(*sol.position(name).T, color=color, linewidth=1)
space.set(title="Paths in space", xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", aspect="equal")
space.view_init(25, -35)
space.locator_params(nbins=4)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/11_rssr.png", dpi=120)
sol.animate("out/11_rssr.html")
