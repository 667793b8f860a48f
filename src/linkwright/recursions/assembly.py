r"""Forward dynamics by assembly, O(log N) in parallel: sub-chains known at their two outer handles, joined two by two.

Yamane and Nakamura's method. A node is a stretch of a path, with handle 1 on its first link and handle 2 at the joint
below its last; the two sides of a joint have their handles at the joint's child frame, in its axes, and b = [a; α] is
the true acceleration of the handle's point. The paper keeps both accelerations as functions of both forces (Φ); that
needs the inverse of every body's inertia, and where joints do not turn (a chain of prismatic ones, say) large numbers
cancel: six digits of nine links with long shifts. Here the same node is kept half turned over,

    f₁ = M b₁ + Xᵀ f₂ + h,   b₂ = X b₁ − Φ f₂ + β

with f₁ the force on it at handle 1, and f₂ the force that it exerts at handle 2. A single link has its own inertia M,
the transform X to the next joint and Φ = 0: no inverse, and joins only add. Joining A above to B below at a joint,
b₁ᴮ = b₂ᴬ + S a + c and Sᵀf = τ − (armature) a, with D = Sᵀ Mᴮ S + (armature), Y = Mᴮ S D⁻¹, U = 1 − Y Sᵀ,
W = U Mᴮ, W' = (W⁻¹ + Φᴬ)⁻¹ (by a factor of W: it may be singular) and u = U (Xᴮᵀ f₂ + hᴮ) + Y τ:

    f = u + W' (Xᴬ b₁ + βᴬ + c − Φᴬ u),  b₂ᴬ = Xᴬ b₁ + βᴬ − Φᴬ f,  a = D⁻¹ (τ − Sᵀ(hᴮ + Xᴮᵀ f₂)) − Yᵀ (b₂ᴬ + c)

    up:    M = Mᴬ + Xᴬᵀ W' Xᴬ,  X = Xᴮ Uᵀ (1 − Φᴬ W') Xᴬ,  Φ = Φᴮ + Xᴮ (S D⁻¹ Sᵀ + Uᵀ (Φᴬ − Φᴬ W' Φᴬ) U) Xᴮᵀ,
           h and β from f and b₂ at b₁ = 0, f₂ = 0
    down:  f, a and b₁ᴮ from b₁ and f₂

A path that is whole passes the inertia and the force that its first joint lets through to the link that carries it:
siblings only add. Rotations and angular velocities are scanned over the same nodes, so that every part has depth
O(log N) for any tree: see `linkwright.mechanism.contraction`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.mechanism.contraction import Contraction
from linkwright.recursions.levels import Operation, Sheet
from linkwright.recursions.link import Link, State
from linkwright.spatial.algebra import (
    Array,
    cross,
    dot,
    pack_symmetric,
    symmetric_product,
    symmetric_times,
    unpack_symmetric,
)
from linkwright.spatial.definite import inverse, semidefinite_factor
from linkwright.spatial.rotation import General
from linkwright.spatial.transform import ArticulatedInertia, Transform

Fields = dict[str, dict[str, Array]]


def forward_dynamics(sheet: Sheet, c: Contraction, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the sheet's q, v, tau (and wrenches on the links)."""
    links = np.arange(c.n, dtype=np.int32)
    joins = np.arange(c.n, c.nodes, dtype=np.int32)
    heads = np.arange(len(c.head), dtype=np.int32)
    sums = np.arange(len(c.left), dtype=np.int32) + len(c.head)
    carrier, carried = c.parent[c.head], c.parent[c.head] < c.n
    # One number a link names the node from which its turning follows, and the link before that node.
    source = np.empty(c.n, np.int32)
    source[c.parent[c.joint]] = c.above
    source[c.last] = c.whole

    sheet.table("links", c.n + 2)
    sheet.table("nodes", c.nodes)
    sheet.table("passed", c.nothing + 1)
    none, still = np.zeros(3), np.zeros(6)
    sheet.set("links", c.n, {"r": np.eye(3), "p": none, "force": still})
    sheet.set("links", c.ground, {"omega": none, "b": np.concatenate([-gravity, none])})
    sheet.set("passed", c.nothing, {"m": still, "h": np.zeros((3, 3)), "a": still, "f": still})

    def at(table: str, rows: Any) -> tuple[str, Any]:
        return table, rows

    sheet.stage(Operation(place, links, {"own": at("links", links), "node": at("nodes", links)}))
    sheet.stage(
        Operation(
            turn,
            None,
            {"above": at("nodes", c.above), "below": at("nodes", c.below), "node": at("nodes", joins)},
            makes=("node", joins),
            needs=(("node", c.above), ("node", c.below)),
        )
    )
    base = c.parent[c.first[source]]
    sheet.stage(
        Operation(
            spin,
            None,
            {"node": at("nodes", source), "base": at("links", base), "own": at("links", links)},
            makes=("omega", links),
            needs=(("omega", base),),
        )
    )
    own, child = at("links", links), at("links", c.heavy)
    passed = {"light": at("passed", c.light), "own": own, "child": child, "node": at("nodes", links)}
    joined = {"above": at("nodes", c.above), "below": at("nodes", c.below), "joint": at("links", c.joint)}
    head = {"joint": at("links", c.head), "node": at("nodes", c.whole), "carrier": at("links", carrier)}
    sheet.stage(
        Operation(
            free_with_wrench if wrenches else free,
            links,
            passed,
            makes=("node", links),
            needs=(("passed", c.light),),
        ),
        Operation(
            join,
            c.joint,
            {**joined, "node": at("nodes", joins)},
            makes=("node", joins),
            needs=(("node", c.above), ("node", c.below)),
        ),
        Operation(
            hang,
            c.head[~carried],
            {name: (t, rows[~carried]) for name, (t, rows) in head.items()},
            needs=(("node", c.whole[~carried]),),
        ),
        Operation(
            hand_on,
            c.head[carried],
            {name: (t, rows[carried]) for name, (t, rows) in {**head, "up": at("passed", heads)}.items()},
            makes=("passed", heads[carried]),
            needs=(("node", c.whole[carried]),),
        ),
        Operation(
            rake,
            None,
            {"left": at("passed", c.left), "right": at("passed", c.right), "sum": at("passed", sums)},
            makes=("passed", sums),
            needs=(("passed", c.left), ("passed", c.right)),
        ),
    )
    first, after = c.first[joins], c.after[joins]
    sheet.stage(
        Operation(
            release,
            c.head,
            {"joint": at("links", c.head), "carrier": at("links", carrier)},
            makes=("force", c.head),
            needs=(("force", carrier),),
        ),
        Operation(
            part,
            c.joint,
            {**joined, "first": at("links", first), "after": at("links", after)},
            makes=("force", c.joint),
            needs=(("force", first), ("force", after)),
        ),
    )
    return sheet.joint_vector("acceleration")


