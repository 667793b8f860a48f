"""Calls that a built-in function has learned: they run no Python, and give what the careful path gives."""

import inspect
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound, ShapeError
from linkwright.kernels import callpath

pytestmark = pytest.mark.skipif(not callpath.supported(), reason="no native call path on this interpreter")

MODELS = Path(__file__).parents[2] / "examples" / "models"
BUILTIN = type(len)


def python_calls(call):
    """How many Python functions run inside a call."""
    count = 0

    def profile(frame, event, _):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 1  # the call's own


def driven_spring():
    """A pendulum on a spring whose force depends on time, with a length as a parameter."""
    b = lw.Builder("swing")
    length = b.parameter("length", 0.3)
    bob = b.body("bob", 1.2, com=(0, 0, -1.0 * length), inertia=(0.1, 0.2, 0.3))
    hinge = b.joint("revolute", b.ground, bob, name="hinge", axis=(0, 1, 0))
    b.actuator(hinge, lambda t: 3.0 * np.cos(2.0 * t))
    b.joint_spring(hinge, 5.0)
    return b.build()


MECHANISMS = {
    "arm": lambda: lw.load(MODELS / "arm.urdf"),
    "floating tree": lambda: lw.random_tree(6, seed=5, floating=True),
    "with a law of time": driven_spring,
    "with a value of a parameter": lambda: driven_spring().with_parameters(length=0.4),
}


def state(mech, seed=0):
    rng = np.random.default_rng(seed)
    q = mech.integrate(mech.neutral(), rng.uniform(-1, 1, mech.nv))
    return q, *rng.uniform(-1, 1, (2, mech.nv)), rng.uniform(-1, 1, (mech.nb, 6))


def calls(mech):
    """Calls of every method of `Mechanism` that is a program, with the options that it takes."""
    q, v, a, wrenches = state(mech)
    frame, other = mech.frames[0], mech.frames[-1]
    yield "forward_dynamics", (q, v, a), {}
    for method in ("articulated-body", "diagonal", "triangular", "mass-matrix", "virtual-work", "assembly"):
        yield "forward_dynamics", (q, v, a), {"method": method}
        yield "forward_dynamics", (q, v, a), {"method": method, "wrenches": wrenches, "t": 0.7}
    yield "forward_dynamics", (q, v), {"tau": a}
    yield "forward_dynamics", (q, v, a), {"t": 0.3, "method": None, "wrenches": None}
    yield "forward_dynamics", (q, v, a), {"t": np.float64(0.3)}
    yield "forward_dynamics", (q, v, a), {"t": np.array(0.3)}
    for dynamics in ("inverse_dynamics", "forward_dynamics_derivatives", "inverse_dynamics_derivatives", "reactions"):
        yield dynamics, (q, v, a), {}
        yield dynamics, (q, v, a), {"t": 1.5}
    yield "inverse_dynamics", (q, v, a), {"wrenches": wrenches}
    yield "inverse_dynamics", (q, v, a), {"weights": None, "t": 2.0}
    yield "bias_forces", (q, v), {"t": 1.5}
    for function in ("mass_matrix", "gravity_forces", "potential_energy", "center_of_mass"):
        yield function, (q,), {}
    for function in ("kinetic_energy", "momentum", "integrate", "bias_forces"):
        yield function, (q, v), {}
    yield "difference", (q, q[::-1].copy() if mech.nq == mech.nv else q), {}
    for place in (frame, other):
        yield "pose", (q, place), {}
        yield "jacobian", (q, place), {}
        yield "twist", (q, v, place), {}
        for reference in ("body", "world", "aligned"):
            yield "jacobian", (q, place, reference), {}
            yield "jacobian", (q, place), {"reference": reference}
            yield "twist", (q, v, place), {"reference": reference}
    yield "pose", (q,), {"frame": other}


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_call_that_was_made_twice_runs_no_python_and_gives_the_same(kind):
    mech = MECHANISMS[kind]()
    for name, arguments, options in calls(mech):

        def call(mech=mech, name=name, arguments=arguments, options=options):
            return getattr(mech, name)(*arguments, **options)

        carefully = getattr(type(mech), name)(mech, *arguments, **options)
        call()
        call()
        assert python_calls(call) == 0, (name, options)
        for x, y in zip(np.atleast_1d(call()), np.atleast_1d(carefully), strict=True):
            np.testing.assert_array_equal(x, y, err_msg=f"{name} {options}")


def test_known_calls_read_their_arguments_anew():
    mech = driven_spring()
    for seed in range(6):
        q, v, tau, wrenches = state(mech, seed)
        for t in (0.0, 0.4, np.float64(-1.3), np.array(2.0)):
            options = {"t": t, "wrenches": wrenches}
            right = lw.Mechanism.forward_dynamics(mech, q, v, tau, **options)
            np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau, **options), right)
    assert mech.forward_dynamics(q, v, tau, t=np.zeros(3)).shape == (3, mech.nv)
    assert not np.isclose(*(mech.forward_dynamics(q, v, tau, t=t)[0] for t in (0.0, 1.0)))


def test_the_time_is_zero_where_it_is_not_given():
    mech = driven_spring()
    q, v, tau, _ = state(mech)
    for _ in range(3):
        mech.forward_dynamics(q, v, tau, t=5.0)
        np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau), mech.forward_dynamics(q, v, tau, t=0.0))


def test_texts_are_known_by_their_letters():
    mech = lw.load(MODELS / "arm.urdf")
    q = state(mech)[0]
    right = mech.pose(q, "tool")
    for _ in range(3):
        mech.pose(q, "tool")
    spelt = "".join(["to", "ol"])
    assert spelt is not "tool"  # noqa: F632
    assert python_calls(lambda: mech.pose(q, spelt)) == 0
    np.testing.assert_array_equal(mech.pose(q, spelt), right)


