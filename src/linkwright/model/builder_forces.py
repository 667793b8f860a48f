"""The dynamic part of a Builder: forces by their laws, and how motion begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from linkwright.base.arguments import positive_number
from linkwright.errors import ModelError, NameNotFound
from linkwright.model import quantities as laws
from linkwright.model.builder_parts import Joint, Kinematics, Place, put
from linkwright.model.elements import AppliedWrench, Initial, JointForce, PointForce, as_numbers
from linkwright.model.expression import TIME, Expression, Name, as_expression, replaced
from linkwright.model.joint_kinds import KINDS
from linkwright.model.model_checks import check_joint_law
from linkwright.model.quantities import DD, FRICTION_SPEED, POSITIONS, VELOCITIES, D, Numeric, Q, Quantity, V

#: A law: a number, an expression, or a function that is called once with names in place of numbers.
Law = float | Expression | Callable[..., Any]


class Forces(Kinematics):
    """Collects force elements and initial conditions.

    A law is a number, an expression of TIME, parameters and quantities (`coordinate`, `rate`, `distance`, `component`
    below), or a function of plain arithmetic and NumPy's functions: `lambda q, v, t: -3 * np.sin(q)`. The function is
    called once, with names in place of numbers, so that the law stays data; it gets what its parameters name.
    """

    def __init__(self, ground: str) -> None:
        super().__init__(ground)
        self._joint_rows: list[dict[str, Any]] = []
        self._initial: dict[Quantity, Initial] = {}

    # -- quantities that laws may use -----------------------------------------------------------------------
    def coordinate(self, joint: Joint | str, index: int = 0) -> Quantity:
        """Coordinate `index` of a joint (m or rad), for laws and initial conditions.

        - `joint`: a `Joint`, or the name of one; spherical and free joints have no plain coordinates.
        - `index`: which of its coordinates, counted from 0; 0.

        Returns the `Quantity`, an expression. Raises `NameNotFound` for an unknown joint, `ModelError` for an index or
        a kind that has no such coordinate.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0), "hinge")
        >>> law = -2.0 * b.coordinate(hinge)
        """
        return self._quantity(Quantity("joint", (self._joint(joint).name,), index))

    def rate(self, joint: Joint | str, index: int = 0) -> Quantity:
        """Rate `index` of a joint (m/s or rad/s).

        - `joint`, `index`, what is returned and raised: as for `coordinate`; every kind of joint has rates.

        >>> b = lw.Builder()
        >>> law = -0.1 * b.rate(b.joint("free", b.ground, b.body("link", 1.0)), 5)
        """
        return self._quantity(Quantity("joint", (self._joint(joint).name,), index, True))

    def distance(self, first: Place, second: Place) -> Quantity:
        """The distance between the origins of two frames or bodies (m).

        - `first`, `second`: bodies or frames on two bodies, as objects or by name.

        Returns the `Quantity`. Raises `NameNotFound` for an unknown place, `ModelError` for two on one body.

        >>> b = lw.Builder()
        >>> law = 3.0 - b.distance(b.ground, b.body("bob", 1.0))
        """
        return Quantity("distance", self._two(first, second, "a distance"))

    def distance_rate(self, first: Place, second: Place) -> Quantity:
        """How fast the distance between two origins grows (m/s).

        - `first`, `second`, what is returned and raised: as for `distance`.

        >>> b = lw.Builder()
        >>> law = -0.5 * b.distance_rate(b.ground, b.body("bob", 1.0))
        """
        return Quantity("distance", self._two(first, second, "a distance"), 0, True)

    def component(self, place: Place, name: str) -> Quantity:
        """A component of an origin's position or velocity, in ground's axes, for laws and initial conditions.

        - `place`: a body or frame, as an object or by name.
        - `name`: "x", "y", "z" (m); "vx", "vy", "vz" (m/s); "wx", "wy", "wz" of the angular velocity (rad/s).

        Returns the `Quantity`. Raises `NameNotFound` for an unknown place or component.

        >>> b = lw.Builder()
        >>> law = -0.5 * b.component(b.body("bob", 1.0), "vz")
        """
        if name not in POSITIONS + VELOCITIES:
            raise NameNotFound("component", name, [*POSITIONS, *VELOCITIES])
        rate = name in VELOCITIES
        return Quantity("place", (self._place(place),), (VELOCITIES if rate else POSITIONS).index(name), rate)

    def _quantity(self, quantity: Quantity) -> Quantity:
        self._check_quantity(quantity)
        return quantity

    # -- forces on joints -----------------------------------------------------------------------------------
    def joint_force(self, joint: Joint | str, law: Law, *, index: int = 0, name: str | None = None) -> JointForce:
        """A force or torque on coordinate `index` of a joint: a law of `q`, `v`, TIME, quantities and parameters.

        A function gets those of q, v and t that its parameters name, in any order. On spherical and free joints
        `index` counts rates, and the law may not use `q`.

        - `joint`: a `Joint`, or the name of one.
        - `law` (N or N m): a number, an expression, or a function; see the class.
        - `index`: which coordinate, counted from 0; 0.
        - `name`: unlike those of all drivers and forces; force1, force2, … without one.

        Returns the `JointForce`. Raises `NameNotFound` for an unknown joint or a name in the law that is none, and
        `ModelError` for an index that the joint does not have, a name that is taken, or what is no law.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0), "hinge")
        >>> b.joint_force(hinge, lambda q, v, t: -3.0 * np.sin(q) + np.cos(2.0 * t)).name
        'force1'
        """
        name, on = self._new_force(name, "force"), self._joint(joint)
        self._check_index(on, index, name)
        alike = {Quantity("joint", (on.name,), index): Q, Quantity("joint", (on.name,), index, True): V}
        force = JointForce(name, on.name, self._force_law(law, name, (Q, V), alike), index)
        check_joint_law(KINDS[on.kind], force)
        return put(self._forces, force)

    def joint_spring(
        self, joint: Joint | str, stiffness: Numeric, rest: Numeric = 0.0, damping: Numeric = 0.0, **options: Any
    ) -> JointForce:
        """−stiffness · (q − rest) − damping · v on a joint.

        - `joint`: a `Joint`, or the name of one.
        - `stiffness` (N/m or N m/rad), `rest` (m or rad; 0), `damping` (N s/m or N m s/rad; 0): numbers or expressions.
        - `options`: `index` and `name`; these, what is returned and raised as for `joint_force`.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0))
        >>> b.joint_spring(hinge, 20.0, rest=0.5, name="return").name
        'return'
        """
        return self.joint_force(joint, laws.spring(Q, V, stiffness, rest, damping), **options)

    def joint_damper(self, joint: Joint | str, damping: Numeric, **options: Any) -> JointForce:
        """−damping · v on a joint.

        - `joint`: a `Joint`, or the name of one.
        - `damping` (N s/m or N m s/rad): a number or expression.
        - `options`: `index` and `name`; these, what is returned and raised as for `joint_force`.

        >>> b = lw.Builder()
        >>> b.joint_damper(b.joint("prismatic", b.ground, b.body("block", 1.0)), 5.0).name
        'force1'
        """
        return self.joint_force(joint, laws.damper(V, damping), **options)

    def joint_friction(
        self, joint: Joint | str, friction: Numeric, speed: Numeric = FRICTION_SPEED, **options: Any
    ) -> JointForce:
        """−friction · tanh(v / speed) on a joint: Coulomb friction whose jump is spread over ±`speed` or so.

        A load that dry friction would hold creeps; the smaller the speed, the less, and the shorter the steps of a
        simulation.

        - `joint`: a `Joint`, or the name of one.
        - `friction` (N or N m), `speed` (m/s or rad/s; 0.01): numbers or expressions.
        - `options`: `index` and `name`; these, what is returned and raised as for `joint_force`.

        >>> b = lw.Builder()
        >>> b.joint_friction(b.joint("revolute", b.ground, b.body("link", 1.0)), 0.2, name="bearing").name
        'bearing'
        """
        positive_number("the speed of the friction", self._now(speed))
        return self.joint_force(joint, laws.friction(V, friction, speed), **options)

    def actuator(
        self, joint: Joint | str, law: Law, limit: Numeric | None = None, *, index: int = 0, name: str | None = None
    ) -> JointForce:
        """A law of `q`, `v`, TIME, quantities and parameters, held between −limit and limit.

        - `joint`, `law`, `index`, `name`: as for `joint_force`.
        - `limit` (N or N m): a number or expression; by default the joint's effort limit, and without that none.

        Returns the `JointForce`. Raises as `joint_force` does, and `ModelError` for a limit that is not positive.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0), "hinge")
        >>> b.actuator(hinge, lambda q, v: -100.0 * q - 10.0 * v, limit=5.0, name="motor").name
        'motor'
        """
        on = self._joint(joint)
        what = f"actuator {name!r}" if name else f"the actuator of {on.name!r}"
        if limit is None and np.isfinite(effort := self._joint_rows[on.number]["effort_limit"]):
            limit = float(effort)
        if limit is None:
            return self.joint_force(on, law, index=index, name=name)
        positive_number(f"the limit of {what}", self._now(limit))
        inner = laws.written(law, (Q, V, TIME), what) if callable(law) else law
        return self.joint_force(on, laws.saturated(laws.as_law(inner, what), limit), index=index, name=name)

    def stop(
        self,
        joint: Joint | str,
        lower: Numeric | None = None,
        upper: Numeric | None = None,
        stiffness: Numeric = 1e4,
        damping: Numeric = 0.0,
        **options: Any,
    ) -> JointForce:
        """Ends of a joint's travel: stiffness · p · (1 + damping · ṗ), never pulling, p being the penetration.

        - `joint`: a `Joint`, or the name of one.
        - `lower`, `upper` (m or rad): numbers or expressions; if neither is given, the limits of the joint.
        - `stiffness` (N/m or N m/rad; 1e4), `damping` (s/m or s/rad; 0): numbers or expressions.
        - `options`: `index` and `name`; these, what is returned and raised as for `joint_force`.

        Raises `ModelError` also without limits, or for a lower one above the upper one.

        >>> b = lw.Builder()
        >>> b.stop(b.joint("prismatic", b.ground, b.body("block", 1.0)), lower=0.0, upper=0.2).name
        'force1'
        """
        on = self._joint(joint)
        if lower is None and upper is None:
            row = self._joint_rows[on.number]
            lower, upper = (float(row[key]) if np.isfinite(row[key]) else None for key in ("lower", "upper"))
        if lower is None and upper is None:
            text = f"the stop of {on.name!r} has no limit; give lower= or upper=, or give the joint limits"
            raise ModelError(text, element=on.name)
        self._check_limits(lower, upper, f"the stop of {on.name!r}")
        return self.joint_force(on, laws.stop(Q, V, lower, upper, stiffness, damping), **options)

    # -- forces between places ------------------------------------------------------------------------------
    def point_force(self, first: Place, second: Place, law: Law, *, name: str | None = None) -> PointForce:
        """A force along the line of two origins: a law of their distance `d`, its rate `dd`, TIME and quantities.

        Positive pushes them apart. A function gets those of d, dd and t that its parameters name.

        - `first`, `second`: two bodies or frames, as objects or by name.
        - `law` (N): a number, an expression, or a function; see the class.
        - `name`: as for `joint_force`.

        Returns the `PointForce`. Raises `NameNotFound` for an unknown place or a name in the law that is none, and
        `ModelError` for twice the same place, a name that is taken, or what is no law.

        >>> b = lw.Builder()
        >>> b.point_force(b.ground, b.body("bob", 1.0), lambda d: 4.0 / d**2).name
        'force1'
        """
        name = self._new_force(name, "force")
        a, b = self._place(first), self._place(second)
        if a == b:
            raise ModelError(f"force {name!r} acts between {a!r} and itself; name two frames", element=name)
        alike: dict[Any, Any] = {}
        for ends in ((a, b), (b, a)):
            alike |= {Quantity("distance", ends): D, Quantity("distance", ends, 0, True): DD}
        return put(self._forces, PointForce(name, a, b, self._force_law(law, name, (D, DD), alike)))

    def spring(
        self,
        first: Place,
        second: Place,
        stiffness: Numeric,
        length: Numeric,
        damping: Numeric = 0.0,
        *,
        name: str | None = None,
    ) -> PointForce:
        """A spring and damper between two origins: −stiffness · (d − length) − damping · ḋ.

        - `stiffness` (N/m), `length` (m) without load, `damping` (N s/m; 0): numbers or expressions.
        - `first`, `second` and `name`, what is returned and raised: as for `point_force`.

        >>> b = lw.Builder()
        >>> b.spring(b.ground, b.body("bob", 1.0), stiffness=100.0, length=0.2).name
        'force1'
        """
        return self.point_force(first, second, laws.spring(D, DD, stiffness, length, damping), name=name)

    def damper(self, first: Place, second: Place, damping: Numeric, *, name: str | None = None) -> PointForce:
        """A damper between two origins: −damping · ḋ.

        - `damping` (N s/m): a number or expression.
        - `first`, `second` and `name`, what is returned and raised: as for `point_force`.

        >>> b = lw.Builder()
        >>> b.damper(b.ground, b.body("bob", 1.0), 3.0).name
        'force1'
        """
        return self.point_force(first, second, laws.damper(DD, damping), name=name)

    def bumper(
        self,
        first: Place,
        second: Place,
        lower: Numeric | None = None,
        upper: Numeric | None = None,
        stiffness: Numeric = 1e4,
        damping: Numeric = 0.0,
        *,
        name: str | None = None,
    ) -> PointForce:
        """A stop between two origins: keeps their distance between limits by the contact law of `stop`.

        - `first`, `second` and `name`, what is returned and raised: as for `point_force`.
        - `lower`, `upper` (m): numbers or expressions, at least one of them.
        - `stiffness` (N/m; 1e4), `damping` (s/m; 0): numbers or expressions.

        >>> b = lw.Builder()
        >>> b.bumper(b.ground, b.body("bob", 1.0), upper=0.5).name
        'force1'
        """
        if lower is None and upper is None:
            raise ModelError("a stop between two frames has no limit; give lower= or upper=")
        self._check_limits(lower, upper, "a stop between two frames")
        return self.point_force(first, second, laws.stop(D, DD, lower, upper, stiffness, damping), name=name)

    def applied_wrench(
        self,
        place: Place,
        force: Any = (0.0, 0.0, 0.0),
        torque: Any = (0.0, 0.0, 0.0),
        *,
        axes: Literal["frame", "ground"] | Place = "frame",
        reaction: Place | None = None,
        name: str | None = None,
    ) -> AppliedWrench:
        """A force and a torque at a frame or a body's origin.

        - `place`: a body or frame, as an object or by name.
        - `force` (N), `torque` (N m): three laws each, or a function of t that gives three; zeros.
        - `axes`: "frame" (the default) for the frame's own axes, "ground", or another frame or body.
        - `reaction`: a body or frame whose body gets the opposite wrench, at the same point in space; none.
        - `name`: unlike those of all drivers and forces; wrench1, wrench2, … without one.

        Returns the `AppliedWrench`. Raises `NameNotFound` for an unknown place and `ModelError` for what is no law.

        >>> b = lw.Builder()
        >>> b.applied_wrench(b.body("bob", 1.0), force=(0, 0, lw.TIME), axes="ground").name
        'wrench1'
        """
        name = self._new_force(name, "wrench")
        what = f"force {name!r}"
        parts = [laws.written(x, (TIME,), what) if callable(x) else x for x in (force, torque)]
        numbers = [as_numbers(x, (3,), what) for x in parts]
        six = tuple(self._law(x, ("TIME",), measures=True, what=what) for part in numbers for x in part)
        where: Literal["frame", "ground", "other"]
        where = "frame" if axes == "frame" else "ground" if axes == "ground" else "other"
        of = self._axes_of(axes) if where == "other" else ""
        at, other = self._place(place), ""
        if reaction is not None:
            at, other = self._two(place, reaction, what)
        return put(self._forces, AppliedWrench(name, at, six, where, of, other))

    def _axes_of(self, place: Any) -> str:
        known = [*self._bodies, *self._frames]
        if isinstance(place, str) and place not in known:
            raise NameNotFound("kind of axes", place, ["frame", "ground", *known])
        return self._place(place)

    # -- how motion begins ----------------------------------------------------------------------------------
    def initial(
        self, what: Quantity | Joint | str, value: Numeric | None = None, rate: Numeric | None = None, *, index: int = 0
    ) -> None:
        """The value of a quantity when motion begins; of a joint, its coordinate and its rate.

        What is given is held; all else follows from where bodies are drawn, as closely as joints and drivers allow.

        - `what`: a `Quantity`, or a joint as an object or by name.
        - `value` (m or rad; of a quantity its unit), `rate` (m/s or rad/s; of a joint): numbers or expressions; none.
        - `index`: which coordinate of the joint, counted from 0; 0.

        Raises `NameNotFound` for an unknown joint and `ModelError` without a value, or where there is one already.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0), "hinge")
        >>> b.initial(hinge, 0.3, rate=1.0)
        """
        if isinstance(what, Quantity):
            if value is None or rate is not None:
                raise ModelError(f"give one value for {what}: initial({what}, value)")
            self._begin(what, value)
            return
        if value is None and rate is None:
            raise ModelError(f"joint {self._joint(what).name!r} begins with neither a value nor a rate; give one")
        if value is not None:
            self._begin(self.coordinate(what, index), value)
        if rate is not None:
            self._begin(self.rate(what, index), rate)

    def _begin(self, quantity: Quantity, value: Numeric) -> None:
        self._check_quantity(quantity)
        if quantity.kind == "place" and self._frame_at(quantity.of[0]).body == self.ground:
            raise ModelError(f"{quantity} is on ground and stays where it is; name another", element=quantity.of[0])
        unordered = replace(quantity, of=tuple(sorted(quantity.of)))  # a distance is the same from either end
        if unordered in self._initial:
            raise ModelError(f"{quantity} has an initial value already; keep one", element=quantity.of[0])
        self._initial[unordered] = Initial(quantity, self._law(as_expression(value), ()))

    # -- checks ---------------------------------------------------------------------------------------------
    def _force_law(self, law: Law, name: str, variables: tuple[Name, Name], alike: dict[Any, Any]) -> Expression:
        """A law in which `alike` replaces quantities by the variables that stand for them."""
        what = f"force {name!r}"
        plain = laws.as_law(laws.written(law, (*variables, TIME), what), what) if callable(law) else law
        if isinstance(plain, Expression):
            plain = replaced(plain, alike)
        return self._law(plain, (variables[0].name, variables[1].name, "TIME"), measures=True, what=what)

    def _check_limits(self, lower: Numeric | None, upper: Numeric | None, what: str) -> None:
        if lower is not None and upper is not None and self._now(lower) > self._now(upper):
            raise ModelError(f"{what} has its lower limit above its upper one; swap them")
