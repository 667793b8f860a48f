"""Equations as a Python module that needs nothing but `math`: one function a block."""

from __future__ import annotations

import builtins
import json
import keyword
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from linkwright.symbolic.printing.code import WIDTH, Routine, Statement, enclosed, routine, wrapped
from linkwright.symbolic.printing.count import Operations, counted
from linkwright.symbolic.printing.names import python_identifier
from linkwright.symbolic.printing.sheet import Sheet
from linkwright.symbolic.printing.walk import to_float

_MATH = {"asin", "acos", "atan", "atan2", "sin", "cos", "tan", "sqrt", "exp", "log", "sinh", "cosh", "tanh", "pow"}
# A choice is an expression: what is not chosen is not computed, and cannot divide by zero.
_INLINE = {
    "lt": "float({} < {})",
    "le": "float({} <= {})",
    "eq": "float({} == {})",
    "if": "({1} if {0} else {2})",
}
#: Functions that a module brings along; what is no number stays none.
HELPERS = {
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


class Python:
    """How Python spells things; it notes which helpers are needed."""

    reserved = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | {"math", "PARAMETERS"}

    def __init__(self) -> None:
        self.helpers: set[str] = set()

    def value(self, x: Fraction) -> float:
        return to_float(x)

    def literal(self, x: float) -> str:
        return str(int(x)) if x < 1e15 and x == int(x) else float_text(x)

    def call(self, function: str, arguments: Sequence[str]) -> str:
        if function in _INLINE:
            return _INLINE[function].format(*map(enclosed, arguments))
        if function in _MATH:
            return f"math.{function}({', '.join(arguments)})"
        if function == "abs":
            return f"abs({', '.join(arguments)})"
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
    lines = [f"# {one_line(sheet.title)}: equations of motion, {one_line(sheet.form)} form."]
    lines += [f"# {one_line(note)}" for note in sheet.notes]
    lines += ["#", f"# Cost: {total}."]
    lines += [f"#   {names[r.block.name]}: {r.operations}" for r in routines]
    lines += ["#"]
    for vector, symbols in sheet.vectors.items():
        if symbols:
            lines += wrapped([f"{one_line(s.name)}," for s in symbols], f"# {vector}: ", "#     ", WIDTH)
            lines[-1] = lines[-1].rstrip(",") + "."
    lines += ["", "import math"]
    if values:
        lines += ["", "PARAMETERS = {"]
        lines += [f"    {_key(name)}: {_value(value)}" for name, value in values.items()]
        lines += ["}"]
    for helper in sorted(language.helpers):
        lines += ["", "", HELPERS[helper]]
    for one in routines:
        lines += ["", "", *_function(sheet, one, names[one.block.name])]
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
    return [*lines, *_returned(one)]


def _assignment(statement: Statement) -> list[str]:
    terms = [statement.name, *statement.terms] if statement.again else list(statement.terms)
    line = f"    {statement.name} = {' '.join(terms)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"    {statement.name} = (", *wrapped(terms, "        ", "        ", WIDTH), "    )"]


def _returned(one: Routine) -> list[str]:
    shape, results = one.block.shape, one.results
    if not shape:
        return [f"    return {results[0]}"]
    if len(shape) == 1:
        return listed("    return [", results, "    ]")
    lines = ["    return ["]
    for row in range(shape[0]):
        lines += listed("        [", results[row * shape[1] : (row + 1) * shape[1]], "        ],", "],")
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
