"""Poses, twists, Jacobians, energies, centre of mass and momentum; coordinates moved along rates and compared.

Poses are (R, p) of link frames in ground. A Jacobian's columns are the joints' twists taken to the frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import Finish, Link, State, Traversal, Unrolled
from linkwright.spatial.algebra import Array, cross, dot, point_velocity
from linkwright.spatial.rotation import General, Transform


def integrate(traversal: Traversal) -> Any:
    """The q reached from q by dv."""
    traversal.outward(_integrate, {})
    return traversal.joint_vector("moved", coordinates=True)


def _integrate(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"moved": link.kind.integrate(link.q, link.dv)}


def difference(traversal: Traversal) -> Any:
    """The dv that takes q to q1."""
    traversal.outward(_difference, {})
    return traversal.joint_vector("way")


def _difference(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"way": link.kind.difference(link.q, link.q1)}


def rate(traversal: Traversal) -> Any:
    """q̇ for q and v."""
    traversal.outward(_rate, {})
    return traversal.joint_vector("rate", coordinates=True)


def _rate(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"rate": link.kind.rate(link.q, link.v)}


GROUND_POSE = {"r": np.eye(3), "x": np.zeros(3)}


def poses(link: Link, state: State, up: State) -> dict[str, Array]:
    """The link frame in ground."""
    terms = link.terms()
    step = link.transform(terms)
    return {"terms": terms, "r": up["r"] @ step.rotation.matrix(), "x": up["x"] + up["r"] @ step.p}


def twists(link: Link, state: State, up: State) -> dict[str, Array]:
    """The link's twist in its own axes."""
    terms = state["terms"] if "terms" in state else link.terms()
    w = link.transform(terms).outward(up["w"]) + link.joint_twist(terms, link.v)
    return {"terms": terms, "w": w}


def frame_pose(traversal: Traversal, position: int, r: Array, p: Array) -> Array:
    """The 4×4 pose in ground of a frame (R, p in link axes) on a link; position −1 is ground."""
    traversal.outward(poses, GROUND_POSE)

    def pose(rotation: Array, origin: Array) -> Array:
        column = (origin + rotation @ p).reshape(3, 1)
        return np.block([[rotation @ r, column], [np.zeros((1, 3)), np.ones((1, 1))]])

    return traversal.at(position, ("r", "x"), pose)


def frame_jacobian(traversal: Unrolled, position: int, r: Array, p: Array, reference: str) -> Array:
    """(6, nv): the frame's twist per rate; at its origin in its axes, in ground's, or at ground's origin."""
    pose = frame_pose(traversal, position, r, p)
    rotation, origin = pose[:3, :3], pose[:3, 3]
    x = traversal.coordinates
    columns: list[Any] = [np.zeros(6)] * x.nv
    for j in (position, *traversal.ancestors(position)) if position >= 0 else ():
        link, row = traversal.links[j], traversal.rows[j]
        place = Transform(General(row["r"]), row["x"])
        s = link.subspace(row["terms"])
        ratio = float(x.ratio[j])
        for k in range(link.kind.nv):
            column = place.inward_twist(s[:, k])
            v, o = column[:3], column[3:]
            if reference != "world":
                v = point_velocity(v, o, origin)
            if reference == "body":
                v, o = rotation.T @ v, rotation.T @ o
            at = int(x.v_at[j]) + k
            columns[at] = columns[at] + ratio * np.concatenate([v, o])
    return np.stack(columns, axis=1) if columns else np.zeros((6, 0))


def frame_twist(traversal: Traversal, position: int, r: Array, p: Array, reference: str) -> Array:
    """The frame's twist, in one of the three references."""
    traversal.outward(poses, GROUND_POSE)
    traversal.outward(twists, {"w": np.zeros(6)})

    def twist(rotation: Array, origin: Array, w: Array) -> Array:
        w = Transform(General(np.asarray(r)), np.asarray(p)).outward(w)
        if reference == "body":
            return w
        aligned = General(rotation @ r)
        if reference == "world":
            return Transform(aligned, origin + rotation @ p).inward_twist(w)
        return np.concatenate([aligned.inward(w[:3]), aligned.inward(w[3:])])

    return traversal.at(position, ("r", "x", "w"), twist)


def kinetic_energy(traversal: Traversal) -> Any:
    """½ Σ wᵀ M w (and ½ Σ armature·v²)."""
    traversal.outward(twists, {"w": np.zeros(6)})
    traversal.inward(_kinetic, {"energy": (1,)})
    return traversal.total("energy", lambda energy: energy[0])


def _kinetic(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    w = state["w"]
    energy = dot(w, link.momentum(w))
    if link.geared and link.kind.nv:
        energy = energy + link.armature * dot(link.v, link.v)
    return {}, {"energy": below["energy"] + 0.5 * energy}


def potential_energy(traversal: Traversal, gravity: Array) -> Any:
    """−Σ m gᵀr with r the centres of mass in ground."""
    return _with_mass_moment(traversal, lambda total: -(gravity @ total[1:]))


def center_of_mass(traversal: Traversal) -> Any:
    """Σ m·r / Σ m in ground."""
    return _with_mass_moment(traversal, lambda total: total[1:] / total[0])


def _with_mass_moment(traversal: Traversal, then: Finish) -> Any:
    traversal.outward(poses, GROUND_POSE)
    traversal.inward(_mass_moment, {"moment": (4,)})
    return traversal.total("moment", then)


def _mass_moment(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    return {}, {"moment": below["moment"] + _first_moment(link, state)}


def _first_moment(link: Link, state: State) -> Array:
    """The mass of a link, and mass times its centre in ground."""
    return np.array([link.mass, *(link.mass * state["x"] + state["r"] @ link.moment)])


def momentum(traversal: Traversal) -> Any:
    """[linear momentum; angular momentum about the centre of mass], ground axes."""
    traversal.outward(poses, GROUND_POSE)
    traversal.outward(twists, {"w": np.zeros(6)})
    traversal.inward(_momentum, {"momentum": (10,)})

    def central(total: Array) -> Array:
        mass, moment, linear, angular = total[0], total[1:4], total[4:7], total[7:]
        return np.concatenate([linear, angular - cross(moment / mass, linear)])

    return traversal.total("momentum", central)


def _momentum(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    about_ground = Transform(General(state["r"]), state["x"]).inward(link.momentum(state["w"]))
    return {}, {"momentum": below["momentum"] + np.array([*_first_moment(link, state), *about_ground])}
