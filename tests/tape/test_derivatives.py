"""Derivatives of whole tapes: straight ones against CasADi on random graphs, statements against CasADi as well."""

import numpy as np
import pytest
import tape_programs as programs
from hypothesis import given, settings
from hypothesis import strategies as st
from tape_oracles import (
    by_casadi,
    by_forward,
    by_reverse,
    casadi_function,
    close,
    differences,
    evaluate,
    flat,
    poisoned,
    split,
    state,
)

from linkwright.errors import RecordingError
from linkwright.tape import block as F
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.operations import Table
from linkwright.tape.program import ITEM, Buffer, Copy, Each, Operand, Program, Solve, Zero
from linkwright.tape.program_checks import validate

ca = pytest.importorskip("casadi", reason="CasADi is the oracle: pip install casadi")

SPLINE = Table.spline([-1.0, -0.2, 0.4, 1.5], [0.3, -0.7, 1.1, 0.2])

# Steps of random graphs: bounded slopes, so that relative errors mean something, and every primitive among them.
STEPS = [
    lambda a, b: a + b,
    lambda a, b: a - 0.7 * b,
    lambda a, b: a * b * 0.5,
    lambda a, b: a / (1.5 + b * b),
    lambda a, b: np.sqrt(1.0 + a * a),
    lambda a, b: np.sin(a) - b,
    lambda a, b: np.cos(a) * b,
    lambda a, b: np.tan(0.3 * np.sin(a)),
    lambda a, b: np.arctan2(a, 1.0 + b * b),
    lambda a, b: np.exp(-a * a) + b,
    lambda a, b: np.log(1.0 + a * a),
    lambda a, b: (1.0 + a * a) ** (0.3 * np.sin(b)),
    lambda a, b: abs(a) - b,
    lambda a, b: F.sign(a) * b,
    lambda a, b: F.minimum(a, b) + 0.1 * a,
    lambda a, b: F.maximum(a, -b),
    lambda a, b: F.where(a < b, np.sin(a), a * b),
    lambda a, b: F.where(a <= 0.3, b, np.cos(b)),
    lambda a, b: F.where(a == b, a, -a),
    lambda a, b: a - F.floor(a) * 0.5,
    lambda a, b: F.table(np.sin(a), SPLINE) + b,
    lambda a, b: -np.tanh(a) + b**3 * 0.1,
]


def random_program(seed: int, inputs: int = 5, steps: int = 25, outputs: int = 4):
    """A graph of random steps over a vector and a parameter."""

    def f(x, p):
        rng = np.random.default_rng(seed)
        known = [*x, p, x[0] * p]
        for _ in range(steps):
            a, b = (known[k] for k in rng.integers(0, len(known), 2))
            known.append(np.sin(STEPS[rng.integers(len(STEPS))](a, b)) * 2.0)
        return np.array([known[k] for k in rng.integers(inputs, len(known), outputs)])

    return record(f, inputs, ())


def continued(program: Program, instead: dict[int, Buffer]) -> ProgramBuilder:
    """A builder that goes on where a program ends, with some of its buffers exchanged."""
    builder = ProgramBuilder.onto(program, "continued")
    builder.statements = list(program.statements)
    for k, buffer in instead.items():
        builder.buffers[k] = buffer
    return builder


seeds = st.integers(0, 2**32 - 1)


# -- straight tapes ---------------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_forward_accumulation_of_a_random_graph_agrees_with_casadi(seed):
    program = random_program(seed)
    x = state(program, seed)
    assert close(by_forward(program, x), by_casadi(program, x))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_reverse_accumulation_of_a_random_graph_agrees_with_casadi(seed):
    program = random_program(seed)
    x = state(program, seed)
    assert close(by_reverse(program, x), by_casadi(program, x))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_the_sparse_jacobian_of_a_random_graph_agrees_with_casadi(seed):
    program = random_program(seed)
    x = state(program, seed)
    jacobian = program.jacobian()
    dense = np.zeros(jacobian.shape)
    dense[jacobian.rows, jacobian.cols] = evaluate(jacobian.program, *x)[0]
    assert close(dense, by_casadi(program, x)[:, :5])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seeds)
