"""What a block costs: the operations of the code that is printed for it, counted as they are written."""

from __future__ import annotations

from dataclasses import astuple
from fractions import Fraction

from linkwright.symbolic.formulas.formula import Block
from linkwright.symbolic.printing.code import Operations, Routine
from linkwright.symbolic.printing.code_printers import Python
from linkwright.symbolic.printing.sheet import Sheet, size

#: The columns of `costs`.
COSTS = ("terms", "additions", "multiplications", "divisions", "functions")


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
    return Routine(Sheet("", "", (what,), ()), what, _Counted()).operations


class _Counted(Python):
    """Holds every number: what counts is that there is one."""

    def value(self, x: Fraction) -> float:
        return 2.0
