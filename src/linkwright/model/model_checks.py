"""What no mechanism can be, found in whole arrays at once; and whether two descriptions are the same but for
rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Literal
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.model.coupling_checks import check_coupling
from linkwright.model.curve_elements import PointOnCurve
from linkwright.model.description import BODY_ARRAYS, GROUND, JOINT_ARRAYS, LIMITS, LOSSES, Description
from linkwright.model.elements import Bushing, Coupling, JointForce, ReactionFriction, laws_of, size_of
from linkwright.model.expression import Expression, Number, parts
from linkwright.model.joint_kinds import KIND_LIST, JointKind
from linkwright.model.placements import full_inertia
from linkwright.model.quantities import Quantity, quantities
from linkwright.model.requested_analysis import System
from linkwright.model.topology import circle

#: How far, as a part of the trace, rounding may take an inertia from what a body can have.
INERTIA_TOLERANCE = 1e-9
ROTATION_TOLERANCE = 1e-9
#: The largest number of a mechanism: a mass times the square of a length is finite still.
LARGEST = 1e100
#: Arrays that are rotations, with what they are of.
ROTATIONS = {
    "ri": "the frame on the parent of joint",
    "rj": "the frame on the child of joint",
    "frame_r": "frame",
    "start_r": "body",
}
NOT_NEGATIVE = ("mass", "armature", *LOSSES, "velocity_limit", "effort_limit")
_FINITE = ("ri", "pi", "rj", "pj", "pitch", "armature", *LOSSES)
_PLACES = ("frame_r", "frame_p", "start_r", "start_p")
_WORDS = {
    "com": "centre of mass",
    "ri": "rotation on the parent",
    "rj": "rotation on the child",
    "pi": "origin on the parent",
    "pj": "origin on the child",
    "velocity_limit": "velocity limit",
    "effort_limit": "effort limit",
    "frame_r": "rotation",
    "frame_p": "origin",
    "start_r": "rotation as drawn",
    "start_p": "place as drawn",
}


def check_numbers(
    description: Description,
    *,
    inertias: Literal["error", "warn"] = "error",
    unphysical: Collection[int] = (),
    before: Description | None = None,
) -> None:
    """Raise for the first fault; with `inertias="warn"`, impossible inertias are one warning instead.

    Those of the bodies `unphysical` are taken as wanted.
    What `before` has already, the same mechanism with other numbers, is taken as wanted: a measured inertia that no
    body can have.
    """
    d = description
    _check_finite(d)
    _check_signs(d)
    _check_inertias(d, inertias, unphysical, before)
    _check_rotations(d)
    _check_joints(d)
    _check_names(d)
    _check_mimics(d)
    _check_laws(d)
    _check_couplings(d)


def _one(array: Floats) -> Floats:
    """A view of one row where `broadcast_to` made all rows the same one, so that it is looked at once."""
    return array[:1] if len(array) and array.strides[0] == 0 else array


def _first(bad: NDArray[np.bool_]) -> int | None:
    """The first row with a fault."""
    if not bad.any():
        return None
    return int(np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))[0])


def _check_finite(d: Description) -> None:
    for name, number in d.parameters.items():
        if not np.isfinite(number):
            raise ModelError(f"parameter {name!r} is {number}; give it a finite number", element=name)
    for array in (*BODY_ARRAYS, *_FINITE, *LIMITS, *_PLACES):
        row = _first(unusable(array, _one(getattr(d, array))))
        if row is not None:
            raise _not_finite(d, array, row)
    if not np.isfinite(d.gravity).all():
        raise ModelError(f"gravity is {d.gravity.tolist()}; give three finite numbers", element="gravity")


def _owner(d: Description, array: str, row: int) -> tuple[str, str]:
    """What a row of an array belongs to, and its name."""
    if array in BODY_ARRAYS or array.startswith("start"):
        return "body", d.body_names[row]
    return ("frame", d.frames.names[row]) if array.startswith("frame") else ("joint", d.joint_names[row])


def _not_finite(d: Description, array: str, row: int) -> ModelError:
    what, name = _owner(d, array, row)
    values = np.asarray(getattr(d, array)[row]).reshape(-1)
    value = values[unusable(array, values)][0]
    remedy = "numbers beyond 1e100 overflow; take larger units" if np.isfinite(value) else "give finite numbers"
    return ModelError(f"{what} {name!r}: its {_WORDS.get(array, array)} has the number {value}; {remedy}", element=name)


def unusable(array: str, numbers: Floats) -> NDArray[np.bool_]:
    """Which numbers of a description's array cannot be computed with: NaN, and but for limits too large ones."""
    return np.isnan(numbers) if array in LIMITS else ~(np.abs(numbers) <= LARGEST)


