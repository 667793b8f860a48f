"""The spanning tree in numbers: link frames, placements and inertias as the recursions want them.

A link frame sits at its body's joint, z along the axis. A placement is kept as a turn γ about z, a turn α about
x and an angle offset about z (any rotation is such a product); link frames are turned about their own axis so
that the first child of each has γ = 0. The user's body frame is a constant frame on the link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.model.description import GROUND, Description
from linkwright.model.joint_kinds import KIND_LIST, JointKind
from linkwright.model.placements import SNAP, cos_sin, first_turn, full_inertia, pack_inertia, snapped, turns, wrap, zxz
from linkwright.model.topology import Topology, of_first_leader, reverse
from linkwright.spatial.rotation import Chain, Turn

Ints = NDArray[np.int32]
At: TypeAlias = slice | NDArray[Any]  # some positions of a tree
FEW = 16  # different joints, bodies or records up to which a tree has few
_PART = 2**14  # links whose numbers are worked out at a time, within the cache
_EVERY = slice(None)
_OF_JOINTS = ("kind", "ri", "pi", "rj", "pj", "pitch", "armature")  # what a record depends on

#: The numbers of one link in a row of `Tree.table`, with their shapes.
RECORD: dict[str, tuple[int, ...]] = {
    "gamma": (2,),  # cos, sin
    "alpha": (2,),
    "offset": (3,),  # angle, cos, sin
    "p": (3,),
    "mass": (1,),
    "moment": (3,),
    "inertia": (6,),
    "pitch": (1,),
    "armature": (1,),
}
RECORD_SIZE = sum(int(np.prod(s)) for s in RECORD.values())


@cache
def record_slices() -> dict[str, slice]:
    """Where each number of a record stands in its row."""
    slices, at = {}, 0
    for name, shape in RECORD.items():
        size = int(np.prod(shape))
        slices[name] = slice(at, at + size)
        at += size
    return slices


@dataclass(frozen=True, eq=False)
class Coordinates:
    """How q and v (without followers) reach each tree joint: x = ratio·q[at] + offset, 1·q[at] + 0 if it leads."""

    q_at: Ints
    v_at: Ints
    nq: int
    nv: int
    ratio: Floats
    offset: Floats
    follows: NDArray[np.bool_]


class Tree:
    """The numbers of a spanning tree; `record(i)` gives those of one link, with free parameters recorded."""

    def __init__(self, description: Description, topology: Topology) -> None:
        self.description, self.topology = description, topology
        self.n = len(topology)
        self.parent = topology.parent

    @cached_property
    def kind_numbers(self) -> Ints:
        """The number in KIND_LIST of each position's joint."""
        return self.description.kind[self.topology.joint]

    def kind(self, i: int) -> JointKind:
        """The joint kind at a position, as seen from the parent."""
        kind = KIND_LIST[int(self.kind_numbers[i])]
        return reverse(kind) if self.topology.reverse[i] else kind

    @cached_property
    def kinds(self) -> list[JointKind]:
        """The joint kind at every position."""
        return [self.kind(i) for i in range(self.n)]

    @cached_property
    def euler_parameters(self) -> list[int]:
        """Where Euler parameters begin in q."""
        x = self.coordinates
        free = (i for i, kind in enumerate(self.kinds) if not kind.paired and not x.follows[i])
        return [int(x.q_at[i]) + self.kinds[i].nq - 4 for i in free]

    @cached_property
    def shifts(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(nq,) and (nv,): which coordinates and which rates are lengths; the others are turns, or Euler parameters."""
        x = self.coordinates
        lengths = np.zeros(x.nq, bool), np.zeros(x.nv, bool)
        for number in np.flatnonzero(np.bincount(self.kind_numbers)):  # np.unique would import masked arrays
            at = np.flatnonzero((self.kind_numbers == number) & ~x.follows)
            for mask, first, flags in zip(lengths, (x.q_at, x.v_at), KIND_LIST[number].lengths, strict=True):
                for k in np.flatnonzero(flags):
                    mask[first[at] + k] = True
        for mask in lengths:
            mask.flags.writeable = False
        return lengths

    @cached_property
    def coordinates(self) -> Coordinates:
        nq = np.array([k.nq for k in KIND_LIST], np.int32)[self.kind_numbers]
        nv = np.array([k.nv for k in KIND_LIST], np.int32)[self.kind_numbers]
        ratio, offset = np.broadcast_to(1.0, (self.n,)), np.broadcast_to(0.0, (self.n,))
        follows = np.broadcast_to(np.False_, (self.n,))
        if self._gears:
            ratio, offset, follows = ratio.copy(), offset.copy(), follows.copy()
        leader: dict[int, int] = {}
        for i in self._gears:
            leader[i], ratio[i], offset[i] = of_first_leader(self._gears, i)
            follows[i], nq[i], nv[i] = True, 0, 0
        q_at = np.concatenate([[0], np.cumsum(nq)]).astype(np.int32)
        v_at = np.concatenate([[0], np.cumsum(nv)]).astype(np.int32)
        total_q, total_v = int(q_at[-1]), int(v_at[-1])
        q_at, v_at = q_at[:-1], v_at[:-1]
        for i, k in leader.items():
            q_at[i], v_at[i] = q_at[k], v_at[k]
        return Coordinates(q_at, v_at, total_q, total_v, ratio, offset, follows)

    @cached_property
    def _gears(self) -> dict[int, tuple[int, float, float]]:
        """The leader, ratio and offset of every follower in the tree, by positions.

        What a loop's joint has no coordinate for is an equation.
        """
        if not self.description.mimics:
            return {}
        at = {int(j): i for i, j in enumerate(self.topology.joint)}
        within = (m for m in self.description.mimics if m.follower in at and m.leader in at)
        return {at[m.follower]: (at[m.leader], m.ratio, m.offset) for m in within}

    @property
    def couplings(self) -> list[tuple[int, int, float]]:
        """The gears between joints of the tree: the positions of follower and leader, and the ratio between these."""
        return [(follower, leader, ratio) for follower, (leader, ratio, _) in self._gears.items()]

    @cached_property
    def own_rates(self) -> dict[int, slice]:
        """Where the rates of each joint stand if none is shared: of the tree's joints in order, then of loops'."""
        places, at = {}, 0
        for j in (*self.topology.joint.tolist(), *self.topology.loops):
            nv = self.description.kind_of(j).nv
            places[j] = slice(at, at + nv)
            at += nv
        return places

    def sides(self, at: At) -> tuple[Floats, Floats, Floats, Floats]:
        """The joint frames on the parent's and on the link's own body: R, p, R, p at some positions."""
        d, t = self.description, self.topology
        joint, back = t.joint[at], t.reverse[at, None]
        ri, pi, rj, pj = d.ri[joint], d.pi[joint], d.rj[joint], d.pj[joint]
        if not back.any():
            return ri, pi, rj, pj
        r = np.where(back[:, None], rj, ri), np.where(back[:, None], ri, rj)
        p = np.where(back, pj, pi), np.where(back, pi, pj)
        return r[0], p[0], r[1], p[1]

    def _steps(self, at: At) -> tuple[Floats, Floats]:
        """The joint frames on the parents in the parents' own joint frames, before link frames are turned."""
        r_up, p_up, _, _ = self.sides(at)
        parent = self.parent[at]
        has = parent >= 0
        _, _, r_parent, p_parent = self.sides(np.where(has, parent, 0))
        r_parent[~has], p_parent[~has] = np.eye(3), 0.0
        r0 = snapped(np.einsum("nji,njk->nik", r_parent, r_up))
        return r0, np.einsum("nji,nj->ni", r_parent, p_up - p_parent)

    @cached_property
    def _main(self) -> Ints:
        """The first child of each position, −1 without one."""
        main = np.full(self.n, -1, np.int32)
        children = np.flatnonzero(self.parent >= 0)[::-1]
        main[self.parent[children]] = children  # the first is written last and stays
        return main

    @cached_property
    def _alike(self) -> tuple[NDArray[np.int64], Ints] | None:
        """Positions that stand for all, and for each position which of them is like it; None if many differ.

        Alike are positions with the same numbers in the description, and so their parents and first children.
        """
        d, t = self.description, self.topology
        joints, bodies = _classes([getattr(d, name) for name in _OF_JOINTS]), _classes([d.mass, d.com, d.inertia])
        if joints is None or bodies is None:
            return None
        classes = ((joints[t.joint] * FEW + bodies[t.body]) * 2 + t.reverse).astype(np.int64)
        up, main = self.parent, self._main
        others = up, main, np.where(up >= 0, main[up], -1)
        key, base = classes, 2 * FEW**2 + 1
        for other in others:
            key = key * base + np.where(other >= 0, classes[other] + 1, 0)
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return first, which.astype(np.int32)

    def _everywhere(self, numbers: Callable[[At], Floats]) -> Floats:
        """numbers(positions), worked out for every position."""
        if self._alike is not None:
            first, which = self._alike
            return numbers(first)[which]
        parts = [numbers(slice(k, min(k + _PART, self.n))) for k in range(0, self.n, _PART)]
        return np.concatenate(parts) if parts else numbers(_EVERY)

    @cached_property
    def _phi(self) -> Floats:
        """How far each link frame is turned about its axis: so far that its first child has γ = 0."""
        turning = np.array([k.turns for k in KIND_LIST])

        def phi(at: At) -> Floats:
            main = self._main[at]
            turned = (main >= 0) & turning[self.kind_numbers[at]] & ~self.topology.reverse[at]
            return np.where(turned, first_turn(self._steps(np.maximum(main, 0))[0]), 0.0)

        return self._everywhere(phi)

    def _placements(self, at: At) -> dict[str, Floats]:
        """γ, α, offset and p of some positions."""
        r0, p0 = self._steps(at)
        gamma, alpha, theta = zxz(r0)
        parent, phi = self.parent[at], self._phi[at]
        up_phi = np.where(parent >= 0, self._phi[parent], 0.0)
        c, s = cos_sin(up_phi)
        x, y = p0[:, 0].copy(), p0[:, 1].copy()
        p0[:, 0], p0[:, 1] = c * x + s * y, c * y - s * x
        scale = np.maximum(np.abs(p0).max(axis=1, initial=0.0), 1e-300)[:, None]
        p0[np.abs(p0) < SNAP * scale] = 0.0
        return {"gamma": wrap(gamma - up_phi), "alpha": alpha, "offset": wrap(theta + phi), "p": p0}

    def link_frames(self, at: At = _EVERY) -> tuple[Floats, Floats]:
        """The link frames in their body frames, of some positions: R (n, 3, 3) and p (n, 3)."""
        _, _, r, p = self.sides(at)
        c, s = cos_sin(self._phi[at])
        x, y = r[:, :, 0].copy(), r[:, :, 1].copy()
        r[:, :, 0] = c[:, None] * x + s[:, None] * y
        r[:, :, 1] = c[:, None] * y - s[:, None] * x
        return snapped(r), p

    @cached_property
    def records(self) -> tuple[Floats, Ints | None]:
        """Rows of `RECORD`, one per position, or fewer and which of them each position has."""
        if self._alike is None:
            return self._everywhere(self._records), None
        first, which = self._alike
        rows, number = np.unique(self._records(first), axis=0, return_inverse=True)
        return rows, number.reshape(-1).astype(np.int32)[which]

    def _records(self, part: At) -> Floats:
        """The rows of some positions."""
        d, t, place = self.description, self.topology, self._placements(part)
        rows = np.empty((len(place["p"]), RECORD_SIZE))
        at = record_slices()
        for name in ("gamma", "alpha"):
            c, s = cos_sin(place[name])
            rows[:, at[name]] = np.stack([c, s], axis=1)
        c, s = cos_sin(place["offset"])
        rows[:, at["offset"]] = np.stack([place["offset"], c, s], axis=1)
        rows[:, at["p"]] = place["p"]
        r, p = self.link_frames(part)
        joint, body = t.joint[part], t.body[part]
        mass, com, inertia = d.mass[body], d.com[body], d.inertia[body]
        centre = np.einsum("nji,nj->ni", r, com - p)
        full = np.einsum("nji,njk,nkl->nil", r, full_inertia(inertia), r, optimize=True)
        shift = np.einsum("ni,ni->n", centre, centre)[:, None, None] * np.eye(3)
        full = full + mass[:, None, None] * (shift - centre[:, :, None] * centre[:, None, :])
        rows[:, at["mass"]] = mass[:, None]
        rows[:, at["moment"]] = _clean(mass[:, None] * centre)
        rows[:, at["inertia"]] = _clean(pack_inertia(full))
        rows[:, at["pitch"]] = d.pitch[joint][:, None]
        rows[:, at["armature"]] = d.armature[joint][:, None]
        return rows + 0.0  # no −0

    def rows(self, at: Any) -> Floats:
        """The records of these positions."""
        rows, which = self.records
        records: Floats = rows[at] if which is None else rows[which[at]]
        return records

    # -- one link, over any scalar ------------------------------------------------------------------
    def record(self, i: int, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The numbers of link i; those bound to `parameters` (recorded scalars by name) are recorded."""
        row = self.rows(i)
        values: dict[str, Any] = {name: row[s] for name, s in record_slices().items()}
        r, p = self.link_frames(np.array([i]))
        values.update(frame_r=r[0], frame_p=p[0])
        if parameters:
            values.update(self._bound(i, parameters))
        return values

    def on_link(self, body: int, r: Any, p: Any, parameters: Mapping[str, Any] | None = None) -> tuple[int, Any, Any]:
        """A frame given in a body's axes: its link's position (−1 ground), R and p in link axes."""
        if body == GROUND:
            return -1, r, p
        position = int(self.topology.position[body])
        record = self.record(position, parameters)
        return position, record["frame_r"].T @ r, record["frame_r"].T @ (p - record["frame_p"])

    def place(self, name: str, parameters: Mapping[str, Any] | None = None) -> tuple[int, Any, Any]:
        """A frame by name: its link's position (−1 ground), R and p in link axes."""
        if not isinstance(name, str) or not name:
            raise ModelError(f"a frame is given by its name, not by {name!r}; mech.frames lists them")
        body, k = self.description.frame_number(name, "frame")
        if k is None:
            return self.on_link(body, np.eye(3), np.zeros(3), parameters)
        r, p = (self.row(array, k, parameters or {}) for array in ("frame_r", "frame_p"))
        return self.on_link(body, r, p, parameters)

    @cached_property
    def joint_positions(self) -> dict[str, int]:
        """The position of the link that each joint of the tree carries, by the joint's name."""
        names = self.description.joint_names
        return {names[int(j)]: i for i, j in enumerate(self.topology.joint)}

    def joint_frames(self, joint: int, parameters: Mapping[str, Any] | None = None) -> list[tuple[int, Any, Any]]:
        """Frames i and j of a joint, as `on_link` gives them."""
        d, known = self.description, parameters or {}
        joint_frames = []
        for side, body in (("i", int(d.parent[joint])), ("j", int(d.child[joint]))):
            r, p = self.row(f"r{side}", joint, known), self.row(f"p{side}", joint, known)
            position, r, p = self.on_link(body, r, p, known)
            joint_frames.append(
                (position, r if _recorded(r) else snapped(r), p if _recorded(p) else _clean(p[None])[0])
            )
        return joint_frames

    @cached_property
    def _bound_rows(self) -> dict[str, set[int]]:
        """For each array of the description, the rows that have bindings."""
        rows: dict[str, set[int]] = {}
        for array, flat in self.description.bindings:
            width = int(np.prod(getattr(self.description, array).shape[1:], dtype=int))
            rows.setdefault(array, set()).add(flat // width)
        return rows

    def row(self, array: str, k: int, parameters: Mapping[str, Any]) -> Any:
        """A row of a description's array with its free numbers recorded."""
        d = self.description
        plain = np.asarray(getattr(d, array)[k], dtype=np.float64)
        width, entries = plain.size, list(plain.reshape(-1))
        names = {**d.parameters, **parameters}
        recorded = False
        if k in self._bound_rows.get(array, ()):
            for e in range(width):
                expression = d.bindings.get((array, k * width + e))
                if expression is not None and expression.names() & parameters.keys():
                    entries[e] = expression.evaluate(names)
                    recorded = True
        return (np.array(entries, dtype=object) if recorded else plain).reshape(plain.shape)

    def _bound(self, i: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
        t = self.topology
        joint, body, up = int(t.joint[i]), int(t.body[i]), int(self.parent[i])
        far, other = ("i", "j") if t.reverse[i] else ("j", "i")
        r_up, p_up = self.row(f"r{other}", joint, parameters), self.row(f"p{other}", joint, parameters)
        r_own, p_own = self.row(f"r{far}", joint, parameters), self.row(f"p{far}", joint, parameters)
        r_par, p_par, phi_par = np.eye(3), np.zeros(3), 0.0
        if up >= 0:
            side = "i" if t.reverse[up] else "j"
            r_par = self.row(f"r{side}", int(t.joint[up]), parameters)
            p_par = self.row(f"p{side}", int(t.joint[up]), parameters)
            phi_par = float(self._phi[up])
        values: dict[str, Any] = {}
        back = Turn(2, *(float(x) for x in cos_sin(np.array(-phi_par))))
        if _recorded(p_up, r_par, p_par):
            values["p"] = back.inward(np.asarray(r_par).T @ (p_up - p_par))
        phi = float(self._phi[i])
        turn = Turn(2, *(float(x) for x in cos_sin(np.array(phi))))
        if _recorded(r_up, r_par):
            values["rotation"] = back.matrix() @ np.asarray(r_par).T @ r_up @ turn.matrix()
        if _recorded(r_own, p_own):
            values.update(frame_r=r_own @ turn.matrix(), frame_p=p_own)
        mass, com = self.row("mass", body, parameters), self.row("com", body, parameters)
        inertia = self.row("inertia", body, parameters)
        if _recorded(mass, com, inertia, r_own, p_own):
            r = Chain(turns(turn.matrix().T @ np.asarray(r_own).T))
            m = mass.reshape(-1)[0]
            c = r.inward(com - p_own)
            full = r.congruent(inertia)
            xx, yy, zz = c[0] * c[0], c[1] * c[1], c[2] * c[2]
            shift = np.array([yy + zz, xx + zz, xx + yy, -(c[0] * c[1]), -(c[0] * c[2]), -(c[1] * c[2])])
            values.update(mass=np.array([m]), moment=m * c, inertia=full + m * shift)
        for name in ("pitch", "armature"):
            number = self.row(name, joint, parameters)
            if _recorded(number):
                values[name] = number.reshape(1)
        return values


def _recorded(*arrays: Any) -> bool:
    return any(np.asarray(a).dtype == object for a in arrays)


def _classes(arrays: Sequence[NDArray[Any]]) -> Ints | None:
    """Numbers for the rows of arrays of equal length, the same where all rows are; None if there are many."""
    n, some = len(arrays[0]), 64 * FEW
    if n > some and _classes([a[:some] for a in arrays]) is None:
        return None
    moving = [a.reshape(n, -1) for a in arrays if a.strides[0] and a.size]
    sums = np.zeros(n, np.uint64)
    random = Random(0)  # that of NumPy takes 10 ms to import
    for a in moving:
        words = np.ascontiguousarray(a, dtype=np.float64).view(np.uint64)
        for column in words.T:
            # Signs must not cancel each other.
            odd = np.uint64(random.getrandbits(63) << 1 | 1)
            sums += (column ^ (column >> np.uint64(32))) * odd
    _, first, number = np.unique(sums, return_index=True, return_inverse=True)
    if len(first) > FEW or not all(np.array_equal(a[first][number], a) for a in moving):
        return None
    return number.astype(np.int32)


def _clean(x: Floats) -> Floats:
    """Rounding noise beside larger numbers of the same row becomes zero."""
    size = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    return np.where(np.abs(x) < 1e-16 * size, 0.0, x)
