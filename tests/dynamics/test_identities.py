"""Identities that hold for every joint kind, on random trees: no other library has all of these kinds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from complex_step import inverse_dynamics_jacobians
from linkwright.kernels.interpret.interpreter import run
from linkwright.model.joint_kinds import KINDS
from robots import relative

MOVING = [kind for kind in KINDS if kind != "fixed"]
seeds = pytest.mark.parametrize("seed", range(4))
floating = pytest.mark.parametrize("floating", [False, True])


def numbers(mech: lw.Mechanism, function: str, *arrays: np.ndarray, **options: object) -> np.ndarray:
    """A method's program by NumPy over a batch."""
    program = mech.program(function, **options)
    batch = len(arrays[0])
    (flat, *_) = run(program, arrays, batch)
    return flat.reshape(batch, *program.outputs[0].shape)


def states(mech: lw.Mechanism, seed: int, batch: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    start = np.tile(mech.neutral(), (batch, 1))
    q = numbers(mech, "integrate", start, rng.standard_normal((batch, mech.nv)))
    v, tau = rng.standard_normal((2, batch, mech.nv))
    return q, v, tau


@seeds
@floating
@pytest.mark.parametrize("form", ["unrolled", "rolled"])
def test_inverse_dynamics_undoes_forward_dynamics_under_wrenches(seed: int, floating: bool, form: str) -> None:
    mech = lw.random_tree(10, seed, floating=floating)
    q, v, tau = states(mech, seed)
    wrenches = np.random.default_rng(seed).standard_normal((3, mech.nb, 6))
    a = numbers(mech, "forward_dynamics", q, v, tau, wrenches, wrenches=True, form=form)
    back = numbers(mech, "inverse_dynamics", q, v, a, wrenches, wrenches=True, form=form)
    assert relative(back, tau) < 1e-10


@pytest.mark.parametrize("kind", MOVING)
def test_a_chain_of_one_kind_solves_its_equations_of_motion(kind: str) -> None:
    mech = lw.random_tree(5, 3, branching=1, joints=[kind])
    q, v, tau = states(mech, 5)
    a = numbers(mech, "forward_dynamics", q, v, tau)
    m, h = numbers(mech, "mass_matrix", q), numbers(mech, "bias_forces", q, v)
    assert relative(np.einsum("bij,bj->bi", m, a) + h, tau) < 1e-10
    assert np.all(np.linalg.eigvalsh(m) > 0)


@seeds
def test_articulated_bodies_and_the_mass_matrix_agree(seed: int) -> None:
    mech = lw.random_tree(10, seed, floating=True)
    q, v, tau = states(mech, seed)
    a = numbers(mech, "forward_dynamics", q, v, tau)
    assert relative(a, numbers(mech, "forward_dynamics", q, v, tau, method="mass-matrix")) < 1e-10


@seeds
def test_rolled_programs_give_what_unrolled_ones_give(seed: int) -> None:
    mech = lw.random_tree(14, seed, floating=bool(seed % 2))
    q, v, tau = states(mech, seed)
    frame = mech.bodies[13].name
    questions = {
        "forward_dynamics": ((q, v, tau), {}),
        "inverse_dynamics": ((q, v, tau), {}),
        "bias_forces": ((q, v), {}),
        "gravity_forces": ((q,), {}),
        "mass_matrix": ((q,), {}),
        "kinetic_energy": ((q, v), {}),
        "potential_energy": ((q,), {}),
        "center_of_mass": ((q,), {}),
        "momentum": ((q, v), {}),
        "integrate": ((q, v), {}),
        "difference": ((q, numbers(mech, "integrate", q, 0.1 * v)), {}),
        "pose": ((q,), {"frame": frame}),
        "twist": ((q, v), {"frame": frame, "reference": "world"}),
    }
    for function, (arrays, options) in questions.items():
        rolled = numbers(mech, function, *arrays, form="rolled", **options)
        assert relative(rolled, numbers(mech, function, *arrays, form="unrolled", **options)) < 1e-11, function


@seeds
def test_kinetic_energy_is_half_v_m_v(seed: int) -> None:
    mech = lw.random_tree(10, seed)
    q, v, _ = states(mech, seed)
    m = numbers(mech, "mass_matrix", q)
    assert relative(numbers(mech, "kinetic_energy", q, v), 0.5 * np.einsum("bi,bij,bj->b", v, m, v)) < 1e-12


@seeds
def test_power_is_the_rate_of_energy(seed: int) -> None:
    """d(T + V)/dt = tau·v along the motion, by complex step through the recorded energies."""
    mech = lw.random_tree(8, seed)
    q, v, tau = states(mech, seed, batch=1)
    a = numbers(mech, "forward_dynamics", q, v, tau)[0]
    moved = numbers(mech, "rate", q, v)[0]
    step = 1e-30
    kinetic = mech.program("kinetic_energy").blocks[0].evaluate([*(q[0] + 1j * step * moved), *(v[0] + 1j * step * a)])
    potential = mech.program("potential_energy").blocks[0].evaluate([*(q[0] + 1j * step * moved)])
    power = (kinetic[0].imag + np.imag(potential[0])) / step
    assert power == pytest.approx(tau[0] @ v[0], rel=1e-9)


@seeds
def test_mass_matrix_rate_less_twice_christoffel_matrix_is_skew(seed: int) -> None:
    """Ṁ − 2C with C from Christoffel symbols, and C v is the velocity part of the bias (coordinates with q̇ = v)."""
    mech = lw.random_tree(6, seed, joints=["revolute", "prismatic", "cylindrical", "screw", "universal", "planar"])
    q, v, _ = states(mech, seed, batch=1)
    n, step = mech.nv, 1e-30
    block = mech.program("mass_matrix").blocks[0]
    dm = np.empty((n, n, n))  # ∂M_ij/∂q_k
    for k in range(n):
        moved = q[0] + 1j * step * np.eye(n)[k]
        dm[:, :, k] = np.imag(np.array(block.evaluate(list(moved)), dtype=complex)).reshape(n, n) / step
    c = 0.5 * (np.einsum("ijk,k->ij", dm, v[0]) + np.einsum("ikj,k->ij", dm, v[0]) - np.einsum("jki,k->ij", dm, v[0]))
    skew = np.einsum("ijk,k->ij", dm, v[0]) - 2 * c
    assert relative(skew + skew.T + 1.0, np.ones((n, n))) < 1e-9
    bias = numbers(mech, "bias_forces", q, v)[0] - numbers(mech, "gravity_forces", q)[0]
    assert relative(c @ v[0], bias) < 1e-9


@seeds
def test_twist_is_jacobian_times_rates_and_the_rate_of_the_pose(seed: int) -> None:
    mech = lw.random_tree(9, seed)
    q, v, _ = states(mech, seed, batch=1)
    frame = mech.bodies[8].name
    for reference in ("body", "world", "aligned"):
        jacobian = numbers(mech, "jacobian", q, frame=frame, reference=reference)[0]
        twist = numbers(mech, "twist", q, v, frame=frame, reference=reference)[0]
        assert relative(jacobian @ v[0], twist) < 1e-12
    moved = numbers(mech, "rate", q, v)[0]
    pose = mech.program("pose", frame=frame).blocks[0].evaluate(list(q[0] + 1e-30j * moved))
    rate = np.imag(np.array(pose, dtype=complex)).reshape(4, 4) / 1e-30
    aligned = numbers(mech, "twist", q, v, frame=frame, reference="aligned")[0]
    assert relative(rate[:3, 3], aligned[:3]) < 1e-12
    rotation = numbers(mech, "pose", q, frame=frame)[0, :3, :3]
    spin = rate[:3, :3] @ rotation.T
    assert np.abs(spin + spin.T).max() < 1e-12
    assert relative(np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), aligned[3:]) < 1e-12


