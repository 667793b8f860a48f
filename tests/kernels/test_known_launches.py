"""Calls on a GPU that have come before: one launch with packed arguments, and nothing else of Python's."""

import sys

import fake_libraries
import numpy as np
import pytest

import fake_cupy
import linkwright as lw
from linkwright.dynamics.functions import Request
from linkwright.errors import DtypeError, ShapeError
from linkwright.kernels.c import program_text
from linkwright.kernels.cuda import device_kernel, known_launches

RNG = np.random.default_rng(5)
STATES = 70


@pytest.fixture
def cupy(monkeypatch):
    module = fake_cupy.install(monkeypatch)
    fake_libraries.install(monkeypatch)
    return module


def arrays_of(cupy, mech, kind=lambda x: x, states=STATES):
    plain = RNG.standard_normal((3, states, mech.nv))
    return plain, [kind(cupy.asarray(x)) for x in plain]


def functions_of_ours(call):
    """The names of the package's Python functions that run inside a call."""
    names = []

    def profile(frame, event, _):
        if event == "call" and "linkwright" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("kind", [lambda x: x, fake_libraries.Tensor], ids=["CuPy", "PyTorch"])
@pytest.mark.parametrize("after_one_state_on_the_cpu", [False, True])
def test_a_warm_call_runs_few_functions_and_one_launch(cupy, kind, after_one_state_on_the_cpu):
    mech = lw.chain(3)
    if after_one_state_on_the_cpu:
        for _ in range(2):
            mech.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))
    plain, given = arrays_of(cupy, mech, kind)
    out = kind(cupy.empty((STATES, 3)))
    for _ in range(3):
        mech.forward_dynamics(*given, out=out)
    fake_cupy.log.clear()
    names = functions_of_ours(lambda: mech.forward_dynamics(*given, out=out))
    assert len(names) <= 8, names
    assert "forward_dynamics" not in names  # the method itself
    assert [entry[0] for entry in fake_cupy.log] == ["launch"]
    np.testing.assert_allclose(out.get(), mech.forward_dynamics(*plain), rtol=1e-12, atol=1e-12)


def test_a_warm_call_without_out_gives_a_new_array(cupy):
    mech = lw.chain(3)
    plain, given = arrays_of(cupy, mech)
    first, second, third = (mech.forward_dynamics(*given) for _ in range(3))
    assert len({x.data.ptr for x in (first, second, third)}) == 3
    np.testing.assert_allclose(third.get(), mech.forward_dynamics(*plain), rtol=1e-12, atol=1e-12)


def test_programs_and_options_have_the_short_way_too(cupy, monkeypatch):
    mech = lw.chain(3)
    _, given = arrays_of(cupy, mech)
    program = mech.program("forward_dynamics")
    calls = [
        lambda: program(*given),
        lambda: mech.forward_dynamics(*given, method="diagonal"),
        lambda: mech.forward_dynamics(*given, t=0.0, wrenches=None),
        lambda: mech.mass_matrix(given[0]),
        lambda: mech.forward_dynamics_derivatives(*given),
    ]
    right = [call() for call in calls for _ in range(2)][::2]
    monkeypatch.setattr(device_kernel.DeviceKernel, "__call__", lambda *_, **__: pytest.fail("the careful path"))
    for call, wanted in zip(calls, right, strict=True):
        answers, wanteds = (x if isinstance(x, tuple) else (x,) for x in (call(), wanted))
        for answer, array in zip(answers, wanteds, strict=True):
            np.testing.assert_array_equal(answer.get(), array.get())


def test_other_calls_are_answered_by_the_careful_path(cupy):
    mech = lw.chain(3)
    (q, v, tau), given = arrays_of(cupy, mech)
    out = cupy.empty((STATES, 3))
    for _ in range(2):
        mech.forward_dynamics(*given, out=out)

    def agrees(answer, wanted):
        np.testing.assert_allclose(answer.get(), wanted, rtol=1e-12, atol=1e-12)

    wide = cupy.asarray(np.repeat(q, 2, axis=1))[:, ::2]
    agrees(mech.forward_dynamics(wide, *given[1:], out=out), mech.forward_dynamics(wide.get(), v, tau))
    agrees(mech.forward_dynamics(given[0], given[1], cupy.asarray(tau[0])), mech.forward_dynamics(q, v, tau[0]))
    agrees(mech.forward_dynamics(*given, method="triangular"), mech.forward_dynamics(q, v, tau))
    fewer = [x[:9] for x in given]
    agrees(mech.forward_dynamics(*fewer), mech.forward_dynamics(q[:9], v[:9], tau[:9]))
    alias = cupy.asarray(tau)
    agrees(mech.forward_dynamics(given[0], given[1], alias, out=alias), mech.forward_dynamics(q, v, tau))
    with pytest.raises(DtypeError, match="v has dtype float32"):
        mech.forward_dynamics(given[0], cupy.asarray(v.astype(np.float32)), given[2], out=out)
    with pytest.raises(ShapeError, match=r"out .* has shape"):
        mech.forward_dynamics(*given, out=cupy.empty((STATES + 1, 3)))
    agrees(mech.forward_dynamics(*given, out=out), mech.forward_dynamics(q, v, tau))


def test_another_device_than_the_current_one_is_not_known(cupy, monkeypatch):
    mech = lw.chain(3)
    plain, given = arrays_of(cupy, mech)
    for _ in range(2):
        mech.forward_dynamics(*given)
    seen = []
    careful = device_kernel.DeviceKernel.__call__
    monkeypatch.setattr(
        device_kernel.DeviceKernel, "__call__", lambda self, *x, **y: seen.append(1) or careful(self, *x, **y)
    )
    mech.forward_dynamics(*given)
    assert not seen
    monkeypatch.setattr(fake_cupy, "current_device", 1)
    np.testing.assert_allclose(mech.forward_dynamics(*given).get(), mech.forward_dynamics(*plain), rtol=1e-12)
    assert seen


def test_work_of_large_temporaries_is_new_in_every_call(cupy, monkeypatch):
    monkeypatch.setattr(program_text, "LOCAL", 8)
    mech = lw.random_tree(4, 2)
    q = RNG.standard_normal((STATES, mech.nq))
    v, tau = RNG.standard_normal((2, STATES, mech.nv))
    given = [cupy.asarray(x) for x in (q, v, tau)]
    for _ in range(3):
        answer = mech.forward_dynamics(*given)
    np.testing.assert_allclose(answer.get(), mech.forward_dynamics(q, v, tau), rtol=1e-9, atol=1e-9)


def test_a_kernel_knows_only_some_launches(cupy):
    mech = lw.chain(2)
    for states in range(1, known_launches.MOST + 5):
        plain, given = arrays_of(cupy, mech, states=states)
        np.testing.assert_allclose(mech.mass_matrix(given[0]).get(), mech.mass_matrix(plain[0]), rtol=1e-12)
    known = mech.kernels.kernel(Request("mass_matrix")).device.known
    assert 1 <= len(known) <= known_launches.MOST
