"""Equations as a Python module that needs nothing but `math`, and as one file of C99 that needs nothing but
`math.h`; and what blocks cost: the operations of this code, counted as they are written.
"""

from __future__ import annotations

import builtins
import json
import keyword
import math
import re
from collections.abc import Sequence
from dataclasses import astuple
from fractions import Fraction
from typing import ClassVar

from linkwright.base.arguments import counted
from linkwright.kernels.c.spelling import comment, function_name
from linkwright.kernels.c.spelling import literal as c_literal
from linkwright.symbolic.formulas.formula import Block
from linkwright.symbolic.printing.code_statements import (
    WIDTH,
    Language,
    Operations,
    Routine,
    Statement,
    header,
    wrapped,
)
from linkwright.symbolic.printing.printed_sheet import Sheet, ascii_identifier, folded, python_identifier, size, used

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

    identifier = staticmethod(python_identifier)


def python_module(sheet: Sheet) -> str:
    """A module with `PARAMETERS` (name → value) and one function a block, such as M(q, p) and h(q, dq, p)."""
    language, values = Python(), sheet.values
    functions: dict[str, Routine] = {}
    for block in sheet.blocks:
        name = python_identifier(block.name, {*Python.reserved, *functions})
        functions[name] = Routine(sheet, block, language)
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
    arguments = [*one.vectors, *(one.names[s] for s in one.scalars)]
    if values:
        arguments.append("p" if None in values.values() else "p=PARAMETERS")
    shape = one.block.shape
    lists = counted(shape[0], "list") if len(shape) == 2 else "a list"
    kind = f"{lists} of {shape[-1]}" if shape else "a number"
    lines = [f"def {name}({', '.join(arguments)}):"]
    lines.append(f'    """{one_line(sheet.heading(one.block))}: {kind}. {one.operations.sentence}"""')
    for vector, symbols in one.vectors.items():
        unpacked = ", ".join(one.names[s.name] for s in symbols)
        pieces = [f"{one.names[s.name]}," for s in symbols]
        if len(unpacked) > WIDTH - 12:
            lines += [*wrapped(["(", *pieces], "    ", "        ", WIDTH), f"    ) = {vector}"]
        else:
            lines.append(f"    {unpacked}{',' if len(pieces) == 1 else ''} = {vector}")
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


_C_INLINE = {
    "lt": "({} < {} ? 1.0 : 0.0)",
    "le": "({} <= {} ? 1.0 : 0.0)",
    "eq": "({} == {} ? 1.0 : 0.0)",
    "if": "({} != 0.0 ? {} : {})",
}
# What is no number stays none, which fmin and fmax would lose.
_C_HELPERS = {
    "sign": "static double sign_of(double x)\n{\n    return x != x ? x : (double)((x > 0.0) - (x < 0.0));\n}",
    "min": "static double min_of(double x, double y)\n{\n    return x != x || x < y ? x : y;\n}",
    "max": "static double max_of(double x, double y)\n{\n    return x != x || x > y ? x : y;\n}",
    "step": (
        "static double step_of(double x, double x0, double y0, double x1, double y1)\n{\n"
        "    const double s = fmin(fmax((x - x0)/(x1 - x0), 0.0), 1.0);\n"
        "    return y0 + (y1 - y0)*s*s*(3.0 - 2.0*s);\n}"
    ),
}
_USED = "sin cos tan asin acos atan atan2 sqrt exp log sinh cosh tanh pow floor fabs fmin fmax out at sum"
_WORDS = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Functions that are to stay apart; only for compilers that have an attribute for it.
_APART = "STAYS_APART"
_DEFINED = "#if defined(__GNUC__)\n#define STAYS_APART __attribute__((noinline))\n#else\n#define STAYS_APART\n#endif\n"


class C(Language):
    """How C spells things."""

    inline, helpers = _C_INLINE, _C_HELPERS
    names: ClassVar = {"abs": "fabs", **{name: f"{name}_of" for name in _C_HELPERS}}
    reserved = frozenset({*_USED.split(), *(f"{name}_of" for name in _C_HELPERS)})

    def literal(self, x: float) -> str:
        return c_literal(x, "float64")

    identifier = staticmethod(ascii_identifier)


def c_source(sheet: Sheet) -> str:
    """A file with a struct of the parameters and one function a block, named after the title."""
    language, values = C(), sheet.values
    prefix = function_name(folded(sheet.title) or "equations")
    members: dict[str, str] = {}
    for name in values:
        members[name] = ascii_identifier(name, members.values())
    functions: dict[str, Routine] = {}
    for block in sheet.blocks:
        name = f"{prefix}_{ascii_identifier(block.name, ()).rstrip('_')}"
        while name in functions or name in (f"{prefix}_parameters", f"{prefix}_values"):
            name += "_block"
        functions[name] = Routine(sheet, block, language)
    lines = header(sheet, functions, " *", c_comment)
    lines[0] = lines[0].replace(" *", "/*", 1)
    lines += [" */", "#include <math.h>", ""]
    if any(statement.again for one in functions.values() for statement in one.statements):
        lines += [_DEFINED]
    if values:
        lines += ["typedef struct {"]
        written = {n: "" if v is None else c_literal(v, "float64") for n, v in values.items()}
        lines += [f"    double {members[n]};{v and f' /* {v} */'}" for n, v in written.items()]
        lines += [f"}} {prefix}_parameters;", ""]
        if all(written.values()):
            lines += [f"const {prefix}_parameters {prefix}_values = {{"]
            lines += [f"    .{members[n]} = {v}," for n, v in written.items()]
            lines += ["};", ""]
    for helper in language.brought:
        lines += [helper, ""]
    for name, one in functions.items():
        lines += [*_c_function(sheet, one, name, prefix, members), ""]
    return "\n".join(lines[:-1]) + "\n"


