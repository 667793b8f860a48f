"""Rotations and inertias that descriptions are made of, placements as turns about z, x and z, and the lengths of a
mechanism.

Rotations come from axes, directions and roll-pitch-yaw angles, with exact zeros and ones; inertias are packed, unpacked
and added up. All but angles may be expressions of parameters.

Every tolerance that is a length is a part of these: the same mechanism in µm or in km is judged alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arrays import Floats
from linkwright.model.elements import Array, is_bound
from linkwright.model.joint_kinds import KIND_LIST
from linkwright.spatial.algebra import cross, dot, is_zero
from linkwright.spatial.rotation import General, Rotation, Turn

if TYPE_CHECKING:
    from linkwright.model.description import Description
    from linkwright.model.tree import Tree

SNAP = 1e-14
PARALLEL = 1e-9  # the sine below which two directions are parallel
_UPPER = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])  # rows and columns of xx, yy, zz, xy, xz, yz


def snapped(x: ArrayLike) -> Floats:
    """Entries within 1e-14 of 0, 1 and −1 made exact: that is where a mechanism's sparsity comes from."""
    y = np.asarray(x, dtype=np.float64)
    near = np.round(y)
    # Adding 0.0 turns −0.0 into 0.0, so that equal models have equal bytes.
    return np.asarray(np.where((np.abs(y - near) < SNAP) & (np.abs(near) <= 1.0), near, y) + 0.0)


def axis_frame(axis: ArrayLike) -> Floats:
    """A rotation whose third column is the unit vector along `axis`; for coordinate axes, a signed permutation."""
    u = np.asarray(axis, dtype=np.float64)
    # Scaled first, so that the square of a tiny or a huge axis neither vanishes nor overflows.
    u = u / np.abs(u).max()
    u = snapped(u / np.sqrt(u @ u))
    k = int(np.argmax(np.abs(u)))
    if np.count_nonzero(u) == 1:
        first = np.eye(3)[(k + 1) % 3 if (k, u[k]) != (2, -1.0) else 0]
    else:
        # An axis in a coordinate plane keeps that plane's normal as its first column.
        first = np.eye(3)[int(np.argmin(np.abs(u)))]
        first = first - u * (u @ first)
        first = first / np.sqrt(first @ first)
    return snapped(np.stack([first, np.cross(u, first), u], axis=1))


def are_parallel(h: Sequence[float] | Floats, f: Sequence[float] | Floats) -> bool:
    """Whether two directions do not span a plane."""
    x, y = _scaled(h), _scaled(f)
    across = cross(x, y)
    return not dot(across, across) > PARALLEL * PARALLEL * dot(x, x) * dot(y, y)


def axes_of(h: Sequence[Any], f: Sequence[Any]) -> Array:
    """Columns f, g, h: z along h, x along the part of f that is perpendicular to it, y = h × f."""
    bound = is_bound([*h, *f])
    along, about = (np.array([*v], dtype=object) if bound else _scaled(v) for v in (h, f))
    z = along / np.sqrt(dot(along, along))
    across = cross(z, about)
    y = across / np.sqrt(dot(across, across))
    columns = np.stack([cross(y, z), y, z], axis=1)
    return columns if bound else snapped(columns)


def product(a: Array, b: Array) -> Array:
    """a @ b; of expressions of parameters, factors 0, 1 and −1 leave no operations."""
    if not (is_bound(a) or is_bound(b)):
        return np.asarray(a @ b)
    columns = b.reshape(len(b), -1).T
    entries = [_sum_of_products(row, column) for row in a for column in columns]
    return np.array(entries, dtype=object).reshape(len(a), *b.shape[1:])


def _sum_of_products(row: Array, column: Array) -> Any:
    total: Any = 0.0
    for x, y in zip(row, column, strict=True):
        if is_zero(x) or is_zero(y):
            continue
        if _is(x, -1.0) or _is(y, -1.0):
            total = total - (y if _is(x, -1.0) else x)
        else:
            term = y if _is(x, 1.0) else x if _is(y, 1.0) else x * y
            total = term if is_zero(total) else total + term
    return total


