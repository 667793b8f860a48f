"""How a block is laid out for readers: a matrix of short entries and names, and what the names stand for."""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.symbolic.formula import Block, Sum
from linkwright.symbolic.printing.plain import Plain
from linkwright.symbolic.printing.sheet import different, places, terms


@dataclass(frozen=True)
class Cell:
    """A place of the matrix: an entry that is short, or the place whose name stands for it."""

    entry: Sum | None
    place: str


@dataclass(frozen=True)
class Layout:
    """The cells by rows (none where a matrix would not help), and the entries to write out below, by place."""

    columns: int
    cells: tuple[Cell, ...]
    listed: tuple[tuple[str, Sum], ...]


def layout(block: Block, width: int = 60) -> Layout:
    """`width`: about how many signs of plain text fit beside each other in the matrix."""
    columns = block.shape[1] if len(block.shape) == 2 else 1
    found, held = different(block)
    every = places(block)
    first: dict[int, str] = {}
    for (place, _), which in zip(every, held, strict=True):
        first.setdefault(which, place)
    single = len(block.shape) != 2
    listed = [(p, e) for (p, e), which in zip(every, held, strict=True) if single or first[which] == p]
    if not block.shape or max(block.shape) > 12:
        # Without a matrix, zeros go without saying where there are many.
        return Layout(columns, (), tuple((p, e) for p, e in listed if e or single))
    writer = Plain()
    short = {k for k, e in enumerate(found) if terms(e) <= 1 and len(writer.sum(e)) <= width // columns}
    if single and len(short) < len(found):
        return Layout(columns, (), tuple(listed))
    cells = tuple(Cell(found[which] if which in short else None, first[which]) for which in held)
    rest = tuple((p, e) for (p, e), which in zip(every, held, strict=True) if first[which] == p and which not in short)
    return Layout(columns, cells, rest)
