"""How the functions of closed mechanisms are recorded, and how accelerations change with q, v and tau.

All of them solve the same system at one state, M x = f + Gᵀλ, G x = r: with the forces and γ for accelerations and
multipliers, with f = 0 and r = −Φ or r = −(G v + Φ_t) for the least change, in the metric of M, that closes q or v.

With a and λ known, R₁ = M a + h − tau − Gᵀλ and R₂ = G a − γ stay zero, so that for every change of q and v

    M δa − Gᵀ δλ = −δR₁,   G δa = −δR₂   with a and λ held in δR,

and only the residuals, which have no division in them, are differentiated on the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.dynamics.body_quantities import integrate
from linkwright.dynamics.closed import constraint_space
from linkwright.dynamics.closed.constraint_space import Elimination, Limits, Scales, gradient, responses, rows_of
from linkwright.dynamics.closed.loop_constraints import ConstraintAtState, Surroundings, constraints_at, together
from linkwright.dynamics.closed.redundancy import SINGULAR, Blocks, Redundancy, redundancy
from linkwright.dynamics.functions import Request
from linkwright.dynamics.inertia_checks import undetermined
from linkwright.dynamics.methods import assembly_loops, newton_euler
from linkwright.dynamics.methods.articulated_body import velocities
from linkwright.dynamics.methods.ltdl_factor import factorise
from linkwright.dynamics.methods.mass_matrix import mass_matrix
from linkwright.dynamics.recording_context import RecordingContext
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.tangents import state_derivatives
from linkwright.dynamics.traversals.traversal import Unrolled, add_to
from linkwright.errors import ModelError
from linkwright.spatial.algebra import RANK_TOLERANCE, Array, dot, is_zero
from linkwright.tape.block import Block, where
from linkwright.tape.build import trace

#: The part of the largest singular value of G, and of a common inertia, that counts as none.
NO_ANGLE, NO_INERTIA = 1e-8, 1e-9

METHODS: dict[str, Callable[..., constraint_space.Closed]] = {
    "articulated-body": constraint_space.articulated,
    "virtual-work": constraint_space.by_virtual_work,
    "assembly": assembly_loops.forward_dynamics,
    "mass-matrix": constraint_space.by_mass_matrix,
}


def accelerations(context: RecordingContext) -> tuple[Array, list[Array]]:
    """Joint accelerations and the multipliers of every constraint."""
    tau, wrenches = context.driven(), context.applied()
    return _solve(context, lambda t: constraints_of(context, t), context.gravity, wrenches, tau=tau)


def position_correction(context: RecordingContext) -> tuple[Array, Array]:
    """The least change of q, to first order, that makes Φ zero; and Φ."""
    constraints = constraints_of(context, moving(context, zero=("v",)))
    return _least(context, constraints, [constraint.phi for constraint in constraints])


def velocity_projection(context: RecordingContext) -> tuple[Array, Array]:
    """The least change of v that makes G v + Φ_t zero; and that residual."""
    constraints = constraints_of(context, moving(context))
    return _least(context, constraints, [constraint.rate for constraint in constraints])


def constraint_forces(context: RecordingContext) -> Array:
    """λ of all constraints, one after another."""
    return _joined(accelerations(context)[1])


def wrenches_of(context: RecordingContext, multipliers: Sequence[Array]) -> dict[int, Array]:
    """What the multipliers do to links, at the link frames in their axes."""
    total: dict[int, Array] = {}
    for constraint, x in zip(constraints_of(context, moving(context)), multipliers, strict=True):
        for handle, columns in constraint.ends:
            if handle.position >= 0:
                add_to(total, handle.position, handle.inward(columns @ x))
    return total


def resists(context: RecordingContext, alike: RecordingContext) -> bool:
    """Whether M resists every motion that the constraints allow, at a state of plain numbers.

    `alike` asks the same of the mechanism with inertias everywhere: the measure of what counts as none.
    """
    t = moving(context)
    g = np.asarray(
        np.concatenate([constraint_space.gradient(t, constraint) for constraint in constraints_of(context, t)]), float
    )
    g = g / context.factory.constraint_units[:, None]
    g = g[np.linalg.norm(g, axis=1) > 0.0]
    m, every = (np.asarray(mass_matrix(q.traversal()), float) for q in (context, alike))
    # Rates in units in which the other mechanism's inertias are one: metres and radians count alike.
    whitening = np.linalg.inv(np.linalg.cholesky(every))
    _, sizes, directions = np.linalg.svd(g @ whitening.T)
    free = directions[np.count_nonzero(sizes > NO_ANGLE * max(sizes, default=0.0)) :] @ whitening
    return bool(np.all(np.linalg.eigvalsh(free @ m @ free.T) > NO_INERTIA)) if len(free) else True


def determined_by_constraints(factory: RequestRules) -> bool:
    """Whether forces alone do not determine every joint's acceleration, and with loops, rods and drivers they do.

    M on the null space of G must be positive definite, as drawn or, since that may be a singular position, nearby.
    """
    d, tree = factory.description, factory.tree
    if undetermined(tree) is None or not np.any(d.mass > 0.0):
        return False
    inertia = np.tile(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) * factory.size**2, (d.nb, 1))
    alike = replace(d, mass=np.full(d.nb, float(d.mass.max())), inertia=inertia * float(d.mass.max()), bindings={})
    rng, still = np.random.default_rng(0), np.zeros(tree.coordinates.nv)
    for change in (still, rng.uniform(-0.1, 0.1, len(still)) * factory.rate_units):
        with np.errstate(invalid="ignore", divide="ignore"):  # in branches that `where` does not take
            q = integrate(Unrolled(tree, {"q": factory.drawn, "dv": change}))
            state = {"q": np.asarray(q, float), "v": still, "t": 0.0}
            request = Request("velocity_projection")
            if resists(
                RecordingContext(factory, request, state), RecordingContext(RequestRules(alike), request, state)
            ):
                return True
    return False


def _least(context: RecordingContext, constraints: list[ConstraintAtState], missed: list[Array]) -> tuple[Array, Array]:
    """The least change that takes away what constraints miss, and that."""
    asked = [replace(constraint, bias=-miss) for constraint, miss in zip(constraints, missed, strict=True)]
    return _solve(context, lambda t: asked, np.zeros(3), False, zero=("v", "tau"))[0], _joined(missed)


def _solve(
    context: RecordingContext,
    constraints: Callable[[Unrolled], list[ConstraintAtState]],
    gravity: Array,
    wrenches: bool,
    *,
    zero: Sequence[str] = (),
    **inputs: Any,
) -> tuple[Array, list[Array]]:
    name = "mass-matrix" if context.factory.coupled else context.request.method or "articulated-body"
    traversal = context.traversal(zero=("a", *zero), **inputs)
    blocks = blocks_of(context)
    a, multipliers = METHODS[name](
        traversal, gravity, lambda t: together(constraints(t), blocks.groups), blocks, wrenches=wrenches
    )
    return a, blocks.split(multipliers)


def blocks_of(context: RecordingContext) -> Blocks:
    """The blocks in which the equations of the mechanism's constraints are eliminated."""
    factory = context.factory
    certain = not context.request.free or context.request.ranks_hold
    return Blocks(factory.redundancy, [c.form.size for c in factory.loop_constraints], certain=certain)


