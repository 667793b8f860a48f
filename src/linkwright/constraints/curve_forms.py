"""Points on curves as a form of constraint equations.

The first frame is that of the massless body that slides along the normal of the curve's plane, so that a point at p in
its axes is at u = start − rate · p_z: the equations p_x = x(u), p_y = y(u) need no further coordinate. The body has no
mass, so that the force λ on the point has no part along the curve: λ · c′(u) = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwright.constraints.constraint_forms import Form, Frame, between
from linkwright.model.curve_shapes import CurveShape
from linkwright.spatial.algebra import Array
from linkwright.tape.build import record
from linkwright.tape.program import Program


@cache
def point_on_curve(shape: CurveShape, tangent: bool) -> Form:
    """A point on a curve, with `tangent` a frame whose f axis is tangent to it; record: start, rate, numbers."""

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        r, p = between(frames[0], frames[1])
        u, numbers = shape.wrapped(record[0] - record[1] * p[2], record[2:]), record[2:]
        if not tangent:
            x, y = shape.at(u, numbers)
            return np.array([p[0] - x, p[1] - y])
        (x, y), (dx, dy) = tangent_at(shape, u, numbers)
        size = np.sqrt(dx * dx + dy * dy)
        return np.array([p[0] - x, p[1] - y, (dx * r[1, 0] - dy * r[0, 0]) / size])

    names = ("on the curve, along f", "on the curve, along g", *(("tangent to the curve",) if tangent else ()))
    return Form(
        f"{'tangent to' if tangent else 'point on'} curve {shape!r}",
        names,
        equation,
        numbers=2 + shape.numbers,
        lengths=(True, True, False)[: len(names)],
        kind="tangent to a curve" if tangent else "point on a curve",
    )


@cache
def _rate(shape: CurveShape) -> Program:
    def curve(u: Array, p: Array) -> Array:
        return np.array([z + 0.0 * u[0] for z in shape.at(u[0], p)])

    return record(curve, 1, max(shape.numbers, 1), name="curve").forward()


def tangent_at(shape: CurveShape, u: Any, numbers: Array) -> tuple[Array, Array]:
    """c(u) and c′(u)."""
    still = np.zeros(max(shape.numbers, 1))
    c, slope = _rate(shape)(np.array([u]), numbers if shape.numbers else still, np.ones(1), still)
    return c, slope
