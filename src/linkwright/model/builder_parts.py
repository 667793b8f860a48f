"""The kinematic part of a Builder: the pieces that it hands out, where bodies are drawn, drivers, rods and shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from linkwright.base.arguments import numbered_name
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.description import GROUND, SHAPE_SIZES, Shape, ShapeKind, Trace
from linkwright.model.elements import (
    Array,
    Axis,
    Driver,
    Element,
    PointConstraint,
    PointOnLine,
    PointOnPlane,
    Rod,
    as_numbers,
    is_bound,
    split_bindings,
)
from linkwright.model.expression import TIME, Expression
from linkwright.model.joint_kinds import KINDS
from linkwright.model.model_checks import check_driven_joint
from linkwright.model.placements import are_parallel, axes_of, pack_inertia, snapped
from linkwright.model.quantities import Numeric, Quantity, as_law, quantities, written
from linkwright.model.requested_analysis import System

T = TypeVar("T")
LAW_VARIABLES = ("q", "v", "d", "dd")


@dataclass(frozen=True)
class Body:
    """A body of a Builder; number −1 is ground."""

    name: str
    number: int


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame on a body: z along h, x along f."""

    body: Body
    rotation: Array
    origin: Array
    name: str | None

    @property
    def label(self) -> str:
        """Its name, or without one that of its body, whose own frame it then stands for."""
        return self.name or self.body.name


@dataclass(frozen=True)
class Joint:
    """A joint of a Builder."""

    name: str
    number: int
    kind: str


class Parts:
    """What has been named so far; every name that is not there, or there twice, is an error."""

    def __init__(self, ground: str) -> None:
        self.ground = Body(ground, GROUND)
        self._bodies: dict[str, Body] = {ground: self.ground}
        self._frames: dict[str, Frame] = {}
        self._joints: dict[str, Joint] = {}
        self._forces: dict[str, Element] = {}
        self._drivers: dict[str, Driver] = {}
        self._parameters: dict[str, float] = {}

    def _new_place(self, name: str) -> None:
        if not name:
            raise ModelError("a body or frame needs a name; give it one")
        if name in self._bodies or name in self._frames:
            raise ModelError(f"there is a body or frame {name!r} already; choose another name", element=name)

    def _new_force(self, name: str | None, stem: str) -> str:
        return new_name(name, stem, self._forces.keys() | self._drivers.keys(), "driver or force")

    def _body(self, body: Any) -> Body:
        return _known("body", body, self._bodies)

    def _frame_at(self, place: Any) -> Frame:
        if isinstance(place, Frame):
            self._body(place.body)
            return place
        if isinstance(place, str) and place in self._frames:
            return self._frames[place]
        if name_of(place) not in self._bodies:
            raise NameNotFound("body or frame", name_of(place), [*self._bodies, *self._frames])
        return Frame(self._body(place), np.eye(3), np.zeros(3), None)

    def _place(self, place: Any) -> str:
        """The name of a frame or body; a frame that is used by name gets one."""
        if isinstance(place, Frame) and place.name is None:
            known = next((n for n, t in self._frames.items() if t is place), None)
            if known is None:
                known = numbered_name("triad", self._frames.keys() | self._bodies.keys())
                self._frames[known] = place
            return known
        return self._frame_at(place).label

    def _joint(self, joint: Any) -> Joint:
        return _known("joint", joint, self._joints)

    def _check_index(self, joint: Joint, index: int, name: str) -> None:
        nv = KINDS[joint.kind].nv
        if not 0 <= index < nv:
            text = f"{name!r} acts on coordinate {index} of {joint.name!r}, which is {joint.kind} and has {nv}"
            raise ModelError(text, element=joint.name)

    def _law(self, law: Any, variables: tuple[str, ...], *, measures: bool = False, what: str = "a law") -> Expression:
        """A law of these variables and parameters; with `measures` it may name coordinates, places and distances."""
        expression = as_law(as_numbers(law, (), what) if not isinstance(law, Expression) else law, what)
        measured = {x.key for x in quantities(expression)} if measures else set()
        for name in sorted(expression.names() - measured):
            if name in variables and name in self._parameters:
                text = f"{name!r} is a variable of this law (q, v of a joint, d, dd of a distance) and a parameter"
                raise ModelError(f"{text} too; rename the parameter", element=name)
            if name not in variables and name not in self._parameters:
                raise NameNotFound("parameter or variable of a law", name, [*variables, *self._parameters])
        for quantity in quantities(expression):
            self._check_quantity(quantity)
        return expression

    def _now(self, value: Any, what: str = "a law") -> float:
        """The present value of a number or an expression of parameters."""
        return float(self._law(value, (), what=what).evaluate(self._parameters))

    def _check_quantity(self, quantity: Quantity) -> None:
        """Refuse a quantity of something that is not there."""
        if quantity.kind != "joint":
            for name in quantity.of:
                self._frame_at(name)
            return
        joint = self._joint(quantity.of[0])
        kind = KINDS[joint.kind]
        if not quantity.rate and not kind.paired:
            text = f"{quantity} is a coordinate of a {joint.kind} joint, which has no plain coordinates; "
            raise ModelError(text + "name its rates, or the places and distances of its bodies", element=joint.name)
        if not 0 <= quantity.index < kind.nv:
            text = f"{quantity} is not there: joint {joint.name!r} is {joint.kind} and has {kind.nv}, counted from 0"
            raise ModelError(text, element=joint.name)


