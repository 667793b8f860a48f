"""A form between two frames as a function of the pose of the second in the first: Φ, its Jacobian and what drifts.

R and p are the axes and origin of the second frame in the first; w is the twist of the second relative to the first,
at its own origin in its own axes, so that Ṙ = R ω̃ and ṗ = R v. No equation but that of an absolute driver knows where
its first frame is; that one's first frame is ground.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwright.constraints.forms import Form
from linkwright.spatial.algebra import Array, dot
from linkwright.tape.block import Block
from linkwright.tape.build import record, trace
from linkwright.tape.program import Program
from linkwright.tape.scalar import Scalar

Function = Callable[..., Array]


def equations(form: Form, r: Array, p: Array, numbers: Sequence[Any], turned: Sequence[Any], law: Any) -> Array:
    """Φ (m)."""
    phi = _run(_equations_block(form), [r, p, _rest(form, numbers, turned, law)])
    return np.array(phi[: form.size])


def jacobian(form: Form, r: Array, p: Array, numbers: Sequence[Any], turned: Sequence[Any], law: Any) -> Array:
    """J (m, 6) with Φ̇ = J w + Φ_t."""
    entries = _run(_equations_block(form), [r, p, _rest(form, numbers, turned, law)])
    return np.array(entries[form.size :]).reshape(6, form.size).T


def at_many(form: Form, r: Array, p: Array, numbers: Array) -> tuple[Array, Array]:
    """Φ (S, m) and J (S, m, 6) of an undriven form that counts no turns, at poses (S, 3, 3), (S, 3) in numbers."""
    s = len(p)
    columns = [*r.reshape(s, 9).T, *p.T, *np.asarray(numbers).reshape(s, form.numbers).T, np.zeros(s)]
    with np.errstate(all="ignore"):
        entries = np.stack([np.broadcast_to(x, s) for x in _equations_block(form).evaluate(columns)], axis=1)
    return entries[:, : form.size], np.swapaxes(entries[:, form.size :].reshape(s, 6, form.size), 1, 2)


def drift(form: Form, r: Array, p: Array, numbers: Sequence[Any], turned: Sequence[Any], law: Any, w: Array) -> Array:
    """J̇ w, while the second frame moves with w."""
    return np.array(_run(_drift_block(form), [r, p, _rest(form, numbers, turned, law), w]))


def _rest(form: Form, numbers: Sequence[Any], turned: Sequence[Any], law: Any) -> Array:
    """The form's numbers, counted angles and law in one array, which has something in it."""
    return np.array([*numbers, *turned, *([law] if form.driven else ()), 0.0])


def _size(form: Form) -> int:
    return form.numbers + form.turns + form.driven + 1


def _run(block: Block, arrays: Sequence[Any]) -> list[Any]:
    """A block's outputs, as part of the recording that its inputs belong to if any of them does."""
    flat = [x for array in arrays for x in np.asarray(array).reshape(-1).tolist()]
    recorder = next((x.recorder for x in flat if isinstance(x, Scalar)), None)
    if recorder is None:
        return block.evaluate(flat)
    nodes = block.replay(recorder, [recorder.lift(x) for x in flat])
    return [nodes[k] for k in block.outputs.tolist()]


def _phi(form: Form) -> Function:
    def function(r: Array, p: Array, more: Array) -> Array:
        n = form.numbers
        numbers, turned = more[:n], more[n : n + form.turns]
        law = more[n + form.turns] if form.driven else 0.0
        frames = [(r, p)] if form.sides == 1 else [(np.eye(3), np.zeros(3)), (r, p)]
        return form.equations(frames, numbers, turned, law)

    return function


@cache
def _rate(form: Form) -> Program:
    return record(_phi(form), (3, 3), 3, _size(form), name="equations").forward()


def _moving(r: Array, w: Array) -> tuple[Array, Array]:
    """Ṙ and ṗ."""
    zero = 0.0 * w[3]
    skew = np.array([[zero, -w[5], w[4]], [w[5], zero, -w[3]], [-w[4], w[3], zero]])
    return r @ skew, np.array([dot(row, w[:3]) for row in r])


@cache
def _equations_block(form: Form) -> Block:
    """Φ, then the columns of J."""

    def function(r: Array, p: Array, more: Array) -> Array:
        still = np.zeros(_size(form))
        columns = [_rate(form)(r, p, more, *_moving(r, w), still) for w in np.eye(6)]
        return np.concatenate([columns[0][0], *(column for _, column in columns)])

    return trace(function, [(3, 3), (3,), (_size(form),)])[0]


@cache
def _drift_block(form: Form) -> Block:
    still = np.zeros(_size(form))

    def rate(r: Array, p: Array, more: Array, w: Array) -> Array:
        value: Array = _rate(form)(r, p, more, *_moving(r, w), still)[1]
        return value

    program = record(rate, (3, 3), 3, _size(form), 6, name="rate").forward()

    def function(r: Array, p: Array, more: Array, w: Array) -> Array:
        value: Array = program(r, p, more, w, *_moving(r, w), still, np.zeros(6))[1]
        return value

    return trace(function, [(3, 3), (3,), (_size(form),), (6,)])[0]
