"""A program made callable: arrays of any leading batch shape in, arrays out, by the fastest variant; and the cache
of kernels by content.

This is the careful path: it checks, converts, broadcasts, chooses lanes and threads. `callpath` puts a native
shortcut in front of it for the plainest calls.

A program is named by its content (the digest of what it is about) and the request (what is asked of it). Kernels are
shared by all who ask for the same; the last ones stay loaded though nobody holds them.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from linkwright.base.activity import activity
from linkwright.base.arguments import check_memory, empty, exact_array, real_array
from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock, cached_property
from linkwright.errors import KernelError
from linkwright.kernels import bound_kernel as binding
from linkwright.kernels.foreign_arrays import call as foreign_call
from linkwright.kernels.foreign_arrays import library
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.llvm import compiler as disk
from linkwright.kernels.llvm.compiler import stored_arrays
from linkwright.kernels.variant import (
    Port,
    Shape,
    Signature,
    Variant,
    address,
    check,
    check_count,
    check_out,
    common_lead,
    lanes,
    native,
    output_arrays,
    pool,
    threads,
    wrong_out,
    wrong_shape,
)
from linkwright.tape.build import preparing
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.kernels.cuda.device_kernel import DeviceKernel
    from linkwright.kernels.llvm.compiler import Code
    from linkwright.tape.derivative import SparseMatrix

_FLOAT64 = np.dtype(np.float64)
_PLAIN, _WRITEABLE = 0x101, 0x400  # the flags of an array that is C-contiguous and aligned, that can be written
THREAD_WORK = 2_000_000  # operations below which a second thread costs more than it brings
_MUCH = 2**24  # numbers beyond which it is asked whether there is memory for them
_LONG = 3_000  # recorded operations beyond which compiling well takes half a second and more


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
        self._variants: dict[int, Variant] = {}
        self._matrices: dict[tuple[str, int, int], SparseMatrix] = {}
        self._lanes = lanes()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as its program: machine code is of one process."""
        if self._held is not None:
            return Kernel.at, (self._held.kernel, self._held.name, self._held.numbers)
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
                with preparing(), activity("recording a program"):
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
        widths = sorted({1, self._lanes})
        return disk.stored(name, lambda: Signature.of(self.program, widths), Signature.loads, Signature.dumps)

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
        return disk.stored_arrays(self.identity, "data", lambda: _data(self.program))

    @cached_property
    def _strides(self) -> list[int]:
        return [port.size for port in (*self.signature.inputs, *self.signature.outputs)]

    def variant(self, width: int) -> Variant:
        """The code for `width` states at a time, loaded at its first use."""
        if width not in self._variants:
            with self._lock:
                if width not in self._variants:
                    s = self.signature
                    check(s.scratch[width], s.name)
                    self._variants[width] = Variant(s, width, self._code(width), self.data)
        return self._variants[width]

    def _code(self, width: int) -> Code:
        """The code of a variant, loaded into this process; a damaged entry of the cache is compiled anew."""
        from linkwright.kernels.llvm.compiler import load  # weight: LLVM

        if self._held is not None:
            return self._held.kernel.variant(width).code
        try:
            return load(self.object_code(width), "kernel")
        except KernelError:
            return load(self.object_code(width, anew=True), "kernel")

    def object_code(self, width: int, *, anew: bool = False) -> bytes:
        """The object code of a variant, from the cache or (always with `anew`) compiled now."""
        from linkwright.kernels.llvm import compiler  # weight: LLVM

        name = disk.key(self.identity, str(width), *compiler.cpu())
        code = None if anew else disk.read(name)
        if code is None:
            from linkwright.kernels.llvm.module_text import llvm_text  # weight: the text of LLVM

            with preparing(), activity(f"compiling {self.program.name}"):
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
                    return foreign_call(self, arrays, out)
                array = real_array(f"{s.name}: {name}", array)
            extent = array.shape
            axes = len(extent) - len(shape)
            if extent[axes:] != shape:
                raise wrong_shape(s.name, name, extent, shape)
            flags &= array.flags.num
            inputs.append(array)
            leads.append(extent[:axes])
        lead, strides = leads[0] if leads else (), self._strides
        if leads.count(lead) != len(leads):
            lead = common_lead(s.name, (port.name for port in s.inputs), inputs, leads)
            strides = self._lay_out(inputs, leads, lead)
        elif flags != _PLAIN:
            strides = self._lay_out(inputs, leads, lead)
        if out is None:
            targets = memory = results = [_result(s, port, lead) for port in s.outputs]
        else:
            results = output_arrays(s, out)
            targets, memory = self._targets(results, lead, inputs)
        batch = math.prod(lead)
        if batch:
            self._run([*inputs, *targets], strides, batch)
        if targets is not memory:
            for target, place in zip(targets, memory, strict=True):
                if target is not place:
                    place[...] = target
        return results[0] if s.single else tuple(results)

    def bound(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int | None = None) -> Callable[[], None]:
        """A function without arguments that computes one state, or `count`, from these arrays into those."""
        return binding.bound(self, inputs, outputs, count)

    def marched(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int) -> Callable[[int, int], None]:
        """A function (begin, number) that computes states one after another, each from what the ones before left."""
        return binding.marched(self, inputs, outputs, count)

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
            self._matrices.setdefault(key, matrix(self, kind, output, wrt))
        return self._matrices[key]

    @cached_property
    def device(self) -> DeviceKernel:
        """The kernel for arrays on a GPU: see `cuda.device_kernel`."""
        from linkwright.kernels.cuda.device_kernel import DeviceKernel  # weight: CUDA

        return DeviceKernel(self.signature, self.program)

    def _lay_out(self, inputs: list[Floats], leads: Sequence[Shape], lead: Shape) -> list[int]:
        """Make the inputs plain in memory; how many numbers lie between two states of inputs and outputs."""
        strides = self._strides.copy()
        for k, batch_shape in enumerate(leads):
            array = inputs[k]
            if batch_shape != lead:
                if math.prod(batch_shape) == 1:
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
        pieces = self.pieces(batch, width)
        if batch == 1 and work >= 2 * THREAD_WORK and variant.run_together(arrays, strides):
            return
        if pieces <= 1:
            variant.run(arrays, strides, 0, batch)
            return
        first, *others = pairwise(batch * k // pieces for k in range(pieces + 1))
        jobs = [pool().submit(variant.run, arrays, strides, *piece) for piece in others]
        variant.run(arrays, strides, *first)
        for job in jobs:
            job.result()

    def pieces(self, batch: int, width: int = 1) -> int:
        """How many threads work on so many states."""
        work = batch * self.signature.work
        return 1 if work < 2 * THREAD_WORK else min(threads(), work // THREAD_WORK, batch // width)

    def _run_numpy(self, arrays: list[Floats], strides: list[int], batch: int) -> None:
        n = len(self.signature.inputs)
        flat = []
        for array, stride, port in zip(arrays, strides, self.signature.inputs, strict=False):
            rows = array.reshape(batch if stride or array.size != port.size else 1, port.size)
            flat.append(np.broadcast_to(rows, (batch, port.size)))
        for target, value in zip(arrays[n:], run(self.program, flat, batch), strict=True):
            target[...] = value.reshape(target.shape)


def _data(program: Program) -> list[NDArray[Any]]:
    """The numbers and columns of a program, in the order in which its code takes them."""
    data = [b.data for b in program.buffers if b.data is not None]
    return [np.ascontiguousarray(array) for array in (*data, *program.columns)]


def _restored(identity: str, program: Program, seldom: bool = False) -> Kernel:
    return Kernel(identity, lambda: program, seldom=seldom)


@dataclass(frozen=True, eq=False)
class _Held:
    """Whose code a kernel runs, with which numbers for which data."""

    kernel: Kernel
    name: str
    numbers: Floats


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


Kind = Literal["jacobian", "hessian"]
_NONE = -1  # the tangent of a matrix whose program gives its entries


def matrix(kernel: Kernel, kind: Kind, output: int, wrt: int) -> SparseMatrix:
    """The Jacobian or Hessian of a kernel's program, whose own program is a kernel too."""
    identity = f"{kernel.identity} {kind} {output} {wrt}"

    @cache
    def recorded() -> Any:
        program = kernel.differentiable
        return (program.jacobian if kind == "jacobian" else program.hessian)(output, wrt)

    def pattern() -> list[NDArray[Any]]:
        sparse = recorded()
        tangent = _NONE if sparse.tangent is None else sparse.tangent
        return [sparse.rows, sparse.cols, np.array([*sparse.shape, tangent])]

    rows, cols, (m, n, tangent) = stored_arrays(identity, "pattern", pattern)
    entries = Kernel(identity, lambda: recorded().program)
    from linkwright.tape.derivative import SparseMatrix  # weight: derivatives

    return SparseMatrix(entries, rows, cols, (int(m), int(n)), None if tangent == _NONE else int(tangent))


#: Kernels that stay loaded though nobody holds them, where the one who asks wants that.
RECENT = 64

_lock = Lock()
_kernels: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_recent: OrderedDict[str, Kernel] = OrderedDict()


def kernel(
    content: str,
    request: object,
    record: Callable[[], Program],
    *,
    seldom: bool = False,
    plain: Callable[[], Program] | None = None,
    recent: bool = False,
) -> Kernel:
    """The kernel of a request about some content; `record` makes its program where no cache has its code.

    The request's `repr` tells it from others. `seldom` and `plain` are those of `Kernel`. With `recent` the kernel is
    among those that stay loaded: for small programs that serve one caller after another.
    """
    identity = f"{content} {request!r}"
    with _lock:
        shared = _kernels.get(identity)
        if shared is None:
            shared = _kernels[identity] = Kernel(identity, record, seldom=seldom, plain=plain)
        if recent:
            _recent[identity] = shared
            _recent.move_to_end(identity)
            if len(_recent) > RECENT:
                _recent.popitem(last=False)
    return shared
