"""The shapes of curves: their expressions over plain names, splines through points, and what keeps a curve from being
one that a point can follow: a corner, a stop, ends that do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.coupling_relation import numbered
from linkwright.model.curve_elements import Curve, U
from linkwright.model.expression import Expression, Lookup, Name, Number, numeric_values, replaced
from linkwright.model.motion_laws import mod
from linkwright.tape.operations import Table

#: Points of a spline at most, and places at which a curve is looked at.
MOST_POINTS, SAMPLES = 2000, 2000
#: Ends that are nearer than this part of the curve's length meet; a tangent that jumps by more (rad) is a corner.
MEET, CORNER = 1e-6, 0.02
#: A slope |dc/du| below this part of its mean is a stop of the curve's parameter, where the tangent is lost.
STOP = 1e-6
_DIFFERENCE = 1e-5  # of the range of u: the step of differences
_STEPS = 40  # of bisection towards a corner


@dataclass(frozen=True)
class CurveShape:
    """x, y and the ends of a curve over plain names: u, and p0, p1, … for parameters and numbers."""

    x: Expression
    y: Expression
    lower: Expression
    upper: Expression
    closed: bool
    numbers: int

    def at(self, u: Any, p: Sequence[Any]) -> Any:
        """x and y."""
        names = {"u": u} | {f"p{k}": p[k] for k in range(self.numbers)}
        return np.array([self.x.evaluate(names), self.y.evaluate(names)])

    def ends(self, p: Sequence[Any]) -> tuple[Any, Any]:
        """The least and the largest u."""
        names = {f"p{k}": p[k] for k in range(self.numbers)}
        return self.lower.evaluate(names), self.upper.evaluate(names)

    def wrapped(self, u: Any, p: Sequence[Any]) -> Any:
        """u within the ends of a closed curve."""
        if not self.closed:
            return u
        lower, upper = self.ends(p)
        return lower + mod(u - lower, upper - lower)


def shape_of(curve: Curve, parameters: Mapping[str, float]) -> tuple[CurveShape, tuple[Expression, ...]]:
    """The shape of a curve, and what its p stand for; curves that differ by numbers alone share it."""
    by: dict[Expression, Expression] = {U: Name("u")}
    numbers: dict[Expression, Expression] = {}
    x, y, lower, upper = (numbered(e, by, numbers, parameters) for e in curve.expressions)
    return CurveShape(x, y, lower, upper, curve.closed, len(numbers)), tuple(numbers)


# -- numbers ---------------------------------------------------------------------------------------------------
def ends_of(curve: Curve, parameters: Mapping[str, float]) -> tuple[float, float]:
    """The least and the largest u with these parameters."""
    return float(curve.lower.evaluate(parameters)), float(curve.upper.evaluate(parameters))


def points_at(curve: Curve, u: Floats, parameters: Mapping[str, float]) -> Floats:
    """(..., 2): x and y at u (...), that of a closed curve taken into its range."""
    lower, upper = ends_of(curve, parameters)
    u = lower + np.mod(u - lower, upper - lower) if curve.closed else np.asarray(u, float)
    values = [np.broadcast_to(numeric_values(e, {**parameters, U.name: u}), u.shape) for e in (curve.x, curve.y)]
    return np.stack(values, axis=-1)


def slopes_at(curve: Curve, u: Floats, parameters: Mapping[str, float], side: int = 0) -> Floats:
    """(..., 2): dc/du by differences of second order within the range of u, from one side only if `side` is −1 or 1."""
    lower, upper = ends_of(curve, parameters)
    h = _DIFFERENCE * (upper - lower)
    if side == 0 and curve.closed:
        return np.asarray((points_at(curve, u + h, parameters) - points_at(curve, u - h, parameters)) / (2.0 * h))
    ways = np.where(u + h > upper, -1.0, np.where(u - h < lower, 1.0, 0.0)) if side == 0 else np.full(u.shape, side)
    beside = np.where(ways == 0.0, 1.0, ways)[..., None] * h
    one, two, here = (_inside(curve, u + k * beside[..., 0], parameters) for k in (1.0, 2.0, 0.0))
    before = _inside(curve, np.maximum(u - h, lower), parameters)
    return np.asarray(
        np.where(ways[..., None] == 0.0, (one - before) / (2.0 * h), (4.0 * one - two - 3.0 * here) / (2.0 * beside))
    )


def _inside(curve: Curve, u: Floats, parameters: Mapping[str, float]) -> Floats:
    """As `points_at`, where the upper end is not taken for the lower."""
    names: dict[str, float | Floats] = {**parameters, U.name: u}
    return np.stack([np.broadcast_to(numeric_values(e, names), u.shape) for e in (curve.x, curve.y)], axis=-1)


def outline(curve: Curve, parameters: Mapping[str, float], count: int = SAMPLES) -> tuple[Floats, Floats]:
    """(count + 1,) and (count + 1, 2): u from end to end, and the points there."""
    u = np.linspace(*ends_of(curve, parameters), count + 1)
    return u, _inside(curve, u, parameters)


def length_of(points: Floats) -> float:
    """The length of an outline (m)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


