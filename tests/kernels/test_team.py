"""One state shared out to a team of threads: the same answer, whoever else calls, and never a wait without end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwright as lw
from linkwright.kernels import kernel, variant
from linkwright.kernels.variant import native

pytestmark = pytest.mark.skipif(not native(), reason="without LLVM there are no teams")
LINKS = 3000  # whose longest levels are shared out to four


@pytest.fixture
def pool(monkeypatch):
    """Three threads beside the caller's, however many cores there are."""
    with ThreadPoolExecutor(3) as made:
        for module in (kernel, variant):
            monkeypatch.setattr(module, "pool", lambda: made)
        monkeypatch.setattr(variant, "pool_size", lambda: 3)
        monkeypatch.setattr(kernel, "THREAD_WORK", 1000)
        yield made
    lw.set_threads(None)


@pytest.fixture
def teams(monkeypatch):
    """Whether each try to be a team was one."""
    tried, run = [], variant.Variant.run_together

    def told(self, *given):
        tried.append(run(self, *given))
        return tried[-1]

    monkeypatch.setattr(variant.Variant, "run_together", told)
    return tried


@pytest.fixture(scope="module")
def mech():
    return lw.chain(LINKS)


def answer(mech, seed, threads):
    lw.set_threads(threads)
    q, v, tau = 0.2 * np.random.default_rng(seed).standard_normal((3, LINKS))
    return mech.forward_dynamics(q, v, tau, method="assembly")


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_team_gives_what_one_thread_gives(pool, teams, mech, size):
    wanted = answer(mech, 0, 1)
    assert not any(teams)
    found = answer(mech, 0, size)
    assert teams[-1]
    np.testing.assert_array_equal(found, wanted)


def test_callers_from_several_threads_all_get_their_own_answer(pool, teams, mech):
    wanted = [answer(mech, seed, 1) for seed in range(4)]
    wrong = []

    def call(seed):
        for _ in range(10):
            found = answer(mech, seed, 4)
            if not np.array_equal(found, wanted[seed]):
                wrong.append(seed)

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    assert any(teams)


def test_a_call_does_not_wait_for_threads_that_are_busy(pool, teams, mech):
    wanted = answer(mech, 0, 1)
    free, found = threading.Event(), []
    for _ in range(2):
        pool.submit(free.wait)
    caller = threading.Thread(target=lambda: found.append(answer(mech, 0, 4)))
    caller.start()
    caller.join(20)
    done = not caller.is_alive()
    free.set()
    caller.join()
    assert done
    assert not teams[-1]
    np.testing.assert_array_equal(found[0], wanted)
