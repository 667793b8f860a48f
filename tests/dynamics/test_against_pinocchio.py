"""Dynamics and kinematics of real robots against Pinocchio: NumPy on all of them, native code on eight.

`tests/grid.py`, part of `make test-full`, runs native code and derivatives on all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.kernel import Kernel
from robots import Twin, find, identity, relative, robots

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle: pip install pin")

EXACT = 1e-10
DERIVATIVE = 1e-8

EIGHT = (
    "panda.urdf",
    "ur5_robot.urdf",
    "g1_29dof_rev_1_0.urdf",
    "talos_reduced.urdf",
    "anymal.urdf",
    "double_pendulum_continuous.urdf",
    "kinova.urdf",
    "iris.urdf",
)

every_robot = pytest.mark.parametrize("path", robots(), ids=identity)
both_bases = pytest.mark.parametrize("base", ["fixed", "floating"])


def on_bases(chosen: Iterable[tuple[Path, bool, bool]]) -> pytest.MarkDecorator:
    """Robots on both bases; `chosen` says of each on which of the two it is in the short run."""
    cases = []
    for path, *short in chosen:
        for base, now in zip(("fixed", "floating"), short, strict=True):
            marks = [] if now else [pytest.mark.slow]
            cases.append(pytest.param(path, base, marks=marks, id=f"{base}-{identity(path)}"))
    return pytest.mark.parametrize(("path", "base"), cases)


#: Every robot on a fixed base, and eight on a floating one: beneath it a robot is what it was.
robots_on_bases = on_bases((path, True, path.name in EIGHT) for path in robots())
#: The eight, on one of the bases in turn.
eight_on_bases = on_bases((find(name), k % 2 == 0, k % 2 == 1) for k, name in enumerate(EIGHT))


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        yield


def twin(path: Path, base: str, *, follow: bool = False) -> Twin:
    made = Twin(path, base, follow=follow)
    if made.mech.nv == 0:
        pytest.skip(f"{path.name} on a {base} base has no degree of freedom")
    return made


def evaluate(t: Twin, function: str, *arrays: np.ndarray, native: bool, **options: str) -> np.ndarray:
    """A method's program by NumPy, or by native code: one state at a time and all in lanes."""
    program = t.mech.program(function, **options)
    flat = run(program, arrays, len(arrays[0]))
    shaped = [y.reshape(len(arrays[0]), *b.shape) for y, b in zip(flat, program.outputs, strict=True)]
    if not native:
        return shaped[0]
    kernel = Kernel(program.digest, lambda: program)
    lanes = kernel(*arrays)
    one = np.stack([kernel(*(a[k] for a in arrays)) for k in range(len(arrays[0]))])
    assert relative(one, shaped[0]) < EXACT
    assert relative(lanes, shaped[0]) < EXACT
    return np.asarray(lanes)


