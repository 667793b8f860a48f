"""A study larger than memory: read chunk by chunk when it is asked for, with every defect reported by its file."""

import os
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import plan as cases_of
from chores import task as chore

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightError, MemoryLimitError, ModelError
from linkwright.results.solution_files import archive_bytes
from linkwright.sweeps import stored_outputs, sweep
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.plan import Plan, make_plan
from linkwright.sweeps.store import CHUNKS, DATASET, Store
from linkwright.sweeps.stored_outputs import StoredOutputs
from linkwright.sweeps.task import Batch, Task, gathered
from linkwright.sweeps.workers import Here

TIMES = tuple(np.linspace(0.0, 1.0, 5))
MODEL = """MODEL m
PARAMETER a = 1; PARAMETER b = 1;
BODY base (ground); BODY p;
HINGE h (body = base, body = p, at = (a, b));
ENDMODEL"""
TASK = Task(MODEL, ("a", "b"), (("top", "max(p.y)"), ("y", "p.y")), "kinematic", TIMES)
GRID = {"a": [3.0, 1.0, 2.0], "b": [0.5, 0.25]}
FILES = Path(__file__).parents[1] / "old_files" / "files_0_1_0"


def batch(plan: Plan, index: int) -> Batch:
    """A chunk whose numbers are known; the case a = 2, b = 0.25 has failed."""
    a, b = plan.values[plan.part(index)].T
    y = a[:, None] + b[:, None] * np.array(TIMES)
    failed = (a == 2.0) & (b == 0.25)
    y[failed, 2:] = np.nan
    return Batch({"top": np.where(failed, np.nan, y[:, -1]), "y": y}, ["stuck" * bool(x) for x in failed])


def stored(folder: Path, plan: Plan, chunks: list[int] | None = None) -> Path:
    """A study's folder with these chunks, all by default."""
    store = Store.begin(folder, TASK, plan)
    for index in range(plan.chunks) if chunks is None else chunks:
        store.write(index, batch(plan, index))
    store.release()
    return folder


@pytest.fixture
def plan() -> Plan:
    return make_plan(GRID, chunk=2)


@pytest.fixture
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every study is too large to be read at once."""
    monkeypatch.setattr(stored_outputs, "MEMORY", 0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Which output of which chunk is read, in turn."""
    seen: list[tuple[int, str]] = []
    read = Store._output

    def counted(store: Store, index: int, head: Any, name: str) -> Any:
        seen.append((index, name))
        return read(store, index, head, name)

    monkeypatch.setattr(Store, "_output", counted)
    return seen


@pytest.mark.usefixtures("_large")
def test_a_study_in_files_answers_as_one_in_memory(plan: Plan, tmp_path: Path) -> None:
    study = lw.Study.open(stored(tmp_path / "s", plan))
    known = lw.Study(TASK, plan, gathered(TASK, plan, {k: batch(plan, k) for k in range(plan.chunks)}))
    assert (study.in_memory, known.in_memory) == (False, True)
    assert study.data.load().identical(known.data)
    assert study.grid().load().identical(known.grid())
    assert dict(study.grid()["y"].sizes) == {"time": 5, "a": 3, "b": 2}
    assert study.best("top", 3, largest=True).identical(known.best("top", 3, largest=True))
    assert (study.summary(), repr(study), study.reasons) == (known.summary(), repr(known), known.reasons)
    assert study.failed.identical(known.failed)
    assert np.array_equal(study["y"], known["y"], equal_nan=True)
    for one, name in ((study, "lazy"), (known, "known")):
        one.to_csv(tmp_path / f"{name}.csv")
        one.save(tmp_path / f"{name}.nc")
        one.plot(kind="series", path=tmp_path / f"{name}.svg")
    assert (tmp_path / "lazy.csv").read_text() == (tmp_path / "known.csv").read_text()
    assert lw.Study.open(tmp_path / "lazy.nc").data.load().identical(known.data)
    assert lw.Study.open(tmp_path / "known.nc").data.load().identical(known.data)


