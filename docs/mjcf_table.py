"""Write the table of `mjcf.md`: every MJCF file in the installed wheels, and the mechanism that `lw.load` returns."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import linkwright as lw
from linkwright.errors import FormatError
from linkwright.formats.xml import root_tag

PAGE = Path(__file__).parent / "mjcf.md"
#: Distributions with the module that their files are in, and the folder that their models share.
WHEELS = (
    ("mujoco", "mujoco", ""),
    ("gymnasium", "gymnasium", ""),
    ("gymnasium-robotics", "gymnasium_robotics", "envs"),
)
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->\n"


def home(module: str) -> Path | None:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(module)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def models(folder: Path) -> Iterator[Path]:
    """The MJCF files below a folder, parts of models among them."""
    for file in sorted(folder.rglob("*.xml")):
        if root_tag(file) in ("mujoco", "mujocoinclude"):
            yield file


def outcome(file: Path, shared: Path) -> tuple[str, str]:
    """The bodies, rates and loops of a file; what is left out, or the reason why it is not read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mech = lw.load(file, folders=[shared])
        except FormatError as error:
            return "–", re.sub(r"^.*?\.xml(:\d+)?: ", "", str(error)).replace("<", "\\<")
    counts = f"{mech.nb} bodies, {mech.nv} rates"
    if mech.loops:
        counts += f", {len(mech.loops)} loop{'s' * (len(mech.loops) > 1)}"
    left = "; ".join(str(one.message).split("in the motion: ")[-1] for one in caught)
    left = re.sub(r",? '[^;]*", "", left)  # their names are in the warning
    return counts, f"without {left}".replace("<", "\\<") if left else ""


def rows(distribution: str, module: str, below: str) -> list[str]:
    folder = home(module)
    if folder is None:
        raise SystemExit(f"{distribution} is not installed; pip install {distribution}")
    title = f"**{distribution} {importlib.metadata.version(distribution)}**"
    lines = [title, "", "| file | read | |", "| --- | --- | --- |"]
    for file in models(folder):
        counts, note = outcome(file, folder / below)
        lines.append(f"| `{file.relative_to(folder).as_posix()}` | {counts} | {note} |")
    return [*lines, ""]


def table() -> str:
    """The whole table."""
    return "\n".join(["", *(line for wheel in WHEELS for line in rows(*wheel)), ""])


def written(page: str) -> str:
    """The table that the page has."""
    return page.split(BEGIN)[1].split(END)[0]


if __name__ == "__main__":
    before, after = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + after.split(END)[1], encoding="utf-8")
