"""The walk through a formula that plain text, LaTeX and MathML share: letters, the layout of blocks, plain text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import ClassVar

from linkwright.symbolic.formulas.formula import (
    Angle,
    Applied,
    Block,
    Factor,
    Root,
    Sum,
    Symbol,
    Term,
    Trig,
    common_divisor,
)
from linkwright.symbolic.printing.printed_sheet import (
    Quantity,
    Sheet,
    Split,
    different,
    entry_letter,
    letter,
    places,
    split,
    terms,
)


def content(angle: Angle) -> Fraction:
    """The largest number that divides every multiple of an angle of several parts: 2 for 2θ2 + 2θ3; 1 for one part."""
    return common_divisor([n for _, n in angle]) if len(angle) > 1 else Fraction(1)


def decimal(x: Fraction) -> str | None:
    """A number that reads better in decimals than as p/q, in decimals; None for a small fraction.

    Halves, thirds, quarters, ... to 1/24, and what has no decimals that end, stay fractions as long as they are short.
    Decimals are exact where they end within 17 digits; they may be beyond what floating point holds.
    """
    bottom, top = x.denominator, abs(x.numerator)
    if bottom == 1 and top < 10**12:
        return None
    usual = bottom <= 24 and _without(bottom, 2, 3) == 1
    if bottom < 1000 and top < 1000 and (usual or _without(bottom, 2, 5) != 1):
        return None
    try:
        return repr(to_float(x))
    except OverflowError:
        wide = Context(prec=17, Emax=MAX_EMAX, Emin=MIN_EMIN)
        return str(wide.divide(Decimal(x.numerator), Decimal(x.denominator))).lower()


def _without(n: int, *primes: int) -> int:
    """What is left of a whole number when these primes are divided out."""
    for prime in primes:
        while n % prime == 0:
            n //= prime
    return n


def to_float(x: Fraction) -> float:
    """The nearest float; OverflowError where the number is too large for one, or so small that it would be zero."""
    nearest = x.numerator / x.denominator
    if x and not nearest:
        raise OverflowError("a number is smaller than every float")
    return nearest


class Writer(ABC):
    """Writes formulas; a target says how. What a factor is written as is remembered, since factors recur.

    The pairs of signs are of terms that are added and subtracted, in this order.
    """

    #: Whether functions stand last in a product, so that cos θ m cannot be taken for cos(θ m).
    functions_last = False
    leading = ("", "-")  # before the first term of a sum
    between = (" + ", " - ")  # before the others
    at_break = ("+ ", "- ")  # before a term where a line may break
    brackets = ("(", ")")
    broken_brackets = ("(", ")")  # around a sum that is broken into lines

    def __init__(self) -> None:
        # By identity, and with the factor, so that it lives as long: a cosine's hash costs more than its text.
        self._factors: dict[tuple[int, int], tuple[Factor, str]] = {}

    # -- what a target says -------------------------------------------------------------------------------------
    @abstractmethod
    def symbol(self, symbol: Symbol) -> str:
        """A symbol."""

    @abstractmethod
    def number(self, x: Fraction) -> str:
        """A number ≥ 0."""

    @abstractmethod
    def power(self, base: str, exponent: int, factor: Factor) -> str:
        """A written factor to a power > 1."""

    @abstractmethod
    def function(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        """A function of written arguments; `bare` where the only one is a symbol, or a multiple of an angle."""

    @abstractmethod
    def product(self, parts: Sequence[str]) -> str:
        """Written factors multiplied."""

    @abstractmethod
    def quotient(self, top: Sequence[str], bottom: Sequence[str]) -> str:
        """The product of `top` by that of `bottom`."""

    def term(self, number: Fraction, top: Sequence[str], bottom: Sequence[str]) -> str:
        """number ≥ 0 times the product of `top` by that of `bottom`."""
        parts = [*([] if number == 1 and top else [self.number(number)]), *top]
        return self.quotient(parts, bottom) if bottom else self.product(parts)

    def bracket(self, inside: str) -> str:
        """Something in brackets."""
        return inside.join(self.brackets)

    def joined(self, terms: Sequence[tuple[bool, str]]) -> str:
        """Terms with their signs (True: minus) in one line."""
        return "".join((self.between if k else self.leading)[minus] + term for k, (minus, term) in enumerate(terms))

    # -- the walk -----------------------------------------------------------------------------------------------
    def sum(self, formula: Sum) -> str:
        """A sum in one line."""
        if not formula:
            return self.number(Fraction(0))
        return self.joined([(term.number < 0, self._term(term)) for term in formula])

    def _term(self, term: Term) -> str:
        factors = self._order(term)
        top = [self.factor(factor, power) for factor, power in factors if power > 0]
        bottom = [self.factor(factor, -power) for factor, power in factors if power < 0]
        return self.term(abs(term.number), top, bottom)

    def _order(self, term: Term) -> Sequence[tuple[Factor, int]]:
        if not self.functions_last:
            return term.factors
        return sorted(term.factors, key=_rank)

    def pieces(self, formula: Sum, longest: int = 3) -> list[str]:
        """A sum in pieces between which a line may break: its terms, and those of brackets with more than `longest`."""
        pieces = []
        opening, closing = self.broken_brackets
        for k, term in enumerate(formula):
            sign = (self.at_break if k else self.leading)[term.number < 0]
            long = [n == 1 and isinstance(f, Sum) and len(f.terms) > longest for f, n in term.factors]
            if not any(long) or any(n < 0 for _, n in term.factors):
                pieces.append(sign + self._term(term))
                continue
            number = abs(term.number)
            parts: list[str] = []
            for factor, power in self._order(term):
                if power == 1 and isinstance(factor, Sum) and len(factor.terms) > longest:
                    first, *middle, last = self.pieces(factor, longest)
                    pieces += [sign + self.term(number, [*parts, opening + first], []), *middle]
                    number, sign, parts = Fraction(1), "", [last + closing]
                else:
                    parts.append(self.factor(factor, power))
            pieces.append(self.product(parts))
        return pieces or [self.number(Fraction(0))]

    def factor(self, factor: Factor, power: int = 1) -> str:
        """A factor to a power > 0, so that it can stand in a product."""
        known = self._factors.get((id(factor), power))
        if known is not None:
            return known[1]
        base = self.base(factor)
        text = base if power == 1 else self.power(base, power, factor)
        self._factors[id(factor), power] = (factor, text)
        return text

    def base(self, factor: Factor) -> str:
        if isinstance(factor, Symbol):
            return self.symbol(factor)
        if isinstance(factor, Trig):
            bare = len(factor.angle) == 1 and factor.angle[0][1] > 0
            return self.function(factor.function, [self.angle(factor.angle)], bare)
        if isinstance(factor, Root):
            return self.function("sqrt", [self.number(Fraction(factor.of))], True)
        if isinstance(factor, Applied):
            return self.applied(factor)
        return self.bracket(self.sum(factor))

    def angle(self, angle: Angle) -> str:
        """Σ multiple · angle, a common multiple in front: 2(θ2 + θ3)."""
        common = content(angle)
        if not angle:
            return self.number(Fraction(0))
        inner = self.joined([(n < 0, self.term(abs(n / common), [self.symbol(s)], [])) for s, n in angle])
        return inner if common == 1 else self.term(common, [self.bracket(inner)], [])

    def applied(self, factor: Applied) -> str:
        name, args = factor.function, factor.arguments
        texts = [self.sum(a) for a in args]
        if name in ("neg", "add", "sub"):
            signs = {"neg": (True,), "add": (False, False), "sub": (False, True)}[name]
            inner = [self._enclosed(a, t) if minus else t for a, t, minus in zip(args, texts, signs, strict=True)]
            return self.bracket(self.joined(list(zip(signs, inner, strict=True))))
        if name == "mul":
            return self.bracket(self.product([self._enclosed(a, t) for a, t in zip(args, texts, strict=True)]))
        if name == "div":
            return self.bracket(self.quotient(*([self._enclosed(a, t)] for a, t in zip(args, texts, strict=True))))
        return self.function(name, texts, len(args) == 1 and _is_symbol(args[0]))

    def _enclosed(self, formula: Sum, written: str) -> str:
        return written if not formula or _is_symbol(formula) else self.bracket(written)


def _rank(pair: tuple[Factor, int]) -> int:
    """Symbols, then brackets, then functions."""
    return 2 if isinstance(pair[0], Trig | Applied) else 1 if isinstance(pair[0], Sum) else 0


def _is_symbol(formula: Sum) -> bool:
    if len(formula.terms) != 1:
        return False
    term = formula.terms[0]
    return term.number == 1 and [(type(f), n) for f, n in term.factors] == [(Symbol, 1)]


class Plain(Writer):
    """Symbols by their names, `*`, `/`, `^`; numbers as p/q or in decimals."""

    def symbol(self, symbol: Symbol) -> str:
        return symbol.name

    def number(self, x: Fraction) -> str:
        return decimal(x) or str(x)

    def power(self, base: str, exponent: int, factor: Factor) -> str:
        return f"{base}^{exponent}"

    def function(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        return f"{name}({', '.join(arguments)})"

    def product(self, parts: Sequence[str]) -> str:
        return "*".join(parts)

    def quotient(self, top: Sequence[str], bottom: Sequence[str]) -> str:
        below = "*".join(bottom)
        return f"{'*'.join(top)}/{f'({below})' if len(bottom) > 1 else below}"


def text(formula: Sum) -> str:
    """A formula as one readable line, the same each time: terms and factors in the order in which they stand."""
    return Plain().sum(formula)


def block_text(block: Block) -> str:
    """A line for each entry, M11 = ...; of a symmetric matrix those on and above the diagonal."""
    writer, columns = Plain(), block.shape[-1] if block.shape else 1
    return "\n".join(
        f"{block.name}{place} = {writer.sum(entry)}"
        for k, (place, entry) in enumerate(places(block))
        if not block.symmetric or k // columns <= k % columns
    )


#: The largest matrix that is drawn, and about how many signs of plain text fit beside each other in it.
_LARGEST, _WIDTH = 12, 60
#: Entries with their places; None is an entry whose name stands for it.
Cells = list[tuple[str, Sum | None]]
Entries = list[tuple[str, Sum]]


class Drawing(Writer):
    """Formulas as a mathematician draws them. The signs are the target's, and the templates have a `{}` an argument."""

    functions_last = True
    equals: str
    plus: str
    comma: str
    gap: str  # between a matrix and the vector that it multiplies
    group: str  # template of a product within the equation of motion
    fraction: str  # template of a fraction of numbers
    templates: ClassVar[Mapping[str, str]]  # functions that are written in a way of their own

    # -- what a target says -------------------------------------------------------------------------------------
    @abstractmethod
    def named(self, name: Split, dots: int = 0, *, bold: bool = False) -> str:
        """A letter or word with its subscript, dots above the letter; bold for vectors and matrices."""

    @abstractmethod
    def decimals(self, text: str) -> str:
        """A number that is written in decimals, with its exponent as a power of ten."""

    @abstractmethod
    def call(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        """A function by its name; see `function`."""

    @abstractmethod
    def matrix(self, cells: Sequence[str], columns: int) -> str:
        """A matrix in square brackets, of cells by rows."""

    # -- pieces of formulas -------------------------------------------------------------------------------------
    def symbol(self, symbol: Symbol) -> str:
        dots = {"rate": 1, "acceleration": 2}.get(symbol.role, 0) if symbol.of else 0
        return self.named(split(symbol.of if dots else symbol.name), dots)

    def number(self, x: Fraction) -> str:
        written = decimal(x)
        if written is None and x.denominator != 1:
            return self.fraction.format(x.numerator, x.denominator)
        return self.decimals(written or str(x))

    def function(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        if name in self.templates:
            return self.templates[name].format(*arguments)
        return self.call(name, arguments, bare)

    def term(self, number: Fraction, top: Sequence[str], bottom: Sequence[str]) -> str:
        if bottom or not top or number == 1 or "." in (decimal(number) or ""):
            return super().term(number, top, bottom)
        return self.number(number) + self.product(top)

    # -- blocks -------------------------------------------------------------------------------------------------
    def block_name(self, block: Block) -> str:
        """The letter of a block: bold of a matrix or vector."""
        return self.named(letter(block), bold=bool(block.shape))

    def entry_name(self, block: Block, place: str) -> str:
        """The name of one entry of a block."""
        return self.named(entry_letter(block, place)) if block.shape else self.block_name(block)

    def whole(self, block: Block, cells: Sequence[str]) -> str:
        """A block = the matrix of these cells."""
        return f"{self.block_name(block)}{self.equals}{self.matrix(cells, block.columns)}"

    def parts(self, block: Block) -> tuple[str, Entries]:
        """A block as a matrix of its short entries and of names ("" where none helps), and the entries below it."""
        cells, listed = _layout(block)
        written = [self.entry_name(block, place) if entry is None else self.sum(entry) for place, entry in cells]
        return self.whole(block, written) if cells else "", listed

    # -- the equation of motion ---------------------------------------------------------------------------------
    def equation(self, sheet: Sheet) -> str:
        """F + d = M q̈ + h + ..., of the blocks that are there; nothing without M."""
        if not sheet.motion:
            return ""
        left = self.plus.join(self.named(Split(x), bold=True) for x in "Fd")
        return f"{left}{self.equals}{self.plus.join(self._part(*part) for part in sheet.motion)}"

    def _part(self, block: Block, row: Quantity) -> str:
        of = self.bracket(self.comma.join(self.vector(dots) for dots in row.of))
        times = "" if row.times is None else self.gap + self.vector(row.times)
        return self.group.format(f"{self.block_name(block)}{of}{times}")

    def vector(self, dots: int = 0) -> str:
        """q, q̇ or q̈."""
        return self.named(Split("q"), dots, bold=True)


def _layout(block: Block) -> tuple[Cells, Entries]:
    """The cells of a matrix by rows (none where a matrix would not help), and the entries to write out below it."""
    entries, held = different(block)
    every = places(block)
    first: dict[int, str] = {}
    for (place, _), which in zip(every, held, strict=True):
        first.setdefault(which, place)
    once = [(first[which], entry, which) for which, entry in enumerate(entries)]
    vector = len(block.shape) != 2
    listed = every if vector else [(place, entry) for place, entry, _ in once]
    if not block.shape or max(block.shape) > _LARGEST:
        # Without a matrix, zeros go without saying where there are many.
        return [], [(place, entry) for place, entry in listed if entry or vector]
    writer, width = Plain(), _WIDTH // block.columns
    short = {which for _, entry, which in once if terms(entry) <= 1 and len(writer.sum(entry)) <= width}
    if vector and len(short) < len(entries):
        return [], listed
    cells: Cells = [(first[which], entries[which] if which in short else None) for which in held]
    return cells, [(place, entry) for place, entry, which in once if which not in short]
