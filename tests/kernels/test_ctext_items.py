"""One state with a thread an item: the functions and the launch plan, run on the CPU as C++."""

import re
from itertools import pairwise

import numpy as np
import pytest
import sample_programs as samples

import linkwright as lw
from cuda_shim import launch
from linkwright.kernels.cuda import item_threads
from linkwright.kernels.cuda.item_threads import BLOCK, items_text, suits
from linkwright.kernels.interpret.interpreter import run


def carry_out(program, inputs, precision="float64"):
    """Run a launch plan as the back-end does, with rubbish in all memory that nobody promises to clear."""
    text = items_text(program, precision)
    memory, given = {}, iter(inputs)
    for k, buffer in enumerate(program.buffers):
        if buffer.role == "input":
            memory[k] = next(given).astype(precision).reshape(-1)
            continue
        wide = text.transposed.get(k, 1)
        values = np.full(-(-buffer.size // wide) * wide, np.nan)
        if buffer.data is not None:
            values[: buffer.size] = buffer.data.reshape(-1)
        memory[k] = np.ascontiguousarray(values.reshape(-1, wide).T.astype(precision)).reshape(-1)
    for k, first, count in text.cleared:
        memory[k][first : first + count] = 0.0
    for function, begin, end, shift, times in text.launches:
        arguments = []
        for what, number in text.functions[function]:
            if what == "rows":
                arguments.append(text.rows[number])
            else:
                array = program.columns[number] if what == "column" else memory[number]
                arguments.append(array.ctypes.data)
        launch(text.source, function, -(-(end - begin) // BLOCK), BLOCK, [*arguments, begin, end, shift, times])
    return [memory[k][: b.size] for k, b in enumerate(program.buffers) if b.role == "output"]


def compare(program, precision="float64", seed=0, **tolerance):
    inputs = samples.arguments(program, 1, seed)
    tolerance = tolerance or {"rtol": 1e-10, "atol": 1e-12}
    for wanted, got in zip(run(program, inputs, 1), carry_out(program, inputs, precision), strict=True):
        np.testing.assert_allclose(got, wanted[0], **tolerance)


LOWERED = [name for name in samples.ALL if name != "overlapping"]  # it writes to its input


@pytest.mark.parametrize("name", LOWERED)
def test_the_launches_give_what_numpy_gives(name):
    compare(samples.ALL[name]())


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 300])
def test_trees_of_any_size_are_reduced_and_spread(n):
    compare(samples.levels(n))


def test_in_single_precision_too():
    program = samples.levels(100)
    assert "double" not in items_text(program, "float32").source
    compare(program, "float32", rtol=1e-4, atol=1e-4)


def test_a_rolled_recursion_runs_on_a_single_thread():
    program = lw.chain(70).program("forward_dynamics", form="rolled")
    compare(program, rtol=1e-9)


def test_runs_become_launches_and_runs_of_a_case_share_a_function():
    program = samples.levels(37)
    text = items_text(program, "float64")
    scan = program.statements[1]
    runs = program.columns[scan.runs].tolist()
    launches = list(pairwise(runs))
    found = [(begin, end) for _, begin, end, *_ in text.launches]
    assert found[1 : 1 + len(launches)] == launches
    assert len({f for f, *_ in text.launches[1 : 1 + len(launches)]}) == 2
    assert len(text.functions) < len(text.launches)


def test_rows_are_transposed_and_inputs_and_outputs_are_not():
    program = samples.levels(37)
    text = items_text(program, "float64")
    names = {program.buffers[k].name: wide for k, wide in text.transposed.items()}
    assert names == {"up": 3, "down": 4, "numbers": 2}


def test_a_table_that_is_read_across_its_rows_stays_as_it_is():
    program = samples.tree_scan()  # its data are read at a stride of 1
    names = {program.buffers[k].name for k in items_text(program, "float64").transposed}
    assert names == {"rows"}


def test_what_a_launch_reads_and_does_not_write_comes_through_a_pointer_of_its_own():
    source = items_text(samples.levels(37), "float64").source
    heads = re.findall(r"__global__.*", source)
    assert any("const double *__restrict__ r_" in head and " double *__restrict__ up" in head for head in heads)
    # The map in place reads and writes through one.
    assert any("down" in head and "r_" not in head for head in heads)


def test_the_functions_of_items_do_not_depend_on_their_number():
    pattern = re.compile(r"^static __device__ void levels_f\d+\([^)]*long long i\)\n{.*?\n}", re.DOTALL | re.MULTILINE)
    short, long = (pattern.findall(items_text(samples.levels(n), "float64").source) for n in (64, 128))
    assert len(short) >= 5
    assert short == long


def test_only_sums_and_gaps_are_cleared():
    program = samples.levels(37)
    assert items_text(program, "float64").cleared == ()  # the program clears what it adds to
    bare = samples.tree_scan()
    assert items_text(bare, "float64").cleared == ()


def test_which_programs_are_run_so():
    assert suits(samples.levels(37))
    assert suits(samples.moved_rows(300))
    assert not suits(samples.moved_rows(100))
    assert not suits(samples.tree_scan())
    assert not suits(samples.overlapping())  # it writes to its input


def test_a_choice_between_cases_is_one_launch_or_several(monkeypatch):
    few = items_text(samples.levels(20), "float64")
    monkeypatch.setattr(item_threads, "_SEGMENTS", 1)
    one = items_text(samples.levels(20), "float64")
    assert len(one.launches) < len(few.launches)
    assert "switch" in one.source
    compare(samples.levels(20))
