"""Two forms of a polynomial: expanded in the ring's cosines and sines, and collected in cosines of multiple angles.

One order for both, so that equal formulas are equal texts. Factors: number, roots, parameters (by name, numbers in
names counted as numbers: l2 before lg2 before m1), coordinates, rates, accelerations, cosines and sines. Terms: by
their rates and accelerations (none first; dq1^2, dq1*dq2, …); then by their angle (none first, then the fewest joints,
then the nearest to the base, then the smallest multiples; cosine before sine); then by their parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from math import prod
from typing import Any

from flint import Ordering, fmpq_mpoly_ctx

from linkwright.symbolic.formulas.formula import Factor, Sum, Symbol, Term, Trig, common_divisor, natural, rank
from linkwright.symbolic.formulas.ring import Pairs, Poly, Ring, terms

Key = tuple[Any, ...]
Powers = tuple[tuple[Factor, int], ...]
Wave = tuple[int, int]  # a cosine or sine by its number, and what e^{iφ} is multiplied by
_SHORT = 10**6  # numerators and denominators below it are numbers that a person reads


class Forms:
    """Makes the forms of one ring's polynomials."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        moving = 2 * ring.moving
        self._rest = moving  # variables from here on are the same in both contexts
        # e^{iφ} and e^{−iφ} in the places of sin φ and cos φ, and i at the end.
        count = len(ring.gens)
        self._context = fmpq_mpoly_ctx.get(tuple(f"x{k}" for k in range(count + 1)), Ordering.lex)
        y = self._context.gens()
        self._images = []
        for k in range(0, moving, 2):
            self._images += [(y[k + 1] - y[k]) * y[count] / 2, (y[k] + y[k + 1]) / 2]
        self._images += list(y[moving:count])
        self._relations = [(k, y[k] * y[k + 1] - 1) for k in range(0, moving, 2)]
        self._square = y[count] ** 2 + 1
        self._order = _order(ring)
        first = moving + 2 * (len(ring.angles) - ring.moving) + len(ring.roots) + len(ring.coordinates)
        self._moves = range(first, first + 2 * len(ring.coordinates))
        # Each part of a term is worked out once.
        self._product, self._moving, self._still = map(cache, (self._product_of, self._moving_of, self._still_of))
        self._wave = cache(self._wave_of)
        self._numbers: dict[Trig | None, int] = {}
        self._angles: list[tuple[Key, Powers]] = []  # of each cosine and sine met: its key, itself

    def expanded(self, p: Poly) -> Sum:
        """A flat sum of products."""
        keyed = []
        for powers, x in terms(p):
            trig, rates, other = self._parted(powers)
            angle_key, angle = self._product(trig)
            move_key, moves = self._moving(rates)
            key, factors = self._still(other)
            keyed.append((move_key, angle_key, key, Term(x, factors + moves + angle)))
        keyed.sort(key=lambda item: item[:3])
        return Sum(tuple([item[3] for item in keyed]))

    def collected(self, p: Poly) -> Sum:
        """Σ rates · Σ (parameters) · cos or sin of a sum of multiples of the coordinates."""
        groups: dict[Pairs, dict[int, list[tuple[Key, Term]]]] = {}
        for (number, times), rates, other, x in self._waves(p):
            key, factors = self._still(other)
            term = Term(x if times == 1 else _product(x, times), factors)
            groups.setdefault(rates, {}).setdefault(number, []).append((key, term))
        written: list[Term] = []
        for rates in sorted(groups, key=lambda pairs: self._moving(pairs)[0]):
            inner = []
            for number, coefficients in sorted(groups[rates].items(), key=lambda item: self._angles[item[0]][0]):
                coefficients.sort(key=lambda item: item[0])
                inner += _bracketed([t for _, t in coefficients], self._angles[number][1])
            written += _bracketed(inner, self._moving(rates)[1]) if rates else inner
        return Sum(tuple(written))

    def most(self, p: Poly) -> int:
        """At most how many terms the collected form has: a product of k cosines becomes up to 2^(k − 1)."""
        total = 0
        for powers, _ in terms(p):
            waves: dict[int, int] = {}
            for k, n in powers:
                if k >= self._rest:
                    break
                waves[k // 2] = waves.get(k // 2, 1) + n
            total += max(prod(waves.values()) // 2, 1)
        return total

    def _waves(self, p: Poly) -> Iterator[tuple[Wave, Pairs, Pairs, Fraction]]:
        """The terms of a polynomial with their cosine or sine: that, rates, the rest, number."""
        if not len(p):
            return
        z = p.compose(*self._images, ctx=self._context)
        for k, relation in self._relations:
            degrees = z.degrees()
            if degrees[k] and degrees[k + 1]:
                z = z % relation
        last = len(self._images)
        for powers, x in terms(z % self._square):
            imaginary = powers[-1:] == ((last, 1),)
            trig, rates, other = self._parted(powers[:-1] if imaginary else powers)
            wave = self._wave(trig, imaginary)
            if wave is not None:
                yield wave, rates, other, x

    # -- the parts of a term --------------------------------------------------------------------------
    def _parted(self, powers: Pairs) -> tuple[Pairs, Pairs, Pairs]:
        """Angles' variables, rates and accelerations, and the rest."""
        still, first, last = self._rest, self._moves.start, self._moves.stop
        trig = tuple([item for item in powers if item[0] < still])
        moves = tuple([item for item in powers if first <= item[0] < last])
        return trig, moves, tuple([item for item in powers if still <= item[0] < first or item[0] >= last])

    def _product_of(self, trig: Pairs) -> tuple[Key, Powers]:
        """The key and the factors of a product of cosines and sines."""
        in_order = sorted(trig, key=lambda item: (item[0] // 2, -item[0]))
        key = tuple((k // 2, 1 - k % 2, n) for k, n in in_order)
        return key, tuple((self.ring.factor(k), n) for k, n in in_order)

    def _wave_of(self, trig: Pairs, imaginary: bool) -> Wave | None:
        """The cosine or sine that a product of e^{iφ} belongs to; None for the half that is conjugate to another."""
        multiples: dict[Symbol, Fraction] = {}
        for k, n in trig:
            for symbol, m in self.ring.angles[k // 2]:
                multiples[symbol] = multiples.get(symbol, Fraction(0)) + (-n if k % 2 else n) * m
        parts = [(s, m) for s, m in multiples.items() if m]
        angle = tuple(sorted(parts, key=lambda item: natural(item[0].name)))
        if angle and angle[0][1] < 0:
            return None
        wave = Trig("sin" if imaginary else "cos", angle) if angle else None
        number = self._numbers.setdefault(wave, len(self._angles))
        if number == len(self._angles):
            self._angles.append((_angle_key(wave), ((wave, 1),) if wave else ()))
        return number, (-2 if imaginary else 2) if wave else 1

    def _moving_of(self, rates: Pairs) -> tuple[Key, Powers]:
        """The key and the factors of a product of rates."""
        numbers = tuple(k for k, n in rates for _ in range(n))
        return (len(numbers), numbers), self._factors(rates)

    def _still_of(self, other: Pairs) -> tuple[Key, Powers]:
        """The key and the factors of a product of parameters, roots and coordinates."""
        return tuple(sorted((self._order[k], -n) for k, n in other)), self._factors(other)

    def _factors(self, powers: Pairs) -> Powers:
        order, factor = self._order, self.ring.factor
        return tuple((factor(k), n) for k, n in sorted(powers, key=lambda item: order[item[0]]))


@lru_cache(2**14)
def _product(x: Fraction, times: int) -> Fraction:
    return x * times


def _order(ring: Ring) -> dict[int, int]:
    """The place of each variable among the factors of a term."""

    def key(k: int) -> Key:
        return *rank(ring.factor(k)), k

    return {k: place for place, k in enumerate(sorted(range(len(ring.gens)), key=key))}


def _angle_key(trig: Trig | None) -> Key:
    if trig is None:
        return ()
    names = tuple(natural(s.name) for s, _ in trig.angle)
    sizes = tuple((float(abs(m)), m < 0) for _, m in trig.angle)
    return len(names), names, sizes, trig.function == "sin"


def _bracketed(terms: list[Term], factors: Powers) -> list[Term]:
    """The terms times factors: a bracket with its common number in front, or one term."""
    if len(terms) == 1:
        return [Term(terms[0].number, terms[0].factors + factors)]
    if not factors:
        return terms
    number, shared = _content([t.number for t in terms]), _shared(terms)
    inner = tuple(terms)
    if number != 1 or shared:
        inner = tuple([Term(t.number / number, _without(t.factors, shared)) for t in terms])
    return [Term(number, (*shared.items(), (Sum(inner), 1), *factors))]


def _shared(terms: list[Term]) -> dict[Factor, int]:
    """The symbols that all terms have, with their powers."""
    shared: dict[Factor, int] = {f: n for f, n in terms[0].factors if isinstance(f, Symbol)}
    for term in terms[1:]:
        if not shared:
            break
        powers = dict(term.factors)
        shared = {f: min(n, powers[f]) for f, n in shared.items() if f in powers}
    return shared


def _without(powers: Powers, shared: dict[Factor, int]) -> Powers:
    if not shared:
        return powers
    left = ((f, n - shared.get(f, 0)) for f, n in powers)
    return tuple((f, n) for f, n in left if n)


def _content(numbers: list[Fraction]) -> Fraction:
    """The greatest common part of short numbers, with the sign of the first.

    That of long decimals is no number that a person knows, and may be too small for a float.
    """
    if any(abs(x.numerator) >= _SHORT or x.denominator >= _SHORT for x in numbers):
        return Fraction(1 if numbers[0] > 0 else -1)
    common = common_divisor(numbers)
    return common if numbers[0] > 0 else -common
