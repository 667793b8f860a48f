"""The animation inside a notebook's page, in a browser: it plays in its sandbox, and reaches nothing outside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import linkwright as lw

sys.path.append(str(Path(__file__).parents[1] / "viewer"))
from browser import FLAGS, PATIENCE, chromium

MODEL = Path(__file__).parents[2] / "examples" / "models" / "four_bar.mks"


@pytest.mark.skipif(chromium() is None, reason="no Chromium was found: install it, or set LINKWRIGHT_CHROMIUM to it")
def test_the_animation_plays_in_its_frame_and_cannot_reach_the_notebook(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    page = tmp_path / "notebook.html"
    shown = lw.analyse(MODEL).animate(height=240)._repr_html_()
    page.write_text(f"<!doctype html><meta charset=utf-8><title>secret</title>{shown}", encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        tab = browser.new_context(reduced_motion="reduce", viewport={"width": 420, "height": 300}).new_page()
        asked: list[str] = []
        told: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: told.append(message.text) if message.type == "error" else None)
        tab.goto(page.as_uri())
        frame = next(f for f in tab.frames if f != tab.main_frame)
        for _ in range(PATIENCE // 100):
            if frame.evaluate("Boolean(window.linkwright && (linkwright.ready || linkwright.error))"):
                break
            tab.wait_for_timeout(100)
        assert frame.evaluate("linkwright.ready"), told
        assert frame.evaluate("linkwright.drawn") is not None
        assert frame.evaluate("(() => { try { return parent.document.title } catch (e) { return 'refused' } })()") == (
            "refused"
        )
        assert frame.evaluate("origin") == "null"
        browser.close()
    assert not told
    assert all(url.startswith(("file:", "data:", "about:")) for url in asked), asked
