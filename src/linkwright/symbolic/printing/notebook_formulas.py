"""What notebooks show of formulas, blocks, equations and equilibria: MathML or LaTeX where they are short."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from linkwright.symbolic.formulas.formula import Block, Sum
from linkwright.symbolic.printing.latex import Latex
from linkwright.symbolic.printing.mathml import MathML, equation_line, math
from linkwright.symbolic.printing.sheet import size, terms
from linkwright.symbolic.printing.symbol_names import split

#: Terms up to which something is drawn; what is longer is described in a line.
SHORT = 120


def html_block(block: Block) -> str:
    """A matrix of the short entries, and the others below; the one-line text where it is long."""
    if size(block) > SHORT:
        return text_line(f"{block!r}")
    writer = MathML()
    matrix, listed = writer.parts(block)
    shown = [f"<div>{math(matrix)}</div>"] if matrix else []
    shown += [_line(writer.entry_name(block, place), formula, writer) for place, formula in listed]
    return "".join(shown)


def _line(name: str, formula: Sum, writer: MathML) -> str:
    return f"<div>{' '.join(equation_line(name, formula, writer))}</div>"


def html_blocks(title: str, blocks: Sequence[Block], notes: Sequence[str]) -> str:
    """Equations: what they are, and their blocks."""
    return f"<div>{text_line(title)}{''.join(map(text_line, notes))}{''.join(map(html_block, blocks))}</div>"


def html_formulas(title: str, formulas: Mapping[str, Sum], notes: Sequence[str] = ()) -> str:
    """Named formulas below each other."""
    writer = MathML()
    if sum(map(terms, formulas.values())) > SHORT:
        return text_line(title)
    rows = (_line(writer.named(split(name)), formula, writer) for name, formula in formulas.items())
    return f"<div>{text_line(title)}{''.join(rows)}{''.join(map(text_line, notes))}</div>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table of texts, and notes below it."""
    lines = [("th", head), *(("td", row) for row in rows)]
    body = "".join(f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>" for tag, row in lines)
    return f"<div>{f'<table>{body}</table>' if rows else ''}{''.join(map(text_line, notes))}</div>"


def text_line(text: str) -> str:
    """A line of text as a paragraph."""
    return f"<p>{html.escape(text)}</p>"


def latex_sum(formula: Sum) -> str | None:
    """A short formula in dollars; None, which leaves it to plain text, for a long one."""
    return rf"$\displaystyle {Latex().sum(formula)}$" if terms(formula) <= SHORT else None


def latex_short(block: Block) -> str | None:
    """A short block in dollars, as a matrix; None for a long one."""
    if size(block) > SHORT:
        return None
    writer = Latex()
    cells = [writer.sum(entry) for entry in block.entries]
    formula = writer.whole(block, cells) if block.shape else f"{writer.block_name(block)} = {cells[0]}"
    return rf"$\displaystyle {formula}$"
