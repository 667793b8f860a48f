"""Constants of the language outside a file: numbers with units and arithmetic, but no names."""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from linkwright.errors import FormatError
from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar
from linkwright.formats.mks.problems import Fault
from linkwright.formats.mks.values import Given, Scope

MAX_LETTERS = 1000


def constant(text: str, what: str = "this") -> Given:
    """The value of a text such as `0.3`, `25 deg`, `1/3` or `2*pi`; `what` is how messages call it."""
    if len(text) > MAX_LETTERS:
        raise FormatError(f"{what} has {len(text)} letters; {MAX_LETTERS} at most")
    shown = repr(text.strip() if len(text) <= 60 else text[:57].strip() + "...")
    use = "give a number or an expression, such as 0.3, 25 deg or 2*pi"
    line = f"PARAMETER x = {text};"
    try:
        check_nesting(line, 0, len(line))
        made = Scope().value(parsed_by_grammar(line, 0, len(line)).items[0].value)
    except UnexpectedInput:
        raise FormatError(f"{what} is {shown}; {use}") from None
    except Fault as fault:
        raise FormatError(f"{what} is {shown}: {fault.message}; {use}") from None
    return Given(made.expression, made.number, made.angle, made.size, made.depth, made.mixed)
