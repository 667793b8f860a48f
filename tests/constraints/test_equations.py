"""The equations of a description: where bodies start, and what is refused before anything is solved."""

from dataclasses import replace

import numpy as np
import pytest
from linkages import about_z

import linkwright as lw
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.model_warnings import model_table
from linkwright.errors import ModelError
from linkwright.model.elements import Driver, PointOnPlane, Rod
from linkwright.model.expression import TIME, Number


def test_a_body_not_placed_stands_on_its_placed_neighbour_rather_than_on_ground():
    with lw.Builder() as b:
        left, right = b.body("left"), b.body("right")
        b.place(left, (0, 0, 0), rotation=about_z(1.0))
        b.joint("revolute", b.ground, left, "foot")
        b.joint("revolute", b.triad(b.ground, origin=(3, 0, 0)), b.triad(right, origin=(2, 0, 0)), "other foot")
        b.joint("revolute", b.triad(left, origin=(1, 0, 0)), right, "top")
    e = Equations(b.build().description)
    np.testing.assert_allclose(e.start_p[1], (np.cos(1.0), np.sin(1.0), 0.0), atol=1e-15)
    np.testing.assert_allclose(e.start_r[1], about_z(1.0), atol=1e-15)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drivers": (Driver("lift", "absolute", "mark.x", TIME),)}, "driver 'lift' is on ground alone"),
        ({"drivers": (Driver("pull", "distance", "ground", TIME, "mark"),)}, "driver 'pull' is on ground alone"),
        ({"point_constraints": (Rod("strut", "bar", "tip", Number(1.0)),)}, "rod 'strut' is within body 'bar' alone"),
        (
            {"point_constraints": (PointOnPlane("table", "ground", "mark"),)},
            "point constraint 'table' is on ground alone",
        ),
    ],
)
def test_a_constraint_with_nothing_to_move_is_refused_by_name(change, said):
    with lw.Builder() as b:
        bar = b.body("bar")
        b.triad(bar, origin=(1, 0, 0), name="tip")
        b.triad(b.ground, origin=(0, 1, 0), name="mark")
        b.joint("revolute", b.ground, bar, "foot")
    with pytest.raises(ModelError, match=said):
        Equations(replace(b.build().description, **change))


def test_a_gear_goes_by_its_name_and_without_one_by_its_follower_s():
    with lw.Builder() as b:
        for name in ("sun", "planet", "ring"):
            b.joint("revolute", b.ground, b.body(name), name)
        b.mimic("planet", "sun", -2.0, name="mesh")
        b.mimic("ring", "sun", 0.5)
    d = b.build().description
    assert [str(c) for c in Equations(d).constraints[3:]] == ["gear 'mesh'", "gear 'ring'"]
    assert [row.element for row in model_table(d).rows[-2:]] == ["mesh", "ring"]


def test_the_table_names_the_coordinate_that_a_driver_of_a_joint_prescribes():
    with lw.Builder() as b:
        bearing = b.joint("revolute", b.ground, b.body("crank"), "bearing")
        b.driver("joint", bearing, 2.0 * lw.TIME, name="motor")
    (row,) = [row for row in model_table(b.build().description).rows if row.element == "motor"]
    assert (row.kind, row.equations) == ("driver of bearing.angle", 1)
