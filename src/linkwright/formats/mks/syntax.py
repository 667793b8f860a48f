"""The pieces of a `.mks` text with their places, and how the parser makes them. Nothing here knows what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, Transformer

from linkwright.formats.mks.problems import Fault

MAX_NAME = 200  # letters
MAX_WORDS = 12  # in a row
MAX_DEPTH = 250  # of operations inside operations: the terms of a sum count, each holds the ones before it


@dataclass(slots=True)
class Node:
    """A piece of text from `start` to before `end`."""

    start: int
    end: int


@dataclass(slots=True)
class Num(Node):
    """A number, perhaps with a unit."""

    value: float
    unit: Word | None = None
    wrapped: bool = False  # in parentheses: a sign before it is an operation


@dataclass(slots=True)
class Word(Node):
    """A name or a word; names in quotes are never constants, functions or values of attributes."""

    text: str
    quoted: bool = False


@dataclass(slots=True)
class Phrase(Node):
    """Two words or more."""

    words: tuple[str, ...]


@dataclass(slots=True)
class Dotted(Node):
    """name.part"""

    name: Word
    part: Word


@dataclass(slots=True)
class Applied(Node):
    """A function or an operation on arguments; operations have the names that expressions use."""

    function: Word
    arguments: tuple[Node, ...]
    depth: int
    operation: bool = False


@dataclass(slots=True)
class Vector(Node):
    """(a, b, ...), as numbers where it is nothing but numbers."""

    entries: tuple[Node, ...]
    values: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.entries) or len(self.values)


@dataclass(slots=True)
class Listed(Node):
    """[a, b, ...] of vectors."""

    entries: tuple[Vector, ...]


@dataclass(slots=True)
class Item(Node):
    """One entry of a statement: `label = value`, or a value alone."""

    label: Node | None
    value: Node

    @property
    def key(self) -> str:
        """The label in small letters, its words separated by one blank."""
        if isinstance(self.label, Word):
            return self.label.text.lower()
        return " ".join(self.label.words).lower() if isinstance(self.label, Phrase) else ""


@dataclass(slots=True)
class Group(Node):
    """(label = value, ...) as a value."""

    items: tuple[Item, ...]


@dataclass(slots=True)
class Statement(Node):
    """A statement: its first word, the kind of a joint, its name and its items."""

    head: Word
    name: Word | None
    items: tuple[Item, ...]
    kind: Word | None = None


_OPERATIONS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "**": "pow"}


def _depth(node: Node) -> int:
    return node.depth if isinstance(node, Applied) else 0


class Maker(Transformer[Token, Any]):
    """Called by the parser as it goes, with children made already. `base` is where the parsed part begins."""

    base = 0

    def _word(self, token: Token) -> Word:
        start = self.base + (token.start_pos or 0)
        return Word(start, start + len(token), str(token))

    def _applied(self, function: Word, arguments: tuple[Node, ...], start: int, end: int, operation: bool) -> Applied:
        depth = 1 + max((_depth(a) for a in arguments), default=0)
        if depth > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} operations one inside the other; split it with PARAMETERs"
            raise Fault(Node(function.start, function.end), text)
        return Applied(start, end, function, arguments, depth, operation)

    # -- statements ---------------------------------------------------------------------------------------
    def _statement(
        self, head: Token, name: Word | None, items: tuple[Item, ...], kind: Word | None = None
    ) -> Statement:
        word = self._word(head)
        last = items[-1] if items else name or word
        return Statement((kind or word).start, last.end, word, name, items, kind)

    def unnamed(self, c: list[Any]) -> Statement:
        return self._statement(c[0], None, c[1])

    def named(self, c: list[Any]) -> Statement:
        return self._statement(c[0], c[1], c[2])

    def bare(self, c: list[Any]) -> Statement:
        return self._statement(c[0], c[1], ())

    def joint(self, c: list[Any]) -> Statement:
        return self._statement(c[1], c[2], c[3], self._word(c[0]))

    def gravity(self, c: list[Any]) -> Statement:
        return self._statement(c[0], None, (self.flag(c[1:]),))

    def parameter(self, c: list[Any]) -> Statement:
        return self._statement(c[0], c[1], (self.flag(c[2:]),))

    def items(self, c: list[Any]) -> tuple[Item, ...]:
        return tuple(c)

    def pair(self, c: list[Any]) -> Item:
        return Item(c[0].start, c[1].end, c[0], c[1])

    def flag(self, c: list[Any]) -> Item:
        return Item(c[0].start, c[0].end, None, c[0])

    def one_word(self, c: list[Any]) -> Word:
        return self._word(c[0])

    def phrase(self, c: list[Any]) -> Phrase:
        first, last = self._word(c[0]), self._word(c[1])
        return Phrase(first.start, last.end, (first.text, last.text))

    def longer(self, c: list[Any]) -> Phrase:
        last = self._word(c[1])
        if len(c[0].words) >= MAX_WORDS:
            raise Fault(last, "too many words in a row; is a comma missing?")
        return Phrase(c[0].start, last.end, (*c[0].words, last.text))

    # -- values -------------------------------------------------------------------------------------------
    def plain_vector(self, c: list[Any]) -> Vector:
        token = c[0]
        start = self.base + token.start_pos
        values = tuple([float(x) for x in token[1:-1].split(",")])
        return Vector(start, start + len(token), (), values)

    def vector(self, c: list[Any]) -> Vector:
        return Vector(c[0].start - 1, c[-1].end + 1, tuple(c))

    def listed(self, c: list[Any]) -> Listed:
        return Listed(c[0].start - 1, c[-1].end + 1, tuple(c))

    def group(self, c: list[Any]) -> Group:
        return Group(c[0].start - 1, c[-1].end + 1, tuple(c))

    def number(self, c: list[Any]) -> Num:
        start = self.base + c[0].start_pos
        return Num(start, start + len(c[0]), float(c[0]))

    def measured(self, c: list[Any]) -> Num:
        unit = self._word(c[1])
        return Num(self.base + c[0].start_pos, unit.end, float(c[0]), unit)

    def name(self, c: list[Any]) -> Word:
        word = self._word(c[0])
        if word.text.startswith('"'):
            word.text, word.quoted = word.text[1:-1], True
        return word

    def dotted(self, c: list[Any]) -> Dotted:
        part = self._word(c[1])
        return Dotted(c[0].start, part.end, c[0], part)

    def call(self, c: list[Any]) -> Applied:
        function = self._word(c[0])
        end = c[-1].end + 1 if len(c) > 1 else function.end
        return self._applied(function, tuple(c[1:]), function.start, end, False)

    def binary(self, c: list[Any]) -> Applied:
        sign = self._word(c[1])
        sign.text = _OPERATIONS.get(sign.text, "sub")  # a minus has two spellings
        return self._applied(sign, (c[0], c[2]), c[0].start, c[2].end, True)

    def compared(self, c: list[Any]) -> Applied:
        sign = self._word(c[1])
        first, second = (c[0], c[2]) if sign.text[0] == "<" else (c[2], c[0])
        sign.text = "le" if sign.text.endswith("=") else "lt"
        return self._applied(sign, (first, second), c[0].start, c[2].end, True)

    def signed(self, c: list[Any]) -> Node:
        sign, operand = self._word(c[0]), c[1]
        if sign.text == "+":
            return operand  # type: ignore[no-any-return]
        if isinstance(operand, Num) and not operand.wrapped:
            # A literal below zero is one number, so that what is printed reads back the same.
            return Num(sign.start, operand.end, -operand.value, operand.unit, True)
        sign.text = "neg"
        return self._applied(sign, (operand,), sign.start, operand.end, True)

    def wrapped(self, c: list[Any]) -> Node:
        inner = c[0]
        inner.start, inner.end = inner.start - 1, inner.end + 1
        if isinstance(inner, Num):
            inner.wrapped = True
        return inner  # type: ignore[no-any-return]
