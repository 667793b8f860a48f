"""What the recursive form records: trees with inertias moved towards the base, and the regressor of inverse
dynamics.

What the link of a revolute joint has of mass, of first moment along its axis, and of J_yy as J_xx = J_yy, moves alike
whether it is fixed to the link or to the body before, and is moved there: of ten numbers J_xx − J_yy, J_zz, J_xy, J_xz,
J_yz, m x and m y are left. The link of a prismatic joint turns as the body before does, which takes its J; that of a
fixed joint gives all. On ground they have no part (Gautier and Khalil 1990).

π is that of `polynomial_regressor.py`, which says what its numbers are: ten of each body that weighs and moves, in link
axes about the link's origin, then the motor inertias that the joints have. (Where no body weighs, each one that moves
has its ten.) F is linear in π: the derivative of its tape with respect to π is Y.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linkwright.dynamics.functions import Request
from linkwright.dynamics.programs import ProgramFactory
from linkwright.model.description import Description
from linkwright.model.frames import placement_rotation, snapped
from linkwright.model.topology import Topology
from linkwright.model.tree import Tree
from linkwright.spatial.rotation import Chain, Transform, Turn
from linkwright.symbolic.derivation.literal import LETTERS, MOTOR, moving, weighing
from linkwright.tape.block import Block, Recorder, finish, undisturbed
from linkwright.tape.running import straightened
from linkwright.tape.scalar import Scalar

if TYPE_CHECKING:
    from linkwright.tape.program import Program

Inertia: TypeAlias = tuple[Any, Any, Any]  # mass, first moment, packed inertia, at the link frame
#: What may be moved: (mass, first moment along the axis, J_yy as J_xx = J_yy) of links on these joints.
_GIVES = {
    "revolute": (True, True, True),
    "spherical": (True, False, False),
    "cylindrical": (False, False, True),
    "screw": (False, False, True),
    "planar": (False, False, True),
}


class RegroupedTree(Tree):
    """A tree whose links have regrouped inertias: joint forces and the mass matrix stay; reactions do not."""

    def __init__(self, description: Description, topology: Topology) -> None:
        super().__init__(description, topology)
        self._recorded_with: Mapping[str, Any] | None = None  # of the recording that `_regrouped` are of
        self._regrouped: list[dict[str, Any]] = []

    def record(self, i: int, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The numbers of link i with those inertias; they are worked out once for all links of a recording."""
        if not self._regrouped or self._recorded_with is not parameters:
            self._recorded_with, self._regrouped = parameters, self._regroup(parameters)
        return dict(self._regrouped[i])

    def _regroup(self, parameters: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        records = [Tree.record(self, i, parameters) for i in range(self.n)]
        for i in reversed(range(self.n)):
            if self.topology.reverse[i]:
                continue
            staying, moved = _parted(self.kind(i).name, records[i])
            if moved is None:
                continue
            records[i].update(_inertia(*staying))
            up = int(self.parent[i])
            if up >= 0:
                place = placement_rotation(records[i], turning=self.kind(i).turns)
                mass, moment, inertia = Transform(Chain(place), np.asarray(records[i]["p"])).rigid(*moved)
                parent = records[up]
                whole = parent["mass"][0] + mass, parent["moment"] + moment, parent["inertia"] + inertia
                parent.update(_inertia(*whole))
        return records


def _parted(kind: str, record: Mapping[str, Any]) -> tuple[Inertia, Inertia | None]:
    """The inertia that stays on a link, and what moves to the body before; None if nothing does."""
    m, h, j = record["mass"][0], record["moment"], record["inertia"]
    if kind == "fixed":
        return (0.0, np.zeros(3), np.zeros(6)), (m, h, j)
    if kind == "prismatic":
        return (m, h, np.zeros(6)), (0.0, np.zeros(3), j)
    if kind not in _GIVES:
        return (m, h, j), None
    mass, along, disc = _GIVES[kind]
    y = j[1] if disc else 0.0
    z = h[2] if along else 0.0
    staying = 0.0 if mass else m, np.array([h[0], h[1], 0.0 if along else h[2]]), np.array(j)
    if disc:
        staying = staying[0], staying[1], np.array([j[0] - y, 0.0, *j[2:]])
    return staying, (m if mass else 0.0, np.array([0.0, 0.0, z]), np.array([y, y, 0.0, 0.0, 0.0, 0.0]))


def _inertia(mass: Any, moment: Any, inertia: Any) -> dict[str, Any]:
    return {"mass": np.array([mass]), "moment": np.asarray(moment), "inertia": np.asarray(inertia)}


class _Linear(Tree):
    """A tree whose bodies and motors have their inertias from recorded numbers, by the keys of `_key`."""

    def record(self, i: int, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        known = parameters or {}
        mass, *moments = (known.get(_key(i, letter), 0.0) for letter in LETTERS)
        # The tree's link axes are turned about z from those of the joint's frame.
        phi = float(self._phi[i])
        turn = Turn(2, *snapped([math.cos(phi), -math.sin(phi)]).tolist())
        return {
            **Tree.record(self, i, parameters),
            "mass": np.array([mass]),
            "moment": turn.inward(np.array(moments[:3])),
            "inertia": turn.congruent(np.array(moments[3:])),
            "armature": np.array([known.get(_key(i, MOTOR), 0.0)]),
        }


def _key(position: int, letter: str) -> str:
    return f"{letter} of position {position}"  # no parameter of a model has blanks in its name


def regressor(d: Description, free: tuple[str, ...]) -> tuple[Program, Block | None, tuple[str, ...]]:
    """The program of F whose inputs Y shares, the block of Y by rows (None if it has none), and its columns' names."""
    plain = replace(d, elements=())
    places = _places(d, ProgramFactory(d).topology)
    keys = [_key(*place) for place in places]
    program = _forces(replace(plain, parameters={**d.parameters, **dict.fromkeys(keys, 1.0)}), (*free, *keys), True)
    matrix = program.jacobian(0, len(program.inputs) - 1)
    entries = straightened(matrix.program)
    columns = tuple(f"{letter}{k + 1}" for k, letter in places)
    if entries is None:
        return program, None, columns
    place = {at: k for k, at in enumerate(zip(matrix.rows.tolist(), matrix.cols.tolist(), strict=True))}
    rows, states = program.outputs[0].size, entries.n_inputs - len(keys)
    with undisturbed():
        recorder = Recorder()
        # Y does not depend on π: it is linear.
        inputs: list[Scalar] = [recorder.input(k) for k in range(states)] + [recorder.zero] * len(keys)
        nodes = entries.replay(recorder, inputs)
        derivatives = [nodes[k] for k in entries.outputs.tolist()]
        wanted = [(i, len(free) + j) for i in range(rows) for j in range(len(keys))]
        outputs = [derivatives[place[at]] if at in place else recorder.zero for at in wanted]
        block = finish(recorder, states, outputs)
    return _forces(plain, free, False), block, columns


def _places(d: Description, t: Topology) -> list[tuple[int, str]]:
    """The parameters π by tree position and letter."""
    heavy = weighing(d, ("mass", "inertia"))
    bodies = [k for k, moves in enumerate(moving(d, t)) if moves]
    bodies = [k for k in bodies if heavy[int(t.body[k])]] or bodies
    motors = [k for k, joint in enumerate(t.joint.tolist()) if _driven(d, joint)]
    return [*((k, letter) for k in bodies for letter in LETTERS), *((k, MOTOR) for k in motors)]


def _driven(d: Description, joint: int) -> bool:
    return d.kind_of(joint).nv > 0 and (d.armature[joint] != 0.0 or ("armature", joint) in d.bindings)


def _forces(d: Description, free: tuple[str, ...], linear: bool) -> Program:
    factory = ProgramFactory(d)
    if linear:
        factory.tree = _Linear(d, factory.topology)
    request = Request("inverse_dynamics", free=free, form="unrolled")
    factory.check(request)
    return factory.program(request)
