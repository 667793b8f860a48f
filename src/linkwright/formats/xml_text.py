"""What all writers of XML share: names and numbers as attributes, and what is said of a mechanism they cannot hold."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

from linkwright.errors import ModelError
from linkwright.mechanism.checks import listed
from linkwright.mechanism.description import Description
from linkwright.text import first_few


def without_place(d: Description) -> list[str]:
    """What formats of robots have no place for, as parts of a warning."""
    found = []
    if d.system is not None:
        found.append("SYSTEM is left out")
    if d.drivers:
        found.append(f"the drivers {listed([x.name for x in d.drivers])} are left out")
    if d.initial or d.start is not None:
        found.append("the poses of bodies and the initial state are left out")
    if d.parameters:
        found.append(f"the parameters {listed(list(d.parameters))} are left out (their present values are written)")
    return found


def quoted(text: str) -> str:
    """A name as an attribute with its quotes; letters that XML cannot hold are an error."""
    if any(ord(c) < 32 or c in "\ufffe\uffff" or "\ud800" <= c <= "\udfff" for c in text):
        raise ModelError(f"{text!r} has letters that XML cannot hold; rename it", element=text)
    return quoteattr(text)


def number(x: float) -> str:
    """A number that reads back as exactly this one; zero has no sign."""
    return repr(float(x) + 0.0).removesuffix(".0")


def numbers(values: Any) -> str:
    """Numbers with a space between."""
    return " ".join(number(x) for x in values)


def refuse(language: str, wrong: list[str], advice: str, name: str) -> None:
    """An error that lists what a language cannot hold, if there is anything."""
    if wrong:
        shown = first_few(wrong, 12)
        raise ModelError(f"{language} cannot hold {shown}; {advice}", element=name)
