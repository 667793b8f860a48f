"""Where bodies and the frames on them are and how they move.

Components come first, (3, T) and (4, T), so that the functions of `spatial` for one vector serve for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, NameNotFound
from linkwright.kernels.kernel import Kernel, kernel
from linkwright.model.description import GROUND, Description, Names, Start, sealed
from linkwright.model.joint_kinds import KIND_LIST, JointKind
from linkwright.model.topology import Topology, reverse, span
from linkwright.model.tree import Coordinates, Tree
from linkwright.spatial.algebra import cross, point_acceleration, point_velocity
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix
from linkwright.tape.build import record


@dataclass(frozen=True, eq=False)
class Place:
    """A frame on a body (−1 is ground): its rotation and origin in the body's axes."""

    body: int
    r: Floats
    p: Floats

    @property
    def off(self) -> bool:
        """Whether its origin is not the body's own."""
        return bool(self.p.any())

    @property
    def turned(self) -> bool:
        """Whether its axes are not the body's own."""
        return not np.array_equal(self.r, np.eye(3))


def place(description: Description, name: str) -> Place:
    """A body, a frame, ground or the place of a trace, by name; in another case too, where only one name fits."""
    body, frame = find(description, name)
    f = description.frames
    return Place(body, np.eye(3), np.zeros(3)) if frame is None else Place(body, f.r[frame], f.p[frame])


def find(description: Description, name: str) -> tuple[int, int | None]:
    """The body of such a place (−1 is ground), and the number of its frame; None for the body's own."""
    d = description
    if not isinstance(name, str):
        raise ModelError(f"a body or frame is given by its name, not by {name!r}")
    traced = {trace.name: trace.place for trace in d.traces}
    where = d.find_frame(name) or (d.find_frame(traced[name]) if name in traced else None)
    if where is None:
        fits = {one for names in (d.body_names, d.frames.names) for one in fitting(names, name)}
        fits |= {one for one in (d.ground_name, *traced) if one.casefold() == name.casefold()}
        if len(fits) == 1:
            only = fits.pop()
            where = d.find_frame(only) or (d.find_frame(traced[only]) if only in traced else None)
    if where is None:
        known = [*d.body_names[:2000], *d.frames.names[:2000], d.ground_name, *traced]
        raise NameNotFound("body or frame", name, list(dict.fromkeys(known)))
    return where


def fitting(names: Names, name: str) -> list[str]:
    """The names that differ from this one in case alone; names that were made by number are not searched."""
    folded = name.casefold()
    return [] if names.generated else [known for known in names if known.casefold() == folded]


def at_point(quantity: str, arm: Floats, of_body: Callable[[str], Floats]) -> Floats:
    """The position, velocity or acceleration of a point of a body, components first, in ground's axes.

    `arm` goes from the body's origin to the point; `of_body` gives a quantity of the body by its name.
    """
    x = of_body(quantity)
    if quantity == "position":
        return x + arm
    omega = of_body("angular_velocity")
    if quantity == "velocity":
        return np.asarray(point_velocity(x, omega, arm))
    return np.asarray(point_acceleration(x, of_body("angular_acceleration"), omega, arm))


def turned(e: Any, p: Any) -> Any:
    """R(e) p."""
    return np.einsum("ij...,j...->i...", euler_parameters_matrix(e), spread(p, e))


def turned_back(e: Any, p: Any) -> Any:
    """R(e)ᵀ p."""
    return np.einsum("ji...,j...->i...", euler_parameters_matrix(e), spread(p, e))


def spread(x: Any, like: Any) -> Any:
    """x (n, ...) with the trailing shape of `like`."""
    x = np.asarray(x)
    missing = np.ndim(like) - x.ndim
    x = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
    return np.broadcast_to(x, (x.shape[0], *np.shape(like)[1:]))


