"""The quantities that outputs name, as `pen.x`, `block.ax` or `hinge.rate`: found in a mechanism, or told apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.description import Description
from linkwright.mechanism.quantities import COORDINATES, POSITIONS, VELOCITIES, Quantity, rate_names

ACCELERATIONS = ("ax", "ay", "az", "alphax", "alphay", "alphaz")
PARTS = (*POSITIONS, *VELOCITIES, *ACCELERATIONS)
_DISTANCE = re.compile(r"(distance(?:_rate|_acceleration)?)\((.+)\)")


@dataclass(frozen=True)
class Leaf:
    """What is measured of the mechanism at a time; with `again`, how fast that rate changes."""

    name: str
    quantity: Quantity
    again: bool = False


def leaf(d: Description, name: str) -> Leaf:
    """A quantity by its name; an unknown one is an error with suggestions."""
    text = name.replace(" ", "")
    met = _DISTANCE.fullmatch(text)
    first, comma, second = met[2].rpartition(",") if met else ("", "", "")
    if met and comma:
        ends = tuple(_spelled(d, x.strip("'\"")) for x in (first, second))
        for end in ends:
            _check_place(d, end)
        word = met.group(1)
        return Leaf(name, Quantity("distance", ends, 0, word != "distance"), word.endswith("acceleration"))
    owner, dot, part = text.rpartition(".")
    if not dot:
        raise NameNotFound("parameter or quantity", name, [*d.parameters, *known(d)])
    owner, part = _spelled(d, owner), part.lower()
    if d.joint_names.find(owner) is not None and not (part in PARTS and _is_place(d, owner)):
        return _of_joint(d, name, owner, part)
    _check_place(d, owner, joints=True)
    if part in POSITIONS:
        return Leaf(name, Quantity("place", (owner,), POSITIONS.index(part)))
    if part in VELOCITIES:
        return Leaf(name, Quantity("place", (owner,), VELOCITIES.index(part), True))
    if part in ACCELERATIONS:
        return Leaf(name, Quantity("place", (owner,), ACCELERATIONS.index(part), True), True)
    raise NameNotFound(f"quantity of {owner!r}", part, list(PARTS))


def _of_joint(d: Description, name: str, owner: str, part: str) -> Leaf:
    kind = d.kind_of(d.joint_names.position("joint", owner)).name
    coordinates, rates = COORDINATES.get(kind, ()), rate_names(kind)
    second = ("acceleration",) if len(rates) == 1 else tuple(f"{x}_acceleration" for x in coordinates or rates)
    if part in coordinates:
        return Leaf(name, Quantity("joint", (owner,), coordinates.index(part)))
    if part in rates:
        return Leaf(name, Quantity("joint", (owner,), rates.index(part), True))
    if part in second:
        return Leaf(name, Quantity("joint", (owner,), second.index(part), True), True)
    if not (coordinates or rates):
        raise ModelError(f"joint {owner!r} is {kind} and has no coordinate to name; name a triad on it", element=name)
    raise NameNotFound(f"quantity of joint {owner!r}", part, [*coordinates, *rates, *second])


def _spelled(d: Description, name: str) -> str:
    """A name as the mechanism has it, whatever its case where only one fits."""
    every = [*d.body_names[:2000], *d.frames.names[:2000], *d.joint_names[:2000], d.ground_name]
    fits = {x for x in every if x.casefold() == name.casefold()}
    return name if name in fits or len(fits) != 1 else fits.pop()


def _is_place(d: Description, name: str) -> bool:
    return d.body_names.find(name) is not None or d.frames.names.find(name) is not None or name == d.ground_name


def _check_place(d: Description, name: str, *, joints: bool = False) -> None:
    if not _is_place(d, name):
        acting = {x.name for group in (d.drivers, d.elements, d.ties) for x in group}
        if joints and name in acting:
            text = f"{name!r} is not a body, a triad or a joint; its force has no derivatives here"
            raise ModelError(f"{text}, write it as an expression of distances, angles and rates", element=name)
        more = d.joint_names[:1000] if joints else ()
        what = "body, triad or joint" if joints else "body or triad"
        raise NameNotFound(what, name, [*d.body_names[:1000], *d.frames.names[:1000], *more])


def known(d: Description) -> list[str]:
    """Some names that can be asked for."""
    return [f"{name}.{part}" for name in (*d.body_names[:100], *d.frames.names[:100]) for part in POSITIONS]
