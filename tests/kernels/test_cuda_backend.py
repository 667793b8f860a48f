"""Arrays on a GPU: the back-end's own work on the CPU, with a stand-in for CuPy that runs the CUDA text as C++."""

import sys

import numpy as np
import pytest
import sample_programs as samples

import fake_cupy
import linkwright as lw
from linkwright.errors import DtypeError, KernelError, ShapeError
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.c import program_text
from linkwright.kernels.cuda import device_arrays
from linkwright.kernels.cuda.device_kernel import ItemKernel
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.kernel import Kernel
from linkwright.tape.build import ProgramBuilder, record, trace
from linkwright.tape.program import ITEM, Each

RNG = np.random.default_rng(7)


@pytest.fixture
def cupy(monkeypatch):
    return fake_cupy.install(monkeypatch)


def arm(q, v, t):
    return np.array([[np.sin(q[0]) * v[0, 0] + t, q[1] - v[1, 1]], [q[2] * t, v[0, 1] + v[1, 0]]])


ARM = record(arm, 3, (2, 2), (), name="arm")
PAIR = record(lambda x, y: (x * y[0], y - x[0]), 3, 2, name="pair")


def fresh(program):
    """A kernel of its own: nothing compiled, nothing uploaded."""
    return Kernel(program.digest, lambda: program)


def states(*leads, dtype=np.float64):
    q, v, t = leads if len(leads) == 3 else leads * 3
    shapes = ((*q, 3), (*v, 2, 2), t)
    return [RNG.standard_normal(shape).astype(dtype) for shape in shapes]


def agrees(cupy, result, wanted, dtype=np.float64):
    assert type(result) is cupy.ndarray
    assert result.dtype == dtype
    assert result.shape == wanted.shape
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(result.get(), wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max(initial=0.0))


