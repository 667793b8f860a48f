"""The frame around every page: its head, the navigation, and the way on."""

from __future__ import annotations

import html
from collections.abc import Sequence

from sitebuilder.plan import Page, Plan, relative

STYLE = "style.css"


def framed(plan: Plan, page: Page, body: str, headings: Sequence[tuple[str, str]] = ()) -> str:
    """A whole page: navigation beside it, folded away where the screen is narrow, and no script."""
    here = page.target
    toc = ""
    if len(headings) > 2:
        entries = "".join(
            f'<li><a href="#{html.escape(name)}">{html.escape(words)}</a></li>' for words, name in headings
        )
        toc = f'<nav class="toc" aria-label="On this page"><h2>On this page</h2><ul>{entries}</ul></nav>'
    style, home = relative(here, STYLE), relative(here, "index.html")
    menu = _menu(plan, page)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{html.escape(page.title)} · Linkwright</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}">
</head>
<body>
<a class="skip" href="#main">To the text</a>
<header class="top"><a class="brand" href="{home}">Linkwright</a>
<details class="menu"><summary>Pages</summary><nav aria-label="Pages">{menu}</nav></details></header>
<div class="frame">
<nav class="side" aria-label="Site">{menu}</nav>
<main id="main">
{body}
</main>
{toc}
</div>
</body>
</html>
"""


def _menu(plan: Plan, page: Page) -> str:
    parts = []
    for heading, pages in plan.sections.items():
        entries = []
        for other in pages:
            inside = page.target == other.target or (other.source == "examples" and page.source.startswith("examples/"))
            inside |= other.source == "docs/notebooks.md" and page.source.endswith(".ipynb")
            mark = ' aria-current="page"' if inside else ""
            link = relative(page.target, other.target)
            entries.append(f'<li><a href="{html.escape(link)}"{mark}>{html.escape(other.title)}</a></li>')
        parts.append(f"<h2>{html.escape(heading)}</h2><ul>{''.join(entries)}</ul>")
    return "".join(parts)
