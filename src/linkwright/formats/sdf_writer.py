"""Descriptions into SDF 1.11: revolute, prismatic, screw, ball, universal and fixed joints, loops, springs, mimics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from warnings import warn
from xml.sax.saxutils import escape

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import LinkwrightWarning
from linkwright.formats.passive import Passive, passive_forces
from linkwright.formats.xml_text import number, numbers, quoted, refuse, without_place
from linkwright.mechanism.checks import listed
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.topology import span
from linkwright.spatial.rotation import euler_parameters
from linkwright.text import first_few

_TYPES = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "screw": "screw",
    "spherical": "ball",
    "universal": "universal",
    "fixed": "fixed",
}
_FIRST_AXIS = np.array([0.0, -1.0, 0.0])  # of a universal joint, in the child's triad
_FREE_FALL = (0.0, 0.0, -9.81)
_CLOSED = 1e-9  # how far the ends of a loop may be apart where it is drawn: of the mechanism's length, and as sines
_TAGS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def write_sdf(description: Description) -> str:
    """The SDF of a mechanism, whose reading gives the same dynamics.

    What SDF cannot hold and the mechanism is not itself without is an error that lists it; what is left out is told
    in a warning. Links are placed where zero coordinates put them, so that loops have to be closed there.
    """
    writer = _Writer(description)
    text = "\n".join(writer.lines()) + "\n"
    if writer.told:
        warn(f"in the SDF: {'; '.join(writer.told)}", LinkwrightWarning, stacklevel=2)
    return text


class _Writer:
    """Writes one description."""

    def __init__(self, d: Description) -> None:
        self.d, self.tree = d, span(d)
        self.poses = self._poses()
        self.passive, wrong, odd = passive_forces(d)
        wrong = [*self._wrong(), *wrong]
        wrong += [f"the force {key!r} between two points" for key in self.passive if isinstance(key, str)]
        refuse("SDF", wrong, ".mks can, or remove these first", d.name)
        self.told = [*self._left_out(), *odd]
        self.names = self._named()

    def _poses(self) -> dict[int, tuple[Floats, Floats]]:
        """Every body in ground, coordinates zero."""
        d, tree = self.d, self.tree
        found: dict[int, tuple[Floats, Floats]] = {GROUND: (np.eye(3), np.zeros(3))}
        for body, j, back in zip(tree.body.tolist(), tree.joint.tolist(), tree.reverse.tolist(), strict=True):
            kind = d.kind_of(j)
            terms = kind.terms(kind.neutral(), d.pitch[j])
            turn = np.asarray(kind.rotation(terms).matrix(), dtype=np.float64)
            near, far = ((d.ri[j], d.pi[j]), (d.rj[j], d.pj[j]))[:: -1 if back else 1]
            r_up, p_up = found[int((d.child if back else d.parent)[j])]
            r = r_up @ near[0] @ (turn.T if back else turn) @ far[0].T
            found[body] = (r, p_up + r_up @ near[1] - r @ far[1])
        return found

    # -- what can be held -----------------------------------------------------------------------------------------
    def _wrong(self) -> Iterator[str]:
        d = self.d
        yield from (f"{type(tie).__name__} {tie.name!r}" for tie in d.ties)
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
            (ra, pa), (rb, pb) = self._triad(j, "i"), self._triad(j, "j")
            gap = kind.gap(ra.T @ rb, ra.T @ (pb - pa) / d.length_scale)
            if kind.name in _TYPES and np.max(np.abs(gap), initial=0.0) > _CLOSED:
                yield f"the loop closed by joint {d.joint_names[j]!r}, which is open where all coordinates are zero"

    def _triad(self, j: int, side: str) -> tuple[Floats, Floats]:
        """A triad of a joint in ground, coordinates zero."""
        d = self.d
        body = int((d.parent if side == "i" else d.child)[j])
        r, p = self.poses[body]
        return r @ getattr(d, f"r{side}")[j], p + r @ getattr(d, f"p{side}")[j]

    def _left_out(self) -> list[str]:
        d, found = self.d, without_place(self.d)
        if d.shapes or d.traces:
            found.append("shapes and traces are left out")
        grounded = [name for name, body in zip(d.frames.names, d.frames.body.tolist(), strict=True) if body == GROUND]
        if grounded:
            found.append(f"the frames {listed(grounded)} on ground are left out")
        both = [d.joint_names[j] for j in range(d.nj) if d.kind_of(j).nv == 2 and self._bounded(j)]
        if both:
            found.append(f"the limits of {listed(both)} are left out")
        return found

    def _named(self) -> dict[tuple[str, str], str]:
        """Names by kind and name: no two things share one, and none has '::' or is kept for SDF itself."""
        d, taken, changed = self.d, {"world"}, []
        found: dict[tuple[str, str], str] = {}
        groups = (("link", d.body_names), ("joint", d.joint_names), ("frame", d.frames.names))
        for kind, names in groups:
            for name in names:
                stem = name.replace("::", "_") or kind
                if stem.startswith("__") and stem.endswith("__"):
                    stem = f"{kind}{stem}"
                ends = ["", f"_{kind}", *(f"_{kind}{k}" for k in range(2, len(taken) + 3))]
                new = next(n for end in ends if (n := stem + end) not in taken)
                taken.add(new)
                found[kind, name] = new
                if new != name:
                    changed.append(f"{name!r} is {new!r}")
        if changed:
            shown = first_few(changed, 8)
            self.told.append(f"names that SDF does not take are changed: {shown}")
        return found

    def _bounded(self, j: int) -> bool:
        return math.isfinite(self.d.lower[j]) or math.isfinite(self.d.upper[j])

    # -- elements -------------------------------------------------------------------------------------------------
    def lines(self) -> Iterator[str]:
        d = self.d
        world = tuple(d.gravity.tolist()) != _FREE_FALL
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
                yield f"    {_pose(d.frames.r[k], d.frames.p[k])}"
                yield "  </frame>"
        yield "</model>"
        if world:
            yield "</world>"
        yield "</sdf>"

    def _link(self, body: int) -> Iterator[str]:
        d = self.d
        yield f"  <link name={quoted(self.names['link', d.body_names[body]])}>"
        yield f"    {_pose(*self.poses[body])}"
        moments = "".join(f"<{tag}>{number(x)}</{tag}>" for tag, x in zip(_TAGS, d.inertia[body], strict=True))
        yield f"    <inertial><pose>{numbers(d.com[body])} 0 0 0</pose><mass>{number(d.mass[body])}</mass>"
        yield f"      <inertia>{moments}</inertia></inertial>"
        yield "  </link>"

    def _joint(self, j: int) -> Iterator[str]:
        d, kind = self.d, self.d.kind_of(j)
        parent, child, side, sign = int(d.parent[j]), int(d.child[j]), "j", 1.0
        if child == GROUND:  # the world is no joint's child: seen from there, its axis is turned around
            parent, child, side, sign = GROUND, parent, "i", -1.0
        ends = ["world" if b == GROUND else self.names["link", d.body_names[b]] for b in (parent, child)]
        yield f"  <joint name={quoted(self.names['joint', d.joint_names[j]])} type={quoted(_TYPES[kind.name])}>"
        yield f"    <parent>{escape(ends[0])}</parent><child>{escape(ends[1])}</child>"
        yield f"    {_pose(getattr(d, f'r{side}')[j], getattr(d, f'p{side}')[j])}"
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
        own = self.passive.get((j, index), Passive())
        yield f"    <{tag}><xyz>{numbers(xyz)}</xyz>"
        limits = {"lower": d.lower[j], "upper": d.upper[j]} if d.kind_of(j).nv == 1 else {}
        limits |= {"velocity": d.velocity_limit[j], "effort": 0.0 if j in d.passive else d.effort_limit[j]}
        given = "".join(f"<{key}>{number(x)}</{key}>" for key, x in limits.items() if math.isfinite(x))
        if given:
            yield f"      <limit>{given}</limit>"
        words = {"damping": own.damping, "friction": own.friction}
        words |= {"spring_stiffness": own.stiffness, "spring_reference": own.rest}
        given = "".join(f"<{key}>{number(x)}</{key}>" for key, x in words.items() if x)
        if given:
            yield f"      <dynamics>{given}</dynamics>"
        for m in d.mimics:
            if m.follower == j:
                leader = quoted(self.names["joint", d.joint_names[m.leader]])
                values = f"<multiplier>{number(m.ratio)}</multiplier><offset>{number(m.offset)}</offset>"
                yield f"      <mimic joint={leader}>{values}<reference>0</reference></mimic>"
        yield f"    </{tag}>"


def _pose(r: Floats, p: Floats) -> str:
    if np.array_equal(r, np.eye(3)):
        return f"<pose>{numbers(p)} 0 0 0</pose>"
    e = euler_parameters(r)
    return f'<pose rotation_format="quat_xyzw">{numbers([*p, *e[1:], e[0]])}</pose>'
