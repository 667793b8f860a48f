"""The LLVM lowering, one state at a time and in lanes, against NumPy; memory around arrays is watched."""

import ctypes
import gc

import numpy as np
import pytest
import sample_programs as samples

import linkwright as lw
import linkwright.tape.block as F
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.llvm.compiler import _engines, load, object_code
from linkwright.kernels.llvm.module_text import llvm_text, scratch_size
from linkwright.kernels.llvm.schedule import SEGMENT
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.operations import Table
from linkwright.tape.program import ITEM, Copy, Each, Loop, Operand, Solve, Walk, Zero

GUARD = 7.5e77
CARRY = Ref(Operand(-1, 1), ())
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
#: (states at a time, doubles a register holds): one state without and with packed sines, and lanes.
SHAPES = [(1, 8), (4, 4), (8, 8)]
MORE = [(1, 1), (1, 4), (2, 2)]


def pointers(arrays):
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))


def guarded(count, fill=np.nan):
    """An array with a guard before and behind it, and the array's own part."""
    memory = np.full(count + 16, GUARD)
    memory[8 : 8 + count] = fill
    return memory, memory[8 : 8 + count]


def intact(memory):
    return (memory[:8] == GUARD).all() and (memory[-8:] == GUARD).all()


def compute(program, inputs, batch, width, pack, shared=()):
    """The outputs (batch, size) of compiled code; the inputs numbered in `shared` are one row for all states."""
    code = load(object_code(llvm_text(program, "kernel", width, pack)), "kernel")
    kept = [np.ascontiguousarray(x) for x in inputs]
    given = [x.copy() for x in kept]
    data = [b.data for b in program.buffers if b.role == "data"] + list(program.columns)
    memories = [guarded(batch * b.size) for b in program.outputs]
    watch, scratch = guarded(scratch_size(program, width))
    strides = [0 if k in shared else b.size for k, b in enumerate(program.inputs)]
    strides += [b.size for b in program.outputs]
    table = pointers([*given, *(part for _, part in memories), *data])
    ENTRY(code.address)(table, (ctypes.c_int64 * len(strides))(*strides), scratch.ctypes.data, batch)
    for before, after in zip(kept, given, strict=True):
        np.testing.assert_array_equal(before, after)
    assert intact(watch)
    assert all(intact(memory) for memory, _ in memories)
    return [part.reshape(batch, b.size) for (_, part), b in zip(memories, program.outputs, strict=True)]


def check(program, inputs=None, batch=8, rtol=1e-11, shapes=SHAPES, atol=1e-13):
    inputs = samples.arguments(program, batch) if inputs is None else inputs
    wanted = run(program, inputs, batch)
    for width, pack in shapes:
        for k, (got, right) in enumerate(zip(compute(program, inputs, batch, width, pack), wanted, strict=True)):
            np.testing.assert_allclose(
                got, right, rtol=rtol, atol=atol, err_msg=f"output {k}, width {width}, pack {pack}"
            )


@pytest.mark.parametrize("name", samples.ALL)
def test_llvm_gives_what_numpy_gives(name):
    check(samples.ALL[name](), shapes=SHAPES + MORE)


# -- primitives --------------------------------------------------------------------------------------------
STRANGE = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.4, -1.0, 1.5]


def test_nan_infinities_and_zeros_go_through_corners_as_in_numpy():
    values = np.array(np.meshgrid(STRANGE, STRANGE, [0.3, np.nan, 0.0], [2.0])).reshape(4, -1).T.copy()
    check(samples.corners(), [values], len(values))


