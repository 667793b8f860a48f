"""What XLA calls for kernels on the CPU: registered once by a program's digest, loaded as long as the process lives.

XLA knows a program's stub, of a single call, which gives the handler (`handler_text`) a table of the kernel's addresses
and sizes. What the handler relies on is compared with the header that comes with JAX.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import Lock
from linkwright.kernels.jax.handler_text import MOST_THREADS, TABLE, handler_text, layout_doubt
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.llvm.compiler import Code, load, object_code
from linkwright.kernels.variant import lanes, native, threads


class Stub:
    """The stub of a kernel, its table, and what their addresses belong to."""

    def __init__(self, kernel: Kernel, jax: Any) -> None:
        s = kernel.signature
        self.kernel, self.data = kernel, kernel.data
        ports = (*s.inputs, *s.outputs)
        counts = {"nin": len(s.inputs), "nout": len(s.outputs), "ndata": len(self.data), "lanes": lanes()}
        counts |= {"work": s.work, "total": sum(port.size for port in ports)}
        words = [counts.get(name, 0) for name in TABLE]
        words += [port.size for port in ports]
        words += [len(port.shape) for port in ports]
        words += [array.ctypes.data for array in self.data]
        self.table: NDArray[np.int64] = np.array(words, np.int64)
        handler, table = (
            f"ptr inttoptr (i64 {address} to ptr)" for address in (_handler(jax).address, self.table.ctypes.data)
        )
        text = f"define ptr @stub(ptr %frame) {{\n  %a = tail call {handler}(ptr %frame, {table})\n  ret ptr %a\n}}\n"
        self.code = load(object_code(text, level=0), "stub")

    def prepare(self, width: int) -> None:
        """Load the code of this width; as many threads as there may be now."""
        self["threads"] = min(threads(), MOST_THREADS)
        prefix = "lanes." if width > 1 else ""
        if not self[f"{prefix}code"]:
            variant = self.kernel.variant(width)
            self[f"{prefix}scratch"] = variant.scratch
            self[f"{prefix}code"] = variant.code.address  # last: the handler takes it as a sign that all is there

    def __getitem__(self, word: str) -> int:
        return int(self.table[TABLE.index(word)])

    def __setitem__(self, word: str, value: int) -> None:
        self.table[TABLE.index(word)] = value


_lock = Lock()
_stubs: dict[str, Stub] = {}


def target(jax: Any, kernel: Kernel, digest: str, states: int | None) -> str:
    """The name by which XLA calls a kernel for so many states, None for any number; its code is loaded now."""
    name = f"linkwright.{digest}"
    with _lock:
        stub = _stubs.get(name)
        if stub is None:
            stub = Stub(kernel, jax)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(stub.code.address), platform="cpu")
            _stubs[name] = stub
        if states is None or states < lanes():
            stub.prepare(1)
        if states is None or states >= lanes():
            stub.prepare(lanes())
    return name


def registered(name: str) -> Stub:
    """What XLA calls by a name."""
    return _stubs[name]


def doubt(jax: Any) -> str:
    """Why XLA cannot call kernels here; "" where it can."""
    if not native():
        return "programs do not run as machine code"
    if os.name != "posix":
        return "this system has no POSIX threads"
    if not hasattr(jax, "ffi"):
        return f"JAX {jax.__version__} has no jax.ffi"
    try:
        different = layout_doubt(header(jax))
    except OSError as error:
        return f"XLA's header cannot be read ({error})"
    return f"XLA's header declares {different} in another way" if different else ""


def header(jax: Any) -> str:
    """The declarations of XLA's foreign function interface, as they come with JAX."""
    return (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")


@cache
def _handler(jax: Any) -> Code:
    return load(object_code(handler_text(header(jax))), "handler")
