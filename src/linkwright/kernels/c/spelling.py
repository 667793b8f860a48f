"""How C and CUDA write names, numbers and operations, and the functions that generated code calls.

The solvers work in place on copies in the work array. The names `a`, `b`, `x` there are the matrices whose
neighbours may be `step` apart (a thread's numbers interleaved with those of other threads).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np

from linkwright.kernels.sincos import COS, QUADRANTS, ROUNDING, SIN, WIDE_HALF_PI, WIDE_LIMIT
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


def numbers(kind: str, name: str, entries: Sequence[str]) -> str:
    """A constant array; an empty one gets an entry, since C has no empty arrays."""
    entries = entries or ["0"]
    rows = [", ".join(entries[k : k + 8]) for k in range(0, len(entries), 8)]
    body = ",\n".join(f"    {row}" for row in rows)
    return f"{kind} {name}[{len(entries)}] = {{\n{body}\n}};"


def switch(arms: dict[int, list[str]], key: Callable[[], str]) -> list[str]:
    """Run the arm that `key` names; equal arms are one, the last is the default."""
    joined: dict[tuple[str, ...], list[int]] = {}
    for k, lines in arms.items():
        joined.setdefault(tuple(lines), []).append(k)
    if len(joined) == 1:
        return list(next(iter(joined)))
    text = [f"switch ({key()}) {{"]
    for number, (arm, labels) in enumerate(joined.items()):
        last = number == len(joined) - 1
        text.append("default:" if last else " ".join(f"case {k}:" for k in labels))
        text += [f"    {line}" for line in (*arm, "break;")]
    return [*text, "}"]


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


_MINIMUM = """
{static} {real} {name}_min({real} a, {real} b)
{
    return a < b || a != a ? a : b;
}
"""

_MAXIMUM = """
{static} {real} {name}_max({real} a, {real} b)
{
    return a > b || a != a ? a : b;
}
"""

_SIGN = """
{static} {real} {name}_sign({real} x)
{
    return x > {zero} ? {one} : x < {zero} ? -{one} : x == {zero} ? {zero} : x;
}
"""

_TABLE = """
/* A piecewise cubic: the piece by bisection, the end pieces go on outside. */
{static} {real} {name}_table(const {real} *breaks, const {real} *pieces, {index} high, {real} x)
{
    {index} low = 0;
    while (high - low > 1) {
        const {index} middle = (low + high) / 2;
        if (x >= breaks[middle])
            low = middle;
        else
            high = middle;
    }
    x -= breaks[low];
    pieces += 4 * low;
    return ((pieces[3] * x + pieces[2]) * x + pieces[1]) * x + pieces[0];
}
"""


def _polynomial(coefficients: Sequence[float]) -> str:
    text = literal(coefficients[0], "float64")
    for c in coefficients[1:]:
        text = f"fma({text}, z, {literal(c, 'float64')})"
    return text


# CUDA's own sincos reads its coefficients from memory, and calls a function for large angles; a call takes registers
# from all that is around it, a third of the speed. Here nothing branches: with π/2 in three doubles the first product
# is exact, and n is right, for angles up to 2^40; beyond (10^12 rad, neighbours 10^-4 apart) the answer is NaN.
_SINCOS = f"""
{{static}} void {{name}}_sincos(double x, double *sine, double *cosine)
{{
    const double angle = fabs(x) < {WIDE_LIMIT} ? x : NAN;
    const double scaled = fma(angle, {QUADRANTS}, {ROUNDING}), n = scaled - {ROUNDING};
    const double r = fma(n, {-WIDE_HALF_PI[2]}, fma(n, {-WIDE_HALF_PI[1]}, fma(n, {-WIDE_HALF_PI[0]}, angle)));
    const double z = r * r;
    const double s = fma(r * z, {_polynomial(SIN)}, r);
    const double c = fma(z * z, {_polynomial(COS)}, fma(z, -0.5, 1.0));
    const int quadrant = __double2loint(scaled);
    const double even = quadrant & 1 ? c : s, odd = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -even : even;
    *cosine = (quadrant + 1) & 2 ? -odd : odd;
}}
"""

# A = L' D L from the last row up; only the lower triangle is read. {up} gives the row before, or the parent.
_SYMMETRIC = """
/* a (n, n) symmetric: {tied}; x (n, k) holds the right sides and becomes the solution. */
{static} void {name}_{method}({real} *a, {real} *x, {parameter}{index} n, {index} k{step})
{
    for ({index} r = n - 1; r >= 0; --r) {
        const {real} inverse = {one} / a[r * n + r];
        for ({index} i = {up:r}; i >= 0; i = {up:i}) {
            const {real} factor = a[r * n + i] * inverse;
            for ({index} j = i; j >= 0; j = {up:j})
                a[i * n + j] -= factor * a[r * n + j];
            a[r * n + i] = factor;
        }
        a[r * n + r] = inverse;
    }
    for ({index} r = n - 1; r >= 0; --r) {
        for ({index} i = {up:r}; i >= 0; i = {up:i})
            for ({index} c = 0; c < k; ++c)
                x[i * k + c] -= a[r * n + i] * x[r * k + c];
        for ({index} c = 0; c < k; ++c)
            x[r * k + c] *= a[r * n + r];
    }
    for ({index} r = 0; r < n; ++r)
        for ({index} i = {up:r}; i >= 0; i = {up:i})
            for ({index} c = 0; c < k; ++c)
                x[r * k + c] -= a[r * n + i] * x[i * k + c];
}
"""

_LU = """
/* a (n, n), rows exchanged for the largest pivot; b (n, k) holds the right sides and becomes the solution. */
{static} void {name}_lu({real} *a, {real} *b, {index} n, {index} k{step})
{
    for ({index} c = 0; c < n; ++c) {
        {index} pivot = c;
        for ({index} r = c + 1; r < n; ++r)
            if (fabs{f}(a[r * n + c]) > fabs{f}(a[pivot * n + c]))
                pivot = r;
        if (pivot != c) {
            for ({index} j = c; j < n; ++j) {
                const {real} kept = a[c * n + j];
                a[c * n + j] = a[pivot * n + j];
                a[pivot * n + j] = kept;
            }
            for ({index} j = 0; j < k; ++j) {
                const {real} kept = b[c * k + j];
                b[c * k + j] = b[pivot * k + j];
                b[pivot * k + j] = kept;
            }
        }
        for ({index} r = c + 1; r < n; ++r) {
            const {real} factor = a[r * n + c] / a[c * n + c];
            for ({index} j = c + 1; j < n; ++j)
                a[r * n + j] -= factor * a[c * n + j];
            for ({index} j = 0; j < k; ++j)
                b[r * k + j] -= factor * b[c * k + j];
        }
    }
    for ({index} r = n - 1; r >= 0; --r)
        for ({index} j = 0; j < k; ++j) {
            {real} left = b[r * k + j];
            for ({index} c = r + 1; c < n; ++c)
                left -= a[r * n + c] * b[c * k + j];
            b[r * k + j] = left / a[r * n + r];
        }
}
"""

# Rows are orthogonalised twice: once loses orthogonality where they are nearly dependent.
_LEAST_NORM = """
/* x (n, k), the smallest solution of a (m, n) x = b (m, k): a = L Q by Gram and Schmidt, x = Q' (L \\ b). */
{static} void {name}_least_norm({real} *a, {real} *b, {real} *x, {index} m, {index} n, {index} k{step})
{
    for ({index} r = 0; r < m; ++r) {
        {real} length = {zero};
        for (int pass = 0; pass < 2; ++pass)
            for ({index} q = 0; q < r; ++q) {
                {real} factor = {zero};
                for ({index} j = 0; j < n; ++j)
                    factor += a[r * n + j] * a[q * n + j];
                for ({index} j = 0; j < n; ++j)
                    a[r * n + j] -= factor * a[q * n + j];
                for ({index} j = 0; j < k; ++j)
                    b[r * k + j] -= factor * b[q * k + j];
            }
        for ({index} j = 0; j < n; ++j)
            length += a[r * n + j] * a[r * n + j];
        length = sqrt{f}(length);
        for ({index} j = 0; j < n; ++j)
            a[r * n + j] /= length;
        for ({index} j = 0; j < k; ++j)
            b[r * k + j] /= length;
    }
    for ({index} i = 0; i < n; ++i)
        for ({index} j = 0; j < k; ++j) {
            {real} total = {zero};
            for ({index} r = 0; r < m; ++r)
                total += a[r * n + i] * b[r * k + j];
            x[i * k + j] = total;
        }
}
"""

_CHOLESKY = _SYMMETRIC.replace("{tied}", "positive")
_LTL = _SYMMETRIC.replace("{tied}", "each row is tied to its ancestors alone")

HELPERS = {
    "min": _MINIMUM,
    "max": _MAXIMUM,
    "sign": _SIGN,
    "table": _TABLE,
    "sincos": _SINCOS,
    "cholesky": re.sub(r"\{up:(\w)\}", r"\1 - 1", _CHOLESKY).replace("{parameter}", ""),
    "ltl": re.sub(r"\{up:(\w)\}", r"parent[\1]", _LTL).replace("{parameter}", "const int *parent, "),
    "lu": _LU,
    "least_norm": _LEAST_NORM,
}
_STRIDED = ("cholesky", "ltl", "lu", "least_norm")


def helper_text(method: str, words: dict[str, str], *, strided: bool) -> str:
    """The function `method`; `words` are the dialect's types, suffixes and the prefix of names."""
    text = HELPERS[method].strip()
    words = {**words, "method": method, "step": f", {words['index']} step" if strided else ""}
    if strided and method in _STRIDED:
        text = re.sub(r"\b([abx])\[([^\]]+)\]", r"\1[(\2) * step]", text)
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), text)
