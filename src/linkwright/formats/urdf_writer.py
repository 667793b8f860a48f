"""Descriptions into URDF, where URDF can say them: trees of revolute, prismatic, fixed, planar and floating joints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from warnings import warn

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import LinkwrightWarning
from linkwright.formats.urdf import LARGEST
from linkwright.formats.xml_text import number, numbers, quoted, refuse
from linkwright.mechanism.checks import listed
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import joint_losses
from linkwright.mechanism.frames import full_inertia, roll_pitch_yaw, snapped
from linkwright.mechanism.topology import Topology, span

_TYPES = {"prismatic": "prismatic", "fixed": "fixed", "planar": "planar", "free": "floating"}
_FREE_FALL = (0.0, 0.0, -9.81)
_PACKED = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))


def write_urdf(description: Description) -> str:
    """The URDF of a tree, whose reading gives the same dynamics.

    What URDF cannot hold and dynamics needs is an error that lists it; what can be left out is told in a warning.
    A link's frame is at its joint, as URDF has it, so that the frames of bodies may move within them.
    """
    writer = _Writer(description)
    text = "\n".join(writer.lines()) + "\n"
    if writer.left_out:
        warn(f"left out of the URDF: {'; '.join(writer.left_out)}", LinkwrightWarning, stacklevel=2)
    return text


class _Writer:
    """Writes one description."""

    def __init__(self, d: Description) -> None:
        self.d = d
        self.tree = span(d)
        self._check()
        self.left_out = self._leavings()
        # Each link's frame in its body: axes of the body, or of the joint's triad where URDF knows no other.
        self.turn: dict[int, Floats] = {GROUND: np.eye(3)}
        self.shift: dict[int, Floats] = {GROUND: np.zeros(3)}
        for body, joint, reverse in _rows(self.tree):
            kind = d.kind_of(joint).name
            r, p = (d.ri[joint], d.pi[joint]) if reverse else (d.rj[joint], d.pj[joint])
            self.turn[body] = r if kind in ("planar", "free") else np.eye(3)
            self.shift[body] = np.zeros(3) if kind == "fixed" else p
        moved = [d.body_names[b] for b in range(d.nb) if self.shift[b].any() or not _is_eye(self.turn[b])]
        if moved:
            self.left_out.append(f"the frames of {listed(moved)} (now at their joints)")
        self.root, self.root_frame = self._root()

    def _check(self) -> None:
        d = self.d
        wrong = [f"the loop closed by joint {d.joint_names[j]!r}" for j in self.tree.loops]
        for _, joint, reverse in _rows(self.tree):
            kind, name = d.kind_of(joint).name, d.joint_names[joint]
            if kind not in (*_TYPES, "revolute"):
                wrong.append(f"joint {name!r}, which is {kind}")
            elif reverse and kind in ("planar", "free"):
                wrong.append(f"joint {name!r}, which is described from its far side")
            if d.armature[joint]:
                wrong.append(f"the armature of joint {name!r}")
        wrong += [f"{type(tie).__name__} {tie.name!r}" for tie in d.ties]
        losses = {force.name for _, j, _ in _rows(self.tree) for force in self._losses(j)}
        wrong += [f"the force {force.name!r}" for force in d.elements if force.name not in losses]
        refuse("URDF", wrong, ".mks can, and MJCF (.xml) most of it: write one of these", d.name)

    def _losses(self, j: int) -> Any:
        d = self.d
        return joint_losses(d.joint_names[j], d.kind_of(j).nv, float(d.damping[j]), float(d.friction[j]))

    def _leavings(self) -> list[str]:
        d = self.d
        found = []
        if d.system is not None:
            found.append("SYSTEM")
        if d.drivers:
            found.append(f"the drivers {listed([x.name for x in d.drivers])}")
        if d.initial:
            found.append("initial conditions")
        if d.parameters:
            found.append(f"the parameters {listed(list(d.parameters))} (their present values are written)")
        if d.shapes or d.traces:
            found.append("shapes and traces")
        if tuple(d.gravity.tolist()) != _FREE_FALL:
            found.append(f"gravity {d.gravity.tolist()}")
        if d.elements:
            found.append("that damping and friction act (read it with friction='apply')")
        return found

    def _root(self) -> tuple[str, int | None]:
        """The root link's name: a frame that lies on ground's own, or ground's."""
        f = self.d.frames
        for k, name in enumerate(f.names):
            if f.body[k] == GROUND and _is_eye(f.r[k]) and not f.p[k].any():
                return name, k
        return self.d.ground_name, None

    # -- elements -----------------------------------------------------------------------------------------
    def lines(self) -> Iterator[str]:
        d = self.d
        yield '<?xml version="1.0"?>'
        yield f"<robot name={quoted(d.name)}>"
        yield from self._link(self.root, d.ground_inertia)
        joints: dict[int, list[str]] = {}
        for body, joint, reverse in _rows(self.tree):
            com, inertia = self.turn[body].T @ (d.com[body] - self.shift[body]), full_inertia(d.inertia[body])
            packed = self.turn[body].T @ inertia @ self.turn[body]
            weights = (float(d.mass[body]), com, np.array([packed[i, j] for _, i, j in _PACKED]))
            yield from self._link(d.body_names[body], weights)
            joints[joint] = list(self._joint(body, joint, reverse))
        # In the order of the description, which is the order of the coordinates among children of one link.
        for joint in sorted(joints):
            yield from joints[joint]
        yield from self._frames()
        yield "</robot>"

    def _link(self, name: str, weights: Any) -> Iterator[str]:
        if weights is None or not (weights[0] or np.any(weights[2])):
            yield f"  <link name={quoted(name)}/>"
            return
        mass, com, inertia = weights
        moments = " ".join(f'{key}="{number(x)}"' for (key, _, _), x in zip(_PACKED, inertia, strict=True))
        yield f"  <link name={quoted(name)}>"
        yield "    <inertial>"
        yield f'      <origin xyz="{numbers(com)}"/>'
        yield f'      <mass value="{number(mass)}"/>'
        yield f"      <inertia {moments}/>"
        yield "    </inertial>"
        yield "  </link>"

    def _joint(self, body: int, joint: int, reverse: bool) -> Iterator[str]:
        d = self.d
        near, far = ("j", "i") if reverse else ("i", "j")
        parent = int((d.child if reverse else d.parent)[joint])
        r, p = _between(
            (self.turn[parent], self.shift[parent]),
            (getattr(d, f"r{near}")[joint], getattr(d, f"p{near}")[joint]),
            (getattr(d, f"r{far}")[joint], getattr(d, f"p{far}")[joint]),
            (self.turn[body], self.shift[body]),
        )
        kind = d.kind_of(joint).name
        bounded = math.isfinite(d.lower[joint]) or math.isfinite(d.upper[joint])
        word = _TYPES.get(kind) or ("revolute" if bounded else "continuous")
        yield from self._opened(d.joint_names[joint], word, self._name(parent), d.body_names[body], r, p)
        if kind in ("revolute", "prismatic"):
            axis = getattr(d, f"r{far}")[joint][:, 2] * (-1.0 if reverse else 1.0)
            yield f'    <axis xyz="{numbers(axis + 0.0)}"/>'
        elif kind == "planar":
            yield '    <axis xyz="0 0 1"/>'
        yield from self._details(joint, bounded)
        yield "  </joint>"

    def _opened(self, name: str, word: str, parent: str, child: str, r: Floats, p: Floats) -> Iterator[str]:
        yield f"  <joint name={quoted(name)} type={quoted(word)}>"
        yield f'    <origin xyz="{numbers(p)}" rpy="{numbers(roll_pitch_yaw(r))}"/>'
        yield f"    <parent link={quoted(parent)}/>"
        yield f"    <child link={quoted(child)}/>"

    def _details(self, joint: int, bounded: bool) -> Iterator[str]:
        d = self.d
        limits = {"lower": d.lower, "upper": d.upper, "velocity": d.velocity_limit, "effort": d.effort_limit}
        # Parsers want <limit> on what is bounded or shifts, and effort and velocity in it; a missing bound counts as 0.
        ranged = bounded or d.kind_of(joint).name == "prismatic"
        given = {key: float(array[joint]) for key, array in limits.items() if ranged or key in ("velocity", "effort")}
        if ranged or any(map(math.isfinite, given.values())):
            # They know no "inf" either.
            finite = {key: min(max(x, -LARGEST), LARGEST) for key, x in given.items()}
            yield f"    <limit {' '.join(f'{key}={chr(34)}{number(x)}{chr(34)}' for key, x in finite.items())}/>"
        if d.damping[joint] or d.friction[joint]:
            yield f'    <dynamics damping="{number(d.damping[joint])}" friction="{number(d.friction[joint])}"/>'
        for m in d.mimics:
            if m.follower == joint:
                leader = quoted(d.joint_names[m.leader])
                factors = f'multiplier="{number(m.ratio)}" offset="{number(m.offset)}"'
                yield f"    <mimic joint={leader} {factors}/>"

    def _frames(self) -> Iterator[str]:
        """Further frames: links without inertia on fixed joints."""
        f, taken = self.d.frames, set(self.d.joint_names)
        for k, name in enumerate(f.names):
            if k == self.root_frame:
                continue
            body = int(f.body[k])
            joint = next(n for i in range(len(taken) + 2) if (n := f"{name}_fixed{i or ''}") not in taken)
            taken.add(joint)
            r = self.turn[body].T @ f.r[k]
            p = self.turn[body].T @ (f.p[k] - self.shift[body])
            yield f"  <link name={quoted(name)}/>"
            yield from self._opened(joint, "fixed", self._name(body), name, r, p)
            yield "  </joint>"

    def _name(self, body: int) -> str:
        return self.root if body == GROUND else self.d.body_names[body]


def _rows(tree: Topology) -> Iterator[tuple[int, int, bool]]:
    yield from zip(tree.body.tolist(), tree.joint.tolist(), tree.reverse.tolist(), strict=True)


def _is_eye(r: Floats) -> bool:
    return bool(np.array_equal(r, np.eye(3)))


def _between(*frames: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Link → body → joint (its two triads together) → body → link: the second link in the first, coordinates zero."""
    (rl, pl), (ri, pi), (rj, pj), (rm, pm) = frames
    r = ri @ rj.T
    p = pi + r @ (pm - pj)
    return snapped(rl.T @ r @ rm), np.asarray(rl.T @ (p - pl) + 0.0)
