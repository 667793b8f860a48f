"""What 0.1.0 wrote is read with its numbers, or refused by name with what to do."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import written_by_0_1_0 as old
from numpy.testing import assert_allclose, assert_array_equal

import linkwright as lw
from linkwright.errors import FormatError
from run_settings import settings


def angle(t: np.ndarray, length: float, rate: float) -> np.ndarray:
    """Of the arm whose tip is driven along a line."""
    return np.arccos((1.0 + rate * np.sin(t)) / length)


def copied(name: str, folder: Path) -> Path:
    """A study's folder, which resuming changes."""
    return Path(shutil.copytree(old.FILES / name, folder / name))


# -- results ---------------------------------------------------------------------------------------------------
def test_a_kinematic_result_is_read() -> None:
    solution = lw.open(old.FILES / "reach.nc")
    t = np.linspace(0.0, 2.0, 9)
    assert_allclose(solution.time, t, rtol=1e-15)
    half = 0.5 * angle(t, 2.0, 0.5)
    zero = np.zeros_like(t)
    assert_allclose(solution.orientation("arm"), np.stack([np.cos(half), zero, zero, np.sin(half)], 1), atol=1e-12)
    speed = -0.5 * np.cos(t) / (2.0 * np.sin(2.0 * half))
    assert_allclose(solution.angular_velocity("arm")[:, 2], speed, rtol=1e-11)
    assert solution.status.ok
    assert solution.counters.points == len(t)


def test_a_simulation_is_read_with_its_states_and_events() -> None:
    solution = lw.open(old.FILES / "oscillator.nc")
    t = np.linspace(0.0, 1.0, 11)
    assert_allclose(solution.time, t, rtol=1e-15)
    wanted = {"q": 0.3 * np.cos(5.0 * t), "v": -1.5 * np.sin(5.0 * t), "a": -7.5 * np.cos(5.0 * t)}
    for name, values in wanted.items():
        assert_allclose(getattr(solution, name)[:, 0], values, atol=1e-8)
    assert_allclose(solution.position("block")[:, 0], wanted["q"], atol=1e-9)
    assert [event.name for event in solution.events] == ["middle", "middle"]
    assert_allclose([event.time for event in solution.events], [0.1 * np.pi, 0.3 * np.pi], atol=1e-9)
    assert_allclose([event.v[0] for event in solution.events], [-1.5, 1.5], atol=1e-8)


@pytest.mark.parametrize("name", ["reach", "oscillator"])
def test_a_result_is_written_again_as_it_was(name: str, tmp_path: Path) -> None:
    first = lw.open(old.FILES / f"{name}.nc")
    first.save(tmp_path / "again.nc")
    again = lw.open(tmp_path / "again.nc")
    assert first.data.identical(again.data)
    assert first.data.sizes["time"] > 1


# -- studies ---------------------------------------------------------------------------------------------------
def check_reach(study: lw.Study) -> None:
    """The cases of the arm by their closed form; those that cannot reach say so."""
    data = study.data
    length, rate = data["length"].values, data["rate"].values
    assert_array_equal(length, np.repeat([1.2, 1.4, 1.8, 2.2], 2))
    assert_array_equal(rate, np.tile([0.5, 0.7], 4))
    assert_array_equal(data["ok"], length > 1.5)
    for k in range(len(length)):
        if length[k] > 1.5:
            assert_allclose(data["a.angle"][k], angle(data["time"].values, length[k], rate[k]), rtol=1e-11)
            assert_allclose(data["height"][k], np.sqrt(length[k] ** 2 - 1.0), rtol=1e-12)
        else:
            assert "driver 'd'" in str(data["reason"][k].values)


def test_a_study_is_opened() -> None:
    check_reach(lw.Study.open(old.FILES / "study"))


def test_a_study_of_drawn_values_is_opened() -> None:
    study = lw.Study.open(old.FILES / "drawn_study")
    m, k = study.data["m"].values, study.data["k"].values
    assert_array_equal(m, np.repeat([1.0, 2.0], 3))
    assert 40.0 <= k.min() < k.max() <= 60.0
    assert_allclose(study.data["end"], 0.3 * np.cos(np.sqrt(k / m)), atol=1e-8)


@pytest.mark.parametrize(("name", "loaded"), [("study", 8), ("begun_study", 6)])
def test_a_study_goes_on_from_what_is_finished(name: str, loaded: int, tmp_path: Path) -> None:
    folder = copied(name, tmp_path)
    study = old.study(folder, old.SWEEP, old.model(old.REACH, tmp_path), resume=True)
    assert study.loaded == loaded
    check_reach(study)


def test_another_study_is_refused_by_what_differs(tmp_path: Path) -> None:
    folder = copied("begun_study", tmp_path)
    how = {**old.SWEEP, "parameters": {**old.SWEEP["parameters"], "rate": [0.5, 0.6]}}
    path = old.model(old.REACH, tmp_path)
    with pytest.raises(lw.errors.LinkwrightError, match="the values of 'rate'"):
        old.study(folder, how, path, resume=True)


# -- checkpoints -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", old.RUNS)
def test_a_checkpoint_is_refused_by_its_version_and_kept(name: str, tmp_path: Path) -> None:
    """Steps are controlled by other numbers since; a run that goes on from the old ones would be another run."""
    path = Path(shutil.copy(old.FILES / f"{name}.lwc", tmp_path))
    content = path.read_bytes()
    mech = lw.load(old.model(old.OSCILLATOR, tmp_path))
    message = "the format version 2 of an older Linkwright.*; resume with the Linkwright that wrote it, or leave"
    with pytest.raises(FormatError, match=message) as caught:
        lw.simulate(mech, old.T_END, **settings(checkpoint=path, resume=True, **old.RUNS[name]))
    assert caught.value.file == str(path)
    assert path.read_bytes() == content
    anew = lw.simulate(mech, old.T_END, **settings(checkpoint=path, **old.RUNS[name]))
    assert anew.status.ok
    assert "another run or version" in anew.status.notes[0]
    assert Path(f"{path}.old").read_bytes() == content


# -- programs --------------------------------------------------------------------------------------------------
def test_a_recorded_function_is_read() -> None:
    program = lw.load_program(old.FILES / "branches.lwp")
    for x, y in zip(*old.arguments(), strict=True):
        angle = np.sin(x[1]) if x[0] > y[1] else np.arctan2(x[2], y[0])
        wanted = [angle, np.hypot(x[0], 1.0) / (2.0 + np.cos(y[0])), min(x[2], y[1])]
        values, square = program(x, y)
        assert_allclose(values, wanted, rtol=1e-14)
        assert_allclose(square, x @ x, rtol=1e-14)


@pytest.mark.parametrize("name", old.PROGRAMS)
def test_a_program_of_a_mechanism_is_read(name: str) -> None:
    program, mech = lw.load_program(old.FILES / f"{name}.lwp"), old.arm()
    inputs = np.random.default_rng(1).normal(size=(3, 3, mech.nv))
    answers, wanted = program(*inputs), getattr(mech, old.PROGRAMS[name]["function"])(*inputs)
    several = isinstance(wanted, tuple)
    for got, right in zip(answers if several else [answers], wanted if several else [wanted], strict=True):
        assert_allclose(got, right, rtol=1e-11, atol=1e-12)
