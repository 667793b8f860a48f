"""Closed mechanisms with masses for the tests of their dynamics: plane and spatial, tied, geared, driven, redundant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw

Floats = NDArray[np.float64]


def solid(b: lw.Builder, name: str, seed: int, size: float = 1.0) -> Any:
    """A body with a centre of mass off its origin and an inertia about every axis."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3, 3))
    inertia = a @ a.T
    inertia = (np.trace(inertia) * np.eye(3) - inertia) * 0.05 * size**2 + 0.02 * np.eye(3)
    return b.body(name, 1.0 + rng.uniform(), 0.3 * size * rng.normal(size=3), inertia)


def four_bar(drive: bool = False, actuated: tuple[str, ...] = ("A",)) -> lw.Mechanism:
    """Four revolute joints about z; three of the loop's equations are redundant."""
    with lw.Builder("four-bar") as b:
        b.gravity((1.0, -9.0, 2.0))
        crank, coupler, rocker = (solid(b, n, k) for k, n in enumerate(("crank", "coupler", "rocker")))
        b.place(crank, (0, 0, 0), f=(0.4, 1.0, 0))
        b.place(coupler, (0.4, 1.0, 0), f=(3, 0.9, 0))
        b.place(rocker, (3, 0, 0), f=(0.4, 2.4, 0))
        joints = [
            ("A", b.ground, (0, 0, 0), crank, (0, 0, 0)),
            ("B", crank, (1, 0, 0), coupler, (0, 0, 0)),
            ("D", b.ground, (3, 0, 0), rocker, (0, 0, 0)),
            ("C", coupler, (3, 0, 0), rocker, (2.5, 0, 0)),
        ]
        for name, i, at, j, to in joints:
            b.joint("revolute", b.triad(i, at), b.triad(j, to), name, cut=name == "C", actuated=name in actuated)
        if drive:
            b.driver("joint", "A", 1.2 + 0.8 * lw.TIME + 0.3 * np.sin(2.0 * lw.TIME), name="motor")
    return b.build()


def slider_with_rod() -> lw.Mechanism:
    """A crank and a block in space, held together by a rod of fixed length."""
    with lw.Builder("slider with rod") as b:
        crank, block = solid(b, "crank", 5), solid(b, "block", 6)
        b.place(crank, (0, 0, 0))
        b.place(block, (2.6, 0.1, 0.2))
        b.joint("revolute", b.triad(b.ground), b.triad(crank), "bearing")
        along = {"h": (1.0, 0.0, 0.1), "f": (0.0, 1.0, 0.0)}
        b.joint("prismatic", b.triad(b.ground, (0, 0, 0.2), **along), b.triad(block, **along), "slide", actuated=False)
        b.rod(b.triad(crank, (0.3, 0.8, 0.1)), b.triad(block, (0, 0, 0.1)), 2.5, "rod")
    return b.build()


def rssr() -> lw.Mechanism:
    """A spatial four-bar whose coupler turns freely about itself: two degrees of freedom."""
    with lw.Builder("rssr") as b:
        crank, coupler, rocker = (solid(b, n, 10 + k) for k, n in enumerate(("crank", "coupler", "rocker")))
        b.place(crank, (0, 0, 0))
        b.place(coupler, (1, 0, 0))
        b.place(rocker, (2.8, 0.2, 0))
        b.joint("revolute", b.triad(b.ground), b.triad(crank), "A")
        b.joint("spherical", b.triad(crank, (1, 0, 0)), b.triad(coupler), "B", actuated=False)
        b.joint("revolute", b.triad(b.ground, (2.8, 0.2, 0), h=(0.2, 1, 0.3)), b.triad(rocker, h=(0.2, 1, 0.3)), "D")
        b.joint("spherical", b.triad(coupler, (2.2, 0, 0)), b.triad(rocker, (0, 0, 1.4)), "C", cut=True)
    return b.build()


