"""Programs on the GPU, for arrays that lie there: a batch with a thread per state, a rollout, or one state with a
thread per item.

A graph holds the addresses that it was captured with. Arrays that come for the first time are copied to and from
arrays of the kernel's own; those that come again get a graph of their own, and a few of these are kept. The kernel's
memory serves one call after another, in whichever streams they are.

Arrays of any library are taken as they are, and answers come back as arrays of the same library (see `homes`), on the
same device and in the order of its current stream; nothing waits for the GPU. Inputs are of one precision, float64 or
float32, which is that of the arithmetic and of the result.

One state without batch axes of a program with many independent items (`Each` with runs, or a long map) is computed
with a thread per item; a scan without runs in such a program is left to a single thread, which is right and slow.
Everything else has a thread per state.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwright.base.locks import Lock
from linkwright.errors import DtypeError, KernelError
from linkwright.kernels.cuda.device_arrays import (
    Home,
    apart,
    cupy,
    fitting,
    full,
    home_of,
    module,
    pieces,
    step_of,
    taken,
    uploaded,
)
from linkwright.kernels.cuda.item_threads import ItemsText, items_text, suits
from linkwright.kernels.cuda.known_launches import KnownLaunches, Launch
from linkwright.kernels.cuda.state_threads import BLOCK, march_text, states_text
from linkwright.kernels.foreign_arrays import on_device
from linkwright.kernels.variant import (
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

_FEW = 2**14  # states up to which half blocks reach more processors


class Walked(NamedTuple):
    """An array on the device with its steps, in numbers: from state to state, and from call to call or row to row."""

    array: Any
    state: int
    row: int = 0

    def address(self, state: int) -> np.uint64:
        return np.uint64(self.array.data.ptr + self.array.itemsize * self.state * state)


#: Seconds that a launch may take by a cautious guess: a GPU with a screen stops longer ones, and Ctrl-C waits for it.
LAUNCH = 1.0
ONE, MANY = 5e-9, 1e-12  # seconds per operation: one after another in a thread, and over all threads


def calls_at_once(work: int, count: int) -> int:
    """How many calls of a program of so many operations a launch makes for each of `count` states."""
    return max(1, int(LAUNCH / (max(work, 1) * max(ONE, MANY * count))))


class MarchKernel:
    """A program on the current device that states march through, a thread each."""

    def __init__(self, program: Program, precision: str) -> None:
        text = march_text(program, precision)
        self.program, self.precision, self.work = program, precision, text.work
        self.function = module(text.source).get_function(text.name)
        self.tables = uploaded(program, text.outside, precision)
        self.sizes = [b.size for b in program.outputs]

    def __call__(
        self,
        inputs: Sequence[Walked],
        last: Sequence[Any],
        samples: Sequence[Walked | None],
        count: int,
        calls: int,
        every: int,
    ) -> None:
        """`calls` calls for each of `count` states; `last` may be the arrays that the states come from."""
        piece, room = pieces(self.work, self.precision, count, BLOCK)
        steps = [x.state for x in inputs] + [x.row for x in inputs]
        steps += [0 if x is None else x.state for x in samples] + [0 if x is None else x.row for x in samples]
        block = BLOCK // 2 if count <= _FEW else BLOCK
        for begin in range(0, count, piece):
            here = min(piece, count - begin)
            addresses = [x.address(begin) for x in inputs]
            addresses += [Walked(x, n).address(begin) for x, n in zip(last, self.sizes, strict=True)]
            addresses += [np.uint64(0) if x is None else x.address(begin) for x in samples]
            whole = (*addresses, *room, *self.tables, *map(np.int64, (*steps, here, calls, every)))
            self.function((-(-here // block),), (block,), whole)


_GRAPHS = 4  # kept besides that of the kernel's own arrays
_SEEN = 16  # sets of arrays that are remembered

Key = tuple[int, ...]


class ItemsKernel:
    """A program for one state on the current device."""

    def __init__(self, program: Program, precision: str) -> None:
        self.program, self.precision = program, precision
        self.text = items_text(program, precision)
        code = module(self.text.source)
        self.functions = {name: code.get_function(name) for name in self.text.functions}
        self.columns = {
            number: cupy().asarray(program.columns[number])
            for arguments in self.text.functions.values()
            for what, number in arguments
            if what == "column"
        }
        self.memory = self._memory()
        self.ports = program.with_role("input", "output")
        self._lock = Lock()
        self._own_graph: Any = None
        self._graphs: OrderedDict[Key, Any] = OrderedDict()
        self._seen: OrderedDict[Key, None] = OrderedDict()
        self._done = cupy().cuda.Event(disable_timing=True)
        self._stream: int | None = None

    def _memory(self) -> dict[int, Any]:
        """The buffers as they lie on the device, data in place."""
        memory = {}
        for k, buffer in enumerate(self.program.buffers):
            if buffer.data is not None:
                memory[k] = cupy().asarray(laid_out(self.text, k, buffer.data.reshape(-1)).astype(self.precision))
            else:
                size = self.text.rows[k] * self.text.transposed[k] if k in self.text.rows else buffer.size
                memory[k] = cupy().zeros(size, self.precision)
        return memory

    def __call__(self, inputs: Sequence[Any], leads: Sequence[Shape], targets: Sequence[Any], lead: Shape) -> None:
        """Compute one state into contiguous targets."""
        arrays = [*inputs, *targets]
        key = tuple(a.data.ptr for a in arrays) if all(a.flags.c_contiguous for a in inputs) else None
        stream = cupy().cuda.get_current_stream()
        with self._lock:
            if self._stream not in (None, stream.ptr):
                stream.wait_event(self._done)
            graph = self._graph(key, arrays)
            if graph is not None:
                graph.launch(stream)
            else:
                self._through_own(arrays, len(inputs), stream)
            self._done.record(stream)
            self._stream = stream.ptr

    def _graph(self, key: Key | None, arrays: Sequence[Any]) -> Any:
        """The graph of these arrays, captured if they have been here before."""
        if key is None:
            return None
        graph = self._graphs.get(key)
        if graph is None and key in self._seen:
            del self._seen[key]
            graph = self._graphs[key] = self._captured(dict(zip(self.ports, arrays, strict=True)))
            if len(self._graphs) > _GRAPHS:
                self._graphs.popitem(last=False)
        elif graph is None:
            self._seen[key] = None
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        else:
            self._graphs.move_to_end(key)
        return graph

    def _through_own(self, arrays: Sequence[Any], inputs: int, stream: Any) -> None:
        """Copy the inputs in, run on the kernel's own arrays, copy the outputs out."""
        if self._own_graph is None:
            self._own_graph = self._captured(self.memory)
        for place, (k, array) in enumerate(zip(self.ports, arrays, strict=True)):
            if place == inputs:
                self._own_graph.launch(stream)
            if array.size:
                place_in_memory = self.memory[k].reshape(array.shape)
                if place < inputs:
                    place_in_memory[...] = array
                else:
                    array[...] = place_in_memory
        if len(arrays) == inputs:
            self._own_graph.launch(stream)

    def _captured(self, arrays: Mapping[int, Any]) -> Any:
        """All launches as one graph, over these arrays and the rest of the kernel's own."""
        cp = cupy()
        memory = {**self.memory, **arrays}
        for name in self.functions:
            self._start(memory, name, 0, 0, 0, 0)  # loads the function, which a capture must not
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                for k, first, count in self.text.cleared:
                    size = np.dtype(self.precision).itemsize
                    (memory[k].data + first * size).memset_async(0, count * size, stream)
                for launch in self.text.launches:
                    self._start(memory, *launch)
            finally:
                graph = stream.end_capture()
        return graph

    def _start(self, memory: Mapping[int, Any], name: str, begin: int, end: int, shift: int, times: int) -> None:
        """Launch a function in the current stream."""
        arguments: list[Any] = []
        for what, number in self.text.functions[name]:
            if what == "rows":
                arguments.append(np.int64(self.text.rows[number]))
            else:
                arguments.append(self.columns[number] if what == "column" else memory[number])
        arguments += map(np.int64, (begin, end, shift, times))
        self.functions[name]((max(1, -(-(end - begin) // BLOCK)),), (BLOCK,), tuple(arguments))


def laid_out(text: ItemsText, buffer: int, values: Any) -> Any:
    """A buffer's numbers as they lie on the device: transposed, and filled up to whole rows, where it is so."""
    wide = text.transposed.get(buffer)
    if wide is None:
        return values
    filled = np.zeros(text.rows[buffer] * wide)
    filled[: len(values)] = values
    return np.ascontiguousarray(filled.reshape(-1, wide).T).reshape(-1)


_PRECISIONS = ("float64", "float32")


class DeviceKernel:
    """The careful path for arrays on a GPU."""

    def __init__(self, signature: Signature, program: Program, *, by_items: bool | None = None) -> None:
        """`by_items` says whether one state has a thread per item; by default that is chosen."""
        self.signature, self.program = signature, program
        self._by_items = by_items
        self._lock = Lock()
        self._kernels: dict[tuple[bool, str, int], _StatesKernel | ItemsKernel] = {}
        #: The outputs of a call like one that came before, or None: the short way, to be tried first.
        self.known = KnownLaunches()

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
            lead = common_lead(s.name, (port.name for port in s.inputs), inputs, leads)
            try:
                results = self._answer(home, inputs, leads, lead, precision, out)
            except MemoryError as error:
                raise full(home, f"{s.name} of {math.prod(lead):,} states", error) from error
            kernel = self._kernel(lead, precision, home.device) if math.prod(lead) else None
            launch = kernel.launch(inputs, leads, lead) if isinstance(kernel, _StatesKernel) else None
            if launch is not None:
                self.known.add(launch, arrays, results, s.single)
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
    """A program whose single states are computed with a thread per item, whether or not that would be chosen."""

    def __init__(self, program: Program) -> None:
        self._kernel = DeviceKernel(Signature.of(program, ()), program, by_items=True)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The outputs for inputs on a GPU."""
        return self._kernel(arrays, out)


class _StatesKernel:
    """A program over a batch on one device: a thread per state."""

    def __init__(self, signature: Signature, program: Program, precision: str) -> None:
        text = states_text(program, precision)
        self.signature, self.precision, self.work, self.block = signature, precision, text.work, text.block
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
        piece, room = pieces(self.work, self.precision, batch, self.block)
        sizes = [*steps, *(port.size for port in s.outputs)]
        for begin in range(0, batch, piece):
            count = min(piece, batch - begin)
            moved = [a.data + number * step * begin for a, step in zip((*arrays, *targets), sizes, strict=True)]
            self.function(*self._grid(count), (*moved, *room, *self._behind(steps, count)))

    def _grid(self, count: int) -> tuple[tuple[int], tuple[int]]:
        return (-(-count // self.block),), (self.block,)

    def _behind(self, steps: Sequence[int], count: int) -> tuple[Any, ...]:
        """The arguments after the arrays and the work."""
        return (*self.tables, *map(np.int64, steps), np.int64(count))

    def launch(self, inputs: Sequence[Any], leads: Sequence[Shape], lead: Shape) -> Launch | None:
        """The one launch for contiguous inputs of these shapes, where it is one."""
        batch, steps = math.prod(lead), []
        if fitting(self.work, self.precision, batch, self.block) < batch:
            return None
        for array, batch_shape, port in zip(inputs, leads, self.signature.inputs, strict=True):
            same = math.prod(batch_shape) == 1
            if not array.flags.c_contiguous or (batch_shape != lead and not same):
                return None
            steps.append(0 if same else port.size)
        return Launch(self.function, *self._grid(batch), self._behind(steps, batch), self.work * batch)
