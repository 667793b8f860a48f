"""Drivers, force elements and couplings, as descriptions: names, places and laws, and numbers that may be
expressions of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.curve_elements import PointOnCurve
from linkwright.model.expression import Expression, simplified
from linkwright.model.quantities import Quantity, V, damper, quantities
from linkwright.model.quantities import friction as friction_law

Array = Any  # of floats, or of floats and expressions


def is_bound(entries: Any) -> bool:
    """Whether any of the numbers is an expression."""
    array = np.asarray(entries)
    return array.dtype == object and any(isinstance(x, Expression) for x in array.reshape(-1))


def as_numbers(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Numbers and expressions as an array of this shape; `what` names them in errors."""
    try:
        array = np.asarray(value)
        bad = array.dtype == object and not all(_is_number(x) for x in array.reshape(-1))
    except ValueError:  # rows of different lengths
        array, bad = np.empty(0), True
    if bad or array.dtype.kind not in "fiuO":
        raise ModelError(f"{what} is {value!r}; give numbers or expressions of parameters", element=what)
    if array.shape != shape:
        wanted = "one number" if shape == () else f"{'×'.join(map(str, shape))} numbers"
        shown = "one" if array.shape == () else "×".join(map(str, array.shape))
        raise ModelError(f"{what} needs {wanted}, {shown} given", element=what)
    return array if array.dtype == object else array.astype(np.float64)


def plain_numbers(value: Any, shape: tuple[int, ...], what: str) -> Floats:
    """As `as_numbers`, where bindings have no place."""
    array = as_numbers(value, shape, what)
    if is_bound(array):
        raise ModelError(f"{what} cannot depend on a parameter; give plain numbers", element=what)
    return np.asarray(array, dtype=np.float64)


def _is_number(x: Any) -> bool:
    return isinstance(x, (Expression, int, float, np.integer, np.floating)) and not isinstance(x, bool)


def split_bindings(
    name: str, array: Array, parameters: Mapping[str, float]
) -> tuple[Floats, dict[tuple[str, int], Expression]]:
    """The values of an array and, under its name, the expressions that they come from."""
    if array.dtype != object:
        return np.asarray(array, dtype=np.float64), {}
    flat = array.reshape(-1)
    values, bindings = np.empty(len(flat)), {}
    for k, entry in enumerate(flat):
        if isinstance(entry, Expression):
            entry = simplified(entry)
            if entry.names():
                bindings[name, k] = entry
            entry = entry.evaluate(parameters)
        values[k] = float(entry)
    return values.reshape(array.shape), bindings


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
    """The origin of the frame `point` stays on the z axis (h) of the frame `line`."""

    name: str
    line: str
    point: str

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.line, self.point


@dataclass(frozen=True)
class PointOnPlane:
    """The origin of the frame `point` stays in the plane through `plane`'s origin, perpendicular to its z axis (h)."""

    name: str
    plane: str
    point: str

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.plane, self.point


@dataclass(frozen=True)
class Coupling:
    """left = right, of joint coordinates, parameters and TIME; Φ is left − right.

    The multiplier λ of Φ is the force that it exerts on each of its coordinates per ∂Φ/∂coordinate: on a follower,
    which stands alone on the left, the force λ itself.
    """

    name: str
    left: Expression
    right: Expression

    @property
    def places(self) -> tuple[str, ...]:
        """The frames that it names: none."""
        return ()

    @property
    def relation(self) -> Expression:
        """Φ."""
        return simplified(self.left - self.right)

    @property
    def coordinates(self) -> tuple[Quantity, ...]:
        """The coordinates that it names, each once."""
        return tuple(quantities(self.left, self.right))


GearKind = Literal["external", "internal", "rack", "bevel", "worm", "belt", "crossed belt", "chain"]


