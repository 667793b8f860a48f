"""The native shortcut: it gives what the careful path gives, for every kind of call, and leaks nothing."""

import copy
import ctypes
import gc
import inspect
import io
import pickle
import pydoc
import sys
import tracemalloc
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.dynamics.functions import Request
from linkwright.errors import DtypeError, LinkwrightWarning, ShapeError
from linkwright.kernels import callpath, trampoline
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.llvm.compiler import _engines, add_symbols, load, object_code
from linkwright.tape.build import record

pytestmark = pytest.mark.skipif(not callpath.supported(), reason="no native call path on this interpreter")

BUILTIN = type(len)
N = 5


def arm():
    """A fresh mechanism; its first calls have been made."""
    mech = lw.chain(N)
    q = np.zeros(N)
    mech.forward_dynamics(q, q, q)
    mech.mass_matrix(q)
    mech.forward_dynamics_derivatives(q, q, q)
    mech.kinetic_energy(q, q)
    return mech


@pytest.fixture(scope="module")
def mech():
    return arm()


def state(seed=0):
    return tuple(np.random.default_rng(seed).standard_normal((3, N)))


def careful(mech, *arrays, **options):
    return type(mech).forward_dynamics(mech, *arrays, **options)


# -- the same answers ----------------------------------------------------------------------------------------
def test_the_first_plain_call_shadows_the_method():
    fresh = lw.chain(N)
    assert not isinstance(fresh.forward_dynamics, BUILTIN)
    q, v, tau = state()
    first = fresh.forward_dynamics(q, v, tau)
    assert isinstance(fresh.forward_dynamics, BUILTIN)
    np.testing.assert_array_equal(fresh.forward_dynamics(q, v, tau), first)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("forward_dynamics", 3),
        ("inverse_dynamics", 3),
        ("mass_matrix", 1),
        ("bias_forces", 2),
        ("gravity_forces", 1),
        ("kinetic_energy", 2),
        ("potential_energy", 1),
        ("center_of_mass", 1),
        ("momentum", 2),
        ("integrate", 2),
        ("difference", 2),
        ("reactions", 3),
        ("forward_dynamics_derivatives", 3),
        ("inverse_dynamics_derivatives", 3),
    ],
)
def test_every_method_gives_what_its_careful_path_gives(method, arguments):
    fresh, x = lw.chain(N), state(1)[:arguments]
    right = getattr(fresh, method)(*x)
    assert isinstance(getattr(fresh, method), BUILTIN)
    found = getattr(fresh, method)(*x)
    assert type(found) is type(right)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, right)), strict=True):
        assert type(a) is np.ndarray
        assert a.dtype == np.float64
        assert a.shape == b.shape
        assert a.flags.owndata
        assert a.flags.c_contiguous
        assert a.flags.writeable
        np.testing.assert_array_equal(a, b)


def test_results_are_fresh_arrays(mech):
    q, v, tau = state()
    first, second = mech.forward_dynamics(q, v, tau), mech.forward_dynamics(q, v, tau)
    assert first is not second
    assert not np.shares_memory(first, second)


def test_out_is_filled_and_given_back(mech):
    q, v, tau = state()
    out = np.full(N, np.nan)
    assert mech.forward_dynamics(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, careful(mech, q, v, tau))
    m = np.full((N, N), np.nan)
    assert mech.mass_matrix(q, out=m) is m
    np.testing.assert_array_equal(m, mech.mass_matrix(q))


@pytest.mark.parametrize("shift", [0, 1, N - 1, N])
@pytest.mark.parametrize("which", range(3))
def test_out_may_overlap_an_input(mech, which, shift):
    x = list(state())
    right = mech.forward_dynamics(*x)
    memory = np.full(3 * N, np.nan)
    x[which], memory[N : 2 * N] = memory[N : 2 * N], x[which]
    for start in (N - shift, N + shift):
        kept = memory.copy()
        out = memory[start : start + N]
        assert mech.forward_dynamics(*x, out=out) is out
        np.testing.assert_array_equal(out, right)
        memory[:] = kept


class Labelled(np.ndarray):
    pass


