"""The equations as a Markdown page: formulas between dollars, long ones as plain text."""

from __future__ import annotations

import re
from dataclasses import astuple

from linkwright.symbolic.formula import Block
from linkwright.symbolic.printing.code import wrapped
from linkwright.symbolic.printing.count import Operations, operations
from linkwright.symbolic.printing.latex import Latex, aligned, bold, entry_name, equation, latex_matrix, named
from linkwright.symbolic.printing.layout import layout
from linkwright.symbolic.printing.plain import Plain
from linkwright.symbolic.printing.quantities import letter
from linkwright.symbolic.printing.sheet import Sheet, different, terms

#: A sum with more terms is plain text, which is quicker to draw and to search.
DRAWN = 24
_WIDTH = 90


def markdown_page(sheet: Sheet) -> str:
    """A page with the equation of motion, every block, the symbols with their values, and the cost."""
    lines = [f"# {markdown_text(sheet.title)}", "", f"Equations of motion, {markdown_text(sheet.form)} form.", ""]
    for note in sheet.notes:
        lines += [markdown_text(note), ""]
    if made := equation(sheet):
        lines += [f"$$ {made} $$", ""]
    latex, plain = Latex(), Plain()
    costs = [operations(block) for block in sheet.blocks]
    for block, cost in zip(sheet.blocks, costs, strict=True):
        size = sum(map(terms, different(block)[0]))
        lines += [f"## {markdown_text(sheet.heading(block))}", "", *_block(block, latex, plain)]
        lines += [f"{size:,} term{'' if size == 1 else 's'}; as code: {cost}.", ""]
    lines += markdown_symbols(sheet, latex)
    lines += ["## Size and cost", "", "| | terms | additions | multiplications | divisions | functions |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for block, cost in zip(sheet.blocks, costs, strict=True):
        numbers = (sum(map(terms, different(block)[0])), *astuple(cost))
        lines.append(f"| {markdown_text(block.name)} | {' | '.join(f'{n:,}' for n in numbers)} |")
    numbers = (sheet.terms, *astuple(sum(costs, Operations())))
    lines.append(f"| together | {' | '.join(f'{n:,}' for n in numbers)} |")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace").decode("utf-8")


def markdown_symbols(sheet: Sheet, latex: Latex) -> list[str]:
    """A table of the parameters, their values and meanings."""
    if not sheet.values:
        return []
    lines = ["## Symbols", "", "| symbol | name | value | meaning |", "| --- | --- | ---: | --- |"]
    for name, value in sheet.values.items():
        shown = "" if value is None else f"{value:.10g}"
        meaning = markdown_text(sheet.meanings.get(name, ""))
        lines.append(f"| ${latex.symbol(sheet.symbols[name])}$ | {_code(name)} | {shown} | {meaning} |")
    return [*lines, ""]


def _block(block: Block, latex: Latex, plain: Plain) -> list[str]:
    plan = layout(block)
    lines = []
    if plan.cells:
        cells = [entry_name(block, c.place) if c.entry is None else latex.sum(c.entry) for c in plan.cells]
        lines += [f"$$ {bold(letter(block))} = {latex_matrix(cells, plan.columns)} $$", ""]
    for place, entry in plan.listed:
        if terms(entry) <= DRAWN:
            name = entry_name(block, place) if block.shape else named(letter(block))
            made = aligned([(name, entry)], latex, _WIDTH, "aligned")
            lines += [f"$$ {name} = {latex.sum(entry)} $$" if made.count("\n") < 3 else f"$$\n{made}\n$$", ""]
        else:
            pieces = plain.pieces(entry, longest=10**9)
            lines += ["```text", *wrapped(pieces, f"{_line(block.name + place)} = ", "    ", _WIDTH), "```", ""]
    return lines


def _line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _code(name: str) -> str:
    """A name between backquotes, within a cell of a table."""
    return f"`{_line(name)}`".replace("|", "\\|")


def markdown_text(text: str) -> str:
    """Text that is no markup, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~&])", r"\\\1", " ".join(text.split()))
