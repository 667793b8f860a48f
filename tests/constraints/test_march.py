"""Many steps in one call give what single steps give."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from constraints.ladders import START, ladder
from linkwright.constraints import kinematics as march
from linkwright.constraints.kinematics import Kinematics
from linkwright.model.expression import Call


def slider(law):
    """A slider-crank whose coupler may spin: a freedom is left."""
    with lw.Builder("slider") as b:
        crank, rod, block = (b.body(name) for name in ("crank", "rod", "block"))
        b.place(crank, (0, 0, 0), f=(0, 1, 0))
        b.place(rod, (0, 6, 0), f=(8, -6, 0))
        b.place(block, (8, 0, 0))
        b.joint("revolute", b.triad(b.ground), crank, "pivot")
        b.joint("spherical", b.triad(crank, (6, 0, 0)), rod, "pin")
        b.joint("spherical", b.triad(rod, (10, 0, 0)), block, "wrist")
        across = {"h": (1, 0, 0), "f": (0, 1, 0)}
        b.joint("translational", b.triad(b.ground, **across), b.triad(block, h=(1, 0, 0), f=(0, 0, 1)), "slide")
        b.driver("absolute", "block.x", law, name="drive")
    return b.build()


MOTIONS = {
    "a ladder": (lambda: ladder(3, START + 0.4 * np.sin(lw.TIME)), np.linspace(0.0, 3.0, 400)),
    "with freedom": (lambda: slider(8.0 + 3.0 * np.sin(lw.TIME)), np.linspace(0.0, 3.0, 900)),
    "with a corner": (lambda: slider(8.0 + Call("abs", (lw.TIME - 1.0,))), np.linspace(0.0, 2.0, 301)),
    "out of reach": (lambda: slider(8.0 + 5.0 * lw.TIME), np.linspace(0.0, 2.0, 301)),
    "one point": (lambda: slider(8.0 + lw.TIME), np.zeros(1)),
    "far apart": (lambda: slider(8.0 + 3.0 * np.sin(lw.TIME)), np.linspace(0.0, 8.0, 17)),
}


@pytest.mark.parametrize("name", MOTIONS)
def test_steps_in_one_call_are_the_steps_one_by_one(monkeypatch, name):
    make, times = MOTIONS[name]
    kinematics = Kinematics(make().description)
    together = kinematics.motion(times)
    monkeypatch.setattr(march, "STEPS", 1)
    single = kinematics.motion(times)
    for field in ("times", "q", "v", "a", "iterations"):
        assert np.array_equal(getattr(together, field), getattr(single, field)), field
    assert (together.stop, together.notes) == (single.stop, single.notes)
    counts = ("newton_iterations", "tape_evaluations", "linear_solves", "substeps")
    assert [getattr(together, c) for c in counts] == [getattr(single, c) for c in counts]


def test_most_points_of_a_dense_motion_are_found_in_one_call(monkeypatch):
    calls = []
    ahead = march.March.ahead

    def counted(self, k, state):
        found = ahead(self, k, state)
        calls.append(len(found))
        return found

    monkeypatch.setattr(march.March, "ahead", counted)
    lw.analyse(ladder(1, START + 0.4 * np.sin(lw.TIME)), times=np.linspace(0.0, 3.0, 1000))
    assert sum(calls) > 990
    assert max(calls) == march.STEPS


def test_times_that_are_a_view_of_others_are_taken():
    mech = ladder(1, START + 0.4 * np.sin(lw.TIME))
    times = np.linspace(0.0, 1.0, 41)
    whole, half = lw.analyse(mech, times=times), lw.analyse(mech, times=times[::2])
    assert np.allclose(whole.position("coupler0")[::2], half.position("coupler0"), atol=1e-12)
