"""Calls of one mechanism's programs for many cases at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.base.types import Floats
from linkwright.constraints.programs import named
from linkwright.kernels.kernel import Kernel

LANES = 8  # a batch of fewer rows would run by other code, whose last bits may differ


def in_lanes(program: Kernel, given: Mapping[str, Floats], n: int) -> dict[str, Floats]:
    """The outputs of a program for n rows, by the code for many rows whatever n is."""
    if n >= LANES:
        return named(program, given)
    shapes = {port.name: len(port.shape) for port in program.inputs}
    more = {
        name: np.concatenate([x, np.repeat(x[-1:], LANES - n, axis=0)])
        for name, x in given.items()
        if name in shapes and x.ndim > shapes[name]
    }
    return {name: x[:n] for name, x in named(program, {**given, **more}).items()}


def some(inputs: Mapping[str, Floats], rows: Any) -> dict[str, Floats]:
    """The numbers of some cases; the tolerance is for all."""
    return {name: x if name in ("tolerance", "newton") else x[rows] for name, x in inputs.items()}
