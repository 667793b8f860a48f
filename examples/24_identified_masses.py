"""Link masses from a recorded motion: base parameters by least squares on the regressor, with noise and confidence.

Run it: python examples/24_identified_masses.py    It writes out/24_identified_masses.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw
from linkwright.design.inertia_identification import identified

robot = lw.load(Path(__file__).parent / "models" / "puma560.dh.toml")
base = lw.equations(robot).base
print(base.rank, "combinations of the inertial parameters can be identified from the joint forces")

# A motion of a few harmonics in every joint, as it would be driven on the machine: 40 s at 50 Hz, torques with noise.
rng = np.random.default_rng(7)
t = np.arange(0, 40, 0.02)
w = 2 * np.pi * 0.1 * np.arange(1, 6)
sine, cosine = rng.normal(size=(2, 5, robot.nv)) * 0.35
phase = np.outer(t, w)
q = np.sin(phase) @ sine + np.cos(phase) @ cosine
v = (np.cos(phase) * w) @ sine - (np.sin(phase) * w) @ cosine
a = -((np.sin(phase) * w**2) @ sine + (np.cos(phase) * w**2) @ cosine)
clean = robot.inverse_dynamics(q, v, a)
assert np.allclose(clean, base.matrix(q, v, a) @ base.beta, atol=1e-9)
noise = 0.02 * np.sqrt(np.mean(clean**2, axis=0))
tau = clean + noise * rng.normal(size=clean.shape)

fit = identified(base, q, v, a, tau)
print(fit.report())
apart = (fit.values - base.beta) / fit.deviations
inside = np.mean(np.abs(apart) < 1.96)
print(f"{100 * inside:.0f} % of the true values are within their intervals of 95 %")
assert np.all(np.abs(apart) < 4.5)
assert inside > 0.85
assert np.allclose(fit.noise, noise, rtol=0.1)

# The identified model predicts the forces of a motion that was not in the record.
other = rng.normal(size=(3, 500, robot.nv))
true, predicted = (base.matrix(*other) @ x for x in (base.beta, fit.values))
error = np.sqrt(np.mean((true - predicted) ** 2) / np.mean(true**2))
print(f"forces of another motion are predicted to {100 * error:.2f} %")
assert error < 0.02

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
axes[0].errorbar(range(base.rank), apart, yerr=1.96, fmt="o", markersize=3, linewidth=0.8)
axes[0].axhline(0, color="black", linewidth=0.8)
axes[0].set(xlabel="base parameter", ylabel="identified − true, in standard deviations", title="within their intervals")
axes[1].plot(t[:500], tau[:500, 1], linewidth=0.8, label="measured")
axes[1].plot(t[:500], (base.matrix(q, v, a) @ fit.values)[:500, 1], linewidth=1.2, label="model")
axes[1].set(xlabel="time (s)", ylabel="torque of joint 2 (N m)")
axes[1].legend()
Path("out").mkdir(exist_ok=True)
figure.savefig("out/24_identified_masses.png", dpi=120)