def _check_signs(d: Description) -> None:
    for array in NOT_NEGATIVE:
        values = getattr(d, array)
        row = _first(_one(values) < 0.0)
        if row is not None:
            what, name = _owner(d, array, row)
            text = f"{what} {name!r} has the negative {_WORDS.get(array, array)} {values[row]:g}; give 0 or more"
            raise ModelError(text, element=name)


def impossible_inertias(inertia: Floats) -> NDArray[np.bool_]:
    """Which rows (xx, yy, zz, xy, xz, yz about the centre of mass) no rigid body can have.

    With second moments Σ = ½ tr(I) 1 − I, a body has the inertia I if and only if Σ ≥ 0: that is the triangle
    inequality of the principal moments, and it makes them non-negative. Equality (a rod, a point) is allowed.
    """
    inertia = np.asarray(inertia)
    if not len(inertia):
        return np.zeros(0, bool)
    largest = np.abs(inertia).max(axis=1)
    scale = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
    inertia = inertia / scale[:, None]  # products of entries are neither too large nor too small for a float
    trace = inertia[:, :3].sum(axis=1)
    # The smallest normal number besides: below it a number has hardly a digit left.
    slack = INERTIA_TOLERANCE * np.abs(inertia[:, :3]).sum(axis=1) + np.finfo(np.float64).tiny / scale
    # Leading minors are cheap over a million rows; eigenvalues are taken of those alone that they leave in doubt.
    s = 0.5 * trace[:, None] - inertia[:, :3]
    doubt = (s <= slack[:, None]).any(axis=1)
    x, y, z = -inertia[:, 3], -inertia[:, 4], -inertia[:, 5]
    a, b, c = s.T
    size = np.maximum(trace, 0.0)
    doubt |= a * b - x * x <= slack * size
    doubt |= a * (b * c - z * z) - x * (x * c - z * y) + y * (x * z - b * y) <= slack * size * size
    bad = np.zeros(len(inertia), bool)
    rows = np.flatnonzero(doubt & inertia.any(axis=1))
    if len(rows):
        full = full_inertia(inertia[rows])
        half = 0.5 * trace[rows]
        bad[rows] = half - np.linalg.eigvalsh(full)[:, 2] < -slack[rows]
    return bad


def _check_inertias(
    d: Description, then: Literal["error", "warn"], unphysical: Collection[int], before: Description | None
) -> None:
    bad = np.array([k for k in np.flatnonzero(impossible_inertias(_one(d.inertia))) if k not in unphysical], np.int64)
    if before is not None:
        bad = bad[(d.inertia[bad] != before.inertia[bad]).any(axis=1)]
    if not len(bad):
        return
    name = d.body_names[int(bad[0])]
    if then == "error":
        a, b, c = np.linalg.eigvalsh(full_inertia(d.inertia[bad[0]]))
        if a < 0.0:
            why = f"the principal moment {a:.6g} is negative"
        else:
            why = f"the principal moments {a:.6g} + {b:.6g} are less than {c:.6g}"
        text = (
            f"no body can have the inertia of {name!r}: {why}; it is about the centre of mass, in body axes "
            "(tables and .mks files let it pass where they say unphysical)"
        )
        raise ModelError(text, element=name)
    names = [d.body_names[int(k)] for k in bad]
    warn(
        f"no body can have the inertia of {listed(names)} (triangle inequality of the principal moments); "
        "taken as given: correct the file if forward dynamics misbehaves",
        LinkwrightWarning,
        stacklevel=4,
    )


def listed(names: list[str], most: int = 8) -> str:
    """Names in quotes in a sentence, the first few of them."""
    return first_few([repr(name) for name in names], most)


