"""Nothing in the checkout speaks of the machine that it was written on."""

import re
from pathlib import Path

from checkout import ROOT

FOLDERS = ("src", "tests", "examples", "benchmarks", "docs", ".ci")
ENDINGS = {".py", ".md", ".toml", ".txt", ".urdf", ".lark", ".json", ".c", ".cu", ""}
#: The home and scratch folders of some machine, written so that this file does not match itself.
PLACES = re.compile(r"(?<![\w.~$}])/(?:" + "|".join(["home", "root", "work", "Users", "farm"]) + r")/\w")


def files() -> list[Path]:
    found = [f for f in ROOT.iterdir() if f.is_file() and f.name != ".git"]
    for folder in FOLDERS:
        inside = (f for f in (ROOT / folder).rglob("*") if f.is_file())
        found += [f for f in inside if not {"__pycache__", "node_modules"} & set(f.parts)]
    return sorted(f for f in found if f.suffix in ENDINGS)


def test_no_file_names_a_place_of_a_machine() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files()
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if PLACES.search(line)
    ]
    assert not found
