"""Pieces of the report's page: tables, figures, numbers, and the page around its sections."""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple


class Section(NamedTuple):
    """A part of the page: its key in links, its heading, what stands beside that, and what is inside (HTML)."""

    key: str
    heading: str
    beside: str
    inside: str


class Cell(NamedTuple):
    """A cell of a table that is HTML already."""

    html: str


class Column(NamedTuple):
    """The head of a column; numbers stand right."""

    name: str
    number: bool = False


def columns(*words: str, numbers: Sequence[str] = (), after: Sequence[str] = ()) -> list[Column]:
    """Columns of words, then of numbers, then of words again."""
    return [*map(Column, words), *(Column(name, True) for name in numbers), *map(Column, after)]


def escaped(text: str) -> str:
    """Text that can be no markup, with single spaces."""
    return html.escape(" ".join(text.split()))


def number(value: float | None, digits: int = 3, scale: float = 1.0) -> str:
    """A number in so many digits; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    exact = scale * value
    return f"{exact:,.0f}" if 1e3 <= abs(exact) < 1e7 else f"{exact:.{digits}g}"


def thousands(value: float | None) -> str:
    """Of seconds or metres, their thousandths in three digits."""
    return number(value, 3, 1e3)


def table(
    heads: Sequence[Column],
    rows: Iterable[Sequence[str | Cell]],
    *,
    caption: str = "",
    kinds: Mapping[int, str] | None = None,
    cards: bool = False,
) -> str:
    """A table that scrolls where it is wide, or (cards) stands as blocks on a phone."""
    top = "".join(f'<th scope="col"{_right(one)}>{escaped(one.name)}</th>' for one in heads)
    heading = f"<caption>{escaped(caption)}</caption>" if caption else ""
    body = []
    for k, row in enumerate(rows):
        kind = f' class="{kinds[k]}"' if kinds and k in kinds else ""
        cells = []
        for i, (one, cell) in enumerate(zip(heads, row, strict=True)):
            name = f' data-name="{escaped(one.name)}"' if cards and i and one.name else ""
            inside = cell.html if isinstance(cell, Cell) else escaped(cell)
            cells.append(f"<td{_right(one)}{name}>{inside}</td>")
        body.append(f"<tr{kind}>{''.join(cells)}</tr>")
    shape = ' class="cards"' if cards else ' class="many"' if len(heads) > 3 else ""
    inside = f"{heading}<thead><tr>{top}</tr></thead>\n<tbody>" + "\n".join(body) + "</tbody>"
    return f'<div class="wide"><table{shape}>{inside}</table></div>\n'


def _right(column: Column) -> str:
    return ' class="number"' if column.number else ""


def judged(met: bool | None, words: tuple[str, str] = ("met", "not met")) -> Cell:
    """Whether something is met: a sign and a word; a dash where nothing is asked."""
    if met is None:
        return Cell("–")
    return Cell(f'<span class="met">✓ {words[0]}</span>' if met else f'<span class="missed">✗ {words[1]}</span>')


def picture(svg: bytes, alt: str, caption: str, *, broad: bool = False) -> str:
    """A figure with its words; the caption is HTML. As an image, so that names inside it meet no others."""
    data = base64.b64encode(svg).decode()
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escaped(alt)}">'
    if broad:
        image = f'<div class="wide">{image}</div>'
    return f"<figure{' class=broad' if broad else ''}>{image}\n<figcaption>{caption}</figcaption></figure>\n"


def paragraph(text: str) -> str:
    """A paragraph of HTML."""
    return f"<p>{text}</p>\n"


def listed(items: Iterable[str]) -> str:
    """A list of HTML items."""
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>\n"


def frame(title: str, lead: str, notes: Sequence[str], sections: Sequence[Section]) -> str:
    """The page around its sections. It loads nothing but the animation beside it, and has no script."""
    style = (files("linkwright.studies.manipulator") / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; frame-src 'self' file:; "
        "base-uri 'none'; form-action 'none'"
    )
    contents = "".join(f'<li><a href="#{one.key}">{escaped(one.heading)}</a></li>' for one in sections)
    remarks = "".join(f"<p>{escaped(note)}</p>" for note in notes)
    body = "".join(
        f'<section id="{one.key}"><h2>{escaped(one.heading)}{_beside(one.beside)}</h2>\n{one.inside}</section>\n'
        for one in sections
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div class="frame">\n<nav aria-label="Contents"><p>Contents</p><ol>{contents}</ol></nav>\n<main>\n'
        f"<header><h1>{escaped(title)}</h1>\n{lead}"
        f"{f'<div class=notes>{remarks}</div>' if remarks else ''}</header>\n"
        f"{body}</main>\n</div>\n</body>\n</html>\n"
    )


def _beside(text: str) -> str:
    return f" <small>{escaped(text)}</small>" if text else ""
