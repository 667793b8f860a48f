"""A pendulum built in Python, and a study of its length: one program with the length as an input, no recompiling.

Run it: python examples/04_builder.py    It writes out/04_builder.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

with lw.Builder("pendulum") as b:
    length = b.parameter("length", 1.0)
    bob = b.body("bob", mass=0.5, com=(0.0, 0.0, -length))  # a point mass at the end of a light rod
    b.joint("revolute", b.ground, bob, "pivot", axis=(0, 1, 0))
pendulum = b.build()
print(pendulum, pendulum.parameters)

# Closed form: a = −g/l sin q.
a = pendulum.forward_dynamics([0.3], [0.0], [0.0])
assert np.allclose(a, -9.81 * np.sin(0.3))
longer = pendulum.with_parameters(length=2.0)
assert np.allclose(longer.forward_dynamics([0.3], [0.0], [0.0]), a / 2)

# With free=, the length is one more input: here 60 lengths and 4 amplitudes as one batch.
program = pendulum.program("forward_dynamics", free=("length",))
print(program)
lengths = np.linspace(0.2, 3.0, 60)
swings = np.radians([5.0, 60.0, 120.0, 170.0])
p = np.broadcast_to(lengths[:, None], (4, 60, 1))
q = np.broadcast_to(swings[:, None, None], (4, 60, 1)).copy()
v, tau = np.zeros_like(q), np.zeros(1)

# From rest to the first pass through q = 0 is a quarter of the period.
dt, quarter = 1e-3, np.full(q.shape, np.nan)
for step in range(4000):
    k1 = program(q, v, tau, p)
    k2 = program(q + dt / 2 * v, v + dt / 2 * k1, tau, p)
    k3 = program(q + dt / 2 * v + dt**2 / 4 * k1, v + dt / 2 * k2, tau, p)
    k4 = program(q + dt * v + dt**2 / 2 * k2, v + dt * k3, tau, p)
    following = q + dt * v + dt**2 / 6 * (k1 + k2 + k3)
    v = v + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    passed = np.isnan(quarter) & (following <= 0.0)
    quarter[passed] = dt * (step + (q / (q - following))[passed])
    q = following
period = 4 * quarter[..., 0]


def exact(length: np.ndarray, swing: float) -> np.ndarray:
    """The period by the arithmetic–geometric mean: 2π √(l/g) / agm(1, cos(swing/2))."""
    x, y = 1.0, np.cos(swing / 2)
    for _ in range(8):
        x, y = (x + y) / 2, np.sqrt(x * y)
    return 2 * np.pi * np.sqrt(length / 9.81) / x


figure, axis = plt.subplots(figsize=(7.5, 5), layout="constrained")
for swing, simulated in zip(swings, period, strict=True):
    error = np.max(np.abs(simulated / exact(lengths, swing) - 1.0))
    print(f"swing {np.degrees(swing):5.0f}°: relative error of the period {error:.1e}")
    assert error < 1e-5
    (line,) = axis.plot(lengths, exact(lengths, swing), linewidth=1)
    axis.plot(lengths, simulated, ".", color=line.get_color(), label=f"{np.degrees(swing):.0f}°")
axis.set(xlabel="length (m)", ylabel="period (s)", title="Pendulums of 60 lengths: dots simulated, lines exact")
axis.legend(title="swing")
axis.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/04_builder.png", dpi=120)
