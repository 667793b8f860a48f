"""Formulas as SymPy expressions, equal to what SymPy itself would build, without its cost a term.

SymPy orders the factors of a product and the terms of a sum by `Basic.compare`, which dominates the time of long sums.
The different factors are few: they are ranked once by that order, and products and sums are sorted by the ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache, cmp_to_key, partial
from typing import Any

import sympy

from linkwright.symbolic.formulas.formula import Applied, Block, Factor, Root, Sum, Symbol, Term, Trig
from linkwright.symbolic.printing.printed_sheet import each_once

_ROOT, _REWRITTEN = -1, -2


def to_sympy(formula: Sum) -> sympy.Expr:
    """The formula in plain symbols: `sympy.Symbol(name)`, without assumptions."""
    return _Expressions().sum(formula)


def to_sympy_block(block: Block) -> Any:
    """A `sympy.Matrix` of a matrix or vector (a column), or the expression of a single formula."""
    entries = each_once(block, _Expressions().sum)
    return sympy.Matrix(block.shape[0], block.columns, entries) if block.shape else entries[0]


class _Expressions:
    """Makes expressions; symbols, cosines and their powers once each."""

    def __init__(self) -> None:
        # By identity, and with the factor, so that it lives as long: a cosine's hash costs more than its expression.
        self._powers: dict[tuple[int, int], tuple[Factor, Any]] = {}
        self._places: dict[int, tuple[tuple[Factor, int], int, int]] = {}  # by the identity of a pair of a term
        self._expressions: list[Any] = []
        self._known: dict[Any, int] = {}
        self._bases: dict[Any, int] = {}
        self._numbers: dict[tuple[int, int, tuple[tuple[Factor, int], ...]], tuple[Any, list[int]]] = {}

    def sum(self, formula: Sum) -> Any:
        if len(formula.terms) < 8 or not _ordered_as_expected():
            return sympy.Add(*(self.by_sympy(term) for term in formula))
        return self.long(formula)

    # -- factors ------------------------------------------------------------------------------------------------
    def power(self, factor: Factor, power: int) -> Any:
        known = self._powers.get((id(factor), power))
        if known is not None:
            return known[1]
        expression = self._base(factor) if power == 1 else self.power(factor, 1) ** power
        self._powers[id(factor), power] = (factor, expression)
        return expression

    def _base(self, factor: Factor) -> Any:
        if isinstance(factor, Symbol):
            return sympy.Symbol(factor.name)
        if isinstance(factor, Trig):
            angle = sympy.Add(*(_rational(n) * sympy.Symbol(s.name) for s, n in factor.angle))
            return sympy.cos(angle) if factor.function == "cos" else sympy.sin(angle)
        if isinstance(factor, Root):
            return sympy.sqrt(factor.of)
        if isinstance(factor, Applied):
            return _function(factor.function, [self.sum(a) for a in factor.arguments])
        return self.sum(factor)

    def by_sympy(self, term: Term) -> Any:
        return sympy.Mul(_rational(term.number), *(self.power(f, n) for f, n in term.factors))

    # -- long sums ----------------------------------------------------------------------------------------------
    def long(self, formula: Sum) -> Any:
        """The sum by ranks; terms that SymPy may rewrite (with brackets, or sin(−x)) are left to it."""
        plain: list[tuple[Any, list[int]]] = []
        left = []
        for term in formula:
            simple = self._parts(term)
            if simple is None:
                left.append(self.by_sympy(term))
            else:
                plain.append(simple)
        used = [self._expressions[k] for k in {k for _, places in plain for k in places}]
        ranks = _ranks([*{id(number): number for number, _ in plain}.values(), *used])
        rank_of = [ranks.get(x, -1) for x in self._expressions]
        by_rank = list(ranks)
        one, mul = sympy.S.One, partial(sympy.Mul._from_args, is_commutative=True)
        constant: list[Any] = []
        products: dict[tuple[int, ...], tuple[tuple[int, ...], Any]] = {}
        for number, places in plain:
            key = tuple(sorted([rank_of[k] for k in places]))
            if key in products:  # like terms: SymPy collects them
                return sympy.Add(*(self.by_sympy(term) for term in formula))
            if not key:
                constant.append(number)
                products[key] = (key, None)
            elif number is one and len(key) == 1:
                products[key] = (key, by_rank[key[0]])
            elif number is one:
                products[key] = (key, mul([by_rank[k] for k in key]))
            else:
                products[key] = ((ranks[number], *key), mul([number, *[by_rank[k] for k in key]]))
        terms = [pair for pair in products.values() if pair[1] is not None]
        classes = _ranks_of_classes(x for _, x in terms)
        # `Basic.compare`: the class, how many arguments, the arguments one by one.
        terms.sort(key=lambda pair: (classes[type(pair[1])], len(pair[0]), pair[0]))
        total = [*constant, *(x for _, x in terms)]
        fast = sympy.Add._from_args(total, is_commutative=True) if len(total) > 1 else sympy.Add(*total)
        return sympy.Add(fast, *left) if left else fast

    def _parts(self, term: Term) -> tuple[Any, list[int]] | None:
        """A term's number and the places of its powers of different bases; None where SymPy may rewrite the product."""
        places, bases, roots = [], set(), []
        known = self._places
        for pair in term.factors:
            entry = known.get(id(pair)) or self._placed(pair)
            place = entry[1]
            if place >= 0:
                places.append(place)
                bases.add(entry[2])
            elif place == _ROOT:
                roots.append(pair)
            else:
                return None
        if len(bases) != len(places):
            return None
        key = (term.number.numerator, term.number.denominator, tuple(roots))
        split = self._numbers.get(key)
        if split is None:
            number, surds = self.by_sympy(Term(term.number, tuple(roots))).as_coeff_mul()
            split = self._numbers[key] = (number, [self._place(x) for x in surds])
        return split[0], places + split[1]

    def _placed(self, pair: tuple[Factor, int]) -> tuple[tuple[Factor, int], int, int]:
        """A pair with the places of its power among the expressions and of its base among the bases.

        The first place is `_ROOT` of a root, and `_REWRITTEN` of what SymPy may rewrite in a product.
        """
        factor, power = pair
        entry = (pair, _ROOT if type(factor) is Root else _REWRITTEN, 0)
        if type(factor) is Symbol or type(factor) is Trig:
            expression = self.power(factor, power)
            if expression.is_Pow or expression.is_Symbol or expression.is_Function:
                base = expression.base if expression.is_Pow else expression
                entry = (pair, self._place(expression), self._bases.setdefault(base, len(self._bases)))
        self._places[id(pair)] = entry
        return entry

    def _place(self, expression: Any) -> int:
        """The place of an expression among those that products are made of, put there if it is new."""
        place = self._known.setdefault(expression, len(self._expressions))
        if place == len(self._expressions):
            self._expressions.append(expression)
        return place


