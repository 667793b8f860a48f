"""Five rods in a row swing under gravity: energy is constant, and small oscillations have a closed form.

Run it: python examples/13_pendulum.py    It writes out/13_pendulum.png and out/13_pendulum.html.
"""

from pathlib import Path

import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "pendulum.mks"
sol = lw.analyse(MODEL)
print(sol)
print(sol.counters)

# Without friction the sum of kinetic and potential energy is constant.
energy = sol.energy()
print(f"energy {energy[0]:.6f} J, constant to {np.max(np.abs(energy - energy[0])):.1e} J")
assert np.max(np.abs(energy - energy[0])) < 1e-6

# The initial state is that of INITIAL.
assert np.allclose(sol.q[0], [np.pi / 2, 0, 0, 0, 0])
assert np.allclose(sol.v[0], [0, 0, 0, 0, 2])

# Newton's law for all five rods together gives the force at the pivot.
mech = sol.mechanism
down = np.stack([sol.series[f"hinge1.f{x}"].values for x in "xyz"], axis=1)
acceleration = sum(b.mass * sol.acceleration(f"middle{k}") for k, b in enumerate(mech.bodies, 1))
weight = sum(b.mass for b in mech.bodies) * np.array([0, 0, -9.81])
assert np.allclose(down, acceleration - weight, atol=1e-6 * np.max(np.abs(down)))

# With hinges 2 to 5 locked, small oscillations of the one rod have the period 2π √(2 L / 3 g).
one = mech.lock({f"hinge{k}": 0.0 for k in range(2, 6)})
small = lw.simulate(one, t_end=20.0, q0=[1e-3], v0=[0.0], method="dop853", rtol=1e-11, saving=lw.Saving(interval=0.001))
turns = small.time[1:][np.diff(np.sign(small.q[:, 0])) != 0]
period = 2 * np.mean(np.diff(turns))
length = 5 * mech.parameters["length"]
print(f"period {period:.4f} s, closed form {2 * np.pi * np.sqrt(2 * length / 3 / 9.81):.4f} s")
assert abs(period / (2 * np.pi * np.sqrt(2 * length / 3 / 9.81)) - 1) < 1e-3

Path("out").mkdir(exist_ok=True)
sol.plot(["hinge1", "hinge5", "path"], ["position", "velocity"], path="out/13_pendulum.png")
sol.animate("out/13_pendulum.html")
