"""Two four-bars in a row fall under gravity: loop constraints hold and energy is constant.

Run it: python examples/14_double_four_bar.py    It writes out/14_double_four_bar.png and out/14_double_four_bar.html.
"""

from pathlib import Path

import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "double_four_bar.mks"
sol = lw.analyse(MODEL)
print(sol)
print(sol.mechanism.dof())
assert sol.status

energy = sol.energy()
print(f"energy {energy[0]:.6f} J, constant to {np.max(np.abs(energy - energy[0])):.1e} J")
assert np.max(np.abs(energy - energy[0])) < 1e-5

# The pins of the loop joints stay together, in position and in velocity.
for one, other in (("top2", "end1"), ("top3", "end2")):
    gap = np.max(np.abs(sol.position(one) - sol.position(other)))
    slip = np.max(np.abs(sol.velocity(one) - sol.velocity(other)))
    print(f"{one} and {other}: gap {gap:.1e} m, {slip:.1e} m/s")
    assert gap < 1e-10
    assert slip < 1e-9

# Newton's law for all bars together gives the sum of the forces at the three feet.
feet = sum(np.stack([sol.series[f"base{k}.f{x}"].values for x in "xyz"], axis=1) for k in (1, 2, 3))
mass = {body.name: body.mass for body in sol.mechanism.bodies}
middles = {"left": "s1_place", "middle": "s2_place", "right": "s3_place", "first": "s4_place", "second": "s5_place"}
up = np.array([0, 9.81, 0])
change = sum(mass[name] * (sol.acceleration(place) + up) for name, place in middles.items())
assert np.allclose(feet, change, atol=1e-6 * np.max(np.abs(feet)))

Path("out").mkdir(exist_ok=True)
sol.plot(["base1", "base3", "path1"], ["position", "velocity"], path="out/14_double_four_bar.png")
sol.animate("out/14_double_four_bar.html")
