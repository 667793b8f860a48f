"""Where files may be written: whatever writes one refuses a place that is no regular file."""

import os
import socket

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.formats.files import write_whole
from linkwright.results.files import whole
from linkwright.targets import check_target


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def _whole(path):
    with whole(path) as file:
        file.write_text("new")


WRITERS = {
    "results": _whole,
    "text": lambda path: write_whole(path, "new"),
    "programs": lambda path: lw.record(np.sin, ()).save(path),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_is_not_replaced_by_a_file(pipe, writer):
    with pytest.raises(LinkwrightError, match="pipe is a pipe, which a file would replace; give the name of a file"):
        WRITERS[writer](pipe)
    assert pipe.is_fifo()
    assert os.listdir(pipe.parent) == ["pipe"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_and_a_link_to_one_are_written(tmp_path, writer):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link", "new"):
        WRITERS[writer](tmp_path / name)
        assert (tmp_path / name).read_bytes() not in (b"", b"old")


def test_other_things_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    (tmp_path / "null").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("door")
        for name, told in (("null", "is a device"), ("door", "is a socket"), (tmp_path, "is a folder")):
            with pytest.raises(LinkwrightError, match=told):
                check_target(name)
