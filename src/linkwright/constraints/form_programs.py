"""What is recorded of a form: its equations, their Jacobian, and what accelerations need, over the rows of bodies;
and the statements that run it for each item.

Rows are origins (3), axes, twists [ẋ; ω] and wrenches [f; l], ω and l in the body's own axes. In a plane, which is then
z = constant, axes are a cosine and a sine, and of twists and wrenches there are x, y and what turns about z.

A body's state is its origin x and axes R in ground's axes; its twist is [ẋ; ω], in ground's axes too, so that
Ṙ = ω̃ R; with a `space`, states and twists are its rows, ω is in the body's own axes, and Ṙ = R ω̃. A block's inputs are
x and R of every frame's body that moves, the form's record, its counted angles and the value of its law; ground's
numbers are folded, and so are those that a `pattern` gives for the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_forms import Form, Frame, near
from linkwright.model.element_steps import BodyFrame
from linkwright.model.placements import axis_frame, snapped
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array, cross, skew, wrench_at
from linkwright.tape.block import Block
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.program import ITEM, Each, Order, Program


def row(table: Ref, column: int = ITEM, width: int | None = None, *, add: bool = False) -> Ref:
    """The row of a table (n, width) with the number that a column gives, by default the item's own."""
    width = table.shape[1] if width is None else width
    return table.part(0, (width,)).at((width, column), add=add)


def entry(numbers: Ref, column: int = ITEM, shape: tuple[int, ...] = (1,), *, add: bool = False) -> Ref:
    """The numbers of this shape that begin where a column says, by default with the item's own number."""
    return numbers.part(0, shape).at((1, column), add=add)


def each(
    builder: ProgramBuilder,
    count: int,
    block: Block | Callable[..., Any],
    inputs: Sequence[Ref],
    outputs: Sequence[Ref],
    order: Order = "map",
) -> None:
    """Add a statement that runs a block, or a function of arrays, for each of `count` items."""
    if not isinstance(block, Block):
        block = trace(block, [ref.shape for ref in inputs])[0]
    builder.add(Each(count, (builder.case(block, inputs, outputs),), order))


#: Axes within this sine of each other are parallel.
PARALLEL = 1e-12


@dataclass(frozen=True)
class Space:
    """The numbers that a body's rows have."""

    motion: int  # numbers of a twist or a wrench
    turn: int  # numbers of its axes
    components: tuple[int, ...]  # of a twist or wrench in space

    def axes(self, row: Array) -> Array:
        """R of a row."""
        if self.turn == 9:
            return row.reshape(3, 3)
        c, s = row
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    def row(self, r: Array) -> Array:
        """The row of R."""
        return r.reshape(-1) if self.turn == 9 else np.array([r[0, 0], r[1, 0]])

    def whole(self, motion: Array) -> Array:
        """A twist or wrench with all six numbers."""
        if self.motion == 6:
            return motion
        x, y, turn = motion
        return np.array([x, y, 0.0, 0.0, 0.0, turn])

    def part(self, motion: Array) -> Array:
        """The numbers that count of a twist or wrench."""
        return motion if self.motion == 6 else np.array([motion[k] for k in self.components])


@dataclass(frozen=True)
class CentralFrame(BodyFrame):
    """A frame on a body in rows of a space, whose twist and wrenches have their linear part in the axes of `world`."""

    space: Space
    world: Floats  # the axes of the rows' ground, in ground's own

    @property
    def velocity(self) -> Array:
        return self.w[:3] + self.r @ cross(self.w[3:], self.p)

    def wrench(self, force: Array, moment: Array) -> Array:
        turned = wrench_at(self.r.T @ force, self.r.T @ moment, self.p)
        return self.space.part(np.concatenate([force, turned[3:]]))

    def to_ground(self, vector: Array) -> Array:
        return self.world @ vector

    def from_ground(self, vector: Array) -> Array:
        return self.world.T @ vector


SPATIAL = Space(6, 9, (0, 1, 2, 3, 4, 5))
PLANAR = Space(3, 2, (0, 1, 5))


