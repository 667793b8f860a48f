"""Making programs: record a function, or put recorded blocks together over buffers.

A listener is called with True when preparation begins and with False when it ends, once for nested parts.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.base.arguments import check_memory, free_name, whole_number
from linkwright.base.locks import Lock
from linkwright.errors import RecordingError
from linkwright.tape import operations as O
from linkwright.tape.block import Block, Recorder, finish, operands_of, undisturbed
from linkwright.tape.program import Buffer, Program, Role
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import Case, Each, Mapping, Operand, Statement, parts

_lock = Lock(reentrant=False)
_depth = 0
_listener: Callable[[bool], None] | None = None


def listen(listener: Callable[[bool], None] | None) -> None:
    """Have a function called at the beginning and the end of preparation; None for no function."""
    global _listener
    _listener = listener


@contextmanager
def preparing() -> Iterator[None]:
    """Code that runs once for a program, however often the program is then used."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(step: int) -> None:
    global _depth
    with _lock:
        _depth += step
        edge = _depth == (1 if step > 0 else 0)
        if edge and _listener is not None:
            _listener(step > 0)


class Wiring:
    """Collects the operands of one block while it is recorded; `case` makes the block and its case."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.inputs: list[tuple[Operand, bool]] = []
        self.outputs: list[Operand] = []
        self.results: list[Scalar] = []
        self.count = 0

    def read(self, operand: Operand, *, keep: bool = False) -> list[Scalar]:
        """The operand's numbers as inputs; it stays in the case if one of them is used, or to `keep`."""
        fresh = [self.recorder.input(self.count + k) for k in range(operand.size)]
        self.count += operand.size
        self.inputs.append((operand, keep))
        return fresh

    def write(self, operand: Operand, values: list[Scalar]) -> None:
        """Leave the values at the operand; adding nothing but zeros is left out."""
        if not (operand.add and all(x.value == 0.0 for x in values)):
            self.outputs.append(operand)
            self.results.extend(values)

    def case(self, builder: ProgramBuilder) -> Case:
        block = finish(self.recorder, self.count, self.results)
        used = _used_inputs(block)
        keep = np.zeros(self.count, dtype=bool)
        operands = []
        inputs = [operand for operand, _ in self.inputs]
        for (operand, at), (_, always) in zip(parts(inputs, np.arange(self.count)), self.inputs, strict=True):
            if always or used[at].any():
                operands.append(operand)
                keep[at] = True
        return Case(builder.block(_with_inputs(block, keep)), tuple(operands), tuple(self.outputs))


def _used_inputs(block: Block) -> np.ndarray:
    used = np.zeros(block.first_operation + len(block), dtype=bool)
    used[block.args[block.operand_places()]] = True
    used[block.outputs] = True
    return used[block.first_input : block.first_operation]


def _with_inputs(block: Block, keep: np.ndarray) -> Block:
    """The block without the inputs that are not kept; nothing uses them."""
    if keep.all():
        return block
    stays = np.ones(block.first_operation + len(block), dtype=bool)
    stays[block.first_input : block.first_operation] = keep
    number = (np.cumsum(stays) - 1).astype(np.int32)
    args, places = block.args.copy(), block.operand_places()
    args[places] = number[args[places]]
    return replace(block, n_inputs=int(keep.sum()), args=args, outputs=number[block.outputs])


class _Longer:
    """A block with more operations after its own."""

    def __init__(self, block: Block) -> None:
        self.shorter, self.op, self.args = block, block.op.tolist(), block.args.tolist()

    def add(self, op: int, a: int, b: int) -> int:
        """Append an operation of two values; the number of its value."""
        self.op.append(op)
        self.args.append([a, b, 0])
        return self.shorter.first_operation + len(self.op) - 1

    def block(self, outputs: list[int]) -> Block:
        """The longer block with these outputs; the same block if nothing was added."""
        if len(self.op) == len(self.shorter):
            return self.shorter
        op, args = np.array(self.op, dtype=np.uint8), np.array(self.args, dtype=np.int32)
        return replace(self.shorter, op=op, args=args, outputs=np.array(outputs, dtype=np.int32))


