"""Values of the language outside a file: numbers with units and arithmetic; with symbols, where these are wanted."""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from linkwright.base.text import shortened
from linkwright.errors import FormatError
from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar
from linkwright.formats.mks.problems import Fault
from linkwright.formats.mks.syntax import Word
from linkwright.formats.mks.values import CONSTANTS, Given, Scope, Value
from linkwright.model.expression import Name

MAX_LETTERS = 1000


class _Symbols(Scope):
    """A scope in which every name but pi is a symbol."""

    def _name(self, node: Word, time: bool) -> Value:
        known = not node.quoted and node.text.lower() in CONSTANTS
        return super()._name(node, time) if known else Value(Name(node.text))


def constant(text: str, what: str = "this") -> Given:
    """The value of a text such as `0.3`, `25 deg`, `1/3` or `2*pi`; `what` is how messages call it."""
    return _valued(text, what, Scope(), "give a number or an expression, such as 0.3, 25 deg or 2*pi")


def symbolic(text: str, what: str = "this") -> Given:
    """The value of a text that may have symbols besides, such as `2*l` or `l1 + pi/2`."""
    return _valued(text, what, _Symbols(), "give a number, a symbol or an expression, such as 0.3, 25 deg, pi/2 or 2*l")


def _valued(text: str, what: str, scope: Scope, use: str) -> Given:
    if len(text) > MAX_LETTERS:
        raise FormatError(f"{what} has {len(text)} letters; {MAX_LETTERS} at most")
    shown = shortened(text.strip(), 60)
    line = f"PARAMETER x = {text};"
    try:
        check_nesting(line, 0, len(line))
        value = scope.value(parsed_by_grammar(line, 0, len(line)).items[0].value)
    except UnexpectedInput:
        raise FormatError(f"{what} is {shown}; {use}") from None
    except Fault as fault:
        raise FormatError(f"{what} is {shown}: {fault.message}; {use}") from None
    return Given(value.expression, value.number, value.angle, value.size, value.depth, value.mixed)
