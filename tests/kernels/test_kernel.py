"""The careful path: what it takes, what it converts, what it refuses and how it says so."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
import sample_programs as samples

from linkwright.errors import DtypeError, KernelError, ShapeError
from linkwright.kernels import kernel as kernels
from linkwright.kernels import variant
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.llvm.compiler import _engines, lanes
from linkwright.kernels.variant import Signature, native
from linkwright.tape.build import ProgramBuilder, record

RNG = np.random.default_rng(5)
LANES = lanes()


def arm(q, v, t):
    """Three inputs of different shapes and one output."""
    return np.array([[np.sin(q[0]) * v[0, 0] + t, q[1] - v[1, 1]], [q[2] * t, v[0, 1] + v[1, 0]]])


ARM = record(arm, 3, (2, 2), (), name="arm")
PAIR = record(lambda x, y: (x * y[0], y - x[0]), 3, 2, name="pair")


@pytest.fixture(scope="module")
def kernel():
    return compiled(ARM)


@pytest.fixture(scope="module")
def pair():
    return compiled(PAIR)


def states(*lead):
    return RNG.standard_normal((*lead, 3)), RNG.standard_normal((*lead, 2, 2)), RNG.standard_normal(lead)


def wanted(q, v, t):
    """The answer state by state, broadcast by NumPy."""
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-2], t.shape)
    q, v, t = np.broadcast_to(q, (*lead, 3)), np.broadcast_to(v, (*lead, 2, 2)), np.broadcast_to(t, lead)
    result = np.empty((*lead, 2, 2))
    for at in np.ndindex(*lead):
        result[at] = arm(q[at], v[at], t[at])
    return result


def agrees(result, right):
    assert type(result) is np.ndarray
    assert result.dtype == np.float64
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, rtol=1e-14, atol=1e-15)


# -- shapes ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lead", [(), (1,), (5,), (1, 1), (2, 3), (3, 1, 4), (LANES,), (LANES + 1,), (7 * LANES - 1,)])
def test_any_leading_shape_is_a_batch(kernel, lead):
    x = states(*lead)
    agrees(kernel(*x), wanted(*x))


@pytest.mark.parametrize("batch", range(1, 4 * LANES + 2))
def test_no_batch_is_too_odd_for_the_lanes(kernel, batch):
    x = states(batch)
    agrees(kernel(*x), wanted(*x))


@pytest.mark.parametrize(
    "leads",
    [
        [(), (4,), ()],
        [(11,), (), (11,)],
        [(1,), (11,), (11,)],
        [(3, 1), (1, 4), ()],
        [(3, 4), (4,), (1,)],
        [(2, 3, 4), (1, 1), (3, 1)],
        [(1, 1), (), (1,)],
    ],
)
def test_leading_shapes_are_broadcast(kernel, leads):
    x = [states(*lead)[k] for k, lead in enumerate(leads)]
    agrees(kernel(*x), wanted(*x))


@pytest.mark.parametrize("lead", [(0,), (0, 3), (3, 0), (0, 0)])
def test_a_batch_of_no_states_gives_an_empty_result(kernel, lead):
    result = kernel(*states(*lead))
    assert result.shape == (*lead, 2, 2)
    assert kernel(states()[0], *states(*lead)[1:]).shape == (*lead, 2, 2)


def test_one_state_and_no_states_broadcast_to_none(kernel):
    q, v, _ = states(1)
    assert kernel(q, v, np.zeros((0,))).shape == (0, 2, 2)


def test_arrays_without_numbers_are_taken():
    assert record(lambda x, y: x * 2.0, 0, 2)(np.zeros((3, 0)), np.zeros((3, 2))).shape == (3, 0)


def test_a_program_without_inputs_is_called_with_none():
    b = ProgramBuilder("constant")
    y = b.output("y", (3,))
    b.call(lambda: np.array([1.0, 2.0, 3.0]), [], [y])
    np.testing.assert_array_equal(b.build()(), [1.0, 2.0, 3.0])


def test_results_are_fresh_arrays(kernel):
    x = states(3)
    first = kernel(*x)
    kept = first.copy()
    second = kernel(*(2.0 * a for a in x))
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


def test_inputs_are_left_as_they_were(kernel):
    for lead in ((), (9,)):
        x = states(*lead)
        kept = [a.copy() for a in x]
        kernel(*x)
        for a, b in zip(x, kept, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("position", "shape", "told"),
    [
        (0, (4,), r"arm: q has shape \(4,\); needed is \(\.\.\., 3\)"),
        (0, (), r"arm: q has shape \(\); needed is \(\.\.\., 3\)"),
        (0, (3, 1), r"arm: q has shape \(3, 1\); needed is \(\.\.\., 3\)"),
        (1, (2,), r"arm: v has shape \(2,\); needed is \(\.\.\., 2, 2\)"),
        (1, (2, 3), r"arm: v has shape \(2, 3\); needed is \(\.\.\., 2, 2\)"),
        (1, (4, 3, 2), r"arm: v has shape \(4, 3, 2\); needed is \(\.\.\., 2, 2\)"),
    ],
)
def test_a_wrong_shape_is_told_with_the_right_one(kernel, position, shape, told):
    x = list(states())
    x[position] = np.zeros(shape)
    with pytest.raises(ShapeError, match=told) as caught:
        kernel(*x)
    assert caught.value.given == shape
    assert caught.value.wanted == kernel.signature.inputs[position].shape


def test_batches_that_do_not_fit_are_told_by_name(kernel):
    q, _, _ = states(4)
    _, v, t = states(5)
    with pytest.raises(ShapeError, match=r"do not fit together: q \(4, 3\), v \(5, 2, 2\), t \(5,\)"):
        kernel(q, v, t)


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_a_wrong_number_of_arrays_is_told_with_their_names(kernel, count):
    with pytest.raises(ShapeError, match=rf"arm takes 3 arrays \(q, v, t\); {count} were given") as caught:
        kernel(*[np.zeros(3)] * count)
    assert (caught.value.given, caught.value.wanted) == (count, 3)


# -- numbers ---------------------------------------------------------------------------------------------
def test_lists_tuples_and_numbers_are_arrays(kernel):
    q, v, t = states()
    agrees(kernel(q.tolist(), tuple(map(tuple, v)), float(t)), wanted(q, v, t))
    agrees(
        kernel([1, 2, 3], [[1, 2], [3, 4]], 5),
        wanted(np.arange(1.0, 4), np.arange(1.0, 5).reshape(2, 2), np.array(5.0)),
    )
    agrees(kernel([q, q], [v, v], [1.0, t]), wanted(np.array([q, q]), np.array([v, v]), np.array([1.0, t])))
    agrees(kernel(q, v, np.float64(t)), wanted(q, v, t))


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "u1", "i4", "u4", "i8", "u8", ">f8", ">f4", ">i4", "<f8"])
def test_numbers_of_other_real_types_are_converted(kernel, dtype):
    for lead in ((), (2 * LANES + 1,)):
        x = [np.abs(10 * a).astype(dtype) for a in states(*lead)]
        agrees(kernel(*x), wanted(*(a.astype(np.float64) for a in x)))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.zeros(3, complex), "complex128"),
        ([1j, 0, 0], "complex128"),
        (np.zeros(3, object), "object"),
        ([None, 1.0, 2.0], "object"),
        (np.zeros(3, bool), "bool"),
        ([True, False, True], "bool"),
        ("abc", "<U3"),
        (["a", "b", "c"], "<U1"),
        (b"abc", r"\|S3"),
        (np.zeros(3, "M8[s]"), "datetime64"),
        (np.zeros(3, [("x", "f8")]), "x"),
        ([10**30, 1, 1], "object"),
        pytest.param(
            np.zeros(3, np.longdouble),
            "float128|longdouble",
            marks=pytest.mark.skipif(np.longdouble(0).itemsize == 8, reason="long double is double here"),
        ),
    ],
    ids=str,
)
def test_what_is_no_real_number_is_refused_with_both_dtypes(kernel, value, told):
    with pytest.raises(DtypeError, match=rf"arm: q has dtype .*({told}).*; needed is float64") as caught:
        kernel(value, *states()[1:])
    assert caught.value.wanted == "float64"
    assert isinstance(caught.value, TypeError)


def test_a_ragged_list_is_told_by_name(kernel):
    with pytest.raises(ShapeError, match="arm: v cannot be made an array"):
        kernel(np.zeros(3), [[1.0, 2.0], [3.0]], 0.0)


def test_masked_arrays_are_refused(kernel):
    q, v, t = states()
    with pytest.raises(DtypeError, match=r"arm: q is a masked array.*q\.filled"):
        kernel(np.ma.masked_greater(q, 0.0), v, t)


# -- memory ----------------------------------------------------------------------------------------------
class Labelled(np.ndarray):
    """A subclass of ndarray."""


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    found = np.frombuffer(raw.data, np.float64, array.size, offset=1).reshape(array.shape)
    found[...] = array
    assert not found.flags.aligned
    return found


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    wide = np.full((*array.shape, 2), np.nan)
    wide[..., 0] = array
    return wide[..., 0]


def backward(array):
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1] if array.ndim else array


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "backward": backward,
    "misaligned": misaligned,
    "read-only": read_only,
    "subclass": lambda a: a.view(Labelled),
    "byte-swapped": lambda a: a.astype(">f8"),
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim and len(a) else a,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lead", [(), (5,), (2, LANES)])
def test_any_layout_in_memory_is_taken(kernel, layout, lead):
    plain = states(*lead)
    odd = [LAYOUTS[layout](a) for a in plain]
    agrees(kernel(*odd), wanted(*(np.array(a, dtype=np.float64) for a in odd)))
    for k in range(3):
        mixed = [odd[j] if j == k else plain[j] for j in range(3)]
        agrees(kernel(*mixed), wanted(*(np.array(a, dtype=np.float64) for a in mixed)))


def test_a_matrix_is_its_rows(kernel):
    q, v, t = states(2)
    agrees(kernel(np.asmatrix(q), v, t), wanted(q, v, t))


# -- out ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lead", [(), (1,), (3,), (2, LANES + 1)])
def test_out_is_filled_and_given_back(kernel, lead):
    x, out = states(*lead), np.full((*lead, 2, 2), np.nan)
    assert kernel(*x, out=out) is out
    agrees(out, wanted(*x))


@pytest.mark.parametrize("layout", ["fortran", "strided", "backward", "misaligned", "subclass"])
def test_out_of_any_layout_is_filled(kernel, layout):
    x, out = states(2 * LANES), LAYOUTS[layout](np.full((2 * LANES, 2, 2), np.nan))
    assert kernel(*x, out=out) is out
    np.testing.assert_allclose(np.asarray(out), wanted(*x), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("batch", [1, 2, LANES, 3 * LANES + 1])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_out_may_overlap_an_input(batch, shift):
    program = record(lambda x: x[::-1] * 2.0 + x[0], 4, name="turn")
    memory = RNG.standard_normal(4 * batch + shift)
    x, out = memory[: 4 * batch].reshape(batch, 4), memory[shift:].reshape(batch, 4)
    right = x[:, ::-1] * 2.0 + x[:, :1]
    assert program(x, out=out) is out
    np.testing.assert_allclose(out, right, rtol=1e-15)


def test_two_outs_may_lie_between_each_other(pair):
    x, y = RNG.standard_normal((9, 3)), RNG.standard_normal((9, 2))
    memory = np.zeros((9, 5))
    outs = (memory[:, :3], memory[:, 3:])
    result = pair(x, y, out=outs)
    assert result[0] is outs[0]
    np.testing.assert_array_equal(memory, np.hstack([x * y[:, :1], y - x[:, :1]]))


def test_several_outputs_are_a_tuple(pair):
    for lead in ((), (4,), (LANES,)):
        x, y = RNG.standard_normal((*lead, 3)), RNG.standard_normal((*lead, 2))
        result = pair(x, y)
        assert isinstance(result, tuple)
        agrees(result[0], x * y[..., :1])
        agrees(result[1], y - x[..., :1])
        outs = [np.empty((*lead, 3)), np.empty((*lead, 2))]
        again = pair(x, y, out=outs)
        assert all(a is b for a, b in zip(again, outs, strict=True))
        agrees(outs[1], result[1])


@pytest.mark.parametrize(
    ("out", "error", "told"),
    [
        (np.zeros((2, 3)), ShapeError, r"out \(y\) has shape \(2, 3\); needed is \(2, 2\)"),
        (np.zeros((1, 2, 2)), ShapeError, r"out \(y\) has shape \(1, 2, 2\); needed is \(2, 2\)"),
        (np.zeros((2, 2), np.float32), DtypeError, r"out \(y\) must be a float64 array, not float32"),
        (np.zeros((2, 2), ">f8"), DtypeError, r"out \(y\) must be a float64 array, not >f8"),
        (np.zeros((2, 2), int), DtypeError, "must be a float64 array, not int64"),
        ([[0.0, 0.0], [0.0, 0.0]], DtypeError, "must be a float64 array, not list"),
        ((np.zeros((2, 2)),), DtypeError, "must be a float64 array, not tuple"),
        (3, DtypeError, "must be a float64 array, not int"),
        (read_only(np.zeros((2, 2))), ShapeError, r"out \(y\) is read-only; give a writable array"),
    ],
    ids=str,
)
def test_an_out_that_cannot_be_filled_is_refused(kernel, out, error, told):
    kept = np.array(out, copy=True) if isinstance(out, np.ndarray) else None
    with pytest.raises(error, match=told):
        kernel(*states(), out=out)
    if kept is not None:
        np.testing.assert_array_equal(out, kept)


@pytest.mark.parametrize("out", [(), (np.zeros(3),), np.zeros((2, 3)), [np.zeros(3)] * 3, 7], ids=str)
def test_outs_must_be_as_many_as_outputs(pair, out):
    with pytest.raises(ShapeError, match=r"pair: out needs 2 arrays \(y, y1\); \d were given"):
        pair(np.zeros(3), np.zeros(2), out=out)


def test_nothing_is_written_to_out_when_an_input_is_wrong(kernel):
    out = np.zeros((2, 2))
    with pytest.raises(ShapeError):
        kernel(np.ones(4), np.ones((2, 2)), 1.0, out=out)
    assert not out.any()


# -- states are independent -----------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [1, LANES - 1, LANES, 2 * LANES + 3])
def test_nan_in_gives_nan_out_in_that_state_alone(kernel, batch):
    q, v, t = states(batch)
    clean = kernel(q, v, t)
    for bad in range(batch):
        spoiled = q.copy()
        spoiled[bad] = np.nan
        result = kernel(spoiled, v, t)
        assert np.isnan(result[bad, 0]).all()
        others = np.delete(np.arange(batch), bad)
        np.testing.assert_array_equal(result[others], clean[others])


# -- programs ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize("batch", [1, 2 * LANES + 1])
def test_every_construct_runs_through_the_kernel(name, batch):
    program = samples.ALL[name]()
    inputs = samples.arguments(program, batch)
    shaped = [x.reshape(batch, *b.shape) for x, b in zip(inputs, program.inputs, strict=True)]
    kept = [x.copy() for x in shaped]
    found = program(*shaped)
    for got, right, b in zip(
        found if isinstance(found, tuple) else (found,),
        run(program, inputs, batch),
        program.outputs,
        strict=True,
    ):
        np.testing.assert_allclose(got, right.reshape(batch, *b.shape), rtol=1e-10, atol=1e-12)
    for a, b in zip(shaped, kept, strict=True):
        np.testing.assert_array_equal(a, b)


def test_programs_that_differ_only_in_how_they_return_are_kept_apart():
    bare, wrapped = record(lambda x: x * 2.0, 2, name="f"), record(lambda x: (x * 2.0,), 2, name="f")
    assert isinstance(bare(np.ones(2)), np.ndarray)
    assert isinstance(wrapped(np.ones(2)), tuple)


def test_programs_that_differ_only_in_name_are_told_apart():
    for name in ("first", "second"):
        with pytest.raises(ShapeError, match=f"^{name}: x has shape"):
            record(lambda x: x * 2.5, 2, name=name)(np.ones(3))


def test_a_program_has_one_kernel():
    program = record(lambda x: x + 1.0, 2)
    assert compiled(program) is compiled(program)


def test_a_signature_survives_its_text():
    for program in (ARM, PAIR, samples.tree_scan()):
        signature = Signature.of(program, (1, 4))
        assert Signature.loads(signature.dumps()) == signature


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("used", [False, True])
def test_kernels_and_programs_can_be_pickled_and_copied(used, cached, monkeypatch, tmp_path):
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path) if cached else "")
    program = record(arm, 3, (2, 2), (), name="arm")
    x = states(4)
    if used:
        program(*x)
    for again in (pickle.loads(pickle.dumps(program)), copy.copy(program), copy.deepcopy(program)):
        agrees(again(*x), wanted(*x))
    for again in (pickle.loads(pickle.dumps(compiled(program))), copy.deepcopy(compiled(program))):
        assert isinstance(again, Kernel)
        agrees(again(*x), wanted(*x))


# -- rooms and threads of control --------------------------------------------------------------------------------
def test_a_call_in_the_middle_of_a_call_does_not_disturb_it(kernel):
    """A signal handler may run between any two steps of a call, and call the same kernel."""
    inner, outer = states(), states()
    right_inner, right_outer = kernel(*inner), kernel(*outer)
    wrong, seen = [], []

    def handler(*_):
        seen.append(1)
        if not np.array_equal(kernel(*inner), right_inner):
            wrong.append("inner")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 2e-4, 2e-4)
    try:
        for _ in range(20_000):
            if not np.array_equal(kernel(*outer), right_outer):
                wrong.append("outer")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert not wrong
    assert len(seen) > 10


def test_memory_of_calls_is_used_again():
    kernel = compiled(record(arm, 3, (2, 2), (), name="arm"))
    for _ in range(100):
        kernel(*states())
        kernel(*states(LANES))
    assert all(len(kernel.variant(w)._rooms) == 1 for w in (1, LANES))


def test_a_finaliser_in_a_dying_cycle_may_still_call_the_kernel():
    """The code is unloaded only after every object of the cycle has had its last word."""
    told = []

    class Holder:
        def __init__(self):
            self.me = self
            self.kernel = compiled(record(lambda x: x * 3.0, 2))
            self.kernel(np.ones(2))

        def __del__(self):
            told.append(self.kernel(np.ones(2)).tolist())

    gc.collect()
    before = len(_engines)
    Holder()
    gc.collect()
    assert told == [[3.0, 3.0]]
    gc.collect()
    assert len(_engines) == before


# -- without LLVM ---------------------------------------------------------------------------------------------
WITHOUT = """
import sys
import numpy as np
if {hide}:
    sys.modules["llvmlite"] = None
