"""MJCF read into a description: what moves, what it weighs, what constrains it, and the forces that act by
themselves.

Contacts, joint limits as forces, sensors and pictures of the renderer are no part of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from warnings import warn

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.mjcf.body_tree import (
    WORLD,
    Bodies,
    Chains,
    Geom,
    Joint,
    Site,
    aligned,
    chains_of,
    claimed,
    free_pose,
    read_bodies,
)
from linkwright.formats.mjcf.equalities import Equalities, Tendon, follow, read_equalities, read_tendons
from linkwright.formats.mjcf.inertias import Meshes, Weight, check_movers, geom_kind, geom_size, weigh
from linkwright.formats.mjcf.mjcf_forces import Actuator, Forces, read_actuators
from linkwright.formats.mjcf.mjcf_settings import Defaults, Settings, read_settings, unknown_words
from linkwright.formats.mjcf.nodes import Node, read_nodes
from linkwright.formats.model_files import check_options, errors_in
from linkwright.formats.passive_forces import without_losses
from linkwright.formats.xml import Pose, present
from linkwright.model.builder import Builder
from linkwright.model.description import Description, colour_text
from linkwright.model.merge import lock, merge_fixed
from linkwright.model.model_checks import listed


def add_bodies(b: Builder, chains: Chains, weighed: list[Weight]) -> None:
    """A body for each link."""
    for link in chains.links:
        if link.body is None:
            b.body(link.name)
        else:
            weight = weighed[link.body]
            b.body(link.name, weight.mass, weight.com, 0.5 * (weight.inertia + weight.inertia.T))


def add_joints(
    b: Builder, chains: Chains, driving: list[Actuator], tendons: Mapping[str, Tendon], settings: Settings
) -> None:
    """A joint for each link; with no actuator in the model at all, every joint but a free one may have one."""
    pulled = {joint.name for one in driving if one.tendon in tendons for joint, _ in tendons[one.tendon].joints}
    taken = {link.joint.name for link in chains.links if link.joint is not None}
    losses = "damper" not in settings.disabled, "frictionloss" not in settings.disabled
    for link in chains.links:
        parent = WORLD if link.parent < 0 else chains.links[link.parent].name
        i, j = b.frame(parent, link.i.r, link.i.p), b.frame(link.name, link.j.r, link.j.p)
        joint = link.joint
        if joint is None:
            b.joint("fixed", i, j, claimed(f"{link.name} (fixed)", taken))
            continue
        damping = joint.node.numbers("damping", 1, 3)
        # A damping that is more than one number is a law of its own, made elsewhere.
        plain = float(damping[0]) if damping is not None and not damping[1:].any() else 0.0
        b.joint(
            joint.kind,
            i,
            j,
            joint.name,
            armature=joint.armature,
            lower=joint.lower,
            upper=joint.upper,
            effort=joint.effort,
            damping=plain if losses[0] else 0.0,
            friction=joint.friction if losses[1] else 0.0,
            actuated=joint.actuated or joint.name in pulled if driving else None,
        )


def add_sites(b: Builder, bodies: Bodies, taken: set[str]) -> dict[Site, str]:
    """A frame for each site, under its name unless a body has that; what they are called."""
    names: dict[Site, str] = {}
    for site in bodies.sites:
        name = site.name if site.name not in taken else f"{site.name} (site)"
        names[site] = claimed(name, taken)
        owner = WORLD if site.body < 0 else bodies.rows[site.body].name
        b.frame(owner, site.pose.r, site.pose.p, names[site])
    return names


def add_equalities(b: Builder, bodies: Bodies, holding: Equalities) -> dict[str, float]:
    """Loop joints and followers; joints that stand still are given back with where."""
    taken = {*bodies.joints, *(f"{body.name} (fixed)" for body in bodies.rows)}
    for one in holding.loop_joints:
        first, second = (WORLD if k < 0 else bodies.rows[k].name for k in (one.first, one.second))
        i, j = b.frame(first, one.on_first.r, one.on_first.p), b.frame(second, one.on_second.r, one.on_second.p)
        b.joint(one.kind, i, j, claimed(one.name, taken), cut=True, actuated=False)
    moving, still = follow(holding.couplings)
    for coupling in moving:
        if coupling.leader is not None:
            b.mimic(coupling.follower.name, coupling.leader.name, coupling.ratio, coupling.offset)
    return still


_SHOWN_GROUPS = 3  # MuJoCo's viewer shows groups 0 to 2; the others are for collisions


def add_shapes(b: Builder, bodies: Bodies, meshes: Meshes, root: Node, taken: set[str]) -> None:
    """A shape for each geom that MuJoCo would show; planes and height fields are left out."""
    colours = _materials(root)
    owners = [(WORLD, bodies.world), *((body.name, body.geoms) for body in bodies.rows)]
    for owner, geoms in owners:
        for number, geom in enumerate(geoms):
            shape = _shape(geom, meshes)
            if shape is None:
                continue
            kind, size, pose, file = shape
            name = claimed(geom.node.get("name") or f"{owner} geom {number}", taken)
            place: Any = owner if pose.is_here else b.frame(owner, pose.r, pose.p, name)
            b.shape(place, kind, size, _colour(geom.node, colours), file=file, name=name)


def _shape(geom: Geom, meshes: Meshes) -> tuple[Any, Any, Pose, str] | None:
    node = geom.node
    kind = geom_kind(node)
    rgba = node.numbers("rgba", 4)
    hidden = rgba is not None and rgba[3] == 0.0
    if hidden or not 0 <= node.number("group", 0.0) < _SHOWN_GROUPS or kind in ("plane", "hfield", "sdf"):
        return None
    if kind == "mesh":
        drawn = meshes.drawn(node)
        if drawn is None:
            return None
        file, scale, pose = drawn
        return "mesh", [scale], geom.pose @ pose, file
    if node.get("mesh"):
        return None
    size = geom_size(node, kind)
    if kind == "ellipsoid":
        # There is no such shape: a ball of the same volume.
        return "sphere", [float(np.cbrt(np.prod(size)))], geom.pose, ""
    return kind, geom_sizes(kind, size, 2.0), geom.pose, ""


def geom_sizes(kind: str, size: Sequence[float] | Floats, factor: float) -> Floats:
    """The sizes of a geom from those of a shape (factor 1/2) or the other way round (2): lengths, but no radii."""
    lengths = factor * np.asarray(size, dtype=np.float64)
    return lengths if kind == "box" else np.array([size[0], *lengths[1:]])


def _materials(root: Node) -> dict[str, Floats]:
    colours = {node.get("name") or "": node.numbers("rgba", 4) for node in root.each_in("asset", "material")}
    return {name: rgba for name, rgba in colours.items() if rgba is not None}


def _colour(node: Node, materials: dict[str, Floats]) -> str:
    rgba = node.numbers("rgba", 4)
    if rgba is None:
        rgba = materials.get(node.get("material") or "")
    return "" if rgba is None else colour_text(np.clip(rgba[:3], 0.0, 1.0))


_COORDINATES = {"revolute": 1, "prismatic": 1, "spherical": 4, "free": 7}
_KEYFRAME_RATES = {"revolute": 1, "prismatic": 1, "spherical": 3, "free": 6}


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
    state.v = _shared(key, "qvel", joints, _KEYFRAME_RATES)
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


_UNREAD = {"deformable": "flexible bodies have no place here", "extension": "plugins are programs"}


def read_mjcf(
    path: str | Path,
    *,
    fixed: Literal["merge", "keep"] = "merge",
    equality: Literal["hold", "ignore"] = "hold",
    friction: Literal["apply", "ignore"] = "apply",
    actuators: Literal["mark", "apply"] = "mark",
    keyframe: str | int | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
) -> Description:
    """The mechanism of an MJCF file.

    `fixed`: bodies without joints are merged into what carries them (their names stay as frames), or kept.
    `equality`: what <equality> says holds exactly, or is left out. `friction`: damping and frictionloss act, or are
    only kept in the arrays of damping and friction. `actuators`: joints are marked as actuated, or the actuators'
    forces act too, each with a parameter `ctrl_NAME`. `keyframe`: motion begins there. `folders`: where included files
    and meshes may be besides the model's own folder.
    """
    file = str(path)
    check_options(file, read_mjcf, fixed=fixed, equality=equality, friction=friction, actuators=actuators)
    root, folder = read_nodes(path, folders)
    for node in root.each(*_UNREAD):
        if node.children:
            raise node.children[0].fail(f"<{node.tag}> is not read; {_UNREAD[node.tag]}")
    settings, defaults = read_settings(root), Defaults(root)
    bodies = read_bodies(root, settings, defaults)
    if not bodies.rows:
        text = "has no <body> in a <worldbody>: nothing in it moves (is it a part, to be included by another file?)"
        raise FormatError(text, file=file, line=root.line)
    meshes = Meshes(root, settings, defaults, folder)
    weighed = weigh(bodies, settings, meshes)
    check_movers(bodies, weighed)
    chains = chains_of(bodies)
    driving = read_actuators(root, bodies, settings, defaults)
    tendons = read_tendons(root, bodies, chains, defaults, settings)
    holding = Equalities([], [])
    if equality == "hold" and "equality" not in settings.disabled:
        holding = read_equalities(root, bodies, defaults)

    builder = Builder(root.get("model") or Path(path).stem, ground=WORLD)
    builder.gravity(settings.gravity)
    builder.system(analysis="dynamic")
    with errors_in(file):
        places = {WORLD, *(link.name for link in chains.links)}
        add_bodies(builder, chains, weighed)
        add_joints(builder, chains, driving, tendons, settings)
        frames = add_sites(builder, bodies, places)
        still = add_equalities(builder, bodies, holding)
        forces = Forces(builder, bodies, settings, frames)
        forces.joints()
        forces.tendons(tendons)
        forces.gravity_compensation(weighed, places)
        forces.actuators(driving, tendons, apply=actuators == "apply")
        begin(builder, chains, read_keyframe(root, bodies, keyframe), closed=bool(holding.loop_joints))
        add_shapes(builder, bodies, meshes, root, places)
        description = replace(builder.description(), folder=str(Path(path).parent))
        if friction == "ignore":
            description = without_losses(description)
        if still:
            description = lock(description, still)
        if fixed == "merge":
            description = merge_fixed(description)
    turned, strange = aligned(bodies, settings), unknown_words(root)
    warnings = {
        f"MuJoCo moves the frames of {listed(turned)} to their centres of mass and principal axes (align, alignfree): "
        "its coordinates of their free joints are of those frames, ours of the file's": turned,
        f"not read, since MJCF has no such words: {strange}": strange,
        f"left out, though MuJoCo has it in the motion: {'; '.join(forces.left_out)}": forces.left_out,
    }
    for text in present(warnings):
        warn(f"{file}: {text}", LinkwrightWarning, stacklevel=4)
    return description
