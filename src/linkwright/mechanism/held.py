"""Rods, point constraints and drivers within bodies made one: left out with a warning; open ones are refused."""

from __future__ import annotations

from dataclasses import replace
from warnings import warn

import numpy as np

from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import Driver, PointOnLine, Rod, Tie
from linkwright.mechanism.system import System

#: A constraint holds within the assembly tolerance, and within this part of its size.
PART = 1e-3


def without_held(d: Description) -> Description:
    """The mechanism without rods, point constraints and drivers whose frames are all on one body, or on ground."""
    ties = tuple(tie for tie in d.ties if not _is_held(d, tie))
    drivers = tuple(driver for driver in d.drivers if not _stands_still(d, driver))
    if len(ties) == len(d.ties) and len(drivers) == len(d.drivers):
        return d
    return replace(d, ties=ties, drivers=drivers)


def _is_held(d: Description, tie: Tie) -> bool:
    """Whether both frames of a rod or point constraint are on one body; an error if it is open there."""
    ends = tie.places
    (one, r, p), (other, _, to) = (d.frame(end) for end in ends)
    if one != other:
        return False
    between = r.T @ (to - p)
    size = float(np.linalg.norm(between))
    if isinstance(tie, Rod):
        what, length = "rod", float(tie.length.evaluate(d.parameters))
        gap, size = abs(size - length), max(size, length)
    else:
        size = max(size, float(np.max(np.abs([p, to]))))
        if isinstance(tie, PointOnLine):
            what, gap = "point-on-line", float(np.linalg.norm(between[:2]))
        else:
            what, gap = "point-on-plane", abs(float(between[2]))
    tolerance = (d.system or System()).assembly_tolerance
    if not gap <= (PART * size if tolerance is None else min(tolerance, PART * size)):
        text = (
            f"{what} {tie.name!r} is between {ends[0]!r} and {ends[1]!r}, which no longer move against each other, and "
            f"has a gap of {gap:.3g} m; remove it, or hold the joints where it closes"
        )
        raise ModelError(text, element=tie.name)
    _warn(f"{what} {tie.name!r} is left out: {ends[0]!r} and {ends[1]!r} no longer move against each other")
    return True


def _stands_still(d: Description, driver: Driver) -> bool:
    """Whether what a driver drives cannot move any more; drivers of joints go with their joints."""
    bodies = {d.frame(place)[0] for place in driver.places}
    alone = driver.kind == "absolute"
    if len(bodies) != 1 or (alone and bodies != {GROUND}):
        return False
    how = "no longer moves" if alone else "no longer move against each other"
    _warn(f"driver {driver.name!r} is left out: {' and '.join(map(repr, driver.places))} {how}")
    return True


def _warn(text: str) -> None:
    warn(text, LinkwrightWarning, stacklevel=6)
