"""What is recorded of a form: its equations, their Jacobian, and what accelerations need, all by derivatives of Φ.

A body's state is its origin x and axes R in ground's axes; its twist is [ẋ; ω], in ground's axes too, so that
Ṙ = ω̃ R; with a `space`, states and twists are its rows, ω is in the body's own axes, and Ṙ = R ω̃. A block's inputs are
x and R of every frame's body that moves, the form's record, its counted angles and the value of its law; ground's
numbers are folded, and so are those that a `pattern` gives for the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.body_rows import Space
from linkwright.constraints.forms import Form, Frame, near
from linkwright.spatial.algebra import Array
from linkwright.tape.block import Block
from linkwright.tape.build import record, trace
from linkwright.tape.program import Program

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
    if form.driven:
        numbers.append((1,))
    return bodies + numbers


def _frames(form: Form, moving: Moving, arrays: Sequence[Array]) -> tuple[list[Frame], list[Array]]:
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
        frames, inputs = _frames(form, moving, arrays)
        numbers = inputs.pop(0)[12 * form.sides :]
        turned = inputs.pop(0) if form.turns else np.zeros(0)
        law = inputs.pop(0)[0] if form.driven else 0.0
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


def _skew_times(w: Array, r: Array) -> Array:
    """ω̃ R."""
    zero = 0.0 * w[0]
    return np.array([[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]]) @ r


def _motion(
    form: Form, moving: Moving, states: Sequence[Array], twists: Sequence[Array], in_body: bool = False
) -> list[Array]:
    """The rates of a block's inputs when the bodies have these twists."""
    rates: list[Array] = []
    for k, w in enumerate(twists):
        r = states[2 * k + 1]
        rates += [w[:3], _skew_times(-w[3:], r.T).T if in_body else _skew_times(w[3:], r)]
    return rates + [np.zeros(shape) for shape in shapes(form, moving)[2 * sum(moving) :]]


def product(form: Form, moving: Moving, *arrays: Array, in_body: bool = False) -> Array:
    """J w: the rate of Φ for the twists w, which come last."""
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
            value, column = program(*arrays, *_motion(form, moving, arrays, twists, space is not None))
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
        inputs = [*states, *records.T, *[0.1] * (form.turns + form.driven)]
        parts = [np.broadcast_to(x, count) for x in block.evaluate(inputs)[size:]]
        rates = np.abs(np.array(parts).reshape(n, size, space.motion, count)).max(axis=(0, 2))
        largest = np.maximum(largest, rates.T)
    effective: NDArray[np.bool_] = largest > EFFECTIVE * largest.max(axis=1, keepdims=True, initial=1.0)
    return effective


@cache
def bias_block(form: Form, moving: Moving, space: Space | None = None, pattern: Pattern | None = None) -> Block:
    """J̇ w: the inputs are followed by the twists."""
    n = sum(moving)
    in_body, width = space is not None, 6 if space is None else space.motion

    def outputs(*arrays: Array) -> Array:
        inputs = _whole(moving, pattern, space, arrays[:-n])
        twists = [w if space is None else space.whole(w) for w in arrays[-n:]]
        rates = [*_motion(form, moving, inputs, twists, in_body), *(np.zeros(6) for _ in twists)]
        return _product_program(form, moving, in_body)(*inputs, *twists, *rates)[1]

    return trace(outputs, [*_given(form, moving, pattern, space), *[(width,)] * n])[0]


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
        frames, inputs = _frames(form, moving, arrays)
        assert form.angles is not None
        return np.array([near(m, old) for m, old in zip(form.angles(frames), inputs[1], strict=True)])

    return trace(outputs, shapes(form, moving))[0]
