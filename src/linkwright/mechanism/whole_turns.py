"""Where the whole turns of joint angles come from, when only the poses of bodies are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.mechanism.description import Description
from linkwright.mechanism.known_angles import driven_coordinates, gear_order, initial_coordinates

TURN = 2.0 * np.pi
#: Values (T, n) near which an angle is, by joint and index; NaN where nothing says it.
References = dict[tuple[int, int], Floats]


def angle_references(
    d: Description,
    parameters: Mapping[str, Any],
    gears: Floats,
    time: Floats,
    measured: Callable[[int, Floats | None], Floats],
) -> References:
    """The references of the angles of n cases at T times.

    They are the laws of drivers at every time, initial values at the first one, and through gears what the other joint
    says: an angle, or a shift, which has no turns to be lost. Where nothing states either joint of a gear, the leader
    begins within half a turn, as it does in assembly (`counted_at_start`).

    `parameters` are numbers or (n,), `gears` (n, gears, 2) ratios and offsets; `measured` gives the first coordinate
    (T, n) of a joint near a reference.
    """
    shape = len(time), len(gears)
    references: References = {}
    with np.errstate(all="ignore"):  # what is not finite is no reference
        for key, value in initial_coordinates(d, parameters).items():
            references[key] = np.full(shape, np.nan)
            references[key][:1] = value
        for key, law in driven_coordinates(d, {**parameters, "TIME": time[:, None]}).items():
            references[key] = np.array(np.broadcast_to(law, shape), dtype=np.float64)
        known = {j for j, index in references if index == 0} | _by_shift(d)
        for k in gear_order(d, known):
            follower, leader = d.mimics[k].follower, d.mimics[k].leader
            ratio, offset = gears[:, k, 0], gears[:, k, 1]
            if follower in known and leader not in known and (ratio != 0.0).all():
                references[leader, 0] = (measured(follower, references.get((follower, 0))) - offset) / ratio
            elif follower not in known:
                references[follower, 0] = ratio * measured(leader, references.get((leader, 0))) + offset
            known |= {follower, leader}
    return references


def near(angle: Floats, reference: Floats) -> Floats:
    """The angle of those that differ by whole turns that is nearest to a reference; itself where that is not finite."""
    with np.errstate(invalid="ignore"):
        turns = np.round((reference - angle) / TURN)
    return np.asarray(angle + TURN * np.where(np.isfinite(turns), turns, 0.0))


def _by_shift(d: Description) -> set[int]:
    """The geared joints whose coordinate a shift tells."""
    geared = {j for m in d.mimics for j in (m.follower, m.leader)}
    return {j for j in geared if 0 not in d.kind_of(j).angles or (d.kind_of(j).name == "screw" and d.pitch[j])}
