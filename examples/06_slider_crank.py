"""The slider-crank of the MKSim paper, from the paper's text: its motion beside the closed form.

Run it: python examples/06_slider_crank.py    It writes out/06_slider_crank.png and out/06_slider_crank.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "slider_crank.mks"
sol = lw.analyse(MODEL)
print(sol)
print(sol.counters)

# Closed form: crank 6, coupler 10, and the block at x(t) = 8 + 3 sin t. The crank's angle φ has
# cos φ = (x² + 6² − 10²) / (12 x) = (x − 64/x) / 12.
t = sol.time
x, x1, x2 = 8 + 3 * np.sin(t), 3 * np.cos(t), -3 * np.sin(t)
c = (x - 64 / x) / 12
c1 = (1 + 64 / x**2) / 12 * x1
c2 = (1 + 64 / x**2) / 12 * x2 - 128 / x**3 / 12 * x1**2
angle = np.arccos(c)
rate = -c1 / np.sin(angle)
second = -(c2 + c * rate**2) / np.sin(angle)

tip = 6 * np.stack([np.cos(angle), np.sin(angle), 0 * t], axis=1)
errors = {
    "crank's tip (m)": sol.position("sph1pend1") - tip,
    "block (m)": sol.position("block")[:, 0] - x,
    "block's velocity (m/s)": sol.velocity("block")[:, 0] - x1,
    "block's acceleration (m/s²)": sol.acceleration("block")[:, 0] - x2,
    "crank's angular velocity (rad/s)": sol.angular_velocity("pend1")[:, 2] - rate,
    "crank's angular acceleration (rad/s²)": sol.angular_acceleration("pend1")[:, 2] - second,
}
for what, error in errors.items():
    print(f"{what:40} error {np.max(np.abs(error)):.1e}")
    assert np.max(np.abs(error)) < 1e-9

# Velocities and accelerations are the derivatives of the positions: central differences of fourth order.
fine = lw.analyse(MODEL, times=np.arange(0.0, 2.0, 1e-3))
for name in ("pend1", "pend2", "block"):
    for of, derivative in ((fine.position, fine.velocity), (fine.velocity, fine.acceleration)):
        f = of(name)
        numerical = (f[:-4] - 8 * f[1:-3] + 8 * f[3:-1] - f[4:]) / 12e-3
        assert np.allclose(numerical, derivative(name)[2:-2], atol=1e-8)

# The coupler's spin about its own length is an undriven degree of freedom. The motion of least norm does not excite it.
along = (sol.position("sph2pend2") - sol.position("sph1pend2")) / 10
assert np.max(np.abs(np.sum(sol.angular_velocity("pend2") * along, axis=1))) < 1e-9

figure, axes = plt.subplots(3, 1, figsize=(7.5, 7), sharex=True, layout="constrained")
rows = (
    (angle, sol.joint("rev1")[:, 0], "angle (rad)"),
    (rate, sol.angular_velocity("pend1")[:, 2], "velocity (rad/s)"),
    (second, sol.angular_acceleration("pend1")[:, 2], "acceleration (rad/s²)"),
)
for axis, (exact, computed, label) in zip(axes, rows, strict=True):
    axis.plot(t, exact, color="tab:blue", linewidth=1, label="closed form")
    axis.plot(t, computed, ".", color="tab:red", markersize=4, label="analysis")
    axis.set_ylabel(label)
    axis.grid(alpha=0.3)
axes[0].legend()
axes[0].set_title("The crank, while the block moves as 8 + 3 sin t")
axes[-1].set_xlabel("time (s)")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/06_slider_crank.png", dpi=120)
sol.animate("out/06_slider_crank.html")
