"""The pieces of a `.mks` text with their places, and what is wrong in it, shown with a caret. Nothing here knows
what they mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from lark import Token, Transformer

from linkwright.errors import MksError

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
_MOVED = "a DRIVER prescribes a motion, as in DRIVER d (hinge.angle = 2*TIME); an ACTUATOR exerts a force by a law"
_BODY = "a part is a BODY; a DRIVER prescribes its motion, an ACTUATOR exerts a force on its joint"
_FRAME = "a frame on a body is a TRIAD"
_GEAR = "joints that move together are a GEAR, or by any relation a COUPLING"
_ANSWERS = {
    _MOVED: "motor motors servo engine drive driven drives actuated actuate actuation powered input motion excitation "
    "rotation speed velocity rpm controller control",
    _BODY: "crank rocker coupler link lever arm bar beam part piston block wheel shaft cam follower",
    _FRAME: "frame point connector coordinate_system",
    _GEAR: "mimic coupler belt pulley pinion rack transmission",
    "a bearing is a JOINT, as in HINGE or REVOLUTE JOINT": "pivot bearing revolute_joint",
    "a guide is a JOINT, as in SLIDER or TRANSLATIONAL JOINT": "guide rail prismatic_joint",
    "a ball in a socket is a JOINT, as in BALL or SPHERICAL JOINT": "socket",
    "joints close loops by themselves; ROD, POINT ON LINE and POINT ON PLANE hold points": "constraint loop closure",
    "a law between two points is a SPRING, a DAMPER or a FORCE": "sforce gforce spdp",
    "there is no contact; a STOP limits a joint or a distance": "contact collision impact ground_contact",
    "a cable that stays tight is a ROD, one that stretches a SPRING": "cable rope tendon wire chain string",
    "bodies that move as one are held by a WELD, or FIXED JOINT": "bolt glue",
    "mass and inertia are attributes of a BODY, as in BODY arm (mass = 2, inertia = (0.1, 1, 1))": "mass inertia",
    "a constant is a PARAMETER": "variable constant let define",
    "start values are INITIAL (...)": "start initially state",
}
_STATEMENTS = {word: answer for answer, words in _ANSWERS.items() for word in words.split()}
_KINDS = {
    "REVOLUTE JOINT": "pivot rotary rotating rotation rotational rotate turning continuous bearing",
    "TRANSLATIONAL JOINT": "sliding slide linear guide rail",
    "SPHERICAL JOINT": "ballsocket socket globe",
    "UNIVERSAL JOINT": "cardan hooke hookes gimbal",
    "FIXED JOINT": "welded rigid bolted locked",
    "FREE JOINT": "floating six_dof",
    "SCREW JOINT": "helical spindle thread",
}
_JOINTS = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_DRIVEN = "motor servo drive driver driven actuate actuation actuator powered crank input motion speed velocity torque"
_DRIVEN += " force law rpm control"


def meant(words: list[str]) -> str:
    """What the first words of a statement mean here, '' where nothing is known of them."""
    first, second = words[0].lower(), (words[1].lower() if len(words) > 1 else "")
    if second == "joint" and first in _JOINTS:
        return f"; write {_JOINTS[first]}"
    answer = _STATEMENTS.get(first)
    return f"; {answer}" if answer else ""


def meant_of_joint(label: str) -> str:
    """What an attribute that a joint does not have means here."""
    first = label.lower().split()[0] if label.strip() else ""
    return f"; a joint does not move by itself: {_MOVED}" if first in _DRIVEN.split() else ""


MOST = 50  # problems reported of one file
_LONGEST = 400  # letters of a message, which may name something long
_WIDTH = 110  # columns of a line that are shown


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a text: where (counted from 1), what, and the line with a caret beneath it."""

    line: int
    column: int
    message: str
    excerpt: str = ""


@dataclass(slots=True)
class Node:
    """A piece of text from `start` to before `end`."""

    start: int
    end: int


class Fault(Exception):
    """Ends the reading of one statement; without a message, the cause has been reported elsewhere."""

    def __init__(self, at: Node | None = None, message: str = "") -> None:
        super().__init__(message)
        self.at, self.message = at, message


class Enough(Exception):
    """So many problems that more would not help."""


class Problems:
    """The problems of one text."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.file = file
        self._faults: dict[tuple[int, int, str], None] = {}
        self._lines: list[int] | None = None

    def __bool__(self) -> bool:
        return bool(self._faults)

    def copy(self, file: str) -> Problems:
        """The same problems so far, of a text under another name."""
        problems = Problems(self.text, file)
        problems._faults.update(self._faults)
        return problems

    def add(self, at: Node, message: str) -> None:
        if len(message) > _LONGEST:
            message = message[:_LONGEST] + "..."
        self._faults[at.start, at.end, message] = None
        if len(self._faults) >= MOST:
            raise Enough

    def add_fault(self, fault: Fault) -> None:
        """A fault, unless its cause has been reported."""
        if fault.at is not None:
            self.add(fault.at, fault.message)

    def fail(self) -> NoReturn:
        """Raise all problems, in the order of the text."""
        raise MksError([self._shown(*key) for key in sorted(self._faults)], file=self.file) from None

    def line_of(self, offset: int) -> int:
        """The number of a line, from 1."""
        if self._lines is None:
            self._lines = [0, *(k + 1 for k, c in enumerate(self.text) if c == "\n")]
        return bisect_right(self._lines, offset)

    def _shown(self, start: int, end: int, message: str) -> Problem:
        start = min(start, len(self.text))
        line = self.line_of(start)
        assert self._lines is not None
        first = self._lines[line - 1]
        last = self.text.find("\n", first)
        last = len(self.text) if last < 0 else last
        column = start - first
        # Of a long line the part about the place is shown.
        low = max(0, column - _WIDTH // 2) if last - first > _WIDTH else 0
        source = self.text[first + low : min(last, first + low + _WIDTH)].rstrip()
        source = "".join(c if c.isprintable() else " " for c in source)
        if not source:
            return Problem(line, column + 1, message)
        wide = max(1, min(end, last, first + low + _WIDTH) - start)
        excerpt = f"    {source}\n    {' ' * (column - low)}^{'~' * (wide - 1)}"
        return Problem(line, column + 1, message, excerpt)


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
MAX_DEPTH = 250  # of operations inside operations: the terms of a sum count, each holds the ones before it


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
