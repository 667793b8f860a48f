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

from linkwright.constraints.programs import Programs
from linkwright.constraints.recorded import Layout
from linkwright.mechanism.description import GROUND

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Parts with more columns of J than this are not compared: there the smoothness of steps alone tells.
LARGEST = 300


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of equal shape: where the entries of J stand in its store, and how columns are scaled."""

    gather: Ints  # (parts, rows, columns); the place behind the store's end is 0
    scale: Floats  # (parts, 1, columns): the square root of W⁻¹
    rows: bool  # more columns than independent rows: the products are of rows


class Branch:
    """Compares states, each with the one before it."""

    def __init__(self, programs: Programs, pivots: Floats) -> None:
        self._programs = programs
        layout = programs.layout
        shapes: dict[tuple[int, int, bool], list[tuple[Ints, Floats]]] = {}
        e = layout.equations
        for constraints, bodies in _parts(layout):
            if 6 * len(bodies) > LARGEST:
                continue
            number = {body: k for k, body in enumerate(bodies)}
            kept = [row for c in constraints for row in range(int(e.first[c]), int(e.first[c + 1]))]
            strong = [row for row in kept if pivots[row] > programs.tolerance]
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

    def same(self, q: Floats, angles: Floats, times: Floats) -> NDArray[np.bool_]:
        """For states (n, ...) one after another, whether each but the first is on the branch of the one before it."""
        steps = len(q) - 1
        good = np.ones(steps, bool)
        if not self._parts:
            return good
        rest = np.zeros((q.shape[1], 6))
        stored = self._programs.evaluate(q, angles, np.asarray(times)[:, None], rest)[1]
        j = np.concatenate([stored, np.zeros((len(q), 1))], axis=1)
        for part in self._parts:
            good &= _agree(part, j).all(axis=1)
        return good


def _agree(part: _Parts, stored: Floats) -> NDArray[np.bool_]:
    """For every step and every part of equal shape, whether the determinants have one sign."""
    _, m, n = part.gather.shape
    j = stored[:, part.gather] * part.scale
    if m == n:  # the sign of a product is the product of the signs, and better known
        signs = np.linalg.slogdet(j)[0]
        return np.asarray(signs[:-1] * signs[1:] >= 0.0)
    first, second = j[:-1], j[1:]
    product = first @ second.transpose(0, 1, 3, 2) if part.rows else first.transpose(0, 1, 3, 2) @ second
    return np.asarray(np.linalg.slogdet(product)[0] >= 0.0)


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
