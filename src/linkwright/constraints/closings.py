"""What holds a spanning tree together besides its joints: loops' joints, ties, couplings and drivers, in this order.

Each has the equations of its form, in the form's order and scaling; these are the rows of G and the multipliers λ of
M a + h = τ + Gᵀλ. Redundant equations count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.constraints import forms
from linkwright.constraints.equations import Equations, Group
from linkwright.constraints.forms import Form
from linkwright.errors import ModelError
from linkwright.mechanism.description import Description
from linkwright.mechanism.elements import Driver, Mimic, PointOnLine, Rod
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.topology import Topology


@dataclass(frozen=True, eq=False)
class Closing:
    """One of them: its form, and the joints or the frames that the form is about."""

    name: str
    group: Group
    form: Form
    joints: tuple[int, ...] = ()  # of a gear the follower and the leader
    places: tuple[str, ...] = ()
    length: Expression | None = None  # of a rod
    gear: tuple[float, float] = (1.0, 0.0)  # ratio, offset
    law: Expression | None = None
    index: int = 0  # of the coordinate that a driver drives

    @property
    def size(self) -> int:
        """The number of its equations."""
        return self.form.size

    def __str__(self) -> str:
        return f"{self.group} {self.name!r}"


def is_closed(d: Description, topology: Topology) -> bool:
    """Whether anything but the tree's joints holds the bodies."""
    loops = set(topology.loops)
    gears = any({m.follower, m.leader} & loops for m in d.mimics)
    return bool(d.ties or d.drivers or gears or any(d.kind_of(j).nv < 6 for j in loops))


def closings(d: Description, topology: Topology) -> tuple[Closing, ...]:
    """All of a mechanism's, in order."""
    return tuple(_all(d, topology))


def _all(d: Description, topology: Topology) -> Iterator[Closing]:
    for j in topology.loops:
        kind = d.kind_of(j)
        if kind.nv < 6:
            yield Closing(d.joint_names[j], "joint", forms.joint(kind.name), (j,))
    for tie in d.ties:
        if isinstance(tie, Rod):
            yield Closing(tie.name, "tie", forms.ROD, places=(tie.first, tie.second), length=tie.length)
        elif isinstance(tie, PointOnLine):
            yield Closing(tie.name, "tie", forms.POINT_ON_LINE, places=(tie.line, tie.point))
        else:
            yield Closing(tie.name, "tie", forms.POINT_ON_PLANE, places=(tie.plane, tie.point))
    loops = set(topology.loops)
    for m in d.mimics:
        if {m.follower, m.leader} & loops:
            yield _gear(d, m, loops)
    for driver in d.drivers:
        yield _driver(d, driver)


def _gear(d: Description, m: Mimic, loops: set[int]) -> Closing:
    name = m.name or d.joint_names[m.follower]
    form = forms.gear(d.kind_of(m.follower).name, d.kind_of(m.leader).name)
    if {m.follower, m.leader} <= loops and form.turns == 2 and not (_whole(m.ratio) or _whole(1.0 / m.ratio)):
        joint = d.joint_names[m.follower]
        text = f"gear {name!r} joins two joints that close loops, whose turns nothing counts, by the ratio {m.ratio:g}"
        raise ModelError(f"{text}; cut another joint than {joint!r} in its loop", element=name)
    return Closing(name, "gear", form, (m.follower, m.leader), gear=(m.ratio, m.offset))


def _whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) < 1e-12 * abs(ratio)


def _driver(d: Description, driver: Driver) -> Closing:
    if driver.kind == "joint":
        j = d.joint_names.position("joint", driver.target)
        form = forms.coordinate(d.kind_of(j).name, driver.index)
        return Closing(driver.name, "driver", form, (j,), law=driver.law, index=driver.index)
    places: tuple[str, ...] = (driver.target, driver.other or "")
    if driver.kind == "absolute":
        place, axis = driver.target.rsplit(".", 1)
        form, places = forms.absolute("xyz".index(axis)), (place,)
    elif driver.kind == "distance":
        form = forms.DISTANCE
    else:
        form = forms.angle(*driver.axes, about_h=Equations(d).about_h(driver))
    return Closing(driver.name, "driver", form, places=places, law=driver.law)
