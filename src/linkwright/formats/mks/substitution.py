"""What names stand for where statements are repeated: values, entries of arrays, and names with their indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from linkwright.formats.mks.rewriting import INDEXED, Rewriter
from linkwright.formats.mks.syntax import (
    MAX_INDEX,
    Applied,
    Dotted,
    Fault,
    Indexed,
    Listed,
    Node,
    Num,
    Path,
    Problems,
    Vector,
    Word,
    did_you_mean,
)
from linkwright.formats.mks.values import CALLS, computed
from linkwright.model.expression import FUNCTIONS

MAX_VALUE = 100_000  # pieces of one value
MAX_CHAIN = 250  # of PARAMETERs and operations in an index


class Bound(NamedTuple):
    """What a name stands for: a value, how many pieces it has, and whether it is the index of a REPEAT."""

    node: Node | None  # None: it could not be read
    size: int = 1
    is_index: bool = False


@dataclass(frozen=True)
class Context:
    """Where statements are made: what names stand for, the part that names are of, and the repetitions around."""

    values: Mapping[str, Bound]
    prefix: str = ""
    names: frozenset[str] = frozenset()
    trail: str = ""
    parts: tuple[str, ...] = ()
    depth: int = 0  # of REPEATs and parts one inside the other

    @property
    def inner(self) -> bool:
        """Whether statements are made again and again here."""
        return self.depth > 0

    def with_value(self, name: str, bound: Bound) -> Context:
        return replace(self, values={**self.values, name.lower(): bound})

    def within(self, trail: str) -> Context:
        return replace(self, depth=self.depth + 1, trail=f"{self.trail}, {trail}" if self.trail else trail)


class Substitution(Rewriter):
    """Puts in what the names of the present context stand for.

    `parameters` are the plain PARAMETERs of the text by their names in small letters, `overridden` the numbers that
    some have from outside, `numbers` those that indices have used, and `pieces` counts what was put in.
    """

    def __init__(self, problems: Problems, overridden: Mapping[str, float], broken: set[str]) -> None:
        super().__init__()
        self.problems, self.overridden, self.broken = problems, overridden, broken
        self.arrays: Mapping[str, Bound] = {}
        self.parameters: dict[str, Node] = {}
        self.numbers: dict[str, float] = {}
        self.pieces = 0
        self.c = Context({})
        self._keys: frozenset[str] = frozenset()
        self._chain = 0

    def enter(self, c: Context) -> None:
        self.c, self._keys = c, c.names | c.values.keys()
        self.problems.trail = c.trail

    def value(self, node: Node, c: Context, named: bool = False) -> Bound:
        """A piece with everything put in."""
        self.enter(c)
        piece = self.put(node, named)
        size = size_of(piece, MAX_VALUE)
        if size > MAX_VALUE:
            raise Fault(node, "this becomes too large when the values are put in; simplify it")
        self.pieces += size
        if isinstance(piece, Num) and not piece.wrapped:
            piece = replace(piece, wrapped=True)  # a power after the name is one of the whole
        return Bound(piece, size)

    # -- names and values ---------------------------------------------------------------------------------
    def touches(self, words: frozenset[str]) -> bool:
        return INDEXED in words or not words.isdisjoint(self._keys)

    def text(self, node: Indexed | Word) -> str:
        """A name with the numbers of its indices."""
        if isinstance(node, Word):
            return node.text
        numbers = [self.whole(x, "an index is a whole number") for x in node.indices]
        return f"{node.base.text}[{','.join(map(str, numbers))}]"

    def word(self, node: Word, named: bool) -> Node:
        key, c = node.text.lower(), self.c
        base, _, indices = key.partition("[")
        bound = None if node.quoted else c.values.get(key)
        if bound is not None:
            self.pieces += bound.size
            if bound.node is None:
                raise Fault
            if bound.is_index and isinstance(bound.node, Num):
                return Num(node.start, node.end, bound.node.value, None, True)
            return bound.node if key not in self.arrays else _moved(bound.node, node)
        if indices and not node.quoted and base in c.values:
            return self._entry(node, node.text, c.values[base], [int(x) for x in indices[:-1].split(",")])
        if named and (key if node.quoted else base) in c.names:
            return Word(node.start, node.end, f"{c.prefix}.{node.text}", node.quoted, c.trail)
        return node

    def indexed(self, node: Indexed, named: bool) -> Node:
        base = node.base.text.lower()
        bound = self.c.values.get(base)
        text = self.text(node)
        if bound is not None:
            return self._entry(node, text, bound, [int(x) for x in text.partition("[")[2][:-1].split(",")])
        if named and base in self.c.names:
            text = f"{self.c.prefix}.{text}"
        return Word(node.start, node.end, text, False, self.c.trail)

    def _entry(self, at: Node, text: str, bound: Bound, indices: list[int]) -> Node:
        """An entry of an array or of a vector in it; of a name that stands for another, that name with the index."""
        piece = bound.node
        if piece is None:
            raise Fault
        name = text.partition("[")[0]
        if isinstance(piece, Word):
            return Word(at.start, at.end, f"{piece.text}[{text.partition('[')[2]}", False, self.c.trail)
        for k in indices:
            if not isinstance(piece, Listed | Vector):
                raise Fault(at, f"{name!r} is no array, so that it has no entry {text!r}")
            entries: Sequence[Node | float] = piece.entries or getattr(piece, "values", ())
            if not 1 <= k <= len(entries):
                raise Fault(at, f"there is no {text}: {name} has {len(entries)} entries, counted from 1")
            entry = entries[k - 1]
            piece = entry if isinstance(entry, Node) else Num(piece.start, piece.end, entry, None, True)
            name = f"{name}[{k}]"
        self.pieces += bound.size
        return _moved(piece, at)

    def dotted(self, node: Dotted | Path) -> Node:
        first, *others = (node.name, node.part) if isinstance(node, Dotted) else node.words
        start = self.put(first, True)
        if isinstance(start, Dotted | Path):
            words = [start.name, start.part] if isinstance(start, Dotted) else list(start.words)
        elif isinstance(start, Word):
            words = [start]
        else:
            raise Fault(first, f"{self.text(first)!r} is no name here, but a value")
        for x in others:
            words.append(x if isinstance(x, Word) else Word(x.start, x.end, self.text(x)))
        if len(words) == 2 and isinstance(words[0], Word) and isinstance(words[1], Word) and "[" not in words[1].text:
            return Dotted(node.start, node.end, words[0], words[1])
        return Path(node.start, node.end, tuple(words))

    # -- whole numbers ------------------------------------------------------------------------------------
    def whole(self, node: Node, what: str) -> int:
        """The whole number that a piece is."""
        self._chain = 0
        number = self._number(self.put(node), what)
        if not abs(number) < MAX_INDEX:
            raise Fault(node, f"{what}, and this is too large")
        if number != round(number):
            raise Fault(node, f"{what}, and this is {number:.10g}")
        return round(number)

    def _number(self, node: Node, what: str) -> float:
        self._chain += 1
        if self._chain > MAX_CHAIN:
            raise Fault(node, f"{what}, and this takes more than {MAX_CHAIN} operations to compute")
        if isinstance(node, Num) and node.unit is None:
            return node.value
        if isinstance(node, Num):
            raise Fault(node, f"{what}, without a unit")
        if isinstance(node, Word):
            return self._parameter(node, what)
        function = node.function.text.lower() if isinstance(node, Applied) else ""
        function = CALLS.get(function, function)
        if isinstance(node, Applied) and function in FUNCTIONS:
            numbers = [self._number(x, what) for x in node.arguments]
            while function in ("min", "max") and len(numbers) > 2:
                numbers = [FUNCTIONS[function][1](*numbers[:2]), *numbers[2:]]
            number = computed(FUNCTIONS[function][1], *numbers) if len(numbers) == FUNCTIONS[function][0] else None
            if number is not None:
                return number
        raise Fault(node, f"{what}: give one, or arithmetic of indices and PARAMETERs")

    def _parameter(self, word: Word, what: str) -> float:
        """The number of a PARAMETER of the text, which is fixed by being an index."""
        key = word.text.lower()
        if key in self.numbers:
            return self.numbers[key]
        node = self.parameters.get(key)
        if node is None or word.quoted:
            if key in self.broken:
                raise Fault
            known = [*self.parameters, *(name for name, bound in self.c.values.items() if bound.is_index)]
            raise Fault(word, f"{what}, and there is no index or PARAMETER {word.text!r}{did_you_mean(key, known)}")
        if key in self.overridden:
            self.numbers[key] = self.overridden[key]
        else:
            here = self.c
            self.enter(Context(self.arrays, trail=here.trail))
            self.numbers[key] = self._number(self.put(node), what)
            self.enter(here)
        return self.numbers[key]


def _moved(node: Node, at: Node) -> Node:
    """An entry of an array where it is used, which is where messages show it."""
    if isinstance(node, Num):
        return replace(node, start=at.start, end=at.end, wrapped=True)
    return replace(node, start=at.start, end=at.end) if isinstance(node, Applied | Vector | Listed) else node


def size_of(node: Node, most: int) -> int:
    """How many pieces a value has; counting ends soon after the most."""
    count, left = 0, [node]
    while left and count <= most:
        part = left.pop()
        count += 1 + len(getattr(part, "values", ()))
        for name in ("arguments", "entries", "items"):
            left.extend(getattr(part, name, ()))
        if hasattr(part, "label"):
            left.append(part.value)  # type: ignore[attr-defined]
    return count
