"""A function of your own on the tape: record it, differentiate it, run it natively, export it as C.

Run it: python examples/03_tape.py    It writes out/03_tape.png and out/03_tape.c.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

SPRINGS = np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 2.5]])  # the fixed ends of three springs (m)
STIFFNESS, LENGTH, WEIGHT = np.array([40.0, 60.0, 50.0]), 1.0, 20.0  # N/m, m, N


def energy(x):
    """The energy (J) of a weight at x that hangs on three springs: plain NumPy, for one state."""
    distance = np.sqrt(((x - SPRINGS) ** 2).sum(axis=1))
    return (0.5 * STIFFNESS * (distance - LENGTH) ** 2).sum() + WEIGHT * x[1]


# Called with floats the function computes; recorded, it becomes a program.
program = lw.record(energy, 2)
print(program)
print("operations:", program.count())
x = np.array([1.2, 0.4])
assert np.isclose(program(x), energy(x))

# Derivatives are programs too. Reverse accumulation gives value and gradient for a few times the cost of the value.
value, slope = program.reverse()(x, 1.0)
step = 1e-6
differences = [(energy(x + step * e) - energy(x - step * e)) / (2 * step) for e in np.eye(2)]
assert np.allclose(slope, differences, atol=1e-6)
hessian = program.hessian()
assert np.allclose(hessian(x), hessian(x).T)

# Newton's method for the equilibrium of the weight.
gradient = program.jacobian()
path = [x]
for _ in range(20):
    path.append(path[-1] - np.linalg.solve(hessian(path[-1]), gradient(path[-1])[0]))
    if np.linalg.norm(path[-1] - path[-2]) < 1e-12:
        break
equilibrium = path[-1]
print(f"equilibrium at {equilibrium}, after {len(path) - 1} steps")
assert np.linalg.norm(gradient(equilibrium)) < 1e-9
assert np.all(np.linalg.eigvalsh(hessian(equilibrium)) > 0.0)

# The same function over a grid of states, and as one C file without dependencies.
side = np.linspace(-1.0, 4.0, 200)
plane = np.stack(np.meshgrid(side, side - 0.8), axis=-1)
heights = program(plane)
assert heights.shape == (200, 200)
Path("out").mkdir(exist_ok=True)
text = program.to_c(name="energy")
Path("out/03_tape.c").write_text(text)
assert "void energy(const double *x, double *y" in text

figure, axis = plt.subplots(figsize=(7, 6), layout="constrained")
levels = heights.min() + np.linspace(0.0, 14.0, 24) ** 2
filled = axis.contourf(*np.moveaxis(plane, -1, 0), heights, levels=levels, cmap="viridis_r", extend="max")
figure.colorbar(filled, label="energy (J)")
for end in SPRINGS:
    axis.plot(*np.stack([end, equilibrium]).T, color="white", linewidth=1, alpha=0.7)
axis.plot(*SPRINGS.T, "s", color="white", markeredgecolor="black", label="fixed ends of the springs")
axis.plot(*np.array(path).T, ".-", color="tab:red", label="Newton's steps")
axis.plot(*equilibrium, "o", color="tab:red", markersize=10, label="equilibrium")
axis.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="Energy of a weight on three springs")
axis.legend(loc="lower right")
figure.savefig("out/03_tape.png", dpi=120)
