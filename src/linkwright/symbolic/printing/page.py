"""The equations as one HTML page: formulas in MathML, no network, no script."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from dataclasses import astuple
from importlib.resources import files

from linkwright.symbolic.formula import Block, Sum
from linkwright.symbolic.printing.count import Operations, operations
from linkwright.symbolic.printing.layout import layout
from linkwright.symbolic.printing.mathml import MathML, math, matrix, named, number
from linkwright.symbolic.printing.names import Split
from linkwright.symbolic.printing.quantities import Quantity, letter, motion
from linkwright.symbolic.printing.sheet import Sheet, different, terms

#: An entry with more terms is shortened to SHOWN of them, and so is every one once the page holds ENOUGH.
LONGEST, SHOWN, ENOUGH = 2_000, 200, 12_000
KINDS = ("additions", "multiplications", "divisions", "functions")


def html_page(sheet: Sheet) -> str:
    """The page's text; it loads nothing, and names from files can be no markup."""
    writer = MathML()
    costs = [operations(block) for block in sheet.blocks]
    sections = [("Equation of motion", "motion", _motion(sheet))] if motion(sheet) else []
    budget = [ENOUGH]
    for k, (block, cost) in enumerate(zip(sheet.blocks, costs, strict=True)):
        sections.append((sheet.heading(block), f"block-{k}", _block(block, cost, writer, budget)))
    if sheet.values or sheet.coordinates:
        sections.append(("Symbols", "symbols", html_symbols(sheet, writer)))
    rows = [(math(_name(b)), (_size(b), *astuple(cost))) for b, cost in zip(sheet.blocks, costs, strict=True)]
    rows.append(("together", (sheet.terms, *astuple(sum(costs, Operations())))))
    told = "<p class=size>Operations of the printed Python and C: what recurs within a block counts once.</p>\n"
    sections.append(("Size and cost", "cost", html_costs(("terms", *KINDS), rows) + told))
    return html_frame(sheet, sections, sheet.notes)


def html_frame(sheet: Sheet, sections: Sequence[tuple[str, str, str]], notes: Sequence[str]) -> str:
    """The page around sections (heading, key, inside), with the title of these equations."""
    style = (files("linkwright.symbolic.printing") / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = _text(sheet.title) or "Equations of motion"
    contents = "".join(f'<li><a href="#{key}">{_text(heading)}</a></li>' for heading, key, _ in sections)
    told = "".join(f"<p>{_text(note)}</p>" for note in notes)
    body = "".join(_section(sheet, heading, key, inside) for heading, key, inside in sections)
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}: equations of motion</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div class="frame">\n<nav aria-label="Contents"><p>Contents</p><ol>{contents}</ol></nav>\n<main>\n'
        f'<header><h1>{title}</h1><p class="form">Equations of motion, {_text(sheet.form)} form</p>'
        f"{f'<div class=notes>{told}</div>' if told else ''}</header>\n"
        f"{body}</main>\n</div>\n</body>\n</html>\n"
    )
    # A name may hold half a surrogate pair, which UTF-8 has no bytes for.
    return page.encode("utf-8", "replace").decode("utf-8")


def _section(sheet: Sheet, heading: str, key: str, inside: str) -> str:
    beside = ""
    if key.startswith("block-"):
        block = sheet.blocks[int(key.removeprefix("block-"))]
        beside = math(_name(block))
    return f'<section id="{key}"><h2>{_text(heading)}{beside}</h2>\n{inside}</section>\n'


# -- the equation ---------------------------------------------------------------------------------------------------
def _motion(sheet: Sheet) -> str:
    plus = "<mo>+</mo>"
    left = plus.join(named(Split(x), bold=True) for x in "Fd")
    right = plus.join(map(_quantity, motion(sheet)))
    writer = MathML()
    shown = "<mo>,</mo>".join(writer.symbol(s) for s in sheet.coordinates[:12])
    more = "<mo>,</mo><mo>…</mo>" if len(sheet.coordinates) > 12 else ""
    vector = f"{named(Split('q'), bold=True)}<mo>=</mo><msup>{writer.bracket(shown + more)}<mi class=up>T</mi></msup>"
    force, disturbance = (math(named(Split(x), bold=True)) for x in "Fd")
    return (
        f'<div class="motion">{math(f"{left}<mo>=</mo>{right}", display=True)}</div>\n'
        f"<p>with the coordinates {math(vector)}, the driving forces {force} and disturbances {disturbance}.</p>\n"
    )


