"""Straight programs as the text of Python modules for CasADi, SymPy and JAX, which need neither NumPy nor Linkwright.

CasADi and SymPy get one assignment an operation. JAX gets the operations as a table with a short interpreter: for XLA
on CPUs a loop over the table compiles in a second what takes minutes as text, on GPUs the text is better, and which it
is can only be known where the module runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.operations import CASADI_NAMES, SYMPY_NAMES, Table, spellings

_PLAIN = {O.NEG: "-{0}", O.ADD: "{0} + {1}", O.SUB: "{0} - {1}", O.MUL: "{0} * {1}", O.DIV: "{0} / {1}"}
_PLAIN |= {O.POW: "{0} ** {1}", O.TABLE: "_table({0}, _BREAKS{tables}[{table}], _PIECES{tables}[{table}])"}


def _calls(library: str, names: dict[int, str]) -> dict[int, str]:
    """Calls of a library's functions of one operand, two or three."""
    arguments = ("{0}", "{0}, {1}", "{0}, {1}, {2}")
    return {op: f"{library}.{name}({arguments[O.OPERATIONS[op].arity - 1]})" for op, name in names.items()}


#: How each library writes an operation; {0}, {1}, {2} are the operands, {table} the number of a table and {tables} what
#: the names of the tables' numbers end with.
CASADI = spellings("CasADi modules", _PLAIN | _calls("ca", CASADI_NAMES))
SYMPY = spellings(
    "SymPy modules",
    _PLAIN
    | _calls("sp", SYMPY_NAMES)
    | {
        O.LT: "sp.Piecewise((1, {0} < {1}), (0, True))",
        O.LE: "sp.Piecewise((1, {0} <= {1}), (0, True))",
        O.EQ: "sp.Piecewise((1, sp.Eq({0}, {1})), (0, True))",
        O.WHERE: "sp.Piecewise(({1}, sp.Ne({0}, 0)), ({2}, True))",
    },
)


def number(x: float, *, exact: bool = False) -> str:
    """A number as Python text that reads back as exactly this one; whole numbers as integers where that is wanted."""
    if not math.isfinite(x):
        return f'float("{x}")'
    if exact and x.is_integer() and abs(x) < 2**53:
        return str(int(x)) if x >= 0 else f"({int(x)})"
    return repr(x) if x >= 0 and math.copysign(1.0, x) > 0 else f"({x!r})"


def assignments(
    block: Block,
    inputs: Sequence[str],
    words: Sequence[str],
    *,
    keep: str = "{0}",
    exact: bool = False,
    tables: str = "",
) -> tuple[list[str], list[str]]:
    """(lines, outputs): one assignment an operation that an output needs, and the texts of the outputs.

    `keep` is put around every operation; `exact` writes whole numbers without a point; `tables` is what the names of
    the tables end with.
    """
    needed = set(block.needed())
    names = [*(number(x, exact=exact) for x in block.constants.tolist()), *inputs]
    lines = []
    for k, row in enumerate(block.rows()):
        name = f"v{block.first_operation + k}"
        names.append(name)
        if k in needed:
            text = words[row[0]].format(*(names[x] for x in O.operands_of(row)), tables=tables, table=row[2])
            lines.append(f"{name} = {keep.format(text)}")
    return lines, [names[k] for k in block.outputs.tolist()]


def tables_text(tables: Sequence[Table], suffix: str = "") -> list[str]:
    """The numbers of the tables."""
    breaks = [_tuple(map(number, t.breaks)) for t in tables]
    pieces = [_tuple(_tuple(map(number, c)) for c in t.coefficients) for t in tables]
    return [f"_BREAKS{suffix} = {_tuple(breaks)}", f"_PIECES{suffix} = {_tuple(pieces)}"] if tables else []


def _tuple(entries: Iterable[str]) -> str:
    texts = list(entries)
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


#: A piecewise cubic: the piece by bisection, the end pieces go on outside. {where}: how the library chooses.
TABLE = """
def _table(x, breaks, pieces):
    if len(pieces) == 1:
        d, (c0, c1, c2, c3) = x - breaks[0], pieces[0]
        return ((c3 * d + c2) * d + c1) * d + c0
    k = len(pieces) // 2
    low, high = _table(x, breaks[:k], pieces[:k]), _table(x, breaks[k:], pieces[k:])
    return {where}
"""
CASADI_TABLE = TABLE.replace("{where}", "ca.if_else(x >= breaks[k], high, low)")
SYMPY_TABLE = TABLE.replace("{where}", "sp.Piecewise((high, x >= breaks[k]), (low, True))")


def code_text(block: Block) -> list[str]:
    """The operations as tables of numbers: what JAX's interpreter reads."""
    rows = [f"({', '.join(map(str, row))})" for row in block.rows()]
    return [
        f"_NAMES = {tuple(o.name for o in O.OPERATIONS)!r}",
        f"_ARITY = {tuple(1 if k == O.TABLE else o.arity for k, o in enumerate(O.OPERATIONS))!r}",
        *_long("_CONSTANTS", [number(x) for x in block.constants.tolist()]),
        "# (operation, operands): numbers of values, which are the constants, then the inputs, then the results.",
        *_long("_CODE", rows),
        *_long("_OUTPUTS", [str(k) for k in block.outputs.tolist()]),
    ]


def _long(name: str, entries: Sequence[str]) -> list[str]:
    lines, line = [f"{name} = ("], "   "
    for entry in entries:
        if len(line) + len(entry) > 116:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return [*lines, *([line] if line.strip() else []), ")"]
