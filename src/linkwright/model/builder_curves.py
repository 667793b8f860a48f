"""The builder's curves, points that stay on them, and curves that touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.model.builder_gears import Gears
from linkwright.model.builder_parts import Body, Frame, Joint, Place, name_of, new_name, put
from linkwright.model.curve_elements import Curve, CurveOnCurve, PointOnCurve, U
from linkwright.model.curve_shapes import MOST_POINTS, check_curve, spline
from linkwright.model.elements import PointOnPlane, as_numbers
from linkwright.model.expression import Call, Expression, Number, as_expression, simplified
from linkwright.model.quantities import Numeric, as_law

#: The least number of points of a spline: of an open one, and of a closed one.
LEAST_POINTS = {False: 2, True: 3}


class Curves(Gears):
    """Collects curves and what stays on them."""

    def __init__(self, ground: str) -> None:
        super().__init__(ground)
        self._curves: dict[str, Curve] = {}
        self._contacts: dict[str, CurveOnCurve] = {}
        #: The joints of massless bodies that constraints on curves have brought along.
        self.massless_joints: dict[str, Joint] = {}

    def curve(
        self,
        name: str,
        place: Place,
        shape: Callable[[Expression], Sequence[Any]] | Any = None,
        *,
        ends: Sequence[Numeric] = (0.0, 2.0 * np.pi),
        closed: bool = False,
        circle: Numeric | None = None,
        line: Numeric | None = None,
    ) -> Curve:
        """A curve on a body, in the plane of a frame: x along its f axis, y along its g axis.

        - `name`: unlike those of all curves.
        - `place`: the body or frame, as an object or by name.
        - `shape`: a function u → (x, y) (m) of plain arithmetic and NumPy's functions, which may use parameters; or two
          points or more, (n, 2) plain numbers (m), through which a cubic spline goes.
        - `ends`: of a function, the least and the largest u, numbers or expressions; 0 and 2π. Of a spline u is the sum
          of the distances of its points (m).
        - `closed`: the curve ends where it begins, with the same tangent; False. The first of its points is not there
          again at the end.
        - `circle`: in place of a shape, the radius (m) of a circle about the frame's origin; u is the angle (rad).
        - `line`: in place of a shape, the length (m) of a line along f, with the origin in its middle; u is x (m).

        Returns the `Curve`. Raises `ModelError` for a name that is taken, and for a curve with a corner, with a place
        where x and y stand still, whose ends do not meet if it is closed, or with numbers that are not finite.

        >>> b = lw.Builder()
        >>> e = b.parameter("e", 0.01)
        >>> shaft = b.body("shaft", 1.0)
        >>> b.curve("cam", shaft, lambda u: (e + 0.03 * np.cos(u), 0.03 * np.sin(u)), closed=True).closed
        True
        >>> b.curve("roller", b.body("follower", 0.2), circle=0.008).kind
        'circle'
        """
        name = new_name(name, "curve", self._curves, "curve")
        shapes = [x for x in (shape, circle, line) if x is not None]
        if len(shapes) != 1:
            raise _fault(name, f"has {len(shapes) or 'no'} shapes; give one function, points, circle= or line=")
        where = self._place(place)
        if circle is not None:
            curve = self._circle(name, where, circle)
        elif line is not None:
            curve = self._line(name, where, line)
        elif callable(shape):
            curve = self._function(name, where, shape, ends, closed)
        else:
            curve = _through(name, where, shape, closed)
        check_curve(curve, self._parameters)
        return put(self._curves, curve)

    def point_on_curve(
        self, curve: Curve | str, point: Place, name: str | None = None, *, start: float | None = None
    ) -> PointOnCurve:
        """The origin of `point` stays on a curve of another body: a pin in a slot, the centre of a roller in a groove.

        Only the plane of the curve counts: along its normal the point is free, so that in a plane mechanism nothing is
        constrained twice. Add `point_on_plane` where nothing else keeps the point in the plane.

        The massless body "NAME along" slides along the normal, on the prismatic joint "NAME along", whose shift (m) is
        about the length along the curve from where the point is drawn.

        - `curve`: a `Curve`, or the name of one.
        - `point`: a body or frame on another body.
        - `name`: as for `rod`; follower1, follower2, … without one.
        - `start`: u where the mechanism is drawn; the nearest point of the curve.

        Returns the `PointOnCurve`. Raises `NameNotFound` for an unknown curve, `ModelError` for two places on one body
        or a name that is taken; a point that is drawn beyond an end is refused with the whole mechanism.

        >>> b = lw.Builder()
        >>> slot = b.curve("slot", b.ground, lambda u: (u, 0.1 * u**2), ends=(-1, 1))
        >>> b.point_on_curve(slot, b.body("bead", 1.0)).name
        'follower1'
        """
        name = self._new_point_constraint(name, "follower")
        on = self._curve(curve)
        _, place = self._two(on.place, point, f"point on curve {name!r}")
        along = self._massless("prismatic", self._frame_at(on.place), f"{name} along")
        return put(self._point_constraints, PointOnCurve(name, on, along, place, start=_start(start, name)))

    def curve_on_curve(
        self,
        first: Curve | str,
        second: Curve | str,
        name: str | None = None,
        *,
        rolling: bool = False,
        start: Sequence[float] | None = None,
    ) -> CurveOnCurve:
        """Two curves of two bodies in one plane touch, and stay in touch: a cam and its roller, or its flat follower.

        They slide on each other without friction, or roll without slip. Contact is kept where it would have to pull;
        its force is negative there. The massless body "NAME point" is at the contact, its x axis along the tangent.

        - `first`, `second`: a `Curve`, or the name of one.
        - `name`: as for `rod`; contact1, contact2, … without one.
        - `rolling`: the contact moves the same length along both curves; False.
        - `start`: both u where the mechanism is drawn; where the curves are nearest and have one tangent.

        Returns the `CurveOnCurve`. Raises `NameNotFound` for an unknown curve and `ModelError` for curves of one body
        or a name that is taken; curves in different planes are refused with the whole mechanism.

        >>> b = lw.Builder()
        >>> cam = b.curve("cam", b.body("shaft", 1.0), circle=0.03)
        >>> face = b.curve("face", b.body("tappet", 0.2), line=0.05)
        >>> b.curve_on_curve(cam, face, "touch").point
        'touch point'
        """
        name = self._new_point_constraint(name, "contact")
        curves = self._curve(first), self._curve(second)
        self._two(curves[0].place, curves[1].place, f"curve on curve {name!r}")
        starts = [None, None] if start is None else [_start(u, name) for u in start]
        if len(starts) != 2:
            raise ModelError(f"curve on curve {name!r} has {len(starts)} starts; give those of both", element=name)
        point = self._massless("planar", self._frame_at(curves[0].place), f"{name} point")
        parts = []
        for curve, u, word in zip(curves, starts, ("first", "second"), strict=True):
            along = self._massless("prismatic", self._frame_at(curve.place), f"{name} along {word}")
            part = name if word == "first" else self._new_point_constraint(f"{name} on {word}", "")
            parts.append(PointOnCurve(part, curve, along, point, start=u, tangent=True, contact=name))
            put(self._point_constraints, parts[-1])
        slip = self._new_point_constraint(f"{name} rolling", "") if rolling else ""
        if rolling:
            put(self._point_constraints, PointOnPlane(slip, parts[0].along, parts[1].along))
        sliders = parts[0].along, parts[1].along
        return put(self._contacts, CurveOnCurve(name, parts[0].name, parts[1].name, point, sliders, slip))

    # -- parts ------------------------------------------------------------------------------------------------
    def _massless(self, kind: str, frame: Frame, name: str) -> str:
        """A massless body on a joint of the same name."""
        self.massless_joints[name] = self.joint(kind, frame, self.body(name), name, actuated=False)
        return name

    def body(self, name: str) -> Body:
        """A massless body; the builder has the whole method."""
        raise NotImplementedError

    def joint(self, kind: str, i: Any, j: Any, name: str, *, actuated: bool) -> Joint:
        """A joint; the builder has the whole method."""
        raise NotImplementedError

    def _curve(self, curve: Curve | str) -> Curve:
        name = name_of(curve)
        if name not in self._curves:
            raise NameNotFound("curve", name, list(self._curves))
        return self._curves[name]

    def _circle(self, name: str, place: str, radius: Numeric) -> Curve:
        size = self._size(name, radius, "radius")
        x, y = size * Call("cos", (U,)), size * Call("sin", (U,))
        ends = Number(0.0), Number(2.0 * np.pi)
        return Curve(name, place, x, y, *ends, closed=True, kind="circle", size=size, speed=size)

    def _line(self, name: str, place: str, length: Numeric) -> Curve:
        size = self._size(name, length, "length")
        ends = simplified(-0.5 * size), simplified(0.5 * size)
        return Curve(name, place, U, Number(0.0), *ends, closed=False, kind="line", size=size, speed=Number(1.0))

    def _size(self, name: str, size: Numeric, what: str) -> Expression:
        law = self._law(size, (), what=f"the {what} of curve {name!r}")
        if not self._now(law) > 0.0:
            raise _fault(name, f"has a {what} of {self._now(law):g} m; give more than 0")
        return law

    def _function(self, name: str, place: str, shape: Any, ends: Any, closed: bool) -> Curve:
        what = f"curve {name!r}"
        try:
            entries = list(shape(U))
        except TypeError as error:
            raise _fault(name, f"has a function that cannot be called with u: {error}; give u → (x, y)") from None
        if len(entries) == 3:
            raise _fault(name, "has three coordinates; a curve is in the plane of its frame: give x along f, y along g")
        if len(entries) != 2:
            raise _fault(name, f"has a function of {len(entries)} entries; give u → (x, y)")
        x, y = (self._law(as_law(as_expression(e), what), (U.name,), what=what) for e in entries)
        if len(ends) != 2:
            raise _fault(name, f"has {len(ends)} ends; give the least and the largest u")
        lower, upper = (self._law(e, (), what=f"the ends of {what}") for e in ends)
        return Curve(name, place, x, y, lower, upper, closed)


def _through(name: str, place: str, points: Any, closed: bool) -> Curve:
    """A spline through points."""
    shape = np.shape(points)
    if len(shape) != 2 or shape[1] not in (2, 3):
        raise _fault(name, f"has points of shape {shape}; give (n, 2) numbers")
    table = as_numbers(points, shape, f"the points of curve {name!r}")
    if table.dtype == object:
        raise _fault(name, "has points that depend on parameters; give plain numbers, or a function of u")
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise _fault(name, f"has the point {tuple(table[row].tolist())}, its number {row + 1}; give finite numbers")
    if shape[1] == 3 and np.any(table[:, 2] != 0.0):
        raise _fault(name, "is not in a plane: points have x and y in the plane of its frame; turn the frame")
    table = table[:, :2]
    least = LEAST_POINTS[closed]
    if not least <= len(table) <= MOST_POINTS:
        text = f"{'a closed' if closed else 'an open'} curve takes {least} to {MOST_POINTS}"
        raise _fault(name, f"has {len(table)} points; {text}")
    steps = np.linalg.norm(np.diff(table, axis=0), axis=1)
    size = float(steps.sum())
    if closed and np.linalg.norm(table[-1] - table[0]) <= 1e-9 * size:
        raise _fault(name, "is closed, and its last point is its first; leave the last out")
    if not steps.min() > 1e-9 * size:
        row = int(np.argmin(steps))
        raise _fault(name, f"has two points in one place, its numbers {row + 1} and {row + 2}; remove one")
    rows = tuple((float(x), float(y)) for x, y in table)
    x, y, upper = spline(rows, closed)
    return Curve(name, place, x, y, Number(0.0), Number(upper), closed, kind="points", points=rows)


def _start(u: Any, name: str) -> Number | None:
    if u is None:
        return None
    at = float(as_numbers(u, (), f"the start of {name!r}"))
    if not np.isfinite(at):
        raise ModelError(f"{name!r} has the start {at}; give a finite u", element=name)
    return Number(at)


def _fault(name: str, text: str) -> ModelError:
    return ModelError(f"curve {name!r} {text}", element=name)
