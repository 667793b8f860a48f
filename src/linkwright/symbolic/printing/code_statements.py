"""Blocks as statements of a program, with every operation counted as it is written; Python and C differ in spelling."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import ClassVar

from linkwright.base.arguments import counted
from linkwright.errors import LinkwrightError
from linkwright.symbolic.formulas.formula import Angle, Applied, Block, Factor, Root, Sum, Symbol, Term, Trig
from linkwright.symbolic.printing.formula_writer import content, to_float
from linkwright.symbolic.printing.printed_sheet import QUANTITIES, Sheet, different, places, used

#: A longer sum is written in several statements: compilers walk an expression by recursion.
PIECE = 80
#: Signs in a line of code.
WIDTH = 110
#: The signs of arithmetic, and what they count as.
_INFIX = {"add": ("+", "add"), "sub": ("-", "add"), "mul": ("*", "multiply"), "div": ("/", "divide")}


@dataclass(frozen=True)
class Operations:
    """Additions and subtractions (a change of sign is one), multiplications, divisions, calls of functions."""

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    functions: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(x + y for x, y in zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> int:
        """All of them together."""
        return self.additions + self.multiplications + self.divisions + self.functions

    def __str__(self) -> str:
        kinds = ("addition", "multiplication", "division", "function")
        parts = [counted(n, kind) for n, kind in zip(astuple(self), kinds, strict=True) if n]
        return ", ".join(parts) or "no operations"

    @property
    def sentence(self) -> str:
        """The count as a sentence."""
        return f"{self}.".capitalize()


class Language(ABC):
    """How a language spells numbers, functions and names; it notes which helpers are needed."""

    #: Words that no name of a formula may take inside a function.
    reserved: ClassVar[frozenset[str]]
    inline: ClassVar[Mapping[str, str]]  # functions that are expressions: templates
    names: ClassVar[Mapping[str, str]]  # functions that have another name
    helpers: ClassVar[Mapping[str, str]]  # functions that a file brings along, by their text

    def __init__(self) -> None:
        self._needed: set[str] = set()

    @abstractmethod
    def literal(self, x: float) -> str:
        """A number ≥ 0 that reads back as this one."""

    @abstractmethod
    def identifier(self, name: str, taken: Iterable[str]) -> str:
        """A name of a formula as an identifier that is none of `taken`."""

    def value(self, x: Fraction) -> float:
        """A number as the language holds it; OverflowError where it cannot."""
        return to_float(x)

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """A call of one of `linkwright.model.expression.FUNCTIONS`, or of "eq"."""
        if function in self.inline:
            return self.inline[function].format(*map(enclosed, arguments))
        if function in self.helpers:
            self._needed.add(function)
        return f"{self.names.get(function, function)}({', '.join(arguments)})"

    @property
    def brought(self) -> list[str]:
        """The texts of the helpers that were called."""
        return [self.helpers[name] for name in sorted(self._needed)]


@dataclass(frozen=True)
class Statement:
    """name = the terms, each with its sign or operator in front; a sum that goes on starts with its own name."""

    name: str
    terms: tuple[str, ...]
    again: bool = False


class Routine:
    """One block as a function: its arguments, its statements, and what to give back by rows.

    Cosines, functions, powers, and brackets that recur become variables of their own.
    """

    def __init__(self, sheet: Sheet, block: Block, language: Language) -> None:
        self.block, self.language = block, language
        here, values, groups = used(block), sheet.values, sheet.vectors
        # The usual blocks are functions of these, whether or not a mechanism's happen to depend on them.
        usual = QUANTITIES[block.name].of if block.name in QUANTITIES else (0,)
        #: Arguments that hold several symbols: q, dq, ddq.
        self.vectors = {
            name: symbols
            for dots, (name, symbols) in enumerate(groups.items())
            if symbols and (dots in usual or any(s.name in here for s in symbols))
        }
        listed = {s.name for symbols in groups.values() for s in symbols}
        #: The names of the parameters that it needs, and of arguments that stand alone, such as time.
        self.parameters = tuple(name for name in values if name in here and name not in listed)
        self.scalars = tuple(name for name in here if name not in listed and name not in values)
        self._taken = {*language.reserved, "p", *groups}
        moving = [s.name for symbols in self.vectors.values() for s in symbols]
        #: The identifier of every symbol that it needs.
        self.names = {name: self._new(name) for name in (*moving, *self.parameters, *self.scalars)}
        self._turns: list[Statement] = []
        self._powers: list[Statement] = []
        self._others: list[Statement] = []
        self._count: Counter[str] = Counter()
        self._known: dict[tuple[Factor, int], str] = {}
        # The same by identity: the hash of a cosine costs more than all else about a term.
        self._quick: dict[tuple[int, int], tuple[Factor, str]] = {}
        self._seen: set[int] = set()
        self._angles: dict[Angle, str] = {}
        self._paired: set[Angle] = set()
        self._brackets: Counter[Sum] = Counter()
        self._numbers: Counter[str] = Counter()
        self.results = self._entries()

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Cosines and sines first, then powers of them and of symbols, then the others."""
        return (*self._turns, *self._powers, *self._others)

    @property
    def operations(self) -> Operations:
        """How many operations the statements take."""
        return Operations(*(self._count[k] for k in ("add", "multiply", "divide", "function")))

    def _entries(self) -> list[str]:
        """Writes every different entry once; returns what stands at each place."""
        block = self.block
        distinct, held = different(block)
        trigs: set[Trig] = set()
        for entry in distinct:
            self._visit(entry, trigs)
        self._paired = {t.angle for t in trigs if Trig("sin" if t.function == "cos" else "cos", t.angle) in trigs}
        written: list[str] = []
        for (place, entry), which in zip(places(block), held, strict=True):
            if which < len(written):
                continue
            name = f"{block.name}{place.replace(',', '_')}"
            try:
                if not entry or (len(entry.terms) == 1 and not entry.terms[0].factors):
                    written.append(repr(self.language.value(entry.terms[0].number) if entry else 0.0))
                else:
                    written.append(self._assign(name, entry))
            except OverflowError:
                text = f"{name} has a number that is too large or too small for floating point"
                raise LinkwrightError(f"{text}; choose other units, or print the formulas as LaTeX") from None
        return [written[which] for which in held]

    def _visit(self, formula: Sum, trigs: set[Trig]) -> None:
        """Counts brackets and finds the cosines and sines."""
        for term in formula:
            for factor, _ in term.factors:
                if isinstance(factor, Symbol):
                    continue
                if isinstance(factor, Trig):
                    if id(factor) not in self._seen:
                        self._seen.add(id(factor))
                        trigs.add(factor)
                elif isinstance(factor, Sum):
                    self._brackets[factor] += 1
                    if self._brackets[factor] == 1:
                        self._visit(factor, trigs)
                elif isinstance(factor, Applied):
                    for argument in factor.arguments:
                        self._visit(argument, trigs)

    # -- statements ---------------------------------------------------------------------------------------------
    def _new(self, wanted: str) -> str:
        name = self.language.identifier(wanted, self._taken)
        self._taken.add(name)
        return name

    def _assign(self, wanted: str, formula: Sum) -> str:
        terms = self._terms(formula)
        name = self._new(wanted)
        for start in range(0, len(terms), PIECE):
            self._others.append(Statement(name, tuple(terms[start : start + PIECE]), again=start > 0))
        return name

    def _simple(self, wanted: str, text: str, where: list[Statement]) -> str:
        name = self._new(wanted)
        where.append(Statement(name, (text,)))
        return name

    def _next(self, stem: str) -> str:
        """tanh1, tanh2, ...: a name for what has none of its own."""
        self._numbers[stem] += 1
        return f"{stem}{self._numbers[stem]}"

    # -- sums and terms -----------------------------------------------------------------------------------------
    def _terms(self, formula: Sum) -> list[str]:
        """The terms, each with its operator in front but the first, which has at most a minus."""
        texts = []
        for k, term in enumerate(formula):
            written, literal = self._term(term)
            minus = term.number < 0
            if k:
                self._count["add"] += 1
                texts.append(f"- {written}" if minus else f"+ {written}")
            else:
                # A minus before a literal is part of it; before a variable it is an operation.
                self._count["add"] += minus and not literal
                texts.append(f"-{written}" if minus else written)
        return texts or [self.language.literal(0.0)]

    def _inline(self, formula: Sum) -> str:
        """A formula as one expression, which may need brackets around it."""
        if len(formula.terms) > PIECE:
            return self._assign(self._next("part"), formula)
        return " ".join(self._terms(formula))

    def _term(self, term: Term) -> tuple[str, bool]:
        """A term without its sign, and whether it starts with a literal."""
        size = abs(term.number)
        top = [self._factor(f, n) for f, n in term.factors if n > 0]
        bottom = [self._factor(f, -n) for f, n in term.factors if n < 0]
        literal = size != 1 or not top
        if literal:
            top.insert(0, self.language.literal(self.language.value(size)))
        self._count["multiply"] += len(top) - 1
        text = "*".join(top)
        if bottom:
            self._count["multiply"] += len(bottom) - 1
            self._count["divide"] += 1
            below = "*".join(bottom)
            text += f"/({below})" if len(bottom) > 1 else f"/{below}"
        return text, literal

    # -- factors ------------------------------------------------------------------------------------------------
    def _factor(self, factor: Factor, power: int) -> str:
        """A factor to a power > 0: a variable, or a bracket that stands here alone."""
        quick = self._quick.get((id(factor), power))
        if quick is not None:
            return quick[1]
        key = (factor, power)
        if key not in self._known and power > 1:
            base = self._variable(factor)
            half = self._factor(factor, power // 2)
            other = half if power % 2 == 0 else self._factor(factor, power - power // 2)
            self._count["multiply"] += 1
            where = self._powers if isinstance(factor, Symbol | Trig | Root) else self._others
            self._known[key] = self._simple(f"{base}_{power}", f"{half}*{other}", where)
        elif key not in self._known and isinstance(factor, Sum) and self._alone(factor):
            return f"({self._inline(factor)})"
        variable = self._known[key] if power > 1 else self._variable(factor)
        self._quick[id(factor), power] = (factor, variable)
        return variable

    def _alone(self, bracket: Sum) -> bool:
        """Whether a bracket stands in one place alone, and is short."""
        return self._brackets[bracket] < 2 and len(bracket.terms) <= PIECE

    def _variable(self, factor: Factor) -> str:
        """A factor as a variable that holds it."""
        if (factor, 1) not in self._known:
            self._known[factor, 1] = self._assigned(factor)
        return self._known[factor, 1]

    def _assigned(self, factor: Factor) -> str:
        if isinstance(factor, Symbol):
            return self.names[factor.name]
        if isinstance(factor, Trig):
            angle = self._angle(factor.angle)
            self._count["function"] += 1
            wanted = f"{factor.function}_{self._angle_name(factor.angle)}"
            return self._simple(wanted, self.language.call(factor.function, [angle]), self._turns)
        if isinstance(factor, Root):
            return self._simple(f"sqrt_{factor.of}", self.language.literal(math.sqrt(factor.of)), self._turns)
        if isinstance(factor, Sum):
            return self._assign(self._next("part"), factor)
        return self._simple(self._next(factor.function), self._applied(factor), self._others)

    def _applied(self, factor: Applied) -> str:
        if factor.function == "neg":
            return self._inline(Sum(tuple(Term(-t.number, t.factors) for t in factor.arguments[0])))
        arguments = [self._inline(a) for a in factor.arguments]
        if factor.function in _INFIX:
            sign, kind = _INFIX[factor.function]
            self._count[kind] += 1
            return f"{enclosed(arguments[0])}{sign}{enclosed(arguments[1])}"
        self._count["function"] += 1
        return self.language.call(factor.function, arguments)

    def _angle(self, angle: Angle) -> str:
        """An angle as an expression; as a variable where both its cosine and its sine are wanted."""
        known = self._angles.get(angle)
        if known is not None:
            return known
        common = content(angle)
        inner = Sum(tuple(Term(n / common, ((s, 1),)) for s, n in angle))
        text = " ".join(self._terms(inner))
        if common != 1:
            self._count["multiply"] += 1
            text = f"{self.language.literal(self.language.value(common))}*({text})"
        if angle in self._paired and text not in self.names.values():
            text = self._simple(f"angle_{self._angle_name(angle)}", text, self._turns)
        self._angles[angle] = text
        return text

    def _angle_name(self, angle: Angle) -> str:
        """2θ2 − θ3 as 2theta2_less_theta3; a long one by how many there are already."""
        parts = []
        for k, (symbol, n) in enumerate(angle):
            sign = "" if n > 0 else "less_" if k else "minus_"
            size = "" if abs(n) == 1 else str(abs(n)).replace("/", "over")
            parts.append(f"{sign}{size}{self.names[symbol.name]}")
        name = "_".join(parts)
        return name if len(name) <= 40 else f"sum{len(self._angles) + 1}"


def header(sheet: Sheet, functions: Mapping[str, Routine], mark: str, clean: Callable[[str], str]) -> list[str]:
    """The comment at the head of a file: its title, its notes, what each function costs, the symbols of vectors."""
    total = sum((r.operations for r in functions.values()), Operations())
    lines = [f"{clean(sheet.title)}: equations of motion, {clean(sheet.form)} form.", *map(clean, sheet.notes)]
    lines += ["", f"Cost: {total}.", *(f"  {name}: {r.operations}" for name, r in functions.items()), ""]
    lines = [f"{mark} {line}" if line else mark for line in lines]
    for vector, symbols in sheet.vectors.items():
        if symbols:
            names = [f"{clean(s.name)}," for s in symbols]
            lines += wrapped([*names[:-1], f"{names[-1][:-1]}."], f"{mark} {vector}: ", f"{mark}     ", WIDTH)
    return lines


def enclosed(text: str) -> str:
    """An expression in brackets, unless it is one word or number."""
    return text if re.fullmatch(r"\w[\w.]*", text) else f"({text})"


def wrapped(pieces: Sequence[str], first: str, following: str, width: int) -> list[str]:
    """Lines of pieces with blanks between, the first line after `first`, the others after `rest`."""
    lines = []
    line = first
    empty = True
    for piece in pieces:
        if not empty and len(line) + 1 + len(piece) > width:
            lines.append(line)
            line, empty = following, True
        line += piece if empty else f" {piece}"
        empty = False
    return [*lines, line]
