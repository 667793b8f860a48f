"""Assembly: from where the bodies are drawn to where the constraints hold, by a damped Newton method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.diagnosis import does_not_close
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.newton import (
    EXACT,
    MISFIT,
    Assembled,
    Batch,
    damped_newton,
    moved_states,
    rank_tolerance,
    wrong_way,
)
from linkwright.errors import AssemblyError
from linkwright.model.body_motion import body_states
from linkwright.model.topology import span
from linkwright.model.tree import Tree

Flags = NDArray[np.bool_]
TRIES = 12
#: And so many at random angles where a mechanism closes with axes opposite.
OTHER_TRIES = 24
MISFIT_ITERATIONS = 30


@dataclass(frozen=True, eq=False)
class Assembly:
    """The assembled states of a batch; those that are not `closed` are the nearest to it."""

    t: float
    states: Assembled
    closed: Flags
    opposite: Flags  # which hold the constraints with the axes of a joint opposite

    def error(self, k: int, programs: Programs) -> AssemblyError:
        """Why a mechanism, which has these programs, is not closed."""
        state = self.states[k]
        if not self.opposite[k]:
            return does_not_close(programs, state, self.t)
        wrong = wrong_way(programs.layout.equations, state.q)
        name = next(iter(wrong))
        text = (
            f"joint {name!r} closes the wrong way round: its axes are opposite; draw its bodies nearer to where they "
            "belong, give one of their joint angles as INITIAL, or turn one of its frames"
        )
        return AssemblyError(text, misses=wrong, element=name)


def assemble(batch: Batch, drawn: Floats, t: float, tolerance: float | None) -> Assembly:
    """The assembled state of each mechanism nearest to where its bodies are drawn (n, nb, 7).

    What may remain is `MISFIT` of a mechanism's size, or `tolerance` (m) if that is less.
    """
    exact, n = EXACT * batch.size, len(batch)
    allowed = np.maximum(exact, np.minimum(np.inf if tolerance is None else tolerance, MISFIT * batch.size))
    rng = np.random.default_rng(0)
    best: Assembled | None = None
    turned, turned_q = np.zeros(n, bool), drawn.copy()  # which closed with axes opposite, and where
    none, wrong, astray = np.ones(n, bool), np.ones(n, bool), np.zeros(n, bool)
    spent = np.zeros(n, np.int64)
    left = np.arange(n)  # those that are not assembled yet
    for attempt in range(TRIES + OTHER_TRIES):
        if attempt == TRIES:  # the drawing of those that go on leads to opposite axes
            astray[left] = turned[left] & wrong[left]
            left = left[astray[left]]
        if not len(left):
            break
        some = batch if len(left) == n else batch[left]
        starts = _starts(some, drawn[left], rng, attempt)
        states = damped_newton(some, starts, None, t, leave_out_turned=True)
        spent[left] += states.iterations
        opposite_axes = some.wrong_way(states.q)
        opposite = (states.miss <= exact[left]) & opposite_axes
        first = opposite & ~turned[left]
        turned_q[left[first]], turned[left[first]] = states.q[first], True
        if best is None:
            best, better = states, np.ones(n, bool)
        else:
            better = ~opposite & (none[left] | (states.miss < best.miss[left]))
            best.put(left[better], states[better])
        wrong[left[better]], none[left[better]] = opposite_axes[better], opposite[better]
        done = best.miss[left] <= exact[left]
        if not attempt and not done.all():
            # Rounded numbers leave a misfit where the bodies are drawn; other starts would only lead elsewhere.
            done |= (best.miss <= allowed) & _near(batch, drawn, best.q)
        left = left[~done | wrong[left]]
    assert best is not None
    closes = ~none & (best.miss <= allowed)
    opposite = turned & (none | (astray & ~closes))
    best.q[opposite] = turned_q[opposite]
    for k in np.flatnonzero(closes & (best.miss > exact)).tolist():
        some = batch[[k]]
        best.put([k], _nearly(some, best[[k]], t))
        wrong[k] = some.wrong_way(best.q[[k]])[0]
    closes &= best.miss <= allowed
    return Assembly(t, replace(best, iterations=spent), closes & ~wrong, opposite | (closes & wrong))


def _starts(batch: Batch, drawn: Floats, rng: np.random.Generator, attempt: int) -> Floats:
    """(n, nb, 7): as drawn; a start that leads nowhere is shaken, each time a little more, and at last anywhere."""
    if attempt >= TRIES:
        return _anywhere(batch, rng)
    shake = rng.normal(size=(batch.equations.nb, 6))
    if not attempt:
        return drawn
    shakes = np.repeat(0.08 * attempt * shake[None], len(batch), axis=0)
    shakes[:, :, :3] *= batch.sizes[:, :, None]
    return moved_states(drawn, shakes)


def _anywhere(batch: Batch, rng: np.random.Generator) -> Floats:
    """(n, nb, 7): the bodies with the joints of the spanning tree closed, at random angles."""
    d = batch.equations.description
    topology = span(d)
    x = Tree(d, topology).coordinates
    q = np.zeros(x.nq)
    for i, j in enumerate(topology.joint.tolist()):
        if not x.follows[i]:
            kind, first = d.kind_of(j), int(x.q_at[i])
            q[first : first + kind.nq] = kind.neutral()
            q[[first + k for k in kind.angles]] = rng.uniform(-np.pi, np.pi, len(kind.angles))
    return np.stack([body_states(batch.description(k), q) for k in range(len(batch))])


def _near(batch: Batch, drawn: Floats, q: Floats) -> Flags:
    """Whether bodies are where they are drawn but for what rounded numbers explain."""
    shift = np.abs(q[:, :, :3] - drawn[:, :, :3]).max(axis=(1, 2), initial=0.0) / batch.size
    one, other = (np.abs(q[:, :, 3:] + sign * drawn[:, :, 3:]) for sign in (-1.0, 1.0))
    turn = np.minimum(one, other).max(axis=(1, 2), initial=0.0)
    return np.asarray(np.maximum(shift, turn) <= 10.0 * MISFIT)


def _nearly(one: Batch, state: Assembled, t: float) -> Assembled:
    """A state in which the constraints hold but for a misfit, as rounded numbers leave it in redundant ones.

    Equations that the misfit alone makes independent are then left out: the others hold exactly, and can be followed.
    """
    q, tolerance = state.q, rank_tolerance(state.miss / one.size)
    for _ in range(MISFIT_ITERATIONS):
        there = one.correct(q, state.angles, t, np.zeros(1), tolerance)
        q, delta = there["changed"], there["delta"]
        delta[:, :, :3] /= one.size[0]
        if float(np.max(np.abs(delta), initial=0.0)) < 1e-12:
            break
    gaps, angles = one.gaps(q, state.angles, t)
    miss = np.max(gaps, axis=1, initial=0.0)
    return Assembled(q, angles, miss, there["pivots"], state.iterations, tolerance)
