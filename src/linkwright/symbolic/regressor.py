r"""The regressor Y(q, q̇, q̈) of inverse dynamics by our own tapes: F = Y π, without armatures and force elements.

π has ten numbers for every body that can move, in the order of the tree: m, the first moment m x, m y, m z, and J_xx,
J_yy, J_zz, J_xy, J_xz, J_yz about the origin of the body's own frame, in its axes (products as entries of the matrix,
J_xy = −∫ x y dm). F is linear in π: the derivative of its tape with respect to π is Y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.mechanism.description import Description
from linkwright.mechanism.topology import Topology
from linkwright.mechanism.tree import Tree
from linkwright.programs import Maker, Request
from linkwright.spatial.rotation import General
from linkwright.spatial.transform import Transform
from linkwright.symbolic.literal import moves
from linkwright.tape.block import Block, finish
from linkwright.tape.scalar import Recorder, Scalar, undisturbed
from linkwright.tape.straight import straightened

if TYPE_CHECKING:
    from linkwright.tape.program import Program

LETTERS = ("m", "mx", "my", "mz", "Jxx", "Jyy", "Jzz", "Jxy", "Jxz", "Jyz")


class _Linear(Tree):
    """A tree whose bodies have their inertias from recorded numbers, by the keys of `_key`."""

    def record(self, i: int, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        values = dict(Tree.record(self, i, parameters))
        own = [(parameters or {}).get(_key(i, letter), 0.0) for letter in LETTERS]
        r, p = np.asarray(values["frame_r"]), np.asarray(values["frame_p"])
        body = Transform(General(r.T), -(r.T @ p))  # in the link frame
        mass, moment, inertia = body.rigid(own[0], np.array(own[1:4]), np.array(own[4:]))
        return {**values, "mass": np.array([mass]), "moment": moment, "inertia": inertia}


def _key(position: int, letter: str) -> str:
    return f"{letter} of position {position}"  # no parameter of a model has blanks in its name


def regressor(d: Description, free: tuple[str, ...]) -> tuple[Program, Block, tuple[str, ...]]:
    """The program of F whose inputs Y shares, the block of Y (by rows), and what its columns belong to."""
    plain = replace(d, elements=(), armature=np.zeros(d.nj), bindings=_without_armatures(d))
    topology = Maker(d).topology
    bodies = [k for k in range(len(topology)) if moves(d, topology, k)]
    keys = [_key(k, letter) for k in bodies for letter in LETTERS]
    program = _forces(replace(plain, parameters={**d.parameters, **dict.fromkeys(keys, 1.0)}), topology, (*free, *keys))
    matrix = program.jacobian(0, len(program.inputs) - 1)
    entries = straightened(matrix.program)
    assert entries is not None
    place = {at: k for k, at in enumerate(zip(matrix.rows.tolist(), matrix.cols.tolist(), strict=True))}
    rows, kept = program.outputs[0].size, entries.n_inputs - len(keys)
    with undisturbed():
        recorder = Recorder()
        # Y does not depend on π: it is linear.
        inputs: list[Scalar] = [recorder.input(k) for k in range(kept)] + [recorder.zero] * len(keys)
        nodes = entries.replay(recorder, inputs)
        found = [nodes[k] for k in entries.outputs.tolist()]
        wanted = [(i, len(free) + j) for i in range(rows) for j in range(len(keys))]
        outputs = [found[place[at]] if at in place else recorder.zero for at in wanted]
        block = finish(recorder, kept, outputs)
    columns = tuple(f"{letter}{k + 1}" for k in bodies for letter in LETTERS)
    return _forces(plain, None, free), block, columns


def _forces(d: Description, linear: Topology | None, free: tuple[str, ...]) -> Program:
    maker = Maker(d)
    if linear is not None:
        maker.tree = _Linear(d, linear)
    request = Request("inverse_dynamics", free=free, form="unrolled")
    maker.check(request)
    return maker.program(request)


def _without_armatures(d: Description) -> dict[tuple[str, int], Any]:
    return {key: expression for key, expression in d.bindings.items() if key[0] != "armature"}
