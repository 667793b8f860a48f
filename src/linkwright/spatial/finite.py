"""Finite rotations: exponential and logarithm, with series near zero, so that recorded functions are smooth there."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.spatial.algebra import Array, cross
from linkwright.spatial.rotation import squared_length
from linkwright.tape.recorder import arctan2, where


def _half_angle(w: Array) -> tuple[Any, Any]:
    """cos(|w|/2) and sin(|w|/2)/|w|."""
    x = 0.25 * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    small = x < 1e-6
    safe = where(small, 1.0, x)
    root = np.sqrt(safe)
    cosine = where(small, 1.0 - x / 2 + x * x / 24, np.cos(root))
    sine = where(small, 0.5 * (1.0 - x / 6 + x * x / 120), 0.5 * np.sin(root) / root)
    return cosine, sine


def exponential(w: Array) -> Array:
    """Euler parameters of the rotation vector w."""
    c, s = _half_angle(w)
    return np.array([c, s * w[0], s * w[1], s * w[2]])


def normalised(e: Array) -> Array:
    """Euler parameters made a unit; NaN where their length is zero."""
    return e / np.sqrt(squared_length(e))


def logarithm(e: Array) -> Array:
    """The rotation vector of Euler parameters, at most a half turn."""
    flip = where(e[0] < 0.0, -1.0, 1.0)
    e0 = flip * e[0]
    square = e[1] * e[1] + e[2] * e[2] + e[3] * e[3]
    small = square < 1e-12
    size = np.sqrt(where(small, 1.0, square))
    near = where(small, e0, 1.0)
    factor = where(small, 2.0 / near * (1.0 - square / (3.0 * near * near)), 2.0 * arctan2(size, e0) / size)
    return flip * factor * e[1:4]


def _jacobian_factors(w: Array) -> tuple[Any, Any]:
    """(1 − cos θ)/θ² and (θ − sin θ)/θ³ for θ = |w|."""
    x = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = x < 1e-4
    safe = where(small, 1.0, x)
    angle = np.sqrt(safe)
    first = where(small, 0.5 - x / 24 + x * x / 720, (1.0 - np.cos(angle)) / safe)
    second = where(small, 1.0 / 6 - x / 120 + x * x / 5040, (angle - np.sin(angle)) / (safe * angle))
    return first, second


def left_jacobian_times(w: Array, x: Array) -> Array:
    """The left Jacobian of the rotation vector w, times x."""
    a, b = _jacobian_factors(w)
    first = cross(w, x)
    return x + a * first + b * cross(w, first)


def left_jacobian_inverse_times(w: Array, x: Array) -> Array:
    """The inverse of the left Jacobian of the rotation vector w, times x."""
    a, b = _jacobian_factors(w)
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = square < 1e-4
    safe = where(small, 1.0, square)
    # (1 − θ sin θ / (2 (1 − cos θ)))/θ², with its series near zero.
    factor = where(
        small, 1.0 / 12 + square / 720 + square * square / 30240, (1.0 - (1.0 - b * square) / (2.0 * a)) / safe
    )
    first = cross(w, x)
    return x - 0.5 * first + factor * cross(w, first)
