"""LLVM text that moves states between their rows in memory and the lanes of vectors.

`@gather{n}(far, stride, near)` takes n numbers of each of `width` states, `stride` numbers apart, to n lane groups;
`@scatter{n}` takes them back. Tiles of width × width go through registers; the last one is masked.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwright.kernels.llvm.instructions import Writer, vector


def masked_declarations(width: int) -> str:
    """The intrinsics that the last tiles use."""
    t, mask, suffix = vector(width), f"<{width} x i1>", f"v{width}f64.p0"
    return (
        f"declare {t} @llvm.masked.load.{suffix}(ptr, i32, {mask}, {t})\n"
        f"declare void @llvm.masked.store.{suffix}({t}, ptr, i32, {mask})"
    )


def mover_text(width: int, n: int, what: str) -> str:
    """The function that takes states' rows to lanes ("gather"), or lanes to states' rows ("scatter")."""
    return _Mover(width, n, what).text()


class _Mover(Writer):
    def __init__(self, width: int, n: int, what: str) -> None:
        super().__init__()
        self.width, self.n, self.what = width, n, what
        self.type = vector(width)

    def text(self) -> str:
        width, n = self.width, self.n
        self.lines = [f"define internal void @{self.what}{n}(ptr %far, i64 %stride, ptr %near) noinline {{", "entry:"]
        whole = n - n % width
        if whole > 2 * width:
            self.lines += ["  br label %tiles", "tiles:", "  %j = phi i64 [ 0, %entry ], [ %jn, %tiles ]"]
            self.tile("%j", width)
            self.lines += [
                f"  %jn = add i64 %j, {width}",
                f"  %again = icmp slt i64 %jn, {whole}",
                "  br i1 %again, label %tiles, label %rest",
                "rest:",
            ]
        else:
            for j in range(0, whole, width):
                self.tile(str(j), width)
        if whole < n:
            self.tile(str(whole), n - whole)
        return "\n".join([*self.lines, "  ret void", "}"])

    def tile(self, j: str, count: int) -> None:
        """Numbers j .. j + count of every state."""
        width, t = self.width, self.type
        far = self.op(f"getelementptr double, ptr %far, i64 {j}")
        near = self.op(f"getelementptr double, ptr %near, i64 {self.op(f'mul i64 {j}, {width}')}")
        offsets = [self.op(f"mul i64 %stride, {k}") for k in range(width)]
        rows = [self.op(f"getelementptr double, ptr {far}, i64 {offset}") for offset in offsets]
        groups = [self.op(f"getelementptr double, ptr {near}, i64 {k * width}") for k in range(count)]
        if self.what == "gather":
            for value, group in zip(read_tile(self, rows, count), groups, strict=True):
                self.line(f"store {t} {value}, ptr {group}, align 8")
        else:
            write_tile(self, [self.op(f"load {t}, ptr {g}, align 8") for g in groups], rows)


def read_tile(w: Writer, rows: list[str], count: int) -> list[str]:
    """The first `count` numbers of as many rows as there are lanes, each as a vector of all rows' numbers."""
    width = len(rows)
    t = vector(width)
    if count == width:
        values = [w.op(f"load {t}, ptr {row}, align 8") for row in rows]
    else:
        load, bits = f"call {t} @llvm.masked.load.v{width}f64.p0", _mask(width, count)
        values = [w.op(f"{load}(ptr {row}, i32 8, {bits}, {t} zeroinitializer)") for row in rows]
    return transposed(values, w.op)[:count]


def write_tile(w: Writer, values: list[str], rows: list[str]) -> None:
    """Vectors of all rows' numbers into the first places of the rows: what `read_tile` reads."""
    width, count = len(rows), len(values)
    t, bits = vector(width), _mask(width, count)
    for value, row in zip(transposed([*values, *["zeroinitializer"] * (width - count)], w.op), rows, strict=True):
        if count == width:
            w.line(f"store {t} {value}, ptr {row}, align 8")
        else:
            w.line(f"call void @llvm.masked.store.v{width}f64.p0({t} {value}, ptr {row}, i32 8, {bits})")


def _mask(width: int, count: int) -> str:
    bits = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(width))
    return f"<{width} x i1> <{bits}>"


def transposed(rows: list[str], op: Callable[[str], str]) -> list[str]:
    """A square of lanes turned over, in log2(width) rounds of exchanges."""
    width, step = len(rows), 1
    t = vector(width)
    while step < width:
        following = list(rows)
        for k in (k for k in range(width) if not k & step):
            low = [i if not i & step else width + i - step for i in range(width)]
            high = [i + step if not i & step else width + i for i in range(width)]
            for target, lanes in ((k, low), (k + step, high)):
                mask = ", ".join(f"i32 {m}" for m in lanes)
                a, b = f"{t} {rows[k]}", f"{t} {rows[k + step]}"
                following[target] = op(f"shufflevector {a}, {b}, <{width} x i32> <{mask}>")
        rows = following
        step *= 2
    return rows
