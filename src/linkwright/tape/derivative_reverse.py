"""Reverse accumulation of programs: run forward, then every statement's adjoint in the reverse order.

What a statement reads, its adjoint adds to; what it writes or adds to, its adjoint reads; a scan outward becomes a
scan inward. A block's intermediate values are computed again in its adjoint; buffers are found as the program left
them, which `linkwright.tape.program_checks` checks to be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from linkwright.base.arrays import Longs
from linkwright.errors import RecordingError
from linkwright.tape.block import undisturbed
from linkwright.tape.build import ProgramBuilder, Wiring
from linkwright.tape.dataflow import Kind, items_of, moments, starts, useful, varied
from linkwright.tape.derivative_blocks import Directions, add_numbers, fixed, pull_back, reverse_solve
from linkwright.tape.program import Program, Role
from linkwright.tape.program_checks import Ledger
from linkwright.tape.runner import is_straight, straightened
from linkwright.tape.statements import (
    ITEM,
    Case,
    Copy,
    Each,
    Loop,
    Operand,
    Order,
    Solve,
    Statement,
    Walk,
    Zero,
    nested,
    parts,
)


def without_walks(program: Program) -> Program:
    """The same program with each top-level `Walk` as an `Each` over its (item, ancestor) pairs.

    Memory grows with the number of pairs times the carry: reverse accumulation needs the carries anyway.
    """
    if not any(isinstance(s, Walk) for s in program.statements):
        return program
    builder = ProgramBuilder.onto(program, program.name)
    for statement in program.statements:
        builder.add(_expanded(program, builder, statement) if isinstance(statement, Walk) else statement)
    return builder.build(single=program.single)


def _expanded(program: Program, builder: ProgramBuilder, walk: Walk) -> Statement:
    kinds, count = program.kinds(walk), len(walk.start)
    items, ancestors, cases = [], [], []
    for i, above in program.walks(walk):
        items.extend([i] * (1 + len(above)))
        ancestors.extend([0, *above])
        cases.append(kinds[i])
        cases.extend(count + kinds[i] * count + kinds[j] for j in above)
    item, ancestor = np.array(items, dtype=np.int32), np.array(ancestors, dtype=np.int32)
    size = walk.carry_size
    carries = builder.temporary(builder.free_name("carry"), (len(items), size)).operand

    def moved(operand: Operand, before: int) -> Operand:
        if operand.buffer < 0:
            return replace(carries, size=operand.size, base=-before * size, steps=((size, ITEM),))
        near = ((stride, _through(program, builder, c, item)) for stride, c in operand.steps)
        far = ((stride, _through(program, builder, c, ancestor)) for stride, c in operand.far)
        return replace(operand, steps=(*near, *far), far=())

    def case(c: Case) -> Case:
        return replace(c, inputs=tuple(moved(o, 1) for o in c.inputs), outputs=tuple(moved(o, 0) for o in c.outputs))

    return Each(len(items), tuple(map(case, walk.cases)), "outward", builder.column(cases))


def _through(program: Program, builder: ProgramBuilder, column: int, items: np.ndarray) -> int:
    """The column's entries at the items, as a column."""
    return builder.column(items if column == ITEM else program.columns[column][items])


_BACKWARD: dict[Order, Order] = {"outward": "inward", "inward": "outward", "map": "outward"}


def reverse_program(program: Program, wrt: Iterable[int], outputs: Iterable[int], *, gradient: bool = False) -> Program:
    """(inputs, adjoints of the output buffers `outputs`) → (outputs, adjoints of the input buffers `wrt`).

    With `gradient`, the adjoints of the outputs are 1 and not asked for, and the outputs themselves are left out.
    """
    with undisturbed():
        if is_straight(program):
            return _straight(program, tuple(wrt), tuple(outputs), gradient)
        return _Reverse(without_walks(program), tuple(wrt), tuple(outputs), gradient).build()


