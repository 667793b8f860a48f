"""Descriptions into MJCF: trees of every joint kind, springs, dampers; loops and gears as MuJoCo's soft equalities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from warnings import warn

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import LinkwrightWarning
from linkwright.formats.passive import Passive, passive_forces
from linkwright.formats.poses import Pose
from linkwright.formats.xml import MAX_NESTING
from linkwright.formats.xml_text import number, numbers, quoted, refuse, without_place
from linkwright.mechanism.checks import impossible_inertias, listed
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.drawing import Shape
from linkwright.mechanism.elements import PointForce
from linkwright.mechanism.frames import snapped
from linkwright.mechanism.topology import span
from linkwright.spatial.rotation import euler_parameters

_BACK = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # "Rx-": a quarter turn back about x
_DEEPEST = MAX_NESTING - 10
_LEVER = 0.1  # metres between the two points of a revolute joint that closes a loop

FREEDOMS = 6  # that MuJoCo lets a body have


def write_mjcf(description: Description) -> str:
    """The MJCF of a mechanism: the same dynamics, but for loops and gears, which MuJoCo holds by soft constraints.

    What MJCF cannot hold and the mechanism is not itself without is an error that lists it; what is left out, or means
    something else to MuJoCo, is told in a warning.
    """
    writer = _Writer(description)
    text = "\n".join(writer.lines()) + "\n"
    if writer.told:
        warn(f"in the MJCF: {'; '.join(writer.told)}", LinkwrightWarning, stacklevel=2)
    return text


class _Writer:
    """Writes one description."""

    def __init__(self, d: Description) -> None:
        self.d, self.tree = d, span(d)
        self.places = {name: k for k, name in enumerate(d.frames.names)}
        self.folded = self._foldable()
        wrong, self.told = self._check()
        self.passive, unheld, softly = passive_forces(d)
        wrong += unheld
        self.told += softly
        refuse("MJCF", wrong, ".mks can, or remove these first", d.name)
        self.parts: dict[int, list[tuple[str, int]]] = {}  # MuJoCo's joints of each joint, with our coordinate's number
        self.taken = set(d.joint_names)
        self.sites: dict[int, list[str]] = {}  # of the bodies
        self.equalities: list[str] = []
        self.origins: dict[str, str] = {}  # sites at the origins of bodies that springs end at
        for end in (end for spring in self.passive.values() for end in spring.ends):
            if end not in self.places and end not in self.origins:
                self.origins[end] = site = self._site(f"{end} origin")
                self.sites.setdefault(self._place(end)[0], []).append(f"<site name={quoted(site)}/>")
        self._equate()

    def _check(self) -> tuple[list[str], list[str]]:
        d, tree = self.d, self.tree
        wrong = [f"{type(tie).__name__} {tie.name!r}" for tie in d.ties]
        for j in tree.loops:
            kind = d.kind_of(j).name
            if kind not in ("spherical", "revolute", "fixed", "free"):
                wrong.append(f"the loop closed by joint {d.joint_names[j]!r}, which is {kind}")
        if int(tree.depth.max(initial=0)) > _DEEPEST:
            wrong.append(f"bodies that hang on each other more than {_DEEPEST} deep")
        told = []
        soft = [d.joint_names[j] for j in tree.loops] + [d.joint_names[m.follower] for m in d.mimics]
        soft += [d.joint_names[j] for j in tree.joint.tolist() if d.kind_of(j).name == "screw"]
        if soft:
            told.append(f"MuJoCo's soft equality constraints, which give way under load, hold {listed(soft)}")
        limited = [d.joint_names[j] for j in tree.joint.tolist() if self._bounded(j)]
        if limited:
            told.append(f"limits are stops in MuJoCo: {listed(limited)}")
        told += self._left_out()
        if self.folded:
            names = listed([d.body_names[int(tree.body[i])] for i in sorted(self.folded)])
            told.append(f"{names} without mass are no bodies there: their joints are further ones of what they carry")
        rows = [i for i in range(len(tree.body)) if i not in self.folded and d.kind_of(int(tree.joint[i])).nv]
        moving = [int(tree.body[i]) for i in rows]
        bare = [b for b in moving if not (d.mass[b] > 0.0 and np.all(np.abs(d.inertia[b, :3]) > 0.0))]
        odd = [b for b in moving if b not in bare and impossible_inertias(d.inertia[[b]])[0]]
        for rows, why in ((bare, "have no mass or inertia"), (odd, "have an inertia that no body can have")):
            if rows:
                verb = why if len(rows) > 1 else why.replace("have", "has", 1)
                told.append(f"{listed([d.body_names[b] for b in rows])} {verb}, which MuJoCo may refuse")
        return wrong, told

    def _foldable(self) -> set[int]:
        """The links that only stand between two joints, which MuJoCo would refuse and need not have.

        A ball stays the last joint of its body, and a free joint the only one.
        """
        d, tree = self.d, self.tree
        used = set(d.frames.body.tolist()) | {int(x[j]) for j in tree.loops for x in (d.parent, d.child)}
        used |= {self._place(shape.place)[0] for shape in d.shapes}
        used |= {self._place(end)[0] for e in d.elements if isinstance(e, PointForce) for end in (e.first, e.second)}
        children = np.bincount(tree.parent[tree.parent >= 0], minlength=len(tree.body))
        only = dict(zip(tree.parent.tolist(), range(len(tree.body)), strict=True))  # the link that one carries
        folded: set[int] = set()
        freedoms = [d.kind_of(int(j)).nv for j in tree.joint]  # of a link and those folded into it, inner ones first
        for i in reversed(range(len(tree.body))):
            body, kind = int(tree.body[i]), d.kind_of(int(tree.joint[i])).name
            bare = not d.mass[body] and not d.inertia[body].any() and body not in used
            if bare and children[i] == 1 and kind not in ("spherical", "free"):
                together = freedoms[i] + freedoms[only[i]]
                if together <= FREEDOMS:
                    folded.add(i)
                    freedoms[i] = together
        return folded

    def _left_out(self) -> list[str]:
        d, found = self.d, without_place(self.d)
        unshown = [s.name for s in d.shapes if s.kind in ("cone", "mesh")]
        if unshown:
            found.append(f"the shapes {listed(unshown)} are left out")
        if d.traces:
            found.append("traces are left out")
        return found

    # -- the file -------------------------------------------------------------------------------------------------
    def lines(self) -> Iterator[str]:
        d = self.d
        yield f"<mujoco model={quoted(d.name)}>"
        yield '  <compiler angle="radian" autolimits="true" inertiafromgeom="false" fusestatic="false"/>'
        yield f'  <option gravity="{numbers(d.gravity)}"/>'
        yield "  <worldbody>"
        yield from self._bodies()
        yield "  </worldbody>"
        for tag, rows in (("equality", self.equalities), ("tendon", self._tendons()), ("actuator", self._actuators())):
            lines = list(rows)
            if lines:
                yield f"  <{tag}>"
                yield from (f"    {line}" for line in lines)
                yield f"  </{tag}>"
        yield "</mujoco>"

    def _bodies(self) -> Iterator[str]:
        """Bodies inside of those that carry them, in the order of their joints; without a recursion."""
        d, tree = self.d, self.tree
        carried: dict[int, list[int]] = {}
        for i, parent in enumerate(tree.parent.tolist()):
            carried.setdefault(parent, []).append(i)
        for children in carried.values():
            children.sort(key=lambda i: int(tree.joint[i]), reverse=True)
        yield from self._on_body(GROUND, "    ")
        before: dict[int, list[int]] = {}  # the links whose joints a body has before its own
        todo: list[tuple[int, int, bool]] = [(i, 2, False) for i in carried.get(-1, ())]
        while todo:
            i, depth, done = todo.pop()
            pad = "  " * depth
            if done:
                yield f"{pad}</body>"
                continue
            if i in self.folded:
                [inner] = carried[i]
                before[inner] = [*before.pop(i, ()), i]
                todo.append((inner, depth, False))
                continue
            body = int(tree.body[i])
            own: list[list[str]] = []
            at = Pose(np.eye(3), np.zeros(3))  # of the body in the link whose joints are written
            for link in [i, *reversed(before.pop(i, []))]:
                own.append(list(self._joints(link, at)))
                at = Pose(*self._pose(link)) @ at
            yield f"{pad}<body name={quoted(d.body_names[body])}{_placed(at.r, at.p)}>"
            yield from (f"{pad}  {line}" for lines in reversed(own) for line in lines)
            if d.mass[body] or d.inertia[body].any():
                yield (
                    f'{pad}  <inertial pos="{numbers(d.com[body])}" mass="{number(d.mass[body])}" '
                    f'fullinertia="{numbers(d.inertia[body])}"/>'
                )
            yield from self._on_body(body, pad + "  ")
            todo.append((i, depth, True))
            todo += [(k, depth + 1, False) for k in carried.get(i, ())]

    def _on_body(self, body: int, pad: str) -> Iterator[str]:
        """Frames, the ends of loops, and shapes."""
        d, f = self.d, self.d.frames
        drawn = {shape.name for shape in d.shapes if shape.place == shape.name}  # a geom is a place of its own
        for k in np.flatnonzero(f.body == body).tolist():
            if f.names[k] in drawn:
                continue
            yield f"{pad}<site name={quoted(f.names[k])}{_placed(f.r[k], f.p[k])}/>"
        yield from (f"{pad}{line}" for line in self.sites.get(body, ()))
        for shape in d.shapes:
            owner, r, p = self._place(shape.place)
            if owner == body and shape.kind not in ("cone", "mesh"):
                yield f"{pad}{self._geom(shape, r, p)}"

    def _geom(self, shape: Shape, r: Floats, p: Floats) -> str:
        size = np.array([float(x.evaluate(self.d.parameters)) for x in shape.size])
        size = size / 2 if shape.kind == "box" else np.array([size[0], *(size[1:] / 2)])
        colour = ""
        if shape.color:
            rgb = [int(shape.color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
            colour = f' rgba="{numbers([*rgb, 1.0])}"'
        kind = f'type="{shape.kind}" size="{numbers(size)}"{_placed(r, p)}{colour}'
        return f'<geom name={quoted(shape.name)} {kind} contype="0" conaffinity="0" mass="0"/>'

    def _place(self, name: str) -> tuple[int, Floats, Floats]:
        """The body of a place, and the place in it."""
        d = self.d
        if name in self.places:
            k = self.places[name]
            return int(d.frames.body[k]), d.frames.r[k], d.frames.p[k]
        found = d.body_names.find(name)
        return (GROUND if found is None else found), np.eye(3), np.zeros(3)

    # -- joints ---------------------------------------------------------------------------------------------------
    def _sides(self, i: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        d, j = self.d, int(self.tree.joint[i])
        near, far = (d.ri[j], d.pi[j]), (d.rj[j], d.pj[j])
        return (far, near) if self.tree.reverse[i] else (near, far)

    def _constant(self, j: int) -> Floats:
        """The far triad in the near one at zero coordinates, seen from the joint's own side."""
        turn = np.eye(3)
        for part in self.d.kind_of(j).parts:
            turn = turn @ _BACK if part == "Rx-" else turn
        return turn

    def _pose(self, i: int) -> tuple[Floats, Floats]:
        """A body in the one that carries it, coordinates zero."""
        (r_near, p_near), (r_far, p_far) = self._sides(i)
        turn = self._constant(int(self.tree.joint[i]))
        turn = turn.T if self.tree.reverse[i] else turn
        r = snapped(r_near @ turn @ r_far.T)
        return r, p_near - r @ p_far + 0.0

    def _joints(self, i: int, at: Pose) -> Iterator[str]:
        """MuJoCo's joints of one of ours, in its order; axes and anchor in a frame that is `at` in the body's."""
        d, j = self.d, int(self.tree.joint[i])
        kind, name, reverse = d.kind_of(j), d.joint_names[j], bool(self.tree.reverse[i])
        if kind.nv == 0:
            return
        _, (r_far, p_far) = self._sides(i)
        anchor = at.r.T @ (p_far - at.p) + 0.0
        where = f' pos="{numbers(anchor)}"' if anchor.any() else ""
        grounded = int(self.tree.parent[i]) < 0
        if kind.name == "free" and grounded:
            self.parts[j] = [(name, 0)]
            armature = f' armature="{number(d.armature[j])}"' if d.armature[j] else ""
            damping = self._losses(j, 0)
            yield f'<joint type="free" name={quoted(name)}{armature}{damping}/>'
            return
        rows: list[tuple[str, str, Floats, int]] = []
        if kind.name == "spherical":
            rows = [(name, "ball", np.zeros(3), 0)]
        else:
            rows = list(self._chain(j, r_far, reverse))
        self.parts[j] = [(row[0], row[3]) for row in rows]
        for part, sort, axis, index in rows:
            along = "" if sort == "ball" else f' axis="{numbers(snapped(at.r.T @ axis))}"'
            limits = self._range(j, sort, index, kind.nv)
            armature = f' armature="{number(d.armature[j])}"' if d.armature[j] else ""
            more = f"{limits}{armature}{self._losses(j, index)}"
            yield f'<joint name={quoted(part)} type="{sort}"{where}{along}{more}/>'

    def _chain(self, j: int, r_far: Floats, reverse: bool) -> Iterator[tuple[str, str, Floats, int]]:
        """The turns and shifts that a joint is made of: name, type, axis in the body, number of our coordinate."""
        d, kind = self.d, self.d.kind_of(j)
        total = self._constant(j)
        turn, found = np.eye(3), []
        for part in kind.parts:
            if part == "Rx-":
                turn = turn @ _BACK
                continue
            unit = turn @ np.eye(3)["xyz".index(part[1])]  # in triad i, coordinates zero
            axis = r_far @ (-unit if reverse else total.T @ unit)
            found.append(({"R": "hinge", "T": "slide", "H": "hinge"}[part[0]], snapped(axis)))
        if kind.name == "free":  # not on ground: three shifts and a ball
            found = [*found[:3], ("ball", np.zeros(3))]
        name, rows = d.joint_names[j], list(enumerate(found))
        for k, (sort, axis) in reversed(rows) if reverse else rows:
            yield name if len(found) == 1 else self._free_name(f"{name}_{k}"), sort, axis, k
        if kind.name == "screw":
            slide = self._free_name(f"{name}_shift")
            yield slide, "slide", found[0][1], -1
            names = f"joint1={quoted(slide)} joint2={quoted(name)}"
            self.equalities.append(f'<joint {names} polycoef="0 {number(d.pitch[j])} 0 0 0"/>')

    def _free_name(self, stem: str) -> str:
        name = next(n for k in range(len(self.taken) + 2) if (n := f"{stem}{'_' * k}") not in self.taken)
        self.taken.add(name)
        return name

    def _bounded(self, j: int) -> bool:
        d = self.d
        return d.kind_of(j).nv == 1 and (math.isfinite(d.lower[j]) or math.isfinite(d.upper[j]))

    def _range(self, j: int, sort: str, index: int, nv: int) -> str:
        """MuJoCo wants both limits: one that is not there is far away."""
        if nv != 1 or index < 0 or not self._bounded(j):
            return ""
        lower, upper = (float(np.clip(x[j], -1e9, 1e9)) for x in (self.d.lower, self.d.upper))
        return "" if lower >= upper else f' range="{numbers([lower, upper])}"'

    def _losses(self, j: int, index: int) -> str:
        found = self.passive.get((j, index), Passive()) if index >= 0 else Passive()
        text = ""
        for key, value in (
            ("damping", found.damping),
            ("frictionloss", found.friction),
            ("stiffness", found.stiffness),
            ("springref", found.rest),
        ):
            if value:
                text += f' {key}="{number(value)}"'
        return text

    # -- what is not a tree ---------------------------------------------------------------------------------------
    def _equate(self) -> None:
        d = self.d
        for j in self.tree.loops:
            name, kind = d.joint_names[j], d.kind_of(j).name
            if kind == "free":
                continue
            points = [0.0] if kind != "revolute" else [-_LEVER / 2, _LEVER / 2]
            for k, along in enumerate(points):
                ends: list[str] = []
                for body, r, p, side in ((d.parent[j], d.ri[j], d.pi[j], "i"), (d.child[j], d.rj[j], d.pj[j], "j")):
                    site = self._site(f"{name} {side}{k if len(points) > 1 else ''}")
                    ends.append(f"site{len(ends) + 1}={quoted(site)}")
                    where = _placed(r, p + along * r[:, 2])
                    self.sites.setdefault(int(body), []).append(f"<site name={quoted(site)}{where}/>")
                tag = "weld" if kind == "fixed" else "connect"
                own = name if k == 0 else f"{name} {k}"
                self.equalities.append(f"<{tag} name={quoted(own)} {' '.join(ends)}/>")
        for m in d.mimics:
            follower, leader = quoted(d.joint_names[m.follower]), quoted(d.joint_names[m.leader])
            values = f"{number(m.offset)} {number(m.ratio)} 0 0 0"
            self.equalities.append(f'<joint joint1={follower} joint2={leader} polycoef="{values}"/>')

    def _site(self, stem: str) -> str:
        taken = self.places
        name = next(n for k in range(len(taken) + 2) if (n := f"{stem}{'_' * k}") not in taken)
        self.places[name] = -1
        return name

    def _tendons(self) -> Iterator[str]:
        """Springs and dampers between two places."""
        for name, spring in self.passive.items():
            if not isinstance(name, str):
                continue
            ends = [f"<site site={quoted(self.origins.get(end, end))}/>" for end in spring.ends]
            values = f'stiffness="{number(spring.stiffness)}" damping="{number(spring.damping)}"'
            if spring.stiffness:
                values += f' springlength="{number(spring.rest)}"'
            yield f"<spatial name={quoted(name)} {values}>{''.join(ends)}</spatial>"

    def _actuators(self) -> Iterator[str]:
        d = self.d
        followers = {m.follower for m in d.mimics}
        for j, parts in self.parts.items():
            kind = d.kind_of(j)
            if j in d.passive or j in followers or kind.nv != 1:
                continue
            limit = d.effort_limit[j]
            bounds = f' ctrlrange="{numbers([-limit, limit])}"' if 0.0 < limit < math.inf else ""
            name = quoted(parts[0][0])
            yield f"<motor name={name} joint={name}{bounds}/>"


def _placed(r: Floats, p: Floats) -> str:
    text = f' pos="{numbers(p)}"' if p.any() else ""
    if np.array_equal(r, np.eye(3)):
        return text
    return f'{text} quat="{numbers(euler_parameters(r))}"'
