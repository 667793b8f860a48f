"""Assembly: from where the bodies are drawn to where the constraints hold, by a damped Newton method."""

from __future__ import annotations

import numpy as np

from linkwright.base.types import Floats
from linkwright.constraints.assembled import (
    EXACT,
    MISFIT,
    Assembled,
    rank_tolerance,
    row_norms,
    settle,
    start_state,
    wrong_way,
)
from linkwright.constraints.diagnosis import does_not_close
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.equations import Equations
from linkwright.constraints.programs import Programs
from linkwright.constraints.recorded import moved
from linkwright.errors import AssemblyError
from linkwright.mechanism.bodies import body_motion
from linkwright.mechanism.topology import span
from linkwright.mechanism.tree import Tree

TRIES = 12
#: And so many at random angles where a mechanism closes with axes opposite.
OTHER_TRIES = 24
MISFIT_ITERATIONS = 30


def assemble(programs: Programs, t: float, tolerance: float | None) -> Assembled:
    """The assembled state nearest to where the bodies are drawn; an AssemblyError tells what does not close.

    What may remain is `MISFIT` of the mechanism's size, or `tolerance` (m) if that is less.
    """
    e = programs.layout.equations
    allowed = MISFIT * e.size if tolerance is None else min(tolerance, MISFIT * e.size)
    programs.tolerance = RANK_TOLERANCE
    drawn = start_state(e)
    best: Assembled | None = None
    turned: Assembled | None = None  # closed, with axes opposite
    astray = False  # whether the drawing leads to opposite axes
    rng = np.random.default_rng(0)
    spent = 0
    for attempt in range(TRIES + OTHER_TRIES):
        if attempt < TRIES:  # a start that leads nowhere is shaken, each time a little more
            shake = rng.normal(size=(e.nb, 6)) * (0.08 * attempt)
            shake[:, :3] *= e.sizes[:, None]
            start = moved(drawn.T, shake.T).T if attempt else drawn
        else:
            astray = astray or (turned is not None and (best is None or bool(wrong_way(e, best.q))))
            if not astray:
                break
            start = _anywhere(e, rng)
        state = settle(programs, start, None, t, leave_out_turned=True)
        spent += state.iterations
        if state.miss <= EXACT * e.size and wrong_way(e, state.q):
            turned = turned or state
            continue
        if best is None or state.miss < best.miss:
            best = state
        if best.miss <= EXACT * e.size:
            break
        # Numbers that are rounded leave a misfit where the bodies are drawn; other starts would only lead elsewhere.
        if not attempt and best.miss <= allowed and _is_near(e, drawn, best.q) and not wrong_way(e, best.q):
            break
    closes = best is not None and best.miss <= max(allowed, EXACT * e.size)
    if turned is not None and (best is None or (astray and not closes)):
        raise _turned(wrong_way(e, turned.q))
    assert best is not None
    if closes and best.miss > EXACT * e.size:
        best = _nearly(programs, best, t)
    final = Assembled(best.q, best.angles, best.miss, best.pivots, spent)
    if not final.miss <= max(allowed, EXACT * e.size):
        raise does_not_close(programs, final, t)
    wrong = wrong_way(e, final.q)
    if wrong:
        raise _turned(wrong)
    return final


def _anywhere(equations: Equations, rng: np.random.Generator) -> Floats:
    """The bodies with the joints of the spanning tree closed, at random angles."""
    d = equations.description
    topology = span(d)
    x = Tree(d, topology).coordinates
    q = np.zeros((1, x.nq))
    for i, j in enumerate(topology.joint.tolist()):
        if not x.follows[i]:
            kind, first = d.kind_of(j), int(x.q_at[i])
            q[0, first : first + kind.nq] = kind.neutral()
            q[0, [first + k for k in kind.angles]] = rng.uniform(-np.pi, np.pi, len(kind.angles))
    still = np.zeros((1, x.nv))
    poses = body_motion(d, q, still, still)
    return np.concatenate([poses["position"][0], poses["orientation"][0]], axis=1)


def _turned(wrong: dict[str, float]) -> AssemblyError:
    """The error for a mechanism that closes only with axes opposite."""
    name = next(iter(wrong))
    text = (
        f"joint {name!r} closes the wrong way round: its axes are opposite; draw its bodies nearer to where they "
        "belong, give one of their joint angles as INITIAL, or turn one of its triads"
    )
    return AssemblyError(text, misses=wrong, element=name)


def _is_near(e: Equations, drawn: Floats, q: Floats) -> bool:
    """Whether bodies are where they are drawn but for what rounded numbers explain."""
    shift = np.abs(q[:, :3] - drawn[:, :3]).max(initial=0.0) / e.size
    turn = np.minimum(np.abs(q[:, 3:] - drawn[:, 3:]), np.abs(q[:, 3:] + drawn[:, 3:])).max(initial=0.0)
    return bool(max(shift, turn) <= 10.0 * MISFIT)


def _nearly(programs: Programs, found: Assembled, t: float) -> Assembled:
    """A state in which the constraints hold but for a misfit, as rounded numbers leave it in redundant ones.

    Equations that the misfit alone makes independent are then left out: the others hold exactly, and can be followed.
    """
    e = programs.layout.equations
    at, q, turns = np.array([t]), found.q, found.angles
    programs.tolerance = float(rank_tolerance(np.array(found.miss / e.size)))
    for _ in range(MISFIT_ITERATIONS):
        _, delta, q, pivots = programs.correct(q, turns, at, np.zeros(1))
        delta[:, :3] /= e.size
        if float(np.max(np.abs(delta), initial=0.0)) < 1e-12:
            break
    _, jacobian, phi, _, turns = programs.evaluate(q, turns, at, np.zeros((e.nb, 6)))
    miss = float(np.max(np.abs(phi / row_norms(programs, jacobian)), initial=0.0))
    return Assembled(q, turns, miss, pivots, found.iterations)