def packed_inertia(inertia: Any, owner: str) -> Array:
    """xx, yy, zz, xy, xz, yz from three or six numbers or a symmetric 3×3."""
    what = f"inertia of {owner!r}"
    try:
        shape = np.asarray(inertia).shape
    except ValueError:
        shape = ()
    if shape == (3, 3):
        full = as_numbers(inertia, shape, what)
        slack = 1e-9 * sum(abs(x) for x in full.reshape(-1) if not isinstance(x, Expression))
        for i, j in ((0, 1), (0, 2), (1, 2)):
            a, b = full[i, j], full[j, i]
            if a != b if is_bound([a, b]) else abs(a - b) > slack:
                raise ModelError(f"{what} is not symmetric: {a} and {b}; make them equal", element=owner)
        return pack_inertia(full)
    if shape == (3,):
        return np.concatenate([as_numbers(inertia, (3,), what), np.zeros(3)])
    return as_numbers(inertia, (6,), what)


def name_of(thing: Any) -> str:
    return str(getattr(thing, "name", thing))


def new_name(name: str | None, stem: str, taken: Container[str], what: str) -> str:
    """A name that is not taken: the one that is given, or the stem with a number."""
    if name is None:
        return numbered_name(stem, taken)
    if name in taken:
        raise ModelError(f"there is a {what} {name!r} already; choose another name", element=name)
    return name


def put(parts: dict[str, Any], part: T) -> T:
    """Keep a part under its name."""
    parts[name_of(part)] = part
    return part


def _known(what: str, part: Any, parts: dict[str, T]) -> T:
    """The part that an object or a name means; an object of another builder is an error."""
    known = parts.get(name_of(part))
    if known is None or (isinstance(part, type(known)) and known != part):
        raise NameNotFound(what, name_of(part), list(parts))
    return known


Place = Frame | Body | str


