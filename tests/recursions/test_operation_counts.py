"""Generic operation counts, beside the paper's formulas."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound
from linkwright.programs import FORWARD_METHODS

#: Iwamura and Schiehlen, eqs 34, 35, 61, 62: coefficients of N², N, 1.
PAPER = {
    "triangular": ((43.5, 1133.5, -978), (36.5, 945.5, -833)),
    "diagonal": ((0, 1291, -900), (0, 1090, -905)),
}
LINKS = np.arange(1, 10)


@pytest.mark.parametrize("method", PAPER)
def test_generic_counts_have_the_papers_power_of_n_and_are_no_higher(method: str) -> None:
    power = 2 if method == "triangular" else 1
    counts = np.array([lw.operation_counts(int(n), method) for n in LINKS])
    for side, formula in enumerate(PAPER[method]):
        assert np.all(counts[:, side] <= np.polyval(formula, LINKS))
        differences = np.diff(counts[1:, side], power)
        assert differences[0] > 0
        assert np.all(differences == differences[0])


def test_the_articulated_body_algorithm_is_linear_and_cheaper_than_the_papers() -> None:
    ours, papers = (np.array([lw.operation_counts(n, m) for n in (4, 5, 6)]) for m in ("articulated-body", "diagonal"))
    assert np.all(ours < papers)
    assert np.all(np.diff(ours, 2, axis=0) == 0)


@pytest.mark.parametrize("method", FORWARD_METHODS)
def test_every_method_has_a_generic_count_above_its_specialised_one(method: str) -> None:
    counts = lw.chain(4).program("forward_dynamics", method=method).count()
    special = counts["mul"] + counts.get("div", 0)
    assert lw.operation_counts(4, method)[0] > special


def test_a_wrong_method_or_number_of_links_is_told() -> None:
    with pytest.raises(NameNotFound, match="diagonal"):
        lw.operation_counts(3, "diagnal")
    with pytest.raises(ModelError, match="at least 1 link"):
        lw.operation_counts(0, "diagonal")
