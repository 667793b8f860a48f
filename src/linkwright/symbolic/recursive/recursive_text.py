"""The recursive form as formulas: its steps for plain text, LaTeX, Markdown, a web page and SymPy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from linkwright.errors import ModelError
from linkwright.symbolic.formulas.exact import times
from linkwright.symbolic.formulas.formula import Applied, Sum, Symbol, Term, number, raised, tidied
from linkwright.symbolic.printing.listing import Listing
from linkwright.symbolic.printing.sheet import Sheet
from linkwright.symbolic.recursive.steps import NAMES, Node, Operation, Step, signed
from linkwright.tape import operations as O

if TYPE_CHECKING:
    from linkwright.symbolic.recursive.recursive_form import Recursive


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