def _check_rotations(d: Description) -> None:
    for array, what in ROTATIONS.items():
        if array == "rj" and d.rj is d.ri:
            continue
        off, left = rotation_faults(_one(getattr(d, array)))
        row = _first((off > ROTATION_TOLERANCE) | left)
        if row is not None:
            _, name = _owner(d, array, row)
            how = rotation_fault("is", off[row])
            text = f"the rotation of {what} {name!r} {how}; its columns must be right-handed orthogonal unit vectors"
            raise ModelError(text, element=name)


def rotation_fault(verb: str, off: float) -> str:
    """What is wrong with a rotation that `rotation_faults` has found, by how far it is off."""
    return f"{verb} left-handed" if off <= ROTATION_TOLERANCE else f"{verb} off by {off:.2g}"


def rotation_faults(r: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """How far each matrix is from having orthogonal unit columns, and whether it is left-handed."""
    off, left = np.empty(len(r)), np.empty(len(r), bool)
    step = 8192  # rows whose nine columns stay in the cache
    for at in range(0, len(r), step):
        xx, yx, zx, xy, yy, zy, xz, yz, zz = np.ascontiguousarray(r[at : at + step].reshape(-1, 9).T)
        columns = ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz))
        worst = np.zeros(len(xx))
        for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            product = sum(a * b for a, b in zip(columns[i], columns[j], strict=True))
            np.maximum(worst, np.abs(product - float(i == j)), out=worst)
        off[at : at + step] = worst
        volume = xx * (yy * zz - yz * zy) + xy * (yz * zx - yx * zz) + xz * (yx * zy - yy * zx)
        left[at : at + step] = volume < 0.0
    return off, left


def _check_joints(d: Description) -> None:
    nb = d.nb
    for side, bodies in (("parent", d.parent), ("child", d.child)):
        row = _first((bodies < GROUND) | (bodies >= nb))
        if row is not None:
            name = d.joint_names[row]
            text = f"joint {name!r} has body number {bodies[row]} as its {side}; there are {nb} bodies"
            raise ModelError(text, element=name)
    row = _first(d.parent == d.child)
    if row is not None:
        name = d.joint_names[row]
        body = d.body_name(int(d.parent[row]))
        raise ModelError(f"joint {name!r} joins {body!r} to itself; name two different bodies", element=name)
    row = _first(d.lower > d.upper)
    if row is not None:
        name = d.joint_names[row]
        text = f"joint {name!r} has the lower limit {d.lower[row]:g} above its upper limit {d.upper[row]:g}; swap them"
        raise ModelError(text, element=name)


def _check_names(d: Description) -> None:
    places = [d.ground_name, *d.frames.names, *(() if d.body_names.generated else d.body_names)]
    joints = [] if d.joint_names.generated else list(d.joint_names)
    for names, what in ((places, "body or frame"), (joints, "joint")):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if what != "joint" and twice is None and d.body_names.generated:
            twice = next((name for name in names if d.body_names.find(name) is not None), None)
        if twice is not None:
            raise ModelError(f"two {what} names are {twice!r}; give each its own", element=twice)


def _check_mimics(d: Description) -> None:
    nq = np.array([k.nq for k in KIND_LIST])
    leaders: dict[int, int] = {}
    twice = next((n for n, count in Counter(m.name for m in d.mimics if m.name).items() if count > 1), None)
    if twice is not None:
        raise ModelError(f"two gears are named {twice!r}; give each its own name", element=twice)
    for m in d.mimics:
        name = d.joint_names[m.follower]
        if m.follower == m.leader:
            raise ModelError(f"joint {name!r} follows itself; name another joint as its leader", element=name)
        if m.follower in leaders:
            raise ModelError(f"joint {name!r} follows two joints; keep one", element=name)
        passed = circle(leaders, m.follower, m.leader)
        if passed:
            way = " → ".join(d.joint_names[j] for j in passed)
            raise ModelError(f"joints follow each other in a circle, {way}; remove one of their gears", element=name)
        leaders[m.follower] = m.leader
        for j in (m.follower, m.leader):
            if nq[d.kind[j]] != 1:
                other, kind = d.joint_names[j], d.kind_of(j).name
                text = f"joint {other!r} is {kind} and cannot follow or lead; only joints of one coordinate can"
                raise ModelError(text, element=other)
        if not (np.isfinite(m.ratio) and np.isfinite(m.offset)):
            text = f"joint {name!r} follows with ratio {m.ratio} and offset {m.offset}; give finite numbers"
            raise ModelError(text, element=name)


