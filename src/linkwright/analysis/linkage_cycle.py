"""The whole cycle of a linkage with one degree of freedom, wherever its driver leads: all positions that it reaches
from where it is drawn, also through toggle positions of its input.

The curve of the positions is followed by its tangent (a predictor), and every step is led back to the constraints by
Newton's method in the plane across the tangent (a corrector), until it comes back to its start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwright.analysis.linkage_motion import LinkageMotion
from linkwright.base.arrays import Floats
from linkwright.constraints.program_layout import shift_between
from linkwright.results.solution import Solution

#: A step turns no body by more than this (rad), and shifts none by more than this part of the mechanism's size.
STEP = 0.05
#: Steps at most; a motion that does not come back in so many ends there.
STEPS = 4000
#: How far the tangents of both ends of a step may differ (cosine), and the shortest step by the longest.
ALIGNED, SHORTEST = 0.98, 1e-4


def follow(start: LinkageMotion) -> tuple[Solution, bool]:
    """The motion from the first sample of another one through the whole cycle, and whether it comes back.

    The time of this motion is the length of the way.
    """
    e, units = start.equations, start.equations.units
    q, y = start.samples.q[0], start.motion[0]
    angles, t = start.angles[:1], start.samples.time[:1]
    states, twists, ways = [q], [y], [0.0]
    closed, factor = False, 1.0
    while len(states) < STEPS and factor > SHORTEST and not closed:
        fastest = max(float(np.abs(y[:, 3:]).max()), float(np.abs(y[:, :3]).max()) / e.size)
        length = factor * STEP / fastest
        if len(states) > 3 and _passes(states[0], q, y, length, units):
            way = shift_between(q.T, states[0].T).T
            following, y, closed = states[0], twists[0], True
            length = float(np.linalg.norm(way / units))
        else:
            following, converged = start.corrected(q, length * y, angles, t)
            there = start.twists(following[None], angles, t)[0]
            cosine = float(np.sum(there * y / units**2))
            if not (converged and abs(cosine) > ALIGNED):
                factor *= 0.5
                continue
            y = there if cosine > 0.0 else -there
        factor = min(1.0, 2.0 * factor)
        q = following
        angles = start.programs.evaluate(q[None], angles, t).angles
        states.append(q)
        twists.append(y)
        ways.append(ways[-1] + length)
    return _solution(start, states, twists, ways), closed


def _passes(first: Floats, q: Floats, y: Floats, length: float, units: Floats) -> bool:
    """Whether the next step passes the first state."""
    way = shift_between(q.T, first.T).T / units
    along = float(np.sum(way * y / units))
    return 0.0 < along <= length and float(np.linalg.norm(way - along * y / units)) < 0.3 * length


def _solution(start: LinkageMotion, states: list[Floats], twists: list[Floats], ways: list[float]) -> Solution:
    q, v = np.array(states), np.array(twists)
    orientation = q[..., 3:].copy()
    signs = np.where(np.sum(orientation[1:] * orientation[:-1], axis=-1) < 0.0, -1.0, 1.0)
    orientation[1:] *= np.cumprod(signs, axis=0)[..., None]
    still = np.zeros((*v.shape[:-1], 3))
    return Solution.of(
        replace(start.description, drivers=()),
        ways,
        q[..., :3],
        orientation,
        v[..., :3],
        v[..., 3:],
        still,
        still,
        status=start.solution.status,
        counters=start.solution.counters,
        iterations=np.zeros(len(ways), int),
    )
