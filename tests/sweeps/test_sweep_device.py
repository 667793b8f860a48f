"""Studies on a GPU give the numbers and reasons of those on the CPU: the CUDA text runs as C++ behind a stand-in."""

import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import fake_cupy
import linkwright as lw
from linkwright.errors import KernelError, ModelError
from linkwright.sweeps import case_engine, device_cases, tree_cases
from linkwright.sweeps.task import make_task

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
FOUR_BAR, SLIDER_CRANK = MODELS / "four_bar.mks", MODELS / "slider_crank_parameters.mks"
TIMES = np.linspace(0.0, 2.0 * np.pi, 81)
RNG = np.random.default_rng(3)


@pytest.fixture
def cupy(monkeypatch):
    monkeypatch.setattr(device_cases, "_codes", OrderedDict())
    return fake_cupy.install(monkeypatch)


def on_both(model, names, outputs, values, times):
    """The batches of the CPU and of the stand-in."""
    task = make_task(model, names, outputs, times=times)
    return case_engine.Engine(task).run(values), device_cases.DeviceEngine(task).run(values)


def agree(cpu, gpu):
    assert gpu.reasons == cpu.reasons
    assert list(gpu.arrays) == list(cpu.arrays)
    for name, wanted in cpu.arrays.items():
        np.testing.assert_allclose(gpu.arrays[name], wanted, rtol=1e-10, atol=1e-10, err_msg=name)


OUTPUTS = [
    "reach = max(pen.x)",
    "low = min(pen.y) * coupler",
    "swing = range(pen.y - 0.1 * crank)",
    "middle = mean(pen.x + TIME)",
    "noise = rms(pen.vx)",
    "last = final(pen.ax)",
    "first = initial(pen.y)",
    "when = argmax(pen.y)",
    "early = argmin(pen.x)",
    "way = integral(abs(pen.vx))",
    "gap = max(distance(pen, right))",
    "size = 2 * coupler + max(pen.x)",
]


def test_four_bars_have_the_numbers_of_the_cpu_whatever_is_reduced(cupy):
    values = RNG.uniform([0.8, 2.8], [1.1, 3.2], (40, 2))
    cpu, gpu = on_both(FOUR_BAR, ("crank", "coupler"), OUTPUTS, values, TIMES)
    agree(cpu, gpu)
    assert not any(gpu.reasons)
    assert [entry[0] for entry in fake_cupy.log].count("launch") == 3  # starts, first points, motions


def test_cases_that_fail_have_the_reasons_of_the_cpu(cupy, monkeypatch):
    values = np.array(
        [[1.0, 3.0], [2.4, 1.0], [-1.0, 3.0], [np.nan, 3.0], [1.2, 3.0], [1.5, 2.0], [9.0, 0.5], [1.0, 0.0]]
    )
    cpu, gpu = on_both(FOUR_BAR, ("crank", "coupler"), ["reach = max(pen.x)"], values, TIMES)
    agree(cpu, gpu)
    assert any("out of reach" in reason for reason in gpu.reasons)
    assert not gpu.reasons[0]


def test_cases_that_need_shorter_steps_march_again_by_halves(cupy, monkeypatch):
    few = np.linspace(0.0, 2.0 * np.pi, 6)  # turns of 72 degrees
    values = RNG.uniform([0.8, 2.8], [1.1, 3.2], (16, 2))
    task = make_task(FOUR_BAR, ("crank", "coupler"), ["reach = max(pen.x)", "way = integral(abs(pen.vx))"], times=few)
    cpu = case_engine.Engine(task).run(values)
    engine = device_cases.DeviceEngine(task)
    monkeypatch.setattr(tree_cases.TreeMarch, "tried", lambda *_: pytest.fail("on the CPU"))
    gpu = engine.run(values)
    agree(cpu, gpu)
    assert [entry[0] for entry in fake_cupy.log].count("launch") > 3


def test_a_study_goes_there_with_on_gpu(cupy):
    lengths = {"crank": np.linspace(0.8, 1.1, 5), "coupler": [2.8, 3.0, 3.2]}
    options = {"times": TIMES}
    cpu = lw.sweep(FOUR_BAR, lengths, ["reach = max(pen.x)"], **options)
    gpu = lw.sweep(FOUR_BAR, lengths, ["reach = max(pen.x)"], on="gpu", **options)
    np.testing.assert_allclose(gpu["reach"], cpu["reach"], rtol=1e-12)
    assert gpu.ok.all()


