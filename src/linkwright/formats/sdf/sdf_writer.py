"""Descriptions into SDF 1.11: revolute, prismatic, screw, ball, universal and fixed joints, loops, springs, mimics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

import numpy as np

from linkwright.base.arguments import first_few, free_name
from linkwright.base.arrays import Floats
from linkwright.formats.passive_forces import Passive, passive_forces
from linkwright.formats.urdf import INERTIA
from linkwright.formats.xml import HERE, Pose, TreeWriter, elements, numbers, present, quoted
from linkwright.formats.xml import number_text as number
from linkwright.model.description import FREE_FALL, GROUND, Description
from linkwright.model.model_checks import listed
from linkwright.spatial.rotation import euler_parameters

_TYPES = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "screw": "screw",
    "spherical": "ball",
    "universal": "universal",
    "fixed": "fixed",
}
_FIRST_AXIS = np.array([0.0, -1.0, 0.0])  # of a universal joint, in the child's frame
_CLOSED = 1e-9  # how far the ends of a loop may be apart where it is drawn: of the mechanism's length, and as sines


def write_sdf(description: Description) -> str:
    """The SDF of a mechanism, whose reading gives the same dynamics.

    What SDF cannot hold and the mechanism is not itself without is an error that lists it; what is left out is
    listed in a warning. Links are placed where zero coordinates put them, so that loops have to be closed there.
    """
    return _Writer(description).text()


class _Writer(TreeWriter):
    """Writes one description."""

    language = "SDF"

    def __init__(self, d: Description) -> None:
        super().__init__(d)
        self.poses: dict[int, Pose] = {GROUND: HERE}  # of every body in ground, coordinates zero
        for i, body in enumerate(self.tree.body.tolist()):
            up = int(self.tree.parent[i])
            self.poses[body] = self.poses[GROUND if up < 0 else int(self.tree.body[up])] @ self.step(i)
        self.passive, wrong, self.notes = passive_forces(d)
        wrong = [*self._wrong(), *wrong]
        wrong += [f"the force {key!r} between two points" for key in self.passive if isinstance(key, str)]
        self.refuse(wrong, ".mks can, or remove these first")
        self._leave_out()
        self.names = self._named()

    # -- what can be held -----------------------------------------------------------------------------------------
    def _wrong(self) -> Iterator[str]:
        d = self.d
        for j in range(d.nj):
            kind, name = d.kind_of(j), d.joint_names[j]
            if d.armature[j]:
                yield f"the armature of joint {name!r}"
            if kind.name == "free" and (GROUND not in (d.parent[j], d.child[j]) or j in self.tree.loops):
                yield f"joint {name!r}, which is free between two bodies"
            elif kind.name != "free" and kind.name not in _TYPES:
                yield f"joint {name!r}, which is {kind.name}"
            elif kind.name == "universal" and d.child[j] == GROUND:
                yield f"joint {name!r}, which has ground as its second body"
            if kind.name in ("spherical", "free") and (d.damping[j] or d.friction[j]):
                yield f"the damping of {kind.name} joint {name!r}"
        for j in self.tree.loops:
            kind = d.kind_of(j)
            near, far = (self.poses[body] @ Pose(r, p) for body, r, p in (d.side(j, "i"), d.side(j, "j")))
            between = near.inverse() @ far
            gap = kind.gap(between.r, between.p / d.length_scale)
            if kind.name in _TYPES and np.max(np.abs(gap), initial=0.0) > _CLOSED:
                yield f"the loop closed by joint {d.joint_names[j]!r}, which is open where all coordinates are zero"

    def _leave_out(self) -> None:
        d = self.d
        on_ground = [name for name, body in zip(d.frames.names, d.frames.body.tolist(), strict=True) if body == GROUND]
        both = [d.joint_names[j] for j in range(d.nj) if d.kind_of(j).nv == 2 and self.bounded(j)]
        parts = {
            "shapes and traces": d.shapes or d.traces,
            f"the frames {listed(on_ground)} on ground": on_ground,
            f"the limits of {listed(both)}": both,
        }
        self.left_out += present(parts)

    def _named(self) -> dict[tuple[str, str], str]:
        """Names by kind and name: no two things share one, and none has '::' or is kept for SDF itself."""
        d, taken, changed = self.d, {"world"}, []
        written: dict[tuple[str, str], str] = {}
        groups = (("link", d.body_names), ("joint", d.joint_names), ("frame", d.frames.names))
        for kind, names in groups:
            for name in names:
                stem = name.replace("::", "_") or kind
                if stem.startswith("__") and stem.endswith("__"):
                    stem = f"{kind}{stem}"
                new = stem if stem not in taken else free_name(f"{stem}_{kind}", taken)
                taken.add(new)
                written[kind, name] = new
                if new != name:
                    changed.append(f"{name!r} is {new!r}")
        if changed:
            self.notes.append(f"names that SDF does not take are changed: {first_few(changed, 8)}")
        return written

    # -- elements -------------------------------------------------------------------------------------------------
    def lines(self) -> Iterator[str]:
        d = self.d
        world = tuple(d.gravity.tolist()) != FREE_FALL
        yield '<?xml version="1.0"?>'
        yield '<sdf version="1.11">'
        if world:
            yield '<world name="default">'
            yield f"  <gravity>{numbers(d.gravity)}</gravity>"
        yield f"<model name={quoted(d.name.replace('::', '_') or 'model')}>"
        for body in range(d.nb):
            yield from self._link(body)
        for j in range(d.nj):
            if d.kind_of(j).name != "free":
                yield from self._joint(j)
        for k, name in enumerate(d.frames.names):
            body = int(d.frames.body[k])
            if body != GROUND:
                attached = quoted(self.names["link", d.body_names[body]])
                yield f"  <frame name={quoted(self.names['frame', name])} attached_to={attached}>"
                yield f"    {_pose(Pose(d.frames.r[k], d.frames.p[k]))}"
                yield "  </frame>"
        yield "</model>"
        if world:
            yield "</world>"
        yield "</sdf>"

    def _link(self, body: int) -> Iterator[str]:
        d = self.d
        yield f"  <link name={quoted(self.names['link', d.body_names[body]])}>"
        yield f"    {_pose(self.poses[body])}"
        moments = elements(**dict(zip(INERTIA, d.inertia[body], strict=True)))
        yield f"    <inertial><pose>{numbers(d.com[body])} 0 0 0</pose><mass>{number(d.mass[body])}</mass>"
        yield f"      <inertia>{moments}</inertia></inertial>"
        yield "  </link>"

    def _joint(self, j: int) -> Iterator[str]:
        d, kind = self.d, self.d.kind_of(j)
        (parent, *_), (child, *frame) = d.side(j, "i"), d.side(j, "j")
        sign = 1.0
        if child == GROUND:  # the world is no joint's child: seen from there, its axis is turned around
            (parent, *_), (child, *frame), sign = d.side(j, "j"), d.side(j, "i"), -1.0
        ends = ["world" if b == GROUND else self.names["link", d.body_names[b]] for b in (parent, child)]
        yield f"  <joint name={quoted(self.names['joint', d.joint_names[j]])} type={quoted(_TYPES[kind.name])}>"
        yield f"    <parent>{escape(ends[0])}</parent><child>{escape(ends[1])}</child>"
        yield f"    {_pose(Pose(*frame))}"
        if kind.name == "universal":
            yield from self._axis(j, "axis", _FIRST_AXIS, 0)
            yield from self._axis(j, "axis2", np.array([0.0, 0.0, 1.0]), 1)
        elif kind.nv == 1:
            yield from self._axis(j, "axis", np.array([0.0, 0.0, sign]), 0)
        if kind.name == "screw":
            yield f"    <screw_thread_pitch>{number(2.0 * math.pi * d.pitch[j])}</screw_thread_pitch>"
        yield "  </joint>"

    def _axis(self, j: int, tag: str, xyz: Floats, index: int) -> Iterator[str]:
        d = self.d
        forces = self.passive.get((j, index), Passive())
        yield f"    <{tag}><xyz>{numbers(xyz)}</xyz>"
        limits = {"lower": d.lower[j], "upper": d.upper[j]} if d.kind_of(j).nv == 1 else {}
        limits |= {"velocity": d.velocity_limit[j], "effort": 0.0 if j in d.passive else d.effort_limit[j]}
        finite = elements(**{key: x for key, x in limits.items() if math.isfinite(x)})
        if finite:
            yield f"      <limit>{finite}</limit>"
        words = {"damping": forces.damping, "friction": forces.friction}
        words |= {"spring_stiffness": forces.stiffness, "spring_reference": forces.reference}
        dynamics = elements(**{key: x for key, x in words.items() if x})
        if dynamics:
            yield f"      <dynamics>{dynamics}</dynamics>"
        for m in self.mimics(j):
            leader = quoted(self.names["joint", d.joint_names[m.leader]])
            yield f"      <mimic joint={leader}>{elements(multiplier=m.ratio, offset=m.offset, reference=0.0)}</mimic>"
        yield f"    </{tag}>"


def _pose(pose: Pose) -> str:
    if np.array_equal(pose.r, np.eye(3)):
        return f"<pose>{numbers(pose.p)} 0 0 0</pose>"
    e = euler_parameters(pose.r)
    return f'<pose rotation_format="quat_xyzw">{numbers([*pose.p, *e[1:], e[0]])}</pose>'