@pytest.mark.usefixtures("_large")
def test_only_the_chunks_that_a_slice_touches_are_read(
    plan: Plan, tmp_path: Path, reads: list[tuple[int, str]]
) -> None:
    study = lw.Study.open(stored(tmp_path / "s", plan))
    data = study.data
    assert repr(data)
    assert (int(study.ok.sum()), reads) == (5, [])
    whole = np.concatenate([batch(plan, k).arrays["y"] for k in range(plan.chunks)])
    for key, chunks in (
        ({"case": slice(2, 4), "time": [3, 0]}, [1]),
        ({"case": 5, "time": slice(None, None, -2)}, [2]),
        ({"case": [4, 0, 5], "time": 1}, [0, 2]),
        ({"case": slice(None, None, -3)}, [1, 2]),
        ({"case": slice(0, 0)}, []),
    ):
        reads.clear()
        part = data["y"].isel(key).values
        cases, times = key["case"], key.get("time", slice(None))
        assert np.array_equal(part, whole[cases][..., times], equal_nan=True)
        assert sorted(reads) == [(k, "y") for k in chunks]
    reads.clear()
    points = study.grid()["y"].sel(a=1.0).values
    assert np.array_equal(points, 1.0 + np.array([0.25, 0.5]) * np.array(TIMES)[:, None])
    assert set(reads) == {(1, "y")}


def test_a_chunk_is_read_once_as_long_as_there_is_room_for_it(
    plan: Plan, tmp_path: Path, reads: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_outputs, "MEMORY", 2 * 2 * 5 * 8)  # two of three chunks of a series
    study = lw.Study.open(stored(tmp_path / "s", plan))
    for _ in range(2):
        for _, rows in study.blocks("y"):
            assert rows.shape == (2, 5)
            assert not rows.flags.writeable
    assert [index for index, _ in reads] == [0, 1, 2, 0, 1, 2]
    reads.clear()
    for _ in range(2):
        assert study.data["y"].isel(case=slice(2, 6)).values.shape == (4, 5)
    assert reads == []


# -- what is in the folder ---------------------------------------------------------------------------------------
def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[content.rfind(np.float64(3.5).tobytes())] ^= 1  # of the series, which come last
    file.write_bytes(content)