def plane(tree: Tree) -> tuple[Floats, Floats] | None:
    """The normal of the plane in which a tree's joints let its bodies move: in ground, and (nb, 3) in every body.

    None if there is no such plane. What else holds the bodies does not matter: it cannot move them out of it.
    """
    t = tree.topology
    kinds = [tree.description.kind_of(int(j)).name for j in t.joint]
    if not {"revolute", "planar"} & set(kinds) or set(kinds) - {"revolute", "planar", "prismatic", "fixed"}:
        return None
    r_up, _, r_own, _ = tree.sides(slice(None))
    rotations = np.empty((tree.n, 3, 3))  # of the bodies, where all coordinates are zero
    normal: Floats | None = None
    for i, kind in enumerate(kinds):
        up = rotations[t.parent[i]] if t.parent[i] >= 0 else np.eye(3)
        axes_here = up @ r_up[i]
        rotations[i] = axes_here @ r_own[i].T
        if kind in ("revolute", "planar"):
            normal = axes_here[:, 2] if normal is None else normal
            if np.abs(cross(normal, axes_here[:, 2])).max() > PARALLEL:
                return None
    assert normal is not None
    axes = [rotations[i] @ r_own[i][:, 2] for i, kind in enumerate(kinds) if kind == "prismatic"]
    if any(abs(float(axis @ normal)) > PARALLEL for axis in axes):
        return None
    normal = snapped(normal * (1.0 if normal[int(np.argmax(np.abs(normal)))] > 0.0 else -1.0))
    in_bodies = np.empty((tree.n, 3))
    in_bodies[t.body] = snapped(np.einsum("nji,j->ni", rotations, normal))
    return normal, in_bodies


def facing(normal: Floats) -> Floats:
    """A rotation whose third column is the normal; none if that is z already."""
    return np.eye(3) if normal[2] == 1.0 else axis_frame(normal)


Shape = tuple[int, ...]
Moving = tuple[bool, ...]  # for every frame of a constraint, whether its body moves
#: A derivative below this part of the largest is rounding.
EFFECTIVE = 1e-10
Pattern = tuple[float | None, ...]  # for every number of a record its value, or None where it is given


def shapes(form: Form, moving: Moving) -> list[Shape]:
    """The inputs of a form's blocks."""
    bodies: list[Shape] = [(3,), (3, 3)] * sum(moving)
    numbers: list[Shape] = [(12 * form.sides + form.numbers,)]
    if form.turns:
        numbers.append((form.turns,))
    if form.has_law:
        numbers.append((1,))
    return bodies + numbers


def _frames(moving: Moving, arrays: Sequence[Array]) -> tuple[list[Frame], list[Array]]:
    """The frames in ground's axes, and the inputs after the bodies'."""
    states = iter(arrays[: 2 * sum(moving)])
    numbers = list(arrays[2 * sum(moving) :])
    frames = []
    for k, moves in enumerate(moving):
        r, p = numbers[0][12 * k : 12 * k + 9].reshape(3, 3), numbers[0][12 * k + 9 : 12 * k + 12]
        if moves:
            x, turn = next(states), next(states)
            frames.append((turn @ r, x + turn @ p))
        else:
            frames.append((r, p))
    return frames, numbers


def _phi(form: Form, moving: Moving) -> Callable[..., Array]:
    def equations(*arrays: Array) -> Array:
        frames, inputs = _frames(moving, arrays)
        numbers = inputs.pop(0)[12 * form.sides :]
        turned = inputs.pop(0) if form.turns else np.zeros(0)
        law = inputs.pop(0)[0] if form.has_law else 0.0
        return form.equations(frames, numbers, turned, law)

    return equations


@cache
def _rate_program(form: Form, moving: Moving) -> Program:
    """Φ and its derivative in a direction."""
    return record(_phi(form, moving), *shapes(form, moving), name="equations").forward()


