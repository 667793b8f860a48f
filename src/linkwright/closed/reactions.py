"""What joints, ties, gears and drivers of any mechanism exert while its bodies move in a known way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.equations import joint_frames
from linkwright.constraints.forms import between
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.reactions import Reactions
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.frames import full_inertia
from linkwright.spatial.rotation import euler_parameters_matrix

if TYPE_CHECKING:
    from linkwright.model import Mechanism

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forces:
    """Reactions at T states. Joints: those of the spanning tree in the order of `mech.joints`, then those of loops."""

    joints: Floats  # (T, nb + loops, 6): of each joint on its body, at the body's origin in its axes, drive included
    others: dict[str, Floats]  # (T,) or (T, equations): multipliers of ties, gears and drivers by name
    left: float  # the largest force that no constraint gives: of an inconsistent state


class Reacting:
    """A mechanism whose reactions are asked."""

    def __init__(self, mech: Mechanism) -> None:
        self.mech, self.description = mech, mech.description
        self.equations = Kinematics(mech.description)

    @cached_property
    def solver(self) -> Reactions:
        return Reactions(self.equations.programs)

    def at(self, bodies: Mapping[str, Floats], time: Floats, q: Floats, v: Floats, a: Floats, tau: Floats) -> Forces:
        """The reactions where bodies move so: arrays (T, nb, ·) of a Solution; the tree's q, v, a and tau (T, ·)."""
        d, topology = self.description, self.mech.tree.topology
        applied, drive = self._forces(q, v, a, tau, time)
        joints = np.zeros((len(time), d.nb + len(topology.loops), 6))
        constraints = self.solver.equations.constraints
        others: dict[str, list[Floats]] = {str(c): [] for c in constraints if c.group != "joint"}
        left = 0.0
        for n, t in enumerate(time.tolist()):
            state = np.concatenate([bodies["position"][n], bodies["orientation"][n]], axis=1)
            motion = [bodies[name][n] for name in ("acceleration", "angular_velocity", "angular_acceleration")]
            r = euler_parameters_matrix(state[:, 3:].T).transpose(2, 0, 1)
            wanted = self._inertial(r, *motion) - _turned(r, applied[n])
            pairs = self._pairs(state, drive[n])
            for pair in pairs.values():
                for body, wrench in pair.items():
                    if body != GROUND:
                        wanted[body] -= wrench
            found, jacobian = self.solver.multipliers(state, t, wanted)
            for row, (joint, body) in enumerate(self._joints):
                k = self._of_joint.get(joint)
                wrench = np.zeros(6) if k is None else self.solver.wrench(k, found, jacobian, body)
                if joint in pairs:
                    wrench = wrench + pairs[joint][body]
                joints[n, row] = np.concatenate([r[body].T @ wrench[:3], r[body].T @ wrench[3:]])
            for k, c in enumerate(constraints):
                for body in self.solver.programs.layout.part_at[k]:
                    wanted[body] -= self.solver.wrench(k, found, jacobian, body)
                if c.group != "joint":
                    first = self.solver.equations.first
                    others[str(c)].append(found[first[k] : first[k + 1]])
            left = max(left, float(np.max(np.abs(wanted), initial=0.0)))
        series = {name: np.array(values) for name, values in others.items()}
        return Forces(joints, {n: x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x for n, x in series.items()}, left)

    # -- what there is ----------------------------------------------------------------------------------
    @cached_property
    def _of_joint(self) -> dict[int, int]:
        """The constraint of each joint."""
        names = self.description.joint_names
        found = {}
        for k, c in enumerate(self.solver.equations.constraints):
            if c.group == "joint":
                found[names.position("joint", c.name)] = k
        return found

    @cached_property
    def _joints(self) -> list[tuple[int, int]]:
        """The joints in their order, each with the body that its wrench is on."""
        d, t = self.description, self.mech.tree.topology
        tree = [(int(j), int(b)) for j, b in zip(t.joint, t.body, strict=True)]
        return tree + [(j, int(d.child[j]) if d.child[j] != GROUND else int(d.parent[j])) for j in t.loops]

    # -- forces -----------------------------------------------------------------------------------------
    def _forces(self, q: Floats, v: Floats, a: Floats, tau: Floats, time: Floats) -> tuple[Floats, Floats]:
        """Wrenches applied to the bodies (T, nb, 6), in their axes, and the forces along the tree's rates (T, nv)."""
        d, mech = self.description, self.mech
        applied, drive = np.zeros((len(time), d.nb, 6)), np.array(np.broadcast_to(tau, v.shape))
        if d.elements:
            wrenches, forces = mech._applied(q, v, time)
            applied[:, mech.tree.topology.body] = wrenches
            drive += forces
        armature = np.zeros(mech.nv)
        for i, joint in enumerate(mech.joints):
            armature[joint.v_slice] = d.armature[mech.tree.topology.joint[i]]
        return applied, drive - armature * a

    def _inertial(self, r: Floats, acceleration: Floats, omega: Floats, alpha: Floats) -> Floats:
        """The wrench that each body needs besides gravity, at its origin in ground's axes."""
        d = self.description
        inertia = np.array([full_inertia(x) for x in d.inertia]).reshape(-1, 3, 3)
        turned = r @ inertia @ r.transpose(0, 2, 1)
        arm = np.einsum("bij,bj->bi", r, d.com)
        centre = acceleration + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        force = d.mass[:, None] * (centre - d.gravity)
        spin = np.einsum("bij,bj->bi", turned, omega)
        moment = np.einsum("bij,bj->bi", turned, alpha) + np.cross(omega, spin) + np.cross(arm, force)
        return np.concatenate([force, moment], axis=1)

    def _pairs(self, state: Floats, drive: Floats) -> dict[int, dict[int, Floats]]:
        """The wrenches of the tree joints' drives on their two bodies, at the bodies' origins in ground's axes."""
        d, mech = self.description, self.mech
        x = mech.tree.coordinates
        found: dict[int, dict[int, Floats]] = {}
        for i, j in enumerate(mech.tree.topology.joint.tolist()):
            kind = d.kind_of(j)
            force = drive[int(x.v_at[i]) : int(x.v_at[i]) + kind.nv]
            if x.follows[i] or not kind.nv or not force.any():
                continue
            (ri, pi), (rj, pj) = joint_frames(d, state, j)
            terms = kind.terms_between(*between((ri, pi), (rj, pj)))
            held = np.asarray(kind.dual(terms, d.pitch[j]), float) @ force
            line, turn = rj @ held[:3], rj @ held[3:]
            found[j] = {}
            for body, sign in ((int(d.child[j]), 1.0), (int(d.parent[j]), -1.0)):
                arm = pj - (np.zeros(3) if body == GROUND else state[body, :3])
                found[j][body] = sign * np.concatenate([line, turn + np.cross(arm, line)])
        return found


def _turned(r: Floats, wrenches: Floats) -> Floats:
    """Wrenches in the bodies' axes, in ground's."""
    parts = np.einsum("bij,bkj->bki", r, wrenches.reshape(-1, 2, 3))
    return np.asarray(parts.reshape(-1, 6))


def reactions(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: Floats) -> Floats:
    """(..., nb + loops, 6) at states that forward dynamics moves on from."""
    from linkwright.results.bodies import body_motion

    a = mech.forward_dynamics(q, v, tau, t=t)
    shape = a.shape[:-1]
    rows = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v, a, tau)]
    time = np.array(np.broadcast_to(t, shape), dtype=np.float64).reshape(-1)
    reacting = mech._kept.setdefault("reactions", Reacting(mech))
    found = reacting.at(body_motion(mech.description, *rows[:3]), time, *rows)
    return np.asarray(found.joints.reshape(*shape, *found.joints.shape[1:]))
