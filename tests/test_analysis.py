"""`lw.analyse`: where its model and its parameters come from."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError

TEXT = """
MODEL lift
PARAMETER size = 2;
PARAMETER half = size/2;
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 2, print interval = 1);
BODY frame (ground);
BODY block (mass = 1);
TRIAD foot (associated body = frame);
TRIAD sole (associated body = block, origin = (0, 0, -half));
TRANSLATIONAL JOINT slide (triad = foot, triad = sole);
DRIVER up (slide.shift = TIME);
ENDMODEL
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "lift.mks"
    path.write_text(TEXT)
    return path


def test_a_parameter_made_of_others_can_be_given_for_a_file(model: Path) -> None:
    sol = lw.analyse(model, parameters={"half": 3.0})
    np.testing.assert_allclose(sol.position("block")[:, 2], [3.0, 4.0, 5.0], atol=1e-12)


def test_parameters_made_of_one_that_is_given_follow(model: Path) -> None:
    sol = lw.analyse(model, parameters={"size": 4.0})
    np.testing.assert_allclose(sol.position("block")[:, 2], 2.0 + sol.time, atol=1e-12)


def test_a_parameter_that_a_file_does_not_have_is_told(model: Path) -> None:
    with pytest.raises(LinkwrightError, match="sise"):
        lw.analyse(model, times=[0.0], parameters={"sise": 6.0})