def odd(kind, x):
    if kind == "list":
        return x.tolist()
    if kind == "float32":
        return x.astype(np.float32)
    if kind == "strided":
        return np.repeat(x, 2)[::2]
    if kind == "backward":
        return x[::-1].copy()[::-1]
    if kind == "misaligned":
        raw = np.zeros(x.nbytes + 1, np.uint8)
        raw[1:] = x.view(np.uint8)
        return np.frombuffer(raw.data, np.float64, len(x), offset=1)
    if kind == "byte-swapped":
        return x.astype(">f8")
    if kind == "subclass":
        return x.view(Labelled)
    if kind == "read-only":
        x = x.copy()
        x.flags.writeable = False
        return x
    if kind == "integers":
        return np.rint(3 * x).astype(int)
    if kind == "one row":
        return x[None].copy()
    if kind == "batch":
        return np.stack([x, 2 * x, 3 * x])
    raise AssertionError(kind)


KINDS = [
    "list", "float32", "strided", "backward", "misaligned", "byte-swapped", "subclass", "read-only", "integers",
    "one row", "batch",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", range(3))
def test_arrays_that_are_not_plain_take_the_careful_path(mech, kind, which):
    x = list(state())
    x[which] = odd(kind, x[which])
    plain = np.array(x[which], dtype=np.float64)
    found = mech.forward_dynamics(*x)
    x[which] = plain
    np.testing.assert_allclose(found, careful(mech, *x), rtol=1e-13)


def test_words_for_arrays_and_other_options_take_the_careful_path(mech):
    q, v, tau = state()
    right = careful(mech, q, v, tau)
    np.testing.assert_array_equal(mech.forward_dynamics(q=q, v=v, tau=tau), right)
    np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau=tau), right)
    np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau, t=0.5), right)
    np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau, out=None), right)
    np.testing.assert_allclose(mech.forward_dynamics(q, v, tau, method="mass-matrix"), right, rtol=1e-9)
    nothing = {}
    np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau, **nothing), right)
    out = np.empty(N)
    assert mech.forward_dynamics(q, v, tau, **{"".join(["o", "ut"]): out}) is out
    assert mech.forward_dynamics(q, v, out=out, tau=tau) is out
    assert mech.forward_dynamics(q, v, tau, t=0.0, out=out) is out
    np.testing.assert_array_equal(out, right)


WRONG = {
    "too few": (lambda q, v, tau: ((q, v), {}), TypeError, "tau"),
    "too many": (lambda q, v, tau: ((q, v, tau, q), {}), TypeError, "positional"),
    "an unknown word": (lambda q, v, tau: ((q, v, tau), {"owt": q}), TypeError, "owt"),
    "a word twice": (lambda q, v, tau: ((q, v, tau), {"q": q}), TypeError, "multiple values"),
    "a wrong shape": (lambda q, v, tau: ((q, v[:3].copy(), tau), {}), ShapeError, r"v has shape \(3,\)"),
    "a wrong number of axes": (lambda q, v, tau: ((q, v, np.array(1.0)), {}), ShapeError, r"tau has shape \(\)"),
    "complex numbers": (lambda q, v, tau: ((q + 0j, v, tau), {}), DtypeError, "complex128"),
    "nothing": (lambda q, v, tau: ((q, None, tau), {}), DtypeError, "v has dtype object"),
    "text": (lambda q, v, tau: (("abc", v, tau), {}), DtypeError, "q has dtype <U3"),
    "a wrong out": (lambda q, v, tau: ((q, v, tau), {"out": np.empty(3)}), ShapeError, r"needed is \(5,\)"),
    "a list as out": (lambda q, v, tau: ((q, v, tau), {"out": [0.0] * N}), DtypeError, "not list"),
    "integers as out": (lambda q, v, tau: ((q, v, tau), {"out": np.zeros(N, int)}), DtypeError, "not int64"),
    "a read-only out": (
        lambda q, v, tau: ((q, v, tau), {"out": odd("read-only", q)}),
        ShapeError,
        "read-only",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_gets_the_careful_paths_error(mech, what):
    make, error, told = WRONG[what]
    arguments, options = make(*state())
    with pytest.raises(error, match=told):
        mech.forward_dynamics(*arguments, **options)
    q, v, tau = state()
    np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau), careful(mech, q, v, tau))


