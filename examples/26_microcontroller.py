"""An arm follows a path by computed torque in float32: an Arduino library, compiled and run on this machine.

The controller is the exported inverse dynamics, the plant one exported Runge-Kutta step in float64, both C.
Run it: python examples/26_microcontroller.py    It writes out/26_microcontroller.png and the library out/arm_model.
Without a C compiler, Linkwright's own functions replace them.
"""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

PERIOD, DURATION = 1e-3, 2.0  # s
mech = lw.load(Path(__file__).parent / "models" / "arm.urdf")
n = mech.nv

Path("out").mkdir(exist_ok=True)
lw.export(mech, "out/arm_model", "inverse_dynamics", name="arm_model", arduino=True, overwrite=True)
lw.export(mech, "out/arm_plant.c", "step", dt=PERIOD, name="arm_plant")
cost = re.search(r"## Cost\n\n(.*?)\n\n## ", Path("out/arm_model/README.md").read_text(encoding="utf-8"), re.DOTALL)
print(cost[1])


def compiled(source: str) -> ctypes.CDLL | None:
    """The library of a C file; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = Path("out", Path(source).stem + ".so").absolute()
    subprocess.run([compiler, "-O2", "-std=c99", "-shared", "-fPIC", source, "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def caller(function, *arrays):
    """A C function bound to arrays, to be called without arguments."""
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    return lambda: function(*pointers)


# The arrays of the loop; the microcontroller has its own, in float32.
q, v, tau, q_next, v_next, work = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(4096)
q32, v32, a32, tau32 = (np.zeros(n, np.float32) for _ in range(4))
model, plant = compiled("out/arm_model/src/arm_model.c"), compiled("out/arm_plant.c")
if model is None or plant is None:
    print("no C compiler: Linkwright's own functions instead")

    def torque() -> None:
        tau32[:] = mech.inverse_dynamics(*(x.astype(float) for x in (q32, v32, a32)))

    def move() -> None:
        moved = lw.rollout(mech, q, v, PERIOD, 1, tau=tau)
        q_next[:], v_next[:] = moved.q[-1], moved.v[-1]
else:
    torque = caller(model.arm_model, q32, v32, a32, tau32)
    move = caller(plant.arm_plant, q, v, tau, q_next, v_next, work)

# Each joint swings at its own frequency; gains of a critically damped 2 Hz.
stiffness, damping = (2 * np.pi * 2) ** 2, 2 * (2 * np.pi * 2)
frequencies = 2 * np.pi * np.linspace(0.3, 0.8, n)
times = np.arange(0.0, DURATION, PERIOD)
errors, forces, exact = [], [], []
for t in times:
    reference = 0.5 * (1 - np.cos(frequencies * t))
    rate, bend = 0.5 * frequencies * np.sin(frequencies * t), 0.5 * frequencies**2 * np.cos(frequencies * t)
    q32[:], v32[:] = q, v
    a32[:] = bend + damping * (rate - v) + stiffness * (reference - q)
    torque()
    tau[:] = tau32
    errors.append(q - reference)
    forces.append(tau.copy())
    exact.append(mech.inverse_dynamics(q, v, a32.astype(float)))
    move()
    q[:], v[:] = q_next, v_next
errors, forces, exact = np.array(errors), np.array(forces), np.array(exact)
rounding = np.abs(forces - exact).max() / np.abs(exact).max()
print(f"worst tracking error {1e3 * np.abs(errors).max():.3f} mrad; torques in float32: error {rounding:.1e}, relative")
assert np.abs(errors).max() < 5e-3
assert rounding < 1e-5

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(times, 1e3 * errors)
left.set(title="Computed torque at 1 kHz, the model in float32", xlabel="time (s)", ylabel="error of the joints (mrad)")
right.plot(times, forces)
right.set(title="Torques of the microcontroller", xlabel="time (s)", ylabel="N m")
for axes in (left, right):
    axes.grid(alpha=0.3)
figure.savefig("out/26_microcontroller.png", dpi=120)
