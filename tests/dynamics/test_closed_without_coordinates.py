"""A closed mechanism in which nothing moves: every function answers with empty arrays, and reactions with numbers."""

from __future__ import annotations

import numpy as np

import linkwright as lw


def structure() -> lw.Mechanism:
    with lw.Builder("structure") as b:
        one, two = b.body("one", 1.0), b.body("two", 1.0)
        b.joint("fixed", b.ground, one, "first")
        b.joint("fixed", b.ground, two, "second")
        b.joint("revolute", one, two, "loop", cut=True)
    return b.build()


def test_functions_of_no_coordinates_answer() -> None:
    mech, none = structure(), np.zeros(0)
    assert mech.forward_dynamics(none, none, none).shape == (0,)
    assert mech.inverse_dynamics(none, none, none).shape == (0,)
    assert all(x.size == 0 for x in mech.forward_dynamics_derivatives(none, none, none))
    assert mech.reactions(none, none, none).shape == (3, 6)
    assert mech.linearise(none).A.shape == (0, 0)
