"""The initial state of an MJCF model: as its bodies are drawn, or a keyframe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.bodies import Bodies, Joint
from linkwright.formats.mjcf.chains import Chains, free_pose
from linkwright.formats.mjcf.nodes import Node
from linkwright.model.builder import Builder

_COORDINATES = {"revolute": 1, "prismatic": 1, "spherical": 4, "free": 7}
_RATES = {"revolute": 1, "prismatic": 1, "spherical": 3, "free": 6}


@dataclass(eq=False)
class InitialState:
    """Coordinates and rates by joint, in MuJoCo's own terms; none where the file draws them."""

    q: dict[str, Any] = field(default_factory=dict)
    v: dict[str, Floats] = field(default_factory=dict)


def read_keyframe(root: Node, bodies: Bodies, chosen: str | int | None) -> InitialState:
    """The keyframe of a name or number."""
    if chosen is None:
        return InitialState()
    keys = [key for section in root.each("keyframe") for key in section.each("key")]
    named = [key for k, key in enumerate(keys) if key.get("name") == chosen or k == chosen]
    if not named:
        names = ", ".join(key.get("name") or str(k) for k, key in enumerate(keys[:8])) or "none"
        raise root.fail(f"there is no keyframe {chosen!r}; there are: {names}")
    key, joints = named[0], list(bodies.joints.values())
    state = InitialState()
    state.q = _shared(key, "qpos", joints, _COORDINATES)
    state.v = _shared(key, "qvel", joints, _RATES)
    for joint in joints:
        if joint.scalar and joint.name in state.q:
            state.q[joint.name] = float(state.q[joint.name][0])
    return state


def _shared(key: Node, word: str, joints: list[Joint], sizes: dict[str, int]) -> dict[str, Any]:
    """The numbers of a keyframe, each joint its own."""
    total = sum(sizes[joint.kind] for joint in joints)
    values = key.numbers(word, total) if key.get(word) is not None else None
    shares: dict[str, Any] = {}
    at = 0
    for joint in joints if values is not None else ():
        shares[joint.name] = values[at : at + sizes[joint.kind]]  # type: ignore[index]
        at += sizes[joint.kind]
    return shares


def begin(b: Builder, chains: Chains, initial: InitialState, *, closed: bool) -> None:
    """Place the bodies, where they are not where coordinates of zero put them; and give them their rates."""
    joints = [link.joint for link in chains.links if link.joint is not None]
    away = any(joint.ref or joint.kind == "free" for joint in joints)
    if initial.q or away or closed:
        for link, pose in zip(chains.links, chains.places(initial.q), strict=True):
            b.place(link.name, pose.p, rotation=pose.r)
    for joint in joints:
        q = initial.q.get(joint.name, joint.ref)
        if joint.kind == "revolute" and abs(float(q)) > np.pi:
            b.initial(joint.name, float(q))  # a pose has no whole turns
        if joint.name in initial.v:
            rates = np.array(initial.v[joint.name])
            if joint.kind == "free":  # the world's axes in MuJoCo, the body's here
                rates[:3] = free_pose(joint, initial.q.get(joint.name)).r.T @ rates[:3]
            for k, rate in enumerate(rates.tolist()):
                if rate or not closed:  # in a loop, a rate of zero may only be one that nobody thought of
                    b.initial(joint.name, rate=rate, index=k)
