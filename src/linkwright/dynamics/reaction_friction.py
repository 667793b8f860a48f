"""Friction that follows the reactions of joints: the forces that agree with the reactions which they cause.

Each friction exerts x on its joint's coordinate. At a state the loads R of the joints are affine in x, and

    x + tanh(rate / speed) · coefficient · ρ(R₀ + B x) = 0,

with ρ the sum of radius · |load| over the supports of the joint. R₀ and B come from the mechanism without friction and
from those in which one friction exerts its unit, which is that of x: no number depends on newtons and metres. Newton's
method solves the equations; a solution counts only on the branch that coefficients growing from zero lead to. Where
that branch has ended, the mechanism locks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import Request
from linkwright.errors import JammedError, ModelError
from linkwright.model.description import Description
from linkwright.model.elements import JointForce, ReactionFriction
from linkwright.model.expression import Name
from linkwright.model.model_checks import parameters_used
from linkwright.model.topology import reacting_bodies
from linkwright.spatial.algebra import Array
from linkwright.tape.block import less, where
from linkwright.tape.scalar import has_scalars

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: Rounds of Newton's method: recorded ones, and at most of others; what counts as agreed, as a part of the forces,
#: and what does of recorded ones.
RECORDED, ROUNDS, AGREED, NEAR = 6, 60, 1e-13, 1e-6
#: Parts of the coefficients that lead to the whole where Newton's method does not find it at once.
PARTS = 32
#: The load at which |load| becomes round, as a part of the mechanism's weight: in gravity, and where it turns so many
#: times as fast as the speed of the frictions.
ROUND, FAST = 1e-12, 100.0
#: What mechanisms exert, as a multiple of the same weight: so much that loads do not hide it.
HEAVY = 1e9
#: What counts as no friction, in these units.
LEAST = ROUND / HEAVY

Exerted = Callable[["Mechanism"], Array]


class ReactionFrictions:
    """The frictions of one mechanism that follow reactions."""

    def __init__(
        self, mech: Mechanism, frictions: Sequence[ReactionFriction], source: ReactionFrictions | None
    ) -> None:
        """`source` has those of the mechanism that differs from this one in values of parameters alone."""
        d = mech.description
        self.frictions = frictions
        names = {e.name: f"force of friction {e.name}" for e in frictions}
        constants = np.array([[float(law.evaluate(d.parameters)) for law in e.laws] for e in frictions])
        self.coefficient, _, _, _, self.speed = constants.T
        size = d.length_scale
        joints = [d.joint_names.position("joint", e.joint) for e in frictions]
        slides = np.array([d.kind_of(joint).name == "prismatic" for joint in joints])
        fastest = FAST * float((self.speed / np.where(slides, size, 1.0)).max())
        weight = float(d.mass.sum()) * (float(np.linalg.norm(d.gravity)) + size * fastest**2)
        self.round, self.unit = ROUND * weight, (HEAVY * weight or 1.0) * np.where(slides, 1.0, size)
        #: The mechanism without these frictions; and with one of them at a time exerting its unit.
        self.bare: Mechanism = type(mech)(_without_friction(d, names)) if source is None else source.bare
        changed = {name: x for name, x in mech.programs.values.items() if name in self.bare.parameters}
        if source is not None and changed:
            self.bare = source.bare.with_parameters(**changed)
        forces = zip(names.values(), self.unit.tolist(), strict=True)
        self.units = [self.bare.with_parameters(**{name: force}) for name, force in forces]
        rows = reacting_bodies(d, mech.tree.topology)
        self._rows: list[int] = []
        self._supports: list[tuple[int, float, Floats]] = []
        for k, (e, joint, (_, radius, axial, length, _)) in enumerate(zip(frictions, joints, constants, strict=True)):
            self._rows.append(next(row for row, (j, _) in enumerate(rows) if j == joint))
            on_child = rows[self._rows[-1]][1] == d.child[joint]
            r, p = (d.rj[joint], d.pj[joint]) if on_child else (d.ri[joint], d.pi[joint])
            if slides[k] and length and not on_child:
                text = f"friction {e.name!r} has a length, and the second body of joint {e.joint!r} is ground; "
                raise ModelError(text + "name its bodies the other way round", element=e.name)
            in_joint = _in_frame(r, p)
            for arm, load in _supports(1.0 if slides[k] else radius, axial, length):
                self._supports.append((k, arm / self.unit[k], load @ in_joint))

    # -- what joints bear -----------------------------------------------------------------------------------
    def _loads(self, exerted: Exerted) -> tuple[list[Array], list[Array]]:
        """Of every support, the load without friction (..., m) and how each friction changes it (..., frictions, m)."""
        first = exerted(self.bare)
        changes = [exerted(unit) - first for unit in self.units]
        loads = [first[..., self._rows[k], :] @ load.T for k, _, load in self._supports]
        slopes = [
            np.stack([change[..., self._rows[k], :] @ load.T for change in changes], axis=-2)
            for k, _, load in self._supports
        ]
        return loads, slopes

    def pushes(self, q: Any, t: Any = 0.0) -> Array:
        """(..., frictions, nv): the generalised forces of frictions that exert 1 N or 1 N m; times v, their joints'
        rates.
        """
        tree, d = self.bare.tree, self.bare.description
        rows: list[Any] = []
        still = np.zeros(self.bare.nv)
        for e, unit, force in zip(self.frictions, self.units, self.unit, strict=True):
            position = tree.joint_positions.get(e.joint)
            if position is None or d.mimics:
                request = Request("tree_forces")
                bare, pushed = (mech.kernels.evaluate(request, q, still, still, t=t) for mech in (self.bare, unit))
                rows.append((bare - pushed) / force)
            else:
                push = np.zeros((*np.shape(q)[:-1], self.bare.nv))
                push[..., int(tree.coordinates.v_at[position])] = 1.0
                rows.append(push)
        return np.stack(rows, axis=-2)

    # -- agreement ------------------------------------------------------------------------------------------
    def _agreed(self, exerted: Exerted, rates: Array, t: Any) -> Array:
        """x (..., frictions) in units, for the wrenches of joints that mechanisms exert, and the rates of the joints
        (..., frictions).
        """
        loads, slopes = self._loads(exerted)
        sense = self.coefficient * np.tanh(rates / self.speed)
        if has_scalars(sense, *loads):
            x: Array = 0.0 * rates
            for _ in range(RECORDED):
                residual, matrix = self._equations(x, loads, slopes, sense)
                x = x - _solved(matrix, residual)[0]
            residual, _ = self._equations(x, loads, slopes, sense)
            # What has not come to agree is no force: a run ends there.
            agreed = less((residual * residual).sum(), NEAR**2 * (x * x).sum() + LEAST**2)
            with np.errstate(invalid="ignore"):
                return np.array([where(agreed, force, np.nan) for force in x])
        shape = np.broadcast_shapes(sense.shape, (*loads[0].shape[:-1], sense.shape[-1]))
        flat = [np.broadcast_to(a, (*shape[:-1], a.shape[-1])).reshape(-1, a.shape[-1]) for a in loads]
        flat_slopes = [np.broadcast_to(b, (*shape[:-1], *b.shape[-2:])).reshape(-1, *b.shape[-2:]) for b in slopes]
        senses = np.broadcast_to(sense, shape).reshape(-1, shape[-1])
        return self._numbers(flat, flat_slopes, senses, np.broadcast_to(t, shape[:-1]).reshape(-1)).reshape(shape)

    def _equations(
        self, x: Array, loads: Sequence[Array], slopes: Sequence[Array], sense: Array
    ) -> tuple[Array, Array]:
        """What is left of the equations (..., n), and their matrix (..., n, n)."""
        n = len(self.frictions)
        sizes: list[Any] = [0.0] * n
        gradients: list[Any] = [np.zeros(n)] * n
        for (k, weight, _), load, slope in zip(self._supports, loads, slopes, strict=True):
            now = load + (x[..., :, None] * slope).sum(axis=-2)
            size = np.sqrt((now * now).sum(axis=-1, keepdims=True) + self.round**2)
            sizes[k] = sizes[k] + weight * size
            gradients[k] = gradients[k] + weight * (now[..., None, :] * slope).sum(axis=-1) / size
        residual = x + sense * np.concatenate(np.broadcast_arrays(*sizes), axis=-1)
        rows = [sense[..., k : k + 1] * gradients[k] for k in range(n)]
        return residual, np.eye(n) + np.stack(np.broadcast_arrays(*rows), axis=-2)

    def _numbers(self, loads: list[Floats], slopes: list[Floats], senses: Floats, t: Floats) -> Floats:
        """x of many states; raises JammedError where there is none."""
        x, good = self._newton(np.zeros_like(senses), loads, slopes, senses)
        unknown = np.flatnonzero(~good & np.isfinite(senses).all(axis=-1))
        for n in unknown.tolist():
            if not all(np.isfinite(part[n]).all() for part in loads):
                x[n] = np.nan
                continue
            load, slope = ([part[n : n + 1] for part in parts] for parts in (loads, slopes))
            y, reached = np.zeros_like(senses[:1]), 0.0
            for k in range(1, PARTS + 1):
                y, solved = self._newton(y, load, slope, senses[n : n + 1] * (k / PARTS))
                if not solved[0]:
                    raise self._jammed(load, slope, senses[n : n + 1], reached, float(t[n]))
                reached = k / PARTS
            x[n] = y[0]
        return x

    def _newton(
        self, x: Floats, loads: list[Floats], slopes: list[Floats], senses: Floats
    ) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
        """x from a guess, and for which states it solves the equations on the branch of small coefficients."""
        with np.errstate(all="ignore"):
            for _ in range(ROUNDS):
                residual, matrix = self._equations(x, loads, slopes, senses)
                change, _ = _solved(matrix, residual)
                x = x - change
                if not (np.abs(change) > AGREED * (np.abs(x) + np.abs(residual - x) + LEAST)).any():
                    break
            residual, matrix = self._equations(x, loads, slopes, senses)
            _, least = _solved(matrix, residual)
            scale = np.abs(x).max(axis=-1, initial=0.0) + LEAST
            return x, (np.abs(residual).max(axis=-1, initial=0.0) <= 1e-9 * scale) & (least > 0.0)

    def _jammed(
        self, loads: list[Floats], slopes: list[Floats], senses: Floats, reached: float, t: float
    ) -> JammedError:
        """The error that no friction forces agree with the reactions."""
        _, matrix = self._equations(np.zeros_like(senses), loads, slopes, senses)
        gain = np.abs(matrix[0] - np.eye(len(matrix[0]))).max(axis=1)
        e = self.frictions[int(np.argmax(gain))]
        text = f"friction {e.name!r} locks joint {e.joint!r} at t = {t:.6g} s: no friction forces agree with the "
        text += f"reactions that they cause, with more than about {100.0 * reached:.0f} % of the coefficients; lower "
        raise JammedError(text + "them, lengthen the guide, or drive the mechanism elsewhere", element=e.joint, time=t)

    # -- answers --------------------------------------------------------------------------------------------
    def forces(self, q: Any, v: Any, tau: Any, t: Any = 0.0, wrenches: Any = None) -> Array:
        """(..., frictions): what each exerts on its coordinate (N or N m), where tau moves the mechanism."""
        rates = (self.pushes(q, t) * np.asarray(v)[..., None, :]).sum(axis=-1)
        return self._agreed(lambda mech: _reactions(mech, q, v, tau, t, wrenches), rates, t) * self.unit

    def along(self, exerted: Exerted, q: Floats, v: Floats, t: Floats) -> Floats:
        """The same (T, frictions) along a motion, by the wrenches of joints that mechanisms exert."""
        rates = (self.pushes(q, t) * v[..., None, :]).sum(axis=-1)
        return np.asarray(self._agreed(exerted, rates, t) * self.unit)

    def joint_forces(self, q: Any, v: Any, tau: Any, t: Any = 0.0, wrenches: Any = None) -> Array:
        """tau (..., nv) with the generalised forces of the frictions."""
        x = self.forces(q, v, tau, t, wrenches)
        return np.asarray(tau) + (x[..., :, None] * self.pushes(q, t)).sum(axis=-2)

    def forward(self, q: Any, v: Any, tau: Any, t: Any, wrenches: Any, method: Any, memory: Any) -> Floats:
        """The accelerations of `Mechanism.forward_dynamics`."""
        forces = self.joint_forces(q, v, tau, t, wrenches)
        return self.bare.forward_dynamics(q, v, forces, t=t, wrenches=wrenches, method=method, out=memory)

    def inverse(self, q: Any, v: Any, a: Any, t: Any, wrenches: Any, weights: Any, memory: Any) -> Floats:
        """The joint forces of `Mechanism.inverse_dynamics`."""
        forces = {
            id(mech): mech.inverse_dynamics(q, v, a, t=t, wrenches=wrenches, weights=weights)
            for mech in (self.bare, *self.units)
        }
        rates = (self.pushes(q, t) * np.asarray(v)[..., None, :]).sum(axis=-1)
        x = self._agreed(lambda mech: _reactions(mech, q, v, forces[id(mech)], t, wrenches), rates, t) * self.unit
        total = self.combined(x, lambda mech: forces[id(mech)], 1)
        if memory is None:
            return total
        memory[...] = total
        return np.asarray(memory)

    def reactions(self, q: Any, v: Any, tau: Any, t: Any) -> Floats:
        """The wrenches of `Mechanism.reactions`."""
        return self.combined(self.forces(q, v, tau, t), lambda mech: mech.reactions(q, v, tau, t=t), 2)

    def constraint_forces(self, q: Any, v: Any, tau: Any, t: Any) -> Floats:
        """The multipliers of `Mechanism.constraint_forces`."""
        return self.combined(self.forces(q, v, tau, t), lambda mech: mech.constraint_forces(q, v, tau, t=t), 1)

    def combined(self, x: Array, answer: Callable[[Mechanism], Array], dims: int) -> Floats:
        """What is affine in the frictions x (N or N m): answers of mechanisms, so many dimensions for a state."""
        first = total = answer(self.bare)
        for k, unit in enumerate(self.units):
            part = (x[..., k] / self.unit[k]).reshape(*x.shape[:-1], *[1] * dims)
            total = total + part * (answer(unit) - first)
        return np.asarray(total)

    def law(self, tau: Any) -> Callable[[Any, Any, Any], Any]:
        """tau(t, q, v) of a simulation with the generalised forces of the frictions."""

        def with_friction(t: Any, q: Any, v: Any) -> Any:
            forces = tau(t, q, v) if callable(tau) else np.zeros(self.bare.nv) if tau is None else tau
            return self.joint_forces(q, v, np.asarray(forces), t)

        return with_friction

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the frictions."""
        return tuple(e.name for e in self.frictions)


