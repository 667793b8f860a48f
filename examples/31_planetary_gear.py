"""A planetary gear train: bodies that mesh, without a ratio; tooth forces, pins and shafts against hand calculation.

Run it: python examples/31_planetary_gear.py    It writes out/31_planetary_gear.png and out/31_planetary_gear.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).with_name("models") / "planetary_gear.mks"
SUN, PLANET, RING, MODULE = 24, 18, 60, 0.002
CENTRES, ALPHA = MODULE * (SUN + PLANET) / 2, np.radians(20)

mech = lw.load(MODEL)
print(mech.dof())
sol = lw.analyse(mech)
assert sol.status, sol.status
t, series = sol.time, sol.series

# Willis: (ω_sun − ω_carrier) / (0 − ω_carrier) = −z_ring / z_sun
sun, carrier = (sol.joint_rate(f"{name}_shaft")[:, 0] for name in ("sun", "carrier"))
assert np.allclose(sun, carrier * (1 + RING / SUN), atol=1e-6 * np.abs(sun).max())

# The statics of every body, with its inertia: moments about the axes of sun and planets give both tooth forces.
alpha_sun, alpha_carrier = (sol.joint_acceleration(f"{name}_shaft")[:, 0] for name in ("sun", "carrier"))
alpha_planet = alpha_carrier * (1 - RING / PLANET)
motor, load = series["motor.torque"].values, series["load.torque"].values
inner = (motor - 1.2e-4 * alpha_sun) / 3 / (MODULE * SUN / 2)  # each of three planets holds the sun back
outer = inner + 4e-5 * alpha_planet / (MODULE * PLANET / 2)
for k in (1, 2, 3):
    assert np.allclose(-series[f"inner{k}.force"].values, inner, atol=1e-6)
    assert np.allclose(np.abs(series[f"outer{k}.force"].values), np.abs(outer), atol=1e-6)
    force = np.stack([series[f"pin{k}.f{axis}"].values for axis in "xy"])
    moving = 0.2 * CENTRES * carrier**2  # the pin bends the planet's way; along it both separating forces cancel ...
    along = moving + (np.abs(inner) - np.abs(outer)) * np.tan(ALPHA)  # ... but for what turns the planet
    across = inner + outer - 0.2 * CENTRES * alpha_carrier
    assert np.allclose(np.hypot(*force), np.hypot(along, across), rtol=1e-6, atol=1e-6)
print(f"at {t[-1]:g} s: {inner[-1]:.1f} N in each inner mesh, {np.hypot(*force)[-1]:.1f} N on each pin")


def outline(teeth, radius, turn, *, inward=False, points=4):
    """A gear's teeth, simplified as trapezia."""
    pitch = 2 * np.pi / teeth
    angles = (np.arange(teeth)[:, None] + np.array([-0.3, -0.14, 0.14, 0.3])[:points]) * pitch + turn
    tip, root = (-1.0, 1.2) if inward else (1.0, -1.2)
    radii = radius + MODULE * np.array([root, tip, tip, root])
    x, y = radii * np.cos(angles), radii * np.sin(angles)
    return np.append(x.ravel(), x[0, 0]), np.append(y.ravel(), y[0, 0])


figure, (drawing, chart) = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained", width_ratios=(1.1, 1))
rim = 1.16 * MODULE * RING / 2
drawing.add_patch(plt.Circle((0, 0), rim, color="#c9ced6"))
drawing.fill(*outline(RING, MODULE * RING / 2, 0.0, inward=True), color="white")
drawing.fill(*outline(SUN, MODULE * SUN / 2, 0.0), color="#e69f00")
places = [np.array([CENTRES * np.cos(x), CENTRES * np.sin(x)]) for x in 2 * np.pi * np.arange(3) / 3]
corners = np.array([*places, places[0]]).T
drawing.plot(*corners, color="#4a525c", linewidth=9, alpha=0.5, solid_joinstyle="round", zorder=3)
for k, (x, y) in enumerate(places):
    turn = np.pi / PLANET + 2 * np.pi * k / 3 * (1 + SUN / PLANET)  # a gap where the sun has a tooth
    dx, dy = outline(PLANET, MODULE * PLANET / 2, turn + np.pi * (PLANET % 2 == 0))
    drawing.fill(x + dx, y + dy, color="#2f7fc1", zorder=2)
    drawing.add_patch(plt.Circle((x, y), 0.005, color="#4a525c", zorder=4))
drawing.add_patch(plt.Circle((0, 0), 0.007, color="#4a525c", zorder=4))
scale, bold = 4.5e-4, {"color": "#c03020", "width": 0.0012, "length_includes_head": True, "zorder": 6}
last = np.abs(inner[-1])
for at, arrow, text, place in (
    (MODULE * SUN / 2, (last * np.tan(ALPHA), last), f"{last:.0f} N", (0.027, 0.022)),
    (MODULE * RING / 2, (-last * np.tan(ALPHA), last), f"{last:.0f} N", (0.047, 0.022)),
    (CENTRES, (0.0, -2 * last), f"{2 * last:.0f} N", (0.0445, -0.036)),
):
    drawing.arrow(at, 0.0, scale * arrow[0], scale * arrow[1], **bold)
    drawing.text(*place, text, color="#c03020", fontsize=11, weight="bold", zorder=7)
drawing.set(aspect="equal", xlim=(-1.03 * rim, 1.03 * rim), ylim=(-1.03 * rim, 1.03 * rim))
drawing.set_title("Forces on a planet: two meshes and its pin")
drawing.axis("off")
chart.plot(t, inner, label="tooth force, sun and planet")
chart.plot(t, np.abs(outer), "--", label="tooth force, planet and ring")
chart.plot(t, series["inner1.separating"].values, label="separating force, sun and planet")
chart.plot(t, np.hypot(*force), label="a planet's pin")
chart.set(xlabel="time (s)", ylabel="force (N)", title="Motor 3 N m, load 10 N m")
chart.legend()
chart.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/31_planetary_gear.png", dpi=120)
sol.animate("out/31_planetary_gear.html")
