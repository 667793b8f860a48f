"""The recursive form as formulas and as a listing: plain text, LaTeX, Markdown, a web page and SymPy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from linkwright.errors import ModelError
from linkwright.symbolic.formulas.exact import times
from linkwright.symbolic.formulas.formula import Applied, Sum, Symbol, Term, number, raised, tidied
from linkwright.symbolic.printing.code import Operations
from linkwright.symbolic.printing.count import COSTS
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
from linkwright.symbolic.printing.latex import Latex, aligned, latex_file, latex_symbols, latex_text
from linkwright.symbolic.printing.mathml import MathML
from linkwright.symbolic.printing.sheet import Sheet
from linkwright.symbolic.printing.writer import Plain
from linkwright.symbolic.recursive.named_steps import NAMES, Node, Operation, Step, signed
from linkwright.tape import operations as O

if TYPE_CHECKING:
    from linkwright.symbolic.recursive.recursive_form import Recursive

#: Lines of one display in Markdown, and signs in a line of formulas.
_AT_ONCE, _WIDTH = 40, 90
Lines = tuple[tuple[Symbol, Sum], ...]


@dataclass(frozen=True)
class Listing:
    """Steps under headings; `sheet` has the title, the symbols and the notes (what it is, its cost), and no blocks."""

    sheet: Sheet
    sections: tuple[tuple[str, Lines], ...]
    cost: Operations
    once: Operations  # of it, what depends on parameters alone


def plain_listing(listing: Listing) -> str:
    """What it is and costs, and a line for each step."""
    writer = Plain()
    lines = [*listing.sheet.notes]
    for title, steps in listing.sections:
        lines += ["", f"{title}:", *(f"  {symbol.name} = {writer.sum(formula)}" for symbol, formula in steps)]
    return "\n".join(lines) + "\n"


def latex_listing(listing: Listing, *, document: bool = False) -> str:
    """Displays whose lines may break over pages, alone or as a whole document."""
    writer, parts = Latex(), []
    for title, lines in listing.sections:
        heading = rf"\section*{{{latex_text(title)}}}" if document else f"% {title}"
        parts.append(f"{heading}\n{_display(lines, writer, 'align*')}")
    body = "\n\n".join(parts)
    if not document:
        return f"\\begingroup\\allowdisplaybreaks\n{body}\n\\endgroup\n"
    paragraphs = [rf"{latex_text(text)}\par" for text in listing.sheet.notes]
    return latex_file(listing.sheet, [*paragraphs, body, *latex_symbols(listing.sheet, writer)])


def markdown_listing(listing: Listing) -> str:
    """A heading, the cost, the formulas as displays, and the symbols with their values."""
    sheet, writer = listing.sheet, Latex()
    lines = markdown_head(sheet, sheet.notes)
    for title, steps in listing.sections:
        lines += [f"## {markdown_text(title)}", ""]
        for at in range(0, len(steps), _AT_ONCE):
            lines += ["$$", _display(steps[at : at + _AT_ONCE], writer, "aligned"), "$$", ""]
    return markdown_file([*lines, *markdown_symbols(sheet, writer)])


def html_listing(listing: Listing) -> str:
    """A web page that loads nothing; long formulas break between their terms."""
    sheet, writer = listing.sheet, MathML()
    sections = []
    for k, (title, lines) in enumerate(listing.sections):
        entries = (html_entry(writer.symbol(symbol), formula, writer) for symbol, formula in lines)
        sections.append((title, f"steps-{k}", "".join(entries)))
    if sheet.symbols:
        sections.append(("Symbols", "symbols", html_symbols(sheet, writer)))
    rows = [("of parameters alone", astuple(listing.once))] if listing.once.total else []
    sections.append(("Cost", "cost", html_costs(COSTS[1:], [*rows, ("together", astuple(listing.cost))])))
    return html_frame(sheet, sections, sheet.notes)


def _display(lines: Lines, writer: Latex, kind: str) -> str:
    return aligned([(writer.symbol(symbol), formula) for symbol, formula in lines], writer, _WIDTH, kind)


def to_sympy(form: Recursive) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """(replacements, [result]) like `sympy.cse`; the result is a matrix, a vector a column."""
    try:
        import sympy
    except ImportError:
        raise ModelError("SymPy is not installed; pip install sympy") from None
    from linkwright.symbolic.printing.sympy_out import to_sympy

    replacements = [(sympy.Symbol(step.symbol.name), to_sympy(formula(step.formula))) for step in form.steps]
    rows, columns = form.shape if len(form.shape) == 2 else (form.shape[0], 1)
    return replacements, [sympy.Matrix(rows, columns, [to_sympy(formula(x)) for x in form.steps.results])]


# -- layout ---------------------------------------------------------------------------------------------------------
def listing(form: Recursive, digits: int | None) -> Listing:
    """The steps under headings, with numbers of so many digits."""

    def sides(steps: Iterable[Step]) -> list[tuple[Symbol, Sum]]:
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
    filled = tuple((title, tuple(lines)) for title, lines in sections if lines)
    return Listing(sheet, filled, form.count, form.count_once)


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
