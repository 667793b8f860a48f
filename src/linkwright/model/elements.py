"""Drivers, force elements and couplings, as descriptions: names, places and laws. No algorithms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from linkwright.model.expression import Expression, Name, as_expression
from linkwright.model.quantities import Quantity
from linkwright.model.quantities import friction as friction_law

Axis = Literal["f", "g", "h"]


@dataclass(frozen=True)
class Mimic:
    """Joint `follower` has the coordinate ratio·(leader's coordinate) + offset.

    A leader may be a follower itself, in a gear train (`gear_trains`). A gear without a name has its follower's.
    """

    follower: int
    leader: int
    ratio: float = 1.0
    offset: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class Driver:
    """A coordinate or distance prescribed as a function of TIME.

    `absolute`: `target` is "body.x", "body.y" or "body.z"; `joint`: `target` is a joint (coordinate `index`);
    `distance`: between the origins of the frames `target` and `other`; `angle`: from the axis `axes[0]` of the first
    to `axes[1]` of the second. Where their h axes stay parallel the angle is counted about h of the first, through any
    number of turns; elsewhere it lies between 0 and π, and both ends are singular.
    """

    name: str
    kind: Literal["absolute", "joint", "distance", "angle"]
    target: str
    law: Expression
    other: str | None = None
    index: int = 0
    axes: tuple[Axis, Axis] = ("f", "f")

    @property
    def places(self) -> tuple[str, ...]:
        """The bodies and frames that it names; a driver of a joint names none."""
        if self.kind == "absolute":
            return (self.target.rpartition(".")[0],)
        return () if self.kind == "joint" else (self.target, self.other or "")


@dataclass(frozen=True)
class Rod:
    """A massless rod: the distance between the origins of two frames is constant."""

    name: str
    first: str
    second: str
    length: Expression

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.first, self.second


@dataclass(frozen=True)
class PointOnLine:
    """The origin of the frame `point` stays on the h axis of the frame `line`."""

    name: str
    line: str
    point: str

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.line, self.point


@dataclass(frozen=True)
class PointOnPlane:
    """The origin of the frame `point` stays in the plane through `plane`'s origin, perpendicular to its h axis."""

    name: str
    plane: str
    point: str

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.plane, self.point


#: What holds bodies together besides joints: it has equations, and no coordinates of its own.
Tie = Rod | PointOnLine | PointOnPlane


@dataclass(frozen=True)
class JointForce:
    """A generalised force on coordinate `index` of a joint: a law of q, v, other quantities, parameters and TIME.

    Springs, dampers, friction, stops and actuators are such laws; `q` and `v` in it are the coordinate that it acts on
    and its rate. On a joint whose rates are not the derivatives of its coordinates (spherical, free), `index` counts
    rates and `q` has no meaning.
    """

    name: str
    joint: str
    law: Expression
    index: int = 0


@dataclass(frozen=True)
class PointForce:
    """A force along the line between two frames: a law of their distance `d`, its rate `dd`, quantities and TIME.

    Positive pushes the two frames apart.
    """

    name: str
    first: str
    second: str
    law: Expression


@dataclass(frozen=True)
class AppliedWrench:
    """A force and a torque on a body at a frame; six laws of quantities and TIME.

    They are in the frame's axes, in ground's, or (`axes="other"`) in those of the frame `axes_of`. With `reaction`, a
    frame on another body, that body gets the opposite force and torque, at the same point in space.
    """

    name: str
    frame: str
    laws: tuple[Expression, ...] = field(default_factory=tuple)
    axes: Literal["frame", "ground", "other"] = "frame"
    axes_of: str = ""
    reaction: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """The frames that it names."""
        return (self.frame, *(name for name in (self.axes_of, self.reaction) if name))


Element = JointForce | PointForce | AppliedWrench


@dataclass(frozen=True)
class Initial:
    """A quantity's value when motion begins: an expression of parameters."""

    quantity: Quantity
    value: Expression


def laws_of(element: Element) -> tuple[Expression, ...]:
    """The laws of a force element."""
    return element.laws if isinstance(element, AppliedWrench) else (element.law,)


def joint_losses(joint: str, rates: int, damping: float, friction: float) -> tuple[JointForce, ...]:
    """−damping · v − friction · tanh(v / FRICTION_SPEED) on each of a joint's rates, without parts that are zero."""
    v = Name("v")
    law: Expression | None = -(as_expression(damping) * v) if damping != 0.0 else None
    if friction != 0.0:
        rub = friction_law(v, friction)
        law = rub if law is None else law + rub
    if law is None:
        return ()
    stem = f"{joint} damping"
    return tuple(JointForce(stem if rates == 1 else f"{stem} {k}", joint, law, k) for k in range(rates))
