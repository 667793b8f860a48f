"""Multiplications and additions of forward dynamics against the number of links, by every method.

    python benchmarks/complexity.py [--write]

Counted, not timed: the same on every machine. The table is printed, the picture is out/complexity.png; --write puts
both into docs/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import linkwright as lw
from linkwright.programs import FORWARD_METHODS
from linkwright.recursions.generic import grouped
from table import replace_section

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SHOWN = (8, 64)
FAR = 1024  # links up to which an exact polynomial is drawn
Counts = dict[int, tuple[int, int]]  # links → multiplications, additions

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
column of M' vanish."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table and the picture into docs/")
    options = parser.parse_args()
    generic = {m: {n: lw.operation_counts(n, m) for n in (*LINKS, 5, 7)} for m in FORWARD_METHODS}
    special = {m: {n: specialised(n, m) for n in (*LINKS, 5, 7)} for m in FORWARD_METHODS}
    rows = table(generic, special)
    console = Console()
    console.print("One forward dynamics of an N-link chain: multiplications, and below them additions", style="bold")
    shown = Table(box=SIMPLE, padding=(0, 1))
    for k, name in enumerate(rows[0]):
        shown.add_column(name, justify="right" if k > 1 else "left", no_wrap=k != 1)
    for row in rows[1:]:
        shown.add_row(*row)
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


def specialised(n: int, method: str) -> tuple[int, int]:
    """The counts of the recorded program of `lw.chain(n)`; sines and cosines apart."""
    return grouped(lw.chain(n).program("forward_dynamics", method=method, form="unrolled").count())


def table(generic: dict[str, Counts], special: dict[str, Counts]) -> list[list[str]]:
    head = ["method", "generic", *(f"N = {n}" for n in SHOWN), *(f"chain({n})" for n in SHOWN)]
    rows = [head]
    for method, counts in generic.items():
        own = [both(counts[n]) for n in SHOWN]
        exact = [polynomial(fitted(counts, side)) for side in range(2)]
        rows.append([method, both(exact), *own, *(both(special[method][n]) for n in SHOWN)])
        if method in PAPER:
            exact = [polynomial([Fraction(c) for c in p]) for p in PAPER[method]]
            values = [both([round(float(np.polyval(p, n))) for p in PAPER[method]]) for n in SHOWN]
            rows.append([f"paper, {EQUATIONS[method]}", both(exact), *values, "", ""])
    return rows


def both(pair: Sequence[Any]) -> str:
    return "\n".join(x if isinstance(x, str) else f"{x:,}" for x in pair)


def fitted(counts: Counts, side: int) -> list[Fraction] | None:
    """The polynomial in N that gives every count from two links on, if there is one."""
    links = sorted(n for n in counts if n > 1)
    values = [counts[n][side] for n in links]
    for degree in range(1, 4):
        near = np.polyfit(links[: degree + 1], values[: degree + 1], degree)
        exact = [Fraction(round(c * 12), 12) for c in near]
        if [sum(c * n**k for k, c in enumerate(reversed(exact))) for n in links] == values:
            return exact
    return None


def polynomial(coefficients: Sequence[Fraction] | None) -> str:
    """For example 22N² + 760N − 618."""
    if coefficients is None:
        return "no polynomial"
    text = ""
    for power, c in zip(reversed(range(len(coefficients))), coefficients, strict=True):
        if c:
            whole = "" if abs(c) == 1 and power else format(float(abs(c)), "g") if c.denominator in (1, 2) else ""
            part = f"{whole}{('', 'N', 'N²', 'N³')[power]}"
            if c.denominator not in (1, 2):
                top = "" if abs(c.numerator) == 1 else str(abs(c.numerator))
                part = f"{top}{('', 'N', 'N²', 'N³')[power]}/{c.denominator}"
            text += (" − " if c < 0 else " + ") + part if text else ("−" if c < 0 else "") + part
    return text


COLOURS = dict(zip(FORWARD_METHODS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"), strict=False))


def draw(generic: dict[str, Counts], special: dict[str, Counts], path: Path) -> None:
    """Operations a link against N: a slope of 0 is O(N), of 1 O(N²), of 2 O(N³)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = plt.subplots(2, 2, figsize=(10.5, 7.8), sharex="row", sharey="row", layout="constrained")
    for side, what in enumerate(("multiplications", "additions")):
        for row, (title, counts) in enumerate((("generic joints", generic), ("lw.chain, constants folded", special))):
            axes = panels[row, side]
            axes.set_title(f"{what}: {title}", fontsize=11, loc="left")
            _dress(axes, (2, 8, 32, 128, 512) if row == 0 else (2, 4, 8, 16, 32, 64))
            for method, own in counts.items():
                n, y = np.array([(n, own[n][side]) for n in LINKS if n > 1]).T
                exact = fitted(own, side) if row == 0 else None
                if exact is not None:
                    n = np.geomspace(2, FAR, 200)
                    y = np.polyval([float(c) for c in exact], n)
                axes.plot(n, y / n, color=COLOURS[method], lw=2, label=method)
        for method, paper in PAPER.items():
            n = np.geomspace(2, FAR, 200)
            style = {"color": COLOURS[method], "lw": 1.6, "ls": (0, (1, 1.2)), "label": f"{method}, in the paper"}
            panels[0, side].plot(n, np.polyval(paper[side], n) / n, **style)
        panels[1, side].set_xlabel("links N")
        panels[0, side].set_xlabel("links N")
    for row in range(2):
        panels[row, 0].set_ylabel("operations a link")
    panels[0, 0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle("One forward dynamics of a chain: the slope is the power of N less one", fontsize=13)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _dress(axes: Any, links: Sequence[int]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    plain: Callable[[float, int], str] = lambda x, _: f"{x:,.0f}"  # noqa: E731
    for axis, ticks in (
        (axes.xaxis, links),
        (axes.yaxis, (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)),
    ):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(plain))
    axes.grid(color="0.9", lw=0.8)
    axes.set_axisbelow(True)


if __name__ == "__main__":
    raise SystemExit(main())
