"""Motions in closed form, in the form of a solution, to be looked at: a slider-crank, a spatial four-bar, a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from linkwright.model.body_motion import body_motion
from linkwright.model.builder import Builder
from linkwright.model.description import Description
from linkwright.spatial.rotation import euler_parameters
from linkwright.viewer.page import along
from linkwright.viewer.shapes import PALETTE

Poses = Callable[[float], tuple[np.ndarray, np.ndarray]]
_STEP = 1e-4


@dataclass
class Played:
    """What a scene needs of a solution."""

    description: Description
    time: np.ndarray
    data: dict[str, np.ndarray]
    poses: Poses | None = field(default=None, repr=False)


def played(description: Description, time: Any, poses: Poses) -> Played:
    """A solution from poses in closed form; the rates are differences of them."""
    time = np.asarray(time, dtype=float)

    def at(shift: float) -> tuple[np.ndarray, np.ndarray]:
        found = [poses(t + shift) for t in time]
        nb = description.nb
        return np.array([p for p, _ in found]).reshape(-1, nb, 3), np.array([e for _, e in found]).reshape(-1, nb, 4)

    (p0, e0), (p1, e1), (p2, e2) = at(-_STEP), at(0.0), at(_STEP)
    e0, e2 = (e * np.sign((e * e1).sum(axis=-1, keepdims=True)) for e in (e0, e2))
    rate = (e2 - e0) / (2 * _STEP)
    second = (e2 - 2 * e1 + e0) / _STEP**2
    data = {
        "position": p1,
        "orientation": continuous(e1),
        "velocity": (p2 - p0) / (2 * _STEP),
        "acceleration": (p2 - 2 * p1 + p0) / _STEP**2,
        "angular_velocity": 2 * product(rate, e1)[..., 1:],
        "angular_acceleration": 2 * product(second, e1)[..., 1:],
    }
    return Played(description, time, data, poses=poses)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a times the conjugate of b, as Euler parameters."""
    a0, av, b0, bv = a[..., :1], a[..., 1:], b[..., :1], -b[..., 1:]
    scalar = a0 * b0 - (av * bv).sum(axis=-1, keepdims=True)
    return np.concatenate([scalar, a0 * bv + b0 * av + np.cross(av, bv)], axis=-1)


