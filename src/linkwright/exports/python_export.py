"""A function for CasADi, JAX and SymPy, with its derivatives, as a module that stands alone.

CasADi and SymPy get one assignment an operation. JAX gets the operations as a table with a short interpreter: for XLA
on CPUs a loop over the table compiles in a second what takes minutes as text, on GPUs the text is better, and which it
is can only be known where the module runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.dynamics.functions import FUNCTIONS, FunctionName
from linkwright.errors import LinkwrightError
from linkwright.exports import python_templates as M
from linkwright.exports.export_folder import LEAST_IN_PYTHON, Vectors, operations, readme
from linkwright.exports.exported_function import Subject, plain
from linkwright.kernels.c.spelling import distinct
from linkwright.symbolic.printing.code_printers import listed, returned
from linkwright.tape import operations as O
from linkwright.tape.block import Block, operands_of
from linkwright.tape.build import record
from linkwright.tape.operations import CASADI_NAMES, SYMPY_NAMES, Table, spellings
from linkwright.tape.program import Buffer, Program
from linkwright.tape.runner import straightened

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
    return listed(f"{name} = (", entries, ")", ",)" if len(entries) == 1 else ")")


#: Operations of a function up to which its tape is differentiated: beside a recursion of its own, and without one.
_BESIDE, _ALONE = 1500, 4000


@dataclass(frozen=True)
class Slopes:
    """The block of all entries, and for (output, input) the rows and columns of its entries, in the block's order."""

    block: Block
    pattern: dict[tuple[int, int], tuple[list[int], list[int]]]


def slopes(subject: Subject, most: int) -> Slopes | None:
    """The derivatives of all outputs by all inputs; None where that is more than `most` operations."""
    if any(name in subject.program.count() for name in ("lt", "le", "eq", "floor")):
        return None  # conditions that choose have derivatives, but where they switch an exact pattern means little
    analytic = _analytic(subject)
    taped = _taped(subject) if subject.operations <= (_BESIDE if analytic else _ALONE) else None
    candidates = [one for one in (analytic, taped) if one is not None]
    best = min(candidates, key=lambda one: len(one.block), default=None)
    return best if best is not None and len(best.block) <= most else None


def _analytic(subject: Subject) -> Slopes | None:
    mech, program = subject.mech, subject.program
    plain = mech.nq == mech.nv and not mech.closed
    function = f"{subject.function}_derivatives"
    if function not in FUNCTIONS or not plain:
        return None
    row = FUNCTIONS[function]
    outputs = dict(zip(row.inputs, row.outputs, strict=True))  # the derivative by each input
    if {b.name for b in program.inputs} != set(outputs):
        return None  # time, parameters and wrenches have no part in the recursion
    derivatives = mech.program(cast(FunctionName, function))
    block = straightened(derivatives)
    if block is None:
        return None
    zeros = np.flatnonzero(block.constants == 0.0)
    parts = np.split(block.outputs, np.cumsum([b.size for b in derivatives.outputs]))
    matrices = {b.name: part.reshape(b.shape) for b, part in zip(derivatives.outputs, parts, strict=False)}
    pattern, chosen = {}, []
    for i, buffer in enumerate(program.inputs):
        matrix = matrices[outputs[buffer.name]]
        rows, columns = np.nonzero(~np.isin(matrix, zeros))
        pattern[0, i] = rows.tolist(), columns.tolist()
        chosen.append(matrix[rows, columns])
    return Slopes(replace(block, outputs=np.concatenate(chosen)), pattern)


def _taped(subject: Subject) -> Slopes | None:
    program = subject.program
    pattern: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    parts: list[Program] = []
    for o in range(len(program.outputs)):
        for i in range(len(program.inputs)):
            matrix = program.jacobian(o, i)
            if matrix.tangent is not None:
                return None
            pattern[o, i] = matrix.rows.tolist(), matrix.cols.tolist()
            if len(matrix.rows):
                parts.append(matrix.program)
    whole = record(
        lambda *arrays: np.concatenate([np.zeros(0), *(np.atleast_1d(part(*arrays)).reshape(-1) for part in parts)]),
        *(b.shape for b in program.inputs),
    )
    block = straightened(whole)
    return None if block is None else Slopes(block, pattern)


