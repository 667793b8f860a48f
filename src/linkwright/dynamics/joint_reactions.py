"""What joints, rods, point constraints, gears and drivers of any mechanism exert while its bodies move in a known
way.

Teeth with a pressure angle press their gears apart by a force in proportion to |λ|, which does no work: it moves
nothing, and is put on the bodies once λ is known.

Where constraints repeat each other, λ is not unique, and the one of least norm is taken: Σ |force|² + |moment/L|² over
all constraints, at the origin of each one's last frame, L being the size of the mechanism. It does not depend on where
loops are cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.accumulated_angles import accumulated_angles
from linkwright.constraints.constraint_equations import Constraint, joint_frames, joint_sides
from linkwright.constraints.constraint_forms import Frame
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.kinematics import Kinematics
from linkwright.model.body_motion import body_motion, of_ground
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import GearPair
from linkwright.model.gear_pairs import frames_at, pair_radii, pitch_point, separates
from linkwright.model.joint_kinds import JointKind, bearing_loads
from linkwright.model.joint_motion import FrameMotion, relative_motion
from linkwright.model.placements import full_inertia
from linkwright.model.topology import reacting_bodies
from linkwright.spatial.algebra import point_acceleration
from linkwright.spatial.rotation import euler_parameters_matrix

if TYPE_CHECKING:
    from linkwright.dynamics.reaction_friction import ReactionFrictions
    from linkwright.mechanism import Mechanism

#: Up to so many entries of J its pseudo-inverse is computed; beyond, the least solution is found by iteration.
DENSE = 400_000
#: Rounds in which tooth forces and the separating forces that they make come to agree, to this part.
ROUNDS, AGREED = 60, 1e-12
AT_ONCE = 2_000_000  # entries of J at all states that are worked on together


class Reactions:
    """The reactions of a mechanism at given states of its bodies."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.equations = programs.layout.equations

    def multipliers(self, states: Floats, times: Floats, wanted: Floats) -> tuple[Floats, Floats]:
        """λ (T, m) with Jᵀ λ = wanted (T, nb, 6), at the bodies' origins in ground's axes, and the parts of J."""
        e, count = self.equations, len(times)
        angles = accumulated_angles(e, repeat(e.description), states, times.tolist())
        jacobian = self.programs.evaluate(states, angles, times).jacobian
        multipliers = np.empty((count, e.count))
        at_once = max(1, AT_ONCE // max(6 * e.nb * e.count, 1))
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            multipliers[some] = self._least(states[some], jacobian[some], wanted[some])
        return multipliers, jacobian

    def wrench(self, k: int, multipliers: Floats, jacobian: Floats, body: int) -> Floats:
        """The wrenches (T, 6) of constraint k on one of its bodies, at the body's origin in ground's axes."""
        e = self.equations
        part = self._part(k, jacobian, body)
        return np.asarray(np.einsum("tmk,tm->tk", part, multipliers[:, e.rows(k)]))

    def _part(self, k: int, jacobian: Floats, body: int) -> Floats:
        """The (T, m, 6) numbers of J for a constraint and a body."""
        m, at = self.equations.constraints[k].form.size, self.programs.layout.part_at[k][body]
        return jacobian[:, at : at + 6 * m].reshape(-1, m, 6)

    def _least(self, states: Floats, jacobian: Floats, wanted: Floats) -> Floats:
        """λ = R⁻¹ μ, with μ of least norm."""
        e, layout = self.equations, self.programs.layout
        inverse = [self._scale(k, c, states, jacobian) for k, c in enumerate(e.constraints)]
        # Moments count as forces with an arm of the mechanism's size, and all by how fast gears make a body.
        units = e.units[:, :1] / np.repeat([1.0, e.size], 3)
        right = (wanted * units).reshape(len(wanted), -1)
        if e.count * 6 * e.nb > DENSE:
            rows = zip(layout.parts(jacobian) * units[layout.entries[1]], right, strict=True)
            multipliers = np.stack([self._by_iteration(j, w, [r[n] for r in inverse]) for n, (j, w) in enumerate(rows)])
        else:
            j = layout.dense(jacobian, units)
            for k, r in enumerate(inverse):
                j[:, e.rows(k)] = np.swapaxes(r, 1, 2) @ j[:, e.rows(k)]
            multipliers = np.einsum("tmk,tk->tm", np.linalg.pinv(np.swapaxes(j, 1, 2), rcond=1e-11), right)
        for k, r in enumerate(inverse):
            multipliers[:, e.rows(k)] = np.einsum("tij,tj->ti", r, multipliers[:, e.rows(k)])
        return np.asarray(multipliers)

    def _scale(self, k: int, c: Constraint, states: Floats, jacobian: Floats) -> Floats:
        """R⁻¹ (T, m, m), where |R λ| is the size of a constraint's wrench."""
        side = max(s for s, body in enumerate(c.bodies) if body != GROUND)
        body = c.bodies[side]
        part = self._part(k, jacobian, body).copy()
        r = euler_parameters_matrix(states[:, body, 3:].T)
        arm = np.einsum("ijt,j->ti", r, c.record[12 * side + 9 : 12 * side + 12])
        # The moment about the frame's origin: M − r × F.
        part[..., 3:] = (part[..., 3:] - np.cross(arm[:, None], part[..., :3])) / self.equations.size
        upper = np.linalg.qr(np.swapaxes(part, 1, 2), mode="r")
        diagonal = np.abs(np.diagonal(upper, axis1=1, axis2=2))
        whole = (diagonal.min(axis=1) > 1e-9 * diagonal.max(axis=1)) & (c.form.sides <= 2)
        sizes = np.linalg.norm(part, axis=2)
        scale = np.asarray(np.eye(c.form.size) / np.where(sizes > 0.0, sizes, 1.0)[:, None, :])
        scale[whole] = np.linalg.inv(upper[whole])
        return scale

    def _by_iteration(self, parts: Floats, wanted: Floats, inverse: list[Floats]) -> Floats:
        """μ of one state, of the parts of J as rows of six."""
        # weight: scipy
        from scipy.sparse import block_diag, csr_array  # type: ignore[import-untyped]  # SciPy has no types
        from scipy.sparse.linalg import lsmr  # type: ignore[import-untyped]  # SciPy has no types

        e, layout = self.equations, self.programs.layout
        rows, bodies = layout.entries
        columns = 6 * bodies[:, None] + np.arange(6)
        shape = (e.count, 6 * e.nb)
        j = csr_array((parts.reshape(-1), (np.repeat(rows, 6), columns.reshape(-1))), shape=shape)
        scaled = (block_diag([r.T for r in inverse], format="csr") @ j).T
        return np.asarray(lsmr(scaled, wanted, atol=1e-13, btol=1e-13, maxiter=20 * e.count)[0])


#: The multipliers (T, m) of constraints other than joints, by group and name.
Multipliers = dict[tuple[str, str], Floats]


class Reacting:
    """A mechanism whose reactions are asked."""

    def __init__(self, mech: Mechanism) -> None:
        self.mech, self.description = mech, mech.description
        self.solver = Reactions(Kinematics(mech.description).programs)

    def at(
        self, bodies: Mapping[str, Floats], time: Floats, q: Floats, v: Floats, a: Floats, tau: Floats
    ) -> tuple[Floats, Multipliers]:
        """(T, nb + loops, 6): of every joint on its body, at the body's origin in its axes, its drive included: tau,
        forces and drivers on its own coordinates, less its armature's resistance.

        And the multipliers of rods, point constraints, gears and drivers: with those wrenches, they and the drivers
        of other things than joints move the bodies as they move. tau on a shared coordinate is on the joint that leads.

        Bodies move as the arrays (T, nb, ·) of a Solution say; the tree's q, v, a and tau are (T, ·). Joints: those of
        the spanning tree in their order, then those of loops.
        """
        applied = np.zeros((len(time), self.description.nb, 6))
        laws = np.zeros((len(time), 0))
        if self.description.elements:
            wrenches, laws = self.mech.kernels.applied_forces(q, v, time)
            applied[:, self.mech.tree.topology.body] = wrenches
        drive = self._drives(bodies, time, laws, a, tau)
        states = np.concatenate([bodies["position"], bodies["orientation"]], axis=2)
        r = np.moveaxis(euler_parameters_matrix(np.moveaxis(states[..., 3:], -1, 0)), (0, 1), (2, 3))
        motion = [bodies[name] for name in ("acceleration", "angular_velocity", "angular_acceleration")]
        wanted = inertial_wrenches(self.description, r, *motion) - _turned(r, applied)
        pairs = self._pairs(states, drive)
        for pair in pairs.values():
            for body, wrench in pair.items():
                if body != GROUND:
                    wanted[:, body] -= wrench
        multipliers, jacobian = self._with_separating_forces(states, r, time, wanted)
        joints = np.zeros((len(time), len(self._joints), 6))
        for row, (joint, body) in enumerate(self._joints):
            k = self._of_joint.get(joint)
            wrench = np.zeros((len(time), 6)) if k is None else self.solver.wrench(k, multipliers, jacobian, body)
            for driver in self._drivers.get(joint, ()):
                wrench = wrench + self.solver.wrench(driver, multipliers, jacobian, body)
            if joint in pairs:
                wrench = wrench + pairs[joint][body]
            joints[:, row] = np.einsum("tji,tkj->tki", r[:, body], wrench.reshape(-1, 2, 3)).reshape(-1, 6)
        e = self.solver.equations
        others: Multipliers = {
            (c.group, c.name): multipliers[:, e.rows(k)] for k, c in enumerate(e.constraints) if c.group != "joint"
        }
        return joints, others

    def _with_separating_forces(self, states: Floats, r: Floats, time: Floats, wanted: Floats) -> tuple[Floats, Floats]:
        """The multipliers and the parts of J, with the separating forces of gear pairs on the bodies.

        Those of tooth forces change only where constraints repeat each other: then rounds go on until they agree.
        """
        multipliers, jacobian = self.solver.multipliers(states, time, wanted)
        if not self._separating:
            return multipliers, jacobian
        frames = frames_at(self.description, r, states[..., :3])
        rows = np.concatenate([np.arange(self.solver.equations.count)[rows] for rows, _ in self._separating])
        for _ in range(ROUNDS):
            before = multipliers[:, rows]
            pressed = np.zeros_like(wanted)
            for row, pair in self._separating:
                at = pitch_point(pair, self._radii[pair.name], *map(frames, pair.places))
                force = np.abs(multipliers[:, row]) * at.separating
                for place, sign in zip(pair.places, (-1.0, 1.0), strict=True):
                    body = self.description.frame_number(place)[0]
                    if body != GROUND:
                        pressed[:, body, :3] += sign * force
                        pressed[:, body, 3:] += sign * np.cross(at.point - states[:, body, :3], force)
            multipliers, _ = self.solver.multipliers(states, time, wanted - pressed)
            change = np.abs(multipliers[:, rows] - before).max(initial=0.0)
            if change <= AGREED * np.abs(before).max(initial=0.0):
                break
        return multipliers, jacobian

    # -- what there is ----------------------------------------------------------------------------------
    @cached_property
    def _separating(self) -> list[tuple[slice, GearPair]]:
        """The gear pairs whose teeth press them apart, each with its row of the multipliers."""
        e, d = self.solver.equations, self.description
        rows = {c.name: e.rows(k) for k, c in enumerate(e.constraints) if c.group == "gear pair"}
        pairs = [x for x in d.point_constraints if isinstance(x, GearPair) and separates(x)]
        return [(rows[pair.name], pair) for pair in pairs]

    @cached_property
    def _radii(self) -> dict[str, tuple[float, float]]:
        """Both pitch radii of each of these pairs."""
        parameters = self.description.parameters
        return {x.name: pair_radii(x, lambda r: float(r.evaluate(parameters))) for _, x in self._separating}

    @cached_property
    def _of_joint(self) -> dict[int, int]:
        """The constraint of each joint."""
        constraints = self.solver.equations.constraints
        return {c.source.joints[0]: k for k, c in enumerate(constraints) if c.group == "joint"}

    @cached_property
    def _drivers(self) -> dict[int, list[int]]:
        """The constraints that drive each joint."""
        drivers: dict[int, list[int]] = {}
        for k, c in enumerate(self.solver.equations.constraints):
            if c.group == "driver" and c.source.joints:
                drivers.setdefault(c.source.joints[0], []).append(k)
        return drivers

    @cached_property
    def _joints(self) -> list[tuple[int, int]]:
        """The joints in their order, each with the body that its wrench is on."""
        return reacting_bodies(self.description, self.mech.tree.topology)

    # -- forces -----------------------------------------------------------------------------------------
    def _drives(
        self, bodies: Mapping[str, Floats], time: Floats, laws: Floats, a: Floats, tau: Floats
    ) -> dict[int, Floats]:
        """The force (T, nv) along the rates of each joint that has one: its laws, tau, and its armature's resistance.

        `laws` are those of all joints, as `Tree.own_rates` has them.
        """
        d, tree = self.description, self.mech.tree
        x, drives = tree.coordinates, {j: np.zeros((len(time), d.kind_of(j).nv)) for j in tree.own_rates}
        if laws.size:
            drives = {j: laws[:, at].copy() for j, at in tree.own_rates.items()}
        for i, j in enumerate(tree.topology.joint.tolist()):
            at = slice(int(x.v_at[i]), int(x.v_at[i]) + d.kind_of(j).nv)
            if not x.follows[i]:
                drives[j] += tau[:, at]
            if d.armature[j]:
                drives[j] -= d.armature[j] * x.ratio[i] * a[:, at]
        for j in tree.topology.loops:
            if d.armature[j]:
                drives[j] -= d.armature[j] * self._acceleration(j, bodies, time)
        return {j: force for j, force in drives.items() if force.any()}

    def _acceleration(self, j: int, bodies: Mapping[str, Floats], time: Floats) -> Floats:
        """(T, nv): how the rates of a joint change, by how its bodies move."""
        d = self.description

        def motion(body: int) -> FrameMotion:
            if body == GROUND:
                return FrameMotion.of(lambda name: of_ground(name, len(time), 1))
            return FrameMotion.of(lambda name: bodies[name][:, [body]].transpose(2, 0, 1))

        sides = joint_sides(d, j)
        ends, frames = [motion(body) for body, _, _ in sides], [(r[..., None], p[:, None]) for _, r, p in sides]
        return np.asarray(relative_motion(d.kind_of(j), ends, frames, d.pitch[[j]], time)[2][..., 0].T)

    def _pairs(self, states: Floats, drive: Mapping[int, Floats]) -> dict[int, dict[int, Floats]]:
        """For each joint with a drive, its wrenches (T, 6) on both bodies, at their origins in ground's axes."""
        d = self.description
        pairs: dict[int, dict[int, Floats]] = {}
        count = len(states)
        for j, force in drive.items():
            kind = d.kind_of(j)
            (ri, pi), (rj, pj) = joint_frames(d, states, j)
            terms, pitch = _terms(kind, (ri, pi), (rj, pj)), np.full(count, d.pitch[j])
            dual = _over_time(kind.dual(terms, pitch), count)
            held = np.einsum("...ij,...kj->...ki", rj, np.einsum("tij,tj->ti", dual, force).reshape(-1, 2, 3))
            pairs[j] = {}
            for body, sign in ((int(d.child[j]), 1.0), (int(d.parent[j]), -1.0)):
                arm = pj - (0.0 if body == GROUND else states[:, body, :3])
                moment = held[:, 1] + np.cross(arm, held[:, 0])
                pairs[j][body] = sign * np.concatenate([held[:, 0], moment], axis=1)
        return pairs


def _terms(kind: JointKind, first: Frame, second: Frame) -> Floats:
    """The terms of a joint between its frames (..., 3, 3) and (..., 3), along time at the end."""
    back = np.swapaxes(first[0], -1, -2)
    pose = np.moveaxis(back @ second[0], 0, -1), np.einsum("...ij,...j->i...", back, second[1] - first[1])
    return np.asarray(kind.terms_between(*pose))


def _over_time(matrix: Any, count: int) -> Floats:
    """(T, m, n), of a matrix (m, n) or (m, n, T)."""
    array = np.asarray(matrix, float)
    return np.moveaxis(array, -1, 0) if array.ndim == 3 else np.broadcast_to(array, (count, *array.shape))


def bearing_load(d: Description, j: int, frames: tuple[Frame, Frame], load: Floats) -> Floats:
    """(T, 6): what of a joint's whole load (force, and moment at the origin of its second frame, in ground's axes) its
    bearing surfaces carry: all but the drive, by `bearing_loads`.

    `frames` are those of the joint in ground's axes, as `joint_frames` has them.
    """
    kind, count = d.kind_of(j), len(load)
    terms, pitch, axes = _terms(kind, *frames), np.full(count, d.pitch[j]), frames[1][0]
    subspace, dual = (_over_time(matrix(terms, pitch), count) for matrix in (kind.subspace, kind.dual))
    local = np.einsum("...ji,...kj->...ki", axes, load.reshape(count, 2, 3)).reshape(count, 6)
    bearing = bearing_loads(subspace, dual, local[..., None]).reshape(count, 2, 3)
    return np.asarray(np.einsum("...ij,...kj->...ki", axes, bearing).reshape(count, 6))


def inertial_wrenches(
    d: Description, r: Floats, acceleration: Floats, omega: Floats, alpha: Floats, *, weightless: bool = False
) -> Floats:
    """(T, nb, 6): the wrench that each body needs besides gravity, at its origin in ground's axes; `weightless`, with
    gravity.

    `r` (T, nb, 3, 3) are the bodies' axes; `acceleration` of their origins, `omega` and `alpha` (T, nb, 3).
    """
    turned = r @ full_inertia(d.inertia) @ np.swapaxes(r, 2, 3)
    arm = np.einsum("tbij,bj->tbi", r, d.com)
    components = (np.moveaxis(x, 2, 0) for x in (acceleration, alpha, omega, arm))
    centre = np.moveaxis(point_acceleration(*components), 0, 2)
    force = d.mass[:, None] * (centre if weightless else centre - d.gravity)
    spin = np.einsum("tbij,tbj->tbi", turned, omega)
    moment = np.einsum("tbij,tbj->tbi", turned, alpha) + np.cross(omega, spin) + np.cross(arm, force)
    return np.concatenate([force, moment], axis=2)


def _turned(r: Floats, wrenches: Floats) -> Floats:
    """Wrenches (T, nb, 6) in the bodies' axes, in ground's."""
    parts = np.einsum("tbij,tbkj->tbki", r, wrenches.reshape(*wrenches.shape[:2], 2, 3))
    return np.asarray(parts.reshape(wrenches.shape))


def reactions(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: Floats) -> Floats:
    """(..., nb + loops, 6) at states that forward dynamics moves on from; NaN at those that are not finite.

    By a pseudo-inverse of all constraints, at any position; `closed.joint_wrenches` is straight code for the others.
    """
    a = mech.forward_dynamics(q, v, tau, t=t)
    shape = a.shape[:-1]
    q, v, a, tau = (
        np.broadcast_to(x, (*shape, x.shape[-1])).reshape(math.prod(shape), x.shape[-1]) for x in (q, v, a, tau)
    )
    time = np.array(np.broadcast_to(t, shape), dtype=np.float64).reshape(-1)
    known = np.asarray(np.isfinite(np.column_stack([q, v, a, tau, time])).all(axis=1))
    some, _ = exerted(mech, *(x[known] for x in (q, v, a, tau, time)))
    wrenches = np.full((len(known), *some.shape[1:]), np.nan)
    wrenches[known] = some
    return wrenches.reshape(*shape, *wrenches.shape[1:])


def exerted(mech: Mechanism, q: Floats, v: Floats, a: Floats, tau: Floats, t: Floats) -> tuple[Floats, Multipliers]:
    """What `Reacting.at` finds along a motion q, v, a (T, ·)."""
    if mech.friction is not None:
        return _with_friction(mech.friction, q, v, a, tau, t)
    return mech.auxiliary.reacting.at(body_motion(mech.description, q, v, a), t, q, v, a, tau)


def _with_friction(
    friction: ReactionFrictions, q: Floats, v: Floats, a: Floats, tau: Floats, t: Floats
) -> tuple[Floats, Multipliers]:
    """The same with the frictions that follow the reactions."""
    answers = {id(mech): exerted(mech, q, v, a, tau, t) for mech in (friction.bare, *friction.units)}
    x = friction.along(lambda mech: answers[id(mech)][0], q, v, t)
    wrenches = friction.combined(x, lambda mech: answers[id(mech)][0], 2)

    def of(key: tuple[str, str]) -> Floats:
        return friction.combined(x, lambda mech: answers[id(mech)][1][key], 1)

    return wrenches, {key: of(key) for key in answers[id(friction.bare)][1]}