@seeds
def test_momentum_is_the_mass_times_the_rate_of_its_centre(seed: int) -> None:
    mech = lw.random_tree(8, seed)
    q, v, _ = states(mech, seed, batch=1)
    moved = numbers(mech, "rate", q, v)[0]
    center = mech.program("center_of_mass").blocks[0].evaluate(list(q[0] + 1e-30j * moved))
    rate = np.imag(np.array(center, dtype=complex)) / 1e-30
    mass = mech.description.mass.sum()
    assert relative(mass * rate, numbers(mech, "momentum", q, v)[0, :3]) < 1e-12


@seeds
@pytest.mark.parametrize("steady", [True, False])
def test_derivatives_are_those_of_the_complex_step(seed: int, steady: bool) -> None:
    kinds = ["revolute", "prismatic", "cylindrical", "screw", "spherical", "free", "fixed"] if steady else None
    mech = lw.random_tree(7, seed, joints=kinds)
    q, v, a = states(mech, seed, batch=1)
    n = mech.nv
    dq, dv, m = (y.reshape(n, n) for y in run(mech.program("inverse_dynamics_derivatives"), (q, v, a), 1))
    expected_q, expected_v = inverse_dynamics_jacobians(mech, q[0], v[0], a[0])
    assert relative(dq, expected_q) < 1e-10
    assert relative(dv, expected_v) < 1e-10
    assert relative(m, numbers(mech, "mass_matrix", q)[0]) < 1e-12


