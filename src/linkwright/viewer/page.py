"""One self-contained HTML page from a scene: the template, the bundled program and the data, under a strict policy."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from linkwright.base.files import write_bytes
from linkwright.errors import LinkwrightError

_SLOT = re.compile(r"\{\{(\w+)\}\}")


def page(scene: dict[str, Any]) -> str:
    """The page's text. It loads nothing: its policy forbids every request and every script but its own."""
    here = files("linkwright.viewer")
    try:
        bundle = (here / "bundle.js").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LinkwrightError("the viewer's bundle.js is missing; build it with `make viewer`") from None
    style = (here / "style.css").read_text(encoding="utf-8")
    template = (here / "template.html").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_hash(bundle)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    filled = {
        "policy": policy,
        "title": html.escape(" ".join(scene["title"].split()) or "Motion"),
        "style": style,
        "scene": _json(scene),
        "bundle": bundle,
    }
    # One pass, so that what is put in is never searched for places again.
    return _SLOT.sub(lambda match: filled[match[1]], template)


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all."""
    # A name may hold half a surrogate pair, which UTF-8 has no bytes for.
    write_bytes(path, text.encode("utf-8", "replace"))


def _json(scene: dict[str, Any]) -> str:
    """JSON that can end no script block and start no comment in HTML; beyond ASCII everything is escaped."""
    text = json.dumps(scene, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