# -- splines -----------------------------------------------------------------------------------------------------
def spline(points: Sequence[tuple[float, float]], closed: bool) -> tuple[Lookup, Lookup, float]:
    """x and y of u as cubic splines through points, natural or periodic, and the largest u: u is the sum of the chords.

    The point that closes a closed curve is its first, which is not repeated.
    """
    at = np.array([*points, points[0]] if closed else points, dtype=np.float64)
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(at, axis=0), axis=1))])
    make = _periodic if closed else lambda u, z: Table.spline(u.tolist(), z.tolist())
    x, y = (Lookup(make(knots, z), U) for z in at.T)
    return x, y, float(knots[-1])


def _periodic(u: Floats, y: Floats) -> Table:
    """The periodic cubic spline through points whose last is the first."""
    h, n = np.diff(u), len(u) - 1
    slope = np.diff(y) / h
    before, k = np.roll(h, 1), np.arange(n)
    system = np.zeros((n, n))
    system[k, k] = 2.0 * (h + before)
    np.add.at(system, (k, (k + 1) % n), h)
    np.add.at(system, (k, (k - 1) % n), before)
    second = np.linalg.solve(system, 6.0 * (slope - np.roll(slope, 1)))
    return _table(u, y, np.append(second, second[0]))


def by_arc_length(curve: Curve, parameters: Mapping[str, float]) -> Lookup | None:
    """u of a curve by its arc length from `lower`; None where |dc/du| is one number."""
    if curve.speed is not None:
        return None
    knots = np.linspace(*ends_of(curve, parameters), 801)
    nodes, weights = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(knots)
    u = knots[:-1, None] + half[:, None] * (1.0 + nodes)
    speed = np.linalg.norm(slopes_at(curve, u, parameters), axis=-1)
    arc = np.concatenate([[0.0], np.cumsum(half * (speed @ weights))])
    ends = 1.0 / np.linalg.norm(slopes_at(curve, knots[[0, -1]], parameters), axis=-1)
    return Lookup(_clamped(arc, knots, ends), U)


def _clamped(u: Floats, y: Floats, ends: Floats) -> Table:
    """The cubic spline through points with these slopes at both ends."""
    h, n = np.diff(u), len(u)
    slope, k = np.diff(y) / h, np.arange(n - 1)
    system = np.zeros((n, n))
    np.add.at(system, (k, k), 2.0 * h)
    np.add.at(system, (k + 1, k + 1), 2.0 * h)
    system[k, k + 1] = system[k + 1, k] = h
    second = np.linalg.solve(system, 6.0 * np.diff(slope, prepend=ends[0], append=ends[1]))
    return _table(u, y, np.asarray(second, dtype=np.float64))


def _table(u: Floats, y: Floats, second: Floats) -> Table:
    """The spline through points with these second derivatives."""
    h = np.diff(u)
    slope = np.diff(y) / h - h * (2.0 * second[:-1] + second[1:]) / 6.0
    rows = np.stack([y[:-1], slope, second[:-1] / 2.0, np.diff(second) / (6.0 * h)], axis=1)
    return Table(tuple(u.tolist()), tuple(map(tuple, rows.tolist())))