def _rational(x: Fraction) -> Any:
    return sympy.Rational(x.numerator, x.denominator)


def _ranks(atoms: Iterable[Any]) -> dict[Any, int]:
    """Each different expression's place in SymPy's order."""
    different = list(dict.fromkeys(atoms))
    return {x: rank for rank, x in enumerate(sorted(different, key=cmp_to_key(sympy.Basic.compare)))}


def _ranks_of_classes(expressions: Iterable[Any]) -> dict[type, int]:
    """The order of classes, of which one representative each is compared."""
    examples: dict[type, Any] = {}
    for x in expressions:
        examples.setdefault(type(x), x)
    return {type(x): rank for x, rank in _ranks(examples.values()).items()}


@cache
def _ordered_as_expected() -> bool:
    """Whether this SymPy orders as here, tried on a sum with every kind of factor; else it orders itself."""
    x, y, q = Symbol("x"), Symbol("y"), Symbol("q")
    turns: list[Factor] = [Trig("cos", ((q, Fraction(1)),)), Trig("sin", ((q, Fraction(2)), (x, Fraction(1))))]
    numbers = [Fraction(n, d) for n in (1, -1, 3) for d in (1, 2, 3)]
    terms = [Term(Fraction(5)), Term(Fraction(1), ((Root(3), 1),)), Term(Fraction(1), ((y, 2),))]
    for k, number in enumerate(numbers):
        some = [(x, k % 3 - 1), (y, 2), (turns[k % 2], 1 + k // 4), (Root(2), k % 2)]
        terms.append(Term(number, tuple((f, n) for f, n in some if n)))
    expressions = _Expressions()
    sample = Sum(tuple(terms))
    return bool(expressions.long(sample) == sympy.Add(*(expressions.by_sympy(term) for term in sample)))


def _function(name: str, args: list[Any]) -> Any:
    one, zero = sympy.S.One, sympy.S.Zero
    function = {
        "neg": lambda x: -x,
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "pow": lambda x, y: x**y,
        "lt": lambda x, y: sympy.Piecewise((one, sympy.Lt(x, y)), (zero, True)),
        "le": lambda x, y: sympy.Piecewise((one, sympy.Le(x, y)), (zero, True)),
        "abs": sympy.Abs,
        "min": sympy.Min,
        "max": sympy.Max,
        "if": lambda c, x, y: sympy.Piecewise((x, sympy.Ne(c, 0)), (y, True)),
        "step": lambda x, x0, y0, x1, y1: _step(sympy.Min(sympy.Max((x - x0) / (x1 - x0), 0), 1), y0, y1),
    }.get(name)
    return function(*args) if function is not None else getattr(sympy, name)(*args)


def _step(s: Any, y0: Any, y1: Any) -> Any:
    return y0 + (y1 - y0) * s**2 * (3 - 2 * s)
