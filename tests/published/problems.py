"""Published benchmark problems of multibody dynamics as mechanisms, with their starts; their solutions are elsewhere.

The problems are those of group A of the IFToMM library of computational benchmark problems. A03 has the numbers and
the start of the test set for initial value problem solvers (Mazzia, Magherini). What the library leaves to figures
(the corners of A04, the places of A05's springs) is chosen here, so that the statement is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw

Floats = NDArray[np.float64]
GRAVITY = 9.81


@dataclass(frozen=True)
class Problem:
    """A mechanism, its start by joints' names (coordinate, rate), and how long it is simulated."""

    name: str
    make: Callable[[], lw.Mechanism]
    start: dict[str, tuple[float, float]]
    end: float

    def state(self, mech: lw.Mechanism) -> tuple[Floats, Floats]:
        """The start as q and v; joints that the start does not name are neutral and at rest."""
        q, v = mech.neutral(), np.zeros(mech.nv)
        for name, (coordinate, rate) in self.start.items():
            joint = mech.joints[name]
            q[joint.q_slice], v[joint.v_slice] = coordinate, rate
        return q, v


def rod(b: lw.Builder, name: str, along: Any, mass: float) -> Any:
    """A thin straight bar from its body's origin."""
    d = np.asarray(along, float)
    return b.body(name, mass, 0.5 * d, mass / 12.0 * (d @ d * np.eye(3) - np.outer(d, d)))


# -- A01: simple pendulum -------------------------------------------------------------------------------------------
def pendulum() -> Problem:
    """A point of 1 kg on a massless rod of 1 m, which is let go when it lies along −x; gravity along −y."""

    def make() -> lw.Mechanism:
        with lw.Builder("simple_pendulum") as b:
            b.gravity((0, -GRAVITY, 0))
            b.joint("revolute", b.ground, b.body("mass", 1.0, (0, -1, 0)), "pivot")
        return b.build()

    return Problem("A01 simple pendulum", make, {"pivot": (-0.5 * np.pi, 0.0)}, 10.0)


# -- A02: N four-bars -----------------------------------------------------------------------------------------------
def four_bars(n: int) -> Problem:
    """n square windows in a row of 2n + 1 thin bars, 1 m and 1 kg each, upright; the tips start with 1 m/s along x.

    The bars turn round and round. Whenever the uprights lie along x, the constraints lose rank n and the mechanism has
    n + 1 degrees of freedom for an instant.
    """

    def make() -> lw.Mechanism:
        with lw.Builder(f"four_bars_{n}") as b:
            b.gravity((0, -GRAVITY, 0))
            uprights = [rod(b, f"upright{k}", (1, 0, 0), 1.0) for k in range(n + 1)]
            for k, upright in enumerate(uprights):
                b.place(upright, (k, 0, 0), f=(0, 1, 0))
                b.joint("revolute", b.triad(b.ground, (k, 0, 0)), b.triad(upright), f"pivot{k}")
            for k in range(n):
                top = rod(b, f"top{k}", (1, 0, 0), 1.0)
                b.place(top, (k, 1, 0))
                b.joint("revolute", b.triad(uprights[k], (1, 0, 0)), b.triad(top), f"near{k}")
                b.joint("revolute", b.triad(top, (1, 0, 0)), b.triad(uprights[k + 1], (1, 0, 0)), f"far{k}", cut=True)
        return b.build()

    start = {f"pivot{k}": (0.5 * np.pi, -1.0) for k in range(n + 1)}
    start |= {f"near{k}": (-0.5 * np.pi, 1.0) for k in range(n)}
    return Problem(f"A02 {n} four-bars", make, start, 10.0)


# -- A03: Andrews' squeezing mechanism ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Squeezer:
    """Masses, inertias and lengths of the seven bodies, the fixed points, the spring and the torque."""

    m: tuple[float, ...] = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
    i: tuple[float, ...] = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
    a: tuple[float, float] = (-0.06934, -0.00227)
    b: tuple[float, float] = (-0.03635, 0.03273)
    c: tuple[float, float] = (0.014, 0.072)
    stiffness: float = 4530.0
    length: float = 0.07785
    torque: float = 0.033
    d: float = 0.028
    da: float = 0.0115
    e: float = 0.02
    ea: float = 0.01421
    zf: float = 0.02
    zt: float = 0.04
    fa: float = 0.01421
    rr: float = 0.007
    ra: float = 0.00092
    ss: float = 0.035
    sa: float = 0.01874
    sb: float = 0.01043
    sc: float = 0.018
    sd: float = 0.02
    ta: float = 0.02308
    tb: float = 0.00916
    u: float = 0.04
    ua: float = 0.01228
    ub: float = 0.00449


SQUEEZER = Squeezer()
#: The published order of the coordinates: they are the angles of the tree's joints.
ANGLES = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
SQUEEZER_START = (
    -0.0617138900142764496,
    0.0,
    0.455279819163070380,
    0.222668390165885885,
    0.487364979543842550,
    -0.222668390165885885,
    1.23054744454982119,
)


