"""Spatial loops of many kinds, anywhere: the analysis agrees with the tree of joints at the coordinates it returns."""

import numpy as np
import pytest
from linkages import matrices

import linkwright as lw
from linkwright.model.expression import TIME
from linkwright.model.joint_kinds import KINDS

LOOPS = [
    ("revolute", "spherical", "universal", "prismatic"),
    ("screw", "universal", "spherical", "cylindrical"),
    pytest.param(("revolute", "cylindrical", "cylindrical", "cylindrical"), marks=pytest.mark.slow),
    pytest.param(("prismatic", "spherical", "universal", "cylindrical"), marks=pytest.mark.slow),
    pytest.param(("revolute", "planar", "spherical", "prismatic"), marks=pytest.mark.slow),
    pytest.param(("cylindrical", "planar", "cylindrical", "revolute"), marks=pytest.mark.slow),
]


def _rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def _loop(kinds, seed):
    """Three bodies anywhere between ground and ground, on joints anywhere; the first joint is driven."""
    rng = np.random.default_rng(seed)
    poses = [(np.eye(3), np.zeros(3)), *((_rotation(rng), rng.normal(size=3)) for _ in range(3))]
    with lw.Builder("loop") as b:
        bodies = [b.ground, *(b.body(f"body{k}") for k in range(3))]
        for body, (r, p) in zip(bodies[1:], poses[1:], strict=True):
            b.place(body, p, rotation=r)
        for k, name in enumerate(kinds):
            kind = KINDS[name]
            turn = np.asarray(kind.rotation(kind.terms(kind.neutral(), 0.1)).matrix(), float)
            axes, at = _rotation(rng), 0.7 * rng.normal(size=3)
            (ri, pi), (rj, pj) = poses[k], poses[(k + 1) % 4]
            first = b.frame(bodies[k], ri.T @ axes, ri.T @ (at - pi))
            second = b.frame(bodies[(k + 1) % 4], rj.T @ axes @ turn, rj.T @ (at - pj))
            b.joint(name, first, second, f"joint{k}", pitch=0.1 if name == "screw" else 0.0)
        b.driver("joint", "joint0", 0.4 * np.sin(TIME))
    return b.build()


@pytest.mark.parametrize("kinds", LOOPS, ids=" ".join)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_loop_moves_as_its_tree_of_joints_says(kinds, seed):
    mech = _loop(kinds, seed)
    sol = lw.analyse(mech, times=np.linspace(0.0, 3.0, 31))
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.joint("joint0")[:, 0], 0.4 * np.sin(sol.time), atol=1e-9)
    for body in mech.bodies:
        pose, twist = mech.pose(sol.q, body.name), mech.twist(sol.q, sol.v, body.name, "aligned")
        np.testing.assert_allclose(sol.position(body.name), pose[:, :3, 3], atol=1e-9)
        np.testing.assert_allclose(matrices(sol.orientation(body.name)), pose[:, :3, :3], atol=1e-9)
        np.testing.assert_allclose(sol.velocity(body.name), twist[:, :3], atol=1e-8)
        np.testing.assert_allclose(sol.angular_velocity(body.name), twist[:, 3:], atol=1e-8)


@pytest.mark.parametrize("kinds", LOOPS, ids=" ".join)
def test_the_cut_joint_of_a_loop_stays_closed(kinds):
    mech = _loop(kinds, 3)
    sol = lw.analyse(mech, times=np.linspace(0.0, 3.0, 31))
    (name,) = mech.loops
    d = mech.description
    j = d.joint_names.position("joint", name)
    frames = []
    for body, r, p in ((int(d.parent[j]), d.ri[j], d.pi[j]), (int(d.child[j]), d.rj[j], d.pj[j])):
        pose = np.broadcast_to(np.eye(4), (len(sol), 4, 4)) if body < 0 else mech.pose(sol.q, d.body_names[body])
        frames.append((pose[:, :3, :3] @ r, pose[:, :3, 3] + pose[:, :3, :3] @ p))
    (ri, pi), (rj, pj) = frames
    for k in range(len(sol)):
        gap = KINDS[d.kind_of(j).name].gap(ri[k].T @ rj[k], ri[k].T @ (pj[k] - pi[k]))
        if d.kind_of(j).name != "screw":
            np.testing.assert_allclose(gap, 0.0, atol=1e-9)