def test_the_sparse_hessian_of_a_random_graph_agrees_with_casadi(seed):
    program = random_program(seed, steps=12, outputs=1)
    x = state(program, seed)
    f = casadi_function(program)
    symbol = ca.SX.sym("x", 6)
    wanted = np.array(ca.Function("H", [symbol], [ca.hessian(f(symbol), symbol)[0]])(flat(x)))
    hessian = program.hessian()
    dense = np.zeros(hessian.shape)
    dense[hessian.rows, hessian.cols] = evaluate(hessian.program, *x)[0]
    assert close(dense, wanted[:5, :5])


def test_jacobians_take_fewer_operations_than_casadi_s_on_a_chain_of_rotations():
    def f(q):
        point = np.array([1.0, 0.2, -0.4])
        for k in range(6):
            c, s = np.cos(q[k]), np.sin(q[k])
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            point = np.roll(turn @ point, k) + np.array([0.0, 0.0, 0.3])
        return point

    program = record(f, 6)
    q = np.linspace(0.1, 1.0, 6)
    jacobian = program.jacobian()
    assert close(jacobian(q), by_casadi(program, [q]))
    x = ca.SX.sym("x", 6)
    theirs = ca.Function("J", [x], [ca.jacobian(casadi_function(program)(x), x)])
    assert sum(jacobian.program.count().values()) <= theirs.n_nodes()


# -- sparsity -----------------------------------------------------------------------------------------------------
def test_the_pattern_of_a_jacobian_is_exactly_the_structure():
    jacobian = record(lambda x: np.array([x[0] * x[2], np.sin(x[1]), 3.0, F.floor(x[0]) + x[3]]), 4).jacobian()
    assert list(zip(jacobian.rows.tolist(), jacobian.cols.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 1), (3, 3)]
    assert jacobian.shape == (4, 4)
    assert jacobian.density == 0.25


def test_a_tall_jacobian_goes_forward_and_a_wide_one_in_reverse():
    tall = record(lambda x: np.array([np.sin(k * x[0]) * x[1] for k in range(30)]), 2)
    wide = record(lambda x: np.exp(x @ x), 30)
    assert sum(tall.jacobian().program.count().values()) <= 30 * 5
    assert sum(wide.jacobian().program.count().values()) <= 30 * 4


def test_a_jacobian_takes_batches_and_gives_a_scipy_matrix():
    program = record(lambda x, p: np.sin(x) * p, 3, ())
    jacobian = program.jacobian()
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    wanted = np.cos(x)[..., None] * np.eye(3) * 2.0
    np.testing.assert_allclose(jacobian(x, 2.0), wanted, atol=1e-15)
    one = jacobian.to_scipy(x[0, 0], 2.0)
    assert one.nnz == 3
    np.testing.assert_allclose(one.toarray(), wanted[0, 0], atol=1e-15)


def test_a_jacobian_by_another_input_and_of_another_output():
    program = record(lambda x, p: (x * p, np.array([p**3])), 3, ())
    np.testing.assert_allclose(program.jacobian(1, 1)(np.ones(3), 2.0), [[12.0]])
    np.testing.assert_allclose(program.jacobian(0, 1)([1.0, 2.0, 3.0], 2.0), [[1.0], [2.0], [3.0]])


def test_a_constant_has_an_empty_jacobian():
    jacobian = record(lambda x: np.array([1.0, 2.0]), 3).jacobian()
    assert jacobian.density == 0.0


def test_a_hessian_is_symmetric_to_the_last_bit_and_sparse():
    program = record(lambda x: np.sum(x[:-1] ** 2 * np.sin(x[1:])), 6)
    hessian = program.hessian()
    dense = hessian(np.linspace(-1.0, 1.0, 6))
    assert np.array_equal(dense, dense.T)
    assert len(hessian.rows) == 6 + 2 * 5


def test_the_hessian_of_a_vector_is_refused_with_its_shape():
    with pytest.raises(RecordingError, match=r"\(3,\)"):
        record(np.sin, 3).hessian()


def test_an_output_that_is_not_there_is_refused_by_number():
    with pytest.raises(RecordingError, match="no output number 2"):
        record(np.sin, 3).jacobian(2)


# -- statements -----------------------------------------------------------------------------------------------------
@pytest.fixture(params=programs.STATEMENTS)
def program(request):
    return programs.STATEMENTS[request.param]()


def test_casadi_and_differences_agree_on_the_program_itself(program):
    x = state(program)
    assert close(np.array(casadi_function(program)(flat(x))).ravel(), flat(evaluate(program, *x)))
    assert close(differences(program, x), by_casadi(program, x), 1e-7)