@pytest.mark.parametrize("name", ["minimum", "maximum", "arctan2", "power", "divide", "add", "multiply"])
def test_a_primitive_of_two_numbers_takes_strange_ones_as_numpy_does(name):
    pairs = np.array(np.meshgrid([*STRANGE, 2.0, -2.5], [*STRANGE, 3.0])).reshape(2, -1).T.copy()
    pairs = pairs[: len(pairs) // 8 * 8]
    function = {"minimum": F.minimum, "maximum": F.maximum, "power": lambda a, b: a**b}.get(name, getattr(np, name))
    check(record(lambda x: np.array([function(x[0], x[1])]), 2), [pairs], len(pairs))


@pytest.mark.parametrize("name", ["sqrt", "sin", "cos", "tan", "exp", "log", "fabs", "sign", "floor", "negative"])
def test_a_primitive_of_one_number_takes_strange_ones_as_numpy_does(name):
    x = np.array([*STRANGE, 5e-324, -5e-324, 1e308, -1e308, 1e15, -2.5, 709.9, 2.5])
    function = F.sign if name == "sign" else F.floor if name == "floor" else getattr(np, name)
    check(record(lambda x: np.array([function(x[0])]), 1), [x[:, None].copy()], len(x), rtol=1e-15)


def test_minimum_gives_the_nan_of_either_side_and_sign_keeps_it():
    program = record(lambda x: np.array([F.minimum(x[0], x[1]), F.maximum(x[0], x[1]), F.sign(x[0])]), 2)
    x = np.array([[np.nan, 1.0], [1.0, np.nan]] * 4)
    for width, pack in SHAPES:
        (y,) = compute(program, [x], 8, width, pack)
        assert np.isnan(y[:, :2]).all()
        assert np.isnan(y[::2, 2]).all()
        assert (y[1::2, 2] == 1.0).all()


def test_a_table_is_met_at_its_ends_between_and_beyond():
    breaks = samples.SPLINE.breaks
    x = np.array([*breaks, *np.nextafter(breaks, -10), -5.0, 0.1, 5.0, np.nan, np.inf, -np.inf, 1.2, -0.9])[:, None]
    check(record(lambda x: F.table(x, samples.SPLINE), 1), [x.copy()], len(x))


def test_tables_that_differ_in_one_number_are_two_tables():
    # −1.0 and −2.0 have the same hash in Python.
    first, second = (Table((0.0, 1.0), ((0.0, slope, 0.0, 0.0),)) for slope in (-1.0, -2.0))
    check(record(lambda x: np.array([F.table(x[0], first), F.table(x[0], second)]), 1))


def test_functions_that_need_the_same_intrinsics_live_in_one_program():
    """Absolute values before and after sines, a pivoted solver, square roots: each declared once."""
    b = ProgramBuilder("mixed")
    q, y = b.input("q", (4,)), b.output("y", (2,))
    m, r, t = b.temporary("m", (2, 2)), b.temporary("r", (2, 1)), b.temporary("t", (2, 1))
    b.call(lambda q: np.array([[abs(q[0]) + 3.0, q[1]], [q[2], abs(q[3]) + 3.0]]), [q], [m])
    b.call(lambda q: np.array([[np.sqrt(abs(q[0]))], [F.floor(q[1])]]), [q], [r])
    b.add(Solve("lu", m.operand, r.operand, t.operand, 2, 2, 1))
    b.call(lambda q, t: np.array([np.sin(q[0]) * t[0, 0], abs(np.cos(t[1, 0]))]), [q, t], [y])
    b.add(Solve("least-norm", m.operand, y.operand, t.operand, 2, 2, 1))
    b.call(lambda q, t: t[:, 0] + abs(np.sin(q[:2])), [q, t], [y])
    check(b.build())


def test_long_constants_and_infinite_ones_arrive_exactly():
    values = [np.pi, 1e-320, 1.7976931348623157e308, np.inf, -np.inf, np.nan, 1 / 3]
    check(record(lambda x: np.array([x[0] * 0.0 + v if np.isfinite(v) else x[0] * v for v in values]), 1))


# -- statements ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 8, 9, 16, 24])
def test_any_number_of_states_one_at_a_time(batch):
    check(samples.tree_scan(), batch=batch, shapes=[(1, 1), (1, 8)])


@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("groups", [1, 3])
def test_any_number_of_groups_of_lanes(width, groups):
    check(samples.tree_scan(), batch=width * groups, shapes=[(width, width)])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9, 15, 17])
