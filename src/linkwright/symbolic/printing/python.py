"""Equations as a Python module that needs nothing but `math`: one function a block."""

from __future__ import annotations

import builtins
import json
import keyword
import math
from collections.abc import Iterable, Sequence

from linkwright.symbolic.printing.code import Routine, Statement, routine, wrapped
from linkwright.symbolic.printing.count import Operations
from linkwright.symbolic.printing.names import python_identifier
from linkwright.symbolic.printing.sheet import Sheet

_WIDTH = 110
_MATH = {"asin", "acos", "atan", "atan2", "sin", "cos", "tan", "sqrt", "exp", "log", "sinh", "cosh", "tanh", "pow"}
_BUILTIN = {"abs", "min", "max"}
_HELPERS = {
    "floor": "def _floor(x):\n    return float(math.floor(x))",
    "sign": "def _sign(x):\n    return math.copysign(1.0, x) if x else 0.0",
    "lt": "def _lt(x, y):\n    return 1.0 if x < y else 0.0",
    "le": "def _le(x, y):\n    return 1.0 if x <= y else 0.0",
    "if": "def _if(condition, x, y):\n    return x if condition else y",
    "step": (
        "def _step(x, x0, y0, x1, y1):\n"
        "    s = min(max((x - x0) / (x1 - x0), 0.0), 1.0)\n"
        "    return y0 + (y1 - y0) * s * s * (3.0 - 2.0 * s)"
    ),
}


class Python:
    """How Python spells things; it notes which helpers are needed."""

    reserved = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | {"math", "PARAMETERS"}

    def __init__(self) -> None:
        self.helpers: set[str] = set()

    def literal(self, x: float) -> str:
        return str(int(x)) if x == int(x) and x < 1e15 else repr(x)

    def call(self, function: str, arguments: Sequence[str]) -> str:
        if function in _MATH:
            return f"math.{function}({', '.join(arguments)})"
        if function in _BUILTIN:
            return f"{function}({', '.join(arguments)})"
        self.helpers.add(function)
        return f"_{function}({', '.join(arguments)})"

    def identifier(self, name: str, taken: Iterable[str]) -> str:
        return python_identifier(name, taken)


def python_module(sheet: Sheet) -> str:
    """A module with `PARAMETERS` (name → value) and one function a block, such as M(q, p) and h(q, dq, p)."""
    language = Python()
    routines = [routine(sheet, block, language) for block in sheet.blocks]
    values = sheet.values
    names: dict[str, str] = {}
    for block in sheet.blocks:
        names[block.name] = python_identifier(block.name, {*Python.reserved, *names.values()})
    total = sum((r.operations for r in routines), Operations())
    lines = [f"# {_line(sheet.title)}: equations of motion, {_line(sheet.form)} form."]
    lines += [f"# {_line(note)}" for note in sheet.notes]
    lines += ["#", f"# Cost: {total}."]
    lines += [f"#   {names[r.block.name]}: {r.operations}" for r in routines]
    lines += ["#"]
    for vector, symbols in (("q", sheet.coordinates), ("dq", sheet.rates), ("ddq", sheet.accelerations)):
        if symbols:
            lines += wrapped([f"{_line(s.name)}," for s in symbols], f"# {vector}: ", "#     ", _WIDTH)
            lines[-1] = lines[-1].rstrip(",") + "."
    lines += ["", "import math"]
    if values:
        lines += ["", "PARAMETERS = {"]
        lines += [f"    {_key(name)}: {_value(value)}" for name, value in values.items()]
        lines += ["}"]
    for helper in sorted(language.helpers):
        lines += ["", "", _HELPERS[helper]]
    for one in routines:
        lines += ["", "", *_function(sheet, one, names[one.block.name])]
    return "\n".join(lines) + "\n"


def _function(sheet: Sheet, one: Routine, name: str) -> list[str]:
    values = sheet.values
    arguments = [*(v.name for v in one.vectors), *(one.names[s] for s in one.scalars)]
    if values:
        arguments.append("p" if None in values.values() else "p=PARAMETERS")
    shape = one.block.shape
    kind = {0: "a number", 1: "a list of {}", 2: "{} lists of {}"}[len(shape)].format(*shape)
    lines = [f"def {name}({', '.join(arguments)}):"]
    lines.append(f'    """{_line(sheet.heading(one.block))}: {kind}. {one.operations}."""')
    for vector in one.vectors:
        unpacked = ", ".join(one.names[s.name] for s in vector.symbols)
        pieces = [f"{one.names[s.name]}," for s in vector.symbols]
        if len(unpacked) > _WIDTH - 12:
            lines += [*wrapped(["(", *pieces], "    ", "        ", _WIDTH), f"    ) = {vector.name}"]
        else:
            lines.append(f"    {unpacked}{',' if len(pieces) == 1 else ''} = {vector.name}")
    lines += [f"    {one.names[n]} = p[{_key(n)}]" for n in one.parameters]
    for statement in one.statements:
        lines += _assignment(statement)
    return [*lines, *_returned(one)]


def _assignment(statement: Statement) -> list[str]:
    terms = [statement.name, *statement.terms] if statement.again else list(statement.terms)
    line = f"    {statement.name} = {' '.join(terms)}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"    {statement.name} = (", *wrapped(terms, "        ", "        ", _WIDTH), "    )"]


def _returned(one: Routine) -> list[str]:
    shape, results = one.block.shape, one.results
    if not shape:
        return [f"    return {results[0]}"]
    if len(shape) == 1:
        return _list("    return [", results, "    ]")
    lines = ["    return ["]
    for row in range(shape[0]):
        lines += _list("        [", results[row * shape[1] : (row + 1) * shape[1]], "        ],", "],")
    return [*lines, "    ]"]


def _list(opening: str, items: Sequence[str], closing: str, end: str = "]") -> list[str]:
    line = f"{opening}{', '.join(items)}{end}"
    if len(line) <= _WIDTH:
        return [line]
    indent = " " * (len(closing) - len(closing.lstrip()) + 4)
    return [opening, *wrapped([f"{item}," for item in items], indent, indent, _WIDTH), closing]


def _value(x: float | None) -> str:
    if x is None:
        return "None,  # give a value"
    return f"{float(x)!r}," if math.isfinite(x) else f'float("{x}"),'


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _line(text: str) -> str:
    """Text that stays within a comment or docstring: one line, nothing that could end it."""
    return " ".join("".join(c if c.isprintable() and c not in '"\\' else " " for c in text).split())