def frictions_of(mech: Mechanism, source: ReactionFrictions | None) -> ReactionFrictions | None:
    """The frictions of a mechanism that follow reactions, or None without any; `source` as `ReactionFrictions`."""
    frictions = [e for e in mech.description.elements if isinstance(e, ReactionFriction)]
    return ReactionFrictions(mech, frictions, source) if frictions else None


def _without_friction(d: Description, forces: Mapping[str, str]) -> Description:
    """The description in which each friction exerts the value of a further parameter, named in `forces`.

    Parameters of frictions alone are left out, so that other values of them are the same description.
    """
    frictions = [e for e in d.elements if isinstance(e, ReactionFriction)]
    others = tuple(
        JointForce(e.name, e.joint, Name(forces[e.name])) if isinstance(e, ReactionFriction) else e for e in d.elements
    )
    bare = replace(d, elements=others)
    used = parameters_used(bare) | {name for x in d.bindings.values() for name in x.names()}
    idle = {name for e in frictions for law in e.laws for name in law.names()} - used
    parameters = {name: x for name, x in d.parameters.items() if name not in idle}
    return replace(bare, parameters={**parameters, **dict.fromkeys(forces.values(), 0.0)})


def _reactions(mech: Mechanism, q: Any, v: Any, tau: Any, t: Any, wrenches: Any) -> Array:
    """(..., joints, 6): `Mechanism.reactions`, of recorded scalars too."""
    if mech.closed:
        if wrenches is not None:
            text = f"{mech.name!r} has loops and friction that follows reactions, which take no wrenches beside them; "
            raise ModelError(text + "apply them by FORCE and TORQUE, in Python b.applied_wrench", element=mech.name)
        if has_scalars(q, v, tau):
            request = Request("joint_wrenches")
            return np.asarray(mech.kernels.evaluate(request, q, v, tau, mech.programs.size, t=t))
        return mech.reactions(q, v, tau, t=t)
    applied = () if wrenches is None else (wrenches,)
    request = Request("reactions", "", wrenches is not None)
    return np.asarray(mech.kernels.evaluate(request, q, v, tau, *applied, t=t))


