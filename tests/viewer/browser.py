"""A headless Chromium for tests, and pages opened in it with everything that they say kept."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
USUAL = {"viewport": {"width": 900, "height": 560}}
DESKTOP = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
PATIENCE = 120_000  # milliseconds: where the processor draws, a picture takes its time


def chromium() -> str | None:
    """Where Chromium is: as LINKWRIGHT_CHROMIUM says, else on the path or at the usual places."""
    named = os.environ.get("LINKWRIGHT_CHROMIUM")
    if named:
        return named
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in (*found, *PLACES) if path and Path(path).exists()), None)


@dataclass
class Open:
    """A page in the browser, and what it said and asked for."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def value(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def until(self, expression: str) -> None:
        """Wait until an expression is true. The page's policy forbids Playwright's own waiting, which uses eval."""
        for _ in range(PATIENCE // 50):
            if self.value(f"Boolean({expression})"):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{expression} did not come true; errors of the page: {self.errors}")

    def box(self, selector: str) -> dict[str, float]:
        found = self.page.locator(selector).bounding_box()
        assert found is not None, f"{selector} is not visible"
        return found

    def settle(self) -> None:
        """Two frames: what was asked for is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def picture(self, selector: str) -> np.ndarray:
        """The pixels of an element, (height, width, 3)."""
        from PIL import Image

        self.settle()
        png = self.page.locator(selector).screenshot(timeout=PATIENCE)
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


@contextmanager
def opened(browser: Any, path: Path, *, prepare: str = "", clock: bool = False, **options: Any) -> Iterator[Open]:
    """A page opened in a fresh context; motion is reduced, so that time stands until it is told to run."""
    context = browser.new_context(**{"reduced_motion": "reduce", **USUAL, **options})
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        told = Open(page)
        page.on("console", lambda message: told.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: told.errors.append(str(error)))
        page.on("dialog", lambda dialog: (told.errors.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: told.requests.append(request.url))
        if prepare:
            page.add_init_script(prepare)
        if clock:
            page.clock.install(time=0)
        page.goto(path.as_uri())
        told.until("window.linkwright && (linkwright.ready || linkwright.error)")
        if clock:
            page.clock.pause_at(10**6)  # from now on time passes only as it is told to
        yield told
    finally:
        context.close()
