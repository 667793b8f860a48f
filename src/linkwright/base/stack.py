"""Where in the stack the caller is whom a warning is for."""

import sys


def outside() -> int:
    """How far up the stack a caller outside this package is: the `stacklevel` of a warning."""
    level, frame = 1, sys._getframe(1)
    ours = ("linkwright.", "functools")  # a cached property calls through the latter
    while frame.f_back is not None and str(frame.f_globals.get("__name__") or "").startswith(ours):
        level, frame = level + 1, frame.f_back
    return level
