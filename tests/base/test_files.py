"""Files are written whole or not at all: at a free name, or in place of a regular file that may be written."""

import errno
import os
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwright as lw
from linkwright.base.files import atomic_file, atomic_text, check_target, write_bytes, write_text
from linkwright.errors import LinkwrightError


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def _csv(path):
    with atomic_text(path) as file:
        file.write("new")


WRITERS = {
    "bytes": lambda path: write_bytes(path, b"new"),
    "text": lambda path: write_text(path, "new"),
    "table": _csv,
    "programs": lambda path: lw.record(np.sin, ()).save(path),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_is_not_replaced_by_a_file(pipe, writer):
    with pytest.raises(LinkwrightError, match="pipe is a pipe, which a file would replace; give the name of a file"):
        WRITERS[writer](pipe)
    assert pipe.is_fifo()
    assert os.listdir(pipe.parent) == ["pipe"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_and_what_a_link_leads_to_are_written(tmp_path, writer):
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder/linked"):
        (tmp_path / name).write_text("old")
    (tmp_path / "link").symlink_to("folder/linked")
    (tmp_path / "ahead").symlink_to("folder/not there yet")
    for name in ("file", "link", "ahead", "new"):
        WRITERS[writer](tmp_path / name)
        assert (tmp_path / name).read_bytes() not in (b"", b"old")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "ahead").is_symlink()
    assert sorted(os.listdir(tmp_path / "folder")) == ["linked", "not there yet"]


def test_a_link_in_place_of_a_file_that_the_package_names_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_text("old")
    (tmp_path / "link").symlink_to("victim")
    write_bytes(tmp_path / "link", b"new", links=False)
    assert (tmp_path / "victim").read_text() == "old"
    assert not (tmp_path / "link").is_symlink()


def test_other_things_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    (tmp_path / "null").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("door")
        for name, reason in (("null", "is a device"), ("door", "is a socket"), (tmp_path, "is a folder")):
            with pytest.raises(LinkwrightError, match=reason):
                check_target(name)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_is_protected_against_writing_stays(tmp_path, writer):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(LinkwrightError, match=r"cannot write .*file: it is read-only; allow writing"):
        WRITERS[writer](file)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_replaces_another_is_for_the_same_users(tmp_path):
    file = tmp_path / "file"
    write_text(file, "old")
    file.chmod(0o600)
    write_text(file, "new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "choose a folder that can be written")]
)
def test_what_the_system_refuses_names_the_file_and_what_to_do(tmp_path, monkeypatch, step, number, advice):
    file = tmp_path / "file"
    file.write_text("old")

    def refuse(*_):
        raise OSError(number, os.strerror(number), "/somewhere/.file.part")

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(LinkwrightError, match=f"^cannot write {file}: {os.strerror(number)}; {advice}[^/]*$"):
        write_text(file, "new")
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_of_whoever_writes_leaves_the_old_file_and_is_not_changed(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(TypeError), atomic_file(file) as opened:
        opened.writelines([b"new", None])
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_half_a_surrogate_pair_is_named(tmp_path):
    with pytest.raises(LinkwrightError, match=r"'\\ud800', which is no character"):
        write_text(tmp_path / "x.mks", "BODY \ud800")
    assert not os.listdir(tmp_path)


def test_of_many_writers_of_one_file_one_wins_whole(tmp_path):
    file = tmp_path / "file"
    contents = [bytes([k]) * 200_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: [write_bytes(file, content) for _ in range(5)], contents))
    assert file.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


WRITING = """
import sys
from linkwright.base.files import atomic_file
print("ready", flush=True)
k = 0
while True:
    with atomic_file(sys.argv[1]) as file:
        for _ in range(64):
            file.write(bytes([k % 256]) * 4096)
    k += 1
"""


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path):
    file = tmp_path / "file"
    rng = np.random.default_rng()
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITING, file], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            try:
                writer.wait(rng.uniform(0.02, 0.3))
            except subprocess.TimeoutExpired:
                writer.kill()
        if file.exists():
            content = file.read_bytes()
            assert content == content[:1] * 64 * 4096
    write_bytes(file, b"new")
    assert file.read_bytes() == b"new"
