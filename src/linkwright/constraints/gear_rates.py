"""How fast bodies move against each other through gears and screws: the units in which their twists are compared.

A gear of ratio 10⁵ makes its follower 10⁵ times as fast as its leader, and a driver of either is then the same equation
as the gear's but for 10⁻⁵. In units of what each body does when the others move by one, it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.description import Description
from linkwright.model.elements import GearPair
from linkwright.model.gear_pairs import has_gear_pairs, pair_radii
from linkwright.model.topology import Topology, span

#: Gears and screws whose rates differ by less need no units of their own.
ALIKE = 100.0


def twist_units(d: Description, sizes: Floats) -> Floats:
    """(nb, 6): by what each body's twist is measured, linear first; a turn by 1 / its size, but for gears and screws.

    Only bodies that hang on a joint of their own have other units: those in loops move as the loop does.
    """
    units = np.ones((d.nb, 6))
    units[:, 3:] /= sizes[:, None]
    screws = np.flatnonzero([d.kind_of(j).name == "screw" and d.pitch[j] != 0.0 for j in range(d.nj)]).tolist()
    if not d.mimics and not screws and not has_gear_pairs(d):
        return units
    hanging = _hanging(d, span(d))
    for j in screws:
        size = abs(float(d.pitch[j]))
        for body in hanging.get(j, ()):
            if not 1.0 / ALIKE <= size / sizes[body] <= ALIKE:
                units[body, 3:] = 1.0 / size
    for j, rate in joint_rates(d, sizes).items():
        units[hanging[j]] *= rate
    return units


def joint_rates(d: Description, sizes: Floats) -> dict[int, float]:
    """How fast gears make joints that are in no loop, where the others have 1; nothing where all rates are alike."""
    ratios = [(m.follower, m.leader, _ratio(d, sizes, m.follower, m.leader, m.ratio)) for m in d.mimics]
    ratios = [x for x in (*ratios, *_of_pairs(d, sizes)) if x[2] != 0.0]
    if all(1.0 / ALIKE <= ratio <= ALIKE for _, _, ratio in ratios):
        return {}
    hanging = _hanging(d, span(d))
    return {j: rate for j, rate in _rates(ratios, hanging).items() if j in hanging}


def _of_pairs(d: Description, sizes: Floats) -> Iterator[tuple[int, int, float]]:
    """The joints of the bodies that gear pairs are between, where each hangs on one of its own, and how much faster the
    second's body is."""
    if not has_gear_pairs(d):
        return
    topology = span(d)
    joint_of = dict(zip(topology.body.tolist(), topology.joint.tolist(), strict=True))
    for pair in d.point_constraints:
        if isinstance(pair, GearPair):
            first, second = (joint_of.get(d.frame_number(place)[0]) for place in pair.places)
            if first is not None and second is not None and first != second:
                r1, r2 = pair_radii(pair, lambda x: float(x.evaluate(d.parameters)))
                if r2:
                    slope = abs(math.tan(pair.helix_angle)) if pair.kind == "worm" else 1.0
                    yield second, first, _ratio(d, sizes, second, first, slope * r1 / r2)


def _ratio(d: Description, sizes: Floats, follower: int, leader: int, ratio: float) -> float:
    """How much faster a follower's body is, shifts against turns by the bodies' sizes."""
    first, second = (float(sizes[d.child[j]]) if d.kind_of(j).angles else 1.0 for j in (follower, leader))
    return abs(ratio) * first / second


def _hanging(d: Description, topology: Topology) -> dict[int, list[int]]:
    """For each joint that is in no loop, the bodies that move against all others as it moves."""
    below: dict[int, set[int]] = {}
    bodies, parents = topology.body.tolist(), topology.parent.tolist()
    for i in reversed(range(len(bodies))):
        subtree = below.setdefault(i, set())
        subtree.add(int(bodies[i]))
        if parents[i] >= 0:
            below.setdefault(parents[i], set()).update(subtree)
    crossing = [(int(d.parent[j]), int(d.child[j])) for j in topology.loops]
    return {
        int(j): sorted(below[i])
        for i, j in enumerate(topology.joint.tolist())
        if all((a in below[i]) == (b in below[i]) for a, b in crossing)
    }


def _rates(ratios: Sequence[tuple[int, int, float]], hanging: dict[int, list[int]]) -> dict[int, float]:
    """How fast joints are, by the gears between them: those in loops by 1, of others the first."""
    around: dict[int, list[tuple[int, float]]] = {}
    for follower, leader, ratio in ratios:
        around.setdefault(leader, []).append((follower, ratio))
        around.setdefault(follower, []).append((leader, 1.0 / ratio))
    rates: dict[int, float] = {}
    for first in sorted(around, key=lambda j: j in hanging):
        if first in rates:
            continue
        rates[first] = 1.0
        queue = [first]
        while queue:
            j = queue.pop()
            for other, ratio in around[j]:
                if other not in rates:
                    rates[other] = rates[j] * ratio if other in hanging else 1.0
                    queue.append(other)
    return rates
