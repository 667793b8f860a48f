"""Placements as turns about z, x and z: their angles from rotations in numbers, and the turns of recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.frames import SNAP, snapped
from linkwright.spatial.algebra import is_zero
from linkwright.spatial.rotation import General, Rotation, Turn


def placement_rotation(record: Mapping[str, Any], *, turning: bool) -> list[Rotation]:
    """The rotations of a placement; a turning joint adds its own angle offset, another kind gets it here."""
    if "rotation" in record:
        # A placement with a free parameter has its angle offset inside.
        return turns(record["rotation"])
    parts: list[Rotation] = []
    for axis, name in ((2, "gamma"), (0, "alpha")):
        c, s = record[name]
        if not (_is(c, 1.0) and _is(s, 0.0)):
            parts.append(Turn(axis, c, s))
    if not turning:
        _, c, s = record["offset"]
        if not (_is(c, 1.0) and _is(s, 0.0)):
            parts.append(Turn(2, c, s))
    return parts


def turns(r: Any) -> list[Rotation]:
    """A recorded rotation as turns about x and z where its zeros tell that it is such a product, else as a matrix."""
    if is_zero(r[0][2]):
        parts = [Turn(0, r[2][2], -r[1][2]), Turn(2, r[0][0], -r[0][1])]
    elif is_zero(r[2][0]):
        parts = [Turn(2, r[0][0], r[1][0]), Turn(0, r[2][2], r[2][1])]
    else:
        return [General(r)]
    return [part for part in parts if not (is_zero(part.s) and is_zero(part.c - 1.0))]


def _is(x: Any, value: float) -> bool:
    return isinstance(x, (float, int)) and x == value


def wrap(angle: Floats) -> Floats:
    """The angle in (−π, π], with multiples of a quarter turn made exact."""
    angle = np.remainder(angle + np.pi, 2 * np.pi) - np.pi
    quarter = np.round(angle / (np.pi / 2))
    return np.where(np.abs(angle - quarter * (np.pi / 2)) < SNAP, quarter * (np.pi / 2), angle)


def cos_sin(angle: Floats) -> tuple[Floats, Floats]:
    return snapped(np.cos(angle)), snapped(np.sin(angle))


def _sine(r: Floats) -> Floats:
    return np.hypot(r[:, 0, 2], r[:, 1, 2])


def first_turn(r: Floats) -> Floats:
    """The γ of `zxz`."""
    return wrap(np.where(_sine(r) < SNAP, 0.0, np.arctan2(r[:, 0, 2], -r[:, 1, 2])))


def zxz(r: Floats) -> tuple[Floats, Floats, Floats]:
    """γ, α, θ with R = Rz(γ) Rx(α) Rz(θ); γ = 0 where α is 0 or π."""
    gamma, sine = first_turn(r), _sine(r)
    flat = np.where(r[:, 2, 2] < 0, np.pi, 0.0)
    alpha = wrap(np.where(sine < SNAP, flat, np.arctan2(sine, r[:, 2, 2])))
    # θ from what is left after γ and α, so that the product is R to rounding even for a tiny α.
    cg, sg = cos_sin(gamma)
    ca, sa = cos_sin(alpha)
    x = cg * r[:, 0, 0] + sg * r[:, 1, 0]
    y = cg * r[:, 1, 0] - sg * r[:, 0, 0]
    y = ca * y + sa * r[:, 2, 0]
    return gamma, alpha, wrap(np.arctan2(y, x))
