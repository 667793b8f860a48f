r"""Formulas in LaTeX (amsmath), and whole documents that pdflatex accepts with its base packages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from linkwright.errors import LinkwrightError
from linkwright.symbolic.formulas.formula import Applied, Block, Factor, Sum, Trig
from linkwright.symbolic.printing.code_printers import costs
from linkwright.symbolic.printing.formula_writer import Drawing, decimal
from linkwright.symbolic.printing.printed_sheet import Sheet, Split, different, each_once, folded, greek_name, places

#: A document with more terms than this is nothing to read.
LIMIT = 20_000
_OPERATORS = {
    **{name: rf"\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "min", "max")},
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
    "log": r"\ln",
}
_SPACED = tuple(_OPERATORS.values())
_ACCENTS_OF_RATES = ("", r"\dot", r"\ddot")


class Latex(Drawing):
    """Formulas as LaTeX in math mode."""

    at_break = ("{}+ ", "{}- ")
    broken_brackets = (r"\bigl(", r"\bigr)")
    equals, plus, comma = " = ", " + ", ", "
    gap = r"\,"
    group = "{}"
    fraction = r"\tfrac{{{}}}{{{}}}"
    templates: ClassVar = {
        "sqrt": r"\sqrt{{{}}}",
        "abs": r"\lvert {}\rvert",
        "floor": r"\lfloor {}\rfloor",
        "pow": r"{{({})}}^{{{}}}",
        "lt": "[{} < {}]",
        "le": r"[{} \le {}]",
    }

    def power(self, base: str, exponent: int, factor: Factor) -> str:
        if isinstance(factor, Trig | Applied):
            match = re.match(r"\\(?:a?sin|a?cos|tan|sinh|cosh|tanh)(?![a-z])", base)
            if match:
                return f"{match[0]}^{{{exponent}}}{base[match.end() :]}"
            base = self.bracket(base) if isinstance(factor, Applied) else base
        return f"{base}^{{{exponent}}}"

    def call(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        operator = _OPERATORS.get(name) or rf"\operatorname{{{name}}}"
        return f"{operator} {arguments[0]}" if bare else f"{operator}({', '.join(arguments)})"

    def product(self, parts: Sequence[str]) -> str:
        # An operator such as \cos brings its own space.
        return "".join(part if k == 0 or part.startswith(_SPACED) else rf"\,{part}" for k, part in enumerate(parts))

    def quotient(self, top: Sequence[str], bottom: Sequence[str]) -> str:
        return rf"\dfrac{{{self.product(top)}}}{{{self.product(bottom)}}}"

    def term(self, number: Fraction, top: Sequence[str], bottom: Sequence[str]) -> str:
        if bottom and decimal(number) is None:
            above = [*([str(number.numerator)] if number.numerator != 1 or not top else []), *top]
            below = [*([str(number.denominator)] if number.denominator != 1 else []), *bottom]
            return self.quotient(above, below)
        return super().term(number, top, bottom)

    def decimals(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa.replace("inf", r"\infty")

    def named(self, name: Split, dots: int = 0, *, bold: bool = False) -> str:
        stem = rf"\mathit{{{_escaped(name.stem)}}}" if name.word else _letter(name.stem)
        for accent in (r"\boldsymbol" if bold else "", _ACCENTS_OF_RATES[dots]):
            stem = f"{accent}{{{stem}}}" if accent else stem
        if not name.subscript:
            return stem
        word = re.fullmatch(r"[^\W\d_]{2}[\w ,]*", name.subscript) and not re.match(r"[xyz]{2}\d*$", name.subscript)
        below = _escaped(name.subscript)
        return rf"{stem}_{{\mathrm{{{below}}}}}" if word else f"{stem}_{{{below}}}"

    def matrix(self, cells: Sequence[str], columns: int) -> str:
        rows = [" & ".join(cells[k : k + columns]) for k in range(0, len(cells), columns)]
        return r"\begin{bmatrix} " + r" \\ ".join(rows) + r" \end{bmatrix}"


def latex_block(block: Block, width: int = 90) -> str:
    """A block as displays of amsmath: one matrix where it fits, else its entries one by one with broken lines.

    `width` is about how many signs a line holds.
    """
    writer = Latex()
    if block.shape:
        cells = each_once(block, writer.sum)
        columns = [cells[k :: block.columns] for k in range(block.columns)]
        if block.columns <= 10 and sum(max(map(_width, column)) + 2 for column in columns) <= width:
            return rf"\[ {writer.whole(block, cells)} \]"
    _, held = different(block)
    # Each different entry once, where it stands first; zeros everywhere in vectors.
    listed = [
        (writer.entry_name(block, place), entry)
        for k, (place, entry) in enumerate(places(block))
        if held.index(held[k]) == k or (not entry and len(block.shape) == 1)
    ]
    return aligned(listed, writer, width)


def latex_document(sheet: Sheet) -> str:
    """A complete document: the equation of motion, the entries of every block, the symbols, the cost."""
    count = sheet.terms
    if count > LIMIT:
        raise LinkwrightError(
            f"the {sheet.form} form of {sheet.title!r} has {count:,} terms, and a document holds at most {LIMIT:,}; "
            'print it in the form "recursive", which stays short, or only some of its blocks'
        )
    writer = Latex()
    body = [*_introduction(sheet, writer), *(rf"{latex_text(note)}\par" for note in sheet.notes)]
    for block in sheet.blocks:
        body += ["", rf"\section*{{{latex_text(sheet.heading(block))}}}", *_section(block, writer)]
    return latex_file(sheet, [*body, *latex_symbols(sheet, writer), *_cost(sheet, writer)])


def latex_file(sheet: Sheet, body: Sequence[str]) -> str:
    """A document with the title of these equations and this body."""
    largest = max((n for b in sheet.blocks for n in b.shape), default=1)
    head = [rf"\title{{{latex_text(sheet.title)}}}", rf"\date{{Equations of motion, {latex_text(sheet.form)} form}}"]
    lines = [*head, r"\begin{document}", r"\maketitle", *body, r"\end{document}", ""]
    return _PREAMBLE.replace("COLUMNS", str(max(largest, 10))) + "\n".join(lines)


_PREAMBLE = r"""\documentclass[11pt,a4paper]{article}
\usepackage{amsmath}
\usepackage[margin=25mm]{geometry}
\usepackage{longtable}
\allowdisplaybreaks
\setcounter{MaxMatrixCols}{COLUMNS}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt plus 2pt}
\author{}
\makeatletter
\renewcommand{\maketitle}{{\LARGE\bfseries\raggedright \@title\par}\smallskip{\large\itshape \@date\par}\bigskip}
\makeatother
% A long sum is a paragraph of pieces: lines break before a sign, pages between lines.
\newcommand{\f}[1]{$#1$ }
\newenvironment{formula}{\par\addvspace{6pt plus 3pt}\raggedright
  \binoppenalty=3000 \relpenalty=10000 \spaceskip=.05em plus .1em \lineskip=3pt \lineskiplimit=2pt
  \hangindent=2.2em \hangafter=1 }{\par}
"""


def _introduction(sheet: Sheet, writer: Latex) -> list[str]:
    if not sheet.motion:
        return []
    coordinates = r",\,".join(writer.symbol(s) for s in sheet.coordinates[:12])
    more = r",\,\dots" if len(sheet.coordinates) > 12 else ""
    return [
        rf"\[ {writer.equation(sheet)} \]",
        rf"with the coordinates ${writer.vector()} = ({coordinates}{more})^{{\mathsf T}}$, the driving forces "
        r"$\boldsymbol{F}$ and disturbances $\boldsymbol{d}$.\par",
    ]


def _section(block: Block, writer: Latex) -> list[str]:
    """A matrix of short entries and names, then what the names stand for."""
    matrix, listed = writer.parts(block)
    lines = [rf"\[ {matrix} \]"] if matrix else []
    for place, entry in listed:
        lines += _paragraph(writer.entry_name(block, place), entry, writer)
    return lines


def _paragraph(name: str, entry: Sum, writer: Latex) -> list[str]:
    pieces = writer.pieces(entry)
    lines = []
    # Paragraphs of some hundred pieces: TeX holds one at a time.
    for start in range(0, len(pieces), 300):
        some = pieces[start : start + 300]
        head = [rf"\f{{{name} = {some[0]}}}"] if start == 0 else [r"\hspace*{2.2em}\f{" + some[0] + "}"]
        lines += [r"\begin{formula}", *head, *(rf"\f{{{piece}}}" for piece in some[1:]), r"\end{formula}"]
    return lines


def latex_symbols(sheet: Sheet, writer: Latex) -> list[str]:
    """A section with the parameters, their values and meanings."""
    values = sheet.values
    if not values:
        return []
    symbols = sheet.symbols
    lines = ["", r"\section*{Symbols}", r"\begin{longtable}[l]{@{}p{30mm}p{36mm}p{24mm}p{54mm}@{}}"]
    # Columns of fixed width: others are right only after the document has been compiled several times.
    head = r"\textit{symbol} & \textit{name} & \hfill\textit{value}\quad & "
    head += r"\textit{meaning}" if sheet.meanings else ""
    lines += [head + r" \\[2pt]\hline\noalign{\smallskip}\endhead"]
    for name, value in values.items():
        cell = r"\hfill " + ("--" if value is None else f"${writer.decimals(f'{value:.10g}')}$") + r"\quad"
        meaning = latex_text(sheet.meanings.get(name, ""))
        first = rf"${writer.symbol(symbols[name])}$ & \texttt{{{latex_text(name)}}}"
        lines.append(rf"{first} & {cell} & \raggedright {meaning} \tabularnewline")
    return [*lines, r"\end{longtable}"]


def _cost(sheet: Sheet, writer: Latex) -> list[str]:
    lines = ["", r"\section*{Size and cost}", r"\begin{tabular}{@{}lrrrrr@{}}"]
    lines += [r" & terms & $+\,-$ & $\times$ & $\div$ & functions \\[2pt]\hline\noalign{\smallskip}"]
    each, total = costs(sheet)
    rows = [(f"${writer.block_name(block)}$", numbers) for block, numbers in each]
    for name, numbers in (*rows, ("total", total)):
        lines.append(rf"{name} & {' & '.join(f'{n:,}' for n in numbers)} \\")
    return [*lines, r"\end{tabular}"]


# -- matrices and broken lines --------------------------------------------------------------------------------------
def _width(text: str) -> int:
    """About how many signs a formula is wide: commands are one, braces and subscripts' marks none."""
    text = re.sub(r"\\(?:dfrac|tfrac|mathrm|mathit|dot|ddot|,|bigl|bigr)(?![a-z])|[{}_^ ]", "", text)
    return len(re.sub(r"\\(sin|cos|tan|tanh)(?![a-z])", "xxx", re.sub(r"\\(?!sin|cos|tan)[a-zA-Z]+", "x", text)))


def aligned(entries: Sequence[tuple[str, Sum]], writer: Latex, width: int, kind: str = "align*") -> str:
    """Entries below each other, their lines broken at about `width` signs, in amsmath's environment `kind`."""
    lines = []
    for name, entry in entries:
        line, used = f"{name} &= ", 0
        for piece in writer.pieces(entry):
            size = _width(piece)
            if used and used + size > width:
                lines.append(line.rstrip())
                line, used = r"&\quad ", 0
            line += f"{piece} " if used == 0 else f"{piece.removeprefix('{}')} "
            used += size
        lines.append(line.rstrip())
    return f"\\begin{{{kind}}}\n" + " \\\\\n".join(lines) + f"\n\\end{{{kind}}}"


# -- text -----------------------------------------------------------------------------------------------------------
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{c: f"\\{c}" for c in "{}$&#_%"},
}
_SIGNS = {"–": "--", "—": "---", "’": "'", "×": r"$\times$", "·": r"$\cdot$", "°": r"${}^\circ$", "−": "$-$"}
_ACCENTS = dict(zip("\u0307\u0308\u0301\u0300\u0302\u0303\u030a\u030c\u0327", ".\"'`^~rvc", strict=True))