def _check_laws(d: Description) -> None:
    for element in d.elements:
        for law in laws_of(element):
            _check_finite_law(law, "force", element.name)
        for quantity in quantities(*laws_of(element)):
            _check_quantity(d, quantity, f"the law of force {element.name!r}")
        if isinstance(element, Bushing):
            check_bushing(element, d.parameters)
        if isinstance(element, ReactionFriction):
            kind = d.kind_of(d.joint_names.position("joint", element.joint)).name
            check_reaction_friction(element, kind, d.parameters)
        if isinstance(element, JointForce) and (j := d.joint_names.find(element.joint)) is not None:
            check_joint_law(d.kind_of(j), element)
    for x in d.initial:
        _check_finite_law(x.value, "initial value", str(x.quantity))
        _check_quantity(d, x.quantity, "an initial value")
    for driver in d.drivers:
        _check_finite_law(driver.law, "driver", driver.name)
        if driver.kind == "joint" and (j := d.joint_names.find(driver.target)) is not None:
            check_driven_joint(d.kind_of(j), driver.target, driver.name)


def _check_couplings(d: Description) -> None:
    def kind_of(joint: str) -> JointKind:
        return d.kind_of(d.joint_names.position("joint", joint))

    for coupling in d.point_constraints:
        if isinstance(coupling, Coupling):
            for side in (coupling.left, coupling.right):
                _check_finite_law(side, "coupling", coupling.name)
            check_coupling(coupling, kind_of, d.parameters)


def _check_quantity(d: Description, quantity: Quantity, what: str) -> None:
    """Refuse the name of a joint or frame that is not there."""
    for name in quantity.of:
        if quantity.kind == "joint":
            there = d.joint_names.find(name) is not None
        else:
            there = d.find_frame(name) is not None
        if not there:
            thing = "joint" if quantity.kind == "joint" else "body or frame"
            raise ModelError(f"{what} names {quantity}, but there is no {thing} {name!r}", element=name)


def check_joint_law(kind: JointKind, force: JointForce) -> None:
    """Refuse `q` in a law where no coordinate belongs to the rate that it acts on."""
    if not kind.paired and "q" in force.law.names():
        text = (
            f"the law of {force.name!r} uses q, but joint {force.joint!r} is {kind.name}: its rates are not the "
            "derivatives of its coordinates; laws there may use v and TIME only"
        )
        raise ModelError(text, element=force.joint)


