"""A study computed in parts by several drivers of one folder: side by side, killed and gone on with, or refused."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import WAITING, logged, plan, square, task
from small import written

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.plan import make_plan
from linkwright.sweeps.store import CHUNKS, DATASET, Store
from linkwright.sweeps.workers import Here

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and locks are of POSIX")
CASES, CHUNK = 40, 2
DRIVER = f"""
import sys
from pathlib import Path
import chores
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import Store
from linkwright.sweeps.workers import Here
folder, part = Path(sys.argv[1]), (int(sys.argv[2]), int(sys.argv[3]))
given, cases = chores.task(folder), chores.plan({CASES}, {CHUNK})
store = Store.begin(folder / "study", given, cases, part=part)
runner = Runner(given, cases, store, compute=getattr(chores, sys.argv[4]))
print("begun", flush=True)
runner.work(Here(), runner.left)
store.release()
"""


class Drivers:
    """Processes, each of which computes a part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []

    def started(self, part: int, parts: int, work: str) -> "subprocess.Popen[str]":
        paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(self.folder), str(part), str(parts), work],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    started = Drivers(tmp_path)
    yield started
    started.end()


def until(ready: Any) -> None:
    end = time.monotonic() + 300
    while not ready() and time.monotonic() < end:
        time.sleep(0.01)
    assert ready()


def waiting(folder: Path) -> int:
    """How many drivers are in the middle of a chunk."""
    return len({pid for first, pid in logged(folder) if first >= WAITING})


@posix
def test_parts_in_processes_of_their_own_make_the_study_together(tmp_path: Path, drivers: Drivers) -> None:
    processes = [drivers.started(part, 3, "square_when_allowed") for part in (1, 2, 3)]
    until(lambda: waiting(tmp_path) == 3)  # all three are at work at once
    with pytest.raises(LinkwrightError, match="another process works on part 2 of 3 of the study"):
        Store.begin(tmp_path / "study", task(tmp_path), plan(CASES, CHUNK), part=(2, 3))
    with pytest.raises(LinkwrightError, match="is computed in 3 parts, not 4; give one of these"):
        Store.begin(tmp_path / "study", task(tmp_path), plan(CASES, CHUNK), part=(2, 4))
    for options in ({"resume": True}, {"overwrite": True}, {}):
        with pytest.raises(LinkwrightError, match="another process works on the study in"):
            Store.begin(tmp_path / "study", task(tmp_path), plan(CASES, CHUNK), **options)
    study = lw.Study.open(tmp_path / "study")
    assert study.missing_parts == [(1, 3), (2, 3), (3, 3)]
    assert "(parts 1, 2, 3 of 3)" in study.described()
    (tmp_path / "go").touch()
    assert [process.wait(300) for process in processes] == [0, 0, 0]
    study = lw.Study.open(tmp_path / "study")
    assert np.array_equal(study["y"], np.arange(float(CASES)) ** 2)
    assert (study.ok.all(), study.missing_parts) == (True, [])
    assert sorted(int(first) for first, _ in logged(tmp_path)) == list(range(0, CASES, CHUNK))  # nothing twice


