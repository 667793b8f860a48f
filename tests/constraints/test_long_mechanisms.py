"""Mechanisms of many loops: the same answers as short ones, without dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from constraints.ladders import START, ladder, odd_angle
from linkwright.constraints import rank as freedom
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.program_layout import Layout


def report(mech):
    kinematics = Kinematics(mech.description)
    return kinematics.freedom(kinematics.assemble(0.0, 1e-3), 0.0)


def test_freedom_of_a_long_ladder_is_counted_without_a_dense_matrix(monkeypatch):
    def refuse(*_):
        raise AssertionError("a dense matrix")

    monkeypatch.setattr(Layout, "dense", refuse)
    found = report(ladder(120))
    assert (found.left, len(found.redundant), len(found.moving)) == (1, 360, 241)
    held = report(ladder(120, START + 0.0 * lw.TIME))
    assert (held.left, len(held.redundant), held.moving) == (0, 360, ())


@pytest.mark.parametrize("law", [None, START + 0.1 * np.sin(lw.TIME)])
def test_both_ways_to_count_freedom_agree(monkeypatch, law):
    mech = ladder(4, law)
    dense = report(mech)
    monkeypatch.setattr(freedom, "DENSE", 0)
    sparse = report(mech)
    assert (sparse.rank, len(sparse.redundant), sparse.moving) == (dense.rank, len(dense.redundant), dense.moving)


def test_all_bars_of_a_long_ladder_turn_as_its_geometry_says():
    times = np.linspace(0.0, 2.0, 9)
    solution = lw.analyse(ladder(60, START + 0.4 * np.sin(lw.TIME)), times=times)
    even = START + 0.4 * np.sin(times)
    for k in range(61):
        e = solution.orientation(f"bar{k}")
        wanted = even if k % 2 == 0 else odd_angle(even)
        missed = 2.0 * np.arctan2(e[:, 3], e[:, 0]) - wanted
        assert np.abs(np.remainder(missed + np.pi, 2.0 * np.pi) - np.pi).max() < 1e-11
