"""Mechanisms for the tests of kinematic analysis, with their motions in closed form or by hand-written equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw
from linkwright.constraints.kinematics import Kinematics
from linkwright.results.solution import Solution

Floats = NDArray[np.float64]


def unit(angle: Any) -> Floats:
    """(cos, sin, 0), one row an angle."""
    angle = np.asarray(angle, float)
    return np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=-1)


def about_z(angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def matrices(e: Any) -> Floats:
    """Rotation matrices (T, 3, 3) of Euler parameters (T, 4)."""
    w, x, y, z = np.asarray(e).T
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def kinematics(mech: lw.Mechanism) -> Kinematics:
    return Kinematics(mech.description)


# -- planar loops -------------------------------------------------------------------------------------------------
def closed(first: Floats, second: Floats, r1: float, r2: float, side: float) -> Floats:
    """Where circles about two points meet; `side` +1 is left of the way from the first to the second."""
    d = second - first
    length = np.linalg.norm(d, axis=-1)
    x = (length**2 + r1**2 - r2**2) / (2.0 * length)
    y = side * np.sqrt(np.maximum(r1**2 - x**2, 0.0))
    along = d / length[..., None]
    across = np.stack([-along[..., 1], along[..., 0], np.zeros_like(x)], axis=-1)
    return first + x[..., None] * along + y[..., None] * across


def bar(b: lw.Builder, name: str, start: Any, end: Any, *, off: Any = (0.0, 0.0, 0.0), turn: float = 0.0) -> Any:
    """A bar drawn from one point to another in the x–y plane, its origin at the first; or drawn off its place."""
    body = b.body(name)
    d = np.asarray(end, float) - np.asarray(start, float)
    angle = float(np.arctan2(d[1], d[0])) + turn
    b.place(body, np.asarray(start, float) + np.asarray(off, float), rotation=about_z(angle))
    return body


def pin(b: lw.Builder, kind: str, i: Any, at: Any, j: Any, to: Any, name: str) -> Any:
    """A joint about z between points of two bodies."""
    return b.joint(kind, b.triad(i, origin=at), b.triad(j, origin=to), name)


def four_bar(
    lengths: Sequence[float],
    law: Any,
    start: float,
    side: float = 1.0,
    kinds: Sequence[str] = ("revolute",) * 4,
    off: Floats | None = None,
    turn: Sequence[float] = (0.0, 0.0, 0.0),
) -> lw.Mechanism:
    """Crank, coupler and rocker of these lengths on ground of the fourth, along x; the crank's angle follows a law."""
    a, c, r, g = lengths
    far = np.array([g, 0.0, 0.0])
    tip = a * unit(start)
    top = closed(tip, far, c, r, side)
    shifts = np.zeros((3, 3)) if off is None else off
    with lw.Builder("four-bar") as b:
        crank = bar(b, "crank", (0, 0, 0), tip, off=shifts[0], turn=turn[0])
        coupler = bar(b, "coupler", tip, top, off=shifts[1], turn=turn[1])
        rocker = bar(b, "rocker", far, top, off=shifts[2], turn=turn[2])
        first = pin(b, kinds[0], b.ground, (0, 0, 0), crank, (0, 0, 0), "A")
        pin(b, kinds[1], crank, (a, 0, 0), coupler, (0, 0, 0), "B")
        pin(b, kinds[2], coupler, (c, 0, 0), rocker, (r, 0, 0), "C")
        pin(b, kinds[3], b.ground, far, rocker, (0, 0, 0), "D")
        b.triad(coupler, origin=(c, 0, 0), name="top")
        if law is not None:
            b.driver("joint", first, law, name="motor")
    return b.build()


def four_bar_top(lengths: Sequence[float], angle: Any, side: float = 1.0) -> Floats:
    """Where coupler and rocker meet, by the crank's angle."""
    a, c, r, g = lengths
    return closed(a * unit(angle), np.broadcast_to([g, 0.0, 0.0], (*np.shape(angle), 3)), c, r, side)


def slider_crank(
    crank: float, coupler: float, law: Any, start: float, off: float = 0.0, **parameters: float
) -> lw.Mechanism:
    """A driven crank at ground's origin, a coupler, and a block that slides along x at the height `off`."""
    tip = crank * unit(start)
    x = tip[0] + np.sqrt(coupler**2 - (tip[1] - off) ** 2)
    end = np.array([x, off, 0.0])
    with lw.Builder("slider-crank") as b:
        for name, value in parameters.items():
            b.parameter(name, value)
        turning = bar(b, "crank", (0, 0, 0), tip)
        rod = bar(b, "coupler", tip, end)
        block = b.body("block")
        b.place(block, end)
        first = pin(b, "revolute", b.ground, (0, 0, 0), turning, (0, 0, 0), "A")
        pin(b, "revolute", turning, (crank, 0, 0), rod, (0, 0, 0), "B")
        pin(b, "revolute", rod, (coupler, 0, 0), block, (0, 0, 0), "C")
        along = {"h": (1.0, 0.0, 0.0), "f": (0.0, 1.0, 0.0)}
        b.joint("prismatic", b.triad(b.ground, origin=(0, off, 0), **along), b.triad(block, **along), "guide")
        if law is not None:
            b.driver("joint", first, law, name="motor")
    return b.build()


# -- derivatives --------------------------------------------------------------------------------------------------
def differences(sol: Callable[[Floats], Solution], names: Sequence[str], t: float, h: float = 1e-3) -> None:
    """Velocities and accelerations at a time are the derivatives of positions and orientations around it.

    Central differences of sixth order on seven points.
    """
    found = sol(t + h * np.arange(-3, 4))
    first = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / (60.0 * h)
    for name in names:
        x, v, a = found.position(name), found.velocity(name), found.acceleration(name)
        w, alpha = found.angular_velocity(name), found.angular_acceleration(name)
        size = max(1.0, float(np.max(np.abs(v))), float(np.max(np.abs(w))))
        np.testing.assert_allclose(first @ x, v[3], atol=1e-9 * size)
        np.testing.assert_allclose(first @ v, a[3], atol=1e-8 * size**2)
        turning = np.tensordot(first, matrices(found.orientation(name)), 1) @ matrices(found.orientation(name))[3].T
        np.testing.assert_allclose(turning, skew(w[3]), atol=1e-9 * size)
        np.testing.assert_allclose(first @ w, alpha[3], atol=1e-8 * size**2)


def skew(w: Floats) -> Floats:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
