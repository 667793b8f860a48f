"""Arrays of PyTorch and JAX: answers in kind, gradients, and what is said where they cannot be."""

import fake_libraries
import numpy as np
import pytest

import fake_cupy
import linkwright as lw
from closed_mechanisms import four_bar
from linkwright.dynamics import requests
from linkwright.errors import DtypeError, KernelError
from linkwright.kernels.foreign_arrays import library

RNG = np.random.default_rng(11)
REASON = "is not installed here: its arrays in main memory are not tried"


def state(mech, *lead):
    v, tau = RNG.standard_normal((2, *lead, mech.nv))
    q = mech.integrate(np.broadcast_to(mech.neutral(), (*lead, mech.nq)), RNG.standard_normal((*lead, mech.nv)))
    return np.asarray(q), v, tau


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason=f"PyTorch {REASON}")


@pytest.fixture(scope="module")
def jax():
    return pytest.importorskip("jax", reason=f"JAX {REASON}")


@pytest.fixture(scope="module")
def tree():
    return lw.random_tree(3, 1)


@pytest.fixture
def in_columns(monkeypatch):
    """Derivatives of any tree, however few its rates, are computed column by column."""
    monkeypatch.setattr(requests, "WHOLE_MATRICES", dict.fromkeys(requests.WHOLE_MATRICES, 0))


# -- PyTorch in main memory ------------------------------------------------------------------------------------
def test_tensors_are_answered_by_tensors_of_their_precision(torch, tree):
    given = state(tree, 4)
    found = tree.forward_dynamics(*map(torch.tensor, given))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), tree.forward_dynamics(*given))
    single = tree.forward_dynamics(*(torch.tensor(x, dtype=torch.float32) for x in given))
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.numpy(), found.numpy(), rtol=1e-3, atol=1e-4)
    three = tree.forward_dynamics_derivatives(*map(torch.tensor, given))
    assert [type(x) for x in three] == [torch.Tensor] * 3


def test_a_tensor_takes_the_result(torch, tree):
    given = [torch.tensor(x) for x in state(tree, 4)]
    out = torch.empty(4, tree.nv, dtype=torch.float64)
    assert tree.forward_dynamics(*given, out=out) is out
    np.testing.assert_array_equal(out.numpy(), tree.forward_dynamics(*given).numpy())


def test_gradients_go_through_forward_dynamics_also_twice(torch, tree):
    given = [torch.tensor(x, requires_grad=True) for x in state(tree, 2)]
    assert torch.autograd.gradcheck(tree.forward_dynamics, given)
    assert torch.autograd.gradgradcheck(tree.kinetic_energy, given[:2])


