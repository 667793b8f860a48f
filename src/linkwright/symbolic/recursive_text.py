"""The recursive form as LaTeX, Markdown and SymPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from linkwright.errors import ModelError
from linkwright.symbolic.formula import Symbol
from linkwright.symbolic.recursive_code import summary
from linkwright.symbolic.steps import PRODUCT, Node, Operation, Step, Style, write
from linkwright.tape import operations as O

if TYPE_CHECKING:
    from linkwright.symbolic.recursive import Recursive

_DOCUMENT = r"""\documentclass[10pt]{article}
\usepackage[a4paper,margin=20mm]{geometry}
\usepackage{amsmath}
\allowdisplaybreaks
\begin{document}
%s
\end{document}
"""
_ESCAPED = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPED |= {"\\": r"\textbackslash{}"}
_LETTERS = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "ι": "iota",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "υ": "upsilon",
    "φ": "phi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Θ": "Theta",
    "Λ": "Lambda",
    "Ξ": "Xi",
    "Π": "Pi",
    "Σ": "Sigma",
    "Φ": "Phi",
    "Ψ": "Psi",
    "Ω": "Omega",
}
_GREEK = sorted(_LETTERS.values(), key=len, reverse=True)
_FIRST = re.compile(rf"({'|'.join(_GREEK)}|[A-Za-z])_*((?:[xyz]{{1,3}})?\d*(?:_\d+)?[a-h]?)")
_AT_ONCE = 40  # lines of one display in Markdown


# -- LaTeX ----------------------------------------------------------------------------------------------------------
def latex(form: Recursive, *, document: bool = False, digits: int | None = 6) -> str:
    """The steps, those of parameters alone first, and the results, as align* displays."""
    parts = []
    for title, lines in _sections(form, _style(digits)):
        shown = " \\\\\n".join(f"{left} &= {right}" for left, right in lines)
        display = f"\\begin{{align*}}\n{shown}\n\\end{{align*}}"
        parts.append(f"\\subsection*{{{_text(title)}}}\n{display}" if document else f"% {title}\n{display}")
    body = "\n\n".join(parts)
    if not document:
        return f"\\begingroup\\allowdisplaybreaks\n{body}\n\\endgroup\n"
    told = [f"{form.meaning}. {summary(form.count).capitalize()}.", *form.notes]
    head = f"\\section*{{{_text(form.title)}}}\n" + "\n\n".join(map(_text, told)) + "\n\n"
    return _DOCUMENT % (head + body)


def markdown(form: Recursive, *, digits: int | None = 6) -> str:
    """A heading, the costs, a table of the parameters' values, and the formulas as displays."""
    parts = [f"# {_marked(form.title)}", "", f"{form.meaning}. {summary(form.count).capitalize()}."]
    if form.count_once:
        parts[-1] += f" Of these, {sum(form.count_once.values())} depend on parameters alone."
    parts += [line for note in form.notes for line in ("", note)]
    if form.parameters:
        parts += ["", "| parameter | value |", "| --- | --- |"]
        parts += [f"| {_marked(name)} | {value!r} |" for name, value in form.parameters.items()]
    for title, lines in _sections(form, _style(digits)):
        parts += ["", f"## {title}"]
        for at in range(0, len(lines), _AT_ONCE):
            shown = " \\\\\n".join(f"{left} &= {right}" for left, right in lines[at : at + _AT_ONCE])
            parts += ["", "$$", "\\begin{aligned}", shown, "\\end{aligned}", "$$"]
    return "\n".join(parts) + "\n"


