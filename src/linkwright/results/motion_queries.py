"""What is asked of a motion by name: of bodies and frames, and of joints, in SI or in units that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.body_motion import QUANTITIES, Place, at_point, of_ground, place, spread, turned
from linkwright.model.description import GROUND, Description
from linkwright.model.joint_kinds import JointKind
from linkwright.model.units import ANGLE, LENGTH, NUMBER, TIME, Dimension, Unit, Units, in_words, unit
from linkwright.spatial.rotation import euler_parameters, quaternion_product


class MotionQueries:
    """The motion of bodies, frames and joints by name. Units are those of SI unless `unit` is given."""

    description: Description
    arrays: Mapping[str, Floats]
    time: Floats

    # -- bodies and frames --------------------------------------------------------------------------------
    def position(self, name: str, *, unit: str | None = None) -> Floats:
        """(T, 3): the position (m, or in `unit` such as "mm") of the origin of a body or frame, in ground's axes.

        Raises NameNotFound for another name, ModelError for a unit that is no length.
        """
        return self._of_origin("position", name, unit)

    def velocity(self, name: str, *, unit: str | None = None) -> Floats:
        """(T, 3): the velocity (m/s, or in `unit`) of the origin of a body or frame, v + ω × r."""
        return self._of_origin("velocity", name, unit)

    def acceleration(self, name: str, *, unit: str | None = None) -> Floats:
        """(T, 3): the acceleration (m/s², or in `unit`) of the origin of a body or frame, a + α × r + ω × (ω × r)."""
        return self._of_origin("acceleration", name, unit)

    def _of_origin(self, quantity: str, name: str, unit: str | None) -> Floats:
        at = place(self.description, name)
        if at.off:
            arm = turned(self._of("orientation", at), at.p)
            values = np.array(at_point(quantity, arm, lambda part: self._of(part, at)).T)
        else:
            values = np.array(self._of(quantity, at).T)
        return in_unit(values, QUANTITIES[quantity][1], unit, f"the {quantity} of {name!r}")

    def orientation(self, name: str) -> Floats:
        """(T, 4): the Euler parameters e0..e3 of a body or frame, scalar first; they have no unit."""
        at = place(self.description, name)
        e = self._of("orientation", at)
        return np.array((quaternion_product(e, spread(euler_parameters(at.r), e)) if at.turned else e).T)

    def angular_velocity(self, name: str, *, unit: str | None = None) -> Floats:
        """(T, 3): the angular velocity (rad/s, or in `unit` such as "rpm") of a body or frame, in ground's axes."""
        return self._turning("angular_velocity", name, unit)

    def angular_acceleration(self, name: str, *, unit: str | None = None) -> Floats:
        """(T, 3): the angular acceleration (rad/s², or in `unit`) of a body or frame, in ground's axes."""
        return self._turning("angular_acceleration", name, unit)

    def _turning(self, quantity: str, name: str, unit: str | None) -> Floats:
        values = np.array(self._of(quantity, place(self.description, name)).T)
        return in_unit(values, QUANTITIES[quantity][1], unit, f"the {quantity.replace('_', ' ')} of {name!r}")

    def _of(self, quantity: str, at: Place) -> Floats:
        """A quantity of a place's body, components first."""
        if at.body != GROUND:
            return np.asarray(self.arrays[quantity][:, at.body].T)
        return of_ground(quantity, len(self.time))

    # -- joints -------------------------------------------------------------------------------------------
    def joint(self, name: str, *, unit: str | Sequence[str] | None = None) -> Floats:
        """(T, nq): the coordinates (rad, m) of the joint of this name, also of one that closes a loop.

        Angles are accumulated over turns, from those of its driver, its initial value or its gear where it has one.
        `unit`: another unit, as "deg" or "mm"; of a joint that turns and slides two, as ("deg", "mm"). Another name is
        a NameNotFound, a unit that fits no coordinate a ModelError.
        """
        return self._joint_part(name, 0, unit)

    def joint_rate(self, name: str, *, unit: str | Sequence[str] | None = None) -> Floats:
        """(T, nv): the rates (rad/s, m/s, or in `unit`, as in `joint`) of the joint of this name."""
        return self._joint_part(name, 1, unit)

    def joint_acceleration(self, name: str, *, unit: str | Sequence[str] | None = None) -> Floats:
        """(T, nv): how the rates (rad/s², m/s², or in `unit`, as in `joint`) of the joint of this name change."""
        return self._joint_part(name, 2, unit)

    def _joint(self, name: str) -> tuple[str, tuple[Floats, Floats, Floats]]:
        """The name of a joint as the model has it, and its motion."""
        raise NotImplementedError

    def _joint_part(self, name: str, order: int, asked: str | Sequence[str] | None) -> Floats:
        name, motion = self._joint(name)
        if asked is None:
            return motion[order]
        d = self.description
        dimensions = joint_dimensions(d.kind_of(d.joint_names.position("joint", name)), order)
        words = ("the coordinate", "the rate", "the acceleration")[order]
        return _columns_in_units(motion[order], dimensions, asked, f"{words} of joint {name!r}")


