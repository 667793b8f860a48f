"""Programs as data: counts, digests, and what every statement means, spelt out in plain NumPy."""

import doctest
import importlib
from dataclasses import replace

import numpy as np
import pytest
import tape_programs as programs
from tape_oracles import evaluate, flat, state
from tape_programs import KIND, PARENT, TREE

import linkwright as lw
from linkwright.errors import RecordingError
from linkwright.kernels.interpret.interpreter import run
from linkwright.tape.block import Block, Recorder, finish
from linkwright.tape.build import ProgramBuilder, record, trace
from linkwright.tape.program import ITEM, Copy, Each, Loop, Solve, Zero


# -- blocks ---------------------------------------------------------------------------------------------------
def test_a_block_numbers_constants_then_inputs_then_operations():
    block, shapes, single = trace(lambda x: np.array([2.0 * x[0] + x[1], x[1]]), [(2,)])
    assert block.constants.tolist() == [2.0]
    assert (block.first_input, block.first_operation, len(block)) == (1, 3, 2)
    assert block.outputs.tolist() == [4, 2]
    assert (shapes, single) == ([(2,)], True)


def test_a_replayed_block_is_the_same_block():
    block, _, _ = trace(lambda x: np.sin(x[0]) * x[1] + np.sqrt(x[1]) / x[2] - 3.0, [(3,)])
    recorder = Recorder()
    nodes = block.replay(recorder, [recorder.input(k) for k in range(3)])
    again = finish(recorder, 3, [nodes[k] for k in block.outputs.tolist()])
    x = np.array([0.3, 0.7, -1.1])
    assert again.evaluate(x) == block.evaluate(x)
    assert again.count() == block.count()


def test_replaying_with_constants_folds_anew():
    block, _, _ = trace(lambda x, y: x * y + np.sin(y), [(), ()])
    recorder = Recorder()
    nodes = block.replay(recorder, [recorder.input(0), recorder.zero])
    assert nodes[block.outputs[0]].value == 0.0


def test_blocks_of_the_same_content_have_the_same_digest():
    def block(factor: float) -> Block:
        return trace(lambda x: factor * x, [()])[0]

    assert block(2.0).digest == block(2.0).digest
    assert block(2.0).digest != block(3.0).digest


# -- counts ---------------------------------------------------------------------------------------------------
def test_operations_are_counted_by_name():
    program = record(lambda x: np.sin(x[0]) * x[1] + np.sin(x[0]), 2)
    assert program.count() == {"add": 1, "mul": 1, "sin": 1}


def test_the_depth_of_a_block_is_its_longest_chain_of_operations():
    block, _, _ = trace(lambda x: (x[0] * x[1]) * (x[2] * x[3]) + x[0], [(4,)])
    assert block.depth() == 3
    block, _, _ = trace(lambda x: x, [(4,)])
    assert block.depth() == 0


def test_a_scan_counts_every_item_with_its_own_case():
    counts = programs.outward().count()
    turns, slides = int(np.sum(KIND == 0)), int(np.sum(KIND == 1))
    assert counts["sin"] == counts["cos"] == turns
    assert counts["exp"] == slides


def test_adding_to_a_buffer_counts_as_an_addition():
    n = len(PARENT)
    assert programs.inward().count()["add"] == n * 2 + n


def test_a_walk_counts_its_pairs():
    pairs = sum(len(above) for _, above in programs.walk().walks(programs.walk().statements[-1]))
    assert pairs == 0 + 1 + 1 + 2 + 2 + 3
    assert programs.walk().count()["cos"] == pairs
    assert programs.walk().count()["sin"] == len(PARENT)


def test_a_loop_counts_as_often_as_it_may_run():
    assert programs.kepler(10).count()["div"] == 10


@pytest.mark.parametrize("method", ["cholesky", "lu", "ltl", "least-norm"])
def test_a_linear_system_has_operations_too(method):
    assert programs.solve(method).count()["div"] > 0


def test_the_text_of_a_program_says_what_goes_in_and_out():
    assert repr(programs.outward()).startswith("<Program outward: q[6] -> tips[6, 2], ")


# -- digests ----------------------------------------------------------------------------------------------------
def test_a_digest_depends_on_everything_that_results_depend_on():
    program = programs.inward()
    others = [
        replace(program, statements=program.statements[:-1]),
        replace(program, columns=(program.columns[0][::-1].copy(),)),
        replace(program, blocks=program.blocks[::-1]),
        replace(program, buffers=(replace(program.buffers[0], name="other"), *program.buffers[1:])),
        replace(program, single=True),
    ]
    digests = {p.digest for p in (program, *others)}
    assert len(digests) == 1 + len(others)
    assert programs.inward().digest == program.digest