# -- turning: rotations and angular velocities --------------------------------------------------------------
def place(link: Link, own: State, node: State) -> Fields:
    """Where the link stands on its parent, and how it turns against it."""
    terms = link.terms()
    x = link.transform(terms)
    r = x.rotation.matrix()
    twist = link.joint_twist(terms, link.v)
    return {"own": {"terms": terms, "r": r, "p": np.asarray(x.p)}, "node": {"turn": r, "spin": twist[3:]}}


def turn(above: State, below: State, node: State) -> Fields:
    """R and ω of the last link against what carries the first."""
    r = below["turn"]
    return {"node": {"turn": above["turn"] @ r, "spin": above["spin"] @ r + below["spin"]}}


def spin(node: State, base: State, own: State) -> Fields:
    """ω of a node's last link, in its axes."""
    return {"own": {"omega": base["omega"] @ node["turn"] + node["spin"]}}


# -- up -----------------------------------------------------------------------------------------------------
def free(link: Link, light: State, own: State, child: State, node: State) -> Fields:
    """One link, with what its light children pass to it."""
    return _free(link, light, own, child, light["f"])


def free_with_wrench(link: Link, light: State, own: State, child: State, node: State) -> Fields:
    """`free` with an applied wrench."""
    return _free(link, light, own, child, light["f"] - link.wrench)


def _free(link: Link, light: State, own: State, child: State, force: Array) -> Fields:
    m = link.rigid_inertia() + ArticulatedInertia(light["m"], light["h"], light["a"])
    omega = own["omega"]
    k = np.concatenate([cross(omega, cross(omega, link.moment)), cross(omega, symmetric_times(link.inertia, omega))])
    x = Transform(General(child["r"]), child["p"])
    made = {
        "m": pack_symmetric(m.dense()),
        "x": np.stack([x.outward(unit) for unit in np.eye(6)], axis=1),
        "phi": np.zeros(21),
        "h": k + force,
        "beta": _centripetal(x, omega),
    }
    return {"node": made}


