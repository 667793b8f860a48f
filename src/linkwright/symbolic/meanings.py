"""What the symbols of equations stand for, in words: coordinates by their joints, named numbers by their bodies."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from linkwright.mechanism import Mechanism
from linkwright.model.joint_kinds import JointKind
from linkwright.symbolic.formulas.formula import Symbol

_PARTS = {"R": "angle", "T": "shift", "H": "angle"}
_ANGLES = ("yaw", "pitch", "roll")
_BODY = {"m": "mass", "x": "centre of mass along x", "y": "centre of mass along y", "z": "centre of mass along z"}
_JOINT = {"J": "motor inertia", "V": "viscous friction", "f": "dry friction"}
_NAME = re.compile(r"(m|x|y|z|I[xyz]{2}|J|V|f)(\d+)")


def meanings(mechanism: Mechanism, coordinates: Sequence[Symbol], declared: Collection[str]) -> dict[str, str]:
    """By symbol's name; `own` are the parameters that the model itself had, whose meaning only it knows."""
    by_name: dict[str, str] = {}
    words = [word for joint in mechanism.joints if not joint.shares for word in _of_joint(mechanism, joint.name)]
    for q, word in zip(coordinates, words, strict=True):
        by_name[q.name] = word
        by_name[f"d{q.name}"], by_name[f"dd{q.name}"] = f"rate of {q.name}", f"acceleration of {q.name}"
    for name in mechanism.parameters:
        match = _NAME.fullmatch(name)
        if match is None or name in declared or not 1 <= int(match[2]) <= mechanism.nb:
            continue
        k = int(match[2]) - 1
        if match[1] in _JOINT:
            by_name[name] = f"{_JOINT[match[1]]} of joint {mechanism.joints[k].name}"
        else:
            by_name[name] = f"{_BODY.get(match[1], f'inertia {match[1][1:]}')} of body {mechanism.bodies[k].name}"
    return by_name


def _of_joint(mechanism: Mechanism, name: str) -> list[str]:
    d = mechanism.description
    kind = d.kind_of(d.joint_names.position("joint", name))
    return [f"{word} of joint {name}" for word in _words(kind)]


def _words(kind: JointKind) -> list[str]:
    """A word for each coordinate."""
    moving = [part for part in kind.parts if part != "Rx-"]
    if not kind.paired:
        return [*("xyz"[: len(moving) - 3]), *_ANGLES]
    if kind.name == "planar":
        return ["x", "y", "angle"]
    words = [_PARTS[part[0]] for part in moving]
    return [f"{word} {k}" for k, word in enumerate(words, 1)] if len(set(words)) < len(words) else words
