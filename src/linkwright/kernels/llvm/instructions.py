"""LLVM text of operations: a function's numbered values, labels and loops; instructions and intrinsics; elementary
functions and tables.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkwright.kernels.sincos import COS, HALF_PI, LIMIT, QUADRANTS, ROUNDING, SIN
from linkwright.tape import operations as O
from linkwright.tape.operations import Table, spellings

if TYPE_CHECKING:
    from linkwright.kernels.llvm.function_text import Function


class Writer:
    """The lines so far, and the label of the piece of code that is being written."""

    def __init__(self, current: str = "entry") -> None:
        self.lines: list[str] = []
        self.serial = 0
        self.current = current

    def fresh(self) -> str:
        """A new name of a value."""
        self.serial += 1
        return f"%x{self.serial}"

    def label(self, stem: str) -> str:
        """A new label."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def line(self, text: str) -> None:
        """Write an instruction that has no value."""
        self.lines.append(f"  {text}")

    def op(self, text: str) -> str:
        """Write an instruction; the name of its value."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin the code of a label."""
        self.lines.append(f"{label}:")
        self.current = label

    def branch(self, label: str) -> None:
        """Go to a label."""
        self.line(f"br label %{label}")

    def choose(self, condition: str, yes: str, no: str) -> None:
        """Go to one of two labels."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def loop(self, first: str, test: str, body: Callable[[str], None], following: Callable[[str], str]) -> None:
        """for i = first, following(i), ... while the comparison `test` of i holds: body(i); it may run no times."""
        head, inside, end = self.label("head"), self.label("inside"), self.label("end")
        before = self.current
        self.branch(head)
        self.start(head)
        i, at = self.fresh(), len(self.lines)
        self.lines.append("")  # the phi, once the last label is known
        self.choose(self.op(f"icmp {test.format(i)}"), inside, end)
        self.start(inside)
        body(i)
        after = following(i)
        self.lines[at] = f"  {i} = phi i64 [ {first}, %{before} ], [ {after}, %{self.current} ]"
        self.branch(head)
        self.start(end)

    def repeat(self, first: str, last: str, body: Callable[[str], None], step: int = 1) -> None:
        """for i = first, first + step, ... up to last (excluded): body(i); it may run no times."""
        test = f"{'slt' if step > 0 else 'sgt'} i64 {{}}, {last}"
        self.loop(first, test, body, lambda i: self.op(f"add i64 {i}, {step}"))

    def at(self, base: str, index: str, step: int = 1) -> str:
        """The address of an entry of an array whose entries are `step` words of 8 bytes apart."""
        skipped = index if step == 1 else self.op(f"mul i64 {index}, {step}")
        return self.op(f"getelementptr double, ptr {base}, i64 {skipped}")

    def spread(self, value: str, lanes: int, kind: str = "double") -> str:
        """A number in every lane of a vector; itself for one lane."""
        if lanes == 1:
            return value
        t = f"<{lanes} x {kind}>"
        first = self.op(f"insertelement {t} poison, {kind} {value}, i32 0")
        return self.op(f"shufflevector {t} {first}, {t} poison, <{lanes} x i32> zeroinitializer")


#: Writes an operation of these values into a function; the name of the result. A table's data come with it.
Spelling = Callable[["Function", Sequence[str], Table | None], str]

#: Operations that are one instruction of two operands: the most frequent ones.
INFIX = {O.ADD: "fadd", O.SUB: "fsub", O.MUL: "fmul", O.DIV: "fdiv"}


def _bits(f: Function) -> str:
    return "i1" if f.width == 1 else f"<{f.width} x i1>"


def _instruction(name: str) -> Spelling:
    return lambda f, x, _: f.op(f"{name} {FAST} {f.type} {', '.join(x)}")


def _sine(part: int) -> Spelling:
    """Alone; `Function` takes both of an angle from one call where it wants both."""
    return lambda f, x, _: f.half(f.sincos(x[0], f.width), part, f.width)


def _libm(name: str) -> Spelling:
    def write(f: Function, x: Sequence[str], _: Table | None) -> str:
        f.low.need_libm(name, f.width)
        return f.op(f"call {f.type} @{libm_name(name, f.width)}({', '.join(f'{f.type} {v}' for v in x)})")

    return write


def _intrinsic(name: str) -> Spelling:
    return lambda f, x, _: f.op(f"call {f.type} @{f.low.intrinsic(name, f.width)}({f.type} {x[0]})")


def _comparison(predicate: str) -> Spelling:
    def write(f: Function, x: Sequence[str], _: Table | None) -> str:
        truth = f.op(f"fcmp {predicate} {f.type} {x[0]}, {x[1]}")
        return _select(f, truth, splat(1.0, f.width), splat(0.0, f.width))

    return write


def _select(f: Function, condition: str, a: str, b: str) -> str:
    return f.op(f"select {_bits(f)} {condition}, {f.type} {a}, {f.type} {b}")


def _where(f: Function, x: Sequence[str], _: Table | None) -> str:
    return _select(f, f.op(f"fcmp une {f.type} {x[0]}, {splat(0.0, f.width)}"), x[1], x[2])


def _better(predicate: str) -> Spelling:
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
    f.low.helper(name, lambda: table_function(name, table, f.width))
    return f.op(f"call {f.type} @{name}({f.type} {x[0]})")


LLVM: tuple[Spelling, ...] = spellings(
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


FAST = "contract reassoc nsz arcp"

LIBM = {"sin": 1, "cos": 1, "tan": 1, "exp": 1, "log": 1, "atan2": 2, "pow": 2}


def number(x: float) -> str:
    """A double as LLVM text, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def vector(width: int) -> str:
    """The type of `width` lanes."""
    return "double" if width == 1 else f"<{width} x double>"


