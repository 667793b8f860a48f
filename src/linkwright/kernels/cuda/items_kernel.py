"""One state on a GPU with a thread an item: the launches of a program, captured once and replayed as one graph.

A graph holds the addresses that it was captured with. Arrays that come for the first time are copied to and from
arrays of the kernel's own; those that come again get a graph of their own, and a few of these are kept. The kernel's
memory serves one call after another, in whichever streams they are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwright.base.locks import Lock
from linkwright.kernels.cuda.device_arrays import cupy, module
from linkwright.kernels.cuda.item_threads import ItemsText, items_text
from linkwright.kernels.cuda.state_threads import BLOCK
from linkwright.kernels.signature import Shape
from linkwright.tape.program import Program

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
