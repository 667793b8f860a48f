"""REPEAT, PART, USE, arrays and names with indices into plain statements, on the parsed tree.

After it, every name is a word (`link[3]`, `leg[2].piston`), every index of a repetition a number, and every entry of an
array the value that stands there. Nothing here knows what statements mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from linkwright.errors import FormatError
from linkwright.formats.mks.parser import Parsed
from linkwright.formats.mks.part_names import Resolution, names_in
from linkwright.formats.mks.rewriting import base_of
from linkwright.formats.mks.substitution import Bound, Context, Substitution, size_of
from linkwright.formats.mks.syntax import (
    Block,
    Enough,
    Fault,
    Listed,
    Node,
    Num,
    Problems,
    Statement,
    Use,
    Word,
    did_you_mean,
)
from linkwright.formats.mks.values import CONSTANTS

MAX_STATEMENTS = 30_000  # that repetitions make
MAX_ROUNDS = 30_000  # of all REPEATs
MAX_DEPTH = 40  # of REPEATs and parts one inside the other
MAX_PIECES = 3_000_000  # of the statements that they make


class Expanded(NamedTuple):
    """Plain statements, the PARAMETERs that say how many there are (names in small letters), and how many were made."""

    parsed: Parsed
    fixed: Mapping[str, float]
    made: int = 0


def expanded(parsed: Parsed, problems: Problems, values: Mapping[str, float]) -> Expanded:
    """The plain statements of a text; `values` are those of PARAMETERs from outside, by names in small letters."""
    if not parsed.repeats and not any(isinstance(s, Use) or _is_array(s) for s in parsed.statements):
        return Expanded(parsed, {})
    return _Expansion(parsed, problems, values).run()


def _is_array(s: Statement) -> bool:
    return s.head.text.lower() == "parameter" and isinstance(s.items[0].value, Listed)


class _Expansion(Substitution):
    """Makes the statements of one text."""

    def __init__(self, parsed: Parsed, problems: Problems, values: Mapping[str, float]) -> None:
        super().__init__(problems, values, set(parsed.broken))
        self._parsed = parsed
        self._parts: dict[str, Block] = {}
        self._local_names: dict[str, frozenset[str]] = {}
        self._statements: list[Statement] = []
        self._instances: dict[str, Use] = {}
        self._sizes: dict[int, int] = {}
        self._count = self._rounds = 0

    def run(self) -> Expanded:
        c = Context({})
        for s in self._parsed.statements:
            key = "" if s.name is None else s.name.text.lower()
            if isinstance(s, Block) and s.head.text.lower() == "part":
                self._define(s, key)
            elif s.head.text.lower() == "parameter":
                c = self._global(s, key, c)
        self.arrays = c.values
        for name in self.arrays.keys() & self.overridden.keys():
            text = f"{name!r} is an array, whose values are in the text; let them depend on another PARAMETER"
            raise FormatError(text, file=self.problems.file, element=name)
        self._make(self._parsed.statements, c)
        statements = Resolution(self._instances, self._statements, self.problems, self.broken).resolved()
        parsed = replace(self._parsed, statements=statements, broken=self.broken, repeats=False)
        return Expanded(parsed, self.numbers, self._count - len(self._instances))

    def _define(self, part: Block, key: str) -> None:
        if key in self._parts:
            assert part.name is not None
            line = self.problems.line_of(self._parts[key].start)
            text = f"there is a PART {part.name.text!r} already, in line {line}; choose another name"
            self.problems.add(part.name, text)
            return
        labels: set[str] = set()
        for x in (entry.label or entry.value for entry in part.items):
            if isinstance(x, Word) and x.text.lower() in labels:
                self.problems.add(x, f"{x.text!r} is there twice; remove one")
            elif isinstance(x, Word):
                labels.add(x.text.lower())
        self._parts[key] = part
        self._local_names[key] = frozenset(names_in(part.pieces))

    def _global(self, s: Statement, key: str, c: Context) -> Context:
        """A PARAMETER of the whole text: an array, or a number that indices may use."""
        array = s.items[0].value
        if not isinstance(array, Listed):
            self.parameters.setdefault(key, array)
            return c
        assert s.name is not None
        if key in c.values or key in self.parameters:
            self.problems.add(s.name, f"there is a parameter {s.name.text!r} already; choose another name")
            return c
        with_array = c
        try:
            with_array = c.with_value(key, Bound(None))
            with_array = c.with_value(key, self.value(array, c))
        except Fault as fault:
            self.problems.add_fault(fault)
        return with_array

    # -- blocks -------------------------------------------------------------------------------------------
    def _make(self, pieces: Sequence[Statement], c: Context) -> None:
        """The statements of a block, or of the whole text."""
        if c.depth > MAX_DEPTH:
            raise Fault(
                pieces[0].head if pieces else None, f"more than {MAX_DEPTH} parts and REPEATs one inside the other"
            )
        for s in pieces:
            if c.inner and s.head.text.lower() == "parameter":
                c = self._local(s, c)
        for s in pieces:
            head = s.head.text.lower()
            if head == "part" or (head == "parameter" and (c.inner or _is_array(s))):
                continue
            self.enter(c)
            try:
                if isinstance(s, Block):
                    self._repeat(s, c)
                elif isinstance(s, Use):
                    self._use(s, c)
                else:
                    self._counted(s, 1 if c.inner else 0)
                    self.pieces += self._size_of(s) if c.inner else 0
                    self._statements.append(self.statement(s, self._name(s), c.trail))
            except Fault as fault:
                self.enter(c)
                self.problems.add_fault(fault)
                self.broken.update(names_in([s]))

    def _counted(self, at: Statement, more: int) -> None:
        self._count += more
        if self._count > MAX_STATEMENTS or self.pieces > MAX_PIECES:
            text = f"this makes more than {MAX_STATEMENTS} statements; repeat less, or build the model in Python"
            if self.pieces > MAX_PIECES:
                text = "the repetitions make more than a model can have; repeat less, or simplify what is repeated"
            self.problems.add(at.name or at.head, text)
            raise Enough

    def _size_of(self, s: Statement) -> int:
        if id(s) not in self._sizes:
            self._sizes[id(s)] = sum(size_of(x, MAX_PIECES) for x in s.items)
        return self._sizes[id(s)]

    def _local(self, s: Statement, c: Context) -> Context:
        """A PARAMETER of a block: a value of the statements in it."""
        self.enter(c)
        assert s.name is not None
        key, bound = s.name.text.lower(), Bound(None)
        try:
            if s.index is not None or not s.name.text.isidentifier() or key in (*CONSTANTS, "time"):
                raise Fault(s.name, f"{s.name.text!r} cannot name a parameter; use a letter, then letters and digits")
            bound = self.value(s.items[0].value, c)
        except Fault as fault:
            self.problems.add_fault(fault)
        return c.with_value(key, bound)

    def _repeat(self, block: Block, c: Context) -> None:
        name = block.name
        if name is None:  # its head could not be read
            self.broken.update(names_in(block.pieces))
            return
        if name.text.lower() in (*CONSTANTS, "time"):
            raise Fault(name, f"{name.text!r} has a meaning of its own; choose another index")
        first, last = (self.whole(bound.value, "a REPEAT counts in whole numbers") for bound in block.items)
        if last < first - 1:
            there = block.items[1].value
            raise Fault(there, f"this counts from {first} to {last}; the first number is the smaller one")
        self._rounds += max(last - first + 1, 0)
        if self._rounds > MAX_ROUNDS:
            text = f"this repeats {last - first + 1} times; all REPEATs together repeat at most {MAX_ROUNDS} times"
            self.problems.add(block.items[1].value, text)
            raise Enough
        for k in range(first, last + 1):
            index = Bound(Num(name.start, name.end, float(k), None, True), 1, True)
            self._make(block.pieces, c.with_value(name.text, index).within(f"REPEAT {name.text} = {k}"))

    def _use(self, use: Use, c: Context) -> None:
        key, word = use.part.text.lower(), use.part
        part = self._parts.get(key)
        if part is None:
            if key in self.broken:
                raise Fault
            names = [x.name.text for x in self._parts.values() if x.name is not None]
            hint = did_you_mean(word.text, names) if names else "; a part is PART name (parameter = value) { ... }"
            raise Fault(word, f"there is no PART {word.text!r}{hint}")
        if key in c.parts:
            ring = " → ".join([*c.parts[c.parts.index(key) :], key])
            raise Fault(word, f"the part {word.text!r} uses itself: {ring}; a part cannot be inside itself")
        self._counted(use, 1)
        name = self._name(use)
        assert name is not None
        other = self._instances.get(name.text.lower())
        if other is not None:
            line = self.problems.line_of(other.start)
            raise Fault(name, f"there is a part {name.text!r} already, in line {line}; choose another name")
        self._instances[name.text.lower()] = use
        values = self._arguments(use, part, c)
        inside = Context(values, name.text, self._local_names[key], c.trail, (*c.parts, key), c.depth)
        self._make(part.pieces, inside.within(f"USE {word.text} AS {name.text}"))

    def _arguments(self, use: Use, part: Block, c: Context) -> dict[str, Bound]:
        """What the parameters of a part stand for in one use of it."""
        labels = [(x.label or x.value) for x in part.items]
        names = [x.text for x in labels if isinstance(x, Word)]
        values: dict[str, Bound] = {}
        for entry in use.items:
            if not isinstance(entry.label, Word):
                raise Fault(entry, f"write the values of a part with their names, as in {(names or ['length'])[0]} = 2")
            key = entry.label.text.lower()
            if key in values:
                raise Fault(entry.label, f"{entry.label.text!r} is there twice; remove one")
            if key not in [x.lower() for x in names]:
                hint = did_you_mean(key, names) or (f"; it has {', '.join(names)}" if names else "; it has none")
                raise Fault(entry.label, f"PART {use.part.text!r} has no parameter {entry.label.text!r}{hint}")
            values[key] = self.value(entry.value, c, True)
        whole = Context(self.arrays, trail=c.trail, depth=c.depth + 1)
        for entry in part.items:
            label = entry.label or entry.value
            if not isinstance(label, Word) or not label.text.isidentifier():
                raise Fault(label, "the parameters of a part are names, with a value or without: (base, length = 2)")
            key = label.text.lower()
            if key not in values:
                if entry.label is None:
                    raise Fault(use.name or use.part, f"USE {use.part.text} needs {label.text} = ...")
                values[key] = self.value(entry.value, whole, True)
            whole = whole.with_value(key, values[key])
        self.enter(c)
        return dict(whole.values)

    def _name(self, s: Statement) -> Word | None:
        name = s.name
        if name is None:
            return None
        at: Node = s.index or name
        text = name.text if s.index is None else self.text(s.index)
        if not name.quoted and base_of(name.text) in self.c.values:
            if s.head.text.lower() == "parameter":
                raise Fault(name, f"there is a parameter {base_of(name.text)!r} already; choose another name")
            raise Fault(name, f"{base_of(name.text)!r} is a PARAMETER or an index here; choose another name")
        if self.c.prefix:
            text = f"{self.c.prefix}.{text}"
        if not self.c.inner and s.index is None:
            return name
        return Word(at.start, at.end, text, name.quoted, self.c.trail)
