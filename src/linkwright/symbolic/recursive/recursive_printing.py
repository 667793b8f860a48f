"""The recursive form as formulas, as a listing and as Python and C, with its operation count."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

from linkwright.errors import ModelError
from linkwright.kernels.c.spelling import function_name
from linkwright.symbolic.formulas.exact import times
from linkwright.symbolic.formulas.formula import Applied, Block, Sum, Symbol, Term, number, raised, tidied
from linkwright.symbolic.printing.code_printers import (
    COSTS,
    C,
    Python,
    c_comment,
    float_text,
    listed,
    one_line,
    returned,
)
from linkwright.symbolic.printing.code_statements import WIDTH, Language, wrapped
from linkwright.symbolic.printing.equation_page import (
    html_costs,
    html_entry,
    html_frame,
    html_symbols,
    markdown_file,
    markdown_head,
    markdown_symbols,
    markdown_text,
)
from linkwright.symbolic.printing.formula_writer import Plain
from linkwright.symbolic.printing.latex import Latex, aligned, latex_file, latex_symbols, latex_text
from linkwright.symbolic.printing.mathml import MathML
from linkwright.symbolic.printing.printed_sheet import Sheet, folded
from linkwright.symbolic.recursive.named_steps import NAMES, Node, Operation, Step, negative, signed
from linkwright.tape import operations as O

if TYPE_CHECKING:
    from linkwright.symbolic.recursive.recursive_form import Input, Recursive

#: Lines of one display in Markdown, and signs in a line of formulas.
_AT_ONCE, _WIDTH = 40, 90
Lines = list[tuple[Symbol, Sum]]


def plain_listing(form: Recursive, digits: int | None) -> str:
    """What it is and costs, and a line for each step."""
    writer = Plain()
    sheet, sections = _listing(form, digits)
    lines = [*sheet.notes]
    for title, steps in sections:
        lines += ["", f"{title}:", *(f"  {symbol.name} = {writer.sum(formula)}" for symbol, formula in steps)]
    return "\n".join(lines) + "\n"


def latex_listing(form: Recursive, digits: int | None, *, document: bool = False) -> str:
    """Displays whose lines may break over pages, alone or as a whole document."""
    writer, parts = Latex(), []
    sheet, sections = _listing(form, digits)
    for title, lines in sections:
        heading = rf"\section*{{{latex_text(title)}}}" if document else f"% {title}"
        parts.append(f"{heading}\n{_display(lines, writer, 'align*')}")
    body = "\n\n".join(parts)
    if not document:
        return f"\\begingroup\\allowdisplaybreaks\n{body}\n\\endgroup\n"
    paragraphs = [rf"{latex_text(text)}\par" for text in sheet.notes]
    return latex_file(sheet, [*paragraphs, body, *latex_symbols(sheet, writer)])


def markdown_listing(form: Recursive, digits: int | None) -> str:
    """A heading, the cost, the formulas as displays, and the symbols with their values."""
    writer = Latex()
    sheet, listed = _listing(form, digits)
    lines = markdown_head(sheet)
    for title, steps in listed:
        lines += [f"## {markdown_text(title)}", ""]
        for at in range(0, len(steps), _AT_ONCE):
            lines += ["$$", _display(steps[at : at + _AT_ONCE], writer, "aligned"), "$$", ""]
    return markdown_file([*lines, *markdown_symbols(sheet, writer)])


def html_listing(form: Recursive, digits: int | None) -> str:
    """A web page that loads nothing; long formulas break between their terms."""
    writer, sections = MathML(), []
    sheet, listed = _listing(form, digits)
    for k, (title, lines) in enumerate(listed):
        entries = (html_entry(writer.symbol(symbol), formula, writer) for symbol, formula in lines)
        sections.append((title, f"steps-{k}", "".join(entries)))
    if sheet.symbols:
        sections.append(("Symbols", "symbols", html_symbols(sheet, writer)))
    rows = [("of parameters alone", astuple(form.count_once))] if form.count_once.total else []
    sections.append(("Cost", "cost", html_costs(COSTS[1:], [*rows, ("total", astuple(form.count))])))
    return html_frame(sheet, sections)


def _display(lines: Lines, writer: Latex, kind: str) -> str:
    return aligned([(writer.symbol(symbol), formula) for symbol, formula in lines], writer, _WIDTH, kind)


def to_sympy(form: Recursive) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """(replacements, [result]) like `sympy.cse`; the result is a matrix, a vector a column."""
    from linkwright.symbolic.printing.sympy_out import to_sympy, to_sympy_block  # weight: SymPy

    replacements = [(to_sympy(raised(step.symbol)), to_sympy(formula(step.formula))) for step in form.steps]
    entries = tuple(formula(x) for x in form.steps.results)
    return replacements, [to_sympy_block(Block(form.letter, form.shape, entries))]


# -- layout ---------------------------------------------------------------------------------------------------------
def _listing(form: Recursive, digits: int | None) -> tuple[Sheet, list[tuple[str, Lines]]]:
    """The steps under headings, with numbers of so many digits.

    The sheet has the title, the symbols and the notes (what it is, its cost), and no blocks.
    """

    def sides(steps: Iterable[Step]) -> Lines:
        return [(step.symbol, formula(step.formula, digits)) for step in steps]

    # A result that others need stays in its place.
    needed = form.steps.needed
    between = [step for step in form.steps.steps if step.symbol in needed]
    results = sides(step for step in form.steps.steps if step.symbol not in needed)
    # Results that are a number, an input, or found above under another name.
    known = {step.symbol for step in form.steps}
    named = {s: x for s, x in zip(form.names, form.steps.results, strict=True) if s not in known and s != x}
    empty = [s for s, x in named.items() if x == 0.0 and len(form.shape) == 2]
    results += [(s, formula(x, digits)) for s, x in named.items() if s not in empty]
    sections = (
        ("Of the parameters alone", sides(form.steps.once)),
        ("Intermediate variables", sides(between)),
        ("Results", results),
    )
    by_role: dict[str, tuple[Symbol, ...]] = {
        role: tuple(s for i in form.inputs for s in i.symbols if s.role == role)
        for role in ("coordinate", "rate", "acceleration")
    }
    q, dq, ddq = by_role.values()
    summary = f"{form.meaning}. {' '.join(form.cost)}"
    if empty:
        summary += f" Entries of {form.letter} that are not listed are zero."
    notes = (summary, *form.notes)
    sheet = Sheet(form.title, "recursive", (), q, dq, ddq, dict(form.parameters), notes=notes)
    return sheet, [(title, lines) for title, lines in sections if lines]


# -- formulas -------------------------------------------------------------------------------------------------------
def formula(node: Node, digits: int | None = None) -> Sum:
    """A step's formula as a sum of products; numbers by the shortest decimals, or rounded to so many digits."""
    return tidied(_sum(node, digits))


