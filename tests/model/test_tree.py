"""The spanning tree's numbers: links that are alike share theirs, and get the same as if they did not."""

from dataclasses import replace

import numpy as np
import pytest

from linkwright.model.generators import chain, random_tree, tree
from linkwright.model.topology import span
from linkwright.model.tree import FEW, Tree


def modules():
    """A long chain of three different modules in turn, described from either side."""
    d = random_tree(3, 5, branching=1, joints=["revolute", "screw", "cylindrical"])
    n, turn = 60, np.arange(60) % 3
    arrays = {k: getattr(d, k)[turn] for k in ("kind", "ri", "pi", "rj", "pj", "pitch", "mass", "com", "inertia")}
    long = chain(n)
    backwards = np.arange(n) % 6 == 4
    ends = {
        "parent": np.where(backwards, long.child, long.parent),
        "child": np.where(backwards, long.parent, long.child),
    }
    return replace(long, **arrays, **ends)


MADE = {
    "chain": lambda: chain(50),
    "universal": lambda: chain(50, joint="universal"),
    "tree": lambda: tree(40, 3),
    "modules": modules,
}


@pytest.mark.parametrize("made", MADE)
def test_links_that_are_alike_have_one_record(made):
    description = MADE[made]()
    shared, plain = (Tree(description, span(description)) for _ in range(2))
    plain.__dict__["_alike"] = None
    rows, which = shared.records
    assert which is not None
    assert len(rows) <= FEW
    table, none = plain.records
    assert none is None
    np.testing.assert_allclose(rows[which], table, atol=1e-15)
    for got, wanted in zip(shared.link_frames(), plain.link_frames(), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-15)


@pytest.mark.parametrize("changed", ["mass", "com", "inertia", "ri", "pi", "rj", "pj", "pitch", "armature"])
def test_one_link_that_differs_has_its_own_record(changed):
    d = chain(40)
    numbers = np.array(getattr(d, changed))
    numbers[17] = -numbers[17] if changed in ("ri", "rj") else numbers[17] + 0.25
    plain, other = (Tree(x, span(x)) for x in (d, replace(d, **{changed: numbers})))
    table = other.records[0][other.records[1]]
    assert not np.array_equal(table[16:19], plain.records[0][plain.records[1]][16:19])
    np.testing.assert_array_equal(table[:15], plain.records[0][plain.records[1]][:15])


def test_links_of_a_random_tree_have_a_record_each():
    t = Tree(d := random_tree(100, 0), span(d))
    rows, which = t.records
    assert which is None
    assert len(rows) == 100
