"""Large scratch: used again, never by two calls at once, bounded, and given back with its kernel."""

import gc
import signal
import threading

import numpy as np
import pytest
import sample_programs as samples

from linkwright.kernels import variant as scratch
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.kernel import Kernel


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Even small scratch is shared, and nothing is idle before or after."""
    gc.collect()
    monkeypatch.setattr(scratch, "LARGE", 0)
    monkeypatch.setattr(scratch, "_idle", [])


def scan():
    program = samples.tree_scan()
    return Kernel(program.digest, lambda: program)


def test_a_second_call_uses_the_scratch_of_the_first():
    kernel, x = scan(), np.ones((7, 2))
    kernel(x)
    (first,) = scratch._idle
    kernel(x)
    assert scratch._idle == [first]


def test_a_kernel_of_like_size_uses_the_scratch_of_another():
    one, other, x = scan(), scan(), np.ones((7, 2))
    one(x)
    (first,) = scratch._idle
    other(x)
    assert scratch._idle == [first]


def test_scratch_goes_with_the_kernel_that_used_it_last():
    one, other, x = scan(), scan(), np.ones((7, 2))
    one(x)
    other(x)
    del one
    assert len(scratch._idle) == 1
    del other
    assert not scratch._idle


def test_a_piece_is_lent_to_one_call_at_a_time_and_not_where_it_is_far_too_large():
    class User:
        pass

    user = User()
    scratch.give(scratch.Scratch(100), user)
    scratch.give(scratch.Scratch(70), user)
    assert [scratch.take(n).size for n in (60, 60, 60, 10)] == [70, 100, 60, 10]
    assert not scratch._idle


def test_idle_scratch_is_bounded_and_the_last_used_stays(monkeypatch):
    class User:
        pass

    monkeypatch.setattr(scratch, "KEPT", 100)
    user = User()
    for size in (40, 50, 45):
        scratch.give(scratch.Scratch(size), user)
    assert [p.size for p in scratch._idle] == [50, 45]
    scratch.give(scratch.Scratch(101), user)
    assert not scratch._idle


def test_threads_that_share_scratch_get_their_own_answers():
    kernel = scan()
    inputs = np.random.default_rng(0).standard_normal((4, 7, 2))
    right = [kernel(x) for x in inputs]
    wrong, together = [], threading.Barrier(4)

    def work(k):
        together.wait()
        for _ in range(500):
            if any(not np.array_equal(a, b) for a, b in zip(kernel(inputs[k]), right[k], strict=True)):
                wrong.append(k)

    crowd = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert not wrong
    assert 1 <= len(scratch._idle) <= 4


def test_a_call_in_the_middle_of_a_call_has_its_own_scratch():
    kernel = compiled(samples.tree_scan())
    inner, outer = np.random.default_rng(1).standard_normal((2, 7, 2))
    right_inner, right_outer = kernel(inner), kernel(outer)
    wrong, seen = [], []

    def handler(*_):
        seen.append(1)
        if any(not np.array_equal(a, b) for a, b in zip(kernel(inner), right_inner, strict=True)):
            wrong.append("inner")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 2e-4, 2e-4)
    try:
        for _ in range(20_000):
            if any(not np.array_equal(a, b) for a, b in zip(kernel(outer), right_outer, strict=True)):
                wrong.append("outer")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert not wrong
    assert len(seen) > 10
