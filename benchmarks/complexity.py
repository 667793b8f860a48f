"""Multiplications, additions and depth of forward dynamics against the number of links, by every method.

    python benchmarks/complexity.py [--write]

Counted, not timed: the same on every machine. The table is printed, the picture is out/complexity.png; --write puts
both into docs/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import linkwright as lw
from linkwright.dynamics.functions import FORWARD_METHODS
from linkwright.dynamics.methods.operation_counts import generic_forward_dynamics, grouped
from table import replace_section

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SHOWN = (8, 64)
FAR = 1024  # links up to which an exact formula is drawn
MULTIPLICATIONS, ADDITIONS, DEPTH = range(3)
Counts = dict[int, tuple[int, ...]]  # links → multiplications, additions and, where it is known, depth
Formula = dict[str, Fraction]  # a coefficient for each term
TERMS: dict[str, Callable[[Any], Any]] = {
    "N³": lambda n: n**3,
    "N²": lambda n: n**2,
    "N": lambda n: n,
    " log₂N": np.log2,
    "": lambda n: n**0,
}
POLYNOMIALS = (("N", ""), ("N²", "N", ""), ("N³", "N²", "N", ""))
LOGARITHMS = ((" log₂N", ""), ("N", " log₂N", ""))  # at powers of two

#: Iwamura and Schiehlen, eqs 34, 35, 61, 62: coefficients of N², N, 1 for multiplications and additions.
PAPER: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "triangular": ((43.5, 1133.5, -978), (36.5, 945.5, -833)),
    "diagonal": ((0, 1291, -900), (0, 1090, -905)),
}
EQUATIONS = {"triangular": "eqs 34, 35", "diagonal": "eqs 61, 62"}

WHY = """\
Why our generic counts are lower than the paper's, with the same power of N. The paper gives totals, not their terms; \
for one link of "diagonal" ours are 837 multiplications against 1291. U M̂ and Cᵀ(U M̂)C are symmetric, and only half of \
each is computed: 2 × 90 multiplications less than full products. Jᵀ M̂ is kept from the way in, so that the way out \
does not multiply by M̂ again: 36 less. The other 238 cannot be told from the paper; forming each C from its rotation \
and its shift as a full product would be 216 of them, while here C is given. For a pair of links of "triangular" ours \
are 44 multiplications against 87: 36 carry a column of M̂ from link to link, 6 project it, 2 are the two \
substitutions; the paper forms G (eq 33) as well, and here G is never formed.
Against the articulated-body algorithm: U M̂ is its M' = M̂ − M̂J D⁻¹ JᵀM̂, and the passes are the same. It forms M' from \
one column, with 27 multiplications, where the paper forms U and multiplies it by M̂, with 168, and then multiplies U \
by a vector, with 36: these are the 177 between the two. For a joint along an axis it also knows that a row and a \
column of M' vanish.
Virtual work has the joints' constraint forces for unknowns, five a joint here where the others have one. So it needs \
the inverse Φ of every body's inertia, with 126 multiplications, and W = Q (QᵀΦQ)⁻¹ Qᵀ, with 600; the \
articulated-body algorithm has one column and one division in their place. For a joint along an axis Q picks rows, \
and of W only a 5×5 inverse is left. What the price buys: a joint that closes a loop is one more constraint.
The assembly knows every stretch of the chain at both ends, by M, X and Φ, three 6×6 where the others carry one. A \
join takes up to 2,628 multiplications, 627 of them for W' = (W⁻¹ + Φ)⁻¹; half of the joins have a single link \
above, with Φ = 0, and cost less; those at the tip and at ground leave out what nobody asks for, hence a term in \
log₂N. The formula is for powers of two. R and p are given there in place of C, since rotations are multiplied over \
stretches; forming C of them is counted. (The programs themselves first put up to 16 neighbours together one by one, \
at a third of a join each: less work for a little more depth.) What the price buys is depth: the longest chain of \
operations in which each needs the one before, the time that is left if enough processors share the work. Doubling \
the chain adds 137 to the assembly's and at least doubles the others': it is less deep than the articulated-body \
algorithm from 11 links on, and than all others from 43 links on. Sums are taken from left to right, as the programs \
take them."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table and the picture into docs/")
    options = parser.parse_args()
    links = (*LINKS, 5, 7)
    generic = {m: {n: unspecialised(n, m) for n in links} for m in FORWARD_METHODS}
    special = {m: {n: specialised(n, m) for n in links} for m in FORWARD_METHODS}
    rows = table(generic, special)
    console = Console()
    console.print("One forward dynamics of an N-link chain: multiplications, additions, depth", style="bold")
    shown = Table(box=SIMPLE, padding=(0, 1))
    for k, name in enumerate(rows[0]):
        shown.add_column(name, justify="right" if k > 1 else "left", no_wrap=k != 1)
    for row in rows[1:]:
        # A row a line, so that numbers stay beside their formula where that is folded.
        for cells in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            shown.add_row(*cells)
    console.print(shown)
    console.print(WHY, highlight=False)
    picture = DOCS / "images" / "complexity.png" if options.write else Path("out/complexity.png")
    picture.parent.mkdir(exist_ok=True)
    draw(generic, special, picture)
    console.print(f"wrote {picture}", highlight=False)
    if options.write:
        marks = ["---", "---", *["---:"] * (len(rows[0]) - 2)]
        lines = ["| " + " | ".join(row).replace("\n", "<br>") + " |" for row in (rows[0], marks, *rows[1:])]
        replace_section("complexity", "\n".join(["", *lines, ""]), DOCS / "complexity.md")
        replace_section("why", f"\n{WHY.replace(chr(10), chr(10) * 2)}\n", DOCS / "complexity.md")
    return 0


