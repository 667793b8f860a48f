"""The closed machine against Pinocchio: six open legs, each with a sixth of the plate, welded by 6-D constraints."""

from __future__ import annotations

import numpy as np
import pytest

from linkwright.control import LinkInertia
from linkwright.control.parallel.leg_kinematics import leg_motion
from linkwright.studies.manipulator.machine import SIX_LEG, leg_joints, machine, state

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle here")
GEOMETRY = SIX_LEG


def _inertia(link: LinkInertia, part: float = 1.0) -> pin.Inertia:
    return pin.Inertia(part * link.mass, np.array(link.com), part * np.diag(link.moments))


def _six_open_legs() -> tuple[pin.Model, list[str], list[pin.SE3]]:
    g = GEOMETRY
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -g.gravity])
    kinds = [pin.JointModelRZ, pin.JointModelRZ, pin.JointModelRY, pin.JointModelRZ, pin.JointModelRY, pin.JointModelRX]
    links = (g.crank_inertia, g.universal_inertia, g.rod_inertia, g.first_cross_inertia, g.second_cross_inertia)
    names, plates = [], []
    for leg in range(6):
        steps = [np.zeros(3), np.array([g.crank, 0, 0]), np.zeros(3), np.array([g.rod, 0, 0]), np.zeros(3), np.zeros(3)]
        parent = 0
        plate = pin.SE3(g.frames[leg].T, -g.frames[leg].T @ g.wrist_points[leg])  # the plate in the last link's axes
        for k, name in enumerate(leg_joints(leg + 1)):
            placement = pin.SE3(g.frames[leg], g.base_points[leg]) if k == 0 else pin.SE3(np.eye(3), steps[k])
            parent = model.addJoint(parent, kinds[k](), placement, name)
            body = _inertia(links[k]) if k < 5 else _inertia(g.plate_inertia, 1 / 6).se3Action(plate)
            model.appendBodyToJoint(parent, body, pin.SE3.Identity())
            names.append(name)
        plates.append(plate)
    return model, names, plates


@pytest.mark.parametrize("seed", range(3))
def test_accelerations_are_those_of_six_welded_legs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pose = GEOMETRY.home + np.r_[rng.uniform(-0.1, 0.1, 3), 0.0, rng.uniform(-0.1, 0.1, 3)]
    mech = machine(GEOMETRY)
    q, v, a = state(mech, GEOMETRY, pose, rng.normal(size=6), rng.normal(size=6))
    tau = mech.inverse_dynamics(q, v, a)
    tau[mech.actuated] += rng.normal(0.0, 50.0, 6)
    found = dict(zip((j.name for j in mech.joints), mech.forward_dynamics(q, v, tau), strict=True))

    model, names, plates = _six_open_legs()
    data = model.createData()
    angles, rates, _ = leg_motion(GEOMETRY, pose, mech.twist(q, v, "plate", "aligned"), None)
    at, speed = angles.reshape(-1), rates.reshape(-1)
    force = np.zeros(model.nv)
    force[::6] = tau[[mech.joints[f"crank{k}"].v_slice.start for k in range(1, 7)]]
    welds, held = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for leg in range(1, 6):
        ends = (6, plates[0], 6 * (leg + 1), plates[leg])
        welds.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, *ends, pin.LOCAL))
        held.append(welds[-1].createData())
    pin.initConstraintDynamics(model, data, welds, held)
    wanted = dict(zip(names, pin.constraintDynamics(model, data, at, speed, force, welds, held), strict=True))
    scale = max(abs(x) for x in wanted.values())
    assert max(abs(found[name] - wanted[name]) for name in found) < 1e-8 * scale
