"""What results print: a line or a few, with units, and no arrays."""

import numpy as np

from linkwright.control.hinfinity.mixed_sensitivity import Sampled
from linkwright.control.hinfinity.reduction import Reduced
from linkwright.control.hinfinity.robustness import Norm
from linkwright.control.identification.identify import Candidate, Selection
from linkwright.control.identification.prediction import Orders
from linkwright.control.identification.records import Record
from linkwright.control.identification.spectra import spectrum
from linkwright.control.linear_systems import System

SYSTEM = System(0.5 * np.eye(2), np.ones((2, 1)), np.ones((1, 2)), [[0.0]], 0.01)
NORM = Norm(1.25, 1.25, 2 * np.pi * 3.0)


def test_a_norm_tells_its_frequency_in_hertz() -> None:
    assert repr(NORM) == "Norm: 1.25 at 3 Hz"
    assert repr(Norm(1.0, 1.25, 2 * np.pi)) == "Norm: 1.25 (at least 1) at 1 Hz"
    assert "infinite" in repr(Norm(np.inf, np.inf, 0.0))


def test_controllers_tell_states_and_cost() -> None:
    assert repr(Reduced(SYSTEM, np.ones(5), 1, NORM, {})) == "Reduced: 2 of 6 states, 1 of them unstable, cost 1.25"
    assert repr(Sampled(SYSTEM, NORM, NORM)).startswith("Sampled: 2 states, every 0.01 s, cost 1.25 (1.25 before")


def test_an_order_selection_prints_the_first_few() -> None:
    one = Candidate(Orders(2, 2), -10.0, -20.0, float("nan"))
    text = str(Selection([one] * 40))
    assert text.splitlines()[0] == "40 candidates, best first"
    assert text.splitlines()[-1] == "  and 35 more"
    assert "nan" not in text


def test_a_spectrum_and_a_record_tell_their_ranges() -> None:
    u = np.random.default_rng(0).standard_normal(400)
    record = Record(u, np.roll(u, 1), 0.01)
    assert repr(record).startswith("Record: 400 samples every 0.01 s (4 s), u -")
    assert repr(spectrum(record, 64)).startswith("Spectrum: 32 frequencies from 1.562 to 50 Hz")
