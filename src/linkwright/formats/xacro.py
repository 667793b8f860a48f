"""xacro files by the package `xacro`, into URDF and from there into a description.

xacro evaluates Python expressions of the file and reads files that it names anywhere, so that it is asked for only
by those who trust the file.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import redirect_stderr
from typing import Any, Literal
from warnings import warn

from linkwright.errors import FormatError, LinkwrightError, LinkwrightWarning
from linkwright.formats.urdf import describe
from linkwright.formats.xml import parse_bytes
from linkwright.model.description import Description


def read_xacro(
    path: str | os.PathLike[str],
    *,
    arguments: Mapping[str, Any] | None = None,
    trust: bool = False,
    base: Literal["fixed", "floating"] = "fixed",
    mimic: Literal["follow", "independent"] = "follow",
    fixed: Literal["merge", "keep"] = "merge",
    friction: Literal["ignore", "apply"] = "ignore",
) -> Description:
    """The mechanism of a xacro file; `arguments` are its `<xacro:arg>`, other options those of URDF.

    `trust=True` is needed, because xacro runs the file's expressions and reads whatever files it names.
    """
    file = os.fspath(path)
    if trust is not True:
        text = "is a xacro file, whose expressions are run as code and which may read any file; if you trust it, say "
        raise FormatError(text + "lw.load(..., trust=True), or linkwright convert --trust", file=file)
    robot = parse_bytes(expanded(file, arguments or {}), file)
    return describe(robot, file, base=base, mimic=mimic, fixed=fixed, friction=friction)


def expanded(file: str, arguments: Mapping[str, Any]) -> bytes:
    """The XML that xacro makes of a file."""
    try:
        import xacro  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise LinkwrightError(f"{file}: xacro files need the package xacro: pip install xacro") from None
    wanted = {str(key): str(value) for key, value in arguments.items()}
    warnings = io.StringIO()  # it warns on stderr
    try:
        with redirect_stderr(warnings):
            document = xacro.process_file(file, mappings=wanted)
    except (Exception, SystemExit) as error:  # whatever the file's expressions may raise
        reason = " ".join(str(error).split()).partition(" [Errno")[0] or type(error).__name__
        raise FormatError(f"xacro cannot expand it: {reason}", file=file) from error
    if warnings.getvalue().strip():
        warn(f"{file}: xacro warns: {' '.join(warnings.getvalue().split())}", LinkwrightWarning, stacklevel=5)
    return bytes(document.toxml(encoding="utf-8"))