@cache
def _product_program(form: Form, moving: Moving, in_body: bool) -> Program:
    """J w and its derivative in a direction of the inputs, the twists last."""
    inputs = [*shapes(form, moving), *[(6,)] * sum(moving)]
    return record(lambda *arrays: product(form, moving, *arrays, in_body=in_body), *inputs, name="product").forward()


@cache
def _pull_program(form: Form, moving: Moving) -> Program:
    """Jᵀλ for every body, and its derivative in a direction of the inputs, λ last."""
    inputs = [*shapes(form, moving), (form.size,)]
    return record(lambda *arrays: _pull(form, moving, *arrays), *inputs, name="pull").forward()


def _motion(
    form: Form,
    moving: Moving,
    states: Sequence[Array],
    twists: Sequence[Array],
    in_body: bool = False,
    *,
    timed: bool = True,
) -> list[Array]:
    """The rates of a block's inputs when the bodies have these twists; with `timed`, while a clock goes on."""
    rates: list[Array] = []
    for k, w in enumerate(twists):
        r = states[2 * k + 1]
        rates += [w[:3], (skew(-w[3:]) @ r.T).T if in_body else skew(w[3:]) @ r]
    rates += [np.zeros(shape) for shape in shapes(form, moving)[2 * sum(moving) :]]
    if form.clock and timed:
        rates[-1] = np.ones(1)
    return rates


def product(form: Form, moving: Moving, *arrays: Array, in_body: bool = False) -> Array:
    """J w, and Φ_t of a form with a clock: the rate of Φ for the twists w, which come last."""
    n = sum(moving)
    inputs, twists = list(arrays[:-n]), arrays[-n:]
    return _rate_program(form, moving)(*inputs, *_motion(form, moving, inputs, twists, in_body))[1]


def _jacobian(
    form: Form, moving: Moving, arrays: Sequence[Array], space: Space | None = None
) -> tuple[Array, list[Array]]:
    """Φ, and for every body that moves its (m, 6) part of J, or the columns that a space has."""
    n = sum(moving)
    program = _rate_program(form, moving)
    value: Array = None
    parts = []
    for body in range(n):
        columns = []
        for axis in range(6) if space is None else space.components:
            twists = [np.zeros(6) for _ in range(n)]
            twists[body][axis] = 1.0
            rates = _motion(form, moving, arrays, twists, space is not None, timed=False)
            value, column = program(*arrays, *rates)
            columns.append(column)
        parts.append(np.stack(columns, axis=1))
    return value, parts


def _pull(form: Form, moving: Moving, *arrays: Array) -> Array:
    """Jᵀλ, for all bodies one after another; λ comes last."""
    _, parts = _jacobian(form, moving, arrays[:-1])
    return np.concatenate([part.T @ arrays[-1] for part in parts])


# -- the blocks -------------------------------------------------------------------------------------------------
def _given(form: Form, moving: Moving, pattern: Pattern | None, space: Space | None) -> list[Shape]:
    """The inputs of a block, of the record only what the pattern leaves open."""
    inputs, n = shapes(form, moving), sum(moving)
    if pattern is not None:
        inputs[2 * n] = (pattern.count(None),)
    if space is not None:
        inputs[1 : 2 * n : 2] = [(space.turn,)] * n
    return inputs


def _whole(moving: Moving, pattern: Pattern | None, space: Space | None, arrays: Sequence[Array]) -> list[Array]:
    """The inputs with all numbers of the record, and of axes."""
    whole, n = list(arrays), sum(moving)
    if pattern is not None:
        open_ones = iter(arrays[2 * n])
        whole[2 * n] = np.array([next(open_ones) if x is None else x for x in pattern], dtype=object)
    if space is not None:
        whole[1 : 2 * n : 2] = [space.axes(row) for row in whole[1 : 2 * n : 2]]
    return whole


@cache
def equations_block(form: Form, moving: Moving, space: Space | None = None, pattern: Pattern | None = None) -> Block:
    """Φ and the parts of J."""

    def outputs(*arrays: Array) -> tuple[Array, ...]:
        value, parts = _jacobian(form, moving, _whole(moving, pattern, space, arrays), space)
        return (value, *parts)

    return trace(outputs, _given(form, moving, pattern, space))[0]