def test_arrays_of_any_size_go_into_lanes_and_back(size):
    program = record(lambda x, y: (x * 2.0 + y, y - x[0], x[::-1]), size, ())
    check(program, batch=16)


def test_an_input_may_be_one_row_for_all_states():
    program = record(lambda x, y, z: x * y[0] + np.sin(z), 3, 2, ())
    x, y, z = samples.arguments(program, 8)
    (wanted,) = run(program, [x, np.repeat(y[:1], 8, 0), z], 8)
    for width, pack in SHAPES:
        (got,) = compute(program, [x, y[:1], z], 8, width, pack, shared=(1,))
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


@pytest.mark.parametrize("order", ["outward", "inward", "map"])
@pytest.mark.parametrize("items", [0, 1, 2, 9])
def test_a_scan_runs_its_cases_over_its_items(order, items):
    b = ProgramBuilder("scan")
    q, y, total = b.input("q", (9,)), b.output("y", (10,)), b.output("total", (2,))
    kind = b.column(np.array([0, 1, 2, 1, 0, 2, 2, 1, 0]))
    slot = b.column(np.array([0, 1, 0, 1, 0, 1, 0, 1, 0]))
    b.add(Zero(y.operand))
    b.add(Zero(total.operand))
    cases = []
    for k in range(3):
        block, _, _ = trace(lambda x, p, k=k: (np.sin(x) * p + k, x * (k + 1.0)), [(), ()])
        here, last = y.part(0, ()).at((1, ITEM)), y.part(1, ()).at((1, ITEM))
        source, target = (last, here) if order == "inward" else (here, last)
        cases.append(
            b.case(block, [q.part(0, ()).at((1, ITEM)), source], [target, total.part(0, ()).at((1, slot), add=True)])
        )
    b.add(Each(items, tuple(cases), order, kind))
    check(b.build())


def test_statements_over_nothing_do_nothing():
    b = ProgramBuilder("nothing")
    q, e, y = b.input("q", (2,)), b.temporary("e", (0,)), b.output("y", (2,))
    b.call(lambda q: q * 2.0, [q], [y])
    b.add(Zero(y.part(0, (0,)).operand))
    b.add(Copy(q.part(0, (0,)).operand, y.part(0, (0,)).operand))
    b.add(Solve("cholesky", e.operand, e.operand, e.operand, 0, 0, 0))
    b.add(Solve("lu", e.operand, e.operand, e.operand, 0, 0, 1))
    b.add(Solve("cholesky", q.part(0, (1, 1)).operand, e.operand, e.operand, 1, 1, 0))
    block, _, _ = trace(lambda q: q + 1.0, [(2,)])
    b.add(Loop(0, (Each(1, (b.case(block, [y], [y]),)),), ()))
    b.add(Each(0, (b.case(block, [y], [y]),)))
    check(b.build())


def test_numbers_that_nobody_sets_are_zero():
    b = ProgramBuilder("unset")
    q, y, z = b.input("q", (2,)), b.output("y", (4,)), b.output("z", (3,))
    t = b.temporary("t", (3,))
    block, _, _ = trace(lambda q, t: (q[0] + t[1], q[1], q[0] * 2.0), [(2,), (3,)])
    b.add(Each(1, (b.case(block, [q, t], [y.part(1, ()), y.part(2, ()).at(add=True), t.part(0, ())]),)))
    b.call(lambda t: t.sum(), [t], [z.part(0, ())])
    check(b.build(), batch=16)


def test_scans_that_set_what_they_read_are_not_cleared():
    programs = [samples.tree_scan(), lw.chain(80).program("forward_dynamics"), lw.chain(80).program("mass_matrix")]
    programs += [lw.random_tree(80, seed=1).program(name) for name in ("forward_dynamics", "inverse_dynamics")]
    for method in ("triangular", "mass-matrix", "assembly"):
        mechanisms = (lw.chain(80), lw.random_tree(80, seed=1))
        programs += [m.program("forward_dynamics", method=method, form="rolled") for m in mechanisms]
    for program in programs:
        assert not program.unset, program
        assert not program.written_inputs, program


