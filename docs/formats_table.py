"""The result of reading every SDF, URDF and xacro file of example-robot-data: the table in formats.md.

Run it without arguments to write the table again.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import cmeel

from linkwright.errors import LinkwrightError
from linkwright.formats.model_files import read
from linkwright.mechanism import Mechanism

ROBOTS = Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots"
PAGE = Path(__file__).with_name("formats.md")
START, END = "<!-- files -->", "<!-- end of files -->"
ENDINGS = ("sdf", "world", "xacro", "urdf")


def files() -> list[Path]:
    return [path for ending in ENDINGS for path in sorted(ROBOTS.glob(f"**/*.{ending}"))]


def outcome(path: Path) -> str:
    """One row: bodies, coordinates, rates and loops of a file, or the reason why it is not read."""
    name = path.relative_to(ROBOTS).as_posix()
    options = {"trust": True} if path.suffix == ".xacro" else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mechanism = Mechanism(read(path, **options))
    except LinkwrightError as error:
        reason = str(error).replace(str(path), "").lstrip(":0123456789 ").replace(f"{path.parent}/", "")
        reason = re.sub("<[^>]*>", lambda tag: f"`{tag[0]}`", reason).replace("|", "\\|")
        return f"| {name} | {reason} |"
    if not mechanism.bodies:
        return f'| {name} | nothing moves on a fixed base; one body with `base="floating"` |'
    counts = f"{len(mechanism.bodies)} bodies, {mechanism.nq} coordinates, {mechanism.nv} rates"
    if mechanism.loops:
        counts += f", {len(mechanism.loops)} loops"
    return f"| {name} | {counts} |"


def table(paths: list[Path]) -> list[str]:
    return ["| file | outcome |", "| --- | --- |", *map(outcome, paths)]


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, after = text.split(START)
    tail = after.split(END)[1]
    lines = "\n".join(table(files()))
    PAGE.write_text(f"{head}{START}\n{lines}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
