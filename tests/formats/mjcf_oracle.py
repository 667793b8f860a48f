"""A mechanism against MuJoCo's own reading of the same MJCF: mass matrix, bias with passive forces, accelerations."""

from typing import Any

import numpy as np
import pytest

import linkwright as lw

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")

FRICTION_SPEED = 0.01


class Oracle:
    """MuJoCo's model without contacts, limits, equalities, fluid and, unless wanted, actuators."""

    def __init__(self, model: Any, mech: lw.Mechanism, *, actuators: bool = False) -> None:
        self.m, self.mech = model, mech
        off = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        if not actuators:
            off |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        model.opt.disableflags |= int(off)
        model.opt.density = model.opt.viscosity = 0.0
        self.d = mujoco.MjData(model)
        names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) or f"joint{k}" for k in range(model.njnt)]
        self.joints = [mech.joints[name] for name in names]

    def random_state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A state in MuJoCo's coordinates, about where the file draws the model."""
        q = self.m.qpos0.copy()
        v = rng.normal(size=self.m.nv)
        mujoco.mj_integratePos(self.m, q, rng.uniform(-1.0, 1.0, self.m.nv), 1.0)
        return q, v

    def mapped(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Our q and v; T of v = T v', and Ṫ v'."""
        ours, turn, change = self.mech.neutral(), np.zeros((self.m.nv, self.m.nv)), np.zeros(self.m.nv)
        for k, joint in enumerate(self.joints):
            at, vat = self.m.jnt_qposadr[k], self.m.jnt_dofadr[k]
            nq, nv = joint.q_slice.stop - joint.q_slice.start, joint.v_slice.stop - joint.v_slice.start
            ours[joint.q_slice] = q[at : at + nq]
            block = np.eye(nv)
            if joint.kind == "free":
                r = np.zeros(9)
                mujoco.mju_quat2Mat(r, q[at + 3 : at + 7])
                r = r.reshape(3, 3)
                block[:3, :3] = r.T
                change[joint.v_slice][:3] = -np.cross(v[vat + 3 : vat + 6], r.T @ v[vat : vat + 3])
            turn[joint.v_slice, vat : vat + nv] = block
        return ours, turn @ v, turn, change

    def errors(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> dict[str, float]:
        """How far M, h and a are off, as a part of their sizes; and the place of the last body."""
        m, d, mech = self.m, self.d, self.mech
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(m, d)
        mass = np.zeros((m.nv, m.nv))
        for column, unit in zip(mass, np.eye(m.nv), strict=True):
            mujoco.mj_mulM(m, d, column, unit)
        rubbing = -m.dof_frictionloss * np.tanh(v / FRICTION_SPEED)
        bias = d.qfrc_bias - d.qfrc_passive - d.qfrc_actuator - rubbing
        ours, rates, turn, change = self.mapped(q, v)
        big, h = mech.mass_matrix(ours), mech.bias_forces(ours, rates)
        back = np.linalg.inv(turn)
        a = back @ (mech.forward_dynamics(ours, rates, back.T @ tau) - change)
        want = np.linalg.solve(mass, tau - bias)
        last = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_BODY, m.nbody - 1) or f"body{m.nbody - 1}"
        pose = mech.pose(ours, last)
        far = np.abs(np.concatenate([pose[:3, 3] - d.xpos[-1], (pose[:3, :3] - d.xmat[-1].reshape(3, 3)).reshape(-1)]))
        return {
            "mass matrix": _off(turn.T @ big @ turn, mass),
            "bias": _off(turn.T @ (big @ change + h), bias),
            "acceleration": _off(a, want),
            "place": float(far.max()),
        }


def _off(given: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(given - wanted).max(initial=0.0) / max(1.0, np.abs(wanted).max(initial=0.0)))