@posix
def test_a_killed_part_goes_on_and_computes_nothing_twice(tmp_path: Path, drivers: Drivers) -> None:
    victim = drivers.started(2, 2, "square_then_wait")
    until(lambda: waiting(tmp_path) == 1)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(300)
    half_written = tmp_path / "study" / CHUNKS / ".000003.npz.01234567.part"
    of_another = half_written.with_name(".000004.npz.01234567.part")
    for file in (half_written, of_another):
        file.write_text("half")
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "study" / CHUNKS).glob("0*.npz")}
    assert sorted(before) == [f"{k:06d}.npz" for k in range(1, 10, 2)]
    study = lw.Study.open(tmp_path / "study")
    assert study.missing_parts == [(1, 2), (2, 2)]
    begun = len(logged(tmp_path))
    assert drivers.started(2, 2, "square").wait(300) == 0
    assert (half_written.exists(), of_another.exists()) == (False, True)
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "study" / CHUNKS).glob("0*.npz")}
    assert {name: after[name] for name in before} == before
    assert [int(first) // CHUNK for first, _ in logged(tmp_path)[begun:]] == [11, 13, 15, 17, 19]
    study = lw.Study.open(tmp_path / "study")
    assert (study.missing_parts, study.missing_cases) == ([(1, 2)], CASES // 2)
    assert "20 not computed yet (part 1 of 2)" in study.described()


def computed(folder: Path, **options: Any) -> Runner:
    """A driver's work on the study in a folder, in this process."""
    store = Store.begin(folder / "study", task(folder), plan(CASES, CHUNK), **options)
    runner = Runner(task(folder), store.plan, store, compute=square)
    runner.work(Here(), runner.left)
    store.release()
    return runner


def test_a_driver_of_the_whole_computes_what_parts_have_left(tmp_path: Path) -> None:
    assert computed(tmp_path, part=(3, 4)).cases == CASES // 4
    with pytest.raises(LinkwrightError, match="holds a study already; resume=True"):
        computed(tmp_path)
    assert lw.Study.open(tmp_path / "study").missing_parts == [(1, 4), (2, 4), (4, 4)]  # refusing left the record
    whole = computed(tmp_path, resume=True)
    assert (whole.loaded, whole.cases) == (CASES // 4, CASES)
    study = lw.Study.open(tmp_path / "study")
    assert (study.ok.all(), study.missing_parts) == (True, [])
    assert computed(tmp_path, part=(5, 8)).loaded == len(range(4, CASES // CHUNK, 8)) * CHUNK  # divided anew


def test_a_part_of_another_study_is_refused(tmp_path: Path) -> None:
    computed(tmp_path, part=(1, 2))
    other = make_plan({"x": np.arange(CASES) + 1.0}, chunk=CHUNK)
    with pytest.raises(LinkwrightError, match="holds another study, which differs in the values of 'x'"):
        Store.begin(tmp_path / "study", task(tmp_path), other, part=(2, 2))


def test_a_part_with_a_damaged_chunk_is_missing_and_goes_on(tmp_path: Path) -> None:
    for part in (1, 2):
        computed(tmp_path, part=(part, 2))
    os.truncate(tmp_path / "study" / CHUNKS / "000003.npz", 100)
    study = lw.Study.open(tmp_path / "study")
    assert (study.missing_parts, study.missing_cases) == ([(2, 2)], CHUNK)
    computed(tmp_path, part=(2, 2))
    assert lw.Study.open(tmp_path / "study").missing_parts == []


@posix
def test_a_waiting_part_holds_its_lock_until_it_ends(tmp_path: Path, drivers: Drivers) -> None:
    victim = drivers.started(1, 2, "square_then_wait")
    until(lambda: waiting(tmp_path) == 1)
    with pytest.raises(LinkwrightError, match="another process works on part 1 of 2"):
        computed(tmp_path, part=(1, 2))
    assert computed(tmp_path, part=(2, 2)).cases == CASES // 2
    victim.kill()
    victim.wait(300)
    assert computed(tmp_path, part=(1, 2)).loaded == 10


def test_sweeps_of_parts_are_the_sweep(tmp_path: Path) -> None:
    model = written(tmp_path)
    arguments: tuple[Any, ...] = (model, {"length": np.linspace(1.4, 2.4, 21)}, ["tip.y", "high = max(tip.y)"])
    known = lw.sweep(*arguments, execution=lw.Execution(chunk=2))
    for part in (2, 3, 1):
        seen: list[tuple[int, int]] = []
        study = lw.sweep(
            *arguments,
            store=lw.StudyFolder(tmp_path / "s", part=(part, 3)),
            execution=lw.Execution(chunk=2, progress=lambda *counts, to=seen: to.append(counts)),
        )
        assert seen[-1] == {1: (8, 8), 2: (7, 7), 3: (6, 6)}[part]
    assert study.missing_parts == []
    assert study.data.identical(known.data)
    assert not (tmp_path / "s" / DATASET).exists()
    whole = lw.sweep(*arguments, store=lw.StudyFolder(tmp_path / "s", resume=True))
    assert (whole.loaded, whole.data.identical(known.data)) == (21, True)
    assert (tmp_path / "s" / DATASET).exists()
    assert not [name for name in os.listdir(tmp_path / "s") if name.startswith(".part")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"part": "3/16"}, r"part must be two whole numbers, as in part=\(3, 16\), not '3/16'"),
        ({"part": (3,)}, "part must be two whole numbers"),
        ({"part": (0, 16)}, "part must be a whole number from 1 on, not 0"),
        ({"part": (1.5, 16)}, "part must be a whole number, not 1.5"),
        ({"part": (17, 16)}, "there are 16 parts, 1 … 16"),
        ({"part": (1, 10**6)}, "a study has at most 10,000 parts"),
        ({"part": (1, 2), "overwrite": True}, "overwrite=True removes what other parts have computed"),
    ],
)
def test_a_part_that_is_none_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(LinkwrightError, match=words):
        lw.StudyFolder("study", **options)
