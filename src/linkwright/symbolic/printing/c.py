"""Equations as one file of C99 that needs nothing but `math.h`: one function a block, no memory of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from linkwright.kernels.c.identifiers import comment, function_name
from linkwright.kernels.c.identifiers import literal as c_literal
from linkwright.symbolic.printing.code import WIDTH, Routine, Statement, enclosed, routine, wrapped
from linkwright.symbolic.printing.count import Operations
from linkwright.symbolic.printing.names import ascii_identifier, folded
from linkwright.symbolic.printing.sheet import Sheet, used
from linkwright.symbolic.printing.walk import to_float

_NAMES = {"abs": "fabs"}
_INLINE = {
    "lt": "({} < {} ? 1.0 : 0.0)",
    "le": "({} <= {} ? 1.0 : 0.0)",
    "eq": "({} == {} ? 1.0 : 0.0)",
    "if": "({} != 0.0 ? {} : {})",
}
#: Functions that a file brings along; what is no number stays none, which fmin and fmax would lose.
HELPERS = {
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
# Functions that are to stay apart; only for compilers that know how to be told.
_APART = "STAYS_APART"
_DEFINED = "#if defined(__GNUC__)\n#define STAYS_APART __attribute__((noinline))\n#else\n#define STAYS_APART\n#endif\n"


class C:
    """How C spells things; it notes which helpers are needed."""

    reserved = frozenset({*_USED.split(), *(f"{name}_of" for name in HELPERS)})

    def __init__(self) -> None:
        self.helpers: set[str] = set()

    def value(self, x: Fraction) -> float:
        return to_float(x)

    def literal(self, x: float) -> str:
        return c_literal(x, "float64")

    def call(self, function: str, arguments: Sequence[str]) -> str:
        if function in _INLINE:
            return _INLINE[function].format(*map(enclosed, arguments))
        if function in HELPERS:
            self.helpers.add(function)
            return f"{function}_of({', '.join(arguments)})"
        return f"{_NAMES.get(function, function)}({', '.join(arguments)})"

    def identifier(self, name: str, taken: Iterable[str]) -> str:
        return ascii_identifier(name, taken)


def c_source(sheet: Sheet) -> str:
    """A file with a struct of the parameters and one function a block, named after the title."""
    language = C()
    routines = [routine(sheet, block, language) for block in sheet.blocks]
    values = sheet.values
    prefix = function_name(folded(sheet.title) or "equations")
    members: dict[str, str] = {}
    for name in values:
        members[name] = ascii_identifier(name, members.values())
    total = sum((r.operations for r in routines), Operations())
    names: list[str] = []
    for one in routines:
        names.append(f"{prefix}_{ascii_identifier(one.block.name, ()).rstrip('_')}")
        while names[-1] in names[:-1] or names[-1] in (f"{prefix}_parameters", f"{prefix}_values"):
            names[-1] += "_block"
    lines = [f"/* {comment(folded(sheet.title))}: equations of motion, {comment(sheet.form)} form."]
    lines += [f" * {comment(folded(note))}" for note in sheet.notes]
    lines += [" *", f" * Cost: {total}."]
    lines += [f" *   {name}: {one.operations}" for name, one in zip(names, routines, strict=True)]
    lines += [" *"]
    for vector, symbols in sheet.vectors.items():
        if symbols:
            lines += wrapped([f"{comment(folded(s.name))}," for s in symbols], f" * {vector}: ", " *     ", WIDTH)
            lines[-1] = lines[-1].rstrip(",") + "."
    lines += [" */", "#include <math.h>", ""]
    if any(statement.again for one in routines for statement in one.statements):
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
    for helper in sorted(language.helpers):
        lines += [HELPERS[helper], ""]
    for one, name in zip(routines, names, strict=True):
        lines += [*_function(sheet, one, name, prefix, members), ""]
    return "\n".join(lines[:-1]) + "\n"


def _function(sheet: Sheet, one: Routine, name: str, prefix: str, members: dict[str, str]) -> list[str]:
    shape = one.block.shape
    arguments = [f"const double {v.name}[{len(v.symbols)}]" for v in one.vectors]
    arguments += [f"double {one.names[s]}" for s in one.scalars]
    if members:
        arguments.append(f"const {prefix}_parameters *p")
    if shape:
        arguments.append(f"double out{''.join(f'[{n}]' for n in shape)}")
    pieces = _Pieces(one, name)
    lines = [*pieces.functions, f"/* {comment(folded(sheet.heading(one.block)))}: {one.operations}. */"]
    lines += [f"{'void' if shape else 'double'} {name}({', '.join(arguments) or 'void'})", "{"]
    needed = used(one.block)
    for v in one.vectors:
        here = [(k, one.names[s.name]) for k, s in enumerate(v.symbols) if s.name in needed]
        lines += [f"    const double {word} = {v.name}[{k}];" for k, word in here]
        lines += [] if here else [f"    (void){v.name};"]
    lines += [f"    const double {one.names[n]} = p->{members[n]};" for n in one.parameters]
    if members and not one.parameters:
        lines.append("    (void)p;")
    if pieces.shared:
        lines.append(f"    {name}_values at;")
        lines += [f"    at.{word} = {word};" for word in one.names.values() if word in pieces.shared]
    for k, statement in enumerate(one.statements):
        lines += [pieces.calls[k]] if k in pieces.calls else _assignment(statement)
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
            given = f"&at, {statement.name}" if statement.again else "&at"
            kind = "" if statement.again else "double "
            self.calls[k] = f"    {kind}{statement.name} = {name}_{number}({given});"
        fields = [f"    double {word};" for word in self.shared]
        self.functions = ["typedef struct {", *fields, f"}} {name}_values;", "", *bodies]


def _assignment(statement: Statement) -> list[str]:
    terms = [*statement.terms[:-1], f"{statement.terms[-1]};"]
    return wrapped(terms, f"    const double {statement.name} = ", "        ", WIDTH)
