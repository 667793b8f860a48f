"""Programs put together by hand, one for each kind of statement, as small as they can be and still show it."""

from __future__ import annotations

import numpy as np

from linkwright.tape.block import where
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Copy, Each, Loop, Operand, Program, Solve, Walk, Zero

PARENT = np.array([-1, 0, 0, 2, 2, 4])
KIND = np.array([0, 1, 0, 1, 1, 0])


def outward() -> Program:
    """A scan from ground to the tips with two kinds of items; row 0 of the rows is ground."""
    n = len(PARENT)
    b = ProgramBuilder("outward")
    q, tips = b.input("q", (n,)), b.output("tips", (n, 2))
    rows, above = b.temporary("rows", (n + 1, 2)), b.column(PARENT + 1)
    b.call(lambda: np.array([1.0, 0.5]), [], [rows.part(0, (2,))])

    def turn(q, up):
        return np.array([np.cos(q) * up[0] - np.sin(q) * up[1], np.sin(q) * up[0] + np.cos(q) * up[1]])

    def slide(q, up):
        return np.array([up[0] + q * up[1], up[1] * np.exp(-q)])

    inputs = [q.part(0, ()).at((1, ITEM)), rows.part(0, (2,)).at((2, above))]
    own = rows.part(2, (2,)).at((2, ITEM))
    cases = tuple(b.case(trace(f, [(), (2,)])[0], inputs, [own]) for f in (turn, slide))
    b.add(Each(n, cases, "outward", b.column(KIND)))
    b.add(Copy(rows.part(2, (n, 2)).operand, tips.operand))
    return b.build()


def inward() -> Program:
    """A scan from the tips to ground that adds at the parents, after a map that fills the rows."""
    n = len(PARENT)
    b = ProgramBuilder("inward")
    q, m = b.input("q", (n,)), b.input("m", (n,))
    tau, base = b.output("tau", (n,)), b.output("base", ())
    rows, sums, above = b.temporary("rows", (n, 2)), b.temporary("sums", (n + 1,)), b.column(PARENT + 1)
    own, mine = rows.part(0, (2,)).at((2, ITEM)), sums.part(1, ()).at((1, ITEM))
    fill, _, _ = trace(lambda q, m: np.array([m * np.sin(q), np.cos(q)]), [(), ()])
    b.add(Each(n, (b.case(fill, [q.part(0, ()).at((1, ITEM)), m.part(0, ()).at((1, ITEM))], [own]),)))
    b.add(Zero(sums.operand))

    def gather(row, below):
        force = row[0] + row[1] * below
        return force * below + row[1], force

    up = sums.part(0, ()).at((1, above), add=True)
    block, _, _ = trace(gather, [(2,), ()])
    b.add(Each(n, (b.case(block, [own, mine], [tau.part(0, ()).at((1, ITEM)), up]),), "inward"))
    b.add(Copy(sums.part(0, ()).operand, base.operand))
    return b.build()


def shared_operands() -> Program:
    """A scan that reads its parent's and its grandparent's row: at the root both are ground's."""
    n = len(PARENT)
    grand = np.array([PARENT[p] if p >= 0 else -1 for p in PARENT])
    b = ProgramBuilder("shared")
    q, y = b.input("q", (n,)), b.output("y", (n + 1, 2))
    above, over = b.column(PARENT + 1), b.column(grand + 1)
    b.call(lambda q: np.array([q[0] * q[1], np.sin(q[0])]), [q.part(0, (2,))], [y.part(0, (2,))])

    def step(q, p, g):
        return np.array([p[0] * g[1] + q, p[1] + g[0] * q])

    inputs = [q.part(0, ()).at((1, ITEM)), y.part(0, (2,)).at((2, above)), y.part(0, (2,)).at((2, over))]
    b.add(Each(n, (b.case(trace(step, [(), (2,), (2,)])[0], inputs, [y.part(2, (2,)).at((2, ITEM))]),), "outward"))
    return b.build()


def overlapping_parts() -> Program:
    """A call that reads a vector and a part of the same vector."""
    b = ProgramBuilder("overlap")
    x, y = b.input("x", (4,)), b.output("y", (2,))
    z = b.temporary("z", (4,))
    b.call(lambda x: np.sin(x), [x], [z])
    b.call(lambda z, part: np.array([z @ z * part[0], part[1] * z[2]]), [z, z.part(1, (2,))], [y])
    return b.build()


def legs() -> Program:
    """A map over independent items that all read one shared number."""
    n = 4
    b = ProgramBuilder("legs")
    x, shared, y = b.input("x", (n, 2)), b.input("s", ()), b.output("y", (n,))
    block, _, _ = trace(lambda x, s: x[0] * np.sin(s * x[1]), [(2,), ()])
    b.add(Each(n, (b.case(block, [x.part(0, (2,)).at((2, ITEM)), shared], [y.part(0, ()).at((1, ITEM))]),)))
    return b.build()