def test_what_a_scan_reads_of_a_later_item_is_cleared():
    for order, toward, unset in (
        ("outward", 0, False),
        ("outward", 2, True),
        ("inward", 2, False),
        ("inward", 0, True),
    ):
        b = ProgramBuilder("neighbour")
        q, t, y = b.input("q", (4,)), b.temporary("t", (6,)), b.output("y", (4,))
        for end in (0, 5):
            b.call(lambda: np.array(0.5), [], [t.part(end, ())])
        block, _, _ = trace(lambda x, p: (x + p, p * 2.0), [(), ()])
        reads = [q.part(0, ()).at((1, ITEM)), t.part(toward, ()).at((1, ITEM))]
        b.add(Each(4, (b.case(block, reads, [t.part(1, ()).at((1, ITEM)), y.part(0, ()).at((1, ITEM))]),), order))
        program = b.build()
        assert bool(program.unset) == unset
        check(program)


def test_an_input_that_a_program_writes_to_is_left_as_it_was():
    b = ProgramBuilder("in place")
    q, y = b.input("q", (5,)), b.output("y", (5,))
    b.call(lambda q: q * 2.0 + 1.0, [q], [q])
    b.add(Copy(q.part(1, (3,)).operand, q.part(0, (3,)).operand))
    b.call(lambda q: q - 1.0, [q], [y])
    check(b.build(), batch=16)


def test_a_walk_meets_every_ancestor_of_every_item():
    n = 12
    parent = np.array([-1, 0, 1, 1, 3, 0, 5, 6, 7, 8, -1, 10])
    b = ProgramBuilder("pairs")
    q, m = b.input("q", (n,)), b.output("m", (n, n))
    b.add(Zero(m.operand))
    row, above = b.column(n * np.arange(n)), b.column(parent)
    start, _, _ = trace(lambda x: (x * x, x), [()])
    step, _, _ = trace(lambda c, x: (c * x, 0.5 * c + np.sin(x)), [(), ()])
    first = b.case(start, [q.part(0, ()).at((1, ITEM))], [m.part(0, ()).at((n + 1, ITEM)), CARRY])
    to_ancestor = m.part(0, ()).at((1, row), far=((1, ITEM),))
    ahead = b.case(step, [CARRY, q.part(0, ()).at(far=((1, ITEM),))], [to_ancestor, CARRY])
    b.add(Walk(n, above, (first,), (ahead,)))
    check(b.build())


def test_every_lane_ends_its_loop_on_its_own():
    program = samples.newton(count=40)
    a = np.geomspace(1e-6, 1e12, 32).reshape(16, 2)
    wanted = run(program, [a], 16)
    assert len(set(wanted[1].ravel())) > 3  # they do end at different steps
    check(program, [a], 16)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_loop_without_a_flag_runs_to_its_count(count):
    check(samples.newton(count=count, early=False))


def test_a_loop_ends_when_its_flag_is_nan():
    b = ProgramBuilder("flagged")
    q, n, done = b.input("q", ()), b.output("n", ()), b.temporary("done", ())
    following = b.temporary("following", ())
    block, _, _ = trace(lambda q, n: (n + 1.0, q * 1.0), [(), ()])
    body = Each(1, (b.case(block, [q, n], [following, done]),))
    b.add(Loop(5, (body,), ((n.operand, following.operand),), done.operand))
    check(b.build(), [np.array([[np.nan], [0.0], [2.0], [-0.0], [np.inf], [0.0], [1e-300], [0.0]])])


