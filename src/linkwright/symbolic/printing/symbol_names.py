"""Names of symbols for each target: split into letter and subscript for formulas, made identifiers for code."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Set
from dataclasses import dataclass

from linkwright.kernels.c.spelling import identifier as c_identifier
from linkwright.symbolic.equation_quantities import QUANTITIES
from linkwright.symbolic.formulas.formula import Block

_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", strict=True))
_LETTERS = {letter: name for name, letter in GREEK.items()} | {"ϑ": "theta", "ϕ": "phi", "ϵ": "epsilon", "ς": "sigma"}
_GREEK_FIRST = re.compile(rf"({'|'.join(sorted(GREEK, key=len, reverse=True))})(?=[\d_]|$)_*(.*)", re.DOTALL)
# One letter, and after it what reads as a subscript: digits (also 1_10, and 2b), a second letter (lg2), axes (Ixx1), or
# what follows "_".
_LETTER_FIRST = re.compile(r"([^\W\d_])(?:_+(.+)|([xyz]{0,3}\d*)|([^\W\d_]?\d*)|(\d+(?:_\d+)+|\d+[a-z]))", re.DOTALL)
_WORD = re.compile(r"(.*?[^\d_])_*(\d*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Split:
    """A name as a mathematician writes it: a stem (one letter, or a whole word) and a subscript."""

    stem: str
    subscript: str = ""

    @property
    def word(self) -> bool:
        """Whether the stem is a word rather than one letter."""
        return len(self.stem) != 1


def split(name: str) -> Split:
    """theta1 → θ, 1; lg2 → l, g2; Ixx1 → I, xx1; M1_10 → M, "1,10"; crank_length2 → crank_length, 2."""
    if match := _GREEK_FIRST.fullmatch(name):
        return Split(GREEK[match[1]], match[2])
    if match := _LETTER_FIRST.fullmatch(name):
        return Split(match[1], match[2] or match[3] or match[4] or (match[5] or "").replace("_", ","))
    if match := _WORD.fullmatch(name):
        return Split(match[1], match[2])
    return Split(name)


def letter(block: Block) -> Split:
    """A block's letter with its subscript."""
    row = QUANTITIES.get(block.name)
    return split(row.symbol if row and row.symbol else block.name)


def entry_letter(block: Block, place: str) -> Split:
    """The letter of one entry of a block, with its place in the subscript: M, 12."""
    whole = letter(block)
    return Split(whole.stem, f"{whole.subscript},{place}" if whole.subscript else place)


def greek_name(letter: str) -> str | None:
    """theta for θ; None for what is no Greek letter."""
    return _LETTERS.get(letter)


def folded(text: str) -> str:
    """The text in ASCII: Greek letters by name, other letters without accents, the rest by code point."""
    parts = []
    for letter in text:
        if letter.isascii():
            parts.append(letter)
        elif letter in _LETTERS:
            parts.append(_LETTERS[letter])
        else:
            plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
            parts.append(plain or f"u{ord(letter):x}")
    return "".join(parts)


def python_identifier(name: str, taken: Iterable[str]) -> str:
    """`name` as an identifier of Python, none of `taken`; letters stay what they are where Python allows them."""
    word = unicodedata.normalize("NFKC", name)
    if not word.isidentifier():
        word = re.sub(r"\W", "_", folded(name), flags=re.ASCII)
        word = re.sub(r"__+", "_", word).strip("_") or "x"
        word = f"x{word}" if word[0].isdigit() else word
    # A leading underscore is kept for the functions that a module brings along.
    word = word.lstrip("_") or "x"
    word = f"x{word}" if not word.isidentifier() else word
    return _free(f"{word}_" if keyword.iskeyword(word) else word, taken)


def ascii_identifier(name: str, taken: Iterable[str]) -> str:
    """`name` as an identifier of C, none of `taken`."""
    return c_identifier(folded(name), taken)


def _free(word: str, taken: Iterable[str]) -> str:
    used = taken if isinstance(taken, Set) else set(taken)
    if word not in used:
        return word
    if f"{word}_" not in used:
        return f"{word}_"
    number = 2
    while f"{word}_n{number}" in used:
        number += 1
    return f"{word}_n{number}"
