"""The counterweight on a turning body that best balances a motion, by least squares: its inertia force against shaking,
or its weight against gravity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from linkwright.analysis.cycle_curve import time_weights
from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import joint_sides
from linkwright.errors import ModelError
from linkwright.model.description import GROUND
from linkwright.model.units import Units
from linkwright.results.solution import Solution
from linkwright.results.solution_plots import unit_text
from linkwright.spatial.algebra import cross
from linkwright.spatial.rotation import euler_parameters_matrix

Against = Literal["shaking", "gravity"]


@dataclass(frozen=True, eq=False)
class Counterweight:
    """A mass on `body`, in the plane through the axis of `joint`: `moment` (kg m) is mass times radius, `direction`
    (3,) the unit vector from the axis in the body's axes, `foot` (3,) the point of the axis there (m).

    `before` and `after`: of the shaking force (N) the root mean square, of the potential energy (J) the range. `units`
    are those of the model, in which the text is.
    """

    joint: str
    body: str
    against: Against
    moment: float
    direction: Floats
    foot: Floats
    before: float
    after: float
    units: Units

    def mass(self, radius: float) -> float:
        """The mass (kg) at a `radius` (m) from the axis."""
        if not radius > 0.0:
            raise ModelError(f"the radius of a counterweight is {radius!r}; give a length (m) greater than zero")
        return self.moment / radius

    def position(self, radius: float) -> Floats:
        """(3,): the place (m) at a `radius` (m) from the axis, in the body's axes."""
        return np.asarray(self.foot + radius * self.direction)

    def __str__(self) -> str:
        what, unit = ("shaking force (rms)", "N") if self.against == "shaking" else ("potential energy (range)", "J")
        direction = ", ".join(f"{0.0 if abs(x) < 1e-12 else x:.4g}" for x in self.direction)
        product, size = self.units.shown("kg*m"), self.units.shown(unit)
        moment = f"{product.of(self.moment):.5g} {unit_text(product.text)}"
        text = f"counterweight on {self.body!r}: {moment} along ({direction}) from the axis of {self.joint!r}; "
        return f"{text}{what} {size.of(self.before):.4g} → {size.of(self.after):.4g} {size.text}"


def counterweight(
    solution: Solution, joint: str, against: Against, shaking_force: Floats, energy: Floats
) -> Counterweight:
    """The counterweight on the body that a joint to ground turns, for a shaking force (T, 3) and a potential energy
    (T,) without it.

    A mass m at the place x of the body adds the shaking force −m ẍ and the energy −m g·x; with u = m (x − axis) across
    the axis both are linear in u.
    """
    check_names("value of against", [against], ("shaking", "gravity"))
    d = solution.description
    j = d.joint_names.position("joint", joint)
    sides = joint_sides(d, j)
    if d.kind_of(j).name != "revolute" or GROUND not in (sides[0][0], sides[1][0]):
        text = f"joint {joint!r} is no hinge between ground and a body; a counterweight turns about such a hinge"
        raise ModelError(text, element=joint)
    body, axes, foot = sides[0] if sides[1][0] == GROUND else sides[1]
    e, w, b = (solution.arrays[name][:, body].T for name in ("orientation", "angular_velocity", "angular_acceleration"))
    across = np.einsum("ij...,jk->ik...", euler_parameters_matrix(e), axes[:, :2])  # (3, 2, T)
    part = np.sqrt(time_weights(solution.time))
    if against == "shaking":
        added = np.stack([-(cross(b, arm) + cross(w, cross(w, arm))).T for arm in np.moveaxis(across, 1, 0)], axis=-1)
        matrix, wanted = (part[:, None, None] * added).reshape(-1, 2), (part[:, None] * shaking_force).reshape(-1)
    else:
        heights = np.einsum("i,ikt->tk", -d.gravity, across)
        matrix, wanted = (part[:, None] * (heights - part**2 @ heights)), part * (energy - part**2 @ energy)
    u = np.linalg.lstsq(matrix, -wanted, rcond=1e-12)[0]

    def size(x: Floats) -> float:
        return float(np.linalg.norm(x) if against == "shaking" else np.ptp(x / part))

    moment = float(np.linalg.norm(u))
    direction = axes[:, :2] @ (u / moment if moment else np.array([1.0, 0.0]))
    before, after = size(wanted), size(wanted + matrix @ u)
    return Counterweight(joint, d.body_names[body], against, moment, direction, foot, before, after, d.units)
