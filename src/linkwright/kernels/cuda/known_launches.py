"""The short way of calls on a GPU: a batch like one that was answered is one launch, with its arguments packed already.

A known launch has arrays of one library, all contiguous and of the very shapes, type and device of the call before, and
results that lie apart from the inputs. Every other call goes to the careful path of `device_kernel`, as do those on
another device than the current one. CuPy's arrays and PyTorch's tensors have this way; nothing waits for the GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.kernels.variant import Shape

MOST = 32  # launches that a kernel knows


@dataclass(frozen=True)
class Launch:
    """What a launch of a kernel has besides its arrays: the grid, and the arguments that come after the outputs."""

    function: Any
    grid: tuple[int]
    block: tuple[int]
    behind: tuple[Any, ...]  # tables, steps and the count
    work: int  # numbers of work in front of these


class CupyLaunch:
    """A launch for CuPy's arrays, in its current stream."""

    def __init__(self, launch: Launch, inputs: Sequence[Any], targets: Sequence[Any], single: bool) -> None:
        import cupy  # weight: CuPy

        arrays = (*inputs, *targets)
        self.kind, self.dtype = type(inputs[0]), inputs[0].dtype
        self.shapes = [tuple(array.shape) for array in arrays]
        self.sizes = [int(array.nbytes) for array in arrays]
        self.inputs, self.single, self.launch = len(inputs), single, launch
        self.cupy, self.current = cupy, cupy.cuda.runtime.getDevice
        self.device = self.number(inputs[0])

    def number(self, array: Any) -> int:
        """The device of an array."""
        return int(array.data.device_id)

    def empty(self, shape: Any) -> Any:
        """An array for a result or for work."""
        return self.cupy.empty(shape, self.dtype)

    def spans(self, arrays: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Where the arrays begin and end; None where one is not as it was."""
        kind, dtype, device, spans = self.kind, self.dtype, self.device, []
        for array, shape, size in zip(arrays, self.shapes, self.sizes, strict=True):
            if type(array) is not kind or array.dtype != dtype or array.shape != shape:
                return None
            place = array.data
            if place.device_id != device or not array.flags.c_contiguous:
                return None
            spans.append((place.ptr, place.ptr + size))
        return spans

    def start(self, arrays: Sequence[Any], spans: Sequence[tuple[int, int]]) -> None:
        """Launch it on these arrays."""
        launch = self.launch
        work = (self.empty(launch.work),) if launch.work else ()
        launch.function(launch.grid, launch.block, (*arrays, *work, *launch.behind))

    def __call__(self, inputs: Sequence[Any], out: Any) -> Any:
        """The outputs for these inputs, or None where the call is not this one."""
        count = self.inputs
        if len(inputs) != count or self.current() != self.device:
            return None
        if out is None:
            targets = [self.empty(shape) for shape in self.shapes[count:]]
        else:
            targets = [out] if self.single else out
        arrays = (*inputs, *targets)
        if len(arrays) != len(self.shapes):
            return None
        spans = self.spans(arrays)
        if spans is None or (out is not None and overlapping(spans, count)):
            return None
        self.start(arrays, spans)
        return targets[0] if self.single else tuple(targets)


class TorchLaunch(CupyLaunch):
    """A launch for PyTorch's tensors, in its current stream."""

    def number(self, array: Any) -> int:
        self.torch, self.where = sys.modules["torch"], array.device
        return int(array.get_device())

    def empty(self, shape: Any) -> Any:
        return self.torch.empty(shape, dtype=self.dtype, device=self.where)

    def spans(self, arrays: Sequence[Any]) -> list[tuple[int, int]] | None:
        kind, dtype, device, spans = self.kind, self.dtype, self.device, []
        for array, shape, size in zip(arrays, self.shapes, self.sizes, strict=True):
            if type(array) is not kind or array.dtype != dtype or array.shape != shape or array.requires_grad:
                return None
            if array.get_device() != device or not array.is_contiguous():
                return None
            address = array.data_ptr()
            spans.append((address, address + size))
        return spans

    def start(self, arrays: Sequence[Any], spans: Sequence[tuple[int, int]]) -> None:
        launch = self.launch
        work = [np.uint64(self.empty(launch.work).data_ptr())] if launch.work else []
        places = [np.uint64(begin) for begin, _ in spans] + work
        with self.cupy.cuda.ExternalStream(self.torch.cuda.current_stream(self.where).cuda_stream):
            launch.function(launch.grid, launch.block, (*places, *launch.behind))


def overlapping(spans: Sequence[tuple[int, int]], inputs: int) -> bool:
    """Whether an output, after so many inputs, shares bytes with another span (begin, end)."""
    for k in range(inputs, len(spans)):
        begin, end = spans[k]
        for other in range(k):
            first, last = spans[other]
            if first < end and begin < last:
                return True
    return False


class KnownLaunches:
    """The launches that a kernel knows, by the type, shape and numbers of their first input."""

    def __init__(self) -> None:
        self._launches: dict[tuple[type, Shape, Any], CupyLaunch] = {}

    def __len__(self) -> int:
        return len(self._launches)

    def __call__(self, inputs: Sequence[Any], out: Any) -> Any:
        """The outputs, or None where the call is not known."""
        first: Any = inputs[0] if inputs else None
        try:
            known = self._launches.get((type(first), first.shape, first.dtype))
        except AttributeError:
            return None
        return None if known is None else known(inputs, out)

    def add(self, launch: Launch, arrays: Sequence[Any], targets: Sequence[Any], single: bool) -> None:
        """Know calls like one with these contiguous arrays and results, if their library has a short way."""
        kinds = {type(array) for array in (*arrays, *targets)}
        if len(kinds) != 1:
            return
        (kind,) = kinds
        roots = kind.__module__.partition(".")[0], kind.__name__
        sort = {("cupy", "ndarray"): CupyLaunch, ("torch", "Tensor"): TorchLaunch}.get(roots)
        if sort is None:
            return
        if len(self._launches) >= MOST:
            self._launches.clear()
        first = arrays[0]
        self._launches[kind, tuple(first.shape), first.dtype] = sort(launch, arrays, targets, single)
