"""Base parameters: the fewest combinations β of the inertial parameters π that the forces show, F = Y_b β.

Y's columns are vectors of polynomials; a relation Σ c_k Y_k = 0 with c_k free of coordinates, rates and accelerations
makes one of its parameters disappear into the others. The relations are found twice: exactly, from the coefficients of
every monomial in what moves (`base_parameters`), and from the regressor's values at random states (`sampled`).

Which parameters are kept follows Gautier and Khalil (1990): of each link first those that its own joint shows (J but
for Jyy, mx, my), from the base outwards; then mz, m, Jyy and motor inertia. What a link's joint does not show of it is
so moved to the links nearer to the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.locks import cached_property
from linkwright.symbolic.formulas.exact import added, bracketed
from linkwright.symbolic.formulas.formula import Block, Sum, Symbol, evaluate, number, raised
from linkwright.symbolic.printing.mathml import html_formulas
from linkwright.symbolic.regressor.column_relations import relations
from linkwright.symbolic.regressor.polynomial_regressor import Regressor, Writer

#: Of one link, in the order in which they are kept: those of a turning link, then those that mostly move inwards.
_KEPT = ("V", "f", "Jzz", "Jxx", "Jxy", "Jxz", "Jyz", "mx", "my")
_GIVEN = ("mz", "m", "Jyy", "J")
#: Columns that stand out less than this from the ones before, of their own size, depend on them.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class BaseParameters:
    """β = Σ coefficient·π by parameter kept; the coefficients are formulas where `exact`, else found from samples."""

    regressor: Regressor
    independent: tuple[int, ...]  # columns of Y that are independent, in the order of π
    without_influence: tuple[str, ...]
    #: for each column kept, the other parameters in its combination with their coefficients
    combined: Mapping[int, Mapping[int, Sum]]
    exact: bool = True

    def __repr__(self) -> str:
        origin = "exact" if self.exact else "from samples"
        name, every = self.regressor.model.name, len(self.regressor.columns)
        return f"<BaseParameters of {name!r}: {self.rank} in place of {every} inertial ones, {origin}>"

    def __str__(self) -> str:
        lines = [f"{self.rank} base parameters of {len(self.regressor.columns)} inertial ones"]
        lines += [f"  {name} = {relation}" for name, relation in self.relations.items()]
        return "\n".join([*lines, *self._idle()])

    def _repr_html_(self) -> str:
        return html_formulas(repr(self)[1:-1], self.relations, self._idle())

    def _idle(self) -> list[str]:
        return [f"without influence: {', '.join(self.without_influence)}"] if self.without_influence else []

    @property
    def rank(self) -> int:
        return len(self.independent)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the parameter kept, with R (regrouped) where others are in it."""
        every = self.regressor.names
        return tuple(every[k] + ("R" if self.combined[k] else "") for k in self.independent)

    @property
    def alone(self) -> tuple[str, ...]:
        """The parameters of π that the forces determine one by one."""
        return tuple(self.regressor.names[k] for k in self.independent if not self.combined[k])

    @property
    def in_combination(self) -> tuple[str, ...]:
        """The parameters of π of which the forces determine only combinations."""
        known = {*self.alone, *self.without_influence}
        return tuple(name for name in self.regressor.names if name not in known)

    @cached_property
    def relations(self) -> dict[str, Sum]:
        """Each base parameter as a formula of π, lengths and angles."""
        return {name: self._relation(k) for name, k in zip(self.names, self.independent, strict=True)}

    def _relation(self, k: int) -> Sum:
        columns = self.regressor.columns
        others = [bracketed(x, columns[j].symbol) for j, x in sorted(self.combined[k].items())]
        return added(raised(columns[k].symbol), *others)

    @cached_property
    def combination(self) -> NDArray[np.float64]:
        """The matrix of β = matrix·π at the model's lengths and angles: (rank, p)."""
        matrix = np.zeros((self.rank, len(self.regressor.columns)))
        for row, k in enumerate(self.independent):
            matrix[row, k] = 1.0
            for j, coefficient in self.combined[k].items():
                matrix[row, j] = evaluate(coefficient, self.regressor.model.values)
        return matrix

    @property
    def beta(self) -> NDArray[np.float64]:
        """The values of the base parameters, in the order of `names`."""
        beta: NDArray[np.float64] = self.combination @ self.regressor.pi
        return beta

    @property
    def values(self) -> dict[str, float]:
        """The values of the base parameters by name."""
        return dict(zip(self.names, self.beta.tolist(), strict=True))

    def matrix(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> NDArray[np.float64]:
        """Y_b at coordinates, rates and accelerations (..., n): (..., n, rank); raises as `Regressor.matrix` does.

        >>> import linkwright as lw
        >>> base = lw.equations(lw.chain(2)).base
        >>> base.matrix([0.1, 0.2], [1.0, 0.0], [0.0, 0.0]).shape == (2, base.rank)
        True
        """
        return self.regressor.matrix(q, v, a)[..., self.independent]

    def blocks(self, write: Writer | None = None) -> dict[str, Block]:
        """Yb (n × rank), the base parameters by name, and what they are."""
        return {
            "Yb": self.regressor.block("Yb", self.independent, write),
            "beta": Block("beta", (self.rank,), tuple(raised(Symbol(name)) for name in self.names)),
            "regrouped": Block("regrouped", (self.rank,), tuple(self.relations.values())),
        }


def order(regressor: Regressor) -> list[int]:
    """The columns in the order in which they are kept."""

    def place(k: int) -> tuple[int, int, int]:
        column = regressor.columns[k]
        late = column.letter in _GIVEN
        return late, column.body, (_GIVEN if late else _KEPT).index(column.letter)

    return sorted(range(len(regressor.columns)), key=place)


def base_parameters(regressor: Regressor) -> BaseParameters:
    """The base parameters with exact relations, which hold for any lengths and angles that are symbols.

    Where the model's numbers allow fewer (rounded cosines, or symbols whose values are special), they are found from
    samples instead, and `exact` is False.
    """
    exact = relations(regressor, order(regressor), TOLERANCE)
    return sampled(regressor) if exact is None else _base_parameters(regressor, *exact, exact=True)


def sampled(
    regressor: Regressor, *, states: int | None = None, tolerance: float = TOLERANCE, seed: int = 0
) -> BaseParameters:
    """The base parameters at the model's own lengths and angles, from the regressor at random states.

    A column that stands out of the span of those kept before by less than `tolerance` of its size is dependent. The
    numbers of the relations are taken as fractions or short decimals where they are so near.
    """
    p = len(regressor.columns)
    rng = np.random.default_rng(seed)
    q, v, a = (
        rng.normal(size=(3, states or 3 * p // regressor.n + 4, regressor.n)) * np.array([2.0, 1, 1])[:, None, None]
    )
    rows = regressor.matrix(2.0 * q, v, a).reshape(-1, p)
    sizes = np.linalg.norm(rows, axis=0)
    sizes = np.where(sizes > tolerance * sizes.max(initial=0.0), sizes, np.inf)
    scaled = rows / sizes
    independent = leading(scaled, order(regressor), tolerance)
    dependent = [k for k in range(len(sizes)) if k not in independent and np.isfinite(sizes[k])]
    combined: dict[int, dict[int, Sum]] = {k: {} for k in independent}
    if independent and dependent:
        x = np.linalg.lstsq(scaled[:, independent], scaled[:, dependent], rcond=None)[0]
        for i, k in enumerate(independent):
            for j, other in enumerate(dependent):
                value = float(x[i, j] * sizes[other] / sizes[k])
                if abs(x[i, j]) > tolerance:
                    combined[k][other] = number(_plain(value))
    return _base_parameters(regressor, independent, combined, exact=False)


def leading(rows: NDArray[np.float64], columns: Sequence[int], tolerance: float) -> list[int]:
    """The columns, taken in this order, that are not in the span of those before."""
    basis = np.zeros((rows.shape[0], 0))
    independent = []
    for k in columns:
        remainder = rows[:, k]
        for _ in range(2):  # once more: what rounding left
            remainder = remainder - basis @ (basis.T @ remainder)
        size = np.linalg.norm(remainder)
        if size > tolerance * max(1.0, float(np.linalg.norm(rows[:, k]))):
            independent.append(k)
            basis = np.column_stack([basis, remainder / size])
    return independent


def _base_parameters(
    regressor: Regressor, independent: Sequence[int], combined: Mapping[int, Mapping[int, Sum]], *, exact: bool
) -> BaseParameters:
    used = {*independent, *(j for row in combined.values() for j in row)}
    idle = tuple(name for k, name in enumerate(regressor.names) if k not in used)
    return BaseParameters(regressor, tuple(sorted(independent)), idle, combined, exact)


def _plain(x: float) -> Fraction:
    """A small fraction or a short decimal if x is one but for rounding."""
    near = 1e-11 * max(1.0, abs(x))
    small = Fraction(x).limit_denominator(48)
    if abs(float(small) - x) < near:
        return small
    for digits in range(3, 13):
        if abs(round(x, digits) - x) < near:
            return Fraction(repr(round(x, digits)))
    return Fraction(repr(x))
