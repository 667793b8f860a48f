"""What an engine gives back for some cases: arrays by output, and why a case failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import LinkwrightError, MksError

MISSING = "not computed"  # the reason of a case whose chunk is not there


@dataclass(frozen=True, eq=False)
class Batch:
    """`arrays` by output, each (n, ...) with NaN where a case has no value; `reasons` are empty for good cases."""

    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.reasons)


def sentence(error: Exception) -> str:
    """The message of an error, on one line; of a model's text without the carets."""
    if isinstance(error, MksError):
        parts = [
            f"{p.message} ({p.excerpt.splitlines()[0].strip()})" if p.excerpt else p.message for p in error.problems
        ]
        return "; ".join(" ".join(part.split()) for part in parts)
    return " ".join(str(error).split()) or type(error).__name__


def reason_of(call: Callable[..., Any], *arguments: Any) -> str:
    """Why a call is refused, empty if it is not."""
    try:
        call(*arguments)
    except LinkwrightError as error:
        return sentence(error)
    return ""


def joined(parts: list[Batch]) -> Batch:
    """Batches one after the other; an output that a part lacks is NaN there."""
    if len(parts) == 1:
        return parts[0]
    shapes: dict[str, tuple[int, ...]] = {}
    for part in parts:
        for name, x in part.arrays.items():
            known = shapes.setdefault(name, x.shape[1:])
            # A part in which no case came far enough does not know how many numbers there would have been.
            shapes[name] = x.shape[1:] if len(x.shape[1:]) > len(known) else known
    arrays: dict[str, NDArray[np.float64]] = {}
    for name, shape in shapes.items():
        rows: list[Any] = [_rows(part.arrays.get(name), len(part), shape) for part in parts]
        arrays[name] = np.concatenate(rows)
    return Batch(arrays, [reason for part in parts for reason in part.reasons])


def _rows(x: NDArray[np.float64] | None, n: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if x is not None and x.shape[1:] == shape:
        return x
    return np.full((n, *shape), np.nan)
