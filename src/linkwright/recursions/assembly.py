r"""Forward dynamics by assembly, O(log N) in parallel: sub-chains known at their two outer handles, joined two by two.

Yamane and Nakamura's method. A node is a stretch of a path, with handle 1 at its first joint and handle 2 at the
joint below its last link; both sides of a joint have their handle at the joint's child frame, in its axes:

    b₁ = Φ₁₁ f₁ + Φ₁₂ f₂ + β₁,   b₂ = Φ₂₁ f₁ + Φ₂₂ f₂ + β₂

with b = [a; α] the true acceleration of the handle's point. Joining A above to B below: b₁ᴮ − b₂ᴬ = S a + c,
f on B, −f on A, Sᵀf = τ − (armature) a; with Σ = Φ₂₂ᴬ + Φ₁₁ᴮ, V = Σ⁻¹, D = SᵀVS + (armature), Y = V S D⁻¹,
W = V − Y SᵀV, r = c + β₂ᴬ − β₁ᴮ, g = W r + Y τ:

    up:    Φ₁₁ = Φ₁₁ᴬ − Φ₁₂ᴬ W Φ₂₁ᴬ,  Φ₂₂ = Φ₂₂ᴮ − Φ₂₁ᴮ W Φ₁₂ᴮ,  Φ₁₂ = Φ₁₂ᴬ W Φ₁₂ᴮ,
           β₁ = β₁ᴬ − Φ₁₂ᴬ g,  β₂ = β₂ᴮ + Φ₂₁ᴮ g
    down:  e = Φ₂₁ᴬ f₁ − Φ₁₂ᴮ f₂,  f = W e + g,  a = D⁻¹ τ − Yᵀ (r + e)

A path that is whole passes the inertia XᵀWX and the force Xᵀg to the link that carries it: there is no handle at a
branch, and siblings only add. Rotations and angular velocities are scanned over the same nodes, so that every part
has depth O(log N) for any tree: see `linkwright.mechanism.contraction`.
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
    inverse,
    ldl,
    ldl_solve,
    pack_symmetric,
    symmetric_product,
    symmetric_times,
    unpack_symmetric,
)
from linkwright.spatial.rotation import General
from linkwright.spatial.transform import ArticulatedInertia, Transform

Fields = dict[str, dict[str, Array]]


def forward_dynamics(sheet: Sheet, c: Contraction, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the sheet's q, v, tau (and wrenches on the links)."""
    links = np.arange(c.n, dtype=np.int32)
    joins = np.arange(c.n, c.nodes, dtype=np.int32)
    heads = np.arange(len(c.head), dtype=np.int32)
    sums = np.arange(len(c.left), dtype=np.int32) + len(c.head)
    branching = np.flatnonzero(c.light < c.nothing).astype(np.int32)
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
            needs=(("b", carrier),),
        ),
        Operation(
            part,
            c.joint,
            {**joined, "first": at("links", first), "after": at("links", after)},
            makes=("force", c.joint),
            needs=(("force", first), ("force", after)),
        ),
        Operation(
            accelerate,
            None,
            {
                "own": at("links", branching),
                "child": at("links", c.heavy[branching]),
                "node": at("nodes", branching),
            },
            makes=("b", branching),
            needs=(("force", branching), ("force", c.heavy[branching])),
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
    """One link, with what its light children pass to it, at the joint that carries it and at the next one."""
    return _free(link, light, own, child, light["f"])


def free_with_wrench(link: Link, light: State, own: State, child: State, node: State) -> Fields:
    """`free` with an applied wrench."""
    return _free(link, light, own, child, light["f"] - link.wrench)


def _free(link: Link, light: State, own: State, child: State, force: Array) -> Fields:
    mhat = link.rigid_inertia() + ArticulatedInertia(light["m"], light["h"], light["a"])
    omega = own["omega"]
    k = np.concatenate(
        [cross(omega, cross(omega, link.moment)), cross(omega, symmetric_times(link.inertia, omega))]
    )
    phi = inverse(mhat.dense())
    b1 = -(phi @ (k + force))
    x = Transform(General(child["r"]), child["p"])
    phi12 = np.stack([x.outward(row) for row in phi], axis=0)
    phi22 = np.stack([x.outward(phi12[:, k]) for k in range(6)], axis=1)
    b2 = x.outward(b1) + _centripetal(x, omega)
    return {"node": _node(phi, phi12, phi22, b1, b2)}


def join(link: Link, above: State, below: State, joint: State, node: State) -> Fields:
    """Two nodes made one at a joint."""
    sigma = above["phi22"] + below["phi11"]
    r = _bias(link, joint) + above["b2"] - below["b1"]
    w, g, left = _couple(link, joint, unpack_symmetric(sigma, 6), r)
    a12, b12 = above["phi12"], below["phi12"]
    aw, wb = a12 @ w, w @ b12
    phi11 = above["phi11"] - symmetric_product(aw, a12.T)
    phi22 = below["phi22"] - symmetric_product(b12.T, wb)
    made = {
        "phi11": phi11,
        "phi12": aw @ b12,
        "phi22": phi22,
        "b1": above["b1"] - a12 @ g,
        "b2": below["b2"] + g @ b12,
    }
    return {"node": made, "joint": left}


def hang(link: Link, joint: State, node: State, carrier: State) -> Fields:
    """A whole path at the joint that carries it."""
    return {"joint": _hang(link, joint, node, carrier)[2]}


def hand_on(link: Link, joint: State, node: State, carrier: State, up: State) -> Fields:
    """`hang`, and what the path passes to the link that carries it."""
    w, g, left = _hang(link, joint, node, carrier)
    x = Transform(General(joint["r"]), joint["p"])
    inertia = x.inertia(ArticulatedInertia.from_dense(w))
    return {"joint": left, "up": {"m": inertia.m, "h": inertia.h, "a": inertia.a, "f": x.inward(g)}}


def _hang(link: Link, joint: State, node: State, carrier: State) -> tuple[Array, Array, dict[str, Array]]:
    x = Transform(General(joint["r"]), joint["p"])
    r = _bias(link, joint) + _centripetal(x, carrier["omega"]) - node["b1"]
    return _couple(link, joint, unpack_symmetric(node["phi11"], 6), r)


def rake(left: State, right: State, sum: State) -> Fields:
    """What two light children, or two groups of them, pass to their link."""
    return {"sum": {name: left[name] + right[name] for name in ("m", "h", "a", "f")}}


# -- down ---------------------------------------------------------------------------------------------------
def release(link: Link, joint: State, carrier: State) -> Fields:
    """The force and acceleration of a path's first joint, from those of the link that carries it."""
    x = Transform(General(joint["r"]), joint["p"])
    return _solve(link, joint, x.outward(carrier["b"]))


def part(link: Link, above: State, below: State, joint: State, first: State, after: State) -> Fields:
    """The force and acceleration of the joint within a node, from the forces at its ends."""
    return _solve(link, joint, first["force"] @ above["phi12"] + below["phi12"] @ after["force"])


def accelerate(own: State, child: State, node: State) -> Fields:
    """The acceleration of a link that carries light children."""
    phi = unpack_symmetric(node["phi11"], 6)
    return {"own": {"b": phi @ own["force"] - node["phi12"] @ child["force"] + node["b1"]}}


# -- parts --------------------------------------------------------------------------------------------------
def _node(phi11: Array, phi12: Array, phi22: Array, b1: Array, b2: Array) -> dict[str, Array]:
    return {"phi11": pack_symmetric(phi11), "phi12": phi12, "phi22": pack_symmetric(phi22), "b1": b1, "b2": b2}


def _centripetal(x: Transform, omega: Array) -> Array:
    """[ω × (ω × p); 0] in the child's axes."""
    a = x.rotation.outward(cross(omega, cross(omega, x.p)))
    return np.concatenate([a, np.zeros(3)])


def _bias(link: Link, joint: State) -> Array:
    """c: the true acceleration across the joint that is not S a, from ω of the link and its twist j = S v:
    [(2ω − j_ω) × j_v; ω × j_ω] + Ṡ v."""
    if not link.kind.nv:
        return np.zeros(6)
    terms, v = joint["terms"], link.v
    twist, omega = link.joint_twist(terms, v), joint["omega"]
    c = np.concatenate([cross(omega + omega - twist[3:], twist[:3]), cross(omega, twist[3:])])
    return c if link.kind.selects is not None else c + link.kind.subspace_rate(terms, link.pitch, v)


def _couple(link: Link, joint: State, sigma: Array, r: Array) -> tuple[Array, Array, dict[str, Array]]:
    """W, g, and what the way down needs: W packed, g, Y, and a without e."""
    kind, armature = link.kind, link.armature
    geared = not (isinstance(armature, float) and armature == 0.0)
    if not kind.nv:
        w = inverse(sigma)
        g = w @ r
        return w, g, {"w": pack_symmetric(w), "g": g}
    tau = link.tau
    if kind.selects is not None and kind.nv == 6 and not geared:
        # Nothing but the joint force passes.
        return np.zeros((6, 6)), tau, {"g": tau, "still": sigma @ tau - r}
    s = link.subspace(joint["terms"]) if kind.selects is None else link.subspace(())
    v = inverse(sigma)
    vs = v[:, list(kind.selects)] if kind.selects is not None else v @ s
    d = vs[list(kind.selects)] if kind.selects is not None else s.T @ vs
    if geared:
        d = d + armature * np.eye(kind.nv)
    lower, pivots = ldl(d)
    y = np.stack([ldl_solve(lower, pivots, row) for row in vs], axis=0)
    kept = [k for k in range(6) if geared or kind.selects is None or k not in kind.selects]
    zero = 0.0 * v[0, 0]
    w = np.array([[zero] * 6] * 6)
    for n, i in enumerate(kept):
        for j in kept[n:]:
            w[i, j] = w[j, i] = v[i, j] - sum(y[i, k] * vs[j, k] for k in range(kind.nv))
    g = w @ r + y @ tau
    still = ldl_solve(lower, pivots, tau) - r @ y
    return w, g, {"w": pack_symmetric(w[np.ix_(kept, kept)]), "g": g, "y": y, "still": still}


def _solve(link: Link, joint: State, e: Array) -> Fields:
    """f = W e + g and a = D⁻¹ τ − Yᵀ (r + e)."""
    kind, armature = link.kind, link.armature
    geared = not (isinstance(armature, float) and armature == 0.0)
    if kind.selects is not None and kind.nv == 6 and not geared:
        return {"joint": {"force": joint["g"], "acceleration": joint["still"] - e}}
    kept = [k for k in range(6) if geared or kind.selects is None or k not in kind.selects]
    w = unpack_symmetric(joint["w"], len(kept))
    f = list(joint["g"])
    passed = w @ np.array([e[k] for k in kept])
    for k, value in zip(kept, passed, strict=True):
        f[k] = f[k] + value
    force = {"force": np.array(f)}
    if kind.nv:
        force["acceleration"] = joint["still"] - e @ joint["y"]
    return {"joint": force}
