"""Several threads: one kernel or mechanism called by many at once, and large batches divided among threads."""

import os
import threading

import numpy as np
import pytest
import sample_programs as samples

import linkwright as lw
from crowd import at_once
from linkwright.kernels import kernel as kernels
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.callpath import supported
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.llvm import compiler
from linkwright.kernels.variant import Variant, set_threads

CROWD = 6


@pytest.fixture
def eager(monkeypatch):
    """Even small batches are divided."""
    monkeypatch.setattr(kernels, "THREAD_WORK", 1)
    yield
    set_threads(None)


# -- one kernel, many threads --------------------------------------------------------------------------------
@pytest.mark.parametrize("cached", [True, False])
def test_threads_that_call_first_at_the_same_time_get_right_answers(cached, monkeypatch, tmp_path):
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path) if cached else "")
    for _ in range(5):
        program = samples.tree_scan()
        x = samples.arguments(program, CROWD)[0]
        right = run(program, [x], CROWD)
        kernel = compiled(program)
        for k, answer in enumerate(at_once(lambda k, kernel=kernel, x=x: kernel(x[k].reshape(7, 2)), CROWD)):
            for got, wanted in zip(answer, right, strict=True):
                np.testing.assert_allclose(got.ravel(), wanted[k], rtol=1e-12)


def test_a_variant_is_compiled_once_however_many_ask(monkeypatch):
    monkeypatch.setenv("LINKWRIGHT_CACHE", "")
    made, inner = [], compiler.object_code
    monkeypatch.setattr(compiler, "object_code", lambda text, **how: made.append(text) or inner(text, **how))
    kernel = compiled(samples.smooth())
    at_once(lambda k: kernel(np.ones(3), 1.0), CROWD)
    assert len(made) == 1


def test_threads_share_a_kernel_with_scratch():
    """Every thread has its own input and checks every answer: scratch is never shared by two calls."""
    program = samples.solver("cholesky", 3)
    a, b = samples.arguments(program, CROWD)
    kernel = compiled(program)
    right = [kernel(a[k].reshape(5, 5), b[k].reshape(5, 3)) for k in range(CROWD)]

    def work(k):
        mine, side = a[k].reshape(5, 5), b[k].reshape(5, 3)
        batch = np.tile(mine, (11, 1, 1)), np.tile(side, (11, 1, 1))
        for _ in range(300):
            np.testing.assert_array_equal(kernel(mine, side), right[k])
            np.testing.assert_allclose(kernel(*batch), np.tile(right[k], (11, 1, 1)), rtol=1e-12)

    at_once(work, CROWD)


def test_threads_share_a_mechanism_from_its_first_call():
    for seed in range(2):
        mech = lw.random_tree(4, seed=seed)
        twin = lw.random_tree(4, seed=seed)
        rng = np.random.default_rng(seed)
        inputs = [
            (mech.integrate(mech.neutral(), rng.standard_normal(mech.nv)), *rng.standard_normal((2, mech.nv)))
            for _ in range(CROWD)
        ]
        right = [
            (twin.forward_dynamics(q, v, u), twin.mass_matrix(q), *twin.inverse_dynamics_derivatives(q, v, u))
            for q, v, u in inputs
        ]

        def work(k, mech=mech, inputs=inputs, right=right):
            q, v, u = inputs[k]
            for _ in range(50):
                answer = (
                    mech.forward_dynamics(q, v, u),
                    mech.mass_matrix(q),
                    *mech.inverse_dynamics_derivatives(q, v, u),
                )
                for got, wanted in zip(answer, right[k], strict=True):
                    np.testing.assert_array_equal(got, wanted)

        at_once(work, CROWD)


@pytest.mark.skipif(not supported(), reason="no native call path on this interpreter")
def test_the_trampoline_is_loaded_once_however_many_ask(monkeypatch):
    from linkwright.kernels import trampoline

    loaded, inner = [], trampoline._load_trampoline
    monkeypatch.setattr(trampoline, "_loaded", [])
    monkeypatch.setattr(trampoline, "_load_trampoline", lambda: loaded.append(1) or inner())
    addresses = at_once(lambda k: trampoline.trampoline(), CROWD)
    assert len(loaded) == 1
    assert len(set(addresses)) == 1


