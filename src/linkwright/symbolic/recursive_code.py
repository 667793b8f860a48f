"""The recursive form as Python and C: one function, its operation count in the header."""

from __future__ import annotations

import keyword
import math
import textwrap
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from linkwright.kernels.ctext_names import comment, function_name, identifier, literal
from linkwright.symbolic.formula import Symbol
from linkwright.symbolic.steps import Node, Operation, Style, write
from linkwright.tape import operations as O

if TYPE_CHECKING:
    from linkwright.symbolic.recursive import Input, Recursive

_MATH = {
    O.SQRT: "sqrt",
    O.SIN: "sin",
    O.COS: "cos",
    O.TAN: "tan",
    O.ATAN2: "atan2",
    O.EXP: "exp",
    O.LOG: "log",
    O.POW: "pow",
}
_HELPERS = {O.SIGN: "sign", O.MIN: "smaller", O.MAX: "larger"}
_COMPARED = {O.LT: "<", O.LE: "<=", O.EQ: "=="}
_PYTHON_HELPERS = {
    O.SIGN: "def sign(x):\n    return x if x != x else float((x > 0.0) - (x < 0.0))\n",
    O.MIN: "def smaller(x, y):\n    return x if x != x or x < y else y\n",
    O.MAX: "def larger(x, y):\n    return x if x != x or x > y else y\n",
}
_C_HELPERS = {
    O.SIGN: "static double sign(double x)\n{\n    return x != x ? x : (double)((x > 0.0) - (x < 0.0));\n}\n",
    O.MIN: "static double smaller(double x, double y)\n{\n    return x != x || x < y ? x : y;\n}\n",
    O.MAX: "static double larger(double x, double y)\n{\n    return x != x || x > y ? x : y;\n}\n",
}
_OWN = frozenset((*_MATH.values(), *_HELPERS.values(), "fabs", "abs", "floor", "float", "None", "True", "False"))


def python(form: Recursive, name: str | None = None) -> str:
    """A module with one function; its arguments are sequences of floats, its results lists."""
    function, names, arrays = _names(form, name)
    used = {node.op for node in _operations(form)}
    functions = {op: _call(word) for op, word in (_MATH | _HELPERS).items()}
    functions[O.ABS], functions[O.FLOOR] = _call("abs"), lambda x: f"float(floor({x}))"
    functions[O.WHERE] = lambda c, a, b: f"(({a}) if ({c}) else ({b}))"
    functions |= {op: _float_of(sign) for op, sign in _COMPARED.items()}
    style = Style(lambda s: names[s.name], _python_number, lambda a, b: f"{a}*{b}", None, lambda x: f"({x})", functions)
    imported = sorted({_MATH[op] for op in used & _MATH.keys()} | ({"floor"} if O.FLOOR in used else set()))
    lines = ['"""' + "\n".join(_header(form, names)).replace("\\", "/").replace('"', "'"), '"""', ""]
    lines += [f"from math import {', '.join(imported)}", ""] if imported else []
    given = next((i for i in form.inputs if i.values), None)
    if given is not None:
        comma = "," if len(given.values) == 1 else ""
        lines += [*_wrapped("PARAMETERS = (", [_python_number(x) for x in given.values], f"{comma})", "    "), ""]
    for op in sorted(used & _PYTHON_HELPERS.keys()):
        lines += ["", *_PYTHON_HELPERS[op].splitlines(), ""]
    arguments = ", ".join(f"{arrays[i.name]}=PARAMETERS" if i is given else arrays[i.name] for i in form.inputs)
    lines += ["", f"def {function}({arguments}):", f'    """{_one_line(form.meaning)}."""']
    for i in form.inputs:
        if not i.single:
            comma = "," if len(i.symbols) == 1 else ""
            lines += _wrapped("    (", [names[s.name] for s in i.symbols], f"{comma}) = {arrays[i.name]}", "     ")
    for title, some in (("of parameters alone", form.steps.once), ("of the state", form.steps.steps)):
        if some and form.steps.once:
            lines.append(f"    # {title}")
        lines += [f"    {names[step.symbol.name]} = {write(step.formula, style)}" for step in some]
    entries = [write(x, style) for x in form.steps.results]
    if len(form.shape) == 2:
        rows, columns = form.shape
        lines.append("    return [")
        for k in range(rows):
            lines += _wrapped("        [", entries[k * columns : (k + 1) * columns], "],", "         ")
        lines.append("    ]")
    else:
        lines += _wrapped("    return [", entries, "]", "        ")
    return "\n".join(lines) + "\n"


