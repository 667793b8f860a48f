"""Our states in MuJoCo's coordinates, for models that `write_mjcf` wrote."""

import numpy as np
import pytest

from linkwright.model.topology import span
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")


def in_mujoco(mech, model, data, q, v):
    """Set qpos and qvel; the map T with qvel = T v, and Ṫ v."""
    d, tree = mech.description, span(mech.description)
    joints = {j.name: j for j in mech.joints}
    t, rest = np.zeros((model.nv, mech.nv)), np.zeros(model.nv)
    for i, j in enumerate(tree.joint.tolist()):
        joint, kind, reverse = joints[d.joint_names[j]], d.kind_of(j), bool(tree.reverse[i])
        if not kind.nv:
            continue
        own, rate, columns = q[joint.q_slice], v[joint.v_slice], range(*joint.v_slice.indices(mech.nv))
        name = joint.name
        if kind.name == "free":
            assert not reverse
            r = euler_parameters_matrix(own[3:])
            if tree.parent[i] < 0:
                at, row = model.joint(name).qposadr[0], model.joint(name).dofadr[0]
                pose = mech.pose(q, d.body_names[int(tree.body[i])])
                data.qpos[at : at + 3], data.qpos[at + 3 : at + 7] = pose[:3, 3], euler_parameters(pose[:3, :3])
                # The origin of the body, which is not that of the triad.
                arm = -d.pj[j]
                turn = d.ri[j] @ r
                back = d.rj[j].T @ arm
                t[row : row + 3, columns[:3]] = turn
                t[row : row + 3, columns[3:]] = turn @ -_cross(back)
                t[row + 3 : row + 6, columns[3:]] = d.rj[j]
                speed = rate[:3] + np.cross(rate[3:], back)
                rest[row : row + 3] = turn @ np.cross(rate[3:], speed)
            else:
                rows = [model.joint(f"{name}_{k}").dofadr[0] for k in range(3)]
                data.qpos[[model.joint(f"{name}_{k}").qposadr[0] for k in range(3)]] = own[:3]
                at, row = model.joint(f"{name}_3").qposadr[0], model.joint(f"{name}_3").dofadr[0]
                data.qpos[at : at + 4] = euler_parameters(d.rj[j] @ r @ d.rj[j].T)
                t[np.ix_(rows, columns[:3])] = r
                t[row : row + 3, columns[3:]] = d.rj[j]
                rest[rows] = r @ np.cross(rate[3:], rate[:3])
        elif kind.name == "spherical":
            at, row = model.joint(name).qposadr[0], model.joint(name).dofadr[0]
            r = euler_parameters_matrix(own)
            turn, map_ = (
                (d.rj[j] @ r @ d.rj[j].T, d.rj[j]) if not reverse else (d.ri[j] @ r.T @ d.ri[j].T, -d.ri[j] @ r)
            )
            data.qpos[at : at + 4] = euler_parameters(turn)
            t[row : row + 3, columns] = map_
        else:
            for k, column in enumerate(columns):
                part = name if kind.nv == 1 else f"{name}_{k}"
                data.qpos[model.joint(part).qposadr[0]] = own[k]
                t[model.joint(part).dofadr[0], column] = 1.0
            if kind.name == "screw":
                data.qpos[model.joint(f"{name}_shift").qposadr[0]] = own[0] * d.pitch[j]
                t[model.joint(f"{name}_shift").dofadr[0], columns[0]] = d.pitch[j]
    data.qvel[:] = t @ v
    mujoco.mj_forward(model, data)
    return t, rest


def _cross(x):
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def mass_matrix(model, data):
    """Column by column, by a call that all versions of MuJoCo have alike."""
    full = np.zeros((model.nv, model.nv))
    for column, unit in zip(full, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    return full
