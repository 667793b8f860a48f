"""G x = r for the rates of a spanning tree, as straight code: rows of one unknown, then small blocks, by least squares.

Every unknown must follow from the equations. Equations that repeat others, as a planar loop's do, are met with them; so
no choice of rows or pivots is made, and code for one position is code for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwright.base.arrays import Bools, Floats
from linkwright.spatial.algebra import Array, dot, is_zero, ldl, ldl_solve
from linkwright.tape.block import minimum


class Undetermined(ValueError):
    """Equations that leave a rate free, whatever the position is."""


@dataclass(frozen=True)
class Block:
    """Rows that determine the unknowns `columns` where those of the blocks before are known."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


def known_alone(g: Array) -> dict[int, int]:
    """Rows with one entry that is a plain number, by their column: what drivers say of the tree's own coordinates."""
    known: dict[int, int] = {}
    for row, entries in enumerate(g):
        at = [k for k, x in enumerate(entries) if not is_zero(x)]
        if len(at) == 1 and at[0] not in known and getattr(entries[at[0]], "value", 1.0) is not None:
            known[at[0]] = row
    return known


def blocks_of(pattern: Bools) -> list[Block]:
    """Rows and columns of a pattern (m, n) of entries in the order in which the unknowns become known.

    Square systems fall into the strong components of their matched graph, others are one block.
    """
    n = pattern.shape[1]
    used = np.flatnonzero(pattern.any(axis=1))
    row_of = _matching(pattern)
    if len(row_of) < n:
        raise Undetermined("the equations leave a rate free")
    if len(used) > n:
        return [Block(tuple(used.tolist()), tuple(range(n)))] if n else []
    needs = pattern[[row_of[k] for k in range(n)]] if n else np.zeros((0, 0), bool)  # column k needs column j
    for _ in range(n.bit_length()):
        needs = needs | (needs.astype(int) @ needs.astype(int) > 0)
    groups = {tuple(np.flatnonzero(needs[k] & needs[:, k]).tolist()) for k in range(n)}
    order = sorted(groups, key=lambda group: (int(needs[group[0]].sum()), group))
    return [Block(tuple(row_of[k] for k in group), group) for group in order]


def _matching(pattern: Bools) -> dict[int, int]:
    """A row for as many columns as can be, no two of them the same."""
    row_of: dict[int, int] = {}

    def assign(column: int, tried: set[int]) -> bool:
        for row in np.flatnonzero(pattern[:, column]).tolist():
            if row in tried:
                continue
            tried.add(row)
            holder = next((k for k, i in row_of.items() if i == row), None)
            if holder is None or assign(holder, tried):
                row_of[column] = row
                return True
        return False

    for column in range(pattern.shape[1]):
        assign(column, set())
    return row_of


class RateSystem:
    """G (m, n) with blocks; `regularity` is about the square of the least sine of an angle between its columns.

    `units` (n,) and `row_units` (m,) are those of unknowns and equations: least squares compare them.
    """

    def __init__(self, g: Array, blocks: Sequence[Block], units: Floats, row_units: Floats) -> None:
        self.g, self.units, self.row_units = g, units, row_units
        self.parts = [self._part(block) for block in blocks]
        self.regularity: Any = reduce(minimum, (part.regularity for part in self.parts), 1.0)

    def _part(self, block: Block) -> Single | Pair | Normal:
        g = np.array([[self.g[i][j] for j in block.columns] for i in block.rows])
        same = len({float(self.row_units[i]) for i in block.rows}) == 1
        units = self.units[list(block.columns)]
        if g.shape == (1, 1):
            return Single(block, g, float(units[0] / self.row_units[block.rows[0]]))
        if g.shape == (2, 2) and same:
            return Pair(block, g)
        return Normal(block, g, units, self.row_units[list(block.rows)])

    def solve(self, right: Array, *, refined: bool = False) -> Array:
        """x (n,) of G x = right (m,); `refined` once where the squares of equations were summed."""
        x: list[Any] = [0.0] * len(self.units)
        for part in self.parts:
            block = part.block
            less = []
            for i in block.rows:
                others = [j for j in range(len(x)) if j not in block.columns and not is_zero(self.g[i][j])]
                less.append(right[i] - sum(self.g[i][j] * x[j] for j in others))
            for j, y in zip(block.columns, part.solve(np.array(less), refined), strict=True):
                x[j] = y
        return np.array(x)


class Single:
    """One equation for one unknown."""

    def __init__(self, block: Block, g: Array, unit: float) -> None:
        self.block, self.g = block, g[0][0]
        size = self.g * unit
        self.regularity: Any = minimum(size * size, 1.0)

    def solve(self, right: Array, refined: bool) -> list[Any]:
        return [right[0] / self.g]


class Pair:
    """Two equations for two unknowns, by Cramer's rule."""

    def __init__(self, block: Block, g: Array) -> None:
        self.block, self.g = block, g
        (a, b), (c, d) = g
        det = a * d - b * c
        self.inverse = 1.0 / det
        self.regularity: Any = det * det / ((a * a + c * c) * (b * b + d * d))

    def solve(self, right: Array, refined: bool) -> list[Any]:
        (a, b), (c, d) = self.g
        x, y = right
        return [(d * x - b * y) * self.inverse, (a * y - c * x) * self.inverse]


class Normal:
    """Any number of equations, by GᵀG."""

    def __init__(self, block: Block, g: Array, units: Floats, row_units: Floats) -> None:
        self.block, self.units, self.row_units = block, units, row_units
        self.g = g * units / row_units[:, None]
        square = np.array([[dot(x, y) for y in self.g.T] for x in self.g.T])
        self.lower, self.inverse = ldl(square)
        sines = [1.0 / (x * square[k][k]) for k, x in enumerate(self.inverse)]
        self.regularity: Any = reduce(minimum, sines, 1.0)

    def solve(self, right: Array, refined: bool) -> list[Any]:
        r = right / self.row_units
        x = self._once(r)
        if refined:
            x = x + self._once(r - self.g @ x)
        return list(x * self.units)

    def _once(self, right: Array) -> Array:
        return ldl_solve(self.lower, self.inverse, np.array([dot(x, right) for x in self.g.T]))


class LeastNorm:
    """Rates x of least xᵀA x with G x = r, for fewer equations than rates, none of which repeats others."""

    def __init__(self, g: Array, metric: Array, row_units: Floats) -> None:
        self.row_units = row_units
        self.g = g / row_units[:, None]
        lower, inverse = ldl(metric)
        self._response = np.array([ldl_solve(lower, inverse, row) for row in self.g])  # G A⁻¹
        square = np.array([[dot(x, y) for y in self.g] for x in self._response])
        self._lower, self._inverse = ldl(square)
        sines = [1.0 / (x * square[k][k]) for k, x in enumerate(self._inverse)]
        self.regularity: Any = reduce(minimum, sines, 1.0)

    def solve(self, right: Array, *, refined: bool = False) -> Array:
        r = right / self.row_units
        x = self._once(r)
        return x + self._once(r - self.g @ x) if refined else x

    def free(self, x: Array) -> Array:
        """The part of x that the equations allow."""
        return x - self._once(self.g @ x)

    def _once(self, right: Array) -> Array:
        return ldl_solve(self._lower, self._inverse, right) @ self._response
