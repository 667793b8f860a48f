"""Programs on the GPU, for arrays that lie there: a batch with a thread a state, or one state with a thread an item.

Arrays of any library are taken as they are, and answers come back as arrays of the same library (see `homes`), on the
same device and in the order of its current stream; nothing waits for the GPU. Inputs are of one precision, float64 or
float32, which is that of the arithmetic and of the result.

One state without batch axes of a program with many independent items (`Each` with runs, or a long map) is computed
with a thread an item; a scan without runs in such a program is left to a single thread, which is right and slow.
Everything else has a thread a state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.base.locks import Lock
from linkwright.errors import DtypeError, KernelError
from linkwright.kernels.cuda.device_arrays import (
    Home,
    apart,
    cupy,
    full,
    home_of,
    module,
    pieces,
    step_of,
    taken,
    uploaded,
)
from linkwright.kernels.cuda.item_threads import suits
from linkwright.kernels.cuda.items_kernel import ItemsKernel
from linkwright.kernels.cuda.state_threads import BLOCK, states_text
from linkwright.kernels.foreign import on_device
from linkwright.kernels.signature import (
    Shape,
    Signature,
    check_count,
    check_out,
    common_lead,
    output_arrays,
    wrong_dtype,
    wrong_out,
    wrong_shape,
)
from linkwright.tape.program import Program

_PRECISIONS = ("float64", "float32")


class DeviceKernel:
    """The careful path for arrays on a GPU."""

    def __init__(self, signature: Signature, program: Program, *, by_items: bool | None = None) -> None:
        """`by_items` says whether one state has a thread an item; by default that is chosen."""
        self.signature, self.program = signature, program
        self._by_items = by_items
        self._lock = Lock()
        self._kernels: dict[tuple[bool, str, int], _StatesKernel | ItemsKernel] = {}

    def __call__(self, arrays: Sequence[Any], out: Any = None) -> Any:
        """The outputs for inputs (..., *shape), at least one of them on a GPU."""
        s = self.signature
        check_count(s, len(arrays))
        with home_of(next(a for a in arrays if on_device(a))) as home:
            inputs, precision = self._inputs(arrays, home)
            leads = []
            for array, port in zip(inputs, s.inputs, strict=True):
                axes = array.ndim - len(port.shape)
                if axes < 0 or array.shape[axes:] != port.shape:
                    raise wrong_shape(s.name, port.name, array.shape, port.shape)
                leads.append(array.shape[:axes])
            lead = common_lead(s, [a.shape for a in inputs], leads)
            try:
                results = self._answer(home, inputs, leads, lead, precision, out)
            except MemoryError as error:
                raise full(home, f"{s.name} of {math.prod(lead):,} states", error) from error
        return results[0] if s.single else tuple(results)

    def _answer(
        self, home: Home, inputs: Sequence[Any], leads: Sequence[Shape], lead: Shape, precision: str, out: Any
    ) -> list[Any]:
        """The results, in the arrays given for them or in new ones."""
        if out is None:
            targets = places = [home.empty(lead + port.shape, precision) for port in self.signature.outputs]
            results: list[Any] = []
        else:
            targets, places, results = self._targets(out, lead, inputs, precision, home.device)
        if math.prod(lead):
            self._kernel(lead, precision, home.device)(inputs, leads, targets, lead)
        for target, place in zip(targets, places, strict=True):
            if target is not place:
                place[...] = target
        return results if out is not None else [home.back(target) for target in targets]

    def _inputs(self, arrays: Sequence[Any], home: Home) -> tuple[list[Any], str]:
        """The inputs as arrays of one precision on one device; single numbers may come from outside."""
        s, cp = self.signature, cupy()
        on_gpu = [home.array(array) if on_device(array) else None for array in arrays]
        leader, chief = next((a, port) for a, port in zip(on_gpu, s.inputs, strict=True) if a is not None)
        precision, device = str(leader.dtype), leader.device.id
        inputs: list[Any] = []
        for array, argument, port in zip(on_gpu, arrays, s.inputs, strict=True):
            if array is None:
                if np.ndim(argument):
                    hint = home.hint.format(name=port.name, device=home.device)
                    raise DtypeError(
                        f"{s.name}: {port.name} is not on the GPU and {chief.name} is: give {hint}",
                        given=type(argument).__name__,
                        wanted=f"{precision} on the GPU",
                    )
                array = cp.full((), float(argument), precision)
            if str(array.dtype) not in _PRECISIONS:
                raise wrong_dtype(s.name, port.name, array.dtype, "float64 or float32")
            if str(array.dtype) != precision:
                raise wrong_dtype(s.name, port.name, array.dtype, f"{precision}, as {chief.name} has")
            if array.device.id != device:
                raise KernelError(
                    f"{s.name}: {chief.name} is on GPU {device} and {port.name} on GPU {array.device.id}; "
                    "all must be on one"
                )
            inputs.append(array)
        return inputs, precision

    def _targets(
        self, out: Any, lead: Shape, inputs: Sequence[Any], precision: str, device: int
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """The arrays to compute into, those that take the results, and what the caller gave."""
        s, cp = self.signature, cupy()
        arguments = output_arrays(s, out)
        targets: list[Any] = []
        places: list[Any] = []
        for array, port in zip(arguments, s.outputs, strict=True):
            if not on_device(array):
                raise wrong_out(s, port, array, precision, device)
            place, writable = taken(array)
            if str(place.dtype) != precision or place.device.id != device:
                raise wrong_out(s, port, array, precision, device)
            check_out(s, port, place.shape, lead, writable=writable)
            plain = place.flags.c_contiguous and apart(place, (*inputs, *places))
            targets.append(place if plain else cp.empty(place.shape, precision))
            places.append(place)
        return targets, places, arguments

    def _kernel(self, lead: Shape, precision: str, device: int) -> _StatesKernel | ItemsKernel:
        """The kernel for the current device, compiled at its first use."""
        if self._by_items is None:
            self._by_items = suits(self.program)
        items = lead == () and self._by_items
        key = (items, precision, device)
        kernel = self._kernels.get(key)
        if kernel is None:
            with self._lock:
                kernel = self._kernels.get(key)
                if kernel is None:
                    kernel = self._kernels[key] = (
                        ItemsKernel(self.program, precision)
                        if items
                        else _StatesKernel(self.signature, self.program, precision)
                    )
        return kernel


class ItemKernel:
    """A program whose single states are computed with a thread an item, whether or not that would be chosen."""

    def __init__(self, program: Program) -> None:
        self._kernel = DeviceKernel(Signature.of(program, ()), program, by_items=True)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The outputs for inputs on a GPU."""
        return self._kernel(arrays, out)


