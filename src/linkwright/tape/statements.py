"""The statements of programs: what each reads and writes, and how each is visited.

Plain data. Who treats the kinds of statements differently is a `StatementVisitor`; who only asks what is touched uses
`reads()`, `writes()`, `cases`, `unrolls` (whether it is a formula of what it reads) and `nested`, and knows no kind at
all. A new kind is a class here and a method of each visitor, and mypy names the visitors that lack it. `Counter`, which
counts operations, is such a visitor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from linkwright.tape.program import Program

Order = Literal["outward", "inward", "map"]
WalkOrder = Literal["outward", "inward"]
Method = Literal["cholesky", "lu", "least-norm", "ltl"]
Steps: TypeAlias = tuple[tuple[int, int], ...]  # (stride, column)

ITEM = -1  # the column whose entry is the item's own number

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Operand:
    """`size` numbers of a buffer at base + Σ stride·column[item] (+ Σ stride·column[ancestor] in a walk).

    As a block's output with `add`, the numbers are added to what is there. The buffer −1 is a walk's carry.
    """

    buffer: int
    size: int
    base: int = 0
    steps: Steps = ()
    far: Steps = ()
    add: bool = False

    def start(self, entry: Callable[[int, Any], Any], item: Any = 0, ancestor: Any = 0) -> Any:
        """Where its numbers begin, for an item and an ancestor, or for arrays of them: `entry(column, item)` reads
        the columns."""
        at: Any = self.base
        for steps, index in ((self.steps, item), (self.far, ancestor)):
            for stride, column in steps:
                at = at + stride * (index if column == ITEM else entry(column, index))
        return at

    def meets(self, other: Operand) -> bool:
        """Whether two operands of one item may have a number in common; those that move differently may."""
        if self.buffer != other.buffer or not self.size or not other.size:
            return False
        if (self.steps, self.far) != (other.steps, other.far):
            return True
        return self.base < other.base + other.size and other.base < self.base + self.size


@dataclass(frozen=True)
class Mapping:
    """How the numbers of one program become those of another: operands, columns (never ITEM) and blocks."""

    operand: Callable[[Operand], Operand]
    column: Callable[[int], int]
    block: Callable[[int], int]

    def optional(self, column: int | None) -> int | None:
        return None if column is None else self.column(column)

    def steps(self, steps: Steps) -> Steps:
        return tuple((stride, number if number == ITEM else self.column(number)) for stride, number in steps)


@dataclass(frozen=True)
class Case:
    """A block with its operands: the block's scalar inputs are those of `inputs`, one after another."""

    block: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]

    def reads(self) -> list[Operand]:
        """The inputs that lie in buffers."""
        return [o for o in self.inputs if o.buffer >= 0]

    def writes(self) -> list[Operand]:
        """The outputs that lie in buffers, those that are added to included."""
        return [o for o in self.outputs if o.buffer >= 0]

    def overlaps(self) -> bool:
        """Whether an output may lie on an input or on another output: then all is read before anything is written."""
        operands = (*self.inputs, *self.outputs)
        first = len(self.inputs)
        return any(a.meets(b) for k, a in enumerate(self.outputs, first) for b in operands[:k])

    def mapped(self, by: Mapping) -> Case:
        return Case(by.block(self.block), tuple(map(by.operand, self.inputs)), tuple(map(by.operand, self.outputs)))


class _Plain:
    """A statement that runs no blocks and holds no statements; by default a formula of what it reads."""

    unrolls: ClassVar[bool] = True
    cases: ClassVar[tuple[Case, ...]] = ()
    body: ClassVar[tuple[Statement, ...]] = ()


class _Blocks:
    """A statement that runs blocks."""

    unrolls: ClassVar[bool] = True
    body: ClassVar[tuple[Statement, ...]] = ()
    cases: Any  # a field or a property: tuple[Case, ...]

    def reads(self) -> list[Operand]:
        return [o for case in self.cases for o in case.reads()]

    def writes(self) -> list[Operand]:
        return [o for case in self.cases for o in case.writes()]


@dataclass(frozen=True)
class Each(_Blocks):
    """cases[dispatch[i]] for i = 0..items−1 (`inward`: from the last to the first).

    An `outward` scan may be cut into `runs`: a column of where each begins, from 0, and at last `items`. The
    items of one run have one case and are independent of each other: they may be computed side by side.
    """

    items: int
    cases: tuple[Case, ...]
    order: Order = "map"
    dispatch: int | None = None
    runs: int | None = None

    @property
    def inward(self) -> bool:
        return self.order == "inward"

    def mapped(self, by: Mapping) -> Each:
        cases = tuple(case.mapped(by) for case in self.cases)
        return replace(self, cases=cases, dispatch=by.optional(self.dispatch), runs=by.optional(self.runs))

    def accept(self, visitor: StatementVisitor[R]) -> R:
        return visitor.each(self)


