"""Draw docs/images/curves.png: a roller cam, a cam with a flat face and a pin in a slot, as the page shows them.

Needs Playwright, Pillow and Chromium (its path may be given):  python docs/draw_curves.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from draw_page import FLAGS, draw

OUT = Path(__file__).parent / "images" / "curves.png"
WIDTH, HEIGHT = 606, 640  # of the page beside its panel and above its controls
SYSTEM = "SYSTEM (KINEMATIC ANALYSIS, ending time = 2, print interval = 0.02, length unit = mm, angle unit = degree);"
CAM = """
BODY frame (ground);
BODY shaft (mass = 1, inertia = (1, 1, 1));
BODY tappet (origin = (0, 52, 0), mass = 0.4);
TRIAD top (associated body = frame, origin = (0, 132, 0));
TRIAD head (associated body = tappet, origin = (0, 45, 0));
HINGE crank (body = frame, body = shaft, at = (0, 0));
SLIDER slide (body = frame, body = tappet, at = (0, 84), axis = (0, 1));
CURVE disc (body = shaft, {}, range = (0, 2*pi), closed);
CURVE follower (body = tappet, {});
CURVE ON CURVE touch (curve = disc, curve = follower);
SPRING s (triad = top, triad = head, stiffness = 1 N/mm, length = 60 mm);
DRIVER motor (crank.angle = 180*TIME);
TRACE path (body = "touch point", colour = red);
"""
SLOT = """
BODY frame (ground);
BODY plate (mass = 1, inertia = (1, 1, 1));
BODY lever (origin = (130, 40, 0), mass = 1, inertia = (1, 1, 1));
TRIAD tip (associated body = lever, origin = (-80, -15, 0));
HINGE base (body = frame, body = plate, at = (0, 0));
HINGE pivot (body = frame, body = lever, at = (130, 40));
CURVE slot (body = plate, points = [(20, 5), (40, 20), (70, 30), (100, 22), (120, 2)]);
POINT ON CURVE pin (curve = slot, point = tip);
DRIVER motor (base.angle = 12*sin(pi*TIME));
TRACE path (triad = tip, colour = red);
"""
HOLLOW = "x = (34 + 10*sin(u)^3)*cos(u), y = (34 + 10*sin(u)^3)*sin(u)"
CONVEX = "x = 10 + 40*cos(u), y = 30*sin(u)"
MODELS = (("roller", CAM.format(HOLLOW, "circle = 8")), ("face", CAM.format(CONVEX, "line = 80")), ("slot", SLOT))
TIMES = {"roller": 0.34, "face": 0.34, "slot": 0.4}


def main(chromium: str = "/usr/bin/chromium") -> None:
    whole = Image.new("RGB", (WIDTH * len(MODELS), HEIGHT), "white")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for k, (name, text) in enumerate(MODELS):
            model, shot = Path(folder) / f"{name}.mks", Path(folder) / f"{name}.png"
            model.write_text(f"MODEL {name}\n{SYSTEM}{text}ENDMODEL\n")
            draw(browser, model, shot, time=TIMES[name], width=1000, height=HEIGHT + 70, scale=1.0)
            whole.paste(Image.open(shot).crop((0, 0, WIDTH, HEIGHT)), (k * WIDTH, 0))
        browser.close()
    whole.convert("P", palette=Image.Palette.ADAPTIVE).save(OUT, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
