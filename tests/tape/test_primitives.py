"""The derivative of every primitive: by complex steps where it is analytic, by differences elsewhere."""

import numpy as np
import pytest
from tape_oracles import evaluate

from linkwright.tape import block as F
from linkwright.tape import operations as O
from linkwright.tape.block import Block, Recorder, finish
from linkwright.tape.build import ProgramBuilder, record
from linkwright.tape.operations import Table
from linkwright.tape.program import Each

SPLINE = Table.spline([-1.0, -0.2, 0.4, 1.5], [0.3, -0.7, 1.1, 0.2])

# For each primitive: its value in NumPy (over complex numbers, where it is analytic) and points of its operands.
ANALYTIC = {
    O.NEG: (lambda x: -x, [(0.3,), (-1.2,)]),
    O.ADD: (lambda x, y: x + y, [(0.3, -2.0)]),
    O.SUB: (lambda x, y: x - y, [(0.3, -2.0)]),
    O.MUL: (lambda x, y: x * y, [(0.3, -2.0), (0.0, 1.5)]),
    O.DIV: (lambda x, y: x / y, [(0.3, -2.0), (0.0, 1.5)]),
    O.SQRT: (np.sqrt, [(0.3,), (25.0,)]),
    O.SIN: (np.sin, [(0.3,), (-40.0,)]),
    O.COS: (np.cos, [(0.3,), (-40.0,)]),
    O.TAN: (np.tan, [(0.3,), (-1.2,)]),
    O.ATAN2: (lambda y, x: np.arctan(y / x), [(0.3, 0.8), (-1.5, -0.2), (2.0, -0.4)]),
    O.EXP: (np.exp, [(0.3,), (-3.0,)]),
    O.LOG: (np.log, [(0.3,), (30.0,)]),
    O.POW: (lambda x, y: x**y, [(0.3, 2.7), (2.0, -1.5), (1.3, 0.0)]),
}
CORNERED = {
    O.ABS: (np.abs, [(0.3,), (-0.7,)]),
    O.SIGN: (np.sign, [(0.3,), (-0.7,)]),
    O.MIN: (np.minimum, [(0.3, -2.0), (-0.1, 0.2)]),
    O.MAX: (np.maximum, [(0.3, -2.0), (-0.1, 0.2)]),
    O.WHERE: (lambda c, x, y: np.where(c != 0, x, y), [(1.0, 0.3, -2.0), (-0.5, 0.3, -2.0)]),
    O.FLOOR: (np.floor, [(0.3,), (-1.7,)]),
    O.TABLE: (SPLINE, [(-2.0,), (-0.5,), (0.0,), (0.9,), (3.0,)]),
    O.LT: (lambda x, y: np.float64(x < y), [(0.3, -2.0), (-0.1, 0.2)]),
    O.LE: (lambda x, y: np.float64(x <= y), [(0.3, -2.0), (-0.1, 0.2)]),
    O.EQ: (lambda x, y: np.float64(x == y), [(0.3, -2.0)]),
}


def primitive(op: int):
    """A program of the one operation."""
    recorder = Recorder()
    arity = O.OPERATIONS[op].arity
    x = [recorder.input(k) for k in range(arity)]
    block = Block(
        np.zeros(0), arity, np.array([op], np.uint8), np.arange(3)[None] % arity, np.array([arity]), (SPLINE,)
    )
    if op == O.TABLE:
        block = finish(recorder, 1, [x[0].table(SPLINE)])
    b = ProgramBuilder(O.OPERATIONS[op].name)
    given, result = b.input("x", (arity,)), b.output("y", (1,))
    b.add(Each(1, (b.case(block, [given], [result]),)))
    return b.build(single=True)


def named(op: int) -> str:
    return O.OPERATIONS[op].name


def slopes(program, x) -> tuple[np.ndarray, np.ndarray]:
    """The gradient by forward and by reverse accumulation."""
    forward, reverse = program.forward(), program.reverse()
    columns = [evaluate(forward, x, e)[1][0] for e in np.eye(len(x))]
    return np.array(columns), evaluate(reverse, x, np.ones(1))[1]


def test_every_primitive_is_covered():
    assert set(ANALYTIC) | set(CORNERED) == set(range(len(O.OPERATIONS)))


