"""Formulas as MathML Core, which browsers draw by themselves, and what notebooks show of formulas and equations."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from linkwright.symbolic.formulas.formula import Applied, Block, Factor, Sum, Trig
from linkwright.symbolic.printing.formula_writer import Drawing
from linkwright.symbolic.printing.latex import Latex
from linkwright.symbolic.printing.printed_sheet import Split, size, split, terms

_OPERATORS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "log": "ln"}
#: U+2061, which tells readers (also those that speak) that a function is applied.
_APPLY = "<mo>&#x2061;</mo>"
_THIN = '<mspace width=".1667em"/>'
_ROUND = ('<mrow><mo stretchy="false">(</mo>', '<mo stretchy="false">)</mo></mrow>')
_FENCED = '<mrow><mo form="prefix">{}</mo>{{}}<mo form="postfix">{}</mo></mrow>'
_COMPARED = "<mrow><mo>[</mo>{{}}<mo>{}</mo>{{}}<mo>]</mo></mrow>"


class MathML(Drawing):
    """Formulas as the inside of a `<math>` element."""

    leading = ("", '<mo form="prefix">−</mo>')
    between = ('<mo form="infix">+</mo>', '<mo form="infix">−</mo>')
    at_break = (
        '<mo form="infix" lspace="0" rspace=".25em">+</mo>',
        '<mo form="infix" lspace="0" rspace=".25em">−</mo>',
    )
    brackets = _ROUND
    broken_brackets = ('<mo form="prefix" stretchy="false">(</mo>', '<mo form="postfix" stretchy="false">)</mo>')
    equals, plus, comma = "<mo>=</mo>", "<mo>+</mo>", "<mo>,</mo>"
    gap = '<mspace width=".17em"/>'
    group = "<mrow>{}</mrow>"
    fraction = '<mfrac class="n"><mn>{}</mn><mn>{}</mn></mfrac>'
    templates: ClassVar = {
        "sqrt": "<msqrt>{}</msqrt>",
        "abs": _FENCED.format("|", "|"),
        "floor": _FENCED.format("⌊", "⌋"),
        "pow": f"<msup><mrow>{'{}'.join(_ROUND)}</mrow><mrow>{{}}</mrow></msup>",
        "lt": _COMPARED.format("&lt;"),
        "le": _COMPARED.format("≤"),
    }

    def power(self, base: str, exponent: int, factor: Factor) -> str:
        match = re.match(r"<mi>[a-z]{3,}</mi>(?=<mo>&#x2061;)", base)
        if isinstance(factor, Trig | Applied) and match:
            return f"<msup>{match[0]}<mn>{exponent}</mn></msup>{base[match.end() :]}"
        # A letter with a subscript takes its exponent above the subscript.
        if match := re.fullmatch(r"<msub>(.*)</msub>", base):
            return f"<msubsup>{match[1]}<mn>{exponent}</mn></msubsup>"
        return f"<msup><mrow>{base}</mrow><mn>{exponent}</mn></msup>"

    def call(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        inside = self.comma.join(arguments)
        shown = html.escape(_OPERATORS.get(name, name))
        return f"<mi>{shown}</mi>{_APPLY}{_THIN + inside if bare else self.bracket(inside)}"

    def product(self, parts: Sequence[str]) -> str:
        return _THIN.join(parts)

    def quotient(self, top: Sequence[str], bottom: Sequence[str]) -> str:
        return f"<mfrac><mrow>{self.product(top)}</mrow><mrow>{self.product(bottom)}</mrow></mfrac>"

    def decimals(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        shown = mantissa.replace("-", "−").replace("inf", "∞")
        if not exponent:
            return f"<mn>{shown}</mn>"
        power = f"<msup><mn>10</mn><mn>{str(int(exponent)).replace('-', '−')}</mn></msup>"
        return f"<mn>{shown}</mn><mo>·</mo>{power}"

    def named(self, name: Split, dots: int = 0, *, bold: bool = False) -> str:
        stem = _bold(name.stem) if bold and not name.word else html.escape(name.stem)
        # A word is set as one; a single letter is italic by itself.
        inner = f'<mi class="word">{stem}</mi>' if name.word else f"<mi>{stem}</mi>"
        if dots:
            above = "˙" if dots == 1 else "¨"
            inner = f'<mover accent="true">{inner}<mo stretchy="false">{above}</mo></mover>'
        if not name.subscript:
            return inner
        tag = "mn" if name.subscript.isdigit() else "mi"
        upright = ' class="up"' if tag == "mi" and len(name.subscript) > 1 else ""
        return f"<msub>{inner}<{tag}{upright}>{html.escape(name.subscript)}</{tag}></msub>"

    def matrix(self, cells: Sequence[str], columns: int) -> str:
        rows = "".join(
            f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in cells[k : k + columns])}</mtr>"
            for k in range(0, len(cells), columns)
        )
        return _FENCED.format("[", "]").format(f"<mtable>{rows}</mtable>")


def _bold(letter: str) -> str:
    """The mathematical bold italic letter, where there is one."""
    if "A" <= letter <= "Z":
        return chr(0x1D468 + ord(letter) - ord("A"))
    if "a" <= letter <= "z":
        return chr(0x1D482 + ord(letter) - ord("a"))
    return html.escape(letter)


def equation_line(name: str, formula: Sum, writer: MathML) -> tuple[str, str]:
    """name = and the formula, every term a formula of its own, so that lines break between them."""
    return math(name + writer.equals), " ".join(math(piece) for piece in writer.pieces(formula))


def math(inside: str, display: bool = False) -> str:
    """A `<math>` element."""
    return f'<math display="block">{inside}</math>' if display else f"<math>{inside}</math>"


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
