"""Statements of the common form, read at once: `HEAD name (label = value, ...);` where a value is a name, a number, a
vector of numbers, three of them in brackets, or such pairs in parentheses.

The grammar says what a statement is; a test holds this scanner to it. What it does not know it leaves to the parser.
"""

from __future__ import annotations

import re

from linkwright.formats.mks.syntax import (
    JOINT_WORDS,
    SHORT_JOINTS,
    Group,
    Item,
    Listed,
    Node,
    Num,
    Phrase,
    Statement,
    Vector,
    Word,
)

_WORD = r"[^\W\d]\w*"
_NAME = rf"{_WORD}(?:\[(?:0|[1-9][0-9]{{0,8}})\])?"
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_SIGNED = rf"[+-]?{_NUMBER}"
_S = r"[ \t\r\n\f]*"
_VECTOR = rf"\({_S}{_SIGNED}(?:{_S},{_S}{_SIGNED})+{_S}\)"
_KIND = "|".join(JOINT_WORDS)
_SCANNED_HEAD = re.compile(
    rf"(?:(?P<head>body|triad|marker|rod|gear|shape|trace)|(?P<kind>{_KIND})[ \t\r\n\f]+(?P<joint>joint)"
    rf"|(?P<short>{'|'.join(SHORT_JOINTS)})(?![ \t\r\n\f]+joint\b))\b{_S}"
    rf'(?P<name>{_NAME}|"[^"\n]*"){_S}\(',
    re.I,
)
_LABEL = rf"{_S}(?P<label>{_WORD}(?:[ \t\r\n\f]+{_WORD}){{0,3}}){_S}"
_GROUP = re.compile(rf"{_LABEL}={_S}\((?={_S}{_WORD}(?:[ \t\r\n\f]+{_WORD}){{0,3}}{_S}=)")
_AFTER = re.compile(rf"{_S}([,)])")
_ITEM = re.compile(
    rf"{_LABEL}"
    rf'(?:={_S}(?:(?P<word>{_NAME}|"[^"\n]*")|(?P<number>-?{_NUMBER})|(?P<vector>{_VECTOR})'
    rf"|\[{_S}(?P<v1>{_VECTOR}){_S},{_S}(?P<v2>{_VECTOR}){_S},{_S}(?P<v3>{_VECTOR}){_S}\]){_S})?"
    r"(?P<end>[,)])"
)
_END = re.compile(rf"{_S};")


def scan(text: str, at: int, end: int) -> Statement | None:
    """The statement between two places, or None if it needs the parser."""
    head = _SCANNED_HEAD.match(text, at, end)
    if head is None:
        return None
    scanned = _items(text, head.end(), end, False)
    if scanned is None:
        return None
    items, place = scanned
    finish = _END.match(text, place, end)
    if finish is None or finish.end() != end:
        return None
    quoted = head["name"][0] == '"'
    start = head.start("name")
    name = Word(start, head.end("name"), head["name"][1:-1] if quoted else head["name"], quoted)
    group = next(group for group in ("head", "kind", "short") if head[group] is not None)
    word = Word(head.start(group), head.end(group), head[group])
    kind = None if group == "head" else word
    if group == "kind":
        word = Word(head.start("joint"), head.end("joint"), head["joint"])
    elif group == "short":
        word = Word(word.start, word.end, "JOINT")
    return Statement(at, items[-1].end, word, name, tuple(items), kind)


def _items(text: str, place: int, end: int, inner: bool) -> tuple[list[Item], int] | None:
    """Items up to their closing parenthesis, and the place after it; inside a group each has a label."""
    items: list[Item] = []
    stop = ","
    while stop == ",":
        item = _ITEM.match(text, place, end)
        if item is not None:
            items.append(_item(item))
            place, stop = item.end(), item["end"]
        else:
            group = None if inner else _GROUP.match(text, place, end)
            within = None if group is None else _items(text, group.end(), end, True)
            after = None if within is None else _AFTER.match(text, within[1], end)
            if group is None or within is None or after is None:
                return None
            parts = within[0]
            value = Group(parts[0].start - 1, parts[-1].end + 1, tuple(parts))
            label = _label(group)
            items.append(Item(label.start, value.end, label, value))
            place, stop = after.end(), after[1]
        if inner and items[-1].label is None:
            return None
    return items, place


def _label(m: re.Match[str]) -> Word | Phrase:
    start, stop, words = m.start("label"), m.end("label"), m["label"].split()
    return Word(start, stop, words[0]) if len(words) == 1 else Phrase(start, stop, tuple(words))


def _item(m: re.Match[str]) -> Item:
    label = _label(m)
    value: Node
    if m["vector"] is not None:
        value = _vector(m, "vector")
    elif m["v1"] is not None:
        parts = (_vector(m, "v1"), _vector(m, "v2"), _vector(m, "v3"))
        value = Listed(parts[0].start - 1, parts[2].end + 1, parts)
    elif m["number"] is not None:
        number = m["number"]
        value = Num(m.start("number"), m.end("number"), float(number), None, number[0] == "-")
    elif m["word"] is not None:
        word = m["word"]
        quoted = word[0] == '"'
        value = Word(m.start("word"), m.end("word"), word[1:-1] if quoted else word, quoted)
    else:
        return Item(label.start, label.end, None, label)
    return Item(label.start, value.end, label, value)


def _vector(m: re.Match[str], group: str) -> Vector:
    values = tuple([float(x) for x in m[group][1:-1].split(",")])
    return Vector(m.start(group), m.end(group), (), values)
