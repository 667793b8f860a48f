"""Rollouts of arrays on a GPU are those of the CPU: the CUDA text runs as C++, behind a stand-in for CuPy."""

import fake_libraries
import numpy as np
import pytest

import fake_cupy
import linkwright as lw
from closed_mechanisms import four_bar
from linkwright.errors import DtypeError, KernelError, ModelError, NameNotFound, ShapeError
from linkwright.kernels.c import program_text
from linkwright.kernels.cuda import device_arrays, device_kernel
from linkwright.kernels.cuda.state_threads import march_text

RNG = np.random.default_rng(5)
FIELDS = ("q", "v", "a", "y", "final_q", "final_v")
CHAIN = lw.chain(2)
Q, V = RNG.standard_normal((2, 5, 2))


@pytest.fixture
def cupy(monkeypatch):
    fake_libraries.install(monkeypatch)
    return fake_cupy.install(monkeypatch)


def agrees(found, wanted, tolerance=1e-12):
    for name in FIELDS:
        x, y = getattr(found, name), getattr(wanted, name)
        assert (x is None) == (y is None), name
        if y is not None:
            assert x.shape == y.shape, name
            scale = np.nanmax(np.abs(y), initial=1.0)
            np.testing.assert_allclose(x.get(), y, rtol=0, atol=tolerance * scale, err_msg=name)
    np.testing.assert_array_equal(found.time, wanted.time)


def both(cupy, mech, q, v, tau=None, steps=7, kind=lambda x: x, **options):
    def put(x):
        return x if x is None or callable(x) else kind(cupy.asarray(x))

    found = lw.rollout(mech, put(q), put(v), 1e-3, steps, put(tau), **options)
    return found, lw.rollout(mech, q, v, 1e-3, steps, tau, **options)


def spring(t, q, v):
    return -v - 4.0 * np.sin(q + t)


def speeds(t, q, v):
    return np.array([[q[0] * t, v[1]]])


@pytest.mark.parametrize(
    ("tau", "options"),
    [
        (None, {}),
        (
            RNG.standard_normal((5, 2)),
            {"method": "semi-implicit-euler", "samples": lw.Samples(every=3, outputs=("q", "a"))},
        ),
        (RNG.standard_normal((5, 7, 2)), {"samples": lw.Samples(every=2)}),
        (RNG.standard_normal((1, 7, 2)), {"samples": lw.Samples(outputs="v")}),
        (spring, {"t_start": 0.3, "samples": lw.Samples(every=3, outputs=speeds)}),
    ],
    ids=["free", "constant", "sequence", "one sequence", "law"],
)
def test_a_rollout_on_the_device_is_that_of_the_cpu(cupy, tau, options):
    agrees(*both(cupy, CHAIN, Q, V, tau, **options))


@pytest.mark.parametrize("kind", [fake_libraries.Tensor, fake_libraries.ArrayImpl])
def test_motions_come_back_in_the_library_of_their_states(cupy, kind):
    found, wanted = both(
        cupy,
        CHAIN,
        Q[:4].reshape(2, 2, 2),
        V[:4].reshape(2, 2, 2),
        kind=kind,
        samples=lw.Samples(outputs=("q", "v", "a")),
    )
    assert type(found.q) is type(found.final_v) is kind
    agrees(found, wanted)
    found, wanted = both(cupy, CHAIN, Q, V, kind=kind, samples=lw.Samples(outputs=speeds))
    agrees(found, wanted)


def test_all_steps_are_one_launch(cupy):
    both(cupy, CHAIN, Q, V)
    assert [entry[1] for entry in cupy.log if entry[0] == "launch"] == ["initial_acceleration", "rk4_march"]


def test_long_rollouts_are_cut_into_launches_with_the_same_result(cupy, monkeypatch):
    monkeypatch.setattr(device_kernel, "ONE", 1.0)  # a launch of one step
    found, wanted = both(cupy, CHAIN, Q, V, RNG.standard_normal((5, 7, 2)), samples=lw.Samples(every=3))
    agrees(found, wanted)
    assert len([entry for entry in cupy.log if entry[0] == "launch"]) == 8


def test_large_mechanisms_are_worked_off_in_pieces(cupy, monkeypatch):
    monkeypatch.setattr(program_text, "LOCAL", 0)
    monkeypatch.setattr(device_arrays, "_WORK", 1)
    q, v = RNG.standard_normal((2, 70, 4))
    agrees(*both(cupy, lw.chain(4), q, v, RNG.standard_normal((70, 7, 4)), samples=lw.Samples(every=2)))
    assert len([entry for entry in cupy.log if entry[0] == "launch" and entry[1] == "rk4_march"]) == 2


def test_single_precision_stays_so(cupy):
    found = lw.rollout(CHAIN, *(cupy.asarray(x.astype(np.float32)) for x in (Q, V)), 1e-3, 20)
    assert found.q.dtype == np.float32
    np.testing.assert_allclose(found.q.get(), lw.rollout(CHAIN, Q, V, 1e-3, 20).q, atol=1e-4)


