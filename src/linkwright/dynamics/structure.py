"""What follows from a description for all of its programs: tree, loop constraints, units, and what takes part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.elements import laws_of
from linkwright.model.joint_kinds import KIND_LIST
from linkwright.model.lengths import coordinate_units
from linkwright.model.topology import Topology, span
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array

if TYPE_CHECKING:
    from linkwright.constraints.equations import Constraint
    from linkwright.constraints.mass_layout import CentralLayout


class Structure:
    """A description with what programs need to know of it, each computed when it is first used."""

    def __init__(self, description: Description) -> None:
        self.description = description

    # -- the tree ---------------------------------------------------------------------------------------
    @cached_property
    def topology(self) -> Topology:
        return span(self.description)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.description, self.topology)

    @property
    def pairs(self) -> int:
        """How many pairs of links are related, each with itself included."""
        return int(self.topology.depth.sum()) + self.tree.n

    @property
    def size(self) -> float:
        """A length that is typical for the mechanism."""
        return self.description.length_scale

    @cached_property
    def rate_units(self) -> Floats:
        """(nv,): the unit of each rate: the mechanism's length, or 1 for turns."""
        return coordinate_units(self.tree)[1]

    def gravity(self, free: Mapping[str, Any]) -> Array:
        """The acceleration of gravity, with the parameters in `free` recorded."""
        d = self.description
        entries = list(d.gravity.tolist())
        for k in range(3):
            expression = d.bindings.get(("gravity", k))
            if expression is not None and expression.names() & free.keys():
                entries[k] = expression.evaluate({**d.parameters, **free})
        return np.array(entries)

    def neutral(self) -> Floats:
        """The q at which every joint is at its zero."""
        x = self.tree.coordinates
        q = np.zeros(x.nq)
        for number, kind in enumerate(KIND_LIST):
            if kind.nq != kind.nv:
                at = x.q_at[self.tree.kind_numbers == number]
                q[at[:, None] + np.arange(kind.nq)] = kind.neutral()
        return q

    @cached_property
    def drawn(self) -> NDArray[np.float64]:
        """The tree's coordinates where the bodies are drawn, as near as they come; neutral where they are not."""
        # For weight: constraint equations are only needed where there is a drawing.
        from linkwright.constraints.equations import Equations
        from linkwright.constraints.newton import start_state
        from linkwright.constraints.tree_states import coordinates

        d, q = self.description, self.neutral()
        return q if d.start is None else coordinates(self.tree, start_state(Equations(d)), q)

    # -- what takes part --------------------------------------------------------------------------------
    @property
    def needs_time(self) -> bool:
        """Whether a force depends on TIME, or a driver does."""
        laws = (law for e in self.description.elements for law in laws_of(e))
        return bool(self.description.drivers) or any("TIME" in law.names() for law in laws)

    @property
    def has_pair_derivatives(self) -> bool:
        """Whether the recursion over pairs of bodies covers this mechanism."""
        return not self.description.elements and all(kind.steady for kind in set(self.tree.kinds))

    @property
    def coupled(self) -> bool:
        """Whether joints share coordinates."""
        return bool(self.tree.coordinates.follows.any())

    @cached_property
    def closed(self) -> bool:
        """Whether anything but the tree's own joints holds the bodies."""
        d = self.description
        return bool(d.ties or d.drivers) or any(d.kind_of(j).nv < 6 for j in self.topology.loops)

    # -- loop constraints -------------------------------------------------------------------------------
    @cached_property
    def closings(self) -> tuple[Constraint, ...]:
        """What holds the bodies besides the tree's joints, in the order of the multipliers."""
        from linkwright.constraints.loop_closures import closings  # for weight: trees have none

        return closings(self.description, self.topology) if self.closed else ()

    @cached_property
    def constraint_rows(self) -> list[tuple[Constraint, str]]:
        """Every equation that holds the tree's coordinates together: its constraint, and what it is about."""
        return [(closing, name) for closing in self.closings for name in closing.form.names]

    @cached_property
    def constraint_units(self) -> Floats:
        """(m,): the unit of each of these equations: the mechanism's length, or 1 for angles and sines."""
        lengths = [flag for closing in self.closings for flag in closing.form.lengths]
        return np.where(np.array(lengths, dtype=bool), self.size, 1.0)

    def without_units(self, g: Floats) -> Floats:
        """G (..., m, nv) of these equations and rates, with lengths and shifts as parts of the mechanism's length."""
        return np.asarray(g * self.rate_units / self.constraint_units[:, None])

    @property
    def driven(self) -> NDArray[np.bool_]:
        """(m,): which of the constraint equations are drivers'."""
        return np.concatenate([np.full(c.form.size, c.group == "driver") for c in self.closings])

    @cached_property
    def rotors(self) -> list[int]:
        """The joints that close loops and have an armature: their rotors turn by what bodies do to each other."""
        return [j for j in self.topology.loops if self.description.armature[j]]

    @cached_property
    def masses(self) -> CentralLayout:
        """The bodies as free masses and all joints as constraints."""
        # For weight: only long mechanisms with loops or force elements have this form.
        from linkwright.constraints.mass_layout import CentralLayout
        from linkwright.constraints.masses import CentralEquations

        return CentralLayout(CentralEquations(self.tree))

    @cached_property
    def assembled_masses(self) -> CentralLayout:
        """The same, with constraints that do not touch each other eliminated side by side."""
        from linkwright.constraints.mass_layout import CentralLayout  # for weight

        return CentralLayout(self.masses.equations, in_rounds=True)

    # -- inertias ---------------------------------------------------------------------------------------
    @cached_property
    def regular(self) -> NDArray[np.bool_]:
        """Which bodies have a mass and an inertia about every axis."""
        d = self.description
        xx, yy, zz, xy, xz, yz = d.inertia.T
        volume = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
        return np.asarray((d.mass > 0.0) & (volume > 1e-12 * (xx + yy + zz) ** 3))

    @cached_property
    def determined(self) -> bool:
        """Whether forces determine the acceleration of every joint of the spanning tree."""
        from linkwright.dynamics.inertia_checks import undetermined  # for weight: most bodies are regular

        return bool(self.regular.all()) or undetermined(self.tree) is None

    def singular(self, position: int) -> ModelError:
        """The error for a joint whose acceleration no force determines."""
        d, t = self.description, self.topology
        joint, body = d.joint_names[int(t.joint[position])], d.body_names[int(t.body[position])]
        carried = np.abs(d.mass[t.body]) + np.abs(d.inertia[t.body]).sum(axis=1)
        for i in range(self.tree.n - 1, position, -1):
            if t.parent[i] >= 0:
                carried[t.parent[i]] += carried[i]
        weightless = carried[position] == 0
        what, give = ("carries no mass", "a mass") if weightless else ("has no inertia along its freedom", "an inertia")
        return ModelError(
            f"joint {joint!r} {what}, so forces do not determine its acceleration; "
            f"give {body!r} {give}, give the joint an armature, or lock it",
            element=joint,
        )
