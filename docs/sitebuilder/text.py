"""Markdown and code as HTML: headings with anchors, links that the plan resolves, code in colours."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

LIGHT, DARK = "xcode", "github-dark"
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass
class Rendered:
    """A text as HTML, and its headings of the second level with their anchors."""

    body: str
    headings: list[tuple[str, str]] = field(default_factory=list)


def render(
    text: str, resolve: Callable[[str], str], size: Callable[[str], tuple[int, int] | None] = lambda link: None
) -> Rendered:
    """Markdown as HTML; markup in it is text, but for line breaks in tables, and comments go.

    `size` tells how large a picture is, so that the page keeps its place for it.
    """
    reader = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted}).enable("table")
    tokens = reader.parse(text)
    headings: list[tuple[str, str]] = []
    taken: dict[str, int] = {}
    pictures = 0
    for k, token in enumerate(tokens):
        if token.type == "heading_open":
            words = _words(tokens[k + 1])
            name = slug(words, taken)
            token.attrSet("id", name)
            if token.tag == "h2":
                headings.append((words, name))
        for inner in token.children or ():
            measured = size(str(inner.attrGet("src"))) if inner.type == "image" else None
            if measured is not None:
                inner.attrSet("width", str(measured[0]))
                inner.attrSet("height", str(measured[1]))
            for attribute in ("href", "src"):
                link = inner.attrGet(attribute)
                if isinstance(link, str) and not _OUTSIDE.match(link):
                    inner.attrSet(attribute, resolve(link))
            if inner.type == "image" and pictures:
                inner.attrSet("loading", "lazy")
            pictures += inner.type == "image"
    body = str(reader.renderer.render(tokens, reader.options, {}))
    body = re.sub(r"<p>&lt;!--((?!--&gt;).)*--&gt;</p>\n?", "", body, flags=re.DOTALL)  # marks for scripts
    body = body.replace("&lt;br&gt;", "<br>").replace("<table>", '<div class="wide"><table>')
    return Rendered(body.replace("</table>", "</table></div>"), headings)


def slug(words: str, taken: dict[str, int]) -> str:
    """The anchor that GitHub gives a heading, numbered where it is not the first of its name."""
    name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
    count = taken.get(name, 0)
    taken[name] = count + 1
    return f"{name}-{count}" if count else name


def code(text: str, language: str) -> str:
    """A block of code in colours; as it is where the language is not known."""
    return f'<pre class="code"><code>{_coloured(text, language)}</code></pre>'


def style() -> str:
    """The colours of code, on light and on dark ground."""
    from pygments.formatters import HtmlFormatter

    def of(name: str) -> str:
        lines = HtmlFormatter(style=name).get_style_defs("pre.code").splitlines()
        return "\n".join(line for line in lines if line.startswith("pre.code ."))

    return f"{of(LIGHT)}\n@media (prefers-color-scheme: dark) {{\n{of(DARK)}\n}}\n"


def _highlighted(text: str, language: str, _attributes: str) -> str:
    return code(text, language)


def _coloured(text: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer: Any = get_lexer_by_name({"sh": "bash"}.get(language, language) or "text")
    except ClassNotFound:
        return html.escape(text)
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True)))


def _words(token: Token) -> str:
    return "".join(inner.content for inner in token.children or () if inner.type in ("text", "code_inline"))
