"""States in which the constraints hold, as far as they can, and the damped Newton method that leads to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.types import Floats
from linkwright.constraints.counting import counted_at_start
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.equations import Constraint, Equations, joint_frames
from linkwright.constraints.forms import between
from linkwright.constraints.programs import Programs
from linkwright.constraints.recorded import moved
from linkwright.mechanism.kinds import KINDS
from linkwright.spatial.rotation import euler_parameters

ITERATIONS = 200
#: Misses below this part of the mechanism's size are rounding.
EXACT = 1e-11
#: The largest turn of a single correction (rad), and the largest shift as a part of the mechanism's size.
TURN, SHIFT = 0.7, 1.0
#: After so many iterations in which the misses did not fall by this part of them, they will not any more.
PATIENCE, FALL = 20, 1e-6
#: The largest misfit that rounded numbers explain, as a part of the mechanism's size, whatever the tolerance.
MISFIT = 1e-3
#: Bodies that miss by a part ε of the mechanism's size turn equations that repeat others by about ε. Pivots, squares of
#: such angles, say nothing below the square of so many times ε; and the largest that is taken for nothing, lest
#: equations be left out that tell something.
TURNED, MOST = 20.0, 1e-4


@dataclass(frozen=True, eq=False)
class Assembled:
    """A state in which the constraints hold, as far as they can: `miss` is by how much they do not, in metres."""

    q: Floats
    angles: Floats
    miss: float
    pivots: Floats
    iterations: int


def start_state(equations: Equations) -> Floats:
    """The bodies as drawn."""
    return np.concatenate([equations.start_p, euler_parameters(equations.start_r.transpose(1, 2, 0)).T], axis=1)


def rank_tolerance(part: Floats) -> Floats:
    """The part of a row's own size below which its pivot is lost, where bodies miss by a part of the mechanism's size.

    A miss that rounded numbers do not explain tells nothing about the rank.
    """
    turned = np.clip((TURNED * np.minimum(part, MISFIT)) ** 2, RANK_TOLERANCE, MOST)
    return np.asarray(np.where(part <= MISFIT, turned, RANK_TOLERANCE))


def settle(
    programs: Programs, q: Floats, angles: Floats | None, t: float, *, leave_out_turned: bool = False
) -> Assembled:
    """Damped Newton from a state: least changes of q, each accepted only if the misses become smaller.

    With `leave_out_turned`, equations that the miss alone makes independent are left out as long as that leads on:
    corrections by them go far.
    """
    e = programs.layout.equations
    turns = counted_at_start(e, q, t) if angles is None else angles
    slow = np.minimum(1.0, 1.0 / e.units[:, :1])  # what gears make fast may go far
    recount = angles is None and bool(e.description.mimics)
    at = np.array([t])
    rest = np.zeros((e.nb, 6))
    _, jacobian, phi, _, turns = programs.evaluate(q, turns, at, rest)
    norms = row_norms(programs, jacobian)
    miss = float(np.max(np.abs(phi / norms), initial=0.0))
    merit = float(np.sum((phi / norms) ** 2))
    damping, done, idle = 0.0, 0, 0
    tolerance = programs.tolerance
    while done < ITERATIONS and idle < PATIENCE:
        done += 1
        idle += 1
        programs.tolerance = float(rank_tolerance(np.array(miss / e.size))) if leave_out_turned else tolerance
        fewer = programs.tolerance > tolerance
        _, delta, _, _ = programs.correct(q, turns, at, np.array([damping]))
        turn = float(np.max(np.abs(delta[:, 3:]) * slow, initial=0.0))
        shift = float(np.max(np.abs(delta[:, :3]) * slow, initial=0.0)) / e.size
        short = min(1.0, TURN / max(turn, 1e-300), SHIFT / max(shift, 1e-300))
        ahead = np.ascontiguousarray(moved(q.T, short * delta.T).T)
        before = counted_at_start(e, ahead, t) if recount else turns
        _, _, phi, _, turns_ahead = programs.evaluate(ahead, before, at, rest)
        wanted = float(np.sum((phi / norms) ** 2))
        tiny = max(turn, shift) < 1e-13
        if wanted < (1.0 - FALL) * merit:
            idle = 0
        if wanted < merit or (tiny and wanted <= 4.0 * merit):
            q, turns, merit = ahead, turns_ahead, wanted
            miss = float(np.max(np.abs(phi / norms), initial=0.0))
            damping = 0.0 if damping < 1e-9 else 0.1 * damping
            if max(turn, shift) < 1e-11 and damping == 0.0:
                if not fewer:
                    break
                leave_out_turned = False
        elif fewer:
            leave_out_turned = False
        else:
            if miss <= EXACT * e.size:
                break
            damping = max(1e-4, 10.0 * damping)
            if damping > 1e8:
                break
    programs.tolerance = tolerance
    pivots = programs.correct(q, turns, at, np.zeros(1))[3]
    return Assembled(q, turns, miss, pivots, done)


def row_norms(programs: Programs, jacobian: Floats) -> Floats:
    """How fast each equation changes with the bodies' shifts and turns: divides Φ into metres.

    An equation that nothing changes at a state (axes at 90° that should be parallel) is a length as it is, or an angle
    or sine times the mechanism's size.
    """
    layout = programs.layout
    rows, bodies = layout.entries
    parts = layout.parts(jacobian).copy()
    parts[:, 3:] /= layout.equations.sizes[bodies, None]
    squares = np.bincount(rows, np.sum(parts**2, axis=1), minlength=layout.equations.count)
    e = layout.equations
    return np.where(squares > 0.0, np.sqrt(squares), 1.0 / e.arms(e.size))


def misses(programs: Programs, state: Assembled, t: float) -> dict[Constraint, float]:
    """By how much each element misses, in metres, the worst first."""
    e = programs.layout.equations
    _, jacobian, phi, _, _ = programs.evaluate(state.q, state.angles, np.array([t]), np.zeros((e.nb, 6)))
    sizes = np.abs(phi / row_norms(programs, jacobian))
    worst = {c: float(np.max(sizes[e.first[k] : e.first[k + 1]])) for k, c in enumerate(e.constraints)}
    return dict(sorted(worst.items(), key=lambda item: -item[1]))


def wrong_way(equations: Equations, q: Floats) -> dict[str, float]:
    """The joints whose equations hold with an axis turned round, and how far their axes are from right: 2."""
    d, found = equations.description, {}
    for j in range(d.nj):
        kind = KINDS[d.kind_of(j).name]
        if kind.nv == 6:
            continue
        r, _ = between(*joint_frames(d, q, j))
        gap = float(np.max(np.abs(kind.gap(r, np.zeros(3))), initial=0.0))  # of the axes alone
        if gap > 1.0:  # two, for opposite axes
            found[d.joint_names[j]] = gap
    return found
