r"""The regressor Y(q, q̇, q̈) of inverse dynamics by our own tapes: F = Y π, without force elements.

π is that of `polynomial_regressor.py`, which says what its numbers are: ten of each body that weighs and moves, in link
axes about the link's origin, then the motor inertias that the joints have. (Where no body weighs, each one that moves
has its ten.) F is linear in π: the derivative of its tape with respect to π is Y.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.dynamics.functions import Request
from linkwright.dynamics.programs import Maker
from linkwright.model.description import Description
from linkwright.model.frames import snapped
from linkwright.model.topology import Topology
from linkwright.model.tree import Tree
from linkwright.spatial.rotation import Turn
from linkwright.symbolic.derivation.literal import LETTERS, MOTOR, moving, weighing
from linkwright.tape.block import Block, finish
from linkwright.tape.recorder import Recorder, undisturbed
from linkwright.tape.running import straightened
from linkwright.tape.scalar import Scalar

if TYPE_CHECKING:
    from linkwright.tape.program import Program


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
    places = _places(d, Maker(d).topology)
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
    maker = Maker(d)
    if linear:
        maker.tree = _Linear(d, maker.topology)
    request = Request("inverse_dynamics", free=free, form="unrolled")
    maker.check(request)
    return maker.program(request)