def join(link: Link, above: State, below: State, joint: State, node: State) -> Fields:
    """Two nodes made one at a joint."""
    cut = _Cut(link, joint, unpack_symmetric(below["m"], 6), below["h"])
    phi, xa, xb = unpack_symmetric(above["phi"], 6), above["x"], below["x"]
    w = cut.behind(phi)
    wx, wphi = w @ xa, w @ phi
    f = cut.u + w @ (above["beta"] + cut.c - phi @ cut.u)
    b2 = above["beta"] - phi @ f
    _, b1 = cut.across(b2, cut.still)
    z = cut.onward(xa - phi @ wx)
    between = cut.slack(phi - unpack_symmetric(symmetric_product(phi, wphi), 6))
    made = {
        "m": above["m"] + symmetric_product(xa.T, wx),
        "x": xb @ z,
        "phi": below["phi"] + symmetric_product(xb @ between, xb.T),
        "h": above["h"] + f @ xa,
        "beta": below["beta"] + xb @ b1,
    }
    return {"node": made, "joint": cut.left(w)}


def hang(link: Link, joint: State, node: State, carrier: State) -> Fields:
    """A whole path at the joint that carries it."""
    cut = _Cut(link, joint, unpack_symmetric(node["m"], 6), node["h"])
    return {"joint": cut.left(cut.w)}


def hand_on(link: Link, joint: State, node: State, carrier: State, up: State) -> Fields:
    """`hang`, and what the path passes to the link that carries it."""
    cut = _Cut(link, joint, unpack_symmetric(node["m"], 6), node["h"])
    x = Transform(General(joint["r"]), joint["p"])
    inertia = x.inertia(ArticulatedInertia.from_dense(cut.w))
    force = x.inward(cut.u + cut.w @ (_centripetal(x, carrier["omega"]) + cut.c))
    return {"joint": cut.left(cut.w), "up": {"m": inertia.m, "h": inertia.h, "a": inertia.a, "f": force}}


def rake(left: State, right: State, sum: State) -> Fields:
    """What two light children, or two groups of them, pass to their link."""
    return {"sum": {name: left[name] + right[name] for name in ("m", "h", "a", "f")}}


# -- down ---------------------------------------------------------------------------------------------------
def release(link: Link, joint: State, carrier: State) -> Fields:
    """The force and the accelerations at a path's first joint, from those of the link that carries it."""
    x = Transform(General(joint["r"]), joint["p"])
    cut = _Kept(link, joint)
    b2 = x.outward(carrier["b"]) + _centripetal(x, carrier["omega"])
    f = joint["u"] + cut.w @ (b2 + cut.c)
    return cut.solved(f, b2, cut.still)


def part(link: Link, above: State, below: State, joint: State, first: State, after: State) -> Fields:
    """The force and the accelerations at the joint within a node, from those at its ends."""
    cut = _Kept(link, joint)
    phi, passed = unpack_symmetric(above["phi"], 6), after["force"] @ below["x"]
    moved = above["x"] @ first["b"] + above["beta"]
    u = joint["u"] + cut.through(passed)
    f = u + cut.w @ (moved + cut.c - phi @ u)
    return cut.solved(f, moved - phi @ f, cut.still - cut.yielding(passed))


# -- a joint --------------------------------------------------------------------------------------------------
def _centripetal(x: Transform, omega: Array) -> Array:
    """[ω × (ω × p); 0] in the child's axes."""
    a = x.rotation.outward(cross(omega, cross(omega, x.p)))
    return np.concatenate([a, np.zeros(3)])


