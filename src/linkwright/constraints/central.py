"""The bodies as masses: frames at their centres of mass along their principal axes, and their inertias there.

In such a frame, with a twist [ẋ; ω] whose ω is in the body's own axes, an inertia is six numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints import forms
from linkwright.constraints.closing import closing_constraints
from linkwright.constraints.equations import Constraint, Equations
from linkwright.constraints.forms import Form
from linkwright.errors import ModelError
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import Mimic
from linkwright.mechanism.frames import full_inertia, snapped
from linkwright.mechanism.tree import Tree

Floats = NDArray[np.float64]
#: A moment of inertia below this part of the body's largest counts as none.
NONE = 1e-12
#: What stands for a missing inertia, as a part of the mechanism's: small enough that taking it away again converges
#: by so many digits a round, large enough that it does not cost too many.
STAND_IN = 1e-5


class Masses:
    """The central frames of all bodies, and the inertias in them."""

    def __init__(self, d: Description, size: float) -> None:
        full = full_inertia(d.inertia)
        self.com, self.mass = d.com, d.mass
        self.axes = np.tile(np.eye(3), (d.nb, 1, 1))
        self.moments = d.inertia[:, :3].copy()
        for k in np.flatnonzero(np.any(d.inertia[:, 3:] != 0.0, axis=1)):
            self.moments[k], axes = np.linalg.eigh(full[k])
            self.axes[k] = snapped(axes * np.sign(np.linalg.det(axes)))
        heavy = d.mass[d.mass > 0.0]
        typical = float(heavy.mean()) if len(heavy) else 1.0
        inertias = np.concatenate([np.repeat(d.mass[:, None], 3, axis=1), self.moments], axis=1)
        scale = np.maximum(self.moments.max(axis=1, initial=0.0), NONE * d.mass * size**2)
        missing = np.zeros((d.nb, 6), bool)
        missing[:, :3] = d.mass[:, None] <= 0.0
        missing[:, 3:] = self.moments <= NONE * scale[:, None]
        stand_in = np.where(scale > 0.0, scale, np.where(d.mass > 0.0, d.mass, typical) * size**2)
        instead = np.concatenate([np.full((d.nb, 3), typical), np.repeat(stand_in[:, None], 3, axis=1)], axis=1)
        self.added = np.where(missing, STAND_IN * instead, 0.0)  # what the inverse has too much
        self.inverse = 1.0 / (np.where(missing, 0.0, inertias) + self.added)
        self.inertia = np.concatenate([d.mass[:, None], self.moments], axis=1)

    def place(self, body: int, r: Floats, p: Floats) -> tuple[Floats, Floats]:
        """A frame given in a body's axes, in its central frame."""
        if body == GROUND:
            return r, p
        axes = self.axes[body]
        return snapped(axes.T @ r), clean(axes.T @ (p - self.com[body]), p, self.com[body])


def clean(x: Floats, *parts: Floats) -> Floats:
    """A difference of these vectors, without what rounding left of it."""
    scale = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    return np.where(np.abs(x) <= 1e-14 * scale, 0.0, x) + 0.0


@dataclass(frozen=True, eq=False)
class Rotor:
    """What an armature is here: a constraint that gives way by 1/armature of its force."""

    constraint: int
    armature: float


class CentralEquations(Equations):
    """All constraints of a mechanism, its tree's joints and armatures included, in the bodies' central frames."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.description)
        self.tree, d = tree, tree.description
        self.masses = Masses(d, self.size)
        given = self.constraints
        number = {id(c): k for k, c in enumerate(given)}
        #: The constraints besides the tree's, in the order of their multipliers.
        self.kept = [number[id(c)] for c in closing_constraints(self, tree.topology)]
        rotors = list(self._rotors())
        self.rotors = tuple(Rotor(len(given) + k, armature) for k, (_, armature) in enumerate(rotors))
        self.constraints = tuple(self._central(c) for c in (*given, *(c for c, _ in rotors)))

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
        m = self.couplings.get(c.name) if c.group == "gear" else None
        if m is None or not {m.follower, m.leader} <= set(self.tree.topology.loops):
            return c.form
        kinds = [self.description.kind_of(j) for j in (m.follower, m.leader)]
        by_follower = bool(kinds[1].angles) and (not kinds[0].angles or abs(m.ratio) < 1.0)
        return forms.gear_near(kinds[0].name, kinds[1].name, by_follower)

    @cached_property
    def couplings(self) -> dict[str, Mimic]:
        """The mimics by the names of their constraints."""
        return {m.name or self.description.joint_names[m.follower]: m for m in self.description.mimics}

    def _rotors(self) -> Iterator[tuple[Constraint, float]]:
        d = self.description
        for j in np.flatnonzero(d.armature != 0.0).tolist():
            kind, name = d.kind_of(j), d.joint_names[j]
            if kind.nv and not kind.paired:
                text = f"joint {name!r} is {kind.name} and has an armature, which has no rolled form"
                raise ModelError(f"{text}; add it to the inertia of its body, or ask for form='unrolled'", element=name)
            for k in range(kind.nv):
                form = forms.coordinate(kind.name, k)
                yield Constraint(name, "rotor", form, self._joined(j), self._of(j, [])), float(d.armature[j])

    def rows(self, constraints: list[int]) -> list[int]:
        """The numbers of these constraints' equations."""
        return [row for k in constraints for row in range(int(self.first[k]), int(self.first[k + 1]))]
