"""What is asked of a linkage: Grashof's condition, transmission angle, dead centres and instant centres.

Those of a crank-rocker are compared with the textbook's closed forms.

Run it: python examples/30_linkage_report.py    It writes out/30_linkage_report.png.
"""

from itertools import combinations
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "four_bar.mks"
mech = lw.load(MODEL)
sol = lw.analyse(mech, times=np.linspace(0, 2 * np.pi, 361))
report = lw.linkage_report(sol)
print(report)

p = mech.parameters
crank, coupler, rocker, frame = p["crank"], p["coupler"], p["rocker"], p["apart"]


def angle(opposite, one, other):
    """The law of cosines."""
    return np.arccos((one**2 + other**2 - opposite**2) / (2 * one * other))


# Grashof: the crank is the shortest bar, and turns fully.
loop = report.loops[0]
assert (loop.category, loop.turning) == ("crank-rocker", "crank_bar")
assert np.isclose(loop.margin, 5.5 - 4.0)

# The transmission angle is extreme where crank and frame are in line.
transmission = report.transmission["coupler_bar on rocker_bar"]
ends = [angle(frame - crank, coupler, rocker), angle(frame + crank, coupler, rocker)]
assert np.isclose(transmission.worst, max(ends, key=lambda x: abs(x - np.pi / 2)), atol=1e-12)

# The rocker is at a dead centre where crank and coupler are in line.
swing = report.outputs["d.angle"]
inner, outer = angle(rocker, frame, coupler - crank) + np.pi, angle(rocker, frame, coupler + crank)
exact = {"maximum": inner, "minimum": outer}
for centre in swing.centres:
    assert abs(centre.input - exact[centre.end]) < 1e-9
assert abs(swing.stroke - (angle(coupler + crank, frame, rocker) - angle(coupler - crank, frame, rocker))) < 1e-9
assert np.isclose(swing.time_ratio, (inner - outer) / (2 * np.pi - (inner - outer)))
print(f"the rocker swings by {np.degrees(swing.stroke):.3f}°, both ways in times as {swing.time_ratio:.4f} : 1")

# Kennedy: the instant centres of any three bars are on a line.
k = 25
centres = report.centres(sol.time[k])
assert len(centres) == 6
for three in combinations(("base", "crank_bar", "coupler_bar", "rocker_bar"), 3):
    a, b, c = (np.array(centres[pair].point) for pair in combinations(three, 2))
    assert np.linalg.norm(np.cross(b - a, c - a)) < 1e-9 * np.linalg.norm(b - a) * np.linalg.norm(c - a)


def bars(time):
    """The corners of the four-bar at a time of the motion."""
    at = lw.analyse(mech, times=[0.0, time]) if time else lw.analyse(mech, times=[0.0])
    return np.array([at.position(n)[-1, :2] for n in ("left", "crank_tip", "rocker_tip", "right")])


COLOURS = ("#D55E00", "#0072B2", "#009E73")


def draw(ax, corners, alpha=1.0):
    """Crank, coupler and rocker through their corners."""
    for bar, colour in enumerate(COLOURS):
        line = corners[bar : bar + 2].T
        ax.plot(*line, color=colour, linewidth=4, alpha=alpha, solid_capstyle="round", zorder=4 - bar)
    ax.plot(*corners[1:3].T, "o", color="white", markeredgecolor="0.2", markersize=7, alpha=alpha, zorder=5)
    ax.plot(*corners[[0, 3]].T, "s", color="0.15", markersize=9, zorder=6)


figure, axes = plt.subplots(2, 2, figsize=(11, 8.6), layout="constrained")
ax = axes[0, 0]
for centre in swing.centres:
    corners = bars(centre.time)
    draw(ax, corners, 0.9 if centre.end == "maximum" else 0.45)
    side = -1 if centre.end == "maximum" else 1
    where, align = corners[2] + (0.14 * side, 0.1), "right" if side < 0 else "left"
    ax.annotate(f"{centre.end}\n{np.degrees(centre.output):.1f}°", where, fontsize=9, ha=align)
