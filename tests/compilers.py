"""Compile generated text with the compilers that the machine has, and call it through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

STRICT_C = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]


def find(*names: str) -> str:
    """The first of these compilers that is there; the test is skipped where none is."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no compiler: none of {', '.join(names)} is on the PATH")


def shared_library(text: str, folder: Path, compiler: str, flags: list[str], suffix: str) -> ctypes.CDLL:
    source = folder / f"generated{suffix}"
    source.write_text(text)
    library = folder / "generated.so"
    command = [compiler, *flags, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def c_library(text: str, folder: Path) -> ctypes.CDLL:
    return shared_library(text, folder, find("gcc", "clang", "cc"), STRICT_C, ".c")


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