AT_ONCE = 50_000  # bodies times points that are computed together
#: The arrays of a description that tell how bodies are joined.
NUMBERS = ("ri", "pi", "rj", "pj", "pitch")
#: What describes the motion of a body at a time, in ground's axes: how many numbers, their unit, and what they are.
QUANTITIES: dict[str, tuple[int, str, str]] = {
    "position": (3, "m", "position of the body's origin"),
    "orientation": (4, "1", "Euler parameters of the body"),
    "velocity": (3, "m/s", "velocity of the body's origin"),
    "angular_velocity": (3, "rad/s", "angular velocity of the body"),
    "acceleration": (3, "m/s^2", "acceleration of the body's origin"),
    "angular_acceleration": (3, "rad/s^2", "angular acceleration of the body"),
}


def body_motion(d: Description, q: Floats, v: Floats, a: Floats) -> dict[str, Floats]:
    """(T, nb, 3) and (T, nb, 4) of every quantity, in ground's axes and the description's order."""
    numbers = {name: getattr(d, name)[None] for name in NUMBERS}
    motion = bodies_of_cases(d, numbers, q[:, None], v[:, None], a[:, None])
    return {name: sealed(y)[:, 0] for name, y in motion.items()}


def of_ground(quantity: str, *shape: int) -> Floats:
    """(3 or 4, ...): a quantity of ground, which stands still, components first."""
    still = np.zeros((QUANTITIES[quantity][0], *shape))
    if quantity == "orientation":
        still[0] = 1.0
    return still


def body_states(d: Description, q: Floats) -> Floats:
    """(nb, 7): origins and Euler parameters of the bodies at the tree's coordinates q (nq,)."""
    still = np.zeros((1, Tree(d, span(d)).coordinates.nv))
    motion = body_motion(d, q[None], still, still)
    return np.concatenate([motion["position"][0], motion["orientation"][0]], axis=1)


def drawn_at(d: Description, states: Floats) -> Description:
    """The description with its bodies drawn at states (nb, 7)."""
    r = np.moveaxis(euler_parameters_matrix(states[:, 3:].T), -1, 0)
    return replace(d, start=Start(np.ones(d.nb, bool), r, states[:, :3]))