def test_long_marches_are_several_launches(cupy, monkeypatch):
    from linkwright.kernels.cuda import device_kernel

    values = RNG.uniform([0.8, 2.8], [1.1, 3.2], (9, 2))
    monkeypatch.setattr(device_kernel, "ONE", 1.0)  # a launch of one step
    cpu, gpu = on_both(FOUR_BAR, ("crank", "coupler"), ["reach = max(pen.x)"], values, TIMES[:7])
    agree(cpu, gpu)
    assert [entry[0] for entry in fake_cupy.log].count("launch") == 9


@pytest.mark.parametrize(
    ("outputs", "options", "words"),
    [
        (["pen.x"], {}, "an output is a series"),
        (["spread = max(pen.x - mean(pen.x))"], {}, "reduces what is reduced already"),
        (["work = max(pen.x)"], {"analysis": "dynamic"}, "the analysis is dynamic"),
        ({"top": lambda solution: 1.0}, {}, "function"),
        (["reach = max(pen.x)"], {"execution": lw.Execution(time_limit=1.0)}, "time_limit is for processes"),
        (["reach = max(pen.x)"], {"execution": lw.Execution(workers=2)}, "workers are processes"),
    ],
)
def test_what_is_no_study_for_a_gpu_is_refused(cupy, outputs, options, words):
    with pytest.raises(ModelError, match=words):
        lw.sweep(FOUR_BAR, {"coupler": [3.0]}, outputs, on="gpu", times=TIMES, **options)


def test_without_cupy_the_error_says_what_to_install_before_anything_is_computed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(case_engine.Engine, "__init__", lambda *_: pytest.fail("an engine"))
    with pytest.raises(KernelError, match="pip install cupy-cuda12x"):
        lw.sweep(FOUR_BAR, {"coupler": [3.0]}, ["reach = max(pen.x)"], on="gpu", times=TIMES)


SLIDER_OUTPUTS = [
    "travel = range(block.x)",
    "fastest = max(block.vx)",
    "swing = range(rev1.angle)",
    "spin = max(pend2.wz)",
]


def test_slider_cranks_with_a_rod_that_may_spin_have_the_numbers_of_the_cpu(cupy, monkeypatch):
    values = RNG.uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (20, 3))
    fails = [[6.0, 10.0, 8.0], [12.0, 3.0, 3.0], [6.0, 6.5, 3.0], [6.0, 10.0, 15.0]]
    values = np.concatenate([values, fails])
    names = ("crank_length", "rod_length", "stroke")
    cpu, gpu = on_both(SLIDER_CRANK, names, SLIDER_OUTPUTS, values, None)
    agree(cpu, gpu)
    assert [bool(reason) for reason in gpu.reasons] == [False] * 20 + [True] * 4


def test_on_the_cpu_the_motions_of_a_freedom_are_those_of_the_bodies(monkeypatch):
    values = RNG.uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (10, 3))
    task = make_task(SLIDER_CRANK, ("crank_length", "rod_length", "stroke"), SLIDER_OUTPUTS)
    engine, oracle = case_engine.Engine(task), case_engine.Engine(task)
    assert engine.way.program is not None
    oracle.way.program = None
    agree(oracle.run(values), engine.run(values))


def test_cases_that_are_drawn_in_place_are_not_assembled_on_the_cpu(cupy, monkeypatch):
    values = RNG.uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (12, 3))
    task = make_task(SLIDER_CRANK, ("crank_length", "rod_length", "stroke"), SLIDER_OUTPUTS)
    cpu, engine = case_engine.Engine(task).run(values), device_cases.DeviceEngine(task)
    monkeypatch.setattr(device_cases, "tree_starts", lambda *_: pytest.fail("on the CPU"))
    agree(cpu, engine.run(values))
    impossible = np.array([[6.0, 5.0, 2.0]])  # a rod that is shorter than the crank: the drawing has no numbers
    monkeypatch.undo()
    fake_cupy.install(monkeypatch)
    assert engine.run(impossible).reasons == case_engine.Engine(task).run(impossible).reasons


def test_a_second_study_of_the_same_kind_records_nothing(cupy, monkeypatch):
    lengths, options = {"crank": [0.9, 1.0], "coupler": [3.0]}, {"on": "gpu", "times": TIMES}
    first = lw.sweep(FOUR_BAR, lengths, ["reach = max(pen.x)"], **options)
    monkeypatch.setattr(tree_cases.TreeProgram, "march", lambda *_: pytest.fail("recorded again"))
    np.testing.assert_array_equal(
        lw.sweep(FOUR_BAR, lengths, ["reach = max(pen.x)"], **options)["reach"], first["reach"]
    )
