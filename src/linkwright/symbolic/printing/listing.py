"""Equations in steps, name = formula one after the other, as plain text, LaTeX, Markdown and a web page."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from linkwright.symbolic.formulas.formula import Sum, Symbol
from linkwright.symbolic.printing.code import Operations
from linkwright.symbolic.printing.count import COSTS
from linkwright.symbolic.printing.latex import Latex, aligned, latex_file, latex_symbols, latex_text
from linkwright.symbolic.printing.markdown import markdown_file, markdown_head, markdown_symbols, markdown_text
from linkwright.symbolic.printing.mathml import MathML
from linkwright.symbolic.printing.page import html_costs, html_entry, html_frame, html_symbols
from linkwright.symbolic.printing.plain import Plain
from linkwright.symbolic.printing.sheet import Sheet

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
