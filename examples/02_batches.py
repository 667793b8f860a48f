"""Ten thousand states in one call: the positions of an arm's tool, and the torque that holds its shoulder in each.

Run it: python examples/02_batches.py    It writes out/02_batches.png.
"""

from pathlib import Path
from time import perf_counter

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

N = 10_000
arm = lw.load(Path(__file__).parent / "models" / "arm.urdf")
rng = np.random.default_rng(0)
lower, upper = np.array([(j.lower, j.upper) for j in arm.joints]).T
q = rng.uniform(lower, upper, (N, arm.nq))
v, tau = rng.standard_normal((2, N, arm.nv))

# Every function takes any leading batch shape; the first call compiles.
a = arm.forward_dynamics(q, v, tau)
assert a.shape == (N, arm.nv)
grid = arm.forward_dynamics(q.reshape(100, 100, -1), v.reshape(100, 100, -1), tau.reshape(100, 100, -1))
assert np.array_equal(grid.reshape(N, -1), a)
# Shapes broadcast: one torque for all states.
assert np.allclose(arm.forward_dynamics(q, v, tau[0])[0], a[0])


def seconds(work) -> float:
    """The least time of five runs."""
    times = []
    for _ in range(5):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


one_by_one = [arm.forward_dynamics(*state) for state in zip(q, v, tau, strict=True)]
assert np.allclose(one_by_one, a, rtol=1e-9, atol=1e-9)
looped = seconds(lambda: [arm.forward_dynamics(*state) for state in zip(q, v, tau, strict=True)])
batched = seconds(lambda: arm.forward_dynamics(q, v, tau, out=a))
print(f"one by one {1e9 * looped / N:.0f} ns per state, as one batch {1e9 * batched / N:.0f} ns per state")

# A NaN in one state makes the result of that state NaN, and of no other.
with_nan = tau.copy()
with_nan[17, 2] = np.nan
b = arm.forward_dynamics(q, v, with_nan)
assert np.isnan(b[17]).any()
assert np.isfinite(np.delete(b, 17, axis=0)).all()

tool = arm.pose(q, "tool")[:, :3, 3]
shoulder = np.abs(arm.gravity_forces(q)[:, arm.joints["shoulder_lift"].v_slice.start])
reach = np.linalg.norm(tool[:, :2], axis=1)
assert reach.max() < 1.3
assert shoulder.max() < 150.0

figure, axis = plt.subplots(figsize=(7.5, 6), layout="constrained")
points = axis.scatter(reach * np.sign(tool[:, 0]), tool[:, 2], c=shoulder, s=4, cmap="plasma", linewidths=0)
figure.colorbar(points, label="torque that holds the shoulder (N·m)")
axis.set(xlabel="reach (m)", ylabel="height (m)", title=f"Positions of the tool in {N:,} states", aspect="equal")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/02_batches.png", dpi=120)