def c(form: Recursive, name: str | None = None) -> str:
    """A C99 file with one function; arrays in, an array out (a matrix by rows), nothing kept."""
    function, names, arrays = _names(form, name)
    operations = list(_operations(form))
    used = {node.op for node in operations}
    functions = {op: _call(word) for op, word in (_MATH | _HELPERS).items()}
    functions[O.ABS], functions[O.FLOOR] = _call("fabs"), _call("floor")
    functions[O.WHERE] = lambda c, a, b: f"(({c}) != 0.0 ? ({a}) : ({b}))"
    functions |= {op: _one_of(sign) for op, sign in _COMPARED.items()}
    style = Style(
        lambda s: names[s.name],
        lambda x: literal(x, "float64"),
        lambda a, b: f"{a} * {b}",
        None,
        lambda x: f"({x})",
        functions,
    )
    lines = ["/*", *(f" * {comment(line)}".rstrip() for line in _header(form, names)), " */", "#include <math.h>", ""]
    for op in sorted(used & _C_HELPERS.keys()):
        lines += [*_C_HELPERS[op].splitlines(), ""]
    size = 1
    for n in form.shape:
        size *= n
    out = _plain(f"{form.letter}_out", {*names.values(), *arrays.values(), function})
    parts = [
        f"double {arrays[i.name]}" if i.single else f"const double {arrays[i.name]}[{max(1, len(i.symbols))}]"
        for i in form.inputs
    ]
    prototype = _wrapped(f"void {function}(", [*parts, f"double {out}[{max(1, size)}]"], ")", "    ")
    lines += [*prototype[:-1], prototype[-1] + ";", "", *prototype, "{"]
    needed = {s.name for node in operations for s in node.arguments if isinstance(s, Symbol)}
    needed |= {x.name for x in form.steps.results if isinstance(x, Symbol)}
    for i in form.inputs:
        taken = [(k, s) for k, s in enumerate(i.symbols) if s.name in needed]
        if not taken:
            lines.append(f"    (void){arrays[i.name]};")
        elif not i.single:
            lines += [f"    const double {names[s.name]} = {arrays[i.name]}[{k}];" for k, s in taken]
    for title, some in (("of parameters alone", form.steps.once), ("of the state", form.steps.steps)):
        if some and form.steps.once:
            lines.append(f"    /* {title} */")
        lines += [f"    const double {names[step.symbol.name]} = {write(step.formula, style)};" for step in some]
    lines += [f"    {out}[{k}] = {write(x, style)};" for k, x in enumerate(form.steps.results)]
    return "\n".join([*lines, "}", ""])


def summary(count: dict[str, int]) -> str:
    """A count of operations in words."""
    rest = dict(count)
    groups = (("multiplications", ("mul",)), ("additions", ("add", "sub")), ("divisions", ("div",)))
    parts = [(sum(rest.pop(n, 0) for n in names), words) for words, names in (*groups, ("sign changes", ("neg",)))]
    parts.append((sum(rest.values()), "functions"))
    told = ", ".join(f"{n} {words if n > 1 else words.removesuffix('s')}" for n, words in parts if n)
    return f"{sum(count.values())} operations: {told}" if told else "no operations"


# -- pieces ---------------------------------------------------------------------------------------------------------
def _python_number(x: float) -> str:
    return repr(x) if math.isfinite(x) else f"float({str(x)!r})"


def _call(word: str) -> Callable[..., str]:
    return lambda *x: f"{word}({', '.join(x)})"


def _float_of(sign: str) -> Callable[..., str]:
    return lambda a, b: f"float(({a}) {sign} ({b}))"


def _one_of(sign: str) -> Callable[..., str]:
    return lambda a, b: f"(({a}) {sign} ({b}) ? 1.0 : 0.0)"


def _operations(form: Recursive) -> Iterable[Operation]:
    for step in form.steps:
        left: list[Node] = [step.formula]
        while left:
            node = left.pop()
            if isinstance(node, Operation):
                yield node
                left.extend(node.arguments)


def _names(form: Recursive, function: str | None) -> tuple[str, dict[str, str], dict[str, str]]:
    """The function's name; every symbol's and every array's, such that Python and C take them."""
    called = _plain(function_name(function or form.quantity), ())
    used = {called, "PARAMETERS", *_OWN}
    names: dict[str, str] = {}
    symbols = [s for i in form.inputs for s in i.symbols] + [step.symbol for step in form.steps]
    # Names that are good as they are come first: what has to change makes way for them.
    for good in (True, False):
        for s in symbols:
            if s.name not in names and (_plain(s.name, ()) == s.name) is good:
                names[s.name] = _plain(s.name, used)
                used.add(names[s.name])
    arrays: dict[str, str] = {}
    for i in form.inputs:
        arrays[i.name] = names[i.symbols[0].name] if i.single else _plain(i.name, used)
        used.add(arrays[i.name])
    return called, names, arrays


def _plain(name: str, taken: Collection[str]) -> str:
    word = identifier(name)
    while keyword.iskeyword(word) or word in taken:
        word += "_"
    return word


def _header(form: Recursive, names: dict[str, str]) -> list[str]:
    lines = [f"{_one_line(form.title)}: {form.meaning[0].lower()}{form.meaning[1:]}.", ""]
    told = summary(form.count)
    lines.append(f"{told[0].upper()}{told[1:]}.")
    if form.count_once:
        lines.append(f"Of these, {sum(form.count_once.values())} depend on parameters alone.")
    lines += form.notes
    for i in form.inputs:
        lines += textwrap.wrap(f"{i.name}: {_listed(i, names)}", 110, subsequent_indent="    ")
    return lines


def _listed(i: Input, names: dict[str, str]) -> str:
    if i.values:
        pairs = zip(i.symbols, i.values, strict=True)
        return ", ".join(f"{_called(s, names)} ({x:.6g})" for s, x in pairs)
    first, last = (i.symbols[0], i.symbols[-1]) if i.symbols else (None, None)
    if first is None or last is None:
        return "nothing"
    return names[first.name] if first is last else f"{names[first.name]} to {names[last.name]}"


def _called(s: Symbol, names: dict[str, str]) -> str:
    return s.name if names[s.name] == s.name else f"{names[s.name]} for {_one_line(s.name)}"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace('"', "'").replace("\\", "/")


def _wrapped(before: str, parts: list[str], after: str, indent: str) -> list[str]:
    """A list over as many lines as it needs; the first begins with `before`, the last ends with `after`."""
    text = textwrap.fill(", ".join(parts), 110, break_long_words=False, break_on_hyphens=False) or ""
    first, *more = text.split("\n")
    lines = [before + first, *(f"{indent}{line}" for line in more)]
    lines[-1] += after
    return lines
