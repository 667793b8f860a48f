"""One self-contained HTML page from a scene, alone or inside a notebook."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, overload

from linkwright.base.checks import path_text
from linkwright.base.files import write_bytes
from linkwright.errors import LinkwrightError, ModelError

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


#: Unpacks the page and puts it in place of itself. The page's own policy goes with it.
_LOADER = (
    "const put=t=>{document.open();document.write(t);document.close()};"
    "const data=document.getElementById('page').textContent;"
    "if(window.DecompressionStream)new Response(new Blob([Uint8Array.from(atob(data),c=>c.charCodeAt(0))]).stream()"
    ".pipeThrough(new DecompressionStream('gzip'))).text().then(put);"
    "else document.body.textContent='This browser cannot unpack the animation; write it to a file: sol.animate(name)'"
)
HEIGHT = 460


class Animation:
    """The animation of a motion, which notebooks show; `save` writes it as a page. One output takes about 0.3 MB."""

    def __init__(self, text: str, title: str, height: int = HEIGHT) -> None:
        if isinstance(height, bool) or not isinstance(height, int) or not 100 <= height <= 4000:
            raise ModelError(f"height is {height!r}; give whole pixels from 100 to 4000")
        self.page, self.title, self.height = text, title, height

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it as one HTML file that any browser shows, and give its path."""
        target = Path(path_text("an animation", path))
        write_page(target, self.page)
        return target

    def __repr__(self) -> str:
        return f"<Animation {self.title!r}: {len(self.page) / 1e6:.1f} MB as a page; .save(name) writes it>"

    def html(self) -> str:
        """The animation as a piece of HTML: the page in a sandboxed frame."""
        return frame(self.page, self.title, self.height)

    def _repr_html_(self) -> str:
        return self.html()


@overload
def animate(scene: dict[str, Any], path: str | os.PathLike[str], height: int | None = None) -> Path: ...
@overload
def animate(scene: dict[str, Any], path: None = None, height: int | None = None) -> Animation: ...
def animate(
    scene: dict[str, Any], path: str | os.PathLike[str] | None = None, height: int | None = None
) -> Path | Animation:
    """Write a scene as one self-contained HTML page, and return its path.

    The page holds everything that it needs and loads nothing; it can be opened from disk, sent and stored. Without a
    path the scene becomes an `Animation`, which notebooks show, `height` pixels high.
    """
    animation = Animation(page(scene), scene["title"], HEIGHT if height is None else height)
    return animation if path is None else animation.save(path)


def frame(text: str, title: str, height: int = HEIGHT) -> str:
    """The page in a sandboxed frame: its scripts run, with an origin of their own and no way to the network."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None, "the page has a policy"
    loader = f"'sha256-{base64.b64encode(hashlib.sha256(_LOADER.encode()).digest()).decode()}'"
    allowed = policy[1].replace("script-src ", f"script-src {loader} ")
    packed = base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")
    inner = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{allowed}">'
        f'<script type="text/plain" id="page">{packed}</script><body><script>{_LOADER}</script>'
    )
    about = f'title="{html.escape(" ".join(title.split()) or "Motion")}" height="{height}" loading="lazy"'
    size = 'style="width:100%;border:1px solid rgba(128,128,128,.4);border-radius:6px"'
    return f'<iframe sandbox="allow-scripts" {about} {size} srcdoc="{html.escape(inner)}"></iframe>'