@pytest.mark.parametrize("op", ANALYTIC, ids=named)
def test_an_analytic_primitive_has_the_slope_of_a_complex_step(op):
    function, points = ANALYTIC[op]
    for x in map(np.array, points):
        wanted = [np.imag(function(*(x + 1e-30j * e))) / 1e-30 for e in np.eye(len(x))]
        for found in slopes(primitive(op), x):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("op", CORNERED, ids=named)
def test_a_primitive_with_corners_has_the_slope_of_finite_differences(op):
    function, points = CORNERED[op]
    for x in map(np.array, points):
        wanted = [(function(*(x + 1e-6 * e)) - function(*(x - 1e-6 * e))) / 2e-6 for e in np.eye(len(x))]
        for found in slopes(primitive(op), x):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("op", [*ANALYTIC, *CORNERED], ids=named)
def test_a_primitive_has_the_curvature_of_its_slope_s_differences(op):
    _, points = {**ANALYTIC, **CORNERED}[op]
    program = primitive(op)
    curvature = program.hessian()
    for x in map(np.array, points):
        steps = 1e-6 * np.eye(len(x))
        wanted = [(slopes(program, x + h)[0] - slopes(program, x - h)[0]) / 2e-6 for h in steps]
        np.testing.assert_allclose(curvature(x), wanted, rtol=1e-6, atol=1e-6)


# -- powers ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("base", "exponent", "by_base", "by_exponent"),
    [
        (0.0, 2.5, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (-2.0, 3.0, 12.0, 0.0),
        (-2.0, 0.0, 0.0, 0.0),
    ],
)
def test_a_power_has_finite_slopes_where_its_base_is_not_positive(base, exponent, by_base, by_exponent):
    for found in slopes(primitive(O.POW), np.array([base, exponent])):
        np.testing.assert_array_equal(found, [by_base, by_exponent])


def test_a_power_with_a_constant_exponent_has_no_logarithm():
    assert "log" not in record(lambda x: x**2.7, ()).forward().count()


# -- the branch not taken -----------------------------------------------------------------------------------------
BRANCHES = {
    "root": (lambda x: F.where(x[0] > 0.0, np.sqrt(x[0]), 0.0), [0.0, 0.0]),
    "logarithm in a product": (lambda x: F.where(x[0] > 0.0, np.log(x[0]) * x[1], x[1]), [0.0, 1.0]),
    "quotient": (lambda x: F.where(x[0] == 0.0, 1.0 + x[1], np.sin(x[0]) / x[0]), [0.0, 1.0]),
    "two branches of one root": (
        lambda x: F.where(x[0] > 0.0, np.sqrt(x[0]), 0.0) + F.where(x[0] > 1.0, 2.0 * np.sqrt(x[0]), x[1]),
        [0.0, 1.0],
    ),
    "nested": (lambda x: F.where(x[1] > 5.0, F.where(x[0] > 0.0, 1.0 / x[0], x[0]), 3.0 * x[1]), [0.0, 3.0]),
    "smaller of two": (lambda x: F.minimum(np.sqrt(x[0]), x[1] - 1.0), [0.0, 1.0]),
    "larger of two": (lambda x: F.maximum(-np.sqrt(x[0]), x[1] + 1.0), [0.0, 1.0]),
}


@pytest.mark.parametrize("case", BRANCHES)
def test_the_slope_of_a_branch_not_taken_may_be_infinite(case):
    function, wanted = BRANCHES[case]
    program = record(function, 2)
    x = np.zeros(2)
    reverse = evaluate(program.reverse(), x, np.ones(()))[1]
    forward = [float(evaluate(program.forward(), x, e)[1]) for e in np.eye(2)]
    np.testing.assert_array_equal(reverse, wanted)
    np.testing.assert_array_equal(forward, wanted)
    np.testing.assert_array_equal(program.jacobian()(x)[0], wanted)
    assert np.all(np.isfinite(program.hessian()(x)))


def test_a_chain_of_choices_has_a_reverse_of_linear_size():
    def chain(n):
        def f(x):
            for k in range(n):
                x = F.where(x > 0.1 * k, np.sin(x) + k, np.exp(-x))
            return x

        return sum(record(f, ()).reverse().count().values())

    assert chain(40) - chain(20) == 2 * (chain(20) - chain(10))


def test_at_a_tie_of_min_and_max_the_slopes_still_sum_to_one():
    for op in (O.MIN, O.MAX):
        for found in slopes(primitive(op), np.array([0.7, 0.7])):
            assert found.sum() == 1.0
