"""Angles that are counted through all their turns, as they stand where the bodies are drawn."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from linkwright.base.types import Floats
from linkwright.constraints.equations import Equations, joint_frames
from linkwright.constraints.forms import between, near
from linkwright.mechanism.description import Description
from linkwright.mechanism.gear_trains import of_first_leader
from linkwright.mechanism.kinds import Measure


def counted_at_start(e: Equations, q: Floats, t: float) -> Floats:
    """The counted angles of screws and gears at a drawn state.

    Whole turns come from the law of a driver on the joint, from its initial value, from a screw's shift, or through a
    gear from its other joint; where nothing tells them, the angle is the smallest.
    """
    found = np.zeros(max(int(e.first_angle[-1]), 1))
    d = e.description
    known = {**_initial(d), **_driven(d, t)}

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
            found[at] = coordinate(d.joint_names.position("joint", c.name), None)
    for k in _from_known(d, known):
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
        found[at : at + len(turning)] = turning
    return found


def _from_known(d: Description, known: Collection[int]) -> list[int]:
    """The gears by their numbers, each after another of a joint of its own: from joints whose turns are known, then
    from first leaders."""
    around: dict[int, list[int]] = {}
    for k, m in enumerate(d.mimics):
        for j in (m.follower, m.leader):
            around.setdefault(j, []).append(k)
    leaders, order = d.leaders, dict[int, None]()
    for first in (*known, *(of_first_leader(leaders, j)[0] for j in leaders)):
        queue = [first]
        for j in queue:
            for k in around.pop(j, ()):
                order[k] = None
                queue += [d.mimics[k].follower, d.mimics[k].leader]
    return list(order)


def _initial(d: Description) -> dict[int, float]:
    """What the initial conditions say of the first coordinates of joints."""
    joints = [x for x in d.initial if x.quantity.kind == "joint" and not x.quantity.rate and x.quantity.index == 0]
    return {d.joint_names.position("joint", x.quantity.of[0]): float(x.value.evaluate(d.parameters)) for x in joints}


def _driven(d: Description, t: float) -> dict[int, float]:
    """What the laws of drivers say of the first coordinates of joints at a time."""
    found = {}
    for driver in d.drivers:
        j = d.joint_names.find(driver.target) if driver.kind == "joint" and driver.index == 0 else None
        if j is not None:
            found[j] = float(driver.law.evaluate({**d.parameters, "TIME": t}))
    return found