def _straight(program: Program, wrt: tuple[int, ...], outputs: tuple[int, ...], gradient: bool) -> Program:
    """One block for all: what it computes going forward is there when it goes back."""
    block = straightened(program)
    assert block is not None
    builder = ProgramBuilder(f"{program.name}_{'gradient' if gradient else 'reverse'}")
    wiring = Wiring()
    buffers = program.buffers
    whole = {k: builder.input(buffers[k].name, buffers[k].shape).operand for k in program.with_role("input")}
    values = [x for operand in whole.values() for x in wiring.read(operand)]
    nodes = block.replay(wiring.recorder, values)
    seeds: list[Directions] = []
    results = parts(program.outputs, [nodes[k] for k in block.outputs.tolist()])
    for k, (buffer, values) in zip(program.with_role("output"), results, strict=True):
        if not gradient:
            wiring.write(builder.output(buffer.name, buffer.shape).operand, values)
        if k not in outputs:
            seeds.extend({} for _ in values)
        elif gradient:
            seeds.extend({0: wiring.recorder.constant(1.0)} for _ in values)
        else:
            bar = builder.input(builder.free_name(f"bar_{buffer.name}"), buffer.shape).operand
            seeds.extend({0: x} for x in wiring.read(bar))
    pulled = pull_back(block, nodes, seeds, [k in wrt for k, o in whole.items() for _ in range(o.size)])
    bars = parts(whole.values(), [d.get(0, wiring.recorder.zero) for d in pulled])
    for k, (_, slopes) in zip(whole, bars, strict=True):
        if k in wrt:
            name, shape = builder.free_name(f"bar_{buffers[k].name}"), buffers[k].shape
            wiring.write(builder.output(name, shape).operand, slopes)
    builder.add(Each(1, (wiring.case(builder),)))
    return builder.build(single=gradient)