def _in_frame(r: Floats, p: Floats) -> Floats:
    """(6, 6): a wrench at a body's origin in its axes, at a frame r, p of the body in the frame's axes."""
    skew = np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])
    return np.block([[r.T, np.zeros((3, 3))], [-r.T @ skew, r.T]])


def _supports(radius: float, axial: float, length: float) -> list[tuple[float, Floats]]:
    """The supports of a joint: an arm, and the load (m, 6) of the joint's wrench in its frame, h along z.

    Without a length one support bears the force across h. With one, two at its ends bear half of it each, and the
    couple of the moment across h: My/length along x, −Mx/length along y.
    """
    across = np.zeros((2, 6))
    across[0, 0] = across[1, 1] = 1.0
    supports = [(radius, across)]
    if length > 0.0:
        couple = np.zeros((2, 6))
        couple[0, 4], couple[1, 3] = 1.0 / length, -1.0 / length
        supports = [(radius, 0.5 * across + couple), (radius, 0.5 * across - couple)]
    if axial > 0.0:
        supports.append((axial, np.eye(6)[2:3]))
    return supports


def _solved(matrix: Array, right: Array) -> tuple[Array, Array]:
    """The solution (..., n) of linear equations without pivoting, and the least pivot (...)."""
    n = right.shape[-1]
    rows = [np.concatenate([matrix[..., k, :], right[..., k : k + 1]], axis=-1) for k in range(n)]
    pivots = []
    for k in range(n):
        pivots.append(rows[k][..., k : k + 1])
        rows[k] = rows[k] / pivots[k]
        for i in range(n):
            if i != k:
                rows[i] = rows[i] - rows[i][..., k : k + 1] * rows[k]
    least = pivots[0] if has_scalars(*pivots) else np.concatenate(pivots, axis=-1).min(axis=-1)
    return np.concatenate([row[..., n:] for row in rows], axis=-1), least
