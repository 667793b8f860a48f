r"""Inertias moved towards the base where joint forces cannot tell them apart, so that fewer numbers are left.

What the link of a revolute joint has of mass, of first moment along its axis, and of J_yy as J_xx = J_yy, moves alike
whether it is fixed to the link or to the body before, and is moved there: of ten numbers J_xx − J_yy, J_zz, J_xy, J_xz,
J_yz, m x and m y are left. The link of a prismatic joint turns as the body before does, which takes its J; that of a
fixed joint gives all. On ground they have no part (Gautier and Khalil 1990).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from linkwright.model.description import Description
from linkwright.model.placement import placement_rotation
from linkwright.model.topology import Topology
from linkwright.model.tree import Tree
from linkwright.spatial.rotation import Chain
from linkwright.spatial.transform import Transform

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
