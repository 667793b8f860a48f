"""Linear models: against the mechanism's own derivatives, against SymPy, and published ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from closed_forms import dynamics, values, vanishes

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.symbolic.formulas.formula import evaluate, symbols
from linkwright.symbolic.linear.linearisation import Linearisation
from linkwright.symbolic.printing.formula_writer import text
from linkwright.symbolic.printing.sympy_out import to_sympy
from robots import relative


def cart_pole() -> lw.Mechanism:
    """A cart of mass M along x, and on it an upright pole: a point mass m at l."""
    with lw.Builder("cart-pole") as b:
        mass, bob, length = b.parameter("M", 2.0), b.parameter("m", 0.5), b.parameter("l", 0.7)
        cart, pole = b.body("cart", mass), b.body("pole", bob, (0, 0, length))
        b.joint("prismatic", b.ground, cart, "slide", axis=(1, 0, 0))
        b.joint("revolute", cart, pole, "pivot", axis=(0, 1, 0))
    return b.build()


def arm() -> lw.Mechanism:
    """Three links in space with friction, springs, armature and a law that is no polynomial."""
    with lw.Builder("arm") as b:
        before: Any = b.ground
        for k, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
            link = b.body(f"link{k}", 1.0 + k, (0.2, 0.1, 0.3 * k), (0.1, 0.2, 0.25))
            b.joint("revolute", before, link, f"j{k}", axis=axis, at=(0.3, 0, 0.1), damping=0.2, armature=0.02)
            before = link
        b.joint_friction("j1", 0.4, 0.3)
        b.joint_spring("j0", b.parameter("k", 5.0), rest=0.3)
        b.joint_force("j2", lambda q, v: -np.sin(2.0 * q) * 3.0 - np.sqrt(1.0 + v * v) * q + np.exp(-q) * v)
    return b.build()


def entries(block: Any) -> list[list[str]]:
    rows, columns = block.shape
    return [[text(block.entries[i * columns + j]) for j in range(columns)] for i in range(rows)]


# -- against the mechanism ------------------------------------------------------------------------------------------
MECHANISMS = {
    "arm with laws": arm,
    "cart-pole": cart_pole,
    "chain": lambda: lw.chain(3),
    "tree": lambda: lw.tree(3, 2),
    "universal": lambda: lw.chain(2, "universal"),
    "planar": lambda: lw.chain(1, "planar"),
    "screw": lambda: lw.chain(2, "screw"),
    "cylindrical": lambda: lw.chain(2, "cylindrical"),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_along_a_trajectory_the_polynomials_give_the_derivatives_of_forward_dynamics(name: str) -> None:
    mech = MECHANISMS[name]()
    rng = np.random.default_rng(1)
    q, v, tau = rng.uniform(-1, 1, (3, 4, mech.nv))
    by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau)
    n, zero = mech.nv, np.zeros((4, mech.nv, mech.nv))
    wanted_a = np.block([[zero, np.broadcast_to(np.eye(n), zero.shape)], [by_q, by_v]])
    plain, fast = (Linearisation(dynamics(mech), mech=m).numeric(q, v, tau=tau) for m in (None, mech))
    for a, b in (plain, fast):
        assert relative(a, wanted_a) < 1e-9
        assert relative(b, np.concatenate([zero, by_tau], axis=-2)) < 1e-9


def test_accelerations_make_the_forces_of_a_trajectory() -> None:
    mech = arm()
    q, v, a = np.random.default_rng(2).uniform(-1, 1, (3, 2, 5, 3))
    for made in (Linearisation(dynamics(mech)), Linearisation(dynamics(mech), mech=mech)):
        by_a = made.numeric(q, v, a=a)
        by_tau = made.numeric(q, v, tau=mech.inverse_dynamics(q, v, a))
        assert by_a[0].shape == (2, 5, 6, 6)
        assert relative(by_a[0], by_tau[0]) < 1e-9
        assert relative(by_a[1], by_tau[1]) < 1e-12


def test_at_rest_it_is_the_mechanisms_linear_model() -> None:
    mech = arm()
    q = np.array([0.3, -0.7, 1.1])
    tau = mech.inverse_dynamics(q, np.zeros(3), np.zeros(3))
    wanted = mech.linearise(q, np.zeros(3), tau)
    z = np.kron(np.eye(2), wanted.basis)
    a, b = Linearisation(dynamics(mech), {f"q{k + 1}": float(x) for k, x in enumerate(q)}).state_space()
    assert relative(a, z @ wanted.A @ z.T) < 1e-9
    assert relative(b, z @ wanted.B) < 1e-9


def test_at_a_moving_point_the_formulas_have_the_numbers_of_the_trajectory() -> None:
    mech = arm()
    q, v, a = np.random.default_rng(3).uniform(-1, 1, (3, 3))
    parts = (("q", q), ("dq", v), ("ddq", a))
    point = {f"{stem}{k + 1}": float(x) for stem, xs in parts for k, x in enumerate(xs)}
    at = Linearisation(dynamics(mech), point)
    assert relative(at.state_space()[0], Linearisation(dynamics(mech), mech=mech).numeric(q, v, a=a)[0]) < 1e-9


def test_joints_by_angles_are_linearised_by_their_polynomials() -> None:
    mech = lw.chain(1, "spherical")
    made = Linearisation(dynamics(mech), mech=mech)
    x, dx, ddx = np.random.default_rng(4).uniform(-1, 1, (3, 3))
    dy, step = dynamics(mech), 1e-30

    def force(x: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """M ẍ + h + g at complex angles."""
        ring, given = dy.ring, {**dy.model.values}
        for some, numbers in ((ring.coordinates, x), (ring.rates, dx), (ring.accelerations, ddx)):
            given |= {s.name: value for s, value in zip(some, numbers, strict=True)}
        pushes = [ring.symbol(s) for s in ring.accelerations]
        every = [sum((dy.m[i, j] * pushes[j] for j in range(3)), dy.h(i) + dy.g(i)) for i in range(3)]
        return np.array([complex(to_sympy(ring.formula(p)).subs(given)) for p in every])

    k = np.stack([force(x + 1j * step * e, dx).imag / step for e in np.eye(3)], axis=1)
    d = np.stack([force(x, dx + 1j * step * e).imag / step for e in np.eye(3)], axis=1)
    values = {f"{stem}{i + 1}": y for stem, ys in (("q", x), ("dq", dx), ("ddq", ddx)) for i, y in enumerate(ys)}
    _, found_d, found_k = made.matrices(values)
    assert relative(found_k, k) < 1e-9
    assert relative(found_d, d) < 1e-9
    a, _ = made.numeric(x, dx, a=ddx)
    assert relative(a, made.state_space(values)[0]) < 1e-12


# -- formulas -------------------------------------------------------------------------------------------------------
def test_the_cart_and_pole_upright_is_the_published_model() -> None:
    """ẍ = −(m g/M) θ + F/M and θ̈ = ((M + m) g/(M l)) θ − F/(M l): Ogata, Modern Control
    Engineering, the inverted pendulum on a cart.
    """
    at = Linearisation(dynamics(cart_pole()), {"q2": 0})
    mass, m, length, g = *sympy.symbols("M m l"), sympy.Rational("9.81")
    falls = (mass + m) * g / (mass * length)
    wanted = sympy.Matrix([[0, 0, 1, 0], [0, 0, 0, 1], [0, -m * g / mass, 0, 0], [0, falls, 0, 0]])
    assert sympy.simplify(at.sympy("A") - wanted) == sympy.zeros(4)
    pushed = sympy.Matrix([0, 0, 1 / mass, -1 / (mass * length)])
    assert sympy.simplify(at.sympy("B")[:, 0] - pushed) == sympy.zeros(4, 1)
    assert entries(at.A)[2] == ["0", "-9.81*m/M", "0", "0"], "common factors are gone"


def test_the_hanging_pole_swings_back() -> None:
    at = Linearisation(dynamics(cart_pole()), {"q2": math.pi})
    assert entries(at.A)[3][1] == "(-9.81*M - 9.81*m)/(M*l)"


def test_a_two_link_arm_is_what_sympy_linearises() -> None:
    rows = [
        {"a": a, "alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": m, "com": (x, 0, 0), "inertia": (i, i, i)}
        for a, m, x, i in ((0.0, "m1", "c1", 0.05), (0.5, "m2", "c2", 0.03))
    ]
    mech = lw.from_dh(rows, convention="modified", gravity=(0.0, -9.81, 0.0))
    made = Linearisation(dynamics(mech))
    m1, c1, m2, c2 = sympy.symbols("m1 c1 m2 c2")
    l1, i1, i2 = map(sympy.Rational, ("0.5", "0.05", "0.03"))
    q, v, a = (sympy.Matrix(sympy.symbols(f"{s}1 {s}2")) for s in ("q", "dq", "ddq"))
    first = c1 * sympy.Matrix([sympy.cos(q[0]), sympy.sin(q[0])])
    second = l1 / c1 * first + c2 * sympy.Matrix([sympy.cos(q[0] + q[1]), sympy.sin(q[0] + q[1])])
    rates = [p.jacobian(q) * v for p in (first, second)]
    kinetic = (m1 * rates[0].dot(rates[0]) + m2 * rates[1].dot(rates[1]) + i1 * v[0] ** 2 + i2 * (v[0] + v[1]) ** 2) / 2
    potential = sympy.Rational("9.81") * (m1 * first[1] + m2 * second[1])
    momenta = sympy.Matrix([kinetic]).jacobian(v).T
    force = momenta.jacobian(v) * a + momenta.jacobian(q) * v - sympy.Matrix([kinetic - potential]).jacobian(q).T
    for name, by in (("M", a), ("D", v), ("K", q)):
        apart = made.sympy(name) - force.jacobian(by)
        assert all(vanishes(x, q) for x in apart), name
    # A and B at a state, with its symbols: SymPy solves for the accelerations first.
    at = Linearisation(dynamics(mech), {"q1": 0.5, "q2": math.pi / 3, "dq1": 2, "dq2": Fraction(-1, 3), "ddq1": 1})
    here = {q[0]: sympy.Rational(1, 2), q[1]: sympy.pi / 3, v[0]: 2, v[1]: sympy.Rational(-1, 3), a[0]: 1, a[1]: 0}
    numbers = {m1: 1.0, c1: 0.3, m2: 0.7, c2: 0.2}
    m, d, k = (force.jacobian(by).subs({**here, **numbers}).evalf() for by in (a, v, q))
    low = -m.inv() * sympy.Matrix.hstack(k, d)
    found = at.sympy("A")[2:, :].subs(numbers).evalf()
    assert np.array(found - low, dtype=float) == pytest.approx(np.zeros((2, 4)), abs=1e-9)


def test_a_point_keeps_what_it_does_not_name() -> None:
    dy = dynamics(cart_pole())
    kept = Linearisation(dy, {"dq2": "free"})
    assert {s for e in kept.K.entries for s in symbols(e)} == {"m", "l", "q2", "dq2"}
    assert {s for e in Linearisation(dy, {"q2": 1}).K.entries for s in symbols(e)} == {"m", "l"}
    assert {s for e in Linearisation(dy, {"q2": 1, "m": 2, "l": 3}).A.entries for s in symbols(e)} == {"M"}


def test_a_part_of_an_angle_may_be_given() -> None:
    dy = dynamics(lw.from_dh([{"a": 0.3, "alpha": 0.0, "d": 0, "theta": 0, "mass": 1.0}] * 3, gravity=(0, -9.81, 0)))
    part = Linearisation(dy, {"q1": 0.4, "q2": math.pi / 6})
    full = Linearisation(dy, {"q1": 0.4, "q2": math.pi / 6, "q3": -0.9})
    for one, other in zip(part.matrices({"q3": -0.9}), full.matrices(), strict=True):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)


def test_exact_angles_stay_exact() -> None:
    with lw.Builder("pendulum") as b:
        b.joint("revolute", b.ground, b.body("bob", b.parameter("m", 1.0), (0, 0, -1.0)), axis=(0, 1, 0))
    at = Linearisation(dynamics(b.build()), {"q1": math.pi / 6})
    assert text(at.K.entries[0]) == "4.905*sqrt(3)*m"


def test_coordinates_that_are_not_coupled_are_inverted_on_their_own() -> None:
    """Six pendulums side by side: each has its own quotient, though M has six rows."""
    with lw.Builder("row") as b:
        for k in range(6):
            bob = b.body(f"bob{k}", b.parameter(f"m{k}", 1.0), (0, 0, -1.0))
            b.joint("revolute", b.ground, bob, axis=(0, 1, 0), at=(k, 0, 0))
    made = Linearisation(dynamics(b.build()))
    assert entries(made.A)[6][0] == "-9.81*cos(q1)"
    assert entries(made.B)[6][0] == "1/m0"


def test_a_long_inverse_is_refused_and_numbers_are_not() -> None:
    mech = lw.chain(5)
    made = Linearisation(dynamics(mech))
    with pytest.raises(ModelError, match=r"M couples 5 coordinates .* A and B as numbers"):
        _ = made.A
    a, _ = Linearisation(dynamics(mech), {f"q{k + 1}": 0 for k in range(5)}).state_space()
    at = Linearisation(dynamics(mech), {f"q{k + 1}": 0 for k in range(5)})
    exact = np.array([[float(to) for to in row] for row in at.sympy("A").tolist()])
    assert exact == pytest.approx(a, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"q3": 0}, "q3"),
        ({"q1": math.nan}, "q1 is nan at the point; give a finite number"),
        ({"q1": "zero"}, "q1 is 'zero' at the point; give a finite number, or 'free'"),
        ({"q1": None}, "q1 is None at the point; give a finite number"),
        ({"q1": [0, 1]}, r"q1 is \[0, 1\] at the point; give a finite number"),
        (0.5, "the point is 0.5; give its numbers by name, {'q1': 0}, those of the 2 coordinates in their order"),
        ("q1", "the point is 'q1'; give its numbers by name"),
        ([0.0], r"the point \[0.0\] has the length 1, and the coordinates are q1, q2; give one for each"),
        (np.zeros((2, 2)), r"q1 is \[0.0, 0.0\] at the point"),
        ({3: 0}, "no symbol named '3'"),
        ({sympy.Symbol("q3"): 0}, "no symbol named 'q3'"),
    ],
)
def test_a_point_that_cannot_be_is_refused_by_a_sentence(point: Any, message: str) -> None:
    with pytest.raises((ModelError, NameNotFound), match=message):
        Linearisation(dynamics(cart_pole()), point)


Q2 = sympy.Symbol("q2")


@pytest.mark.parametrize("point", [{sympy.Symbol("q1"): 0, Q2: 1}, (0, 1), [0.0, 1.0], np.array([0.0, 1.0])])
def test_a_point_may_be_symbols_of_sympy_or_the_coordinates_in_their_order(point: Any) -> None:
    dy = dynamics(cart_pole())
    assert Linearisation(dy, point).A == Linearisation(dy, {"q1": 0, "q2": 1}).A


def test_a_symbol_at_its_own_place_is_free() -> None:
    dy = dynamics(cart_pole())
    assert Linearisation(dy, {Q2: Q2, "dq1": 1}).K == Linearisation(dy, {"q2": "free", "dq1": 1}).K


def test_an_equilibrium_is_a_point() -> None:
    eq = lw.equations(cart_pole())
    up = eq.equilibria()[0]
    assert eq.linearise(up).A == up.linearised().A == eq.linearise({"q2": 0}).A


def test_an_unknown_matrix_is_refused_with_those_that_there_are() -> None:
    made = Linearisation(dynamics(cart_pole()))
    with pytest.raises(NameNotFound, match=r"no matrix of the linear model named 'Q'.*M, D, K, A, B"):
        made.sympy("Q")  # type: ignore[arg-type]


def test_a_linear_model_says_in_a_line_what_it_is() -> None:
    dy = dynamics(cart_pole())
    assert repr(Linearisation(dy)) == "<Linearisation of 'cart-pole' along any motion: 2 coordinates, 4 states>"
    assert "at q2 = 0.5:" in repr(Linearisation(dy, {"q2": 0.5}))
    assert "at rest:" in repr(Linearisation(dy, {}))


def test_wrong_shapes_and_missing_values_are_said() -> None:
    made = Linearisation(dynamics(cart_pole()))
    with pytest.raises(ModelError, match=r"q has shape \(3,\); its last axis is the coordinates, 2"):
        made.numeric(np.zeros(3))
    with pytest.raises(ModelError, match="not both"):
        made.numeric(np.zeros(2), a=np.zeros(2), tau=np.zeros(2))
    with pytest.raises(ModelError, match="no value is known of ddq1, ddq2, dq2, q2"):
        made.state_space()


def test_a_massless_motion_has_no_inverse() -> None:
    with lw.Builder("ghost") as b:
        b.joint("prismatic", b.ground, b.body("ghost"), "slide")
    with pytest.raises(ModelError, match="moves no mass"):
        _ = Linearisation(dynamics(b.build())).A


def test_friction_at_rest_is_its_slope() -> None:
    with lw.Builder("rubbing") as b:
        b.joint("prismatic", b.ground, b.body("cart", 1.0), "s", axis=(1, 0, 0), damping=2.0, friction=0.4)
    dy = dynamics(b.build())
    assert text(Linearisation(dy, {"q1": 0}).D.entries[0]) == "42"
    assert text(Linearisation(dy).D.entries[0]) == "-40*tanh(100*dq1)^2 + 42"


def test_formulas_of_a_and_b_have_the_numbers_of_the_derivatives() -> None:
    mech = arm()
    made = Linearisation(dynamics(mech), mech=mech)
    q, v, a = np.random.default_rng(6).uniform(-1, 1, (3, 3))
    state = values(made.dynamics, q, v, a)
    for block, wanted in zip((made.A, made.B), made.numeric(q, v, a=a), strict=True):
        found = np.array([evaluate(e, state) for e in block.entries]).reshape(block.shape)
        assert relative(found, wanted) < 1e-9


@pytest.mark.parametrize("number", [np.int64(2), sympy.Integer(2), sympy.Rational(2), np.float64(2.0)])
def test_numbers_of_other_libraries_are_numbers(number: Any) -> None:
    assert Linearisation(dynamics(cart_pole()), {"q2": 0, "l": number}).M.entries[1].terms[0].number == 2


def test_sympys_pi_is_known() -> None:
    assert text(Linearisation(dynamics(cart_pole()), {"q2": sympy.pi / 3}).M.entries[1]) == "1/2*l*m"


def test_a_part_of_the_mass_matrix_is_not_linearised() -> None:
    dy = dynamics(arm())
    del dy.m[0, 1]
    with pytest.raises(LinkwrightError, match="the derivation was interrupted: M12 is missing; derive again"):
        Linearisation(dy)
