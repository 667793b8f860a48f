"""Tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table as lines: the first column flush left, the others flush right."""
    wide = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(x.ljust(n) if k == 0 else x.rjust(n) for k, (x, n) in enumerate(zip(row, wide, strict=True))).rstrip()
        for row in rows
    ]
