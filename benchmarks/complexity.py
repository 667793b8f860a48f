"""Multiplications, additions and depth of forward dynamics against the number of links, by every method.

    python benchmarks/complexity.py [--write]

Counted, not timed: the same on every machine. The table is printed, the picture is out/complexity.png; --write puts
both into docs/complexity.md, which says where the counts differ and why.
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
from linkwright.dynamics.methods.operation_counts import ASSEMBLY, generic_forward_dynamics, grouped
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
#: Columns of text that hold every formula on one line.
WIDTH = 140


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table and the picture into docs/")
    options = parser.parse_args()
    links = (*LINKS, 5, 7)
    generic = {m: {n: unspecialised(n, m, rotations=True) for n in links} for m in FORWARD_METHODS}
    as_in_the_paper = {m: {n: unspecialised(n, m) for n in links} for m in FORWARD_METHODS if m != ASSEMBLY}
    special = {m: {n: specialised(n, m) for n in links} for m in FORWARD_METHODS}
    rows = table(generic, as_in_the_paper, special)
    console = Console(width=max(WIDTH, Console().width))
    console.print("One forward dynamics of an N-link chain: multiplications, additions, depth", style="bold")
    shown = Table(box=SIMPLE, padding=(0, 1))
    for k, name in enumerate(rows[0]):
        shown.add_column(name, justify="right" if k > 2 else "left", no_wrap=True)
    for row in rows[1:]:
        # A row a line, so that numbers stay beside their formula where that is folded.
        for cells in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            shown.add_row(*cells)
    console.print(shown)
    picture = DOCS / "images" / "complexity.png" if options.write else Path("out/complexity.png")
    picture.parent.mkdir(exist_ok=True)
    draw(generic, special, picture)
    console.print(f"wrote {picture}", highlight=False)
    if options.write:
        marks = ["---", "---", "---", *["---:"] * (len(rows[0]) - 3)]
        lines = ["| " + " | ".join(row).replace("\n", "<br>") + " |" for row in (rows[0], marks, *rows[1:])]
        replace_section("complexity", "\n".join(["", *lines, ""]), DOCS / "complexity.md")
    return 0


def unspecialised(n: int, method: str, *, rotations: bool = False) -> tuple[int, ...]:
    """`lw.operation_counts`, and the depth of what it counts."""
    block = generic_forward_dynamics(n, method, rotations=rotations)
    return *grouped(block.count()), block.depth()


def specialised(n: int, method: str) -> tuple[int, int]:
    """The counts of the recorded program of `lw.chain(n)`; sines and cosines apart."""
    return grouped(lw.chain(n).program("forward_dynamics", method=method, form="unrolled").count())


def table(generic: dict[str, Counts], matrices: dict[str, Counts], special: dict[str, Counts]) -> list[list[str]]:
    """The rows: `generic` counts with R and p given, those of all methods but one with `matrices` C given."""
    chains = [f"chain({n})" for n in SHOWN]
    rows = [["method", "generic, R and p given", "C given", *(f"N = {n}" for n in SHOWN), *chains]]
    for method, counts in generic.items():
        numbers = [counts[n] for n in SHOWN], [special[method][n] for n in SHOWN]
        full = stacked(formulas(matrices[method])) if method in matrices else ""
        rows.append([method, stacked(formulas(counts)), full, *map(stacked, (*numbers[0], *numbers[1]))])
        if method in PAPER:
            exact = [text(dict(zip(POLYNOMIALS[1], map(Fraction, p), strict=True))) for p in PAPER[method]]
            rows.append([f"paper, {EQUATIONS[method]}", "", stacked(exact), *[""] * (2 * len(SHOWN))])
    return rows


def formulas(counts: Counts) -> list[str]:
    multiplications, additions, depth = (text(fitted(counts, side)) for side in range(3))
    return [multiplications, additions, f"depth {depth}"]


def stacked(numbers: Sequence[Any]) -> str:
    return "\n".join(x if isinstance(x, str) else f"{x:,}" for x in numbers)


def fitted(counts: Counts, side: int) -> Formula | None:
    """The polynomial in N that gives every count from two links on (or from three), or else the formula with log₂N
    that gives those of powers of two; None if there is none."""
    from_two, from_three = (sorted(n for n in counts if n >= least) for least in (2, 3))
    powers = [n for n in from_two if n & (n - 1) == 0]
    tries = [(terms, links) for links in (from_two, from_three) for terms in POLYNOMIALS]
    for terms, chosen in (*tries, *((terms, powers) for terms in LOGARITHMS)):
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
