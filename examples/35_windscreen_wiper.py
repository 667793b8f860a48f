"""A windscreen wiper with tolerances and loose pins: what decides the wiping angle, by four methods, with 10⁵ draws.

The wiper is a crank-rocker whose rocker carries the driver's arm; a link takes the motion to the passenger's. The law
of cosines gives the wiping angle and its derivatives, which the report is held against. The model is in millimetres and
degrees, and so are tables and figures; numbers in Python are in SI.

Run it: python examples/35_windscreen_wiper.py    It writes out/35_windscreen_wiper.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw
from linkwright.design.tolerance_plots import draw_histogram, draw_pareto

MODEL = Path(__file__).parent / "models" / "windscreen_wiper.mks"
wiper = lw.load(MODEL)
lengths = {name: wiper.parameters[name] for name in ("crank", "coupler", "lever", "apart")}


def wiping_angle(crank, coupler, lever, apart):
    """Between the dead centres, where crank and coupler are in line; lengths may be complex."""
    ends = [np.arccos((apart**2 + lever**2 - (coupler + s * crank) ** 2) / (2 * apart * lever)) for s in (1, -1)]
    return ends[0] - ends[1]


def crank_angle(sign, crank, coupler, lever, apart):
    """Of a dead centre, from the line to the lever's pivot."""
    reach = coupler + sign * crank
    angle = np.arccos((apart**2 + reach**2 - lever**2) / (2 * apart * reach))
    return angle if sign > 0 else angle + np.pi


# The times of a turn of one second, with both dead centres of the driver's arm among them: the motor starts upright.
dead = [(crank_angle(sign, **lengths) / (2 * np.pi) - 0.25) % 1 for sign in (1, -1)]
times = np.union1d(np.linspace(0, 1, 73), dead)
sizes = {"crank": 0.05, "coupler": 0.1, "lever": 0.05, "apart": 0.2, "link": 0.1, "lever2": 0.05, "apart2": 0.2}  # mm
tolerances = {name: f"{size} mm" for name, size in sizes.items()}
clearances = dict.fromkeys(("pin_a", "pin_b", "pin_c", "pin_d"), "0.02 mm")  # radial
report = lw.tolerances(
    wiper,
    ["wiping angle = range(wiper.angle)", "park = min(wiper.angle)", "passenger = range(wiper2.angle)"],
    tolerances,
    clearances=clearances,
    times=times,
    settings=lw.ToleranceSettings(draws=100_000, seed=1),
)
print(report.report())
angle = report["wiping angle"]
assert abs(angle.nominal - wiping_angle(**lengths)) < 1e-9

# Contributions by the law of cosines, differentiated by a complex step.
for name, length in lengths.items():
    slope = wiping_angle(**{**lengths, name: length + 1e-30j}).imag / 1e-30
    assert abs(angle.contributions[name].half - abs(slope) * 1e-3 * sizes[name]) < 1e-9, name
for name in ("link", "lever2", "apart2", "clearance of pin_c"):
    assert angle.contributions[name].half == 0.0  # the passenger's side decides nothing of the driver's

# Monte Carlo and the linear answer: no further apart than 10⁵ draws are by chance, and half the range of 99.73 % is the
# root sum of squares, but for the clearances, which are no normal distributions.
for one in report:
    more, off = one.disagreement
    assert abs(more) < 0.01
    assert abs(off) < 0.02
drawn = angle.monte_carlo
half = 0.5 * (drawn.percentiles[99.865] - drawn.percentiles[0.135])
print(f"root sum of squares ± {np.degrees(angle.rss):.3f}°, half of 99.73 % of the draws {np.degrees(half):.3f}°")
assert abs(half / angle.rss - 1) < 0.1
assert angle.worst_case.low < drawn.low
assert drawn.high < angle.worst_case.high

