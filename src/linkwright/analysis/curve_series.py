"""Series of points on curves: where they are, the contact force along the normal, and the pressure angle.

The normal n is the tangent of the (first) curve turned by +90° about h. The pressure angle is that between the normal
and the way that the follower's point can go: along or about the joint that carries it, else along its velocity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.curve_elements import Curve, PointOnCurve, parts_of_curves
from linkwright.model.curve_shapes import ends_of, points_at, slopes_at
from linkwright.model.description import GROUND, Description
from linkwright.results.solution import Solution
from linkwright.results.status import Series
from linkwright.spatial.rotation import euler_parameters_matrix

_AXES = ("x", "y", "z")
_NEAR = 1e-6  # of a circle's radius: a joint at its centre
_CURVED = 1e-3  # of the range of u: between tangents whose difference is the curvature


@dataclass(frozen=True, eq=False)
class Contact:
    """A point on a curve over time: u (T,), the point, the curve's tangent and normal in ground's axes (T, 3)."""

    u: Floats
    point: Floats
    tangent: Floats
    normal: Floats


def curve_series(solution: Solution) -> dict[str, Series]:
    """The series of points on curves that need no forces: parameters, contact points and pressure angles."""
    d, series = solution.description, dict[str, Series]()
    if not len(solution):
        return series
    constraints = [x for x in d.point_constraints if isinstance(x, PointOnCurve)]
    for x in constraints:
        if x.contact and x.name != x.contact:
            continue
        contact = contact_of(solution, x)
        both = [y for y in constraints if x.contact and y.contact == x.contact] or [x]
        for k, y in enumerate(both):
            series[f"{x.name}.u{k + 1 if len(both) > 1 else ''}"] = Series(contact_of(solution, y).u, "")
        for axis, column in zip(_AXES, contact.point.T, strict=True):
            series[f"{x.name}.{axis}"] = Series(column, "m")
        place, circle = (both[1].curve.place, both[1].curve) if x.contact else (x.point, None)
        way = _way(solution, place, circle, contact.point)
        cosine = np.abs(np.sum(contact.normal * way, axis=1))
        sine = np.linalg.norm(np.cross(contact.normal, way), axis=1)
        series[f"{x.name}.pressure_angle"] = Series(np.arctan2(sine, cosine), "rad")
    return series


def contact_of(solution: Solution, x: PointOnCurve) -> Contact:
    """Where a point is on its curve."""
    d = solution.description
    axes, origin = _frame(solution, x.curve.place)
    along, point = solution.position(x.along), solution.position(x.point)
    start, rate = (0.0 if e is None else float(e.evaluate(d.parameters)) for e in (x.start, x.rate))
    u = start - rate * np.sum((point - along) * axes[:, :, 2], axis=1)
    lower, upper = ends_of(x.curve, d.parameters)
    u = lower + np.mod(u - lower, upper - lower) if x.curve.closed else u
    slope = slopes_at(x.curve, u, d.parameters)
    t = slope / np.linalg.norm(slope, axis=1)[:, None]
    flat = points_at(x.curve, u, d.parameters)
    place = origin + np.einsum("tij,tj->ti", axes[:, :, :2], flat)
    tangent = np.einsum("tij,tj->ti", axes[:, :, :2], t)
    return Contact(u, place, tangent, np.cross(axes[:, :, 2], tangent))


def contact_forces(solution: Solution, multipliers: Mapping[str, Floats]) -> Iterator[tuple[str, Series]]:
    """The forces of curves by the multipliers (T, 2 or 3) of their constraints, by name: along the normal on the point,
    of two curves positive where they press, and along the tangent of curves that roll."""
    d = solution.description
    for x in d.point_constraints:
        if not isinstance(x, PointOnCurve) or x.name not in multipliers or (x.contact and x.name != x.contact):
            continue
        axes, _ = _frame(solution, x.curve.place)
        force = np.einsum("tij,tj->ti", axes[:, :, :2], multipliers[x.name][:, :2])
        here = contact_of(solution, x)
        press = np.sum(force * here.normal, axis=1)
        if x.contact:
            press = press * _side(solution, x, here)
        yield f"{x.name}.force", Series(press, "N")
        if any(c.name == x.contact and c.rolling for c in d.contacts):
            yield f"{x.name}.friction", Series(np.sum(force * here.tangent, axis=1), "N")


def _side(solution: Solution, x: PointOnCurve, here: Contact) -> Floats:
    """On which side of the first curve the second is (T,): 1 along the normal, −1 against it."""
    d = solution.description
    other = next(
        y for y in d.point_constraints if isinstance(y, PointOnCurve) and y.contact == x.contact and y.name != x.name
    )
    bends = []
    for y, u in ((x, here.u), (other, contact_of(solution, other).u)):
        axes, _ = _frame(solution, y.curve.place)
        bends.append(np.sum(np.einsum("tij,tj->ti", axes[:, :, :2], _bend(y.curve, u, d)) * here.normal, axis=1))
    return np.where(bends[1] < bends[0], -1.0, 1.0)


def _bend(curve: Curve, u: Floats, d: Description) -> Floats:
    """The curvature vector (T, 2) of a curve, to a part in a thousand."""
    lower, upper = ends_of(curve, d.parameters)
    h = _CURVED * (upper - lower)
    low, high = u - h, u + h
    if curve.closed:
        low, high = (lower + np.mod(z - lower, upper - lower) for z in (low, high))
    else:
        low, high = np.clip(low, lower, upper), np.clip(high, lower, upper)
    t = [z / np.linalg.norm(z, axis=1)[:, None] for z in (slopes_at(curve, v, d.parameters) for v in (low, high))]
    chord = np.linalg.norm(points_at(curve, high, d.parameters) - points_at(curve, low, d.parameters), axis=1)
    return np.asarray((t[1] - t[0]) / chord[:, None])


def _frame(solution: Solution, name: str) -> tuple[Floats, Floats]:
    """Axes (T, 3, 3) and origin (T, 3) of a frame in ground's axes."""
    e = np.broadcast_to(solution.orientation(name), (len(solution), 4))
    r = np.moveaxis(np.asarray(euler_parameters_matrix(e.T)), -1, 0)
    return r, np.broadcast_to(solution.position(name), (len(solution), 3))


