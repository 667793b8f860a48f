"""Equations of joints in the words of mechanisms: the translation or rotation that each of them constrains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Constraint, Equations, joint_frames

#: By equation, what it constrains, and along or about which axis of the joint's frame.
_MOTIONS = {
    "meeting along f": ("translation", 0),
    "meeting along g": ("translation", 1),
    "meeting along h": ("translation", 2),
    "h axes parallel, about f": ("rotation", 0),
    "h axes parallel, about g": ("rotation", 1),
    "no turn about h": ("rotation", 2),
}
_AXES = {"revolute": "its axis", "prismatic": "its axis", "cylindrical": "its axis", "screw": "its axis"}
_AXES["planar"] = "its normal"
_SMALL = 1e-9  # component of a direction that is printed as zero


def constrained_motions(e: Equations, q: Floats, c: Constraint, equations: Sequence[str]) -> list[str]:
    """What these equations of a constraint, by name, constrain at a state (nb, 7), as in "rotation about (1, 0, 0)".

    Directions are in ground's axes. Equations of what is no joint keep their names.
    """
    if c.group != "joint":
        return list(equations)
    first, second = joint_frames(e.description, q, c.source.joints[0])
    axis = _AXES.get(e.description.kind_of(c.source.joints[0]).name)
    texts = []
    for name in equations:
        if name == "h axes perpendicular":
            texts.append(f"rotation about {_direction(np.cross(first[0][:, 2], second[0][:, 2]))}")
        elif name in _MOTIONS:
            motion, k = _MOTIONS[name]
            along = axis if axis is not None and k == 2 else _direction(first[0][:, k])
            texts.append(f"{motion} {'along' if motion == 'translation' else 'about'} {along}")
        else:
            texts.append(name)
    return texts


def joined(motions: Sequence[str]) -> str:
    """Motions of one constraint in one phrase: "translation along its axis, rotations about (1, 0, 0) and (0, 1, 0)".

    >>> from linkwright.constraints.constrained_motions import joined
    >>> joined(["rotation about (0, 1, 0)", "rotation about (1, 0, 0)"])
    'rotations about (0, 1, 0) and (1, 0, 0)'
    """
    phrases = []
    for kind in ("translation along", "rotation about"):
        axes = [x.removeprefix(f"{kind} ") for x in motions if x.startswith(f"{kind} ")]
        if axes:
            plural = kind.replace(" ", "s ", 1) if len(axes) > 1 else kind
            phrases.append(f"{plural} {' and '.join([', '.join(axes[:-1]), axes[-1]] if axes[1:] else axes)}")
    return ", ".join([*phrases, *(x for x in motions if not x.startswith(("translation along ", "rotation about ")))])


def _direction(v: Floats) -> str:
    """A direction, either way along which is the same: the largest component is positive."""
    unit = v / (np.linalg.norm(v) or 1.0)
    unit = unit * (1.0 if unit[int(np.argmax(np.abs(unit)))] > 0.0 else -1.0)
    return "(" + ", ".join(f"{0.0 if abs(x) < _SMALL else float(x):.3g}" for x in unit) + ")"
