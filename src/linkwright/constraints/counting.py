"""Angles that are counted through all their turns, as they stand where the bodies are drawn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.equations import Equations, joint_frames
from linkwright.constraints.forms import between, near
from linkwright.model.description import Description
from linkwright.model.joint_kinds import Measure
from linkwright.model.topology import driven_coordinates, gear_order, initial_coordinates


def counted_angles(e: Equations, mechanisms: Iterable[Description], q: Floats, times: Iterable[float]) -> Floats:
    """(n, angles): the counted angles at states (n, nb, 7) of mechanisms that have these equations, at their times."""
    if not int(e.first_angle[-1]):
        return np.zeros((len(q), 1))
    rows = zip(mechanisms, q, times, strict=False)  # the mechanisms and times may be without end
    return np.stack([counted_at_start(e, d, state, t) for d, state, t in rows])


def counted_at_start(e: Equations, d: Description, q: Floats, t: float) -> Floats:
    """The counted angles of screws and gears at a drawn state of a mechanism that has the numbers of `d`.

    Whole turns come from the law of a driver on the joint, from its initial value, from a screw's shift, or through a
    gear from its other joint; where nothing tells them, the angle is the smallest.
    """
    angles = np.zeros(int(e.first_angle[-1]))
    stated = {**initial_coordinates(d, d.parameters), **driven_coordinates(d, {**d.parameters, "TIME": t})}
    known = {j: float(value) for (j, index), value in stated.items() if index == 0}

    def measure(j: int) -> tuple[Measure, float]:
        """The first coordinate of a joint, and its shift along h."""
        r, p = between(*joint_frames(d, q, j))
        return d.kind_of(j).measures(r, p)[0], float(p[2])

    def coordinate(j: int, hint: float | None) -> float:
        value, shift = measure(j)
        if value.shift is not None:
            return float(value.shift)
        if j in known:
            hint = known[j]
        elif d.kind_of(j).name == "screw":
            hint = shift / float(d.pitch[j])
        return float(near(value, 0.0 if hint is None else hint))

    places: list[int] = []  # of the angles of gears, in their order
    for k, c in enumerate(e.constraints):
        at = int(e.first_angle[k])
        if c.group == "gear":
            places.append(at)
        elif c.group == "joint" and c.form.turns:
            angles[at] = coordinate(c.source.joints[0], None)
    for k in gear_order(d, known):
        m, at = d.mimics[k], places[k]
        if m.follower in known and m.leader not in known and m.ratio != 0.0:
            follower = coordinate(m.follower, None)
            leader = coordinate(m.leader, (follower - m.offset) / m.ratio)
        else:
            leader = coordinate(m.leader, None)
            follower = coordinate(m.follower, m.ratio * leader + m.offset)
        known.setdefault(m.leader, leader)
        known.setdefault(m.follower, follower)
        turning = [x for x, j in ((follower, m.follower), (leader, m.leader)) if measure(j)[0].shift is None]
        angles[at : at + len(turning)] = turning
    return angles