def test_a_statement_s_forward_accumulation_agrees_with_casadi(program):
    x = state(program)
    assert close(by_forward(program, x), by_casadi(program, x))


def test_a_statement_s_reverse_accumulation_agrees_with_casadi(program):
    x = state(program)
    assert close(by_reverse(program, x), by_casadi(program, x))


def test_derived_programs_stay_within_their_memory(program):
    for derived in (program.forward(), program.reverse(), program.reverse().forward(), program.forward().reverse()):
        validate(derived)


def test_derived_programs_read_nothing_that_they_did_not_write(program):
    x = state(program)
    rng = np.random.default_rng(1)
    for derived, extra in ((program.forward(), program.inputs), (program.reverse(), program.outputs)):
        given = [*x, *(rng.normal(size=b.shape) for b in extra)]
        assert close(flat(evaluate(poisoned(derived), *given)), flat(evaluate(derived, *given)))


def test_a_statement_s_jacobian_agrees_with_casadi_for_a_batch(program):
    states = [state(program, seed) for seed in range(3)]
    rows, columns = program.outputs[0].size, program.inputs[0].size
    wanted = np.stack([by_casadi(program, x)[:rows, :columns] for x in states])
    assert close(program.jacobian()(*(np.stack(parts) for parts in zip(*states, strict=True))), wanted)


def test_forward_over_reverse_is_symmetric(program):
    """The Hessian of w·outputs, as forward of reverse, a column a call."""
    x = state(program)
    rng = np.random.default_rng(5)
    bars = [rng.normal(size=b.shape) for b in program.outputs]
    twice = program.reverse().forward()
    outputs = len(program.outputs)
    still = [np.zeros(b.shape) for b in program.outputs]
    columns = []
    for e in np.eye(sum(b.size for b in program.inputs)):
        found = evaluate(twice, *x, *bars, *split(program, e), *still)
        columns.append(flat(found[-len(program.inputs) :]))
        assert len(found) == 2 * (outputs + len(program.inputs))
    hessian = np.stack(columns)
    assert close(hessian, hessian.T)
    f = casadi_function(program)
    s = ca.SX.sym("x", f.size1_in(0))
    wanted = ca.Function("H", [s], [ca.hessian(ca.dot(flat(bars), f(s)), s)[0]])(flat(x))
    assert close(hessian, np.array(wanted), 1e-9)


@pytest.mark.parametrize("name", ["outward", "inward", "shared operands", "walk", "ltl", "lu", "least norm"])
def test_compiled_derivatives_agree_with_the_reference(name):
    """Compiled programs start from memory that is not cleared: whatever is read must have been written."""
    program = programs.STATEMENTS[name]()
    x = [np.stack(parts) for parts in zip(*(state(program, seed) for seed in range(5)), strict=True)]
    rng = np.random.default_rng(1)
    for derived, extra in ((program.forward(), program.inputs), (program.reverse(), program.outputs)):
        given = [*x, *(rng.normal(size=(5, *b.shape)) for b in extra)]
        found = derived(*given)
        for k in range(5):
            wanted = evaluate(derived, *(a[k] for a in given))
            assert close(flat([y[k] for y in found]), flat(wanted), 1e-12)


def test_the_hessian_of_a_program_with_a_linear_system():
    b = continued(programs.solve("cholesky", right=1), {1: Buffer("solution", "temporary", (4,))})
    total = b.output("total", ())
    b.call(lambda y: y @ y, [Ref(Operand(1, 4), (4,))], [total])
    program = b.build()
    (x,) = state(program)
    f = casadi_function(program)
    s = ca.SX.sym("x", 6)
    wanted = np.array(ca.Function("H", [s], [ca.hessian(f(s), s)[0]])(x))
    assert close(program.hessian()(x), wanted, 1e-9)


def test_a_system_whose_matrix_changes_in_part_has_tangents_for_all_of_it():
    b = ProgramBuilder("part")
    x, y = b.input("x", (2,)), b.output("y", (2, 1))
    matrix, rhs, moved = b.temporary("matrix", (2, 2)), b.data("rhs", [[1.0], [2.0]]), b.temporary("moved", (2, 1))
    b.call(lambda: np.array([3.0, 0.5]), [], [matrix.part(0, (2,))])
    b.call(lambda x: np.array([x[0] * x[1], 2.0 + x[1]]), [x], [matrix.part(2, (2,))])
    b.add(Solve("lu", matrix.operand, rhs.operand, moved.operand, 2, 2, 1))
    b.add(Copy(moved.operand, y.operand))
    program = b.build()
    given = [np.array([0.4, 0.9])]
    forward = poisoned(program.forward())
    columns = [evaluate(forward, *given, e)[1] for e in np.eye(2)]
    assert close(np.hstack(columns), by_casadi(program, given))


