"""Descriptions into MJCF: trees of every joint kind, springs, dampers; loops and gears as MuJoCo's soft equalities."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.body_tree import claimed
from linkwright.formats.mjcf.mjcf_reader import geom_sizes
from linkwright.formats.passive_forces import Passive, passive_forces
from linkwright.formats.xml import HERE, MAX_NESTING, Pose, TreeWriter, attributes, numbers, present, quoted
from linkwright.formats.xml import number_text as number
from linkwright.model.description import GROUND, Description, Shape, colour_numbers
from linkwright.model.elements import PointForce
from linkwright.model.joint_kinds import UNIVERSAL
from linkwright.model.model_checks import impossible_inertias, listed
from linkwright.model.placements import snapped
from linkwright.spatial.rotation import euler_parameters

_BACK = UNIVERSAL.neutral_rotation()  # "Rx-": a quarter turn back about x
_DEEPEST = MAX_NESTING - 10
_LEVER = 0.1  # metres between the two points of a revolute joint that closes a loop

FREEDOMS = 6  # that MuJoCo lets a body have


def write_mjcf(description: Description) -> str:
    """The MJCF of a mechanism: the same dynamics, but for loops and gears, which MuJoCo holds by soft constraints.

    What MJCF cannot hold and the mechanism is not itself without is an error that lists it; what is left out, or means
    something else to MuJoCo, is listed in a warning.
    """
    return _Writer(description).text()


class _Writer(TreeWriter):
    """Writes one description."""

    language = "MJCF"

    def __init__(self, d: Description) -> None:
        super().__init__(d)
        self.folded = self._foldable()
        self.passive, wrong, notes = passive_forces(d)
        self.refuse([*self._wrong(), *wrong], ".mks can, or remove these first")
        self._note()
        self.notes += notes
        self.parts: dict[int, str] = {}  # the first of MuJoCo's joints of each joint
        self.taken = set(d.joint_names)
        self.places = set(d.frames.names)  # names of sites
        self.sites: dict[int, list[str]] = {}  # of the bodies
        self.equalities: list[str] = []
        self.origins: dict[str, str] = {}  # sites at the origins of bodies that springs end at
        for end in (end for spring in self.passive.values() for end in spring.ends):
            if end not in self.places and end not in self.origins:
                self.origins[end] = self._site(d.frame(end)[0], f"{end} origin", HERE)
        self._equate()

    def _wrong(self) -> Iterator[str]:
        d, tree = self.d, self.tree
        for j in tree.loops:
            kind = d.kind_of(j).name
            if kind not in ("spherical", "revolute", "fixed", "free"):
                yield f"the loop closed by joint {d.joint_names[j]!r}, which is {kind}"
        if int(tree.depth.max(initial=0)) > _DEEPEST:
            yield f"bodies that hang on each other more than {_DEEPEST} deep"

    def _note(self) -> None:
        """What means something else to MuJoCo, and what is left out."""
        d, tree = self.d, self.tree
        soft = [d.joint_names[j] for j in tree.loops] + [d.joint_names[m.follower] for m in d.mimics]
        soft += [d.joint_names[j] for j in tree.joint.tolist() if d.kind_of(j).name == "screw"]
        limited = [d.joint_names[j] for j in tree.joint.tolist() if d.kind_of(j).nv == 1 and self.bounded(j)]
        undrawn = [s.name for s in d.shapes if s.kind in ("cone", "mesh")]
        names = listed([d.body_names[int(tree.body[i])] for i in sorted(self.folded)])
        notes = {
            f"MuJoCo's soft equality constraints, which give way under load, hold {listed(soft)}": soft,
            f"limits are stops in MuJoCo: {listed(limited)}": limited,
            f"{names} without mass are no bodies there: their joints are further ones of what they carry": self.folded,
        }
        self.notes += present(notes)
        self.left_out += present({f"the shapes {listed(undrawn)}": undrawn, "traces": d.traces})
        rows = [i for i in range(len(tree.body)) if i not in self.folded and d.kind_of(int(tree.joint[i])).nv]
        moving = [int(tree.body[i]) for i in rows]
        bare = [b for b in moving if not (d.mass[b] > 0.0 and np.all(np.abs(d.inertia[b, :3]) > 0.0))]
        odd = [b for b in moving if b not in bare and impossible_inertias(d.inertia[[b]])[0]]
        for rows, why in ((bare, "have no mass or inertia"), (odd, "have an inertia that no body can have")):
            if rows:
                verb = why if len(rows) > 1 else why.replace("have", "has", 1)
                self.notes.append(f"{listed([d.body_names[b] for b in rows])} {verb}, which MuJoCo may refuse")

    def _foldable(self) -> set[int]:
        """The links that only stand between two joints, which MuJoCo would refuse and need not have.

        A ball stays the last joint of its body, and a free joint the only one.
        """
        d, tree = self.d, self.tree
        used = set(d.frames.body.tolist()) | {int(x[j]) for j in tree.loops for x in (d.parent, d.child)}
        used |= {d.frame(shape.place)[0] for shape in d.shapes}
        used |= {d.frame(end)[0] for e in d.elements if isinstance(e, PointForce) for end in (e.first, e.second)}
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
            joints: list[list[str]] = []
            at = HERE  # of the body in the link whose joints are written
            for link in [i, *reversed(before.pop(i, []))]:
                joints.append(list(self._joints(link, at)))
                at = self.step(link) @ at
            yield f"{pad}<body name={quoted(d.body_names[body])}{_placed(at)}>"
            yield from (f"{pad}  {line}" for lines in reversed(joints) for line in lines)
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
            yield f"{pad}<site name={quoted(f.names[k])}{_placed(Pose(f.r[k], f.p[k]))}/>"
        yield from (f"{pad}{line}" for line in self.sites.get(body, ()))
        for shape in d.shapes:
            owner, r, p = d.frame(shape.place)
            if owner == body and shape.kind not in ("cone", "mesh"):
                yield f"{pad}{self._geom(shape, Pose(r, p))}"

    def _geom(self, shape: Shape, pose: Pose) -> str:
        size = geom_sizes(shape.kind, [float(x.evaluate(self.d.parameters)) for x in shape.size], 0.5)
        colour = f' rgba="{numbers([*colour_numbers(shape.color), 1.0])}"' if shape.color else ""
        kind = f'type="{shape.kind}" size="{numbers(size)}"{_placed(pose)}{colour}'
        return f'<geom name={quoted(shape.name)} {kind} contype="0" conaffinity="0" mass="0"/>'

    # -- joints ---------------------------------------------------------------------------------------------------
    def _joints(self, i: int, at: Pose) -> Iterator[str]:
        """MuJoCo's joints of one of ours, in its order; axes and anchor in a frame that is `at` in the body's."""
        d, j = self.d, int(self.tree.joint[i])
        kind, name, reverse = d.kind_of(j), d.joint_names[j], bool(self.tree.reverse[i])
        if kind.nv == 0:
            return
        far = self.sides(i)[1]
        anchor = at.r.T @ (far.p - at.p) + 0.0
        where = f' pos="{numbers(anchor)}"' if anchor.any() else ""
        armature = f' armature="{number(d.armature[j])}"' if d.armature[j] else ""
        if kind.name == "free" and int(self.tree.parent[i]) < 0:
            self.parts[j] = name
            yield f'<joint type="free" name={quoted(name)}{armature}{self._losses(j, 0)}/>'
            return
        rows = [(name, "ball", HERE.p, 0)] if kind.name == "spherical" else list(self._chain(j, far.r, reverse))
        self.parts[j] = rows[0][0]
        for part, sort, axis, index in rows:
            along = "" if sort == "ball" else f' axis="{numbers(snapped(at.r.T @ axis))}"'
            more = f"{self._range(j, index)}{armature}{self._losses(j, index)}"
            yield f'<joint name={quoted(part)} type="{sort}"{where}{along}{more}/>'

    def _chain(self, j: int, r_far: Floats, reverse: bool) -> Iterator[tuple[str, str, Floats, int]]:
        """The turns and shifts that a joint is made of: name, type, axis in the body, number of our coordinate."""
        d, kind = self.d, self.d.kind_of(j)
        total = kind.neutral_rotation()
        turn, axes = np.eye(3), []
        for part in kind.parts:
            if part == "Rx-":
                turn = turn @ _BACK
                continue
            unit = turn @ np.eye(3)["xyz".index(part[1])]  # in frame i, coordinates zero
            axis = r_far @ (-unit if reverse else total.T @ unit)
            axes.append(({"R": "hinge", "T": "slide", "H": "hinge"}[part[0]], snapped(axis)))
        if kind.name == "free":  # not on ground: three shifts and a ball
            axes = [*axes[:3], ("ball", HERE.p)]
        name, rows = d.joint_names[j], list(enumerate(axes))
        for k, (sort, axis) in reversed(rows) if reverse else rows:
            yield name if len(axes) == 1 else claimed(f"{name}_{k}", self.taken, "_"), sort, axis, k
        if kind.name == "screw":
            slide = claimed(f"{name}_shift", self.taken, "_")
            yield slide, "slide", axes[0][1], -1
            self._couple(slide, name, 0.0, float(d.pitch[j]))

    def _couple(self, follower: str, leader: str, offset: float, ratio: float) -> None:
        coefficients = numbers([offset, ratio, 0.0, 0.0, 0.0])
        self.equalities.append(f'<joint joint1={quoted(follower)} joint2={quoted(leader)} polycoef="{coefficients}"/>')

    def _range(self, j: int, index: int) -> str:
        """MuJoCo wants both limits: one that is not there is far away."""
        if self.d.kind_of(j).nv != 1 or index < 0 or not self.bounded(j):
            return ""
        lower, upper = (float(np.clip(x[j], -1e9, 1e9)) for x in (self.d.lower, self.d.upper))
        return "" if lower >= upper else f' range="{numbers([lower, upper])}"'

    def _losses(self, j: int, index: int) -> str:
        forces = self.passive.get((j, index), Passive()) if index >= 0 else Passive()
        words = {"damping": forces.damping, "frictionloss": forces.friction}
        words |= {"stiffness": forces.stiffness, "springref": forces.reference}
        return "".join(f" {attributes(**{key: x})}" for key, x in words.items() if x)

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
                for side in ("i", "j"):
                    body, r, p = d.side(j, side)
                    stem = f"{name} {side}{k if len(points) > 1 else ''}"
                    ends.append(quoted(self._site(body, stem, Pose(r, p + along * r[:, 2]))))
                tag, label = "weld" if kind == "fixed" else "connect", name if k == 0 else f"{name} {k}"
                self.equalities.append(f"<{tag} name={quoted(label)} site1={ends[0]} site2={ends[1]}/>")
        for m in d.mimics:
            self._couple(d.joint_names[m.follower], d.joint_names[m.leader], m.offset, m.ratio)

    def _site(self, body: int, stem: str, pose: Pose) -> str:
        """A further site on a body; its name."""
        name = claimed(stem, self.places, "_")
        self.sites.setdefault(body, []).append(f"<site name={quoted(name)}{_placed(pose)}/>")
        return name

    def _tendons(self) -> Iterator[str]:
        """Springs and dampers between two places."""
        for name, spring in self.passive.items():
            if not isinstance(name, str):
                continue
            ends = [f"<site site={quoted(self.origins.get(end, end))}/>" for end in spring.ends]
            values = attributes(stiffness=spring.stiffness, damping=spring.damping)
            if spring.stiffness:
                values += f" {attributes(springlength=spring.reference)}"
            yield f"<spatial name={quoted(name)} {values}>{''.join(ends)}</spatial>"

    def _actuators(self) -> Iterator[str]:
        d = self.d
        followers = {m.follower for m in d.mimics}
        for j, part in self.parts.items():
            if j in d.passive or j in followers or d.kind_of(j).nv != 1:
                continue
            limit = d.effort_limit[j]
            bounds = f' ctrlrange="{numbers([-limit, limit])}"' if 0.0 < limit < math.inf else ""
            name = quoted(part)
            yield f"<motor name={name} joint={name}{bounds}/>"


def _placed(pose: Pose) -> str:
    text = f' pos="{numbers(pose.p)}"' if pose.p.any() else ""
    if np.array_equal(pose.r, np.eye(3)):
        return text
    return f'{text} quat="{numbers(euler_parameters(pose.r))}"'
