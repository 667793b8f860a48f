"""How C and CUDA write each operation."""

from __future__ import annotations

from typing import NamedTuple

from linkwright.tape import operations as O
from linkwright.tape.operations import spellings


class Spelling(NamedTuple):
    """An expression, and the function of `helper_functions.HELPERS` that it calls, if any.

    {0}, {1}, {2} are the operands; {f} ends the names of the C library's functions for the precision at hand; {helper}
    is the name of the helper in this file; {zero} and {one} are numbers.
    """

    text: str
    helper: str = ""


C = spellings(
    "C and CUDA",
    {
        O.NEG: Spelling("-{0}"),
        O.ADD: Spelling("{0} + {1}"),
        O.SUB: Spelling("{0} - {1}"),
        O.MUL: Spelling("{0} * {1}"),
        O.DIV: Spelling("{0} / {1}"),
        O.SQRT: Spelling("sqrt{f}({0})"),
        O.SIN: Spelling("sin{f}({0})"),
        O.COS: Spelling("cos{f}({0})"),
        O.TAN: Spelling("tan{f}({0})"),
        O.ATAN2: Spelling("atan2{f}({0}, {1})"),
        O.EXP: Spelling("exp{f}({0})"),
        O.LOG: Spelling("log{f}({0})"),
        O.POW: Spelling("pow{f}({0}, {1})"),
        O.ABS: Spelling("fabs{f}({0})"),
        O.SIGN: Spelling("{helper}({0})", "sign"),
        O.MIN: Spelling("{helper}({0}, {1})", "min"),
        O.MAX: Spelling("{helper}({0}, {1})", "max"),
        O.WHERE: Spelling("{0} != {zero} ? {1} : {2}"),
        O.FLOOR: Spelling("floor{f}({0})"),
        O.TABLE: Spelling("{helper}({table}, {0})", "table"),
        O.LT: Spelling("{0} < {1} ? {one} : {zero}"),
        O.LE: Spelling("{0} <= {1} ? {one} : {zero}"),
        O.EQ: Spelling("{0} == {1} ? {one} : {zero}"),
    },
)
