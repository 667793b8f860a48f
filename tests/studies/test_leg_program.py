"""A leg's parts against numbers from elsewhere: differences in time, the mechanism's recursions, virtual work."""

from dataclasses import replace

import numpy as np
import pytest
from plates import chain_torques, plates

from linkwright.control import LinkInertia
from linkwright.control.parallel import legs
from linkwright.control.parallel.forward_kinematics import moved
from linkwright.control.parallel.leg_kinematics import (
    leg_counts,
    leg_jacobians,
    leg_motion,
    legs_at,
    part_programs,
    unified_program,
)
from linkwright.spatial.rotation import euler_parameters_matrix
from linkwright.studies.manipulator.machine import SIX_LEG, machine

GEOMETRY = SIX_LEG
LOPSIDED = replace(
    SIX_LEG,
    crank_inertia=LinkInertia(6.9, (0.25, 0.03, -0.02), (0.02, 0.15, 0.14)),
    universal_inertia=LinkInertia(3.8, (0.01, -0.02, 0.03), (0.010, 0.005, 0.012)),
    rod_inertia=LinkInertia(8.3, (0.43, 0.02, 0.05), (0.02, 0.52, 0.51)),
    first_cross_inertia=LinkInertia(5.1, (-0.02, 0.01, 0.02), (0.02, 0.006, 0.017)),
    second_cross_inertia=LinkInertia(3.8, (0.02, 0.03, -0.01), (0.015, 0.009, 0.013)),
    plate_inertia=LinkInertia(30.0, (0.02, -0.03, 0.04), (1.14, 1.2, 2.28)),
)


def one_leg(geometry, leg, plate):
    turn = euler_parameters_matrix(plate.pose[3:])
    at, _ = legs.posture(geometry, leg, plate.pose[:3], turn)
    rates = legs.joint_rates(geometry, leg, at, plate.twist[:3], plate.twist[3:])
    a = plate.acceleration
    return turn, at, rates, legs.joint_accelerations(geometry, leg, at, rates, plate.twist[3:], a[:3], a[3:])


def test_rates_are_those_of_the_legs_jacobians():
    for plate in plates(GEOMETRY, 20):
        jacobians = leg_jacobians(GEOMETRY, legs_at(GEOMETRY, plate.pose), plate.pose[:3])
        rates = leg_motion(GEOMETRY, plate.pose, plate.twist, None)[1]
        np.testing.assert_allclose(np.einsum("lij,lj->li", jacobians, rates), np.tile(plate.twist, (6, 1)), atol=1e-12)


def test_angles_rates_and_accelerations_of_one_leg_are_those_over_arrays():
    for plate in plates(GEOMETRY, 20):
        wanted = leg_motion(GEOMETRY, plate.pose, plate.twist, plate.acceleration)
        for k, leg in enumerate(legs.every_leg(GEOMETRY)):
            turn, at, rates, rise = one_leg(GEOMETRY, leg, plate)
            found = (legs.joint_angles(leg, at, turn), rates.joints(), rise.joints())
            for ours, theirs in zip(found, wanted, strict=True):
                np.testing.assert_allclose(np.array(ours, float), theirs[k], rtol=1e-11, atol=1e-12)


def test_rates_and_accelerations_are_the_slopes_of_the_angles():
    plate, step = plates(GEOMETRY, 1, seed=3)[0], 1e-4
    leg = legs.every_leg(GEOMETRY)[2]
    angles = []
    for t in (-step, 0.0, step):
        v, a = plate.twist, plate.acceleration
        pose = moved(plate.pose, t * v[:3] + 0.5 * t * t * a[:3], t * v[3:] + 0.5 * t * t * a[3:])
        turn = euler_parameters_matrix(np.array(pose[3:]))
        angles.append(np.array(legs.joint_angles(leg, legs.posture(GEOMETRY, leg, pose[:3], turn)[0], turn), float))
    _, _, rates, rise = one_leg(GEOMETRY, leg, plate)
    np.testing.assert_allclose((angles[2] - angles[0]) / (2 * step), np.array(rates.joints(), float), atol=1e-5)
    bend = (angles[2] - 2 * angles[1] + angles[0]) / step**2
    np.testing.assert_allclose(bend, np.array(rise.joints(), float), atol=1e-4)


