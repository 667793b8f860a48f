"""How the functions of closed mechanisms are recorded: accelerations, multipliers, and corrections of q and v.

All of them solve the same system at one state, M x = f + Gᵀλ, G x = r: with the forces and γ for accelerations and
multipliers, with f = 0 and r = −Φ or r = −(G v + Φ_t) for the least change, in the metric of M, that closes q or v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.recursions import assembly_loops, composite, constraint_space
from linkwright.recursions.articulated_body import velocities
from linkwright.recursions.holds import Hold, Surroundings, holds
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array

if TYPE_CHECKING:
    from linkwright.recipes import Question

#: The part of the largest singular value of G, and of a common inertia, that counts as none.
NO_ANGLE, NO_INERTIA = 1e-8, 1e-9

METHODS: dict[str, Callable[..., constraint_space.Closed]] = {
    "articulated-body": constraint_space.articulated,
    "virtual-work": constraint_space.by_virtual_work,
    "assembly": assembly_loops.forward_dynamics,
    "mass-matrix": constraint_space.by_mass_matrix,
}


def accelerations(question: Question) -> tuple[Array, list[Array]]:
    """Joint accelerations and the multipliers of every hold."""
    tau, wrenches = question.driven(), question.applied()
    return _solve(question, lambda t: holds_of(question, t), question.gravity, wrenches, tau=tau)


def closing(question: Question) -> tuple[Array, Array]:
    """The least change of q, to first order, that makes Φ zero; and Φ."""
    found = holds_of(question, moving(question, v=_none(question)))
    dv, _ = _least(question, [hold.with_right(-hold.phi) for hold in found])
    return dv, _joined([hold.phi for hold in found])


def settling(question: Question) -> tuple[Array, Array]:
    """The least change of v that makes G v + Φ_t zero; and that residual."""
    found = holds_of(question, moving(question))
    dv, _ = _least(question, [hold.with_right(-hold.rate) for hold in found])
    return dv, _joined([hold.rate for hold in found])


def constraint_forces(question: Question) -> Array:
    """λ of all holds, one after another."""
    return _joined(accelerations(question)[1])


def wrenches_of(question: Question, multipliers: Sequence[Array]) -> dict[int, Array]:
    """What the multipliers do to links, at the link frames in their axes."""
    total: dict[int, Array] = {}
    for hold, x in zip(holds_of(question, moving(question)), multipliers, strict=True):
        for handle, columns in hold.ends:
            if handle.position >= 0:
                wrench = handle.inward(columns @ x)
                total[handle.position] = total[handle.position] + wrench if handle.position in total else wrench
    return total


def resists(question: Question, alike: Question) -> bool:
    """Whether M resists every motion that the holds allow, at a state of plain numbers.

    `alike` asks the same of the mechanism with inertias everywhere: the measure of what counts as none.
    """
    t = moving(question)
    g = np.asarray(np.concatenate([constraint_space.gradient(t, hold) for hold in holds_of(question, t)]), float)
    g = g[np.linalg.norm(g, axis=1) > 0.0]
    m, every = (np.asarray(composite.mass_matrix(q.traversal()), float) for q in (question, alike))
    # Rates in units in which the other mechanism's inertias are one: metres and radians count alike.
    whitening = np.linalg.inv(np.linalg.cholesky(every))
    _, sizes, directions = np.linalg.svd(g @ whitening.T)
    free = directions[np.count_nonzero(sizes > NO_ANGLE * max(sizes, default=0.0)) :] @ whitening
    return bool(np.all(np.linalg.eigvalsh(free @ m @ free.T) > NO_INERTIA)) if len(free) else True


def _least(question: Question, found: list[Hold]) -> tuple[Array, list[Array]]:
    still = _none(question)
    return _solve(question, lambda t: found, np.zeros(3), False, v=still, tau=still)


def _solve(
    question: Question, found: Callable[[Unrolled], list[Hold]], gravity: Array, wrenches: bool, **inputs: Any
) -> tuple[Array, list[Array]]:
    name = "mass-matrix" if question.maker.coupled else question.request.method or "articulated-body"
    traversal = question.traversal(a=_none(question), **inputs)
    return METHODS[name](traversal, gravity, found, wrenches=wrenches)


def holds_of(question: Question, traversal: Unrolled) -> list[Hold]:
    """The mechanism's holds, at the state of a traversal that has terms and twists."""
    maker, free = question.maker, question.parameters
    around = Surroundings(lambda name: maker.place(name, free), question.constants, free, maker.size)
    return holds(traversal, maker.closings, around)


def moving(question: Question, **inputs: Any) -> Unrolled:
    """The links with their terms and twists."""
    traversal = question.traversal(**inputs)
    traversal.outward(velocities, {"w": np.zeros(6)})
    return traversal


def _none(question: Question) -> Array:
    return np.zeros(question.maker.tree.coordinates.nv)


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([np.asarray(part) for part in parts])