def _sum(node: Node, digits: int | None) -> Sum:
    if isinstance(node, Symbol):
        return raised(node)
    if not isinstance(node, Operation):
        if not math.isfinite(node):
            raise ModelError(f"a number of the model is {node}, which has no place in a formula; give a finite one")
        return number(Fraction(repr(node) if digits is None else f"{node:.{digits}g}"))
    if node.op == O.WHERE:
        defined = [x for x in node.arguments[1:] if not (isinstance(x, float) and math.isnan(x))]
        if len(defined) == 1:  # a formula is for where it has a value
            return _sum(defined[0], digits)
    if node.op in (O.ADD, O.SUB):
        terms = ((minus, _sum(term, digits)) for minus, term in signed(node))
        return Sum(tuple(Term(-t.number if minus else t.number, t.factors) for minus, part in terms for t in part))
    parts = [_sum(x, digits) for x in node.arguments]
    if node.op == O.NEG:
        return times(-1, parts[0])
    if node.op == O.MUL:
        return raised(parts[0], 2) if parts[0] == parts[1] else times(1, *parts)
    if node.op == O.DIV:
        return Sum((Term(Fraction(1), ((parts[0], 1), (parts[1], -1))),))
    if node.op == O.EQ:
        return times(1, Applied("le", tuple(parts)), Applied("le", tuple(parts[::-1])))
    return raised(Applied(NAMES[node.op], tuple(parts)))