@dataclass(frozen=True)
class Walk(_Blocks):
    """For every item i: carry = start(i); then for j = parent[i], parent[parent[i]], ... while j ≥ 0:
    carry = step(carry, i, j). The items come from the first to the last, or `inward` from the last to the first.

    A start case's last output and a step case's first input and last output are the carry: operands
    with buffer −1, which may be empty. `start` is chosen by dispatch[i], `step` by dispatch[i]·kinds + dispatch[j].
    """

    items: int
    parent: int
    start: tuple[Case, ...]
    step: tuple[Case, ...]
    dispatch: int | None = None
    order: WalkOrder = "outward"

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.start + self.step

    @property
    def carry_size(self) -> int:
        """How many numbers are carried at most."""
        return max((o.size for case in self.cases for o in case.outputs if o.buffer < 0), default=0)

    def mapped(self, by: Mapping) -> Walk:
        start, step = (tuple(case.mapped(by) for case in cases) for cases in (self.start, self.step))
        parent, dispatch = by.column(self.parent), by.optional(self.dispatch)
        return replace(self, parent=parent, start=start, step=step, dispatch=dispatch)

    def accept(self, visitor: StatementVisitor[R]) -> R:
        return visitor.walk(self)


@dataclass(frozen=True)
class Loop:
    """At most `count` times: run `body`, then set each carried (current ← following); end once `done` ≠ 0."""

    count: int
    body: tuple[Statement, ...]
    carry: tuple[tuple[Operand, Operand], ...]
    done: Operand | None = None
    unrolls: ClassVar[bool] = False
    cases: ClassVar[tuple[Case, ...]] = ()

    def reads(self) -> list[Operand]:
        """What the loop itself reads, after its body: not what the statements of the body do."""
        return [*(following for _, following in self.carry), *([self.done] if self.done else [])]

    def writes(self) -> list[Operand]:
        return [current for current, _ in self.carry]

    def mapped(self, by: Mapping) -> Loop:
        body = tuple(inner.mapped(by) for inner in self.body)
        carry = tuple((by.operand(current), by.operand(following)) for current, following in self.carry)
        return replace(self, body=body, carry=carry, done=None if self.done is None else by.operand(self.done))

    def accept(self, visitor: StatementVisitor[R]) -> R:
        return visitor.loop(self)


@dataclass(frozen=True)
class Solve(_Plain):
    """solution (n, k) of matrix (m, n) · solution = rhs (m, k), row-major.

    "cholesky" and "lu": m = n. "least-norm": the smallest solution of m ≤ n independent rows.
    "ltl": a symmetric positive matrix whose row i has non-zeros only at the ancestors of i,
    given by the column `parent` (−1 at a root): the mass matrix of a tree (Featherstone 2008, 6.5).
    """

    method: Method
    matrix: Operand
    rhs: Operand
    solution: Operand
    rows: int
    columns: int
    right: int
    parent: int | None = None
    unrolls: ClassVar[bool] = False

    def reads(self) -> list[Operand]:
        return [self.matrix, self.rhs]

    def writes(self) -> list[Operand]:
        return [self.solution]

    def mapped(self, by: Mapping) -> Solve:
        matrix, rhs, solution = map(by.operand, (self.matrix, self.rhs, self.solution))
        return replace(self, matrix=matrix, rhs=rhs, solution=solution, parent=by.optional(self.parent))

    def accept(self, visitor: StatementVisitor[R]) -> R:
        return visitor.solve(self)


@dataclass(frozen=True)
class Zero(_Plain):
    """Set the operand to 0."""

    target: Operand

    def reads(self) -> list[Operand]:
        return []

    def writes(self) -> list[Operand]:
        return [self.target]

    def mapped(self, by: Mapping) -> Zero:
        return Zero(by.operand(self.target))

    def accept(self, visitor: StatementVisitor[R]) -> R:
        return visitor.zero(self)


@dataclass(frozen=True)
class Copy(_Plain):
    """Set the target to the source."""

    source: Operand
    target: Operand

    def reads(self) -> list[Operand]:
        return [self.source]

    def writes(self) -> list[Operand]:
        return [self.target]

    def mapped(self, by: Mapping) -> Copy:
        return Copy(by.operand(self.source), by.operand(self.target))

    def accept(self, visitor: StatementVisitor[R]) -> R:
        return visitor.copy(self)


