"""A leg of Theo Jansen's walking mechanism, drawn on any of its branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw

Floats = NDArray[np.float64]
#: The published lengths.
LENGTHS = dict(
    zip("abcdefghijklm", (38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 7.8, 15.0), strict=True)
)
#: Each point where two circles meet: about which points, with which lengths.
CIRCLES = {"C": "AjBb", "E": "AkBc", "D": "CeBd", "F": "DfEg", "G": "FhEi"}


def points(angle: float, sides: Sequence[int], scale: float) -> dict[str, Floats]:
    """The joints at an angle of the crank; a side for each of C, E, D, F and the foot G says which branch."""
    n = {name: scale * length for name, length in LENGTHS.items()}
    p = {"O": np.zeros(2), "B": -np.array([n["a"], n["l"]])}
    p["A"] = n["m"] * np.array([np.cos(angle), np.sin(angle)])
    for (name, (one, r, two, s)), side in zip(CIRCLES.items(), sides, strict=True):
        apart = np.linalg.norm(p[two] - p[one])
        u = (p[two] - p[one]) / apart
        along = (n[r] ** 2 - n[s] ** 2 + apart**2) / (2.0 * apart)
        p[name] = p[one] + along * u + side * np.sqrt(n[r] ** 2 - along**2) * np.array([-u[1], u[0]])
    return p


def leg(angle: float, sides: Sequence[int], law: Any, scale: float = 1.0) -> lw.Mechanism:
    """The leg drawn at an angle of its crank, which follows a law."""
    p = points(angle, sides, scale)
    with lw.Builder("Jansen's leg") as b:

        def ground(at: str) -> Any:
            return b.triad(b.ground, origin=(*p[at].tolist(), 0.0))

        def link(name: str, first: str, second: str) -> Callable[[str], Any]:
            d = p[second] - p[first]
            b.place(b.body(name), (*p[first], 0.0), f=(*d, 0.0))
            u = d / np.linalg.norm(d)
            axes = np.array([u, [-u[1], u[0]]])
            return lambda at: b.triad(name, origin=(*(axes @ (p[at] - p[first])).tolist(), 0.0))

        crank, j, upper = link("crank", "O", "A"), link("j", "A", "C"), link("upper", "B", "C")
        k, c, f, lower = link("k", "A", "E"), link("c", "B", "E"), link("f", "D", "F"), link("lower", "E", "F")
        pivot = b.joint("revolute", ground("O"), crank("O"), "jO")
        pairs = ((crank, j), (crank, k), (ground, upper), (ground, c), (j, upper), (k, c), (c, lower), (upper, f))
        names = ("jA1", "jA2", "jB1", "jB2", "jC", "jE1", "jE2", "jD", "jF")
        for name, (one, two) in zip(names, (*pairs, (f, lower)), strict=True):
            b.joint("revolute", one(name[1]), two(name[1]), name)
        b.driver("joint", pivot, law, name="motor")
    return b.build()
