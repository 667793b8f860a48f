"""Text from files as a person may be shown it: what a terminal would obey, or hide, is spelled out."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
