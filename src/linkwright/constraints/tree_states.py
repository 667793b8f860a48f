"""Between the spanning tree's coordinates and the poses of the bodies, for one state; and assembly from a guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.equations import joint_frames
from linkwright.constraints.forms import between
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.newton import Assembled
from linkwright.errors import AssemblyError
from linkwright.model.bodies import body_states, drawn_at
from linkwright.model.checks import listed
from linkwright.model.description import JOINT_ARRAYS, Description, Names, kind_number
from linkwright.model.tree import Tree
from linkwright.spatial.rotation import euler_parameters

_HELD = " (fixed)"  # what the joints that hold others are called after them
_TURN = 2.0 * np.pi


def coordinates(tree: Tree, state: Floats, near: Floats) -> Floats:
    """The tree's q where the bodies are at these states (nb, 7): of all that differ by turns, the one near a guess."""
    d, t, x = tree.description, tree.topology, tree.coordinates
    q = np.array(near, dtype=np.float64)
    for i, j in enumerate(t.joint.tolist()):
        if x.follows[i]:
            continue
        kind = d.kind_of(j)
        at = slice(int(x.q_at[i]), int(x.q_at[i]) + kind.nq)
        r, p = between(*joint_frames(d, state, j))
        here = np.asarray(kind.coordinates(euler_parameters(r), p, d.pitch[j]), float)
        guess = near[at]
        for k in kind.angles:
            if not (kind.name == "screw" and d.pitch[j]):
                here[k] += _TURN * np.round((guess[k] - here[k]) / _TURN)
        if not kind.paired and float(here[-4:] @ guess[-4:]) < 0.0:
            here[-4:] *= -1.0
        q[at] = here
    return q


def assembled(tree: Tree, q: Floats, fixed: Sequence[int], t: float, tolerance: float | None) -> Assembled:
    """The bodies' state nearest to q at which all constraints hold, with the joints `fixed` kept as they are.

    Raises AssemblyError, which names what does not close.
    """
    held = _held(tree.description, q, fixed)
    try:
        return Kinematics(held).assemble(t, tolerance)
    except AssemblyError as error:
        names = [tree.description.joint_names[j] for j in fixed]
        raise _in_own_names(error, names, free=bool(names) and _closes(tree, q, t, tolerance)) from None


def _closes(tree: Tree, q: Floats, t: float, tolerance: float | None) -> bool:
    """Whether the mechanism can be assembled with no joint fixed."""
    try:
        Kinematics(_held(tree.description, q, ())).assemble(t, tolerance)
    except AssemblyError:
        return False
    return True


def _in_own_names(error: AssemblyError, fixed: Sequence[str], *, free: bool) -> AssemblyError:
    """The error without the joints that were added to hold others; these are to blame if all closes when `free`."""
    text, element = str(error), error.element
    if free:
        reason = text.partition(": ")[2].partition("; ")[0]
        what = "joint" if len(fixed) == 1 else "joints"
        text = (
            f"the mechanism cannot be assembled with {what} {listed(list(fixed))} as fixed: {reason}; free one of them"
        )
    names = {repr(f"{name}{_HELD}"): f"{name!r} as it is fixed" for name in fixed}
    misses = dict(error.misses)
    for added, meant in names.items():
        text = text.replace(added, meant)
        misses = {key.replace(added, meant): miss for key, miss in misses.items()}
    return AssemblyError(text, misses=misses, element=element.removesuffix(_HELD) if element else element)


def _held(d: Description, q: Floats, fixed: Sequence[int]) -> Description:
    """The mechanism drawn as q says, with each of these joints welded there by a second joint."""
    states = body_states(d, q)
    d = drawn_at(d, states)
    if not len(fixed):
        return d
    joints = np.array(fixed)
    rows = {name: np.asarray(getattr(d, name))[joints].copy() for name in JOINT_ARRAYS}
    rows["kind"][:] = kind_number("fixed")
    for k, j in enumerate(fixed):
        turn, shift = between(*joint_frames(d, states, j))
        rows["pi"][k], rows["ri"][k] = d.pi[j] + d.ri[j] @ shift, d.ri[j] @ turn
    changed: dict[str, Any] = {name: np.concatenate([getattr(d, name), rows[name]]) for name in JOINT_ARRAYS}
    names = Names([*d.joint_names, *(f"{d.joint_names[j]}{_HELD}" for j in fixed)])
    cuts = d.cuts | set(range(d.nj, d.nj + len(fixed)))
    return replace(d, joint_names=names, cuts=frozenset(cuts), **changed)
