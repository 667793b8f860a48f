"""Sheets: run the steps of a recursion over rows of tables, in levels of items that are independent of each other.

A step is a pure function step(link, place=row, ...) → {place: {field: value}}: it reads fields of the rows at its
places and gives new ones. An `Operation` says for which rows a step runs; a stage is a set of operations that may
need each other's results. Unrolled, every step is called once an item; rolled, it is recorded once a kind of joint
and a stage becomes one scan in runs, whose items a back-end may compute side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwright.dynamics.traversals.buffers import (
    FRAME,
    FRAME_SIZE,
    Lazy,
    LinkData,
    Recording,
    recorded_link,
    signatures,
)
from linkwright.dynamics.traversals.traversal import Link, Shape, SingularLink, Unrolled
from linkwright.model.joint_kinds import FIXED
from linkwright.model.tree import RECORD, RECORD_SIZE, Tree, record_slices
from linkwright.spatial.algebra import Array
from linkwright.tape.block import Block, finish
from linkwright.tape.build import ProgramBuilder, Ref
from linkwright.tape.program import Each
from linkwright.tape.scalar import Scalar

Ints = NDArray[np.int32]
Step = Callable[..., dict[str, dict[str, Array]]]
Rows = tuple[str, Ints]  # a table (or the name of what is made), and one of its rows for every item
_INPUTS = ("q", "v", "tau")


@dataclass(frozen=True, eq=False)
class Operation:
    """A step for every item: the link whose joint it sees, the link of which it sees the body alone, its places.

    `makes` names what an item gives to others and where it stands, `needs` what it takes: they order the items.
    """

    step: Step
    link: Ints | None
    places: Mapping[str, Rows]
    makes: Rows | None = None
    needs: Sequence[Rows] = ()
    body: Ints | None = None

    @property
    def items(self) -> int:
        return len(next(iter(self.places.values()))[1])


class Sheet(Protocol):
    """What a recursion in levels asks of the way its steps are run."""

    def table(self, name: str, rows: int) -> None:
        """A new table."""

    def set(self, table: str, row: int, fields: Mapping[str, Array]) -> None:
        """Give a row constant numbers; their shapes are those of the field in every row."""

    def stage(self, *operations: Operation) -> None:
        """Run the operations."""

    def joint_vector(self, name: str) -> Any:
        """The links' numbers `name`, one per rate of each joint, as one vector."""


