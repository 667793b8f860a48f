"""A study's folder from a stranger: links are not followed, pipes not waited for, and nothing elsewhere is changed."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.base.files import open_lock, open_regular
from linkwright.errors import LinkwrightError
from linkwright.sweeps.plan import make_plan
from linkwright.sweeps.store import Store
from linkwright.sweeps.task import Batch, Task

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are of POSIX")
TASK = Task("MODEL m", ("x",), (("y", "max(b.x)"),), "kinematic", (0.0, 1.0))
PLAN = make_plan({"x": np.arange(4.0)}, chunk=2)
#: Every name that a study has in its folder.
NAMES = [".lock", "manifest.json", "values.npy", "study.nc", "chunks", "chunks/000000.npz"]
KINDS = ["link", "dangling link", "pipe", "link to a pipe", "link to a folder"]


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def victims(tmp_path: Path) -> Path:
    """A folder of somebody's with a file and a folder in it."""
    folder = tmp_path / "victims"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").write_text("years of work")
    (folder / "folder" / "000001.npz").write_text("years of work")
    (folder / "folder" / ".000001.npz.01234567.part").write_text("years of work")
    os.mkfifo(folder / "pipe")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(f): f.read_bytes() for f in folder.rglob("*") if f.is_file()} | {
        "names": str(sorted(folder.rglob("*"))).encode()
    }


def study(folder: Path) -> Path:
    """A study with one of two chunks."""
    store = Store.begin(folder, TASK, PLAN)
    store.write(0, Batch({"y": np.array([1.0, 2.0])}, ["", ""]))
    store.release()
    return folder


def put(place: Path, kind: str, victims: Path) -> None:
    """Something in place of a study's file or folder."""
    if place.is_dir():
        for file in place.iterdir():
            file.unlink()
        place.rmdir()
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        target = {"link": "file", "dangling link": "nothing", "link to a pipe": "pipe", "link to a folder": "folder"}[
            kind
        ]
        place.symlink_to(victims / target)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_file_of_the_study_is_refused_and_what_it_leads_to_is_left_alone(
    tmp_path: Path, victims: Path, name: str, kind: str
) -> None:
    folder = study(tmp_path / "s")
    before = content(victims)
    put(folder / name, kind, victims)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(LinkwrightError, match=f"{name} is a (link|pipe), and a study keeps a f.* of its own there"):
            Store.begin(folder, TASK, PLAN, **options)
    assert content(victims) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["manifest.json", "values.npy", "study.nc"])
def test_a_study_is_not_read_through_links_and_pipes(tmp_path: Path, victims: Path, name: str, kind: str) -> None:
    folder = study(tmp_path / "s")
    put(folder / name, kind, victims)
    with pytest.raises(LinkwrightError, match=f"{name}: cannot be read: it is a (link|pipe), and no regular file"):
        lw.Study.open(folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["chunks", "chunks/000000.npz"])
def test_chunks_behind_links_and_pipes_are_as_if_they_were_not_there(
    tmp_path: Path, victims: Path, name: str, kind: str
) -> None:
    folder = study(tmp_path / "s")
    assert lw.Study.open(folder).ok.sum() == 2
    put(folder / name, kind, victims)
    assert not lw.Study.open(folder).ok.any()


def test_a_link_to_a_good_chunk_elsewhere_is_not_followed(tmp_path: Path) -> None:
    folder, other = study(tmp_path / "s"), study(tmp_path / "other")
    (folder / "chunks" / "000000.npz").unlink()
    (folder / "chunks" / "000000.npz").symlink_to(other / "chunks" / "000000.npz")
    assert not lw.Study.open(folder).ok.any()


def test_chunks_that_become_a_link_while_the_study_runs_are_not_written_through(tmp_path: Path, victims: Path) -> None:
    store = Store.begin(tmp_path / "s", TASK, PLAN)
    before = content(victims)
    (store.folder / "chunks").rmdir()
    (store.folder / "chunks").symlink_to(victims / "folder")
    with pytest.raises(LinkwrightError, match="chunks is a link"):
        store.write(0, Batch({"y": np.array([1.0, 2.0])}, ["", ""]))
    store.drop_chunks()
    store.release()
    assert content(victims) == before


def test_a_folder_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "scratch")
    study(tmp_path / "s")
    assert lw.Study.open(tmp_path / "s").ok.sum() == 2


def test_a_lock_is_held_without_touching_what_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_text("notes")
    open_lock(file).close()
    assert file.read_text() == "notes"
    (tmp_path / "hard").hardlink_to(file)
    open_lock(tmp_path / "hard").close()
    assert file.read_text() == "notes"


def test_a_regular_file_is_opened_and_a_device_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"text"
    for path, word in ((tmp_path / "link", "link"), (Path(os.devnull), "device"), (tmp_path, "folder")):
        with pytest.raises(OSError, match=f"it is a {word}"):
            open_regular(path, links=False)


def test_a_checkpoint_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(LinkwrightError, match="is a pipe"):
        lw.simulate(lw.chain(1), t_end=0.01, saving=lw.Saving(checkpoint=tmp_path / "x.npz", resume=True))