def spoiled_together(block: Block, groups: Sequence[Sequence[int]]) -> Block:
    """The same block, but where an output is NaN for one of these groups of inputs, all outputs are.

    An output may not depend on Euler parameters that others depend on (a moment of gravity about an axis through the
    mass centre): where these have no length, an answer is NaN as a whole. y − y is 0 for finite y.
    """
    first, base = block.first_input, block.first_operation
    outputs = block.outputs.tolist()
    longer = _Longer(block)
    for group in groups:
        depends = np.zeros(base + len(block), bool)
        depends[[first + k for k in group]] = True
        for k, row in enumerate(block.rows(), base):
            depends[k] = depends[list(operands_of(row))].any()
        one = next((x for x in block.outputs.tolist() if depends[x]), None)
        lacking = np.flatnonzero(~depends[block.outputs]).tolist()
        if one is None or not lacking:
            continue
        nothing = longer.add(O.SUB, one, one)
        for k in lacking:
            outputs[k] = longer.add(O.ADD, outputs[k], nothing)
    return longer.block(outputs)


def with_every_input(block: Block) -> Block:
    """The same block, but an input that it does not use spoils its outputs where it is NaN or infinite.

    A mechanism's answer may not depend on a coordinate (a turn about a vertical axis, say); a NaN there is still
    a NaN that somebody passed. x − x is 0 for finite x; it is added to every output that is computed.
    """
    first, base = block.first_input, block.first_operation
    outputs = block.outputs.tolist()
    used = set(outputs).union(*map(operands_of, block.rows()))
    unused = [x for x in range(first, base) if x not in used]
    computed = sorted({x for x in outputs if x >= base})
    if not unused or not computed:
        return block
    longer = _Longer(block)
    total = longer.add(O.SUB, unused[0], unused[0])
    for x in unused[1:]:
        total = longer.add(O.ADD, total, longer.add(O.SUB, x, x))
    moved = {x: longer.add(O.ADD, x, total) for x in computed}
    return longer.block([moved.get(x, x) for x in outputs])


Shape = tuple[int, ...]
_OBJECTS = 20  # numbers that one recorded scalar takes as much memory as


@preparing()
@undisturbed()
def trace(function: Callable[..., Any], shapes: Sequence[Shape]) -> tuple[Block, list[Shape], bool]:
    """Record `function` of arrays of these shapes: its block, its outputs' shapes, and whether it gave one."""
    recorder = Recorder()
    arguments, position = [], 0
    for shape in shapes:
        array = np.empty(shape, dtype=object)
        flat = array.reshape(-1)
        for k in range(flat.size):
            flat[k] = recorder.input(position)
            position += 1
        arguments.append(array if shape else array[()])
    result = function(*arguments)
    single = not isinstance(result, (tuple, list))
    results = [result] if single else list(result)
    nodes: list[Scalar] = []
    out_shapes: list[Shape] = []
    for value in results:
        if value is None or isinstance(value, (dict, set)):
            what = "nothing" if value is None else f"a {type(value).__name__}"
            raise RecordingError(
                f"a recorded function must return an array or a tuple of arrays; this one returned {what}"
            )
        array = np.asarray(value)
        if array.dtype != object and not np.issubdtype(array.dtype, np.number):
            raise RecordingError(f"a recorded function returned {value!r}, which is not an array of numbers")
        out_shapes.append(array.shape)
        nodes.extend(recorder.lift(x) for x in array.reshape(-1).tolist())
    return finish(recorder, position, nodes), out_shapes, single


@dataclass(frozen=True)
class Ref:
    """A part of a buffer, given by its first number and its shape."""

    operand: Operand
    shape: Shape

    def at(self, *steps: tuple[int, int], far: tuple[tuple[int, int], ...] = (), add: bool = False) -> Ref:
        """The same part, moved by stride·column[item] for each (stride, column)."""
        operand = replace(self.operand, steps=self.operand.steps + steps, far=far, add=add)
        return Ref(operand, self.shape)

    def part(self, base: int, shape: Shape) -> Ref:
        """A run of `shape` numbers, `base` after the start of this one."""
        size = int(np.prod(shape, dtype=np.int64))
        return Ref(replace(self.operand, base=self.operand.base + base, size=size), shape)