def replace_by_link(file: Path) -> None:
    os.replace(file, file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def replace_by_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def rewrite(file: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """The chunk with other arrays, or another header."""
    import json

    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)
    file.write_bytes(archive_bytes(header, arrays))


def shorten(file: Path) -> None:
    rewrite(file, lambda _, arrays: arrays.update(a1=arrays["a1"][:, :3]))


def change_numbers(file: Path) -> None:
    rewrite(file, lambda _, arrays: arrays.update(a1=arrays["a1"] + 1.0))


DAMAGE = {
    cut: "is damaged",
    flip: "is damaged",
    Path.unlink: "No such file",
    replace_by_link: "it is a link",
    replace_by_pipe: "it is a pipe",
    shorten: r"of shape \(2, 3\) where \(2, 5\)",
    change_numbers: "another digest",
}


@pytest.mark.usefixtures("_large")
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda x: x.__name__)
def test_a_chunk_damaged_after_the_study_was_opened_is_refused_by_its_file(
    plan: Plan, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    study = lw.Study.open(stored(tmp_path / "s", plan))
    damage(tmp_path / "s" / CHUNKS / "000000.npz")
    with pytest.raises(FormatError, match=f"000000.npz: .*{DAMAGE[damage]}.*; resume the study"):
        study.data["y"].isel(case=slice(0, 3)).load()
    assert study.data["y"].isel(case=slice(2, 6)).load().shape == (4, 5)


@pytest.mark.usefixtures("_large")
@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(shapes=[[2], [2, 5_000_000]]),
        lambda header: header.update(shapes=[[2], [3, 5]]),
        lambda header: header.update(shapes=[[2], [2, -5, -1]]),
        lambda header: header.update(shapes=[[2]]),
        lambda header: header.update(shapes=7),
        lambda header: header.update(digests=[]),
        lambda header: header.update(names=["top", "y", "y"]),
        lambda header: header.pop("reasons"),
        lambda header: header.update(study="another"),
    ],
)
def test_a_chunk_with_an_odd_header_is_as_if_it_were_not_there(
    plan: Plan, tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    folder = stored(tmp_path / "s", plan)
    rewrite(folder / CHUNKS / "000001.npz", lambda header, _: change(header))
    study = lw.Study.open(folder)
    assert study.missing_cases == 2
    assert np.isnan(study["y"][2:4]).all()
    assert np.isfinite(study["y"][:2]).all()


@pytest.mark.usefixtures("_large")
def test_chunks_that_are_not_there_are_failures_with_a_reason(plan: Plan, tmp_path: Path) -> None:
    study = lw.Study.open(stored(tmp_path / "s", plan, [0, 2]))
    assert study.reasons[2:4] == ["not computed"] * 2
    assert "2 not computed yet" in study.described()
    assert np.isnan(study.data["y"].isel(case=[2, 3])).all()


@pytest.mark.usefixtures("_large")
def test_chunks_of_0_1_0_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    folder = shutil.copytree(FILES / "begun_study", tmp_path / "s")
    study = lw.Study.open(folder)
    assert not study.in_memory
    assert study.missing_cases == 2
    length, t = study["length"][5], np.array(study.task.times)
    known = np.arccos((1.0 + study["rate"][5] * np.sin(t)) / length)
    assert np.allclose(study.data["a.angle"].isel(case=5), known, rtol=1e-11, atol=0.0)


@pytest.mark.usefixtures("_large")
def test_a_large_file_is_read_as_far_as_it_is_asked_for_and_not_after_it_was_replaced(
    plan: Plan, tmp_path: Path
) -> None:
    file = tmp_path / "s.nc"
    whole = lw.Study.open(stored(tmp_path / "s", plan))
    whole.save(file)
    study = lw.Study.open(file)
    assert not study.in_memory
    assert np.array_equal(study.data["y"].isel(case=1), whole["y"][1])
    whole.save(file)
    with pytest.raises(FormatError, match=r"s\.nc: is another file than the one that was opened"):
        study.data["top"].load()


@pytest.mark.usefixtures("_large")
def test_a_list_with_a_value_twice_is_no_grid_of_files(tmp_path: Path) -> None:
    study = lw.Study.open(stored(tmp_path / "s", make_plan({"a": [1.0, 1.0, 3.0], "b": [0.5, 0.25]}, chunk=2)))
    with pytest.raises(ModelError, match="has a value twice"):
        study.grid()


def test_an_output_larger_than_memory_says_how_to_read_it_in_parts() -> None:
    outputs = StoredOutputs({"y": (10**9,)}, [""] * 10**6, 1000, lambda name, index: np.zeros((0,)))
    with pytest.raises(MemoryLimitError, match=r"'y' of all cases takes .*study\.blocks"):
        outputs.arrays["y"].whole()


# -- the driver --------------------------------------------------------------------------------------------------
WIDTH = 2_000  # numbers of a case: a chunk of four has 64 kB


def wide(text: str, values: Any) -> dict[str, Any]:
    """Much of every case."""
    return {"arrays": {"y": np.repeat(values, WIDTH, axis=1)}, "reasons": [""] * len(values)}


def peak(work: Callable[[], Any]) -> int:
    """The most bytes that Python and NumPy have at a time during some work."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def driven(folder: Path | None, cases: int) -> Runner:
    plan, task = cases_of(cases, 4), chore(Path("."))
    runner = Runner(task, plan, None if folder is None else Store.begin(folder, task, plan), compute=wide)
    runner.work(Here(), runner.left)
    if runner.store is not None:
        runner.store.release()
    return runner


def test_the_memory_of_driver_and_reader_does_not_grow_with_the_number_of_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_outputs, "MEMORY", 2**17)

    def read(folder: Path) -> Iterator[float]:
        study = lw.Study.open(folder)
        assert not study.in_memory
        yield from (float(rows[0, -1]) for _, rows in study.blocks("y"))
        yield float(study.data["y"].isel(case=len(study) - 1)[-1])

    driven(tmp_path / "first", 40)  # what is imported and compiled is not counted
    list(read(tmp_path / "first"))
    few, many = 40, 400
    chunk, growth = 4 * WIDTH * 8, (many - few) * WIDTH * 8
    drivers = [peak(lambda n=n: driven(tmp_path / str(n), n)) for n in (few, many)]
    readers = [peak(lambda n=n: list(read(tmp_path / str(n)))) for n in (few, many)]
    assert drivers[1] - drivers[0] < chunk < 0.02 * growth
    assert readers[1] - readers[0] < chunk
    assert peak(lambda: driven(None, many)) > growth  # without a folder, all of it is in memory


def test_outputs_that_need_a_folder_are_refused_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))
    options: dict[str, Any] = {"analysis": "dynamic", "times": np.linspace(0.0, 0.1, 11)}
    lengths = {"length": np.linspace(0.5, 1.0, 16)}
    need = 16 * 11 * 8
    monkeypatch.setattr(sweep, "available", lambda: 3 * need - 1)
    with pytest.raises(MemoryLimitError, match=r"a study of 16 cases takes .* name one, as in store='study'"):
        lw.sweep(mech, lengths, "joint1.angle", **options)
    assert len(lw.sweep(mech, lengths, "joint1.angle", store=tmp_path / "s", **options)) == 16
    monkeypatch.setattr(sweep, "available", lambda: 3 * need)
    assert len(lw.sweep(mech, lengths, "joint1.angle", **options)) == 16


@pytest.mark.usefixtures("_large")
def test_a_large_study_stays_in_chunks_and_is_resumed_from_them(tmp_path: Path) -> None:
    mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))
    options: dict[str, Any] = {"analysis": "dynamic", "times": np.linspace(0.0, 0.1, 11)}
    arguments = (mech, {"length": np.linspace(0.5, 1.0, 40)}, ["joint1.angle", "final(joint1.angle)"])
    store = lw.StudyFolder(tmp_path / "s", resume=True)
    first = lw.sweep(*arguments, store=store, **options)
    assert not first.in_memory
    assert not (tmp_path / "s" / DATASET).exists()
    again = lw.sweep(*arguments, store=store, **options)
    assert (first.loaded, again.loaded) == (0, 40)
    known = lw.sweep(*arguments, **options)
    assert known.in_memory
    assert again.data.load().identical(known.data)
    (tmp_path / "s" / CHUNKS / "000001.npz").unlink()
    assert lw.sweep(*arguments, store=store, **options).loaded == 24
    with pytest.raises(LinkwrightError, match="holds a study already"):
        lw.sweep(*arguments, store=tmp_path / "s", **options)


@pytest.mark.usefixtures("_large")
def test_dask_computes_on_chunks_that_are_read_one_by_one(
    plan: Plan, tmp_path: Path, reads: list[tuple[int, str]]
) -> None:
    pytest.importorskip("dask")
    study = lw.Study.open(stored(tmp_path / "s", plan))
    mean = study.data["y"].chunk(case=study.plan.chunk).mean("case")
    assert reads == []
    assert np.allclose(mean.compute(scheduler="threads"), np.nanmean(study["y"], axis=0), rtol=1e-15)
    assert {index for index, _ in reads} == {0, 1, 2}