def test_an_error_of_the_careful_path_comes_out_as_it_is():
    class Own(Exception):
        pass

    def fails(*_, **__):
        raise Own("from the careful path")

    quick = callpath.shortcut(compiled(record(lambda x: x * 2.0, 3)), fails, "double")
    np.testing.assert_array_equal(quick(np.ones(3)), [2.0, 2.0, 2.0])
    with pytest.raises(Own, match="from the careful path"):
        quick(np.ones(4))


def test_arguments_reach_the_careful_path_as_they_were_given():
    seen = []
    quick = callpath.shortcut(
        compiled(record(lambda x: x * 2.0, 3)), lambda *a, **k: seen.append((a, k)) or "told", "f"
    )
    thing = object()
    assert quick(thing, 2, word=thing) == "told"
    assert quick() == "told"
    assert quick(out=thing) == "told"
    assert seen == [((thing, 2), {"word": thing}), ((), {}), ((), {"out": thing})]


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (0,), (3, 0)])
def test_arrays_without_and_with_axes_and_without_numbers(shape):
    kernel = compiled(record(lambda x, y: (x * 2.0, y + 1.0), shape, ()))
    quick = callpath.shortcut(kernel, kernel, "f")
    x = np.random.default_rng(0).standard_normal(shape)
    for found, right in zip(quick(np.array(x), np.array(3.0)), (x * 2.0, np.array(4.0)), strict=True):
        assert type(found) is np.ndarray
        assert found.shape == right.shape
        np.testing.assert_array_equal(found, right)


def test_programs_with_data_and_columns_have_them():
    import sample_programs as samples

    program = samples.tree_scan()
    kernel = compiled(program)
    quick = callpath.shortcut(kernel, kernel, "scan")
    x = np.random.default_rng(0).standard_normal((7, 2))
    for found, right in zip(quick(x), kernel(x), strict=True):
        np.testing.assert_array_equal(found, right)


# -- where there is none ------------------------------------------------------------------------------------
def test_there_is_no_shortcut_where_it_cannot_be_or_would_not_pay(monkeypatch):
    plain = compiled(record(lambda x: x * 2.0, 3))
    assert callpath.shortcut(plain, plain, "f") is not None
    wide = compiled(record(lambda x: x * 2.0, (2, 2, 2)))
    assert callpath.shortcut(wide, wide, "f") is None
    wrapped = compiled(record(lambda x: (x * 2.0,), 3))
    assert callpath.shortcut(wrapped, wrapped, "f") is None
    many = compiled(record(lambda *x: sum(x), *[2] * callpath.MAX_ARRAYS))
    assert callpath.shortcut(many, many, "f") is None
    monkeypatch.setattr(callpath, "MAX_WORK", 2)
    assert callpath.shortcut(plain, plain, "f") is None


@pytest.mark.parametrize("what", ["supported", "native"])
def test_in_doubt_methods_take_the_careful_path(what, monkeypatch):
    monkeypatch.setattr(callpath, what, lambda: False)
    fresh, x = lw.chain(N), state()
    first, second = fresh.forward_dynamics(*x), fresh.forward_dynamics(*x)
    assert "forward_dynamics" not in vars(fresh)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "offset", ["_DATA", "_ND", "_DIMS", "_DESCR", "_FLAGS", "_TUPLE_ITEMS", "_TUPLE_SIZE", "_BYTES_DATA", "_FLOAT"]
)
def test_another_layout_of_objects_is_noticed(offset, monkeypatch):
    shift = -8 if offset in ("_FLAGS", "_BYTES_DATA") else 8
    if offset == "_DIMS":
        shift = -16  # still a pointer that can be followed
    monkeypatch.setattr(trampoline, offset, getattr(trampoline, offset) + shift)
    with pytest.warns(LinkwrightWarning, match="memory layout of Python"):
        assert not callpath.supported.__wrapped__()


def test_another_interface_of_numpy_is_noticed(monkeypatch):
    monkeypatch.setattr(trampoline, "_NUMPY_ABIS", (0x0300_0000,))
    with pytest.warns(LinkwrightWarning, match="native calls are disabled"):
        assert not callpath.supported.__wrapped__()


