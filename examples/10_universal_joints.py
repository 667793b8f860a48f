"""Shafts with universal joints: one makes the speed uneven, a second one makes it even again.

Run it: python examples/10_universal_joints.py    It writes out/10_universal_joints.png and .html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "cardan.mks"
mech = lw.load(MODEL)


def speed(theta: np.ndarray, bend: float) -> np.ndarray:
    """θ̇₂ / θ̇₁ of a universal joint whose driving fork lies in the plane of the shafts at θ₁ = 0."""
    return np.cos(bend) / (1 - np.sin(bend) ** 2 * np.cos(theta) ** 2)


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for degrees in (10, 25, 40, 55):
    bend = np.radians(degrees)
    sol = lw.analyse(mech, parameters={"bend": bend})
    assert sol.status
    t = sol.time
    first, middle, last = (sol.joint(name)[:, 0] for name in ("r1", "r2", "r3"))
    # tan θ₂ = tan θ₁ / cos β
    exact = np.unwrap(np.arctan2(np.sin(t), np.cos(bend) * np.cos(t)))
    ratio = sol.joint_rate("r2")[:, 0]
    errors = [np.max(np.abs(x)) for x in (middle - exact, ratio - speed(t, bend), last - first)]
    evenness = np.max(np.abs(sol.joint_rate("r3")[:, 0] - 1.0))
    print(f"{degrees}°: angle {errors[0]:.1e}, speed {errors[1]:.1e}; last shaft {errors[2]:.1e}, {evenness:.1e}")
    assert max(*errors, evenness) < 1e-9
    # The speed ratio lies between cos β and 1 / cos β.
    assert np.isclose(ratio.min(), np.cos(bend)) or ratio.min() > np.cos(bend)
    (line,) = left.plot(np.degrees(t), speed(t, bend), linewidth=1, label=f"{degrees}°")
    left.plot(np.degrees(t)[::6], ratio[::6], ".", color=line.get_color())
    right.plot(np.degrees(t), np.degrees(middle - first), color=line.get_color(), linewidth=1.2)
    right.plot(np.degrees(t), np.degrees(last - first), "--", color=line.get_color(), linewidth=1.2)
left.set(title="Speed of the middle shaft", xlabel="first shaft (°)", ylabel="ratio to the first")
left.legend(title="bend")
right.set(title="Lead of the middle shaft, and of the last (dashed)", xlabel="first shaft (°)", ylabel="lead (°)")
for axis in (left, right):
    axis.set_xlim(0, 360)
    axis.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/10_universal_joints.png", dpi=120)
lw.analyse(mech).animate("out/10_universal_joints.html")