def test_gradients_are_summed_over_what_serves_all_states(torch, tree):
    q, v, tau = (torch.tensor(x, requires_grad=True) for x in state(tree))
    many = torch.stack([tau.detach()] * 3).requires_grad_()
    tree.forward_dynamics(q, v, many).sum().backward()
    _, by_v, by_tau = tree.forward_dynamics_derivatives(*(x.detach().numpy() for x in (q, v, tau)))
    np.testing.assert_allclose(v.grad.numpy(), 3 * by_v.sum(0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(many.grad.numpy(), np.tile(by_tau.sum(0), (3, 1)), rtol=1e-9, atol=1e-9)


def test_gradients_go_through_loops_over_links(torch):
    mech = lw.chain(70)
    q, v, tau = (torch.tensor(x, requires_grad=True) for x in state(mech))
    mech.forward_dynamics(q, v, tau).sum().backward()
    by_tau = np.linalg.solve(mech.mass_matrix(q.detach().numpy()), np.ones(70))
    np.testing.assert_allclose(tau.grad.numpy(), by_tau, rtol=1e-7, atol=1e-7 * np.abs(by_tau).max())


def test_gradients_go_through_closed_loops(torch):
    mech, given = four_bar(), closed_state()
    tensors = [torch.tensor(x, requires_grad=True) for x in given]
    mech.forward_dynamics(*tensors).sum().backward()
    for tensor, wanted in zip(tensors, mech.forward_dynamics_derivatives(*given), strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), wanted.sum(0), rtol=1e-7, atol=1e-7)


def closed_state():
    mech = four_bar()
    q, v = mech.project(mech.assemble(), np.array([1.0, 0.2, -0.3]))
    return q, v, np.array([0.5, 0.0, 0.0])


def test_what_gradients_cannot_do_is_said(torch, tree):
    given = [torch.tensor(x, requires_grad=True) for x in state(tree)]
    with pytest.raises(KernelError, match=r"out= cannot take what gradients go through; leave it away"):
        tree.forward_dynamics(*given, out=torch.empty(tree.nv, dtype=torch.float64))
    with pytest.raises(KernelError, match=r"motions are not differentiated; give q0.detach\(\)"):
        lw.rollout(tree, *given[:2], 1e-3, 2)
    with torch.no_grad():
        assert not tree.forward_dynamics(*given).requires_grad


def test_tensors_without_plain_numbers_are_told_what_to_be(torch, tree):
    rest = torch.zeros(2, tree.nv, dtype=torch.float64)
    with pytest.raises(KernelError, match="leading axes instead of by vmap"):
        torch.func.vmap(lambda v: tree.kinetic_energy(torch.zeros(tree.nq, dtype=torch.float64), v))(rest)


def test_rollouts_of_tensors_are_tensors(torch, tree):
    q, v, tau = state(tree, 3)
    wanted = lw.rollout(tree, q, v, 1e-3, 4, tau)
    found = lw.rollout(tree, torch.tensor(q), torch.tensor(v), 1e-3, 4, torch.tensor(tau))
    np.testing.assert_array_equal(found.q.numpy(), wanted.q)
    assert bool(found.ok.all())
    assert "3 motions" in repr(found)


# -- JAX in main memory ----------------------------------------------------------------------------------------
def test_jax_arrays_are_answered_by_jax_arrays(jax, tree):
    given = state(tree, 4)
    found = tree.mass_matrix(jax.numpy.asarray(given[0]))
    assert library(found) == "jax"
    assert found.dtype == jax.numpy.asarray(given[0]).dtype
    np.testing.assert_allclose(np.asarray(found), tree.mass_matrix(given[0]), rtol=1e-5, atol=1e-5)


def test_a_tracer_is_told_where_to_go(jax, tree):
    with pytest.raises(KernelError, match=r"q is a JAX tracer, .* use the program's own JAX function, .*to_jax\(\)"):
        jax.jit(tree.mass_matrix)(jax.numpy.zeros(tree.nq))
    with pytest.raises(KernelError, match="JAX arrays cannot be written to"):
        tree.mass_matrix(jax.numpy.zeros(tree.nq), out=np.empty((tree.nv, tree.nv)))


def test_derivatives_in_columns_are_answered_in_kind(jax, tree, in_columns):
    given = state(tree, 2)
    found = tree.inverse_dynamics_derivatives(*map(jax.numpy.asarray, given))
    for matrix, wanted in zip(found, tree.inverse_dynamics_derivatives(*given), strict=True):
        assert library(matrix) == "jax"
        np.testing.assert_allclose(np.asarray(matrix), wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(KernelError, match="q is a JAX tracer"):
        jax.jit(tree.inverse_dynamics_derivatives)(*given)


# -- both on a GPU ---------------------------------------------------------------------------------------------
@pytest.fixture
def stream(monkeypatch):
    fake_cupy.install(monkeypatch)
    return fake_libraries.install(monkeypatch)


@pytest.mark.parametrize("kind", [fake_libraries.Tensor, fake_libraries.ArrayImpl])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_on_a_gpu_are_answered_in_kind_there(stream, tree, kind, dtype):
    given = [x.astype(dtype) for x in state(tree, 5)]
    found = tree.inverse_dynamics(*(kind(fake_cupy.asarray(x)) for x in given))
    assert type(found) is kind
    assert found.dtype == dtype
    wanted = tree.inverse_dynamics(*(x.astype(np.float64) for x in given))
    np.testing.assert_allclose(found.get(), wanted, rtol=1e-9 if dtype == np.float64 else 1e-3, atol=1e-4)
    assert not [entry for entry in fake_cupy.log if entry[0] == "copy"]


def test_derivatives_on_a_gpu_are_one_program_where_they_are_columns_on_the_cpu(stream, tree, in_columns):
    given = state(tree, 3)
    found = tree.inverse_dynamics_derivatives(*map(fake_cupy.asarray, given))
    for matrix, wanted in zip(found, tree.inverse_dynamics_derivatives(*given), strict=True):
        np.testing.assert_allclose(matrix.get(), wanted, rtol=1e-9, atol=1e-9)


def test_tensors_are_computed_in_the_stream_of_pytorch(stream, tree, monkeypatch):
    stream.cuda_stream = 77
    used = []
    monkeypatch.setattr(fake_cupy.Stream, "__enter__", lambda self: used.append(self.ptr) or self)
    monkeypatch.setattr(fake_cupy.Stream, "__exit__", lambda *_: None)
    tree.mass_matrix(fake_libraries.Tensor(fake_cupy.asarray(state(tree, 5)[0])))
    assert used == [77]


def test_arrays_in_different_places_are_told_where_to_meet(stream, tree):
    q, v, tau = state(tree, 5)
    with pytest.raises(DtypeError, match=r"v is not on the GPU and q is: give torch.as_tensor\(v, device='cuda:0'\)"):
        tree.forward_dynamics(fake_libraries.Tensor(fake_cupy.asarray(q)), v, tau)
    with pytest.raises(KernelError, match="reactions of 'four-bar' is computed in main memory, and q is on a GPU"):
        four_bar().reactions(*(fake_cupy.asarray(x) for x in closed_state()))


def test_a_full_device_is_told(stream, tree, monkeypatch):
    def full(*_):
        raise MemoryError("Out of memory allocating 1,000 bytes")

    q = fake_cupy.asarray(state(tree, 5)[0])
    monkeypatch.setattr(fake_cupy, "empty", full)
    with pytest.raises(KernelError, match=r"GPU 0 has no room for mass_matrix of 5 states .*: give fewer"):
        tree.mass_matrix(q)


def test_without_a_gpu_the_error_says_what_to_look_at(stream, monkeypatch):
    monkeypatch.delattr(fake_cupy.cuda.runtime, "getDeviceCount")
    with pytest.raises(KernelError, match=r"there is no GPU that CuPy can use .* `nvidia-smi`"):
        lw.gpu()
