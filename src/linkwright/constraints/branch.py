"""Whether two states of a mechanism are on one branch: between them its equations never become dependent.

Where J has as many independent rows as columns, det J keeps its sign along a branch and changes it where two branches
cross. With redundant equations det(J₀ᵀJ₁) tells the same of two states near each other (by Cauchy and Binet it is the
sum of the products of all such determinants), with freedom left det(J₀W⁻¹J₁ᵀ). A step that looks smooth but has the
wrong sign went from one branch to another. Parts of a mechanism that do not touch are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.recorded import Layout
from linkwright.mechanism.description import GROUND

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Up to so many columns of J a part is dense.
DENSE = 300


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of equal shape: where the entries of J stand in its store, and how columns are scaled."""

    gather: Ints  # (parts, rows, columns); the place behind the store's end is 0
    scale: Floats  # (parts, columns): the square root of W⁻¹
    rows: bool  # more columns than independent rows: the products are of rows


class Branch:
    """Compares the Jacobians, as they are stored, of two states."""

    def __init__(self, layout: Layout, pivots: Floats) -> None:
        shapes: dict[tuple[int, int, bool], list[tuple[Ints, Floats]]] = {}
        e = layout.equations
        for constraints, bodies in _parts(layout):
            number = {body: k for k, body in enumerate(bodies)}
            kept = [row for c in constraints for row in range(int(e.first[c]), int(e.first[c + 1]))]
            strong = [row for row in kept if pivots[row] > RANK_TOLERANCE]
            free = len(strong) < 6 * len(bodies)
            if free:
                kept = strong
            if not kept:
                continue
            place = {row: k for k, row in enumerate(kept)}
            gather = np.full((len(kept), 6 * len(bodies)), layout.jacobian_size, np.int64)
            for c in constraints:
                for body, at in layout.part_at[c].items():
                    for k in range(e.constraints[c].form.size):
                        row = place.get(int(e.first[c]) + k)
                        if row is not None:
                            gather[row, 6 * number[body] : 6 * number[body] + 6] = np.arange(at + 6 * k, at + 6 * k + 6)
            scale = np.ones((len(bodies), 6))
            scale[:, 3:] /= e.sizes[bodies][:, None]
            shapes.setdefault((*gather.shape, free), []).append((gather, scale.reshape(-1)))
        self._parts = [
            _Parts(np.stack([g for g, _ in group]), np.stack([s for _, s in group])[:, None, :], free)
            for (_, _, free), group in shapes.items()
        ]
        self._store = np.zeros((2, layout.jacobian_size + 1))

    def same(self, first: Floats, second: Floats) -> bool:
        """Whether two states, given by their J, are on one branch."""
        self._store[0, :-1], self._store[1, :-1] = first, second
        return all(_agree(part, *self._store) for part in self._parts)


def _agree(part: _Parts, first: Floats, second: Floats) -> bool:
    count, m, n = part.gather.shape
    if n > DENSE:
        return all(_sparse_agree(part, k, first, second) for k in range(count))
    if m == n:  # the sign of a product is the product of the signs, and better known
        signs = [np.linalg.slogdet(x[part.gather])[0] for x in (first, second)]
        return not bool(np.any(signs[0] * signs[1] < 0.0))
    j0, j1 = first[part.gather] * part.scale, second[part.gather] * part.scale
    product = j0 @ j1.transpose(0, 2, 1) if part.rows else j0.transpose(0, 2, 1) @ j1
    return not bool(np.any(np.linalg.slogdet(product)[0] < 0.0))


def _sparse_agree(part: _Parts, k: int, first: Floats, second: Floats) -> bool:
    from scipy.sparse import csc_array  # type: ignore[import-untyped]
    from scipy.sparse.linalg import splu  # type: ignore[import-untyped]

    j0, j1 = (csc_array(x[part.gather[k]] * part.scale[k]) for x in (first, second))
    try:
        factors = splu(csc_array(j0 @ j1.T if part.rows else j0.T @ j1))
    except RuntimeError:  # exactly singular: other checks tell
        return True
    negative = int(np.sum(factors.U.diagonal() < 0.0)) + _odd(factors.perm_r) + _odd(factors.perm_c)
    return negative % 2 == 0


def _odd(permutation: NDArray[np.int32]) -> int:
    """1 for an odd permutation."""
    seen = np.zeros(len(permutation), bool)
    swaps = 0
    for k in range(len(permutation)):
        while not seen[k]:
            seen[k] = True
            k = int(permutation[k])
            swaps += not seen[k]
    return swaps % 2


def _parts(layout: Layout) -> list[tuple[list[int], list[int]]]:
    """Constraints and bodies that hang together, ground left out."""
    e = layout.equations
    group = list(range(e.nb))

    def root(k: int) -> int:
        while group[k] != k:
            group[k] = group[group[k]]
            k = group[k]
        return k

    moving = [[b for b in c.bodies if b != GROUND] for c in e.constraints]
    for bodies in moving:
        for b in bodies[1:]:
            group[root(b)] = root(bodies[0])
    found: dict[int, tuple[list[int], list[int]]] = {}
    for b in range(e.nb):
        found.setdefault(root(b), ([], []))[1].append(b)
    for k, bodies in enumerate(moving):
        if bodies:
            found[root(bodies[0])][0].append(k)
    return list(found.values())
