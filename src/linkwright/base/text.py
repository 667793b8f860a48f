"""Words of messages: names in a sentence, numbers with their nouns, names that are not taken yet."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count


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