class ProgramBuilder:
    """Collects buffers, blocks, columns and statements; `build` makes the program of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.buffers: list[Buffer] = []
        self.blocks: list[Block] = []
        self.columns: list[Any] = []
        self.statements: list[Statement] = []
        self._known_blocks: dict[str, int] = {}
        self._known_columns: dict[bytes, int] = {}
        self._temporaries: dict[str, dict[int, Ref]] = {}  # of the programs that are run as parts

    @classmethod
    def onto(cls, program: Program, name: str, *, blocks: bool = True) -> ProgramBuilder:
        """A builder that has a program's buffers, columns and (if wanted) blocks, numbered as there; no statements."""
        builder = cls(name)
        builder.buffers = list(program.buffers)
        for block in program.blocks if blocks else ():
            builder._known_blocks.setdefault(block.digest, len(builder.blocks))
            builder.blocks.append(block)
        for column in program.columns:
            builder._known_columns.setdefault(column.tobytes(), len(builder.columns))
            builder.columns.append(column)
        return builder

    def free_name(self, name: str) -> str:
        """The name, or with a number behind it if a buffer has it already."""
        return free_name(name, {b.name for b in self.buffers}, "_")

    def buffer(self, name: str, role: Role, shape: Shape, data: Any = None) -> Ref:
        """A new buffer, as a whole."""
        self.buffers.append(Buffer(name, role, tuple(shape), data))
        return Ref(Operand(len(self.buffers) - 1, self.buffers[-1].size), tuple(shape))

    def input(self, name: str, shape: Shape) -> Ref:
        return self.buffer(name, "input", shape)

    def output(self, name: str, shape: Shape) -> Ref:
        return self.buffer(name, "output", shape)

    def temporary(self, name: str, shape: Shape) -> Ref:
        return self.buffer(name, "temporary", shape)

    def hide_outputs(self, program: Program) -> None:
        """The outputs of the program that this one is built onto become temporaries."""
        for k in program.with_role("output"):
            self.buffers[k] = replace(self.buffers[k], role="temporary")

    def make_output(self, result: Ref, name: str) -> None:
        """A temporary becomes the output of this name."""
        at = result.operand.buffer
        self.buffers[at] = replace(self.buffers[at], role="output", name=name)

    def data(self, name: str, array: Any) -> Ref:
        array = np.ascontiguousarray(array, dtype=np.float64)
        return self.buffer(name, "data", array.shape, array)

    def column(self, numbers: Any) -> int:
        """A column of whole numbers; equal columns are one."""
        column = np.ascontiguousarray(numbers, dtype=np.int32)
        key = column.tobytes()
        if key not in self._known_columns:
            self._known_columns[key] = len(self.columns)
            self.columns.append(column)
        return self._known_columns[key]

    def block(self, block: Block) -> int:
        """Add a block; equal blocks are one."""
        number = self._known_blocks.setdefault(block.digest, len(self.blocks))
        if number == len(self.blocks):
            self.blocks.append(block)
        return number

    def case(self, block: Block, inputs: Sequence[Ref], outputs: Sequence[Ref]) -> Case:
        """A block with its operands, sizes checked."""
        read, taken = sum(r.operand.size for r in inputs), block.n_inputs
        left, results = sum(r.operand.size for r in outputs), len(block.outputs)
        if read != taken or left != results:
            raise RecordingError(
                f"program {self.name}: a block of {taken} inputs and {results} outputs "
                f"was given operands of {read} and {left} numbers"
            )
        return Case(self.block(block), tuple(r.operand for r in inputs), tuple(r.operand for r in outputs))

    def call(self, function: Callable[..., Any], inputs: Sequence[Ref], outputs: Sequence[Ref]) -> None:
        """Record `function` of the inputs' shapes and run it once."""
        block, _, _ = trace(function, [r.shape for r in inputs])
        self.statements.append(Each(1, (self.case(block, inputs, outputs),)))

    def add(self, statement: Statement) -> None:
        self.statements.append(statement)

    def run(self, program: Program, inputs: Sequence[Ref], outputs: Sequence[Ref]) -> None:
        """Run a whole program as a part of this one: its inputs and outputs, in their order, are these buffers' parts.

        Its blocks are shared with every other use; its temporaries are its own, and one set for all uses of it. An
        output must not lie where an input does.
        """
        sources = iter(inputs)
        targets = iter(outputs)
        mine = self._temporaries.setdefault(program.digest, {})
        places: list[Ref] = []
        for k, buffer in enumerate(program.buffers):
            if buffer.role in ("input", "output"):
                ref = next(sources if buffer.role == "input" else targets, None)
                if ref is None or ref.operand.size != buffer.size:
                    size = "nothing" if ref is None else f"{ref.operand.size} numbers"
                    raise RecordingError(
                        f"{self.name}: {program.name} takes {buffer.size} for {buffer.name}; got {size}"
                    )
                places.append(ref)
                continue
            if k not in mine:
                mine[k] = self.buffer(
                    self.free_name(f"{program.name} {buffer.name}"), buffer.role, buffer.shape, buffer.data
                )
            places.append(mine[k])
        if next(sources, None) is not None or next(targets, None) is not None:
            raise RecordingError(f"{self.name}: {program.name} was given more buffers than it has")
        columns = [self.column(c) for c in program.columns]
        blocks = [self.block(b) for b in program.blocks]
        by = Mapping(lambda operand: _moved(operand, places, by), columns.__getitem__, blocks.__getitem__)
        self.statements.extend(statement.mapped(by) for statement in program.statements)

    def build(self, *, single: bool | None = None) -> Program:
        """The program; a call of it gives one array if `single`, else a tuple (None: one if there is one output)."""
        return Program(
            self.name,
            tuple(self.buffers),
            tuple(self.blocks),
            tuple(self.columns),
            tuple(self.statements),
            single,
        )


