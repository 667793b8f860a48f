"""Formulas as MathML Core, which browsers draw by themselves; every name is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from fractions import Fraction

from linkwright.symbolic.formula import Applied, Factor, Sum, Symbol, Trig
from linkwright.symbolic.printing.names import Split, split
from linkwright.symbolic.printing.walk import Writer, decimal

_OPERATORS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "log": "ln"}
_INFIX = {"lt": "&lt;", "le": "≤"}
#: U+2061, which tells readers (also those that speak) that a function is applied.
_APPLY = "<mo>&#x2061;</mo>"
_THIN = '<mspace width=".1667em"/>'


class MathML(Writer):
    """Formulas as the inside of a `<math>` element."""

    functions_last = True

    def symbol(self, symbol: Symbol) -> str:
        dots = {"rate": 1, "acceleration": 2}.get(symbol.role, 0) if symbol.of else 0
        return named(split(symbol.of if dots else symbol.name), dots)

    def number(self, x: Fraction) -> str:
        written = decimal(x)
        if written is None and x.denominator != 1:
            return f'<mfrac class="n"><mn>{x.numerator}</mn><mn>{x.denominator}</mn></mfrac>'
        return number(written or str(x))

    def power(self, base: str, exponent: int, factor: Factor) -> str:
        match = re.match(r"<mi>[a-z]{3,}</mi>(?=<mo>&#x2061;)", base)
        if isinstance(factor, Trig | Applied) and match:
            return f"<msup>{match[0]}<mn>{exponent}</mn></msup>{base[match.end() :]}"
        # A letter with a subscript takes its exponent above the subscript.
        if match := re.fullmatch(r"<msub>(.*)</msub>", base):
            return f"<msubsup>{match[1]}<mn>{exponent}</mn></msubsup>"
        return f"<msup><mrow>{base}</mrow><mn>{exponent}</mn></msup>"

    def function(self, name: str, arguments: Sequence[str], bare: bool) -> str:
        if name == "sqrt":
            return f"<msqrt>{arguments[0]}</msqrt>"
        if name in ("abs", "floor"):
            left, right = "||" if name == "abs" else "⌊⌋"
            return f'<mrow><mo form="prefix">{left}</mo>{arguments[0]}<mo form="postfix">{right}</mo></mrow>'
        if name == "pow":
            return f"<msup><mrow>{self.bracket(arguments[0])}</mrow><mrow>{arguments[1]}</mrow></msup>"
        if name in _INFIX:
            return f"<mrow><mo>[</mo>{arguments[0]}<mo>{_INFIX[name]}</mo>{arguments[1]}<mo>]</mo></mrow>"
        inside = "<mo>,</mo>".join(arguments)
        shown = html.escape(_OPERATORS.get(name, name))
        return f"<mi>{shown}</mi>{_APPLY}{_THIN + inside if bare else self.bracket(inside)}"

    def bracket(self, inside: str) -> str:
        return f'<mrow><mo stretchy="false">(</mo>{inside}<mo stretchy="false">)</mo></mrow>'

    def product(self, parts: Sequence[str]) -> str:
        return _THIN.join(parts)

    def quotient(self, top: Sequence[str], bottom: Sequence[str]) -> str:
        return f"<mfrac><mrow>{self.product(top)}</mrow><mrow>{self.product(bottom)}</mrow></mfrac>"

    def term(self, number: Fraction, top: Sequence[str], bottom: Sequence[str]) -> str:
        if bottom or not top or number == 1 or "." in (decimal(number) or ""):
            return super().term(number, top, bottom)
        return self.number(number) + self.product(top)

    def joined(self, terms: Sequence[tuple[bool, str]]) -> str:
        parts = []
        for k, (minus, term) in enumerate(terms):
            if k or minus:
                form = "infix" if k else "prefix"
                parts.append(f'<mo form="{form}">{"−" if minus else "+"}</mo>')
            parts.append(term)
        return "".join(parts)

    def sign(self, minus: bool, first: bool) -> str:
        if first:
            return '<mo form="prefix">−</mo>' if minus else ""
        return f'<mo form="infix" lspace="0" rspace=".25em">{"−" if minus else "+"}</mo>'

    def opened(self, inside: str) -> str:
        return f'<mo form="prefix" stretchy="false">(</mo>{inside}'

    def closed(self, inside: str) -> str:
        return f'{inside}<mo form="postfix" stretchy="false">)</mo>'


def number(text: str) -> str:
    """A number that is written in decimals, with its exponent as a power of ten."""
    mantissa, _, exponent = text.partition("e")
    shown = mantissa.replace("-", "−").replace("inf", "∞")
    if not exponent:
        return f"<mn>{shown}</mn>"
    power = f"<msup><mn>10</mn><mn>{str(int(exponent)).replace('-', '−')}</mn></msup>"
    return f"<mn>{shown}</mn><mo>·</mo>{power}"


def named(parts: Split, dots: int = 0, bold: bool = False) -> str:
    """A letter or word with its subscript, dots above the letter; bold for vectors and matrices."""
    stem = html.escape(parts.stem)
    if bold and not parts.word:
        stem = _bold(parts.stem)
    # A word is set as one; a single letter is italic by itself.
    inner = f'<mi class="word">{stem}</mi>' if parts.word else f"<mi>{stem}</mi>"
    if dots:
        above = "˙" if dots == 1 else "¨"
        inner = f'<mover accent="true">{inner}<mo stretchy="false">{above}</mo></mover>'
    if not parts.subscript:
        return inner
    tag = "mn" if parts.subscript.isdigit() else "mi"
    upright = ' class="up"' if tag == "mi" and len(parts.subscript) > 1 else ""
    return f"<msub>{inner}<{tag}{upright}>{html.escape(parts.subscript)}</{tag}></msub>"


def _bold(letter: str) -> str:
    """The mathematical bold italic letter, where there is one."""
    if "A" <= letter <= "Z":
        return chr(0x1D468 + ord(letter) - ord("A"))
    if "a" <= letter <= "z":
        return chr(0x1D482 + ord(letter) - ord("a"))
    return html.escape(letter)


def math(inside: str, display: bool = False) -> str:
    """A `<math>` element."""
    return f'<math display="block">{inside}</math>' if display else f"<math>{inside}</math>"


def matrix(cells: Sequence[str], columns: int) -> str:
    """A matrix in square brackets."""
    rows = "".join(
        f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in cells[k : k + columns])}</mtr>"
        for k in range(0, len(cells), columns)
    )
    return f'<mrow><mo form="prefix">[</mo><mtable>{rows}</mtable><mo form="postfix">]</mo></mrow>'


def mathml_formula(formula: Sum) -> str:
    """A formula as one `<math>` element."""
    return math(MathML().sum(formula))