def bodies_of_cases(
    d: Description, numbers: Mapping[str, Floats], q: Floats, v: Floats, a: Floats
) -> dict[str, Floats]:
    """(T, n, nb, 3) and (T, n, nb, 4): the same for n mechanisms that differ by `NUMBERS` (n, joints, ...)."""
    steps, n = q.shape[:2]
    motion = {name: np.empty((steps, n, d.nb, size)) for name, (size, _, _) in QUANTITIES.items()}
    topology = span(d)
    x = Tree(d, topology).coordinates
    at_once = max(1, AT_ONCE // max(n * d.nb, 1))
    for first in range(0, steps, at_once):
        some = slice(first, min(first + at_once, steps))
        count = some.stop - first
        points = (w[some].reshape(count * n, w.shape[-1]) for w in (q, v, a))
        repeated = {name: np.tile(y, (count, *(1,) * (y.ndim - 1))) if n > 1 else y for name, y in numbers.items()}
        for name, y in zip(QUANTITIES, _motion(d, topology, x, repeated, *points), strict=True):
            motion[name][some] = np.moveaxis(y, 0, -1).reshape(count, n, d.nb, len(y))
    steady_signs(motion["orientation"])
    return motion


def steady_signs(e: Floats) -> None:
    """Keep the sign of Euler parameters (T, ..., 4) from one time to the next."""
    if len(e):
        stays = np.where(np.sum(e[1:] * e[:-1], axis=-1) < 0.0, -1.0, 1.0)
        e[1:] *= np.cumprod(stays, axis=0)[..., None]


def _motion(
    d: Description,
    topology: Topology,
    x: Coordinates,
    numbers: Mapping[str, Floats],
    q: Floats,
    v: Floats,
    a: Floats,
) -> tuple[Floats, ...]:
    """Every quantity, components first. Joints of one kind that are equally far from ground are taken together.

    `numbers` have a row for every point, or one for all.
    """
    points, ground = len(q), d.nb  # ground's row is behind those of the bodies
    r = np.zeros((3, 3, points, d.nb + 1))
    r[..., ground] = np.eye(3)[..., None]
    position, velocity, omega, acceleration, alpha = np.zeros((5, 3, points, d.nb + 1))
    reverse_of = np.asarray(topology.reverse, bool)
    for level in range(int(topology.depth.max(initial=0)) + 1):
        here = np.flatnonzero(topology.depth == level)
        sorts = d.kind[topology.joint[here]] * 2 + reverse_of[here]
        for sort in np.unique(sorts):
            i = here[sorts == sort]
            joint, turned = topology.joint[i], bool(sort % 2)
            kind = KIND_LIST[int(sort) // 2]
            near, far = (d.child, d.parent) if turned else (d.parent, d.child)
            up, down = near[joint], far[joint]
            up = np.where(up == GROUND, ground, up)
            (r_up, p_up), (r_down, p_down) = ((numbers["r" + s], numbers["p" + s]) for s in "ij")
            if turned:
                (r_up, p_up), (r_down, p_down) = (r_down, p_down), (r_up, p_up)
            ratio = x.ratio[i, None]
            own_q = q[:, x.q_at[i, None] + np.arange(kind.nq)]
            own_q = own_q * ratio + x.offset[i, None]
            own_v, own_a = (w[:, x.v_at[i, None] + np.arange(kind.nv)] * ratio for w in (v, a))
            pitch = np.broadcast_to(numbers["pitch"][:, joint], own_q.shape[:2])
            turn, shift, twist, change = _joint(kind, turned)(own_q, own_v, own_a, pitch)
            turn, shift = np.moveaxis(turn, (-2, -1), (0, 1)), np.moveaxis(shift, -1, 0)
            twist, change = np.moveaxis(twist, -1, 0), np.moveaxis(change, -1, 0)
            r_i = _product(r[..., up], _trailing(r_up[:, joint]))
            r_j = _product(r_i, turn)
            arm = _times(r[..., up], _trailing(p_up[:, joint])) + _times(r_i, shift)  # from the parent to frame j
            along, about = _times(r_j, twist[:3]), _times(r_j, twist[3:])
            w_up, w = omega[..., up], omega[..., up] + about
            turning = alpha[..., up] + _times(r_j, change[3:]) + cross(w, about)
            # Of frame j, which moves along its joint on the parent.
            sliding = point_velocity(velocity[..., up], w_up, arm) + along
            moving = point_acceleration(acceleration[..., up], alpha[..., up], w_up, arm)
            moving = moving + _times(r_j, change[:3]) + cross(w_up + w, along)
            r_body = _product(r_j, np.swapaxes(_trailing(r_down[:, joint]), 0, 1))
            back = -_times(r_body, _trailing(p_down[:, joint]))  # from frame j to the body's origin
            r[..., down], omega[..., down], alpha[..., down] = r_body, w, turning
            position[..., down] = position[..., up] + arm + back
            velocity[..., down] = point_velocity(sliding, w, back)
            acceleration[..., down] = point_acceleration(moving, turning, w, back)
    e = euler_parameters(r[..., :ground])
    others = (y[..., :ground] for y in (velocity, omega, acceleration, alpha))
    return position[..., :ground], e, *others


@cache
def _joint(kind: JointKind, turned: bool) -> Kernel:
    """q, v, a, pitch of a joint → its rotation and shift, its twist, and how that changes, seen from the parent."""
    seen = reverse(kind) if turned else kind

    def joint(q: Any, v: Any, a: Any, pitch: Any) -> Any:
        terms = seen.terms(q, pitch)
        s = seen.subspace(terms, pitch)
        r = np.asarray(seen.rotation(terms).matrix())
        twist = s @ v if seen.nv else np.zeros(6)
        change = s @ a + seen.subspace_rate(terms, pitch, v) if seen.nv else np.zeros(6)
        return r, np.asarray(seen.shift(terms, pitch)), twist, change

    name = f"motion of a joint, {seen.name}"
    return kernel("joint", (name, turned), lambda: record(joint, kind.nq, kind.nv, kind.nv, (), name=name))


def _trailing(x: Floats) -> Floats:
    """(points, n, ...) as (..., points, n)."""
    return np.moveaxis(x, (0, 1), (-2, -1))


def _product(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("ij...,jk...->ik...", a, b))


def _times(a: Floats, x: Floats) -> Floats:
    return np.asarray(np.einsum("ij...,j...->i...", a, x))