def joint_dimensions(kind: JointKind, order: int) -> list[Dimension]:
    """The dimension of each coordinate (order 0), rate (1) or acceleration (2) of a joint."""
    if order == 0:
        plain = [ANGLE if k in kind.angles else LENGTH for k in range(kind.nq)]
        return plain if kind.paired else [*plain[:-4], *[NUMBER] * 4]
    turning = kind.angles if kind.paired else range(kind.nv - 3, kind.nv)
    return [(ANGLE if k in turning else LENGTH).times(TIME, -order) for k in range(kind.nv)]


def in_unit(values: Floats, source: str, asked: str | None, what: str) -> Floats:
    """Values of the SI unit `source` in the unit that is asked for, if any. Raises ModelError for one that is unfit."""
    if asked is None:
        return values
    known, chosen = unit(source), _unit(asked, what)
    if chosen.dimension != known.dimension:
        raise ModelError(_misfit(what, [known.dimension], chosen))
    return _converted(values, chosen)


def _unit(asked: object, what: str) -> Unit:
    if not isinstance(asked, str):
        raise ModelError(f"the unit of {what} is {asked!r}; give a text such as 'mm'")
    return unit(asked)


def _misfit(what: str, dimensions: Sequence[Dimension], chosen: Unit) -> str:
    kinds = dict.fromkeys(dimensions)
    fitting = " or ".join(repr(Units(length="mm", angle="deg").of(x).text) for x in kinds if x != NUMBER)
    if not fitting:
        return f"{what} has no unit, so that it cannot be given in {chosen.text!r}; leave unit out"
    named = " and ".join(in_words(x) for x in kinds)
    return f"{what} is {named}, and {chosen.text!r} is {in_words(chosen.dimension)}; give a unit such as {fitting}"


def _converted(values: Floats, chosen: Unit) -> Floats:
    try:
        converted: Floats = chosen.from_si(values)
    except (OverflowError, ZeroDivisionError):
        raise ModelError(f"{chosen.text!r} is too large or too small a unit; give one such as 'mm'") from None
    return converted


def _columns_in_units(values: Floats, dimensions: Sequence[Dimension], asked: str | Sequence[str], what: str) -> Floats:
    """Columns of several dimensions, each in the one unit that fits it; those without a dimension stay."""
    texts = [asked] if isinstance(asked, str) or not isinstance(asked, Sequence) else list(asked)
    units: dict[Dimension, Unit] = {}
    for text in texts:
        chosen = _unit(text, what)
        if chosen.dimension not in dimensions or chosen.dimension == NUMBER:
            raise ModelError(_misfit(what, dimensions, chosen))
        if chosen.dimension in units:
            raise ModelError(f"{what} has two units of {in_words(chosen.dimension)}, {texts!r}; give one")
        units[chosen.dimension] = chosen
    missing = [x for x in dict.fromkeys(dimensions) if x != NUMBER and x not in units]
    if missing:
        both = ", ".join(repr(Units(length="mm", angle="deg").of(x).text) for x in dict.fromkeys(dimensions))
        raise ModelError(f"{what} is also {in_words(missing[0])}; give a unit for each, as unit=({both})")
    columns = [x if d == NUMBER else _converted(x, units[d]) for x, d in zip(values.T, dimensions, strict=True)]
    return np.stack(columns, axis=1) if columns else values