def test_a_loop_inside_a_loop_starts_anew_each_time():
    b = ProgramBuilder("nested")
    q, y = b.input("q", ()), b.output("y", ())
    x, following, done, z = (b.temporary(name, ()) for name in ("x", "following", "done", "z"))
    b.call(lambda q: q, [q], [y])
    inner_block, _, _ = trace(lambda x: (x + 1.0, F.where(x > 2.0, 1.0, 0.0)), [()])
    inner = Loop(
        6, (Each(1, (b.case(inner_block, [x], [following, done]),)),), ((x.operand, following.operand),), done.operand
    )
    outer_block, _, _ = trace(lambda y, x: 0.5 * y + x, [(), ()])
    body = (Copy(q.operand, x.operand), inner, Each(1, (b.case(outer_block, [y, x], [z]),)))
    b.add(Loop(3, body, ((y.operand, z.operand),)))
    check(b.build(), [np.linspace(-4.0, 5.0, 16)[:, None].copy()], 16)


def _carrying(size):
    """y = q doubled until the first number is over 100, at most five times."""
    b = ProgramBuilder("carrying")
    q, y = b.input("q", (size,)), b.output("y", (size,))
    following, done = b.temporary("following", (size,)), b.temporary("done", (1,))
    b.add(Copy(q.operand, y.operand))
    double, _, _ = trace(lambda x: 2.0 * x, [(1,)])
    twice = b.case(double, [y.part(0, (1,)).at((1, ITEM))], [following.part(0, (1,)).at((1, ITEM))])
    flag, _, _ = trace(lambda x: np.array([F.where(x[0] > 100.0, 1.0, 0.0)]), [(1,)])
    ends = b.case(flag, [following.part(0, (1,))], [done])
    body = (Each(size, (twice,), "map"), Each(1, (ends,)))
    b.add(Loop(5, body, ((y.operand, following.operand),), done.operand))
    return b.build()


@pytest.mark.parametrize("size", [3, 64, 65, 200])
def test_a_loop_carries_few_numbers_and_many(size):
    rng = np.random.default_rng(size)
    check(_carrying(size), [rng.uniform(1.0, 60.0, (16, size))], 16)


def test_a_loops_text_does_not_grow_with_what_it_carries():
    short, long = (len(llvm_text(_carrying(size), "kernel", 1, 1)) for size in (200, 200_000))
    assert long < 1.05 * short


# -- long blocks ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("length", [SEGMENT - 100, SEGMENT + 500, 3 * SEGMENT])
def test_a_long_block_is_cut_and_gives_the_same(length):
    program = samples.long_block(length)
    text = llvm_text(program, "kernel", 1, 1)
    assert (text.count("define internal void @s0_") >= 2) == (len(program.blocks[0]) >= 2 * SEGMENT)
    check(program, rtol=1e-9, shapes=[(1, 1), (1, 8), (8, 8)])


def test_a_long_block_may_write_onto_its_own_inputs():
    def f(x):
        early, z = x[0] * 2.0 + x[1], x[0]
        for k in range(SEGMENT):
            z = np.cos(z + 0.01 * k)
        return np.array([x[2], early, z + x[1], z * x[0]])

    b = ProgramBuilder("onto itself")
    q, y = b.input("q", (3,)), b.output("y", (4,))
    t = b.temporary("t", (4,))
    b.call(lambda q: q * 1.5, [q], [t.part(0, (3,))])
    block, _, _ = trace(f, [(3,)])
    assert len(block) > 2 * SEGMENT
    b.add(Each(1, (b.case(block, [t.part(0, (3,))], [t]),)))
    b.add(Copy(t.operand, y.operand))
    check(b.build(), rtol=1e-9, shapes=[(1, 1), (1, 8), (8, 8)])


def test_a_long_block_in_a_scan_is_run_for_every_item():
    b = ProgramBuilder("long scan")
    q, y = b.input("q", (3, 4)), b.output("y", (4, 4))
    block = samples.long_block(SEGMENT + 1000).blocks[0]
    rows = [q.part(0, (4,)).at((4, ITEM)), y.part(0, ()).at((4, ITEM))]
    made = [y.part(4, (4,)).at((4, ITEM)), y.part(0, ()).at((4, ITEM), add=True), y.part(1, ()).at((4, ITEM))]
    b.add(Zero(y.operand))
    b.add(Each(3, (b.case(block, rows, made),), "outward"))
    check(b.build(), rtol=1e-9, shapes=[(1, 8), (8, 8)])


