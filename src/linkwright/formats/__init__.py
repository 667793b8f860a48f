"""Model files to descriptions: the file's ending says which reader; of `.xml`, the outermost element."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from linkwright.errors import FormatError
from linkwright.formats.model_files import finite_arithmetic
from linkwright.model.description import Description

#: The formats by ending; of `.xml`, the outermost element says which.
_BY_ENDING = {
    ".mks": "mks",
    ".urdf": "urdf",
    ".dh.toml": "dh",
    ".sdf": "sdf",
    ".world": "sdf",
    ".xacro": "xacro",
    ".xml": "",
    ".mjcf": "mjcf",
}
ENDINGS = tuple(_BY_ENDING)
_BY_ROOT = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf", "mujocoinclude": "mjcf"}
#: The modules of readers that are not called as their format is; the function is read_FORMAT.
_MODULES = {"mks": "mks.mks_reader", "sdf": "sdf.sdf_reader", "mjcf": "mjcf.mjcf_reader", "xacro": "urdf"}


def read(path: str | Path, **options: Any) -> Description:
    """The description in a model file: `.mks`, `.urdf`, `.dh.toml`, `.sdf`, `.world`, `.xacro`, or `.xml` (MJCF).

    Options are those of the format's reader.
    """
    file = str(path)
    check_file(path)
    reader = _reader(format_of(path))
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
    if ending != ".xml":
        return _BY_ENDING[ending]
    from linkwright.formats.xml import root_tag  # lxml is slow to import

    tag = root_tag(path)
    if tag not in _BY_ROOT:
        text = f"its outermost element is <{tag[:80]}>; <mujoco> (MJCF), <robot> (URDF) and <sdf> are read"
        raise FormatError(text, file=str(path))
    return _BY_ROOT[tag]


def _why_unread(suffix: str) -> str:
    """Why a file of this ending is no model, and what to do with it."""
    if suffix.lower() == ".nc":
        return "holds results, not a model; `linkwright view` shows them, and lw.open or lw.Study.open reads them"
    what = f"files ending in {suffix!r} are" if suffix else "a file without an ending is"
    return f"{what} not read as a model; the ending says the format: {', '.join(ENDINGS)}"


def _reader(name: str) -> Callable[..., Description]:
    """The reader of a format, imported when it is needed: lxml and lark are slow to import."""
    module = import_module(f"linkwright.formats.{_MODULES.get(name, name)}")
    reader: Callable[..., Description] = getattr(module, f"read_{name}")
    return reader