Statement: TypeAlias = Each | Walk | Loop | Solve | Zero | Copy


class StatementVisitor(Protocol[R_co]):
    """One method a kind of statement; `statement.accept(visitor)` calls the right one."""

    def each(self, each: Each, /) -> R_co: ...

    def walk(self, walk: Walk, /) -> R_co: ...

    def loop(self, loop: Loop, /) -> R_co: ...

    def solve(self, solve: Solve, /) -> R_co: ...

    def zero(self, zero: Zero, /) -> R_co: ...

    def copy(self, copy: Copy, /) -> R_co: ...


class PartialVisitor(Generic[R]):
    """A visitor that treats all kinds of statements alike but those whose methods a subclass overrides."""

    def other(self, statement: Statement) -> R:
        raise NotImplementedError

    def each(self, each: Each) -> R:
        return self.other(each)

    def walk(self, walk: Walk) -> R:
        return self.other(walk)

    def loop(self, loop: Loop) -> R:
        return self.other(loop)

    def solve(self, solve: Solve) -> R:
        return self.other(solve)

    def zero(self, zero: Zero) -> R:
        return self.other(zero)

    def copy(self, copy: Copy) -> R:
        return self.other(copy)


class Counter(PartialVisitor[dict[str, int]]):
    """Operations of statements, by name."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def of(self, statements: Sequence[Statement], times: int = 1) -> dict[str, int]:
        return _total((statement.accept(self), times) for statement in statements)

    def each(self, each: Each) -> dict[str, int]:
        return self.cases(each.cases, self.program.cases_met(each))

    def walk(self, walk: Walk) -> dict[str, int]:
        return self.cases(walk.cases, self.program.walked(walk))

    def cases(self, cases: Sequence[Case], times: Sequence[int]) -> dict[str, int]:
        counts = [_total([(self.program.blocks[c.block].count(), 1), ({"add": _added(c)}, 1)]) for c in cases]
        return _total(zip(counts, times, strict=True))

    def loop(self, loop: Loop) -> dict[str, int]:
        return self.of(loop.body, loop.count)

    def other(self, statement: Statement) -> dict[str, int]:
        return {}

    def solve(self, solve: Solve) -> dict[str, int]:
        m, n, k = solve.rows, solve.columns, solve.right
        if solve.method == "ltl":
            assert solve.parent is not None
            parent = self.program.columns[solve.parent].tolist()
            depth = [0] * n
            for i in range(n):
                depth[i] = depth[parent[i]] + 1 if parent[i] >= 0 else 0
            pairs, triples = sum(depth), sum(d * (d + 1) // 2 for d in depth)
            return {"mul": triples + k * (2 * pairs + n), "sub": triples + 2 * k * pairs, "div": pairs + n}
        if solve.method == "cholesky":
            triples = n * (n * n - 1) // 6
            return {"mul": triples + k * n * (n + 1), "sub": triples + k * n * (n - 1), "div": n, "sqrt": n}
        if solve.method == "lu":
            triples = n * (n - 1) * (2 * n - 1) // 6
            return {"mul": triples + k * n * n, "sub": triples + k * n * (n - 1), "div": n * (n - 1) // 2 + n}
        products = m * m * n
        return {"mul": 2 * products + 2 * k * m * n, "add": 2 * products + 2 * k * m * n, "div": 2 * m, "sqrt": m}


def _added(case: Case) -> int:
    return sum(o.size for o in case.outputs if o.add)


def _total(parts: Iterable[tuple[dict[str, int], int]]) -> dict[str, int]:
    """The sum of counts, each so many times; what is 0 is left out."""
    total: dict[str, int] = {}
    for counts, times in parts:
        for name, number in counts.items():
            if number * times:
                total[name] = total.get(name, 0) + number * times
    return total


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=_Sized)


def parts(places: Iterable[S], values: Any) -> Iterator[tuple[S, Any]]:
    """Operands or buffers, each with its own of the values, which stand one after another."""
    at = 0
    for place in places:
        yield place, values[at : at + place.size]
        at += place.size


def nested(statements: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those inside loops included."""
    for statement in statements:
        yield statement
        yield from nested(statement.body)


def written(statements: Iterable[Statement]) -> set[int]:
    """The buffers that the statements, and those inside them, write to."""
    return {o.buffer for statement in nested(statements) for o in statement.writes()}
