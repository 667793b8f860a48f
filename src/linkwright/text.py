"""Text from files as a person may be shown it: what a terminal would obey, or hide, is spelled out."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from itertools import count

#: Control characters but line breaks and tabs; what turns the direction of the text after it; and what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with ESC as \\x1b, a right-to-left override as \\u202e, and so on; line breaks and tabs stay."""
    return text if text.isprintable() else UNSEEN.sub(_escaped, text)


def on_one_line(text: str) -> str:
    """The text as `visible` has it, with line breaks and tabs spelled out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def first_few(names: Sequence[str], most: int) -> str:
    """Names in a sentence: the first few of them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shortened(text: str, most: int = 80) -> str:
    """A text in quotes in a message: what is longer than so many letters ends in an ellipsis."""
    return repr(text if len(text) <= most else f"{text[:most]}…")


def numbered_name(stem: str, taken: Container[str], first: int = 1) -> str:
    """The first of stem1, stem2, … that is not taken; counting begins at `first`."""
    return next(name for k in count(first) if (name := f"{stem}{k}") not in taken)


def free_name(stem: str, taken: Container[str], between: str = "") -> str:
    """The stem, or where it is taken the first of stem2, stem3, … that is not, with `between` before the number."""
    return stem if stem not in taken else numbered_name(stem + between, taken, 2)


def counted(number: int, thing: str, things: str = "") -> str:
    """A number with its noun, whose plural ends in s unless it is given."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
