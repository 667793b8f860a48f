"""The equations of a description: where bodies start, and what is refused before anything is solved."""

import numpy as np
from linkages import about_z

import linkwright as lw
from linkwright.constraints.equations import Equations


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
