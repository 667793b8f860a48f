"""From text to statements; after an error reading goes on with the next statement, so that all errors are reported."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from linkwright.base.arguments import shortened
from linkwright.base.locks import Lock
from linkwright.formats.mks.parser_tables import statement_parser
from linkwright.formats.mks.scanner import scan
from linkwright.formats.mks.syntax import (
    JOINT_WORDS,
    MAX_NAME,
    SHORT_JOINTS,
    Block,
    Fault,
    Maker,
    Node,
    Problems,
    Statement,
    Word,
    did_you_mean,
    either,
)
from linkwright.formats.mks.vocabulary import meant

MAX_NESTING = 100
MAX_BLOCKS = 20
MAX_POWERS = 2000  # in one statement
MAX_ENTRIES = 250_000  # in one statement: a large table
_LOCK = Lock()  # the parser is one object with a state
HEADS = (
    "SYSTEM",
    "PARAMETER",
    "GRAVITY",
    "BODY",
    "TRIAD",
    "MARKER",
    *(f"{word.upper()} JOINT" for word in JOINT_WORDS),
    *(word.upper() for word in SHORT_JOINTS),
    "ROD",
    "POINT ON LINE",
    "POINT ON PLANE",
    "POINT ON CURVE",
    "CURVE ON CURVE",
    "CURVE",
    "GEAR",
    "COUPLING",
    "DRIVER",
    "SPRING",
    "DAMPER",
    "BUSHING",
    "FRICTION",
    "STOP",
    "ACTUATOR",
    "FORCE",
    "TORQUE",
    "INITIAL",
    "SHAPE",
    "TRACE",
    "REPEAT",
    "PART",
    "USE",
    "ENDMODEL",
)
_HEAD = "|".join(head.replace(" ", r"\s+") for head in HEADS)
_INDEX = r"(?:\[[^\]\n;]{0,100}\]\s*)?"
# A line that looks like the beginning of a statement: where to go on after an error.
_FRESH = re.compile(
    rf'^[ \t]*(?=(?:{_HEAD})\b(?:\s+[^\W\d"]\w*|\s+"[^"\n]*"|)\s*{_INDEX}(?:\(|=|;|\{{|\Z))', re.I | re.M
)
_HEAD_AND_NAME = re.compile(rf'\s*(?:{_HEAD})\s+("[^"\n]*"|[^\W\d]\w*)', re.I)
_WORDS_AND_NAME = re.compile(r'\s*(?:[^\W\d]\w*\s+){1,3}("[^"\n]*"|[^\W\d]\w*)\s*' + _INDEX + "[(=;]")
_PIECE = re.compile(r'"[^"\n]*"|#[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)', re.S)
_NAME = re.compile(r'"[^"\n]*"|[^\W\d]\w*')
_SIGNS_IN_A_ROW = re.compile(r"(?:[-+−]\s*){50}")
_BLOCK = re.compile(r"(?:repeat|part)\b", re.I)
#: What only the expansion of repetitions can tell: an index that is no plain number, a name after two dots.
_INDEXED = re.compile(r"\w\s*\[(?!\s*[0-9]+\s*\])|\.\s*[^\W\d]\w*\s*[.\[]")
_OPENING = re.compile(r"model\b", re.I)
_CLOSING = re.compile(r"endmodel\b", re.I)
_LAST = re.compile(r"\sendmodel\b[\s;]*\Z", re.I)
_BRACKET = re.compile(r'"[^"\n]*"|[()\[\]]')
_SPACE = re.compile(r"[ \t\r\n\f]*")

_SIGNS = {
    "COMMA": "a comma",
    "RPAR": "a closing parenthesis",
    "RSQB": "a closing bracket",
    "SEMICOLON": "a semicolon",
    "EQUAL": "an equals sign",
    "LPAR": "an opening parenthesis",
    "JOINT": "the word JOINT",
    "DOT": "a dot",
    "RANGE": "two dots",
    "AS": "the word AS",
    "LBRACE": "an opening brace",
    "LSQB": "an opening bracket",
}
_ENDS = ("EQUAL", "COMMA", "RPAR", "RSQB", "SEMICOLON")


@dataclass
class Parsed:
    """The statements of a text; `broken` are the names (in small letters) of those that could not be read.

    `repeats`: there are REPEATs, PARTs or arrays, or names with indices, which the expansion replaces.
    """

    name: Word | None = None
    statements: list[Statement] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    end: int = 0
    repeats: bool = False


class Blocks:
    """The REPEATs and PARTs that are open, and where a statement goes."""

    def __init__(self, parsed: Parsed, problems: Problems) -> None:
        self._parsed, self._problems = parsed, problems
        self._open: list[Block] = []

    @property
    def depth(self) -> int:
        return len(self._open)

    def add(self, statement: Statement) -> None:
        (self._open[-1].pieces if self._open else self._parsed.statements).append(statement)

    def open(self, text: str, at: int, end: int) -> None:
        """Read the head of a block, up to its brace; one that cannot be read still has its end."""
        self._parsed.repeats = True
        word = Word(at, at + 1, "")
        block = Block(at, end, word, None, ())
        try:
            check_nesting(text, at, end)
            if len(self._open) >= MAX_BLOCKS:
                raise Fault(Node(at, at + 1), f"more than {MAX_BLOCKS} REPEATs one inside the other")
            head = parsed_by_grammar(text, at, end, "block_head")
            assert isinstance(head, Block)
            block = head
            if self._open and block.head.text.lower() == "part":
                raise Fault(block.head, "a PART stands outside of REPEATs and other PARTs; USE it here")
        except (UnexpectedInput, Fault) as error:
            self._problems.add_fault(error if isinstance(error, Fault) else _explained(text, at, end, error))
            _note_broken(text, at, self._parsed)
            block = Block(at, end, word, None, ())
        self.add(block)
        self._open.append(block)

    def close(self, text: str, at: int) -> int:
        """The place after braces that close blocks."""
        while text.startswith("}", at):
            if self._open:
                self._open.pop()
            else:
                self._problems.add(Node(at, at + 1), "there is no REPEAT or PART that this '}' closes")
            at = _skip(text, at + 1)
        return at

    def end(self) -> None:
        """The end of the text, where all blocks should be closed."""
        for block in self._open:
            there = Node(block.start, block.start + 6)
            self._problems.add(there, "this block has no end; close it with '}' after its last statement")


@lru_cache(maxsize=1)
def _parser() -> tuple[Any, Maker]:
    maker = Maker()
    return statement_parser(maker), maker


def parsed_by_grammar(text: str, at: int, end: int, start: str = "statement") -> Statement:
    """The statement between two places, or the head of a block, by the grammar."""
    tree, maker = _parser()
    with _LOCK:
        maker.base = at
        return tree.parse(text[at:end], start=start)  # type: ignore[no-any-return]


def parse(problems: Problems) -> Parsed:
    """The statements of a text; what is wrong with their form is added to the problems."""
    text = _ended(_without_comments(problems))
    parsed = Parsed()
    if not text.strip():
        problems.add(Node(0, 0), "there is no model in it; a model begins with MODEL and its name")
        return parsed
    whole = not problems  # a comment without end hides the rest
    at = _opened(text, problems, parsed)
    stops = _Stops(text)
    blocks = Blocks(parsed, problems)
    parsed.repeats = _INDEXED.search(text) is not None
    while True:
        at = blocks.close(text, _skip(text, at))
        parsed.end = at
        closing = _CLOSING.match(text, at)
        if closing or at >= len(text):
            blocks.end()
        if closing:
            _check_rest(text, closing.end(), problems)
            return parsed
        if at >= len(text):
            if whole:
                problems.add(Node(len(text.rstrip()), len(text.rstrip())), "ENDMODEL is missing at the end of the file")
            return parsed
        end = stops.after(at)
        head = _BLOCK.match(text, at)
        try:
            if head and text[(brace := stops.after(at, "{;")) - 1] == "{":
                end = brace
                blocks.open(text, at, end)
                at = end
                continue
            if blocks.depth and (brace := stops.after(at, "};")) <= end and text[brace - 1] == "}":
                end = brace - 1
                last = len(text[at:end].rstrip()) + at
                raise Fault(Node(last, last), "expected a semicolon here, before '}'")
            statement = scan(text, at, end)
            if statement is None:
                check_nesting(text, at, end)
                statement = parsed_by_grammar(text, at, end)
            blocks.add(statement)
            at = end
        except (UnexpectedInput, Fault) as error:
            fault = error if isinstance(error, Fault) else _explained(text, at, end, error)
            problems.add_fault(fault)
            _note_broken(text, at, parsed)
            at = _fresh(text, at, fault.at.start if fault.at is not None else at, end)


class _Stops:
    """Where semicolons and braces are, outside of quotes."""

    def __init__(self, text: str) -> None:
        signs = [(m[0], m.start() + 1) for m in re.finditer('"[^"\n]*"|[;{}]', text) if m[0] in ";{}"]
        self._places = {sign: [at for found, at in signs if found == sign] for sign in ";{}"}
        self._end = len(text)

    def after(self, at: int, signs: str = ";") -> int:
        """The place after the first of these signs from a place on, or the end of the text."""
        ends = []
        for sign in signs:
            places = self._places[sign]
            k = bisect_left(places, at + 1)
            ends.append(places[k] if k < len(places) else self._end)
        return min(ends)


def _without_comments(problems: Problems) -> str:
    """The text with blanks in the place of comments."""

    def blank(match: re.Match[str]) -> str:
        piece = match[0]
        if piece[0] == '"':
            return piece
        if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
            problems.add(Node(match.start(), match.start() + 2), "this comment has no end; close it with */")
        return re.sub(r"[^\n]", " ", piece)

    return _PIECE.sub(blank, problems.text)


def _ended(text: str) -> str:
    """The text with a semicolon in the place of a blank before ENDMODEL, where the last statement has none."""
    closing = _LAST.search(text)
    if closing is None:
        return text
    end = len(text[: closing.start()].rstrip())
    begin = text.rfind(";", 0, end) + 1
    if begin == end or text[end - 1] == "}" or _is_open(text, begin, end):
        return text
    return f"{text[:end]};{text[end + 1 :]}"


def _depths(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The brackets of a part: where each is, and how many are open after it."""
    depth = 0
    for m in _BRACKET.finditer(text, start, end):
        depth += 1 if m[0] in "([" else -1 if m[0] in ")]" else 0
        yield m.start(), depth