def test_columns_of_the_same_numbers_cut_elsewhere_have_another_digest():
    def program(first, second):
        b = ProgramBuilder("columns")
        b.column(first)
        b.column(second)
        return b.build()

    assert program([1, 2], [3]).digest != program([1], [2, 3]).digest


def test_data_is_part_of_the_digest():
    def program(number):
        b = ProgramBuilder("data")
        b.call(np.sin, [b.data("d", [number])], [b.output("y", (1,))])
        return b.build()

    assert program(1.0).digest != program(2.0).digest


# -- building -----------------------------------------------------------------------------------------------------
def test_operands_of_the_wrong_size_are_refused_with_both_sizes():
    b = ProgramBuilder("wrong")
    x, y = b.input("x", (3,)), b.output("y", (2,))
    block, _, _ = trace(np.sin, [(3,)])
    with pytest.raises(RecordingError, match="3 inputs and 3 outputs was given operands of 3 and 2"):
        b.case(block, [x], [y])


def test_equal_blocks_and_columns_are_kept_once():
    b = ProgramBuilder("shared")
    x, y = b.input("x", (2,)), b.output("y", (2,))
    for k in range(2):
        b.call(np.sin, [x.part(k, ())], [y.part(k, ())])
    assert len(b.build().blocks) == 1
    assert b.column([1, 2]) == b.column(np.array([1, 2]))


def test_a_recorded_program_is_named_after_the_function_and_its_arguments():
    def reach(q, length):
        return q * length

    program = record(reach, 2, ())
    assert program.name == "reach"
    assert [b.name for b in program.inputs] == ["q", "length"]
    assert program.single is True


def test_a_recorded_tuple_comes_back_as_a_tuple():
    program = record(lambda x: (x[0], x * 2.0), 2)
    first, second = program(np.array([1.0, 2.0]))
    assert first == 1.0
    assert second.tolist() == [2.0, 4.0]


# -- what statements mean ---------------------------------------------------------------------------------------------
def test_an_outward_scan_runs_parents_first_and_chooses_by_kind():
    program = programs.outward()
    (q,) = state(program)
    rows = {-1: np.array([1.0, 0.5])}
    for i, p in enumerate(PARENT.tolist()):
        up, c, s = rows[p], np.cos(q[i]), np.sin(q[i])
        turned = np.array([c * up[0] - s * up[1], s * up[0] + c * up[1]])
        rows[i] = turned if KIND[i] == 0 else np.array([up[0] + q[i] * up[1], up[1] * np.exp(-q[i])])
    np.testing.assert_allclose(evaluate(program, q)[0], [rows[i] for i in range(len(PARENT))], rtol=1e-14)


def test_an_inward_scan_runs_children_first_and_adds_at_the_parent():
    program = programs.inward()
    q, m = state(program)
    sums = np.zeros(len(PARENT) + 1)
    tau = np.zeros(len(PARENT))
    for i in reversed(range(len(PARENT))):
        force = m[i] * np.sin(q[i]) + np.cos(q[i]) * sums[i + 1]
        tau[i] = force * sums[i + 1] + np.cos(q[i])
        sums[PARENT[i] + 1] += force
    found, base = evaluate(program, q, m)
    np.testing.assert_allclose(found, tau, rtol=1e-14)
    np.testing.assert_allclose(base, sums[0], rtol=1e-14)


def test_a_map_runs_every_item_on_its_own_numbers():
    program = programs.legs()
    x, s = state(program)
    np.testing.assert_allclose(evaluate(program, x, s)[0], x[:, 0] * np.sin(s * x[:, 1]), rtol=1e-14)


def test_a_walk_carries_numbers_from_an_item_to_ground():
    program = programs.walk()
    (q,) = state(program)
    n = len(PARENT)
    m, load = np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        k = KIND[i]
        m[i, i], carry = q[i] ** 2 + k, (np.sin(q[i]), 1.0 + k * q[i])
        j = PARENT[i]
        while j >= 0:
            first = carry[0] * np.cos(q[j]) - KIND[j] * carry[1]
            carry = (first, carry[1] + carry[0] * (q[j] + k))
            m[i, j] = carry[0] * q[j] + q[i]
            load[j] += carry[1]
            j = PARENT[j]
    np.testing.assert_allclose(flat(evaluate(program, q)), flat([m, load]), rtol=1e-13)