@pytest.mark.parametrize("name", samples.ALL)
def test_a_batch_gives_what_numpy_gives(cupy, name):
    program, batch = samples.ALL[name](), 70
    inputs = samples.arguments(program, batch)
    given = [cupy.asarray(x.reshape(batch, *b.shape)) for x, b in zip(inputs, program.inputs, strict=True)]
    results = fresh(program)(*given)
    results = results if isinstance(results, tuple) else (results,)
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        np.testing.assert_allclose(got.get().reshape(batch, -1), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("lead", [(), (1,), (5,), (64,), (65,), (2, 40), (3, 1, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_leading_shape_is_a_batch_in_the_precision_of_the_inputs(cupy, lead, dtype):
    x = states(lead, dtype=dtype)
    agrees(cupy, compiled(ARM)(*map(cupy.asarray, x)), compiled(ARM)(*(a.astype(np.float64) for a in x)), dtype)


@pytest.mark.parametrize("leads", [[(), (4,), ()], [(11,), (), (1,)], [(3, 1), (1, 4), ()], [(2, 3, 4), (1, 1), (4,)]])
def test_leading_shapes_are_broadcast(cupy, leads):
    x = states(*leads)
    agrees(cupy, compiled(ARM)(*map(cupy.asarray, x)), compiled(ARM)(*x))


def test_one_state_for_all_is_not_copied(cupy):
    q, v, t = states((), (100,), (100,))
    compiled(ARM)(*map(cupy.asarray, (q, v, t)))
    assert [entry[0] for entry in cupy.log] == ["launch"]


def test_a_batch_of_no_states_launches_nothing(cupy):
    result = compiled(ARM)(*map(cupy.asarray, states((0, 3))))
    assert result.shape == (0, 3, 2, 2)
    assert not cupy.log


def test_inputs_need_not_be_contiguous(cupy):
    table = cupy.asarray(RNG.standard_normal((70, 9)))
    q, v, t = table[:, 1:4], cupy.asarray(RNG.standard_normal((70, 2, 4)))[:, :, ::2], table[:, 5]
    agrees(cupy, compiled(ARM)(q, v, t), compiled(ARM)(q.get(), v.get(), t.get()))
    backwards = q[::-1]
    agrees(cupy, compiled(ARM)(backwards, v, t), compiled(ARM)(backwards.get(), v.get(), t.get()))


def test_arrays_of_other_libraries_are_taken_without_copying(cupy):
    x = [cupy.asarray(a) for a in states((9,))]
    given = [cupy_array if k == 1 else fake_cupy.Foreign(cupy_array) for k, cupy_array in enumerate(x)]
    agrees(cupy, compiled(ARM)(*given), compiled(ARM)(*(a.get() for a in x)))
    assert [entry[0] for entry in cupy.log] == ["launch"]


def test_the_current_stream_waits_for_the_one_that_makes_an_array(cupy):
    x = [cupy.asarray(a) for a in states((9,))]
    compiled(ARM)(fake_cupy.Foreign(x[0], stream=77), *x[1:])
    assert cupy.log[0] == ("wait", 77)
    compiled(ARM)(fake_cupy.Foreign(x[0], stream=1), *x[1:])  # 1 is the default stream
    assert [entry[0] for entry in cupy.log] == ["wait", "launch", "launch"]


def test_out_takes_the_result(cupy):
    x = states((70,))
    given = [cupy.asarray(a) for a in x]
    out = cupy.empty((70, 2, 2))
    assert compiled(ARM)(*given, out=out) is out
    agrees(cupy, out, compiled(ARM)(*x))
    other = fake_cupy.Foreign(cupy.empty((70, 2, 2)))
    assert compiled(ARM)(*given, out=other) is other
    agrees(cupy, other.array, compiled(ARM)(*x))


def test_out_may_be_strided_or_lie_on_an_input(cupy):
    x = states((70,))
    given = [cupy.asarray(a) for a in x]
    wide = cupy.empty((70, 2, 5))
    compiled(ARM)(*given, out=wide[:, :, 1:3])
    agrees(cupy, wide[:, :, 1:3], compiled(ARM)(*x))
    compiled(ARM)(*given, out=given[1])
    agrees(cupy, given[1], compiled(ARM)(*x))


def test_several_outputs_come_as_a_tuple(cupy):
    x = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 2))
    results = compiled(PAIR)(*map(cupy.asarray, x))
    assert type(results) is tuple
    for got, wanted in zip(results, compiled(PAIR)(*x), strict=True):
        agrees(cupy, got, wanted)
    out = (cupy.empty((6, 3)), cupy.empty((6, 2)))
    assert compiled(PAIR)(*map(cupy.asarray, x), out=out)[1] is out[1]


def test_large_temporaries_are_worked_off_in_pieces(cupy, monkeypatch):
    monkeypatch.setattr(program_text, "LOCAL", 0)
    monkeypatch.setattr(device_arrays, "_WORK", 1)
    program, batch = samples.tree_scan(), 150
    inputs = samples.arguments(program, batch)
    results = fresh(program)(cupy.asarray(inputs[0].reshape(batch, -1, 2)))
    assert [entry[0] for entry in cupy.log] == ["launch"] * 3
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        np.testing.assert_allclose(got.get().reshape(batch, -1), wanted, rtol=1e-10, atol=1e-12)


def test_nan_stays_in_its_own_state(cupy):
    x = states((70,))
    x[0][3] = np.nan
    result = compiled(ARM)(*map(cupy.asarray, x)).get()
    assert np.isnan(result[3]).any()
    assert np.isfinite(np.delete(result, 3, axis=0)).all()


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (lambda cp, q, v, t: (q, v), ShapeError, r"arm takes 3 arrays \(q, v, t\); 2 were given"),
        (lambda cp, q, v, t: (v, v, t), ShapeError, r"arm: q has shape \(5, 2, 2\); needed is \(\.\.\., 3\)"),
        (lambda cp, q, v, t: (q[:2], v, t), ShapeError, "the batch shapes of its inputs do not fit together: q"),
        (lambda cp, q, v, t: (q, v.get(), t), DtypeError, r"v is not on the GPU and q is: give cupy.asarray\(v\)"),
        (
            lambda cp, q, v, t: (q, v, cp.asarray(t.get().astype(np.float32))),
            DtypeError,
            "arm: t has dtype float32; needed is float64, as q has",
        ),
        (
            lambda cp, q, v, t: (cp.asarray(np.zeros(3, int)), v, t),
            DtypeError,
            "arm: q has dtype int64; needed is float64 or float32",
        ),
    ],
)
def test_wrong_arrays_are_told_as_on_the_cpu(cupy, change, error, told):
    given = [cupy.asarray(a) for a in states((5,))]
    with pytest.raises(error, match=told):
        compiled(ARM)(*change(cupy, *given))


