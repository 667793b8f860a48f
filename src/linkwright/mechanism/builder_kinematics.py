"""The kinematic part of a Builder: poses as drawn, drivers, rods, point constraints, shapes, the analysis."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.bound import Array, as_numbers, is_bound, split_bindings
from linkwright.mechanism.builder_parts import Body, Joint, Parts, Triad, name_of, new_name, put
from linkwright.mechanism.checks import check_driven_joint
from linkwright.mechanism.drawing import SHAPE_SIZES, Shape, ShapeKind, Trace
from linkwright.mechanism.elements import Axis, Driver, PointOnLine, PointOnPlane, Rod, Tie
from linkwright.mechanism.expression import TIME, Expression
from linkwright.mechanism.frames import are_parallel, axes_of, snapped
from linkwright.mechanism.kinds import KINDS
from linkwright.mechanism.laws import written
from linkwright.mechanism.system import System

Numeric = float | Expression
Place = Triad | Body | str


class Kinematics(Parts):
    """Collects what kinematic analysis and drawing need besides bodies, triads and joints."""

    def __init__(self, ground: str) -> None:
        super().__init__(ground)
        self._ties: dict[str, Tie] = {}
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
    ) -> None:
        """Where a body is drawn, in ground's axes: the rough start from which the mechanism is assembled.

        Its axes are given by h (z) and f (x), or by a rotation matrix whose columns they are.

        - `body`: a `Body`, or the name of one, but not ground.
        - `origin` (m): three numbers or expressions; ground's origin.
        - `h`, `f`: directions of any length; z and x.
        - `rotation`: 3×3 numbers or expressions in place of h and f.

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
        self._starts[owner.name] = (r if is_bound(r) else snapped(r), at)

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

        `absolute`: `coordinate` ("x", "y" or "z") of the origin of a body or triad; `joint`: coordinate `index` of
        a joint; `distance` and `angle`: between the origins, or the named axes, of two triads or bodies. An angle
        turns about the h axes where these stay parallel; elsewhere it lies between 0 and π.
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
                raise ModelError(f"driver {name!r} is a {kind}; name the second triad with other=", element=name)
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

        - `first`, `second`: bodies or triads on two bodies, as objects or by name.
        - `length` (m): a number or expression greater than zero.
        - `name`: unlike those of all joints, rods and point constraints; rod1, rod2, … without one.

        Returns the `Rod`. Raises `ModelError` for two places on one body, a name that is taken or another length.

        >>> b = lw.Builder()
        >>> b.rod(b.ground, b.body("bob", 1.0), length=0.5).name
        'rod1'
        """
        name = self._new_tie(name, "rod")
        a, b = self._two(first, second, f"rod {name!r}")
        if not self._now(length) > 0.0:
            raise ModelError(f"rod {name!r} has no positive length; two points that meet are a joint", element=name)
        return put(self._ties, Rod(name, a, b, self._law(length, ())))

    def point_on_line(self, line: Place, point: Place, name: str | None = None) -> PointOnLine:
        """The origin of `point` stays on the z axis (h) of `line`.

        - `line`, `point`: bodies or triads on two bodies, as objects or by name.
        - `name`: as for `rod`; line1, line2, … without one.

        Returns the `PointOnLine`. Raises `ModelError` for two places on one body or a name that is taken.

        >>> b = lw.Builder()
        >>> b.point_on_line(b.ground, b.body("bead", 1.0)).name
        'line1'
        """
        name = self._new_tie(name, "line")
        return put(self._ties, PointOnLine(name, *self._two(line, point, f"point-on-line {name!r}")))

    def point_on_plane(self, plane: Place, point: Place, name: str | None = None) -> PointOnPlane:
        """The origin of `point` stays in the x–y plane of `plane`, to which its z axis (h) is perpendicular.

        - `plane`, `point`: bodies or triads on two bodies, as objects or by name.
        - `name`: as for `rod`; plane1, plane2, … without one.

        Returns the `PointOnPlane`. Raises `ModelError` for two places on one body or a name that is taken.

        >>> b = lw.Builder()
        >>> b.point_on_plane(b.ground, b.body("foot", 1.0)).name
        'plane1'
        """
        name = self._new_tie(name, "plane")
        return put(self._ties, PointOnPlane(name, *self._two(plane, point, f"point-on-plane {name!r}")))

    def _new_tie(self, name: str | None, stem: str) -> str:
        return new_name(name, stem, self._ties.keys() | self._joints.keys(), "joint, rod or point constraint")

    def _two(self, first: Any, second: Any, what: str) -> tuple[str, str]:
        """The names of two places on different bodies."""
        bodies = self._triad(first).body, self._triad(second).body
        if bodies[0] == bodies[1]:
            text = f"{what} is between {name_of(first)!r} and {name_of(second)!r}, both on {bodies[0].name!r}; "
            raise ModelError(text + "name triads of two bodies", element=bodies[0].name)
        return self._place(first), self._place(second)

    def _moving(self, place: Any, driver: str) -> str:
        """The name of a place that is not on ground."""
        if self._triad(place).body == self.ground:
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
        """A shape in the axes of a triad or body, its middle at the origin.

        Sizes: box x, y, z; cylinder, cone and capsule radius, length (along h); sphere radius; mesh scale, with `file`.
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
        """The origin of a triad or body leaves a trail when the motion is drawn.

        - `place`: a body or triad, as an object or by name.
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