def continuous(e: np.ndarray) -> np.ndarray:
    e = e.copy()
    for k in range(1, len(e)):
        e[k] *= np.where((e[k] * e[k - 1]).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
    return e


def slider_crank(
    points: int = 81, *, scale: float = 1.0, shapes: bool = False, name: str = "slider_crank", trace: bool = True
) -> Played:
    """A crank of 6 turns about z, a coupler of 10 follows, a block slides along x; in units of `scale`."""
    b = Builder(name)
    s = scale
    crank, coupler, block = (b.body(n, 1.0, (0, 0, 0), (1, 1, 1)) for n in ("crank", "coupler", "block"))
    z, x = (0, 0, 1), (1, 0, 0)
    b.joint("revolute", b.triad("ground", h=z, name="bearing"), b.triad(crank, (-3 * s, 0, 0), h=z), "rev1")
    pin = b.triad(coupler, (-5 * s, 0, 0), h=z, name="pin")
    b.joint("revolute", b.triad(crank, (3 * s, 0, 0), h=z, name="crank_end"), pin, "rev2")
    b.joint("revolute", b.triad(coupler, (5 * s, 0, 0), h=z), b.triad(block, h=z), "rev3")
    b.joint("prismatic", b.triad(block, h=x, f=(0, 1, 0)), b.triad("ground", h=x, f=(0, 1, 0)), "trans1")
    if shapes:
        b.shape(crank, "box", (7.2 * s, 0.9 * s, 0.5 * s))
        b.shape(b.triad(coupler, h=x, f=(0, 1, 0), name="bar"), "capsule", (0.35 * s, 10 * s))
        b.shape(block, "box", (2.4 * s, 1.6 * s, 1.6 * s), "#7a8794")
        b.shape(b.triad(block, (1.7 * s, 0, 0), h=x, f=(0, 1, 0), name="nose"), "cone", (0.6 * s, 1.0 * s), "#d9602b")
        b.shape(b.triad("ground", (0, 0, -0.9 * s), name="wall"), "cylinder", (1.2 * s, 0.5 * s))
    if trace:
        b.trace(b.triad(coupler, (0, 2 * s, 0), name="marker"), name="coupler point")
        b.trace("crank_end", name="crank pin")

    def poses(t: float) -> tuple[np.ndarray, np.ndarray]:
        joint = 6 * s * np.array([np.cos(t), np.sin(t), 0])
        phi = -np.arcsin(0.6 * np.sin(t))
        slide = np.array([joint[0] + 10 * s * np.cos(phi), 0, 0])
        turns = [np.array([np.cos(a / 2), 0, 0, np.sin(a / 2)]) for a in (t, phi, 0.0)]
        return np.array([joint / 2, (joint + slide) / 2, slide]), np.array(turns)

    return played(b.description(), np.linspace(0, 8, points), poses)


def spatial_four_bar(points: int = 121) -> Played:
    """A crank about z, a rocker about x, and a coupler with a ball at each end; a rod and a spring beside them."""
    b = Builder("spatial four-bar")
    crank, coupler, rocker = (b.body(n, 1.0, (0, 0, 0), (1, 1, 1)) for n in ("crank", "coupler", "rocker"))
    foot, hinge = np.array([0.0, 0, 0]), np.array([2.0, 1.6, 0.6])
    r_in, r_out, length = 0.8, 1.8, 3.2
    b.joint("revolute", b.triad("ground", foot), b.triad(crank), "input")
    b.joint("spherical", b.triad(crank, (r_in, 0, 0)), b.triad(coupler, (0, 0, -length / 2)), "ball1")
    x = {"h": (1, 0, 0), "f": (0, 1, 0)}
    b.joint("universal", b.triad(coupler, (0, 0, length / 2), **x), b.triad(rocker, (0, 0, r_out)), "cross")
    b.joint("revolute", b.triad("ground", hinge, **x), b.triad(rocker, **x), "output")
    b.trace(b.triad(rocker, (0, 0, r_out), name="tip"))
    b.trace(b.triad(coupler, (0.3, 0, 0), name="knob"))
    b.rod(
        b.triad(crank, (0.4, 0, 0), name="eye"), b.triad("ground", (0, 0, 1.2), name="mast"), np.hypot(0.4, 1.2), "tie"
    )
    b.spring(b.triad("ground", (2.0, -1.2, 0.0), name="hook"), b.triad(rocker, (0, 0, 1.2)), 1.0, 1.0)

    def poses(t: float) -> tuple[np.ndarray, np.ndarray]:
        pin = foot + r_in * np.array([np.cos(t), np.sin(t), 0])
        # |hinge + r_out (0, −sin φ, cos φ) − pin| = length, solved for φ.
        d = hinge - pin
        right = (length**2 - d @ d - r_out**2) / (2 * r_out)
        size, lean = np.hypot(d[1], d[2]), np.arctan2(d[1], d[2])
        phi = np.arccos(right / size) - lean
        tip = hinge + r_out * np.array([0, -np.sin(phi), np.cos(phi)])
        turns = [
            np.array([np.cos(t / 2), 0, 0, np.sin(t / 2)]),
            euler_parameters(along(tip - pin)),
            np.array([np.cos(phi / 2), np.sin(phi / 2), 0, 0]),
        ]
        return np.array([foot, (pin + tip) / 2, hinge]), np.array(turns)

    return played(b.description(), np.linspace(0, 4 * np.pi, points), poses)


def every_shape(folder: Path) -> Played:
    """A turning plate that carries one of each shape; the mesh is a file in `folder`."""
    b = Builder("every shape")
    plate = b.body("plate", 1.0, (0, 0, 0), (1, 1, 1))
    b.joint("revolute", "ground", plate)
    (folder / "wedge.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n")
    sizes = {
        "box": (1, 1, 1),
        "cylinder": (0.5, 1),
        "cone": (0.5, 1),
        "sphere": 0.6,
        "capsule": (0.3, 0.8),
        "mesh": 1.2,
    }
    for k, (kind, size) in enumerate(sizes.items()):
        file = {"file": "wedge.obj"} if kind == "mesh" else {}
        b.shape(b.triad(plate, (2.0 * (k % 3), 2.0 * (k // 3), 0)), kind, size, PALETTE[k], **file)

    def poses(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((1, 3)), np.array([[np.cos(t / 2), 0, 0, np.sin(t / 2)]])

    motion = played(b.description(), np.linspace(0, 2, 21), poses)
    motion.description = replace(motion.description, folder=str(folder))
    return motion


def chain(links: int = 20, points: int = 61) -> Played:
    """A chain of links that winds and unwinds."""
    mech = lw.chain(links)

    def poses(t: float) -> tuple[np.ndarray, np.ndarray]:
        q = 0.34 * np.sin(0.9 * t + 0.25 * np.arange(mech.nq))[None, :]
        found = body_motion(mech.description, q, 0.0 * q, 0.0 * q)
        return found["position"][0], found["orientation"][0]

    return played(mech.description, np.linspace(0, 7, points), poses)
