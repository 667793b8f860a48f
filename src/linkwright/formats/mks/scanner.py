"""Statements of the commonest form, read without the parser: large models are made of them.

`HEAD name (label = value, ...);` where a value is a name, a number, a vector of numbers or three of them in brackets.
The grammar says what a statement is; a test holds this scanner to it. What it does not know it leaves to the parser.
"""

from __future__ import annotations

import re

from linkwright.formats.mks.syntax import Item, Listed, Node, Num, Phrase, Statement, Vector, Word

_WORD = r"[^\W\d]\w*"
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_SIGNED = rf"[+-]?{_NUMBER}"
_S = r"[ \t\r\n\f]*"
_VECTOR = rf"\({_S}{_SIGNED}(?:{_S},{_S}{_SIGNED})+{_S}\)"
_KIND = "revolute|translational|prismatic|cylindrical|universal|spherical|planar|screw|fixed|free"
_HEAD = re.compile(
    rf"(?:(?P<head>body|triad|rod|gear|shape|trace)|(?P<kind>{_KIND})\s+(?P<joint>joint))\b{_S}"
    rf'(?P<name>{_WORD}|"[^"\n]*"){_S}\(',
    re.I,
)
_ITEM = re.compile(
    rf"{_S}(?P<label>{_WORD}(?:[ \t\r\n\f]+{_WORD}){{0,3}}){_S}"
    rf"(?:={_S}(?:(?P<word>{_WORD})|(?P<number>{_NUMBER})|(?P<vector>{_VECTOR})"
    rf"|\[{_S}(?P<v1>{_VECTOR}){_S},{_S}(?P<v2>{_VECTOR}){_S},{_S}(?P<v3>{_VECTOR}){_S}\]){_S})?"
    r"(?P<end>[,)])"
)
_END = re.compile(rf"{_S};")


def scan(text: str, at: int, end: int) -> Statement | None:
    """The statement between two places, or None if it needs the parser."""
    head = _HEAD.match(text, at, end)
    if head is None:
        return None
    items: list[Item] = []
    place, stop = head.end(), ","
    while stop == ",":
        found = _ITEM.match(text, place, end)
        if found is None:
            return None
        items.append(_item(found))
        place, stop = found.end(), found["end"]
    finish = _END.match(text, place, end)
    if finish is None or finish.end() != end:
        return None
    quoted = head["name"][0] == '"'
    start = head.start("name")
    name = Word(start, head.end("name"), head["name"][1:-1] if quoted else head["name"], quoted)
    group = "head" if head["kind"] is None else "joint"
    word = Word(head.start(group), head.end(group), head[group])
    kind = None if head["kind"] is None else Word(head.start("kind"), head.end("kind"), head["kind"])
    return Statement(at, items[-1].end, word, name, tuple(items), kind)


def _item(m: re.Match[str]) -> Item:
    start = m.start("label")
    words = m["label"].split()
    label: Node
    if len(words) == 1:
        label = Word(start, m.end("label"), words[0])
    else:
        label = Phrase(start, m.end("label"), tuple(words))
    value: Node
    if m["vector"] is not None:
        value = _vector(m, "vector")
    elif m["v1"] is not None:
        parts = (_vector(m, "v1"), _vector(m, "v2"), _vector(m, "v3"))
        value = Listed(parts[0].start - 1, parts[2].end + 1, parts)
    elif m["number"] is not None:
        value = Num(m.start("number"), m.end("number"), float(m["number"]))
    elif m["word"] is not None:
        value = Word(m.start("word"), m.end("word"), m["word"])
    else:
        return Item(label.start, label.end, None, label)
    return Item(start, value.end, label, value)


def _vector(m: re.Match[str], group: str) -> Vector:
    values = tuple([float(x) for x in m[group][1:-1].split(",")])
    return Vector(m.start(group), m.end(group), (), values)
