import ctypes
import re
from dataclasses import replace

import numpy as np
import pytest
import sample_programs as samples

from compilers import c_library, pointer
from linkwright.errors import KernelError
from linkwright.kernels.c.program_text import c_text, function_name, work_size
from linkwright.kernels.c.spelling import identifier, literal
from linkwright.kernels.interpret.interpreter import run
from linkwright.tape.build import ProgramBuilder, record, trace
from linkwright.tape.program import ITEM, Each, Loop, Solve, Zero

GUARD = 7.5e77


def call_batch(program, library, inputs, batch, name=None):
    """The outputs of NAME_batch, with rubbish in every array that it has to fill, and its work watched."""
    name = function_name(name or program.name)
    outputs = [np.full((batch, b.size), np.nan) for b in program.outputs]
    work = np.full(work_size(program) + 1, np.nan)
    work[-1] = GUARD
    library[f"{name}_batch"](*map(pointer, [*inputs, *outputs, work]), ctypes.c_long(batch))
    assert work[-1] == GUARD
    return outputs


def check(program, folder, inputs=None, batch=5, rtol=1e-10, name=None):
    inputs = samples.arguments(program, batch) if inputs is None else inputs
    library = c_library(c_text(program, name), folder)
    given = [x.copy() for x in inputs]
    results = call_batch(program, library, given, batch, name)
    for before, after in zip(inputs, given, strict=True):
        np.testing.assert_array_equal(before, after)
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-12)
    return library


@pytest.mark.parametrize("name", samples.ALL)
def test_c_gives_what_numpy_gives(name, tmp_path):
    check(samples.ALL[name](), tmp_path)


def test_one_state_is_the_batch_of_one(tmp_path):
    program = samples.tree_scan()
    library = c_library(c_text(program), tmp_path)
    inputs = samples.arguments(program, 1)
    outputs = [np.full(b.size, np.nan) for b in program.outputs]
    library.tree_scan(*map(pointer, [*inputs, *outputs, np.full(work_size(program), np.nan)]))
    for wanted, got in zip(run(program, inputs, 1), outputs, strict=True):
        np.testing.assert_allclose(got, wanted[0], rtol=1e-12)


def test_nan_infinities_and_signed_zeros_go_through_corners_as_in_numpy(tmp_path):
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.4, -1.0, 1.5]
    inputs = np.array(np.meshgrid(values, values, [0.3, np.nan, 0.0], [2.0])).reshape(4, -1).T.copy()
    check(samples.corners(), tmp_path, [inputs], len(inputs))


def test_nan_stays_in_its_own_state(tmp_path):
    program = samples.solver("lu")
    inputs = samples.arguments(program, 3)
    inputs[0][1] = np.nan
    library = c_library(c_text(program), tmp_path)
    (x,) = call_batch(program, library, inputs, 3)
    assert np.isnan(x[1]).any()
    (wanted,) = run(program, inputs, 3)
    np.testing.assert_allclose(x[[0, 2]], wanted[[0, 2]], rtol=1e-10)


@pytest.mark.parametrize("method", ["cholesky", "lu", "least-norm", "ltl"])
def test_a_singular_matrix_gives_no_finite_solution(method, tmp_path):
    b = ProgramBuilder("singular")
    a, y, x = b.input("a", (3, 3)), b.input("b", (3, 1)), b.output("x", (3, 1))
    parent = b.column([-1, 0, 1])
    b.add(Solve(method, a.operand, y.operand, x.operand, 3, 3, 1, parent if method == "ltl" else None))
    program = b.build()
    library = c_library(c_text(program), tmp_path)
    (solution,) = call_batch(program, library, [np.zeros((1, 9)), np.ones((1, 3))], 1)
    assert not np.isfinite(solution).any()


