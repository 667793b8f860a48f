"""Ties and drivers within bodies made one: left out with a warning, or refused where they do not hold."""

from __future__ import annotations

from dataclasses import replace
from warnings import warn

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import Driver, PointOnLine, Rod, Tie
from linkwright.mechanism.system import System

#: A tie holds within the assembly tolerance, and within this part of its size.
PART = 1e-3


def without_held(d: Description) -> Description:
    """The mechanism without ties and drivers whose frames are all on one body, or on ground."""
    ties = tuple(tie for tie in d.ties if not _is_held(d, tie))
    drivers = tuple(driver for driver in d.drivers if not _stands_still(d, driver))
    if len(ties) == len(d.ties) and len(drivers) == len(d.drivers):
        return d
    return replace(d, ties=ties, drivers=drivers)


def _is_held(d: Description, tie: Tie) -> bool:
    """Whether both frames of a tie are on one body; an error if it does not hold there."""
    if isinstance(tie, Rod):
        what, ends = "rod", (tie.first, tie.second)
    elif isinstance(tie, PointOnLine):
        what, ends = "point-on-line", (tie.line, tie.point)
    else:
        what, ends = "point-on-plane", (tie.plane, tie.point)
    (one, r, p), (other, _, to) = (_frame(d, end) for end in ends)
    if one != other:
        return False
    between = r.T @ (to - p)
    size = float(np.linalg.norm(between))
    if isinstance(tie, Rod):
        length = float(tie.length.evaluate(d.parameters))
        miss, size = abs(size - length), max(size, length)
    else:
        miss = float(np.linalg.norm(between[:2])) if isinstance(tie, PointOnLine) else abs(float(between[2]))
        size = max(size, float(np.max(np.abs([p, to]))))
    tolerance = (d.system or System()).assembly_tolerance
    if not miss <= (PART * size if tolerance is None else min(tolerance, PART * size)):
        text = (
            f"{what} {tie.name!r} is between {ends[0]!r} and {ends[1]!r}, which no longer move against each other, and "
            f"has a gap of {miss:.3g} m; remove it, or hold the joints where it closes"
        )
        raise ModelError(text, element=tie.name)
    _tell(f"{what} {tie.name!r} is left out: {ends[0]!r} and {ends[1]!r} no longer move against each other")
    return True


def _stands_still(d: Description, driver: Driver) -> bool:
    """Whether what a driver drives cannot move any more; drivers of joints go with their joints."""
    if driver.kind == "joint":
        return False
    if driver.kind == "absolute":
        place = driver.target.rsplit(".", 1)[0]
        if _frame(d, place)[0] != GROUND:
            return False
        _tell(f"driver {driver.name!r} is left out: {place!r} no longer moves")
        return True
    ends = (driver.target, driver.other or "")
    if _frame(d, ends[0])[0] != _frame(d, ends[1])[0]:
        return False
    _tell(f"driver {driver.name!r} is left out: {ends[0]!r} and {ends[1]!r} no longer move against each other")
    return True


def _frame(d: Description, name: str) -> tuple[int, Floats, Floats]:
    """The body, axes and origin of a body's own frame, of a further one, or of ground."""
    k = d.frames.names.find(name)
    if k is not None:
        return int(d.frames.body[k]), d.frames.r[k], d.frames.p[k]
    own = GROUND if name == d.ground_name else d.body_names.position("body or triad", name)
    return own, np.eye(3), np.zeros(3)


def _tell(text: str) -> None:
    warn(text, LinkwrightWarning, stacklevel=6)
