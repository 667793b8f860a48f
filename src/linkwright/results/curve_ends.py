"""The end of a motion in which a point runs off an open curve: nothing holds it there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwright.model.curve_elements import PointOnCurve
from linkwright.results.solution import Solution, States

#: How far, as a part of the mechanism's length, rounding may take a point beyond an end.
SLACK = 1e-9


def up_to_ends(solution: Solution) -> Solution:
    """The motion up to where the first point runs off its curve, and a status that says so; else as it is."""
    d, first, left = solution.description, len(solution), None
    for x in d.point_constraints:
        if not isinstance(x, PointOnCurve) or x.curve.closed or not len(solution):
            continue
        j = d.joint_names.position("joint", x.along)
        shift, slack = solution.joint(x.along)[:, 0], SLACK * d.length_scale
        beyond = np.flatnonzero((shift < d.lower[j] - slack) | (shift > d.upper[j] + slack))
        if len(beyond) and beyond[0] < first:
            first, left = int(beyond[0]), x
    if left is None:
        return solution
    s, t = solution.states, float(solution.time[first])
    name = left.contact or left.name
    status = replace(
        solution.status,
        ok=False,
        message=f"before t = {t:.6g} s {name!r} runs off the end of curve {left.curve.name!r}",
        reason="off the curve",
        time=float(solution.time[max(first - 1, 0)]),
        element=name,
        advice="make the curve longer, or end the motion before",
    )
    return Solution(
        d,
        solution.time[:first],
        {quantity: array[:first] for quantity, array in solution.arrays.items()},
        solution.iterations[:first],
        status,
        solution.counters,
        None if s is None else States(s.q[:first], s.v[:first], s.a[:first]),
        [x for x in solution.events if x.time < t],
    )
