"""Trees put together in O(log N) rounds: every link once, nothing before what it needs, whatever the tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from linkwright.model.tree_contraction import STRETCH, Contraction, contract
from shapes import SHAPES, chain


def depth(c: Contraction) -> int:
    """The longest way from a link to a whole path: joins, sums and links that wait for their light children."""
    node, passed = np.full(c.nodes, -1), np.full(c.nothing + 1, -1)
    passed[c.nothing] = 0
    path_of = {int(w): k for k, w in enumerate(c.whole)}
    made = {c.n + k: (int(a), int(b)) for k, (a, b) in enumerate(zip(c.above, c.below, strict=True))}
    sums = {len(c.head) + k: (int(a), int(b)) for k, (a, b) in enumerate(zip(c.left, c.right, strict=True))}
    whole, inner = {k: w for w, k in path_of.items()}, set(c.inner.tolist())

    # Work off a stack: deep trees must not exhaust Python's own.
    stack = [("node", int(w)) for w in c.whole]
    while stack:
        what, k = stack[-1]
        known = node if what == "node" else passed
        if known[k] >= 0:
            stack.pop()
            continue
        if what == "node":
            needs = [("node", x) for x in made[k]] if k >= c.n else [("passed", int(c.light[k]))]
            if k in inner:
                needs = [("node", int(c.heavy[k]))]
        else:
            needs = [("node", whole[k])] if k in whole else [("passed", x) for x in sums[k]]
        values = [(node if w == "node" else passed)[x] for w, x in needs]
        missing = [need for need, value in zip(needs, values, strict=True) if value < 0]
        if missing:
            stack.extend(missing)
        else:
            known[k] = 1 + max(values)
            stack.pop()
    return int(node[c.whole].max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000, 20_000])
def test_depth_is_logarithmic_for_any_tree(shape: str, n: int) -> None:
    c = contract(SHAPES[shape](n).astype(np.int32))
    assert depth(c) <= 4 * np.log2(n) + 4 + STRETCH


@pytest.mark.parametrize("n", [2**k for k in range(12)])
def test_a_chain_is_stretches_then_halves(n: int) -> None:
    assert depth(contract(chain(n).astype(np.int32))) == min(n, STRETCH) + max(0, np.log2(n / STRETCH))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_every_link_once(shape: str, n: int) -> None:
    parent = SHAPES[shape](n).astype(np.int32)
    c = contract(parent)
    # Every joint is met once: within a stretch, within a path, or at its head.
    assert sorted([*c.joint.tolist(), *c.head.tolist(), *c.heavy[c.inner].tolist()]) == list(range(n))
    # A node's stretch is its parts' stretches, one on the other.
    stretch: list[list[int]] = [[i] for i in range(n)] + [[] for _ in c.above]
    inner = set(c.inner.tolist())
    for i in sorted(range(n), key=lambda i: -i):
        if i in inner:
            assert c.light[i] == c.nothing
            stretch[i] += stretch[int(c.heavy[i])]
    assert max(map(len, stretch[:n])) <= STRETCH
    assert {s[-1] for s in stretch[:n]} == set(c.ends.tolist())
    for k in sorted(range(len(c.above)), key=lambda k: -k):
        stretch[n + k] = stretch[int(c.above[k])] + stretch[int(c.below[k])]
        assert c.joint[k] == stretch[int(c.below[k])][0]
    for k, links in enumerate(stretch):
        assert links[0] == c.first[k]
        assert all(parent[b] == a for a, b in pairwise(links))
        assert c.after[k] == c.heavy[links[-1]]
    assert sorted(c.row.tolist()) == list(range(n))
    for head, last, whole in zip(c.head, c.last, c.whole, strict=True):
        assert (stretch[whole][0], stretch[whole][-1]) == (head, last)
        assert c.heavy[last] == n
    # A link's sum is of all paths that it carries.
    terms: list[list[int]] = [[k] for k in range(len(c.head))] + [[] for _ in c.left] + [[]]
    for k in sorted(range(len(c.left)), key=lambda k: -k):
        terms[len(c.head) + k] = terms[int(c.left[k])] + terms[int(c.right[k])]
    for i in range(n):
        carried = [k for k, h in enumerate(c.head) if parent[h] == i]
        assert sorted(terms[int(c.light[i])]) == carried
