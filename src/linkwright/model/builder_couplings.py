"""The couplings of a Builder: relations between the coordinates of joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwright.errors import ModelError
from linkwright.model.builder_forces import Forces
from linkwright.model.builder_parts import Joint, put
from linkwright.model.coupling_checks import check_coordinates, check_coupling
from linkwright.model.elements import Coupling
from linkwright.model.expression import TIME, Expression, Number
from linkwright.model.joint_kinds import KINDS
from linkwright.model.quantities import Numeric, Quantity, as_law, written

#: A side of a coupling: a number, an expression, or a function of joints' coordinates.
Side = Numeric | Callable[..., Any]


class Couplings(Forces):
    """Collects couplings."""

    def coupling(
        self,
        name: str | None,
        relation: Side | tuple[Side | Joint | str, ...],
    ) -> Coupling:
        """A relation that is zero, or a coordinate that follows an expression of others: (follower, expression).

        - `name`: unlike those of all joints, rods, point constraints and couplings; None for coupling1, ….
        - `relation`: an expression of coordinates (`coordinate`), parameters and TIME; or a function of plain
          arithmetic and NumPy's functions, whose parameters name joints of one coordinate, and t. In a pair the first
          is the follower: a coordinate, or a joint of one coordinate; the second is what it equals, in m or rad.

        The force of the coupling is λ ∂Φ/∂x along each coordinate x (N or N m): for a pair Φ = follower − expression,
        so that λ is the force on the follower along its coordinate.

        Returns the `Coupling`. Raises `NameNotFound` for unknown joints and parameters, and `ModelError` for a name
        that is taken, rates and places in the relation, spherical and free joints, and a relation of no coordinate.

        >>> b = lw.Builder()
        >>> for name in ("crank", "follower"):
        ...     hinge = b.joint("revolute", b.ground, b.body(f"{name} body", 1.0), name)
        >>> b.coupling("cam", ("follower", lambda crank: 0.3 * np.sin(crank))).name
        'cam'
        """
        name = self._new_point_constraint(name, "coupling")
        if isinstance(relation, tuple):
            if len(relation) != 2:
                text = f"coupling {name!r} is a tuple of {len(relation)}; give a relation, or (follower, expression)"
                raise ModelError(text, element=name)
            follower, expression = relation
            left, right = self._follower(follower, name), self._side(expression, name)
        else:
            left, right = self._side(relation, name), Number(0.0)
        coupling = Coupling(name, left, right)
        check_coupling(coupling, lambda joint: KINDS[self._joint(joint).kind], self._parameters)
        return put(self._point_constraints, coupling)

    def _follower(self, follower: Side | Joint | str, name: str) -> Expression:
        if not isinstance(follower, Joint | str):
            return self._side(follower, name)
        joint = self._joint(follower)
        if KINDS[joint.kind].nq != 1:
            text = f"coupling {name!r}: joint {joint.name!r} is {joint.kind}, which has not one coordinate; "
            raise ModelError(f"{text}name one by b.coordinate({joint.name!r}, index)", element=name)
        return Quantity("joint", (joint.name,))

    def _side(self, side: Side | Joint | str, name: str) -> Expression:
        what = f"coupling {name!r}"
        if callable(side):
            single = [joint.name for joint in self._joints.values() if KINDS[joint.kind].nq == 1]
            side = written(side, (TIME,), what, {joint: Quantity("joint", (joint,)) for joint in single})
        expression = as_law(side, what)
        check_coordinates(Coupling(name, expression, Number(0.0)), lambda joint: KINDS[self._joint(joint).kind])
        return self._law(expression, ("TIME",), measures=True, what=what)
