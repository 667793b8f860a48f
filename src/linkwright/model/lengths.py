"""The lengths of a mechanism: how large its bodies are, and one length to measure gaps and shifts by.

Every tolerance that is a length is a part of these: the same mechanism in µm or in km is judged alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.model.joint_kinds import KIND_LIST

if TYPE_CHECKING:
    from linkwright.model.description import Description
    from linkwright.model.tree import Tree

Ints = NDArray[np.int64]
GROUND = -1
SMALL = 1e-3  # of a typical body's length: less is the length of a body whose frames are all in one place


def body_lengths(d: Description, array: Callable[[str], Floats] | None = None) -> Floats:
    """(..., nb): a length for each body, the root mean square of its frames' distances from its origin.

    The frames are those of joints, rods, point constraints and drivers. A body whose frames are all in one place has
    the typical length of the others. Where all bodies are such, the centres of mass and radii of gyration tell a
    length; else the places of frames on ground and of bodies as drawn; else it is 1 m.

    `array` gives the description's arrays by name, by default as they are; with cases first, so is the answer.
    """
    array = array or (lambda name: np.asarray(getattr(d, name), dtype=np.float64))
    total, number = np.zeros((*array("com").shape[:-2], d.nb)), np.zeros(d.nb)
    spread = np.zeros(total.shape[:-1])
    for origins, bodies in _frames(d, array):
        squares = np.sum(origins**2, axis=-1)
        on_body = bodies != GROUND
        np.add.at(np.moveaxis(total, -1, 0), bodies[on_body], np.moveaxis(squares[..., on_body], -1, 0))
        np.add.at(number, bodies[on_body], 1.0)
        spread = np.maximum(spread, np.max(np.abs(origins[..., ~on_body, :]), axis=(-2, -1), initial=0.0))
    lengths = np.sqrt(total / np.maximum(number, 1.0))
    if d.start is not None:
        drawn = array("start_p")[..., d.start.placed, :]
        spread = np.maximum(spread, np.max(np.abs(drawn), axis=(-2, -1), initial=0.0))
    known = lengths.any(axis=-1)
    typical = np.sqrt(np.sum(lengths**2, axis=-1) / max(d.nb, 1))
    inertial = np.max(_inertial_lengths(array), axis=-1, initial=0.0)
    none = np.where(inertial > 0.0, inertial, np.where(spread > 0.0, spread, 1.0))
    typical = np.where(known, typical, none)[..., None]
    return np.asarray(np.where(lengths > SMALL * typical, lengths, typical))


def length_scale(d: Description, array: Callable[[str], Floats] | None = None) -> Floats:
    """(...): a length that is typical for the mechanism, in metres and greater than zero: that of its largest body.

    It scales with the model: a model ten times as large has ten times this length. A gap, a shift or the tolerance of
    one is small or large as a part of it.
    """
    lengths = d.body_lengths if array is None else body_lengths(d, array)
    largest = np.max(lengths, axis=-1, initial=0.0)
    return np.asarray(np.where(largest > 0.0, largest, 1.0))


def coordinate_units(tree: Tree, length: float | None = None) -> tuple[Floats, Floats]:
    """(nq,) and (nv,): the unit of each coordinate and of each rate: the mechanism's length for shifts, else 1.

    `length` is that of another case of the mechanism.
    """
    q, v = (np.where(flags, tree.description.length_scale if length is None else length, 1.0) for flags in tree.shifts)
    return q, v


def _frames(d: Description, array: Callable[[str], Floats]) -> Iterator[tuple[Floats, Ints]]:
    """Origins (..., n, 3) of the frames that something is fixed to, and their bodies (n,)."""
    holds = np.array([kind.nv < 6 for kind in KIND_LIST])[np.asarray(d.kind, dtype=np.int64)]
    for name, bodies in (("pi", d.parent), ("pj", d.child)):
        yield array(name)[..., holds, :], np.asarray(bodies, dtype=np.int64)[holds]
    places = [name for x in (*d.ties, *d.drivers) for name in x.places]
    places = [name for name in places if d.body_names.find(name) is None]  # a body's own origin adds no length
    rows = [k for k in map(d.frames.names.find, places) if k is not None]
    if rows:
        yield array("frame_p")[..., rows, :], np.asarray(d.frames.body[rows], dtype=np.int64)


def _inertial_lengths(array: Callable[[str], Floats]) -> Floats:
    """(..., nb): how far each body's centre of mass is from its origin, or its radius of gyration."""
    mass, inertia = array("mass"), array("inertia")
    gyration = np.sqrt(np.maximum(inertia[..., :3].sum(axis=-1), 0.0) / np.where(mass > 0.0, 2.0 * mass, np.inf))
    return np.asarray(np.maximum(np.sqrt(np.sum(array("com") ** 2, axis=-1)), gyration))