def test_a_method_that_a_subclass_overrides_is_not_shadowed(mech):
    class Loaded(lw.Mechanism):
        def forward_dynamics(self, q, v, tau, **options):
            return super().forward_dynamics(q, v, tau, **options) + 1000.0

    own, x = Loaded(mech.description), state()
    for _ in range(3):
        np.testing.assert_array_equal(own.forward_dynamics(*x), mech.forward_dynamics(*x) + 1000.0)
        np.testing.assert_array_equal(own.mass_matrix(x[0]), mech.mass_matrix(x[0]))
    assert isinstance(own.mass_matrix, BUILTIN)


# -- what a person sees ---------------------------------------------------------------------------------------
def test_help_and_signature_survive(mech):
    assert isinstance(mech.forward_dynamics, BUILTIN)
    assert mech.forward_dynamics.__name__ == "forward_dynamics"
    assert mech.forward_dynamics.__doc__ == inspect.getdoc(lw.Mechanism.forward_dynamics)
    found = inspect.signature(mech.forward_dynamics).parameters
    right = inspect.signature(lw.Mechanism.forward_dynamics).parameters
    assert list(found) == list(right)[1:]
    for name, parameter in found.items():
        assert (parameter.kind, parameter.default) == (right[name].kind, right[name].default)
    text = io.StringIO()
    pydoc.Helper(output=text)(mech.forward_dynamics)
    assert "forward_dynamics(q,v,tau,*,t=0.0," in "".join(text.getvalue().split())
    assert inspect.getdoc(lw.Mechanism.forward_dynamics).splitlines()[0] in text.getvalue()


def test_a_mechanism_can_be_copied_after_its_calls(mech):
    x = state()
    for again in (copy.copy(mech), copy.deepcopy(mech)):
        np.testing.assert_array_equal(again.forward_dynamics(*x), mech.forward_dynamics(*x))
        np.testing.assert_array_equal(again.forward_dynamics(*(a[None] for a in x))[0].shape, (N,))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_mechanism_and_its_methods_can_be_pickled_after_their_calls(mech, protocol):
    x = state()
    right = mech.forward_dynamics(*x)
    again = pickle.loads(pickle.dumps(mech, protocol))
    np.testing.assert_array_equal(again.forward_dynamics(*x), right)
    method = pickle.loads(pickle.dumps(mech.forward_dynamics, protocol))
    np.testing.assert_array_equal(method(*x), right)


def test_a_shortcut_of_a_bare_function_cannot_be_pickled():
    kernel = compiled(record(lambda x: x * 2.0, 3))
    with pytest.raises(TypeError, match="shadows no method"):
        pickle.dumps(callpath.shortcut(kernel, kernel, "f"))


# -- memory ------------------------------------------------------------------------------------------------
def test_a_mechanism_that_nobody_holds_is_collected():
    gc.collect()
    before = len(_engines)
    mech = lw.random_tree(5, seed=370)  # no other test has its like, whose code would be shared
    for _ in range(3):
        mech.forward_dynamics(mech.neutral(), *np.zeros((2, mech.nv)), method="diagonal")
    seen = weakref.ref(mech)
    kernel = weakref.ref(mech.kernels.kernel(Request("forward_dynamics", "diagonal")))
    assert len(_engines) > before
    del mech
    gc.collect()
    assert seen() is None
    assert kernel() is None
    gc.collect()
    assert len(_engines) <= before


def test_a_method_keeps_what_it_needs(mech):
    x = state()
    method, right = arm().forward_dynamics, mech.forward_dynamics(*x)
    gc.collect()
    np.testing.assert_array_equal(method(*x), right)
    np.testing.assert_array_equal(method(*(a.tolist() for a in x)), right)


def test_a_finaliser_in_a_dying_cycle_may_still_call_methods():
    told = []

    class Plant:
        def __init__(self):
            self.mech, self.me = arm(), self

        def __del__(self):
            told.append(self.mech.forward_dynamics(*state()))
            told.append(self.mech.forward_dynamics(*(x.tolist() for x in state())))

    for _ in range(5):
        Plant()
    gc.collect()
    assert len(told) == 10
    for answer in told:
        np.testing.assert_array_equal(answer, told[0])