#: How tightly the parts of a formula bind.
_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4


def python(form: Recursive, name: str | None = None) -> str:
    """A module with one function; its arguments are sequences of floats, its results lists."""
    write = _Writer(form, name, _Floats())
    names, arrays = write.names, write.arrays
    valued = next((i for i in form.inputs if i.values), None)
    arguments = ", ".join(f"{arrays[i.name]}=PARAMETERS" if i is valued else arrays[i.name] for i in form.inputs)
    body = [f"def {write.function}({arguments}):", f'    """{one_line(form.meaning)}."""']
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
    for helper in write.language.brought:
        lines += ["", "", helper]
    return "\n".join([*lines, "", "", *body]) + "\n"


def c(form: Recursive, name: str | None = None) -> str:
    """A C99 file with one function; arrays in, an array out (a matrix by rows), nothing kept."""
    write = _Writer(form, name, C())
    names, arrays = write.names, write.arrays
    target = write.language.identifier(f"{form.letter}_out", write.taken)
    parts = [
        f"double {arrays[i.name]}" if i.single else f"const double {arrays[i.name]}[{max(1, len(i.symbols))}]"
        for i in form.inputs
    ]
    parts = [*(f"{part}," for part in parts), f"double {target}[{max(1, prod(form.shape))}])"]
    prototype = wrapped(parts, f"void {write.function}(", "    ", WIDTH)
    body = [*prototype[:-1], prototype[-1] + ";", "", *prototype, "{"]
    needed = {s.name for s in (*form.steps.needed, *form.steps.results) if isinstance(s, Symbol)}
    for i in form.inputs:
        taken = [(k, s) for k, s in enumerate(i.symbols) if s.name in needed]
        if not taken:
            body.append(f"    (void){arrays[i.name]};")
        elif not i.single:
            body += [f"    const double {names[s.name]} = {arrays[i.name]}[{k}];" for k, s in taken]
    body += _statements(form, write, "    /* {} */", "    const double {} = {};")
    body += [f"    {target}[{k}] = {write(x)};" for k, x in enumerate(form.steps.results)]
    header = [f" * {c_comment(line)}".rstrip() for line in _header(form, names)]
    lines = ["/*", *header, " */", "#include <math.h>", ""]
    for helper in write.language.brought:
        lines += [helper, ""]
    return "\n".join([*lines, *body, "}", ""])


# -- pieces ---------------------------------------------------------------------------------------------------------
class _Floats(Python):
    """Python with every number as a float: steps have the numbers of the tape."""

    def literal(self, x: float) -> str:
        return float_text(x)


class _Writer:
    """Writes the formulas of a form's steps in a language, with names that the language takes."""

    def __init__(self, form: Recursive, function: str | None, language: Language) -> None:
        self.language = language
        self.function = language.identifier(function_name(function or form.quantity), language.reserved)
        self.taken = {self.function, *language.reserved}
        self.names: dict[str, str] = {}  # of the symbols
        symbols = [s for i in form.inputs for s in i.symbols] + [step.symbol for step in form.steps]
        # Names that are good as they are come first: what has to change makes way for them.
        for good in (True, False):
            for s in symbols:
                if s.name not in self.names and (language.identifier(s.name, language.reserved) == s.name) is good:
                    self.names[s.name] = language.identifier(s.name, self.taken)
                    self.taken.add(self.names[s.name])
        self.arrays: dict[str, str] = {}  # of the inputs
        for i in form.inputs:
            name = self.names[i.symbols[0].name] if i.single else language.identifier(i.name, self.taken)
            self.arrays[i.name] = name
            self.taken.add(name)

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
