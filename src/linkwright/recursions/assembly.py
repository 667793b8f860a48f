r"""Forward dynamics by assembly, O(log N) in parallel: sub-chains known at their two outer handles, joined two by two.

Yamane and Nakamura's method. A node is a stretch of a path, with handle 1 on its first link and handle 2 at the joint
below its last; the two sides of a joint have their handles at the joint's child frame, in its axes, and b = [a; α] is
the true acceleration of the handle's point. The paper keeps both accelerations as functions of both forces (Φ); that
needs the inverse of every body's inertia, and where joints do not turn (a chain of prismatic ones, say) large numbers
cancel. Here the same node is kept half turned over,

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
from linkwright.recursions.newton_euler import ground_acceleration
from linkwright.spatial.algebra import (
    Array,
    centripetal,
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
    links = np.argsort(c.row).astype(np.int32)
    joins = np.arange(c.n, c.nodes, dtype=np.int32)
    sums = np.arange(len(c.left), dtype=np.int32) + len(c.head)
    paths = np.arange(len(c.head), dtype=np.int32)
    following = c.heavy[c.inner]  # the links that are carried by another one of their stretch
    # The turning of a stretch's last link follows from a node, and from the link before that node.
    source = np.empty(c.n, np.int32)
    source[c.parent[c.joint]], source[c.last] = c.above, c.whole
    source = source[c.ends]
    base = c.parent[c.first[source]]

    sheet.table("links", c.n + 2)
    sheet.table("nodes", c.nodes)
    sheet.table("passed", c.nothing + 1)
    none, still = np.zeros(3), np.zeros(6)
    sheet.set("links", c.n, {"r": np.eye(3), "p": none, "force": still})
    sheet.set("links", c.ground, {"omega": none, "b": ground_acceleration(gravity)})
    sheet.set("passed", c.nothing, {"m": still, "h": np.zeros((3, 3)), "a": still, "f": still})

    # Rows are numbered so that items that are computed side by side lie side by side.
    link_row, node_row = np.append(c.row, [c.n, c.ground]), np.append(c.row, joins)

    def link(which: Any) -> tuple[str, Any]:
        return "links", link_row[which]

    def node(which: Any) -> tuple[str, Any]:
        return "nodes", node_row[which]

    sheet.stage(Operation(place, links, {"own": link(links)}))
    sheet.stage(
        Operation(turn_end, None, {"own": link(c.ends), "node": node(c.ends)}, ("node", c.ends)),
        Operation(
            turn_on,
            None,
            {"own": link(c.inner), "below": node(following), "node": node(c.inner)},
            ("node", c.inner),
            [("node", following)],
        ),
        Operation(
            turn,
            None,
            {"above": node(c.above), "below": node(c.below), "node": node(joins)},
            ("node", joins),
            [("node", c.above), ("node", c.below)],
        ),
    )
    ends = {"node": node(source), "base": link(base), "own": link(c.ends)}
    within = {"base": link(c.parent[c.inner]), "own": link(c.inner)}
    sheet.stage(Operation(spin, None, ends, ("omega", c.ends), [("omega", base)]))
    sheet.stage(Operation(spin_on, None, within, ("omega", c.inner), [("omega", c.parent[c.inner])]))

    alone = {
        "light": ("passed", c.light[c.ends]),
        "own": link(c.ends),
        "child": link(c.heavy[c.ends]),
        "node": node(c.ends),
    }
    on_top = {"own": link(c.inner), "joint": link(following), "below": node(following), "node": node(c.inner)}
    joint = {"above": node(c.above), "below": node(c.below), "joint": link(c.joint)}
    carrier = c.parent[c.head]
    head = {"joint": link(c.head), "node": node(c.whole), "carrier": link(carrier), "up": ("passed", paths)}
    rooted = carrier == c.ground
    sheet.stage(
        Operation(
            free_with_wrench if wrenches else free,
            None,
            alone,
            ("node", c.ends),
            [("passed", c.light[c.ends])],
            body=c.ends,
        ),
        Operation(
            set_on_with_wrench if wrenches else set_on,
            following,
            on_top,
            ("node", c.inner),
            [("node", following)],
            body=c.inner,
        ),
        Operation(
            join,
            c.joint,
            {**joint, "node": node(joins)},
            ("node", joins),
            [("node", c.above), ("node", c.below)],
        ),
        Operation(
            hang,
            c.head[rooted],
            {name: (table, rows[rooted]) for name, (table, rows) in head.items() if name != "up"},
            needs=[("node", c.whole[rooted])],
        ),
        Operation(
            hand_on,
            c.head[~rooted],
            {name: (table, rows[~rooted]) for name, (table, rows) in head.items()},
            ("passed", paths[~rooted]),
            [("node", c.whole[~rooted])],
        ),
        Operation(
            rake,
            None,
            {"left": ("passed", c.left), "right": ("passed", c.right), "sum": ("passed", sums)},
            ("passed", sums),
            [("passed", c.left), ("passed", c.right)],
        ),
    )
    first, after = c.first[joins], c.after[joins]
    below = c.after[following]
    sheet.stage(
        Operation(
            release,
            c.head,
            {"joint": link(c.head), "carrier": link(carrier)},
            ("b", c.head),
            [("b", carrier)],
        ),
        Operation(
            part,
            c.joint,
            {**joint, "first": link(first), "after": link(after)},
            ("b", c.joint),
            [("b", first), ("b", after)],
        ),
        Operation(
            follow,
            following,
            {
                "joint": link(following),
                "carrier": link(c.inner),
                "below": node(following),
                "after": link(below),
            },
            ("b", following),
            [("b", c.inner), ("b", below)],
        ),
    )
    return sheet.joint_vector("acceleration")


# -- turning: rotations and angular velocities --------------------------------------------------------------
def place(link: Link, own: State) -> Fields:
    """Where the link stands on its parent, and how it turns against it."""
    terms = link.terms()
    x = link.transform(terms)
    twist = link.joint_twist(terms, link.v)
    return {"own": {"terms": terms, "r": x.rotation.matrix(), "p": np.asarray(x.p), "turning": twist[3:]}}


def turn_end(own: State, node: State) -> Fields:
    """R and ω of one link against what carries it."""
    return {"node": {"turn": own["r"], "spin": own["turning"]}}


def turn_on(own: State, below: State, node: State) -> Fields:
    """R and ω of the last link of a stretch against what carries its first."""
    r = below["turn"]
    return {"node": {"turn": own["r"] @ r, "spin": own["turning"] @ r + below["spin"]}}


def turn(above: State, below: State, node: State) -> Fields:
    """R and ω of the last link of two nodes against what carries the first."""
    r = below["turn"]
    return {"node": {"turn": above["turn"] @ r, "spin": above["spin"] @ r + below["spin"]}}


def spin(node: State, base: State, own: State) -> Fields:
    """ω of a node's last link, in its axes."""
    return {"own": {"omega": base["omega"] @ node["turn"] + node["spin"]}}


