"""MJCF read into a description: what moves, what it weighs, what holds it, and the forces that act by themselves.

Contacts, joint limits as forces, sensors and pictures of the renderer are no part of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal
from warnings import warn

from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.files import check_options, errors_in
from linkwright.formats.mjcf.actuators import read_actuators
from linkwright.formats.mjcf.bodies import WORLD, aligned, read_bodies
from linkwright.formats.mjcf.chains import chains_of
from linkwright.formats.mjcf.equalities import Equalities, read_equalities
from linkwright.formats.mjcf.forces import Forces
from linkwright.formats.mjcf.inertias import check_movers, weigh
from linkwright.formats.mjcf.keyframes import begin, read_keyframe
from linkwright.formats.mjcf.meshes import Meshes
from linkwright.formats.mjcf.nodes import read_nodes
from linkwright.formats.mjcf.parts import add_bodies, add_equalities, add_joints, add_sites
from linkwright.formats.mjcf.settings import Defaults, read_settings
from linkwright.formats.mjcf.shapes import add_shapes
from linkwright.formats.mjcf.tendons import read_tendons
from linkwright.formats.mjcf.words import unknown_words
from linkwright.formats.passive import without_losses
from linkwright.model.builder import Builder
from linkwright.model.checks import listed
from linkwright.model.description import Description
from linkwright.model.merge import lock, merge_fixed

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
        begin(builder, chains, read_keyframe(root, bodies, keyframe), closed=bool(holding.closures))
        add_shapes(builder, bodies, meshes, root, places)
        description = replace(builder.description(), folder=str(Path(path).parent))
        if friction == "ignore":
            description = without_losses(description)
        if still:
            description = lock(description, still)
        if fixed == "merge":
            description = merge_fixed(description)
    turned = aligned(bodies, settings)
    if turned:
        text = f"{file}: MuJoCo moves the frames of {listed(turned)} to their centres of mass and principal axes "
        text += "(align, alignfree): its coordinates of their free joints are of those frames, ours of the file's"
        warn(text, LinkwrightWarning, stacklevel=4)
    strange = unknown_words(root)
    if strange:
        warn(f"{file}: not read, since MJCF has no such words: {strange}", LinkwrightWarning, stacklevel=4)
    if forces.left_out:
        text = f"{file}: left out, though MuJoCo has it in the motion: {'; '.join(forces.left_out)}"
        warn(text, LinkwrightWarning, stacklevel=4)
    return description