def _sections(form: Recursive, style: Style) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Titles with the two sides of their equations."""

    def sides(steps: Iterable[Step]) -> list[tuple[str, str]]:
        return [(style.symbol(step.symbol), write(step.formula, style)) for step in steps]

    needed = _used(form.steps)  # a result that others need stays in its place
    last = [step for step in form.steps.steps if step.symbol not in needed]
    between = [step for step in form.steps.steps if step.symbol in needed]
    made = sides(last)
    known = {style.symbol(step.symbol) for step in form.steps}
    made += [pair for pair in _assigned(form, style) if pair[0] not in known]
    for title, lines in (
        ("Of the parameters alone", sides(form.steps.once)),
        ("Intermediate variables", sides(between)),
        ("Results", made),
    ):
        if lines:
            yield title, lines


def _used(steps: Iterable[Step]) -> set[Symbol]:
    found: set[Symbol] = set()
    for step in steps:
        left: list[Node] = [step.formula]
        while left:
            node = left.pop()
            if isinstance(node, Symbol):
                found.add(node)
            elif isinstance(node, Operation):
                left.extend(node.arguments)
    return found


def _assigned(form: Recursive, style: Style) -> Iterator[tuple[str, str]]:
    """The results that are a number, an input, or found above under another name."""
    for at, x in zip(_places(form.shape), form.steps.results, strict=True):
        left = f"{_letter(form)}_{{{','.join(at) if len(form.shape) > 1 else at[0]}}}"
        right = write(x, style)
        if len(at) < 2 or int(at[0]) <= int(at[1]):
            plain = left.replace(",", "") if max(form.shape, default=0) < 10 else left
            if plain != right:
                yield plain, right


def _letter(form: Recursive) -> str:
    return _split(form.letter[2:], r"\ddot") if form.quantity == "forward_dynamics" else _split(form.letter)


def _places(shape: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    if len(shape) == 1:
        yield from ((str(k + 1),) for k in range(shape[0]))
    elif len(shape) == 2:
        yield from ((str(i + 1), str(j + 1)) for i in range(shape[0]) for j in range(shape[1]))


def _style(digits: int | None) -> Style:
    def quotient(a: Node, b: Node) -> tuple[str, int]:
        return f"\\frac{{{write(a, style)}}}{{{write(b, style)}}}", PRODUCT

    functions: dict[int, Callable[..., str]] = {
        O.SQRT: lambda x: f"\\sqrt{{{x}}}",
        O.ABS: lambda x: f"\\left|{x}\\right|",
        O.FLOOR: lambda x: f"\\left\\lfloor {x}\\right\\rfloor",
        O.POW: lambda x, y: f"\\left({x}\\right)^{{{y}}}",
        O.WHERE: lambda c, a, b: f"\\begin{{cases}} {a} & {c} \\ne 0 \\\\ {b} & \\text{{else}} \\end{{cases}}",
        O.SIGN: lambda x: f"\\operatorname{{sign}}\\left({x}\\right)",
        O.ATAN2: lambda y, x: f"\\operatorname{{atan2}}\\left({y}, {x}\\right)",
        O.LT: lambda a, b: f"\\left[{a} < {b}\\right]",
        O.LE: lambda a, b: f"\\left[{a} \\le {b}\\right]",
        O.EQ: lambda a, b: f"\\left[{a} = {b}\\right]",
    }
    for op, word in ((O.SIN, "sin"), (O.COS, "cos"), (O.TAN, "tan"), (O.EXP, "exp"), (O.LOG, "ln")):
        functions[op] = _of(word)
    for op, word in ((O.MIN, "min"), (O.MAX, "max")):
        functions[op] = _of_two(word)
    style = Style(
        _symbol,
        lambda x: _number(x, digits),
        lambda a, b: f"{a}\\,{b}",
        quotient,
        lambda x: f"\\left({x}\\right)",
        functions,
        lambda x: f"{x}^{{2}}",
    )
    return style


def _of(word: str) -> Callable[..., str]:
    return lambda x: f"\\{word}\\left({x}\\right)"


def _of_two(word: str) -> Callable[..., str]:
    return lambda x, y: f"\\{word}\\left({x}, {y}\\right)"


def _number(x: float, digits: int | None) -> str:
    text = repr(x) if digits is None else f"{x:.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}\\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _symbol(symbol: Symbol) -> str:
    if symbol.role in ("rate", "acceleration") and symbol.of:
        return _split(symbol.of, r"\dot" if symbol.role == "rate" else r"\ddot")
    return _split(symbol.name)


def _split(name: str, accent: str = "") -> str:
    """theta1 → θ with subscript 1, Ixx1 → I with xx1; a word stays one."""
    plain = "".join(_LETTERS.get(letter, letter) for letter in name)
    found = _FIRST.fullmatch(plain)
    if found:
        stem = f"\\{found[1]}" if found[1] in _GREEK else found[1]
        below = found[2].replace("_", ",")
    else:
        word = re.fullmatch(r"(.*?)_*(\d*)", plain, re.DOTALL)
        assert word is not None
        stem, below = f"\\mathit{{{_text(word[1] or plain)}}}", word[2] if word[1] else ""
    stem = f"{accent}{{{stem}}}" if accent else stem
    return f"{stem}_{{{below}}}" if below else stem


def _text(text: str) -> str:
    """Any text as LaTeX; letters that pdflatex may not have become question marks."""
    return "".join(_ESCAPED.get(c, c if c.isascii() and c.isprintable() else "?") for c in text)


def _marked(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|$])", r"\\\1", " ".join(text.split()))


# -- SymPy ----------------------------------------------------------------------------------------------------------
def to_sympy(form: Recursive) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """(replacements, [result]) like `sympy.cse`; the result is a matrix, a vector a column."""
    try:
        import sympy
    except ImportError:
        raise ModelError("SymPy is not installed; pip install sympy") from None
    symbols: dict[str, Any] = {}

    def truth(condition: Any) -> Any:
        return sympy.Piecewise((1, condition), (0, True))

    functions: dict[int, Callable[..., Any]] = {
        O.NEG: lambda a: -a,
        O.ADD: lambda a, b: a + b,
        O.SUB: lambda a, b: a - b,
        O.MUL: lambda a, b: a * b,
        O.DIV: lambda a, b: a / b,
        O.POW: lambda a, b: a**b,
        O.LT: lambda a, b: truth(sympy.Lt(a, b)),
        O.LE: lambda a, b: truth(sympy.Le(a, b)),
        O.EQ: lambda a, b: truth(sympy.Eq(a, b)),
        O.WHERE: lambda c, a, b: sympy.Piecewise((a, sympy.Ne(c, 0)), (b, True)),
        O.SQRT: sympy.sqrt,
        O.SIN: sympy.sin,
        O.COS: sympy.cos,
        O.TAN: sympy.tan,
        O.ATAN2: sympy.atan2,
        O.EXP: sympy.exp,
        O.LOG: sympy.log,
        O.ABS: sympy.Abs,
        O.SIGN: sympy.sign,
        O.MIN: sympy.Min,
        O.MAX: sympy.Max,
        O.FLOOR: sympy.floor,
    }

    def made(node: Node) -> Any:
        if isinstance(node, Symbol):
            if node.name not in symbols:
                symbols[node.name] = sympy.Symbol(node.name)
            return symbols[node.name]
        if isinstance(node, Operation):
            return functions[node.op](*map(made, node.arguments))
        return sympy.Integer(int(node)) if node.is_integer() and abs(node) < 2**53 else sympy.Float(node)

    replacements = [(made(step.symbol), made(step.formula)) for step in form.steps]
    rows, columns = form.shape if len(form.shape) == 2 else (form.shape[0], 1)
    return replacements, [sympy.Matrix(rows, columns, [made(x) for x in form.steps.results])]
