"""The bodies as masses: frames at their centres of mass along their principal axes, and their inertias there.

In such a frame, with a twist [ẋ; ω] whose ω is in the body's own axes, an inertia is six numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints import constraint_forms as forms
from linkwright.constraints.constraint_equations import (
    Constraint,
    Equations,
    Source,
    by_follower,
    by_form,
    closing_constraints,
)
from linkwright.constraints.constraint_forms import Form
from linkwright.constraints.coupling_forms import form as coupling_form
from linkwright.constraints.form_programs import PLANAR, SPATIAL, effective_rows, facing, plane
from linkwright.errors import ModelError
from linkwright.model.coupling_relation import Relation, counted_by_relation
from linkwright.model.description import GROUND, Description
from linkwright.model.placements import full_inertia, snapped
from linkwright.model.tree import Tree

#: A moment of inertia below this part of the body's largest counts as none.
NONE = 1e-12
#: What stands for a missing inertia, as a part of the mechanism's: small enough that taking it away again converges
#: by so many digits a round, large enough that it does not cost too many.
STAND_IN = 1e-5


class Masses:
    """The central frames of all bodies, and the inertias in them."""

    def __init__(self, d: Description, size: float, normals: tuple[Floats, Floats] | None) -> None:
        """`normals` are those of the plane in which all bodies move, in ground and in every body: then they are z."""
        full = full_inertia(d.inertia)
        self.com, self.mass = d.com, d.mass
        self.world = np.eye(3) if normals is None else facing(normals[0])
        self.axes = np.tile(np.eye(3), (d.nb, 1, 1))
        self.moments = d.inertia[:, :3].copy()
        if normals is not None:
            self.axes[:] = [facing(n) for n in normals[1]]
            self.moments[:] = np.einsum("ni,nij,nj->n", normals[1], full, normals[1])[:, None]
        else:
            for k in np.flatnonzero(np.any(d.inertia[:, 3:] != 0.0, axis=1)):
                self.moments[k], axes = np.linalg.eigh(full[k])
                self.axes[k] = snapped(axes * np.sign(np.linalg.det(axes)))
        self.inertia = np.concatenate([d.mass[:, None], self.moments], axis=1)
        heavy = d.mass[d.mass > 0.0]
        typical = float(heavy.mean()) if len(heavy) else 1.0
        mass, moments = d.mass[:, None], self.moments
        largest = np.max(moments, axis=1, keepdims=True, initial=0.0)
        point = largest <= NONE * mass * size**2
        reference = np.where(point, np.where(mass > 0.0, mass, typical) * size**2, largest)
        instead = np.concatenate([np.full((d.nb, 3), typical), np.repeat(reference, 3, axis=1)], axis=1)
        inertias = np.concatenate([np.repeat(mass, 3, axis=1), moments], axis=1)
        missing = inertias <= NONE * instead * np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
        chosen = list((SPATIAL if normals is None else PLANAR).components)
        self.added = np.where(missing, STAND_IN * instead, 0.0)[:, chosen]  # what the inverse has too much
        self.inverse = 1.0 / (np.where(missing, 0.0, inertias)[:, chosen] + self.added)

    def place(self, body: int, r: Floats, p: Floats) -> tuple[Floats, Floats]:
        """A frame given in a body's axes, in its central frame."""
        if body == GROUND:
            return snapped(self.world.T @ r), clean(self.world.T @ p, p)
        axes = self.axes[body]
        return snapped(axes.T @ r), clean(axes.T @ (p - self.com[body]), p, self.com[body])


def clean(x: Floats, *parts: Floats) -> Floats:
    """A difference of these vectors, without what rounding left of it."""
    scale = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    return np.where(np.abs(x) <= 1e-14 * scale, 0.0, x) + 0.0


