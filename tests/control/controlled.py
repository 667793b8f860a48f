"""Mechanisms for the tests of control: a sliding block, an arm of two links, a five-bar of two degrees of freedom."""

from __future__ import annotations

import numpy as np

import linkwright as lw


def block(mass: float = 2.0) -> lw.Mechanism:
    """A double integrator: a block that slides along x without weight."""
    with lw.Builder("block") as b:
        b.gravity((0, 0, -9.81))
        m = b.parameter("m", mass)
        body = b.body("block", m, (0, 0, 0), (1, 1, 1))
        along = {"h": (1, 0, 0), "f": (0, 1, 0)}
        b.joint("prismatic", b.triad(b.ground, **along), b.triad(body, **along), "slide")
    return b.build()


def pendulum(mass: float = 1.0) -> lw.Mechanism:
    """A rod of a metre that hangs at the angle 0 and turns about y."""
    with lw.Builder("pendulum") as b:
        b.gravity((0, 0, -9.81))
        m = b.parameter("m", mass)
        rod = b.body("rod", m, (0, 0, -0.5), (0.09, 0.09, 0.001))
        b.triad(rod, (0, 0, -1), name="tip")
        b.joint("revolute", b.triad(b.ground, h=(0, 1, 0)), b.triad(rod, h=(0, 1, 0)), "hinge")
    return b.build()


def planar_arm() -> lw.Mechanism:
    """Two links of 0.5 m in the xy plane, weight along −y, with the frame `tip` at their end."""
    with lw.Builder("planar arm") as b:
        b.gravity((0, -9.81, 0))
        upper, lower = (b.body(name, 1.5, (0.25, 0, 0), (0.001, 0.03, 0.03)) for name in ("upper", "lower"))
        b.joint("revolute", b.ground, upper, "shoulder")
        b.joint("revolute", b.triad(upper, (0.5, 0, 0)), b.triad(lower), "elbow")
        b.triad(lower, (0.5, 0, 0), name="tip")
    return b.build()


def five_bar(mass: float = 1.0) -> lw.Mechanism:
    """Two cranks 0.4 m apart carry two rods that meet at `pen`: a closed chain of two degrees of freedom."""
    with lw.Builder("five-bar") as b:
        b.gravity((0, -9.81, 0))
        m = b.parameter("m", mass)
        names = ("left", "right", "left_rod", "right_rod")
        left, right, left_rod, right_rod = (b.body(n, m, (0.15, 0, 0), (0.001, 0.01, 0.01)) for n in names)
        b.joint("revolute", b.triad(b.ground, (-0.2, 0, 0)), b.triad(left), "A")
        b.joint("revolute", b.triad(b.ground, (0.2, 0, 0)), b.triad(right), "B")
        b.joint("revolute", b.triad(left, (0.3, 0, 0)), b.triad(left_rod), "C", actuated=False)
        b.joint("revolute", b.triad(right, (0.3, 0, 0)), b.triad(right_rod), "D", actuated=False)
        pen = b.triad(left_rod, (0.4, 0, 0), name="pen")
        b.joint("revolute", pen, b.triad(right_rod, (0.4, 0, 0)), "E", cut=True, actuated=False)
    return b.build()


def five_bar_start(mech: lw.Mechanism) -> np.ndarray:
    """The five-bar with its cranks outward and its pen above."""
    return mech.assemble([1.8, 1.34, -1.0, 1.0], fixed=["A", "B"])
