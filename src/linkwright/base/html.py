"""Pieces of HTML for notebooks and pages: text from files made harmless, tables that end, headings and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import UNSEEN

#: Rows of a table that are shown; the rest is counted.
ROWS = 12
#: Letters of a name that are shown.
LETTERS = 60
#: Numbers of an array up to which its least and greatest are looked for.
LOOKED = 4_000_000

# Ink is the notebook's own and lines are half transparent, so that every theme can be read.
_STYLE = """<style>
.lw-show{font:14px/1.45 system-ui,sans-serif;color:inherit;max-width:60em;overflow-wrap:anywhere}
.lw-show h4{font-size:1.1em;font-weight:600;margin:.2em 0}
.lw-show p{margin:.3em 0;color:inherit}
.lw-show .lw-soft{opacity:.72}
.lw-show .lw-bad{border-left:4px solid #d9602b;padding-left:.6em}
.lw-show .lw-side{display:flex;flex-wrap:wrap;gap:.4em 1.4em;align-items:flex-start}
.lw-show .lw-wide{overflow-x:auto}
.lw-show table{border-collapse:collapse;margin:.3em 0;font-size:13px;color:inherit;background:none;border:0}
.lw-show tr,.lw-show tr:nth-child(even),.lw-show tr:hover{background:none}
.lw-show :is(th,td){text-align:left;padding:.15em .9em .15em 0;border:0;border-bottom:1px solid rgba(128,128,128,.3)}
.lw-show :is(th,td){vertical-align:top;background:none;color:inherit;white-space:normal}
.lw-show th{font-weight:600}
.lw-show td.lw-n{font-variant-numeric:tabular-nums;white-space:nowrap}
.lw-show summary{cursor:pointer}
.lw-show details{margin:.25em 0}
.lw-show svg{display:block;max-width:100%;height:auto}
.lw-show iframe{width:100%;border:1px solid rgba(128,128,128,.4);border-radius:6px;display:block;margin:.4em 0}
</style>"""


class Markup(str):
    """Text that is HTML already."""


def shown(*parts: str) -> str:
    """An output: its parts below each other, in a style that reaches nothing else on the page."""
    return f'{_STYLE}<div class="lw-show">{"".join(parts)}</div>'


def safe(text: object, most: int = LETTERS) -> str:
    """Any text as harmless HTML: cut, escaped, without letters that cannot be seen or written."""
    letters = str(text)
    if len(letters) > most:
        letters = letters[: most - 1] + "…"
    from html import escape  # weight: html.entities

    return escape(UNSEEN.sub("�", letters))


def heading(title: object, more: str = "") -> str:
    """The name of what is shown, and what it is."""
    soft = f' <span class="lw-soft">{safe(more, 200)}</span>' if more else ""
    return f"<h4>{safe(title)}{soft}</h4>"


def line(text: object, *, bad: bool = False, soft: bool = False) -> str:
    """A sentence of its own."""
    name = " ".join(word for word, on in (("lw-bad", bad), ("lw-soft", soft)) if on)
    return f"<p{f' class={chr(34)}{name}{chr(34)}' if name else ''}>{safe(text, 2000)}</p>"


def beside(*parts: str) -> str:
    """Parts beside each other where there is room."""
    return f'<div class="lw-side">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'


def folded(summary: str, body: str, *, open_: bool = False) -> str:
    """A part that opens at a click; nothing where it is empty."""
    return f"<details{' open' if open_ else ''}><summary>{safe(summary, 200)}</summary>{body}</details>" if body else ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], total: int | None = None) -> str:
    """The first rows of a table, and how many more there are; `total` is how many rows there are in all.

    Numbers are written short; what is `Markup` is put in as it is. Rows are asked for only as far as they are shown.
    """
    first = list(islice(rows, ROWS + 1))
    more = (len(first) if total is None else total) - ROWS
    top = f"<thead><tr>{''.join(f'<th>{safe(name)}</th>' for name in head)}</tr></thead>" if any(head) else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in first[:ROWS])
    note = f"… and {more:,} more" if total is not None else "… and more"
    after = f'<p class="lw-soft">{note}</p>' if more > 0 else ""
    return f'<div class="lw-wide"><table>{top}<tbody>{body}</tbody></table>{after}</div>'


def number(x: float) -> str:
    """A number in a few digits, with the signs that people write."""
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    return f"{x:.5g}".replace("-", "−")


def vector(numbers: Iterable[float]) -> Markup:
    """Numbers beside each other."""
    return Markup(safe(", ".join(number(float(x)) for x in numbers), 80))


def span(values: NDArray[np.float64]) -> tuple[object, object]:
    """The least and the greatest finite value as cells; of arrays in other memory, or very large, nothing."""
    if not isinstance(values, np.ndarray) or values.size > LOOKED:
        return "", ""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else ("", "")


def _cell(value: object) -> str:
    if isinstance(value, Markup):
        return f"<td>{value}</td>"
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="lw-n">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="lw-n">{number(value)}</td>'
    return f"<td>{safe(value, 2 * LETTERS)}</td>"