@seeds
def test_reactions_balance_each_body(seed: int) -> None:
    """The joint's wrench along its freedom is the drive's force."""
    mech = lw.random_tree(8, seed, joints=["revolute", "prismatic", "cylindrical"])
    q, v, tau = states(mech, seed, batch=1)
    wrenches = numbers(mech, "reactions", q, v, tau, method="articulated-body")[0]
    d = mech.description
    for k, joint in enumerate(mech.joints):
        j = d.joint_names.position("joint", joint.name)
        r, p = d.rj[j], d.pj[j]
        force = r.T @ wrenches[k, :3]
        moment = r.T @ (wrenches[k, 3:] - np.cross(p, wrenches[k, :3]))
        along = {"revolute": [moment[2]], "prismatic": [force[2]], "cylindrical": [moment[2], force[2]]}[joint.kind]
        assert relative(np.array(along), tau[0, joint.v_slice]) < 1e-9


def test_a_free_body_falls_with_gravity() -> None:
    mech = lw.random_tree(1, 0, joints=["free"])
    q, v, _ = states(mech, 1, batch=1)
    a = numbers(mech, "forward_dynamics", q, 0 * v, 0 * v)[0]
    com, pose = mech.bodies[0].com, numbers(mech, "pose", q, frame=mech.bodies[0].name)[0]
    # The joint's frames are not the body's: compare where it matters, at the centre of mass in ground.
    jacobian = numbers(mech, "jacobian", q, frame=mech.bodies[0].name, reference="aligned")[0]
    origin = jacobian @ a
    at_com = origin[:3] + np.cross(origin[3:], pose[:3, :3] @ com)
    assert relative(at_com, mech.gravity) < 1e-10
    assert np.abs(origin[3:]).max() < 1e-10


def test_a_pendulum_swings_as_the_textbook_says() -> None:
    length, mass = 0.7, 1.3
    with lw.Builder("pendulum") as b:
        bob = b.body("bob", mass=mass, com=(0, 0, -length), inertia=(0, 0, 0))
        b.joint("revolute", b.ground, bob, name="pivot", axis=(0, 1, 0))
    mech = b.build()
    angle = np.array([[0.3], [-1.2]])
    a = numbers(mech, "forward_dynamics", angle, 0 * angle, 0 * angle)
    assert relative(a, -9.81 / length * np.sin(angle)) < 1e-12


def turned_round(mech: lw.Mechanism, joints: range) -> lw.Mechanism:
    """The same mechanism with these joints described from their other side, their coordinates' sense with them."""
    d = mech.description
    arrays = {name: np.array(getattr(d, name)) for name in ("parent", "child", "ri", "rj", "pi", "pj")}
    for j in joints:
        for a, b in (("parent", "child"), ("ri", "rj"), ("pi", "pj")):
            arrays[a][j], arrays[b][j] = arrays[b][j].copy(), arrays[a][j].copy()
    return lw.Mechanism(replace(d, **arrays))


@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize("form", ["unrolled", "rolled"])
def test_joints_described_from_their_far_side_keep_the_identities(kind: str, form: str) -> None:
    mech = turned_round(lw.random_tree(5, 8, joints=[kind]), range(1, 5, 2))
    q, v, tau = states(mech, 8)
    a = numbers(mech, "forward_dynamics", q, v, tau, form=form)
    m, h = numbers(mech, "mass_matrix", q, form=form), numbers(mech, "bias_forces", q, v, form=form)
    assert relative(np.einsum("bij,bj->bi", m, a) + h, tau) < 1e-10
    assert relative(numbers(mech, "inverse_dynamics", q, v, a, form=form), tau) < 1e-10
    frame = mech.bodies[4].name
    jacobian = numbers(mech, "jacobian", q, frame=frame, reference="world")
    twist = numbers(mech, "twist", q, v, frame=frame, reference="world")
    assert relative(np.einsum("bij,bj->bi", jacobian, v), twist) < 1e-11


def test_a_revolute_joint_described_from_its_far_side_turns_the_other_way() -> None:
    mech = lw.random_tree(3, 2, joints=["revolute"])
    other = turned_round(mech, range(3))
    q, v, tau = states(mech, 3)
    assert (
        relative(numbers(other, "forward_dynamics", -q, -v, -tau), -numbers(mech, "forward_dynamics", q, v, tau))
        < 1e-10
    )
