"""How the equations' quantities are named in formulas, and the equation of motion that they make up."""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.symbolic.formula import Block
from linkwright.symbolic.printing.names import Split, split
from linkwright.symbolic.printing.sheet import Sheet, used

_KNOWN = {
    # "f" alone would be taken for the size of Coulomb friction.
    "friction": Split("F", "fric"),
    "springs": Split("F", "spring"),
    "kinetic_energy": Split("T"),
    "potential_energy": Split("U"),
    "lagrangian": Split("L"),
    "regressor": Split("Y"),
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A named vector or matrix, what it depends on, and what it multiplies: 0, 1, 2 dots over q; None for nothing."""

    name: Split
    of: tuple[int, ...] = ()
    times: int | None = None


def letter(block: Block) -> Split:
    """A block's letter with its subscript."""
    return _KNOWN.get(block.name) or split(block.name)


def motion(sheet: Sheet) -> list[Quantity]:
    """The right side of F + d = M q̈ + h + friction + springs + g, of the blocks that are there; empty without M."""
    names = {block.name: block for block in sheet.blocks}
    if "M" not in names:
        return []
    parts = [Quantity(Split("M"), (0,), 2)]
    if "h" in names:
        parts.append(Quantity(Split("h"), (0, 1)))
    elif "C" in names:
        parts.append(Quantity(Split("C"), (0, 1), 1))
    if "V" in names:
        parts.append(Quantity(Split("V"), (), 1))
    if "friction" in names:
        placed = any(s.role == "coordinate" for s in used(names["friction"]).values())
        parts.append(Quantity(_KNOWN["friction"], (0, 1) if placed else (1,)))
    if "springs" in names:
        parts.append(Quantity(_KNOWN["springs"], (0,)))
    if "g" in names:
        parts.append(Quantity(Split("g"), (0,)))
    return parts
