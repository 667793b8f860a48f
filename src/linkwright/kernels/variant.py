"""What a kernel takes and gives, what is wrong with a call's arrays, and its variants: compiled code for one state,
lanes and threads.

A new large piece costs more than the work on it: the system clears its pages one by one as they are touched. An idle
piece is kept as long as the kernel that used it last lives, and as long as all idle ones, the last used first, fit
into `KEPT`. Nothing is locked: each step is one operation on a list, so that another thread, a signal handler or a
finaliser may come in between.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import check_memory, empty, whole_number
from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.errors import DtypeError, KernelError, ShapeError
from linkwright.kernels.foreign_arrays import on_device
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from linkwright.kernels.llvm.compiler import Code

Shape = tuple[int, ...]


class Port(NamedTuple):
    """An input or output: its name, its shape for one state, and how many numbers that is."""

    name: str
    shape: Shape
    size: int


@dataclass(frozen=True)
class Signature:
    """What a caller must know of a program: names and shapes for one state, scratch sizes, amount of work."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    single: bool
    scratch: dict[int, int]
    work: int
    data: tuple[str, ...]  # the names of the program's data, in the order of their numbers
    columns: int  # and how many columns follow these

    @classmethod
    def of(cls, program: Program, widths: Sequence[int]) -> Signature:
        # weight: the text of LLVM, which signatures from the cache do not need
        from linkwright.kernels.llvm.module_text import scratch_size

        for output in program.outputs:
            what = f"{program.name}: {output.name} of shape {tuple(output.shape)}"
            check_memory(what, output.size, "take a smaller mechanism")
        inputs, outputs = ([Port(b.name, tuple(b.shape), b.size) for b in x] for x in (program.inputs, program.outputs))
        return cls(
            program.name,
            tuple(inputs),
            tuple(outputs),
            program.returns_one,
            {w: scratch_size(program, w) for w in widths},
            sum(program.count().values()),
            tuple(b.name for b in program.buffers if b.role == "data"),
            len(program.columns),
        )

    def dumps(self) -> bytes:
        return json.dumps(self.__dict__).encode()

    @classmethod
    def loads(cls, text: bytes) -> Signature:
        raw = json.loads(text)
        for side in ("inputs", "outputs"):
            raw[side] = tuple(Port(name, tuple(shape), size) for name, shape, size in raw[side])
        raw["scratch"] = {int(w): n for w, n in raw["scratch"].items()}
        raw["data"] = tuple(map(str, raw["data"]))
        return cls(**raw)


def check_count(s: Signature, count: int) -> None:
    """Refuse a call with too few or too many arrays."""
    if count != len(s.inputs):
        names = ", ".join(port.name for port in s.inputs)
        raise ShapeError(
            f"{s.name} takes {len(s.inputs)} arrays ({names}); {count} were given", given=count, wanted=len(s.inputs)
        )


def wrong_shape(program: str, name: str, actual: Shape, shape: Shape) -> ShapeError:
    wanted = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
    return ShapeError(f"{program}: {name} has shape {actual}; needed is {wanted}", given=actual, wanted=shape)


def wrong_dtype(program: str, name: str, actual: Any, wanted: str = "float64") -> DtypeError:
    return DtypeError(f"{program}: {name} has dtype {actual}; needed is {wanted}", given=actual, wanted=wanted)


def common_lead(program: str, names: Iterable[str], arrays: Sequence[Any], leads: Sequence[Shape]) -> Shape:
    """The batch shape that those of a program's inputs, with these names, broadcast to."""
    batches = {lead for lead in leads if lead}
    if len(batches) == 1:
        return batches.pop()
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        listing = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True))
        raise ShapeError(
            f"{program}: the batch shapes of its inputs do not fit together: {listing}", given=tuple(leads)
        ) from None


def output_arrays(s: Signature, out: Any) -> list[Any]:
    """The arrays given as `out`, as many as there are outputs."""
    targets = [out] if s.single else list(out) if isinstance(out, (tuple, list)) else [out]
    if len(targets) != len(s.outputs):
        names = ", ".join(port.name for port in s.outputs)
        raise ShapeError(
            f"{s.name}: out needs {len(s.outputs)} arrays ({names}); {len(targets)} were given",
            given=len(targets),
            wanted=len(s.outputs),
        )
    return targets


def wrong_out(s: Signature, port: Port, array: Any, wanted: str = "float64", gpu: int | None = None) -> DtypeError:
    """`gpu` is where the array must be, None for main memory."""
    what = str(getattr(array, "dtype", type(array).__name__))
    if on_device(array) or gpu is not None:
        what += " on a GPU" if on_device(array) else " in main memory"
    where = "" if gpu is None else f" on GPU {gpu}"
    return DtypeError(
        f"{s.name}: out ({port.name}) must be a {wanted} array{where}, not {what}", given=what, wanted=wanted
    )


def check_out(s: Signature, port: Port, shape: Shape, lead: Shape, *, writable: bool) -> None:
    """Refuse an `out` of another shape than the result's, or one that must not be written to."""
    if shape != lead + port.shape:
        raise ShapeError(
            f"{s.name}: out ({port.name}) has shape {shape}; needed is {lead + port.shape}",
            given=shape,
            wanted=lead + port.shape,
        )
    if not writable:
        raise ShapeError(f"{s.name}: out ({port.name}) is read-only; give a writable array")


