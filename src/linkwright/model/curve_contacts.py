"""Where points and curves touch the curves that they stay on, as a mechanism is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.curve_elements import Curve, CurveOnCurve, PointOnCurve, U
from linkwright.model.curve_shapes import (
    by_arc_length,
    check_curve,
    ends_of,
    length_of,
    outline,
    points_at,
    reparametrised,
    slopes_at,
)
from linkwright.model.description import Description
from linkwright.model.drawing import drawn
from linkwright.model.expression import Expression, Lookup, Number, simplified
from linkwright.model.gear_pairs import frames_at

#: Planes of curves that touch are parallel within this sine, and one plane within this part of the curves' sizes.
PLANE = 1e-3
#: A point is drawn beyond the end of a curve if it is farther from it than this part of the curve's length.
BEYOND = 1e-3
#: Contacts as drawn within this part of their curves are one contact that moved.
NEAR = 0.02
_SEARCHED = 360  # places on each of two curves
_STEPS = 30

Frame = tuple[Floats, Floats]


def fitted_curves(d: Description) -> Description:
    """The description with the parameters of curves at which they are touched as drawn, and where contacts slide."""
    for curve in d.curves:
        check_curve(curve, d.parameters)
    if not any(isinstance(x, PointOnCurve) for x in d.point_constraints):
        return d
    r, p = drawn(d)
    frames = frames_at(d, r[None], p[None])

    def frame(name: str) -> Frame:
        axes, origin = frames(name)
        return axes[0], origin[0]

    fits = {x.name: x for x in d.point_constraints if isinstance(x, PointOnCurve)}
    joints = _JointRows(d)
    for contact in d.contacts:
        first, second = _touching(d, contact, fits[contact.first], fits[contact.second], frame)
        fits[contact.first], fits[contact.second] = first, second
        joints.put_contact(contact, first)
    for name, x in fits.items():
        if not x.contact:
            fits[name] = _followed(d, x, frame)
        joints.put_ends(fits[name])
    constraints = tuple(fits[x.name] if isinstance(x, PointOnCurve) else x for x in d.point_constraints)
    return joints.described(constraints)


def drawn_starts(d: Description) -> dict[str, float]:
    """u of every point on a curve as drawn, whatever it was given."""
    constraints = tuple(replace(x, start=None) if isinstance(x, PointOnCurve) else x for x in d.point_constraints)
    fits = fitted_curves(replace(d, point_constraints=constraints)).point_constraints
    return {x.name: number(x.start) for x in fits if isinstance(x, PointOnCurve)}


def with_contacts_of(d: Description, other: Description) -> Description:
    """The description with the contacts of another one of the same model: where they are on their curves as drawn, from
    where the massless bodies of curves count their shifts. Either describes the same motion."""
    known = {x.name: x for x in other.point_constraints if isinstance(x, PointOnCurve)}
    constraints = tuple(
        replace(x, start=known[x.name].start, rate=known[x.name].rate)
        if isinstance(x, PointOnCurve) and x.name in known
        else x
        for x in d.point_constraints
    )
    arrays: dict[str, Any] = {name: np.array(getattr(d, name), float) for name in ("ri", "pi")}
    for contact in d.contacts:
        j = d.joint_names.position("joint", contact.point)
        for name, rows in arrays.items():
            rows[j] = getattr(other, name)[j]
    return replace(d, point_constraints=constraints, **arrays)


def contacts_near(d: Description, other: Description) -> bool:
    """Whether the contacts as drawn of two descriptions of one model are near to each other on their curves."""
    known = {x.name: x for x in other.point_constraints if isinstance(x, PointOnCurve)}
    for x in d.point_constraints:
        if not isinstance(x, PointOnCurve):
            continue
        lower, upper = ends_of(x.curve, d.parameters)
        apart = abs(number(x.start) - number(known[x.name].start))
        apart = min(apart, abs(upper - lower - apart)) if x.curve.closed else apart
        if not apart <= NEAR * (upper - lower):
            return False
    return True


def own_parameter(curve: Curve, followed: Curve, u: float, parameters: Mapping[str, float]) -> float:
    """The parameter of a curve where the one that is followed, which may be the same by its arc length, is at u."""
    by = None if curve == followed else by_arc_length(curve, parameters)
    return u if by is None else float(by.evaluate({U.name: u}))


def number(x: Expression | None) -> float:
    """The value of an expression that is a plain number."""
    return 0.0 if x is None else float(x.evaluate({}))


class _JointRows:
    """The rows of the joints of massless bodies, to be changed."""

    def __init__(self, d: Description) -> None:
        self.d = d
        self.arrays: dict[str, Any] = {
            name: np.array(getattr(d, name), float) for name in ("ri", "pi", "lower", "upper")
        }
        self.bindings = dict(d.bindings)

    def put_ends(self, x: PointOnCurve) -> None:
        """The limits of the shift along an open curve."""
        if x.curve.closed:
            return
        j = self.d.joint_names.position("joint", x.along)
        at = number(x.start)
        assert x.rate is not None
        rate = float(x.rate.evaluate(self.d.parameters))
        shifts = sorted((u - at) / rate for u in ends_of(x.curve, self.d.parameters))
        self.arrays["lower"][j], self.arrays["upper"][j] = shifts

    def put_contact(self, contact: CurveOnCurve, first: PointOnCurve) -> None:
        """The planar joint of a contact, at rest where the curves touch as drawn, its x axis along the tangent."""
        j = self.d.joint_names.position("joint", contact.point)
        _, axes, origin = self.d.frame(first.curve.place)
        u = np.array([number(first.start)])
        (x, y), slope = points_at(first.curve, u, self.d.parameters)[0], _slope(first.curve, u, self.d)[0]
        c, s = slope / np.linalg.norm(slope)
        self.arrays["ri"][j] = axes @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        self.arrays["pi"][j] = origin + axes @ np.array([x, y, 0.0])
        for name, size in (("ri", 9), ("pi", 3)):
            for k in range(size):
                self.bindings.pop((name, size * j + k), None)

    def described(self, constraints: Any) -> Description:
        return replace(self.d, point_constraints=constraints, bindings=self.bindings, **self.arrays)


def _slope(curve: Curve, u: Floats, d: Description) -> Floats:
    """dc/du, that of a closed curve at u in its range."""
    lower, upper = ends_of(curve, d.parameters)
    inside = lower + np.mod(u - lower, upper - lower) if curve.closed else np.clip(u, lower, upper)
    return slopes_at(curve, inside, d.parameters)


def _rate(curve: Curve, d: Description) -> Expression:
    """du/ds, for s that is about the length along the curve."""
    if curve.speed is not None:
        return simplified(1.0 / curve.speed)
    u, points = outline(curve, d.parameters)
    return Number(float(u[-1] - u[0]) / length_of(points))


def _followed(d: Description, x: PointOnCurve, frame: Any) -> PointOnCurve:
    """A point on a curve with its start: the nearest point of the curve."""
    if x.start is not None:
        return replace(x, rate=_rate(x.curve, d))
    (axes, origin), (_, point) = frame(x.curve.place), frame(x.point)
    at = (axes.T @ (point - origin))[:2]
    u, points = outline(x.curve, d.parameters)
    best = u[int(np.argmin(np.linalg.norm(points - at, axis=1)))]
    lower, upper = u[0], u[-1]
    step = (upper - lower) / (len(u) - 1)
    for _ in range(_STEPS):  # Newton's method for the foot of the normal, within the samples beside it
        place, slope = points_at(x.curve, np.array([best]), d.parameters)[0], _slope(x.curve, np.array([best]), d)[0]
        change = float(np.clip((at - place) @ slope / (slope @ slope), -step, step))
        best = best + change if x.curve.closed else float(np.clip(best + change, lower, upper))
        if abs(change) < 1e-15 * abs(upper - lower):
            break
    if not x.curve.closed:
        place, slope = points_at(x.curve, np.array([best]), d.parameters)[0], _slope(x.curve, np.array([best]), d)[0]
        past = float((at - place) @ slope / np.linalg.norm(slope))
        ahead = past if best == upper else -past if best == lower else 0.0
        if ahead > BEYOND * length_of(points):
            text = f"{x.point!r} is drawn {ahead:.4g} m beyond the end of curve {x.curve.name!r}; draw it on the curve"
            raise ModelError(f"point on curve {x.name!r}: {text}, or make the curve longer", element=x.name)
    return replace(x, start=Number(_in_range(best, x.curve, lower, upper)), rate=_rate(x.curve, d))


def _in_range(u: float, curve: Curve, lower: float, upper: float) -> float:
    return float(lower + np.mod(u - lower, upper - lower)) if curve.closed else float(u)


# -- two curves -------------------------------------------------------------------------------------------------
def _touching(
    d: Description, contact: CurveOnCurve, one: PointOnCurve, two: PointOnCurve, frame: Any
) -> tuple[PointOnCurve, PointOnCurve]:
    """Both points on curves of a contact with their starts: where the curves are nearest, with the same tangent."""
    (axes, origin), (others, to) = frame(one.curve.place), frame(two.curve.place)
    r, p = axes.T @ others, axes.T @ (to - origin)
    _check_planes(d, contact, one.curve, two.curve, r, p)
    if contact.rolling:
        one, two = (_rolling(x, d, contact) for x in (one, two))
    turn, facing = r[:2, :2], float(np.sign(r[2, 2]))
    if one.start is None or two.start is None:
        u1, u2 = _nearest(d, one.curve, two.curve, turn, p[:2])
        one, two = replace(one, start=Number(u1)), replace(two, start=Number(u2))
    rates = [_rate(x.curve, d) for x in (one, two)]
    if contact.rolling:
        t1, t2 = (_slope(x.curve, np.array([number(x.start)]), d)[0] for x in (one, two))
        if facing * float(t1 @ (turn @ t2)) < 0.0:  # both shifts are along one axis: they grow together
            rates[1] = simplified(-rates[1])
    return replace(one, rate=rates[0]), replace(two, rate=rates[1])


def _rolling(x: PointOnCurve, d: Description, contact: CurveOnCurve) -> PointOnCurve:
    """The point on the curve by its arc length, if |dc/du| is not one number."""
    curve = x.curve
    by = by_arc_length(curve, d.parameters)
    if by is None:
        return x
    if any(e.names() & d.parameters.keys() for e in curve.expressions):
        text = f"rolls on curve {curve.name!r}, whose length along it depends on parameters; give it plain numbers, or "
        raise ModelError(f"curve on curve {contact.name!r} {text}a circle or a line", element=contact.name)
    along = reparametrised(curve, by, by.table.breaks[-1])
    return replace(x, curve=along, start=None if x.start is None else Number(_inverse(by, number(x.start))))


def _inverse(by: Lookup, u: float) -> float:
    """Where an increasing table has the value u."""
    low, high = by.table.breaks[0], by.table.breaks[-1]
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(by.table(middle)) < u else (low, middle)
    return 0.5 * (low + high)


def _check_planes(d: Description, contact: CurveOnCurve, one: Curve, two: Curve, r: Floats, p: Floats) -> None:
    sine = float(np.linalg.norm(r[:2, 2]))
    if sine > PLANE:
        text = f"{one.name!r} and {two.name!r} are in planes at {np.degrees(np.arcsin(min(sine, 1.0))):.4g}°"
        raise _fault(contact, f"{text}; give frames with parallel h axes")
    size = max(length_of(outline(x, d.parameters, 100)[1]) for x in (one, two))
    if abs(p[2]) > PLANE * size:
        text = f"{one.name!r} and {two.name!r} are in planes that are {abs(float(p[2])):.4g} m apart"
        raise _fault(contact, f"{text}; give frames in one plane")


def _nearest(d: Description, one: Curve, two: Curve, turn: Floats, shift: Floats) -> tuple[float, float]:
    """The parameters of two curves where they are nearest to each other with one tangent."""

    def places(u1: Floats, u2: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        c1, c2 = points_at(one, u1, d.parameters), points_at(two, u2, d.parameters) @ turn.T + shift
        t1, t2 = _slope(one, u1, d), _slope(two, u2, d) @ turn.T
        return c1, c2, *(t / np.linalg.norm(t, axis=-1)[..., None] for t in (t1, t2))

    grids = [np.linspace(*ends_of(x, d.parameters), _SEARCHED + 1) for x in (one, two)]
    c1, c2, t1, t2 = places(*grids)
    size = min(length_of(c1), length_of(c2)) / (2.0 * np.pi)

    def cost(c1: Floats, c2: Floats, t1: Floats, t2: Floats) -> Floats:
        sine = t1[..., 0] * t2[..., 1] - t1[..., 1] * t2[..., 0]
        return np.asarray(np.sum((c1 - c2) ** 2, axis=-1) + (size * sine) ** 2)

    table = cost(c1[:, None], c2[None], t1[:, None], t2[None])
    i, k = np.unravel_index(int(np.argmin(table)), table.shape)
    best = np.array([grids[0][i], grids[1][k]])
    step = np.array([g[1] - g[0] for g in grids])
    steps = np.linspace(-1.0, 1.0, 9)
    for _ in range(_STEPS):  # finer and finer grids about the best place
        near = [best[j] + step[j] * steps for j in (0, 1)]
        near = [x if c.closed else np.clip(x, g[0], g[-1]) for x, c, g in zip(near, (one, two), grids, strict=True)]
        c1, c2, t1, t2 = places(*near)
        table = cost(c1[:, None], c2[None], t1[:, None], t2[None])
        i, k = np.unravel_index(int(np.argmin(table)), table.shape)
        best, step = np.array([near[0][i], near[1][k]]), 0.4 * step

    def gaps(u: Floats) -> Floats:
        """How far the curves are from each other along the tangent, and the sine between the tangents."""
        c1, c2, t1, t2 = (x[0] for x in places(u[:1], u[1:]))
        return np.array([(c1 - c2) @ t1 / size, t1[0] * t2[1] - t1[1] * t2[0]])

    best = _polished(gaps, best, [1e-6 * (g[-1] - g[0]) for g in grids])
    return tuple(_in_range(float(u), c, g[0], g[-1]) for u, c, g in zip(best, (one, two), grids, strict=True))  # type: ignore[return-value]


def _polished(gaps: Callable[[Floats], Floats], u: Floats, steps: Sequence[float]) -> Floats:
    """The zero of two functions by Newton's method from a place near it; the place itself if none is found."""
    at, sizes = u, np.diag(steps)
    for _ in range(10):
        jacobian = np.stack([(gaps(at + h) - gaps(at - h)) / (2.0 * h.sum()) for h in sizes], axis=1)
        if not np.linalg.cond(jacobian * np.asarray(steps)) < 1e8:
            return u
        at = at - np.linalg.solve(jacobian, gaps(at))
        if not np.all(np.abs(at - u) < 1e4 * np.asarray(steps)):
            return u
    return np.asarray(at)


def _fault(contact: CurveOnCurve, text: str) -> ModelError:
    return ModelError(f"curve on curve {contact.name!r}: {text}", element=contact.name)
