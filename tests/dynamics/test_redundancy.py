"""Ranks of constraint equations as positions around a drawing show them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.dynamics.closed.redundancy import Blocks
from redundant_linkages import bennett_rows, loop, sarrus, scissors


def parallelogram(angle: float, length: float = 2.0) -> lw.Mechanism:
    """Drawn at an angle of its cranks."""
    c, s = np.cos(angle), np.sin(angle)
    with lw.Builder("parallelogram") as b:
        first, coupler, second = (b.body(n, 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for n in "abc")
        b.place(first, f=(c, s, 0))
        b.place(coupler, (c, s, 0))
        b.place(second, (length, 0, 0), f=(c, s, 0))
        b.joint("revolute", b.triad(b.ground), b.triad(first), "first")
        b.joint("revolute", b.triad(first, (1, 0, 0)), b.triad(coupler), "near")
        b.joint("revolute", b.triad(b.ground, (length, 0, 0)), b.triad(second), "last")
        b.joint("revolute", b.triad(coupler, (length, 0, 0)), b.triad(second, (1, 0, 0)), "far", cut=True)
    return b.build()


@pytest.mark.parametrize("angle", [0.7, 0.0])
def test_a_drawing_in_a_singular_position_hides_nothing(angle: float) -> None:
    ranks = parallelogram(angle).programs.redundancy
    assert (ranks.rank(range(5)), ranks.gap) == (2, 0.0)


@pytest.mark.parametrize(("make", "rank"), [(sarrus, 4), (lambda: scissors(1), 2), (lambda: scissors(3), 6)])
def test_ranks_are_the_rates_less_the_freedom(make, rank: int) -> None:
    mech = make()
    rows = sum(c.form.size for c in mech.programs.loop_constraints)
    assert mech.programs.redundancy.rank(range(rows)) == rank == mech.nv - 1


@pytest.mark.parametrize(("digits", "gap"), [(None, 0.0), (7, 1e-7), (5, 1e-5)])
def test_rounded_lengths_leave_a_gap_and_not_another_rank(digits: int | None, gap: float) -> None:
    ranks = loop("bennett", bennett_rows(0.4, 0.6, 1.1, digits)).programs.redundancy
    assert ranks.rank(range(5)) == 2
    assert ranks.gap == 0.0 if digits is None else 1e-3 * gap < ranks.gap < 3.0 * gap


def test_constraints_are_eliminated_together_where_they_repeat_each_other_and_else_alone() -> None:
    with lw.Builder("three cranks") as b:
        coupler = b.body("coupler", 1.0, (1, 0, 0), (0.1, 0.1, 0.1))
        b.place(coupler, (np.cos(0.8), np.sin(0.8), 0))
        for k, foot in enumerate(((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.7, 0.5, 0.0))):
            crank = b.body(f"crank{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
            b.place(crank, foot, f=(np.cos(0.8), np.sin(0.8), 0))
            b.joint("revolute", b.triad(b.ground, foot), b.triad(crank), f"foot{k}")
            b.joint("revolute", b.triad(crank, (1, 0, 0)), b.triad(coupler, foot), f"pin{k}", cut=k > 0)
    factory = b.build().programs
    blocks = Blocks(factory.redundancy, [c.form.size for c in factory.loop_constraints])
    assert blocks.groups == [[0, 1]]
    assert blocks.rank(0, []) == 3
    apart = scissors(2).programs
    assert Blocks(apart.redundancy, [c.form.size for c in apart.loop_constraints]).groups == [[0], [1]]
    parts = blocks.split([np.arange(10.0)])
    assert [x.tolist() for x in parts] == [[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0]]


def test_a_mechanism_that_cannot_be_assembled_has_no_known_rank() -> None:
    with lw.Builder("out of reach") as b:
        one, two = (b.body(n, 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1)) for n in "ab")
        b.joint("revolute", b.triad(b.ground), b.triad(one), "A")
        b.joint("revolute", b.triad(one, (1, 0, 0)), b.triad(two), "B")
        b.joint("revolute", b.triad(two, (1, 0, 0)), b.triad(b.ground, (9, 0, 0)), "C", cut=True)
    factory = b.build().programs
    assert factory.redundancy.positions == ()
    assert Blocks(factory.redundancy, [5]).rank(0, []) is None
