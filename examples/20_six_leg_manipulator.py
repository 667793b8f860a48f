"""A parallel manipulator of six legs with six revolute joints each: torques of its motors, reach, and an animation.

Run it: python examples/20_six_leg_manipulator.py    It writes out/20_six_leg_manipulator.png, .html and _reach.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw
from linkwright.control import Unreachable
from linkwright.studies.manipulator.machine import SIX_LEG, machine, state
from linkwright.studies.manipulator.workspace import check_pose, reach_map

MODEL = Path(__file__).parent / "models" / "six_leg.mks"
g = SIX_LEG
mech = machine(g)
print(mech.dof())
assert mech.dof().left == 6

# Home: the mechanism is assembled as drawn, and six equal torques carry the weight.
home = mech.assemble()
assert np.allclose(home, state(mech, g, g.home)[0], atol=1e-12)
still = mech.inverse_dynamics(home, np.zeros(mech.nv), np.zeros(mech.nv))[mech.actuated]
print(f"at rest the torque of each motor is {still[0]:.2f} N m")
assert np.allclose(still, still[0])

# The plate moves along an ellipse, twice a second; in a whole turn the work of the motors is zero.
t = np.linspace(0.0, 0.5, 501)
omega, radius = 4.0 * np.pi, 0.12
around = radius * np.stack([np.cos(omega * t), 0.5 * np.sin(omega * t), np.sin(omega * t)], axis=1)
pose = np.tile(g.home, (len(t), 1))
pose[:, :3] += around
twist, acceleration = np.zeros((2, len(t), 6))
twist[:, :3] = omega * radius * np.stack([-np.sin(omega * t), 0.5 * np.cos(omega * t), np.cos(omega * t)], axis=1)
acceleration[:, :3] = -(omega**2) * around
q, v, a = state(mech, g, pose, twist, acceleration)
tau = mech.inverse_dynamics(q, v, a)
power = (tau * v).sum(axis=1)
work = np.sum((power[1:] + power[:-1]) / 2) * (t[1] - t[0])
print(f"the power of the motors is up to {power.max():.0f} W, their work in a whole turn {work:.1e} J")
assert abs(work) < 1e-6 * power.max()

# The model file drives the cranks; its torques are those of the Python machine in the same motion.
sol = lw.analyse(MODEL)
print(sol)
assert sol.status
torques = np.stack([sol.series[f"motor{k}.torque"].values for k in range(1, 7)], axis=1)
moved = sol.mechanism.forward_dynamics(sol.q, sol.v, np.zeros(mech.nv), t=sol.time)
expected = mech.inverse_dynamics(sol.q, sol.v, moved)[:, mech.actuated]
print(f"model file and Python machine differ by {np.max(np.abs(torques - expected)):.1e} N m")
assert np.allclose(torques, expected, rtol=0, atol=1e-6)

# A pose out of reach is an error that names the leg.
message = ""
try:
    check_pose(g, g.home + np.array([0.9, 0, 0, 0, 0, 0, 0]))
except Unreachable as error:
    message = str(error)
print(message)
assert message.startswith("leg 1 cannot reach")

reach = reach_map(g, "xz", points=101)
print(reach)
assert 0.9 < reach.area < 1.2
Path("out").mkdir(exist_ok=True)
reach.plot("out/20_six_leg_manipulator_reach.png")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for k in range(6):
    axes[0].plot(t, tau[:, mech.joints[f"crank{k + 1}"].v_slice.start], label=f"motor {k + 1}")
    axes[1].plot(sol.time, torques[:, k])
axes[0].set(title="Along an ellipse, twice a second", xlabel="time (s)", ylabel="torque (N m)")
axes[1].set(title="six_leg.mks: the cranks oscillate slowly", xlabel="time (s)")
axes[0].legend(ncols=2, fontsize=8, loc="lower right")
for one in axes:
    one.grid(alpha=0.3)
figure.savefig("out/20_six_leg_manipulator.png", dpi=120)
sol.animate("out/20_six_leg_manipulator.html")
