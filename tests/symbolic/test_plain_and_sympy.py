"""Formulas as plain text read as people write them; as SymPy they are what SymPy itself would build."""

import random
from fractions import Fraction
from pathlib import Path

import formulas
import pytest
import sympy
from formulas import cos, l2, lg2, lg3, m2, m3, sin, term
from hypothesis import given, settings

import linkwright as lw
from linkwright.symbolic.formulas.formula import Applied, Block, Root, Sum, Symbol, Term, Trig, evaluate
from linkwright.symbolic.printing import text
from linkwright.symbolic.printing.printed_sheet import Split, split
from linkwright.symbolic.printing.sympy_out import to_sympy, to_sympy_block

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
few = settings(max_examples=25, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (Sum(), "0"),
        (Sum((term(Fraction(-3, 2)),)), "-3/2"),
        (
            Sum((term(Fraction(1, 2), (lg2, 2), m2, cos(0, 2, 0)), term(1, l2, lg3, m3, cos(0, 2, 1)))),
            "1/2*lg2^2*m2*cos(2*theta2) + l2*lg3*m3*cos(2*theta2 + theta3)",
        ),
        (Sum((term(-1, m3, sin(0, 2, 2)), term(-2, m2))), "-m3*sin(2*(theta2 + theta3)) - 2*m2"),
        (Sum((term(1, cos(1, -1, 0)),)), "cos(theta1 - theta2)"),
        (Sum((term(Fraction(1, 2), cos(Fraction(1, 2), Fraction(1, 2), 0)),)), "1/2*cos(1/2*(theta1 + theta2))"),
        (Sum((term(1, m2, (l2, -1)), term(1, (m3, -2), (l2, -1)))), "m2/l2 + 1/(m3^2*l2)"),
        (Sum((term(Fraction(1, 2), Root(3), (Sum((term(1, m2), term(-1, m3))), 2)),)), "1/2*sqrt(3)*(m2 - m3)^2"),
        (Sum((term(Fraction(12345, 10000), m2),)), "1.2345*m2"),
        (Sum((term(1, Applied("tanh", (Sum((term(100, m2),)),))),)), "tanh(100*m2)"),
        (Sum((term(2, (Applied("div", (Sum((term(2, m2),)), Sum((term(1, m3),)))), 2)),)), "2*((2*m2)/m3)^2"),
    ],
)
def test_plain_text_reads_as_people_write(formula: Sum, written: str) -> None:
    assert text(formula) == written


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("1/2", "1/2"),
        ("9/4", "9/4"),
        ("1/3", "1/3"),
        ("5/24", "5/24"),
        ("1/5", "0.2"),
        ("1/10", "0.1"),
        ("1/20", "0.05"),
        ("69/100", "0.69"),
        ("1/32", "0.03125"),
        ("8/75", "8/75"),
        ("1/7", "1/7"),
        ("1001/2", "500.5"),
        ("3", "3"),
        ("1001/1003", "0.9980059820538385"),
    ],
)
def test_usual_fractions_stay_and_what_ends_in_decimals_is_decimal(number: str, written: str) -> None:
    assert text(Sum((term(Fraction(number)),))) == written


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("theta1", Split("θ", "1")),
        ("θ1", Split("θ", "1")),
        ("m1", Split("m", "1")),
        ("lg2", Split("l", "g2")),
        ("Ixx1", Split("I", "xx1")),
        ("g", Split("g")),
        ("l_hip", Split("l", "hip")),
        ("theta_hip", Split("θ", "hip")),
        ("pin3", Split("pin", "3")),
        ("crank_length2", Split("crank_length", "2")),
        ("length", Split("length")),
        ("7", Split("7")),
    ],
)
def test_names_split_into_letter_and_subscript(name: str, parts: Split) -> None:
    assert split(name) == parts


@few
@given(formulas.formulas, formulas.values)
def test_sympy_computes_the_formulas(formula: Sum, at: dict[str, float]) -> None:
    # `lambdify` takes a symbol named sin for the function.
    plain = {sympy.Symbol(name): sympy.Symbol(f"v{k}") for k, name in enumerate(at)}
    value = sympy.lambdify(list(plain.values()), to_sympy(formula).xreplace(plain), "math")(*at.values())
    assert abs(value - evaluate(formula, at)) <= 1e-12 * formulas.magnitude(formula, at)


