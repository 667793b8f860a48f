"""Paths that callers give: whatever is no path is an error of ours that names it, and no pipe holds up a reader."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.control.identification.records import Record
from linkwright.errors import LinkwrightError, ModelError

READERS: dict[str, Callable[[Any], object]] = {
    "load": lw.load,
    "load_program": lw.load_program,
    "open": lw.open,
    "Study.open": lw.Study.open,
    "analyse": lambda path: lw.analyse(path, times=[0.0]),
    "simulate": lambda path: lw.simulate(path, t_end=1.0),
    "equations": lw.equations,
    "sweep": lambda path: lw.sweep(path, {"length": [1.0]}),
    "sensitivities": lambda path: lw.sensitivities(path, {}, "length"),
    "record": lambda path: Record.read(path),
}


@pytest.fixture(scope="module")
def motion() -> lw.Solution:
    return lw.simulate(lw.chain(1), t_end=0.01)


def writers(motion: lw.Solution) -> list[Callable[[Any], object]]:
    program = lw.record(np.sin, ())
    return [motion.save, motion.to_csv, motion.animate, lambda path: motion.plot(path=path), program.save]


@pytest.mark.parametrize("path", [3, b"model.mks", ["model.mks"], "", "a\0b.mks"], ids=repr)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_path_is_refused_by_every_reader(reader: str, path: Any) -> None:
    with pytest.raises(LinkwrightError) as caught:
        READERS[reader](path)
    assert repr(path) in str(caught.value) or type(path).__name__ in str(caught.value)


@pytest.mark.parametrize("path", [3, b"motion.nc", "", "a\0b.html"], ids=repr)
def test_what_is_no_path_is_refused_by_every_writer(motion: lw.Solution, path: Any) -> None:
    for write in writers(motion):
        with pytest.raises(LinkwrightError, match="its path"):
            write(path)


def test_a_builder_that_is_loaded_is_to_be_built_first() -> None:
    with pytest.raises(ModelError, match=r"call its build\(\) first"):
        lw.load(lw.Builder("arm"))  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are of POSIX")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["model.mks", "robot.urdf", "robot.xml", "arm.dh.toml", "motion.nc"])
def test_a_pipe_does_not_hold_up_a_reader(reader: str, name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(LinkwrightError) as caught:
        READERS[reader](tmp_path / name)
    assert name in str(caught.value)


def test_a_line_break_in_the_name_of_a_file_is_spelled_out() -> None:
    with pytest.raises(LinkwrightError) as caught:
        lw.load("two\nlines.mks")
    assert str(caught.value) == r"two\nlines.mks: there is no such file"
