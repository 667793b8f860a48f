"""A fly-ball governor holds the speed of an engine: its steady speed is that of Porter's formula.

Run it: python examples/16_governor.py    It writes out/16_governor.png and out/16_governor.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "governor.mks"


def steady_speed(p: dict[str, float]) -> float:
    """In the steady state the torque of the engine is that of the load, which determines the rise of the sleeve; then
    ω² = (m + M) g / (m h), where h is the height of the joints over the balls."""
    rise = (p["full"] - p["load"]) / p["gain"]
    height = p["arm"] - rise / 2
    return np.sqrt((p["ball"] + p["weight"]) * 9.81 / (p["ball"] * height))


Path("out").mkdir(exist_ok=True)
figure, axes = plt.subplots(2, 1, figsize=(7.5, 6), sharex=True, layout="constrained")
for load in (0.8, 1.4):
    sol = lw.analyse(MODEL, parameters={"load": load})
    assert sol.status
    speed, shift = sol.joint_rate("spin")[:, 0], sol.joint("slide")[:, 0]
    expected = steady_speed(dict(sol.mechanism.parameters))
    print(f"load {load} N m: {speed[-1]:.4f} rad/s after {sol.time[-1]:g} s; Porter's formula {expected:.4f} rad/s")
    assert abs(speed[-1] / expected - 1) < 1e-3
    assert abs(sol.series["engine.torque"].values[-1] - load) < 1e-2
    axes[0].plot(sol.time, speed, label=f"load {load} N m")
    axes[1].plot(sol.time, 1e3 * shift)

axes[0].set_ylabel("speed (rad/s)")
axes[0].legend()
axes[1].set(xlabel="time (s)", ylabel="sleeve (mm)")
figure.savefig("out/16_governor.png", dpi=120)
sol.animate("out/16_governor.html")