circle = np.linspace(0, 2 * np.pi, 200)
ax.plot(crank * np.cos(circle), crank * np.sin(circle), ":", color="0.5", linewidth=1)
arc = np.linspace(min(x.output for x in swing.centres), max(x.output for x in swing.centres), 60)
base = np.arctan2(*(bars(0.0)[2] - (frame, 0))[::-1]) - sol.joint("d")[0, 0]
ax.plot(frame + rocker * np.cos(base + arc), rocker * np.sin(base + arc), ":", color="0.5", linewidth=1)
ax.set(title="Dead centres: crank and coupler in line", aspect="equal", xlim=(-1.4, 4.6), ylim=(-1.3, 3.0))

ax = axes[0, 1]
corners = bars(transmission.time)
draw(ax, corners)
pin, first, second = corners[2], corners[1] - corners[2], corners[3] - corners[2]
turn = np.linspace(np.arctan2(*first[::-1]), np.arctan2(*first[::-1]) + transmission.worst, 40)
ax.plot(*(pin[:, None] + 0.7 * np.array([np.cos(turn), np.sin(turn)])), color="0.15", linewidth=1.2)
ax.annotate(
    f"µ = {np.degrees(transmission.worst):.2f}°", pin, (-86, -48), textcoords="offset points", fontsize=11, ha="center"
)
ax.set(title="The worst transmission angle", aspect="equal", xlim=(-1.4, 4.6), ylim=(-1.3, 3.0))

ax = axes[1, 0]
corners = np.array([sol.position(n)[k, :2] for n in ("left", "crank_tip", "rocker_tip", "right")])
names = {"base": "1", "crank_bar": "2", "coupler_bar": "3", "rocker_bar": "4"}
places = {"".join(names[x] for x in pair): np.array(c.point)[:2] for pair, c in centres.items()}
for one, other in (("12", "23"), ("14", "34"), ("12", "14"), ("23", "34")):
    line = np.array([places[one], places[other]])
    target = places["13" if {one, other} in ({"12", "23"}, {"14", "34"}) else "24"]
    far = max((*line, target), key=lambda x: np.linalg.norm(x - line[0]))
    near = max((*line, target), key=lambda x: np.linalg.norm(x - far))
    ax.plot(*np.array([near, far]).T, "--", color="0.6", linewidth=1)
draw(ax, corners)
for name, place in places.items():
    ax.plot(*place, "o", color="#CC79A7", markersize=6, zorder=7)
    shift = {"23": (-26, 7), "24": (-26, 7), "12": (-4, -19), "14": (-4, -19)}.get(name, (9, 5))
    ax.annotate(f"{name[0]},{name[1]}", place, shift, textcoords="offset points", fontsize=10, color="#8a3f6d")
ax.set(title="Instant centres (1 frame, 2 crank, 3 coupler, 4 rocker)", aspect="equal")
ax.set(xlim=(-1.6, 4.6), ylim=(-0.8, 4.9))

ax = axes[1, 1]
turned = np.degrees(report.input_values)
ax.plot(turned, np.degrees(transmission.angles), color="#0072B2", label="transmission angle (°)")
ax.plot(turned, 100 * swing.ratio, color="#009E73", label="rocker's rate per crank's rate (%)")
for centre in swing.centres:
    ax.axvline(np.degrees(centre.input), color="0.6", linewidth=1, linestyle=":")
ax.axhline(0, color="0.6", linewidth=0.8)
ax.set(title="Over a turn; dotted: dead centres", xlabel="crank (°)", xlim=(turned[0], turned[-1]))
ax.legend(loc="lower left", fontsize=9)
for ax in axes.flat[:3]:
    ax.set(xlabel="x (m)", ylabel="y (m)")
for ax in axes.flat:
    ax.grid(alpha=0.25)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/30_linkage_report.png", dpi=120)
