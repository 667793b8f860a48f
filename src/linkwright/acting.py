"""What acts in a motion, as named series: drivers' forces, those of force elements, ties and joints.

Joint forces that were given from outside (`tau`) are none of the model's and count as zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import LinkwrightError
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.elements import JointForce, PointForce
from linkwright.mechanism.quantities import turns
from linkwright.programs import Request
from linkwright.results.series import Series
from linkwright.spatial.rotation import euler_parameters_matrix

if TYPE_CHECKING:
    from linkwright.mechanism.elements import Driver
    from linkwright.model import Mechanism
    from linkwright.results.solution import Solution

Floats = NDArray[np.float64]
MOST = 50  # joints whose reactions are kept
MOST_POINTS = 20_001  # time points up to which they are, where loops make each take a tenth of a millisecond
_AXES = ("x", "y", "z")


def forces(mech: Mechanism, solution: Solution) -> dict[str, Series]:
    """Every series of a motion, by its name."""
    if not len(solution):
        return {}
    found = {**_elements(mech, solution)}
    if mech.closed:
        found |= _constraints(mech, solution)
    if has_reactions(mech, solution) and mech.nv:
        found |= _reactions(mech, solution)
    return found


def has_reactions(mech: Mechanism, solution: Solution) -> bool:
    """Whether the forces of joints are among the series."""
    return len(mech.joints) <= MOST and (not mech.closed or len(solution) <= MOST_POINTS)


def _elements(mech: Mechanism, solution: Solution) -> dict[str, Series]:
    """The values of force laws."""
    d = mech.description
    scalar = [e for e in d.elements if isinstance(e, JointForce | PointForce)]
    if not scalar:
        return {}
    values = mech._array(Request("force_values"), solution.q, solution.v, t=solution.time)
    found = {}
    for k, e in enumerate(scalar):
        angular = isinstance(e, JointForce) and turns(d.kind_of(d.joint_names.position("joint", e.joint)).name, e.index)
        word, unit = ("torque", "N m") if angular else ("force", "N")
        found[f"{e.name}.{word}"] = Series(values[:, k], unit)
    return found


def _constraints(mech: Mechanism, solution: Solution) -> dict[str, Series]:
    """The forces of drivers and ties: what each exerts along what it holds, positive to make it larger."""
    d = mech.description
    try:
        lam = mech.constraint_forces(solution.q, solution.v, np.zeros(mech.nv), t=solution.time)
    except LinkwrightError:  # no masses: a motion has no forces then
        return {}
    drivers = {x.name: x for x in d.drivers}
    found: dict[str, Series] = {}
    parts: dict[str, list[Floats]] = {}
    for k, (closing, _) in enumerate(mech._maker.constraint_rows):
        if closing.group == "driver":
            word, unit = ("torque", "N m") if _drives_angle(mech, drivers[closing.name]) else ("force", "N")
            found[f"{closing.name}.{word}"] = Series(lam[:, k], unit)
        elif closing.group == "tie":
            parts.setdefault(closing.name, []).append(lam[:, k])
    for name, columns in parts.items():
        size = columns[0] if len(columns) == 1 else np.linalg.norm(columns, axis=0)
        found[f"{name}.force"] = Series(size, "N")
    return found


def _drives_angle(mech: Mechanism, driver: Driver) -> bool:
    d = mech.description
    if driver.kind == "joint":
        return turns(d.kind_of(d.joint_names.position("joint", driver.target)).name, driver.index)
    return driver.kind == "angle"


def _reactions(mech: Mechanism, solution: Solution) -> dict[str, Series]:
    """Force and moment of each joint on the body that it carries, of a loop's on its child, at the joint, in ground's
    axes."""
    d, t = mech.description, mech.tree.topology
    try:
        wrenches = mech.reactions(solution.q, solution.v, np.zeros(mech.nv), t=solution.time)
    except LinkwrightError:
        return {}
    found: dict[str, Series] = {}
    carried = [*zip(t.joint.tolist(), t.body.tolist(), strict=True), *((j, int(d.child[j])) for j in t.loops)]
    for i, (joint, body) in enumerate(carried):
        if d.kind_of(joint).nv == 6 or body == GROUND:
            continue
        at = d.pj[joint] if d.child[joint] == body else d.pi[joint]
        force, moment = wrenches[:, i, :3], wrenches[:, i, 3:]
        moment = moment - np.cross(at, force)
        r = euler_parameters_matrix(solution.orientation(d.body_names[body]).T)
        for letter, vector, unit in (("f", force, "N"), ("m", moment, "N m")):
            turned = np.einsum("ij...,...j->...i", r, vector)
            for axis, column in zip(_AXES, turned.T, strict=True):
                found[f"{d.joint_names[joint]}.{letter}{axis}"] = Series(column, unit)
    return found
