"""How C and CUDA write names, numbers and operations."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np

from linkwright.tape import operations as O
from linkwright.tape.operations import spellings


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words(
    # C99, then what C++ (CUDA) adds.
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm "
    "alignas alignof and and_eq bitand bitor bool catch char8_t char16_t char32_t class compl concept consteval "
    "constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export false "
    "friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename "
    "using virtual wchar_t xor xor_eq typeof"
)
# Names that the emitter gives itself.
_EMITTED = _words("work step count state carry i j k item_begin item_end item_shift item_times left")
_MACROS = _words(
    "linux unix i386 NULL NAN INFINITY EOF errno assert HUGE_VAL DOMAIN OVERFLOW UNDERFLOW SING PLOSS TLOSS main "
    "threadIdx blockIdx blockDim gridDim warpSize"
)
_CALLED = _words("sin cos tan atan2 exp log pow sqrt fabs floor sincos")
_LIBRARY = _words(
    "acos asin atan cosh sinh tanh acosh asinh atanh exp2 expm1 exp10 frexp ilogb ldexp log10 log1p log2 logb modf "
    "scalbn scalbln cbrt hypot erf erfc lgamma tgamma gamma ceil nearbyint rint lrint llrint round lround llround "
    "trunc fmod remainder remquo drem copysign nan nextafter nexttoward fdim fmax fmin fma j0 j1 jn y0 y1 yn "
    "significand scalb finite isnan isinf signbit abs labs llabs div malloc calloc realloc free abort exit atexit "
    "memcpy memmove memset memcmp strlen strcmp strcpy strcat printf puts rand srand qsort bsearch system time "
    "clock read write open close index signal select link pipe sleep"
)


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """`name` as an identifier of C and C++: letters, digits and underscores, no keyword, none of `taken`."""
    word = re.sub(r"\W", "_", "".join(map(_ascii, name)), flags=re.ASCII)
    word = re.sub(r"__+", "_", word).strip("_") or "x"
    if word[0].isdigit():
        word = f"x{word}"
    used = taken if isinstance(taken, Set) else set(taken)
    # `x_12` is the pattern of the values inside functions.
    if word in _KEYWORDS | _EMITTED | _MACROS | _CALLED | _with_suffix(_CALLED) or re.fullmatch(r"[a-z]_\d+", word):
        word += "_"
    plain, number = word, 2
    while word in used:
        word = f"{plain.rstrip('_')}_n{number}"
        number += 1
    return word


def function_name(name: str) -> str:
    """`name` as the identifier of a public function, which must not be one of the C library's either."""
    word = identifier(name).rstrip("_")
    plain = word not in _LIBRARY | _with_suffix(_LIBRARY) and word == identifier(word)
    return word if plain else f"{word}_program"


def _with_suffix(names: Iterable[str]) -> set[str]:
    return {f"{name}{suffix}" for name in names for suffix in "fl"}


def _ascii(letter: str) -> str:
    """Greek letters by name, since equations use them; other letters without their accents."""
    if letter.isascii():
        return letter
    words = unicodedata.name(letter, "").split()
    if words[:1] == ["GREEK"]:
        return words[3].lower() if len(words) > 3 and words[2] == "LETTER" else "_"
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "_"


def literal(x: float, precision: str) -> str:
    """A number as text that reads back as exactly this one (rounded first where `precision` is float32)."""
    if precision == "float32":
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    if math.isnan(x):
        return "NAN"
    if math.isinf(x):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    if precision == "float32":
        text = f"{x:.9g}"
        text += "f" if "." in text or "e" in text else ".0f"
    else:
        text = repr(x)
    return f"({text})" if text.startswith("-") else text


def extents(shape: Sequence[int]) -> str:
    """The shape of an array as C declares it; a single number is an array of one."""
    return "".join(f"[{n}]" for n in shape) or "[1]"


def distinct(names: Iterable[str]) -> list[str]:
    """Names as identifiers that differ, without underscores at their ends."""
    words: list[str] = []
    for name in names:
        word = identifier(name, words).rstrip("_")
        while word in words:
            word += "_next"
        words.append(word)
    return words


def comment(text: str) -> str:
    """`text` with nothing in it that could end a comment or the line."""
    return re.sub(r"[^\w .,:()\[\]+-]", ".", text, flags=re.ASCII)


class Spelling(NamedTuple):
    """An expression, and the function of `helper_functions.HELPERS` that it calls, if any.

    {0}, {1}, {2} are the operands; {f} ends the names of the C library's functions for the precision at hand; {helper}
    is the name of the helper in this file; {zero} and {one} are numbers.
    """

    text: str
    helper: str = ""


C = spellings(
    "C and CUDA",
    {
        O.NEG: Spelling("-{0}"),
        O.ADD: Spelling("{0} + {1}"),
        O.SUB: Spelling("{0} - {1}"),
        O.MUL: Spelling("{0} * {1}"),
        O.DIV: Spelling("{0} / {1}"),
        O.SQRT: Spelling("sqrt{f}({0})"),
        O.SIN: Spelling("sin{f}({0})"),
        O.COS: Spelling("cos{f}({0})"),
        O.TAN: Spelling("tan{f}({0})"),
        O.ATAN2: Spelling("atan2{f}({0}, {1})"),
        O.EXP: Spelling("exp{f}({0})"),
        O.LOG: Spelling("log{f}({0})"),
        O.POW: Spelling("pow{f}({0}, {1})"),
        O.ABS: Spelling("fabs{f}({0})"),
        O.SIGN: Spelling("{helper}({0})", "sign"),
        O.MIN: Spelling("{helper}({0}, {1})", "min"),
        O.MAX: Spelling("{helper}({0}, {1})", "max"),
        O.WHERE: Spelling("{0} != {zero} ? {1} : {2}"),
        O.FLOOR: Spelling("floor{f}({0})"),
        O.TABLE: Spelling("{helper}({table}, {0})", "table"),
        O.LT: Spelling("{0} < {1} ? {one} : {zero}"),
        O.LE: Spelling("{0} <= {1} ? {one} : {zero}"),
        O.EQ: Spelling("{0} == {1} ? {one} : {zero}"),
    },
)
