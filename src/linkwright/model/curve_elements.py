"""Plane curves on bodies, points that stay on them, and curves that touch, as descriptions.

What slides along a curve is a massless body on a prismatic joint along the normal of the curve's plane: its shift is
how far along the curve the point is. `constraints/curve_forms.py` has the equations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from linkwright.errors import ModelError
from linkwright.model.expression import Expression, Name

#: The parameter of a curve in its expressions; no PARAMETER has a blank in its name.
U = Name("curve u")

CurveKind = Literal["expressions", "points", "circle", "line"]


@dataclass(frozen=True)
class Curve:
    """A curve in the f–g plane of the frame `place`: x(u) along f and y(u) along g, for u from `lower` to `upper`.

    A closed one repeats after that. `kind` is how it was given: `points` are those of a spline, `size` is the radius of
    a circle (u is the angle) or the length of a line along f (u is the distance from its middle). `speed` is |dc/du|
    where that is the same everywhere.
    """

    name: str
    place: str
    x: Expression
    y: Expression
    lower: Expression
    upper: Expression
    closed: bool
    kind: CurveKind = "expressions"
    points: tuple[tuple[float, float], ...] = ()
    size: Expression | None = None
    speed: Expression | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All that may depend on parameters."""
        return self.x, self.y, self.lower, self.upper


@dataclass(frozen=True)
class PointOnCurve:
    """The origin of the frame `point` stays on a curve, seen along the normal of the curve's plane.

    `along` is the massless body that slides along the normal, and its joint; where its shift is s, u is start + rate·s.
    With `tangent`, the frame's f axis stays tangent to the curve. `contact` names the `CurveOnCurve` that this is part
    of.
    """

    name: str
    curve: Curve
    along: str
    point: str
    start: Expression | None = None  # u as drawn; None: that of the nearest point of the curve
    rate: Expression | None = None
    tangent: bool = False
    contact: str = ""

    @property
    def label(self) -> str:
        """What messages call it; the two of a contact have one."""
        return f"curve on curve {self.contact!r}" if self.contact else f"point on curve {self.name!r}"

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.along, self.point

    @property
    def parts(self) -> tuple[str, ...]:
        """The massless bodies, and their joints, that it brings along."""
        return (self.along, self.point) if self.contact else (self.along,)


@dataclass(frozen=True)
class CurveOnCurve:
    """Two curves that touch: both pass the origin of the massless body `point`, tangent to its f axis.

    It is made of the two `PointOnCurve` named `first` and `second`, and with `rolling` of a point on plane.
    """

    name: str
    first: str
    second: str
    point: str
    along: tuple[str, str]
    rolling: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The massless bodies, and their joints, that it brings along."""
        return self.point, *self.along


def parts_of_curves(constraints: Iterable[object]) -> tuple[str, ...]:
    """The names of the massless bodies, and of their joints, that constraints on curves bring along."""
    return tuple(dict.fromkeys(name for x in constraints if isinstance(x, PointOnCurve) for name in x.parts))


def check_lockable(joints: Iterable[str], constraints: Iterable[object]) -> None:
    """Refuse to lock a joint that a curve has brought along."""
    for name in set(joints) & set(parts_of_curves(constraints)):
        raise ModelError(f"joint {name!r} is part of a curve and cannot be locked; lock another", element=name)


def check_no_curves(constraints: Iterable[object]) -> None:
    """Refuse parameters as inputs of programs of dynamics, where massless bodies of curves leave them none."""
    for x in constraints:
        if isinstance(x, PointOnCurve):
            text = f"{x.label} brings massless bodies along, and parameters cannot be free in dynamics there"
            raise ModelError(f"{text}; compare cases by lw.sweep, or free them in a kinematic analysis", element=x.name)
