"""A frame's task: which of its six directions are controlled, its error there, and its Jacobian with its condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Target
from linkwright.control.loop.posture import ModelState
from linkwright.control.loop.turns import turn_matrix, turn_vector
from linkwright.errors import ControlError, ModelError, NameNotFound

AXES = ("x", "y", "z", "rx", "ry", "rz")
_WORDS = ("along x", "along y", "along z", "about x", "about y", "about z")


class Task:
    """The controlled directions of a model's frame, in ground's axes: x, y, z and turns about them, rx, ry, rz."""

    def __init__(self, state: ModelState, axes: Sequence[str] | str | None) -> None:
        self.state = state
        if axes is None:
            if state.n < 6:
                text = f"{state.n} joints cannot move {state.frame!r} in six directions; name those that are controlled"
                raise ModelError(f"{text}, such as axes=('x', 'y')", element=state.frame)
            axes = AXES
        names = list(axes)
        for name in names:
            if name not in AXES:
                raise NameNotFound("axis", str(name), list(AXES))
        if len(set(names)) < len(names) or not names:
            raise ModelError(f"axes={axes!r}: name each direction once")
        if len(names) > state.n:
            text = f"{state.n} joints cannot move {state.frame!r} in the {len(names)} directions {tuple(names)}"
            raise ModelError(f"{text}; control fewer", element=state.frame)
        self.names, self.rows = tuple(names), np.array([AXES.index(name) for name in names])
        self.n = len(names)
        self.turns = bool((self.rows >= 3).any())
        #: Turns count by how far they move a point at the mechanism's size.
        self.scale = np.where(self.rows < 3, 1.0, state.mech.programs.size)
        #: And shifts of joints as parts of it.
        self.units = state.mech.programs.rate_units[state.v_places]

    def error(self, target: Target) -> Floats:
        """What is missing to the target: metres, and radians about ground's axes."""
        pose = self.state.pose
        e = np.zeros(6)
        e[:3] = target.x[:3] - pose[:3, 3]
        if self.turns:
            e[3:] = turn_vector(turn_matrix(target.x[3:]) @ pose[:3, :3].T)
        return np.asarray(e[self.rows])

    def rate_error(self, target: Target) -> Floats:
        """What is missing to the target's twist."""
        return np.asarray((target.xd - self.state.twist)[self.rows])

    @property
    def jacobian(self) -> Floats:
        """(m, n): S⁻¹ of the controlled directions."""
        return np.asarray(self.state.jacobian[self.rows])

    def factors(self) -> tuple[Floats, Floats, Floats]:
        """Singular values and vectors of the scaled Jacobian, of rates in their units: u (m, m), s (m), vt (m, n)."""
        u, s, vt = np.linalg.svd(self.scale[:, None] * self.jacobian * self.units, full_matrices=False)
        return u, s, vt

    def refuse(self, u: Floats, s: Floats, vt: Floats, limit: float) -> None:
        """Refuse a singular pose by its joints and direction."""
        if s[-1] * limit > s[0]:
            return
        state = self.state
        way, part = u[:, -1] / self.scale, np.abs(vt[-1])
        words = _WORDS[self.rows[int(np.argmax(np.abs(way)))]]
        names = [name for name, x in zip(state.joints, part, strict=True) if x > 0.3 * part.max()]
        condition = s[0] / s[-1] if s[-1] > 0.0 else np.inf
        text = (
            f"the pose is singular (condition {condition:.3g}, limit {limit:.3g}): "
            f"the joints {', '.join(map(repr, names[:4]))} cannot move {state.frame!r} {words}"
        )
        advice = "keep the path away from there, or control fewer directions"
        raise ControlError(f"{text}; {advice}", reason="singular pose", joints=names)
