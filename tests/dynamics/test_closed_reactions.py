"""Reactions of closed mechanisms: Newton and Euler hold for every body, and redundant ones are of least norm."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, four_bar, state
from linkwright.dynamics.closed.redundancy import constraint_jacobian
from linkwright.dynamics.joint_reactions import exerted


@pytest.mark.parametrize("name", ["four-bar", "driven four-bar", "rssr", "platform"])
def test_every_body_obeys_newton_and_euler(name: str) -> None:
    """Momenta of single bodies, by differences in time along the motion, against all wrenches on them."""
    mech = MECHANISMS[name]()
    t = 0.1
    q, v = state(mech, t)
    rng = np.random.default_rng(0)
    tau = rng.normal(size=mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    wrenches = mech.reactions(q, v, tau, t=t)
    d = mech.description
    total = {b: np.zeros(6) for b in range(d.nb)}
    names = [joint.name for joint in mech.joints] + list(mech.loops)
    poses = {b: mech.pose(q, d.body_names[b]) for b in total}
    for joint, wrench in zip(names, wrenches, strict=True):
        j = d.joint_names.position("joint", joint)
        own = int(d.child[j])
        other = int(d.parent[j])
        if joint in [x.name for x in mech.joints]:
            carried = d.body_names.position("body", mech.bodies[names.index(joint)].name)
            own, other = carried, other if carried == own else own
        force, moment = poses[own][:3, :3] @ wrench[:3], poses[own][:3, :3] @ wrench[3:]
        moment = moment + np.cross(poses[own][:3, 3], force)  # about ground's origin
        for body, sign in ((own, 1.0), (other, -1.0)):
            if body >= 0:
                total[body] += sign * np.concatenate([force, moment])

    def momenta(h: float) -> dict[int, np.ndarray]:
        q_h = mech.integrate(q, h * v + 0.5 * h * h * a)
        v_h = v + h * a
        found = {}
        for b in total:
            pose, twist = mech.pose(q_h, d.body_names[b]), mech.twist(q_h, v_h, d.body_names[b], "aligned")
            r, omega = pose[:3, :3], twist[3:]
            arm = r @ d.com[b]
            p = d.mass[b] * (twist[:3] + np.cross(omega, arm))
            xx, yy, zz, xy, xz, yz = d.inertia[b]
            inertia = r @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ r.T
            found[b] = np.concatenate([p, inertia @ omega + np.cross(pose[:3, 3] + arm, p)])
        return found

    h = 1e-5
    ahead, behind = momenta(h), momenta(-h)
    for b in total:
        weight = d.mass[b] * d.gravity
        centre = poses[b][:3, 3] + poses[b][:3, :3] @ d.com[b]
        wanted = (ahead[b] - behind[b]) / (2 * h) - np.concatenate([weight, np.cross(centre, weight)])
        assert total[b] == pytest.approx(wanted, abs=2e-6 * max(1.0, np.abs(wanted).max()))


def test_trees_and_their_closed_twins_agree() -> None:
    """A tree of which one joint is told by a redundant twin of it has the tree's reactions, shared by the two."""
    with lw.Builder("arm") as b:
        upper, lower = (b.body(n, 1.0, (0.4, 0.1, 0), (0.1, 0.2, 0.2)) for n in ("upper", "lower"))
        b.joint("revolute", b.ground, upper, "A", axis=(0, 1, 0))
        b.joint("revolute", upper, lower, "B", axis=(0, 1, 0), at=(1, 0, 0))
    tree = b.build()
    h = {"h": (0.0, 1.0, 0.0)}
    b.joint("revolute", b.triad(upper, (1, 0, 0), **h), b.triad(lower, **h), "B again", cut=True)
    twin = b.build()
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, 2))
    alone, shared = tree.reactions(q, v, tau), twin.reactions(q, v, tau)
    assert shared[0] == pytest.approx(alone[0], abs=1e-9)
    assert shared[1] + shared[2] == pytest.approx(alone[1], abs=1e-9)
    drive = np.array([0, 0, 0, 0, tau[1], 0])
    assert shared[1] - drive == pytest.approx(shared[2], abs=1e-9)


def test_drivers_power_is_their_multiplier_times_their_rate() -> None:
    mech = four_bar(drive=True)
    t = 0.3
    q, v = state(mech, t)
    tau = np.zeros(mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    h = 1e-5

    def energy(s: float) -> float:
        there = mech.integrate(q, s * v + 0.5 * s * s * a)
        return float(mech.kinetic_energy(there, v + s * a) + mech.potential_energy(there))

    phi_t = constraint_jacobian(mech, q, t)[1]
    power = -mech.constraint_forces(q, v, tau, t=t) @ phi_t
    assert abs(power) > 0.01
    assert (energy(h) - energy(-h)) / (2 * h) == pytest.approx(power, rel=1e-7)


@pytest.mark.compiled
def test_reactions_come_in_batches() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (3, 1)), np.random.default_rng(1).normal(size=(3, 3)))
    tau = np.zeros((3, 3))
    many = mech.reactions(q, v, tau)
    assert many.shape == (3, 4, 6)
    assert many[2] == pytest.approx(mech.reactions(q[2], v[2], tau[2]), abs=1e-12)


def test_a_state_that_is_not_finite_has_no_reactions_and_spoils_no_other() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (3, 1)), np.random.default_rng(0).normal(size=(3, 3)))
    tau = np.ones(3)
    right = mech.reactions(q, v, tau)
    q[1, 0] = np.nan
    found = mech.reactions(q, v, tau)
    assert np.isnan(found[1]).all()
    assert found[[0, 2]] == pytest.approx(right[[0, 2]], abs=1e-12)
    assert np.isnan(mech.reactions(q[1], v[1], tau)).all()


@pytest.mark.parametrize("name", ["slider with rod", "driven four-bar", "pen on line", "driven arm"])
def test_ties_and_drivers_exert_their_multipliers_where_these_are_the_only_ones(name: str) -> None:
    mech = MECHANISMS[name]()
    t = 0.1
    q, v = state(mech, t)
    tau = np.random.default_rng(2).normal(size=mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    _, others = exerted(mech, q[None], v[None], a[None], tau[None], np.array([t]))
    named = dict(zip(mech.constraints, mech.constraint_forces(q, v, tau, t=t), strict=True))
    assert others
    for (group, element), found in others.items():
        wanted = [x for about, x in named.items() if about.startswith(f"{group} {element!r}")]
        assert found[0] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