def platform() -> lw.Mechanism:
    """Six legs of universal, prismatic and spherical joints under a plate: five loops, six actuators."""
    with lw.Builder("platform") as b:
        plate = solid(b, "plate", 20)
        b.place(plate, (0.05, -0.03, 1.4))
        for k in range(6):
            low = np.array([np.cos(k * np.pi / 3 + 0.2 * (-1) ** k), np.sin(k * np.pi / 3 + 0.2 * (-1) ** k), 0.0])
            high = 0.6 * np.array([np.cos(k * np.pi / 3 - 0.3 * (-1) ** k), np.sin(k * np.pi / 3 - 0.3 * (-1) ** k), 0])
            line = high + np.array([0.05, -0.03, 1.4]) - low
            across = np.cross(line, (0.0, 0.0, 1.0))
            lower, upper = solid(b, f"lower{k}", 30 + k, 0.3), solid(b, f"upper{k}", 40 + k, 0.3)
            b.place(lower, low, h=line, f=across)
            b.place(upper, low + 0.5 * line, h=line, f=across)
            fork = b.triad(b.ground, low, h=np.cross(across, line), f=line)
            b.joint("universal", fork, b.triad(lower, h=(1, 0, 0), f=(0, 0, 1)), f"fork{k}", actuated=False)
            b.joint("prismatic", b.triad(lower), b.triad(upper), f"leg{k}")
            length = 0.5 * float(np.linalg.norm(line))
            ball = b.triad(upper, (0, 0, length)), b.triad(plate, high)
            b.joint("spherical", *ball, f"ball{k}", actuated=False, cut=k > 0)
    return b.build()


def pen_on_line() -> lw.Mechanism:
    """A double pendulum in space whose tip stays on a line, above a body that stays in a plane."""
    with lw.Builder("pen on line") as b:
        upper, lower, puck = solid(b, "upper", 50), solid(b, "lower", 51), solid(b, "puck", 52)
        b.place(upper, (0, 0, 0))
        b.place(lower, (1, 0, 0))
        b.place(puck, (0.3, 0.4, 0.9))
        b.joint("universal", b.triad(b.ground), b.triad(upper, h=(0, 1, 0)), "shoulder")
        b.joint("spherical", b.triad(upper, (1, 0, 0)), b.triad(lower), "elbow")
        b.joint("free", b.ground, puck, "loose")
        rail = b.triad(b.ground, (1.4, 0.9, 0.2), h=(0.3, 0.1, 1.0))
        b.point_on_line(rail, b.triad(lower, (0.4, 0.9, 0.1)), "rail")
        b.point_on_plane(b.triad(lower, (0, 0, 0.5), h=(0.2, 0.1, 1)), b.triad(puck, (0.1, 0.1, 0.2)), "table")
    return b.build()


def driven_arm() -> lw.Mechanism:
    """An arm of three joints whose first is turned, whose tip's height and whose distance to a post are prescribed."""
    with lw.Builder("driven arm") as b:
        parts = [solid(b, f"link{k}", 60 + k) for k in range(3)]
        below: Any = b.ground
        for k, (part, axis) in enumerate(zip(parts, ((0, 0, 1), (0.3, 1, 0), (0, 1, 0.2)), strict=True)):
            b.place(part, (0.8 * k, 0.02 * k, 0.1 * k))
            b.joint("revolute", b.triad(below, (0.8 if k else 0, 0, 0), h=axis), b.triad(part, h=axis), f"j{k}")
            below = part
        tip = b.triad(parts[2], (0.7, 0.1, 0.1), name="tip")
        post = b.triad(b.ground, (0.2, 1.5, 0.4), name="post")
        b.driver("joint", "j0", 0.3 + 0.5 * np.sin(1.5 * lw.TIME), name="turn")
        b.driver("distance", tip, 1.9 + 0.1 * np.sin(2.0 * lw.TIME), other=post, name="winch")
    return b.build()


def geared_wheels(*, passive: str = "", loop: bool = False) -> lw.Mechanism:
    """Two wheels, the second geared to the first, or to a joint that holds the first once more and closes a loop."""
    with lw.Builder("wheels") as b:
        for name in ("one", "two"):
            b.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
            b.joint("revolute", b.ground, name, f"shaft {name}", actuated=name != passive)
        if loop:
            b.joint("revolute", b.ground, "one", "again", cut=True)
        b.mimic("shaft two", "again" if loop else "shaft one", -2.0)
    return b.build()


#: Every mechanism with the name that tests show.
MECHANISMS: dict[str, Callable[[], lw.Mechanism]] = {
    "four-bar": four_bar,
    "driven four-bar": lambda: four_bar(drive=True),
    "slider with rod": slider_with_rod,
    "rssr": rssr,
    "platform": platform,
    "pen on line": pen_on_line,
    "driven arm": driven_arm,
}


def state(mech: lw.Mechanism, t: float = 0.0, seed: int = 0) -> tuple[Floats, Floats]:
    """A consistent state at a time, with random rates."""
    q = mech.assemble(t=t)
    return mech.project(q, np.random.default_rng(seed).normal(size=mech.nv), t=t)
