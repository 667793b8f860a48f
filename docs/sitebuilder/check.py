"""Checks a site that was built: every link leads to a page and an anchor on it, and nothing comes from outside."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

import lxml.html

#: Links that a browser fetches by itself when it shows a page.
FETCHED = (
    "//link[not(contains(@rel, 'canonical'))]/@href | //script/@src | //img/@src | //img/@srcset | //iframe/@src"
    " | //source/@src | //object/@data | //embed/@src | //video/@src | //audio/@src | //use/@href | //image/@href"
)
_CSS = re.compile(r"@import|url\(\s*['\"]?(?!data:|#)", re.IGNORECASE)
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


def problems(site: Path, alone: frozenset[str] = frozenset()) -> list[str]:
    """The problems of a site, a sentence each; pages in `alone` have a policy in place of checks."""
    pages = {f.relative_to(site).as_posix(): f for f in site.rglob("*.html")}
    trees = {name: lxml.html.parse(str(f)).getroot() for name, f in pages.items() if name not in alone}
    anchors = {name: {*tree.xpath("//@id"), *tree.xpath("//a/@name")} for name, tree in trees.items()}
    sentences = []
    for name, tree in trees.items():
        for link in tree.xpath(FETCHED):
            if _SCHEME.match(link) and not link.startswith("data:"):
                sentences.append(f"{name} would fetch {link[:100]} from outside")
        for text in (*tree.xpath("//style/text()"), *tree.xpath("//@style")):
            if _CSS.search(text):
                sentences.append(f"{name} has a style that would fetch something: {text[:100]}")
        links = [*tree.xpath(FETCHED), *tree.xpath("//a/@href")]
        sentences += [broken for link in dict.fromkeys(links) if (broken := _broken(site, name, link, anchors))]
    for name in sorted(alone & set(pages)):
        if "Content-Security-Policy\" content=\"default-src 'none';" not in pages[name].read_text(encoding="utf-8"):
            sentences.append(f"{name} has no policy that forbids requests")
    for sheet in site.rglob("*.css"):
        if _CSS.search(sheet.read_text(encoding="utf-8")):
            sentences.append(f"{sheet.relative_to(site)} would fetch something")
    return sentences


def _broken(site: Path, name: str, link: str, anchors: dict[str, set[str]]) -> str:
    if _SCHEME.match(link):
        return ""
    path, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))) if path else name
    if target.startswith("..") or not (site / target).is_file():
        return f"{name} links to {link}, and there is no {target}"
    if anchor and target in anchors and unquote(anchor) not in anchors[target]:
        return f"{name} links to {link}, and {target} has no place {anchor!r}"
    return ""