def levels(operations: Sequence[Operation]) -> list[Ints]:
    """For every operation the level of each item: one more than the highest that it needs."""
    sizes = [o.items for o in operations]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    producers: dict[str, Any] = {}
    for name in {o.makes[0] for o in operations if o.makes is not None}:
        rows, items = [], []
        for o, start in zip(operations, starts[:-1], strict=True):
            if o.makes is not None and o.makes[0] == name:
                rows.append(o.makes[1])
                items.append(start + np.arange(o.items))
        row = np.concatenate(rows)
        producer = np.full(int(row.max(initial=-1)) + 1, -1)
        producer[row] = np.concatenate(items)
        producers[name] = producer
    befores, afters = [], []
    for o, start in zip(operations, starts[:-1], strict=True):
        for name, needed in o.needs:
            if name not in producers or not o.items:
                continue
            producer = producers[name]
            known = needed < len(producer)
            item = np.where(known, producer[np.where(known, needed, 0)] if len(producer) else -1, -1)
            some = item >= 0
            befores.append(item[some])
            afters.append((start + np.arange(o.items))[some])
    total = int(starts[-1])
    level = np.zeros(total, np.int32)
    if befores:
        before, after = np.concatenate(befores), np.concatenate(afters)
        waits = np.bincount(after, minlength=total)
        order = np.argsort(before, kind="stable")
        following, first = after[order], np.searchsorted(before[order], np.arange(total + 1))
        ready, now = np.flatnonzero(waits == 0), 0
        while len(ready):
            level[ready] = now
            counts = first[ready + 1] - first[ready]
            offsets = np.repeat(first[ready] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            touched = following[offsets + np.arange(int(counts.sum()))]
            np.subtract.at(waits, touched, 1)
            ready = np.unique(touched[waits[touched] == 0])
            now += 1
    return [level[a:b] for a, b in pairwise(starts)]


class UnrolledSheet:
    """Every step called once an item; plain arithmetic on floats or recorded scalars."""

    def __init__(self, traversal: Unrolled) -> None:
        self.traversal = traversal  # whose links the steps see
        self.rows: dict[str, list[dict[str, Array]]] = {}

    def table(self, name: str, rows: int) -> None:
        self.rows[name] = [{} for _ in range(rows)]

    def set(self, table: str, row: int, fields: Mapping[str, Array]) -> None:
        self.rows[table][row].update(fields)

    def stage(self, *operations: Operation) -> None:
        todo = [
            (int(level), number, k)
            for number, each in enumerate(levels(operations))
            for k, level in enumerate(each.tolist())
        ]
        for _, number, k in sorted(todo):
            o = operations[number]
            places = {name: self.rows[table][int(rows[k])] for name, (table, rows) in o.places.items()}
            seen = [int(which[k]) for which in (o.link, o.body) if which is not None]
            try:
                results = o.step(*(self.traversal.links[i] for i in seen), **places)
            except ZeroDivisionError:
                raise SingularLink(seen[0]) from None
            for name, fields in results.items():
                places[name].update(fields)
                if o.link is not None:
                    self.traversal.rows[seen[0]].update(fields)

    def joint_vector(self, name: str) -> Array:
        return self.traversal.joint_vector(name)


@dataclass(eq=False)
class _Recorded:
    """One operation's step for one signature of links, and the items that run it."""

    operation: Operation
    items: Any
    recording: Recording
    signature: int | None


class RolledSheet:
    """Steps recorded once a kind of joint; `finish` leaves one scan in runs a stage."""

    def __init__(self, tree: Tree, builder: ProgramBuilder, inputs: Mapping[str, Ref]) -> None:
        self.tree, self.builder, self.inputs = tree, builder, inputs
        self.signatures, self.signature_of = signatures(tree)
        self.sizes: dict[str, int] = {}
        self.shapes: dict[tuple[str, str, int | None], Shape] = {}  # by table, field and signature
        self.constants: list[tuple[str, int, str, Array]] = []
        self.stages: list[tuple[Sequence[Operation], list[_Recorded]]] = []
        self.vectors: dict[str, Ref] = {}

    def table(self, name: str, rows: int) -> None:
        self.sizes[name] = rows

    def set(self, table: str, row: int, fields: Mapping[str, Array]) -> None:
        for name, value in fields.items():
            self.shapes[table, name, None] = np.shape(value)
            self.constants.append((table, row, name, np.asarray(value, dtype=np.float64)))

    def joint_vector(self, name: str) -> Any:
        self.vectors[name] = self.builder.temporary(name, (self.tree.coordinates.nv,))
        return self.vectors[name]

    # -- recording ------------------------------------------------------------------------------------
    def _body(self, recording: Recording) -> Link:
        """A link whose joint does not matter: one code for all, with what they all have in common."""
        rows, slices = self.tree.records[0], record_slices()

        def number_of(name: str) -> Any:
            if name in FRAME:
                return recording.fresh("body frame", name, FRAME[name])
            part = rows[:, slices[name]]
            return part[0] if np.all(part == part[0]) else recording.fresh("body record", name, RECORD[name])

        wrench = Lazy({"wrench": None}, lambda name: recording.fresh("body wrench", name, (6,)))
        return Link(FIXED, Lazy({**RECORD, **FRAME}, number_of), wrench.__getitem__, parent_is_ground=False)

    def _shape(self, table: str, name: str, signature: int | None) -> Shape:
        shape = self.shapes.get((table, name, signature))
        if shape is None:
            shape = next(s for (t, n, _), s in self.shapes.items() if (t, n) == (table, name))
        return shape

    def _state(self, recording: Recording, place: str, table: str, signature: int | None) -> Lazy:
        names = {name for t, name, _ in self.shapes if t == table}

        def make(name: str) -> Any:
            return recording.fresh(place, name, self._shape(table, name, signature))

        return Lazy(dict.fromkeys(names), make)

    def stage(self, *operations: Operation) -> None:
        recorded = []
        for o in operations:
            if not o.items:
                continue
            if o.link is None:
                groups: list[tuple[int | None, Any]] = [(None, np.arange(o.items))]
            else:
                signature = self.signature_of[o.link]
                groups = [(int(s), np.flatnonzero(signature == s)) for s in np.unique(signature)]
            for number, items in groups:
                recording = Recording()
                states = {place: self._state(recording, place, table, number) for place, (table, _) in o.places.items()}
                seen = [] if number is None else [recorded_link(self.signatures[number], recording)]
                if o.body is not None:
                    seen.append(self._body(recording))
                for place, fields in o.step(*seen, **states).items():
                    for name, value in fields.items():
                        self.shapes[o.places[place][0], name, number] = np.shape(value)
                        recording.leave(place, name, value)
                recorded.append(_Recorded(o, items, recording, number))
        if recorded:
            self.stages.append((operations, recorded))

    # -- placing ----------------------------------------------------------------------------------------
    def finish(self, result: Ref, name: str) -> None:
        """Lay out the tables, add the statements to the builder, and make the result the output of this name."""
        builder = self.builder
        builder.make_output(result, name)
        read = {
            (r.operation.places[place][0], name)
            for _, recorded in self.stages
            for r in recorded
            for place, name, _ in r.recording.inputs
            if place in r.operation.places
        }
        self.layout: dict[str, dict[str, int]] = {}
        self.refs: dict[str, Ref] = {}
        self.strides: dict[str, int] = {}
        self.link_data = LinkData(self.tree, builder)
        for table, rows in self.sizes.items():
            sizes: dict[str, int] = {}
            for (t, name, _), shape in self.shapes.items():
                if t == table and (t, name) in read:
                    sizes[name] = max(sizes.get(name, 0), int(np.prod(shape, dtype=np.int64)))
            places = np.concatenate([[0], np.cumsum(list(sizes.values()))]).astype(int).tolist()
            self.layout[table] = dict(zip(sizes, places, strict=False))
            self.strides[table] = max(places[-1], 1)
            self.refs[table] = builder.temporary(table, (rows, self.strides[table]))
        for table, row, name, value in self.constants:
            if name in self.layout[table]:
                target = self._field(table, name, value.shape, builder.column([row]))
                builder.call(lambda value=value: value, (), (target,))
        for operations, recorded in self.stages:
            self._place(operations, recorded)

    def _place(self, operations: Sequence[Operation], recorded: list[_Recorded]) -> None:
        """One stage laid out: items sorted by level and case, and the columns that lead to their rows."""
        builder = self.builder
        level_of = dict(zip(map(id, operations), levels(operations), strict=True))
        # Equal blocks with equal operands are one case.
        cases: dict[Any, int] = {}
        blocks: list[tuple[Block, list[Any], list[Any]]] = []
        numbers = []
        for r in recorded:
            block, outputs = self._block(r)
            inputs = [(self._where(r, i[0]), *i) for i in r.recording.inputs]
            key = block.digest, tuple(inputs), tuple(outputs)
            if key not in cases:
                cases[key] = len(blocks)
                blocks.append((block, inputs, outputs))
            numbers.append(cases[key])
        level = np.concatenate([level_of[id(r.operation)][r.items] for r in recorded])
        case = np.concatenate([np.full(len(r.items), k) for r, k in zip(recorded, numbers, strict=True)])
        order = np.lexsort((case, level))
        level, case = level[order], case[order]
        changes = np.flatnonzero((np.diff(level) != 0) | (np.diff(case) != 0)) + 1
        runs = builder.column(np.concatenate([[0], changes, [len(order)]]))
        columns: dict[str, int] = {}

        def column(where: str) -> int:
            if where not in columns:
                parts = [self._rows(r, where) for r in recorded]
                columns[where] = builder.column(np.concatenate(parts)[order])
            return columns[where]

        placed = []
        for block, inputs, outputs in blocks:
            sources = [self._operand(column, *i) for i in inputs]
            targets = [self._operand(column, *o) for o in outputs]
            placed.append(builder.case(block, sources, targets))
        dispatch = builder.column(case) if len(placed) > 1 else None
        builder.add(Each(len(order), tuple(placed), "outward", dispatch, runs))

    def _block(self, r: _Recorded) -> tuple[Block, list[Any]]:
        outputs: list[Any] = []
        nodes: list[Scalar] = []
        for place, name, values in r.recording.outputs:
            table = r.operation.places[place][0]
            if name in self.vectors and values:
                outputs.append(("vector", place, name, len(values)))
                nodes.extend(values)
            if name in self.layout[table] and values:
                outputs.append((table, place, name, len(values)))
                nodes.extend(values)
        return finish(r.recording.recorder, r.recording.count, nodes), outputs

    def _where(self, r: _Recorded, where: str) -> str:
        return r.operation.places[where][0] if where in r.operation.places else where

    def _rows(self, r: _Recorded, where: str) -> Any:
        """The rows of a place, or what the link's inputs are found by; 0 for items that do not have it."""
        o, x = r.operation, self.tree.coordinates
        if where in o.places:
            return o.places[where][1][r.items]
        seen = o.body if where.startswith(".body") else o.link
        if seen is None or not where.startswith("."):
            return np.zeros(len(r.items), np.int32)
        link, which = seen[r.items], self.tree.records[1]
        if where.endswith("record"):
            return link if which is None else which[link]
        return x.q_at[link] if where == ".q" else x.v_at[link] if where == ".v" else link

    def _field(self, table: str, name: str, shape: Shape, column: int) -> Ref:
        return self.refs[table].part(self.layout[table][name], shape).at((self.strides[table], column))

    def _operand(self, column: Callable[[str], int], table: str, place: str, name: str, size: int) -> Ref:
        if table in self.layout:
            return self._field(table, name, (size,), column(place))
        if table == "vector":
            return self.vectors[name].part(0, (size,)).at((1, column(".v")))
        of, _, what = table.rpartition(" ")
        if what == "record":
            return self.link_data.record(name, size).at((RECORD_SIZE, column(f".{of}record")))
        if what == "frame":
            return self.link_data.frame(name, size).at((FRAME_SIZE, column(f".{of or 'link'}")))
        source = self.inputs[what]
        if what == "wrench":
            return source.part(0, (6,)).at((6, column(f".{of or 'link'}")))
        return source.part(0, (size,)).at((1, column(".q" if table == "q" else ".v")))