def whole(geometry, plate, holder=None):
    """τ_A by NumPy from the legs' parts; the plate as a wrench of its own, or as the last link of leg `holder`."""
    total, rows = np.zeros(6), []
    turn = euler_parameters_matrix(plate.pose[3:])
    w, dw = turn.T @ plate.twist[3:], turn.T @ plate.acceleration[3:]
    a = turn.T @ (plate.acceleration[:3] + np.array([0.0, 0.0, geometry.gravity]))
    wrench = [turn @ np.array(x, float) for x in legs.link_wrench(geometry.plate_inertia, w, dw, a)]
    for k, leg in enumerate(legs.every_leg(geometry)):
        _, at, rates, rise = one_leg(geometry, leg, plate)
        tau = np.array(legs.newton_euler(geometry, at, rates, rise), float)
        if k == holder:
            tau = tau + leg_jacobian(geometry, leg, at).T @ np.concatenate(wrench)
        total += np.concatenate(legs.share(geometry, leg, at, legs.Forces(*tau))).astype(float)
        row, driven = legs.row(geometry, leg, at)
        rows.append(np.array(row, float) / driven)
    if holder is None:
        total += np.concatenate(wrench)
    return np.linalg.solve(np.array(rows).T, total)


def leg_jacobian(geometry, leg, at):
    """The plate's twist for unit rates of each of the leg's joints, by solving for the rates of unit twists."""
    rates = [legs.joint_rates(geometry, leg, at, u[:3], u[3:]).joints() for u in np.eye(6)]
    return np.linalg.inv(np.array(rates, float).T)


@pytest.mark.parametrize("geometry", [GEOMETRY, LOPSIDED], ids=["as in the paper", "lopsided"])
def test_torques_are_those_of_the_whole_closed_chain(geometry):
    some = plates(geometry, 10, seed=1)
    for plate, wanted in zip(some, chain_torques(machine(geometry), geometry, some), strict=True):
        np.testing.assert_allclose(whole(geometry, plate), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def test_it_does_not_matter_which_leg_holds_the_plate():
    plate = plates(GEOMETRY, 1, seed=2)[0]
    alone = whole(GEOMETRY, plate)
    for holder in range(6):
        np.testing.assert_allclose(whole(GEOMETRY, plate, holder), alone, rtol=1e-10)


def test_the_margin_of_reach_is_the_way_to_where_crank_and_rod_are_in_line():
    crank, rod = GEOMETRY.crank, GEOMETRY.rod
    for p, wanted in [
        ((1.0, 0.0, 0.0), crank + rod - 1.0),
        ((0.0, 0.5, 0.0), 0.5 - (rod - crank)),
        ((crank + rod + 0.01, 0.0, 0.0), -0.01),
        ((0.5, 0.0, rod + 0.02), -0.02),
    ]:
        assert np.isclose(float(legs.reach_margin(GEOMETRY, np.array(p))), wanted)


def test_one_program_takes_fewer_operations_than_its_parts_and_gives_the_same():
    counts = leg_counts(GEOMETRY)
    assert counts["one program"] < counts["one program with angles"] < counts["sum of the parts"]
    parts, plate = part_programs(GEOMETRY), plates(GEOMETRY, 1)[0]
    turn, table = euler_parameters_matrix(plate.pose[3:]), np.ascontiguousarray(legs.leg_table(GEOMETRY)[:, 4])
    v, w, a, dw = np.concatenate([plate.twist, plate.acceleration]).reshape(4, 3)
    one = unified_program(GEOMETRY, angles=True)(table, plate.pose[:3].copy(), turn, v, w, a, dw)
    q = parts["inverse kinematics"](table, plate.pose[:3].copy(), turn)
    qd, qdd = parts["rates and accelerations"](table, turn, v, w, a, dw, q)
    tau = parts["Newton–Euler"](q, qd, qdd)
    share, row = parts["Jacobian and its share"](table, turn, q, tau)
    for ours, theirs in zip(one, (share, row, q, qd, qdd, tau), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)