class _Reverse:
    def __init__(self, program: Program, wrt: tuple[int, ...], outputs: tuple[int, ...], gradient: bool) -> None:
        self.program = program
        self.active = varied(program, wrt).both(useful(program, outputs))
        self.ledger = Ledger(program, self.active)
        self.builder = ProgramBuilder.onto(program, f"{program.name}_{'gradient' if gradient else 'reverse'}")
        self.builder.statements = list(program.statements)
        self.bars: dict[int, int] = {}  # buffer → the buffer of its adjoints
        self._seeds(outputs, gradient)
        for k in wrt:
            self._bar(k, "output")
        for k, marks in enumerate(self.active.marks):
            if k not in self.bars and marks.any():
                self._bar(k, "temporary")
        if gradient:
            self.builder.hide_outputs(program)
        self.gradient = gradient
        self.time = 0  # of the statement under way

    def _bar(self, buffer: int, role: Role) -> Operand:
        """A new cleared buffer for a buffer's adjoints."""
        of = self.program.buffers[buffer]
        bar = self.builder.buffer(self.builder.free_name(f"bar_{of.name}"), role, of.shape).operand
        self.bars[buffer] = bar.buffer
        self.builder.add(Zero(bar))
        return bar

    def _seeds(self, outputs: tuple[int, ...], gradient: bool) -> None:
        read = {o.buffer for s in nested(self.program.statements) for o in s.reads()}
        for k in outputs:
            of, free_name = self.program.buffers[k], self.builder.free_name
            if gradient:
                seed = self.builder.data(free_name(f"bar_{of.name}"), np.ones(of.shape)).operand
            else:
                seed = self.builder.input(free_name(f"bar_{of.name}"), of.shape).operand
            self.bars[k] = seed.buffer
            if k in read:
                # The adjoint grows where the program reads its own output: a copy, not the caller's array.
                copy = self.builder.temporary(free_name(f"sum_{of.name}"), of.shape).operand
                self.builder.add(Copy(seed, copy))
                self.bars[k] = copy.buffer

    def build(self) -> Program:
        self.time = sum(map(_duration, self.program.statements))
        for statement in reversed(self.program.statements):
            self.time -= _duration(statement)
            statement.accept(self)
        self.ledger.check()
        return self.builder.build(single=self.gradient)

    def bar(self, operand: Operand, *, add: bool = False) -> Operand:
        """The adjoints of an operand's numbers."""
        return replace(operand, buffer=self.bars[operand.buffer], add=add)

    # -- statements ----------------------------------------------------------------------------------------
    def zero(self, zero: Zero) -> None:
        self.enter("clear", zero.target)

    def copy(self, copy: Copy) -> None:
        self.enter("set", copy.target)
        if self.active.any(copy.target):
            self.enter("read", copy.source)
            source, target = (fixed(self.program, o) for o in (copy.source, copy.target))
            if source.buffer in self.bars:
                add_numbers(self.builder, self.bar(target), self.bar(source))

    def enter(self, kind: Kind, operand: Operand, later: int = 0) -> None:
        """Note an access of a statement without items."""
        self.ledger.enter(kind, operand, np.zeros(1, dtype=np.int64), np.array([self.time + later]))

    def loop(self, loop: Loop | Walk) -> None:
        """Fine as long as no adjoint comes by."""
        targets = [o for statement in nested([loop]) for o in statement.writes()]
        if any(self.active.any(o) for o in targets):
            raise RecordingError(
                f"program {self.program.name}: a loop has no reverse accumulation, because its earlier states are "
                "gone; use .forward(), or differentiate the equation that the loop solves (A dx = −∂r dp, a Solve)"
            )
        for operand in targets:
            whole = Operand(operand.buffer, self.program.buffers[operand.buffer].size)
            self.enter("clear", whole if operand.steps or operand.far else operand)

    def walk(self, walk: Walk) -> None:
        self.loop(walk)

    def solve(self, solve: Solve) -> None:
        self.enter("set", solve.solution)
        if not self.active.any(solve.solution):
            return
        matrix, rhs, solution = (fixed(self.program, o) for o in (solve.matrix, solve.rhs, solve.solution))
        for operand in (matrix, solution):
            # The solution is set at this very moment, and seen a little later.
            self.enter("look", operand, later=int(operand is solution))
        self.enter("read", rhs)
        bar_matrix, bar_rhs = (self.bar(o) if self.active.any(o) else None for o in (matrix, rhs))
        reverse_solve(self.builder, self.program, solve, bar_matrix, bar_rhs, self.bar(solution))

    def each(self, each: Each) -> None:
        """The adjoint of a scan: cases whose operands overlap in some items are split by how they do."""
        moment = moments(each, self.time)
        adjoints: list[_Adjoint] = []
        for case, items in zip(each.cases, items_of(self.program, each), strict=True):
            for operand in case.outputs:
                self.ledger.enter("add" if operand.add else "set", operand, items, moment[items])
            if len(items) and any(self.active.any(o) for o in case.outputs):
                adjoints.extend(self.case(case, items, moment))
        if not any(a.case.outputs for a in adjoints):
            return
        idle = sum(len(a.items) for a in adjoints) < each.items
        if idle:
            nothing = Wiring().case(self.builder)
            adjoints.append(_Adjoint(nothing, np.zeros(0, dtype=np.int64)))
        dispatch = np.full(each.items, len(adjoints) - 1, dtype=np.int32)
        for k, adjoint in enumerate(adjoints):
            dispatch[adjoint.items] = k
        column = self.builder.column(dispatch) if len(adjoints) > 1 else None
        order = _BACKWARD[each.order]
        if each.order == "map" and self._apart(adjoints):
            order = "map"
        self.builder.add(Each(each.items, tuple(a.case for a in adjoints), order, column))

    def _apart(self, adjoints: list[_Adjoint]) -> bool:
        """Whether no two items add to the same number."""
        spans: dict[int, list[np.ndarray]] = {}
        for adjoint in adjoints:
            for operand in adjoint.case.outputs:
                first = starts(self.builder.columns, operand, adjoint.items)
                spans.setdefault(operand.buffer, []).append(np.stack([first, first + operand.size]))
        for ends in spans.values():
            first, end = np.concatenate(ends, axis=1)
            order = np.argsort(first, kind="stable")
            if np.any(first[order][1:] < end[order][:-1]):
                return False
        return True

    def case(self, case: Case, items: Longs, moment: Longs) -> list[_Adjoint]:
        adjoints = []
        for clusters, members in self._overlaps(case, items):
            adjoint, looks = self._case(case, clusters)
            adjoints.append(_Adjoint(adjoint, members))
            for k, operand in enumerate(case.inputs):
                if operand in looks:
                    self.ledger.enter("look", operand, members, moment[members])
                elif any(k in c.places for c in clusters):
                    self.ledger.enter("read", operand, members, moment[members])
        return adjoints

    def _overlaps(self, case: Case, items: Longs) -> list[tuple[list[_Cluster], Longs]]:
        """The inputs that have adjoints, those that overlap put together, for each way of overlapping.

        Two operands of a block may not add to the same number: which of them came last would win.
        """
        chosen = [k for k, o in enumerate(case.inputs) if o.buffer in self.bars and self.active.any(o)]
        first = {k: starts(self.program.columns, case.inputs[k], items) for k in chosen}
        pairs = [(k, m) for k in chosen for m in chosen if k < m and case.inputs[k].buffer == case.inputs[m].buffer]
        apart = np.iinfo(np.int64).max
        shifts = np.full((len(items), len(pairs)), apart)
        for column, (k, m) in enumerate(pairs):
            shift = first[m] - first[k]
            near = (shift < case.inputs[k].size) & (-shift < case.inputs[m].size)
            shifts[near, column] = shift[near]
        if np.all(shifts == apart):
            return [([_Cluster(k, {k: 0}) for k in chosen], items)]
        ways, way_of = np.unique(shifts, axis=0, return_inverse=True)
        way_of = way_of.reshape(-1)
        groups = []
        for number, way in enumerate(ways):
            place: dict[int, tuple[int, int]] = {k: (k, 0) for k in chosen}  # operand → (cluster, shift in it)
            for (k, m), shift in zip(pairs, way.tolist(), strict=True):
                if shift != apart and place[k][0] != place[m][0]:
                    into, moved = place[k][0], place[k][1] + shift - place[m][1]
                    old = place[m][0]
                    place.update({x: (into, s + moved) for x, (c, s) in place.items() if c == old})
            clusters = []
            for head in {c for c, _ in place.values()}:
                members = {x: s for x, (c, s) in place.items() if c == head}
                lead = min(members, key=lambda x: members[x])
                clusters.append(_Cluster(lead, {x: s - members[lead] for x, s in members.items()}))
            clusters.sort(key=lambda c: c.lead)
            groups.append((clusters, items[way_of == number]))
        return groups

    def _case(self, case: Case, clusters: list[_Cluster]) -> tuple[Case, tuple[Operand, ...]]:
        """The block's adjoint: values and adjoints of outputs in, adjoints of inputs added; what it looks at."""
        wiring = Wiring()
        zero = wiring.recorder.zero
        block = self.program.blocks[case.block]
        values = [x for operand in case.inputs for x in wiring.read(operand)]
        seeds: list[Directions] = []
        for operand in case.outputs:
            if operand.buffer in self.bars and self.active.any(operand):
                marked = self.active.of(operand).tolist()
                bars = wiring.read(self.bar(operand))
                seeds.extend({0: b} if m else {} for b, m in zip(bars, marked, strict=True))
            else:
                seeds.extend({} for _ in range(operand.size))
        nodes = block.replay(wiring.recorder, values)
        # What may get an adjoint: the marked numbers of the inputs that have a buffer for it.
        chosen = {k for c in clusters for k in c.places}
        wanted: list[bool] = []
        at: list[int] = []
        for k, operand in enumerate(case.inputs):
            at.append(len(wanted))
            wanted.extend(self.active.of(operand).tolist() if k in chosen else [False] * operand.size)
        pulled = pull_back(block, nodes, seeds, wanted)
        for cluster in clusters:
            size = max(shift + case.inputs[k].size for k, shift in cluster.places.items())
            total = [zero] * size
            for k, shift in cluster.places.items():
                for n in range(case.inputs[k].size):
                    total[shift + n] = total[shift + n] + pulled[at[k] + n].get(0, zero)
            wiring.write(self.bar(replace(case.inputs[cluster.lead], size=size), add=True), total)
        adjoint = wiring.case(self.builder)
        return adjoint, tuple(o for o in adjoint.inputs if o in case.inputs)


def _duration(statement: Statement) -> int:
    """Moments that a statement takes: one per item."""
    return statement.items if isinstance(statement, Each) else 1


@dataclass(frozen=True)
class _Cluster:
    """Inputs of a case that overlap: the operand that begins first, and where the others begin after it."""

    lead: int
    places: dict[int, int]


@dataclass(frozen=True)
class _Adjoint:
    case: Case
    items: Longs
