"""Planar linkages for tests, in any plane and any size, with their angles in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw

Floats = NDArray[np.float64]
FLAT = np.eye(3)
#: A plane in space: columns are two axes in the plane and its normal.
TILTED = np.linalg.qr(np.array([[0.3, -0.8, 0.5], [0.9, 0.1, -0.4], [0.2, 0.6, 0.7]]))[0]


class Drawn:
    """A builder that places bodies and joints by points (x, y) of a plane."""

    def __init__(self, name: str, axes: Floats = FLAT) -> None:
        self.b = lw.Builder(name)
        self.axes = axes * np.array([1.0, 1.0, np.linalg.det(axes)])
        self.at: dict[str, Floats] = {}

    def point(self, x: Sequence[float]) -> Floats:
        return self.axes[:, :2] @ np.asarray(x, float)

    def body(self, name: str, x: Sequence[float], mass: float = 1.0) -> Any:
        body = self.b.body(name, mass, inertia=(0.1, 0.1, 0.1))
        self.at[name] = self.point(x)
        self.b.place(body, self.at[name])
        return body

    def frame(self, body: Any, x: Sequence[float], along: Sequence[float] | None = None) -> Any:
        """A frame whose h axis is the normal, or the direction `along` in the plane."""
        name = getattr(body, "name", str(body))
        origin = self.point(x) - self.at.get(name, np.zeros(3))
        if along is None:
            return self.b.triad(body, origin=origin, h=self.axes[:, 2], f=self.axes[:, 0])
        return self.b.triad(body, origin=origin, h=self.point(along), f=self.axes[:, 2])

    def pin(self, name: str, one: Any, other: Any, x: Sequence[float], kind: str = "revolute") -> None:
        self.b.joint(kind, self.frame(one, x), self.frame(other, x), name)

    def slide(self, name: str, one: Any, other: Any, x: Sequence[float], along: Sequence[float]) -> None:
        self.b.joint("prismatic", self.frame(one, x, along), self.frame(other, x, along), name)


def third_corner(a: Floats, b: Floats, from_a: float, from_b: float, side: float = 1.0) -> Floats:
    """The point at these distances from a and b, on the left of the way from a to b for side 1."""
    way = b - a
    apart = float(np.hypot(*way))
    along = (apart**2 + from_a**2 - from_b**2) / (2 * apart)
    across = np.sqrt(from_a**2 - along**2)
    unit = way / apart
    return np.asarray(a + along * unit + side * across * np.array([-unit[1], unit[0]]))


def four_bar(
    lengths: Sequence[float],
    start: float = 0.7,
    axes: Floats = FLAT,
    law: Callable[[Any], Any] | None = None,
    driven: str = "a",
) -> lw.Mechanism:
    """Frame, crank, coupler and rocker of these lengths; joints a, b, c, d; `a` is driven from the angle `start` on."""
    g, r, c, s = lengths
    drawn = Drawn("four-bar", axes)
    left, right = np.zeros(2), np.array([g, 0.0])
    one = r * np.array([np.cos(start), np.sin(start)])
    two = third_corner(one, right, c, s)
    with drawn.b as b:
        crank, coupler, rocker = (
            drawn.body(name, x) for name, x in (("crank", left), ("coupler", one), ("rocker", right))
        )
        drawn.pin("a", b.ground, crank, left)
        drawn.pin("b", crank, coupler, one)
        drawn.pin("c", coupler, rocker, two)
        drawn.pin("d", b.ground, rocker, right)
        b.driver("joint", driven, law or (lambda t: t), name="motor")
    return b.build()


def slider_crank(
    crank: float, coupler: float, offset: float, start: float = 0.7, axes: Floats = FLAT, *, spheres: bool = False
) -> lw.Mechanism:
    """Crank, coupler and a block that slides along x at the height −`offset`; joints a, b, c and slide."""
    drawn = Drawn("slider-crank", axes)
    one = crank * np.array([np.cos(start), np.sin(start)])
    two = np.array([one[0] + np.sqrt(coupler**2 - (one[1] + offset) ** 2), -offset])
    with drawn.b as b:
        wheel, rod, block = (drawn.body(n, x) for n, x in (("wheel", (0, 0)), ("rod", one), ("block", two)))
        drawn.pin("a", b.ground, wheel, (0, 0))
        drawn.pin("b", wheel, rod, one, "spherical" if spheres else "revolute")
        drawn.pin("c", rod, block, two, "spherical" if spheres else "revolute")
        drawn.slide("slide", b.ground, block, two, (1, 0))
        b.driver("joint", "a", lambda t: t, name="motor")
    return b.build()


def lifted_arm(*, distance: bool = False) -> lw.Mechanism:
    """An arm of 2 on a pivot at the origin, lifted at 1.2 by a hydraulic cylinder from (0.9, −0.8).

    The cylinder is two bodies and a driven slide, or a driven distance.
    """
    drawn = Drawn("lifted arm")
    foot, eye = np.array([0.9, -0.8]), np.array([1.2, 0.0])
    way = (eye - foot) / np.hypot(*(eye - foot))
    with drawn.b as b:
        arm = drawn.body("arm", (0, 0))
        drawn.pin("pivot", b.ground, arm, (0, 0))
        b.triad(arm, origin=(2, 0, 0), name="tip")
        if distance:
            b.triad(b.ground, origin=(*foot, 0), name="foot")
            b.triad(arm, origin=(*eye, 0), name="eye")
            b.driver("distance", "foot", lambda t: np.hypot(*(eye - foot)) + 0.1 * t, other="eye", name="ram")
        else:
            barrel, rod = drawn.body("barrel", foot), drawn.body("rod", eye)
            drawn.pin("below", b.ground, barrel, foot)
            drawn.slide("ram", barrel, rod, foot + 0.3 * way, way)
            drawn.pin("above", rod, arm, eye)
            b.driver("joint", "ram", lambda t: 0.1 * t, name="pump")
    return b.build()
