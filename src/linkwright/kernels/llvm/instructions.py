"""How LLVM text writes each operation: instructions, intrinsics, libm, and short sequences of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkwright.kernels.llvm import elementary as math
from linkwright.kernels.llvm.elementary import FAST, splat
from linkwright.tape import operations as O
from linkwright.tape.operations import Table, spellings

if TYPE_CHECKING:
    from linkwright.kernels.llvm.function_text import Function

#: Writes an operation of these values into a function; the name of the result. A table's data come with it.
Writer = Callable[["Function", Sequence[str], Table | None], str]

#: Operations that are one instruction of two operands: the most frequent ones.
INFIX = {O.ADD: "fadd", O.SUB: "fsub", O.MUL: "fmul", O.DIV: "fdiv"}


def _bits(f: Function) -> str:
    return "i1" if f.width == 1 else f"<{f.width} x i1>"


def _instruction(name: str) -> Writer:
    return lambda f, x, _: f.op(f"{name} {FAST} {f.type} {', '.join(x)}")


def _sine(part: int) -> Writer:
    """Alone; `Function` takes both of an angle from one call where it wants both."""

    def write(f: Function, x: Sequence[str], _: Table | None) -> str:
        f.low.need_sincos(f.width)
        both = f.op(f"call {{ {f.type}, {f.type} }} @sincos{f.width}({f.type} {x[0]})")
        return f.op(f"extractvalue {{ {f.type}, {f.type} }} {both}, {part}")

    return write


def _libm(name: str) -> Writer:
    def write(f: Function, x: Sequence[str], _: Table | None) -> str:
        f.low.need_libm(name, f.width)
        return f.op(f"call {f.type} @{math.libm_name(name, f.width)}({', '.join(f'{f.type} {v}' for v in x)})")

    return write


def _intrinsic(name: str) -> Writer:
    return lambda f, x, _: f.op(f"call {f.type} @{f.low.intrinsic(name, f.width)}({f.type} {x[0]})")


def _comparison(predicate: str) -> Writer:
    def write(f: Function, x: Sequence[str], _: Table | None) -> str:
        truth = f.op(f"fcmp {predicate} {f.type} {x[0]}, {x[1]}")
        return _select(f, truth, splat(1.0, f.width), splat(0.0, f.width))

    return write


def _select(f: Function, condition: str, a: str, b: str) -> str:
    return f.op(f"select {_bits(f)} {condition}, {f.type} {a}, {f.type} {b}")


def _where(f: Function, x: Sequence[str], _: Table | None) -> str:
    return _select(f, f.op(f"fcmp une {f.type} {x[0]}, {splat(0.0, f.width)}"), x[1], x[2])


def _better(predicate: str) -> Writer:
    """As NumPy: a NaN on either side wins."""

    def write(f: Function, x: Sequence[str], _: Table | None) -> str:
        better = f.op(f"fcmp {predicate} {f.type} {x[0]}, {x[1]}")
        strange = f.op(f"fcmp uno {f.type} {x[0]}, {splat(0.0, f.width)}")
        return _select(f, f.op(f"or {_bits(f)} {better}, {strange}"), x[0], x[1])

    return write


def _sign(f: Function, x: Sequence[str], _: Table | None) -> str:
    zero = splat(0.0, f.width)
    positive, negative, strange = (f.op(f"fcmp {p} {f.type} {x[0]}, {zero}") for p in ("ogt", "olt", "uno"))
    low_side = _select(f, negative, splat(-1.0, f.width), zero)
    return _select(f, strange, x[0], _select(f, positive, splat(1.0, f.width), low_side))


def _table(f: Function, x: Sequence[str], table: Table | None) -> str:
    assert table is not None
    name = f"table{f.low.tables.setdefault(table, len(f.low.tables))}_{f.width}"
    f.low.helper(name, lambda: math.table_function(name, table, f.width))
    return f.op(f"call {f.type} @{name}({f.type} {x[0]})")


LLVM: tuple[Writer, ...] = spellings(
    "LLVM",
    {
        O.NEG: _instruction("fneg"),
        **{op: _instruction(name) for op, name in INFIX.items()},
        O.SQRT: _intrinsic("sqrt"),
        O.SIN: _sine(0),
        O.COS: _sine(1),
        O.TAN: _libm("tan"),
        O.ATAN2: _libm("atan2"),
        O.EXP: _libm("exp"),
        O.LOG: _libm("log"),
        O.POW: _libm("pow"),
        O.ABS: _intrinsic("fabs"),
        O.SIGN: _sign,
        O.MIN: _better("olt"),
        O.MAX: _better("ogt"),
        O.WHERE: _where,
        O.FLOOR: _intrinsic("floor"),
        O.TABLE: _table,
        O.LT: _comparison("olt"),
        O.LE: _comparison("ole"),
        O.EQ: _comparison("oeq"),
    },
)
