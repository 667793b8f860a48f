"""A spatial slider-crank falls under gravity: first freely, then driven, with the torque of its motor.

Run it: python examples/15_crank_in_space.py    It writes out/15_crank_in_space.png and out/15_crank_in_space.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "crank_in_space.mks"
sol = lw.analyse(MODEL)
print(sol)
assert sol.status
energy = sol.energy()
print(f"energy {energy[0]:.6f} J, constant to {np.max(np.abs(energy - energy[0])):.1e} J")
assert np.max(np.abs(energy - energy[0])) < 1e-6
assert np.max(np.abs(sol.position("far") - sol.position("block"))) < 1e-10

# The same with a driver: the crank turns at a constant rate, and inverse dynamic analysis computes the torque. Its
# power is the rate of the mechanism's energy.
text = MODEL.read_text().replace("DYNAMIC ANALYSIS", "INVERSE DYNAMIC ANALYSIS").replace("method = dop853, ", "")
text = text.replace("INITIAL (shaft.angle = 0, shaft.rate = 6 rad/s);", "DRIVER motor (shaft.angle = 6 rad*TIME);")
Path("out").mkdir(exist_ok=True)
driven_model = Path("out/15_driven.mks")
driven_model.write_text(text)
driven = lw.analyse(driven_model, times=np.arange(0.0, 2.1, 1e-3))
torque = driven.series["motor.torque"].values
power, energy = 6.0 * torque, driven.energy()
slope = (energy[:-4] - 8 * energy[1:-3] + 8 * energy[3:-1] - energy[4:]) / 12e-3
print(f"the motor's torque is between {torque.min():.3f} and {torque.max():.3f} N m")
assert np.allclose(power[2:-2], slope, atol=1e-6)

figure, axes = plt.subplots(2, 1, figsize=(7.5, 5), layout="constrained")
axes[0].plot(sol.time, sol.joint_rate("shaft")[:, 0])
axes[0].set(xlabel="time (s)", ylabel="shaft's rate (rad/s)", title="free motion")
axes[1].plot(driven.time, torque)
axes[1].set(xlabel="time (s)", ylabel="motor's torque (N m)", title="driven at a constant rate")
figure.savefig("out/15_crank_in_space.png", dpi=120)
sol.animate("out/15_crank_in_space.html")