def test_a_loop_ends_when_its_flag_is_nan(tmp_path):
    b = ProgramBuilder("flagged")
    q, n, done = b.input("q", ()), b.output("n", ()), b.temporary("done", ())
    block, _, _ = trace(lambda q, n: (n + 1.0, q * 1.0), [(), ()])
    b.add(Loop(5, (Each(1, (b.case(block, [q, n], [n, done]),)),), (), done.operand))
    program = b.build()
    library = c_library(c_text(program), tmp_path)
    for flag, times in ((np.nan, 1), (0.0, 5), (2.0, 1)):
        inputs = [np.array([[flag]])]
        assert call_batch(program, library, inputs, 1) == run(program, inputs, 1) == [times]


def test_a_long_block_is_cut_into_functions():
    text = c_text(samples.long_block(20_000))
    bodies = re.findall(r"^long_block_APART void \w+\([^)]*\)\n\{\n(.*?)\n\}", text, flags=re.DOTALL | re.MULTILINE)
    assert len(bodies) >= 8
    assert max(body.count("\n") for body in bodies) < 4000


def test_a_long_block_in_a_scan_is_cut_too(tmp_path):
    b = ProgramBuilder("long_scan")
    q, y = b.input("q", (6, 4)), b.output("y", (7, 4))
    block = samples.long_block(6000).blocks[0]
    rows = [q.part(0, (4,)).at((4, ITEM)), y.part(0, ()).at((4, ITEM))]
    made = [y.part(4, (4,)).at((4, ITEM)), y.part(0, ()).at((4, ITEM), add=True), y.part(1, ()).at((4, ITEM))]
    b.add(Zero(y.operand))
    b.add(Each(6, (b.case(block, rows, made),), "outward"))
    check(b.build(), tmp_path)


def test_only_what_is_not_set_before_is_cleared():
    program = samples.tree_scan()
    cleared = re.findall(r"\] = 0\.0;", c_text(program))
    assert len(cleared) == 1  # the program's own Zero


def test_operations_that_no_output_needs_are_left_out(tmp_path):
    program = samples.smooth()
    block = program.blocks[0]
    shorter = replace(block, outputs=np.full_like(block.outputs, block.outputs[0]))
    program = replace(program, blocks=(shorter,))
    assert "atan2" not in c_text(program)
    check(program, tmp_path)


def test_the_header_says_shapes_and_work():
    text = c_text(samples.walk())
    assert " * in:   q[6]\n" in text
    assert " * out:  m[6][6], total[6]\n" in text
    assert re.search(r"^#define walk_WORK 3$", text, flags=re.MULTILINE)


def test_two_files_can_be_one(tmp_path):
    texts = [c_text(samples.tree_scan(), name) for name in ("first", "second")]
    library = c_library("\n".join(texts), tmp_path)
    assert library.first
    assert library.second_batch


def test_a_given_name_is_used(tmp_path):
    check(samples.smooth(), tmp_path, name="my function")


def test_numbers_read_back_exactly(tmp_path):
    rng = np.random.default_rng(3)
    values = rng.standard_normal(200) * 10.0 ** rng.integers(-300, 300, 200)
    program = record(lambda x: np.concatenate([values, x]), 1)
    library = c_library(c_text(program), tmp_path)
    (y,) = call_batch(program, library, [np.zeros((1, 1))], 1)
    np.testing.assert_array_equal(y[0, :-1], values)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("q", "q"),
        ("τ", "tau"),
        ("é-1", "e_1_"),
        ("1st", "x1st"),
        ("", "x"),
        ("class", "class_"),
        ("sinf", "sinf_"),
        ("_hidden", "hidden"),
    ],
)
def test_names_become_identifiers(name, word):
    assert identifier(name) == word


@pytest.mark.parametrize(("name", "word"), [("gamma", "gamma_program"), ("int", "int_program"), ("f g", "f_g")])
def test_program_names_keep_clear_of_the_library(name, word):
    assert function_name(name) == word


def test_float32_literals_are_rounded_once():
    assert literal(0.1, "float32") == "0.100000001f"
    assert literal(2.0, "float32") == "2.0f"
    assert literal(-1e300, "float32") == "(-INFINITY)"


def test_writing_to_data_is_refused_by_name():
    b = ProgramBuilder("wrong")
    numbers = b.data("constants", np.ones(2))
    b.add(Zero(numbers.operand))
    with pytest.raises(KernelError, match="constants"):
        c_text(b.build())
