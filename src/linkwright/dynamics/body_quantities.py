"""Poses, twists, Jacobians, energies, centre of mass and momentum; coordinates moved along rates and compared.

Poses are (R, p) of link frames in ground. A Jacobian's columns are the joints' twists taken to the frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import Finish, Link, State, Traversal, Unrolled
from linkwright.spatial.algebra import Array, cross, dot
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
    return traversal.joint_vector("way", rates=True)


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
    x = traversal.coordinates
    columns: list[Any] = [np.zeros(6)] * x.nv
    places = _places_in_frame if reference == "body" else partial(_places_in_ground, aligned=reference == "aligned")
    for j, place in places(traversal, position, r, p):
        s = traversal.links[j].subspace(traversal.links[j].terms())
        ratio = float(x.ratio[j])
        for k in range(traversal.links[j].kind.nv):
            at = int(x.v_at[j]) + k
            columns[at] = columns[at] + ratio * place.inward_twist(s[:, k])
    return np.stack(columns, axis=1) if columns else np.zeros((6, 0))


def _path(traversal: Unrolled, position: int) -> tuple[int, ...]:
    """The links from one to ground."""
    return (position, *traversal.ancestors(position)) if position >= 0 else ()


def _places_in_ground(
    traversal: Unrolled, position: int, r: Array, p: Array, *, aligned: bool
) -> Iterator[tuple[int, Transform]]:
    """The links that move a frame, with their poses in ground; or with `aligned` in ground's axes from its origin."""
    pose = frame_pose(traversal, position, r, p)
    origin = pose[:3, 3] if aligned else np.zeros(3)
    for j in _path(traversal, position):
        row = traversal.rows[j]
        yield j, Transform(General(row["r"]), row["x"] - origin)


def _places_in_frame(traversal: Unrolled, position: int, r: Array, p: Array) -> Iterator[tuple[int, Transform]]:
    """The links that move a frame, with their poses in it."""
    rotation, origin = np.asarray(r).T, -(np.asarray(r).T @ p)
    for j in _path(traversal, position):
        yield j, Transform(General(rotation), origin)
        step = traversal.links[j].transform(traversal.links[j].terms())
        rotation = rotation @ step.rotation.matrix().T
        origin = origin - rotation @ step.p


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
    traversal.inward(_mass_moment, {"moment": (4,)})
    return traversal.total("moment", then)


def _mass_moment(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    return {}, {"moment": _moved_moment(link, link.transform(link.terms()), below["moment"])}


def _moved_moment(link: Link, step: Transform, below: Array) -> Array:
    """The mass of a link and of what it carries, and their mass times centre, about the parent frame in its axes."""
    mass = below[0] + link.mass
    return np.array([mass, *(step.rotation.inward(below[1:4] + link.moment) + mass * step.p)])


def momentum(traversal: Traversal) -> Any:
    """[linear momentum; angular momentum about the centre of mass], ground axes."""
    traversal.outward(twists, {"w": np.zeros(6)})
    traversal.inward(_momentum, {"momentum": (10,)})

    def central(total: Array) -> Array:
        mass, moment, linear, angular = total[0], total[1:4], total[4:7], total[7:]
        return np.concatenate([linear, angular - cross(moment / mass, linear)])

    return traversal.total("momentum", central)


def _momentum(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    step, carried = link.transform(state["terms"]), below["momentum"]
    about_parent = step.inward(carried[4:] + link.momentum(state["w"]))
    return {}, {"momentum": np.array([*_moved_moment(link, step, carried), *about_parent])}
