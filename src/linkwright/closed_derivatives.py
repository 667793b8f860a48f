r"""How accelerations of closed mechanisms change with q, v and tau, recorded from their equations.

With a and λ known, R₁ = M a + h − tau − Gᵀλ and R₂ = G a − γ stay zero, so that for every change of q and v

    M δa − Gᵀ δλ = −δR₁,   G δa = −δR₂   with a and λ held in δR,

and only the residuals, which have no division in them, are differentiated on the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from linkwright.closed_recipes import accelerations, blocks_of, holds_of, moving, regularity, wrenches_of
from linkwright.dynamics.context import Question
from linkwright.dynamics.tangents import state_derivatives
from linkwright.errors import ModelError
from linkwright.recursions import composite, newton_euler
from linkwright.recursions.constraint_space import gradient, responses, rows_of
from linkwright.recursions.factor import factorise
from linkwright.recursions.holds import together
from linkwright.spatial.algebra import Array
from linkwright.tape.recorder import where

MOST = 40  # rates up to which these are laid out
#: Where the square of an angle between equations is less, a position is singular: rounding errors of derivatives are
#: about 1e-16 over it.
SINGULAR = 1e-8


def derivatives(question: Question) -> tuple[Array, Array, Array]:
    """∂a/∂q (tangent), ∂a/∂v and ∂a/∂tau."""
    nv = question.maker.tree.coordinates.nv
    if nv > MOST:
        raise ModelError(
            f"forward_dynamics_derivatives of closed mechanisms are laid out up to {MOST} rates; this one has {nv}: "
            "use mech.linearise, or products with mech.program('forward_dynamics', form='unrolled').forward()"
        )
    a, parts = accelerations(question)
    first, second = _changes(question, a, parts)
    first = np.concatenate([first, -np.eye(nv)], axis=1)
    second = np.concatenate([second, np.zeros((len(second), nv))], axis=1)
    traversal = moving(question)
    factor = factorise(composite.mass_matrix(question.traversal()))
    blocks = blocks_of(question)
    holds = together(holds_of(question, traversal), blocks.groups)
    g = [gradient(traversal, hold) for hold in holds]
    response, factors = responses(traversal, holds, g, factor, blocks)
    free = -np.stack([np.array(factor.solve(list(column))) for column in first.T], axis=1)
    right = [-second[at] - rows @ free for at, rows in zip(blocks.rows, g, strict=True)]
    multipliers = factors.solve(right)
    change = sum((x.T @ y for x, y in zip(response, multipliers, strict=True)), free)
    # Where equations are nearly dependent that elsewhere are not, rounding is all that is left of the answer.
    with np.errstate(invalid="ignore"):
        change = change * where(regularity(question, traversal, holds, g, blocks) <= SINGULAR, np.nan, 1.0)
    return change[:, :nv], change[:, nv : 2 * nv], change[:, 2 * nv :]


def _residual(question: Question, parts: Sequence[Array]) -> Array:
    """R₁ + tau, then R₂, for the question's q, v and a."""
    maker = question.maker
    wrenches = question.applied(more=wrenches_of(question, parts).items())
    traversal = question.traversal()
    total = newton_euler.inverse_dynamics(traversal, question.gravity, wrenches=wrenches)
    laws = question.joint_forces()
    total = total if laws is None else total - laws
    x = maker.tree.coordinates
    less: list[Any] = list(total)
    left: list[Array] = []
    for hold, part in zip(holds_of(question, moving(question)), parts, strict=True):
        residual = -hold.bias
        for handle, columns in hold.ends:
            row = traversal.rows[handle.position] if handle.position >= 0 else traversal.ground
            residual = residual + columns.T @ handle.outward(row["b"])
        for i, rows in rows_of(traversal, hold).items():
            residual = residual + rows.T @ traversal.links[i].a
            ratio = float(x.ratio[i])
            for k, push in enumerate(rows @ part):
                less[int(x.v_at[i]) + k] = less[int(x.v_at[i]) + k] - ratio * push
        left.append(residual)
    return np.concatenate([np.array(less), *left])


def _changes(question: Question, a: Array, parts: Sequence[Array]) -> tuple[Array, Array]:
    """δR₁ and δR₂ for unit changes of q (tangent), then of v: (nv, 2 nv) and (m, 2 nv)."""
    maker, request = question.maker, question.request
    ends = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    state = {name: question.inputs[name] for name in maker.shapes(request)} | {"a": a}

    def residual(*arrays: Array) -> Array:
        moved = Question(maker, request, dict(zip(state, arrays[:-1], strict=True)))
        return _residual(moved, [arrays[-1][i:j] for i, j in pairwise(ends)])

    rows = state_derivatives(question, residual, {**state, "multipliers": np.concatenate(list(parts))})
    nv = maker.tree.coordinates.nv
    return rows[:nv], rows[nv:]
