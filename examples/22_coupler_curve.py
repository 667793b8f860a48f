"""A four-bar whose coupler draws a straight line: lengths by optimisation, compared with Hoeken's linkage.

Run it: python examples/22_coupler_curve.py    It writes out/22_coupler_curve.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "four_bar.mks"
half_turn = np.radians(np.linspace(60, 240, 61))  # the crank is 30° ahead of this: from 90° to 270°
whole_turn = np.linspace(0, 2 * np.pi, 181)

# Hoeken's linkage (1926): crank 1, ground 2, coupler and rocker 2.5, the pen at twice the coupler. Over half a turn of
# the crank it draws a line of length 4 that is straight to 0.01.
hoeken = lw.load(MODEL).with_parameters(crank=1, apart=2, coupler=2.5, rocker=2.5, along=5, above=0)
line = lw.analyse(hoeken, times=half_turn).position("pen")
print(f"Hoeken: length {np.ptp(line[:, 0]):.4f}, height within {np.ptp(line[:, 1]):.5f}, rms {np.std(line[:, 1]):.5f}")
assert abs(np.ptp(line[:, 0]) - 4.0) < 1e-9
assert abs(np.ptp(line[:, 1]) - 0.0097526) < 1e-6

# From a rough guess: least variance of the height, with a line at least as long.
guess = lw.load(MODEL).with_parameters(crank=1, coupler=3, rocker=3, apart=2.2, along=4, above=0)
best = lw.optimise(
    guess,
    "mean(pen.y^2) - mean(pen.y)^2",
    {"coupler": (1.5, 4), "rocker": (1.5, 4), "apart": (1.2, 3), "along": (2, 6), "above": (-2, 2)},
    {"length = range(pen.x)": (4.0, None)},
    times=half_turn,
)
print(best.report())
optimal = lw.analyse(best.mechanism, times=half_turn).position("pen")
height = optimal[:, 1]
print(f"optimum: length {np.ptp(optimal[:, 0]):.4f}, height within {np.ptp(height):.5f}, rms {np.std(height):.5f}")
assert best.status
assert np.std(height) < 0.5 * np.std(line[:, 1])
assert np.ptp(optimal[:, 0]) >= 4.0 - 1e-5

# The inverse problem: the lengths follow from points of the coupler curve, to rounding.
drawn = lw.analyse(hoeken, times=whole_turn[:-1]).position("pen")
again = lw.optimise(
    lw.load(MODEL).with_parameters(crank=1.1, coupler=2.7, rocker=2.6, apart=2.2, along=4.6, above=0.2),
    {"pen.x": drawn[:, 0], "pen.y": drawn[:, 1]},
    {"crank": (0.5, 1.5), "coupler": (2, 4), "rocker": (2, 4), "apart": (1, 3), "along": (3, 6), "above": (-1, 1)},
    times=whole_turn[:-1],
)
print(again.report())
assert again.value < 1e-9
assert all(abs(again.parameters[n] - hoeken.parameters[n]) < 1e-6 for n in again.parameters)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for name, mech in (("guess", guess), ("Hoeken", hoeken), ("optimum", best.mechanism)):
    times = whole_turn if name != "guess" else half_turn
    curve = lw.analyse(mech, times=times).position("pen")
    axes[0].plot(curve[:, 0], curve[:, 1], label=name)
for name, curve, colour in (("Hoeken", line, "C1"), ("optimum", optimal, "C2")):  # those of the left
    height = 1e3 * (curve[:, 1] - curve[:, 1].mean())
    axes[1].plot(np.degrees(half_turn) + 30, height, color=colour, label=name)
axes[0].set(xlabel="x (cranks)", ylabel="y (cranks)", aspect="equal", title="coupler curves")
axes[1].set(xlabel="crank (°)", ylabel="height about its mean (1/1000 of the crank)", title="how straight")
for ax in axes:
    ax.legend()
Path("out").mkdir(exist_ok=True)
figure.savefig("out/22_coupler_curve.png", dpi=120)
