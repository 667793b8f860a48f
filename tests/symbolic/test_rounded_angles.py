"""Cosines that were rounded to many digits: exact rationals with hundreds of digits, printed as plain decimals."""

import re

import numpy as np
import pytest

import linkwright as lw
from linkwright.symbolic.equations_of_motion import Equations


@pytest.fixture(scope="module")
def eq() -> Equations:
    row = {"a": 0.3, "d": 0.1, "theta": 0.0, "mass": 1.1, "com": (0.1, 0.2, 0.3)}
    rows = [{**row, "alpha": alpha} for alpha in (0.7, 0.8, 0.9)]
    return lw.equations(lw.from_dh(rows, convention="standard"), literal="inertial", round_angles=15)


def test_numbers_stay_as_short_as_decimals_are(eq: Equations) -> None:
    for text in (eq.python(), eq.latex(), eq.html(), eq.markdown()):
        assert not re.search(r"\d{20}", re.sub(r"sha256-[\w+/=]+", "", text))


def test_printed_code_has_the_values_of_the_exact_equations(eq: Equations) -> None:
    space: dict = {}
    exec(compile(eq.python(), "printed", "exec"), space)
    q, dq = [0.3, -0.4, 0.9], [0.5, 0.2, -1.0]
    m, h, g = eq.evaluate(q, dq)
    made = space["M"](q), space["h"](q, dq), space["g"](q)
    for found, wanted in zip(made, (m, h, g), strict=True):
        assert np.array(found) == pytest.approx(wanted, rel=1e-12, abs=1e-13)


def test_no_common_number_of_long_decimals_stands_before_a_bracket(eq: Equations) -> None:
    powers = [int(x) for x in re.findall(r"\de([+-]\d+)", eq.python())]
    assert max(map(abs, powers), default=0) < 40
