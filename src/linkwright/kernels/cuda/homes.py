"""Where the arrays of a call live on a GPU: their library, device and stream; results are made in the same place.

PyTorch's tensors are used in its current stream, and results are tensors from its own memory. JAX's arrays are handed
over by DLPack, which lets one stream wait for the other. Nothing is copied, and nothing waits on the CPU.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from typing import Any

from linkwright.errors import KernelError
from linkwright.kernels.cuda.device_arrays import cupy, taken
from linkwright.kernels.libraries import library
from linkwright.kernels.signature import Shape


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
        cp = cupy()
        self._stack.enter_context(cp.cuda.Device(self.device))
        stream = self.torch.cuda.current_stream(self.where).cuda_stream
        self._stack.enter_context(cp.cuda.ExternalStream(stream))
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
        from jax import dlpack

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
