"""Programs made of programs."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.simulation import step_parts as composer
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.step_parts import Parts
from linkwright.simulation.steps import attempt, fixed_step


@pytest.fixture
def parts():
    return Parts(lw.chain(2).programs)


def test_a_small_step_is_one_block(parts):
    step = fixed_step(parts, tableau_of("rk4"))
    assert len(step.statements) == 1


def test_a_long_step_has_the_code_of_the_dynamics_once():
    parts = Parts(lw.chain(8).programs)
    step = fixed_step(parts, tableau_of("rk4"))
    longest = max(len(block.rows()) for block in step.blocks)
    assert len(step.statements) > 1
    assert longest < 2 * sum(parts.dynamics().count().values())


@pytest.mark.parametrize("make", [fixed_step, attempt])
def test_a_small_step_gives_what_its_statements_give(parts, make, monkeypatch):
    tableau = tableau_of("rk45")
    small = make(parts, tableau)
    monkeypatch.setattr(composer, "SMALL", 0)
    long = make(parts, tableau)
    rng = np.random.default_rng(4)
    given = [rng.uniform(0.1, 0.2, port.shape) for port in small.inputs]
    assert len(long.statements) > len(small.statements) == 1
    for x, y in zip(small(*given), long(*given), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