@dataclass(frozen=True)
class GearPair:
    """Two gears in mesh, a gear and its rack, or two wheels under a belt, with the forces of their teeth.

    The z axes of the frames `first` and `second` are the axes of the gears; of a rack, its direction of travel.
    `radius` is the pitch radius (m) of the first; that of the second follows from the numbers of `teeth`, the smallest
    whole numbers in the ratio of the radii where the wheels have none (`toothed` is False).
    """

    name: str
    first: str
    second: str
    kind: GearKind
    radius: Expression
    teeth: tuple[int, int]  # the second of a rack is 0; the first of a worm is its number of starts
    toothed: bool = True
    pressure_angle: float = 0.0  # rad, in the plane normal to the teeth
    helix_angle: float = 0.0  # rad, of the first gear, right-handed if positive; of a worm its lead angle
    phase: float | None = None  # what the pair has rolled (m) where it is drawn, between half pitches; None: as drawn
    senses: tuple[int, int] = (1, 1)  # in which senses axes count, as drawn
    drawn_radius: float | None = None  # the radius (m) as drawn, with which the phase grows; None: it does not

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.first, self.second


def size_of(constraint: PointConstraint) -> Expression | None:
    """The length (m) that a constraint has: that of a rod, the first pitch radius of a gear pair."""
    if isinstance(constraint, Rod):
        return constraint.length
    return constraint.radius if isinstance(constraint, GearPair) else None


#: What holds bodies together besides joints: it has equations, and no coordinates of its own.
PointConstraint = Rod | PointOnLine | PointOnPlane | PointOnCurve | Coupling | GearPair


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

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.first, self.second


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


@dataclass(frozen=True)
class Bushing:
    """Springs and dampers in six directions between two frames, in the axes of the first.

    With r the origin of the second frame in the first, θ the rotation vector of its axes there and ω its relative
    angular velocity, it exerts on the second at its origin the force f₀ − k r − c ṙ and the torque
    m₀ − J(θ)⁻ᵀ kₜ θ − cₜ ω, where ω = J(θ) θ̇: so that springs have the potential ½ rᵀ k r + ½ θᵀ kₜ θ. The first gets
    the opposite, at the same point in space. |θ| ≤ π, and θ jumps from π to −π there.
    """

    name: str
    first: str
    second: str
    laws: tuple[Expression, ...]  # k (N/m), kₜ (N m/rad), c (N s/m), cₜ (N m s/rad), f₀ (N), m₀ (N m), three of each

    @property
    def places(self) -> tuple[str, str]:
        """The two frames."""
        return self.first, self.second


@dataclass(frozen=True)
class ReactionFriction:
    """Coulomb friction in a revolute or prismatic joint in proportion to what the joint bears.

    It exerts −tanh(rate / speed) · coefficient · Σ arm · |load| on the joint's coordinate, over its supports: across
    the axis (arm: `radius`; 1 of a prismatic joint), at both ends of `length` where that is not 0, and along the axis
    of a revolute joint (arm: `axial radius`).
    """

    name: str
    joint: str
    laws: tuple[Expression, ...]  # coefficient, radius (m), axial radius (m), length (m), speed (rad/s or m/s)


Element = JointForce | PointForce | AppliedWrench | Bushing | ReactionFriction


@dataclass(frozen=True)
class Initial:
    """A quantity's value when motion begins: an expression of parameters."""

    quantity: Quantity
    value: Expression


def laws_of(element: Element) -> tuple[Expression, ...]:
    """The laws of a force element."""
    return (element.law,) if isinstance(element, JointForce | PointForce) else element.laws


def with_laws(element: Element, change: Callable[[Expression], Expression]) -> Element:
    """The element with its laws changed one by one."""
    if isinstance(element, JointForce | PointForce):
        return replace(element, law=change(element.law))
    return replace(element, laws=tuple(map(change, element.laws)))


def joint_losses(joint: str, rates: int, damping: float, friction: float) -> tuple[JointForce, ...]:
    """−damping · v − friction · tanh(v / FRICTION_SPEED) on each of a joint's rates, without parts that are zero."""
    law: Expression | None = damper(V, damping) if damping != 0.0 else None
    if friction != 0.0:
        rub = friction_law(V, friction)
        law = rub if law is None else law + rub
    if law is None:
        return ()
    stem = f"{joint} damping"
    return tuple(JointForce(stem if rates == 1 else f"{stem} {k}", joint, law, k) for k in range(rates))
