"""States between the ends of a step, over floats and recorded scalars alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwright.simulation.tableaux import Tableau


def weighted(factors: Sequence[float], terms: Sequence[Any]) -> Any:
    """Σ factor·term."""
    total = factors[0] * terms[0]
    for factor, term in zip(factors[1:], terms[1:], strict=True):
        total = total + factor * term
    return total


def dense_count(tableau: Tableau) -> int:
    """How many terms dense output has."""
    return 3 + len(tableau.dense)


def dense_terms(tableau: Tableau, y0: Any, y1: Any, slopes: dict[int, Any], h: Any) -> list[Any]:
    """The terms of dense output (Hairer, Nørsett and Wanner, II.6)."""
    move = y1 - y0
    first, last = h * slopes[0], h * slopes[tableau.stages]
    terms = [move, first - move, 2.0 * move - last - first]
    return terms + [h * weighted(list(row.values()), [slopes[j] for j in row]) for row in tableau.dense]


def dense_value(y0: Any, terms: Any, x: Any) -> Any:
    """Dense output at the part x of a step, from its terms (terms, ...)."""
    y = 0.0 * terms[0]
    for k in range(len(terms) - 1, -1, -1):
        y = (y + terms[k]) * (x if k % 2 == 0 else 1.0 - x)
    return y0 + y