# -- checks -------------------------------------------------------------------------------------------------------
def check_curve(curve: Curve, parameters: Mapping[str, float]) -> None:
    """Refuse a curve that no point can follow; an error says where and why."""
    lower, upper = ends_of(curve, parameters)
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise _fault(curve, f"goes from u = {lower:g} to {upper:g}; the range of u has to increase")
    u, points = outline(curve, parameters)
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise _fault(curve, f"has no finite point at u = {u[bad][0]:g}; change its expressions or its range")
    length = length_of(points)
    if not length > 0.0:
        raise _fault(curve, "is a single point; let x or y depend on u")
    gap = float(np.linalg.norm(points[-1] - points[0]))
    if curve.closed and gap > MEET * length:
        raise _fault(curve, f"is closed, and its ends are {gap:.4g} m apart; let them meet, or leave out closed")
    slopes = slopes_at(curve, u, parameters)
    speed = np.linalg.norm(slopes, axis=1)
    at = int(np.argmin(speed))
    if speed[at] < STOP * float(speed.mean()):
        raise _fault(curve, f"stands still at u = {u[at]:g}, where dx/du and dy/du are 0; give it another parameter")
    corner = _corner(curve, u, slopes / speed[:, None], parameters)
    if corner is not None:
        place = round(corner[0] / (upper - lower), 5) * (upper - lower) + 0.0
        text = f"has a corner of {np.degrees(corner[1]):.3g}° at u = {place:.4g}; round it, or split the curve"
        raise _fault(curve, text)


def _corner(curve: Curve, u: Floats, tangents: Floats, parameters: Mapping[str, float]) -> tuple[float, float] | None:
    """u and the angle of the tangent's largest jump, if it is one."""
    if curve.closed:
        ends = [slopes_at(curve, u[[k]], parameters, side)[0] for k, side in ((-1, -1), (0, 1))]
        jump = _angle(*(x / np.linalg.norm(x) for x in ends))
        if jump > CORNER:
            return float(u[0]), jump
    turns = np.array([_angle(a, b) for a, b in pairwise(tangents)])
    for k in np.argsort(turns)[::-1][:8].tolist():
        if turns[k] <= CORNER:
            break
        low, high = float(u[k]), float(u[k + 1])
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            one, between, two = (_tangent(curve, np.array([z]), parameters) for z in (low, middle, high))
            low, high = (low, middle) if _angle(one, between) > _angle(between, two) else (middle, high)
            if high - low < 1e-4 * (u[1] - u[0]):
                break
        far = 3e-5 * float(u[-1] - u[0])
        jump = _angle(*(_tangent(curve, np.array([z]), parameters, s) for z, s in ((low - far, -1), (high + far, 1))))
        if jump > max(CORNER, 0.5 * turns[k]):
            return 0.5 * (low + high), jump
    return None


def _tangent(curve: Curve, u: Floats, parameters: Mapping[str, float], side: int = 0) -> Floats:
    slope = slopes_at(curve, u, parameters, side)[0]
    return np.asarray(slope / np.linalg.norm(slope))


def _angle(a: Floats, b: Floats) -> float:
    return float(abs(np.arctan2(a[0] * b[1] - a[1] * b[0], a @ b)))


def _fault(curve: Curve, text: str) -> ModelError:
    return ModelError(f"curve {curve.name!r} {text}", element=curve.name)


def reparametrised(curve: Curve, by: Expression, upper: float) -> Curve:
    """The same curve by another parameter, from 0 to `upper`."""
    x, y = (replaced(e, {U: by}) for e in (curve.x, curve.y))
    from_zero = {"lower": Number(0.0), "upper": Number(upper), "speed": Number(1.0)}
    return Curve(curve.name, curve.place, x, y, closed=curve.closed, kind=curve.kind, points=curve.points, **from_zero)
