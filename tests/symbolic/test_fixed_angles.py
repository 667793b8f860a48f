"""Fixed angles, numbers and parameters: exact cosines, one symbol for one angle, names that clash with no other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.expression import Call, Expression, Name, Number
from linkwright.symbolic.derivation.exact_numbers import from_expression
from linkwright.symbolic.derivation.model_reading import model_of
from linkwright.symbolic.formulas.formula import Trig, evaluate
from linkwright.symbolic.formulas.ring import Ring, terms

AL = Name("al")
TWIST = math.radians(37.0)


def arm(alpha: Any, theta: Any = 0.0, d: Any = 0.2, **parameters: float) -> lw.Mechanism:
    rows = [
        {"a": 0.1, "alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": 1.0, "com": (0.1, 0.2, 0.3)},
        {"a": 0.3, "alpha": alpha, "d": d, "theta": theta, "mass": 1.5, "com": (0.2, 0.1, 0.1)},
        {"a": 0.2, "alpha": alpha, "d": 0.1, "theta": 0.0, "mass": 1.2, "com": (0.1, 0.1, 0.2)},
    ]
    return lw.from_dh(rows, convention="modified", parameters=parameters)


def agrees(eq: lw.Equations, mech: lw.Mechanism) -> None:
    q, dq = np.array([0.3, -0.7, 1.1]), np.array([0.4, 0.5, -0.6])
    m, h, g = eq.evaluate(q, dq)
    assert m == pytest.approx(mech.mass_matrix(q), rel=1e-12, abs=1e-12)
    assert h + g == pytest.approx(mech.inverse_dynamics(q, dq, 0 * q), rel=1e-12, abs=1e-12)


def longest(eq: lw.Equations) -> int:
    """Of all numbers in the equations, the digits of the longest denominator."""
    entries = [*eq.derivation.m.values(), *eq.derivation.g.values(), *eq.derivation.h.values()]
    return max(len(str(x.denominator)) for p in entries for _, x in terms(p))


# -- names ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stem", ["alpha", "delta"])
def test_a_named_angle_never_takes_the_name_of_a_coordinate(stem: str) -> None:
    mech = arm(TWIST, 0.4)
    eq = lw.equations(mech, coordinates=stem)
    moving = {dots + q.name for q in eq.model.coordinates for dots in ("", "d", "dd")}
    assert not moving & eq.parameters.keys()
    agrees(eq, mech)


@pytest.mark.parametrize("digits", [-3, 0, 18, 2.5, "3"])
def test_digits_that_a_cosine_cannot_have_are_refused(digits: Any) -> None:
    with pytest.raises(ModelError, match="give the number of decimals, 1 to 17"):
        lw.equations(arm(TWIST), round_angles=digits)


# -- numbers beside symbols -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "mech",
    [
        arm(TWIST),
        arm(TWIST, "th0", th0=0.4),
        arm(TWIST, d="d2", d2=0.2),
        arm("al", TWIST, al=0.3),
        arm(AL + TWIST, al=0.3),
    ],
    ids=["numbers", "symbol theta", "symbol d", "symbol alpha", "sum"],
)
def test_a_number_beside_a_symbol_is_an_angle_with_a_name(mech: lw.Mechanism) -> None:
    eq = lw.equations(mech)
    assert [x for n, x in eq.parameters.items() if n not in mech.parameters] == [pytest.approx(TWIST)]
    assert longest(eq) < 10
    agrees(eq, mech)


@pytest.mark.parametrize("mech", [arm(math.pi / 6), arm(math.pi / 6, "th0", th0=0.4), arm(math.pi / 6, d="d2", d2=0.2)])
def test_a_shift_along_a_tilted_axis_is_exact(mech: lw.Mechanism) -> None:
    eq = lw.equations(mech)
    assert longest(eq) < 10
    agrees(eq, mech)


def test_lengths_that_are_named_on_a_tilted_axis_keep_its_angle() -> None:
    mech = arm(TWIST)
    eq = lw.equations(mech, literal=["lengths"])
    assert {"a2", "a3", "d2", "d3", "alpha2"} <= eq.parameters.keys()
    assert longest(eq) < 10
    agrees(eq, mech)


def test_rounded_cosines_are_rounded_beside_symbols_too() -> None:
    eq = lw.equations(arm(TWIST, "th0", th0=0.4), round_angles=2)
    assert eq.parameters.keys() == {"th0"}
    assert longest(eq) < 15


@pytest.mark.parametrize("al", [math.pi / 2, math.pi / 3, TWIST])
def test_a_folded_angle_is_as_a_number(al: float) -> None:
    mech = arm("al", "th0", al=al, th0=0.4)
    eq = lw.equations(mech, numbers=["al"])
    assert not eq.derivation.dynamics.ring.opaque
    assert len(eq.parameters) == (2 if al == TWIST else 1)
    assert longest(eq) < 10
    agrees(eq, mech)


def test_folded_numbers_are_multiplied_exactly() -> None:
    with lw.Builder("one") as b:
        a, c = b.parameter("a", 0.1), b.parameter("c", 0.7)
        b.joint("revolute", b.ground, b.body("body", a * c * 3.0))
    (link,) = (x for x in model_of(b.build().description, numbers=["a", "c"]).links if x.body)
    assert link.body is not None
    assert link.body.mass.terms[0].number == Fraction(21, 100)


# -- multiples and sums of parameters -------------------------------------------------------------------------------
def difference(a: Expression, b: Expression) -> Any:
    """What is left of a − b in a ring."""
    formula = from_expression(a - b)
    return Ring((), (), [formula]).poly(formula)


C, S = (lambda e, f=f: Call(f, (e,)) for f in ("cos", "sin"))
B = Name("b")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (C(-AL), C(AL)),
        (S(-AL), -S(AL)),
        (C(2.0 * AL), 2.0 * C(AL) * C(AL) - 1.0),
        (S(3.0 * AL), 3.0 * S(AL) - 4.0 * S(AL) * S(AL) * S(AL)),
        (C(AL), 1.0 - 2.0 * S(AL / 2.0) * S(AL / 2.0)),
        (C(AL / 3.0), 1.0 - 2.0 * S(AL * (Number(1.0) / Number(6.0))) * S(AL / 6.0)),
        (C(AL + B), C(AL) * C(B) - S(AL) * S(B)),
        (S(AL - 2.0 * B), S(AL) * C(2.0 * B) - C(AL) * S(2.0 * B)),
        (C(AL + math.pi / 2), -S(AL)),
    ],
    ids=str,
)
def test_equal_functions_of_parameters_are_equal_polynomials(a: Expression, b: Expression) -> None:
    assert difference(a, b) == 0
    given = {"al": 0.3, "b": 0.8}
    assert evaluate(from_expression(a), given) == pytest.approx(a.evaluate(given), rel=1e-14)


def test_large_multiples_of_a_parameter_stay_angles_of_their_own() -> None:
    e = C(100.0 * AL) + C(AL)
    factors = {f for term in from_expression(e) for f, _ in term.factors}
    assert {f.angle[0][1] for f in factors if isinstance(f, Trig)} == {1, 100}
    assert evaluate(from_expression(e), {"al": 0.3}) == pytest.approx(e.evaluate({"al": 0.3}))


def test_twists_of_opposite_sign_share_one_pair_of_symbols() -> None:
    rows = [
        {"a": 0.1, "alpha": x, "d": 0.2, "theta": 0.0, "mass": 1.0, "com": (0.1, 0.2, 0.3)} for x in (AL, -AL, 2.0 * AL)
    ]
    mech = lw.from_dh(rows, convention="modified", parameters={"al": 0.7})
    eq = lw.equations(mech)
    ring = eq.derivation.dynamics.ring
    assert len(ring.angles) - ring.moving == 1
    agrees(eq, mech)


# -- bounds ---------------------------------------------------------------------------------------------------------
def weighing(mass: Any, **parameters: float) -> lw.Mechanism:
    with lw.Builder("one") as b:
        for name, value in parameters.items():
            b.parameter(name, value)
        b.joint("revolute", b.ground, b.body("body", mass, (0.1, 0.2, 0.3)), axis=(0, 1, 0))
    return b.build()


def test_powers_that_would_be_long_stay_functions() -> None:
    letters = "abcdef"
    total: Any = Name("a")
    for letter in letters[1:]:
        total = total + Name(letter)
    given = {letter: 0.1 + 0.01 * k for k, letter in enumerate(letters)}
    for mass in (
        total**64,
        ((total**4) ** 4) ** 4,
        (total**5) * (total**5) * (total**5) * (total**5),
        (9.7 * total) ** 64,
    ):
        mech = weighing(mass, **given)
        eq = lw.equations(mech)
        assert len(eq.polynomial("M", 0, 0)) < 2000
        assert eq.evaluate([0.3], [0.4])[0] == pytest.approx(mech.mass_matrix([0.3]), rel=1e-10)


def test_short_powers_are_multiplied_out() -> None:
    eq = lw.equations(weighing((Name("a") + Name("b")) ** 3, a=0.3, b=0.4))
    assert not eq.derivation.dynamics.ring.opaque
    assert len(eq.polynomial("M", 0, 0)) == 4


def test_functions_that_are_nested_too_deeply_are_refused_by_a_sentence() -> None:
    e: Any = Name("a")
    for _ in range(100):
        e = Call("tanh", (e,)) + 1.0
    with pytest.raises(ModelError, match="functions and products one inside the other"):
        lw.equations(weighing(e, a=0.3))


def test_long_sums_are_no_deep_nesting() -> None:
    e: Any = Name("a")
    for _ in range(200):
        e = e + Name("a")
    eq = lw.equations(weighing(e, a=0.3))
    assert len(eq.polynomial("M", 0, 0)) == 1
    assert "a" in eq.python()


# -- followers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
def test_a_follower_of_ratio_zero_stands_still(kind: str) -> None:
    with lw.Builder("gear") as b:
        first, second = (b.body(f"b{k}", 1.0, (0.1, 0.2, 0.3), (0.2, 0.2, 0.2)) for k in (1, 2))
        b.joint("revolute", b.ground, first, "a", axis=(1, 0, 0))
        b.joint(kind, first, second, "c", axis=(0, 1, 0), at=(0.1, 0.2, 0.3), pitch=0.2, armature=0.3, damping=0.4)
        b.mimic("c", "a", 0.0, 0.3)
    mech = b.build()
    m, h, g = lw.equations(mech).evaluate([0.3], [0.4])
    assert m == pytest.approx(mech.mass_matrix([0.3]), rel=1e-12)
    assert h + g == pytest.approx(mech.inverse_dynamics([0.3], [0.4], [0.0]), rel=1e-12)


# -- options --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"literal": None}, ModelError, "literal=None; give one of named, inertial, all"),
        ({"literal": 3}, ModelError, "literal=3; give one of"),
        ({"numbers": "al"}, ModelError, r"numbers='al'; give a list of parameters, such as \['m1'\], or 'all'"),
        ({"numbers": None}, ModelError, "numbers=None; give a list of parameters"),
        ({"numbers": [3]}, NameNotFound, "no parameter named '3'"),
        ({"coordinates": None}, ModelError, "coordinates=None; give the letters"),
    ],
)
def test_options_of_a_wrong_type_get_a_sentence(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        lw.equations(arm("al", al=0.3), **options)