def _is_open(text: str, start: int, end: int) -> bool:
    """Whether brackets are open at the end of a part."""
    depths = [depth for _, depth in _depths(text, start, end)]
    return bool(depths) and depths[-1] != 0


def _opened(text: str, problems: Problems, parsed: Parsed) -> int:
    """Read `MODEL name`; where the statements begin."""
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    opening = _OPENING.match(text, at)
    if not opening:
        word = _NAME.match(text, at)
        end = word.end() if word else at + 1
        problems.add(Node(at, end), "a model begins with MODEL and its name, such as: MODEL slider_crank")
        return at
    at = _skip(text, opening.end())
    name = _NAME.match(text, at)
    if not name:
        problems.add(Node(at, at + 1), "expected the name of the model")
        return at
    if len(name[0]) > MAX_NAME:
        problems.add(Node(at, name.end()), f"this name has {len(name[0])} letters; {MAX_NAME} at most")
    quoted = name[0].startswith('"')
    parsed.name = Word(at, name.end(), name[0].strip('"') if quoted else name[0], quoted)
    at = _skip(text, name.end())
    return at + 1 if text.startswith(";", at) else at


def _check_rest(text: str, at: int, problems: Problems) -> None:
    at = _skip(text, at)
    at = _skip(text, at + 1) if text.startswith(";", at) else at
    if at < len(text):
        problems.add(Node(at, at + 1), "nothing may follow ENDMODEL; one file holds one model")


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def check_nesting(text: str, start: int, end: int) -> None:
    """Refuse what would take the parser long before it could see that it is nonsense."""
    signs = _SIGNS_IN_A_ROW.search(text, start, end)
    if signs:
        raise Fault(Node(signs.start(), signs.start() + 1), "too many signs in a row")
    if text.count("^", start, end) + text.count("**", start, end) > MAX_POWERS:
        raise Fault(Node(start, start + 1), f"more than {MAX_POWERS} powers in one statement")
    if text.count(",", start, end) > MAX_ENTRIES:
        raise Fault(Node(start, start + 1), f"more than {MAX_ENTRIES} values in one statement")
    if text.count("(", start, end) + text.count("[", start, end) <= MAX_NESTING:
        return
    for at, depth in _depths(text, start, end):
        if depth > MAX_NESTING:
            raise Fault(Node(at, at + 1), f"more than {MAX_NESTING} brackets one inside the other")


