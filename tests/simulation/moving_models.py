"""Mechanisms for the tests of simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwright as lw

SWUNG = np.array([0.9, -0.4])


def double_pendulum() -> lw.Mechanism:
    return lw.chain(2)


def oscillator(stiffness: float = 4.0, damping: float = 0.0) -> lw.Mechanism:
    """A mass of 1 kg on a slide, without gravity, with a spring and a damper."""
    with lw.Builder("oscillator") as b:
        b.gravity((0.0, 0.0, 0.0))
        block = b.body("block", mass=1.0, inertia=(1.0, 1.0, 1.0))
        slide = b.joint("prismatic", b.ground, block, name="slide")
        b.joint_spring(slide, stiffness)
        b.joint_damper(slide, damping)
    return b.build()


def top() -> lw.Mechanism:
    """A free body with three different moments of inertia, without gravity."""
    with lw.Builder("top") as b:
        b.gravity((0.0, 0.0, 0.0))
        body = b.body("body", mass=2.0, inertia=(1.0, 2.0, 2.5))
        b.joint("free", b.ground, body, name="flight")
    return b.build()


def _bar(b: Any, name: str, start: tuple[float, float], end: tuple[float, float], mass: float) -> Any:
    first = np.array([*start, 0.0])
    d = np.array([*end, 0.0]) - first
    length, angle = float(np.hypot(d[0], d[1])), float(np.arctan2(d[1], d[0]))
    body = b.body(
        name, mass=mass, com=(length / 2, 0.0, 0.0), inertia=(1e-3, mass * length**2 / 12, mass * length**2 / 12)
    )
    c, s = np.cos(angle), np.sin(angle)
    b.place(body, first, rotation=np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]))
    return body, length


def four_bar(crank: Any = None) -> lw.Mechanism:
    """A crank that can turn round, a coupler and a rocker in the x–y plane, falling along −y; one loop joint.

    With a law `crank` for its angle, the crank is driven.
    """
    a, b_, c, d = (0.0, 0.0), (0.0, 0.4), (1.1, 1.0), (1.0, 0.0)
    with lw.Builder("four bar") as b:
        b.gravity((0.0, -9.81, 0.0))
        bar, r = _bar(b, "crank", a, b_, 1.0)
        coupler, k = _bar(b, "coupler", b_, c, 1.5)
        rocker, s = _bar(b, "rocker", d, c, 1.2)
        hinge = b.joint("revolute", b.triad(b.ground), b.triad(bar), "a")
        if crank is not None:
            b.driver("joint", hinge, crank)
        b.joint("revolute", b.triad(bar, origin=(r, 0.0, 0.0)), b.triad(coupler), "b")
        b.joint("revolute", b.triad(b.ground, origin=(*d, 0.0)), b.triad(rocker), "d")
        b.joint("revolute", b.triad(coupler, origin=(k, 0.0, 0.0)), b.triad(rocker, origin=(s, 0.0, 0.0)), "c")
    return b.build()


def out_of_reach():
    """A rocker that is driven to where its coupler cannot follow."""
    with lw.Builder("out of reach") as b:
        first = b.body("first", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        second = b.body("second", mass=1.0, com=(0.3, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.triad(b.ground), b.triad(first), "hinge")
        b.joint("revolute", b.triad(first, origin=(1.0, 0.0, 0.0)), b.triad(second), "elbow")
        wall = b.triad(b.ground, origin=(1.2, 0.0, 0.0), h=(0.0, 1.0, 0.0))
        b.point_on_line(wall, b.triad(second, origin=(0.4, 0.0, 0.0)))
        b.driver("joint", hinge, lw.TIME)
    return b.build()


def end_state(solution: lw.Solution) -> np.ndarray:
    return np.concatenate([solution.q[-1], solution.v[-1]])


def exact(mech: lw.Mechanism, t_end: float, **options: Any) -> np.ndarray:
    """The state at the end, as well as double precision knows it."""
    return end_state(lw.simulate(mech, t_end, method="dop853", rtol=1e-13, **options))
