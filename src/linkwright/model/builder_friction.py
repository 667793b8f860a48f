"""The friction of a Builder that follows the reactions of joints."""

from __future__ import annotations

from linkwright.model.builder_forces import Forces
from linkwright.model.builder_parts import Joint, put
from linkwright.model.elements import ReactionFriction
from linkwright.model.expression import as_expression
from linkwright.model.model_checks import check_reaction_friction
from linkwright.model.quantities import FRICTION_SPEED, Numeric


class Frictions(Forces):
    """Collects friction that follows reactions."""

    def reaction_friction(
        self,
        joint: Joint | str,
        coefficient: Numeric,
        radius: Numeric = 0.0,
        *,
        axial_radius: Numeric = 0.0,
        length: Numeric = 0.0,
        speed: Numeric = FRICTION_SPEED,
        name: str | None = None,
    ) -> ReactionFriction:
        """Coulomb friction of a pin or a guide, in proportion to what the joint bears.

        On a revolute joint the torque −coefficient · (radius · |F across the axis| + axial radius · |F along it|) ·
        tanh(rate / speed); on a prismatic joint the force −coefficient · |F across the axis| · tanh(rate / speed).
        Forces and reactions agree with each other.

        - `joint`: a revolute or prismatic `Joint`, or the name of one.
        - `coefficient`: a number or expression, 0 or more.
        - `radius` (m): of the pin; needed on a revolute joint, and no part of a prismatic one.
        - `axial_radius` (m): the mean radius of the collar that bears the axial force; 0 for none.
        - `length` (m): of the pin or the guide, in whose ends the force and the couple of the moment are borne; 0 for
          a joint whose moment has no friction. The middle is the joint's point on its second body.
        - `speed` (rad/s or m/s): at which friction has 76 % of its size; 0.01.
        - `name`: unlike those of all drivers and forces; friction1, friction2, … without one.

        Returns the `ReactionFriction`. Raises `NameNotFound` for an unknown joint or parameter, and `ModelError` for
        another kind of joint, a number below zero, a radius that is missing, or a name that is taken.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0), "hinge")
        >>> b.reaction_friction(hinge, 0.15, 0.01, name="pin").name
        'pin'
        """
        on, name = self._joint(joint), self._new_force(name, "friction")
        numbers = (coefficient, radius, axial_radius, length, speed)
        laws = tuple(self._law(as_expression(x), (), what=f"friction {name!r}") for x in numbers)
        friction = ReactionFriction(name, on.name, laws)
        check_reaction_friction(friction, on.kind, self._parameters)
        return put(self._forces, friction)
