"""Options of a run in one dictionary, as keyword arguments of `lw.simulate`."""

from dataclasses import fields
from typing import Any

import linkwright as lw


def settings(**options: Any) -> dict[str, Any]:
    """The options, with those that are fields of lw.Stepping or lw.Saving gathered into these."""
    gathered = dict(options)
    for keyword, kind in (("stepping", lw.Stepping), ("saving", lw.Saving)):
        names = [field.name for field in fields(kind) if field.name in options]
        if names:
            gathered[keyword] = kind(**{name: gathered.pop(name) for name in names})
    return gathered