class _Joint:
    """A joint as both ways see it: S, c, Y and D⁻¹."""

    y: Array
    pivots: Array  # D⁻¹

    def __init__(self, link: Link, joint: State) -> None:
        self.link, self.kind = link, link.kind
        self.terms = joint["terms"] if self.kind.nv else ()
        self.s = link.subspace(self.terms)
        self.c = self._bias(joint)
        armature = link.armature
        self.geared = not (isinstance(armature, float) and armature == 0.0)
        # What the joint lets through has no part along what it frees.
        chosen = () if self.geared or self.kind.selects is None else self.kind.selects
        self.kept = [k for k in range(6) if k not in chosen]

    def _bias(self, joint: State) -> Array:
        """c: the true acceleration across the joint that is not S a, from ω of the link and its twist j = S v:
        [(2ω − j_ω) × j_v; ω × j_ω] + Ṡ v."""
        link = self.link
        if not self.kind.nv:
            return np.zeros(6)
        twist, omega = link.joint_twist(self.terms, link.v), joint["omega"]
        c = np.concatenate([cross(omega + omega - twist[3:], twist[:3]), cross(omega, twist[3:])])
        return c if self.kind.selects is not None else c + self.kind.subspace_rate(self.terms, link.pitch, link.v)

    def spread(self, packed: Array) -> Array:
        """The full matrix of the upper triangle of what the joint keeps."""
        rows: list[list[Any]] = [[0.0] * 6 for _ in range(6)]
        entries = iter(packed)
        for n, i in enumerate(self.kept):
            for j in self.kept[n:]:
                rows[i][j] = rows[j][i] = next(entries)
        return np.array(rows)

    def through(self, f: Array) -> Array:
        """U f = f − Y Sᵀ f."""
        return f - self.y @ self.link.project(self.terms, f) if self.kind.nv else f

    def yielding(self, f: Array) -> Array:
        """D⁻¹ Sᵀ f."""
        return self.pivots @ self.link.project(self.terms, f) if self.kind.nv else np.zeros(0)

    def across(self, b2: Array, still: Array) -> tuple[Array, Array]:
        """a and b₁ of the link, from b₂ above it and D⁻¹ (τ − Sᵀ(...))."""
        if not self.kind.nv:
            return np.zeros(0), b2 + self.c
        moved = b2 + self.c
        a = still - moved @ self.y
        return a, moved + self.link.joint_twist(self.terms, a)


class _Cut(_Joint):
    """A joint from what hangs below it: its inertia M and force h."""

    def __init__(self, link: Link, joint: State, m: Array, h: Array) -> None:
        super().__init__(link, joint)
        kind, nv = self.kind, self.kind.nv
        if not nv:
            self.w, self.u, self.still = m, h, np.zeros(0)
            self.y, self.pivots = np.zeros((6, 0)), np.zeros((0, 0))
            return
        if kind.selects is not None:
            chosen = list(kind.selects)
            ms, d = m[:, chosen], m[np.ix_(chosen, chosen)]
        else:
            ms = m @ self.s
            d = self.s.T @ ms
        if self.geared:
            d = d + link.armature * np.eye(nv)
        self.pivots = inverse(d)
        self.y = ms @ self.pivots
        kept = self.kept
        self.w = self.spread([m[i, j] - dot(self.y[i], ms[j]) for n, i in enumerate(kept) for j in kept[n:]])
        self.u = self.through(h) + self.y @ link.tau
        self.still = self.pivots @ link.tau - self.yielding(h)

    def behind(self, phi: Array) -> Array:
        """W' = (W⁻¹ + Φ)⁻¹ = G (1 + Gᵀ Φ G)⁻¹ Gᵀ with W = G Gᵀ."""
        kept = self.kept
        if not kept:
            return self.w
        g = semidefinite_factor(self.w[np.ix_(kept, kept)])
        inner = unpack_symmetric(symmetric_product(g.T, phi[np.ix_(kept, kept)] @ g), len(kept))
        return self.spread(symmetric_product(g @ inverse(np.eye(len(kept)) + inner), g.T))

    def onward(self, z: Array) -> Array:
        """Uᵀ Z = Z − S (Yᵀ Z)."""
        return z - self.s @ (self.y.T @ z) if self.kind.nv else z

    def slack(self, phi: Array) -> Array:
        """S D⁻¹ Sᵀ + Uᵀ Φ U."""
        if not self.kind.nv:
            return phi
        half = self.onward(phi)
        return self.s @ self.pivots @ self.s.T + self.onward(half.T)

    def left(self, w: Array) -> dict[str, Array]:
        """What the way down needs."""
        found = {"w": pack_symmetric(w[np.ix_(self.kept, self.kept)]), "u": self.u}
        if self.kind.nv:
            found |= {"y": self.y, "pivots": pack_symmetric(self.pivots), "still": self.still}
        return found


class _Kept(_Joint):
    """A joint from what the way up left."""

    def __init__(self, link: Link, joint: State) -> None:
        super().__init__(link, joint)
        self.w = self.spread(joint["w"]) if self.kept else np.zeros((6, 6))
        self.still: Array = joint["still"] if self.kind.nv else np.zeros(0)
        if self.kind.nv:
            self.y, self.pivots = joint["y"], unpack_symmetric(joint["pivots"], self.kind.nv)

    def solved(self, f: Array, b2: Array, still: Array) -> Fields:
        a, b = self.across(b2, still)
        return {"joint": {"force": f, "b": b} | ({"acceleration": a} if self.kind.nv else {})}
