"""Names, numbers and expressions as the text of a `.mks` file, with no more parentheses than they need."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from linkwright.errors import ModelError
from linkwright.formats.mks.syntax import MAX_DEPTH, MAX_NAME
from linkwright.formats.mks.values import CALLS, CONSTANTS
from linkwright.model.expression import Call, Expression, Lookup, Name, Number

_PLAIN = re.compile(r"[^\W\d]\w*")
_COMPARED, _SUM, _PRODUCT, _SIGNED, _ATOM = range(5)
#: operation → sign, its own level, the least level of its left and right operand
_INFIX = {
    "lt": ("<", _COMPARED, _SUM, _SUM),
    "le": ("<=", _COMPARED, _SUM, _SUM),
    "add": ("+", _SUM, _SUM, _PRODUCT),
    "sub": ("-", _SUM, _SUM, _PRODUCT),
    "mul": ("*", _PRODUCT, _PRODUCT, _SIGNED),
    "div": ("/", _PRODUCT, _PRODUCT, _SIGNED),
    "pow": ("^", _SIGNED, _ATOM, _SIGNED),
}
_WRITTEN = {inside: outside for outside, inside in CALLS.items()}  # of two names for one function the last


@dataclass(frozen=True)
class Spelled(Expression):
    """A leaf whose text is known: the name of a coordinate or a distance."""

    text: str


def name_text(name: str) -> str:
    """A name as it stands in a file: in quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name) and len(name) <= MAX_NAME:
        return name
    if not name.strip() or len(name) > MAX_NAME or re.search(r'["\n\r]', name):
        raise ModelError(f"{name[:80]!r} cannot be a name in a .mks file; rename it", element=name)
    return f'"{name}"'


def number_text(value: float) -> str:
    """The shortest text that reads as this number."""
    if not math.isfinite(value):
        raise ModelError(f"the number {value} cannot be written in a .mks file")
    return repr(float(value)).removesuffix(".0")


def expression_text(expression: Expression) -> str:
    """An expression whose reading gives the same tree."""
    try:
        return _text(expression, 0)[0]
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> ModelError:
    text = f"an expression has more than {MAX_DEPTH} operations one inside the other; .mks files cannot hold that"
    return ModelError(text)


def _text(e: Expression, depth: int) -> tuple[str, int]:
    """Text and level."""
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(e, Number):
        if e.value == math.pi:
            return "pi", _ATOM
        return number_text(e.value), _SIGNED if math.copysign(1.0, e.value) < 0.0 else _ATOM
    if isinstance(e, Spelled):
        return e.text, _ATOM
    if isinstance(e, Name):
        reserved = e.name != "TIME" and e.name.lower() in (*CONSTANTS, "time")
        return f'"{e.name}"' if reserved else name_text(e.name), _ATOM
    if isinstance(e, Lookup):
        return _table(e, depth), _ATOM
    assert isinstance(e, Call)
    if e.function == "neg":
        operand = e.arguments[0]
        # A sign before a literal would make it a literal below zero.
        level = _ATOM + 1 if isinstance(operand, Number) or _is_neg(operand) else _SIGNED
        return f"-{_within(operand, level, depth)}", _SIGNED
    if e.function in _INFIX:
        sign, binding, left, right = _INFIX[e.function]
        a, b = (_within(x, level, depth) for x, level in zip(e.arguments, (left, right), strict=True))
        return (f"{a}{sign}{b}" if sign in "*/^" else f"{a} {sign} {b}"), binding
    inner = ", ".join(_text(a, depth + 1)[0] for a in e.arguments)
    return f"{_WRITTEN[e.function]}({inner})", _ATOM


def _is_neg(e: Expression) -> bool:
    return isinstance(e, Call) and e.function == "neg"


def _within(e: Expression, least: int, depth: int) -> str:
    text, level = _text(e, depth + 1)
    return text if level >= least else f"({text})"


def _table(e: Lookup, depth: int) -> str:
    points = e.table.points()
    spline = type(e.table).spline(*zip(*points, strict=True))
    mine, theirs = np.array(spline.coefficients), np.array(e.table.coefficients)
    if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max()):
        raise ModelError("a table is no natural spline through its points; .mks files cannot hold it")
    shown = ", ".join(f"({number_text(x)}, {number_text(y)})" for x, y in points)
    return f"table({_text(e.argument, depth + 1)[0]}, {shown})"