def constraints_of(context: RecordingContext, traversal: Unrolled) -> list[ConstraintAtState]:
    """The mechanism's constraints, at the state of a traversal that has terms and twists."""
    factory, free = context.factory, context.parameters
    around = Surroundings(lambda name: factory.tree.place(name, free), context.constants, free, factory.size)
    return constraints_at(traversal, factory.loop_constraints, around)


def moving(context: RecordingContext, **inputs: Any) -> Unrolled:
    """The links with their terms and twists."""
    traversal = context.traversal(**inputs)
    traversal.outward(velocities, {"w": np.zeros(6)})
    return traversal


def residuals_of(factory: RequestRules, free: Sequence[str] = ()) -> Callable[..., tuple[Array, Array]]:
    """The function (q, t, values of free parameters) → Φ, G without units, to be recorded."""
    request, units = Request("velocity_projection", free=tuple(free)), factory.rate_units

    def residuals(q: Array, t: Any, *p: Array) -> tuple[Array, Array]:
        inputs = {"q": q, "v": np.zeros_like(units), "t": t, **({"p": p[0]} if p else {})}
        context = RecordingContext(factory, request, inputs)
        traversal = moving(context)
        constraints = constraints_of(context, traversal)
        scales = [_scales(traversal, constraint, units, factory.size) for constraint in constraints]
        g = [
            gradient(traversal, constraint) * units / s[:, None]
            for constraint, s in zip(constraints, scales, strict=True)
        ]
        return _joined([constraint.phi / s for constraint, s in zip(constraints, scales, strict=True)]), _joined(g)

    return residuals


