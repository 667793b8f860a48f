"""Rotation vectors and matrices of single rotations, for what is computed at every sample."""

from __future__ import annotations

import math

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.spatial.rotation import euler_parameters, logarithm


def turn_matrix(r: Floats) -> Floats:
    """The rotation matrix of a rotation vector (rad)."""
    x, y, z = float(r[0]), float(r[1]), float(r[2])
    square = x * x + y * y + z * z
    if square < 1e-8:
        s, c = 1.0 - square / 6.0, 0.5 - square / 24.0
    else:
        angle = math.sqrt(square)
        s, c = math.sin(angle) / angle, (1.0 - math.cos(angle)) / square
    cx, cy, cz = c * x, c * y, c * z
    sx, sy, sz = s * x, s * y, s * z
    return np.array(
        [
            [1.0 - cy * y - cz * z, cx * y - sz, cx * z + sy],
            [cx * y + sz, 1.0 - cx * x - cz * z, cy * z - sx],
            [cx * z - sy, cy * z + sx, 1.0 - cx * x - cy * y],
        ]
    )


def turn_vector(m: Floats) -> Floats:
    """The rotation vector of a rotation matrix, at most a half turn."""
    x, y, z = 0.5 * (m[2, 1] - m[1, 2]), 0.5 * (m[0, 2] - m[2, 0]), 0.5 * (m[1, 0] - m[0, 1])
    cosine = 0.5 * (m[0, 0] + m[1, 1] + m[2, 2] - 1.0)
    sine = math.sqrt(x * x + y * y + z * z)
    if cosine < -0.9:  # the axis is lost in the difference there
        return np.asarray(logarithm(euler_parameters(m)), dtype=np.float64)
    factor = 1.0 + sine * sine / 6.0 if sine < 1e-4 else math.atan2(sine, cosine) / sine
    return np.array([factor * x, factor * y, factor * z])


def _cross(a: Floats, b: Floats) -> Floats:
    """a × b of three plain numbers each, without what np.cross does for axes and shapes."""
    (x, y, z), (u, v, w) = a.tolist(), b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def turning(r: Floats, rd: Floats, rdd: Floats) -> tuple[Floats, Floats]:
    """Angular velocity and acceleration, in the fixed axes, of the rotation exp(r) whose vector moves as given.

    ω = ṙ + A r×ṙ + B r×(r×ṙ) with A = (1 − cos θ)/θ² and B = (θ − sin θ)/θ³.
    """
    square = float(r @ r)
    if square < 1e-4:
        a, b = 0.5 - square / 24.0 + square**2 / 720.0, 1.0 / 6.0 - square / 120.0 + square**2 / 5040.0
        da, db = -1.0 / 12.0 + square / 180.0, -1.0 / 60.0 + square / 1260.0
    else:
        angle = math.sqrt(square)
        s, c = math.sin(angle), math.cos(angle)
        a, b = (1.0 - c) / square, (angle - s) / (square * angle)
        da, db = (angle * s - 2.0 * (1.0 - c)) / square**2, (3.0 * s - 2.0 * angle - angle * c) / (square**2 * angle)
    along = float(r @ rd)  # θ θ̇, so that Ȧ = da·along
    first = _cross(r, rd)
    second = _cross(r, first)
    bend = _cross(r, rdd)
    omega = rd + a * first + b * second
    alpha = rdd + da * along * first + a * bend + db * along * second
    return omega, alpha + b * (_cross(rd, first) + _cross(r, bend))
