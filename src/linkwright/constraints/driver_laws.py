"""Laws of drivers at given times: where one has no finite value. Nothing here moves a body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.expression import numeric_values

Flags = NDArray[np.bool_]


def undefined(d: Description, parameters: Mapping[str, Any], times: Floats) -> Iterator[tuple[str, Flags]]:
    """Each driver, and where its law has no finite value (..., times) for values (..., 1) of the parameters."""
    for driver in d.drivers:
        values = numeric_values(driver.law, {**parameters, "TIME": times})
        shape = np.broadcast_shapes(np.shape(values), times.shape)
        yield driver.name, ~np.isfinite(np.broadcast_to(values, shape))


def first_undefined(d: Description, times: Floats) -> tuple[int, str, str] | None:
    """The place of the first time (n,) at which a driver's law has no finite value, the driver, and a sentence."""
    places = [(int(np.argmax(bad)), name) for name, bad in undefined(d, d.parameters, times) if bad.any()]
    if not places:
        return None
    k, name = min(places, key=lambda place: place[0])
    return k, name, f"the law of driver {name!r} has no finite value at t = {times[k]:g}"


def check_driver_laws(d: Description, times: Floats) -> None:
    """Refuse times (n,) at one of which a driver's law has no finite value."""
    undefined = first_undefined(d, times)
    if undefined is not None:
        _, name, text = undefined
        raise ModelError(f"{text}; change the law or the times", element=name)
