"""The table of files in docs/formats.md says what becomes of them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "formats.md"
_spec = importlib.util.spec_from_file_location("formats_table", ROOT / "docs" / "formats_table.py")
formats_table = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(formats_table)
FILES = formats_table.files()
WRITTEN = PAGE.read_text(encoding="utf-8").split(formats_table.START)[1].split(formats_table.END)[0].splitlines()[3:]


def test_every_file_of_the_wheel_has_its_row():
    names = [path.relative_to(formats_table.ROBOTS).as_posix() for path in FILES]
    assert [row.split(" | ")[0].removeprefix("| ") for row in WRITTEN] == names


@pytest.mark.parametrize(
    ("path", "row"),
    [
        pytest.param(path, row, id=path.name, marks=[pytest.mark.slow] if path.suffix == ".urdf" else [])
        for path, row in zip(FILES, WRITTEN, strict=False)
    ],
)
def test_a_row_says_what_becomes_of_its_file(path, row):
    assert formats_table.outcome(path) == row
