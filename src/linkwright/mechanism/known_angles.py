"""Which joint coordinates drivers and initial values state, and in which order gears pass whole turns on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from linkwright.mechanism.description import Description
from linkwright.mechanism.expression import numeric_values
from linkwright.mechanism.gear_trains import of_first_leader

#: Values of joint coordinates, by the joint's number and the coordinate's index.
Values = dict[tuple[int, int], Any]


def initial_coordinates(d: Description, parameters: Mapping[str, Any]) -> Values:
    """The initial values of joint coordinates."""
    places = [x for x in d.initial if x.quantity.kind == "joint" and not x.quantity.rate]
    return {
        (d.joint_names.position("joint", x.quantity.of[0]), x.quantity.index): numeric_values(x.value, parameters)
        for x in places
    }


def driven_coordinates(d: Description, names: Mapping[str, Any]) -> Values:
    """The values of the laws of drivers of joint coordinates; `names` has the parameters and TIME."""
    values = {}
    for driver in d.drivers:
        j = d.joint_names.find(driver.target) if driver.kind == "joint" else None
        if j is not None:
            values[j, driver.index] = numeric_values(driver.law, names)
    return values


def gear_order(d: Description, known: Iterable[int]) -> list[int]:
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
