"""Stages: which bodies follow from which."""

import numpy as np
from linkages import bar, four_bar, kinematics, pin, unit

import linkwright as lw
from linkwright.constraints.rank import Stages
from linkwright.model.expression import TIME


def _stages(mech):
    k = kinematics(mech)
    start = k.assemble(0.0, 1e-3)
    nb = k.equations.nb
    stored = k.programs.evaluate(start.q, start.angles, np.zeros(1), np.zeros((nb, 6)))[1]
    names = mech.description.body_names
    return [({names[b] for b in s.bodies}, s.determined) for s in Stages(k.programs.layout, stored).found()]


def test_a_driven_crank_comes_before_the_coupler_and_rocker_that_it_moves():
    assert _stages(four_bar((1.0, 3.0, 2.5, 3.0), 0.5 + TIME, 0.5)) == [
        ({"crank"}, True),
        ({"coupler", "rocker"}, True),
    ]


def test_what_has_freedom_is_left_to_the_end():
    assert _stages(four_bar((1.0, 3.0, 2.5, 3.0), None, 0.5)) == [({"crank", "coupler", "rocker"}, False)]


def test_every_body_and_every_constraint_is_in_one_stage():
    with lw.Builder("two and a chain") as b:
        first = bar(b, "first", (0, 0, 0), unit(0.3))
        b.driver("joint", pin(b, "revolute", b.ground, (0, 0, 0), first, (0, 0, 0), "pivot"), TIME)
        for k, before in enumerate(("first", "link0", "link1")):
            pin(b, "revolute", before, (1, 0, 0), b.body(f"link{k}"), (0, 0, 0), f"pin{k}")
        alone = b.body("alone")
        b.joint("free", b.ground, alone)
    mech = b.build()
    k = kinematics(mech)
    start = k.assemble(0.0, 1e-3)
    stored = k.programs.evaluate(start.q, start.angles, np.zeros(1), np.zeros((5, 6)))[1]
    stages = Stages(k.programs.layout, stored).found()
    assert sorted(body for s in stages for body in s.bodies) == list(range(5))
    assert sorted(c for s in stages for c in s.constraints) == list(range(len(k.equations.constraints)))
    assert [s.determined for s in stages] == [True, False, False]
