"""Draw the pictures of pages in `docs/images` (page, gallery, simulation, equations) as a browser shows them.

Needs Playwright, Pillow and Chromium (its path may be given).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import linkwright as lw
from linkwright.cli.demo_verb import SAMPLE

HERE = Path(__file__).parent
MODELS = HERE.parent / "examples" / "models"
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking")
GALLERY = ("peaucellier", "quick_return", "cardan", "stewart")
FORCED = ("governor", "suspension")


def draw(browser: Any, model: Path, target: Path, *, time: float, width: int, height: int, scale: float) -> None:
    """The page of a model's motion at a time."""
    page = target.with_suffix(".html")
    lw.analyse(model).animate(page)
    tab = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale)
    tab.goto(page.absolute().as_uri())
    tab.wait_for_function("window.linkwright && window.linkwright.ready")
    tab.evaluate(f"window.linkwright.setTime({time})")
    tab.wait_for_timeout(1000)
    tab.screenshot(path=target)
    tab.close()


def draw_equations(browser: Any, model: Path, target: Path) -> None:
    """The top of the page of a model's equations."""
    page = lw.equations(model, coordinates="theta").save(target.with_suffix(".html"))
    tab = browser.new_page(viewport={"width": 1240, "height": 900}, device_scale_factor=1.5)
    tab.goto(page.absolute().as_uri())
    tab.screenshot(path=target)
    tab.close()


def main(chromium: str = "/usr/bin/chromium") -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        shot = Path(folder) / "page.png"
        draw(browser, SAMPLE, shot, time=7.0, width=1280, height=720, scale=1.5)
        Image.open(shot).convert("P", palette=Image.Palette.ADAPTIVE).save(HERE / "images" / "page.png", optimize=True)
        draw_equations(browser, MODELS / "three_link.dh.toml", shot)
        paper = Image.open(shot).convert("P", palette=Image.Palette.ADAPTIVE)
        paper.save(HERE / "images" / "equations.png", optimize=True)
        for names, picture in ((GALLERY, "gallery.png"), (FORCED, "simulation.png")):
            whole = Image.new("RGB", (2000, 580 * (len(names) // 2)))
            for k, name in enumerate(names):
                shot = Path(folder) / f"{name}.png"
                draw(browser, MODELS / f"{name}.mks", shot, time=2.08, width=1000, height=580, scale=1.0)
                whole.paste(Image.open(shot), (k % 2 * 1000, k // 2 * 580))
            quiet = whole.convert("P", palette=Image.Palette.ADAPTIVE)
            quiet.save(HERE / "images" / picture, optimize=True)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