# -- one batch, many threads -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["smooth", "tree_scan", "newton", "lu", "ltl"])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_batch_divided_among_threads_is_the_same(name, count, eager):
    program = samples.ALL[name]()
    kernel, lanes = compiled(program), compiler.lanes()
    for batch in (1, lanes - 1, lanes, lanes + 1, 2 * lanes, 4 * lanes + 3, 301):
        inputs = samples.arguments(program, batch)
        shaped = [x.reshape(batch, *b.shape) for x, b in zip(inputs, program.inputs, strict=True)]
        set_threads(count)
        found = kernel(*shaped)
        for got, right in zip(
            found if isinstance(found, tuple) else (found,), run(program, inputs, batch), strict=True
        ):
            np.testing.assert_allclose(got.reshape(batch, -1), right, rtol=1e-9, atol=1e-12)


def test_pieces_are_computed_by_other_threads(eager, monkeypatch):
    kernel = compiled(samples.smooth())
    kernel(np.ones((64, 3)), np.ones(64))
    seen, inner = set(), Variant.run

    def watched(*arguments):
        seen.add((threading.get_ident(), arguments[3:]))
        inner(*arguments)

    monkeypatch.setattr(Variant, "run", watched)
    set_threads(3)
    kernel(np.ones((64, 3)), np.ones(64))
    assert sorted(cut for _, cut in seen) == [(0, 21), (21, 42), (42, 64)]
    assert len({thread for thread, _ in seen}) > 1


def test_a_state_gets_the_same_answer_in_one_batch_or_another(eager):
    program = samples.tree_scan()
    kernel = compiled(program)
    x = samples.arguments(program, 200)[0].reshape(200, 7, 2)
    set_threads(1)
    one = kernel(x)
    set_threads(4)
    four = kernel(x)
    part = kernel(x[50:150])
    for a, b, c in zip(one, four, part, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a[50:150], c)


def test_threads_may_divide_batches_while_other_threads_do(eager):
    program = samples.smooth()
    kernel = compiled(program)
    set_threads(3)
    x, y = samples.arguments(program, 500)
    right = kernel(x, y[:, 0])

    def work(k):
        for _ in range(50):
            np.testing.assert_array_equal(kernel(x, y[:, 0]), right)

    at_once(work, CROWD)


def test_an_error_in_a_piece_comes_out(eager, monkeypatch):
    kernel = compiled(samples.smooth())
    kernel(np.ones((64, 3)), np.ones(64))
    inner = Variant.run

    def failing(self, arrays, strides, begin, end):
        if begin:
            raise MemoryError("no room")
        inner(self, arrays, strides, begin, end)

    monkeypatch.setattr(Variant, "run", failing)
    set_threads(2)
    with pytest.raises(MemoryError, match="no room"):
        kernel(np.ones((64, 3)), np.ones(64))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_divides_batches_too(eager):
    """A child has none of its parent's threads; waiting for them would take forever."""
    kernel = compiled(samples.smooth())
    x, y = np.ones((200, 3)), np.ones(200)
    set_threads(3)
    right = kernel(x, y)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if np.array_equal(kernel(x, y), right) else 1)
        finally:
            os._exit(2)
    for _ in range(1000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        threading.Event().wait(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child waits for threads that it does not have")
    assert os.waitstatus_to_exitcode(status) == 0


# -- how many ---------------------------------------------------------------------------------------------------
def test_the_number_of_threads_can_be_set(monkeypatch):
    monkeypatch.setenv("LINKWRIGHT_THREADS", "7")
    assert lw.threads() == 7
    lw.set_threads(3)
    try:
        assert lw.threads() == 3
    finally:
        lw.set_threads(None)
    monkeypatch.setenv("LINKWRIGHT_THREADS", "many")
    assert lw.threads() >= 1
    monkeypatch.delenv("LINKWRIGHT_THREADS")
    assert lw.threads() >= 1


@pytest.mark.parametrize("count", [0, -1])
def test_no_threads_at_all_is_refused(count):
    with pytest.raises(ValueError, match=f"from 1 on, not {count}"):
        lw.set_threads(count)
