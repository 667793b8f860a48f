"""Which files the data of six everyday calls pass through, in order, and how many calls of Python functions it takes.

    python benchmarks/paths.py [--old CHECKOUT] [--list] [--page]

Every path runs in a process of its own, cold (with an empty cache of compiled code) and warm (the same call again in
the same process). A file is counted when one of its functions runs; what runs while a file is imported does not count,
since versions differ in when they import what. `--old` runs the same paths on another checkout beside this one;
`--list` names the files; `--page` writes them into docs/architecture.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "examples" / "models"
PAGE = ROOT / "docs" / "architecture.md"
#: What stands around the lists on the page.
BEGIN, END = "<!-- benchmarks/paths.py --page -->", "<!-- end of paths -->"
FUNCTION = 0x1  # CO_OPTIMIZED: a function's code, and not that of a module or of a class


def forward_dynamics() -> None:
    import numpy as np

    import linkwright as lw

    mech = lw.load(str(MODELS / "arm.urdf"))
    mech.forward_dynamics(np.full(mech.nq, 0.3), np.full(mech.nv, 0.1), np.zeros(mech.nv))


def run() -> None:
    from linkwright.cli.app import app

    with tempfile.TemporaryDirectory() as folder:
        app(["run", str(MODELS / "slider_crank.mks"), "--output", folder], standalone_mode=False)


def simulate() -> None:
    import linkwright as lw

    lw.simulate(lw.load(str(MODELS / "double_four_bar.mks")), t_end=0.1)


def equations() -> None:
    import linkwright as lw

    lw.equations(lw.load(str(MODELS / "three_link.dh.toml")))


def sweep() -> None:
    import linkwright as lw

    lw.sweep(str(MODELS / "slider_crank_parameters.mks"), {"crank_length": [5.5, 6.0, 6.5]})


def loop() -> None:
    import linkwright as lw

    mech = lw.load(str(MODELS / "arm.urdf"))
    reference = lw.control.MinimumJerk(mech.neutral(), mech.neutral() + 0.2, 0.5)
    controller = lw.control.pid(mech, 50.0, 5.0, reference=reference)
    lw.control.Loop(mech, controller, period=2e-3).run(0.1)


PATHS: dict[str, tuple[str, Callable[[], None]]] = {
    "forward": ("load, then forward dynamics", forward_dynamics),
    "run": ("`linkwright run` of the slider-crank", run),
    "simulate": ("simulate a closed mechanism", simulate),
    "equations": ("equations", equations),
    "sweep": ("sweep", sweep),
    "loop": ("`Loop.run`", loop),
}


def traced(work: Callable[[], None], package: str) -> tuple[list[str], int]:
    """The package's files in the order in which their functions first ran, and how many calls of them there were."""
    files: dict[str, None] = {}
    calls = 0
    imports = 0  # how many files are being imported, one inside the other

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls, imports
        code = frame.f_code
        if code.co_name == "<module>":
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not imports and code.co_flags & FUNCTION and code.co_filename.startswith(package):
            calls += 1
            files.setdefault(code.co_filename[len(package) + 1 :])

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(files), calls


def measure(name: str) -> dict[str, Any]:
    """One path in this process: cold, then warm."""
    import linkwright

    package = str(Path(str(linkwright.__file__)).parent)
    work = PATHS[name][1]
    cold, cold_calls = traced(work, package)
    warm, warm_calls = traced(work, package)
    return {"cold": cold, "cold_calls": cold_calls, "warm": warm, "warm_calls": warm_calls}


def measured(name: str, checkout: Path) -> dict[str, Any]:
    """One path in a process of its own, with the package of a checkout and an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        surroundings = os.environ | {"PYTHONPATH": str(checkout / "src"), "LINKWRIGHT_CACHE": cache}
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True, cwd=cache)
    return json.loads(done.stdout.splitlines()[-1])


def listed(files: list[str]) -> str:
    """Files in their order, those of a room that follow each other under its name."""
    rooms: list[tuple[str, list[str]]] = []
    for file in files:
        room, _, name = file.rpartition("/")
        if not rooms or rooms[-1][0] != room:
            rooms.append((room, []))
        rooms[-1][1].append(name.removesuffix(".py"))
    return " → ".join(f"`{room}/` {', '.join(names)}" if room else ", ".join(names) for room, names in rooms)


def write_page(paths: dict[str, dict[str, Any]]) -> None:
    """The lists into the page, between their two marks."""
    before, _, after = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = after.partition(END)
    lines = ["| path | files, cold | calls, cold | files, warm | calls, warm |", "| --- | --- | --- | --- | --- |"]
    for name, path in paths.items():
        numbers = (len(path["cold"]), path["cold_calls"], len(path["warm"]), path["warm_calls"])
        lines.append(f"| {PATHS[name][0]} | " + " | ".join(f"{n:,}" for n in numbers) + " |")
    for name, path in paths.items():
        lines += ["", f"**{PATHS[name][0]}**: {listed(path['cold'])}"]
    PAGE.write_text("\n".join([before + BEGIN, *lines, END + after]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--old", type=Path, help="another checkout to measure beside this one")
    parser.add_argument("--list", action="store_true", help="name the files of each path, in order")
    parser.add_argument(
        "--page", action="store_true", help=f"write the files of each path into {PAGE.relative_to(ROOT)}"
    )
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    if options.page:
        write_page({name: measured(name, ROOT) for name in PATHS})
        return
    for name in PATHS:
        for checkout in [ROOT, *([options.old] if options.old else [])]:
            path = measured(name, checkout)
            cold, warm = path["cold"], path["warm"]
            print(f"{PATHS[name][0]}, {checkout.name}: cold {len(cold)} files, {path['cold_calls']:,} calls; ", end="")
            print(f"warm {len(warm)} files, {path['warm_calls']:,} calls")
            if options.list:
                print("  " + " → ".join(cold))


if __name__ == "__main__":
    main()