def difference(a: Array, b: Array) -> Array:
    """a − b; of expressions of parameters, equal entries give 0 and zeros leave no operations."""
    if not (is_bound(a) or is_bound(b)):
        return np.asarray(a - b)
    return np.array([0.0 if x == y else x if is_zero(y) else x - y for x, y in zip(a, b, strict=True)], dtype=object)


def _scaled(v: Sequence[float] | Floats) -> Floats:
    """The same direction with its largest entry between 1/2 and 1: squares neither vanish nor overflow."""
    return np.ldexp(np.asarray(v, dtype=np.float64), -math.frexp(max(abs(x) for x in v))[1])


def rpy_matrix(rpy: ArrayLike) -> Floats:
    """Rz(yaw) Ry(pitch) Rx(roll): turns about fixed axes x, y, z in this order."""
    (cr, cp, cy), (sr, sp, sy) = snapped(np.cos(rpy)), snapped(np.sin(rpy))
    return snapped(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def roll_pitch_yaw(r: Floats) -> Floats:
    """The angles that `rpy_matrix` makes r of; at a pitch of ±90° the roll is zero."""
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if math.hypot(r[0, 0], r[1, 0]) < 1e-9:
        return np.array([0.0, pitch, math.atan2(-r[0, 1], r[1, 1])]) + 0.0
    return np.array([math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])]) + 0.0


