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
from linkwright.model.placements import placement_rotation, snapped
from linkwright.model.topology import Topology
from linkwright.model.tree import Tree
from linkwright.spatial.rotation import Chain, Transform, Turn
from linkwright.symbolic.derivation.literal import LETTERS, MOTOR, moving, weighing
from linkwright.tape.block import Block
from linkwright.tape.build import record
from linkwright.tape.runner import straightened

if TYPE_CHECKING:
    from linkwright.tape.program import Program

Inertia: TypeAlias = tuple[Any, Any, Any]  # mass, first moment, packed inertia, at the link frame
#: What of a link on these joints is moved: of its mass and its first moments as factors, of its inertia all, none, or
#: that of a disc, J_yy as J_xx = J_yy.
_GIVES = {
    "fixed": (1.0, np.ones(3), "all"),
    "prismatic": (0.0, np.zeros(3), "all"),
    "revolute": (1.0, np.array([0.0, 0.0, 1.0]), "disc"),
    "spherical": (1.0, np.zeros(3), "none"),
    "cylindrical": (0.0, np.zeros(3), "disc"),
    "screw": (0.0, np.zeros(3), "disc"),
    "planar": (0.0, np.zeros(3), "disc"),
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
            if self.topology.reverse[i] or self.kind(i).name not in _GIVES:
                continue
            staying, moved = _parted(self.kind(i).name, records[i])
            records[i].update(_inertia(*staying))
            up = int(self.parent[i])
            if up >= 0:
                place = placement_rotation(records[i], turning=self.kind(i).turns)
                mass, moment, inertia = Transform(Chain(place), np.asarray(records[i]["p"])).rigid(*moved)
                parent = records[up]
                whole = parent["mass"][0] + mass, parent["moment"] + moment, parent["inertia"] + inertia
                parent.update(_inertia(*whole))
        return records


def _parted(kind: str, record: Mapping[str, Any]) -> tuple[Inertia, Inertia]:
    """The inertia that stays on a link, and what moves to the body before."""
    m, h, j = record["mass"][0], record["moment"], record["inertia"]
    mass, moment, inertia = _GIVES[kind]
    none, y = np.zeros(6), j[1]
    disc = np.array([y, y, 0.0, 0.0, 0.0, 0.0])
    parts = {"all": (none, j), "none": (j, none), "disc": (np.array([j[0] - y, 0.0, *j[2:]]), disc)}
    staying, moved = parts[inertia]
    return (m * (1.0 - mass), h * (1.0 - moment), staying), (m * mass, h * moment, moved)


def _inertia(mass: Any, moment: Any, inertia: Any) -> dict[str, Any]:
    return {"mass": np.array([mass]), "moment": np.asarray(moment), "inertia": np.asarray(inertia)}


INVERSE = "inverse_dynamics"


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
    named = replace(plain, parameters={**d.parameters, **dict.fromkeys(keys, 1.0)})
    linear, program = unrolled(named, INVERSE, (*free, *keys), _Linear), unrolled(plain, INVERSE, free)
    matrix = linear.jacobian(0, len(linear.inputs) - 1)

    def entries(*arrays: Any) -> Any:
        states, p = (arrays[:-1], arrays[-1]) if free else (arrays, np.zeros(0))
        # Y does not depend on π: it is linear.
        values = matrix.program(*states, np.concatenate([p, np.zeros(len(keys))]))
        y = np.zeros((program.outputs[0].size, len(free) + len(keys)), dtype=object)
        y[matrix.rows, matrix.cols] = values
        return y[:, len(free) :]

    block = straightened(record(entries, *(b.shape for b in program.inputs)))
    return program, block, tuple(f"{letter}{k + 1}" for k, letter in places)


def _places(d: Description, t: Topology) -> list[tuple[int, str]]:
    """The parameters π by tree position and letter."""
    heavy = weighing(d, ("mass", "inertia"))
    bodies = [k for k, moves in enumerate(moving(d, t)) if moves]
    bodies = [k for k in bodies if heavy[int(t.body[k])]] or bodies
    motors = [k for k, joint in enumerate(t.joint.tolist()) if _driven(d, joint)]
    return [*((k, letter) for k in bodies for letter in LETTERS), *((k, MOTOR) for k in motors)]


def _driven(d: Description, joint: int) -> bool:
    return d.kind_of(joint).nv > 0 and (d.armature[joint] != 0.0 or ("armature", joint) in d.bindings)


def unrolled(d: Description, function: str, free: tuple[str, ...], tree: type[Tree] | None = None) -> Program:
    """The program of a function for all links one by one; `tree` gives the links other numbers than they have."""
    factory = ProgramFactory(d)
    if tree is not None:
        factory.tree = tree(d, factory.topology)
    request = Request(function, free=free, form="unrolled")
    factory.check(request)
    return factory.program(request)
