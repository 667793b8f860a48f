"""Plans: grids, draws, both; the same for the same seed; distributions against their closed forms."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError
from linkwright.sweeps.distributions import Distribution
from linkwright.sweeps.plan import default_chunk, make_plan, plan_text


def test_lists_form_a_grid_with_the_last_name_fastest() -> None:
    plan = make_plan({"a": [1.0, 2.0], "b": (3.0, 4.0, 5.0)})
    assert plan.values.tolist() == [[a, b] for a in (1, 2) for b in (3, 4, 5)]
    assert plan.varied == ("a", "b")


@pytest.mark.parametrize(
    ("cases", "numbers", "points", "chunk"),
    [
        (6, 1, None, 16),
        (1_000, 1, None, 32),
        (100_000, 1, None, 512),
        (10_000_000, 1, None, 4096 // 8),  # what a simulated case costs is not known
        (10_000_000, 1, 100, 4096),
        (10_000_000, 1, 100_000, 16),
        (1_000_000, 3 * 1001, 1001, 2**24 // (8 * 3003)),
        (1_000_000, 2**20, None, 8),  # 64 MiB: fewer cases would be computed as eight
        (1_000_000, 2**21, None, 4),
        (1_000_000, 2**27, None, 1),
    ],
)
def test_chunks_are_sized_by_the_cost_and_the_outputs_of_a_case(
    cases: int, numbers: int, points: int | None, chunk: int
) -> None:
    assert default_chunk(cases, numbers, points) == chunk
    assert chunk == 1 or 8 * numbers * chunk <= 2**26


def test_draws_are_repeated_at_every_point_of_the_grid() -> None:
    plan = make_plan({"a": [1.0, 2.0], "m": lw.normal(1, 0.1)}, lw.Sampling(draws=7))
    table = plan.values.reshape(2, 7, 2)
    assert np.array_equal(table[0, :, 1], table[1, :, 1])
    assert set(table[0, :, 0]) == {1.0}


def test_cases_is_the_number_in_all_and_grid_points_take_turns() -> None:
    plan = make_plan({"a": [1.0, 2.0, 3.0], "m": lw.uniform(0, 1)}, lw.Sampling(cases=10))
    assert plan.values[:, 0].tolist() == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]
    assert len(np.unique(plan.values[:, 1])) == 10


@pytest.mark.parametrize("sampling", ["latin", "sobol", "random"])
def test_a_seed_makes_the_same_plan_and_another_seed_another(sampling: str) -> None:
    def made(seed: int) -> Any:
        return make_plan({"m": lw.normal(1, 0.1), "k": lw.uniform(0, 1)}, lw.Sampling(sampling, cases=50, seed=seed))

    assert np.array_equal(made(3).values, made(3).values)
    assert made(3).digest == made(3).digest != made(4).digest


def test_a_latin_hypercube_has_one_draw_in_every_stripe() -> None:
    values = make_plan({"a": lw.uniform(0, 1), "b": lw.uniform(0, 1)}, lw.Sampling(cases=40)).values
    for k in range(2):
        assert sorted(np.floor(values[:, k] * 40).astype(int)) == list(range(40))


LAWS = [
    (lw.normal(2.0, 0.3), stats.norm(2.0, 0.3)),
    (lw.normal(2.0, 0.3, 1.8, 2.9), stats.truncnorm((1.8 - 2.0) / 0.3, (2.9 - 2.0) / 0.3, 2.0, 0.3)),
    (lw.lognormal(1.5, 0.2), stats.lognorm(0.2, scale=1.5)),
    (lw.uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    (lw.loguniform(0.1, 10.0), stats.loguniform(0.1, 10.0)),
    (lw.triangular(1.0, 1.5, 4.0), stats.triang(0.5 / 3.0, 1.0, 3.0)),
]


@pytest.mark.parametrize(("law", "known"), LAWS, ids=[str(law) for law, _ in LAWS])
def test_a_distribution_has_the_quantiles_of_scipys(law: Distribution, known: Any) -> None:
    p = np.linspace(0.001, 0.999, 41)
    assert np.allclose(law.at(p), known.ppf(p), rtol=1e-10, atol=1e-12)


def test_probabilities_at_the_ends_give_finite_values() -> None:
    for law, _ in LAWS:
        assert np.isfinite(law.at(np.array([0.0, 1.0]))).all()


def test_a_choice_takes_every_value_as_often() -> None:
    values = make_plan({"a": lw.choice([3, 5, 9])}, lw.Sampling(cases=30)).values[:, 0]
    assert {x: int((values == x).sum()) for x in (3.0, 5.0, 9.0)} == {3.0: 10, 5.0: 10, 9.0: 10}


def test_chunks_are_the_plans_and_cover_all_cases() -> None:
    plan = make_plan({"a": np.arange(1001.0)})
    parts = [plan.part(k) for k in range(plan.chunks)]
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(1001))
    assert make_plan({"a": np.arange(1001.0)}, chunk=10).digest != plan.digest


def test_a_plan_is_told_in_words() -> None:
    text = plan_text(make_plan({"a": [1, 2], "m": lw.normal(1, 0.1)}, lw.Sampling("sobol", draws=3, seed=5)))
    assert text == "6 cases: a: 2 values 1 … 2; m ~ normal(1, 0.1), drawn by Sobol's sequence, seed 5"


@pytest.mark.parametrize(
    ("parameters", "options", "words"),
    [
        ({}, {}, "needs parameters that vary"),
        ({"a": []}, {}, "'a' has values of shape"),
        ({"a": [1.0, np.nan]}, {}, "'a' has the value nan"),
        ({"a": "long"}, {}, "'a' varies as 'long'"),
        ({"a": [1, 2]}, {"cases": 5}, "a grid of 2 cases, not 5; leave cases out"),
        ({"a": [1, 2]}, {"draws": 5}, "leave draws out"),
        ({"a": [1, 2, 3], "m": lw.uniform(0, 1)}, {"cases": 2}, "the grid alone has 3 points"),
        ({"m": lw.uniform(0, 1)}, {"method": "grid"}, "'m' is a distribution"),
        ({"m": lw.uniform(0, 1)}, {"method": "sobal"}, "did you mean 'sobol'"),
        ({"m": lw.uniform(0, 1)}, {"cases": 0}, "cases must be a whole number from 1 on, not 0"),
        ({"m": lw.uniform(0, 1)}, {"cases": 2.5}, "cases must be a whole number, not 2.5"),
        ({"m": lw.uniform(0, 1)}, {"seed": -1}, "seed must be a whole number from 0 on, not -1"),
        ({"m": [1.0, 2.0]}, {"seed": 3}, "seed=3 is of distributions, and every parameter is a list; leave seed out"),
        ({"m": [1.0, 2.0]}, {"seed": 0}, "leave seed out"),
        ({"m": lw.uniform(0, 1)}, {"cases": 5, "draws": 5}, "both given"),
        ({f"p{k}": range(100) for k in range(9)}, {}, "is the most; take fewer values"),
    ],
)
def test_a_plan_that_cannot_be_says_what_to_change(parameters: Any, options: Any, words: str) -> None:
    with pytest.raises(LinkwrightError) as told_error:
        make_plan(parameters, lw.Sampling(**options))
    assert words in str(told_error.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lw.normal(1, 0), "the deviation is not positive"),
        (lambda: lw.normal(1, 0.1, 5, 6), "its limits cut off all"),
        (lambda: lw.normal(1, "wide"), "'wide' is no finite number"),
        (lambda: lw.uniform(2, 1), "low is not below high"),
        (lambda: lw.lognormal(-1, 1), "the median is not positive"),
        (lambda: lw.loguniform(0, 1), "low is not between zero and high"),
        (lambda: lw.triangular(0, 5, 1), "not in ascending order"),
        (lambda: lw.choice([]), "nothing to choose from"),
    ],
)
def test_a_distribution_that_cannot_be_says_why(make: Any, words: str) -> None:
    with pytest.raises(LinkwrightError, match=words):
        make()


@pytest.mark.parametrize("sampling", ["latin", "sobol", "random"])
def test_a_way_to_draw_is_refused_where_nothing_is_drawn(sampling: str) -> None:
    with pytest.raises(ModelError, match=f"the sampling method '{sampling}' is of distributions"):
        make_plan({"a": [1.0, 2.0]}, lw.Sampling(sampling))