def full_inertia(packed: ArrayLike) -> Array:
    """The matrices (..., 3, 3) of rows xx, yy, zz, xy, xz, yz."""
    s = np.asarray(packed)
    return s[..., [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(*s.shape[:-1], 3, 3)


def pack_inertia(full: Array) -> Array:
    """The rows xx, yy, zz, xy, xz, yz of matrices (..., 3, 3), from their upper triangles."""
    return np.asarray(full)[..., *_UPPER]


def has_whole_inertia(mass: Floats, inertia: Floats) -> NDArray[np.bool_]:
    """(n,): which bodies have a mass (n,) and, in packed rows (n, 6), an inertia about every axis."""
    xx, yy, zz, xy, xz, yz = inertia.T
    volume = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return np.asarray((mass > 0.0) & (volume > 1e-12 * (xx + yy + zz) ** 3))


def combined_inertia(parts: Sequence[tuple[Any, Array, Array]]) -> tuple[Any, Array, Array]:
    """Mass, centre of mass and inertia about it of parts that are given by these, in one frame; inertias are 3×3.

    The centre of parts without mass is the origin.
    """
    total: Array = np.zeros((3, 3))
    if len(parts) == 1:
        mass, com, inertia = parts[0]
        return mass, com, total + inertia
    mass = sum(m for m, _, _ in parts)
    massless = isinstance(mass, float | int) and mass == 0.0
    com = np.zeros(3) if massless else sum(m * c for m, c, _ in parts) / mass
    for m, c, inertia in parts:
        x = c - com
        total = total + inertia + m * ((x @ x) * np.eye(3) - np.outer(x, x))
    return mass, com, total


def placement_rotation(record: Mapping[str, Any], *, turning: bool) -> list[Rotation]:
    """The rotations of a placement; a turning joint adds its own angle offset, another kind gets it here."""
    if "rotation" in record:
        # A placement with a free parameter has its angle offset inside.
        return turns(record["rotation"])
    parts = [(2, record["gamma"]), (0, record["alpha"]), *(() if turning else ((2, record["offset"][1:]),))]
    return [Turn(axis, c, s) for axis, (c, s) in parts if not (_is(c, 1.0) and _is(s, 0.0))]


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


Ints = NDArray[np.int64]
GROUND = -1
SMALL = 1e-3  # of a typical body's length: less is the length of a body whose frames are all in one place


def body_lengths(d: Description, array: Callable[[str], Floats] | None = None) -> Floats:
    """(..., nb): a length for each body, the root mean square of its frames' distances from its origin.

    The frames are those of joints, rods, point constraints and drivers. A body whose frames are all in one place has
    the typical length of the others. Where all bodies are such, the centres of mass and radii of gyration tell a
    length; else the places of frames on ground and of bodies as drawn; else it is 1 m.

    `array` gives the description's arrays by name, by default as they are; with cases first, so is the answer.
    """
    array = array or (lambda name: np.asarray(getattr(d, name), dtype=np.float64))
    lengths = np.sqrt(mean_squares(d, array))
    spread = np.zeros(lengths.shape[:-1])
    for origins, bodies in _frames(d, array):
        on_ground = origins[..., bodies == GROUND, :]
        spread = np.maximum(spread, np.max(np.abs(on_ground), axis=(-2, -1), initial=0.0))
    if d.start is not None:
        drawn = array("start_p")[..., d.start.placed, :]
        spread = np.maximum(spread, np.max(np.abs(drawn), axis=(-2, -1), initial=0.0))
    known = lengths.any(axis=-1)
    typical = np.sqrt(np.sum(lengths**2, axis=-1) / max(d.nb, 1))
    inertial = np.max(_inertial_lengths(array), axis=-1, initial=0.0)
    none = np.where(inertial > 0.0, inertial, np.where(spread > 0.0, spread, 1.0))
    typical = np.where(known, typical, none)[..., None]
    return np.asarray(np.where(lengths > SMALL * typical, lengths, typical))


def mean_squares(d: Description, array: Callable[[str], Any]) -> Any:
    """(..., nb): the mean square of the distances of each body's frames from its origin, 0 of none; over any scalar."""
    total, number = np.zeros((*array("pi").shape[:-2], d.nb), array("pi").dtype), np.zeros(d.nb)
    for origins, bodies in _frames(d, array):
        squares = np.sum(origins**2, axis=-1)
        on_body = bodies != GROUND
        np.add.at(np.moveaxis(total, -1, 0), bodies[on_body], np.moveaxis(squares[..., on_body], -1, 0))
        np.add.at(number, bodies[on_body], 1.0)
    return total / np.maximum(number, 1.0)


def length_scale(d: Description, array: Callable[[str], Floats] | None = None) -> Floats:
    """(...): a length that is typical for the mechanism, in metres and greater than zero: that of its largest body.

    It scales with the model: a model ten times as large has ten times this length. A gap, a shift or the tolerance of
    one is small or large as a part of it.
    """
    lengths = d.body_lengths if array is None else body_lengths(d, array)
    largest = np.max(lengths, axis=-1, initial=0.0)
    return np.asarray(np.where(largest > 0.0, largest, 1.0))


def coordinate_units(tree: Tree, length: float | None = None) -> tuple[Floats, Floats]:
    """(nq,) and (nv,): the unit of each coordinate and of each rate: the mechanism's length for shifts, else 1.

    `length` is that of another case of the mechanism.
    """
    q, v = (np.where(flags, tree.description.length_scale if length is None else length, 1.0) for flags in tree.shifts)
    return q, v


def _frames(d: Description, array: Callable[[str], Floats]) -> Iterator[tuple[Floats, Ints]]:
    """Origins (..., n, 3) of the frames that something is fixed to, and their bodies (n,)."""
    holds = np.array([kind.nv < 6 for kind in KIND_LIST])[np.asarray(d.kind, dtype=np.int64)]
    for name, bodies in (("pi", d.parent), ("pj", d.child)):
        yield array(name)[..., holds, :], np.asarray(bodies, dtype=np.int64)[holds]
    places = [name for x in (*d.point_constraints, *d.drivers) for name in x.places]
    places = [name for name in places if d.body_names.find(name) is None]  # a body's own origin adds no length
    rows = [k for k in map(d.frames.names.find, places) if k is not None]
    if rows:
        yield array("frame_p")[..., rows, :], np.asarray(d.frames.body[rows], dtype=np.int64)


def _inertial_lengths(array: Callable[[str], Floats]) -> Floats:
    """(..., nb): how far each body's centre of mass is from its origin, or its radius of gyration."""
    mass, inertia = array("mass"), array("inertia")
    gyration = np.sqrt(np.maximum(inertia[..., :3].sum(axis=-1), 0.0) / np.where(mass > 0.0, 2.0 * mass, np.inf))
    return np.asarray(np.maximum(np.sqrt(np.sum(array("com") ** 2, axis=-1)), gyration))