def c_comment(text: str) -> str:
    """Text that stays within a comment, in ASCII."""
    return comment(folded(text))


def _c_function(sheet: Sheet, one: Routine, name: str, prefix: str, members: dict[str, str]) -> list[str]:
    shape = one.block.shape
    arguments = [f"const double {vector}[{len(symbols)}]" for vector, symbols in one.vectors.items()]
    arguments += [f"double {one.names[s]}" for s in one.scalars]
    if members:
        arguments.append(f"const {prefix}_parameters *p")
    if shape:
        arguments.append(f"double out{''.join(f'[{n}]' for n in shape)}")
    pieces = _Pieces(one, name)
    lines = [*pieces.functions, f"/* {c_comment(sheet.heading(one.block))}: {one.operations}. */"]
    lines += [f"{'void' if shape else 'double'} {name}({', '.join(arguments) or 'void'})", "{"]
    needed = used(one.block)
    for vector, symbols in one.vectors.items():
        here = [(k, one.names[s.name]) for k, s in enumerate(symbols) if s.name in needed]
        lines += [f"    const double {word} = {vector}[{k}];" for k, word in here]
        lines += [] if here else [f"    (void){vector};"]
    lines += [f"    const double {one.names[n]} = p->{members[n]};" for n in one.parameters]
    if members and not one.parameters:
        lines.append("    (void)p;")
    if pieces.shared:
        lines.append(f"    {name}_values at;")
        lines += [f"    at.{word} = {word};" for word in one.names.values() if word in pieces.shared]
    for k, statement in enumerate(one.statements):
        lines += [pieces.calls[k]] if k in pieces.calls else _c_assignment(statement)
        last = k + 1 == len(one.statements) or one.statements[k + 1].name != statement.name
        if last and statement.name in pieces.shared:
            lines.append(f"    at.{statement.name} = {statement.name};")
    if not shape:
        return [*lines, f"    return {one.results[0]};", "}"]
    for k, result in enumerate(one.results):
        place = f"[{k}]" if len(shape) == 1 else f"[{k // shape[1]}][{k % shape[1]}]"
        lines.append(f"    out{place} = {result};")
    return [*lines, "}"]


class _Pieces:
    """The pieces of long sums as functions of their own, of a struct of the values that they share.

    A compiler's time for one function grows with the square of its length: thousands of terms would take minutes.
    """

    def __init__(self, one: Routine, name: str) -> None:
        self.shared: dict[str, None] = {}
        self.calls: dict[int, str] = {}
        self.functions: list[str] = []
        long = {s.name for s in one.statements if s.again}
        if not long:
            return
        known = {*one.names.values(), *(s.name for s in one.statements)}
        bodies = []
        for k, statement in enumerate(one.statements):
            if statement.name not in long:
                continue
            number = len(self.calls) + 1
            words = dict.fromkeys(w for term in statement.terms for w in _WORDS.findall(term) if w in known)
            self.shared |= words
            sum_ = ", double sum" if statement.again else ""
            terms = ["sum", *statement.terms] if statement.again else list(statement.terms)
            bodies += [f"static {_APART} double {name}_{number}(const {name}_values *at{sum_})", "{"]
            bodies += [f"    const double {word} = at->{word};" for word in words]
            bodies += [*wrapped([*terms[:-1], f"{terms[-1]};"], "    return ", "        ", WIDTH), "}", ""]
            arguments = f"&at, {statement.name}" if statement.again else "&at"
            kind = "" if statement.again else "double "
            self.calls[k] = f"    {kind}{statement.name} = {name}_{number}({arguments});"
        fields = [f"    double {word};" for word in self.shared]
        self.functions = ["typedef struct {", *fields, f"}} {name}_values;", "", *bodies]


def _c_assignment(statement: Statement) -> list[str]:
    terms = [*statement.terms[:-1], f"{statement.terms[-1]};"]
    return wrapped(terms, f"    const double {statement.name} = ", "        ", WIDTH)


# -- cost ------------------------------------------------------------------------------------------------------------
#: The columns of `costs`.
COSTS = ("terms", "additions", "multiplications", "divisions", "functions")


def costs(sheet: Sheet) -> tuple[list[tuple[Block, tuple[int, ...]]], tuple[int, ...]]:
    """Of each block its terms, additions, multiplications, divisions and functions; and their total over all blocks."""
    each = [(block, (size(block), *astuple(operations(block)))) for block in sheet.blocks]
    total = tuple(map(sum, zip(*(numbers for _, numbers in each), strict=True)))
    return each, total or (0,) * len(COSTS)


def operations(what: Sheet | Block) -> Operations:
    """The operations of the printed code of a block, or of all blocks of a sheet together.

    A cosine, a sine, a power and a bracket that recur within a block are computed once; x² is one multiplication.
    """
    if isinstance(what, Sheet):
        return sum((operations(block) for block in what.blocks), Operations())
    return Routine(Sheet("", "", (what,), ()), what, _Counted()).operations


class _Counted(Python):
    """Holds every number: what counts is that there is one."""

    def value(self, x: Fraction) -> float:
        return 2.0