def check_bushing(bushing: Bushing, parameters: Mapping[str, float]) -> None:
    """Refuse a stiffness or damping below zero with the present parameters."""
    for k, law in enumerate(bushing.laws[:12]):
        size = float(law.evaluate(parameters))
        if not size >= 0.0:
            label = ("stiffness", "torsional stiffness", "damping", "torsional damping")[k // 3]
            text = f"the {label} of bushing {bushing.name!r} is {size:g}; give 0 or more"
            raise ModelError(text, element=bushing.name)


#: The numbers of friction that follows a reaction, in the order of its laws.
FRICTION_LABELS = ("coefficient", "radius", "axial radius", "length", "speed")


def check_reaction_friction(friction: ReactionFriction, kind: str, parameters: Mapping[str, float]) -> None:
    """Refuse joints that bear no such friction, and numbers that are none of theirs, with the present parameters."""
    what, on = f"friction {friction.name!r}", f"joint {friction.joint!r}"
    if kind not in ("revolute", "prismatic"):
        text = f"{what} follows the reaction of {on}, which is {kind}; only revolute and prismatic joints have such "
        raise ModelError(text + "friction: give its size instead, friction = ...", element=friction.joint)
    numbers = dict(zip(FRICTION_LABELS, (float(law.evaluate(parameters)) for law in friction.laws), strict=True))
    for label, number in numbers.items():
        if not number >= 0.0 or (label == "speed" and number == 0.0):
            wanted = "a positive number" if label == "speed" else "0 or more"
            raise ModelError(f"the {label} of {what} is {number:g}; give {wanted}", element=friction.name)
    if kind == "revolute" and not numbers["radius"] > 0.0:
        text = f"{what} of revolute {on} has no radius; add radius = ..., that of the pin"
        raise ModelError(text, element=friction.name)
    for label in ("radius", "axial radius") if kind == "prismatic" else ():
        if numbers[label]:
            text = f"{what} of prismatic {on} has a {label}, which a guide does not have; remove it"
            raise ModelError(text, element=friction.name)


def check_driven_joint(kind: JointKind, joint: str, driver: str) -> None:
    """Refuse a driver of one coordinate where coordinates and rates are not the same in number."""
    if not kind.paired:
        text = (
            f"driver {driver!r} drives joint {joint!r}, which is {kind.name}: its coordinates cannot be driven one by "
            "one; drive a point, a distance or an angle instead"
        )
        raise ModelError(text, element=joint)


def _check_finite_law(law: Expression, what: str, name: str) -> None:
    """Refuse a law with a number in it that is infinite or not a number."""
    for part in parts(law):
        if isinstance(part, Number) and not np.isfinite(part.value):
            text = f"the law of {what} {name!r} has the number {part.value} in it; give finite numbers"
            raise ModelError(text, element=name)


#: What changes a prescribed motion, or where something of it is looked at.
GEOMETRY = ("ri", "pi", "rj", "pj", "pitch", "gear", "frame_r", "frame_p", "start_r", "start_p")


def parameters_used(d: Description, *, kinematic: bool = False) -> set[str]:
    """The parameters that numbers and laws of a mechanism depend on; those of its prescribed motion alone, if asked."""
    laws = [x for (array, _), x in d.bindings.items() if (array in GEOMETRY if kinematic else array not in LIMITS)]
    laws += [driver.law for driver in d.drivers] + [
        size for constraint in d.point_constraints if (size := size_of(constraint)) is not None
    ]
    laws += [x.relation for x in d.point_constraints if isinstance(x, Coupling)]
    laws += [e for x in d.point_constraints if isinstance(x, PointOnCurve) for e in (*x.curve.expressions, x.rate) if e]
    laws += [x.value for x in d.initial]
    if not kinematic:
        laws += [law for element in d.elements for law in laws_of(element)]
    return {name for law in laws for name in law.names()} & d.parameters.keys()


def alike(one: Description, other: Description, *, kinematic: bool = False) -> bool:
    """Whether two mechanisms with the same parts move alike, but for rounding."""
    if list(one.parameters) != list(other.parameters) or one.nb != other.nb or one.nj != other.nj:
        return False
    arrays = [x for x in (*BODY_ARRAYS, *JOINT_ARRAYS) if x not in LIMITS]  # no analysis looks at limits
    arrays += ["gravity", "frame_r", "frame_p", "start_r", "start_p", "gear"]
    if kinematic:
        arrays = [x for x in arrays if x in (*GEOMETRY, "kind", "parent", "child")]
    for name in arrays:
        x, y = (np.asarray(getattr(d, name), dtype=np.float64) for d in (one, other))
        rounding = 1e-13 * float(np.max(np.abs(y), initial=0.0))  # an inertia in µm and mg is 1e-18 kg m²
        if x.shape != y.shape or not np.allclose(x, y, rtol=1e-12, atol=rounding):
            return False
    parts = ["drivers", "point_constraints", "initial", *(() if kinematic else ("elements",))]
    if any(getattr(one, name) != getattr(other, name) for name in parts):
        return False
    return _asked(one.system, kinematic) == _asked(other.system, kinematic)


def _asked(system: System | None, kinematic: bool) -> tuple[Any, ...]:
    """What of a SYSTEM changes numbers, where the times are given."""
    s = system or System()
    settings = (s.assembly_tolerance, s.lu_tolerance, s.freedom, s.newton_tolerance, s.constraint_tolerance)
    return settings if kinematic else (*settings, s.method, s.rtol, s.atol, s.dt)
