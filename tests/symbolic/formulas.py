"""Formulas for the printers' tests: the arm of Sun and Okubo's table 1 by hand, and random ones."""

import math
from fractions import Fraction

from hypothesis import strategies as st

from linkwright.symbolic.formulas.formula import Applied, Block, Root, Sum, Symbol, Term, Trig, evaluate
from linkwright.symbolic.printing import Sheet

half = Fraction(1, 2)
q = tuple(Symbol(f"theta{i}", "coordinate") for i in (1, 2, 3))
dq = tuple(Symbol(f"dtheta{i}", "rate", f"theta{i}") for i in (1, 2, 3))
ddq = tuple(Symbol(f"ddtheta{i}", "acceleration", f"theta{i}") for i in (1, 2, 3))
m2, m3, l2, lg2, lg3, g = map(Symbol, ("m2", "m3", "l2", "lg2", "lg3", "g"))


def term(number, *factors) -> Term:
    """A term from factors, or pairs of a factor and its power."""
    return Term(Fraction(number), tuple(f if isinstance(f, tuple) else (f, 1) for f in factors))


def cos(*multiples) -> Trig:
    return Trig("cos", tuple((s, Fraction(n)) for s, n in zip(q, multiples, strict=True) if n))


def sin(*multiples) -> Trig:
    return Trig("sin", tuple((s, Fraction(n)) for s, n in zip(q, multiples, strict=True) if n))


def arm() -> Sheet:
    """The three-link arm, collected in multiple angles as the paper prints it."""
    coupling = term(1, l2, lg3, m3, cos(0, 0, 1))
    m11 = Sum(
        (
            term(half, (lg2, 2), m2),
            term(half, (lg3, 2), m3),
            term(half, (lg2, 2), m2, cos(0, 2, 0)),
            term(1, (l2, 2), Sum((term(half, m3), term(half, m3, cos(0, 2, 0))))),
            term(half, (lg3, 2), m3, cos(0, 2, 2)),
            term(1, l2, Sum((term(1, lg3, m3, cos(0, 0, 1)), term(1, lg3, m3, cos(0, 2, 1))))),
        )
    )
    m22 = Sum((term(1, (lg2, 2), m2), term(1, (lg3, 2), m3), term(1, (l2, 2), m3), term(2, l2, lg3, m3, cos(0, 0, 1))))
    m23 = Sum((term(1, (lg3, 2), m3), coupling))
    m33 = Sum((term(1, (lg3, 2), m3),))
    zero = Sum()
    mass = Block("M", (3, 3), (m11, zero, zero, zero, m22, m23, zero, m23, m33), symmetric=True)
    swing = Sum(
        (
            term(half, (lg2, 2), m2, sin(0, 2, 0)),
            term(half, (l2, 2), m3, sin(0, 2, 0)),
            term(half, (lg3, 2), m3, sin(0, 2, 2)),
            term(1, l2, lg3, m3, sin(0, 2, 1)),
        )
    )
    h1 = Sum(
        (
            term(-2, dq[0], dq[1], swing),
            term(-1, dq[0], dq[2], lg3, m3, Sum((term(1, lg3, sin(0, 2, 2)), term(1, l2, sin(0, 0, 1))))),
            term(-1, dq[0], dq[2], l2, lg3, m3, sin(0, 2, 1)),
        )
    )
    h2 = Sum(
        (
            term(-2, dq[1], dq[2], l2, lg3, m3, sin(0, 0, 1)),
            term(-1, (dq[2], 2), l2, lg3, m3, sin(0, 0, 1)),
            term(1, (dq[0], 2), swing),
        )
    )
    h3 = Sum(
        (
            term(half, (dq[0], 2), (lg3, 2), m3, sin(0, 2, 2)),
            term(half, (dq[0], 2), l2, lg3, m3, sin(0, 0, 1)),
            term(half, (dq[0], 2), l2, lg3, m3, sin(0, 2, 1)),
            term(1, (dq[1], 2), l2, lg3, m3, sin(0, 0, 1)),
        )
    )
    g2 = Sum(
        (
            term(1, g, lg2, m2, cos(0, 1, 0)),
            term(1, g, lg3, m3, cos(0, 1, 1)),
            term(1, g, l2, m3, cos(0, 1, 0)),
        )
    )
    g3 = Sum((term(1, g, lg3, m3, cos(0, 1, 1)),))
    friction = tuple(
        Sum(
            (
                term(1, Symbol(f"V{i}"), dq[i - 1]),
                term(1, Symbol(f"f{i}"), Applied("tanh", (Sum((term(100, dq[i - 1]),)),))),
            )
        )
        for i in (1, 2, 3)
    )
    values = {"m2": 2.0, "m3": 1.5, "l2": 0.4, "lg2": 0.2, "lg3": 0.15, "g": 9.81, "V1": 0.1, "V2": None}
    return Sheet(
        "Three-link arm",
        "collected",
        (mass, Block("h", (3,), (h1, h2, h3)), Block("g", (3,), (zero, g2, g3)), Block("friction", (3,), friction)),
        q,
        dq,
        ddq,
        {**values, "V3": 0.1, "f1": 0.5, "f2": 0.5, "f3": 0.25},
        meanings={"m2": "mass of link 2", "g": "gravity"},
        notes=("Point masses at the centres of the links.",),
    )


