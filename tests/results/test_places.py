"""Names of places in solutions: bodies, triads, traces, and the same in another case."""

from dataclasses import replace

import numpy as np
import pytest
from motions import crank_motion
from numpy.testing import assert_array_equal

from linkwright.errors import NameNotFound
from linkwright.model.body_motion import place
from linkwright.model.description import Names, Trace

D = replace(crank_motion(np.arange(2.0)).description, traces=(Trace("curve", "tip"), Trace("tip", "block")))


def test_a_trace_is_named_by_its_own_name() -> None:
    assert_array_equal(place(D, "curve").p, [0.2, 0.1, 0.3])


def test_a_triad_comes_before_a_trace_of_the_same_name() -> None:
    assert place(D, "tip").body == 0


def test_a_name_in_another_case_is_found_where_one_fits() -> None:
    assert [place(D, name).body for name in ("CRANK", "Block", "Ground", "Curve")] == [0, 1, -1, 0]
    solution = crank_motion(np.arange(2.0))
    assert_array_equal(solution.joint("Pivot"), solution.joint("pivot"))


def test_a_name_that_two_fit_in_another_case_is_not_found() -> None:
    two = replace(D, body_names=Names(["Crank", "cranK"]))
    with pytest.raises(NameNotFound, match="did you mean 'Crank' or 'cranK'"):
        place(two, "crank")


def test_of_many_names_those_that_resemble_come_first() -> None:
    known = [f"part{k}" for k in range(30)] + ["left_rocker_pivot_of_frame"]
    assert "there are: left_rocker_pivot_of_frame, part0" in str(NameNotFound("triad", "rocker", known))
