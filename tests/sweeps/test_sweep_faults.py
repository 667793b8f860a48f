"""What goes wrong around a study's folder: a full disk, a read-only one, a second writer. Nothing finished is lost."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import logged, plan, square, task
from small import written

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import CHUNKS, DATASET, Store
from linkwright.sweeps.study_files import save
from linkwright.sweeps.task import Batch, gathered
from linkwright.sweeps.workers import Here
from rotation import some

posix = pytest.mark.skipif(sys.platform == "win32", reason="limits and locks are of POSIX")


def environment() -> dict[str, str]:
    """Of another process, which finds what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}


def computed(folder: Path) -> Batch:
    """A study of two chunks, begun or gone on with, as `lw.sweep` does it."""
    given, cases = task(folder.parent), plan(4, 2)
    store = Store.begin(folder, given, cases, resume=True)
    try:
        runner = Runner(given, cases, store, compute=square)
        runner.work(Here(), runner.left)
        batch = gathered(given, cases, store.stored())
        save(given, cases, batch, folder / DATASET)
        store.drop_chunks()
        return batch
    finally:
        store.release()


class Refusing:
    """The system's calls that change a folder, of which one is refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.count, self.at, self.number = 0, -1, number
        for name in ("open", "fsync", "replace", "mkdir"):
            monkeypatch.setattr(os, name, self.wrapped(getattr(os, name)))

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any, **options: Any) -> Any:
            reading = call.__name__ == "open" and not arguments[1] & os.O_CREAT
            self.count += not reading
            if not reading and self.count == self.at:
                raise OSError(self.number, os.strerror(self.number), str(arguments[0]))
            return call(*arguments, **options)

        asked.__name__ = call.__name__
        return asked


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS], ids=["full", "read-only"])
def test_whichever_call_the_system_refuses_nothing_finished_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    system = Refusing(monkeypatch, number)
    computed(tmp_path / "whole" / "s")
    calls = system.count
    assert calls > 12
    refused: list[str] = []
    for at in range(1, calls + 1) if number == errno.ENOSPC else some(range(1, calls + 1), 6):
        folder = tmp_path / str(at) / "s"
        folder.parent.mkdir()
        system.count, system.at = 0, at
        try:
            computed(folder)
        except LinkwrightError as error:
            refused.append(str(error))
        system.at = -1
        stored = {f.stem for f in (folder / CHUNKS).glob("*.npz")} if folder.exists() else set()
        begun = len(logged(folder.parent))
        batch = computed(folder)
        assert np.array_equal(batch.arrays["y"], np.arange(4.0) ** 2)
        again = {f"{int(first) // 2:06d}" for first, _ in logged(folder.parent)[begun:]}
        assert not again & stored, at
        assert lw.Study.open(folder).ok.all()
        assert not [name for name in os.listdir(folder) if name.endswith(".part")]
    assert len(refused) > (calls // 2 if number == errno.ENOSPC else 0)
    assert all(os.strerror(number) in text and ".part" not in text for text in refused)


FULL = """
import resource, sys
from linkwright.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


def swept(folder: Path, room: int) -> tuple[int, str, str]:
    """A study by the command line, on a disk that takes no file of more than `room` bytes: code, output, errors."""
    command = ["sweep", str(written(folder)), "--set", "length=1.8:2.2:0.01", "--chunk", "41", "--no-plot", "--resume"]
    command += ["--output-value", "tip.y", "--output-value", "tip.x", "--out", str(folder / "s")]
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(room), *command],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
        check=False,
    )
    return run.returncode, run.stdout, " ".join(run.stderr.split())


@posix
@pytest.mark.compiled
def test_a_full_disk_ends_a_study_in_a_line_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    chunks = tmp_path / "s" / CHUNKS
    code, _, errors = swept(tmp_path, room=5_000)
    assert (code, errors.count("error: "), len(list(chunks.iterdir()))) == (1, 1, 0)
    assert "000000.npz: File too large" in errors
    assert "0 of 41 cases are in" in errors
    assert "--resume goes on from there" in errors
    code, _, errors = swept(tmp_path, room=17_000)
    assert (code, errors.count("error: "), len(list(chunks.iterdir()))) == (1, 1, 1)
    assert "study.nc: File too large" in errors
    assert "all 41 cases are in" in errors
    code, output, errors = swept(tmp_path, room=10**9)
    assert (code, errors) == (0, "")
    assert "41 were there already" in output
    study = lw.Study.open(tmp_path / "s")
    x = 1.0 + 0.5 * np.sin(0.1 * np.arange(21))
    assert np.allclose(study["tip.y"], np.sqrt(study["length"][:, None] ** 2 - x**2), rtol=0.0, atol=1e-9)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc is of Linux")
def test_a_folder_where_nothing_can_be_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError, match="/proc/study: cannot be made"):
        lw.sweep(written(tmp_path), {"length": [2.0]}, "tip.y", store="/proc/study")


WRITER = """
import sys
from pathlib import Path
from chores import plan, square_when_allowed, task
from linkwright.sweeps.study_files import save
from linkwright.sweeps.task import gathered
from linkwright.sweeps.workers import Here
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import DATASET, Store
folder = Path(sys.argv[1])
given, cases = task(folder, pause=0.05), plan(40, 2)
store = Store.begin(folder / "study", given, cases)
runner = Runner(given, cases, store, compute=square_when_allowed)
runner.work(Here(), runner.left)
save(given, cases, gathered(given, cases, store.stored()), store.folder / DATASET)
store.drop_chunks()
sys.stdin.read()
store.release()
"""


@posix
def test_a_second_writer_is_refused_and_readers_see_whole_chunks_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    given, cases = task(tmp_path, pause=0.05), plan(40, 2)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], env=environment(), stdin=subprocess.PIPE)
    until = time.monotonic() + 120
    while not list((folder / CHUNKS).glob("*.npz")) and time.monotonic() < until:
        time.sleep(0.01)
    seen = [0]
    while seen[-1] < 40 and time.monotonic() < until:
        study = lw.Study.open(folder)
        seen.append(int(study.ok.sum()))
        assert np.array_equal(study["y"][study.ok], study["x"][study.ok] ** 2)
        for options in ({"resume": True}, {"overwrite": True}, {}):
            with pytest.raises(LinkwrightError, match="another process works on the study"):
                Store.begin(folder, given, cases, **options)
        (tmp_path / "go").touch()  # until here the study could not end, however late this process is
    writer.communicate(timeout=60)
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert 0 < seen[1] < 40
    assert seen[-1] == 40
    assert lw.Study.open(folder).ok.all()
    assert sorted(int(first) for first, _ in logged(tmp_path)) == list(range(0, 40, 2))  # nothing twice
