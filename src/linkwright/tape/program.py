"""A program: named buffers, straight blocks, and the statements that run the blocks over the buffers.

Plain data: it can be saved, hashed and lowered without knowing what made it. It computes for one state;
back-ends run it over a batch. A number that no statement wrote has no defined value, and after a loop that
ended early neither has one that its body wrote but does not carry. Statements:

- `Each` runs a block for every item: `outward` and `inward` in order (a scan over the bodies of a tree),
  `map` for independent items; with one item it is a plain call. The block is chosen by a dispatch column.
- `Walk` runs a block for every item and each of its ancestors, with a carried state.
- `Loop` repeats statements, a bounded number of times, with carried state and an early end.
- `Solve` solves a linear system. `Zero` and `Copy` clear and move numbers.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.errors import RecordingError
from linkwright.tape.block import Block
from linkwright.tape.program_forms import Compiled, backends
from linkwright.tape.scalar import Scalar, has_scalars
from linkwright.tape.statements import (
    ITEM,
    Case,
    Copy,
    Counter,
    Each,
    Loop,
    Method,
    Operand,
    Order,
    Solve,
    Statement,
    Walk,
    WalkOrder,
    Zero,
    parts,
    written,
)

if TYPE_CHECKING:
    from linkwright.tape.dataflow import Unset

__all__ = ["ITEM", "Buffer", "Case", "Copy", "Each", "Loop", "Method", "Operand", "Order", "Program", "Role", "Solve"]
__all__ += ["Statement", "Walk", "WalkOrder", "Zero"]

Role = Literal["input", "output", "temporary", "data"]


@dataclass(frozen=True, eq=False)
class Buffer:
    """A named run of numbers. Data buffers carry them; inputs and outputs have a shape for one state."""

    name: str
    role: Role
    shape: tuple[int, ...]
    data: NDArray[np.float64] | None = None

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class _Called:
    """What is called through a slot, so that a call of the object costs no Python function of its own."""

    __slots__ = {"call": "What a call of the object runs."}
    call: Callable[..., Any]


class _SignatureOfCall:
    """The signature of a call of the object: a slot has none, and `inspect` would find the object not callable."""

    def __get__(self, instance: _Called | None, owner: type) -> inspect.Signature:
        if instance is None:
            raise AttributeError  # the class has that of __init__
        return inspect.signature(instance.call)


@dataclass(frozen=True, eq=False)
class Program(_Called):
    """What a recording leaves: see the module's text. Call it with arrays of any leading batch shape.

    `lw.record` and `Mechanism.program` make one. `name` stands in messages and exported text; `buffers`, `blocks`,
    `columns` and `statements` are its parts; `single`: whether a call gives one array or a tuple; None for what fits.

    >>> program = lw.record(lambda x: x @ x, 2, name="square")
    >>> program.count(), program.with_role("input", "output"), program.to_sympy()
    ({'add': 1, 'mul': 2}, [0, 1], ([[x0, x1]], [x0**2 + x1**2]))
    >>> "square_batch" in program.to_c(), "__global__" in program.to_cuda()
    (True, True)
    >>> rolled = lw.chain(3).program("mass_matrix", form="rolled")
    >>> each, walk = rolled.statements[0], rolled.statements[-1]
    >>> rolled.cases_met(each), rolled.kinds(walk), rolled.walked(walk), list(rolled.walks(walk))
    ([1, 2], [0, 1, 1], [1, 2, 0, 0, 2, 1], [(0, []), (1, [0]), (2, [1, 0])])
    """

    name: str
    buffers: tuple[Buffer, ...]
    blocks: tuple[Block, ...]
    columns: tuple[NDArray[np.int32], ...]
    statements: tuple[Statement, ...]
    single: bool | None = None  # whether a call gives one array or a tuple; None: one if there is one output
    kernel: Compiled | None = field(default=None, init=False, repr=False)  # set by the back-ends, once
    shortened: bool = field(default=False, init=False, repr=False)  # whether `call` is the short way

    #: `carefully`, and after the first call with arrays of one state the short way to the kernel: set by the back-ends.
    __call__ = vars(_Called)["call"]
    __signature__ = _SignatureOfCall()

    def __post_init__(self) -> None:
        object.__setattr__(self, "call", self.carefully)

    def __getstate__(self) -> dict[str, Any]:
        """Copied and pickled without its short way, which belongs to one process."""
        return self.__dict__ | {"shortened": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def with_role(self, *roles: Role) -> list[int]:
        """The numbers of the buffers of these `roles`, "input", "output", "temporary" or "data", role by role."""
        return [k for role in roles for k, buffer in enumerate(self.buffers) if buffer.role == role]

    @cached_property
    def inputs(self) -> tuple[Buffer, ...]:
        """The inputs, in the order in which they are passed."""
        return tuple(b for b in self.buffers if b.role == "input")

    @cached_property
    def outputs(self) -> tuple[Buffer, ...]:
        """The outputs, in the order in which they come back."""
        return tuple(b for b in self.buffers if b.role == "output")

    @cached_property
    def digest(self) -> str:
        """A hash of everything that the results depend on."""
        h = hashlib.sha256(repr((self.name, self.single)).encode())
        for buffer in self.buffers:
            h.update(repr((buffer.name, buffer.role, buffer.shape)).encode())
            if buffer.data is not None:
                h.update(np.ascontiguousarray(buffer.data).tobytes())
        for block in self.blocks:
            h.update(block.digest.encode())
        for column in self.columns:
            h.update(str(len(column)).encode())
            h.update(np.ascontiguousarray(column).tobytes())
        h.update(repr(self.statements).encode())
        return h.hexdigest()

    @cached_property
    def unset(self) -> dict[int, Unset]:
        """What of the temporaries and outputs must start at 0, by buffer."""
        from linkwright.tape.dataflow import unset  # weight: the dataflow of programs

        return unset(self)

    @cached_property
    def written_inputs(self) -> frozenset[int]:
        """The inputs that statements write to, by buffer: back-ends work on copies of them."""
        buffers = written(self.statements)
        return frozenset(k for k in self.with_role("input") if k in buffers)

    def with_data(self, name: str, numbers: NDArray[np.float64]) -> Program:
        """The program with `numbers` as the data of this `name`, in place of an input or of other data.

        Machine code does not depend on data: programs that differ in them alone share it. A program without an input
        or data of this name stays as it is.

        >>> float(lw.record(lambda x, k: k * x, (), ()).with_data("k", np.array(3.0))(2.0))
        6.0
        """

        def held(b: Buffer) -> Buffer:
            if b.name != name or b.role not in ("input", "data"):
                return b
            return replace(b, role="data", data=np.array(numbers, dtype=np.float64).reshape(b.shape))

        buffers = tuple(map(held, self.buffers))
        if buffers == self.buffers:
            return self
        return Program(self.name, buffers, self.blocks, self.columns, self.statements, self.single)

    @property
    def returns_one(self) -> bool:
        """Whether a call gives one array, and not a tuple of them."""
        return len(self.outputs) == 1 if self.single is None else self.single

    def count(self) -> dict[str, int]:
        """How many operations of each name one evaluation takes: a dictionary of those that occur.

        Example:
            >>> lw.record(lambda x: x * x + 1.0, ()).count()
            {'add': 1, 'mul': 1}
        """
        return Counter(self).of(self.statements)

    def cases_met(self, statement: Each) -> list[int]:
        """How many items each case of the `Each` `statement` runs for."""
        if statement.dispatch is None:
            return [statement.items]
        column = self.columns[statement.dispatch]
        return np.bincount(column, minlength=len(statement.cases)).tolist()  # type: ignore[no-any-return]

    def kinds(self, statement: Each | Walk) -> list[int]:
        """The dispatch column of the `statement`, a scan or a walk: the kind of each item."""
        if statement.dispatch is None:
            return [0] * statement.items
        return self.columns[statement.dispatch].tolist()  # type: ignore[no-any-return]

    def walked(self, statement: Walk) -> list[int]:
        """How many times each case of the `Walk` `statement` runs, those of `start` first: O(items), at any depth."""
        kinds, parent, n = self.kinds(statement), self.columns[statement.parent].tolist(), len(statement.start)
        above: dict[int, NDArray[np.int64]] = {-1: np.zeros(n, np.int64)}  # ancestors of each kind
        met = np.zeros((1 + n, n), np.int64)
        for first in range(statement.items):
            path = [first]
            while path[-1] not in above:
                path.append(parent[path[-1]])
            for i in path[-2::-1]:
                above[i] = above[parent[i]].copy()
                if parent[i] >= 0:
                    above[i][kinds[parent[i]]] += 1
            met[0, kinds[first]] += 1
            met[1 + kinds[first]] += above[first]
        return met.reshape(-1).tolist()

    def walks(self, statement: Walk) -> Iterator[tuple[int, list[int]]]:
        """Every item of the `Walk` `statement`, in its order, with its ancestors, nearest first."""
        parent = self.columns[statement.parent].tolist()
        items = range(statement.items)
        for i in reversed(items) if statement.order == "inward" else items:
            ancestors = []
            j = parent[i]
            while j >= 0:
                ancestors.append(j)
                j = parent[j]
            yield i, ancestors

    def carefully(self, *arrays: Any, out: Any = None) -> Any:
        """Evaluate the program: what a call does, with every check in Python.

        - `arrays`: one per input, (..., *shape), with leading axes that broadcast; float64, or what converts to it.
          Arrays of PyTorch, JAX and CuPy are answered in kind. With recorded scalars, as inside another recording, the
          program becomes a part of that recording.
        - `out`: the array, or a list of arrays, that takes the results; by default new arrays.

        Returns one array (..., *shape of the output) or a tuple of them, as the recorded function did. Raises
        `ShapeError` and `DtypeError`, which name the input. After the first call for one state, calls take a short
        way without Python functions.

        >>> square = lw.record(lambda x: x @ x, 2)
        >>> square([[3.0, 4.0], [1.0, 0.0]]), square.carefully([3.0, 4.0])
        (array([25.,  1.]), array(25.))
        """
        if has_scalars(*arrays):
            return self._inlined(arrays)
        answer = (self.kernel or backends().compiled(self))(*arrays, out=out)
        if not self.shortened and arrays and type(arrays[0]) is np.ndarray and arrays[0].shape == self.inputs[0].shape:
            backends().shorten(self)
        return answer

    def bound(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[[], None]:
        """A function without arguments that computes one state from `inputs` into `outputs`, again and again.

        There is an array for each, of its shape for one state, contiguous and float64. The function holds the arrays:
        change their numbers in place. Raises `ShapeError` and `DtypeError` for other arrays.

        >>> x, y = np.array([3.0, 4.0]), np.zeros(())
        >>> lw.record(lambda x: x @ x, 2).bound([x], [y])()
        """
        return backends().compiled(self).bound(inputs, outputs)

    def marched(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int) -> Callable[[int, int], None]:
        """A function (begin, number) that computes states one after another, each from what the ones before left.

        - `inputs`: an array for each, (count, *shape), or (*shape) for one that is the same for all states.
        - `outputs`: an array for each, (count, *shape); they may lie where inputs of later states do.
        - `count`: how many states the arrays hold.

        All arrays are contiguous and float64. Raises `ShapeError` and `DtypeError` for others.

        >>> x = np.array([2.0, 0.0, 0.0])
        >>> lw.record(lambda x: x * x, ()).marched([x[:2]], [x[1:]], 2)(0, 2)  # x is 2, 4, 16
        """
        return backends().compiled(self).marched(inputs, outputs, count)

    @cached_property
    def _straight(self) -> Block | None:
        """The whole program as one block, where that can be."""
        from linkwright.tape.runner import straightened  # weight: interpretation of programs

        return straightened(self)

    def _inlined(self, arrays: tuple[Any, ...]) -> Any:
        """The outputs as recorded scalars of the recording that the arguments belong to."""
        block = self._straight
        if block is None:
            raise RecordingError(
                f"{self.name} is a loop, which cannot become part of another recording; "
                "take its unrolled form: mech.program(..., form='unrolled')"
            )
        if len(arrays) != len(self.inputs):
            raise RecordingError(f"{self.name} takes {len(self.inputs)} arrays; {len(arrays)} were given")
        operands = [np.asarray(a) for a in arrays]
        for array, buffer in zip(operands, self.inputs, strict=True):
            if array.shape != buffer.shape:
                raise RecordingError(f"{self.name}: {buffer.name} has shape {array.shape}; needed is {buffer.shape}")
        flat = [x for array in operands for x in array.reshape(-1).tolist()]
        recorder = next(x.recorder for x in flat if isinstance(x, Scalar))
        nodes = block.replay(recorder, [recorder.lift(x) for x in flat])
        results = []
        for buffer, scalars in parts(self.outputs, [nodes[k] for k in block.outputs.tolist()]):
            array = np.empty(buffer.size, dtype=object)
            array[:] = scalars
            results.append(array.reshape(buffer.shape) if buffer.shape else array[0])
        return results[0] if self.returns_one else tuple(results)

    # -- derivatives: new programs -------------------------------------------------------------------
    def forward(self) -> Program:
        """The program (inputs, their tangents "d_…") → (outputs, their tangents "d_…"): one direction a call.

        >>> y, dy = lw.record(lambda x: x * x, ()).forward()(3.0, 1.0)
        >>> float(dy)
        6.0
        """
        from linkwright.tape.derivative import forward_program  # weight: derivatives

        return forward_program(self)

    def reverse(self) -> Program:
        """The program (inputs, adjoints "bar_…" of the outputs) → (outputs, adjoints "bar_…" of the inputs).

        Raises `RecordingError` for loops, and where a number is written again after it was read.

        >>> lw.record(lambda x: x @ x, 2).reverse()([3.0, 4.0], 1.0)[1]
        array([6., 8.])
        """
        from linkwright.tape.derivative_reverse import reverse_program  # weight: derivatives

        return reverse_program(self, self.with_role("input"), self.with_role("output"))

    def jacobian(self, output: int = 0, wrt: int = 0) -> Any:
        """∂output/∂input, by their numbers `output` and `wrt` (0 by default), as a `SparseMatrix` of exact derivatives.

        Call it with the program's inputs for the dense matrix (..., m, n); `.values` gives the entries alone, which
        stand at `.rows` and `.cols`. Raises `RecordingError` for an output or input that is not there.

        >>> lw.record(lambda x: x * x, 2).jacobian()([1.0, 2.0])
        array([[2., 0.],
               [0., 4.]])
        """
        from linkwright.tape.derivative import jacobian  # weight: derivatives

        return jacobian(self, output, wrt)

    def hessian(self, output: int = 0, wrt: int = 0) -> Any:
        """∂²output/∂input² of an output of one number, as a `SparseMatrix`: `output` and `wrt` as for `jacobian`.

        Raises `RecordingError` for an output of several numbers.

        >>> lw.record(lambda x: x[0] * x[1], 2).hessian()([1.0, 2.0])
        array([[0., 1.],
               [1., 0.]])
        """
        from linkwright.tape.derivative import hessian  # weight: derivatives

        return hessian(self, output, wrt)

    # -- text and other tools ------------------------------------------------------------------------
    def to_c(self, *, name: str | None = None, precision: str = "float64") -> str:
        """The text of one self-contained C99 file.

        `name` is that of its functions; by default the program's. `precision` is "float64" (the default) or "float32";
        a `KernelError` for another.
        """
        return str(backends().converted(self, "C", name=name, precision=precision))

    def to_cuda(self, *, name: str | None = None, precision: str = "float64") -> str:
        """The text of one self-contained CUDA file, one thread per state; `name` and `precision` as of `to_c`.

        Example:
            >>> "__global__ void double_it(" in lw.record(lambda x: 2.0 * x, 3).to_cuda(name="double_it")
            True
        """
        return str(backends().converted(self, "CUDA", name=name, precision=precision))

    def to_sympy(self) -> Any:
        """SymPy expressions: (symbols of the inputs, expressions of the outputs), lists in the order of the arrays.

        Raises `KernelError` for programs of too many operations, for loops that end early, and without SymPy.

        Example:
            >>> symbols, expressions = lw.record(lambda t: t * t, ()).to_sympy()
            >>> expressions
            [t**2]
        """
        return backends().converted(self, "SymPy")

    def to_casadi(self) -> Any:
        """A `casadi.Function` of the same inputs and outputs by name: `program.to_casadi()(q, v)`.

        Raises `KernelError` for programs of too many operations, and without CasADi.

        >>> lw.record(np.sin, 3).to_casadi().size_in(0)
        (3, 1)
        """
        return backends().converted(self, "CasADi")

    def to_jax(self, *, machine_code: bool = True) -> Any:
        """A function of JAX arrays for one state, to be jitted, mapped and differentiated there.

        It takes an array for each input, of its shape, and returns what a call of the program does. On the CPU XLA
        calls the program's machine code, over the whole batch of a `vmap`; on other devices, and everywhere without
        `machine_code` (True by default), JAX's own operations run. Raises `KernelError` without JAX, and the function
        `ShapeError` for other arrays.

        >>> function = lw.record(np.sin, 3).to_jax()  # doctest: +SKIP
        """
        return backends().converted(self, "JAX", machine_code=machine_code)

    def save(self, path: Any) -> None:
        """Write to the file `path`, whole or not at all; `lw.load_program` reads it. Raises `LinkwrightError`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lw.record(np.sin, 3).save(f"{folder}/sines")
        """
        from linkwright.tape.program_files import save  # weight: zip files and JSON

        save(self, path)

    def __repr__(self) -> str:
        def show(buffers: tuple[Buffer, ...]) -> str:
            return ", ".join(f"{b.name}{list(b.shape)}" for b in buffers)

        operations = sum(self.count().values())
        return f"<Program {self.name}: {show(self.inputs)} -> {show(self.outputs)}, {operations} operations>"