def full(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def check_dynamics(t: Twin, *, native: bool) -> None:
    q, v, tau = t.states(9 if native else 2)
    forward = None
    if is_determined(t):
        forward = evaluate(t, "forward_dynamics", q, v, tau, native=native)
    inverse = evaluate(t, "inverse_dynamics", q, v, tau, native=native)
    mass = evaluate(t, "mass_matrix", q, native=native)
    for k in range(len(q)):
        pq, pv, pt = t.pin_q(q[k]), t.pin_v(v[k]), t.pin_v(tau[k])
        assert relative(inverse[k], t.ours(pin.rnea(t.model, t.data, pq, pv, pt))) < EXACT
        assert relative(mass[k], t.ours(full(pin.crba(t.model, t.data, pq)))) < EXACT
        accelerations = t.ours(pin.aba(t.model, t.data, pq, pv, pt))
        if forward is None:
            # Joints that carry no mass: Pinocchio has no answer either, and ours is an error that names one.
            assert not np.all(np.isfinite(accelerations))
        else:
            assert relative(forward[k], accelerations) < EXACT


def is_determined(t: Twin) -> bool:
    """Whether forces tell the accelerations; if not, the error names a joint."""
    try:
        t.mech.program("forward_dynamics")
    except ModelError as error:
        told = error.element in [joint.name for joint in t.mech.joints] and "carries no mass" in str(error)
        if not told:
            raise
        return False
    return True


@robots_on_bases
def test_numpy_gives_pinocchios_inverse_and_forward_dynamics_and_mass_matrix(path: Path, base: str) -> None:
    check_dynamics(twin(path, base), native=False)


@pytest.mark.compiled
@eight_on_bases
def test_native_code_gives_pinocchios_inverse_and_forward_dynamics_and_mass_matrix(path: Path, base: str) -> None:
    check_dynamics(twin(path, base), native=True)


@pytest.mark.parametrize("name", ["panda.urdf", "anymal.urdf", "g1_29dof_rev_1_0.urdf"])
@pytest.mark.parametrize("method", ["diagonal", "triangular", "mass-matrix"])
@both_bases
def test_every_method_gives_pinocchios_forward_dynamics(name: str, method: str, base: str) -> None:
    t = twin(find(name), base)
    q, v, tau = t.states(2)
    for form in ("unrolled", "rolled"):
        found = evaluate(t, "forward_dynamics", q, v, tau, native=False, method=method, form=form)
        for k in range(len(q)):
            expected = t.ours(pin.aba(t.model, t.data, t.pin_q(q[k]), t.pin_v(v[k]), t.pin_v(tau[k])))
            assert relative(found[k], expected) < (1e-9 if method == "mass-matrix" else EXACT)


def check_kinematics(t: Twin, *, native: bool, frames: int) -> None:
    q, v, _ = t.states(9 if native else 1)
    names = [f.name for f in t.model.frames if f.type == pin.FrameType.BODY]
    names = [n for n in names if n in t.mech.frames and n != "universe"]
    chosen = [names[k] for k in np.linspace(0, len(names) - 1, min(frames, len(names))).astype(int)]
    references = {
        "body": pin.ReferenceFrame.LOCAL,
        "world": pin.ReferenceFrame.WORLD,
        "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    }
    for name in chosen:
        pose = evaluate(t, "pose", q, native=native, frame=name)
        number = t.model.getFrameId(name, pin.FrameType.BODY)
        for reference, theirs in references.items():
            jacobian = evaluate(t, "jacobian", q, native=native, frame=name, reference=reference)
            twist = evaluate(t, "twist", q, v, native=native, frame=name, reference=reference)
            for k in range(len(q)):
                pq, pv = t.pin_q(q[k]), t.pin_v(v[k])
                pin.forwardKinematics(t.model, t.data, pq, pv)
                pin.updateFramePlacements(t.model, t.data)
                assert relative(pose[k], t.data.oMf[number].homogeneous) < EXACT
                expected = pin.computeFrameJacobian(t.model, t.data, pq, number, theirs)
                assert np.abs(jacobian[k] - t.columns(expected)).max() < EXACT
                assert (
                    np.abs(twist[k] - pin.getFrameVelocity(t.model, t.data, number, theirs).vector).max() < EXACT * 10
                )


@robots_on_bases
def test_numpy_gives_pinocchios_frame_poses_jacobians_and_twists(path: Path, base: str) -> None:
    check_kinematics(twin(path, base), native=False, frames=3)


@pytest.mark.slow
@every_robot
@both_bases
def test_every_frame_of_every_robot_agrees_with_pinocchio(path: Path, base: str) -> None:
    check_kinematics(twin(path, base), native=False, frames=10_000)


@pytest.mark.compiled
@pytest.mark.parametrize("name", EIGHT[:4])
def test_native_code_gives_pinocchios_frame_poses_jacobians_and_twists(name: str) -> None:
    check_kinematics(twin(find(name), "floating"), native=True, frames=2)


def check_derivatives(t: Twin, *, native: bool) -> None:
    q, v, tau = t.states(1)
    mech = t.mech
    pq, pv, pt = t.pin_q(q[0]), t.pin_v(v[0]), t.pin_v(tau[0])
    pin.computeRNEADerivatives(t.model, t.data, pq, pv, pt)
    expected = [t.data.dtau_dq.copy(), t.data.dtau_dv.copy(), full(t.data.M)]
    pin.computeABADerivatives(t.model, t.data, pq, pv, pt)
    expected += [t.data.ddq_dq.copy(), t.data.ddq_dv.copy(), full(t.data.Minv)]
    if not is_determined(t):
        pytest.skip(f"{mech.name} has joints that carry no mass: its accelerations have no derivatives")
    if native:
        found = (
            *mech.inverse_dynamics_derivatives(q[0], v[0], tau[0]),
            *mech.forward_dynamics_derivatives(q[0], v[0], tau[0]),
        )
    else:
        found = ()
        for function in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
            found += tuple(run(mech.program(function), (q, v, tau), 1))
    for ours, theirs in zip(found, expected, strict=True):
        assert relative(np.asarray(ours).reshape(mech.nv, mech.nv), t.ours(theirs)) < DERIVATIVE


@pytest.mark.compiled
@eight_on_bases
def test_derivatives_of_inverse_and_forward_dynamics_are_pinocchios(path: Path, base: str) -> None:
    check_derivatives(twin(path, base), native=path.name in EIGHT[:2])


def with_mimics() -> list[Path]:
    return [p for p in robots() if b"<mimic" in p.read_bytes()]


@pytest.mark.parametrize("path", with_mimics(), ids=identity)
def test_following_joints_give_pinocchios_mimic_dynamics(path: Path) -> None:
    try:
        t = twin(path, "fixed", follow=True)
    except ValueError as error:
        pytest.skip(f"Pinocchio does not build this one with mimics ({error}); its free joints, tied, are compared")
    if not t.mech.description.mimics:
        pytest.skip(f"{path.name} names mimic leaders that it does not define; its joints stay independent")
    q, v, tau = t.states(2)
    inverse = evaluate(t, "inverse_dynamics", q, v, tau, native=False)
    mass = evaluate(t, "mass_matrix", q, native=False)
    forward = evaluate(t, "forward_dynamics", q, v, tau, native=False)
    for k in range(len(q)):
        pq, pv, pt = t.pin_q(q[k]), t.pin_v(v[k]), t.pin_v(tau[k])
        m = t.ours(full(pin.crba(t.model, t.data, pq)))
        h = t.ours(pin.rnea(t.model, t.data, pq, pv, np.zeros(t.model.nv)))
        assert relative(inverse[k], t.ours(pin.rnea(t.model, t.data, pq, pv, pt))) < EXACT
        assert relative(mass[k], m) < EXACT
        # Pinocchio has no articulated bodies for mimics: M⁻¹(tau − h) of its own M and h.
        assert relative(forward[k], np.linalg.solve(m, tau[k] - h)) < EXACT


@pytest.mark.parametrize("path", with_mimics(), ids=identity)
def test_following_joints_give_the_dynamics_of_pinocchios_free_joints_tied_together(path: Path) -> None:
    free = twin(path, "fixed")
    mech = lw.load(path, mimic="follow")
    if not mech.description.mimics:
        pytest.skip(f"{path.name} names mimic leaders that it does not define; its joints stay independent")
    constraint, shift = tied(mech, free.mech)
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1, 1, (3, 1, mech.nv))
    pq, pv, pa = free.pin_q(constraint @ q[0] + shift), free.pin_v(constraint @ v[0]), free.pin_v(constraint @ a[0])
    expected = constraint.T @ free.ours(pin.rnea(free.model, free.data, pq, pv, pa))
    inverse = run(mech.program("inverse_dynamics"), (q, v, a), 1)[0][0]
    assert relative(inverse, expected) < EXACT
    mass = run(mech.program("mass_matrix"), (q,), 1)[0].reshape(mech.nv, mech.nv)
    assert relative(mass, constraint.T @ free.ours(full(pin.crba(free.model, free.data, pq))) @ constraint) < EXACT


def tied(mech: lw.Mechanism, free: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """G and o with (free joints' coordinates) = G (leaders' coordinates) + o."""
    constraint, shift = np.zeros((free.nv, mech.nv)), np.zeros(free.nv)
    names = mech.description.joint_names
    rules = {names[m.follower]: m for m in mech.description.mimics}
    for joint in mech.joints:
        rule = rules.get(joint.name)
        row = free.joints[joint.name].v_slice.start
        constraint[row, joint.v_slice.start] = rule.ratio if rule else 1.0
        shift[row] = rule.offset if rule else 0.0
    return constraint, shift


@pytest.mark.parametrize("path", with_mimics(), ids=identity)
def test_derivatives_with_following_joints_are_those_of_the_complex_step(path: Path) -> None:
    mech = lw.load(path, mimic="follow")
    if not mech.description.mimics or mech.nb > 40:
        pytest.skip(f"{path.name}: no mimic that can be followed, or too long for the short run")
    from complex_step import inverse_dynamics_jacobians

    q, v, tau = np.random.default_rng(2).uniform(-1, 1, (3, 1, mech.nv))
    dq, dv, m = run(mech.program("inverse_dynamics_derivatives"), (q, v, tau), 1)
    expected_q, expected_v = inverse_dynamics_jacobians(mech, q[0], v[0], tau[0])
    n = mech.nv
    assert relative(dq.reshape(n, n), expected_q) < DERIVATIVE
    assert relative(dv.reshape(n, n), expected_v) < DERIVATIVE
    fq, fv, ft = run(mech.program("forward_dynamics_derivatives"), (q, v, tau), 1)
    a = run(mech.program("forward_dynamics"), (q, v, tau), 1)[0][0]
    expected_q, expected_v = inverse_dynamics_jacobians(mech, q[0], v[0], a)
    minv = np.linalg.inv(m.reshape(n, n))
    assert relative(fq.reshape(n, n), -minv @ expected_q) < DERIVATIVE
    assert relative(fv.reshape(n, n), -minv @ expected_v) < DERIVATIVE
    assert relative(ft.reshape(n, n), minv) < DERIVATIVE
