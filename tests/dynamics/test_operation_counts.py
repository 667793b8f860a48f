"""Generic operation counts, beside the paper's formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from linkwright.dynamics.functions import FORWARD_METHODS
from linkwright.dynamics.methods.operation_counts import GIVEN, generic_forward_dynamics
from linkwright.dynamics.programs import ProgramFactory
from linkwright.dynamics.traversals.traversal import Link, Unrolled
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism import Mechanism
from linkwright.model.generators import random_tree
from linkwright.spatial.algebra import Array

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


def test_the_articulated_body_algorithm_has_its_count_where_rotations_and_shifts_are_known() -> None:
    for n in (2, 5, 9):
        assert lw.operation_counts(n, "articulated-body", rotations=True) == (465 * n - 343, 401 * n - 312)


@pytest.mark.parametrize("method", FORWARD_METHODS)
def test_rotations_and_shifts_cost_no_more_than_full_matrices(method: str) -> None:
    with_rotations, with_matrices = (np.array(lw.operation_counts(6, method, rotations=x)) for x in (True, False))
    assert np.all(with_rotations == with_matrices) if method == "assembly" else np.all(with_rotations < with_matrices)


@pytest.mark.parametrize("rotations", [False, True])
@pytest.mark.parametrize("method", FORWARD_METHODS)
def test_what_is_counted_is_forward_dynamics(method: str, rotations: bool) -> None:
    n, rng = 7, np.random.default_rng(0)
    mech = screws(n)
    q, v, tau = rng.standard_normal((3, n))
    links = Unrolled(ProgramFactory(mech.description).tree, {"q": q, "v": v, "tau": tau}).links
    inputs = [np.concatenate([np.ravel(given(link)[name]) for link in links]) for name in GIVEN]
    found = generic_forward_dynamics(n, method, rotations=rotations).evaluate([*np.concatenate(inputs), *mech.gravity])
    assert np.allclose(found, mech.forward_dynamics(q, v, tau), rtol=1e-9)


def screws(n: int) -> Mechanism:
    """A chain of bodies that are not alike, on screw joints: S, Q and T differ and nothing is along an axis."""
    d = random_tree(n, 0, joints=("screw",))
    return Mechanism(replace(d, parent=np.arange(-1, n - 1, dtype=np.int32)))


def given(link: Link) -> dict[str, Array]:
    """What a generic link is given, of a link that is known."""
    terms = link.terms()
    x, m = link.transform(terms), link.rigid_inertia().dense()
    return {
        "C": x.outward_columns(np.eye(6)),
        "J": link.subspace(terms),
        "M": m[np.triu_indices(6)],
        "Q": link.complement(terms),
        "T": link.dual(terms),
        "R": x.rotation.matrix(),
        "p": x.p,
        "v": link.v,
        "tau": link.tau,
    }


def test_virtual_work_is_linear() -> None:
    counts = np.array([lw.operation_counts(n, "virtual-work") for n in (4, 5, 6, 7)])
    assert np.all(np.diff(counts, 2, axis=0) == 0)


def test_the_assembly_does_linear_work_in_logarithmic_depth() -> None:
    blocks = [generic_forward_dynamics(n, "assembly") for n in (2, 4, 8, 16)]
    depth = [block.depth() for block in blocks]
    assert len(set(np.diff(depth))) == 1
    # a N + b log₂N + c at powers of two.
    counts = np.array([lw.operation_counts(n, "assembly") for n in (2, 4, 8, 16)])
    twice = np.diff(counts, 2, axis=0)
    assert np.all(twice[1] == 2 * twice[0])
    assert generic_forward_dynamics(16, "articulated-body").depth() > depth[-1]


def test_a_wrong_method_or_number_of_links_is_told() -> None:
    with pytest.raises(NameNotFound, match="diagonal"):
        lw.operation_counts(3, "diagnal")
    with pytest.raises(ModelError, match="whole number from 1 on"):
        lw.operation_counts(0, "diagonal")