# -- random formulas ------------------------------------------------------------------------------------------------
#: Names that a language might refuse, take for something else, or make the same.
WORDS = "m1 lambda double sin cos M M11 p q out θ1 theta1_ φ x x_2 int y1 math crank_length é part_ for I"
AWKWARD = WORDS.split()
coordinates = (Symbol("q1", "coordinate"), Symbol("θ2", "coordinate"))
rates = (Symbol("dq1", "rate", "q1"), Symbol("dθ2", "rate", "θ2"))
parameters = tuple(map(Symbol, AWKWARD))
ALL = (*coordinates, *rates, *parameters)

symbols = st.sampled_from(ALL)
fractions = st.fractions(-5, 5, max_denominator=12).filter(bool)
angles = st.lists(st.tuples(st.sampled_from((*coordinates, parameters[0])), fractions), min_size=1, max_size=3)
trigs = st.builds(
    Trig, st.sampled_from(["cos", "sin"]), angles.map(lambda a: tuple({s.name: (s, n) for s, n in a}.values()))
)
roots = st.builds(Root, st.sampled_from([2, 3, 5, 6]))


def sums(factors, max_size: int = 4):
    pair = st.tuples(factors, st.integers(1, 4))
    terms = st.builds(Term, fractions, st.lists(pair, max_size=4).map(tuple))
    return st.lists(terms, max_size=max_size).map(lambda t: Sum(tuple(t)))


plain_factors = st.one_of(symbols, trigs, roots)
inner = sums(plain_factors, 3)
# Continuous, and no steeper than their arguments: others are compared at chosen points.
safe = st.sampled_from(["tanh", "atan", "abs", "neg"])
pairs = st.sampled_from(["add", "sub", "mul", "min", "max"])
applied = st.one_of(
    st.builds(lambda f, a: Applied(f, (a,)), safe, inner),
    st.builds(lambda f, a, b: Applied(f, (a, b)), pairs, inner, inner),
)
factors = st.one_of(plain_factors, inner.filter(bool), applied)
# Only what cannot be zero stands below a fraction's line.
below = st.tuples(st.sampled_from([*parameters, Root(3)]), st.integers(-3, -1))


def _divided(formula, over):
    return Sum(tuple(Term(t.number, (*t.factors, *o)) for t, o in zip(formula, over, strict=False)))


formulas = st.builds(_divided, sums(factors), st.lists(st.lists(below, max_size=2), min_size=4, max_size=4))
blocks = st.lists(formulas, min_size=2, max_size=2).map(
    lambda e: Block("M", (2, 2), (e[0], e[1], e[1], e[0]), symmetric=True)
)
values = st.fixed_dictionaries({s.name: st.floats(0.3, 2.0) for s in ALL})


def magnitude(formula: Sum, at: dict[str, float]) -> float:
    """How large a formula would be if nothing in it cancelled: what rounding errors are measured by."""
    total = 1.0
    for one in formula:
        product = abs(float(one.number))
        for factor, power in one.factors:
            if isinstance(factor, Sum):
                size = magnitude(factor, at)
            elif isinstance(factor, Applied):
                parts = [magnitude(a, at) for a in factor.arguments]
                size = math.prod(parts) if factor.function == "mul" else 1.0 + sum(parts)
            else:
                size = abs(evaluate(Sum((Term(Fraction(1), ((factor, 1),)),)), at)) if power < 0 else 2.0
                size = max(size, at[factor.name]) if isinstance(factor, Symbol) and power > 0 else size
            product *= size**power
        total += product
    return total


def sheet(*found: Block) -> Sheet:
    return Sheet("Random θ equations", "random", found, coordinates, rates, (), {s.name: 1.0 for s in parameters})
