"""The spanning tree in numbers: link frames, placements and inertias as the recursions want them.

A link frame sits at its body's joint, z along the axis. A placement is kept as a turn γ about z, a turn α about
x and an angle offset about z (any rotation is such a product); link frames are turned about their own axis so
that the first child of each has γ = 0. The user's body frame is a constant frame on the link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import ModelError
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.kinds import KIND_LIST, JointKind, reverse
from linkwright.mechanism.topology import Topology
from linkwright.spatial.rotation import General, Rotation, Turn

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
SNAP = 1e-14

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


def record_slices() -> dict[str, slice]:
    """Where each number of a record stands in its row."""
    slices, at = {}, 0
    for name, shape in RECORD.items():
        size = int(np.prod(shape))
        slices[name] = slice(at, at + size)
        at += size
    return slices


def snap(x: Floats) -> Floats:
    """Numbers within 1e-14 of 0, 1 and −1 are made exact: that is where sparsity comes from."""
    x = np.where(np.abs(x) < SNAP, 0.0, x)
    return np.where(np.abs(np.abs(x) - 1.0) < SNAP, np.sign(x), x)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """How q and v (without followers) reach each tree joint: x = ratio·q[at] + offset."""

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
    def kinds(self) -> list[JointKind]:
        d, t = self.description, self.topology
        numbers = d.kind[t.joint].tolist()
        if not t.reverse.any():
            return [KIND_LIST[k] for k in numbers]
        pairs = zip(numbers, t.reverse.tolist(), strict=True)
        return [reverse(KIND_LIST[k]) if back else KIND_LIST[k] for k, back in pairs]

    @cached_property
    def coordinates(self) -> Coordinates:
        d, t = self.description, self.topology
        nq = np.array([k.nq for k in KIND_LIST])[d.kind[t.joint]]
        nv = np.array([k.nv for k in KIND_LIST])[d.kind[t.joint]]
        ratio, offset = np.ones(self.n), np.zeros(self.n)
        follows = np.zeros(self.n, bool)
        leader: dict[int, int] = {}
        if d.mimics:
            at = {int(j): i for i, j in enumerate(t.joint)}
            for m in d.mimics:
                for joint in (m.follower, m.leader):
                    if joint not in at:
                        name = d.joint_names[joint]
                        text = f"joint {name!r} closes a loop and cannot take part in a mimic; cut another joint"
                        raise ModelError(text, element=name)
                i = at[m.follower]
                follows[i], ratio[i], offset[i], leader[i] = True, m.ratio, m.offset, at[m.leader]
                nq[i] = nv[i] = 0
        q_at = np.concatenate([[0], np.cumsum(nq)]).astype(np.int32)
        v_at = np.concatenate([[0], np.cumsum(nv)]).astype(np.int32)
        total_q, total_v = int(q_at[-1]), int(v_at[-1])
        q_at, v_at = q_at[:-1], v_at[:-1]
        for i, k in leader.items():
            q_at[i], v_at[i] = q_at[k], v_at[k]
        return Coordinates(q_at, v_at, total_q, total_v, ratio, offset, follows)

    @cached_property
    def _sides(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The joint frames on the parent's and on the link's own body: R, p, R, p by position."""
        d, t = self.description, self.topology
        ri, pi, rj, pj = d.ri[t.joint], d.pi[t.joint], d.rj[t.joint], d.pj[t.joint]
        if not t.reverse.any():
            return ri, pi, rj, pj
        back = t.reverse[:, None]
        r = np.where(back[:, None], rj, ri), np.where(back[:, None], ri, rj)
        p = np.where(back, pj, pi), np.where(back, pi, pj)
        return r[0], p[0], r[1], p[1]

    @cached_property
    def _placements(self) -> dict[str, Floats]:
        """γ, α, offset, p and the link frames (R, p in the body frame), for every position."""
        t = self.topology
        r_up, p_up, r_own, p_own = self._sides
        parent = self.parent
        has = parent >= 0
        up = np.where(has, parent, 0)
        # In the parent's joint frame, before link frames are turned.
        r_parent = np.where(has[:, None, None], r_own[up], np.eye(3)) if self.n else r_own
        p_parent = np.where(has[:, None], p_own[up], 0.0) if self.n else p_own
        r0 = snap(np.einsum("nji,njk->nik", r_parent, r_up))
        p0 = np.einsum("nji,nj->ni", r_parent, p_up - p_parent)
        gamma, alpha, theta = _zxz(r0)
        phi = np.zeros(self.n)
        turns = np.array([k.turns for k in KIND_LIST])[self.description.kind[t.joint]] & ~t.reverse
        children = np.flatnonzero(has)[::-1]  # the first child is written last and stays
        main = np.full(self.n, -1)
        main[parent[children]] = children
        with_main = (main >= 0) & turns
        phi[with_main] = gamma[main[with_main]]
        up_phi = np.where(has, phi[up], 0.0) if self.n else phi
        c, s = _cos_sin(up_phi)
        x, y = p0[:, 0].copy(), p0[:, 1].copy()
        p0[:, 0], p0[:, 1] = c * x + s * y, c * y - s * x
        scale = np.maximum(np.abs(p0).max(axis=1, initial=0.0), 1e-300)[:, None] if self.n else 1.0
        p0 = np.where(np.abs(p0) < SNAP * scale, 0.0, p0)
        c, s = _cos_sin(phi)
        r_link = r_own.copy()
        r_link[:, :, 0] = c[:, None] * r_own[:, :, 0] + s[:, None] * r_own[:, :, 1]
        r_link[:, :, 1] = c[:, None] * r_own[:, :, 1] - s[:, None] * r_own[:, :, 0]
        r_link = snap(r_link)
        return {
            "gamma": _wrap(gamma - up_phi),
            "alpha": alpha,
            "offset": _wrap(theta + phi),
            "p": p0,
            "r_link": r_link,
            "p_link": p_own,
            "phi": phi,
        }

    @property
    def link_frames(self) -> tuple[Floats, Floats]:
        """The link frames in their body frames: R (n, 3, 3) and p (n, 3), by position."""
        return self._placements["r_link"], self._placements["p_link"]

    @cached_property
    def table(self) -> Floats:
        """One row of `RECORD` a position."""
        d, t, place = self.description, self.topology, self._placements
        rows = np.empty((self.n, RECORD_SIZE))
        at = record_slices()
        for name in ("gamma", "alpha"):
            c, s = _cos_sin(place[name])
            rows[:, at[name]] = np.stack([c, s], axis=1)
        c, s = _cos_sin(place["offset"])
        rows[:, at["offset"]] = np.stack([place["offset"], c, s], axis=1)
        rows[:, at["p"]] = place["p"]
        r, p = self.link_frames
        mass, com, inertia = d.mass[t.body], d.com[t.body], d.inertia[t.body]
        centre = np.einsum("nji,nj->ni", r, com - p)
        full = np.empty((self.n, 3, 3))
        for k, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
            full[:, i, j] = full[:, j, i] = inertia[:, k]
        full = np.einsum("nji,njk,nkl->nil", r, full, r, optimize=True)
        shift = np.einsum("ni,ni->n", centre, centre)[:, None, None] * np.eye(3)
        full = full + mass[:, None, None] * (shift - centre[:, :, None] * centre[:, None, :])
        rows[:, at["mass"]] = mass[:, None]
        rows[:, at["moment"]] = _clean(mass[:, None] * centre)
        packed = np.stack([full[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], axis=1)
        rows[:, at["inertia"]] = _clean(packed)
        rows[:, at["pitch"]] = d.pitch[t.joint][:, None]
        rows[:, at["armature"]] = d.armature[t.joint][:, None]
        return rows

    # -- one link, over any scalar ------------------------------------------------------------------
    def record(self, i: int, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The numbers of link i; those bound to `parameters` (recorded scalars by name) are recorded."""
        row = self.table[i]
        values: dict[str, Any] = {name: row[s] for name, s in record_slices().items()}
        r, p = self.link_frames
        values.update(frame_r=r[i], frame_p=p[i])
        if parameters:
            values.update(self._bound(i, parameters))
        return values

    def on_link(
        self, body: int, r: Any, p: Any, parameters: Mapping[str, Any] | None = None
    ) -> tuple[int, Any, Any]:
        """A frame given in a body's axes: its link's position (−1 ground), R and p in link axes."""
        if body == GROUND:
            return -1, r, p
        position = int(self.topology.position[body])
        record = self.record(position, parameters)
        return position, record["frame_r"].T @ r, record["frame_r"].T @ (p - record["frame_p"])

    def triads(self, joint: int, parameters: Mapping[str, Any] | None = None) -> list[tuple[int, Any, Any]]:
        """Triads i and j of a joint, as `on_link` gives them."""
        d, known = self.description, parameters or {}
        found = []
        for side, body in (("i", int(d.parent[joint])), ("j", int(d.child[joint]))):
            r, p = self.row(f"r{side}", joint, known), self.row(f"p{side}", joint, known)
            position, r, p = self.on_link(body, r, p, known)
            found.append((position, r if _recorded(r) else snap(r), p if _recorded(p) else _clean(p[None])[0]))
        return found

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
        found = False
        if k in self._bound_rows.get(array, ()):
            for e in range(width):
                expression = d.bindings.get((array, k * width + e))
                if expression is not None and expression.names() & parameters.keys():
                    entries[e] = expression.evaluate(names)
                    found = True
        return (np.array(entries, dtype=object) if found else plain).reshape(plain.shape)

    def _bound(self, i: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
        t, place = self.topology, self._placements
        joint, body, up = int(t.joint[i]), int(t.body[i]), int(self.parent[i])
        own, other = ("i", "j") if t.reverse[i] else ("j", "i")
        r_up, p_up = self.row(f"r{other}", joint, parameters), self.row(f"p{other}", joint, parameters)
        r_own, p_own = self.row(f"r{own}", joint, parameters), self.row(f"p{own}", joint, parameters)
        r_par, p_par, phi_par = np.eye(3), np.zeros(3), 0.0
        if up >= 0:
            side = "i" if t.reverse[up] else "j"
            r_par = self.row(f"r{side}", int(t.joint[up]), parameters)
            p_par = self.row(f"p{side}", int(t.joint[up]), parameters)
            phi_par = float(place["phi"][up])
        values: dict[str, Any] = {}
        back = Turn(2, *(float(x) for x in _cos_sin(np.array(-phi_par))))
        if _recorded(p_up, r_par, p_par):
            values["p"] = back.inward(np.asarray(r_par).T @ (p_up - p_par))
        phi = float(place["phi"][i])
        turn = Turn(2, *(float(x) for x in _cos_sin(np.array(phi))))
        if _recorded(r_up, r_par):
            values["rotation"] = back.matrix() @ np.asarray(r_par).T @ r_up @ turn.matrix()
        if _recorded(r_own, p_own):
            values.update(frame_r=r_own @ turn.matrix(), frame_p=p_own)
        mass, com = self.row("mass", body, parameters), self.row("com", body, parameters)
        inertia = self.row("inertia", body, parameters)
        if _recorded(mass, com, inertia, r_own, p_own):
            r = General(turn.matrix().T @ np.asarray(r_own).T)
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


def placement_rotation(record: Mapping[str, Any], *, turning: bool) -> list[Rotation]:
    """The rotations of a placement; a turning joint adds its own angle offset, another kind gets it here."""
    if "rotation" in record:
        # A placement with a free parameter is a general matrix; its angle offset is inside.
        return [General(record["rotation"])]
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


def _is(x: Any, value: float) -> bool:
    return isinstance(x, (float, int)) and x == value


def _recorded(*arrays: Any) -> bool:
    return any(np.asarray(a).dtype == object for a in arrays)


def _clean(x: Floats) -> Floats:
    """Rounding noise beside larger numbers of the same row becomes zero."""
    size = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    return np.where(np.abs(x) < 1e-16 * size, 0.0, x)


def _wrap(angle: Floats) -> Floats:
    """The angle in (−π, π], with multiples of a quarter turn made exact."""
    angle = np.remainder(angle + np.pi, 2 * np.pi) - np.pi
    quarter = np.round(angle / (np.pi / 2))
    return np.where(np.abs(angle - quarter * (np.pi / 2)) < SNAP, quarter * (np.pi / 2), angle)


def _cos_sin(angle: Floats) -> tuple[Floats, Floats]:
    return snap(np.cos(angle)), snap(np.sin(angle))


def _zxz(r: Floats) -> tuple[Floats, Floats, Floats]:
    """γ, α, θ with R = Rz(γ) Rx(α) Rz(θ); γ = 0 where α is 0 or π."""
    sine = np.hypot(r[:, 0, 2], r[:, 1, 2])
    plain = sine < SNAP
    gamma = np.where(plain, 0.0, np.arctan2(r[:, 0, 2], -r[:, 1, 2]))
    gamma = _wrap(gamma)
    alpha = _wrap(np.where(plain, np.where(r[:, 2, 2] < 0, np.pi, 0.0), np.arctan2(sine, r[:, 2, 2])))
    # θ from what is left after γ and α, so that the product is R to rounding even for a tiny α.
    cg, sg = _cos_sin(gamma)
    ca, sa = _cos_sin(alpha)
    x = cg * r[:, 0, 0] + sg * r[:, 1, 0]
    y = cg * r[:, 1, 0] - sg * r[:, 0, 0]
    y = ca * y + sa * r[:, 2, 0]
    return gamma, alpha, _wrap(np.arctan2(y, x))