def latex_text(text: str) -> str:
    """Any text in text mode, within what the base fonts can draw."""
    parts: list[str] = []
    for c in unicodedata.normalize("NFD", " ".join(text.split())):
        if c in _ACCENTS and parts and parts[-1].isalpha():
            parts[-1] = rf"\{_ACCENTS[c]}{{{parts[-1]}}}"
        elif c in _SPECIAL or c in _SIGNS:
            parts.append(_SPECIAL.get(c) or _SIGNS[c])
        elif greek_name(c):
            parts.append(f"${_letter(c)}$")
        elif c.isascii() and c.isprintable():
            parts.append(c)
        elif not unicodedata.combining(c) and c.isprintable():
            parts.append(folded(c))
    return "".join(parts)


def _letter(letter: str) -> str:
    name = greek_name(letter)
    if name is None:
        return letter if letter.isascii() and letter.isalnum() else _escaped(letter)
    # These look like Latin letters, and LaTeX has no command for them.
    return {"omicron": "o"}.get(name) or rf"\{name}"


def _escaped(text: str) -> str:
    """A name or subscript in math mode, in ASCII."""
    signs = (_SPECIAL.get(c, c) for c in folded(text) if c.isprintable())
    return "".join(rf"\text{{{sign}}}" if sign.startswith(r"\text") else sign for sign in signs)
