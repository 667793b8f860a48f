"""What the targets share that draw formulas: letters, the layout of blocks, the equation of motion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from linkwright.symbolic.equation_quantities import Quantity
from linkwright.symbolic.formulas.formula import Block, Sum, Symbol
from linkwright.symbolic.printing.sheet import Sheet, different, places, terms
from linkwright.symbolic.printing.symbol_names import Split, entry_letter, letter, split
from linkwright.symbolic.printing.writer import Plain, Writer, decimal

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
