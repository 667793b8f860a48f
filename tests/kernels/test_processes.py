"""One mechanism, one cache and one file from eight threads, forked and spawned processes: the same answers, once."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw

GUARD = 300  # seconds after which something is taken to hang
STATES = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 16, 2))


def answers(mech: lw.Mechanism) -> list[bytes]:
    """Accelerations of a batch and of single states, as bytes."""
    q, v, tau = STATES
    alone = [mech.forward_dynamics(*state) for state in zip(q, v, tau, strict=True)]
    return [mech.forward_dynamics(q, v, tau).tobytes(), np.array(alone).tobytes()]


def saved(path: str) -> list[bytes]:
    """What another process finds, which writes a program to a file that all write."""
    lw.record(np.sin, (1000,)).save(path)
    return answers(lw.chain(2))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_agree_and_share_a_cache_and_a_file(tmp_path: Path, monkeypatch, start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {start}")
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "sine.lwp"
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(start)) as pool:
        found = [job.result(GUARD) for job in [pool.submit(saved, str(file)) for _ in range(4)]]
    assert all(one == found[0] for one in found)
    assert found[0] == answers(lw.chain(2))
    assert lw.load_program(file).name == "sin"
    assert os.listdir(tmp_path / "cache") == ["kernels"]
    assert not list(tmp_path.rglob("*.part"))


def test_a_mechanism_is_passed_to_a_spawned_process(tmp_path: Path) -> None:
    mech = lw.chain(2)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(answers, mech).result(GUARD) == answers(mech)


def test_eight_threads_ask_a_new_mechanism_at_once_and_save_to_one_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path / "cache"))
    mech, file = lw.chain(2), tmp_path / "motion.nc"
    motion = lw.simulate(lw.chain(2), 0.1, q0=[0.1, 0.2], method="rk4", dt=0.01)

    def work(_: int) -> list[bytes]:
        motion.save(file)
        return answers(mech)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8), timeout=GUARD))
    assert all(one == found[0] for one in found)
    np.testing.assert_array_equal(lw.open(file).q, motion.q)
    assert sorted(os.listdir(tmp_path)) == ["cache", "motion.nc"]