def test_frames_are_told_apart_however_many_there_are():
    mech = lw.chain(64)
    assert len(mech.frames) > callpath.MAX_CALLS
    q = np.random.default_rng(0).uniform(-1, 1, mech.nq)
    right = {name: lw.Mechanism.pose(mech, q, name) for name in mech.frames}
    for _ in range(3):
        for name in mech.frames:
            np.testing.assert_array_equal(mech.pose(q, name), right[name])


def test_wrong_arguments_of_known_calls_are_refused():
    mech = lw.load(MODELS / "arm.urdf")
    q, v, tau, wrenches = state(mech)
    for _ in range(3):
        mech.pose(q, "tool")
        mech.forward_dynamics(q, v, tau, wrenches=wrenches, method="diagonal", t=0.0)
    with pytest.raises(NameNotFound, match="tol"):
        mech.pose(q, "tol")
    with pytest.raises(ModelError, match="takes names as text"):
        mech.pose(q, ["tool"])
    with pytest.raises(TypeError):
        mech.pose(q)
    with pytest.raises(ShapeError, match="wrenches"):
        mech.forward_dynamics(q, v, tau, wrenches=wrenches[1:], method="diagonal", t=0.0)
    with pytest.raises(NameNotFound, match="diagnal"):
        mech.forward_dynamics(q, v, tau, wrenches=wrenches, method="diagnal", t=0.0)
    batch = np.stack([q, q])
    assert mech.forward_dynamics(batch, v, tau, wrenches=wrenches, method="diagonal", t=0.0).shape == batch.shape


def test_out_is_checked_in_known_calls():
    mech = lw.load(MODELS / "arm.urdf")
    q, v, tau, wrenches = state(mech)
    right = lw.Mechanism.forward_dynamics(mech, q, v, tau, wrenches=wrenches, method="diagonal")
    out = np.zeros(mech.nv)
    options = {"wrenches": wrenches, "method": "diagonal"}
    for _ in range(3):
        assert mech.forward_dynamics(q, v, tau, out=out, **options) is out
    assert python_calls(lambda: mech.forward_dynamics(q, v, tau, out=out, **options)) == 0
    np.testing.assert_array_equal(out, right)
    shared = tau.copy()
    assert mech.forward_dynamics(q, v, shared, out=shared, **options) is shared
    np.testing.assert_array_equal(shared, right)
    inside = np.zeros((mech.nb, 6))
    inside[...] = wrenches
    flat = inside.reshape(-1)[3 : 3 + mech.nv]
    assert mech.forward_dynamics(q, v, tau, out=flat, wrenches=inside, method="diagonal") is flat
    np.testing.assert_array_equal(flat, right)


def test_known_calls_leave_reference_counts_as_they_are():
    mech = lw.load(MODELS / "arm.urdf")
    q, v, tau, wrenches = state(mech)
    frame, t, out = "".join(["to", "ol"]), 0.123, np.zeros(mech.nv)
    watched = (q, v, tau, wrenches, frame, t, out)

    def every():
        mech.pose(q, frame)
        mech.twist(q, v, frame, reference="world")
        mech.forward_dynamics(q, v, tau, wrenches=wrenches, t=t, out=out)

    for _ in range(5):
        every()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(1000):
        every()
    assert [sys.getrefcount(x) for x in watched] == before


def test_methods_with_frames_are_pickled_and_copied_after_their_calls():
    mech = lw.load(MODELS / "arm.urdf")
    q = state(mech)[0]
    for _ in range(3):
        right = mech.pose(q, "tool")
    assert isinstance(mech.pose, BUILTIN)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mech.pose))(q, "tool"), right)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mech)).pose(q, "tool"), right)


# -- programs --------------------------------------------------------------------------------------------------
def test_a_program_takes_the_short_way_after_its_first_call():
    program = lw.record(lambda x, y: (np.sin(x) * y, x + y), 3, ())
    x, y = np.array([0.1, 0.2, 0.3]), np.array(2.0)
    right = program.carefully(x, y)
    assert isinstance(program.call, BUILTIN)
    assert python_calls(lambda: program(x, y)) == 0
    for a, b in zip(program(x, y), right, strict=True):
        np.testing.assert_array_equal(a, b)
    batch = program(np.stack([x, x]), y)
    assert [a.shape for a in batch] == [(2, 3), (2, 3)]


def test_a_program_with_a_short_way_is_recorded_copied_and_pickled():
    double = lw.record(lambda x: 2.0 * x, 3)
    x, out = np.ones(3), np.zeros(3)
    double(x)
    assert double(x, out=out) is out
    twice = lw.record(lambda x: double(double(x)), 3)
    np.testing.assert_array_equal(twice(x), 4.0 * x)
    again = pickle.loads(pickle.dumps(double))
    assert not again.shortened
    assert again.call == again.carefully
    np.testing.assert_array_equal(again(x), 2.0 * x)
    np.testing.assert_array_equal(again(x), 2.0 * x)
    with pytest.raises(ShapeError, match="needed is"):
        double(np.ones(4))


def test_a_program_has_the_signature_of_its_calls():
    program = lw.record(lambda x: 2.0 * x, 3)
    before = inspect.signature(program)
    program(np.ones(3))
    assert program.shortened
    for signature in (before, inspect.signature(program)):
        assert list(signature.parameters) == ["arrays", "out"]
        signature.bind(np.ones(3), out=np.zeros(3))
    assert "blocks" in inspect.signature(lw.Program).parameters


def test_batches_alone_compile_no_code_for_one_state():
    program = lw.record(lambda x: np.cos(x) * 3.0, 2)
    program(np.ones((64, 2)))
    assert not program.shortened