def _way(solution: Solution, place: str, curve: Curve | None, at: Floats) -> Floats:
    """The direction (T, 3) in which the body of a frame can move at points (T, 3)."""
    d = solution.description
    body = d.frame_number(place)[0]
    joint = _carrying(d, body, {-2})
    if joint is not None and curve is not None and curve.kind == "circle" and d.kind_of(joint).name == "revolute":
        axis, origin = _axis(solution, joint)
        centre = _frame(solution, place)[1]
        gap = np.linalg.norm(np.cross(centre - origin, axis), axis=1)
        if gap.max() < _NEAR * float(np.ptp(points_at(curve, np.linspace(0.0, 6.0, 50), d.parameters))):
            other = int(d.parent[joint]) if int(d.child[joint]) == body else int(d.child[joint])
            body, at = other, centre  # a roller on its pin: what carries the pin is the follower
            joint = _carrying(d, body, {joint})
    if joint is not None:
        axis, origin = _axis(solution, joint)
        way = axis if d.kind_of(joint).name == "prismatic" else np.cross(axis, at - origin)
    else:
        name = d.body_name(body)
        arm = at - solution.position(name)
        way = solution.velocity(name) + np.cross(solution.angular_velocity(name), arm)
    with np.errstate(all="ignore"):
        return np.asarray(way / np.linalg.norm(way, axis=1)[:, None])


def _carrying(d: Description, body: int, besides: set[int]) -> int | None:
    """The one revolute or prismatic joint that carries a body; None where there are more, or none."""
    if body == GROUND:
        return None
    massless = parts_of_curves(d.point_constraints)
    joints = [
        j
        for j in range(d.nj)
        if body in (int(d.parent[j]), int(d.child[j])) and d.joint_names[j] not in massless and j not in besides
    ]
    known = [j for j in joints if d.kind_of(j).name in ("revolute", "prismatic")]
    if len(joints) > 1:  # that to ground, if there is one
        known = [j for j in known if GROUND in (int(d.parent[j]), int(d.child[j]))]
    return known[0] if len(known) == 1 else None


def _axis(solution: Solution, joint: int) -> tuple[Floats, Floats]:
    """The axis (T, 3) and a point of it (T, 3) of a joint."""
    d = solution.description
    body, r, p = d.side(joint, "i")
    axes, origin = _frame(solution, d.body_name(body))
    return axes @ r[:, 2], origin + axes @ p
