"""M = Lᵀ D L of a symmetric positive matrix, from the last row up: a tree's mass matrix fills in nowhere.

Over any scalar; entries that are zero by structure cost nothing. Featherstone (2008), 6.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwright.spatial.algebra import is_zero


class ZeroPivot(ZeroDivisionError):
    """A matrix that cannot be factorised; `row` is where."""

    def __init__(self, row: int) -> None:
        super().__init__(f"pivot {row} is zero")
        self.row = row


class Factor:
    """L (unit lower; rows of (column, entry)) and 1/D."""

    def __init__(self, rows: list[list[tuple[int, Any]]], inverse: list[Any]) -> None:
        self.rows, self.inverse = rows, inverse

    def solve(self, b: Sequence[Any]) -> list[Any]:
        """M⁻¹ b."""
        x = list(b)
        self.inward(x)
        self.outward(x)
        return x

    def inward(self, x: list[Any]) -> None:
        """x ← L⁻ᵀ x; entries that are zero by structure stay so."""
        for i in reversed(range(len(x))):
            if not is_zero(x[i]):
                for j, entry in self.rows[i]:
                    x[j] = x[j] - entry * x[i]

    def outward(self, x: list[Any]) -> None:
        """x ← L⁻¹ D⁻¹ x."""
        for i in range(len(x)):
            x[i] = x[i] * self.inverse[i]
            for j, entry in self.rows[i]:
                x[i] = x[i] - entry * x[j]


def factorise(matrix: Sequence[Sequence[Any]]) -> Factor:
    """The factors of a symmetric positive matrix; its lower triangle is read."""
    n = len(matrix)
    h = [list(row) for row in matrix]
    rows: list[list[tuple[int, Any]]] = [[] for _ in range(n)]
    inverse: list[Any] = [0.0] * n
    for k in reversed(range(n)):
        if is_zero(h[k][k]):
            raise ZeroPivot(k)
        inverse[k] = 1.0 / h[k][k]
        columns = [i for i in range(k) if not is_zero(h[k][i])]
        for i in columns:
            entry = h[k][i] * inverse[k]
            for j in columns:
                if j <= i:
                    h[i][j] = h[i][j] - entry * h[k][j]
            rows[k].append((i, entry))
    return Factor(rows, inverse)
