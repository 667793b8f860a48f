"""Steps rolled into loops over bodies: code size and compile time do not depend on the number of links.

A step is recorded once a signature (joint kind, and which of the link's numbers are trivial); the links run it
through a dispatch column; no joint follows another here. What the links keep stands where `layout` says, entry 0 of
each buffer is ground's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.dynamics.traversals.buffers import (
    FRAME_SIZE,
    Field,
    Kept,
    Layout,
    Lazy,
    LinkData,
    Recording,
    layout,
    recorded_link,
    signatures,
)
from linkwright.dynamics.traversals.traversal import (
    Finish,
    InwardStep,
    Link,
    OutwardStep,
    PairStep,
    Shape,
    WalkStart,
    WalkStep,
)
from linkwright.model.tree import RECORD_SIZE, Tree
from linkwright.spatial.algebra import Array
from linkwright.tape.block import finish
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Case, Each, Operand, Order, Solve, Statement, Walk, WalkOrder, Zero
from linkwright.tape.scalar import Scalar


@dataclass
class _Pass:
    order: Order
    recordings: list[Recording]
    below: Mapping[str, Shape] = field(default_factory=dict)


@dataclass
class _Walk:
    order: WalkOrder
    starts: list[Recording]
    steps: list[Recording]  # one per pair of signatures; pairs that walk alike share theirs


class Rolled:
    """A traversal that leaves statements over links; `finish` places the rows and adds the statements.

    A result is a temporary buffer; the one that `finish` is given becomes the program's output.
    """

    def __init__(
        self,
        tree: Tree,
        builder: ProgramBuilder,
        inputs: Mapping[str, Ref],
        still: Sequence[str] = (),
        *,
        packed: bool = False,
    ) -> None:
        """`still` names the inputs that are zero; `packed` makes a program of less memory and without derivatives."""
        self.tree, self.builder, self.inputs, self.still, self.packed = tree, builder, inputs, still, packed
        self.coordinates = tree.coordinates
        self.signatures, self.signature_of = signatures(tree)
        self.shapes: dict[tuple[int, str], Shape] = {}  # (signature, field) → shape
        self.sizes: dict[tuple[int, str], int] = {}  # the most numbers that a field ever has
        self.ground: dict[str, Array] = {}
        self.plan: list[_Pass | _Walk | Statement] = []
        self.vectors: dict[str, tuple[Ref, bool]] = {}  # field → buffer, and whether one per coordinate
        self.values: list[tuple[int, tuple[str, ...], Finish, Ref, list[Shape]]] = []

    # -- recording ------------------------------------------------------------------------------------
    def _link(self, number: int, recording: Recording, suffix: str = "") -> Link:
        return recorded_link(self.signatures[number], recording, suffix, self.still)

    def _state(self, number: int, recording: Recording, where: str = "here") -> Lazy:
        shapes = {name: shape for (k, name), shape in self.shapes.items() if k == number}
        return Lazy(shapes, lambda name: recording.fresh(where, name, shapes[name]))

    def _up(self, recording: Recording, produced: Mapping[str, Shape]) -> Lazy:
        shapes = {**{n: np.shape(v) for n, v in self.ground.items()}, **produced}
        return Lazy(shapes, lambda name: recording.fresh("up", name, shapes[name]))

    def _sums(self, recording: Recording, below: Mapping[str, Shape]) -> Lazy:
        return Lazy(below, lambda name: recording.fresh("here", f"below.{name}", below[name]))

    def _keep(self, number: int, name: str, shape: Shape) -> None:
        self.shapes[number, name] = shape
        self.sizes[number, name] = max(self.sizes.get((number, name), 0), int(np.prod(shape, dtype=np.int64)))

    def outward(self, step: OutwardStep, ground: Mapping[str, Array]) -> None:
        self.ground.update(ground)
        recordings, produced = [], []
        known = {name: shape for (_, name), shape in self.shapes.items()}
        for number in range(len(self.signatures)):
            recording = Recording(number)
            link, state = self._link(number, recording), self._state(number, recording)
            results = step(link, state, self._up(recording, known))
            for name, value in results.items():
                recording.leave("here", name, value)
            produced.append({name: np.shape(value) for name, value in results.items()})
            recordings.append(recording)
        for number, shapes in enumerate(produced):
            for name, shape in shapes.items():
                self._keep(number, name, shape)
        self.plan.append(_Pass("outward", recordings))

    def inward(self, step: InwardStep, below: Mapping[str, Shape]) -> None:
        recordings = []
        for number in range(len(self.signatures)):
            recording = Recording(number)
            sums = self._sums(recording, below)
            results, up = step(self._link(number, recording), self._state(number, recording), sums)
            for name, value in results.items():
                recording.leave("here", name, value)
                self._keep(number, name, np.shape(value))
            for name, value in up.items():
                recording.leave("add", f"below.{name}", value)
            recordings.append(recording)
            for name, shape in below.items():
                self._keep(number, f"below.{name}", shape)
        self.plan.append(_Pass("inward", recordings, {f"below.{name}": shape for name, shape in below.items()}))

    def joint_vector(self, name: str, *, coordinates: bool = False, rates: bool = False) -> Any:
        x = self.coordinates
        self.vectors[name] = (self.builder.temporary(name, (x.nq if coordinates else x.nv,)), coordinates)
        return self.vectors[name][0]

    def total(self, name: str, then: Finish) -> Any:
        below = f"below.{name}"
        self.ground[below] = np.zeros(next(s for (_, known), s in self.shapes.items() if known == below))
        return self.at(-1, (below,), then)

    def at(self, position: int, names: Sequence[str], then: Finish) -> Any:
        shapes = [next(s for (_, known), s in self.shapes.items() if known == name) for name in names]
        _, out_shapes, _ = trace(then, shapes)
        output = self.builder.temporary("value", out_shapes[0])
        self.values.append((position, tuple(names), then, output, shapes))
        return output

    def walk(self, start: WalkStart, step: WalkStep, *, lower: bool = False) -> Any:
        matrix = self.builder.temporary("matrix", (self.coordinates.nv, self.coordinates.nv))
        numbers = range(len(self.signatures))
        starts, steps = [], []
        known: dict[Shape, list[Recording]] = {}  # a step depends on where the walk began by the carry's shape alone
        for number in numbers:
            recording = Recording(number)
            block, carry = start(self._link(number, recording), self._state(number, recording))
            for k, row in enumerate(block):
                recording.leave("diagonal", (matrix, k), row)
            recording.leave("carry", None, carry)
            starts.append(recording)
            shape = np.shape(carry)
            if shape not in known:
                known[shape] = [self._walk_step(step, other, shape, matrix, lower=lower) for other in numbers]
            steps.extend(known[shape])
        self.plan += [Zero(matrix.operand), _Walk("outward", starts, steps)]
        return matrix

    def _walk_step(self, step: WalkStep, number: int, shape: Shape, matrix: Ref, *, lower: bool) -> Recording:
        recording = Recording(far=number)
        carry = recording.fresh("carry", None, shape)
        block, carry = step(self._link(number, recording, "far"), self._state(number, recording, "far"), carry)
        for k, row in enumerate(block):
            recording.leave("entry", (matrix, k), row)
        for k, column in enumerate(() if lower else np.transpose(block)):
            recording.leave("mirror", (matrix, k), column)
        recording.leave("carry", None, carry)
        return recording

    def pairs(self, order: WalkOrder, matrix: Any, step: PairStep) -> None:
        starts, steps = [], []
        for number, signature in enumerate(self.signatures):
            starts.append(Recording(number))
            starts[-1].leave("carry", None, np.zeros(0))
            for other, above in enumerate(self.signatures):
                recording = Recording(number, other)
                recording.fresh("carry", None, (0,))
                rows = [recording.fresh("entry", (matrix, k), (above.kind.nv,)) for k in range(signature.kind.nv)]
                block = np.array(rows).reshape(signature.kind.nv, above.kind.nv)
                terms = step(block, self._state(number, recording), self._state(other, recording, "far"))
                for where, more in zip(("more", "farther"), terms, strict=True):
                    for name, value in more.items():
                        recording.leave(where, name, value)
                recording.leave("carry", None, np.zeros(0))
                steps.append(recording)
        self.plan.append(_Walk(order, starts, steps))

    def solve(self, matrix: Any, right: Any) -> Any:
        nv = self.coordinates.nv
        solution = self.builder.temporary("solution", (nv,))
        parent = self.builder.column(rate_parents(self.tree))
        self.plan.append(Solve("ltl", matrix.operand, right.operand, solution.operand, nv, nv, 1, parent))
        return solution

    # -- placing ----------------------------------------------------------------------------------------
    def finish(self, result: Ref, name: str) -> None:
        """Lay out what links store, add the statements to the builder, and make the result the output of this name."""
        tree, x, builder = self.tree, self.coordinates, self.builder
        builder.make_output(result, name)
        fields = self._fields()
        plan = layout(fields, len(self.signatures), packed=self.packed)
        self._clear_sums(plan)
        q_at, v_at = (ITEM if np.array_equal(c, np.arange(tree.n)) else builder.column(c) for c in (x.q_at, x.v_at))
        buffers, data, which = Kept(tree, builder, plan, self.signature_of), LinkData(tree, builder), tree.records[1]

        def operand(recording: Recording, where: str, what: Any, size: int) -> Ref:
            if where in ("record", "recordfar"):
                step = (RECORD_SIZE, ITEM if which is None else builder.column(which))
                part = data.record(what, size)
                return part.at(step) if where == "record" else part.at(far=(step,))
            if where == "carry":
                return Ref(Operand(-1, size), (size,))
            if where in ("diagonal", "entry", "mirror"):
                matrix, k = what
                row: Ref = matrix.part(k * x.nv, (size,))
                if where == "diagonal":
                    return row.at((x.nv, v_at), (1, v_at))
                near, far = (1, x.nv) if where == "mirror" else (x.nv, 1)
                return row.at((near, v_at), far=((far, v_at),))
            if where in ("far", "farther"):
                return buffers.operand(where, what, size, recording.far)
            if where in ("here", "more", "up", "add"):
                return buffers.operand(where, what, size, recording.signature)
            if where == "frame":
                return data.frame(what, size).at((FRAME_SIZE, ITEM))
            source = self.inputs[where]
            if where == "wrench":
                return source.part(0, (6,)).at((6, ITEM))
            return source.part(0, (size,)).at((1, q_at if where in ("q", "q1") else v_at))

        for ground, value in self.ground.items():
            if ground in plan.home:
                array = np.asarray(value, dtype=np.float64)
                builder.call(lambda array=array: array, (), (buffers.at(-1, ground, array.shape),))
        dispatch = builder.column(self.signature_of) if len(self.signatures) > 1 else None
        cases: dict[int, Case] = {}

        def case(recording: Recording, number: int) -> Case:
            if id(recording) in cases:
                return cases[id(recording)]
            inputs = [operand(recording, *i) for i in recording.inputs]
            outputs: list[Ref] = []
            nodes: list[Scalar] = []
            for where, what, values in recording.outputs:
                if where == "here" and what in self.vectors:
                    vector, coordinates = self.vectors[what]
                    outputs.append(vector.part(0, (len(values),)).at((1, q_at if coordinates else v_at)))
                    nodes.extend(values)
                if where in ("here", "clear", "add") and what not in plan.home:
                    continue
                if where != "here" or fields[what].needed(2 * number):
                    outputs.append(operand(recording, "here" if where == "clear" else where, what, len(values)))
                    nodes.extend(values)
            block = finish(recording.recorder, recording.count, nodes)
            cases[id(recording)] = builder.case(block, inputs, outputs)
            return cases[id(recording)]

        for number, p in enumerate(self.plan):
            if isinstance(p, _Pass):
                builder.add(Each(tree.n, tuple(case(r, number) for r in p.recordings), p.order, dispatch))
            elif isinstance(p, _Walk):
                starts, steps = (tuple(case(r, number) for r in every) for every in (p.starts, p.steps))
                builder.add(Walk(tree.n, builder.column(tree.parent), starts, steps, dispatch, p.order))
            else:
                builder.add(p)
        for position, names, then, output, shapes in self.values:
            sources = [buffers.at(position, name, shape) for name, shape in zip(names, shapes, strict=True)]
            builder.call(then, sources, [output])

    def _fields(self) -> dict[str, Field]:
        """What links store, and when: a pass is at an even moment, a walk reads at the odd one after it too."""
        fields = {name: Field({-1: np.size(value)}) for name, value in self.ground.items()}
        for (signature, name), size in self.sizes.items():
            fields.setdefault(name, Field()).sizes[signature] = size
        for number, p in enumerate(self.plan):
            if isinstance(p, _Pass):
                for recording in p.recordings:
                    for where, what, _ in recording.inputs:
                        if where in ("here", "up"):
                            getattr(fields[what], where).add(2 * number)
                    for where, what, _ in recording.outputs:
                        (fields[what].summed if where == "add" else fields[what].written).add(2 * number)
            elif isinstance(p, _Walk):
                for recording in (*p.starts, *p.steps):
                    for where, what, _ in recording.inputs:
                        if where in ("here", "far"):
                            fields[what].here.add(2 * number + 1)
                    for where, what, _ in recording.outputs:
                        if where in ("more", "farther"):
                            fields[what].written.add(2 * number)
                            fields[what].here.add(2 * number + 1)
        after = 2 * len(self.plan)
        for position, names, _, _, _ in self.values:
            for name in names:
                if position >= 0:
                    fields[name].here.add(after)
                elif not (fields[name].up or fields[name].summed):
                    fields[name].up.add(after)
        return fields

    def _clear_sums(self, plan: Layout) -> None:
        """Sums in slots are cleared once they are read, those in rows by the pass before, which has them in cache."""
        passes = [p for p in self.plan if isinstance(p, _Pass)]
        for number, p in enumerate(passes):
            for name, shape in p.below.items():
                by = passes[number - (plan.home.get(name) != "sums")]
                for recording in by.recordings:
                    recording.leave("clear", name, np.zeros(shape))


def rate_parents(tree: Tree) -> Any:
    """For every rate the rate before it on the way to ground, −1 at ground."""
    x = tree.coordinates
    last = np.full(tree.n + 1, -1)
    parents: list[int] = []
    for i, (p, kind) in enumerate(zip(tree.parent.tolist(), tree.kinds, strict=True)):
        before = int(last[p])
        at = int(x.v_at[i])
        for k in range(kind.nv):
            parents.append(before)
            before = at + k
        last[i] = before
    return np.array(parents, np.int32)