def walk() -> Program:
    """Every item with its ancestors: a matrix, filled with what a carried pair becomes on its way to ground."""
    n = len(PARENT)
    b = ProgramBuilder("walk")
    q, m, load = b.input("q", (n,)), b.output("m", (n, n)), b.output("load", (n,))
    parent, kinds = b.column(PARENT), b.column(KIND)
    b.add(Zero(m.operand))
    b.add(Zero(load.operand))
    one = q.part(0, ()).at((1, ITEM))
    other = q.part(0, ()).at(far=((1, ITEM),))
    entry = m.part(0, ()).at((n, ITEM), far=((1, ITEM),))
    carry = Ref(Operand(-1, 2), (2,))
    starts, steps = [], []
    for k in range(2):
        begin, _, _ = trace(lambda q, k=k: (q * q + k, np.array([np.sin(q), 1.0 + k * q])), [()])
        starts.append(b.case(begin, [one], [m.part(0, ()).at((n + 1, ITEM)), carry]))
    for k in range(2):
        for above in range(2):

            def ahead(c, mine, theirs, k=k, above=above):
                moved = np.array([c[0] * np.cos(theirs) - above * c[1], c[1] + c[0] * (theirs + k)])
                return moved[0] * theirs + mine, moved[1], moved

            block, _, _ = trace(ahead, [(2,), (), ()])
            gain = load.part(0, ()).at(far=((1, ITEM),), add=True)
            steps.append(b.case(block, [carry, one, other], [entry, gain, carry]))
    b.add(Walk(n, parent, tuple(starts), tuple(steps), kinds))
    return b.build()


def elimination() -> Program:
    """x − L x by walks: inward ones add to the ancestors, then outward ones to the item; nothing is carried."""
    n = len(TREE)
    b = ProgramBuilder("elimination")
    x, y = b.input("x", (n,)), b.output("y", (n,))
    first, second = b.temporary("first", (n,)), b.temporary("second", (n,))
    b.call(lambda x: x * x, [x], [first])
    carry, parent = Ref(Operand(-1, 0), (0,)), b.column(TREE)
    own, far = first.part(0, ()).at((1, ITEM)), first.part(0, ()).at(far=((1, ITEM),), add=True)
    nothing, _, _ = trace(lambda: np.zeros(0), [])
    step, _, _ = trace(lambda c, z, p, q: (np.sin(p) * q * z, c), [(0,), (), (), ()])
    given = [x.part(0, ()).at((1, ITEM)), x.part(0, ()).at(far=((1, ITEM),))]
    up = b.case(step, [carry, own, *given], [far, carry])
    b.add(Walk(n, parent, (b.case(nothing, [], [carry]),), (up,), order="inward"))
    begin, _, _ = trace(lambda z: (z, np.zeros(0)), [()])
    own, far = second.part(0, ()).at((1, ITEM), add=True), second.part(0, ()).at(far=((1, ITEM),))
    start = b.case(begin, [first.part(0, ()).at((1, ITEM))], [second.part(0, ()).at((1, ITEM)), carry])
    down = b.case(step, [carry, far, *given], [own, carry])
    b.add(Walk(n, parent, (start,), (down,)))
    b.add(Copy(second.operand, y.operand))
    return b.build()


def kepler(count: int = 30) -> Program:
    """x − e sin x = m by Newton's method, with an early end."""
    b = ProgramBuilder("kepler")
    given, y = b.input("given", (2,)), b.output("y", ())
    x, following, done = b.temporary("x", ()), b.temporary("following", ()), b.temporary("done", ())
    b.add(Copy(given.part(0, ()).operand, x.operand))

    def newton(given, x):
        m, e = given
        residual = x - e * np.sin(x) - m
        return x - residual / (1.0 - e * np.cos(x)), where(abs(residual) < 1e-9, 1.0, 0.0)

    block, _, _ = trace(newton, [(2,), ()])
    body = Each(1, (b.case(block, [given, x], [following, done]),))
    b.add(Loop(count, (body,), ((x.operand, following.operand),), done.operand))
    b.call(lambda x: np.sin(x), [x], [y])
    return b.build()


TREE = np.array([-1, 0, 1, 1])


def solve(method: str, right: int = 2) -> Program:
    """A linear system whose matrix and right side both depend on the input; what is not to be read is rubbish."""
    m, n = (2, 4) if method == "least-norm" else (4, 4)
    b = ProgramBuilder(f"solve_{method}")
    x, y = b.input("x", (6,)), b.output("y", (n, right))
    matrix, rhs = b.temporary("matrix", (m, n)), b.temporary("rhs", (m, right))
    related = np.eye(4, dtype=bool)
    for i in range(4):
        j = TREE[i]
        while j >= 0:
            related[i, j] = True
            j = TREE[j]

    def entry(x, i, j):
        value = np.sin(x[(i + 2 * j) % 6] + i) * x[(3 * i + j) % 6] + (3.0 if i == j else 0.0)
        if method == "ltl" and not related[i, j] and j < i:
            return 0.0
        return 1e3 * value if method in ("ltl", "cholesky") and j > i else value

    b.call(lambda x: np.array([[entry(x, i, j) for j in range(n)] for i in range(m)]), [x], [matrix])
    b.call(lambda x: np.array([[x[i] * x[k] + i for k in range(right)] for i in range(m)]), [x], [rhs])
    parent = b.column(TREE) if method == "ltl" else None
    b.add(Solve(method, matrix.operand, rhs.operand, y.operand, m, n, right, parent))
    return b.build()


STATEMENTS = {
    "outward": outward,
    "inward": inward,
    "shared operands": shared_operands,
    "overlapping parts": overlapping_parts,
    "map": legs,
    "walk": walk,
    "elimination": elimination,
    "cholesky": lambda: solve("cholesky"),
    "ltl": lambda: solve("ltl"),
    "lu": lambda: solve("lu"),
    "least norm": lambda: solve("least-norm"),
    "one right side": lambda: solve("lu", right=1),
}
