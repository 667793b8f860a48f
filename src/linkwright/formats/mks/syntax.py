"""The pieces of a `.mks` text with their places. Nothing here knows what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from lark import Token, Transformer

from linkwright.formats.mks.problems import Enough as Enough
from linkwright.formats.mks.problems import Fault as Fault
from linkwright.formats.mks.problems import Node as Node
from linkwright.formats.mks.problems import Problem as Problem
from linkwright.formats.mks.problems import Problems as Problems

#: The words before JOINT, and the kinds that they mean; the grammar has them too. The first of a kind is written.
JOINT_WORDS = {
    "revolute": "revolute",
    "translational": "prismatic",
    "translation": "prismatic",
    "prismatic": "prismatic",
    "cylindrical": "cylindrical",
    "universal": "universal",
    "spherical": "spherical",
    "planar": "planar",
    "screw": "screw",
    "fixed": "fixed",
    "free": "free",
    "hinge": "revolute",
    "pin": "revolute",
    "slider": "prismatic",
    "ball": "spherical",
    "weld": "fixed",
}
#: Those of them that need no JOINT after them.
SHORT_JOINTS = ("hinge", "pin", "slider", "ball", "weld")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean ...?' where a known word is close, else nothing."""
    spelled = {name.lower(): name for name in list(known)[:5000]}
    close = get_close_matches(word.lower(), spelled, n=1)
    return f"; did you mean {spelled[close[0]]!r}?" if close else ""


def either(words: list[str]) -> str:
    """Words in a sentence: a, b or c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


MAX_NAME = 200  # letters
MAX_WORDS = 12  # in a row
MAX_INDEX = 1e15  # whole numbers below are exact
MAX_DEPTH = 250  # of operations inside operations: the terms of a sum count, each holds the ones before it


@dataclass(slots=True)
class Num(Node):
    """A number, perhaps with a unit."""

    value: float
    unit: Word | None = None
    wrapped: bool = False  # in parentheses: a sign before it is an operation


@dataclass(slots=True)
class Word(Node):
    """A name or a word; names in quotes are never constants, functions or values of attributes.

    A name with plain numbers as its indices is a word too, whose text is `link[3]`. `trail` says which repetition a
    name was made in.
    """

    text: str
    quoted: bool = False
    trail: str = field(default="", compare=False, repr=False)


@dataclass(slots=True)
class Phrase(Node):
    """Two words or more."""

    words: tuple[str, ...]


@dataclass(slots=True)
class Indexed(Node):
    """base[i, ...] with indices that are no plain numbers."""

    base: Word
    indices: tuple[Node, ...]


@dataclass(slots=True)
class Dotted(Node):
    """name.part"""

    name: Word
    part: Word


@dataclass(slots=True)
class Path(Node):
    """Names with dots between, of which more than the first two are, or have indices: leg[i].slide.shift"""

    words: tuple[Word | Indexed, ...]


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
    """[a, b, ...] of vectors or numbers."""

    entries: tuple[Node, ...]


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
    """A statement: its first word, the kind of a joint, its name and its items.

    `trail` says which repetition it was made in. Before the expansion a name may have indices that are not known.
    """

    head: Word
    name: Word | None
    items: tuple[Item, ...]
    kind: Word | None = None
    trail: str = ""
    index: Indexed | None = None  # the name, where its indices are not known yet


@dataclass(slots=True)
class Block(Statement):
    """REPEAT (name is the index, items are its first and last value), PART (items are the defaults), and their pieces.

    `head` is the empty word where the head could not be read.
    """

    pieces: list[Statement] = field(default_factory=list)


@dataclass(slots=True)
class Use(Statement):
    """USE part AS name (parameter = value, ...)."""

    part: Word = field(default_factory=lambda: Word(0, 0, ""))


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
        self, head: Token, name: Word | Indexed | None, items: tuple[Item, ...], kind: Word | None = None
    ) -> Statement:
        word = self._word(head)
        last = items[-1] if items else name or word
        index = name if isinstance(name, Indexed) else None
        shown = name.base if isinstance(name, Indexed) else name
        return Statement((kind or word).start, last.end, word, shown, items, kind, "", index)

    def repeat(self, c: list[Any]) -> Block:
        word, name = self._word(c[0]), self._word(c[1])
        ends = tuple(Item(x.start, x.end, None, x) for x in (c[2], c[4]))
        return Block(word.start, c[4].end, word, name, ends)

    def part(self, c: list[Any]) -> Block:
        word, name = self._word(c[0]), self._word(c[1])
        return Block(word.start, name.end, word, name, c[2] if len(c) > 2 else ())

    def use(self, c: list[Any]) -> Use:
        s = self._statement(c[0], c[3], c[4] if len(c) > 4 else ())
        return Use(s.start, s.end, s.head, s.name, s.items, None, "", s.index, self._word(c[1]))

    def unnamed(self, c: list[Any]) -> Statement:
        return self._statement(c[0], None, c[1])

    def named(self, c: list[Any]) -> Statement:
        return self._statement(c[0], c[1], c[2])

    def bare(self, c: list[Any]) -> Statement:
        return self._statement(c[0], c[1], ())

    def joint(self, c: list[Any]) -> Statement:
        kind = self._word(c[0])
        joint = self._statement(c[-3], c[-2], c[-1], kind)
        if len(c) == 3:
            joint.head = Word(kind.start, kind.end, "JOINT")
        return joint

    def coupling(self, c: list[Any]) -> Statement:
        return self._statement(c[0], c[1], (c[2],))

    def relation(self, c: list[Any]) -> Item:
        return Item(c[0].start, c[1].end, c[0], c[1])

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

    def indices(self, c: list[Any]) -> tuple[Node, ...]:
        return tuple(c)

    def indexed(self, c: list[Any]) -> Word | Indexed:
        base, indices = self._word(c[0]), c[1]
        end = indices[-1].end + 1
        plain = [x.value for x in indices if isinstance(x, Num) and x.unit is None and float(x.value).is_integer()]
        if len(plain) == len(indices) and all(abs(x) < MAX_INDEX for x in plain):
            return Word(base.start, end, f"{base.text}[{','.join(str(int(x)) for x in plain)}]")
        return Indexed(base.start, end, base, indices)

    def dotted(self, c: list[Any]) -> Dotted | Path:
        first, part = c
        if isinstance(first, Word) and isinstance(part, Word) and "[" not in part.text:
            return Dotted(first.start, part.end, first, part)
        words: tuple[Word | Indexed, ...] = first.words if isinstance(first, Path) else (first,)
        if isinstance(first, Dotted):
            words = first.name, first.part
        if len(words) >= MAX_WORDS:
            raise Fault(part, "too many names with dots between")
        return Path(first.start, part.end, (*words, part))

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