def test_turning_bodies_and_loops_too(cupy):
    mech = lw.random_tree(3, 1)
    q = mech.integrate(np.broadcast_to(mech.neutral(), (3, mech.nq)), RNG.standard_normal((3, mech.nv)))
    agrees(*both(cupy, mech, np.asarray(q), RNG.standard_normal((3, mech.nv)), steps=3))
    bar = four_bar()
    q, v = bar.project(np.broadcast_to(bar.assemble(), (3, 3)), RNG.standard_normal((3, 3)))
    q[1] = [0.1, 2.0, 5.0]  # cannot be closed
    found, wanted = both(cupy, bar, q, v, steps=3)
    agrees(found, wanted)
    np.testing.assert_array_equal(found.ok.get(), [True, False, True])
    with pytest.raises(DtypeError, match="'four-bar' cannot be kept closed in float32; give float64"):
        lw.rollout(bar, cupy.asarray(q.astype(np.float32)), cupy.asarray(v.astype(np.float32)), 1e-3, 3)


def test_a_motion_that_blows_up_is_nan_alone(cupy):
    v = V.copy()
    v[2] = 1e200
    found, wanted = both(cupy, CHAIN, Q, v)
    np.testing.assert_array_equal(found.ok.get(), wanted.ok)
    np.testing.assert_array_equal(found.ok.get(), [True, True, False, True, True])
    assert "1 without finite numbers" in repr(found)


def test_no_states_are_no_motions(cupy):
    found, wanted = both(cupy, CHAIN, Q[:0], V[:0])
    agrees(found, wanted)
    assert not cupy.log


def test_parameters_differ_from_motion_to_motion(cupy):
    with lw.Builder("weighed") as b:
        mass = b.parameter("mass", 1.0)
        b.body("rod", mass=mass, inertia=(0.1, 0.1, 0.1), com=(0.5, 0, 0))
        b.joint("revolute", "ground", "rod", axis=(0, 1, 0), name="pin")
    mech, masses = b.build(), np.array([0.5, 1.0, 4.0])
    q, v = RNG.standard_normal((2, 3, 1))
    given = cupy.asarray(q), cupy.asarray(v)
    found = lw.rollout(
        mech, *given, 1e-3, 5, parameters={"mass": cupy.asarray(masses)}, samples=lw.Samples(outputs=("q",))
    )
    every = lw.rollout(
        mech,
        *(x[0] for x in given),
        1e-3,
        5,
        parameters={"mass": cupy.asarray(masses)},
        samples=lw.Samples(outputs=("q",)),
    )
    assert every.q.shape == (3, 6, 1)
    with pytest.raises(NameNotFound, match="no parameter named 'weight'"):
        lw.rollout(mech, *given, 1e-3, 5, parameters={"weight": 2.0})
    for k, value in enumerate(masses):
        wanted = lw.rollout(mech.with_parameters(mass=value), q[k], v[k], 1e-3, 5).q
        np.testing.assert_allclose(found.q.get()[k], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (lambda cp, q, v: (q, V), DtypeError, r"v0 is not on the GPU and q0 is: give cupy.asarray\(v0\)"),
        (lambda cp, q, v: (q, v[:, :1]), ShapeError, r"v0 has shape \(5, 1\); give \(\.\.\., 2\)"),
        (lambda cp, q, v: (q[:2], v), ShapeError, r"q0 has the leading shape \(2,\) and v0 \(5,\)"),
        (lambda cp, q, v: (q, cp.asarray(V.astype(np.float32))), DtypeError, "needed is float64, as q0 has"),
        (lambda cp, q, v: (cp.asarray(np.zeros((5, 2), int)), v), DtypeError, "needed is float64 or float32"),
    ],
)
def test_wrong_states_are_told_as_on_the_cpu(cupy, change, error, told):
    with pytest.raises(error, match=told):
        lw.rollout(CHAIN, *change(cupy, cupy.asarray(Q), cupy.asarray(V)), 1e-3, 3)


def test_wrong_options_and_forces_are_told_as_on_the_cpu(cupy):
    given = cupy.asarray(Q), cupy.asarray(V)
    with pytest.raises(ModelError, match="dt must be a number greater than zero"):
        lw.rollout(CHAIN, *given, 0.0, 3)
    with pytest.raises(NameNotFound, match="no output named 'w'"):
        lw.rollout(CHAIN, *given, 1e-3, 3, samples=lw.Samples(outputs="w"))
    with pytest.raises(ShapeError, match=r"tau has shape \(4, 2\); give \(2,\), \(5, 2\), or for every step"):
        lw.rollout(CHAIN, *given, 1e-3, 3, cupy.asarray(np.zeros((4, 2))))


def test_samples_that_do_not_fit_are_told_with_what_to_do(cupy, monkeypatch):
    def full(*_):
        raise MemoryError

    given = cupy.asarray(Q), cupy.asarray(V)
    monkeypatch.setattr(cupy, "empty", full)
    with pytest.raises(ModelError, match=r"1001 samples of 5 motions take .* GiB, which GPU 0 has not; take fewer"):
        lw.rollout(CHAIN, *given, 1e-3, 1000)


def test_a_program_that_carries_nothing_does_not_march():
    with pytest.raises(KernelError, match="does not carry its outputs"):
        march_text(lw.record(lambda x: x[:1], 2), "float64")
