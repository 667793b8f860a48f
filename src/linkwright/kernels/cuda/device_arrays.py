"""Arrays on a GPU, through CuPy: where a call's arrays live, and a program's text and tables there.

CuPy is imported at the first use. Nothing here waits for the GPU: where arrays come from another stream, the
current one is made to wait for it.

PyTorch's tensors are used in its current stream, and results are tensors from its own memory. JAX's arrays are handed
over by DLPack, which lets one stream wait for the other. Nothing is copied, and nothing waits on the CPU.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from linkwright.errors import KernelError
from linkwright.kernels.c.program_text import Outside
from linkwright.kernels.foreign_arrays import library
from linkwright.kernels.variant import Shape
from linkwright.tape.program import Program

_WORK = 2**30  # bytes of work that a launch may take; more states are run in pieces


def cupy() -> Any:
    """CuPy, or what to do where it is missing."""
    try:
        import cupy  # weight: CuPy
    except ImportError as error:
        raise KernelError(
            "arrays on the GPU need CuPy: install the package for your CUDA, such as `pip install cupy-cuda12x`"
        ) from error
    return cupy


def gpu() -> str:
    """The GPUs that arrays can be computed on, in words, with the free memory (GiB) of the current one.

    It takes no arguments and returns a line such as "NVIDIA H200; 139 GiB free, CuPy 13.4.1".

    Raises `KernelError` without CuPy or without a GPU that CuPy can use; the message says what to do.

    >>> try:
    ...     device = lw.gpu()
    ... except lw.errors.KernelError as error:
    ...     device = f"none: {error}"
    """
    cp = cupy()
    try:
        count = cp.cuda.runtime.getDeviceCount()
        names = [cp.cuda.runtime.getDeviceProperties(k)["name"].decode() for k in range(count)]
        room = cp.cuda.runtime.memGetInfo()[0] / 2**30
    except Exception as error:
        raise KernelError(
            f"there is no GPU that CuPy can use ({error}): look at `nvidia-smi`, and whether CuPy is the one for "
            "the CUDA of its driver; NumPy arrays are computed on the CPU"
        ) from error
    return f"{', '.join(names)}; {room:.3g} GiB free, CuPy {cp.__version__}"


class Given(NamedTuple):
    """A caller's array on a GPU."""

    array: Any  # the CuPy array on the same memory
    writable: bool


def taken(value: Any) -> Given:
    """An array of any library, without copying it; the current stream waits for the one that makes it."""
    cp, kind = cupy(), library(value)
    if isinstance(value, cp.ndarray):
        return Given(value, True)
    if kind == "jax":
        return Given(_from_jax(value), False)
    if kind == "torch":
        value = value.detach()  # a tensor with gradients does not tell where it is
    interface = value.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise KernelError("an array on the GPU has a mask; give one without")
    address, fixed = interface["data"]
    shape, dtype, strides = tuple(interface["shape"]), np.dtype(interface["typestr"]), interface.get("strides")
    if math.prod(shape) == 0:
        return Given(cp.empty(shape, dtype), not fixed)
    lengths = [n * abs(s) for n, s in zip(shape, strides, strict=True)] if strides else [dtype.itemsize]
    size = max(lengths, default=dtype.itemsize) if strides else math.prod(shape) * dtype.itemsize
    memory = cp.cuda.MemoryPointer(cp.cuda.UnownedMemory(address, size, value), 0)
    array = cp.ndarray(shape, dtype, memory, strides)
    _wait_for(interface.get("stream"), array)
    return Given(array, not fixed)


def _from_jax(value: Any) -> Any:
    """An array of JAX; the current stream waits until it is there."""
    cp = cupy()
    try:
        return cp.from_dlpack(value)
    except (BufferError, TypeError, ValueError, RuntimeError):  # versions of DLPack that do not know each other
        value.block_until_ready()
        return cp.asarray(value)


def _wait_for(stream: int | None, array: Any) -> None:
    """Let the current stream wait for another; 1 and 2 are the names of the default streams."""
    if stream is None:
        return
    cp = cupy()
    with array.device:
        current = cp.cuda.get_current_stream()
        if current.ptr not in ((0, 1) if stream == 1 else (stream,)):
            current.wait_event(cp.cuda.ExternalStream(stream).record(cp.cuda.Event(disable_timing=True)))


def step_of(array: Any, shape: Shape) -> int | None:
    """The numbers between two states of an array (..., *shape), None where they have no common distance."""
    inner, numbers = array.ndim - len(shape), array.itemsize
    dense = numbers
    for n, stride in zip(reversed(array.shape[inner:]), reversed(array.strides[inner:]), strict=True):
        if n != 1 and stride != dense:
            return None
        dense *= n
    outer = [(n, s) for n, s in zip(array.shape[:inner], array.strides[:inner], strict=True) if n != 1]
    for (_, wide), (n, narrow) in pairwise(outer):
        if wide != n * narrow:
            return None
    if not outer:
        return 0
    step, left = divmod(outer[-1][1], numbers)
    return None if left or step < 0 else step