def test_arrays_on_two_devices_are_refused(cupy):
    q, v, t = (cupy.asarray(a) for a in states((5,)))
    t.device = cupy.Device(1)
    with pytest.raises(KernelError, match="q is on GPU 0 and t on GPU 1"):
        compiled(ARM)(q, v, t)


@pytest.mark.parametrize(
    ("out", "error", "told"),
    [
        (lambda cp: np.empty((5, 2, 2)), DtypeError, "must be a float64 array on GPU 0, not float64 in main memory"),
        (lambda cp: cp.empty((5, 2, 2), np.float32), DtypeError, "must be a float64 array on GPU 0, not float32"),
        (lambda cp: cp.empty((5, 4)), ShapeError, r"out \(y\) has shape \(5, 4\); needed is \(5, 2, 2\)"),
        (lambda cp: fake_cupy.Foreign(cp.empty((5, 2, 2)), readonly=True), ShapeError, "is read-only"),
    ],
)
def test_a_wrong_out_is_told_as_on_the_cpu(cupy, out, error, told):
    with pytest.raises(error, match=told):
        compiled(ARM)(*map(cupy.asarray, states((5,))), out=out(cupy))


def test_out_on_the_gpu_for_arrays_in_memory_is_refused(cupy):
    with pytest.raises(DtypeError, match="must be a float64 array, not float64 on a GPU"):
        compiled(ARM)(*states((5,)), out=fake_cupy.Foreign(cupy.empty((5, 2, 2))))


def test_without_cupy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    given = [fake_cupy.Foreign(fake_cupy.asarray(a)) for a in states((5,))]
    with pytest.raises(KernelError, match="pip install cupy-cuda12x"):
        compiled(ARM)(*given)


def test_a_mechanism_answers_on_the_device_also_after_its_shortcut_is_made(cupy):
    mech = lw.chain(3)
    q, v, tau = RNG.standard_normal((3, 66, 3))
    plain = mech.forward_dynamics(q[0].copy(), v[0].copy(), tau[0].copy())  # from now on a built-in function
    mech.forward_dynamics(q[0].copy(), v[0].copy(), tau[0].copy())
    assert "forward_dynamics" in mech.__dict__
    given = [cupy.asarray(x) for x in (q, v, tau)]
    agrees(cupy, mech.forward_dynamics(*given), mech.forward_dynamics(q, v, tau))
    agrees(cupy, mech.forward_dynamics(*(x[0] for x in given)), plain)
    agrees(cupy, mech.mass_matrix(given[0]), mech.mass_matrix(q))
    agrees(cupy, mech.program("forward_dynamics")(*given), mech.forward_dynamics(q, v, tau))


def test_time_may_be_a_plain_number(cupy):
    with lw.Builder("driven") as b:
        b.body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint("revolute", "ground", "rod", axis=(0, 1, 0), name="pin")
        b.joint_force("pin", lw.TIME * 2.0)
    mech = b.build()
    q, v, tau = RNG.standard_normal((3, 4, 1))
    given = [cupy.asarray(x) for x in (q, v, tau)]
    agrees(cupy, mech.forward_dynamics(*given, t=0.7), mech.forward_dynamics(q, v, tau, t=0.7))
    times = np.linspace(0.0, 1.0, 4)
    agrees(cupy, mech.forward_dynamics(*given, t=cupy.asarray(times)), mech.forward_dynamics(q, v, tau, t=times))


# -- one state, many items -----------------------------------------------------------------------------------
def levels(cupy, n=300, dtype=np.float64):
    program = samples.levels(n)
    kernel = fresh(program)
    inputs = [samples.arguments(program, 1, seed)[0] for seed in range(6)]
    right = [run(program, [x], 1) for x in inputs]
    return kernel, [cupy.asarray(x.reshape(n, 2).astype(dtype)) for x in inputs], right


def same(results, right, rtol=1e-10):
    for got, wanted in zip(results, right, strict=True):
        np.testing.assert_allclose(got.get(), wanted[0], rtol=rtol, atol=rtol)


def test_one_state_of_many_items_has_a_thread_an_item(cupy):
    kernel, inputs, right = levels(cupy)
    same(kernel(inputs[0]), right[0])
    assert ("graph", len(cupy.captured[0])) in cupy.log
    cupy.log.clear()
    same(kernel(inputs[1].reshape(1, 300, 2)), [x[None] for x in right[1]])  # with a batch axis: a thread a state
    assert not any(entry[0] == "graph" for entry in cupy.log)


