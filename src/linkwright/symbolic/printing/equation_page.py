"""The equations as one HTML page and as a Markdown page."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from importlib.resources import files

from linkwright.base.arguments import counted
from linkwright.symbolic.formulas.formula import Block, Sum
from linkwright.symbolic.printing.code_printers import COSTS, costs
from linkwright.symbolic.printing.code_statements import Operations, wrapped
from linkwright.symbolic.printing.formula_writer import Plain
from linkwright.symbolic.printing.latex import Latex, aligned
from linkwright.symbolic.printing.mathml import MathML, equation_line, math
from linkwright.symbolic.printing.printed_sheet import Sheet, Split, terms

#: A sum with more terms is plain text, which is quicker to draw and to search.
DRAWN = 24
_WIDTH = 90


def markdown_page(sheet: Sheet) -> str:
    """A page with the equation of motion, every block, the symbols with their values, and the cost."""
    latex, plain = Latex(), Plain()
    lines = markdown_head(sheet)
    if sheet.motion:
        lines += [f"$$ {latex.equation(sheet)} $$", ""]
    each, total = costs(sheet)
    for block, (count, *cost) in each:
        lines += [f"## {markdown_text(sheet.heading(block))}", "", *_block(block, latex, plain)]
        lines += [f"{counted(count, 'term')}; as code: {Operations(*cost)}.", ""]
    lines += markdown_symbols(sheet, latex)
    lines += ["## Size and cost", "", f"| | {' | '.join(COSTS)} |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    rows = [(markdown_text(block.name), numbers) for block, numbers in each]
    for name, numbers in (*rows, ("total", total)):
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |")
    return markdown_file(lines)


def markdown_head(sheet: Sheet) -> list[str]:
    """The title, the form, and a paragraph a note."""
    lines = [f"# {markdown_text(sheet.title)}", "", f"Equations of motion, {markdown_text(sheet.form)} form.", ""]
    for sentence in sheet.notes:
        lines += [markdown_text(sentence), ""]
    return lines


def markdown_file(lines: Sequence[str]) -> str:
    """Lines as a text that UTF-8 can hold."""
    return ("\n".join(lines).rstrip("\n") + "\n").encode("utf-8", "replace").decode("utf-8")


def markdown_symbols(sheet: Sheet, latex: Latex) -> list[str]:
    """A table of the parameters, their values and meanings."""
    if not sheet.values:
        return []
    lines = ["## Symbols", "", "| symbol | name | value | meaning |", "| --- | --- | ---: | --- |"]
    for name, value in sheet.values.items():
        shown = "" if value is None else f"{value:.10g}"
        meaning = markdown_text(sheet.meanings.get(name, ""))
        lines.append(f"| ${latex.symbol(sheet.symbols[name])}$ | {_code(name)} | {shown} | {meaning} |")
    return [*lines, ""]


def _block(block: Block, latex: Latex, plain: Plain) -> list[str]:
    matrix, listed = latex.parts(block)
    lines = [f"$$ {matrix} $$", ""] if matrix else []
    for place, entry in listed:
        if terms(entry) <= DRAWN:
            name = latex.entry_name(block, place)
            broken = aligned([(name, entry)], latex, _WIDTH, "aligned")
            lines += [f"$$ {name} = {latex.sum(entry)} $$" if broken.count("\n") < 3 else f"$$\n{broken}\n$$", ""]
        else:
            pieces = plain.pieces(entry, longest=10**9)
            lines += ["```text", *wrapped(pieces, f"{_line(block.name + place)} = ", "    ", _WIDTH), "```", ""]
    return lines


def _line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _code(name: str) -> str:
    """A name between backquotes, within a cell of a table."""
    return f"`{_line(name)}`".replace("|", "\\|")


def markdown_text(text: str) -> str:
    """Text that is no markup, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~&])", r"\\\1", " ".join(text.split()))


#: An entry with more terms is shortened to SHOWN of them, and so is every one once the page holds ENOUGH.
LONGEST, SHOWN, ENOUGH = 2_000, 200, 12_000


def html_page(sheet: Sheet) -> str:
    """The page's text; it loads nothing, and names from files can be no markup."""
    writer = MathML()
    each, total = costs(sheet)
    sections = [("Equation of motion", "motion", _motion(sheet, writer))] if sheet.motion else []
    budget = [ENOUGH]
    for k, (block, (count, *cost)) in enumerate(each):
        extent = f'<p class="size">{counted(count, "term")} · as code: {Operations(*cost)}</p>\n'
        sections.append((sheet.heading(block), f"block-{k}", _html_block(block, writer, budget) + extent))
    if sheet.values or sheet.coordinates:
        sections.append(("Symbols", "symbols", html_symbols(sheet, writer)))
    rows = [*((math(writer.block_name(block)), numbers) for block, numbers in each), ("total", total)]
    remark = "<p class=size>Operations of the printed Python and C: what recurs within a block counts once.</p>\n"
    sections.append(("Size and cost", "cost", html_costs(COSTS, rows) + remark))
    return html_frame(sheet, sections)