def test_many_mechanisms_come_and_go_without_leaving_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path))
    x = state()

    def one():
        fresh = lw.chain(N)
        fresh.forward_dynamics(*x)
        fresh.forward_dynamics(*x)

    for _ in range(5):
        one()
    gc.collect()
    engines, definitions, before = len(_engines), len(callpath._definitions), resident()
    for _ in range(60):
        one()
    gc.collect()
    assert len(_engines) == engines
    assert len(callpath._definitions) == definitions
    assert resident() - before < 16e6


def resident():
    """The bytes of this process in memory."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0  # counted by blocks alone
    return int(statm.read_text().split()[1]) * 4096


FAILING_NEW = """
@calls = global i64 0
declare ptr @PyErr_NoMemory()
define ptr @new(ptr %kind, i32 %nd, ptr %dims, i32 %type, ptr %a, ptr %b, i32 %c, i32 %d, ptr %e) {{
  %old = load i64, ptr @calls
  %count = add i64 %old, 1
  %turn = urem i64 %count, {turn}
  store i64 %count, ptr @calls
  %fail = icmp eq i64 %turn, 0
  br i1 %fail, label %none, label %some
none:
  %nothing = call ptr @PyErr_NoMemory()
  ret ptr %nothing
some:
  %real = inttoptr i64 {real} to ptr
  %made = call ptr %real(ptr %kind, i32 %nd, ptr %dims, i32 %type, ptr %a, ptr %b, i32 %c, i32 %d, ptr %e)
  ret ptr %made
}}
"""


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_memory_that_runs_out_is_an_error_and_no_leak(turn, monkeypatch):
    """NumPy's function that makes arrays fails at the first, second or third output."""
    inner = trampoline.array_api
    no_memory = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    add_symbols({"PyErr_NoMemory": no_memory})
    text = FAILING_NEW.format(turn=turn, real=inner(trampoline.NEW))
    new = load(object_code(text), "new")
    monkeypatch.setattr(trampoline, "array_api", lambda index: new.address if index == trampoline.NEW else inner(index))
    kernel = compiled(record(lambda x: (x * 2.0, x * 3.0, x * 4.0), 400))
    quick = callpath.shortcut(kernel, kernel, "f")
    x = np.ones(400)

    def fails():
        with pytest.raises(MemoryError):
            quick(x)

    fails()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(1000):
            fails()
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 200_000  # one array leaked at each turn would be 3 MB


# -- soak --------------------------------------------------------------------------------------------------
def calls(mech, q, v, tau, out, matrix):
    """Right and wrong calls of every sort; each is (call, error or None)."""
    wide = np.full((N, 2), 0.25)
    batch = np.stack([q, v, tau])
    single = q.astype(np.float32)
    methods = mech.forward_dynamics, mech.mass_matrix, mech.forward_dynamics_derivatives, mech.kinetic_energy
    forward, mass, derivatives, energy = methods
    assert all(isinstance(method, BUILTIN) for method in methods)
    plain = [
        partial(forward, q, v, tau),
        partial(forward, q, v, tau, out=out),
        partial(mass, q, out=matrix),
        partial(energy, q, v),
        partial(derivatives, q, v, tau),
    ]
    careful_ones = [
        partial(forward, wide[:, 0], v, tau),
        partial(forward, batch, v, tau),
        partial(forward, q.tolist(), v, tau),
        partial(forward, single, v, tau),
        partial(forward, q, v, tau, out=None),
        partial(forward, q, v, tau, t=1.0),
        partial(forward, q, v, tau=tau, out=out),
        partial(forward, q, v, out, out=out),
        partial(forward, q.view(Labelled), v, tau),
        partial(derivatives, batch, v, tau),
        partial(mass, batch),
    ]
    wrong = [
        (partial(forward, q, v), TypeError),
        (partial(forward, q, v, tau, odd=1), TypeError),
        (partial(forward, q, v[1:], tau), ShapeError),
        (partial(forward, matrix, v, tau[2:]), ShapeError),
        (partial(forward, q, v, "tau"), DtypeError),
        (partial(forward, q + 1j, v, tau), DtypeError),
        (partial(forward, None, v, tau), DtypeError),
        (partial(forward, q, v, tau, out=matrix), ShapeError),
        (partial(forward, q, v, tau, out=single), DtypeError),
        (partial(mass, q, q), TypeError),
    ]
    return plain, [(call, None) for call in careful_ones] + wrong