# -- solvers -------------------------------------------------------------------------------------------------
METHODS = ["cholesky", "ltl", "lu", "least-norm"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("right", [1, 3, 4, 8, 11])
def test_systems_with_any_number_of_right_sides_are_solved(method, right):
    check(samples.solver(method, right), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 13])
def test_systems_of_any_size_are_solved(method, n):
    rows = max(1, n - 3) if method == "least-norm" else n
    parent = np.array([-1, *(np.arange(1, n) // 2)])
    b = ProgramBuilder(method)
    a, y, x = b.input("a", (rows, n)), b.input("b", (rows, 2)), b.output("x", (n, 2))
    column = b.column(parent) if method == "ltl" else None
    b.add(Solve(method, a.operand, y.operand, x.operand, rows, n, 2, column))
    rng = np.random.default_rng(n)
    matrices = rng.standard_normal((8, rows, n))
    if method in ("cholesky", "ltl"):
        matrices = 0.1 * matrices + n * np.eye(n)
        if method == "ltl":
            related = np.eye(n, dtype=bool)
            for i in range(n):
                j = parent[i]
                while j >= 0:
                    related[i, j] = True
                    j = parent[j]
            matrices = matrices * related
    check(b.build(), [matrices.reshape(8, -1), rng.standard_normal((8, 2 * rows))], rtol=1e-9)


@pytest.mark.parametrize("method", ["cholesky", "ltl", "lu"])
def test_a_solution_may_lie_on_the_right_side_and_the_matrix_stays(method):
    b = ProgramBuilder("in place")
    a, y = b.input("a", (3, 3)), b.input("b", (3, 2))
    x, m, kept = b.output("x", (3, 2)), b.temporary("m", (3, 3)), b.output("kept", (3, 3))
    b.call(lambda a: a + 6.0 * np.eye(3), [a], [m])
    b.add(Copy(y.operand, x.operand))
    b.add(Solve(method, m.operand, x.operand, x.operand, 3, 3, 2, b.column([-1, 0, 1]) if method == "ltl" else None))
    b.add(Copy(m.operand, kept.operand))
    check(b.build(), rtol=1e-10)


def test_a_matrix_of_constants_is_shared_by_the_lanes():
    b = ProgramBuilder("data")
    y, x = b.input("b", (3, 1)), b.output("x", (3, 1))
    a = b.data("a", np.array([[4.0, 0, 0], [1, 5, 0], [0, 2, 6]]))
    z = b.output("z", (3, 1))
    b.add(Solve("cholesky", a.operand, y.operand, x.operand, 3, 3, 1))
    b.add(Solve("lu", a.operand, y.operand, z.operand, 3, 3, 1))
    check(b.build())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("trouble", ["nan", "infinite", "singular"])
def test_a_bad_system_spoils_its_own_state_alone(method, trouble):
    program = samples.solver(method)
    inputs = samples.arguments(program, 16)
    bad = [1, 6, 15]
    if trouble == "singular":
        shift = np.flip(np.eye(3, 5), 1) if method == "least-norm" else np.flip(np.eye(5), 1)
        inputs[0][bad] = -shift.ravel() if method in ("lu", "least-norm") else -6.0 * np.eye(5).ravel()
    else:
        inputs[0][bad] = np.nan if trouble == "nan" else np.inf
    wanted = run(program, inputs, 16)[0]
    good = np.setdiff1d(np.arange(16), bad)
    for width, pack in SHAPES:
        (x,) = compute(program, inputs, 16, width, pack)
        assert not np.isfinite(x[bad]).any()
        np.testing.assert_allclose(x[good], wanted[good], rtol=1e-9)


def test_least_norm_is_accurate_for_nearly_dependent_rows():
    b = ProgramBuilder("near")
    a, y, x = b.input("a", (2, 3)), b.input("b", (2, 1)), b.output("x", (3, 1))
    b.add(Solve("least-norm", a.operand, y.operand, x.operand, 2, 3, 1))
    matrix = np.array([[1.0, 1.0, 1.0], [1.0, 1.0 + 1e-6, 1.0]])
    inputs = [np.tile(matrix.ravel(), (8, 1)), np.tile([1.0, 2.0], (8, 1))]
    check(b.build(), inputs, rtol=1e-8)


def test_lu_exchanges_rows_where_the_pivot_is_zero():
    b = ProgramBuilder("exchange")
    a, y, x = b.input("a", (3, 3)), b.input("b", (3, 1)), b.output("x", (3, 1))
    b.add(Solve("lu", a.operand, y.operand, x.operand, 3, 3, 1))
    orders = [np.eye(3)[list(p)] for p in ((0, 1, 2), (1, 2, 0), (2, 1, 0), (0, 2, 1), (1, 0, 2), (2, 0, 1))]
    matrices = np.array([*orders, np.diag([1e-20, 1.0, 1.0]) + np.ones((3, 3)), np.ones((3, 3)) - np.eye(3)])
    check(b.build(), [matrices.reshape(8, 9), np.tile([1.0, 2.0, 4.0], (8, 1)) + np.arange(8.0)[:, None]])


# -- states are independent ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["smooth", "tree_scan", "walk", "newton", "cholesky", "lu", "long_block"])
def test_nan_in_one_state_changes_no_other(name):
    program = samples.ALL[name]()
    inputs = samples.arguments(program, 16)
    clean = {shape: compute(program, inputs, 16, *shape) for shape in ((1, 8), (8, 8))}
    spoiled = [x.copy() for x in inputs]
    for x in spoiled:
        x[[0, 9]] = np.nan
    others = np.setdiff1d(np.arange(16), [0, 9])
    for shape, before in clean.items():
        for a, b in zip(before, compute(program, spoiled, 16, *shape), strict=True):
            np.testing.assert_array_equal(a[others], b[others])
            if a.shape[1] and name != "walk" and program.name != "newton":
                assert np.isnan(b[[0, 9]]).any()


# -- code ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["tree_scan", "corners", "lu"])
@pytest.mark.parametrize("width", [1, 8])
def test_the_same_program_makes_the_same_code(name, width):
    codes = {object_code(llvm_text(samples.ALL[name](), "kernel", width, 8)) for _ in range(2)}
    assert len(codes) == 1


def test_code_that_is_no_longer_used_is_unloaded():
    code = object_code(llvm_text(samples.smooth(), "kernel", 1, 1))
    before = len(_engines)
    loaded = load(code, "kernel")
    assert len(_engines) == before + 1
    assert not gc.is_tracked(loaded.life)  # or the collector would unload code that finalisers call
    del loaded
    assert len(_engines) == before


def test_parts_that_run_again_on_the_same_memory_are_compiled_once():
    from linkwright.kernels.llvm.module_text import llvm_text
    from linkwright.tape.build import ProgramBuilder
    from linkwright.tape.program import Copy

    part = lw.record(lambda x: np.sin(x) + x[::-1], 3, name="part")

    def repeated(times):
        b = ProgramBuilder("repeated")
        x, out = b.input("x", (3,)), b.output("out", (3,))
        here, there = b.temporary("here", (3,)), b.temporary("there", (3,))
        b.add(Copy(x.operand, here.operand))
        for _ in range(times):
            b.run(part, [here], [there])
            b.add(Copy(there.operand, here.operand))
        b.add(Copy(here.operand, out.operand))
        return b.build(single=True)

    few, many = (llvm_text(repeated(n), "f", 1, 1).count("define") for n in (2, 9))
    assert few == many
    x = wanted = np.array([0.1, 0.2, 0.3])
    for _ in range(9):
        wanted = np.sin(wanted) + wanted[::-1]
    np.testing.assert_allclose(repeated(9)(x), wanted, rtol=1e-14)
