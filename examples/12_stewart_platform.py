"""A Stewart platform: leg lengths are prescribed, and the analysis recovers the motion from which they were computed.

Run it: python examples/12_stewart_platform.py    It writes out/12_stewart_platform.png and .html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "stewart.mks"
mech = lw.load(MODEL)
sol = lw.analyse(mech)
print(sol)
print(sol.counters)
assert sol.status
assert sol.status.notes == ()  # thirteen bodies, 78 equations, none redundant, no undriven degree of freedom

# The motion from which the laws of the legs were computed: R = Ry(θ) Rz(γ).
p = mech.parameters
t = sol.time
zero, one = 0 * t, 0 * t + 1
at = np.stack([p["around"] * np.cos(t), p["around"] * np.sin(t), p["height"] + p["lift"] * np.sin(t)], axis=1)
rate = np.stack([-p["around"] * np.sin(t), p["around"] * np.cos(t), p["lift"] * np.cos(t)], axis=1)
second = np.stack([-p["around"] * np.cos(t), -p["around"] * np.sin(t), -p["lift"] * np.sin(t)], axis=1)
tilt, turn = p["tilt"] * np.sin(t), p["turn"] * np.sin(2 * t)
tilt_rate, turn_rate = p["tilt"] * np.cos(t), 2 * p["turn"] * np.cos(2 * t)
about_y = np.array([[np.cos(tilt), zero, np.sin(tilt)], [zero, one, zero], [-np.sin(tilt), zero, np.cos(tilt)]])
about_z = np.array([[np.cos(turn), -np.sin(turn), zero], [np.sin(turn), np.cos(turn), zero], [zero, zero, one]])
axes = np.einsum("ijt,jkt->tik", about_y, about_z)
omega = np.stack([zero, tilt_rate, zero], axis=1) + turn_rate[:, None] * about_y[:, 2].T

e0, e = sol.orientation("platform")[:, 0], sol.orientation("platform")[:, 1:]
cross = np.array([[zero, -e[:, 2], e[:, 1]], [e[:, 2], zero, -e[:, 0]], [-e[:, 1], e[:, 0], zero]]).transpose(2, 0, 1)
rotation = np.eye(3) + 2 * e0[:, None, None] * cross + 2 * cross @ cross
errors = {
    "position (m)": sol.position("platform") - at,
    "velocity (m/s)": sol.velocity("platform") - rate,
    "acceleration (m/s²)": sol.acceleration("platform") - second,
    "axes": rotation - axes,
    "angular velocity (rad/s)": sol.angular_velocity("platform") - omega,
}
for what, error in errors.items():
    print(f"{what:26} error {np.max(np.abs(error)):.1e}")
    assert np.max(np.abs(error)) < 1e-9

figure = plt.figure(figsize=(10, 4.8), layout="constrained")
space, plane = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
for k, strength in ((0, 0.25), (30, 1.0)):
    feet = np.array([sol.position(f"foot{n}")[k] for n in range(1, 7)])
    heads = np.array([sol.position(f"head{n}")[k] for n in range(1, 7)])
    space.plot(*np.vstack([heads, heads[:1]]).T, color="tab:blue", alpha=strength, linewidth=2.5)
    for foot, head in zip(feet, heads, strict=True):
        space.plot(*np.array([foot, head]).T, color="tab:red", alpha=strength, linewidth=2)
space.plot(*np.vstack([feet, feet[:1]]).T, color="0.4", linewidth=2.5)
space.plot(*sol.position("rim").T, color="goldenrod", linewidth=1)
space.set(title="The platform at 0 and 90°, and a path on its rim", xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
space.set_aspect("equal")
space.view_init(22, -60)
space.locator_params(nbins=4)
for n in range(1, 7):
    leg = np.linalg.norm(sol.position(f"head{n}") - sol.position(f"foot{n}"), axis=1)
    plane.plot(t, leg, label=f"leg {n}")
plane.set(title="Lengths of the legs", xlabel="time (s)", ylabel="length (m)")
plane.legend(ncols=2, fontsize=8)
plane.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/12_stewart_platform.png", dpi=120)
sol.animate("out/12_stewart_platform.html")
