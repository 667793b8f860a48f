"""Where bodies and the frames on them are and how they move, for arrays of times at once.

Components come first, (3, T) and (4, T), so that the functions of `spatial` for one vector serve for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.description import GROUND, Description, Names
from linkwright.spatial.algebra import point_acceleration, point_velocity
from linkwright.spatial.rotation import euler_parameters_matrix


@dataclass(frozen=True, eq=False)
class Place:
    """A frame on a body (−1 is ground): its rotation and origin in the body's axes."""

    body: int
    r: Floats
    p: Floats

    @property
    def off(self) -> bool:
        """Whether its origin is not the body's own."""
        return bool(self.p.any())

    @property
    def turned(self) -> bool:
        """Whether its axes are not the body's own."""
        return not np.array_equal(self.r, np.eye(3))


def place(description: Description, name: str) -> Place:
    """A body, a frame, ground or the place of a trace, by name; in another case too, where only one name fits."""
    body, frame = find(description, name)
    f = description.frames
    return Place(body, np.eye(3), np.zeros(3)) if frame is None else Place(body, f.r[frame], f.p[frame])


def find(description: Description, name: str) -> tuple[int, int | None]:
    """The body of such a place (−1 is ground), and the number of its frame; None for the body's own."""
    d = description
    if not isinstance(name, str):
        raise ModelError(f"a body or frame is given by its name, not by {name!r}")
    traced = {trace.name: trace.place for trace in d.traces}
    where = _exact(d, name) or (_exact(d, traced[name]) if name in traced else None)
    if where is None:
        fits = {one for names in (d.body_names, d.frames.names) for one in fitting(names, name)}
        fits |= {one for one in (d.ground_name, *traced) if one.casefold() == name.casefold()}
        if len(fits) == 1:
            only = fits.pop()
            where = _exact(d, only) or (_exact(d, traced[only]) if only in traced else None)
    if where is None:
        known = [*d.body_names[:2000], *d.frames.names[:2000], d.ground_name, *traced]
        raise NameNotFound("body or frame", name, list(dict.fromkeys(known)))
    return where


def _exact(d: Description, name: str) -> tuple[int, int | None] | None:
    body = d.body_names.find(name)
    if body is not None:
        return body, None
    frame = d.frames.names.find(name)
    if frame is not None:
        return int(d.frames.body[frame]), frame
    return (GROUND, None) if name == d.ground_name else None


def fitting(names: Names, name: str) -> list[str]:
    """The names that differ from this one in case alone; names that were made by number are not searched."""
    folded = name.casefold()
    return [] if names.generated else [known for known in names if known.casefold() == folded]


def at_point(quantity: str, arm: Floats, of_body: Callable[[str], Floats]) -> Floats:
    """The position, velocity or acceleration of a point of a body, components first, in ground's axes.

    `arm` goes from the body's origin to the point; `of_body` gives a quantity of the body by its name.
    """
    x = of_body(quantity)
    if quantity == "position":
        return x + arm
    omega = of_body("angular_velocity")
    if quantity == "velocity":
        return np.asarray(point_velocity(x, omega, arm))
    return np.asarray(point_acceleration(x, of_body("angular_acceleration"), omega, arm))


def turned(e: Any, p: Any) -> Any:
    """R(e) p."""
    return np.einsum("ij...,j...->i...", euler_parameters_matrix(e), spread(p, e))


def turned_back(e: Any, p: Any) -> Any:
    """R(e)ᵀ p."""
    return np.einsum("ji...,j...->i...", euler_parameters_matrix(e), spread(p, e))


def spread(x: Any, like: Any) -> Any:
    """x (n, ...) with the trailing shape of `like`."""
    x = np.asarray(x)
    missing = np.ndim(like) - x.ndim
    x = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
    return np.broadcast_to(x, (x.shape[0], *np.shape(like)[1:]))
