"""A corner of a car drives over a kerb: double wishbones, spring, damper, bump stop and a tyre.

Run it: python examples/17_suspension.py    It writes out/17_suspension.png and out/17_suspension.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "suspension.mks"
sol = lw.analyse(MODEL)
print(sol)
print(sol.mechanism.dof())
assert sol.status

# At rest, before the kerb and after it, the tyre carries the whole weight, and the car rises by the height of the kerb.
mech, p, t = sol.mechanism, sol.mechanism.parameters, sol.time
weight = 9.81 * sum(body.mass for body in mech.bodies)
before, after = np.searchsorted(t, 1.99), len(t) - 1
hub, road = sol.position("hub")[:, 2], np.where(t < 2, 0.0, p["kerb"])
for k in (before, after):
    load = p["tyre"] * (p["radius"] + road[k] - hub[k])
    print(f"t = {t[k]:.2f} s: the tyre carries {load:.1f} N of {weight:.1f} N")
    assert abs(load / weight - 1) < 1e-2
lift = sol.position("chassis")[[before, after], 2]
assert abs(lift[1] - lift[0] - p["kerb"]) < 1e-3

# Static analysis finds the same position.
static = lw.analyse(mech, analysis="static", times=[0.0])
print(f"at rest the chassis is at {static.position('chassis')[0, 2]:.5f} m; after 2 s {lift[0]:.5f} m")
assert abs(static.position("chassis")[0, 2] - lift[0]) < 1e-3

# At the kerb the suspension reaches its stop, and the constraints hold.
assert np.max(sol.series["bump.force"].values) > 0
assert np.max(np.abs(sol.position("low") - sol.position("ball1"))) < 1e-9
length = np.linalg.norm(sol.position("rack") - sol.position("arm"), axis=1)
assert np.max(np.abs(length - 0.36)) < 1e-9

figure, axes = plt.subplots(2, 1, figsize=(7.5, 6), sharex=True, layout="constrained")
axes[0].plot(t, hub - hub[before], label="wheel")
axes[0].plot(t, sol.position("chassis")[:, 2] - lift[0], label="chassis")
axes[0].set_ylabel("height (m)")
axes[0].legend()
for name in ("coil.force", "bump.force"):
    axes[1].plot(t, sol.series[name].values / 1e3, label=name.removesuffix(".force"))
axes[1].set(xlabel="time (s)", ylabel="force (kN)")
axes[1].legend()
Path("out").mkdir(exist_ok=True)
figure.savefig("out/17_suspension.png", dpi=120)
sol.animate("out/17_suspension.html")
