"""The recursive form as Python and C: one function, its operation count in the header."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from linkwright.kernels.c.identifiers import comment, function_name
from linkwright.symbolic.formula import Symbol
from linkwright.symbolic.printing import c as c_printer
from linkwright.symbolic.printing import python as python_printer
from linkwright.symbolic.printing.code import WIDTH, Language, wrapped
from linkwright.symbolic.printing.names import folded
from linkwright.symbolic.printing.python import float_text, listed, one_line
from linkwright.symbolic.steps import Step, Style, operations, write

if TYPE_CHECKING:
    from linkwright.symbolic.recursive import Input, Recursive


def python(form: Recursive, name: str | None = None) -> str:
    """A module with one function; its arguments are sequences of floats, its results lists."""
    language = python_printer.Python()
    function, names, arrays = _names(form, name, language)
    style = Style(lambda s: names[s.name], float_text, language.call)
    given = next((i for i in form.inputs if i.values), None)
    arguments = ", ".join(f"{arrays[i.name]}=PARAMETERS" if i is given else arrays[i.name] for i in form.inputs)
    body = [f"def {function}({arguments}):", f'    """{one_line(form.meaning)}."""']
    for i in form.inputs:
        if not i.single:
            items = [names[s.name] for s in i.symbols]
            body += listed("    [", items, f"    ] = {arrays[i.name]}", f"] = {arrays[i.name]}")
    for title, some in _parts(form):
        body += [f"    # {title}"] if form.steps.once else []
        for step in some:
            body.append(f"    {names[step.symbol.name]} = {write(step.formula, style)}")
    entries = [write(x, style) for x in form.steps.results]
    if len(form.shape) == 2:
        rows, columns = form.shape
        body.append("    return [")
        for k in range(rows):
            body += listed("        [", entries[k * columns : (k + 1) * columns], "        ],", "],")
        body.append("    ]")
    else:
        body += listed("    return [", entries, "    ]")
    lines = ['"""' + "\n".join(map(one_line, _header(form, names))), '"""', "", "import math"]
    if given is not None:
        end = ",)" if len(given.values) == 1 else ")"
        lines += ["", *listed("PARAMETERS = (", [float_text(x) for x in given.values], ")", end)]
    for helper in sorted(language.helpers):
        lines += ["", "", python_printer.HELPERS[helper]]
    return "\n".join([*lines, "", "", *body]) + "\n"


def c(form: Recursive, name: str | None = None) -> str:
    """A C99 file with one function; arrays in, an array out (a matrix by rows), nothing kept."""
    language = c_printer.C()
    function, names, arrays = _names(form, name, language)
    style = Style(lambda s: names[s.name], language.literal, language.call)
    out = language.identifier(f"{form.letter}_out", {*language.reserved, *names.values(), *arrays.values(), function})
    parts = [
        f"double {arrays[i.name]}" if i.single else f"const double {arrays[i.name]}[{max(1, len(i.symbols))}]"
        for i in form.inputs
    ]
    parts = [*(f"{part}," for part in parts), f"double {out}[{max(1, prod(form.shape))}])"]
    prototype = wrapped(parts, f"void {function}(", "    ", WIDTH)
    body = [*prototype[:-1], prototype[-1] + ";", "", *prototype, "{"]
    needed = {s.name for node in operations(form.steps) for s in node.arguments if isinstance(s, Symbol)}
    needed |= {x.name for x in form.steps.results if isinstance(x, Symbol)}
    for i in form.inputs:
        taken = [(k, s) for k, s in enumerate(i.symbols) if s.name in needed]
        if not taken:
            body.append(f"    (void){arrays[i.name]};")
        elif not i.single:
            body += [f"    const double {names[s.name]} = {arrays[i.name]}[{k}];" for k, s in taken]
    for title, some in _parts(form):
        body += [f"    /* {title} */"] if form.steps.once else []
        for step in some:
            body.append(f"    const double {names[step.symbol.name]} = {write(step.formula, style)};")
    body += [f"    {out}[{k}] = {write(x, style)};" for k, x in enumerate(form.steps.results)]
    header = [f" * {comment(folded(line))}".rstrip() for line in _header(form, names)]
    lines = ["/*", *header, " */", "#include <math.h>", ""]
    for helper in sorted(language.helpers):
        lines += [c_printer.HELPERS[helper], ""]
    return "\n".join([*lines, *body, "}", ""])


# -- pieces ---------------------------------------------------------------------------------------------------------
def _parts(form: Recursive) -> list[tuple[str, tuple[Step, ...]]]:
    parts = (("of parameters alone", form.steps.once), ("of the state", form.steps.steps))
    return [(title, some) for title, some in parts if some]


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
        lines += wrapped(_told(i, names), f"{i.name}: ", "    ", WIDTH)
    return lines


def _told(i: Input, names: dict[str, str]) -> list[str]:
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