def test_items_in_single_precision(cupy):
    kernel, inputs, right = levels(cupy, dtype=np.float32)
    results = kernel(inputs[0])
    assert results[0].dtype == np.float32
    same(results, right[0], 1e-3)


def test_arrays_that_come_again_get_a_graph_of_their_own(cupy):
    kernel, inputs, right = levels(cupy)
    out = (cupy.empty((300,)), cupy.empty((2,)))
    for _ in range(3):
        kernel(inputs[0], out=out)
        same(out, right[0])
    assert len(cupy.captured) == 2  # the kernel's own arrays, then these
    for x, wanted in zip(inputs, right, strict=True):
        kernel(x, out=out)
        same(out, wanted)
    assert len(cupy.captured) == 2
    inputs[0][...] = inputs[1]
    kernel(inputs[0], out=out)
    same(out, right[1])


def test_only_a_few_graphs_are_kept(cupy):
    kernel, inputs, right = levels(cupy)
    outs = [(cupy.empty((300,)), cupy.empty((2,))) for _ in inputs]
    for _ in range(3):
        for x, out, wanted in zip(inputs, outs, right, strict=True):
            kernel(x, out=out)
            same(out, wanted)
    (made,) = kernel.device._kernels.values()
    assert len(made._graphs) == 4


def test_inputs_of_items_need_not_be_contiguous(cupy):
    kernel, _, right = levels(cupy)
    wide = np.zeros((300, 4))
    wide[:, ::2] = samples.arguments(kernel.program, 1, 0)[0].reshape(300, 2)
    same(kernel(cupy.asarray(wide)[:, ::2]), right[0])


def test_calls_in_another_stream_wait_for_the_one_before(cupy):
    kernel, inputs, right = levels(cupy)
    kernel(inputs[0])
    cupy.log.clear()
    with cupy.Stream():
        same(kernel(inputs[1]), right[1])
    assert cupy.log[0] == ("wait", 0)


def test_every_function_is_loaded_before_the_capture(cupy):
    kernel, inputs, _ = levels(cupy)
    kernel(inputs[0])
    before = cupy.log[: cupy.log.index(("graph", len(cupy.captured[0])))]
    assert {entry[1] for entry in before if entry[0] == "launch"} == {told[0] for _, _, told in cupy.captured[0]}


def test_sums_start_at_zero_in_every_call(cupy):
    b = ProgramBuilder("sums")
    q, y = b.input("q", (300,)), b.output("y", (300,))
    sums = b.temporary("sums", (300, 2))
    block, _, _ = trace(lambda x: np.array([x]), [()])
    other, _, _ = trace(lambda x: x[0], [(1,)])
    item = sums.part(1, (1,)).at((2, ITEM), add=True)
    b.add(Each(300, (b.case(block, [q.part(0, ()).at((1, ITEM))], [item]),)))
    b.add(Each(300, (b.case(other, [sums.part(1, (1,)).at((2, ITEM))], [y.part(0, ()).at((1, ITEM))]),)))
    kernel, x = compiled(b.build()), cupy.asarray(RNG.standard_normal(300))
    for _ in range(3):
        np.testing.assert_array_equal(kernel(x).get(), x.get())
    assert ("memset", 300 * 8) in cupy.log  # the numbers that are added to, and no others


def test_items_can_be_asked_for(cupy):
    program = samples.tree_scan()
    inputs = samples.arguments(program, 1)
    results = ItemKernel(program)(cupy.asarray(inputs[0].reshape(7, 2)))
    for got, wanted in zip(results, run(program, inputs, 1), strict=True):
        np.testing.assert_allclose(got.get().reshape(-1), wanted[0], rtol=1e-10)


LARGE = pytest.param(lambda: lw.random_tree(90, 3), marks=pytest.mark.slow)


@pytest.mark.parametrize("made", [lambda: lw.chain(300), lambda: lw.tree(200, 3), LARGE])
def test_the_assembly_has_a_thread_an_item(cupy, made):
    mech = made()
    rng = np.random.default_rng(0)
    q = mech.integrate(mech.neutral(), rng.standard_normal(mech.nv))
    v, tau = rng.standard_normal((2, mech.nv))
    wanted = mech.forward_dynamics(q, v, tau)
    found = mech.forward_dynamics(*(cupy.asarray(x) for x in (q, v, tau)), method="assembly").get()
    assert any(entry[0] == "graph" for entry in cupy.log)
    assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()