def test_two_tables_stay_apart_when_an_operand_is_left_out():
    other = Table.spline([0.0, 1.0, 2.0], [1.0, -1.0, 3.0])
    b = ProgramBuilder("tables")
    x, unused, y = b.input("x", (2,)), b.input("unused", (3,)), b.output("y", (2,))
    inner = b.temporary("inner", (2,))
    b.call(lambda x, u: np.sin(x) + 0.0 * u[0], [x, unused], [inner])
    b.call(lambda u, z: np.array([F.table(z[0], SPLINE), F.table(z[1], other)]), [unused, inner], [y])
    program = b.build()
    x = state(program)
    assert close(by_forward(program, x), by_casadi(program, x))
    assert close(by_reverse(program, x), by_casadi(program, x))


# -- loops ----------------------------------------------------------------------------------------------------------
def test_forward_accumulation_goes_through_newton_s_loop():
    program = programs.kepler()
    given = np.array([0.8, 0.3])
    m, e = given
    x = np.arcsin(evaluate(program, given)[0])
    slope = np.cos(x) * np.array([1.0, np.sin(x)]) / (1.0 - e * np.cos(x))
    assert close(by_forward(program, [given])[0], slope)
    assert close(program.jacobian()(given)[0], slope)
    assert abs(x - e * np.sin(x) - m) < 1e-14


def test_reverse_accumulation_of_a_loop_is_refused_with_advice():
    with pytest.raises(RecordingError, match=r"use \.forward\(\)"):
        programs.kepler().reverse()


def test_a_loop_beside_the_derivative_is_only_run():
    loop = programs.kepler()
    data = np.array([0.8, 0.3])
    b = continued(loop, {0: Buffer("given", "data", (2,), data)})
    x, z = b.input("x", ()), b.output("z", ())
    b.call(lambda x, y: x * x * y, [x, Ref(Operand(1, 1), ())], [z])
    program = b.build()
    root = evaluate(loop, data)[0]
    bars = evaluate(program.reverse(), 3.0, 0.0, 1.0)
    assert close(bars[-1], 6.0 * root)


# -- what reverse accumulation asks of a program -----------------------------------------------------------------------
def test_a_number_written_twice_is_refused_by_name():
    b = ProgramBuilder("twice")
    x, y, z = b.input("x", ()), b.output("y", ()), b.temporary("work", ())
    b.call(np.sin, [x], [z])
    b.call(np.exp, [z], [y])
    b.call(np.cos, [x], [z])
    program = b.build()
    with pytest.raises(RecordingError, match="'work' is written again"):
        program.reverse()
    assert close(by_forward(program, [0.3]), by_casadi(program, [np.array(0.3)]))


def test_a_number_set_twice_is_refused_even_if_its_value_is_only_passed_on():
    b = ProgramBuilder("twice")
    x, y, z, work = b.input("x", ()), b.output("y", ()), b.output("z", ()), b.temporary("work", ())
    b.add(Copy(x.operand, work.operand))
    b.add(Copy(work.operand, y.operand))
    b.call(np.sin, [x], [work])
    b.add(Copy(work.operand, z.operand))
    with pytest.raises(RecordingError, match="'work' is written again"):
        b.build().reverse()


def test_a_number_read_before_all_is_added_is_refused():
    n = 3
    b = ProgramBuilder("early")
    x, y, total = b.input("x", (n,)), b.output("y", (n,)), b.temporary("total", ())
    b.add(Zero(total.operand))
    block, _, _ = trace(lambda x, t: (np.sin(t), x), [(), ()])
    gain = total.at(add=True)
    inputs = [x.part(0, ()).at((1, ITEM)), total]
    b.add(Each(n, (b.case(block, inputs, [y.part(0, ()).at((1, ITEM)), gain]),), "outward"))
    with pytest.raises(RecordingError, match="'total'"):
        b.build().reverse()