@cache
def native() -> bool:
    """Whether programs run as machine code; without LLVM, or as LINKWRIGHT_BACKEND says, they run in NumPy."""
    wanted = os.environ.get("LINKWRIGHT_BACKEND", "llvm")
    if wanted not in ("llvm", "numpy"):
        raise KernelError(f"LINKWRIGHT_BACKEND is {wanted!r}; it can be 'llvm' or 'numpy'")
    if wanted == "numpy":
        return False
    try:
        import llvmlite.binding  # noqa: F401  (its presence is the answer)
    except ImportError:
        return False
    return True


def lanes() -> int:
    """How many states machine code computes at a time; 1 without machine code."""
    if not native():
        return 1
    from linkwright.kernels.llvm import compiler  # weight: LLVM

    return compiler.lanes()


_threads: int | None = None


def threads() -> int:
    """How many threads large batches use at most: as `set_threads` or LINKWRIGHT_THREADS say, else one per core.

    >>> lw.threads() >= 1
    True
    """
    if _threads is not None:
        return _threads
    named = os.environ.get("LINKWRIGHT_THREADS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return cores()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use at most `n` threads (a whole number from 1 on) for large batches; None goes back to the default of `threads`.

    Raises `ModelError` for anything else.

    >>> lw.set_threads(2)
    >>> lw.threads()
    2
    >>> lw.set_threads(None)
    """
    global _threads
    _threads = None if n is None else whole_number("the number of threads", n, 1)


def pool_size() -> int:
    """How many threads the pool has at most: with the caller's own, one per core."""
    return max(1, (os.cpu_count() or 1) - 1)


@cache
def pool() -> ThreadPoolExecutor:
    """The threads that large batches and teams share."""
    from concurrent.futures import ThreadPoolExecutor  # weight: logging

    return ThreadPoolExecutor(max_workers=pool_size(), thread_name_prefix="linkwright")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has none of its parent's threads


LARGE = 2**17  # numbers from which scratch is lent from here
KEPT = 2**28  # numbers in all idle pieces together
_ADVICE = "take a method that needs less, such as articulated-body, or a smaller mechanism"
_LOOSE = 2  # a piece serves calls that need at least this part of it


class Scratch:
    """Room for `size` numbers on a cache line's edge."""

    __slots__ = ("_memory", "address", "size", "user")

    def __init__(self, size: int, user: str = "a kernel") -> None:
        self.size = size
        self._memory = empty(_call(user), (size + 8,), _ADVICE)
        self.address = (self._memory.ctypes.data + 63) & ~63
        self.user: weakref.ref[Any] | None = None


def check(size: int, user: str) -> None:
    """Refuse a kernel whose scratch cannot be held: to be asked before it is compiled, which may take as much."""
    check_memory(_call(user), size + 8, _ADVICE)


def _call(user: str) -> str:
    return f"one call of {user}"


_idle: list[Scratch] = []  # the one used last stands last


def take(size: int, user: str = "a kernel") -> Scratch:
    """The smallest idle piece that fits, or a new one; for the caller alone until it is given back.

    The name of the user stands in the message where there is not enough memory.
    """
    for piece in sorted(_idle, key=lambda p: p.size):
        if size <= piece.size <= _LOOSE * size and _drop(piece):
            return piece
    return Scratch(size, user)


def give(piece: Scratch, user: object) -> None:
    """Keep a piece for the next call, while its user lives and there is room."""
    piece.user = weakref.ref(user, lambda _: _drop(piece))
    _idle.append(piece)
    total = 0
    for idle in _idle[::-1]:
        total += idle.size
        if total > KEPT:
            _drop(idle)


def _drop(piece: Scratch) -> bool:
    """Take a piece out of the idle ones; whether it was there still."""
    try:
        _idle.remove(piece)
    except ValueError:
        return False
    piece.user = None  # which refers to the piece in turn
    return True


_PATIENCE = 0.01  # seconds that a team waits for a member whose thread is busy
_HELD_WORK = 20_000  # operations below which letting other threads of Python run costs more than it brings

_ARGUMENTS = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_FREE, _HELD = ctypes.CFUNCTYPE(None, *_ARGUMENTS), ctypes.PYFUNCTYPE(None, *_ARGUMENTS)
_TEAM = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
#: Members of a team wait for each other: two teams could wait for each other's threads.
_one_team = Lock(reentrant=False)


class Variant:
    """Loaded code for one width."""

    def __init__(self, signature: Signature, width: int, code: Code, data: list[NDArray[Any]]) -> None:
        self.name, self.width, self.work = signature.name, width, signature.work
        self.scratch = signature.scratch[width]
        self.code, self.data = code, data
        self._free, self._held = _FREE(self.code.address), _HELD(self.code.address)
        self._data_addresses = [d.ctypes.data for d in self.data]
        arrays = len(signature.inputs) + len(signature.outputs)
        self._head = struct.Struct(f"={arrays + len(self.data)}Q{arrays}q")
        self._rooms: list[_Room] = []

    def run(self, arrays: Sequence[Floats], strides: Sequence[int], begin: int, end: int) -> None:
        """States begin..end, for a width of 1 one after another; the last group of lanes may overlap the one before."""
        addresses = [address(a) for a in arrays]
        whole = (end - begin) // self.width * self.width
        self._run(addresses, strides, begin, whole)
        if whole < end - begin:
            self._run(addresses, strides, end - self.width, self.width)

    def run_together(self, arrays: Sequence[Floats], strides: Sequence[int]) -> bool:
        """One state by a team of threads, if its code can be shared out and the threads are free for it now."""
        size = min(threads(), pool_size() + 1)
        if not self.code.team or size < 2 or not _one_team.acquire(blocking=False):
            return False
        try:
            room, memory = self._prepared([address(a) for a in arrays], strides)
            barrier = np.zeros(16, np.int64)  # how many have come, and at 8 how often all have
            here, gate, part = threading.Semaphore(0), threading.Event(), _TEAM(self.code.team)
            complete = False

            def member(rank: int) -> None:
                here.release()
                gate.wait()
                if complete:
                    part(room.pointers, memory.address, rank, size, barrier.ctypes.data)

            jobs = []
            try:
                jobs = [pool().submit(member, rank) for rank in range(1, size)]
                # All must be there before any begins: they wait for each other, without end.
                complete = all(here.acquire(timeout=_PATIENCE) for _ in jobs)
            except RuntimeError:  # no threads any more: Python is ending
                return False
            finally:
                gate.set()
            if complete:
                try:
                    member(0)
                finally:
                    if not barrier[8]:  # an interrupt came first, and the others wait for this member
                        member(0)
                for job in jobs:
                    job.result()
            self._done(room, memory)
            return complete
        finally:
            _one_team.release()

    def _run(self, addresses: list[int], strides: Sequence[int], begin: int, count: int) -> None:
        if count <= 0:
            return
        if begin:
            addresses = [a + 8 * s * begin for a, s in zip(addresses, strides, strict=True)]
        room, memory = self._prepared(addresses, strides)
        entry = self._held if count * self.work < _HELD_WORK else self._free
        entry(room.pointers, room.strides, memory.address, count)
        self._done(room, memory)

    def bound(self, arrays: Sequence[Floats], strides: Sequence[int], count: int = 1) -> Callable[[], None]:
        """So many states, in whole groups of lanes, on these arrays, as a function that keeps them and its memory."""
        room, memory = self._prepared([address(a) for a in arrays], strides)
        entry = self._held if count * self.work < _HELD_WORK else self._free

        def call(lifetime: Any = (arrays, room, memory, self)) -> None:
            entry(room.pointers, room.strides, memory.address, count)

        return call

    def job(self, arrays: Sequence[Floats], strides: Sequence[int]) -> tuple[list[int], Any]:
        """One state on these arrays for native code to call: the code's address and its first three arguments.

        They hold as long as what is given back with them.
        """
        room, memory = self._prepared([address(a) for a in arrays], strides)
        return [self.code.address, room.pointers, room.strides, memory.address], (arrays, room, memory, self)

    def _prepared(self, addresses: list[int], strides: Sequence[int]) -> tuple[_Room, Scratch]:
        """The memory of a call, with its addresses in place."""
        # A room is taken out of the list while it is used: another thread, a signal handler or a finaliser
        # that calls this kernel in between finds another or makes one.
        try:
            room = self._rooms.pop()
        except IndexError:
            room = _Room(self._head.size, 8 * (len(addresses) + len(self.data)))
        self._head.pack_into(room.head, 0, *addresses, *self._data_addresses, *strides)
        return room, room.scratch or take(self.scratch, self.name)

    def _done(self, room: _Room, memory: Scratch) -> None:
        """Keep the memory of a call for the next one."""
        if self.scratch < LARGE:
            room.scratch = memory
        else:
            give(memory, self)
        self._rooms.append(room)


class _Room:
    """The memory of one call: pointers and strides, and scratch unless it is large."""

    __slots__ = ("head", "pointers", "scratch", "strides")

    def __init__(self, head: int, strides_at: int) -> None:
        self.head = bytearray(head)
        self.pointers = ctypes.addressof(ctypes.c_char.from_buffer(self.head))
        self.strides = self.pointers + strides_at
        self.scratch: Scratch | None = None


def _address_asked(array: NDArray[Any]) -> int:
    return array.ctypes.data


def _address_read(array: NDArray[Any], _word: Any = ctypes.c_uint64.from_address) -> int:
    return _word(id(array) + 16).value  # type: ignore[no-any-return]


def _can_read_addresses() -> bool:
    """Whether an array's address lies where NumPy's C structure has it: reading it is ten times as fast."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8 or object.__basicsize__ != 16:
        return False
    some = (np.zeros(3), np.zeros((2, 4))[1:], np.zeros(()))
    return all(_address_read(a) == _address_asked(a) for a in some)


address: Callable[[NDArray[Any]], int] = _address_read if _can_read_addresses() else _address_asked