def splat(x: float, width: int) -> str:
    """A constant in every lane."""
    return number(x) if width == 1 else "<" + ", ".join([f"double {number(x)}"] * width) + ">"


def _integers(x: int, width: int) -> str:
    return str(x) if width == 1 else "<" + ", ".join([f"i64 {x}"] * width) + ">"


def sincos(width: int) -> str:
    """`@sincos{width}(x) -> {sin, cos}`: within 2 ulp; large arguments, infinities and NaN go to libm.

    A lane's result does not depend on the other lanes: those that libm computes are put in place of the rest's.
    """
    t, i = vector(width), "i64" if width == 1 else f"<{width} x i64>"
    bit = "i1" if width == 1 else f"<{width} x i1>"
    suffix = "f64" if width == 1 else f"v{width}f64"
    writer = Writer()
    lines, op = writer.lines, writer.op
    lines += [
        f"define internal {{ {t}, {t} }} @sincos{width}({t} %x) {{",
        f"  %abs = call {t} @llvm.fabs.{suffix}({t} %x)",
        f"  %small = fcmp olt {t} %abs, {splat(LIMIT, width)}",
    ]

    def fma(a: str, b: str, c: str) -> str:
        return op(f"call {t} @llvm.fma.{suffix}({t} {a}, {t} {b}, {t} {c})")

    magic = splat(ROUNDING, width)
    scaled = fma("%x", splat(QUADRANTS, width), magic)
    n = op(f"fsub {t} {scaled}, {magic}")
    r = "%x"
    for part in HALF_PI:
        r = fma(n, splat(-part, width), r)
    quadrant = op(f"bitcast {t} {scaled} to {i}")
    z = op(f"fmul {t} {r}, {r}")

    def polynomial(coefficients: Sequence[float]) -> str:
        p = splat(coefficients[0], width)
        for c in coefficients[1:]:
            p = fma(p, z, splat(c, width))
        return p

    s = fma(op(f"fmul {t} {r}, {z}"), polynomial(SIN), r)
    half = fma(z, splat(-0.5, width), splat(1.0, width))
    c = fma(op(f"fmul {t} {z}, {z}"), polynomial(COS), half)
    one, two, far = (_integers(k, width) for k in (1, 2, 62))
    odd = op(f"icmp ne {i} {op(f'and {i} {quadrant}, {one}')}, {_integers(0, width)}")
    for name, even_value, odd_value, shift in (("s", s, c, quadrant), ("c", c, s, None)):
        value = op(f"select {bit} {odd}, {t} {odd_value}, {t} {even_value}")
        source = shift or op(f"add {i} {quadrant}, {one}")
        sign = op(f"shl {i} {op(f'and {i} {source}, {two}')}, {far}")
        flipped = op(f"xor {i} {op(f'bitcast {t} {value} to {i}')}, {sign}")
        lines.append(f"  %{name} = bitcast {i} {flipped} to {t}")
    if width == 1:
        lines.append("  br i1 %small, label %fast, label %slow")
    else:
        lines += [
            f"  %bits = bitcast {bit} %small to i{width}",
            f"  %all = icmp eq i{width} %bits, -1",
            "  br i1 %all, label %fast, label %slow",
        ]
    lines += [
        "fast:",
        f"  %r0 = insertvalue {{ {t}, {t} }} undef, {t} %s, 0",
        f"  %r1 = insertvalue {{ {t}, {t} }} %r0, {t} %c, 1",
        f"  ret {{ {t}, {t} }} %r1",
        "slow:",
        f"  %ls = call {t} @{libm_name('sin', width)}({t} %x)",
        f"  %lc = call {t} @{libm_name('cos', width)}({t} %x)",
        f"  %ms = select {bit} %small, {t} %s, {t} %ls",
        f"  %mc = select {bit} %small, {t} %c, {t} %lc",
        f"  %q0 = insertvalue {{ {t}, {t} }} undef, {t} %ms, 0",
        f"  %q1 = insertvalue {{ {t}, {t} }} %q0, {t} %mc, 1",
        f"  ret {{ {t}, {t} }} %q1",
        "}",
    ]
    return "\n".join(lines)


