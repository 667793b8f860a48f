"""What a block costs: the operations of the code that is printed for it, counted as they are written."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from fractions import Fraction

from linkwright.symbolic.formula import Block
from linkwright.symbolic.printing.sheet import Sheet, size

#: The columns of `costs`.
COSTS = ("terms", "additions", "multiplications", "divisions", "functions")


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
        told = f"{self}."
        return told[0].upper() + told[1:]


def counted(number: int, thing: str) -> str:
    """A number and its thing, in the plural where there are several."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def costs(sheet: Sheet) -> tuple[list[tuple[Block, tuple[int, ...]]], tuple[int, ...]]:
    """Of each block its terms, additions, multiplications, divisions and functions; and of all blocks together."""
    each = [(block, (size(block), *astuple(operations(block)))) for block in sheet.blocks]
    together = tuple(map(sum, zip(*(numbers for _, numbers in each), strict=True)))
    return each, together or (0,) * len(COSTS)


def operations(what: Sheet | Block) -> Operations:
    """The operations of the printed code of a block, or of all blocks of a sheet together.

    A cosine, a sine, a power and a bracket that recur within a block are computed once; x² is one multiplication.
    """
    if isinstance(what, Sheet):
        return sum((operations(block) for block in what.blocks), Operations())
    from linkwright.symbolic.printing.code import routine
    from linkwright.symbolic.printing.python import Python

    class Any(Python):
        """Holds every number: what counts is that there is one."""

        def value(self, x: Fraction) -> float:
            return 2.0

    return routine(Sheet("", "", (what,), ()), what, Any()).operations