def redundancy_of(factory: RequestRules) -> Redundancy:
    """What the constraint equations repeat of each other at positions around the drawing."""

    def moved(q: Array, dv: Array) -> Array:
        return integrate(RecordingContext(factory, Request("integrate"), {"q": q, "dv": dv}).traversal())

    units = factory.rate_units
    nq, nv = factory.tree.coordinates.nq, len(units)
    equations, motion = trace(residuals_of(factory), [(nq,), ()])[0], trace(moved, [(nq,), (nv,)])[0]

    def evaluate(q: Floats) -> tuple[Floats, Floats]:
        values = _over(equations, np.concatenate([q, np.zeros((len(q), 1))], axis=1))
        rows = values.shape[1] // (1 + nv)
        return values[:, :rows], values[:, rows:].reshape(len(q), rows, nv)

    def move(q: Floats, change: Floats) -> Floats:
        return _over(motion, np.concatenate([q, change * units], axis=1))

    return redundancy(evaluate, move, factory.drawn, factory.driven, nv)


def _size(context: RecordingContext) -> Any:
    """The mechanism's length, which grows with the distances between its joints where free parameters change these."""
    factory, free = context.factory, context.parameters
    d, tree = factory.description, factory.tree
    origins = np.concatenate([d.pi, d.pj])
    if not free or not origins.any() or not any(name in ("pi", "pj") for name, _ in d.bindings):
        return factory.size
    rows = [tree.row(name, j, free) for name in ("pi", "pj") for j in range(d.nj)]
    return factory.size * np.sqrt(sum(dot(row, row) for row in rows) / float(np.sum(origins**2)))


def rate_units(context: RecordingContext) -> Array:
    """(nv,): the unit of each rate: the mechanism's length, or 1 for turns."""
    return np.array([_size(context) if shift else 1.0 for shift in context.factory.tree.shifts[1]])


def geometric(
    context: RecordingContext,
    traversal: Unrolled,
    constraints: Sequence[ConstraintAtState],
    g: Sequence[Array],
    blocks: Blocks,
    weights: Array | float = 1.0,
) -> Elimination:
    """G Ω Gᵀ eliminated, with rates in their units and counted by `weights` of at most 1, whatever the masses are.

    Its least pivot tells how far the equations are from being dependent that are not at regular positions: about the
    square of the least angle between one and the others.
    """
    size, units = _size(context), rate_units(context)
    count = range(len(constraints))
    k = {(i, j): (g[i] * (units**2 * weights)) @ g[j].T for i in count for j in count if i <= j}
    sizes = [_scales(traversal, constraint, units, size) ** 2 for constraint in constraints]
    limits = Limits(constraint_space.ROUNDING, RANK_TOLERANCE)
    return Elimination(k, [Scales(x, x) for x in sizes], limits, blocks)


def _over(block: Block, inputs: Floats) -> Floats:
    """A block's outputs (S, ·) for inputs (S, ·), by NumPy."""
    with np.errstate(all="ignore"):
        outputs = block.evaluate(list(inputs.T))
    rows = np.empty((len(inputs), len(outputs)))  # a mechanism without coordinates has no outputs
    for k, output in enumerate(outputs):
        rows[:, k] = output
    return rows


def _scales(traversal: Unrolled, constraint: ConstraintAtState, units: Array, size: Any) -> Array:
    """How fast each equation changes if its ends move by a unit, turns counted by 1 and shifts by the size."""
    total: Array = np.zeros(constraint.size)
    for _, columns in constraint.ends:
        here = size**2 * np.sum(columns[:3] ** 2, axis=0) + np.sum(columns[3:] ** 2, axis=0)
        # The first end of each equation counts: constraints that are eliminated together have ends of their own.
        total = np.array([x if is_zero(before) else before for before, x in zip(total, here, strict=True)])
    x = traversal.coordinates
    for d in constraint.direct:
        ratio = float(x.ratio[d.position])  # of a follower to the rate that it shares
        total = total + (ratio * d.row * units[int(x.v_at[d.position]) + d.index]) ** 2
    return np.array([1.0 if is_zero(x) else np.sqrt(x) for x in total])


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([np.asarray(part) for part in parts])