def libm_name(name: str, width: int) -> str:
    """The function that applies libm's `name` to `width` lanes."""
    return name if width == 1 else f"{name}{width}"


def libm(name: str, width: int) -> str:
    """`@{name}{width}`: libm's function in each lane."""
    arguments = LIBM[name]
    if width == 1:
        return f"declare double @{name}({', '.join(['double'] * arguments)})"
    return _by_lane(f"{name}{width}", name, arguments, width, " noinline")


def _by_lane(name: str, scalar: str, arguments: int, width: int, attributes: str = "") -> str:
    """`@{name}`: a function of numbers, applied in each lane."""
    t = vector(width)
    parameters = ", ".join(f"{t} %x{k}" for k in range(arguments))
    lines = [f"define internal {t} @{name}({parameters}){attributes} {{"]
    result = "undef"
    for lane in range(width):
        for k in range(arguments):
            lines.append(f"  %a{k}_{lane} = extractelement {t} %x{k}, i32 {lane}")
        passed = ", ".join(f"double %a{k}_{lane}" for k in range(arguments))
        lines.append(f"  %y{lane} = call double @{scalar}({passed})")
        lines.append(f"  %r{lane} = insertelement {t} {result}, double %y{lane}, i32 {lane}")
        result = f"%r{lane}"
    return "\n".join([*lines, f"  ret {t} {result}", "}"])


def table_function(name: str, data: Table, width: int) -> str:
    """`@{name}(x)`: the piecewise cubic, its piece found by bisection, lane by lane."""
    n = len(data.coefficients)
    breaks = ", ".join(f"double {number(x)}" for x in data.breaks[:n])
    flat = [c for piece in data.coefficients for c in piece]
    coefficients = ", ".join(f"double {number(c)}" for c in flat)
    lines = [
        f"@{name}.breaks = private constant [{n} x double] [{breaks}]",
        f"@{name}.coefficients = private constant [{4 * n} x double] [{coefficients}]",
        f"define internal double @{name}.one(double %x) noinline {{",
        "entry:",
        "  br label %search",
        "search:",
        "  %low = phi i64 [ 0, %entry ], [ %low2, %narrow ]",
        f"  %high = phi i64 [ {n}, %entry ], [ %high2, %narrow ]",
        "  %gap = sub i64 %high, %low",
        "  %more = icmp sgt i64 %gap, 1",
        "  br i1 %more, label %narrow, label %found",
        "narrow:",
        "  %sum = add i64 %low, %high",
        "  %mid = lshr i64 %sum, 1",
        f"  %at = getelementptr double, ptr @{name}.breaks, i64 %mid",
        "  %b = load double, ptr %at",
        "  %right = fcmp oge double %x, %b",
        "  %low2 = select i1 %right, i64 %mid, i64 %low",
        "  %high2 = select i1 %right, i64 %high, i64 %mid",
        "  br label %search",
        "found:",
        f"  %bp = getelementptr double, ptr @{name}.breaks, i64 %low",
        "  %b0 = load double, ptr %bp",
        "  %d = fsub double %x, %b0",
        "  %c0i = mul i64 %low, 4",
    ]
    for k in range(4):
        lines += [
            f"  %i{k} = add i64 %c0i, {k}",
            f"  %p{k} = getelementptr double, ptr @{name}.coefficients, i64 %i{k}",
            f"  %c{k} = load double, ptr %p{k}",
        ]
    lines += [
        "  %m3 = fmul double %c3, %d",
        "  %s2 = fadd double %m3, %c2",
        "  %m2 = fmul double %s2, %d",
        "  %s1 = fadd double %m2, %c1",
        "  %m1 = fmul double %s1, %d",
        "  %s0 = fadd double %m1, %c0",
        "  ret double %s0",
        "}",
    ]
    if width == 1:
        lines += [f"define internal double @{name}(double %x) {{", f"  %y = call double @{name}.one(double %x)"]
        return "\n".join([*lines, "  ret double %y", "}"])
    return "\n".join([*lines, _by_lane(name, f"{name}.one", 1, width)])