def apart(array: Any, others: Iterable[Any]) -> bool:
    """Whether a contiguous array shares no byte with others."""
    start, end = array.data.ptr, array.data.ptr + array.nbytes
    for other in others:
        if not other.size:
            continue
        reach = [(n - 1) * s for n, s in zip(other.shape, other.strides, strict=True)]
        first = other.data.ptr + sum(x for x in reach if x < 0)
        last = other.data.ptr + sum(x for x in reach if x > 0) + other.itemsize
        if first < end and start < last:
            return False
    return True


def fitting(work: int, precision: str, count: int, block: int) -> int:
    """How many of `count` states a launch takes in blocks of threads."""
    if not work:
        return count
    most = _WORK // (work * np.dtype(precision).itemsize) // block * block
    return min(count, max(block, most))


def pieces(work: int, precision: str, count: int, block: int) -> tuple[int, list[Any]]:
    """How many of `count` states a launch takes in blocks of threads, and the memory of their work, if there is any."""
    piece = fitting(work, precision, count, block)
    return piece, [cupy().empty(work * piece, precision)] if work else []


def module(source: str) -> Any:
    """The compiled text on the current device; CuPy keeps it, in the process and on disk.

    Products and sums may be joined, as is the default; there is no fast mathematics, which loses NaN.
    """
    return cupy().RawModule(code=source)


def uploaded(program: Program, outside: Sequence[Outside], precision: str) -> list[Any]:
    """The data and columns that a kernel asks for, on the current device."""
    cp = cupy()
    arrays = []
    for what, number, _ in outside:
        if what == "column":
            arrays.append(cp.asarray(program.columns[number]))
        else:
            data = program.buffers[number].data
            assert data is not None
            arrays.append(cp.asarray(data.reshape(-1).astype(precision)))
    return arrays


class Home:
    """CuPy's arrays on one device, in its current stream; Numba's and others' answers come back as these."""

    dense = False  # whether results must be contiguous
    hint = "cupy.asarray({name})"

    def __init__(self, leader: Any) -> None:
        self._leader, self._first = leader, taken(leader).array
        self.device = int(self._first.device.id)
        self._stack = ExitStack()

    def __enter__(self) -> Home:
        self._stack.enter_context(cupy().cuda.Device(self.device))
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def array(self, value: Any) -> Any:
        """An array on a GPU, of any library, as CuPy's on the same memory."""
        return self._first if value is self._leader else taken(value).array

    def empty(self, shape: Shape, precision: str) -> Any:
        """A CuPy array for a result."""
        return cupy().empty(shape, precision)

    def back(self, array: Any) -> Any:
        """A result as the library's own array."""
        return array

    def turned(self, array: Any) -> Any:
        """One of the library's own arrays with its first two axes exchanged."""
        return cupy().moveaxis(array, 0, 1)


class TorchHome(Home):
    """PyTorch's tensors on one CUDA device, in the stream that is current there."""

    hint = "torch.as_tensor({name}, device='cuda:{device}')"

    def __init__(self, leader: Any) -> None:
        self.torch = sys.modules["torch"]
        self._leader = self._first = None
        self.where = leader.device
        self.device = int(leader.device.index or 0)
        self._stack = ExitStack()
        self._tensors: dict[int, Any] = {}

    def __enter__(self) -> Home:
        stream = self.torch.cuda.current_stream(self.where).cuda_stream
        super().__enter__()
        self._stack.enter_context(cupy().cuda.ExternalStream(stream))
        return self

    def empty(self, shape: Shape, precision: str) -> Any:
        try:
            tensor = self.torch.empty(shape, dtype=getattr(self.torch, precision), device=self.where)
        except RuntimeError as error:  # PyTorch's error of a full device is one of these
            raise MemoryError(str(error)) from error
        array = taken(tensor).array
        self._tensors[id(array)] = (tensor, array)
        return array

    def back(self, array: Any) -> Any:
        pair = self._tensors.get(id(array))
        return self.torch.from_dlpack(array) if pair is None else pair[0]

    def turned(self, array: Any) -> Any:
        return array.movedim(0, 1)


class JaxHome(Home):
    """JAX's arrays on one device: CuPy's memory in CuPy's current stream, handed over."""

    dense = True
    hint = "jax.device_put({name}, {device})"

    def __init__(self, leader: Any) -> None:
        self.jax = sys.modules["jax"]
        self._leader = self._first = None
        self.where = next(iter(leader.devices()))
        self.device = int(getattr(self.where, "local_hardware_id", None) or 0)
        self._stack = ExitStack()

    def back(self, array: Any) -> Any:
        if not array.size:
            return self.jax.device_put(self.jax.numpy.zeros(array.shape, str(array.dtype)), self.where)
        from jax import dlpack  # weight: JAX

        return dlpack.from_dlpack(array)


def home_of(leader: Any) -> Home:
    """The home of an array on a GPU."""
    kind = library(leader)
    if kind == "torch":
        return TorchHome(leader)
    return JaxHome(leader) if kind == "jax" else Home(leader)


def full(home: Home, what: str, error: MemoryError) -> KernelError:
    """What to say where a device has no room."""
    free = ""
    with suppress(Exception):  # the device may be too full even to say so
        free = f" ({cupy().cuda.runtime.memGetInfo()[0] / 2**30:.3g} GiB are free)"
    text = f"GPU {home.device} has no room for {what}{free}: give fewer states at a time, or float32"
    failure = KernelError(text)
    failure.__cause__ = error
    return failure
