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
        self._numbers: dict[tuple[int, int, tuple[tuple[Root, int], ...]], tuple[Any, tuple[Any, ...]]] = {}

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
        plain: list[tuple[Any, list[Any]]] = []
        left = []
        for term in formula:
            simple = self._parts(term)
            if simple is None:
                left.append(self.by_sympy(term))
            else:
                plain.append(simple)
        ranks = _ranks({id(x): x for number, parts in plain for x in (number, *parts)}.values())
        one, mul = sympy.S.One, partial(sympy.Mul._from_args, is_commutative=True)
        constant: list[Any] = []
        products: dict[tuple[int, ...], tuple[tuple[int, ...], Any]] = {}
        for number, parts in plain:
            order = sorted((ranks[x], x) for x in parts) if len(parts) > 1 else [(ranks[x], x) for x in parts]
            key = tuple([rank for rank, _ in order])
            if key in products:  # like terms: SymPy collects them
                return sympy.Add(*(self.by_sympy(term) for term in formula))
            if not key:
                constant.append(number)
                products[key] = (key, None)
            elif number is one and len(order) == 1:
                products[key] = (key, order[0][1])
            elif number is one:
                products[key] = (key, mul([x for _, x in order]))
            else:
                products[key] = ((ranks[number], *key), mul([number, *(x for _, x in order)]))
        terms = [pair for pair in products.values() if pair[1] is not None]
        classes = _ranks_of_classes(x for _, x in terms)
        # `Basic.compare`: the class, how many arguments, the arguments one by one.
        terms.sort(key=lambda pair: (classes[type(pair[1])], len(pair[0]), pair[0]))
        total = [*constant, *(x for _, x in terms)]
        fast = sympy.Add._from_args(total, is_commutative=True) if len(total) > 1 else sympy.Add(*total)
        return sympy.Add(fast, *left) if left else fast

    def _parts(self, term: Term) -> tuple[Any, list[Any]] | None:
        """A term's number and its powers of different bases; None where SymPy may rewrite their product."""
        parts = []
        bases = set()
        roots = []
        for factor, power in term.factors:
            if type(factor) is Root:
                roots.append((factor, power))
                continue
            if type(factor) is not Symbol and type(factor) is not Trig:
                return None
            expression = self.power(factor, power)
            if not expression.is_Pow and not expression.is_Symbol and not expression.is_Function:
                return None
            bases.add(expression.base if expression.is_Pow else expression)
            parts.append(expression)
        if len(bases) != len(parts):
            return None
        key = (term.number.numerator, term.number.denominator, tuple(roots))
        split = self._numbers.get(key)
        if split is None:
            split = self._numbers[key] = self.by_sympy(Term(term.number, tuple(roots))).as_coeff_mul()
        number, surds = split
        return number, [*parts, *surds]


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
