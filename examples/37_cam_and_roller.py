"""A disc cam under a roller: lift, pressure angle and contact force by hand, and the speed at which the roller leaves.

The model has the path of the roller's centre as a CURVE of expressions, so that its numbers are those of the formulas.
A second one, by the builder, has 720 points of the profile itself under a roller.

Run it: python examples/37_cam_and_roller.py    It writes out/37_cam_and_roller.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "cam.mks"
machine = lw.load(MODEL)
p = dict(machine.parameters)
prime, ends = p["base"] + p["roller"], (p["rise"], p["dwell"], p["back"])


# -- By hand: s = h (10 x³ − 15 x⁴ + 6 x⁵) with x = θ/β, and its derivatives by the cam's angle.
def motion(angle):
    s, s1, s2 = np.zeros((3, len(angle)))
    rise, dwell, back = ends
    s[(angle > rise) & (angle < dwell)] = p["lift"]
    for begin, end, sign in ((0.0, rise, 1.0), (dwell, back, -1.0)):
        moving, beta = (angle >= begin) & (angle <= end), end - begin
        x = (angle[moving] - begin) / beta
        s[moving] = p["lift"] * (0.5 - 0.5 * sign + sign * (10 * x**3 - 15 * x**4 + 6 * x**5))
        s1[moving] = sign * p["lift"] / beta * (30 * x**2 - 60 * x**3 + 30 * x**4)
        s2[moving] = sign * p["lift"] / beta**2 * (60 * x - 180 * x**2 + 120 * x**3)
    return s, s1, s2


def by_hand(angle, speed):
    """Lift, pressure angle and contact force: N cos φ = m s″ ω² + k s + preload."""
    s, s1, s2 = motion(angle)
    pressure = np.arctan(np.abs(s1) / (prime + s))
    return s, pressure, (p["mass"] * s2 * speed**2 + p["rate"] * s + p["preload"]) / np.cos(pressure)


def series(sol):
    """Lift, pressure angle and contact force of a solution."""
    return sol.position("follower")[:, 1] - prime, *(
        sol.series[f"touch.{x}"].values for x in ("pressure_angle", "force")
    )


angle = np.radians(np.arange(361.0))
runs = {}
for rpm in (300, 600, 1300):
    speed = rpm * np.pi / 30
    sol = lw.analyse(machine.with_parameters(speed=speed), times=angle / speed)
    assert sol.status
    lift, pressure, force = by_hand(angle, speed)
    ours = series(sol)
    assert np.abs(ours[0] - lift).max() < 1e-12
    assert np.abs(ours[1] - pressure).max() < 1e-8
    assert np.abs(ours[2] - force).max() < 1e-9 * force.max()
    torque = force * np.cos(pressure) * motion(angle)[1]  # the power that the follower takes
    assert np.abs(sol.series["motor.torque"].values - torque).max() < 1e-9 * np.abs(torque).max()
    runs[rpm] = sol, force
top = np.degrees(pressure.max())
print(f"lift {1e3 * lift.max():.1f} mm, pressure angle to {top:.2f}°, contact force at 600 rpm ", end="")
print(f"{runs[600][1].min():.1f} … {runs[600][1].max():.1f} N: as by hand")
assert top < 30

# -- Where the follower would lift off: the least speed at which the spring cannot follow, and the angles beyond it.
fine = np.linspace(0, 2 * np.pi, 200_001)
s, _, s2 = motion(fine)
slowing = s2 < 0
limits = np.sqrt(-(p["rate"] * s + p["preload"])[slowing] / (p["mass"] * s2[slowing]))
limit, where = limits.min(), fine[slowing][limits.argmin()]
sol = lw.analyse(machine.with_parameters(speed=limit), times=np.union1d(angle, where) / limit)
assert abs(series(sol)[2].min()) < 1e-6  # it just touches
negative = series(runs[1300][0])[2] < 0
begins, leaves = np.flatnonzero(negative[1:] & ~negative[:-1]) + 1, np.flatnonzero(negative[:-1] & ~negative[1:])
off = list(zip(begins.tolist(), leaves.tolist(), strict=True))
print(f"it lifts off above {30 / np.pi * limit:.0f} rpm, first at {np.degrees(where):.1f}°; at 1300 rpm ", end="")
print(" and ".join(f"from {first}° to {last}°" for first, last in off))
assert limit > p["speed"]
assert len(off) == 2

# -- The same machine by its profile: points of lw.cam_profile, on which a roller of its own slides.
law = [(p["rise"], p["lift"], "rise345"), (p["dwell"], p["lift"]), (p["back"], 0.0, "rise345")]
cam = lw.cam_profile(law, p["base"], lw.CamFollower(radius=p["roller"]))
upright = {"h": (0, 1, 0), "f": (1, 0, 0)}
with lw.Builder("cam by its profile") as b:
    b.gravity((0, 0, 0))
    disc = b.body("disc", 2.0, inertia=(1e-3, 1e-3, 2e-3))
    follower = b.body("follower", p["mass"], inertia=(1e-4, 1e-4, 1e-4))
    b.place(follower, (0, prime, 0))
    b.joint("revolute", b.ground, disc, "shaft")
    guide = b.triad(b.ground, (0, prime, 0), **upright), b.triad(follower, **upright)
    b.joint("prismatic", *guide, "guide")
    profile = b.curve("profile", disc, cam.profile, closed=True)
    b.curve_on_curve(profile, b.curve("roller", follower, circle=p["roller"]), "touch")
    b.joint_spring("guide", p["rate"], rest=-p["preload"] / p["rate"])
    b.driver("joint", "shaft", p["speed"] * lw.TIME, name="motor")
by_points = lw.analyse(b.build(), analysis="inverse dynamic", times=angle / p["speed"])
assert by_points.status
lift, pressure, force = by_hand(angle, p["speed"])
errors = [np.abs(a - e).max() for a, e in zip(series(by_points), (lift, pressure, force), strict=True)]
print(f"by 720 points of the profile: lift to {errors[0]:.0e} m, pressure angle to {errors[1]:.0e} rad, ", end="")
print(f"force to {errors[2]:.2g} N")
assert errors[0] < 1e-9
assert errors[1] < 1e-5
assert errors[2] < 2e-4 * force.max()

# -- The picture.
figure, axes = plt.subplot_mosaic(
    [["cam", "force"], ["cam", "pressure"]], figsize=(11.6, 6.6), width_ratios=(1, 1.15), layout="constrained"
)
INK, STEEL, RED, BLUE = "#222222", "#4682b4", "#D55E00", "#0072B2"
ax, k = axes["cam"], int(np.argmax(pressure))
c, s = np.cos(angle[k]), np.sin(angle[k])
turn = 1e3 * np.array([[c, -s], [s, c]])
centre = np.array([0, 1e3 * (prime + lift[k])])
contact = 1e3 * np.array([by_points.series[f"touch.{x}"].values[k] for x in "xy"])
ax.add_patch(plt.Polygon(cam.profile @ turn.T, facecolor="#c9d6e2", edgecolor=INK, linewidth=1.6))
ax.add_patch(plt.Polygon(cam.pitch @ turn.T, fill=False, edgecolor=STEEL, linestyle="-.", linewidth=1))
ax.add_patch(plt.Circle((0, 0), 1e3 * p["base"], fill=False, edgecolor="#777777", linestyle="--", linewidth=0.9))
ax.add_patch(plt.Circle((0, 0), 7, facecolor="white", edgecolor=INK, linewidth=1.4))
ax.plot(0, 0, "+", color=INK, markersize=8)
ax.add_patch(plt.Rectangle(centre - [4, 0], 8, 56, facecolor="#f7e3d4", edgecolor=RED, linewidth=1.3))
ax.add_patch(plt.Circle(centre, 1e3 * p["roller"], facecolor="#f7e3d4", edgecolor=RED, linewidth=1.6))
ax.plot(*centre, "o", color="white", markeredgecolor=INK, markersize=5)
for x in (-14, 4.6):
    ax.add_patch(plt.Rectangle((x, 83), 9.4, 16, facecolor="#dddddd", edgecolor=INK, hatch="///", linewidth=0.8))
top = centre[1] + 56
ax.plot([-9, 9], [top, top], color=RED, linewidth=3, solid_capstyle="round")
coil = np.linspace(0, 1, 15)
ax.plot(
    7 * np.where(np.arange(15) % 2, 1, -1) * (coil > 0) * (coil < 1), top + coil * (148 - top), color=INK, linewidth=1.2
)
ax.add_patch(plt.Rectangle((-16, 148), 32, 4, facecolor="#dddddd", edgecolor=INK, hatch="///", linewidth=0.8))
normal = (centre - contact) / np.linalg.norm(centre - contact)
ax.plot(*np.array([contact - 30 * normal, centre + 30 * normal]).T, color=BLUE, linewidth=1.1, linestyle="--")
ax.plot([0, 0], [centre[1] - 2, centre[1] + 40], color=INK, linewidth=0.8, linestyle=":")
arc = np.linspace(0, np.arctan2(normal[0], normal[1]), 30)
ax.plot(24 * np.sin(arc), centre[1] + 24 * np.cos(arc), color=BLUE, linewidth=1.4)
side = float(np.sign(normal[0]))
ax.annotate(
    f"φ = {np.degrees(pressure[k]):.1f}°",
    (24 * np.sin(arc[-1]) + 5 * side, centre[1] + 17),
    color=BLUE,
    ha="left" if side > 0 else "right",
)
arrow = {"arrowstyle": "-|>", "color": RED, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
ax.annotate("", contact, contact - 28 * normal, arrowprops=arrow)
ax.annotate(f"N = {force[k]:.0f} N", contact - 30 * normal + [2, -8], color=RED, ha="center")
ax.plot(*contact, "o", color=RED, markersize=4)
way = np.linspace(np.radians(200), np.radians(330), 40)
ax.plot(24 * np.cos(way), 24 * np.sin(way), color=INK, linewidth=1.2)
spin = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
ax.annotate(
    "",
    24 * np.array([np.cos(way[-1]), np.sin(way[-1])]),
    24 * np.array([np.cos(way[-4]), np.sin(way[-4])]),
    arrowprops=spin,
)
ax.set(aspect="equal", xlim=(-76, 76), ylim=(-76, 158), title=f"The cam at {np.degrees(angle[k]):.0f}°, 600 rpm")
ax.axis("off")

ax, degrees = axes["force"], np.degrees(angle)
for (rpm, (sol, hand)), colour in zip(runs.items(), ("#009E73", BLUE, RED), strict=True):
    ours = series(sol)[2]
    ax.plot(degrees, ours, color=colour, label=f"{rpm} rpm")
    ax.plot(degrees[::15], hand[::15], ".", color=INK, markersize=5, label="by hand" if rpm == 1300 else None)
    ax.fill_between(degrees, ours, 0, where=ours < 0, color=RED, alpha=0.25)
ax.axhline(0, color=INK, linewidth=0.8)
for first, last in off:
    ax.annotate("lifts off", (0.5 * (first + last), 6), ha="center", color=RED, fontsize=8)
ax.set(ylabel="contact force (N)", title="Contact force")
ax.legend(fontsize=8, ncols=2)
ax = axes["pressure"]
ax.plot(degrees, np.degrees(series(runs[600][0])[1]), color=BLUE, label="path of the roller's centre")
ax.plot(
    degrees[::10],
    np.degrees(series(by_points)[1][::10]),
    "o",
    fillstyle="none",
    color=RED,
    label="roller on 720 points",
)
ax.plot(degrees[::15], np.degrees(pressure[::15]), ".", color=INK, markersize=5, label="by hand")
ax.plot(degrees, 1e3 * lift, color="#999999", linewidth=1.2, linestyle="--", label="lift (mm)")
ax.set(ylabel="pressure angle (°)", xlabel="angle of the cam (°)", ylim=(0, 27), title="Pressure angle")
ax.legend(fontsize=8, ncols=2)
for name in ("force", "pressure"):
    axes[name].set(xticks=range(0, 361, 45), xlim=(0, 360))
    axes[name].grid(color="#e6e6e6", linewidth=0.6)
    axes[name].spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/37_cam_and_roller.png", dpi=120)
