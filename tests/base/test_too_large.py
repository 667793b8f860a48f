"""Requests that do not fit into memory, or whose sizes are no sizes, are our errors and say what to do."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.base import arguments as memory
from linkwright.constraints.kinematic_motion import times_of
from linkwright.errors import LinkwrightError, MemoryLimitError, ModelError, NameNotFound
from linkwright.tape.program import Walk

ZERO = np.zeros(2)
PENDULUM = lw.chain(2)


@pytest.fixture
def little(monkeypatch):
    """As on a machine with 64 MiB."""
    monkeypatch.setattr(memory, "available", lambda: 64 * 2**20)


def test_what_a_process_can_have_is_what_is_installed_or_less():
    assert 2**28 < memory.available() <= 2**47


HUGE = {
    "links of a chain": lambda: lw.chain(10**15),
    "links beyond any array": lambda: lw.chain(10**30),
    "links of a tree": lambda: lw.tree(10**15, 2),
    "links of a random tree": lambda: lw.random_tree(10**15),
    "steps": lambda: lw.rollout(PENDULUM, ZERO, ZERO, 0.01, 10**15),
    "steps beyond any array": lambda: lw.rollout(PENDULUM, ZERO, ZERO, 0.01, 10**30),
    "a recorded shape": lambda: lw.record(lambda x: x, 10**15),
    "states of one in memory": lambda: PENDULUM.gravity_forces(np.broadcast_to(ZERO, (10**15, 2))),
    "what a method keeps, in a chain": lambda: _forward(lw.chain(400_000), "triangular"),
    "what a method keeps, in a tree": lambda: _forward(lw.tree(400_000, 2), "triangular"),
}


def _forward(mech, method):
    q = mech.neutral()
    return mech.forward_dynamics(q, q, q, method=method)


@pytest.mark.parametrize("what", HUGE)
def test_more_than_any_machine_has_is_refused_before_it_is_tried(what):
    with pytest.raises(
        MemoryLimitError, match=r"takes .* GiB of memory, and there are .* GiB; (take|record)"
    ) as raised:
        HUGE[what]()
    assert raised.value.needed > raised.value.available > 0


def test_a_method_that_needs_too_much_memory_names_one_that_needs_less(little):
    mech = lw.tree(6000, 2)
    q = mech.neutral()
    with pytest.raises(MemoryLimitError, match=r"forward_dynamics takes .*articulated-body"):
        mech.forward_dynamics(q, q, q, method="triangular")
    assert np.isfinite(mech.forward_dynamics(q, q, q)).all()


def test_a_matrix_that_does_not_fit_is_refused_before_its_operations_are_counted(little):
    mech = lw.chain(20_000)
    with pytest.raises(MemoryLimitError, match=r"M of shape \(20000, 20000\)"):
        mech.mass_matrix(mech.neutral())


def test_a_result_for_too_many_states_is_refused(little):
    mech = lw.chain(20)
    with pytest.raises(MemoryLimitError, match=r"M of shape \(50000, 20, 20\).*fewer states"):
        mech.mass_matrix(np.zeros((50_000, 20)))


def test_samples_that_do_not_fit_are_refused(little):
    many = np.zeros((1000, 2))
    with pytest.raises(MemoryLimitError, match=r"10,001 samples of 1,000 motions .*every="):
        lw.rollout(PENDULUM, many, many, 0.01, 10_000)


def test_times_beyond_number_are_refused():
    with pytest.raises(ModelError, match=r"asks for 1e\+12 points"):
        lw.simulate(PENDULUM, 1.0, saving=lw.Saving(interval=1e-12))
    with pytest.raises(ModelError, match=r"interval = 1e-12 asks for 1e\+12 points"):
        times_of(0.0, 1.0, 1e-12)


SIZES = {
    "chain": lw.chain,
    "tree": lw.tree,
    "branching": lambda x: lw.tree(5, x),
    "random tree": lw.random_tree,
    "steps": lambda x: lw.rollout(PENDULUM, ZERO, ZERO, 0.01, x),
    "every": lambda x: lw.rollout(PENDULUM, ZERO, ZERO, 0.01, 4, samples=lw.Samples(every=x)),
    "a shape": lambda x: lw.record(lambda y: y, (x,)),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_is_no_whole_number_is_refused_by_name(name):
    for bad in (2.5, np.float64(3.0), -1, "3", None, [3], True, float("nan"), float("inf"), 1j, {}):
        with pytest.raises(ModelError, match="must be a whole number"):
            SIZES[name](bad)


def test_seeds_and_names_that_are_none_are_refused():
    for bad in (2.5, -1, "3", {}):
        with pytest.raises(ModelError, match="seed must be a whole number"):
            lw.random_tree(3, seed=bad)
    for bad in ([3], {}, 3, None):
        with pytest.raises(NameNotFound, match="joint kind"):
            lw.chain(3, joint=bad)
        with pytest.raises(LinkwrightError):
            PENDULUM.jacobian(ZERO, PENDULUM.bodies[0].name, reference=bad)
    for bad in ([3], {1: 2}, 3):
        with pytest.raises(LinkwrightError):
            PENDULUM.forward_dynamics(ZERO, ZERO, ZERO, method=bad)
        with pytest.raises(LinkwrightError):
            PENDULUM.pose(ZERO, bad)
        with pytest.raises(ModelError, match=r"DH table|row"):
            lw.from_dh(bad)


@pytest.mark.parametrize("mech", [lw.random_tree(120, seed=3), lw.tree(100, 3)], ids=["random", "tree"])
def test_operations_of_a_walk_are_counted_as_it_walks(mech):
    program = mech.program("mass_matrix")
    walks = [s for s in program.statements if isinstance(s, Walk)]
    assert walks
    for walk in walks:
        kinds, n = program.kinds(walk), len(walk.start)
        met = [0] * (n + len(walk.step))
        for i, ancestors in program.walks(walk):
            met[kinds[i]] += 1
            for j in ancestors:
                met[n * (1 + kinds[i]) + kinds[j]] += 1
        assert program.walked(walk) == met
