"""Programs that together use every statement and primitive; every back-end is compared with NumPy on them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import linkwright.tape.block as F
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.operations import Table
from linkwright.tape.program import ITEM, Copy, Each, Loop, Operand, Program, Solve, Walk, Zero

SPLINE = Table.spline([-1.0, -0.2, 0.4, 1.5], [0.3, -0.7, 1.1, 0.2])


def smooth() -> Program:
    """The primitives without corners, on arguments where all are real numbers."""

    def f(x, y):
        a, b, c = x
        return np.array(
            [
                a + b,
                a - b * 2.5,
                -a * b,
                a / (b * b + 1.0),
                np.sqrt(a * a + 0.1),
                np.sin(a) * np.cos(a) + np.sin(b),
                np.tan(0.3 * c),
                np.arctan2(a, b),
                np.exp(c) - np.exp(-a),
                np.log(b * b + 0.2),
                (a * a + 0.5) ** y,
                (b * b + 0.5) ** 3,
                np.pi * y + 1e-300,
            ]
        )

    return record(f, 3, ())


def corners() -> Program:
    """The primitives with corners, conditions and a table."""

    def f(x):
        a, b, c, d = x
        return (
            np.array([abs(a), F.sign(a), F.sign(b), F.minimum(a, b), F.maximum(a, b), F.minimum(a, 0.25)]),
            np.array([F.floor(3.0 * a), F.where(a < b, c, d), F.where(c, a, b), F.where(a <= 0.0, 1.0, a)]),
            np.array([[a < b, a <= b], [a > c, a >= c]]),
            F.table(np.array([a, b, 2.0 * c]), SPLINE),
            F.table(d, SPLINE.derivative()),
            a.equals(b) if hasattr(a, "equals") else np.float64(a == b),
        )

    return record(f, 4)


def tree_scan() -> Program:
    """Outward, inward (with sums at the parents) and map over a tree, with two kinds of items."""
    parent = np.array([-1, 0, 0, 2, 2, 4, 1])
    kind = np.array([0, 1, 0, 1, 1, 0, 0])
    n = len(parent)
    b = ProgramBuilder("tree_scan")
    q, up, down, total = b.input("q", (n, 2)), b.output("up", (n, 2)), b.output("down", (n,)), b.output("total", ())
    rows = b.temporary("rows", (n + 1, 3))
    sums = b.temporary("sums", (n + 1,))
    data = b.data("numbers", np.linspace(-1.0, 2.0, 2 * n).reshape(n, 2))
    above, kinds, own = b.column(parent + 1), b.column(kind), b.column(2 * np.arange(n))

    def turn(x, p, d):
        return np.array([p[0] + np.sin(x[0]) * d[0], p[1] * np.cos(x[0]) - x[1], p[2] * 0.5 + d[1]])

    def slide(x, p, d):
        return np.array([p[0] * d[0] + x[0], p[1] + x[1] * x[0], p[2] + 1.0])

    inputs = [q.part(0, (2,)).at((2, ITEM)), rows.part(0, (3,)).at((3, above)), data.part(0, (2,)).at((1, own))]
    target = [rows.part(3, (3,)).at((3, ITEM))]
    b.call(lambda: np.array([0.1, -0.2, 1.0]), (), (rows.part(0, (3,)),))
    cases = tuple(b.case(trace(f, [(2,), (3,), (2,)])[0], inputs, target) for f in (turn, slide))
    b.add(Each(n, cases, "outward", kinds))
    b.add(Zero(sums.operand))

    def gather(below, r):
        force = below + r[0] * r[1]
        return force, force * r[2]

    block, _, _ = trace(gather, [(), (3,)])
    inward = b.case(
        block,
        [sums.part(1, ()).at((1, ITEM)), target[0]],
        [down.part(0, ()).at((1, ITEM)), sums.part(0, ()).at((1, above), add=True)],
    )
    b.add(Each(n, (inward,), "inward"))
    copied, _, _ = trace(lambda r: np.array([r[1], r[0] - r[2]]), [(3,)])
    b.add(Each(n, (b.case(copied, target, [up.part(0, (2,)).at((2, ITEM))]),), "map"))
    b.add(Copy(sums.part(0, ()).operand, total.operand))
    return b.build()


def walk() -> Program:
    """Every item and its ancestors, with two kinds of items: one carries two numbers, the other three."""
    parent = np.array([-1, 0, 1, 1, 3, 0])
    kind = np.array([0, 1, 1, 0, 1, 0])
    n = len(parent)
    b = ProgramBuilder("walk")
    q, m, total = b.input("q", (n,)), b.output("m", (n, n)), b.output("total", (n,))
    above, kinds, row = b.column(parent), b.column(kind), b.column(n * np.arange(n))
    own, far = q.part(0, ()).at((1, ITEM)), q.part(0, ()).at(far=((1, ITEM),))
    b.add(Zero(total.operand))
    start, step = [], []
    for k in range(2):
        carry = Ref(Operand(-1, 2 + k), (2 + k,))
        begin, _, _ = trace(lambda x, k=k: (x * x + k, np.array([np.sin(x), x + 0.5 * k, 0.3 * x][: 2 + k])), [()])
        start.append(b.case(begin, [own], [m.part(0, ()).at((n + 1, ITEM)), carry]))
        for other in range(2):

            def ahead(c, x, y, k=k, other=other):
                moved = np.array([c[1] * np.cos(y) - k * c[0], c[0] + other * x, *(0.5 * c[2:] + y)])
                return moved[0] * y, moved[-1], moved

            block, _, _ = trace(ahead, [(2 + k,), (), ()])
            entry = m.part(0, ()).at((1, row), far=((1, ITEM),))
            summed = total.part(0, ()).at(far=((1, ITEM),), add=True)
            step.append(b.case(block, [carry, own, far], [entry, summed, carry]))
    b.add(Walk(n, above, tuple(start), tuple(step), kinds))
    return b.build()


def elimination() -> Program:
    """Lᵀ x = q by walks inward that add to the ancestors, then L y = x by walks outward that add to the item.

    The carry is empty. L is what `walk` leaves, with ones on its diagonal.
    """
    made = walk()
    b = ProgramBuilder.onto(made, "elimination")
    b.statements = list(made.statements)
    n = made.inputs[0].size
    m = Ref(Operand(1, n * n), (n, n))
    x, y = b.output("x", (n,)), b.output("y", (n,))
    b.call(lambda q: (q, np.zeros(n)), [Ref(Operand(0, n), (n,))], [x, y])
    entry = m.part(0, ()).at((n, ITEM), far=((1, ITEM),))
    carry = Ref(Operand(-1, 0), (0,))
    for order, vector in (("inward", x), ("outward", y)):
        own, far = vector.part(0, ()).at((1, ITEM)), vector.part(0, ()).at(far=((1, ITEM),))
        if order == "inward":
            begin, _, _ = trace(lambda: np.zeros(0), [])
            start = b.case(begin, [], [carry])
            source, target = own, vector.part(0, ()).at(far=((1, ITEM),), add=True)
        else:
            begin, _, _ = trace(lambda x: (x, np.zeros(0)), [()])
            start = b.case(begin, [x.part(0, ()).at((1, ITEM))], [own, carry])
            source, target = far, vector.part(0, ()).at((1, ITEM), add=True)
        block, _, _ = trace(lambda c, e, z: (-(e * z), c), [(0,), (), ()])
        step = b.case(block, [carry, entry, source], [target, carry])
        b.add(Walk(n, made.statements[-1].parent, (start,), (step,), order=order))
    return b.build()


def newton(count: int = 12, early: bool = True) -> Program:
    """A loop with an early end: square roots by Newton, for two numbers at once."""
    b = ProgramBuilder("newton")
    a, root = b.input("a", (2,)), b.output("root", (2,))
    x, following, done = b.temporary("x", (2,)), b.temporary("following", (2,)), b.temporary("done", ())
    steps = b.temporary("steps", ())
    taken = b.output("taken", ())
    b.call(lambda a: 0.5 * a + 0.5, [a], [x])
    b.add(Zero(steps.operand))

    def improve(a, x, n):
        y = 0.5 * (x + a / x)
        return y, F.where(np.abs(y - x)[0] + np.abs(y - x)[1] < 1e-9, 1.0, 0.0), n + 1.0

    again = b.temporary("again", ())
    block, _, _ = trace(improve, [(2,), (2,), ()])
    body = Each(1, (b.case(block, [a, x, steps], [following, done, again]),))
    carry = ((x.operand, following.operand), (steps.operand, again.operand))
    b.add(Loop(count, (body,), carry, done.operand if early else None))
    b.add(Copy(x.operand, root.operand))
    b.add(Copy(steps.operand, taken.operand))
    return b.build()


def solver(method: str, right: int = 2) -> Program:
    """A linear system made from the inputs; for the symmetric methods the upper triangle is rubbish."""
    rows, columns = (3, 5) if method == "least-norm" else (5, 5)
    parent = np.array([-1, 0, 1, 1, 3])
    b = ProgramBuilder(f"solve {method}")
    a, y, x = b.input("a", (rows, columns)), b.input("b", (rows, right)), b.output("x", (columns, right))
    m = b.temporary("m", (rows, columns))
    related = np.eye(5, dtype=bool)
    for i in range(5):
        j = parent[i]
        while j >= 0:
            related[i, j] = True
            j = parent[j]

    def system(a):
        if method in ("lu", "least-norm"):
            return a * 1.0 + np.flip(np.eye(rows, columns), 1)
        entries = [[1.0e3 * a[j, i] for j in range(5)] for i in range(5)]
        for i in range(5):
            for j in range(i + 1):
                tied = method == "cholesky" or related[i, j]
                entries[i][j] = a[i, j] + (6.0 if i == j else 0.0) if tied else 0.0 * a[i, j]
        return np.array(entries)

    b.call(system, [a], [m])
    parents = b.column(parent) if method == "ltl" else None
    b.add(Solve(method, m.operand, y.operand, x.operand, rows, columns, right, parents))
    return b.build()


def long_block(length: int = 5000) -> Program:
    """One straight block long enough to be cut, with values used far from where they are made."""

    def f(x, y):
        kept = [np.sin(x[k]) + y for k in range(4)]
        z = list(x)
        for k in range(length // 5):
            z[k % 4] = 0.5 * z[(k + 1) % 4] * np.cos(z[k % 4] + 0.01 * k) + kept[k % 4]
        return np.array(z), kept[2] * z[0], x[1]

    return record(f, 4, (), name="long_block")


def overlapping() -> Program:
    """Blocks whose outputs lie on their inputs, a shifted copy within a buffer, an input that is written to,
    sums on numbers that nobody set, and numbers that nobody sets at all."""
    b = ProgramBuilder("overlapping")
    q, y = b.input("q", (4,)), b.output("y", (6,))
    t = b.temporary("t", (6,))
    b.call(lambda q: np.concatenate([q[::-1], q[:2] * 2.0]), [q], [t])
    b.call(lambda t: np.roll(t, 2) * np.array([1.0, 1.0, 1.0, 0.5, 1.0, 1.0]), [t], [t])
    b.add(Copy(t.part(0, (5,)).operand, t.part(1, (5,)).operand))
    b.add(Copy(t.part(3, (3,)).operand, t.part(2, (3,)).operand))
    b.call(lambda t, q: q + t[:4], [t, q], [q])
    block, _, _ = trace(lambda q: (q[0] * q[1], q[1] + q[2], q[3]), [(4,)])
    y0, y1 = y.part(0, ()), y.part(1, ())
    b.add(Each(1, (b.case(block, [q], [y0.at(add=True), y0.at(add=True), y1]),)))
    b.add(Copy(t.part(2, (3,)).operand, y.part(2, (3,)).operand))
    return b.build()


def bare() -> Program:
    """No input, an empty one, constants that are hard to print, and an output that is a constant."""

    def f(nothing):
        return np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324, 1.7976931348623157e308, 0.1, -3.0])

    return record(f, 0)


def odd_names() -> Program:
    """Names that C does not like, and names that meet after they are changed."""
    b = ProgramBuilder("double")
    names = ["for", "θ̇ [rad/s]", "x_1", "sin", "work", "*/ int main", "a b", "a-b", "double", "double_lu", "y1"]
    inputs = [b.input(name, ()) for name in names]
    out = b.output("new", (len(names),))
    other = b.output("a_b", ())
    b.call(lambda *x: np.sin(np.array(x)) * F.minimum(x[0], x[1]), inputs, [out])
    b.call(lambda x: x - 1.0, inputs[:1], [other])
    return b.build()


def levels(n: int = 37, numbers: int = 3) -> Program:
    """A reduction up a binary tree and a prefix down it, in runs of independent items: a node over two others or,
    at the end of an odd level, over one. Rows are transposed on a GPU; so is the table. Sums go to distinct numbers.
    """
    b = ProgramBuilder("levels")
    q, y, total = b.input("q", (n, 2)), b.output("y", (n,)), b.output("total", (2,))
    left, right, kinds, runs, level = [], [], [], [0], list(range(n))
    made = n
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        above = []
        for size in (2, 1):
            mine = [p for p in pairs if len(p) == size]
            left += [p[0] for p in mine]
            right += [p[-1] for p in mine]
            kinds += [2 - size] * len(mine)
            above += range(made, made + len(mine))
            made += len(mine)
            runs += [made - n] if mine else []
        level = above
    up, down = b.temporary("up", (made, numbers)), b.temporary("down", (made + 1, numbers + 1))
    table = b.data("numbers", np.linspace(-1.0, 2.0, 2 * n).reshape(n, 2))
    wide, tall = numbers, numbers + 1
    columns = {"left": b.column(left), "right": b.column(right), "own": b.column(range(n, made))}

    def row(ref, width, column, first=0, size=None, add=False):
        return ref.part(first, (width - first if size is None else size,)).at((width, column), add=add)

    def leaf(x, d):
        return np.array([np.sin(x[0]) * d[0] + x[1], *(0.1 * k * x[0] + d[1] for k in range(1, numbers))])

    own = [q.part(0, (2,)).at((2, ITEM)), table.part(0, (2,)).at((2, ITEM))]
    b.add(Each(n, (b.case(trace(leaf, [(2,), (2,)])[0], own, [row(up, wide, ITEM)]),), "map"))
    joined = [row(up, wide, columns["left"]), row(up, wide, columns["right"])]
    both = trace(lambda x, z: x + np.cos(z[0]) * z, [(wide,), (wide,)])[0]
    alone = trace(lambda x: 1.0 * x, [(wide,)])[0]
    out = [row(up, wide, columns["own"])]
    items = made - n
    if items:
        cases = (b.case(both, joined, out), b.case(alone, joined[:1], out))
        b.add(Each(items, cases, "outward", b.column(kinds), b.column(runs)))
    b.add(Zero(down.operand))
    b.call(lambda x: 0.5 * x, [up.part(wide * (made - 1), (wide,))], [down.part(tall * (made - 1), (wide,))])
    # From the root down: the same runs, the last first.
    edges = [items - r for r in reversed(runs)]
    turned = {name: b.column(list(reversed(x))) for name, x in (("left", left), ("right", right))}
    mine = b.column(range(made - 1, n - 1, -1))
    from_above = [row(down, tall, mine, 0, wide), row(up, wide, turned["left"])]
    split = trace(lambda d, u: (d * 1.0, d + 0.3 * u, u[0]), [(wide,), (wide,)])[0]
    handed = trace(lambda d: (d - 0.1, d[0]), [(wide,)])[0]
    first, second = row(down, tall, turned["left"], 0, wide), row(down, tall, turned["right"], 0, wide)
    tally = [row(down, tall, turned["left"], wide, 1, add=True)]
    if items:
        cases = (
            b.case(split, from_above, [first, second, *tally]),
            b.case(handed, from_above[:1], [first, *tally]),
        )
        b.add(Each(items, cases, "outward", b.column(list(reversed(kinds))), b.column(edges)))
    # In place, and a map whose kinds change at every other item.
    squared = trace(lambda d: d * d[::-1], [(wide,)])[0]
    place = [row(down, tall, ITEM, 0, wide)]
    b.add(Each(n, (b.case(squared, place, place),), "map"))
    ends = [
        b.case(trace(f, [(tall,), (2,)])[0], [row(down, tall, ITEM), own[0]], [y.part(0, (1,)).at((1, ITEM))])
        for f in (lambda d, x: np.array([d[0] + d[-1] * x[0]]), lambda d, x: np.array([d[1] - x[1]]))
    ]
    b.add(Each(n, tuple(ends), "map", b.column([k // 2 % 2 for k in range(n)])))
    b.add(Copy(down.part(tall * (made - 1), (2,)).operand, total.operand))
    return b.build()


def moved_rows(n: int = 300) -> Program:
    """Whole tables cleared and copied, rows copied to other rows, a scan without runs, a map over a long input."""
    b = ProgramBuilder("moved_rows")
    q, y, z = b.input("q", (n,)), b.output("y", (n, 2)), b.output("z", (2 * n,))
    rows, other = b.temporary("rows", (n + 1, 2)), b.temporary("other", (n + 1, 2))
    last = b.temporary("last", (2 * n,))
    make = trace(lambda x: np.array([np.sin(x), x * x]), [()])[0]
    b.add(Zero(other.operand))
    b.add(Each(n, (b.case(make, [q.part(0, ()).at((1, ITEM))], [rows.part(2, (2,)).at((2, ITEM))]),), "map"))
    b.add(Copy(rows.part(2, (2 * n,)).operand, last.operand))
    b.add(Copy(rows.part(2, (2,)).operand, rows.part(0, (2,)).operand))
    b.add(Copy(rows.part(0, (n,)).operand, other.part(n + 2, (n,)).operand))
    follow = trace(lambda a, x: 0.5 * a + x, [(2,), (2,)])[0]
    near, far = rows.part(2, (2,)).at((2, ITEM)), rows.part(0, (2,)).at((2, ITEM))
    b.add(Each(n, (b.case(follow, [far, near], [near]),), "outward"))
    added = trace(lambda a, c: a + 2.0 * c, [(2,), (2,)])[0]
    shown = [near, other.part(2, (2,)).at((2, ITEM))]
    b.add(Each(n, (b.case(added, shown, [y.part(0, (2,)).at((2, ITEM))]),), "map"))
    b.add(Copy(last.operand, z.operand))
    return b.build()


def side_by_side(items: int = 11) -> Program:
    """Items whose numbers lie beside their neighbours', in runs of 6, 1 and the rest, with numbers shared by all.

    The second run reads what the first wrote in its place, and one result is added to.
    """
    b = ProgramBuilder("side_by_side")
    x, shared, y = b.input("x", (3, items)), b.input("shared", (2,)), b.output("y", (2, items))
    table, kept = b.data("table", np.linspace(0.5, 2.0, items)), b.temporary("kept", (items,))

    def beside(ref, k=0, add=False):
        return ref.part(k * items, ()).at((1, ITEM), add=add)

    def f(a, c, d, t, s):
        return np.sin(a) * t + s[0] / (c * c + 1.0), F.where(d < s[1], a, c * t), a - d

    inputs = [beside(x), beside(x, 1), beside(x, 2), beside(table), shared]
    outputs = [beside(y), beside(y, 1), beside(kept)]
    block = trace(f, [r.shape for r in inputs])[0]
    runs = b.column([0, 6, 7, items])
    b.add(Each(items, (b.case(block, inputs, outputs),), "outward", None, runs))
    double = trace(lambda own, s: 2.0 * own + s[1], [(), (2,)])[0]
    b.add(Each(items, (b.case(double, [beside(kept), shared], [beside(y, add=True)]),), "outward", None, runs))
    return b.build()


ALL: dict[str, Callable[[], Program]] = {
    "side by side": side_by_side,
    "smooth": smooth,
    "corners": corners,
    "tree_scan": tree_scan,
    "walk": walk,
    "elimination": elimination,
    "newton": newton,
    "cholesky": lambda: solver("cholesky"),
    "lu": lambda: solver("lu"),
    "least-norm": lambda: solver("least-norm"),
    "ltl": lambda: solver("ltl"),
    "long_block": long_block,
    "overlapping": overlapping,
    "bare": bare,
    "odd_names": odd_names,
    "levels": levels,
    "moved_rows": moved_rows,
}


def arguments(program: Program, batch: int, seed: int = 0) -> list[np.ndarray]:
    """Inputs (batch, size) away from the edges of the functions' domains."""
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1.2, 1.2, (batch, b.size)) for b in program.inputs]
    if program.name == "newton":
        inputs = [np.abs(x) + 0.3 for x in inputs]
    return inputs
