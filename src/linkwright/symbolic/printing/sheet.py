"""What a printer prints: the blocks of one set of equations, with the symbols, values and sentences around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from linkwright.base.locks import cached_property
from linkwright.symbolic.equation_quantities import MOTION, QUANTITIES, Quantity
from linkwright.symbolic.formulas.formula import Block, Sum, Symbol, place, raised
from linkwright.symbolic.formulas.formula import symbols as symbols_of


@dataclass(frozen=True)
class Sheet:
    """A set of equations to print.

    `parameters` gives a value to each parameter's name, or None where it has none; symbols of the blocks that are
    listed nowhere count as parameters without a value if that is their role, and else as variables. `meanings` may
    say of a symbol what it is.
    """

    title: str
    form: str
    blocks: tuple[Block, ...]
    coordinates: tuple[Symbol, ...]
    rates: tuple[Symbol, ...] = ()
    accelerations: tuple[Symbol, ...] = ()
    parameters: Mapping[str, float | None] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def heading(self, block: Block) -> str:
        """The heading of a block, in words."""
        row = QUANTITIES.get(block.name)
        words = row.heading if row else block.name.replace("_", " ")
        return words[:1].upper() + words[1:]

    @cached_property
    def motion(self) -> list[tuple[Block, Quantity]]:
        """The right side of F + d = M q̈ + h + friction + springs + g, of the blocks that are there; empty without M."""
        blocks = {block.name: block for block in self.blocks}
        if "M" not in blocks:
            return []
        left_out = {"C"} if "h" in blocks else set()
        rows = {name: QUANTITIES[name] for name in MOTION if name in blocks.keys() - left_out}
        if "friction" in rows and not any(s.role == "coordinate" for s in used(blocks["friction"]).values()):
            rows["friction"] = replace(rows["friction"], of=(1,))
        return [(blocks[name], row) for name, row in rows.items()]

    @property
    def vectors(self) -> dict[str, tuple[Symbol, ...]]:
        """The coordinates, rates and accelerations, by the names of the vectors in code."""
        return {"q": self.coordinates, "dq": self.rates, "ddq": self.accelerations}

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """Every symbol by its name: coordinates, rates, accelerations, parameters as listed, then the rest as met."""
        by_name = {s.name: s for s in (*self.coordinates, *self.rates, *self.accelerations)}
        for name in self.parameters:
            by_name.setdefault(name, Symbol(name))
        for block in self.blocks:
            for name, symbol in used(block).items():
                by_name.setdefault(name, symbol)
        return by_name

    @cached_property
    def values(self) -> dict[str, float | None]:
        """Every parameter's value, also of those that only the blocks name."""
        moving = {s.name for s in (*self.coordinates, *self.rates, *self.accelerations)}
        unlisted = {n: None for n, s in self.symbols.items() if s.role == "parameter" and n not in moving}
        return {**dict(self.parameters), **{n: v for n, v in unlisted.items() if n not in self.parameters}}

    @cached_property
    def terms(self) -> int:
        """How many terms the blocks have in all, each different entry once."""
        return sum(map(size, self.blocks))


def different(block: Block) -> tuple[list[Sum], list[int]]:
    """The different entries in order, and for each place which of them it holds.

    Long sums differ early or are one object, so that comparing them is cheaper than their hash.
    """
    distinct: list[Sum] = []
    by_length: dict[int, list[int]] = {}
    held = []
    for entry in block.entries:
        alike = by_length.setdefault(len(entry.terms), [])
        which = next((k for k in alike if distinct[k] is entry or distinct[k] == entry), None)
        if which is None:
            which = len(distinct)
            alike.append(which)
            distinct.append(entry)
        held.append(which)
    return distinct, held


def used(block: Block) -> dict[str, Symbol]:
    """The symbols of a block by name, in the order in which they are met."""
    met: dict[str, Symbol] = {}
    once = {id(factor): factor for entry in different(block)[0] for term in entry for factor, _ in term.factors}
    for factor in once.values():
        for name, symbol in symbols_of(raised(factor)).items():
            met.setdefault(name, symbol)
    return met


def size(block: Block) -> int:
    """The terms of a block's different entries."""
    return sum(map(terms, different(block)[0]))


def terms(formula: Sum) -> int:
    """The terms of a formula, those in its brackets included (a bracket of n terms counts n, not 1)."""
    total = 0
    for term in formula:
        inner = [terms(f) for f, _ in term.factors if isinstance(f, Sum)]
        total += sum(inner) if inner else 1
    return total


def places(block: Block) -> list[tuple[str, Sum]]:
    """The entries with their one-based place: "" (single), "2" (vector) or "12" ("1,12" beyond nine) by rows."""
    if not block.shape:
        return [("", block.entries[0])]
    if len(block.shape) == 1:
        return [(str(i + 1), entry) for i, entry in enumerate(block.entries)]
    columns, size = block.shape[1], max(block.shape)
    return [(place(divmod(k, columns), size), entry) for k, entry in enumerate(block.entries)]
