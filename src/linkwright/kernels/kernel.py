"""A program made callable: arrays of any leading batch shape in, arrays out, by the fastest variant that fits.

This is the careful path: it checks, converts, broadcasts, chooses lanes and threads. `callpath` puts a native
shortcut in front of it for the plainest calls.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import packed, unpacked
from linkwright.base.checks import exact_array, real_array, whole_number
from linkwright.base.locks import Lock, cached_property
from linkwright.base.memory import check_memory, empty
from linkwright.base.types import Floats
from linkwright.errors import KernelError
from linkwright.kernels import cache as disk
from linkwright.kernels import scratch
from linkwright.kernels.arguments import (
    check_count,
    check_out,
    common_lead,
    given_outputs,
    wrong_out,
    wrong_shape,
)
from linkwright.kernels.interpret import numpy_runner
from linkwright.kernels.libraries import library
from linkwright.tape.preparing import preparing
from linkwright.tape.program import Buffer, Program

if TYPE_CHECKING:
    from linkwright.kernels.cuda.device_kernel import DeviceKernel
    from linkwright.kernels.llvm.compiler import Code
    from linkwright.tape.derivative import SparseMatrix

Shape = tuple[int, ...]

_FLOAT64 = np.dtype(np.float64)
_PLAIN, _WRITEABLE = 0x101, 0x400  # the flags of an array that is C-contiguous and aligned, that can be written
_THREAD_WORK = 2_000_000  # operations below which a second thread costs more than it brings
_PATIENCE = 0.01  # seconds that a team waits for a member whose thread is busy
_HELD_WORK = 20_000  # operations below which letting other threads of Python run costs more than it brings
_MUCH = 2**24  # numbers beyond which it is asked whether there is memory for them
_LONG = 3_000  # recorded operations beyond which compiling well takes half a second and more

_ARGUMENTS = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_FREE, _HELD = ctypes.CFUNCTYPE(None, *_ARGUMENTS), ctypes.PYFUNCTYPE(None, *_ARGUMENTS)
_TEAM = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
#: Members of a team wait for each other: two teams could wait for each other's threads.
_one_team = Lock(reentrant=False)


class Port(NamedTuple):
    """An input or output: its name, its shape for one state, and how many numbers that is."""

    name: str
    shape: Shape
    size: int

    @classmethod
    def of(cls, buffer: Buffer) -> Port:
        return cls(buffer.name, tuple(buffer.shape), buffer.size)


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
        from linkwright.kernels.llvm.module_text import scratch_size

        for output in program.outputs:
            what = f"{program.name}: {output.name} of shape {tuple(output.shape)}"
            check_memory(what, output.size, "take a smaller mechanism")
        return cls(
            program.name,
            tuple(map(Port.of, program.inputs)),
            tuple(map(Port.of, program.outputs)),
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


class Kernel:
    """A program's compiled variants, made at first use; safe to call from several threads."""

    def __init__(
        self,
        identity: str,
        make: Callable[[], Program],
        *,
        seldom: bool = False,
        plain: Callable[[], Program] | None = None,
    ) -> None:
        """With `seldom`, long code for one state is compiled quickly: it runs a few times and need not be fast.

        `plain` makes the form of the program that can be differentiated, where it is another one.
        """
        self.identity, self._make, self._seldom, self._plain = identity, make, seldom, plain
        self._lock = Lock()
        self._program: Program | None = None
        self._held: _Held | None = None
        self._variants: dict[int, _Variant] = {}
        self._matrices: dict[tuple[str, int, int], SparseMatrix] = {}
        self._lanes = _lanes()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as its program: machine code is of one process."""
        if self._held is not None:
            return _restored_at, (self._held.kernel, self._held.name, self._held.numbers)
        return _restored, (self.identity, self.program, self._seldom)

    def at(self, name: str, numbers: Floats) -> Kernel:
        """The kernel of the same code with other numbers for this data of the program; itself where it has none.

        Its derivatives are compiled for these numbers.
        """
        if name not in self.signature.data:
            return self
        values = np.array(numbers, dtype=np.float64)
        identity = f"{self.identity} with {name} = {values.tobytes().hex()}"
        other = Kernel(identity, lambda: self.program.with_data(name, values), seldom=self._seldom)
        other._held = _Held(self, name, values)
        return other

    @property
    def program(self) -> Program:
        """The program, recorded now if object code was found without it."""
        with self._lock:
            if self._program is None:
                with preparing():
                    self._program = self._make()
            return self._program

    @property
    def differentiable(self) -> Program:
        """The form of the program that has derivatives."""
        return self._plain() if self._plain else self.program

    @cached_property
    def signature(self) -> Signature:
        """What a caller must know, from the cache or from the program."""
        if self._held is not None:
            return self._held.kernel.signature
        name = disk.key(self.identity, "signature", str(self._lanes))
        kept = disk.read(name)
        if kept is not None:
            try:
                return Signature.loads(kept)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                pass  # a damaged entry: made anew
        signature = Signature.of(self.program, sorted({1, self._lanes}))
        disk.write(name, signature.dumps())
        return signature

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs, in the order in which they are passed."""
        return self.signature.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs, in the order in which they come back."""
        return self.signature.outputs

    @cached_property
    def data(self) -> list[NDArray[Any]]:
        """The numbers and columns that the code reads, from the cache or from the program."""
        s = self.signature
        if not s.data and not s.columns:
            return []
        if self._held is not None:
            arrays = list(self._held.kernel.data)
            place = s.data.index(self._held.name)
            arrays[place] = self._held.numbers.reshape(arrays[place].shape)
            return arrays
        return stored_arrays(self.identity, "data", lambda: _data(self.program))

    @cached_property
    def _strides(self) -> list[int]:
        return [port.size for port in (*self.signature.inputs, *self.signature.outputs)]

    def variant(self, width: int) -> _Variant:
        """The code for `width` states at a time."""
        found = self._variants.get(width)
        if found is None:
            with self._lock:
                found = self._variants.get(width)
                if found is None:
                    found = self._variants[width] = _Variant(self, width)
        return found

    def object_code(self, width: int, *, anew: bool = False) -> bytes:
        """The object code of a variant, from the cache or (always with `anew`) compiled now."""
        from linkwright.kernels.llvm import compiler

        name = disk.key(self.identity, str(width), *compiler.cpu())
        code = None if anew else disk.read(name)
        if code is None:
            from linkwright.kernels.llvm.module_text import llvm_text

            with preparing():
                quickly = self._seldom and width == 1 and sum(map(len, self.program.blocks)) > _LONG
                # Mechanisms whose parameters differ may have the same program.
                shared = name if quickly else disk.key(self.program.digest, str(width), *compiler.cpu())
                code = None if anew or shared == name else disk.read(shared)
                if code is None:
                    text = llvm_text(self.program, "kernel", width, compiler.lanes())
                    code = compiler.object_code(text, level=0 if quickly else compiler.CARE)
                    disk.write(shared, code)
            if shared != name:
                disk.write(name, code)
        return code

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The outputs for inputs (..., *shape): an array or a tuple, as the program has it; `out` takes them."""
        s = self.signature
        check_count(s, len(arrays))
        inputs: list[Floats] = []
        leads: list[Shape] = []
        flags = _PLAIN
        for array, (name, shape, _) in zip(arrays, s.inputs, strict=True):
            if type(array) is not np.ndarray or array.dtype is not _FLOAT64:
                if library(array):
                    return self._foreign(arrays, out)
                array = real_array(f"{s.name}: {name}", array)
            given = array.shape
            axes = len(given) - len(shape)
            if given[axes:] != shape:
                raise wrong_shape(s.name, name, given, shape)
            flags &= array.flags.num
            inputs.append(array)
            leads.append(given[:axes])
        lead, strides = leads[0] if leads else (), self._strides
        if leads.count(lead) != len(leads):
            lead = common_lead(s, [a.shape for a in inputs], leads)
            strides = self._lay_out(inputs, leads, lead)
        elif flags != _PLAIN:
            strides = self._lay_out(inputs, leads, lead)
        if out is None:
            targets = memory = results = [_result(s, port, lead) for port in s.outputs]
        else:
            results = given_outputs(s, out)
            targets, memory = self._targets(results, lead, inputs)
        batch = math.prod(lead)
        if batch:
            self._run([*inputs, *targets], strides, batch)
        if targets is not memory:
            for target, place in zip(targets, memory, strict=True):
                if target is not place:
                    place[...] = target
        return results[0] if s.single else tuple(results)

    def _foreign(self, arrays: tuple[Any, ...], out: Any) -> Any:
        """The answer for arrays of other libraries: see `foreign`."""
        from linkwright.kernels.foreign import call

        return call(self, arrays, out)

    def bound(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[[], None]:
        """A function without arguments that computes one state from these arrays into those, again and again."""
        from linkwright.kernels.bound import bound

        return bound(self, inputs, outputs)

    def marched(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int) -> Callable[[int, int], None]:
        """A function (begin, number) that computes states one after another, each from what the ones before left."""
        from linkwright.kernels.bound import marched

        return marched(self, inputs, outputs, count)

    @cached_property
    def forward(self) -> Kernel:
        """The kernel of (inputs, their tangents) → (outputs, their tangents)."""
        return Kernel(f"{self.identity} forward", lambda: self.differentiable.forward())

    @cached_property
    def reverse(self) -> Kernel:
        """The kernel of (inputs, adjoints of the outputs) → (outputs, adjoints of the inputs)."""
        return Kernel(f"{self.identity} reverse", lambda: self.differentiable.reverse())

    def jacobian(self, output: int = 0, wrt: int = 0) -> SparseMatrix:
        """∂output/∂input, whose program is a kernel."""
        return self._matrix("jacobian", output, wrt)

    def hessian(self, output: int = 0, wrt: int = 0) -> SparseMatrix:
        """∂²output/∂input² of an output of one number, whose program is a kernel."""
        return self._matrix("hessian", output, wrt)

    def _matrix(self, kind: Literal["jacobian", "hessian"], output: int, wrt: int) -> SparseMatrix:
        key = kind, output, wrt
        if key not in self._matrices:
            from linkwright.kernels.matrices import matrix

            self._matrices.setdefault(key, matrix(self, kind, output, wrt))
        return self._matrices[key]

    @cached_property
    def device(self) -> DeviceKernel:
        """The kernel for arrays on a GPU: see `cuda.device_kernel`."""
        from linkwright.kernels.cuda.device_kernel import DeviceKernel

        return DeviceKernel(self.signature, self.program)

    def _lay_out(self, inputs: list[Floats], leads: Sequence[Shape], lead: Shape) -> list[int]:
        """Make the inputs plain in memory; how many numbers lie between two states of inputs and outputs."""
        strides = self._strides.copy()
        for k, own in enumerate(leads):
            array = inputs[k]
            if own != lead:
                if math.prod(own) == 1:
                    strides[k] = 0  # the same numbers for every state
                else:
                    array = np.broadcast_to(array, lead + self.signature.inputs[k].shape)
            if array.flags.num & _PLAIN != _PLAIN:
                name = self.signature.inputs[k].name
                check_memory(f"{self.signature.name}: {name} of shape {array.shape}", array.size, "take fewer states")
                array = np.array(array, order="C")
            inputs[k] = array
        return strides

    def _targets(self, out: list[Any], lead: Shape, inputs: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """The arrays to compute into, and the memory of the caller's: the same, where it is plain and apart."""
        s = self.signature
        targets: list[Floats] = []
        memories: list[Floats] = []
        for array, port in zip(out, s.outputs, strict=True):
            memory = array if type(array) is np.ndarray else exact_array(f"{s.name}: out ({port.name})", array)
            if memory is None or (memory.dtype is not _FLOAT64 and memory.dtype != _FLOAT64):
                raise wrong_out(s, port, array)
            flags = memory.flags.num
            check_out(s, port, memory.shape, lead, writable=bool(flags & _WRITEABLE))
            plain = flags & _PLAIN == _PLAIN and _apart(memory, (*inputs, *targets))
            targets.append(memory if plain else np.empty(memory.shape))
            memories.append(memory)
        return targets, memories

    def _run(self, arrays: list[Floats], strides: list[int], batch: int) -> None:
        """Compute states 0..batch of plain inputs into plain outputs."""
        if not native():
            self._run_numpy(arrays, strides, batch)
            return
        width = self._lanes if batch >= self._lanes else 1
        variant = self._variants.get(width) or self.variant(width)
        work = batch * self.signature.work
        pieces = 1 if work < 2 * _THREAD_WORK else min(threads(), work // _THREAD_WORK, batch // width)
        if batch == 1 and work >= 2 * _THREAD_WORK and variant.run_together(arrays, strides):
            return
        if pieces <= 1:
            variant.run(arrays, strides, 0, batch)
            return
        own, *others = pairwise(batch * k // pieces for k in range(pieces + 1))
        jobs = [_pool().submit(variant.run, arrays, strides, *piece) for piece in others]
        variant.run(arrays, strides, *own)
        for job in jobs:
            job.result()

    def _run_numpy(self, arrays: list[Floats], strides: list[int], batch: int) -> None:
        n = len(self.signature.inputs)
        flat = []
        for array, stride, port in zip(arrays, strides, self.signature.inputs, strict=False):
            rows = array.reshape(batch if stride or array.size != port.size else 1, port.size)
            flat.append(np.broadcast_to(rows, (batch, port.size)))
        for target, value in zip(arrays[n:], numpy_runner.run(self.program, flat, batch), strict=True):
            target[...] = value.reshape(target.shape)


def _data(program: Program) -> list[NDArray[Any]]:
    """The numbers and columns of a program, in the order in which its code takes them."""
    data = [b.data for b in program.buffers if b.data is not None]
    return [np.ascontiguousarray(array) for array in (*data, *program.columns)]


def stored_arrays(content: str, request: str, compute: Callable[[], list[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Arrays that follow from some content, by what is asked: from the cache on disk, or computed now."""
    name = disk.key(content, request)
    stored = disk.read(name)
    if stored is not None:
        try:
            return unpacked(stored)
        except ValueError:
            pass  # a damaged entry: made anew
    arrays = compute()
    disk.write(name, packed(arrays))
    return arrays


def _restored(identity: str, program: Program, seldom: bool = False) -> Kernel:
    return Kernel(identity, lambda: program, seldom=seldom)


def _restored_at(kernel: Kernel, name: str, numbers: Floats) -> Kernel:
    return kernel.at(name, numbers)


@dataclass(frozen=True, eq=False)
class _Held:
    """Whose code a kernel runs, with which numbers for which data."""

    kernel: Kernel
    name: str
    numbers: Floats


class _Variant:
    """Loaded code for one width."""

    def __init__(self, kernel: Kernel, width: int) -> None:
        from linkwright.kernels.llvm.compiler import load

        s = kernel.signature
        self.name, self.width, self.work = s.name, width, s.work
        self.scratch = s.scratch[width]
        scratch.check(self.scratch, self.name)
        self.code: Code
        if kernel._held is not None:
            self.code = kernel._held.kernel.variant(width).code
        else:
            try:
                self.code = load(kernel.object_code(width), "kernel")
            except KernelError:
                self.code = load(kernel.object_code(width, anew=True), "kernel")
        self.data = kernel.data
        self._free, self._held = _FREE(self.code.address), _HELD(self.code.address)
        self._data_addresses = [d.ctypes.data for d in self.data]
        arrays = len(s.inputs) + len(s.outputs)
        self._head = struct.Struct(f"={arrays + len(self.data)}Q{arrays}q")
        self._rooms: list[_Room] = []

    def run(self, arrays: Sequence[Floats], strides: Sequence[int], begin: int, end: int) -> None:
        """States begin..end; the last group of lanes may overlap the one before."""
        addresses = [address(a) for a in arrays]
        whole = (end - begin) // self.width * self.width
        self._run(addresses, strides, begin, whole)
        if whole < end - begin:
            self._run(addresses, strides, end - self.width, self.width)

    def in_order(self, arrays: Sequence[Floats], strides: Sequence[int], begin: int, number: int) -> None:
        """So many states from `begin` on, one after another; for a width of 1."""
        self._run([address(a) for a in arrays], strides, begin, number)

    def run_together(self, arrays: Sequence[Floats], strides: Sequence[int]) -> bool:
        """One state by a team of threads, if its code can be shared out and the threads are free for it now."""
        pool = _pool()
        size = min(threads(), pool._max_workers + 1)
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
                jobs = [pool.submit(member, rank) for rank in range(1, size)]
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

    def bound(self, arrays: Sequence[Floats], strides: Sequence[int]) -> Callable[[], None]:
        """One state on these arrays, as a function that keeps them and its own memory."""
        room, memory = self._prepared([address(a) for a in arrays], strides)
        entry = self._held if self.work < _HELD_WORK else self._free

        def call(kept: Any = (arrays, room, memory, self)) -> None:
            entry(room.pointers, room.strides, memory.address, 1)

        return call

    def job(self, arrays: Sequence[Floats], strides: Sequence[int]) -> tuple[list[int], Any]:
        """One state on these arrays for native code to call: the code's address and its first three arguments.

        They hold as long as what is given back with them.
        """
        room, memory = self._prepared([address(a) for a in arrays], strides)
        return [self.code.address, room.pointers, room.strides, memory.address], (arrays, room, memory, self)

    def _prepared(self, addresses: list[int], strides: Sequence[int]) -> tuple[_Room, scratch.Scratch]:
        """The memory of a call, with its addresses in place."""
        # A room is taken out of the list while it is used: another thread, a signal handler or a finaliser
        # that calls this kernel in between finds another or makes one.
        try:
            room = self._rooms.pop()
        except IndexError:
            room = _Room(self._head.size, 8 * (len(addresses) + len(self.data)))
        self._head.pack_into(room.head, 0, *addresses, *self._data_addresses, *strides)
        return room, room.scratch or scratch.take(self.scratch, self.name)

    def _done(self, room: _Room, memory: scratch.Scratch) -> None:
        """Keep the memory of a call for the next one."""
        if self.scratch < scratch.LARGE:
            room.scratch = memory
        else:
            scratch.give(memory, self)
        self._rooms.append(room)


class _Room:
    """The memory of one call: pointers and strides, and scratch unless it is large."""

    __slots__ = ("head", "pointers", "scratch", "strides")

    def __init__(self, head: int, strides_at: int) -> None:
        self.head = bytearray(head)
        self.pointers = ctypes.addressof(ctypes.c_char.from_buffer(self.head))
        self.strides = self.pointers + strides_at
        self.scratch: scratch.Scratch | None = None


# -- arrays ----------------------------------------------------------------------------------------------
def _result(s: Signature, port: Port, lead: Shape) -> Floats:
    """A new array for an output."""
    shape = lead + port.shape
    if math.prod(shape) < _MUCH:
        return np.empty(shape)
    return empty(f"{s.name}: {port.name} of shape {shape}", shape, "take fewer states, or a smaller mechanism")


def _apart(array: Floats, others: Sequence[Floats]) -> bool:
    """Whether a plain array shares no byte with other plain arrays."""
    start = address(array)
    end = start + array.nbytes
    for other in others:
        first = address(other)
        if first < end and start < first + other.nbytes:
            return False
    return True


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


# -- back-end and threads ----------------------------------------------------------------------------------
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


def _lanes() -> int:
    if not native():
        return 1
    from linkwright.kernels.llvm.compiler import lanes

    return lanes()


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
    _threads = None if n is None else whole_number("the number of threads", n, 1)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="linkwright")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads
