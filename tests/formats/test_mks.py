"""Model files in the language .mks: what they say is what the description holds."""

from pathlib import Path

import numpy as np

import linkwright as lw
from linkwright.formats.mks.reader import read_mks
from linkwright.mechanism.expression import TIME, Call, Number
from linkwright.mechanism.system import System

SAMPLE = Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks"


def test_the_paper_s_file_is_read_unchanged():
    d = read_mks(SAMPLE)
    assert d.name == "slider_crank"
    assert list(d.body_names) == ["pend1", "pend2", "block"]
    assert d.ground_name == "g1"
    assert [d.kind_of(k).name for k in range(d.nj)] == ["revolute", "spherical", "spherical", "prismatic"]
    assert d.system == System(start=0.0, end=8.0, interval=0.1, lu_tolerance=1e-10, assembly_tolerance=1e-3)
    (driver,) = d.drivers
    assert (driver.name, driver.kind, driver.target) == ("d1", "absolute", "block.x")
    assert driver.law == Number(8.0) + Number(3.0) * Call("sin", (TIME,))
    np.testing.assert_array_equal(d.start.p, [[0, 3, 0], [4, 3, 0], [8, 0, 0]])


def test_a_model_file_is_loaded_as_a_mechanism():
    assert lw.load(SAMPLE).loops == ("sph2",)
