"""Drivers, force elements and couplings, as descriptions: names, places and laws. No algorithms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from linkwright.mechanism.expression import Call, Expression, Name, as_expression

Axis = Literal["f", "g", "h"]


@dataclass(frozen=True)
class Mimic:
    """Joint `follower` has the coordinate ratio·(leader's coordinate) + offset. A gear without a name has its
    follower's."""

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


@dataclass(frozen=True)
class Rod:
    """A massless rod: the distance between the origins of two frames is constant."""

    name: str
    first: str
    second: str
    length: Expression


@dataclass(frozen=True)
class PointOnLine:
    """The origin of the frame `point` stays on the h axis of the frame `line`."""

    name: str
    line: str
    point: str


@dataclass(frozen=True)
class PointOnPlane:
    """The origin of the frame `point` stays in the plane through `plane`'s origin, perpendicular to its h axis."""

    name: str
    plane: str
    point: str


#: What holds bodies together besides joints: it has equations, and no coordinates of its own.
Tie = Rod | PointOnLine | PointOnPlane


@dataclass(frozen=True)
class JointForce:
    """A generalised force on coordinate `index` of a joint: a law of q, v, parameters and TIME.

    Springs, dampers, friction and actuators are such laws; the law may use the names `q` and `v`. On a joint whose
    rates are not the derivatives of its coordinates (spherical, free), `index` counts rates and `q` has no meaning.
    """

    name: str
    joint: str
    law: Expression
    index: int = 0


@dataclass(frozen=True)
class PointForce:
    """A force along the line between two frames: a law of their distance `d`, its rate `dd`, and TIME.

    Positive pushes the two frames apart.
    """

    name: str
    first: str
    second: str
    law: Expression


@dataclass(frozen=True)
class AppliedWrench:
    """A wrench on a body at a frame; six laws of TIME, in the frame's axes or in ground's."""

    name: str
    frame: str
    laws: tuple[Expression, ...] = field(default_factory=tuple)
    axes: Literal["frame", "ground"] = "frame"


Element = JointForce | PointForce | AppliedWrench


def joint_losses(joint: str, rates: int, damping: float, friction: float) -> tuple[JointForce, ...]:
    """−damping·v − friction·sign(v) on each of a joint's rates, without the parts that are zero."""
    v = Name("v")
    parts = [
        as_expression(factor) * of for factor, of in ((damping, v), (friction, Call("sign", (v,)))) if factor != 0.0
    ]
    if not parts:
        return ()
    law = -parts[0] if len(parts) == 1 else -parts[0] - parts[1]
    stem = f"{joint} damping"
    return tuple(JointForce(stem if rates == 1 else f"{stem} {k}", joint, law, k) for k in range(rates))
