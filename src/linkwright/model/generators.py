"""Mechanisms made by rule: chains, complete trees and random trees, in arrays from the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import check_memory, whole_number
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.description import Description, Names, joint_defaults, kind_number, sealed
from linkwright.model.joint_kinds import KIND_LIST, KINDS
from linkwright.model.placements import axis_frame, pack_inertia, snapped
from linkwright.spatial.rotation import euler_parameters_matrix

LENGTH, MASS, WIDTH = 0.1, 1.0, 0.05
SCREW_PITCH = 0.01  # m/rad
_NUMBERS = 100  # of a link, in all arrays together


def chain(n: int, joint: str = "revolute") -> Description:
    """n links of 0.1 m and 1 kg, boxes 0.05 × 0.05 × 0.1, one on the end of another; axes alternately x and y."""
    n = _count(n)
    return _links(f"chain of {n}", np.arange(-1, n - 1, dtype=np.int32), np.arange(n) % 2, joint)


def tree(n: int, branching: int = 2, joint: str = "revolute") -> Description:
    """n links as in `chain`, each with `branching` links on its end; axes x and y alternate from level to level."""
    n = _count(n)
    branching = min(whole_number("branching", branching, 1), n)  # n is a star already
    parent = (np.arange(n, dtype=np.int64) - 1) // branching
    parent[:1] = -1
    # Level k of a complete tree starts at (b^k − 1)/(b − 1).
    starts, width = [0], 1
    while starts[-1] + width < n:
        starts.append(starts[-1] + width)
        width *= branching
    level = np.searchsorted(starts, np.arange(n), side="right") - 1
    return _links(f"tree of {n}", parent.astype(np.int32), level % 2, joint)


def _count(n: int) -> int:
    """A number of links, if there is memory for them."""
    number = whole_number("the number of links n", n, 1)
    check_memory(f"a mechanism of {number:,} links", _NUMBERS * number, "take fewer links")
    return number


def _links(name: str, parent: NDArray[np.int32], axis: NDArray[Any], joint: str) -> Description:
    """Equal links by parent and axis (0 for x, 1 for y)."""
    n = len(parent)
    number = kind_number(joint)
    outer = np.stack([axis_frame(u) for u in np.eye(3)[:2]])
    inner = snapped(outer @ KIND_LIST[number].neutral_rotation())
    place = np.zeros((n, 3))
    place[parent >= 0, 2] = LENGTH
    arrays = joint_defaults(n)
    arrays.update(ri=sealed(outer[axis]), pi=sealed(place))
    # Most kinds have both frames alike: one array serves both.
    arrays["rj"] = arrays["ri"] if np.array_equal(inner, outer) else sealed(inner[axis])
    if joint == "screw":
        arrays["pitch"] = np.broadcast_to(SCREW_PITCH, (n,))
    side, end = MASS * (WIDTH**2 + LENGTH**2) / 12, MASS * (WIDTH**2 + WIDTH**2) / 12
    return Description(
        name=name,
        body_names=Names(stem="link", count=n),
        mass=np.broadcast_to(MASS, (n,)),
        com=np.broadcast_to(np.array([0.0, 0.0, LENGTH / 2]), (n, 3)),
        inertia=np.broadcast_to(np.array([side, side, end, 0.0, 0.0, 0.0]), (n, 6)),
        joint_names=Names(stem="joint", count=n),
        kind=np.broadcast_to(np.int32(number), (n,)),
        parent=sealed(parent),
        child=sealed(np.arange(n, dtype=np.int32)),
        **arrays,
    )


def random_tree(
    n: int,
    seed: int | None = 0,
    branching: float = 2.0,
    joints: Sequence[str] | None = None,
    floating: bool = False,
) -> Description:
    """A random tree: random parents, placements, inertias that a body can have, and joint kinds.

    `branching` is about how many children a body has that has any (1 gives a chain, large numbers a star);
    `joints` are the kinds to draw from (all nine if None); `floating` gives the first body a free joint.
    """
    n = _count(n)
    if not isinstance(branching, int | float | np.number) or not 1 <= branching < np.inf:
        raise ModelError(f"branching must be a number from 1 on, not {branching!r}")
    rng = np.random.default_rng(None if seed is None else whole_number("seed", seed))
    names = list(KINDS) if joints is None else list(joints)
    if not names:
        raise ModelError("joints=[] leaves no joint kind to draw from; leave it out for all of them")
    numbers = np.array([kind_number(name) for name in names], np.int32)
    kind = numbers[rng.integers(len(numbers), size=n)]
    if floating:
        kind[0] = kind_number("free")
    # The parent is drawn among the last `window` bodies: one is a chain, two about a binary tree.
    window = np.minimum(np.arange(n), np.maximum(1.0, np.ceil(2.0 * branching - 1.0)))
    reach = np.floor(rng.random(n) * window).astype(np.int64) + 1
    parent = np.arange(n) - np.minimum(reach, np.arange(n) + 1)
    parent[0] = -1
    # Principal moments of three random second moments, so that some body has them.
    second, axes = rng.uniform(0.002, 0.02, (n, 3)), _random_rotations(rng, n)
    moments = second.sum(axis=1, keepdims=True) - second
    arrays = joint_defaults(n)
    arrays.update(
        ri=_random_rotations(rng, n),
        rj=_random_rotations(rng, n),
        pi=rng.uniform(-0.3, 0.3, (n, 3)),
        pj=rng.uniform(-0.1, 0.1, (n, 3)),
        pitch=np.where(kind == kind_number("screw"), rng.uniform(-0.2, 0.2, n), 0.0),
    )
    full = np.einsum("nij,nj,nkj->nik", axes, moments, axes)
    return Description(
        name=f"random tree of {n}, seed {seed}",
        body_names=Names(stem="body", count=n),
        mass=rng.uniform(0.5, 2.0, n),
        com=rng.uniform(-0.2, 0.2, (n, 3)),
        inertia=pack_inertia(full),
        joint_names=Names(stem="joint", count=n),
        kind=kind,
        parent=parent.astype(np.int32),
        child=np.arange(n, dtype=np.int32),
        **arrays,
    )


def _random_rotations(rng: np.random.Generator, n: int) -> Floats:
    """Rotations drawn evenly: from Euler parameters that are even on the sphere."""
    e = rng.standard_normal((n, 4))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    return np.ascontiguousarray(np.moveaxis(euler_parameters_matrix(e.T), -1, 0))