def html_frame(sheet: Sheet, sections: Sequence[tuple[str, str, str]]) -> str:
    """The page around sections (heading, key, inside), with the title and the notes of these equations."""
    style = (files("linkwright.symbolic.printing") / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = _text(sheet.title) or "Equations of motion"
    contents = "".join(f'<li><a href="#{key}">{_text(heading)}</a></li>' for heading, key, _ in sections)
    remarks = "".join(f"<p>{_text(note)}</p>" for note in sheet.notes)
    body = "".join(_section(sheet, heading, key, inside) for heading, key, inside in sections)
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}: equations of motion</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div class="frame">\n<nav aria-label="Contents"><p>Contents</p><ol>{contents}</ol></nav>\n<main>\n'
        f'<header><h1>{title}</h1><p class="form">Equations of motion, {_text(sheet.form)} form</p>'
        f"{f'<div class=notes>{remarks}</div>' if remarks else ''}</header>\n"
        f"{body}</main>\n</div>\n</body>\n</html>\n"
    )
    # A name may hold half a surrogate pair, which UTF-8 has no bytes for.
    return page.encode("utf-8", "replace").decode("utf-8")


def _section(sheet: Sheet, heading: str, key: str, inside: str) -> str:
    beside = ""
    if key.startswith("block-"):
        block = sheet.blocks[int(key.removeprefix("block-"))]
        beside = math(MathML().block_name(block))
    return f'<section id="{key}"><h2>{_text(heading)}{beside}</h2>\n{inside}</section>\n'


# -- the equation ---------------------------------------------------------------------------------------------------
def _motion(sheet: Sheet, writer: MathML) -> str:
    shown = writer.comma.join(writer.symbol(s) for s in sheet.coordinates[:12])
    more = "<mo>,</mo><mo>…</mo>" if len(sheet.coordinates) > 12 else ""
    vector = f"{writer.vector()}<mo>=</mo><msup>{writer.bracket(shown + more)}<mi class=up>T</mi></msup>"
    force, disturbance = (math(writer.named(Split(x), bold=True)) for x in "Fd")
    return (
        f'<div class="motion">{math(writer.equation(sheet), display=True)}</div>\n'
        f"<p>with the coordinates {math(vector)}, the driving forces {force} and disturbances {disturbance}.</p>\n"
    )


# -- blocks ---------------------------------------------------------------------------------------------------------
def _html_block(block: Block, writer: MathML, budget: list[int]) -> str:
    matrix, listed = writer.parts(block)
    parts = [f'<div class="wide">{math(matrix, display=True)}</div>\n'] if matrix else []
    parts += [_written(writer.entry_name(block, place), entry, writer, budget) for place, entry in listed]
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
    left_side, pieces = equation_line(name, shown, writer)
    kind += " long" if count > 60 else ""
    return f'<div class="entry{kind}"><span>{left_side}</span><span class="terms">{pieces} {more}</span></div>\n'


def html_entry(name: str, entry: Sum, writer: MathML) -> str:
    """name = formula, whole: one step of many, without much space around it."""
    return _written(name, entry, writer, [terms(entry)], " step")


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
        shown = math(writer.decimals(f"{value:.10g}")) if value is not None else "–" if name in values else symbol.role
        meaning = f"<td>{_text(sheet.meanings.get(name, ''))}</td>" if explained else ""
        cells = f"<td>{math(writer.symbol(symbol))}</td><td><code>{_text(name)}</code></td>"
        rows.append(f"<tr>{cells}<td class=number>{shown}</td>{meaning}</tr>")
    return _html_table(head, "".join(rows))


def html_costs(kinds: Sequence[str], rows: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """A table of counts, the last row for the total."""
    head = "<th></th>" + "".join(f"<th class=number>{kind}</th>" for kind in kinds)
    body = ""
    for k, (first, numbers) in enumerate(rows, 1):
        cells = "".join(f"<td class=number>{n:,}</td>" for n in numbers)
        body += f'<tr class="{"sum" if k == len(rows) else ""}"><td>{first}</td>{cells}</tr>'
    return _html_table(head, body)


def _html_table(head: str, body: str) -> str:
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n'


def _text(text: str) -> str:
    return html.escape(" ".join(text.split()))