def spin_on(base: State, own: State) -> Fields:
    """ω of a link from that of its parent."""
    return {"own": {"omega": base["omega"] @ own["r"] + own["turning"]}}


# -- up -----------------------------------------------------------------------------------------------------
def free(body: Link, light: State, own: State, child: State, node: State) -> Fields:
    """One link, with what its light children pass to it."""
    return _free(body, light, own, child, light["f"])


def free_with_wrench(body: Link, light: State, own: State, child: State, node: State) -> Fields:
    """`free` with an applied wrench."""
    return _free(body, light, own, child, light["f"] - body.wrench)


def _free(body: Link, light: State, own: State, child: State, force: Array) -> Fields:
    m = body.rigid_inertia() + ArticulatedInertia.of(light)
    omega = own["omega"]
    x = Transform(General(child["r"]), child["p"])
    made = {
        "m": pack_symmetric(m.dense()),
        "x": np.stack([x.outward(unit) for unit in np.eye(6)], axis=1),
        "phi": np.zeros(21),
        "h": _gyroscopic(body, omega) + force,
        "beta": _centripetal(x, omega),
    }
    return {"node": made}


def set_on(link: Link, body: Link, own: State, joint: State, below: State, node: State) -> Fields:
    """A link without light children set on top of the node that it carries: a join with Φᴬ = 0."""
    return _set_on(link, body, own, joint, below, _gyroscopic(body, own["omega"]))


def set_on_with_wrench(link: Link, body: Link, own: State, joint: State, below: State, node: State) -> Fields:
    """`set_on` with an applied wrench."""
    return _set_on(link, body, own, joint, below, _gyroscopic(body, own["omega"]) - body.wrench)


def _set_on(link: Link, body: Link, own: State, joint: State, below: State, h: Array) -> Fields:
    cut = _Cut(link, joint, unpack_symmetric(below["m"], 6), below["h"])
    x, xb = Transform(General(joint["r"]), joint["p"]), below["x"]
    beta = _centripetal(x, own["omega"])
    inertia = body.rigid_inertia() + x.inertia(ArticulatedInertia.from_dense(cut.w))
    _, b1 = cut.across(beta, cut.still)
    xa = np.stack([x.outward(unit) for unit in np.eye(6)], axis=1)
    made = {
        "m": pack_symmetric(inertia.dense()),
        "x": xb @ cut.onward(xa),
        "phi": below["phi"] + cut.yielded(xb),
        "h": h + x.inward(cut.u + cut.w @ (beta + cut.c)),
        "beta": below["beta"] + xb @ b1,
    }
    return {"node": made, "joint": cut.left()}


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
    return {"node": made, "joint": cut.left() | {"w": pack_symmetric(w[np.ix_(cut.kept, cut.kept)]), "u": cut.u}}


