"""Statements that run a block for each item of a table, and the parts of buffers that an item reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwright.tape.block import Block
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Each, Order


def row(table: Ref, column: int = ITEM, width: int | None = None, *, add: bool = False) -> Ref:
    """The row of a table (n, width) with the number that a column gives, by default the item's own."""
    width = table.shape[1] if width is None else width
    return table.part(0, (width,)).at((width, column), add=add)


def entry(numbers: Ref, column: int = ITEM, shape: tuple[int, ...] = (1,), *, add: bool = False) -> Ref:
    """The numbers of this shape that begin where a column says, by default with the item's own number."""
    return numbers.part(0, shape).at((1, column), add=add)


def each(
    builder: ProgramBuilder,
    count: int,
    block: Block | Callable[..., Any],
    inputs: Sequence[Ref],
    outputs: Sequence[Ref],
    order: Order = "map",
) -> None:
    """Add a statement that runs a block, or a function of arrays, for each of `count` items."""
    if not isinstance(block, Block):
        block = trace(block, [ref.shape for ref in inputs])[0]
    builder.add(Each(count, (builder.case(block, inputs, outputs),), order))
