"""The assembly of closed mechanisms of any size: eliminations in rounds, as many as the logarithm of their joints."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from test_inertial import four_bars, swinging

import linkwright as lw
from closed_mechanisms import MECHANISMS, state
from linkwright.constraints.split_elimination import in_runs, order_in_rounds
from linkwright.kernels.interpret import interpreter as numpy_runner
from linkwright.tape.program import Each
from robots import relative


def ring(n: int) -> list[set[int]]:
    return [{(k - 1) % n, (k + 1) % n} for k in range(n)]


@pytest.mark.parametrize("n", [3, 10, 1000])
def test_rounds_take_every_node_once_and_none_beside_another(n: int) -> None:
    sequence, left, rounds = order_in_rounds(ring(n))
    assert sorted(sequence) == list(range(n))
    number = dict(zip(sequence, rounds, strict=True))
    # What a node leaves behind comes in later rounds, and nothing else is left.
    for k, rest in zip(sequence, left, strict=True):
        assert all(number[i] > number[k] for i in rest)
        assert len(rest) <= 2


@pytest.mark.parametrize(
    "rounds_of",
    [lambda n: order_in_rounds(ring(n))[2], lambda n: four_bars(n).programs.assembled_masses.plan.rounds],
    ids=["a ring", "four-bars in a row"],
)
def test_rounds_grow_with_the_logarithm(rounds_of: Callable[[int], list[int]]) -> None:
    few, many = (rounds_of(n)[-1] for n in (20, 640))
    assert few < many <= few + 2 * np.log2(640 / 20)


def test_items_that_add_to_one_place_take_turns() -> None:
    items = [(0, "a", (k,), k % 3) for k in range(9)] + [(1, "b", (k,), k) for k in range(4)]
    order, begins = in_runs(items)
    runs = [[items[k] for k in order[a:b]] for a, b in pairwise(begins)]
    assert [len(run) for run in runs] == [3, 3, 3, 4]
    assert all(len({target for *_, target in run}) == len(run) for run in runs)
    assert sorted(order) == list(range(13))


def test_runs_of_the_longest_scan_grow_with_the_logarithm() -> None:
    def longest(n: int) -> tuple[int, int]:
        program = four_bars(n).program("forward_dynamics", method="assembly", form="rolled")
        scans = [s for s in program.statements if isinstance(s, Each) and s.runs is not None]
        return max((s.items, len(program.columns[s.runs or 0]) - 1) for s in scans)

    (few, before), (many, after) = longest(20), longest(160)
    assert many > 7 * few
    assert after < 2 * before


@pytest.mark.parametrize("name", MECHANISMS)
def test_small_mechanisms_move_as_their_unrolled_recursion_moves_them(name: str) -> None:
    mech = MECHANISMS[name]()
    t = 0.2
    q, v = state(mech, t)
    tau = np.random.default_rng(1).normal(size=mech.nv)
    right = mech.program("forward_dynamics", form="unrolled")
    rolled = mech.program("forward_dynamics", method="assembly", form="rolled")
    arrays = [x.reshape(1, -1) for x in (q, v, tau, *([np.array(t)] if len(right.inputs) > 3 else []))]
    one, other = (numpy_runner.run(p, arrays, 1)[0][0] for p in (right, rolled))
    assert relative(other, one) < 1e-9


def test_long_mechanisms_move_as_by_virtual_work() -> None:
    n = 150
    mech = four_bars(n)
    q, v = swinging(mech, n, 0.4, 0.3)
    tau = np.sin(np.arange(mech.nv))
    found = mech.forward_dynamics(q, v, tau, method="assembly")
    assert relative(found, mech.forward_dynamics(q, v, tau, method="virtual-work")) < 1e-12


def test_one_loop_of_many_links_moves_as_by_virtual_work() -> None:
    n = 70
    with lw.Builder("ring") as b:
        b.gravity((0.0, -9.81, 0.0))
        angle = 2 * np.pi / (n + 1)
        last, corner = b.ground, np.zeros(3)
        for k in range(n):
            f = np.array([np.cos(k * angle), np.sin(k * angle), 0.0])
            body = b.body(f"link{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
            b.place(body, corner, f=f)
            b.joint("revolute", b.triad(last, (1.0, 0, 0) if k else (0, 0, 0)), b.triad(body), f"j{k}")
            last, corner = body, corner + f
        b.joint("revolute", b.triad(last, (1.0, 0, 0)), b.triad(b.ground, corner), "end", cut=True)
    mech = b.build()
    q = mech.assemble()
    v = mech.project(q, np.cos(np.arange(mech.nv)))[1]
    tau = np.sin(np.arange(mech.nv))
    found = mech.forward_dynamics(q, v, tau, method="assembly")
    assert relative(found, mech.forward_dynamics(q, v, tau)) < 1e-9
    assert mech.programs.assembled_masses.plan.rounds[-1] < 10
