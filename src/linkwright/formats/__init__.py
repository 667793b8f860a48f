"""Model files to descriptions: the file's ending says which reader; of `.xml`, the outermost element."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from linkwright.errors import FormatError
from linkwright.formats.files import finite_arithmetic
from linkwright.mechanism.description import Description

#: The endings that are read, the longest first where one ends in another.
ENDINGS = (".mks", ".urdf", ".dh.toml", ".sdf", ".world", ".xacro", ".xml", ".mjcf")
_BY_ROOT = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf", "mujocoinclude": "mjcf"}


def read(path: str | Path, **options: Any) -> Description:
    """The description in a model file: `.mks`, `.urdf`, `.dh.toml`, `.sdf`, `.world`, `.xacro`, or `.xml` (MJCF).

    Options are those of the format's reader.
    """
    file = str(path)
    check_file(path)
    reader = _reader(path, file)
    known = [p.name for p in inspect.signature(reader).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise FormatError(f"the option {option!r} is not one of this format's, which {takes}", file=file)
    with finite_arithmetic(file):
        return reader(path, **options)


def check_file(path: str | Path) -> None:
    """Refuse a path without a file."""
    if not Path(path).exists():
        raise FormatError("there is no such file", file=str(path))
    if Path(path).is_dir():
        raise FormatError("is a directory; give a model file", file=str(path))


def format_of(path: str | Path) -> str:
    """The format of a model file: "mks", "urdf", "dh", "sdf", "xacro" or "mjcf"."""
    name = Path(path).name.lower()
    ending = next((e for e in ENDINGS if name.endswith(e)), None)
    if ending is None:
        raise FormatError(_why_unread(Path(path).suffix), file=str(path))
    if ending == ".xml":
        from linkwright.formats.xml import root_tag

        tag = root_tag(path)
        if tag not in _BY_ROOT:
            text = f"its outermost element is <{tag[:80]}>; <mujoco> (MJCF), <robot> (URDF) and <sdf> are read"
            raise FormatError(text, file=str(path))
        return _BY_ROOT[tag]
    return {".dh.toml": "dh", ".world": "sdf", ".mjcf": "mjcf"}.get(ending, ending[1:])


def _why_unread(suffix: str) -> str:
    """Why a file of this ending is no model, and what to do with it."""
    if suffix.lower() == ".nc":
        return "holds results, not a model; `linkwright view` shows them, and lw.open or lw.Study.open reads them"
    what = f"files ending in {suffix!r} are" if suffix else "a file without an ending is"
    return f"{what} not read as a model; the ending says the format: {', '.join(ENDINGS)}"


def _reader(path: str | Path, file: str) -> Callable[..., Description]:
    """Readers are imported when needed: XML is slow to import."""
    sort = format_of(path)
    reader: Callable[..., Description]
    if sort == "urdf":
        from linkwright.formats.urdf import read_urdf as reader
    elif sort == "dh":
        from linkwright.formats.dh import read_dh as reader
    elif sort == "mks":
        from linkwright.formats.mks.reader import read_mks as reader
    elif sort == "sdf":
        from linkwright.formats.sdf.reader import read_sdf as reader
    elif sort == "xacro":
        from linkwright.formats.xacro import read_xacro as reader
    else:
        from linkwright.formats.mjcf.reader import read_mjcf as reader
    return reader