MOST = 40  # rates up to which these are laid out


def derivatives(context: RecordingContext) -> tuple[Array, Array, Array]:
    """∂a/∂q (tangent), ∂a/∂v and ∂a/∂tau."""
    nv = context.factory.tree.coordinates.nv
    if nv > MOST:
        raise ModelError(
            f"forward_dynamics_derivatives of this closed mechanism are one program up to {MOST} rates; it has {nv}: "
            "call the method of this name, or use products: mech.program('forward_dynamics', form='rolled').forward()"
        )
    if not nv:
        return np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))
    a, parts = accelerations(context)
    first, second = _changes(context, a, parts)
    first = np.concatenate([first, -np.eye(nv)], axis=1)
    second = np.concatenate([second, np.zeros((len(second), nv))], axis=1)
    change = change_of(context, first, second)
    return change[:, :nv], change[:, nv : 2 * nv], change[:, 2 * nv :]


def change_of(context: RecordingContext, first: Array, second: Array) -> Array:
    """δa (nv, k) for changes δR₁ (nv, k) and δR₂ (m, k) of the residuals; NaN beside a singular position."""
    traversal = moving(context)
    factor = factorise(mass_matrix(context.traversal()))
    blocks = blocks_of(context)
    constraints = together(constraints_of(context, traversal), blocks.groups)
    g = [gradient(traversal, constraint) for constraint in constraints]
    response, factors = responses(traversal, constraints, g, factor, blocks)
    free = -np.stack([np.array(factor.solve(list(column))) for column in first.T], axis=1)
    right = [-second[at] - rows @ free for at, rows in zip(blocks.rows, g, strict=True)]
    multipliers = factors.solve(right)
    change = sum((x.T @ y for x, y in zip(response, multipliers, strict=True)), free)
    # Where equations are nearly dependent that elsewhere are not, rounding is all that is left of the answer.
    with np.errstate(invalid="ignore"):
        change = change * where(geometric(context, traversal, constraints, g, blocks).least <= SINGULAR, np.nan, 1.0)
    return np.asarray(change)


def _residual(context: RecordingContext, parts: Sequence[Array]) -> Array:
    """R₁ + tau, then R₂, for the context's q, v and a."""
    factory = context.factory
    wrenches = context.applied(more=wrenches_of(context, parts).items())
    traversal = context.traversal()
    total = newton_euler.inverse_dynamics(traversal, context.gravity, wrenches=wrenches)
    laws = context.joint_forces()
    total = total if laws is None else total - laws
    x = factory.tree.coordinates
    less: list[Any] = list(total)
    left: list[Array] = []
    for constraint, part in zip(constraints_of(context, moving(context)), parts, strict=True):
        for i, rows in rows_of(traversal, constraint).items():
            ratio = float(x.ratio[i])
            for k, push in enumerate(rows @ part):
                less[int(x.v_at[i]) + k] = less[int(x.v_at[i]) + k] - ratio * push
        left.append(missed(traversal, constraint))
    return np.concatenate([np.array(less), *left])


def missed(traversal: Unrolled, constraint: ConstraintAtState) -> Array:
    """G a − γ, where `newton_euler.motions` has been."""
    residual = -constraint.bias
    for handle, columns in constraint.ends:
        row = traversal.rows[handle.position] if handle.position >= 0 else traversal.ground
        residual = residual + columns.T @ handle.outward(row["b"])
    for i, rows in rows_of(traversal, constraint).items():
        residual = residual + rows.T @ traversal.links[i].a
    return residual


def _changes(context: RecordingContext, a: Array, parts: Sequence[Array]) -> tuple[Array, Array]:
    """δR₁ and δR₂ for unit changes of q (tangent), then of v: (nv, 2 nv) and (m, 2 nv)."""
    factory, request = context.factory, context.request
    ends = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    state = {name: context.inputs[name] for name in factory.shapes(request)} | {"a": a}

    def residual(*arrays: Array) -> Array:
        moved = RecordingContext(factory, request, dict(zip(state, arrays[:-1], strict=True)))
        return _residual(moved, [arrays[-1][i:j] for i, j in pairwise(ends)])

    rows = state_derivatives(context, residual, {**state, "multipliers": np.concatenate(list(parts))})
    nv = factory.tree.coordinates.nv
    return rows[:nv], rows[nv:]