def _quantity(quantity: Quantity) -> str:
    text = named(quantity.name, bold=True)
    if quantity.of:
        inside = "<mo>,</mo>".join(named(Split("q"), dots, bold=True) for dots in quantity.of)
        text += MathML().bracket(inside)
    if quantity.times is not None:
        text += '<mspace width=".17em"/>' + named(Split("q"), quantity.times, bold=True)
    return f"<mrow>{text}</mrow>"


# -- blocks ---------------------------------------------------------------------------------------------------------
def _block(block: Block, cost: Operations, writer: MathML, budget: list[int]) -> str:
    plan = layout(block)
    parts = []
    if plan.cells:
        cells = [_entry(block, c.place) if c.entry is None else writer.sum(c.entry) for c in plan.cells]
        whole = f"{_name(block)}<mo>=</mo>{matrix(cells, plan.columns)}"
        parts.append(f'<div class="wide">{math(whole, display=True)}</div>\n')
    for place, entry in plan.listed:
        name = _entry(block, place) if block.shape else _name(block)
        parts.append(_written(name, entry, writer, budget))
    size = _size(block)
    parts.append(f'<p class="size">{size:,} term{"" if size == 1 else "s"} · as code: {cost}</p>\n')
    return "".join(parts)


def _written(name: str, entry: Sum, writer: MathML, budget: list[int], kind: str = "") -> str:
    """An entry, every term a formula of its own, so that lines break between them."""
    count = terms(entry)
    shown, more = entry, ""
    if count > LONGEST or count > budget[0]:
        shown = Sum(entry.terms[:SHOWN])
        left = count - terms(shown)
        if left:
            more = (
                f'<span class="more">… and {left:,} more terms. The form “recursive” stays short; Python, C and '
                "SymPy hold every term.</span>"
            )
    budget[0] -= terms(shown)
    pieces = " ".join(math(piece) for piece in writer.pieces(shown))
    kind += " long" if count > 60 else ""
    return (
        f'<div class="entry{kind}"><span>{math(f"{name}<mo>=</mo>")}</span>'
        f'<span class="terms">{pieces} {more}</span></div>\n'
    )


def html_entry(name: str, entry: Sum, writer: MathML) -> str:
    """name = formula, whole: one step of many, without much space around it."""
    return _written(name, entry, writer, [terms(entry)], " step")


def _size(block: Block) -> int:
    return sum(map(terms, different(block)[0]))


def _name(block: Block) -> str:
    return named(letter(block), bold=bool(block.shape))


def _entry(block: Block, place: str) -> str:
    parts = letter(block)
    return named(Split(parts.stem, f"{parts.subscript},{place}" if parts.subscript else place))


# -- tables ---------------------------------------------------------------------------------------------------------
def html_symbols(sheet: Sheet, writer: MathML) -> str:
    """A table of the symbols, their values and meanings."""
    values = sheet.values
    explained = any(sheet.meanings.get(name) for name in sheet.symbols)
    head = "<th>symbol</th><th>name</th><th class=number>value</th>" + ("<th>meaning</th>" if explained else "")
    rows = []
    for name, symbol in sheet.symbols.items():
        if name not in values and not sheet.meanings.get(name) and symbol.role in ("rate", "acceleration"):
            continue
        value = values.get(name)
        shown = math(number(f"{value:.10g}")) if value is not None else "–" if name in values else symbol.role
        meaning = f"<td>{_text(sheet.meanings.get(name, ''))}</td>" if explained else ""
        cells = f"<td>{math(writer.symbol(symbol))}</td><td><code>{_text(name)}</code></td>"
        rows.append(f"<tr>{cells}<td class=number>{shown}</td>{meaning}</tr>")
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>\n'


def html_costs(kinds: Sequence[str], rows: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """A table of counts, the last row for all together."""
    head = "<th></th>" + "".join(f"<th class=number>{kind}</th>" for kind in kinds)
    last = len(rows) - 1
    body = "".join(_row(*row, "sum" if k == last else "") for k, row in enumerate(rows))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n'


def _row(first: str, numbers: tuple[int, ...], kind: str = "") -> str:
    cells = "".join(f"<td class=number>{n:,}</td>" for n in numbers)
    return f'<tr class="{kind}"><td>{first}</td>{cells}</tr>'


def _text(text: str) -> str:
    return html.escape(" ".join(text.split()))