#: Operations up to which a library takes a module in reasonable time.
MOST = {"casadi": 50_000, "jax": 50_000, "sympy": 20_000}


def python_files(subject: Subject, vectors: Vectors, to: str) -> dict[str, str]:
    """The module and its README."""
    text = module_text(subject, vectors, to)
    name = subject.name
    use = [line.format(name=name, arrays=", ".join(names(subject)[0])) for line in M.USE[to]]
    test = [
        "```sh",
        f"pip install {to}",
        f"python {name}.py   # prints the worst error; exit code 0 if it is small",
        "```",
    ]
    cost = [operations(subject)]
    return {
        f"{name}.py": text,
        "README.md": readme(subject, vectors, ("Use", use), ("Test", test), ("Cost", cost)),
    }


def module_text(subject: Subject, vectors: Vectors, to: str) -> str:
    """The module."""
    block = straight(subject, to)
    factory = {"casadi": _casadi, "jax": _jax, "sympy": _sympy}[to]
    body = factory(subject, block)
    data = _vectors_text(subject, vectors)
    notes = "\n".join(subject.notes()).replace("\\", "/").replace('"""', "'''")
    ins, outs = names(subject)
    signature = f"({', '.join(ins)}) -> ({', '.join(outs)})"
    head = M.HEAD[to].format(title=plain(subject.title), notes=notes, arrays=signature)
    return "\n".join([head, *body, *data, M.CHECK[to].format(name=subject.name)])


def straight(subject: Subject, to: str) -> Block:
    """The program as one block, which is what these libraries take."""
    if subject.operations > MOST[to]:
        raise LinkwrightError(
            f"{subject.title} takes {subject.operations} operations; a module for {to} has at most {MOST[to]}. "
            f"Take a function with fewer{', to=casadi' if to == 'sympy' else ''}, or to=c"
        )
    block = straightened(subject.program)
    if block is None:
        raise LinkwrightError(
            f"{subject.title} has loops that end by their numbers or systems that are solved as they run, which {to} "
            "cannot hold as formulas; write it in c or cuda"
        )
    return block


def names(subject: Subject) -> tuple[list[str], list[str]]:
    """The inputs' and outputs' names as identifiers that differ."""
    words = distinct(b.name for b in (*subject.program.inputs, *subject.program.outputs))
    count = len(subject.program.inputs)
    return words[:count], words[count:]


def _shapes(buffers: Sequence[Buffer], words: Sequence[str]) -> str:
    return "{" + ", ".join(f"{w!r}: {b.shape!r}" for b, w in zip(buffers, words, strict=True)) + "}"


def _sizes(subject: Subject) -> list[str]:
    ins, outs = names(subject)
    return [
        f"NAME = {subject.name!r}",
        f"INPUTS = {_shapes(subject.program.inputs, ins)}",
        f"OUTPUTS = {_shapes(subject.program.outputs, outs)}",
    ]


def _straight_function(
    name: str, block: Block, words: Sequence[str], *, keep: str = "{0}", exact: bool = False, tables: str = ""
) -> list[str]:
    """A function of the flat inputs x: one assignment an operation that an output needs, and the list of the outputs.

    `keep` is put around every operation; `exact` writes whole numbers without a point; `tables` is what the names of
    the tables end with.
    """
    needed = set(block.needed())
    texts = [number(x, exact=exact) for x in block.constants.tolist()] + [f"x[{k}]" for k in range(block.n_inputs)]
    lines = tables_text(block.tables, tables)
    lines += [*(["", ""] if lines else []), f"def {name}(x):"]
    for k, row in enumerate(block.rows()):
        texts.append(f"v{block.first_operation + k}")
        if k in needed:
            text = words[row[0]].format(*(texts[x] for x in operands_of(row)), tables=tables, table=row[2])
            lines.append(f"    {texts[-1]} = {keep.format(text)}")
    outputs = [texts[k] for k in block.outputs.tolist()]
    return [*lines, *returned(outputs, (len(outputs),)), "", ""]