class Kinematics(Parts):
    """Collects what kinematic analysis and drawing need besides bodies, frames and joints."""

    def __init__(self, ground: str) -> None:
        super().__init__(ground)
        self._point_constraints: dict[str, PointConstraint] = {}
        self._starts: dict[str, tuple[Array, Array]] = {}
        self._shapes: dict[str, Shape] = {}
        self._traces: dict[str, Trace] = {}
        self._system: System | None = None

    # -- where bodies are -----------------------------------------------------------------------------------
    def place(
        self,
        body: Body | str,
        origin: Any = (0.0, 0.0, 0.0),
        h: Any = (0.0, 0.0, 1.0),
        f: Any = (1.0, 0.0, 0.0),
        *,
        rotation: Any = None,
        exact: bool = False,
    ) -> None:
        """Where a body is drawn, in ground's axes: the rough start from which the mechanism is assembled.

        Its axes are given by h (z) and f (x), or by a rotation matrix whose columns they are.

        - `body`: a `Body`, or the name of one, but not ground.
        - `origin` (m): three numbers or expressions; ground's origin.
        - `h`, `f`: directions of any length; z and x.
        - `rotation`: 3×3 numbers or expressions in place of h and f.
        - `exact`: as for `frame`.

        Raises `NameNotFound` for an unknown body, `ModelError` for ground or for h and f that are parallel or zero.

        >>> b = lw.Builder()
        >>> b.place(b.body("link", 1.0), origin=(0.2, 0, 0), h=(0, 1, 0))
        """
        owner = self._body(body)
        if owner == self.ground:
            raise ModelError(f"{owner.name!r} is ground and stays where it is; place other bodies", element=owner.name)
        what = f"body {owner.name!r}"
        r = self._axes(h, f, what, owner.name) if rotation is None else as_numbers(rotation, (3, 3), what)
        at = as_numbers(origin, (3,), f"the place of {owner.name!r}")
        self._starts[owner.name] = (r if exact or is_bound(r) else snapped(r), at)

    def _axes(self, h: Any, f: Any, what: str, element: str) -> Array:
        """The rotation with z along h and x along the part of f that is perpendicular to it."""
        hh, ff = as_numbers(h, (3,), f"h of {what}"), as_numbers(f, (3,), f"f of {what}")
        values = [split_bindings("", x, self._parameters)[0] for x in (hh, ff)]
        if are_parallel(*values):
            raise ModelError(f"h and f of {what} are parallel or zero; give two directions", element=element)
        return axes_of(hh, ff)

    # -- drivers --------------------------------------------------------------------------------------------
    def driver(
        self,
        kind: Literal["absolute", "joint", "distance", "angle"],
        target: Joint | Place,
        law: Numeric | Callable[..., Any],
        *,
        other: Place | None = None,
        coordinate: str | None = None,
        index: int = 0,
        axes: tuple[Axis, Axis] = ("f", "f"),
        name: str | None = None,
    ) -> Driver:
        """A coordinate prescribed as a law of TIME and parameters, or as a function of t: `lambda t: np.sin(t)`.

        - `kind`: "absolute", `coordinate` ("x", "y" or "z") of the origin of a body or frame; "joint", coordinate
          `index` of a joint (0); "distance" or "angle" between the origins, or the named `axes` (f and f), of two
          frames or bodies. An angle turns about the h axes where these stay parallel; elsewhere it lies between 0 and
          π.
        - `target`, `other`: the joint, or the bodies or frames; `law` (m or rad); `name`: driver1, … without one.

        Returns the `Driver`. Raises `NameNotFound` for unknown names and `ModelError` for what does not fit the kind.
        """
        name = self._new_force(name, "driver")
        place: str
        second: str | None = None
        if kind == "joint":
            joint = self._joint(target)
            check_driven_joint(KINDS[joint.kind], joint.name, name)
            self._check_index(joint, index, name)
            place = joint.name
        elif kind == "absolute":
            if coordinate is None and isinstance(target, str) and target[-2:] in (".x", ".y", ".z"):
                target, coordinate = target[:-2], target[-1]
            if coordinate not in ("x", "y", "z"):
                text = f"driver {name!r} has the coordinate {coordinate!r}; give 'x', 'y' or 'z'"
                raise ModelError(text, element=name)
            place = f"{self._moving(target, name)}.{coordinate}"
        elif kind in ("distance", "angle"):
            if other is None:
                raise ModelError(f"driver {name!r} is a {kind}; name the second frame with other=", element=name)
            place, second = self._two(target, other, f"driver {name!r}")
            if len(axes) != 2 or not set(axes) <= {"f", "g", "h"}:
                raise ModelError(f"driver {name!r} has the axes {axes!r}; give two of 'f', 'g', 'h'", element=name)
        else:
            raise NameNotFound("driver kind", str(kind), ["absolute", "joint", "distance", "angle"])
        what = f"driver {name!r}"
        prescribed = self._law(written(law, (TIME,), what) if callable(law) else law, ("TIME",), what=what)
        return put(self._drivers, Driver(name, kind, place, prescribed, second, index, (axes[0], axes[1])))

    # -- rods and point constraints -------------------------------------------------------------------------
    def rod(self, first: Place, second: Place, length: Numeric, name: str | None = None) -> Rod:
        """A massless rod of constant length between two origins.

        - `first`, `second`: bodies or frames on two bodies, as objects or by name.
        - `length` (m): a number or expression greater than zero.
        - `name`: unlike those of all joints, rods and point constraints; rod1, rod2, … without one.

        Returns the `Rod`. Raises `ModelError` for two places on one body, a name that is taken or another length.

        >>> b = lw.Builder()
        >>> b.rod(b.ground, b.body("bob", 1.0), length=0.5).name
        'rod1'
        """
        name = self._new_point_constraint(name, "rod")
        a, b = self._two(first, second, f"rod {name!r}")
        if not self._now(length) > 0.0:
            raise ModelError(f"rod {name!r} has no positive length; two points that meet are a joint", element=name)
        return put(self._point_constraints, Rod(name, a, b, self._law(length, ())))

    def point_on_line(self, line: Place, point: Place, name: str | None = None) -> PointOnLine:
        """The origin of `point` stays on the z axis (h) of `line`.

        - `line`, `point`: bodies or frames on two bodies, as objects or by name.
        - `name`: as for `rod`; line1, line2, … without one.

        Returns the `PointOnLine`. Raises `ModelError` for two places on one body or a name that is taken.

        >>> b = lw.Builder()
        >>> b.point_on_line(b.ground, b.body("bead", 1.0)).name
        'line1'
        """
        name = self._new_point_constraint(name, "line")
        return put(self._point_constraints, PointOnLine(name, *self._two(line, point, f"point-on-line {name!r}")))

    def point_on_plane(self, plane: Place, point: Place, name: str | None = None) -> PointOnPlane:
        """The origin of `point` stays in the x–y plane of `plane`, to which its z axis (h) is perpendicular.

        - `plane`, `point`: bodies or frames on two bodies, as objects or by name.
        - `name`: as for `rod`; plane1, plane2, … without one.

        Returns the `PointOnPlane`. Raises `ModelError` for two places on one body or a name that is taken.

        >>> b = lw.Builder()
        >>> b.point_on_plane(b.ground, b.body("foot", 1.0)).name
        'plane1'
        """
        name = self._new_point_constraint(name, "plane")
        return put(self._point_constraints, PointOnPlane(name, *self._two(plane, point, f"point-on-plane {name!r}")))

    def _new_point_constraint(self, name: str | None, stem: str) -> str:
        return new_name(
            name, stem, self._point_constraints.keys() | self._joints.keys(), "joint, rod or point constraint"
        )

    def _two(self, first: Any, second: Any, what: str) -> tuple[str, str]:
        """The names of two places on different bodies."""
        bodies = self._frame_at(first).body, self._frame_at(second).body
        if bodies[0] == bodies[1]:
            text = f"{what} is between {name_of(first)!r} and {name_of(second)!r}, both on {bodies[0].name!r}; "
            raise ModelError(text + "name frames of two bodies", element=bodies[0].name)
        return self._place(first), self._place(second)

    def _moving(self, place: Any, driver: str) -> str:
        """The name of a place that is not on ground."""
        if self._frame_at(place).body == self.ground:
            text = f"driver {driver!r} drives {name_of(place)!r}, which is on ground and cannot move; name another"
            raise ModelError(text, element=driver)
        return self._place(place)

    # -- drawing and analysis -------------------------------------------------------------------------------
    def shape(
        self,
        place: Place,
        kind: ShapeKind,
        size: Any,
        color: str = "",
        *,
        file: str = "",
        name: str | None = None,
    ) -> Shape:
        """A shape in the axes of a frame or body `place`, its middle at the origin; for drawings only.

        - `kind` and `size` (m): box x, y, z; cylinder, cone and capsule radius, length (along h); sphere radius; mesh
          scale, with `file`.
        - `color`: "#rrggbb"; that of the body. `name`: shape1, … without one.

        Returns the `Shape`. Raises `NameNotFound` for another kind or place, `ModelError` for sizes that are not
        positive.
        """
        if kind not in get_args(ShapeKind):
            raise NameNotFound("kind of shape", str(kind), list(SHAPE_SIZES))
        name = new_name(name, "shape", self._shapes, "shape")
        wanted = len(SHAPE_SIZES[kind])
        numbers = as_numbers(np.atleast_1d(np.asarray(size)), (wanted,), f"size of shape {name!r}")
        if any(not self._now(x) > 0.0 for x in numbers):
            raise ModelError(f"shape {name!r} has a size that is not positive", element=name)
        if (kind == "mesh") != bool(file):
            raise ModelError(f"shape {name!r}: a mesh needs file=, and nothing else does", element=name)
        laws = tuple(self._law(x, ()) for x in numbers)
        return put(self._shapes, Shape(name, self._place(place), kind, laws, _color(color, name), file))

    def trace(self, place: Place, color: str = "", *, name: str | None = None) -> Trace:
        """The origin of a frame or body leaves a trail when the motion is drawn.

        - `place`: a body or frame, as an object or by name.
        - `color`: "#rrggbb"; empty for the viewer's choice.
        - `name`: unlike those of all traces; trace1, trace2, … without one.

        Returns the `Trace`. Raises `NameNotFound` for an unknown place, `ModelError` for another colour.

        >>> b = lw.Builder()
        >>> b.trace(b.body("tip", 1.0), "#ff0000").name
        'trace1'
        """
        name = new_name(name, "trace", self._traces, "trace")
        return put(self._traces, Trace(name, self._place(place), _color(color, name)))

    def system(self, **settings: Any) -> System:
        """What `lw.analyse` does with the mechanism.

        - `settings`: the fields of `System` by name, each with its default there.

        Returns the `System`. Raises `NameNotFound` for a setting that there is not.

        >>> lw.Builder().system(analysis="dynamic", end=2.0).interval
        0.01
        """
        known = list(System.__dataclass_fields__)
        unknown = [key for key in settings if key not in known]
        if unknown:
            raise NameNotFound("setting of the analysis", unknown[0], known)
        self._system = System(**settings)
        return self._system


def _color(color: str, owner: str) -> str:
    if color and not re.fullmatch("#[0-9a-fA-F]{6}", color):
        raise ModelError(f"{owner!r} has the colour {color!r}; give '#rrggbb'", element=owner)
    return color.lower()