def hang(link: Link, joint: State, node: State, carrier: State) -> Fields:
    """A whole path at the joint that carries it."""
    cut = _Cut(link, joint, unpack_symmetric(node["m"], 6), node["h"])
    return {"joint": cut.left()}


def hand_on(link: Link, joint: State, node: State, carrier: State, up: State) -> Fields:
    """`hang`, and what the path passes to the link that carries it."""
    cut = _Cut(link, joint, unpack_symmetric(node["m"], 6), node["h"])
    x = Transform(General(joint["r"]), joint["p"])
    inertia = x.inertia(ArticulatedInertia.from_dense(cut.w))
    force = x.inward(cut.u + cut.w @ (_centripetal(x, carrier["omega"]) + cut.c))
    return {"joint": cut.left(), "up": {**inertia.fields, "f": force}}


def rake(left: State, right: State, sum: State) -> Fields:
    """What two light children, or two groups of them, pass to their link."""
    return {"sum": {name: left[name] + right[name] for name in ("m", "h", "a", "f")}}


# -- down ---------------------------------------------------------------------------------------------------
def release(link: Link, joint: State, carrier: State) -> Fields:
    """The accelerations at a path's first joint, from those of the link that carries it."""
    cut, x = _Kept(link, joint), Transform(General(joint["r"]), joint["p"])
    b2 = x.outward(carrier["b"]) + _centripetal(x, carrier["omega"])
    return cut.solved(b2, cut.still)


def follow(link: Link, joint: State, carrier: State, below: State, after: State) -> Fields:
    """The accelerations at a joint within a stretch, from its carrier's and the force at the stretch's end."""
    cut, x = _Kept(link, joint), Transform(General(joint["r"]), joint["p"])
    b2 = x.outward(carrier["b"]) + _centripetal(x, carrier["omega"])
    return cut.solved(b2, cut.still - cut.yielding(after["force"] @ below["x"]))


def part(link: Link, above: State, below: State, joint: State, first: State, after: State) -> Fields:
    """The force and the accelerations at the joint within a node, from those at its ends."""
    cut = _Kept(link, joint)
    phi, passed = unpack_symmetric(above["phi"], 6), after["force"] @ below["x"]
    moved = above["x"] @ first["b"] + above["beta"]
    u = joint["u"] + cut.through(passed)
    w = cut.spread(joint["w"]) if cut.kept else np.zeros((6, 6))
    f = u + w @ (moved + cut.c - phi @ u)
    solved = cut.solved(moved - phi @ f, cut.still - cut.yielding(passed))
    return {"joint": solved["joint"] | {"force": f}}


# -- a body ----------------------------------------------------------------------------------------------------
def _gyroscopic(body: Link, omega: Array) -> Array:
    """[ω × (ω × m r); ω × I ω]."""
    return np.concatenate([centripetal(omega, body.moment), cross(omega, symmetric_times(body.inertia, omega))])


# -- a joint --------------------------------------------------------------------------------------------------
def _centripetal(x: Transform, omega: Array) -> Array:
    """[ω × (ω × p); 0] in the child's axes."""
    a = x.rotation.outward(centripetal(omega, x.p))
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
        # What the joint lets through has no part along what it frees.
        chosen = () if link.geared or self.kind.selects is None else self.kind.selects
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
        if link.geared:
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

    def yielded(self, x: Array) -> Array:
        """X S D⁻¹ Sᵀ Xᵀ, packed."""
        if not self.kind.nv:
            return np.zeros(21)
        moved = np.stack([x @ self.s[:, k] for k in range(self.kind.nv)], axis=1)
        return symmetric_product(moved @ self.pivots, moved.T)

    def left(self) -> dict[str, Array]:
        """What the way down needs."""
        return {"y": self.y, "pivots": pack_symmetric(self.pivots), "still": self.still} if self.kind.nv else {}


class _Kept(_Joint):
    """A joint from what the way up left."""

    def __init__(self, link: Link, joint: State) -> None:
        super().__init__(link, joint)
        self.still: Array = joint["still"] if self.kind.nv else np.zeros(0)
        if self.kind.nv:
            self.y, self.pivots = joint["y"], unpack_symmetric(joint["pivots"], self.kind.nv)

    def solved(self, b2: Array, still: Array) -> Fields:
        a, b = self.across(b2, still)
        return {"joint": {"b": b} | ({"acceleration": a} if self.kind.nv else {})}