import linkwright as lw
from linkwright.kernels.variant import native
assert not native()
f = lw.record(lambda x, y: (np.sin(x) * y[0], y - x[0]), 3, 2)
x, y = np.arange(12.0).reshape(4, 3), np.ones(2)
a, b = f(x, y)
np.testing.assert_allclose(a, np.sin(x), rtol=1e-14)
np.testing.assert_allclose(b, y - x[:, :1], rtol=1e-14)
assert f(x[:0], y)[0].shape == (0, 3)
out = (np.empty(3), np.empty(2))
assert f(x[0], y, out=out)[0] is out[0]
arm = lw.chain(3)
q = np.full(3, 0.2)
first, second = arm.forward_dynamics(q, q, q), arm.forward_dynamics(q, q, q)
assert "forward_dynamics" not in vars(arm)
print(*first)
"""


@pytest.mark.parametrize("hide", [False, True], ids=["by choice", "not installed"])
def test_without_llvm_programs_run_in_numpy(hide, tmp_path):
    import linkwright as lw

    environment = {**os.environ, "LINKWRIGHT_BACKEND": "llvm" if hide else "numpy", "LINKWRIGHT_CACHE": str(tmp_path)}
    code = WITHOUT.format(hide=hide)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    q = np.full(3, 0.2)
    np.testing.assert_allclose(np.array(done.stdout.split(), float), lw.chain(3).forward_dynamics(q, q, q), rtol=1e-12)


def test_an_unknown_back_end_is_an_error(monkeypatch):
    native.cache_clear()
    monkeypatch.setenv("LINKWRIGHT_BACKEND", "llvmm")
    try:
        with pytest.raises(KernelError, match="LINKWRIGHT_BACKEND is 'llvmm'; it can be 'llvm' or 'numpy'"):
            native()
    finally:
        monkeypatch.undo()
        native.cache_clear()


def test_addresses_are_the_same_read_or_asked_for():
    for array in (np.zeros(3), np.zeros((4, 4))[1:, ::2], np.zeros(()), np.zeros(0), np.zeros(3).view(Labelled)):
        assert variant._address_asked(array) == variant.address(array) == array.__array_interface__["data"][0]


def test_the_careful_path_runs_with_addresses_that_are_asked_for(kernel, monkeypatch):
    for module in (kernels, variant):
        monkeypatch.setattr(module, "address", variant._address_asked)
    x, out = states(5), np.empty((5, 2, 2))
    agrees(kernel(*x, out=out), wanted(*x))