# A loose pin moves as an offset of the joint does: the same mechanism with the pin off in the worst direction.
pin = angle.contributions["clearance of pin_b"]
text = (
    MODEL.read_text()
    .replace(
        "TRIAD lever_pin   (associated body = arm, origin = (lever, 0, 0));",
        "PARAMETER ex = 0 mm; PARAMETER ey = 0 mm;\n"
        "TRIAD lever_pin   (associated body = arm, origin = (lever, 0, 0));\n"
        "TRIAD loose_pin   (associated body = arm, origin = (lever + ex, ey, 0));",
    )
    .replace("pin_b (triad = lever_pin,", "pin_b (triad = loose_pin,")
)
Path("out").mkdir(exist_ok=True)
explicit = Path("out/35_loose_pin.mks")
explicit.write_text(text)
offset = dict(zip(("ex", "ey"), 2e-5 * np.array([np.cos(pin.direction), np.sin(pin.direction)]), strict=True))
wider = np.ptp(lw.analyse(lw.load(explicit, parameters=offset), times=times).joint("wiper")) - angle.nominal
print(f"pin_b off by 0.02 mm: {np.degrees(wider):+.5f}°, by its contribution {np.degrees(pin.half):+.5f}°")
assert abs(wider - pin.half) < 2e-3 * pin.half
explicit.unlink()

# The picture: the mechanism at both dead centres with the wiped sectors, the Pareto chart, and the histogram.
sol = lw.analyse(wiper, times=np.linspace(0, 1, 361))
ends = lw.analyse(wiper, times=np.sort(dead))
figure, axes = plt.subplot_mosaic(
    [["mechanism", "mechanism"], ["pareto", "histogram"]],
    figsize=(11, 8.4),
    height_ratios=[1.15, 1],
    layout="constrained",
)
ax = axes["mechanism"]
for tip, pivot, colour in (("tip", "pivot", "#009E73"), ("tip2", "pivot2", "#56B4E9")):
    path, foot = 1e3 * sol.position(tip)[:, :2], 1e3 * sol.position(pivot)[0, :2]
    x, y = (path - foot).T
    arc = path[np.argsort(np.arctan2(y, x))]
    ax.fill(*np.vstack([foot, arc]).T, color=colour, alpha=0.15)
    ax.plot(*arc.T, color=colour, linewidth=1.2, linestyle=":")
for k, weight in ((0, 1.0), (1, 0.35)):
    at = {name: 1e3 * ends.position(name)[k, :2] for name in ("motor_shaft", "crank_pin", "lever_pin", "lever2_pin")}
    at |= {name: 1e3 * ends.position(name)[k, :2] for name in ("pivot", "pivot2", "tip", "tip2")}
    for first, second, colour, width in (
        ("motor_shaft", "crank_pin", "#D55E00", 5),
        ("crank_pin", "lever_pin", "#0072B2", 3),
        ("lever_pin", "lever2_pin", "#0072B2", 3),
        ("pivot", "tip", "#222222", 4),
        ("pivot2", "tip2", "#222222", 4),
    ):
        line = np.array([at[first], at[second]])
        ax.plot(line[:, 0], line[:, 1], color=colour, linewidth=width, alpha=weight, solid_capstyle="round")
    pins = np.array([at[name] for name in ("crank_pin", "lever_pin", "lever2_pin")])
    ax.plot(pins[:, 0], pins[:, 1], "o", color="white", markeredgecolor="#222222", markersize=6, alpha=weight, zorder=5)
feet = 1e3 * np.array([ends.position(name)[0, :2] for name in ("motor_shaft", "pivot", "pivot2")])
ax.plot(feet[:, 0], feet[:, 1], "s", color="#222222", markersize=9, zorder=6)
for name, foot in zip(("motor", "driver", "passenger"), feet, strict=True):
    ax.annotate(name, foot, (0, -16), textcoords="offset points", ha="center", fontsize=9)
mean, off = np.degrees(angle.nominal), np.degrees(angle.rss)
ax.set(
    xlabel="x (mm)", ylabel="y (mm)", aspect="equal", ylim=(-70, 600), title=f"wiping angle {mean:.2f}° ± {off:.2f}°"
)
draw_pareto(axes["pareto"], angle)
draw_histogram(axes["histogram"], angle)
figure.savefig("out/35_windscreen_wiper.png", dpi=120)
