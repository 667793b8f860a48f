"""Equations of motion as formulas: a PUMA 560 with every inertial parameter a symbol, printed, and evaluated.

Run it: python examples/18_equations.py    It writes out/18_equations.png, .html, .tex and .py.
"""

import importlib.util
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sympy

import linkwright as lw

MODELS = Path(__file__).parent / "models"
Path("out").mkdir(exist_ok=True)

# Every mass, centre, moment of inertia and length is a symbol; the derivation is exact.
general = lw.equations(MODELS / "puma560.dh.toml", literal="all")
print(general)
puma = lw.load(MODELS / "puma560.dh.toml")
q, v = np.random.default_rng(0).uniform(-2, 2, (2, 6))
m, h, g = general.evaluate(q, v)
assert np.allclose(m, puma.mass_matrix(q), rtol=0, atol=1e-12)
assert np.allclose(h + g, puma.bias_forces(q, v), rtol=0, atol=1e-12)

# With the published numbers the formulas are short enough to read: a page, a document, and a module to import.
eq = lw.equations(puma)
for ending in ("html", "tex", "py"):
    eq.save(f"out/18_equations.{ending}")
print("gravity at joint 3:", *eq.terms("g", 3)[:3], "…")
spec = importlib.util.spec_from_file_location("puma", "out/18_equations.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert np.allclose(module.M(q), puma.mass_matrix(q), rtol=0, atol=1e-12)

# Recursive code, with intermediate variables, has the fewest operations; readable formulas cost more.
steps = eq.recursive("inverse_dynamics")
print(f"as formulas: {eq.count()}; recursive: {steps.count.total} operations")

# Of 66 inertial parameters, motors among them, 40 combinations can be identified from the forces.
base = general.base
print(f"{base.rank} base parameters of {len(general.regressor.names)}; one is {base.names[1]}")
assert base.rank == 40

# The paper's arm hangs straight down in one of its equilibria, oscillates there, and turns freely about the vertical.
three = lw.equations(MODELS / "three_link.dh.toml", coordinates="theta")
still = three.equilibria()
print(still)
assert [point.stability for point in still] == ["unstable", "unstable", "neutral", "unstable"]

angles = np.linspace(-np.pi, np.pi, 121)
torque = np.array([[module.g([0, a, b, 0, 0, 0])[1] for a in angles] for b in angles])
figure, (formulas, map_of) = plt.subplots(1, 2, figsize=(13, 5.4), gridspec_kw={"width_ratios": [1.5, 1]})
formulas.axis("off")
lines = [(f"M_{{{i + 1}{j + 1}}}", three.M[i, j]) for i, j in ((0, 0), (1, 1), (1, 2), (2, 2))]
lines += [(f"h_{k + 1}", three.h[k]) for k in (1, 2)] + [(f"g_{k + 1}", three.g[k]) for k in (1, 2)]
names = {sympy.Symbol(f"dtheta{k}"): rf"\dot\theta_{k}" for k in (1, 2, 3)}
names |= {sympy.Symbol(f"lg{k}"): f"l_{{g{k}}}" for k in (1, 2, 3)}
for k, (name, value) in enumerate(lines):
    text = sympy.latex(value, symbol_names=names, fold_short_frac=True)
    formulas.text(-0.1, 0.97 - 0.135 * k, f"${name} = {text}$", fontsize=9.5 if len(text) < 250 else 7.0, va="top")
formulas.set_title("An arm of three links, from its table", loc="left")
shown = map_of.contourf(np.degrees(angles), np.degrees(angles), torque, 21, cmap="RdBu_r")
figure.colorbar(shown, label="N m")
map_of.set(xlabel="q2, degrees", ylabel="q3, degrees", title="PUMA 560: gravity at joint 2, by the generated module")
figure.tight_layout()
figure.savefig("out/18_equations.png", dpi=110)