def _moved(operand: Operand, places: Sequence[Ref], by: Mapping) -> Operand:
    """An operand of a program that has become a part of another; a walk's carry has no place."""
    if operand.buffer < 0:
        return operand
    there = places[operand.buffer].operand
    steps = there.steps + by.steps(operand.steps)
    return replace(operand, buffer=there.buffer, base=there.base + operand.base, steps=steps, far=by.steps(operand.far))


def _shape(shape: Any) -> Shape:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    numbers = tuple(whole_number("a size in a shape", n) for n in sizes)
    check_memory(f"a recording of shape {numbers}", _OBJECTS * math.prod(numbers), "record a smaller function")
    return numbers


def record(function: Callable[..., Any], *shapes: Any, name: str | None = None) -> Program:
    """Record a function in NumPy syntax as a `Program`, which computes the same in machine code.

    Arguments:
        function: takes an array for each shape, for one state; returns an array or a tuple of arrays. So does the
            program when it is called.
        shapes: one per argument, for one state: a tuple of whole numbers, n for (n,), or () for a single number.
        name: of the program, in messages and exported text; by default that of the function.

    Raises `RecordingError` where the function takes another number of arrays, returns something else than arrays, or
    needs the value of a recorded number (`if x > 0`, `float(x)`): the message names what to write instead.

    Example:
        >>> double = lw.record(lambda x: 2.0 * x, 3)
        >>> double([1.0, 2.0, 3.0])
        array([2., 4., 6.])
    """
    wanted = [_shape(s) for s in shapes]
    _check_count(function, len(wanted))
    block, out_shapes, single = trace(function, wanted)
    builder = ProgramBuilder(name or getattr(function, "__name__", "program").replace("<lambda>", "program"))
    names = _argument_names(function, len(wanted))
    inputs = [builder.input(n, s) for n, s in zip(names, wanted, strict=True)]
    outputs = [builder.output(f"y{k}" if k else "y", s) for k, s in enumerate(out_shapes)]
    builder.add(Each(1, (builder.case(block, inputs, outputs),)))
    return builder.build(single=single)


def _check_count(function: Callable[..., Any], count: int) -> None:
    """Refuse a function that takes another number of arguments than there are shapes, before it is called."""
    positional, more = _positional(function)
    least = sum(p.default is p.empty for p in positional)
    if count < least or (count > len(positional) and not more):
        takes = str(least) if least == len(positional) else f"{least} to {len(positional)}"
        raise RecordingError(f"record takes one shape an argument: the function has {takes}, {count} were given")


def _positional(function: Callable[..., Any]) -> tuple[list[inspect.Parameter], bool]:
    """The arguments that a function takes by their places, and whether it takes more, or may."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [], True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return positional, any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _argument_names(function: Callable[..., Any], n: int) -> list[str]:
    names = [p.name for p in _positional(function)[0]]
    return (names + [f"x{k}" for k in range(len(names), n)])[:n]
