"""Compile and run what exports leave, each as a stranger would: in its own folder, without Linkwright."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
STRICT = ["-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion"]
C99, CPP = ["-std=c99"], ["-x", "c++", "-std=c++11"]


def tool(*names: str) -> str:
    """The first of these programs that is there; the test is skipped where none is."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"none of {', '.join(names)} is on the PATH")


def run(words: list[object], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True, check=False)


def built(
    folder: Path, *flags: str, sources: list[str] | None = None, compiler: tuple[str, ...] = ("gcc", "cc")
) -> Path:
    """The program of a folder's C files, compiled without a warning."""
    files = sources or sorted(str(p.relative_to(folder)) for p in folder.rglob("*.c"))
    program = folder / "built"
    done = run([tool(*compiler), *STRICT, *(flags or C99), *files, "-o", program, "-lm"], folder)
    assert done.returncode == 0, done.stderr[:3000]
    return program


def worst_error(printed: str) -> float:
    return float(re.findall(r"worst error ([\d.e+-]+)", printed)[0])


def passes(program: Path) -> float:
    """Run a test program that should succeed; the error that it prints."""
    done = run([program], program.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return worst_error(done.stdout)


def library(folder: Path, name: str) -> ctypes.CDLL:
    """The exported function, to be called through ctypes."""
    made = folder / "built.so"
    done = run([tool("gcc", "cc"), *STRICT, *C99, "-shared", "-fPIC", f"{name}.c", "-o", made, "-lm"], folder)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(made))


def pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(a.ctypes.data) for a in arrays]


def alone(file: Path) -> subprocess.CompletedProcess[str]:
    """Run an exported module where Linkwright cannot be imported."""
    code = f"import sys, runpy; sys.modules['linkwright'] = None; runpy.run_path({file.name!r}, run_name='__main__')"
    return subprocess.run([sys.executable, "-c", code], cwd=file.parent, capture_output=True, text=True, check=False)
