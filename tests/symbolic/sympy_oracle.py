"""Equations of motion of small DH arms by SymPy alone, two ways: an oracle that shares no code with the package.

`by_trace` is the sum of traces over pseudo-inertia matrices of Sun and Okubo (their eqs 17–25), `by_lagrange` is
SymPy's own `LagrangesMethod` on rigid bodies in reference frames. Both take the rows of `lw.from_dh` as mappings and
give M, h, g and the friction in plain symbols: coordinates q1 …, rates dq1 …, parameters by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from sympy.physics.mechanics import (
    LagrangesMethod,
    Lagrangian,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Oracle:
    """M q̈ + h + friction + g = F; matrices of SymPy, h, g and friction as columns."""

    q: tuple[sp.Symbol, ...]
    dq: tuple[sp.Symbol, ...]
    M: sp.Matrix
    h: sp.Matrix
    g: sp.Matrix
    friction: sp.Matrix

    def numbers(self, values: Mapping[str, float]) -> Callable[[Any, Any], tuple[np.ndarray, ...]]:
        """(q, dq) → M, h, g, friction in numbers, with these values of the parameters."""
        names = tuple(values)
        parts = (self.M, self.h, self.g, self.friction)
        function = sp.lambdify([self.q, self.dq, tuple(map(sp.Symbol, names))], parts, "numpy", cse=True)
        known = tuple(values.values())

        def evaluated(q: Any, dq: Any) -> tuple[np.ndarray, ...]:
            m, *columns = (np.asarray(part, dtype=float) for part in function(tuple(q), tuple(dq), known))
            return (m, *(column.reshape(-1) for column in columns))

        return evaluated

    def christoffel(self) -> sp.Matrix:
        """C with h = C q̇ and Ṁ − 2C skew-symmetric."""
        return _christoffel(self.M, self.q, self.dq)


def by_trace(rows: Sequence[Row], convention: str = "modified", gravity: Sequence[Any] = (0, 0, "-g")) -> Oracle:
    """M_ij = Σ tr(∂T_p/∂q_j H_p ∂T_pᵀ/∂q_i) and g_i = −Σ m_p gᵀ ∂T_p/∂q_i r_p; h = C q̇ by Christoffel symbols."""
    n, q, dq = len(rows), *_names(len(rows))
    fall = sp.Matrix([*map(number, gravity), 0])
    pose, m, g = sp.eye(4), sp.zeros(n, n), sp.zeros(n, 1)
    for p, row in enumerate(rows):
        pose = pose * _step(row, q[p], convention)
        mass, centre, tensor = _body(row)
        moments = sp.eye(3) * tensor.trace() / 2 - tensor + mass * centre * centre.T
        pseudo = sp.Matrix(sp.BlockMatrix([[moments, mass * centre], [mass * centre.T, sp.Matrix([[mass]])]]))
        slopes = [pose.diff(q[j]) for j in range(p + 1)]
        at = sp.Matrix([*centre, 1])
        for i in range(p + 1):
            g[i] -= mass * (fall.T * slopes[i] * at)[0]
            for j in range(i + 1):
                m[i, j] += (slopes[j] * pseudo * slopes[i].T).trace()
                m[j, i] = m[i, j]
    motors = sp.diag(*(number(row.get("armature", 0)) for row in rows))
    return Oracle(q, dq, m + motors, _christoffel(m, q, dq) * sp.Matrix(dq), g, _friction(rows, dq))


def by_lagrange(rows: Sequence[Row], convention: str = "modified", gravity: Sequence[Any] = (0, 0, "-g")) -> Oracle:
    """The mass matrix and forcing of SymPy's `LagrangesMethod`; h is the part of the forcing that rates bring in."""
    n, q, dq = len(rows), *_names(len(rows))
    moving = dynamicsymbols(" ".join(f"q{k + 1}" for k in range(n)) + ",")
    ground, origin = ReferenceFrame("N"), Point("O")
    origin.set_vel(ground, 0)
    fall = sum(number(x) * e for x, e in zip(gravity, (ground.x, ground.y, ground.z), strict=True))
    bodies, before, at = [], ground, origin
    for k, (row, x) in enumerate(zip(rows, moving, strict=True), 1):
        before, at = _carried(row, x, before, at, convention, k)
        mass, centre, t = _body(row)
        middle = at.locatenew(f"G{k}", sum(x * e for x, e in zip(centre, (before.x, before.y, before.z), strict=True)))
        middle.set_vel(ground, middle.pos_from(origin).dt(ground))
        about = inertia(before, t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[1, 2], t[0, 2])
        body = RigidBody(f"B{k}", middle, before, mass, (about, middle))
        body.potential_energy = -mass * middle.pos_from(origin).dot(fall)
        bodies.append(body)
    method = LagrangesMethod(Lagrangian(ground, *bodies), moving)
    method.form_lagranges_equations()
    plain = {x.diff(dynamicsymbols._t): s for x, s in zip(moving, dq, strict=True)}
    at_rest = dict.fromkeys(dq, 0)
    m, forcing = (
        part.subs(plain).subs(dict(zip(moving, q, strict=True))) for part in (method.mass_matrix, method.forcing)
    )
    g = -forcing.subs(at_rest)
    motors = sp.diag(*(number(row.get("armature", 0)) for row in rows))
    return Oracle(q, dq, m + motors, -forcing - g, g, _friction(rows, dq))


