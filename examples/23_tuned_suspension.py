"""A suspension tuned: spring and damper for a soft ride over a kerb, within a limit on travel.

Run it: python examples/23_tuned_suspension.py    It writes out/23_tuned_suspension.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "suspension.mks"
times = np.linspace(0.8, 3.2, 121)  # at rest before the kerb, which is at t = 2 s
# Comfort: accelerations of the body from the kerb on. Travel: the range of the length of spring and damper.
COMFORT = "comfort = sqrt(integral(step(TIME, 1.98, 0, 1.99, 1)*chassis.az^2))"
TRAVEL = "travel = range(distance(tower, seat))"
bounds = {"k": (20e3, 120e3), "c": (1e3, 15e3)}

simulated = lw.AnalysisSettings(dt=1e-3)

# Derivatives come with every simulation, through its steps.
model = lw.load(MODEL)
at = lw.sensitivities(model, [COMFORT, TRAVEL], ("k", "c"), times=times, analysis=simulated)
print(at.report())
assert at.gradient("comfort")[1] > 0 > at.gradient("travel")[1]  # more damping: a harder ride, less travel

# The softest ride for several limits of travel.
front = []
for limit in (0.070, 0.065, 0.060, 0.055):
    limits = {TRAVEL: (None, limit)}
    search = lw.Search(tolerance=1e-5)
    best = lw.optimise(model, COMFORT, bounds, limits, times=times, analysis=simulated, search=search)
    print(best.report(), "\n")
    assert best.status
    assert best.constraints["travel"][1] <= limit * (1 + 1e-5)
    front.append((limit, best))
    model = best.mechanism
rides = [best.value for _, best in front]
assert rides == sorted(rides)  # less travel, a harder ride

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].plot([1e3 * limit for limit, _ in front], rides, "o-")
axes[0].set(xlabel="travel allowed (mm)", ylabel="acceleration of the body (m/s²·√s)", title="ride against travel")
for label, mech in (("before", lw.load(MODEL)), ("tuned, 55 mm", model)):
    sol = lw.analyse(mech, times=times, rtol=1e-6)
    axes[1].plot(sol.time, sol.position("chassis")[:, 2], label=label)
axes[1].set(xlabel="time (s)", ylabel="height of the body (m)", xlim=(1.9, 3.2))
axes[1].legend()
Path("out").mkdir(exist_ok=True)
figure.savefig("out/23_tuned_suspension.png", dpi=120)
