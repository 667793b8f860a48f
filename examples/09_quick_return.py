"""A quick-return drive: a ram that works slowly and comes back fast, and by how much.

Run it: python examples/09_quick_return.py    It writes out/09_quick_return.png and out/09_quick_return.html.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

MODEL = Path(__file__).parent / "models" / "quick_return.mks"
mech = lw.load(MODEL)
sol = lw.analyse(mech)
print(sol)
assert sol.status

# The arm points to the crank's pin, which is at (r cos t, d + r sin t); the ram is on its line, at the height H.
p = mech.parameters
r, d, height = p["crank"], p["height"], p["ram_height"]
t = sol.time
px, py = r * np.cos(t), d + r * np.sin(t)
arm = np.arctan2(py, px)
rate = r * (r + d * np.sin(t)) / (r**2 + d**2 + 2 * r * d * np.sin(t))
ram = height * px / py
ram_rate = height * (-r * np.sin(t) * py - px * r * np.cos(t)) / py**2
assert np.allclose(sol.joint("arm_swings")[:, 0], arm, atol=1e-9)
assert np.allclose(sol.angular_velocity("arm")[:, 2], rate, atol=1e-9)
assert np.allclose(sol.position("ram")[:, 0], ram, atol=1e-9)
assert np.allclose(sol.velocity("ram")[:, 0], ram_rate, atol=1e-9)


# The ram turns where crank and arm are at right angles: sin α = r/d. The crank turns at a constant speed, so the
# times of both strokes have the ratio of the angles π + 2α and π − 2α.
def turning(when: float) -> float:
    """When the ram's velocity vanishes, by Newton's method on short analyses that end at the time sought."""
    for _ in range(5):
        at = lw.analyse(mech, times=[when - 0.01, when])
        when -= float(at.velocity("ram")[1, 0] / at.acceleration("ram")[1, 0])
    return when


x, v = sol.position("ram")[:, 0], sol.velocity("ram")[:, 0]
right, left = turning(t[np.argmax(x)]), turning(t[np.argmin(x)])
slow = (left - right) % (2 * np.pi)
ratio = slow / (2 * np.pi - slow)
alpha = np.arcsin(r / d)
exact = (np.pi + 2 * alpha) / (np.pi - 2 * alpha)
print(f"working stroke : return stroke = {ratio:.12f}, exactly {exact:.12f}")
assert abs(ratio - exact) < 1e-9

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 6), sharex=True, layout="constrained")
degrees = np.degrees(t)
top.plot(degrees, ram, color="tab:blue", linewidth=1, label="closed form")
top.plot(degrees[::6], x[::6], ".", color="tab:red", label="analysis")
top.set(ylabel="ram (m)", title=f"A quick return: the strokes take times as {exact:.0f} : 1")
bottom.plot(degrees, ram_rate, color="tab:blue", linewidth=1)
bottom.plot(degrees[::6], v[::6], ".", color="tab:red")
bottom.set(xlabel="crank (°)", ylabel="velocity (m/s)")
for axis in (top, bottom):
    for start in np.degrees([right, right - 2 * np.pi]):
        axis.axvspan(start, start + np.degrees(slow), color="tab:green", alpha=0.12, linewidth=0)
    axis.set_xlim(0, 360)
    axis.grid(alpha=0.3)
bottom.annotate("working stroke", (105, 0.3), color="tab:green", ha="center")
top.legend()
Path("out").mkdir(exist_ok=True)
figure.savefig("out/09_quick_return.png", dpi=120)
sol.animate("out/09_quick_return.html")
