"""Identities of the closed forms, exact in the ring, on random mechanisms with every inertial parameter a symbol."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy
from closed_forms import ByAngles, dynamics, values, vanishes

import linkwright as lw
from linkwright.symbolic.derivation.literal import literal
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.printing.sympy_out import to_sympy

KINDS = ["revolute", "prismatic", "cylindrical", "universal", "planar", "screw"]
cases = pytest.mark.parametrize("case", [*range(4), "spherical", "free", "gear"])


@cache
def random_dynamics(case: int | str) -> tuple[lw.Mechanism, Dynamics]:
    """Two or three bodies; angles of their placement are symbols too."""
    if isinstance(case, int):
        d = lw.random_tree(2, case, joints=KINDS).description
    elif case == "gear":
        with lw.Builder("gear") as b:
            before: Any = b.ground
            for k in range(3):
                body = b.body(f"b{k}", 1.0, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4))
                b.joint("revolute", before, body, f"j{k}", axis=(0, k % 2, 1 - k % 2), at=(0.1, 0.2, 0.3))
                before = body
            b.mimic("j2", "j0", -2.0, 0.3)
        d = b.description()
    else:
        d = lw.chain(1, str(case)).description
    mech = lw.Mechanism(literal(d, "inertial"))
    return mech, dynamics(mech)


def along(dy: Dynamics, p: Any) -> Any:
    """The rate of a polynomial of q and q̇: Σ ∂p/∂q q̇ + ∂p/∂q̇ q̈."""
    ring = dy.ring
    total = ring.zero
    for k in range(dy.n):
        total = total + ring.derivative(p, k) * ring.symbol(ring.rates[k])
        total = total + ring.partial(p, ring.rates[k]) * ring.symbol(ring.accelerations[k])
    return ring.reduced(total)


def forces(dy: Dynamics) -> list[Any]:
    """M q̈ + h + g."""
    ring = dy.ring
    pushes = [ring.symbol(a) for a in ring.accelerations]
    return [sum((dy.m[i, j] * pushes[j] for j in range(dy.n)), dy.h(i) + dy.g(i)) for i in range(dy.n)]


@cases
def test_the_rate_of_m_less_twice_c_is_skew(case: int | str) -> None:
    _, dy = random_dynamics(case)
    skew = [[along(dy, dy.m[i, j]) - 2 * dy.coriolis(i, j) for j in range(dy.n)] for i in range(dy.n)]
    for i in range(dy.n):
        for j in range(dy.n):
            assert dy.ring.reduced(skew[i][j] + skew[j][i]) == dy.ring.zero


@cases
def test_h_is_c_times_the_rates_and_the_papers_sum(case: int | str) -> None:
    _, dy = random_dynamics(case)
    ring, n = dy.ring, dy.n
    rates = [ring.symbol(s) for s in ring.rates]
    for i in range(n):
        by_c = sum((dy.coriolis(i, j) * rates[j] for j in range(n)), ring.zero)
        # h_ijk = ∂M_ij/∂q_k − ½ ∂M_jk/∂q_i, eq. 23, is another C with the same h.
        paper = sum(
            ((dy.slope(i, j, k) - dy.slope(j, k, i) / 2) * rates[j] * rates[k] for j in range(n) for k in range(n)),
            ring.zero,
        )
        assert dy.h(i) == by_c == paper


@cases
def test_the_power_of_the_forces_is_the_rate_of_the_energy(case: int | str) -> None:
    _, dy = random_dynamics(case)
    ring = dy.ring
    power = sum((f * ring.symbol(v) for f, v in zip(forces(dy), ring.rates, strict=True)), ring.zero)
    assert along(dy, dy.kinetic_energy + dy.potential_energy) == ring.reduced(power)


@cases
def test_lagranges_equations_give_the_same_forces(case: int | str) -> None:
    _, dy = random_dynamics(case)
    ring, lagrangian = dy.ring, dy.kinetic_energy - dy.potential_energy
    for i, force in enumerate(forces(dy)):
        momentum = ring.partial(lagrangian, ring.rates[i])
        assert ring.reduced(along(dy, momentum) - ring.derivative(lagrangian, i)) == force


@cases
def test_energies_are_those_of_the_mechanism(case: int | str) -> None:
    mech, dy = random_dynamics(case)
    rng = np.random.default_rng(2)
    heights = []
    for _ in range(2):
        x, dx = rng.uniform(-1, 1, (2, dy.n))
        q, v, _, _ = ByAngles(mech).state(x, dx, dx)
        at = dy.ring.values(values(dy, x, dx))
        assert dy.ring.evaluate(dy.kinetic_energy, at) == pytest.approx(mech.kinetic_energy(q, v), rel=1e-10)
        heights.append((dy.ring.evaluate(dy.potential_energy, at), mech.potential_energy(q)))
    (a, b), (c, d) = heights
    assert a - c == pytest.approx(b - d, rel=1e-10, abs=1e-10)


def test_sympys_lagrangian_of_the_papers_arm_gives_its_equations() -> None:
    row = {"d": 0.0, "theta": 0.0}
    arm = lw.from_dh(
        [
            {"a": 0.0, "alpha": 0.0, "mass": "m1", "com": (0.0, 0.0, "lg1"), **row},
            {"a": 0.0, "alpha": math.pi / 2, "mass": "m2", "com": ("lg2", 0.0, 0.0), **row},
            {"a": "l2", "alpha": 0.0, "mass": "m3", "com": ("lg3", 0.0, 0.0), **row},
        ],
        convention="modified",
    )
    dy = dynamics(arm)
    m1, m2, m3, lg1, lg2, lg3, l2 = sympy.symbols("m1 m2 m3 lg1 lg2 lg3 l2")
    q, v, a = (sympy.Matrix(sympy.symbols(f"{stem}1 {stem}2 {stem}3")) for stem in ("q", "dq", "ddq"))

    def place(reach: Any, height: Any) -> Any:
        return sympy.Matrix([reach * sympy.cos(q[0]), reach * sympy.sin(q[0]), height])

    both = q[1] + q[2]
    places = [
        sympy.Matrix([0, 0, lg1]),
        place(lg2 * sympy.cos(q[1]), lg2 * sympy.sin(q[1])),
        place(l2 * sympy.cos(q[1]) + lg3 * sympy.cos(both), l2 * sympy.sin(q[1]) + lg3 * sympy.sin(both)),
    ]
    rates = [p.jacobian(q) * v for p in places]
    kinetic = sum(m * r.dot(r) for m, r in zip((m1, m2, m3), rates, strict=True)) / 2
    height = sum(m * p[2] for m, p in zip((m1, m2, m3), places, strict=True))
    lagrangian = sympy.Matrix([kinetic - sympy.Rational("9.81") * height])
    momenta = lagrangian.jacobian(v).T
    wanted = momenta.jacobian(v) * a + momenta.jacobian(q) * v - lagrangian.jacobian(q).T
    for i, force in enumerate(forces(dy)):
        apart = to_sympy(dy.ring.formula(force)) - wanted[i]
        assert vanishes(apart, q)
