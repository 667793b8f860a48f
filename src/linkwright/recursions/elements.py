"""Force elements at work: joint laws as generalised forces, point forces and wrenches as wrenches on links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linkwright.mechanism.elements import AppliedWrench, Element, JointForce, PointForce
from linkwright.recursions.closure import Pair, joint_pair, loop_link, measured
from linkwright.recursions.kinematics import GROUND_POSE, poses, twists
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array, cross, dot, length

Place = tuple[int, Array, Array]  # link position (−1 ground), R and p in link axes


def joint_forces(
    traversal: Unrolled, elements: Sequence[Element], joints: Mapping[str, int], names: Mapping[str, Any]
) -> Array:
    """The generalised forces of the joint laws (nv); `joints` gives each joint's position."""
    x = traversal.coordinates
    total: list[Any] = [0.0] * x.nv
    for (i, k), law in joint_laws(traversal, elements, joints, names).items():
        at = int(x.v_at[i]) + k
        total[at] = total[at] + law * (float(x.ratio[i]) if x.follows[i] else 1.0)
    return np.array(total)


def joint_laws(
    traversal: Unrolled, elements: Sequence[Element], joints: Mapping[str, int], names: Mapping[str, Any]
) -> dict[tuple[int, int], Any]:
    """The sum of the laws on each rate of a joint, by its position and index; a follower's are on its own rate."""
    total: dict[tuple[int, int], Any] = {}
    for element in elements:
        if isinstance(element, JointForce):
            at = i, k = joints[element.joint], element.index
            link = traversal.links[i]
            law = element.law.evaluate({**names, "q": link.q[k], "v": link.v[k]})
            total[at] = total[at] + law if at in total else law
    return total


def loop_wrenches(
    traversal: Unrolled,
    forces: Sequence[tuple[int, JointForce]],
    names: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> list[tuple[int, Array]]:
    """The wrenches on links of forces on joints that close loops, T law on the child and −T law on the parent."""
    wrenches: list[tuple[int, Array]] = []
    for force, law, dual, frames in _on_loops(traversal, forces, names, parameters):
        wrench = dual[:, force.index] * law
        for handle, push in ((frames.second, wrench), (frames.first, -wrench)):
            if handle.position >= 0:
                wrenches.append((handle.position, handle.inward(push)))
    return wrenches


def loop_laws(
    traversal: Unrolled,
    forces: Sequence[tuple[int, JointForce]],
    names: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> dict[tuple[int, int], Any]:
    """The sum of the laws on each rate of a joint that closes a loop, by the joint's number and the rate's index."""
    total: dict[tuple[int, int], Any] = {}
    laws = [law for _, law, _, _ in _on_loops(traversal, forces, names, parameters)]
    for (joint, force), law in zip(forces, laws, strict=True):
        at = joint, force.index
        total[at] = total[at] + law if at in total else law
    return total


def _on_loops(
    traversal: Unrolled,
    forces: Sequence[tuple[int, JointForce]],
    names: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> Iterator[tuple[JointForce, Any, Array, Pair]]:
    """Each force with the value of its law, its joint's T and its joint's frames.

    Such a joint's coordinate is read off the pose of its frames, an angle between −π and π.
    """
    if forces:
        traversal.outward(twists, {"w": np.zeros(6)})
    for joint, force in forces:
        link, frames = loop_link(traversal, joint, parameters), joint_pair(traversal, joint, parameters)
        terms, k = link.kind.terms_between(frames.r, frames.p), force.index
        known = {**names, "v": link.joint_rates(terms, frames.w)[k]}
        if link.kind.paired:
            known["q"] = measured(link.kind, link.pitch, frames.r, frames.p, k)
        yield force, force.law.evaluate(known), link.dual(terms), frames


def link_wrenches(
    traversal: Unrolled, elements: tuple[Element, ...], places: Mapping[str, Place], names: Mapping[str, Any]
) -> dict[int, Array]:
    """The wrenches of point forces and applied wrenches on each link, at its frame in its axes."""
    chosen = [e for e in elements if isinstance(e, (PointForce, AppliedWrench))]
    if not chosen:
        return {}
    traversal.outward(poses, GROUND_POSE)
    traversal.outward(twists, {"w": np.zeros(6)})
    total: dict[int, Array] = {}

    def row(position: int) -> Mapping[str, Array]:
        return traversal.rows[position] if position >= 0 else {**GROUND_POSE, "w": np.zeros(6)}

    def push(position: int, at: Array, force: Array, moment: Array) -> None:
        """A wrench in ground axes at a point of the link (in link axes)."""
        if position >= 0:
            r = row(position)["r"]
            f = r.T @ force
            wrench = np.concatenate([f, r.T @ moment + cross(at, f)])
            total[position] = total[position] + wrench if position in total else wrench

    def point(place: Place) -> tuple[Array, Array]:
        position, _, p = place
        state = row(position)
        w = state["w"]
        return state["x"] + state["r"] @ p, state["r"] @ (w[:3] + cross(w[3:], p))

    for element in chosen:
        if isinstance(element, PointForce):
            first, second = places[element.first], places[element.second]
            (xa, va), (xb, vb) = point(first), point(second)
            line = xb - xa
            distance = length(line)
            unit = line / distance
            law = element.law.evaluate({**names, "d": distance, "dd": dot(unit, vb - va)})
            push(first[0], first[2], -law * unit, np.zeros(3))
            push(second[0], second[2], law * unit, np.zeros(3))
        else:
            place = places[element.frame]
            values = np.array([law.evaluate(names) for law in element.laws])
            force, moment = values[:3], values[3:]
            if element.axes != "ground":
                of = place if element.axes == "frame" else places[element.axes_of]
                r = row(of[0])["r"] @ of[1]
                force, moment = r @ force, r @ moment
            push(place[0], place[2], force, moment)
            if element.reaction:
                # The opposite wrench acts at the same point in space, so that the two together are nothing.
                other = places[element.reaction][0]
                state = row(other)
                push(other, state["r"].T @ (point(place)[0] - state["x"]), -force, -moment)
    return total
