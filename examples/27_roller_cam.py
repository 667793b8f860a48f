"""A plate cam for a roller: 3-4-5 rise, dwell and return, against textbook formulas; and as files for the workshop.

Run it: python examples/27_roller_cam.py    It writes out/27_roller_cam.png, .dxf, .svg and .csv.
"""

from pathlib import Path

import numpy as np

import linkwright as lw

base, roller, offset, lift = 0.040, 0.008, 0.005, 0.020  # m
rise, dwell, back = np.radians([100, 170, 280])  # the rise, the dwell and the return end here
cam = lw.cam_profile(
    [(rise, lift, "rise345"), (dwell, lift), (back, 0.0, "rise345")],
    base,
    lw.CamFollower(radius=roller, offset=offset),
)
print(cam.report())

# Norton, Cam Design and Manufacturing Handbook: s = h (10 x³ − 15 x⁴ + 6 x⁵) with x = θ/β, and its derivatives.
theta = cam.angles
s, s1, s2 = np.zeros((3, len(theta)))
for begin, end, sign in ((0.0, rise, 1.0), (dwell, back, -1.0)):
    beta = end - begin
    x = np.clip((theta - begin) / beta, 0.0, 1.0)
    s += sign * lift * (10 * x**3 - 15 * x**4 + 6 * x**5)
    s1 += sign * lift / beta * (30 * x**2 - 60 * x**3 + 30 * x**4)
    s2 += sign * lift / beta**2 * (60 * x - 180 * x**2 + 120 * x**3)
for ours, exact in ((cam.displacement, s), (cam.velocity, s1), (cam.acceleration, s2)):
    assert np.abs(ours - exact).max() < 1e-12

# The roller's centre in the cam's frame, the pressure angle, the radius of curvature of its path, and the profile.
height = np.sqrt((base + roller) ** 2 - offset**2) + s
pitch = np.stack([offset * np.cos(theta) + height * np.sin(theta), height * np.cos(theta) - offset * np.sin(theta)], 1)
pressure = np.arctan((s1 - offset) / height)
u = s1 - offset
rho = (height**2 + u**2) ** 1.5 / (height**2 + u**2 + u * s1 - height * s2)
normal = np.stack([np.sin(theta - pressure), np.cos(theta - pressure)], 1)
profile = pitch - roller * normal
assert np.abs(cam.pitch - pitch).max() < 1e-12
assert np.abs(cam.pressure_angle - pressure).max() < 1e-12
assert np.abs(1 / cam.curvature - (rho - roller)).max() < 1e-9
assert np.abs(cam.profile - profile).max() < 1e-12
assert cam.largest_pressure_angle.value < np.radians(30)
assert not cam.faults
assert len(cam.acceleration_jumps) == 0

# A quick rise to a larger roller: the profile would cross itself, and the error says where and what avoids it.
try:
    lw.cam_profile(
        [(rise / 3, lift, "rise345"), (dwell, lift), (back, 0.0, "rise345")], base, lw.CamFollower(radius=0.02)
    )
except lw.errors.ModelError as error:
    print(error)
else:
    raise AssertionError("an undercut cam must be refused")

Path("out").mkdir(exist_ok=True)
for ending in ("dxf", "svg", "csv"):
    cam.save(f"out/27_roller_cam.{ending}", unit="mm")
table = np.genfromtxt("out/27_roller_cam.csv", delimiter=",", names=True)
assert np.abs(table["profile_x_mm"] - 1e3 * profile[:, 0]).max() < 1e-9
cam.plot("out/27_roller_cam.png")
