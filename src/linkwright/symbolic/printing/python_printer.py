"""Equations as a Python module that needs nothing but `math`: one function a block."""

from __future__ import annotations

import builtins
import json
import keyword
import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

from linkwright.symbolic.printing.code import WIDTH, Language, Routine, Statement, counted, header, routine, wrapped
from linkwright.symbolic.printing.sheet import Sheet
from linkwright.symbolic.printing.symbol_names import python_identifier

_MATH = ("asin", "acos", "atan", "atan2", "sin", "cos", "tan", "sqrt", "exp", "log", "sinh", "cosh", "tanh", "pow")
# A choice is an expression: what is not chosen is not computed, and cannot divide by zero.
_INLINE = {
    "lt": "float({} < {})",
    "le": "float({} <= {})",
    "eq": "float({} == {})",
    "if": "({1} if {0} else {2})",
}
# What is no number stays none.
_HELPERS = {
    "floor": "def _floor(x):\n    return float(math.floor(x))",
    "sign": "def _sign(x):\n    return x if x != x else float((x > 0.0) - (x < 0.0))",
    "min": "def _min(x, y):\n    return x if x != x or x < y else y",
    "max": "def _max(x, y):\n    return x if x != x or x > y else y",
    "step": (
        "def _step(x, x0, y0, x1, y1):\n"
        "    s = min(max((x - x0) / (x1 - x0), 0.0), 1.0)\n"
        "    return y0 + (y1 - y0) * s * s * (3.0 - 2.0 * s)"
    ),
}


class Python(Language):
    """How Python spells things."""

    inline, helpers = _INLINE, _HELPERS
    names: ClassVar = {**{name: f"math.{name}" for name in _MATH}, **{name: f"_{name}" for name in _HELPERS}}
    reserved = frozenset({*keyword.kwlist, *dir(builtins), "math", "PARAMETERS"})

    def literal(self, x: float) -> str:
        return str(int(x)) if x < 1e15 and x == int(x) else float_text(x)

    def identifier(self, name: str, taken: Iterable[str]) -> str:
        return python_identifier(name, taken)


def python_module(sheet: Sheet) -> str:
    """A module with `PARAMETERS` (name → value) and one function a block, such as M(q, p) and h(q, dq, p)."""
    language, values = Python(), sheet.values
    functions: dict[str, Routine] = {}
    for block in sheet.blocks:
        name = python_identifier(block.name, {*Python.reserved, *functions})
        functions[name] = routine(sheet, block, language)
    lines = header(sheet, functions, "#", one_line)
    lines += ["", "import math"]
    if values:
        lines += ["", "PARAMETERS = {"]
        lines += [f"    {_key(name)}: {_value(value)}" for name, value in values.items()]
        lines += ["}"]
    for helper in language.brought:
        lines += ["", "", helper]
    for name, one in functions.items():
        lines += ["", "", *_function(sheet, one, name)]
    return "\n".join(lines) + "\n"


def _function(sheet: Sheet, one: Routine, name: str) -> list[str]:
    values = sheet.values
    arguments = [*(v.name for v in one.vectors), *(one.names[s] for s in one.scalars)]
    if values:
        arguments.append("p" if None in values.values() else "p=PARAMETERS")
    shape = one.block.shape
    lists = counted(shape[0], "list") if len(shape) == 2 else "a list"
    kind = f"{lists} of {shape[-1]}" if shape else "a number"
    lines = [f"def {name}({', '.join(arguments)}):"]
    lines.append(f'    """{one_line(sheet.heading(one.block))}: {kind}. {one.operations.sentence}"""')
    for vector in one.vectors:
        unpacked = ", ".join(one.names[s.name] for s in vector.symbols)
        pieces = [f"{one.names[s.name]}," for s in vector.symbols]
        if len(unpacked) > WIDTH - 12:
            lines += [*wrapped(["(", *pieces], "    ", "        ", WIDTH), f"    ) = {vector.name}"]
        else:
            lines.append(f"    {unpacked}{',' if len(pieces) == 1 else ''} = {vector.name}")
    lines += [f"    {one.names[n]} = p[{_key(n)}]" for n in one.parameters]
    for statement in one.statements:
        lines += _assignment(statement)
    return [*lines, *returned(one.results, shape)]


def _assignment(statement: Statement) -> list[str]:
    terms = [statement.name, *statement.terms] if statement.again else list(statement.terms)
    line = f"    {statement.name} = {' '.join(terms)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"    {statement.name} = (", *wrapped(terms, "        ", "        ", WIDTH), "    )"]


def returned(entries: Sequence[str], shape: tuple[int, ...]) -> list[str]:
    """The statement that gives back one entry, a list of entries, or a list of rows."""
    if not shape:
        return [f"    return {entries[0]}"]
    if len(shape) == 1:
        return listed("    return [", entries, "    ]")
    lines = ["    return ["]
    for row in range(shape[0]):
        lines += listed("        [", entries[row * shape[1] : (row + 1) * shape[1]], "        ],", "],")
    return [*lines, "    ]"]


def listed(opening: str, items: Sequence[str], closing: str, end: str = "]") -> list[str]:
    """A list in one line that ends with `end`, or in several, of which the last is `closing`."""
    line = f"{opening}{', '.join(items)}{end}"
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(closing) - len(closing.lstrip()) + 4)
    return [opening, *wrapped([f"{item}," for item in items], indent, indent, WIDTH), closing]


def _value(x: float | None) -> str:
    return "None,  # give a value" if x is None else f"{float_text(x)},"


def float_text(x: float) -> str:
    """A number that Python reads as this float."""
    return repr(float(x)) if math.isfinite(x) else f'float("{x}")'


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=not name.isprintable())


def one_line(text: str) -> str:
    """Text that stays within a comment or docstring: one line, nothing that could end it."""
    return " ".join("".join(c if c.isprintable() and c not in '"\\' else " " for c in text).split())
