"""What notebooks show of formulas, blocks, equations and equilibria: MathML or LaTeX where they are short."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from linkwright.symbolic.formula import Block, Sum
from linkwright.symbolic.printing.latex import Latex, bold, latex_matrix, named
from linkwright.symbolic.printing.layout import layout
from linkwright.symbolic.printing.mathml import MathML, math, matrix
from linkwright.symbolic.printing.mathml import named as mathml_named
from linkwright.symbolic.printing.names import Split, split
from linkwright.symbolic.printing.quantities import letter
from linkwright.symbolic.printing.sheet import different, terms

#: Terms up to which something is drawn; what is longer is said in a line.
SHORT = 120


def size(block: Block) -> int:
    """The terms of the different entries."""
    return sum(map(terms, different(block)[0]))


def html_block(block: Block) -> str:
    """A matrix of the short entries, and the others below; the one-line text where it is long."""
    if size(block) > SHORT:
        return text_line(f"{block!r}")
    writer, plan, parts, name = MathML(), layout(block), [], letter(block)

    def entry(place: str) -> str:
        return mathml_named(Split(name.stem, f"{name.subscript},{place}" if name.subscript else place))

    whole = mathml_named(name, bold=bool(block.shape))
    if plan.cells:
        cells = [entry(c.place) if c.entry is None else writer.sum(c.entry) for c in plan.cells]
        parts.append(f"{whole}<mo>=</mo>{matrix(cells, plan.columns)}")
    shown = [f"<div>{math(part)}</div>" for part in parts]
    shown += [_line(entry(place) if block.shape else whole, formula, writer) for place, formula in plan.listed]
    return "".join(shown)


def _line(name: str, formula: Sum, writer: MathML) -> str:
    """name = formula, every term a formula of its own, so that lines break between them."""
    return f"<div>{math(f'{name}<mo>=</mo>')} {' '.join(math(piece) for piece in writer.pieces(formula))}</div>"


def html_blocks(title: str, blocks: Sequence[Block], notes: Sequence[str]) -> str:
    """Equations: what they are, and their blocks."""
    return f"<div>{text_line(title)}{''.join(map(text_line, notes))}{''.join(map(html_block, blocks))}</div>"


def html_formulas(title: str, formulas: Mapping[str, Sum], notes: Sequence[str] = ()) -> str:
    """Named formulas below each other."""
    writer = MathML()
    if sum(map(terms, formulas.values())) > SHORT:
        return text_line(title)
    rows = (_line(mathml_named(split(name)), formula, writer) for name, formula in formulas.items())
    return f"<div>{text_line(title)}{''.join(rows)}{''.join(map(text_line, notes))}</div>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table of texts, and notes below it."""
    lines = [("th", head), *(("td", row) for row in rows)]
    body = "".join(f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>" for tag, row in lines)
    told = "".join(map(text_line, notes))
    return f"<div>{f'<table>{body}</table>' if rows else ''}{told}</div>"


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
    writer, name = Latex(), letter(block)
    if not block.shape:
        return rf"$\displaystyle {named(name)} = {writer.sum(block.entries[0])}$"
    columns = block.shape[1] if len(block.shape) == 2 else 1
    cells = [writer.sum(entry) for entry in block.entries]
    return rf"$\displaystyle {bold(name)} = {latex_matrix(cells, columns)}$"