def test_a_cleared_buffer_may_be_added_to_by_several_statements():
    b = ProgramBuilder("sums")
    x, y, total = b.input("x", (2,)), b.output("y", ()), b.temporary("total", ())
    b.add(Zero(total.operand))
    b.call(lambda x: x[0] * x[1], [x], [total.at(add=True)])
    b.call(lambda x: np.sin(x[0]), [x], [total.at(add=True)])
    b.call(lambda t: t * t, [total], [y])
    program = b.build()
    x = [np.array([0.4, 0.9])]
    assert close(by_reverse(program, x), by_casadi(program, x))


def test_an_output_that_the_program_reads_itself_collects_both_adjoints():
    b = ProgramBuilder("both")
    x, y, z = b.input("x", ()), b.output("y", ()), b.output("z", ())
    b.call(np.sin, [x], [y])
    b.add(Copy(y.operand, z.operand))
    program = b.build()
    _, _, bar = evaluate(program.reverse(), 0.3, 2.0, 5.0)
    assert close(bar, 7.0 * np.cos(0.3))


def test_a_map_whose_items_share_nothing_stays_a_map():
    b = ProgramBuilder("items")
    x, y = b.input("x", (4,)), b.output("y", (4,))
    block, _, _ = trace(np.sin, [()])
    b.add(Each(4, (b.case(block, [x.part(0, ()).at((1, ITEM))], [y.part(0, ()).at((1, ITEM))]),)))
    assert [s.order for s in b.build().reverse().statements if isinstance(s, Each)] == ["map", "map"]
    assert [s.order for s in programs.legs().reverse().statements if isinstance(s, Each)] == ["map", "outward"]


def test_items_that_have_no_adjoint_run_an_empty_case():
    b = ProgramBuilder("idle")
    x, y = b.input("x", (4,)), b.output("y", (4,))
    own, target = x.part(0, ()).at((1, ITEM)), y.part(0, ()).at((1, ITEM))
    cases = tuple(b.case(trace(f, [()])[0], [own], [target]) for f in (np.sin, lambda x: F.floor(x)))
    b.add(Each(4, cases, "map", b.column([0, 1, 1, 0])))
    program = b.build()
    given = np.array([0.3, 0.6, 0.9, 1.2])
    wanted = np.diag(np.cos(given) * [1.0, 0.0, 0.0, 1.0])
    assert close(by_reverse(program, [given]), wanted)
    _, bar = program.reverse()(given, np.ones(4))
    assert close(bar, wanted.sum(axis=0))


# -- what derivatives leave out --------------------------------------------------------------------------------------
def test_tangents_of_what_does_not_change_are_not_computed():
    b = ProgramBuilder("constant")
    x, y, z = b.input("x", ()), b.output("y", (2,)), b.temporary("z", ())
    numbers = b.data("numbers", [1.0, 2.0])
    b.call(lambda a: np.sin(a[0]) * a[1], [numbers], [z])
    b.call(lambda x, z: np.array([x * z, z]), [x, z], [y])
    counts = b.build().forward().count()
    assert counts == {"mul": 3, "sin": 1}


def test_an_output_that_does_not_change_has_a_zero_tangent_in_compiled_code_too():
    program = record(lambda x: (np.sin(x), np.array([1.0, 2.0])), ())
    assert [np.asarray(a).tolist() for a in program.forward()(0.0, 1.0)] == [0.0, [1.0, 2.0], 1.0, [0.0, 0.0]]


def test_names_of_second_derivatives_stay_apart():
    twice = record(np.sin, ()).forward().forward()
    names = [b.name for b in twice.buffers]
    assert len(set(names)) == len(names)
    found = evaluate(twice, 0.3, 1.0, 1.0, 0.0)
    assert close(found[-1], -np.sin(0.3))


def test_a_dense_jacobian_of_a_long_mechanism_is_refused_with_advice():
    n = 5000
    b = ProgramBuilder("long")
    x, rows = b.input("x", (n,)), b.output("rows", (n + 1,))
    b.add(Zero(rows.part(0, ()).operand))
    block, _, _ = trace(lambda x, up: x + sum(np.sin(k * up) for k in range(10)), [(), ()])
    inputs = [x.part(0, ()).at((1, ITEM)), rows.part(0, ()).at((1, ITEM))]
    b.add(Each(n, (b.case(block, inputs, [rows.part(1, ()).at((1, ITEM))]),), "outward"))
    program = b.build()
    with pytest.raises(RecordingError, match=r"5000 columns; use \.forward\(\)"):
        program.jacobian()
    y, bar = program.reverse()(np.zeros(n), np.eye(n + 1)[n])
    assert y.shape == (n + 1,)
    assert bar[-1] == 1.0