def soak(total, rounds):
    """`total` calls in so many rounds, 19 of 20 by the native path; what grew since the first round."""
    mech = arm()
    q, v, tau = state()
    out, matrix = np.zeros(N), np.zeros((N, N))
    plain, others = calls(mech, q, v, tau, out, matrix)
    right = careful(mech, q, v, tau)
    kept = (q, v, tau, out, matrix, mech, right)

    def one_round(count):
        for k in range(count // 20):
            for j in range(19):
                plain[(k + j) % len(plain)]()
            call, error = others[k % len(others)]
            if error is None:
                call()
            else:
                try:
                    call()
                except error:
                    continue
                raise AssertionError(f"{call} should have raised {error}")

    def levels():
        gc.collect()
        counts = [sys.getrefcount(x) for x in kept] + [sys.getrefcount(None) if sys.version_info < (3, 12) else 0]
        return counts, sys.getallocatedblocks(), resident()

    one_round(min(total // rounds, 40_000))
    counts, blocks, memory = levels()
    for _ in range(rounds):
        one_round(total // rounds)
    after_counts, after_blocks, after_memory = levels()
    np.testing.assert_array_equal(mech.forward_dynamics(q, v, tau), right)
    assert after_counts[:-1] == counts[:-1]
    # Of None: the test itself holds some, and what earlier tests left may be freed meanwhile. Every sort of call comes
    # more often than this lower limit, so that one which gives back a reference that it does not own is seen.
    assert -total / 1000 < after_counts[-1] - counts[-1] < 50
    assert after_blocks - blocks < 300  # fewer: what earlier tests left was freed meanwhile
    assert after_memory - memory < 4e6
    return after_memory - memory, after_blocks - blocks


def test_two_hundred_thousand_calls_of_every_sort_leave_nothing_behind():
    soak(200_000, 4)


@pytest.mark.slow
def test_ten_million_calls_of_every_sort_leave_nothing_behind():
    grown, blocks = soak(10_000_000, 20)
    print(f"after 10⁷ calls: {grown / 1e3:.0f} kB of memory and {blocks} blocks more")


def test_no_call_changes_the_reference_counts_of_its_arrays(mech):
    q, v, tau = state()
    out, matrix = np.zeros(N), np.zeros((N, N))
    plain, others = calls(mech, q, v, tau, out, matrix)
    watched = (q, v, tau, out, matrix)
    gc.freeze()  # what other tests left need not be looked through at every call
    for call, error in [(call, None) for call in plain] + others:
        before = [sys.getrefcount(x) for x in watched]
        for _ in range(10):
            if error is None:
                call()
            else:
                with pytest.raises(error):
                    call()
        gc.collect()
        assert [sys.getrefcount(x) for x in watched] == before, call
    gc.unfreeze()


def test_results_belong_to_the_caller_alone(mech):
    q, v, tau = state()
    fresh = np.zeros(N)
    alone = sys.getrefcount(fresh)  # Python 3.14 lends local variables without counting them
    pack = (np.zeros(N),)
    inside = sys.getrefcount(pack[0])
    answer = mech.forward_dynamics(q, v, tau)
    assert sys.getrefcount(answer) == alone
    three = mech.forward_dynamics_derivatives(q, v, tau)
    assert sys.getrefcount(three) == alone
    assert [sys.getrefcount(three[k]) for k in range(3)] == [inside] * 3


def test_the_kernels_scratch_is_its_own():
    """Two functions with scratch, called in turn, do not disturb each other."""
    import sample_programs as samples

    made = []
    for right in (1, 3):
        kernel = compiled(samples.solver("cholesky", right))
        assert kernel.signature.scratch[1] > 0
        inputs = [
            x.reshape(b.shape) for x, b in zip(samples.arguments(kernel.program, 1), kernel.program.inputs, strict=True)
        ]
        made.append((callpath.shortcut(kernel, kernel, "solve"), inputs, kernel(*inputs)))
    for _ in range(100):
        for quick, inputs, right in made:
            np.testing.assert_array_equal(quick(*inputs), right)


def test_the_careful_path_is_the_same_kernel(mech):
    kernel = mech.kernels.kernel(Request("forward_dynamics"))
    assert isinstance(kernel, Kernel)
    x = state(3)
    np.testing.assert_array_equal(kernel(*x), mech.forward_dynamics(*x))
