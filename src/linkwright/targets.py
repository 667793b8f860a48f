"""Where a file may be written: at a free name, or in place of a regular file; nothing is written here."""

from __future__ import annotations

import os
import stat

from linkwright.errors import LinkwrightError

_SORTS = (
    (stat.S_ISDIR, "a folder; give the name of a file in it"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a place that holds anything but a regular file, or a link to one: it would be lost to the new file."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # nothing is there; or writing will tell why it cannot be
    if not stat.S_ISREG(mode):
        sort = next((name for test, name in _SORTS if test(mode)), "no regular file")
        advice = "" if ";" in sort else ", which a file would replace; give the name of a file"
        raise LinkwrightError(f"{os.fspath(path)} is {sort}{advice}")
