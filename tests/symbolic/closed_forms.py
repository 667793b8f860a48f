"""Exact equations of small mechanisms, evaluated, and the states at which the numeric recursions are asked."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwright as lw
from linkwright.symbolic.derivation.model_reading import model_of
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.formulas.formula import evaluate


def dynamics(mech: lw.Mechanism, *, way: Any = "jacobian", **options: Any) -> Dynamics:
    """The equations, with M found."""
    found = Dynamics(model_of(mech.description, **options))
    for _ in found.mass_matrix(way):
        pass
    return found


def values(dy: Dynamics, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray | None = None) -> dict[str, float]:
    """The symbols' values by name."""
    ring, zero = dy.ring, np.zeros(dy.n)
    both = zip((ring.coordinates, ring.rates, ring.accelerations), (q, dq, zero if ddq is None else ddq), strict=True)
    return {**dy.model.values, **{s.name: float(x) for some, xs in both for s, x in zip(some, xs, strict=True)}}


def numbers(dy: Dynamics, q: np.ndarray, dq: np.ndarray) -> tuple[np.ndarray, ...]:
    """M, h, g, and what the joints' own laws hold against (friction and springs), as floats."""
    given, n, ring = values(dy, q, dq), dy.n, dy.ring
    x = ring.values(given)
    m = np.array([[ring.evaluate(dy.m[i, j], x) for j in range(n)] for i in range(n)])
    h, g = (np.array([ring.evaluate(f(i), x) for i in range(n)]) for f in (dy.h, dy.g))
    own = [evaluate(a, given) + evaluate(b, given) for a, b in zip(dy.model.friction, dy.model.springs, strict=True)]
    return m, h, g, np.array(own)


class ByAngles:
    """A mechanism seen by the coordinates of closed forms: spherical and free joints by yaw, pitch and roll."""

    def __init__(self, mech: lw.Mechanism) -> None:
        self.mech = mech

    def state(self, x: np.ndarray, dx: np.ndarray, ddx: np.ndarray) -> tuple[np.ndarray, ...]:
        """q, v, a of the mechanism, and E with v = E ẋ."""
        e = self.rates(x)
        # Ė by a complex step: exact to rounding.
        slope = self.rates(x + 1e-30j * dx).imag / 1e-30
        return self.place(x), e @ dx, e @ ddx + slope @ dx, e

    def place(self, x: np.ndarray) -> np.ndarray:
        q = np.zeros(self.mech.nq)
        for joint in self.mech.joints:
            own = x[joint.v_slice]
            if joint.kind in ("spherical", "free"):
                own = np.concatenate([own[:-3], _euler_parameters(*own[-3:])])
            q[joint.q_slice] = own
        return q

    def rates(self, x: np.ndarray) -> np.ndarray:
        e = np.eye(self.mech.nv, dtype=x.dtype)
        for joint in self.mech.joints:
            at = joint.v_slice
            if joint.kind not in ("spherical", "free"):
                continue
            _, p, r = x[at][-3:]
            one, zero = 1.0 + 0.0 * p, 0.0 * p
            own = np.eye(at.stop - at.start, dtype=x.dtype)
            own[-3:, -3:] = np.array(
                [
                    [-np.sin(p), zero, one],
                    [np.sin(r) * np.cos(p), np.cos(r), zero],
                    [np.cos(r) * np.cos(p), -np.sin(r), zero],
                ]
            )
            if joint.kind == "free":
                own[:3, :3] = _rotation(*x[at][-3:]).T
            e[at, at] = own
        return e


def _rotation(y: Any, p: Any, r: Any) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    cy, sy, cp, sp, cr, sr = np.cos(y), np.sin(y), np.cos(p), np.sin(p), np.cos(r), np.sin(r)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _euler_parameters(y: float, p: float, r: float) -> np.ndarray:
    e = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in ((3, y), (2, p), (1, r)):
        a, b = e, np.zeros(4)
        b[0], b[axis] = np.cos(angle / 2), np.sin(angle / 2)
        e = np.array([a[0] * b[0] - a[1:] @ b[1:], *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])
    return e


def vanishes(expression: Any, angles: Any) -> bool:
    """Whether a SymPy expression, polynomial in cosines and sines of sums of these angles, is zero."""
    import sympy

    flat = sympy.expand_trig(expression)
    for k, q in enumerate(angles):
        c, s = sympy.symbols(f"cosine{k} sine{k}")
        flat = sympy.expand(flat.xreplace({sympy.cos(q): c, sympy.sin(q): s}))
        flat = sympy.rem(flat, s**2 + c**2 - 1, s)
    return bool(sympy.expand(flat) == 0)