def _fresh(text: str, at: int, wrong: int, end: int) -> int:
    """Where to go on after an error in a statement: at a line that begins another, or after its semicolon."""
    fresh = _FRESH.search(text, max(text.rfind("\n", 0, wrong) + 1, at + 1), end)
    return fresh.end() if fresh else end


def _note_broken(text: str, at: int, parsed: Parsed) -> None:
    """Note the name of a statement that could not be read: what follows its head, also where no head is written so."""
    named = _HEAD_AND_NAME.match(text, at) or _WORDS_AND_NAME.match(text, at)
    if named:
        parsed.broken.add(named[1].strip('"').lower())


def _explained(text: str, at: int, end: int, error: UnexpectedInput) -> Fault:
    """Where an error is, and what it is in words."""
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start = at + (error.token.start_pos or 0)
        word = _NAME.match(text, start)
        stop = word.end() if word else start + len(error.token)
        expected = set(error.accepts or error.expected or ())
    elif isinstance(error, UnexpectedCharacters):
        start = at + (error.pos_in_stream or 0)
        word = _NAME.match(text, start)
        stop = word.end() if word else start + 1
        expected = set(error.allowed or ())
    else:
        word = None
        start = stop = len(text[:end].rstrip())
        expected = set(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    there, piece = Node(start, stop), text[start:stop]
    unclosed = _before_next(text, at, start)
    if unclosed is not None:
        word = _NAME.match(text, unclosed)
        last = len(text[:unclosed].rstrip())
        return Fault(Node(last, last), f"expected a semicolon here, before {word[0] if word else ''!r}")
    if "ENDMODEL" in expected or {"BODY", "TRIAD"} <= expected:
        if piece == ";":
            return Fault(there, "there is no statement before this semicolon")
        return Fault(there, f"{shortened(piece, 40)} begins no statement{_close_head(text, start, piece)}")
    if piece == '"':
        return Fault(there, "this quote is not closed on its line")
    if piece == "=":
        words = re.search(r"([^\W\d]\w*(?:\s+[^\W\d]\w*)*)\s*\Z", text[max(at, start - 200) : start])
        if words and "COMMA" in expected:
            first = start - len(words[0])
            return Fault(Node(first, first + len(words[1])), f"expected a comma before {words[1]!r}")
    if isinstance(error, UnexpectedCharacters) and not word:
        return Fault(there, f"{piece!r} has no meaning here")
    wanted = in_words(expected)
    if not piece:
        return Fault(there, f"expected {wanted}, but the file ends")
    return Fault(there, f"expected {wanted}, not {shortened(piece, 40)}")


def _before_next(text: str, at: int, wrong: int) -> int | None:
    """Where the next statement begins, if it does so before an error and all brackets are closed there."""
    fresh = _FRESH.search(text, at + 1, len(text))
    if fresh is None or fresh.end() > wrong:
        return None
    return None if _is_open(text, at, fresh.start()) else fresh.end()


def _close_head(text: str, at: int, word: str) -> str:
    """The head that a wrong one is meant to be, judged by one word, two or three."""
    words = re.compile(r"[^\W\d]\w*(?:\s+[^\W\d]\w*){0,2}").match(text, at)
    first = words[0].split() if words else [word]
    answer = meant(first)
    if answer:
        return answer
    if len(first) > 1 and first[1].upper() == "JOINT":
        return did_you_mean(" ".join(first[:2]), [head for head in HEADS if head.endswith("JOINT")])
    return did_you_mean(first[0], HEADS) or did_you_mean(" ".join(first[:2]), HEADS)


def in_words(expected: set[str]) -> str:
    """What the parser would take, for people."""
    ends = [name for name in _ENDS if name in expected]
    if "NUMBER" in expected:
        return "a value"
    if ends:
        return either([_SIGNS[name] for name in ends])
    if "WORD" in expected or "QUOTED" in expected:
        return "a name"
    known = [words for name, words in _SIGNS.items() if name in expected]
    return either(known) if known else "something else"
