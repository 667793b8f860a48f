"""C text of the functions that generated code calls: linear solvers, and what NumPy's min, max and sign do.

The solvers work in place on copies in the work array. The names `a`, `b`, `x` there are the matrices whose
neighbours may be `step` apart (a thread's numbers interleaved with those of other threads).
"""

from __future__ import annotations

import re

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
