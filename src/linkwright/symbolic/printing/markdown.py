"""The equations as a Markdown page: formulas between dollars, long ones as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linkwright.symbolic.formulas.formula import Block
from linkwright.symbolic.printing.code import Operations, counted, wrapped
from linkwright.symbolic.printing.count import COSTS, costs
from linkwright.symbolic.printing.latex import Latex, aligned
from linkwright.symbolic.printing.plain import Plain
from linkwright.symbolic.printing.sheet import Sheet, terms

#: A sum with more terms is plain text, which is quicker to draw and to search.
DRAWN = 24
_WIDTH = 90


def markdown_page(sheet: Sheet) -> str:
    """A page with the equation of motion, every block, the symbols with their values, and the cost."""
    latex, plain = Latex(), Plain()
    lines = markdown_head(sheet, sheet.notes)
    if sheet.motion:
        lines += [f"$$ {latex.equation(sheet)} $$", ""]
    each, together = costs(sheet)
    for block, (count, *cost) in each:
        lines += [f"## {markdown_text(sheet.heading(block))}", "", *_block(block, latex, plain)]
        lines += [f"{counted(count, 'term')}; as code: {Operations(*cost)}.", ""]
    lines += markdown_symbols(sheet, latex)
    lines += ["## Size and cost", "", f"| | {' | '.join(COSTS)} |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    rows = [(markdown_text(block.name), numbers) for block, numbers in each]
    for name, numbers in (*rows, ("together", together)):
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |")
    return markdown_file(lines)


def markdown_head(sheet: Sheet, sentences: Sequence[str]) -> list[str]:
    """The title, the form, and a paragraph a sentence."""
    lines = [f"# {markdown_text(sheet.title)}", "", f"Equations of motion, {markdown_text(sheet.form)} form.", ""]
    for sentence in sentences:
        lines += [markdown_text(sentence), ""]
    return lines


def markdown_file(lines: Sequence[str]) -> str:
    """Lines as a text that UTF-8 can hold."""
    return ("\n".join(lines).rstrip("\n") + "\n").encode("utf-8", "replace").decode("utf-8")


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
    matrix, listed = latex.parts(block)
    lines = [f"$$ {matrix} $$", ""] if matrix else []
    for place, entry in listed:
        if terms(entry) <= DRAWN:
            name = latex.entry_name(block, place)
            broken = aligned([(name, entry)], latex, _WIDTH, "aligned")
            lines += [f"$$ {name} = {latex.sum(entry)} $$" if broken.count("\n") < 3 else f"$$\n{broken}\n$$", ""]
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