def test_a_loop_ends_each_state_of_a_batch_by_itself():
    program = programs.kepler()
    given = np.array([[0.8, 0.3], [2.5, 0.6], [0.1, 0.0]])
    together = run(program, [given], 3)[0]
    alone = [evaluate(program, g)[0] for g in given]
    np.testing.assert_array_equal(together[:, 0], alone)
    x = np.arcsin(alone[2])
    np.testing.assert_allclose(x, 0.1, rtol=1e-14)


def test_a_loop_without_an_end_runs_its_count():
    b = ProgramBuilder("powers")
    x, y, following = b.input("x", ()), b.output("y", ()), b.temporary("following", ())
    b.call(lambda: np.ones(()), [], [y])
    block, _, _ = trace(lambda x, y: x * y, [(), ()])
    b.add(Loop(5, (Each(1, (b.case(block, [x, y], [following]),)),), ((y.operand, following.operand),)))
    np.testing.assert_allclose(evaluate(b.build(), 2.0)[0], 32.0)


def solved(program, x):
    """The system of `programs.solve` and its solution by the program."""
    with_matrix = replace(
        program,
        buffers=tuple(replace(b, role="output") if b.name in ("matrix", "rhs") else b for b in program.buffers),
    )
    y, matrix, rhs = evaluate(with_matrix, x)
    return matrix, rhs, y


@pytest.mark.parametrize("method", ["cholesky", "ltl"])
def test_symmetric_systems_read_the_lower_triangle_only(method):
    program = programs.solve(method)
    a, b, y = solved(program, *state(program))
    assert np.max(np.abs(np.triu(a, 1))) > 100.0
    np.testing.assert_allclose((np.tril(a) + np.tril(a, -1).T) @ y, b, rtol=1e-12, atol=1e-12)


def test_a_tree_s_system_has_zeros_between_branches():
    program = programs.solve("ltl")
    a, _, _ = solved(program, *state(program))
    assert TREE.tolist() == [-1, 0, 1, 1]
    assert a[3, 2] == 0.0


def test_lu_solves_a_general_system():
    program = programs.solve("lu")
    a, b, y = solved(program, *state(program))
    np.testing.assert_allclose(a @ y, b, rtol=1e-12, atol=1e-12)


def test_least_norm_gives_the_smallest_solution():
    program = programs.solve("least-norm")
    a, b, y = solved(program, *state(program))
    np.testing.assert_allclose(y, np.linalg.pinv(a) @ b, rtol=1e-12, atol=1e-12)


def test_a_singular_system_gives_nan_in_its_own_state_alone():
    b = ProgramBuilder("singular")
    a, y = b.input("a", (2, 2)), b.output("y", (2, 1))
    rhs = b.data("rhs", [[1.0], [2.0]])
    b.add(Solve("lu", a.operand, rhs.operand, y.operand, 2, 2, 1))
    given = np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0], [np.nan, 0.0, 0.0, 1.0]])
    found = run(b.build(), [given], 3)[0]
    assert found[0].tolist() == [1.0, 2.0]
    assert np.isnan(found[1:]).all()


def test_zero_and_copy_clear_and_move_numbers():
    b = ProgramBuilder("move")
    x, y = b.input("x", (4,)), b.output("y", (4,))
    b.add(Copy(x.operand, y.operand))
    b.add(Zero(y.part(1, (2,)).operand))
    assert evaluate(b.build(), [1.0, 2.0, 3.0, 4.0])[0].tolist() == [1.0, 0.0, 0.0, 4.0]


def test_a_case_reads_all_its_inputs_before_it_writes():
    b = ProgramBuilder("swap")
    x, y = b.input("x", (2,)), b.output("y", (2,))
    b.add(Copy(x.operand, y.operand))
    b.call(lambda y: y[::-1], [y], [y])
    assert evaluate(b.build(), [1.0, 2.0])[0].tolist() == [2.0, 1.0]


def test_operands_step_by_columns_and_by_the_item_s_number():
    b = ProgramBuilder("steps")
    x, y = b.input("x", (3, 2)), b.output("y", (3,))
    order = b.column([2, 0, 1])
    block, _, _ = trace(lambda x: x * 10.0, [()])
    b.add(Each(3, (b.case(block, [x.part(1, ()).at((2, order))], [y.part(0, ()).at((1, ITEM))]),)))
    assert evaluate(b.build(), np.arange(6.0))[0].tolist() == [50.0, 10.0, 30.0]


@pytest.mark.parametrize("module", ["tape.block", "tape.build", "tape.operations", "tape.program", "kernels.variant"])
def test_the_examples_of_docstrings_run(module):
    tried = doctest.testmod(importlib.import_module(f"linkwright.{module}"), extraglobs={"lw": lw, "np": np})
    lw.set_threads(None)  # which one of them sets
    assert tried.attempted
    assert not tried.failed