@cache
def value_block(form: Form, moving: Moving, space: Space, pattern: Pattern) -> Block:
    """Φ alone."""

    def outputs(*arrays: Array) -> Array:
        return _phi(form, moving)(*_whole(moving, pattern, space, arrays))

    return trace(outputs, _given(form, moving, pattern, space))[0]


def effective_rows(form: Form, moving: Moving, space: Space, records: Floats) -> NDArray[np.bool_]:
    """For each record (a row), which of a form's equations motions in a plane change somewhere."""
    size, n, count = form.size, sum(moving), len(records)
    largest = np.zeros((count, size))
    rng = np.random.default_rng(0)
    block = equations_block(form, moving, space, (None,) * records.shape[1])
    for angles in rng.uniform(-1.0, 1.0, (3, n)):
        states = [x for a in angles for x in (*rng.uniform(-1.0, 1.0, 2), 0.0, np.cos(a), np.sin(a))]
        inputs = [*states, *records.T, *[0.1] * (form.turns + form.has_law)]
        parts = [np.broadcast_to(x, count) for x in block.evaluate(inputs)[size:]]
        rates = np.abs(np.array(parts).reshape(n, size, space.motion, count)).max(axis=(0, 2))
        largest = np.maximum(largest, rates.T)
    effective: NDArray[np.bool_] = largest > EFFECTIVE * largest.max(axis=1, keepdims=True, initial=1.0)
    return effective


@cache
def bias_block(form: Form, moving: Moving, space: Space | None = None, pattern: Pattern | None = None) -> Block:
    """J̇ w, and 2 Φ_qt w + Φ_tt of a form with a clock: the inputs are followed by the twists."""
    n = sum(moving)
    in_body, width = space is not None, 6 if space is None else space.motion

    def outputs(*arrays: Array) -> Array:
        inputs = _whole(moving, pattern, space, arrays[:-n])
        twists = [w if space is None else space.whole(w) for w in arrays[-n:]]
        rates = [*_motion(form, moving, inputs, twists, in_body), *(np.zeros(6) for _ in twists)]
        return _product_program(form, moving, in_body)(*inputs, *twists, *rates)[1]

    return trace(outputs, [*_given(form, moving, pattern, space), *[(width,)] * n])[0]


@cache
def clock_block(form: Form, moving: Moving, space: Space | None = None, pattern: Pattern | None = None) -> Block:
    """−Φ_t of a form with a clock."""

    def outputs(*arrays: Array) -> Array:
        inputs = _whole(moving, pattern, space, arrays)
        return -product(form, moving, *inputs, *[np.zeros(6)] * sum(moving), in_body=space is not None)

    return trace(outputs, _given(form, moving, pattern, space))[0]


@cache
def lift_block(form: Form, moving: Moving) -> Block:
    """J̇ᵀλ for every body that moves: the inputs are followed by the twists and λ."""
    n = sum(moving)

    def outputs(*arrays: Array) -> tuple[Array, ...]:
        inputs, twists, multipliers = list(arrays[: -n - 1]), arrays[-n - 1 : -1], arrays[-1]
        rates = [*_motion(form, moving, inputs, twists), np.zeros(form.size)]
        whole = _pull_program(form, moving)(*inputs, multipliers, *rates)[1]
        return tuple(whole[6 * k : 6 * k + 6] for k in range(n))

    return trace(outputs, [*shapes(form, moving), *[(6,)] * n, (form.size,)])[0]


@cache
def angles_block(form: Form, moving: Moving) -> Block:
    """The counted angles, nearest to what they were."""

    def outputs(*arrays: Array) -> Array:
        frames, inputs = _frames(moving, arrays)
        assert form.angles is not None
        return np.array([near(m, old) for m, old in zip(form.angles(frames), inputs[1], strict=True)])

    return trace(outputs, shapes(form, moving))[0]
