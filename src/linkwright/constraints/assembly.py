"""Assembly: from where the bodies are drawn to where the constraints hold, by a damped Newton method."""

from __future__ import annotations

import numpy as np

from linkwright.constraints.assembled import EXACT, MISFIT, Assembled, row_norms, settle, start_state, wrong_way
from linkwright.constraints.diagnosis import does_not_close
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.programs import Programs
from linkwright.constraints.recorded import moved
from linkwright.errors import AssemblyError

TRIES = 12
MISFIT_ITERATIONS = 30
#: The largest rank tolerance that a misfit may ask for, lest equations be left out that tell something.
MISFIT_RANK = 1e-4


def assemble(programs: Programs, t: float, tolerance: float | None) -> Assembled:
    """The assembled state nearest to where the bodies are drawn; an AssemblyError tells what does not close.

    What may remain is `MISFIT` of the mechanism's size, or `tolerance` (m) if that is less.
    """
    e = programs.layout.equations
    allowed = MISFIT * e.size if tolerance is None else min(tolerance, MISFIT * e.size)
    programs.tolerance = RANK_TOLERANCE
    drawn = start_state(e)
    best: Assembled | None = None
    rng = np.random.default_rng(0)
    spent = 0
    for attempt in range(TRIES):
        # A start that leads nowhere is shaken, each time a little more.
        shake = rng.normal(size=(e.nb, 6)) * (0.08 * attempt)
        shake[:, :3] *= e.sizes[:, None]
        found = settle(programs, moved(drawn.T, shake.T).T if attempt else drawn, None, t)
        spent += found.iterations
        if best is None or found.miss < best.miss:
            best = found
        if best.miss <= EXACT * e.size and not wrong_way(e, best.q):
            break
    assert best is not None
    if EXACT * e.size < best.miss <= allowed:
        best = _nearly(programs, best, t)
    final = Assembled(best.q, best.angles, best.miss, best.pivots, spent)
    if final.miss > max(allowed, EXACT * e.size):
        raise does_not_close(programs, final, t)
    wrong = wrong_way(e, final.q)
    if wrong:
        name = next(iter(wrong))
        text = (
            f"joint {name!r} closes the wrong way round: its axes are opposite; draw its bodies nearer to where they "
            "belong, or turn one of its triads"
        )
        raise AssemblyError(text, misses=wrong, element=name)
    return final


def _nearly(programs: Programs, found: Assembled, t: float) -> Assembled:
    """A state in which the constraints hold but for a misfit, as rounded numbers leave it in redundant ones.

    Equations that the misfit alone makes independent are then left out: the others hold exactly, and can be followed.
    """
    e = programs.layout.equations
    at, q, turns = np.array([t]), found.q, found.angles
    programs.tolerance = min(max(RANK_TOLERANCE, 400.0 * (found.miss / e.size) ** 2), MISFIT_RANK)
    for _ in range(MISFIT_ITERATIONS):
        _, delta, q, pivots = programs.correct(q, turns, at, np.zeros(1))
        if float(np.max(np.abs(delta), initial=0.0)) < 1e-12 * e.size:
            break
    _, jacobian, phi, _, turns = programs.evaluate(q, turns, at, np.zeros((e.nb, 6)))
    miss = float(np.max(np.abs(phi / row_norms(programs, jacobian)), initial=0.0))
    return Assembled(q, turns, miss, pivots, found.iterations)
