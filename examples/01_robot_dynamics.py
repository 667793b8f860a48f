"""A robot from a URDF file: its dynamics forward and back, its mass matrix, and its energy in free motion.

Run it: python examples/01_robot_dynamics.py    It writes out/01_robot_dynamics.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

arm = lw.load(Path(__file__).parent / "models" / "arm.urdf")
print(arm)
for joint in arm.joints:
    print(f"  {joint.name:<14} {joint.kind:<10} {joint.parent} → {joint.child}")

# One state: q in radians, v in rad/s, tau in N·m.
rng = np.random.default_rng(0)
q, v, tau = rng.uniform(-1.0, 1.0, (3, arm.nv))
a = arm.forward_dynamics(q, v, tau)
assert np.allclose(arm.inverse_dynamics(q, v, a), tau), "inverse dynamics is the inverse of forward dynamics"

# M a + h = tau, and the kinetic energy is ½ vᵀ M v.
m, h = arm.mass_matrix(q), arm.bias_forces(q, v)
assert np.allclose(m @ a + h, tau)
assert np.isclose(arm.kinetic_energy(q, v), 0.5 * v @ m @ v)

# The twist of a frame is its Jacobian times v.
jacobian = arm.jacobian(q, "tool", reference="aligned")
assert np.allclose(jacobian @ v, arm.twist(q, v, "tool", reference="aligned"))
print(f"tool at {np.round(arm.pose(q, 'tool')[:3, 3], 4)} m, moving at {np.round((jacobian @ v)[:3], 4)} m/s")


# Free motion from rest without torques: the sum of kinetic and potential energy is constant.
def step(q: np.ndarray, v: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of the classic fourth-order Runge–Kutta method; all joints are revolute, so q̇ = v."""
    no_torque = np.zeros(arm.nv)
    k1v, k1a = v, arm.forward_dynamics(q, v, no_torque)
    k2v = v + dt / 2 * k1a
    k2a = arm.forward_dynamics(q + dt / 2 * k1v, k2v, no_torque)
    k3v = v + dt / 2 * k2a
    k3a = arm.forward_dynamics(q + dt / 2 * k2v, k3v, no_torque)
    k4v = v + dt * k3a
    k4a = arm.forward_dynamics(q + dt * k3v, k4v, no_torque)
    return q + dt / 6 * (k1v + 2 * k2v + 2 * k3v + k4v), v + dt / 6 * (k1a + 2 * k2a + 2 * k3a + k4a)


dt = 1e-3
q, v = np.array([0.3, 0.5, -0.4, 0.2, 0.1, 0.0]), np.zeros(arm.nv)
states = [(q, v)]
for _ in range(2000):
    states.append(step(*states[-1], dt))
qs, vs = map(np.array, zip(*states, strict=True))
kinetic, potential = arm.kinetic_energy(qs, vs), arm.potential_energy(qs)  # one call for all states
total = kinetic + potential
drift = np.max(np.abs(total - total[0]))
print(f"largest kinetic energy {kinetic.max():.1f} J; the total energy is constant to {drift:.1e} J")
assert drift < 1e-4 * kinetic.max()

figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
time = dt * np.arange(len(qs))
for name, energy in (("kinetic", kinetic), ("potential", potential), ("total", total)):
    axis.plot(time, energy, label=name, linewidth=2.5 if name == "total" else 1.5)
axis.set(xlabel="time (s)", ylabel="energy (J)", title="A six-joint arm in free motion")
axis.legend()
axis.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/01_robot_dynamics.png", dpi=120)
