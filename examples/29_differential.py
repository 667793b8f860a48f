"""A car's differential as couplings: a curve against the path's closed form, and one wheel on ice.

Run it: python examples/29_differential.py    It writes out/29_differential.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "differential.mks"

# -- In a curve the road prescribes how much faster the outer wheel is; the cage turns by the mean of both.
curve = lw.analyse(MODEL)
assert curve.status
p = dict(curve.mechanism.parameters)
t, speed = curve.time, 8.0
heading = lw.rise(t, 2.0, 0.0, 6.0, p["heading"])
s = np.clip((t - 2.0) / 4.0, 0.0, 1.0)
turning = p["heading"] / 4.0 * 30 * s**2 * (1 - s) ** 2
rates = {name: curve.joint_rate(name)[:, 0] for name in ("shaft", "casing", "left_axle", "right_axle")}
assert np.allclose(rates["left_axle"], (speed - p["track"] / 2 * turning) / p["radius"], atol=1e-11)
assert np.allclose(rates["right_axle"], (speed + p["track"] / 2 * turning) / p["radius"], atol=1e-11)
assert np.allclose(rates["casing"], speed / p["radius"], atol=1e-11)
print(f"in the curve the wheels turn at {rates['left_axle'].min():.2f} and {rates['right_axle'].max():.2f} rad/s")

# -- One wheel on ice: the differential gives both wheels the same torque, whatever they do.
CAR, TORQUE, WHEEL, CAGE, SHAFT = 1200.0, 60.0, 0.9, 0.08, 0.02


def axle(*, ice: bool, locked: bool = False) -> lw.Mechanism:
    """The axle under the engine's torque; a wheel that does not slip takes the car along, by a coupling too."""
    r = p["radius"]
    with lw.Builder("axle") as b:
        b.gravity((0, 0, 0))
        for name, inertia in (("shaft", SHAFT), ("casing", CAGE), ("left", WHEEL), ("right", WHEEL)):
            axis = (1, 0, 0) if name == "shaft" else (0, 1, 0)
            b.joint("revolute", b.ground, b.body(f"{name} body", 10.0, inertia=(inertia,) * 3), name, axis=axis)
        b.joint("prismatic", b.ground, b.body("car", CAR), "road", axis=(1, 0, 0))
        b.coupling("final drive", ("shaft", lambda casing: p["ratio"] * casing))
        b.coupling("differential", lambda left, right, casing: left + right - 2 * casing)
        if locked:
            b.coupling("lock", ("left", lambda right: right))
        b.coupling("right tyre", ("road", lambda right: r * right))
        if not ice and not locked:
            b.coupling("left tyre", ("road", lambda left: r * left))
        b.joint_force("shaft", TORQUE, name="engine")
    return b.build()


casing = CAGE + p["ratio"] ** 2 * SHAFT
heavy = WHEEL + CAR * p["radius"] ** 2
push = p["ratio"] * TORQUE / 2  # on each wheel
together = 2 * push / (WHEEL + heavy + casing)
slipping = np.linalg.solve([[WHEEL + casing / 4, casing / 4], [casing / 4, heavy + casing / 4]], [push, push])
expected = {"both tyres grip": together, "left on ice": slipping[1], "left on ice, differential locked": together}
runs = {
    "both tyres grip": lw.analyse(axle(ice=False), analysis="dynamic", times=np.linspace(0, 2, 41)),
    "left on ice": lw.analyse(axle(ice=True), analysis="dynamic", times=np.linspace(0, 2, 41)),
    "left on ice, differential locked": lw.analyse(
        axle(ice=True, locked=True), analysis="dynamic", times=np.linspace(0, 2, 41)
    ),
}
for name, run in runs.items():
    assert run.status
    change = run.joint_acceleration("right")[:, 0]
    assert np.allclose(change, expected[name], rtol=1e-9)
    print(f"{name:34} the car reaches {3.6 * run.joint_rate('road')[-1, 0]:5.2f} km/h in 2 s")
ice = runs["left on ice"]
half = ice.series["differential.torque"].values
assert np.allclose(half, WHEEL * slipping[0])  # all that the spinning wheel takes
assert np.allclose(half, WHEEL * slipping[1] + p["radius"] * ice.series["right tyre.force"].values)  # and the other
print(f"on ice each wheel gets {half[0]:.1f} N m, and not {heavy * together:.1f} N m as on the road")

# -- The picture: both wheels' paths from above, their speeds, and what ice does.
x = np.concatenate([[0], np.cumsum(np.diff(t) * speed * (np.cos(heading)[1:] + np.cos(heading)[:-1]) / 2)])
y = np.concatenate([[0], np.cumsum(np.diff(t) * speed * (np.sin(heading)[1:] + np.sin(heading)[:-1]) / 2)])
side = 0.5 * p["track"] * np.array([-np.sin(heading), np.cos(heading)])
figure = plt.figure(figsize=(11.5, 5.6), layout="constrained")
grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.15))
road, speeds, pull = (figure.add_subplot(place) for place in (grid[:, 0], grid[0, 1], grid[1, 1]))
colours = {"left_axle": "crimson", "right_axle": "seagreen", "casing": "steelblue"}
labels = {"left_axle": "left wheel", "right_axle": "right wheel", "casing": "cage"}
road.fill(*np.hstack([[x, y] + 3 * side, ([x, y] - 3 * side)[:, ::-1]]), color="0.93")
for name, sign in (("left_axle", 1), ("right_axle", -1)):
    road.plot(x + sign * side[0], y + sign * side[1], color=colours[name], linewidth=1.6)
for k in range(25, len(t), 50):
    road.plot(*(np.array([z[k] + side[i, k], z[k] - side[i, k]]) for i, z in enumerate((x, y))), color="0.3", lw=2)
    for name, sign in (("left_axle", 1), ("right_axle", -1)):
        at = np.array([x[k], y[k]]) + sign * side[:, k]
        along = 0.55 * np.array([np.cos(heading[k]), np.sin(heading[k])])
        road.plot(*np.array([at - along, at + along]).T, color=colours[name], linewidth=5, solid_capstyle="round")
road.set(aspect="equal", xlabel="x (m)", ylabel="y (m)", title="The rear axle every second, from above")
for name, colour in colours.items():
    speeds.plot(t, rates[name], color=colour, label=labels[name])
speeds.set(ylabel="rate (rad/s)", xlabel="time (s)", title="left + right = 2 cage")
speeds.legend(loc="upper left", fontsize=9)
for (name, run), style in zip(runs.items(), ("-", "-", (0, (4, 3))), strict=True):
    pull.plot(run.time, 3.6 * run.joint_rate("road")[:, 0], linestyle=style, label=name)
pull.set(ylabel="car (km/h)", xlabel="time (s)", title=f"{TORQUE:g} N m at the propeller shaft")
pull.legend(loc="upper left", fontsize=9)
for axis in (road, speeds, pull):
    axis.grid(color="0.9")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/29_differential.png", dpi=120)