def long_sum(count: int, factors: list) -> Sum:
    chance = random.Random(count)
    terms = []
    for _ in range(count):
        chosen = chance.sample(factors, chance.randint(0, 6))
        number = Fraction(chance.choice([1, 1, -1, 2, -3, 4]), chance.choice([1, 1, 2, 3, 8]))
        terms.append(Term(number, tuple((f, chance.choice([1, 1, 1, 2, 3, -1])) for f in chosen)))
    return Sum(tuple(terms))


def rebuilt(formula: Sum) -> sympy.Expr:
    """By SymPy's own arithmetic alone."""

    def one(factor):
        if isinstance(factor, Symbol):
            return sympy.Symbol(factor.name)
        if isinstance(factor, Trig):
            angle = sum(sympy.Rational(n.numerator, n.denominator) * sympy.Symbol(s.name) for s, n in factor.angle)
            return getattr(sympy, factor.function)(angle)
        return sympy.sqrt(factor.of) if isinstance(factor, Root) else rebuilt(factor)

    return sympy.Add(
        *(
            sympy.Mul(sympy.Rational(t.number.numerator, t.number.denominator), *(one(f) ** n for f, n in t.factors))
            for t in formula
        )
    )


SYMBOLS = [Symbol(f"{letter}{i}") for letter in ("m", "Ixx", "z", "dq") for i in (1, 2, 10)]
ANGLES = [((Symbol("q1"), Fraction(n)), (Symbol("q2"), Fraction(k))) for n, k in [(1, 1), (2, -1)]]
TURNS = [Trig(function, angle) for function in ("cos", "sin") for angle in ANGLES]
OTHERS = [Root(2), Root(3), Root(12), Trig("sin", ((Symbol("q3"), Fraction(-1)),)), Sum((term(1, m2), term(2, m3)))]


@pytest.mark.parametrize("factors", [SYMBOLS + TURNS, SYMBOLS + TURNS + OTHERS], ids=["plain", "rewritten"])
@pytest.mark.parametrize("count", [1, 7, 60, 300])
def test_long_sums_are_the_very_expressions_that_sympy_builds(count: int, factors: list) -> None:
    formula = long_sum(count, factors)
    made, wanted = to_sympy(formula), rebuilt(formula)
    assert made == wanted
    assert made.args == wanted.args
    assert hash(made) == hash(wanted)


@pytest.mark.parametrize("arm", ["puma560.dh.toml", "three_link.dh.toml"])
def test_equations_are_the_very_expressions_that_sympy_builds(arm: str) -> None:
    eq = lw.equations(lw.load(MODELS / arm), form="expanded")
    for name in ("h", "g"):
        entries = eq.block(name).entries
        k = min((k for k, x in enumerate(entries) if len(x.terms) > 7), key=lambda k: len(entries[k].terms), default=0)
        made, wanted = eq.sympy(name)[k], rebuilt(Sum(entries[k].terms))
        assert made == wanted
        assert made.args == wanted.args
        assert hash(made) == hash(wanted)
        assert [len(x.args) for x in eq.sympy(name)] == [len(x.args) for x in to_sympy_block(eq.block(name))]


def test_sums_of_one_block_share_their_powers_and_stay_what_sympy_builds() -> None:
    powers = [(f, n) for f in SYMBOLS + TURNS for n in (1, 2)]
    chance, sums = random.Random(5), []
    for _ in range(4):
        chosen = [chance.sample(powers, 5) for _ in range(40)]
        sums.append(Sum(tuple(Term(Fraction(chance.randint(1, 4), 3), tuple(x)) for x in chosen)))
    for made, formula in zip(to_sympy_block(Block("h", (4,), tuple(sums))), sums, strict=True):
        assert made.args == rebuilt(formula).args


def test_a_sum_compares_equal_to_what_a_person_types() -> None:
    m22 = formulas.arm().blocks[0].entries[4]
    assert to_sympy(m22) == sympy.sympify("lg2**2*m2 + lg3**2*m3 + l2**2*m3 + 2*l2*lg3*m3*cos(theta3)")


def test_blocks_become_matrices_columns_or_expressions() -> None:
    mass, h, *_ = formulas.arm().blocks
    made = to_sympy_block(mass)
    assert made.shape == (3, 3)
    assert made == made.T
    assert to_sympy_block(h).shape == (3, 1)
    assert to_sympy_block(Block("T", (), (Sum(),))) == 0