def squeezer() -> Problem:
    """Seven flat bodies in three loops through one point, driven by a torque against a spring; no gravity."""
    p = SQUEEZER

    def make() -> lw.Mechanism:
        with lw.Builder("squeezer") as b:
            b.gravity((0, 0, 0))
            places = [(p.ra, 0), (-p.da, 0), (p.sb, -p.sa), (0, p.ea - p.e), (p.ta, p.tb), (p.zf - p.fa, 0)]
            places.append((p.ub, -p.ua))
            k = [
                b.body(f"K{n + 1}", p.m[n], (*place, 0.0), (0.5 * p.i[n], 0.5 * p.i[n], p.i[n]))
                for n, place in enumerate(places)
            ]

            def pin(one: Any, at: tuple[float, float], other: Any, to: tuple[float, float], name: str) -> None:
                cut = name not in ANGLES
                b.joint("revolute", b.triad(one, (*at, 0.0)), b.triad(other, (*to, 0.0)), name, cut=cut)

            pin(b.ground, (0.0, 0.0), k[0], (0.0, 0.0), "beta")
            pin(k[0], (p.rr, 0.0), k[1], (0.0, 0.0), "theta")
            pin(b.ground, p.b, k[2], (0.0, 0.0), "gamma")
            pin(b.ground, p.a, k[4], (0.0, 0.0), "delta")
            pin(k[4], (p.zt, 0.0), k[3], (0.0, 0.0), "phi")
            pin(b.ground, p.a, k[6], (0.0, 0.0), "epsilon")
            pin(k[6], (0.0, -p.u), k[5], (0.0, 0.0), "omega")
            for other, to in ((2, (0.0, -p.ss)), (3, (0.0, -p.e)), (5, (p.zf, 0.0))):
                pin(k[1], (-p.d, 0.0), k[other], to, f"K2 K{other + 1}")
            b.joint_force("beta", p.torque, name="motor")
            b.spring(
                b.triad(b.ground, (*p.c, 0.0), name="C"),
                b.triad(k[2], (p.sd, -p.sc, 0.0), name="D"),
                p.stiffness,
                p.length,
                name="spring",
            )
        return b.build()

    return Problem("A03 squeezer", make, {n: (x, 0.0) for n, x in zip(ANGLES, SQUEEZER_START, strict=True)}, 0.05)


# -- A04: Bricard's mechanism ---------------------------------------------------------------------------------------
#: The bars run along the edges of a cube of 1 m; the sixth edge, from the last corner to the first, is ground.
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)


def bricard() -> Problem:
    """Five thin bars, 1 m and 1 kg each, in one loop with six hinges; let go at rest, gravity along −y.

    By count it could not move: the constraints are redundant in every position.
    """

    def make() -> lw.Mechanism:
        edges = np.roll(CORNERS, -1, axis=0) - CORNERS
        with lw.Builder("bricard") as b:
            b.gravity((0, -GRAVITY, 0))
            bars = [rod(b, f"bar{k}", edges[k], 1.0) for k in range(5)]
            for k, bar in enumerate(bars):
                b.place(bar, CORNERS[k])
            for k in range(6):
                axes = {"h": np.cross(edges[k - 1], edges[k]), "f": edges[k]}
                before = b.triad(bars[k - 1], edges[k - 1], **axes) if k else b.triad(b.ground, CORNERS[0], **axes)
                after = b.triad(bars[k], **axes) if k < 5 else b.triad(b.ground, CORNERS[5], **axes)
                b.joint("revolute", before, after, f"hinge{k}")
        return b.build()

    return Problem("A04 Bricard", make, {}, 10.0)


# -- A05: fly-ball governor -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Governor:
    """A steel-grey shaft with two arms that carry balls; springs stand for the rods from the arms to the sleeve."""

    density: float = 3000.0
    arm: float = 1.0
    thick: float = 0.01
    ball: float = 5.0
    sleeve: float = 0.1
    stiffness: float = 8e5
    damping: float = 4e4
    length: float = 0.5
    angle: float = np.pi / 6.0
    speed: float = 2.0 * np.pi

    @property
    def arm_mass(self) -> float:
        return self.density * self.arm * self.thick**2

    @property
    def sleeve_mass(self) -> float:
        return self.density * self.sleeve**3


GOVERNOR = Governor()


def governor() -> Problem:
    """Arms of 1 m hang from the top of an upright shaft; stiff springs lead from their middles to a sleeve on it.

    The shaft turns freely at one turn a second, the arms start at 30° from it and the springs without force; gravity
    along −y. The springs make the equations stiff, and their dampers more so.
    """
    g = GOVERNOR
    m, w = g.arm_mass, g.thick

    def make() -> lw.Mechanism:
        across, along = m * (g.arm**2 + w**2) / 12.0, m * w**2 / 6.0
        up = {"h": (0.0, 1.0, 0.0), "f": (1.0, 0.0, 0.0)}
        with lw.Builder("governor") as b:
            b.gravity((0, -GRAVITY, 0))
            shaft = b.body("shaft", m, (0, -0.5 * g.arm, 0), (across, along, across))
            b.joint("revolute", b.triad(b.ground, **up), b.triad(shaft, **up), "spin")
            sleeve = b.body("sleeve", g.sleeve_mass, inertia=np.full(3, g.sleeve_mass * g.sleeve**2 / 6.0))
            b.joint("prismatic", b.triad(shaft, **up), b.triad(sleeve, **up), "slide")
            for k, side in enumerate((1.0, -1.0)):
                com = -(0.5 * m + g.ball) * g.arm / (m + g.ball)
                apart = m * (com + 0.5 * g.arm) ** 2 + g.ball * (com + g.arm) ** 2
                arm = b.body(f"arm{k}", m + g.ball, (0, com, 0), (across + apart, along, across + apart))
                axes = {"h": (0.0, 0.0, side), "f": (1.0, 0.0, 0.0)}
                b.joint("revolute", b.triad(shaft, **axes), b.triad(arm, **axes), f"arm{k}")
                middle = b.triad(arm, (0, -0.5 * g.arm, 0), name=f"middle{k}")
                b.spring(middle, sleeve, g.stiffness, g.length, g.damping, name=f"rod{k}")
        return b.build()

    drop = g.arm * np.cos(g.angle)
    start = {"spin": (0.0, g.speed), "slide": (-drop, 0.0), "arm0": (g.angle, 0.0), "arm1": (g.angle, 0.0)}
    return Problem("A05 governor", make, start, 10.0)
