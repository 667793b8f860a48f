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
O(log N) for any tree: see `linkwright.model.tree_contraction`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from linkwright.dynamics.methods.assembly_joint import Cut, Fields, Released, centripetal_twist
from linkwright.dynamics.traversals.levels import Operation, Sheet
from linkwright.dynamics.traversals.traversal import Link, State
from linkwright.model.tree_contraction import Contraction
from linkwright.spatial.algebra import (
    Array,
    centripetal,
    cross,
    ground_acceleration,
    pack_symmetric,
    symmetric_product,
    symmetric_times,
    unpack_symmetric,
)
from linkwright.spatial.rotation import ArticulatedInertia, General, Transform


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
    sheet.set("links", c.n, {"turn": np.eye(3), "p": none, "force": still})
    sheet.set("links", c.ground, {"omega": none, "b": ground_acceleration(gravity)})
    sheet.set("passed", c.nothing, {"m": still, "h": np.zeros((3, 3)), "a": still, "f": still})

    # Rows are numbered so that items that are computed side by side lie side by side.
    link_row, node_row = np.append(c.row, [c.n, c.ground]), np.append(c.row, joins)

    def link(which: Any) -> tuple[str, Any]:
        return "links", link_row[which]

    def node(which: Any) -> tuple[str, Any]:
        return "nodes", node_row[which]

    sheet.stage(Operation(place, links, {"row": link(links)}))
    sheet.stage(
        Operation(turn_end, None, {"row": link(c.ends), "node": node(c.ends)}, ("node", c.ends)),
        Operation(
            turn,
            None,
            {"above": link(c.inner), "below": node(following), "node": node(c.inner)},
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
    ends = {"node": node(source), "base": link(base), "row": link(c.ends)}
    within = {"node": link(c.inner), "base": link(c.parent[c.inner]), "row": link(c.inner)}
    sheet.stage(Operation(spin, None, ends, ("omega", c.ends), [("omega", base)]))
    sheet.stage(Operation(spin, None, within, ("omega", c.inner), [("omega", c.parent[c.inner])]))

    alone = {
        "light": ("passed", c.light[c.ends]),
        "row": link(c.ends),
        "child": link(c.heavy[c.ends]),
        "node": node(c.ends),
    }
    on_top = {"row": link(c.inner), "joint": link(following), "below": node(following), "node": node(c.inner)}
    joint = {"above": node(c.above), "below": node(c.below), "joint": link(c.joint)}
    carrier = c.parent[c.head]
    head = {"joint": link(c.head), "node": node(c.whole), "carrier": link(carrier), "up": ("passed", paths)}
    rooted = carrier == c.ground
    sheet.stage(
        Operation(
            partial(free, wrenches=wrenches),
            None,
            alone,
            ("node", c.ends),
            [("passed", c.light[c.ends])],
            body=c.ends,
        ),
        Operation(
            partial(set_on, wrenches=wrenches),
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
def place(link: Link, row: State) -> Fields:
    """Where the link stands on its parent, and how it turns against it."""
    terms = link.terms()
    x = link.transform(terms)
    twist = link.joint_twist(terms, link.v)
    return {"row": {"terms": terms, "turn": x.rotation.matrix(), "p": np.asarray(x.p), "spin": twist[3:]}}


def turn_end(row: State, node: State) -> Fields:
    """R and ω of one link against what carries it."""
    return {"node": {"turn": row["turn"], "spin": row["spin"]}}


def turn(above: State, below: State, node: State) -> Fields:
    """R and ω of the last link of two nodes, or of a link and a node, against what carries the first."""
    r = below["turn"]
    return {"node": {"turn": above["turn"] @ r, "spin": above["spin"] @ r + below["spin"]}}


def spin(node: State, base: State, row: State) -> Fields:
    """ω of a node's last link, or of a link, in its axes, from that of what carries it."""
    return {"row": {"omega": base["omega"] @ node["turn"] + node["spin"]}}


# -- up -----------------------------------------------------------------------------------------------------
def free(body: Link, light: State, row: State, child: State, node: State, *, wrenches: bool = False) -> Fields:
    """One link, with what its light children pass to it, and with the wrench applied to it if there are `wrenches`."""
    force = light["f"] - body.wrench if wrenches else light["f"]
    m = body.rigid_inertia() + ArticulatedInertia.of(light)
    x = Transform(General(child["turn"]), child["p"])
    one = {
        "m": pack_symmetric(m.dense()),
        "x": np.stack([x.outward(unit) for unit in np.eye(6)], axis=1),
        "phi": np.zeros(21),
        "h": _gyroscopic(body, row["omega"]) + force,
        "beta": centripetal_twist(x, row["omega"]),
    }
    return {"node": one}


def set_on(
    link: Link, body: Link, row: State, joint: State, below: State, node: State, *, wrenches: bool = False
) -> Fields:
    """A link without light children set on top of the node that it carries: a join with Φᴬ = 0."""
    gyroscopic = _gyroscopic(body, row["omega"])
    h = gyroscopic - body.wrench if wrenches else gyroscopic
    cut = Cut(link, joint, unpack_symmetric(below["m"], 6), below["h"])
    x, xb = Transform(General(joint["turn"]), joint["p"]), below["x"]
    beta = centripetal_twist(x, row["omega"])
    inertia = body.rigid_inertia() + x.inertia(ArticulatedInertia.from_dense(cut.w))
    _, b1 = cut.across(beta, cut.still)
    xa = np.stack([x.outward(unit) for unit in np.eye(6)], axis=1)
    joined = {
        "m": pack_symmetric(inertia.dense()),
        "x": xb @ cut.onward(xa),
        "phi": below["phi"] + cut.yielded(xb),
        "h": h + x.inward(cut.u + cut.w @ (beta + cut.c)),
        "beta": below["beta"] + xb @ b1,
    }
    return {"node": joined, "joint": cut.left()}


def join(link: Link, above: State, below: State, joint: State, node: State) -> Fields:
    """Two nodes made one at a joint."""
    cut = Cut(link, joint, unpack_symmetric(below["m"], 6), below["h"])
    phi, xa, xb = unpack_symmetric(above["phi"], 6), above["x"], below["x"]
    w = cut.behind(phi)
    wx, wphi = w @ xa, w @ phi
    f = cut.u + w @ (above["beta"] + cut.c - phi @ cut.u)
    b2 = above["beta"] - phi @ f
    _, b1 = cut.across(b2, cut.still)
    z = cut.onward(xa - phi @ wx)
    between = cut.slack(phi - unpack_symmetric(symmetric_product(phi, wphi), 6))
    joined = {
        "m": above["m"] + symmetric_product(xa.T, wx),
        "x": xb @ z,
        "phi": below["phi"] + symmetric_product(xb @ between, xb.T),
        "h": above["h"] + f @ xa,
        "beta": below["beta"] + xb @ b1,
    }
    return {"node": joined, "joint": cut.left() | {"w": pack_symmetric(w[np.ix_(cut.held, cut.held)]), "u": cut.u}}


def hang(link: Link, joint: State, node: State, carrier: State) -> Fields:
    """A whole path at the joint that carries it."""
    cut = Cut(link, joint, unpack_symmetric(node["m"], 6), node["h"])
    return {"joint": cut.left()}


def hand_on(link: Link, joint: State, node: State, carrier: State, up: State) -> Fields:
    """`hang`, and what the path passes to the link that carries it."""
    cut = Cut(link, joint, unpack_symmetric(node["m"], 6), node["h"])
    x = Transform(General(joint["turn"]), joint["p"])
    inertia = x.inertia(ArticulatedInertia.from_dense(cut.w))
    force = x.inward(cut.u + cut.w @ (centripetal_twist(x, carrier["omega"]) + cut.c))
    return {"joint": cut.left(), "up": {**inertia.fields, "f": force}}


def rake(left: State, right: State, sum: State) -> Fields:
    """What two light children, or two groups of them, pass to their link."""
    return {"sum": {name: left[name] + right[name] for name in ("m", "h", "a", "f")}}


# -- down ---------------------------------------------------------------------------------------------------
def release(link: Link, joint: State, carrier: State) -> Fields:
    """The accelerations at a path's first joint, from those of the link that carries it."""
    cut, x = Released(link, joint), Transform(General(joint["turn"]), joint["p"])
    b2 = x.outward(carrier["b"]) + centripetal_twist(x, carrier["omega"])
    return cut.solved(b2, cut.still)


def follow(link: Link, joint: State, carrier: State, below: State, after: State) -> Fields:
    """The accelerations at a joint within a stretch, from its carrier's and the force at the stretch's end."""
    cut, x = Released(link, joint), Transform(General(joint["turn"]), joint["p"])
    b2 = x.outward(carrier["b"]) + centripetal_twist(x, carrier["omega"])
    return cut.solved(b2, cut.still - cut.yielding(after["force"] @ below["x"]))


def part(link: Link, above: State, below: State, joint: State, first: State, after: State) -> Fields:
    """The force and the accelerations at the joint within a node, from those at its ends."""
    cut = Released(link, joint)
    phi, passed = unpack_symmetric(above["phi"], 6), after["force"] @ below["x"]
    moved = above["x"] @ first["b"] + above["beta"]
    u = joint["u"] + cut.through(passed)
    w = cut.spread(joint["w"]) if cut.held else np.zeros((6, 6))
    f = u + w @ (moved + cut.c - phi @ u)
    solved = cut.solved(moved - phi @ f, cut.still - cut.yielding(passed))
    return {"joint": solved["joint"] | {"force": f}}


# -- a body ----------------------------------------------------------------------------------------------------
def _gyroscopic(body: Link, omega: Array) -> Array:
    """[ω × (ω × m r); ω × I ω]."""
    return np.concatenate([centripetal(omega, body.moment), cross(omega, symmetric_times(body.inertia, omega))])
