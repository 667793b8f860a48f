"""The constraint of a gear pair: its differential is the relative velocity at the pitch point along the tooth force."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from gear_cases import IDS, PAIRS, Pair
from linkwright.constraints.constraint_equations import Constraint, Equations
from linkwright.constraints.constraint_forms import equations, jacobian
from mechanism_parts import rotation


def constraint(pair: Pair) -> tuple[Constraint, list[float]]:
    """The constraint of a pair of free bodies, and its numbers."""
    b = lw.Builder("pair")
    one, two = b.body("one", 1.0), b.body("two", 1.0)
    b.joint("free", b.ground, one)
    b.joint("free", b.ground, two)
    b.place(two, origin=pair.centre, rotation=pair.turn)
    b.gear_pair(one, two, pair.kind, **pair.keywords)
    c = Equations(b.description()).constraints[-1]
    return c, [float(x.evaluate({})) for x in c.source.numbers]


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_the_differential_is_the_relative_velocity_at_the_pitch_point(pair: Pair) -> None:
    c, numbers = constraint(pair)
    assert abs(equations(c.form, pair.turn, pair.centre, numbers, (), 0.0)[0]) < 1e-15
    row = jacobian(c.form, pair.turn, pair.centre, numbers, (), 0.0)[0]
    wanted = []
    for shift, turn in zip(np.eye(6)[:, :3], np.eye(6)[:, 3:], strict=True):  # the second's twist, in its axes
        slip = pair.turn @ shift + np.cross(pair.turn @ turn, pair.at - pair.centre)
        wanted.append(-slip @ pair.push)
    np.testing.assert_allclose(row, wanted, atol=1e-15)


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_gears_that_roll_any_number_of_turns_stay_in_mesh(pair: Pair) -> None:
    c, numbers = constraint(pair)
    teeth = pair.teeth if isinstance(pair.teeth, tuple) else (pair.teeth, pair.teeth)
    if not pair.slides:
        assert abs(abs(pair.ratio) * teeth[1] / teeth[0] - 1.0) < 1e-12
    for first in (0.3, -2.0, 3.2, 47.0, 1e6):
        back, second = rotation(np.array([0.0, 0.0, 1.0]), -first), pair.ratio * first
        if pair.slides:
            r, p = pair.turn, pair.centre + second * pair.turn[:, 2]
        else:
            r, p = pair.turn @ rotation(np.array([0.0, 0.0, 1.0]), second), pair.centre
        phi = equations(c.form, back @ r, back @ p, numbers, (), 0.0)[0]
        assert abs(phi) < 2e-16 * (1.0 + abs(first))  # of the angle itself
        turned = rotation(np.array([0.0, 0.0, 1.0]), 1e-3)  # the first alone turns a little
        assert abs(equations(c.form, turned.T @ back @ r, turned.T @ back @ p, numbers, (), 0.0)[0]) > 1e-6