def unspecialised(n: int, method: str) -> tuple[int, ...]:
    """`lw.operation_counts`, and the depth of what it counts."""
    block = generic_forward_dynamics(n, method)
    return *grouped(block.count()), block.depth()


def specialised(n: int, method: str) -> tuple[int, int]:
    """The counts of the recorded program of `lw.chain(n)`; sines and cosines apart."""
    return grouped(lw.chain(n).program("forward_dynamics", method=method, form="unrolled").count())


def table(generic: dict[str, Counts], special: dict[str, Counts]) -> list[list[str]]:
    rows = [["method", "generic", *(f"N = {n}" for n in SHOWN), *(f"chain({n})" for n in SHOWN)]]
    for method, counts in generic.items():
        exact = [text(fitted(counts, side)) for side in range(3)]
        exact[DEPTH] = f"depth {exact[DEPTH]}"
        rows.append([method, *map(stacked, (exact, *(counts[n] for n in SHOWN), *(special[method][n] for n in SHOWN)))])
        if method in PAPER:
            exact = [text(dict(zip(POLYNOMIALS[1], map(Fraction, p), strict=True))) for p in PAPER[method]]
            values = [stacked([round(float(np.polyval(p, n))) for p in PAPER[method]]) for n in SHOWN]
            rows.append([f"paper, {EQUATIONS[method]}", stacked(exact), *values, "", ""])
    return rows


def stacked(numbers: Sequence[Any]) -> str:
    return "\n".join(x if isinstance(x, str) else f"{x:,}" for x in numbers)


def fitted(counts: Counts, side: int) -> Formula | None:
    """The polynomial in N that gives every count from two links on, or else the formula with log₂N that gives those
    of powers of two; None if there is neither."""
    links = sorted(n for n in counts if n > 1)
    for terms in (*POLYNOMIALS, *LOGARITHMS):
        chosen = [n for n in links if terms in POLYNOMIALS or n & (n - 1) == 0]
        if len(chosen) <= len(terms):
            continue
        first = chosen[: len(terms)]
        near = np.linalg.solve([[float(TERMS[t](n)) for t in terms] for n in first], [counts[n][side] for n in first])
        exact = {t: Fraction(round(c * 12), 12) for t, c in zip(terms, near, strict=True)}
        if all(sum(c * Fraction(float(TERMS[t](n))) for t, c in exact.items()) == counts[n][side] for n in chosen):
            return exact
    return None


def evaluated(formula: Formula, n: Any) -> Any:
    return sum(float(c) * TERMS[t](n) for t, c in formula.items())


def text(formula: Formula | None) -> str:
    """For example 22N² + 760N − 618."""
    found = ""
    for term, c in (formula or {}).items():
        if not c:
            continue
        size = abs(c)
        if size.denominator in (1, 2):
            part = ("" if size == 1 and term else format(float(size), "g")) + term
        else:
            part = f"{'' if size.numerator == 1 else size.numerator}{term}/{size.denominator}"
        sign = "−" if c < 0 else "+" if found else ""
        found += f" {sign} {part.strip()}" if found else f"{sign}{part.strip()}"
    return found or "no formula"


COLOURS = dict(zip(FORWARD_METHODS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#222222"), strict=True))


def draw(generic: dict[str, Counts], special: dict[str, Counts], path: Path) -> None:
    """Operations a link against N: a slope of 0 is O(N), of 1 O(N²), of 2 O(N³); and the depth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = plt.subplots(2, 2, figsize=(10.5, 8.6), layout="constrained")
    first, second, folded, deep = panels.flat
    for axes, side, what in ((first, MULTIPLICATIONS, "multiplications"), (second, ADDITIONS, "additions")):
        _dress(axes, f"{what} a link, generic joints", (2, 8, 32, 128, 512))
        _curves(axes, generic, side, a_link=True, exact=True)
        n = np.geomspace(2, FAR, 200)
        for method, paper in PAPER.items():
            style = {"color": COLOURS[method], "lw": 1.8, "ls": (0, (1, 1.2)), "label": f"{method}, in the paper"}
            axes.plot(n, np.polyval(paper[side], n) / n, **style)
    second.sharey(first)
    _dress(folded, "multiplications a link, lw.chain with its constants folded", (2, 4, 8, 16, 32, 64))
    _curves(folded, special, MULTIPLICATIONS, a_link=True, exact=False)
    _dress(deep, "depth, generic joints: operations that wait for one another", (2, 8, 32, 128, 512))
    _curves(deep, generic, DEPTH, a_link=False, exact=True)
    figure.suptitle("One forward dynamics of a chain of N links", fontsize=14)
    lines, names = first.get_legend_handles_labels()
    figure.legend(lines, names, frameon=False, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _curves(axes: Any, counts: dict[str, Counts], side: int, *, a_link: bool, exact: bool) -> None:
    """One curve a method: its formula as far as `FAR`, or else its counts."""
    for method, own in counts.items():
        n, y = np.array([(n, own[n][side]) for n in sorted(own) if n > 1], dtype=float).T
        formula = fitted(own, side) if exact else None
        if formula is not None:
            n = np.geomspace(2, FAR, 200)
            y = evaluated(formula, n)
        axes.plot(n, y / n if a_link else y, color=COLOURS[method], lw=2, label=method)


def _dress(axes: Any, title: str, links: Sequence[int]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel("links N")
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain: Callable[[float, int], str] = lambda x, _: f"{x:,.0f}"  # noqa: E731
    for axis, ticks in (
        (axes.xaxis, links),
        (axes.yaxis, [m * 10**k for k in range(1, 6) for m in (1, 2, 5)]),
    ):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(plain))
    axes.grid(color="0.9", lw=0.8)
    axes.set_axisbelow(True)


if __name__ == "__main__":
    raise SystemExit(main())