class CentralEquations(Equations):
    """All constraints of a mechanism, its tree's joints and armatures included, in the bodies' central frames.

    Where all bodies move in a plane, there are only the equations that can change there.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.description)
        self.tree, original = tree, self.constraints
        rotors = list(self._rotors())
        order = [id(c) for c in closing_constraints(self, tree.topology)]
        every = (*original, *(c for c, _ in rotors))
        for normals in (plane(tree), None):
            self.space = SPATIAL if normals is None else PLANAR
            self.masses = Masses(tree.description, self.size, normals)
            central = tuple(self._central(c) for c in every)
            rows = self._effective(central) if normals is not None else [tuple(range(c.form.size)) for c in central]
            if rows is not None:
                break
        assert rows is not None
        chosen = [k for k, some in enumerate(rows) if some]
        number = {k: n for n, k in enumerate(chosen)}
        self.constraints = tuple(replace(central[k], form=forms.some(central[k].form, rows[k])) for k in chosen)
        #: The constraints that armatures are here, each of which gives way by this part, 1/armature, of its force.
        self.compliance = {number[len(original) + k]: 1.0 / armature for k, (_, armature) in enumerate(rotors)}
        at = {id(c): k for k, c in enumerate(original)}
        #: The constraints besides the tree's, in the order of their multipliers, with all their equations; and for each
        #: of these its number here, or −1.
        self.loop_constraints = [central[at[c]] for c in order]
        self.loop_rows = [
            int(self.first[number[at[c]]]) + rows[at[c]].index(row) if row in rows[at[c]] else -1
            for c in order
            for row in range(central[at[c]].form.size)
        ]

    def _effective(self, constraints: Sequence[Constraint]) -> list[tuple[int, ...]] | None:
        """For every constraint, which of its equations a motion in the plane can change; None if it must not be asked.

        The others are about directions across the plane; in numbers, since frames may stand askew in it.
        """
        turned = bool(np.any(self.masses.world != np.eye(3)))
        if turned and any(c.form.key.startswith("absolute") for c in constraints):
            return None
        rows: list[tuple[int, ...]] = [()] * len(constraints)
        for (form, moving), members in by_form(constraints).items():
            records = np.array([constraints[k].record for k in members])
            for k, flags in zip(members, effective_rows(form, moving, self.space, records), strict=True):
                rows[k] = tuple(np.flatnonzero(flags).tolist())
        needed = ("driver", "coupling", "rotor")
        return None if any(c.group in needed and not some for c, some in zip(constraints, rows, strict=True)) else rows

    def _central(self, c: Constraint) -> Constraint:
        record = c.record.copy()
        for k, body in enumerate(c.bodies):
            r, p = record[12 * k : 12 * k + 9].reshape(3, 3), record[12 * k + 9 : 12 * k + 12]
            r, p = self.masses.place(body, r, p)
            record[12 * k : 12 * k + 12] = np.concatenate([r.reshape(-1), p])
        return replace(c, record=record, form=self._form(c))

    def _form(self, c: Constraint) -> Form:
        """The form, or one that counts no turns where the tree's coordinates do not tell them."""
        if c.form.key == "screw joint":
            return forms.SCREW_BY_SHIFT
        if c.source.relation is not None:
            return self._coupling_form(c, c.source.relation)
        if c.group != "gear" or not set(self.tree.topology.loops).issuperset(c.source.joints):
            return c.form
        follower, leader = c.source.joints
        first = by_follower(self.description, (follower, leader), c.source.gear[0])
        kinds = (self.description.kind_of(j).name for j in (follower, leader))
        return forms.gear_near(*kinds, first)

    def _coupling_form(self, c: Constraint, relation: Relation) -> Form:
        """That of a coupling, whose relation tells the turns of angles that the tree's coordinates do not."""
        loops, joints = self.tree.topology.loops, c.source.joints
        loose = tuple(
            k for k, (at, _) in enumerate(relation.coordinates) if relation.turning[k] and joints[at] in loops
        )
        parameters = c.record[12 * c.form.sides :].tolist()
        by_relation = counted_by_relation(self.description, relation, joints, parameters, loops, c.name)
        return coupling_form(relation, loose, by_relation) if loose else c.form

    def _rotors(self) -> Iterator[tuple[Constraint, float]]:
        d = self.description
        for j in np.flatnonzero(d.armature != 0.0).tolist():
            kind, name = d.kind_of(j), d.joint_names[j]
            if kind.nv and not kind.paired:
                text = f"joint {name!r} is {kind.name} and has an armature, which has no rolled form"
                raise ModelError(f"{text}; add it to the inertia of its body, or ask for form='unrolled'", element=name)
            for k in range(kind.nv):
                form = forms.coordinate(kind.name, k)
                yield self._constraint(name, "rotor", form, Source((j,))), float(d.armature[j])
