"""How a block is laid out for readers: a matrix of short entries and names, and what the names stand for."""

from __future__ import annotations

from linkwright.symbolic.formula import Block, Sum
from linkwright.symbolic.printing.plain import Plain
from linkwright.symbolic.printing.sheet import different, places, terms

#: The largest matrix that is drawn, and about how many signs of plain text fit beside each other in it.
_LARGEST, _WIDTH = 12, 60
#: Entries with their places; None is an entry whose name stands for it.
Cells = list[tuple[str, Sum | None]]
Entries = list[tuple[str, Sum]]


def layout(block: Block) -> tuple[Cells, Entries]:
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
