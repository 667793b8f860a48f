"""Laws of drivers at given times: where one has no finite value. Nothing here moves a body."""

from __future__ import annotations

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import ModelError
from linkwright.mechanism.description import Description
from linkwright.mechanism.expression import numeric_values


def first_undefined(d: Description, times: Floats) -> tuple[int, str, str] | None:
    """The place of the first time (n,) at which a driver's law has no finite value, the driver, and a sentence."""
    first: tuple[int, str] | None = None
    for driver in d.drivers:
        values = numeric_values(driver.law, {**d.parameters, "TIME": times})
        bad = np.flatnonzero(~np.isfinite(np.broadcast_to(values, times.shape)))
        if len(bad) and (first is None or bad[0] < first[0]):
            first = int(bad[0]), driver.name
    if first is None:
        return None
    k, name = first
    return k, name, f"the law of driver {name!r} has no finite value at t = {times[k]:g}"


def check_driver_laws(d: Description, times: Floats) -> None:
    """Refuse times (n,) at one of which a driver's law has no finite value."""
    undefined = first_undefined(d, times)
    if undefined is not None:
        _, name, text = undefined
        raise ModelError(f"{text}; change the law or the times", element=name)