def number(x: Any) -> sp.Expr:
    """A table's entry: a name is a symbol, and π's twelfths are meant exactly."""
    if isinstance(x, str):
        return -sp.Symbol(x[1:]) if x.startswith("-") else sp.Symbol(x)
    if isinstance(x, float):
        turns = x / (np.pi / 12)
        if x != 0.0 and abs(turns - round(turns)) < 1e-12:
            return sp.pi * round(turns) / 12
        return sp.Rational(str(x))
    return sp.sympify(x)


def _names(n: int) -> tuple[tuple[sp.Symbol, ...], tuple[sp.Symbol, ...]]:
    return tuple(sp.symbols(f"q1:{n + 1}")), tuple(sp.symbols(f"dq1:{n + 1}"))


def _slides(row: Row) -> bool:
    return str(row.get("kind", "R"))[0] in "Ppt"


def _entries(row: Row, x: sp.Expr) -> tuple[sp.Expr, ...]:
    """a, α, d, θ with the coordinate in its place."""
    a, alpha, d, theta = (number(row.get(key, 0)) for key in ("a", "alpha", "d", "theta"))
    return (a, alpha, d + x, theta) if _slides(row) else (a, alpha, d, theta + x)


def _body(row: Row) -> tuple[sp.Expr, sp.Matrix, sp.Matrix]:
    """Mass, centre and tensor about it."""
    xx, yy, zz, xy, xz, yz = [number(x) for x in (*row.get("inertia", (0, 0, 0)), 0, 0, 0)][:6]
    centre = sp.Matrix([number(x) for x in row.get("com", (0, 0, 0))])
    return number(row.get("mass", 0)), centre, sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _step(row: Row, x: sp.Expr, convention: str) -> sp.Matrix:
    """The homogeneous matrix of a row."""
    a, alpha, d, theta = _entries(row, x)
    turn, tilt = sp.rot_axis3(-theta), sp.rot_axis1(-alpha)
    along_z = sp.diag(turn, 1) + sp.Matrix(4, 4, lambda i, j: d if (i, j) == (2, 3) else 0)
    along_x = sp.diag(tilt, 1) + sp.Matrix(4, 4, lambda i, j: a if (i, j) == (0, 3) else 0)
    return along_x * along_z if convention == "modified" else along_z * along_x


def _carried(row: Row, x: Any, before: Any, at: Any, convention: str, k: int) -> tuple[Any, Any]:
    """The frame and origin of link k, in SymPy's frames and points."""
    a, alpha, d, theta = _entries(row, x)
    first, frame = ReferenceFrame(f"T{k}"), ReferenceFrame(f"A{k}")
    if convention == "modified":
        first.orient_axis(before, before.x, alpha)
        frame.orient_axis(first, first.z, theta)
        return frame, at.locatenew(f"O{k}", a * before.x + d * frame.z)
    first.orient_axis(before, before.z, theta)
    frame.orient_axis(first, first.x, alpha)
    return frame, at.locatenew(f"O{k}", d * before.z + a * first.x)


def _christoffel(m: sp.Matrix, q: Sequence[sp.Symbol], dq: Sequence[sp.Symbol]) -> sp.Matrix:
    n = len(q)

    def entry(i: int, j: int) -> sp.Expr:
        slopes = (m[i, j].diff(q[k]) + m[i, k].diff(q[j]) - m[j, k].diff(q[i]) for k in range(n))
        return sum(slope * rate for slope, rate in zip(slopes, dq, strict=True)) / 2

    return sp.Matrix(n, n, entry)


def _friction(rows: Sequence[Row], dq: Sequence[sp.Symbol]) -> sp.Matrix:
    """V q̇ + f tanh(q̇ / 0.01)."""
    hundredth = sp.Rational(1, 100)
    return sp.Matrix(
        [
            number(row.get("damping", 0)) * v + number(row.get("friction", 0)) * sp.tanh(v / hundredth)
            for row, v in zip(rows, dq, strict=True)
        ]
    )
