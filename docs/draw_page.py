"""Draw `docs/images/page.png`: the demo's page as a browser shows it. Needs Playwright and Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import linkwright as lw
from linkwright.cli.demo import SAMPLE

TARGET = Path(__file__).parent / "images" / "page.png"
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking")


def main(browser: str = "/usr/bin/chromium", time: float = 7.0) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "page.html"
        lw.analyse(SAMPLE).animate(page)
        chromium = playwright.chromium.launch(executable_path=browser, args=list(FLAGS))
        tab = chromium.new_page(viewport={"width": 1280, "height": 720}, device_scale_factor=1.5)
        tab.goto(page.as_uri())
        tab.wait_for_function("window.linkwright && window.linkwright.ready")
        tab.evaluate(f"window.linkwright.setTime({time})")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=TARGET)
        chromium.close()
    print(TARGET)


if __name__ == "__main__":
    main(*sys.argv[1:])
