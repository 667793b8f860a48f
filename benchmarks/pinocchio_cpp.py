"""Pinocchio's C++ library beside ours: compiled here against the headers and the library of the wheel `pin`.

It needs a C++ compiler, and headers of Eigen and urdfdom (Debian: libeigen3-dev, liburdfdom-headers-dev). Explicit
instantiations of the wheel's library run, compiled as it was: code for this processor alone (-march=native) would lay
out Eigen's memory in another way. Compiling takes one or two minutes; the result is stored in the cache folder.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SOURCE = Path(__file__).with_suffix(".cpp")
#: The works that `robot_run` knows, in its order, as the rows of `robots.py` call them.
WORKS = (
    "forward dynamics, one state, out=",
    "inverse dynamics, one state",
    "mass matrix, one state",
    "forward-dynamics derivatives, one state",
)
_FLAGS = ["-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION"]
_FLAGS += ["-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]
_FLAGS += ["-DBOOST_FUSION_INVOKE_MAX_ARITY=10"]
_LIBRARIES = ["pinocchio_default", "pinocchio_parsers"]
_HEADERS = ("pinocchio/algorithm/aba.hpp", "Eigen/Core", "urdf_model/model.h")
_POINTER = ctypes.POINTER(ctypes.c_double)


class Missing(Exception):
    """What is not there to compile with."""


def _command(target: Path) -> list[str]:
    """The call of the compiler."""
    import cmeel

    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))), None)
    if compiler is None:
        raise Missing("there is no C++ compiler")
    prefix = Path(next(iter(cmeel.__path__))).parent / "cmeel.prefix"
    roots = [root / "include" for root in (prefix, Path("/usr"), Path("/usr/local"), Path("/opt/homebrew"))]
    folders = [root / name for root in roots for name in ("", "eigen3", "urdfdom_headers")]
    for header in _HEADERS:
        if not any((folder / header).is_file() for folder in folders):
            raise Missing(f"there is no header {header}")
    # The compiler looks into the system's own folders by itself, after the wheel's.
    known = [str(f) for f in folders if f.is_dir() and f not in (Path("/usr/include"), Path("/usr/local/include"))]
    library = prefix / "lib"
    links = [f"-L{library}", f"-Wl,-rpath,{library}", *(f"-l{name}" for name in _LIBRARIES)]
    return [compiler, *_FLAGS, *(f"-I{f}" for f in known), str(SOURCE), "-o", str(target), *links]


@cache
def _library() -> Any:
    import pinocchio as pin

    text = repr((SOURCE.read_text(encoding="utf-8"), pin.__version__, _command(Path("library"))))
    folder = Path(platformdirs.user_cache_dir("linkwright")) / "benchmarks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"pinocchio-{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.part")
        done = subprocess.run(_command(part), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"it does not compile: {(done.stderr.strip().splitlines() or ['no message'])[0]}")
        part.replace(path)
    library = ctypes.CDLL(str(path))
    library.robot_open.restype = ctypes.c_void_p
    library.robot_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    library.robot_close.argtypes = library.robot_nq.argtypes = library.robot_nv.argtypes = [ctypes.c_void_p]
    library.robot_run.restype = None
    library.robot_run.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, *[_POINTER] * 4]
    return library


def missing() -> str:
    """Why the library cannot be measured here; "" where it can."""
    try:
        _library()
    except Missing as reason:
        return str(reason)
    return ""


class Robot:
    """A robot as the C++ library reads it, and one state of it in Pinocchio's coordinates."""

    def __init__(self, file: Path, base: str, locked: Sequence[str], state: tuple[Floats, Floats, Floats]) -> None:
        """Raises `Missing` where the library cannot be compiled."""
        self.library = _library()
        names = (ctypes.c_char_p * len(locked))(*(name.encode() for name in locked))
        self.handle = self.library.robot_open(str(file).encode(), base == "floating", len(locked), names)
        self.nv = self.library.robot_nv(self.handle)
        assert (self.library.robot_nq(self.handle), self.nv) == (len(state[0]), len(state[1]))
        self.state = [np.ascontiguousarray(x, dtype=float) for x in state]
        self.out = np.zeros((self.nv, self.nv))

    def run(self, work: str, count: int) -> None:
        """Call an algorithm so many times; the numbers of the last one are in `out`."""
        arrays = [x.ctypes.data_as(_POINTER) for x in (*self.state, self.out)]
        self.library.robot_run(self.handle, WORKS.index(work), count, *arrays)

    def check(self, model: Any, data: Any) -> None:
        """Compare what every work computes with Pinocchio's Python calls on the same state."""
        import pinocchio as pin

        q, v, tau = self.state
        derivative = pin.computeABADerivatives(model, data, q, v, tau)[0]
        wanted = pin.aba(model, data, q, v, tau), pin.rnea(model, data, q, v, tau), pin.crba(model, data, q), derivative
        for work, right in zip(WORKS, wanted, strict=True):
            self.run(work, 1)
            numbers = self.out.ravel()[: self.nv] if right.ndim == 1 else self.out.T
            if work.startswith("mass matrix"):
                numbers, right = np.triu(numbers), np.triu(right)
            np.testing.assert_allclose(numbers, right, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(right).max()))

    def close(self) -> None:
        self.library.robot_close(self.handle)
