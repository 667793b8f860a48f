"""Inertial parameters from recorded forces: exact without noise, within their intervals with it."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from design_models import ROOT

import linkwright as lw
from linkwright.design.inertia_identification import identified
from linkwright.errors import ModelError

ARM = ROOT / "examples" / "models" / "three_link.dh.toml"


@cache
def arm() -> tuple[Any, lw.Mechanism]:
    """The base parameters of the arm, and the arm without friction."""
    mech = lw.load(ARM)
    return lw.equations(mech).base, mech.with_parameters(V1=0.0, V2=0.0, V3=0.0)


def recorded(seed: int, samples: int = 300) -> tuple[Any, list[np.ndarray], np.ndarray]:
    base, plain = arm()
    motion = list(np.random.default_rng(seed).normal(size=(3, samples, 3)))
    return base, motion, plain.inverse_dynamics(*motion)


def test_forces_without_noise_give_the_parameters_back() -> None:
    base, motion, tau = recorded(1)
    found = identified(base, *motion, tau)
    assert found.values == pytest.approx(base.beta, abs=1e-10)


def test_noise_leaves_the_parameters_within_their_intervals() -> None:
    base, motion, tau = recorded(2, 600)
    noise = np.array([0.3, 0.1, 0.02])
    apart = []
    for seed in range(8):
        found = identified(base, *motion, tau + noise * np.random.default_rng(100 + seed).normal(size=tau.shape))
        apart.append((found.values - base.beta) / found.deviations)
        assert found.noise == pytest.approx(noise, rel=0.1)
    assert np.std(apart) == pytest.approx(1.0, abs=0.2)
    assert np.mean(np.abs(apart) < 1.96) > 0.88


def test_a_motion_that_tells_too_little_is_refused_with_names() -> None:
    base, motion, tau = recorded(3)
    still = [motion[0] * 0.0 + 0.3, motion[1] * 0.0, motion[2] * 0.0]
    with pytest.raises(ModelError, match="the motion does not"):
        identified(base, *still, tau)
    with pytest.raises(ModelError, match="too few"):
        identified(base, *(x[:1] for x in motion), tau[:1])
