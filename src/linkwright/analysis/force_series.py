"""The forces of a motion, as named series: those of drivers, force elements, rods, point constraints, gears,
couplings, joints.

A joint's force has its own drive in it: forces on its own coordinates, those given from outside, and drivers of them.
Gears are not in it: each exerts its force on its follower's coordinate, and −ratio times that on its leader's. Nor are
couplings: each exerts its force times ∂Φ/∂x on every coordinate x.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwright.analysis.curve_series import contact_forces
from linkwright.base.arrays import Floats
from linkwright.dynamics.functions import Request
from linkwright.dynamics.joint_reactions import exerted
from linkwright.dynamics.reaction_friction import ReactionFrictions
from linkwright.errors import LinkwrightError
from linkwright.mechanism import Mechanism
from linkwright.model.coupling_relation import couplings, relation_of
from linkwright.model.curve_elements import PointOnCurve, parts_of_curves
from linkwright.model.elements import Bushing, GearPair, JointForce
from linkwright.model.gear_pairs import tooth_forces
from linkwright.model.quantities import drives_angle, turns
from linkwright.model.topology import reacting_bodies
from linkwright.results.solution import Solution
from linkwright.results.status import Series
from linkwright.simulation.termination import force_values
from linkwright.spatial.rotation import euler_parameters_matrix

MOST = 50  # joints whose reactions are kept
MOST_POINTS = 20_001  # time points up to which they are, where loops make each take a tenth of a millisecond
_AXES = ("x", "y", "z")
_LOADS = ("fx", "fy", "fz", "mx", "my", "mz")  # of a bushing


def forces(mech: Mechanism, solution: Solution, tau: Floats) -> tuple[dict[str, Series], list[str]]:
    """Every series of a motion under forces tau (T, nv) from outside, by its name; and what is left out, and why."""
    if not len(solution):
        return {}, []
    series_by_name, notes = _elements(mech, solution), list[str]()
    if mech.friction is not None:
        series_by_name |= _frictions(mech, mech.friction, solution, tau)
    joints = len(mech.joints) <= MOST and (not mech.closed or len(solution) <= MOST_POINTS)
    if not joints:
        notes.append("forces of joints are left out of so many points or joints; mech.reactions gives them")
        if mech.tree.couplings:
            notes.append("forces of gears are left out with those of their joints")
    try:
        for name, series in _exerted(mech, solution, tau, joints):
            if name in series_by_name:
                notes.append(f"one {name!r} is left out: gears, drivers and forces share this name; rename one of them")
            else:
                series_by_name[name] = series
    except (LinkwrightError, np.linalg.LinAlgError) as error:
        what = "joints, rods, point constraints and drivers" if mech.closed else "joints"
        notes.append(f"forces of {what} are left out: {error}")
    return series_by_name, notes


def _exerted(mech: Mechanism, solution: Solution, tau: Floats, joints: bool) -> list[tuple[str, Series]]:
    """The forces of constraints: where they repeat each other, all of one solution."""
    if not mech.closed:
        if not joints or not mech.nv:
            return []
        wrenches = mech.reactions(solution.q, solution.v, tau, t=solution.time)
        return _constraints(mech, solution, _gears(mech, solution, tau)) + _reactions(mech, solution, wrenches)
    if not joints:
        lam = mech.constraint_forces(solution.q, solution.v, tau, t=solution.time)
        rows: dict[tuple[str, str], list[Floats]] = {}
        for k, (constraint, _) in enumerate(mech.programs.constraint_rows):
            rows.setdefault((constraint.group, constraint.name), []).append(lam[:, k])
        return _constraints(mech, solution, {key: np.stack(columns, axis=1) for key, columns in rows.items()})
    # The motion's own accelerations: at rest there are none, whatever the drivers' laws do in time.
    wrenches, multipliers = exerted(mech, solution.q, solution.v, solution.a, tau, solution.time)
    return _constraints(mech, solution, multipliers) + _reactions(mech, solution, wrenches)


def _gears(mech: Mechanism, solution: Solution, tau: Floats) -> dict[tuple[str, str], Floats]:
    """The forces of a tree's gears on their followers' coordinates."""
    if not mech.tree.couplings:
        return {}
    d = mech.description
    values = mech.kernels.evaluate(Request("gear_forces"), solution.q, solution.v, tau, t=solution.time)
    names = (m.name or d.joint_names[m.follower] for m in d.mimics)
    return {("gear", name): values[:, [k]] for k, name in enumerate(names)}


def _elements(mech: Mechanism, solution: Solution) -> dict[str, Series]:
    """The values of force laws."""
    d = mech.description
    series: dict[str, Series] = {}
    for e, values in force_values(mech, solution.q, solution.v, solution.time):
        if isinstance(e, Bushing):
            axis = next(x for x in _LOADS if f"{e.name}.{x}" not in series)
            series[f"{e.name}.{axis}"] = Series(values, "N" if axis[0] == "f" else "N m")
            continue
        angular = isinstance(e, JointForce) and turns(d.kind_of(d.joint_names.position("joint", e.joint)).name, e.index)
        word, unit = ("torque", "N m") if angular else ("force", "N")
        series[f"{e.name}.{word}"] = Series(values, unit)
    return series


def _frictions(mech: Mechanism, friction: ReactionFrictions, solution: Solution, tau: Floats) -> dict[str, Series]:
    """The forces of frictions that follow reactions on the coordinates of their joints."""
    d = mech.description
    q, v, a, t = solution.q, solution.v, solution.a, solution.time
    if mech.closed:
        x = friction.along(lambda one: exerted(one, q, v, a, tau, t)[0], q, v, t)
    else:
        x = friction.forces(q, v, tau, t)
    series = {}
    for k, e in enumerate(friction.frictions):
        angular = d.kind_of(d.joint_names.position("joint", e.joint)).name == "revolute"
        word, unit = ("torque", "N m") if angular else ("force", "N")
        series[f"{e.name}.{word}"] = Series(x[:, k], unit)
    return series


def _constraints(
    mech: Mechanism, solution: Solution, multipliers: Mapping[tuple[str, str], Floats]
) -> list[tuple[str, Series]]:
    """The forces of drivers, rods, point constraints, gears and couplings: along what each constrains, positive to make
    it larger; those of curves are along the normal.

    A gear constrains the coordinate of its follower; a coupling its Φ, which for a follower is that coordinate. The
    force of a gear pair is that along the circumference of its first gear; of a worm, along that of its wheel.
    """
    d = mech.description
    angular = {("driver", x.name): drives_angle(mech.description, x) for x in d.drivers}
    for m in d.mimics:
        angular["gear", m.name or d.joint_names[m.follower]] = turns(d.kind_of(m.follower).name, 0)
    for coupling in couplings(d):
        angular["coupling", coupling.name] = not relation_of(d, coupling)[0].is_length
    of_points = {name: columns for (group, name), columns in multipliers.items() if group == "point constraint"}
    forces: list[tuple[str, Series]] = list(contact_forces(solution, of_points))
    of_curves = {x.name for x in d.point_constraints if isinstance(x, PointOnCurve)} | {x.rolling for x in d.contacts}
    pairs = {x.name: x for x in d.point_constraints if isinstance(x, GearPair)}
    for (group, name), columns in multipliers.items():
        if group not in ("driver", "rod", "point constraint", "gear pair", "gear", "coupling"):
            continue
        if group == "point constraint" and name in of_curves:
            continue
        size = columns[:, 0] if columns.shape[1] == 1 else np.linalg.norm(columns, axis=1)
        word, unit = ("torque", "N m") if angular.get((group, name)) else ("force", "N")
        forces.append((f"{name}.{word}", Series(size, unit)))
        if group == "gear pair":
            forces += [(f"{name}.{part}", Series(force, "N")) for part, force in tooth_forces(pairs[name], size)]
    return forces


def _reactions(mech: Mechanism, solution: Solution, wrenches: Floats) -> list[tuple[str, Series]]:
    """Force and moment of each joint on the body of `reacting_bodies`, at the joint, in ground's axes."""
    d = mech.description
    massless = parts_of_curves(d.point_constraints)
    forces: list[tuple[str, Series]] = []
    for i, (joint, body) in enumerate(reacting_bodies(d, mech.tree.topology)):
        if d.kind_of(joint).nv == 6 or d.joint_names[joint] in massless:
            continue
        at = d.pj[joint] if d.child[joint] == body else d.pi[joint]
        force, moment = wrenches[:, i, :3], wrenches[:, i, 3:]
        moment = moment - np.cross(at, force)
        r = euler_parameters_matrix(solution.orientation(d.body_names[body]).T)
        for letter, vector, unit in (("f", force, "N"), ("m", moment, "N m")):
            turned = np.einsum("ij...,...j->...i", r, vector)
            for axis, column in zip(_AXES, turned.T, strict=True):
                forces.append((f"{d.joint_names[joint]}.{letter}{axis}", Series(column, unit)))
    return forces
