"""Open mechanisms with a driver on every joint coordinate move as their tree of joints says."""

from dataclasses import replace

import numpy as np
import pytest
from linkages import matrices

import linkwright as lw
from linkwright.model.elements import Driver
from linkwright.model.expression import TIME
from linkwright.model.joint_kinds import KINDS

DRIVEN = ("revolute", "prismatic", "cylindrical", "universal", "planar", "screw", "fixed")
N = 9


def _driven_tree(seed, branching):
    """A random tree of all kinds that have coordinates of one number each, and its q(t) with two derivatives."""
    mech = lw.random_tree(N, seed, branching=branching, joints=DRIVEN)
    rng = np.random.default_rng(seed)
    d = mech.description
    drivers, rows, columns = [], [], []
    for j in range(d.nj):
        kind = KINDS[d.kind_of(j).name]
        for index in range(kind.nq):
            size = 1.0 if index in kind.angles else 0.2
            start, rate, swing, beat = rng.uniform(-0.6, 0.6) * size, rng.normal() * size, rng.normal() * size, 1.5
            law = start + rate * TIME + swing * np.sin(beat * TIME)
            drivers.append(Driver(f"{d.joint_names[j]} {index}", "joint", d.joint_names[j], law, None, index))
            rows.append((start, rate, swing, beat))
            columns.append(mech.joints[d.joint_names[j]].q_slice.start + index)
    start, rate, swing, beat = np.array(rows)[np.argsort(columns)].T

    def q(t, order=0):
        t = np.asarray(t)[..., None]
        if order == 0:
            return start + rate * t + swing * np.sin(beat * t)
        return rate + swing * beat * np.cos(beat * t)

    return lw.Mechanism(replace(d, drivers=tuple(drivers))), q


TREES = [pytest.param((0, 1.0), marks=pytest.mark.slow, id="chain"), pytest.param((0, 2.5), id="tree")]


@pytest.fixture(scope="module", params=TREES)
def case(request):
    mech, q = _driven_tree(*request.param)
    times = np.linspace(0.0, 6.0, 61)
    return mech, q, lw.analyse(mech, times=times)


def test_all_kinds_are_there(case):
    assert {x.kind for x in case[0].joints} >= {"cylindrical", "universal", "planar", "screw"}


def test_the_joints_follow_their_laws_through_any_number_of_turns(case):
    _, q, sol = case
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.q, q(sol.time), atol=1e-9)
    np.testing.assert_allclose(sol.v, q(sol.time, 1), atol=1e-9)


def test_the_bodies_are_where_the_tree_of_joints_puts_them(case):
    mech, q, sol = case
    for body in mech.bodies:
        pose = mech.pose(q(sol.time), body.name)
        np.testing.assert_allclose(sol.position(body.name), pose[:, :3, 3], atol=1e-10)
        np.testing.assert_allclose(matrices(sol.orientation(body.name)), pose[:, :3, :3], atol=1e-10)


def test_velocities_are_the_twists_of_the_tree(case):
    mech, q, sol = case
    for body in mech.bodies:
        twist = mech.twist(q(sol.time), q(sol.time, 1), body.name, "aligned")
        np.testing.assert_allclose(sol.velocity(body.name), twist[:, :3], atol=1e-9)
        np.testing.assert_allclose(sol.angular_velocity(body.name), twist[:, 3:], atol=1e-9)


def test_accelerations_are_the_rates_of_the_twists(case):
    mech, q, sol = case
    h = 1e-3
    weights = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * h)
    around = sol.time + h * np.array([-3, -2, -1, 1, 2, 3])[:, None]
    for body in mech.bodies:
        rate = np.tensordot(weights, mech.twist(q(around), q(around, 1), body.name, "aligned"), 1)
        np.testing.assert_allclose(sol.acceleration(body.name), rate[:, :3], atol=1e-7)
        np.testing.assert_allclose(sol.angular_acceleration(body.name), rate[:, 3:], atol=1e-7)


def test_a_driven_tree_has_no_freedom_and_no_redundant_equation(case):
    from linkages import kinematics

    mech, _, _ = case
    k = kinematics(mech)
    report = k.freedom(k.assemble(0.0, 1e-3), 0.0)
    assert (report.left, report.redundant, report.moving) == (0, (), ())
    assert report.equations == 6 * N
