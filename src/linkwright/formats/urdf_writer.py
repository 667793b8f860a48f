"""Descriptions into URDF, where URDF can say them: trees of revolute, prismatic, fixed, planar and floating joints."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from linkwright.base.arguments import free_name
from linkwright.base.arrays import Floats
from linkwright.formats.urdf import INERTIA, LARGEST
from linkwright.formats.xml import HERE, Pose, TreeWriter, attributes, numbers, present, quoted
from linkwright.formats.xml import number_text as number
from linkwright.model.description import FREE_FALL, GROUND, Description
from linkwright.model.elements import Bushing, ReactionFriction
from linkwright.model.model_checks import listed
from linkwright.model.placements import full_inertia, pack_inertia, roll_pitch_yaw

_TYPES = {"prismatic": "prismatic", "fixed": "fixed", "planar": "planar", "free": "floating"}


def write_urdf(description: Description) -> str:
    """The URDF of a tree, whose reading gives the same dynamics.

    What URDF cannot hold and dynamics needs is an error that lists it; what can be left out is listed in a warning.
    A link's frame is at its joint, as URDF has it, so that the frames of bodies may move within them.
    """
    return _Writer(description).text()


class _Writer(TreeWriter):
    """Writes one description."""

    language = "URDF"

    def __init__(self, d: Description) -> None:
        super().__init__(d)
        self._check()
        self._leave_out()
        # Each link's frame in its body: axes of the body, or of the joint's frame where URDF knows no other.
        self.frame: dict[int, Pose] = {GROUND: HERE}
        for i, (body, joint) in enumerate(zip(self.tree.body.tolist(), self.tree.joint.tolist(), strict=True)):
            kind, (_, far) = d.kind_of(joint).name, self.sides(i)
            turn = far.r if kind in ("planar", "free") else HERE.r
            self.frame[body] = Pose(turn, HERE.p if kind == "fixed" else far.p)
        moved = [d.body_names[b] for b in range(d.nb) if not self.frame[b].is_here]
        if moved:
            self.left_out.append(f"the frames of {listed(moved)} (now at their joints)")
        self.root, self.root_frame = self._root()

    def _check(self) -> None:
        d = self.d
        wrong = [f"the loop closed by joint {d.joint_names[j]!r}" for j in self.tree.loops]
        joints = self.tree.joint.tolist()
        for joint, reverse in zip(joints, self.tree.reverse.tolist(), strict=True):
            kind, name = d.kind_of(joint).name, d.joint_names[joint]
            if kind not in (*_TYPES, "revolute"):
                wrong.append(f"joint {name!r}, which is {kind}")
            elif reverse and kind in ("planar", "free"):
                wrong.append(f"joint {name!r}, which is described from its far side")
            if d.armature[joint]:
                wrong.append(f"the armature of joint {name!r}")
        losses = {force.name for j in joints for force in d.losses(j)}
        wrong += [f"the force {force.name!r}" for force in d.elements if force.name not in losses]
        # MJCF has no rods, bushings and frictions by reactions either.
        other = d.point_constraints or any(isinstance(force, Bushing | ReactionFriction) for force in d.elements)
        more = "" if other else ", and MJCF (.xml) most of it"
        self.refuse(wrong, f".mks can{more}; write that, or remove these first")

    def _leave_out(self) -> None:
        d = self.d
        parts = {
            "shapes and traces": d.shapes or d.traces,
            f"gravity {d.gravity.tolist()}": tuple(d.gravity.tolist()) != FREE_FALL,
            "that damping and friction act (read it with friction='apply')": d.elements,
        }
        self.left_out += present(parts)

    def _root(self) -> tuple[str, int | None]:
        """The root link's name: a frame that lies on ground's own, or ground's."""
        f = self.d.frames
        for k, name in enumerate(f.names):
            if f.body[k] == GROUND and Pose(f.r[k], f.p[k]).is_here:
                return name, k
        return self.d.ground_name, None

    # -- elements -----------------------------------------------------------------------------------------
    def lines(self) -> Iterator[str]:
        d = self.d
        yield '<?xml version="1.0"?>'
        yield f"<robot name={quoted(d.name)}>"
        yield from self._link(self.root, d.ground_inertia)
        joints: dict[int, list[str]] = {}
        for i, (body, joint) in enumerate(zip(self.tree.body.tolist(), self.tree.joint.tolist(), strict=True)):
            frame = self.frame[body]
            com = frame.r.T @ (d.com[body] - frame.p)
            inertia = pack_inertia(frame.r.T @ full_inertia(d.inertia[body]) @ frame.r)
            yield from self._link(d.body_names[body], (float(d.mass[body]), com, inertia))
            joints[joint] = list(self._joint(i))
        # In the order of the description, which is the order of the coordinates among children of one link.
        for joint in sorted(joints):
            yield from joints[joint]
        yield from self._frames()
        yield "</robot>"

    def _link(self, name: str, weights: tuple[float, Floats, Floats] | None) -> Iterator[str]:
        if weights is None or not (weights[0] or np.any(weights[2])):
            yield f"  <link name={quoted(name)}/>"
            return
        mass, com, inertia = weights
        yield f"  <link name={quoted(name)}>"
        yield "    <inertial>"
        yield f'      <origin xyz="{numbers(com)}"/>'
        yield f'      <mass value="{number(mass)}"/>'
        yield f"      <inertia {attributes(**dict(zip(INERTIA, inertia, strict=True)))}/>"
        yield "    </inertial>"
        yield "  </link>"

    def _joint(self, i: int) -> Iterator[str]:
        d, tree = self.d, self.tree
        body, joint, reverse = int(tree.body[i]), int(tree.joint[i]), bool(tree.reverse[i])
        parent = GROUND if tree.parent[i] < 0 else int(tree.body[tree.parent[i]])
        kind = d.kind_of(joint).name
        word = _TYPES.get(kind) or ("revolute" if self.bounded(joint) else "continuous")
        pose = self.frame[parent].inverse() @ self.step(i, self.frame[body])
        yield from self._placed(d.joint_names[joint], word, self._name(parent), d.body_names[body], pose)
        if kind in ("revolute", "prismatic"):
            axis = self.sides(i)[1].r[:, 2] * (-1.0 if reverse else 1.0)
            yield f'    <axis xyz="{numbers(axis + 0.0)}"/>'
        elif kind == "planar":
            yield '    <axis xyz="0 0 1"/>'
        yield from self._details(joint)
        yield "  </joint>"

    def _placed(self, name: str, word: str, parent: str, child: str, pose: Pose) -> Iterator[str]:
        yield f"  <joint name={quoted(name)} type={quoted(word)}>"
        yield f'    <origin xyz="{numbers(pose.p)}" rpy="{numbers(roll_pitch_yaw(pose.r))}"/>'
        yield f"    <parent link={quoted(parent)}/>"
        yield f"    <child link={quoted(child)}/>"

    def _details(self, joint: int) -> Iterator[str]:
        d = self.d
        limits = {"velocity": d.velocity_limit[joint], "effort": d.effort_limit[joint]}
        # Parsers want <limit> on what is bounded or shifts, and effort and velocity in it; a missing bound counts as 0.
        ranged = self.bounded(joint) or d.kind_of(joint).name == "prismatic"
        if ranged:
            limits = {"lower": d.lower[joint], "upper": d.upper[joint], **limits}
        if ranged or any(map(math.isfinite, limits.values())):
            # They know no "inf" either.
            yield f"    <limit {attributes(**{key: min(max(x, -LARGEST), LARGEST) for key, x in limits.items()})}/>"
        if d.damping[joint] or d.friction[joint]:
            yield f"    <dynamics {attributes(damping=d.damping[joint], friction=d.friction[joint])}/>"
        for m in self.mimics(joint):
            factors = attributes(multiplier=m.ratio, offset=m.offset)
            yield f"    <mimic joint={quoted(d.joint_names[m.leader])} {factors}/>"

    def _frames(self) -> Iterator[str]:
        """Further frames: links without inertia on fixed joints."""
        f, taken = self.d.frames, set(self.d.joint_names)
        for k, name in enumerate(f.names):
            if k == self.root_frame:
                continue
            body = int(f.body[k])
            joint = free_name(f"{name}_fixed", taken)
            taken.add(joint)
            yield f"  <link name={quoted(name)}/>"
            pose = self.frame[body].inverse() @ Pose(f.r[k], f.p[k])
            yield from self._placed(joint, "fixed", self._name(body), name, pose)
            yield "  </joint>"

    def _name(self, body: int) -> str:
        return self.root if body == GROUND else self.d.body_names[body]
