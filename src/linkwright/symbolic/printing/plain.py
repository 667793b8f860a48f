"""Formulas as one line of plain text: 1/2*lg2^2*m2*cos(2*theta2) + l2*lg3*m3*cos(2*theta2 + theta3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from linkwright.symbolic.formulas.formula import Block, Factor, Sum, Symbol
from linkwright.symbolic.printing.sheet import places
from linkwright.symbolic.printing.walk import Writer, decimal


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
