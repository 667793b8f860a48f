"""Model files to descriptions: the file's ending says which reader."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from linkwright.errors import FormatError
from linkwright.mechanism.description import Description

_LATER = (".xml", ".sdf")


def read(path: str | Path, **options: Any) -> Description:
    """The description in a model file: `.mks`, `.urdf`, `.dh.toml`. Options are those of the format's reader."""
    file, name = str(path), Path(path).name.lower()
    if not Path(path).exists():
        raise FormatError("there is no such file", file=file)
    if Path(path).is_dir():
        raise FormatError("is a directory; give a model file", file=file)
    # Readers are imported when needed: XML is slow to import.
    reader: Callable[..., Description]
    if name.endswith(".urdf"):
        from linkwright.formats.urdf import read_urdf as reader
    elif name.endswith(".dh.toml"):
        from linkwright.formats.dh import read_dh as reader
    elif name.endswith(".mks"):
        from linkwright.formats.mks.reader import read_mks as reader
    elif name.endswith(_LATER):
        raise FormatError(f"{Path(path).suffix} files are not read yet; .mks, .urdf and .dh.toml are", file=file)
    else:
        ending = Path(path).suffix
        raise FormatError(f"files ending in {ending!r} are not read; .mks, .urdf and .dh.toml are", file=file)
    known = [p.name for p in inspect.signature(reader).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise FormatError(f"the option {option!r} is not one of this format's, which {takes}", file=file)
    return reader(path, **options)