class _StatesKernel:
    """A program over a batch on one device: a thread a state."""

    def __init__(self, signature: Signature, program: Program, precision: str) -> None:
        text = states_text(program, precision)
        self.signature, self.precision, self.work = signature, precision, text.work
        self.function = module(text.source).get_function(text.name)
        self.tables = uploaded(program, text.outside, precision)

    def __call__(self, inputs: Sequence[Any], leads: Sequence[Shape], targets: Sequence[Any], lead: Shape) -> None:
        """Compute all states of the batch shape `lead` into contiguous targets."""
        s, cp, batch = self.signature, cupy(), math.prod(lead)
        arrays, steps = [], []
        for array, batch_shape, port in zip(inputs, leads, s.inputs, strict=True):
            step = step_of(array, port.shape)
            if step is None or (batch_shape != lead and math.prod(batch_shape) != 1):
                array = cp.ascontiguousarray(cp.broadcast_to(array, lead + port.shape))
                step = port.size
            arrays.append(array)
            steps.append(step)
        number = np.dtype(self.precision).itemsize
        piece, room = pieces(self.work, self.precision, batch, BLOCK)
        sizes = [*steps, *(port.size for port in s.outputs)]
        for begin in range(0, batch, piece):
            count = min(piece, batch - begin)
            moved = [a.data + number * step * begin for a, step in zip((*arrays, *targets), sizes, strict=True)]
            arguments = (*moved, *room, *self.tables, *map(np.int64, steps), np.int64(count))
            self.function((-(-count // BLOCK),), (BLOCK,), arguments)
