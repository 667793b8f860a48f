"""The recursive form as Python and C: one function, its operation count in the header."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from linkwright.kernels.c.spelling import function_name
from linkwright.symbolic.formulas.formula import Symbol
from linkwright.symbolic.printing.c_printer import C, c_comment
from linkwright.symbolic.printing.code import WIDTH, Language, wrapped
from linkwright.symbolic.printing.python_printer import Python, float_text, listed, one_line, returned
from linkwright.symbolic.printing.symbol_names import folded
from linkwright.symbolic.recursive.named_steps import NAMES, Node, Operation, negative, signed
from linkwright.tape import operations as O

if TYPE_CHECKING:
    from linkwright.symbolic.recursive.recursive_form import Input, Recursive

#: How tightly the parts of a formula bind.
_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4


def python(form: Recursive, name: str | None = None) -> str:
    """A module with one function; its arguments are sequences of floats, its results lists."""
    language = _Floats()
    function, names, arrays = _names(form, name, language)
    write = _Writer(names, language)
    valued = next((i for i in form.inputs if i.values), None)
    arguments = ", ".join(f"{arrays[i.name]}=PARAMETERS" if i is valued else arrays[i.name] for i in form.inputs)
    body = [f"def {function}({arguments}):", f'    """{one_line(form.meaning)}."""']
    for i in form.inputs:
        if not i.single:
            items = [names[s.name] for s in i.symbols]
            body += listed("    [", items, f"    ] = {arrays[i.name]}", f"] = {arrays[i.name]}")
    body += _statements(form, write, "    # {}", "    {} = {}")
    body += returned([write(x) for x in form.steps.results], form.shape)
    lines = ['"""' + "\n".join(map(one_line, _header(form, names))), '"""', "", "import math"]
    if valued is not None:
        end = ",)" if len(valued.values) == 1 else ")"
        lines += ["", *listed("PARAMETERS = (", [float_text(x) for x in valued.values], ")", end)]
    for helper in language.brought:
        lines += ["", "", helper]
    return "\n".join([*lines, "", "", *body]) + "\n"


def c(form: Recursive, name: str | None = None) -> str:
    """A C99 file with one function; arrays in, an array out (a matrix by rows), nothing kept."""
    language = C()
    function, names, arrays = _names(form, name, language)
    write = _Writer(names, language)
    out = language.identifier(f"{form.letter}_out", {*language.reserved, *names.values(), *arrays.values(), function})
    parts = [
        f"double {arrays[i.name]}" if i.single else f"const double {arrays[i.name]}[{max(1, len(i.symbols))}]"
        for i in form.inputs
    ]
    parts = [*(f"{part}," for part in parts), f"double {out}[{max(1, prod(form.shape))}])"]
    prototype = wrapped(parts, f"void {function}(", "    ", WIDTH)
    body = [*prototype[:-1], prototype[-1] + ";", "", *prototype, "{"]
    needed = {s.name for s in (*form.steps.needed, *form.steps.results) if isinstance(s, Symbol)}
    for i in form.inputs:
        taken = [(k, s) for k, s in enumerate(i.symbols) if s.name in needed]
        if not taken:
            body.append(f"    (void){arrays[i.name]};")
        elif not i.single:
            body += [f"    const double {names[s.name]} = {arrays[i.name]}[{k}];" for k, s in taken]
    body += _statements(form, write, "    /* {} */", "    const double {} = {};")
    body += [f"    {out}[{k}] = {write(x)};" for k, x in enumerate(form.steps.results)]
    header = [f" * {c_comment(line)}".rstrip() for line in _header(form, names)]
    lines = ["/*", *header, " */", "#include <math.h>", ""]
    for helper in language.brought:
        lines += [helper, ""]
    return "\n".join([*lines, *body, "}", ""])


# -- pieces ---------------------------------------------------------------------------------------------------------
class _Floats(Python):
    """Python with every number as a float: steps have the numbers of the tape."""

    def literal(self, x: float) -> str:
        return float_text(x)


class _Writer:
    """Writes the formulas of steps in a language, with these names of the symbols."""

    def __init__(self, names: Mapping[str, str], language: Language) -> None:
        self.names, self.language = names, language

    def __call__(self, node: Node, least: int = _SUM) -> str:
        """A formula as text; in brackets where it binds less than `least`."""
        text, binds = self._written(node)
        return text if binds >= least else f"({text})"

    def _written(self, node: Node) -> tuple[str, int]:
        if isinstance(node, Symbol):
            return self.names[node.name], _ATOM
        if not isinstance(node, Operation):
            text = self.language.literal(abs(node))
            return (f"-{text}", _SUM) if node < 0.0 else (text, _ATOM)
        a, *more = node.arguments
        if node.op in (O.ADD, O.SUB):
            return self._sum(node), _SUM
        if node.op == O.NEG:
            return f"-{self(a, _PRODUCT)}", _SUM
        if node.op == O.MUL:
            b = more[0]
            if isinstance(b, float):
                a, b = b, a
            if negative(a):
                return f"-{self(Operation(O.MUL, (-a, b)), _PRODUCT)}", _SUM
            right = _POWER if isinstance(b, Operation) and b.op == O.DIV else _PRODUCT
            return f"{self(a, _PRODUCT)}*{self(b, right)}", _PRODUCT
        if node.op == O.DIV:
            return f"{self(a, _PRODUCT)}/{self(more[0], _POWER)}", _PRODUCT
        return self.language.call(NAMES[node.op], [self(x) for x in node.arguments]), _ATOM

    def _sum(self, node: Node) -> str:
        """Terms with their signs, the brackets of sums within the sum left out: that takes as many operations."""
        terms = signed(node)
        text = "".join(f" {'-' if minus else '+'} {self(term, _PRODUCT)}" for minus, term in terms)
        return text[3:] if not terms[0][0] else f"-{text[3:]}"


def _statements(form: Recursive, write: _Writer, remark: str, assignment: str) -> list[str]:
    """A line for each step, those of parameters alone first; the templates are those of a comment and of a step."""
    lines: list[str] = []
    for title, steps in (("of parameters alone", form.steps.once), ("of the state", form.steps.steps)):
        if form.steps.once and steps:
            lines.append(remark.format(title))
        lines += [assignment.format(write(s.symbol), write(s.formula)) for s in steps]
    return lines


def _names(form: Recursive, function: str | None, language: Language) -> tuple[str, dict[str, str], dict[str, str]]:
    """The function's name; every symbol's and every array's, such that the language takes them."""
    called = language.identifier(function_name(function or form.quantity), language.reserved)
    used = {called, *language.reserved}
    names: dict[str, str] = {}
    symbols = [s for i in form.inputs for s in i.symbols] + [step.symbol for step in form.steps]
    # Names that are good as they are come first: what has to change makes way for them.
    for good in (True, False):
        for s in symbols:
            if s.name not in names and (language.identifier(s.name, language.reserved) == s.name) is good:
                names[s.name] = language.identifier(s.name, used)
                used.add(names[s.name])
    arrays: dict[str, str] = {}
    for i in form.inputs:
        arrays[i.name] = names[i.symbols[0].name] if i.single else language.identifier(i.name, used)
        used.add(arrays[i.name])
    return called, names, arrays


def _header(form: Recursive, names: dict[str, str]) -> list[str]:
    lines = [f"{form.title}: {form.meaning[0].lower()}{form.meaning[1:]}.", "", *form.cost, *form.notes]
    for i in form.inputs:
        lines += wrapped(_contents(i, names), f"{i.name}: ", "    ", WIDTH)
    return lines


def _contents(i: Input, names: dict[str, str]) -> list[str]:
    if not i.symbols:
        return ["nothing"]
    if i.values:
        pairs = [f"{_called(s, names)} ({x:.6g})," for s, x in zip(i.symbols, i.values, strict=True)]
        return [*pairs[:-1], pairs[-1][:-1]]
    first, last = names[i.symbols[0].name], names[i.symbols[-1].name]
    return [first] if first == last else [f"{first} to {last}"]


def _called(s: Symbol, names: dict[str, str]) -> str:
    word = names[s.name]
    return word if word in (s.name, folded(s.name)) else f"{word} for {s.name}"