# -- CasADi ------------------------------------------------------------------------------------------------
def _casadi(subject: Subject, block: Block) -> list[str]:
    derivatives = slopes(subject, MOST["casadi"])
    lines = [*_sizes(subject), *_pattern(subject, derivatives), "", ""]
    if block.tables:
        lines += [*CASADI_TABLE.strip().splitlines(), "", ""]
    lines += _straight_function("_values", block, CASADI)
    if derivatives:
        lines += _straight_function("_slopes", derivatives.block, CASADI, tables="_OF_SLOPES")
    return [*lines, *(M.CASADI if derivatives else M.CASADI_PLAIN).strip().splitlines(), "", ""]


def _pattern(subject: Subject, derivatives: Slopes | None) -> list[str]:
    """Where the derivatives are not zero, in CasADi's order of matrices: down the columns."""
    if derivatives is None:
        return []
    ins, outs = names(subject)
    lines = ["# (output, input): rows and columns of the derivatives that are not zero, in the order of _slopes."]
    lines += ["JACOBIAN = {"]
    for (o, i), (rows, cols) in derivatives.pattern.items():
        b, c = subject.program.outputs[o], subject.program.inputs[i]
        moved = [_down(k, b) for k in rows], [_down(k, c) for k in cols]
        lines.append(f"    ({outs[o]!r}, {ins[i]!r}): ({moved[0]}, {moved[1]}),")
    return [*lines, "}"]


def _down(k: int, buffer: Buffer) -> int:
    """The place in a matrix counted down its columns, of place k counted along its rows."""
    rows = buffer.shape[0] if buffer.shape else 1
    columns = buffer.size // rows if rows else 1
    return (k % columns) * rows + k // columns if columns else k


# -- JAX and SymPy ------------------------------------------------------------------------------------------
def _jax(subject: Subject, block: Block) -> list[str]:
    ins, _ = names(subject)
    tables = tables_text(block.tables) or ["_BREAKS = _PIECES = ()"]
    tables += ["", "", *M.JAX_TABLE.strip().splitlines(), "", ""]
    code = [*_sizes(subject), f"SINGLE = {subject.program.returns_one}", *code_text(block), *tables]
    function = M.JAX_FUNCTION.format(name=subject.name, arrays=", ".join(ins), title=plain(subject.title))
    return [*code, *M.JAX.strip().splitlines(), "", "", *function.strip().splitlines(), "", ""]


def _sympy(subject: Subject, block: Block) -> list[str]:
    lines = [*_sizes(subject), "", ""]
    lines += [*SYMPY_TABLE.strip().splitlines(), "", ""] if block.tables else []
    lines += [*M.SYMPY_KEEP.strip().splitlines(), "", ""]
    lines += _straight_function("_values", block, SYMPY, keep="_keep({0})", exact=True)
    return [*lines, *M.SYMPY.strip().splitlines(), "", ""]


# -- the test vector -----------------------------------------------------------------------------------------
def _vectors_text(subject: Subject, vectors: Vectors) -> list[str]:
    ins, outs = names(subject)
    lines = [f"# {vectors.cases} states and what Linkwright computes of them, each array flattened.", "VECTORS = {"]
    for word, array in zip((*ins, *outs), (*vectors.inputs, *vectors.outputs), strict=True):
        lines.append(f"    {word!r}: [")
        lines += [f"        [{_row(row)}]," for row in array]
        lines.append("    ],")
    return [*lines, "}", f"TOLERANCE = {max(vectors.tolerance, LEAST_IN_PYTHON)!r}", "", ""]


def _row(row: Floats) -> str:
    return ", ".join(number(x).strip("()") for x in row.tolist())
