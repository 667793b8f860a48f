"""A program made callable: arrays of any leading batch shape in, arrays out, by the fastest variant that fits.

This is the careful path: it checks, converts, broadcasts, chooses lanes and threads. `callpath` puts a native
shortcut in front of it for the plainest calls.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import DtypeError, KernelError, ShapeError
from linkwright.kernels import cache as disk
from linkwright.kernels import numpy_backend
from linkwright.tape.program import Program

Floats = NDArray[np.float64]
Shape = tuple[int, ...]

_THREAD_WORK = 2_000_000  # operations below which a second thread costs more than it brings
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@dataclass(frozen=True)
class Signature:
    """What a caller must know of a program: names and shapes for one state, scratch sizes, amount of work."""

    name: str
    inputs: tuple[tuple[str, Shape], ...]
    outputs: tuple[tuple[str, Shape], ...]
    single: bool
    scratch: dict[int, int]
    work: int
    has_data: bool

    @classmethod
    def of(cls, program: Program, widths: Sequence[int]) -> Signature:
        from linkwright.kernels.llvm_text import scratch_size

        has_data = bool(program.columns) or any(b.role == "data" for b in program.buffers)
        return cls(
            program.name,
            tuple((b.name, b.shape) for b in program.inputs),
            tuple((b.name, b.shape) for b in program.outputs),
            bool(program.labels.get("single", len(program.outputs) == 1)),
            {w: scratch_size(program, w) for w in widths},
            sum(program.count().values()),
            has_data,
        )

    def dumps(self) -> bytes:
        return json.dumps(self.__dict__).encode()

    @classmethod
    def loads(cls, text: bytes) -> Signature:
        raw = json.loads(text)
        for side in ("inputs", "outputs"):
            raw[side] = tuple((name, tuple(shape)) for name, shape in raw[side])
        raw["scratch"] = {int(w): n for w, n in raw["scratch"].items()}
        return cls(**raw)


class Kernel:
    """A program's compiled variants, made at first use; safe to call from several threads."""

    def __init__(self, identity: str, make: Callable[[], Program]) -> None:
        self._identity, self._make = identity, make
        self._lock = threading.RLock()
        self._program: Program | None = None
        self._variants: dict[int, _Variant] = {}
        self._kept = disk.key(identity, "signature")
        self.signature = self._signature()

    @property
    def program(self) -> Program:
        """The program, recorded now if object code was found without it."""
        with self._lock:
            if self._program is None:
                self._program = self._make()
            return self._program

    def _signature(self) -> Signature:
        from linkwright.kernels.llvm_backend import lanes

        kept = disk.read(self._kept)
        if kept is not None:
            try:
                return Signature.loads(kept)
            except (ValueError, KeyError, TypeError):
                pass  # a damaged entry: made anew
        signature = Signature.of(self.program, (1, lanes()))
        disk.write(self._kept, signature.dumps())
        return signature

    def variant(self, width: int) -> _Variant:
        """The code for `width` states at a time."""
        found = self._variants.get(width)
        if found is None:
            with self._lock:
                found = self._variants.get(width)
                if found is None:
                    found = self._variants[width] = _Variant(self, width)
        return found

    def object_code(self, width: int) -> bytes:
        """The object code of a variant, from the cache or compiled now."""
        from linkwright.kernels import llvm_backend
        from linkwright.kernels.llvm_text import llvm_text

        name = disk.key(self._identity, str(width), *llvm_backend.cpu())
        code = disk.read(name)
        if code is None:
            text = llvm_text(self.program, "kernel", width, llvm_backend.lanes())
            code = llvm_backend.object_code(text)
            disk.write(name, code)
        return code

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        s = self.signature
        if len(arrays) != len(s.inputs):
            names = ", ".join(name for name, _ in s.inputs)
            raise ShapeError(
                f"{s.name} takes {len(s.inputs)} arrays ({names}); {len(arrays)} were given",
                given=len(arrays),
                wanted=len(s.inputs),
            )
        inputs = [_checked(s.name, a, name, shape) for a, (name, shape) in zip(arrays, s.inputs, strict=True)]
        leads = [a.shape[: a.ndim - len(shape)] for a, (_, shape) in zip(inputs, s.inputs, strict=True)]
        try:
            lead = np.broadcast_shapes(*leads) if leads else ()
        except ValueError:
            told = ", ".join(f"{name} {a.shape}" for a, (name, _) in zip(inputs, s.inputs, strict=True))
            raise ShapeError(
                f"{s.name}: the batch shapes of its inputs do not fit together: {told}", given=leads
            ) from None
        targets, results = self._targets(out, lead, inputs)
        self.run(inputs, leads, lead, targets)
        for target, result in zip(targets, results, strict=True):
            if target is not result:
                result[...] = target
        return results[0] if s.single else tuple(results)

    def _targets(self, out: Any, lead: Shape, inputs: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """The arrays to compute into, and those to give back: the caller's, where given."""
        s = self.signature
        if out is None:
            fresh = [np.empty(lead + shape) for _, shape in s.outputs]
            return fresh, fresh
        given = [out] if s.single else list(out)
        if len(given) != len(s.outputs):
            raise ShapeError(f"{s.name}: out needs {len(s.outputs)} arrays, {len(given)} were given")
        targets: list[Floats] = []
        for array, (name, shape) in zip(given, s.outputs, strict=True):
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                what = getattr(array, "dtype", type(array).__name__)
                raise DtypeError(f"{s.name}: out ({name}) must be a float64 array, not {what}", given=what, wanted="float64")
            if array.shape != lead + shape:
                raise ShapeError(
                    f"{s.name}: out ({name}) has shape {array.shape}, needed is {lead + shape}",
                    given=array.shape,
                    wanted=lead + shape,
                )
            if not array.flags.writeable:
                raise ShapeError(f"{s.name}: out ({name}) is read-only; give a writable array")
            plain = array.flags.c_contiguous and array.flags.aligned
            shared = any(np.may_share_memory(array, other) for other in (*inputs, *targets))
            targets.append(array if plain and not shared else np.empty(array.shape))
        return targets, given

    def run(self, inputs: Sequence[Floats], leads: Sequence[Shape], lead: Shape, outputs: Sequence[Floats]) -> None:
        """Compute into contiguous outputs; inputs are broadcast over `lead`."""
        s = self.signature
        batch = int(np.prod(lead, dtype=np.int64))
        if batch == 0:
            return
        arrays, strides = [], []
        for array, own, (_, shape) in zip(inputs, leads, s.inputs, strict=True):
            size = int(np.prod(shape, dtype=np.int64))
            if own != lead and int(np.prod(own, dtype=np.int64)) != 1:
                array = np.broadcast_to(array, lead + shape)
            array = np.ascontiguousarray(array)
            arrays.append(array)
            strides.append(0 if int(np.prod(own, dtype=np.int64)) == 1 else size)
        if not _native():
            flat = [np.broadcast_to(a, lead + sh).reshape(batch, -1) for a, (_, sh) in zip(arrays, s.inputs, strict=True)]
            for target, value in zip(outputs, numpy_backend.run(self.program, flat, batch), strict=True):
                target[...] = value.reshape(target.shape)
            return
        for target, (_, shape) in zip(outputs, s.outputs, strict=True):
            strides.append(int(np.prod(shape, dtype=np.int64)))
        self._run_native([*arrays, *outputs], strides, batch)

    def _run_native(self, arrays: list[Floats], strides: list[int], batch: int) -> None:
        from linkwright.kernels.llvm_backend import lanes

        width = lanes() if batch >= lanes() else 1
        variant = self.variant(width)
        pieces = min(threads(), max(1, batch * self.signature.work // _THREAD_WORK), max(1, batch // width))
        if pieces == 1:
            variant.run(arrays, strides, 0, batch)
            return
        cuts = [batch * k // pieces for k in range(pieces + 1)]
        jobs = [_pool().submit(variant.run, arrays, strides, a, b) for a, b in zip(cuts[1:-1], cuts[2:], strict=True)]
        variant.run(arrays, strides, cuts[0], cuts[1])
        for job in jobs:
            job.result()


class _Variant:
    """Loaded code for one width."""

    def __init__(self, kernel: Kernel, width: int) -> None:
        from linkwright.kernels.llvm_backend import Loaded

        self.width = width
        try:
            self._loaded = Loaded(kernel.object_code(width))
            self.address = self._loaded.address("kernel")
        except KernelError:
            # Object code that does not load is made anew, once.
            disk.write(disk.key(kernel._identity, str(width), *_cpu()), b"")
            self._loaded = Loaded(kernel.object_code(width))
            self.address = self._loaded.address("kernel")
        self._entry = _ENTRY(self.address)
        self.scratch = kernel.signature.scratch[width]
        self.data: list[Any] = []
        if kernel.signature.has_data:
            program = kernel.program
            self.data = [np.ascontiguousarray(b.data) for b in program.buffers if b.role == "data"]
            self.data += [np.ascontiguousarray(c) for c in program.columns]
        self._data_pointers = [d.ctypes.data for d in self.data]

    def run(self, arrays: Sequence[Floats], strides: Sequence[int], begin: int, end: int) -> None:
        """States begin..end; the last group of lanes may overlap the one before."""
        whole = (end - begin) // self.width * self.width
        self._run(arrays, strides, begin, whole)
        if whole < end - begin:
            self._run(arrays, strides, end - self.width, self.width)

    def _run(self, arrays: Sequence[Floats], strides: Sequence[int], begin: int, count: int) -> None:
        if count <= 0:
            return
        starts = [a.ctypes.data + 8 * s * begin for a, s in zip(arrays, strides, strict=True)]
        pointers = (ctypes.c_void_p * (len(starts) + len(self.data)))(*starts, *self._data_pointers)
        steps = (ctypes.c_int64 * len(strides))(*strides)
        scratch = np.empty(self.scratch + 8)
        at = (scratch.ctypes.data + 63) & ~63
        self._entry(pointers, steps, at, count)


def _checked(program: str, value: Any, name: str, shape: Shape) -> Floats:
    """An input as a float64 array whose last axes are `shape`."""
    array = np.asarray(value)
    if array.dtype != np.float64:
        if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
            raise DtypeError(
                f"{program}: {name} has dtype {array.dtype}; needed is float64", given=array.dtype, wanted="float64"
            )
        array = array.astype(np.float64)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        wanted = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
        raise ShapeError(
            f"{program}: {name} has shape {array.shape}; needed is {wanted}", given=array.shape, wanted=shape
        )
    return array


@cache
def _native() -> bool:
    """Whether LLVM is here; without it programs run in NumPy."""
    try:
        import llvmlite.binding  # noqa: F401  (its presence is the answer)
    except ImportError:
        return False
    return os.environ.get("LINKWRIGHT_BACKEND", "llvm") == "llvm"


def _cpu() -> tuple[str, str]:
    from linkwright.kernels.llvm_backend import cpu

    return cpu()


_threads: int | None = None


def threads() -> int:
    """How many threads large batches use."""
    if _threads is not None:
        return _threads
    named = os.environ.get("LINKWRIGHT_THREADS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use n threads for large batches; None goes back to one a core."""
    global _threads
    if n is not None and n < 1:
        raise ValueError(f"the number of threads must be at least 1, not {n}")
    _threads = n


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="linkwright")
