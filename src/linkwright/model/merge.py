"""Bodies that do not move against each other made one: fixed joints merged away, joints locked at a value.

Written over numbers and expressions alike, so that a number bound to a parameter stays bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import real_array
from linkwright.errors import LinkwrightWarning, ModelError, ShapeError
from linkwright.model.curve_elements import check_lockable
from linkwright.model.description import (
    BODY_ARRAYS,
    GROUND,
    JOINT_ARRAYS,
    Description,
    Frames,
    Names,
    Start,
    kind_number,
)
from linkwright.model.elements import (
    Array,
    Coupling,
    Driver,
    Element,
    GearPair,
    JointForce,
    PointConstraint,
    PointOnLine,
    ReactionFriction,
    Rod,
    is_bound,
    laws_of,
    split_bindings,
    with_laws,
)
from linkwright.model.expression import Expression, Number, replaced
from linkwright.model.gear_pairs import mesh_gap
from linkwright.model.placements import combined_inertia, full_inertia, pack_inertia, snapped
from linkwright.model.quantities import Quantity, quantities
from linkwright.model.requested_analysis import System
from linkwright.model.topology import joints_around, of_first_leader, span

#: A constraint holds within the assembly tolerance, and within this part of its size.
PART = 1e-3


def without_held(d: Description) -> Description:
    """The mechanism without rods, point constraints and drivers whose frames are all on one body, or on ground."""
    point_constraints = tuple(constraint for constraint in d.point_constraints if not _is_held(d, constraint))
    drivers = tuple(driver for driver in d.drivers if not _stands_still(d, driver))
    if len(point_constraints) == len(d.point_constraints) and len(drivers) == len(d.drivers):
        return d
    return replace(d, point_constraints=point_constraints, drivers=drivers)


def _is_held(d: Description, constraint: PointConstraint) -> bool:
    """Whether both frames of a rod or point constraint are on one body; an error if it is open there."""
    if isinstance(constraint, Coupling):
        return False
    ends = constraint.places
    (one, r, p), (other, to_axes, to) = (d.frame(end) for end in ends)
    if one != other:
        return False
    between = r.T @ (to - p)
    size = float(np.linalg.norm(between))
    if isinstance(constraint, Rod):
        what, length = "rod", float(constraint.length.evaluate(d.parameters))
        gap, size = abs(size - length), max(size, length)
    elif isinstance(constraint, GearPair):
        what, (gap, size) = "gear pair", mesh_gap(d, constraint, r.T @ to_axes, between)
    else:
        size = max(size, float(np.max(np.abs([p, to]))))
        if isinstance(constraint, PointOnLine):
            what, gap = "point-on-line", float(np.linalg.norm(between[:2]))
        else:
            what, gap = "point-on-plane", abs(float(between[2]))
    tolerance = (d.system or System()).assembly_tolerance
    if not gap <= (PART * size if tolerance is None else min(tolerance, PART * size)):
        text = f"{what} {constraint.name!r} is between {ends[0]!r} and {ends[1]!r}, which no longer move against each "
        advice = "remove it, or hold the joints where it closes"
        raise ModelError(f"{text}other, and has a gap of {gap:.3g} m; {advice}", element=constraint.name)
    _warn(f"{what} {constraint.name!r} is left out: {ends[0]!r} and {ends[1]!r} no longer move against each other")
    return True


def _stands_still(d: Description, driver: Driver) -> bool:
    """Whether what a driver drives cannot move any more; drivers of joints go with their joints."""
    bodies = {d.frame(place)[0] for place in driver.places}
    alone = driver.kind == "absolute"
    if len(bodies) != 1 or (alone and bodies != {GROUND}):
        return False
    how = "no longer moves" if alone else "no longer move against each other"
    _warn(f"driver {driver.name!r} is left out: {' and '.join(map(repr, driver.places))} {how}")
    return True


def _warn(text: str) -> None:
    warn(text, LinkwrightWarning, stacklevel=6)


_PLACES = ("ri", "pi", "rj", "pj", "frame_r", "frame_p")
_START = ("start_r", "start_p")
_OTHERS = ("frame_r", "frame_p", *_START, "gear")


def merge_fixed(description: Description, joints: Collection[int] | None = None) -> Description:
    """The mechanism with bodies on fixed joints (all, or these) made part of the body nearer to ground.

    A merged body's name stays as a frame. Fixed joints that the user marked as cuts stay loop constraints. Rods, point
    constraints and drivers within one body are left out with a warning; a constraint that does not hold is an error.
    """
    d = description
    if joints is None:
        fixed = np.flatnonzero(np.asarray(d.kind) == kind_number("fixed")).tolist()
        joints = [j for j in fixed if j not in d.cuts]
    if not joints:
        return d
    numbers = _numbers(d)
    poses = _poses(d, numbers, sorted(joints))
    wholes = [b for b in range(d.nb) if poses[b][0] == b]
    index = {GROUND: GROUND, **{b: k for k, b in enumerate(wholes)}}

    ground_inertia = _sum_inertias(d, numbers, poses, wholes)
    _move_places(d, numbers, poses)
    frames = _merged_frames(d, numbers, poses, index)
    placed = _place_wholes(d, numbers, poses)

    gone = set(joints)
    staying = [j for j in range(d.nj) if j not in gone]
    joint_index = {j: k for k, j in enumerate(staying)}
    parent = np.array([index[poses[b][0]] for b in d.parent[staying].tolist()], np.int32)
    child = np.array([index[poses[b][0]] for b in d.child[staying].tolist()], np.int32)
    for k in np.flatnonzero(parent == child).tolist():
        name = d.joint_names[staying[k]]
        raise ModelError(
            f"joint {name!r} joins two bodies that fixed joints already hold together; remove it", element=name
        )
    rows = {name: wholes if name in BODY_ARRAYS else staying for name in BODY_ARRAYS + JOINT_ARRAYS}
    if d.start is not None:
        rows.update(dict.fromkeys(_START, wholes))
    arrays, bindings = _chosen_rows(d, numbers, rows)
    frame_r, frame_p, start_r, start_p, _ = (arrays.pop(name) for name in _OTHERS)
    arrays.update(parent=parent, child=child)
    if d.start is not None:
        arrays["start"] = Start(placed[wholes], start_r, start_p)
    merged = replace(
        d,
        body_names=Names([d.body_names[b] for b in wholes]),
        joint_names=Names([d.joint_names[j] for j in staying]),
        frames=replace(frames, r=snapped(frame_r), p=frame_p),
        mimics=tuple(replace(m, follower=joint_index[m.follower], leader=joint_index[m.leader]) for m in d.mimics),
        cuts=frozenset(joint_index[j] for j in d.cuts if j not in gone),
        passive=frozenset(joint_index[j] for j in d.passive if j not in gone),
        bindings=bindings,
        ground_inertia=ground_inertia,
        **arrays,
    )
    return without_held(merged)


def lock(description: Description, values: Mapping[str, float | ArrayLike]) -> Description:
    """The mechanism with these joints held at these coordinates (a number, or nq numbers), and merged.

    Followers of a locked joint are locked where it takes them. Forces and drivers on a locked joint go with it.
    """
    d = description
    check_lockable(values, d.point_constraints)
    wanted = {d.joint_names.position("joint", name): value for name, value in values.items()}
    locked = {j: _coordinates(d, j, value) for j, value in wanted.items()}
    gears = d.leaders
    for m in d.mimics:
        first, ratio, offset = of_first_leader(gears, m.follower)
        if m.follower in wanted:
            name, leader = d.joint_names[m.follower], d.joint_names[first]
            raise ModelError(f"joint {name!r} follows {leader!r}; lock {leader!r} instead", element=name)
        if first in locked:
            locked[m.follower] = ratio * locked[first] + offset
    if not locked:
        return d
    numbers = _numbers(d)
    following = [k for k, m in enumerate(d.mimics) if m.follower not in locked]
    for k, m in enumerate(d.mimics):
        if m.follower in locked:
            _refuse_bound(numbers["gear"][k], f"the ratio of {d.joint_names[m.follower]!r}, which is locked")
    for j, q in locked.items():
        kind = d.kind_of(j)
        _refuse_bound(numbers["armature"][j], f"the armature of joint {d.joint_names[j]!r}, which is locked")
        pitch = numbers["pitch"][j]
        turn = snapped(kind.rotation(kind.terms(q, d.pitch[j])).matrix())
        shift = kind.shift(kind.terms(q, pitch), pitch)
        _put(numbers, "pi", j, numbers["pi"][j] + numbers["ri"][j] @ shift)
        _put(numbers, "ri", j, numbers["ri"][j] @ turn)
        numbers["pitch"][j] = 0.0
    rows = {name: list(range(d.nb if name in BODY_ARRAYS else d.nj)) for name in BODY_ARRAYS + JOINT_ARRAYS}
    rows["gear"] = following
    arrays, bindings = _chosen_rows(d, numbers, rows)
    for name in _OTHERS:
        del arrays[name]
    arrays["kind"] = np.array(d.kind)
    arrays["kind"][list(locked)] = kind_number("fixed")
    coordinates = {d.joint_names[j]: q for j, q in locked.items()}
    names = set(coordinates)
    for driver in (x for x in d.drivers if x.kind == "joint" and x.target in names):
        text = f"driver {driver.name!r} went away with the locked joint {driver.target!r}"
        warn(text, LinkwrightWarning, stacklevel=3)
    fixed = replace(
        d,
        mimics=tuple(d.mimics[k] for k in following),
        elements=_with_locked(d, coordinates),
        point_constraints=_related_with_locked(d, coordinates),
        initial=tuple(x for x in d.initial if not (x.quantity.kind == "joint" and x.quantity.of[0] in names)),
        drivers=tuple(x for x in d.drivers if not (x.kind == "joint" and x.target in names)),
        bindings=bindings,
        **arrays,
    )
    return merge_fixed(fixed, list(locked))


def _with_locked(d: Description, locked: Mapping[str, Array]) -> tuple[Element, ...]:
    """The forces without those on locked joints; where laws of others name their coordinates, numbers stand."""
    by = _locked_quantities(d, locked)
    changed: list[Element] = []
    for e in (e for e in d.elements if not (isinstance(e, JointForce | ReactionFriction) and e.joint in locked)):
        if not any(quantity in by for quantity in quantities(*laws_of(e))):
            changed.append(e)
        else:
            changed.append(with_laws(e, lambda law: replaced(law, by)))
    return tuple(changed)


def _locked_quantities(d: Description, locked: Mapping[str, Array]) -> dict[Expression, Expression]:
    """The numbers that stand for the coordinates and rates of locked joints."""
    by: dict[Expression, Expression] = {}
    for name, q in locked.items():
        for k in range(d.kind_of(d.joint_names.position("joint", name)).nv):
            by[Quantity("joint", (name,), k, True)] = Number(0.0)
            if k < len(q):
                by[Quantity("joint", (name,), k)] = Number(float(q[k]))
    return by


def _related_with_locked(d: Description, locked: Mapping[str, Array]) -> tuple[PointConstraint, ...]:
    """The rods, point constraints and couplings; in these, numbers stand for coordinates of locked joints.

    One of locked joints alone goes with them, if it holds.
    """
    by, related = _locked_quantities(d, locked), list[PointConstraint]()
    for x in d.point_constraints:
        if not (isinstance(x, Coupling) and any(quantity in by for quantity in x.coordinates)):
            related.append(x)
            continue
        coupling = replace(x, left=replaced(x.left, by), right=replaced(x.right, by))
        if coupling.coordinates:
            related.append(coupling)
            continue
        sides = [float(side.evaluate({**d.parameters, "TIME": 0.0})) for side in (coupling.left, coupling.right)]
        if "TIME" in coupling.relation.names() or not abs(sides[0] - sides[1]) <= PART * max(map(abs, sides)):
            text = f"coupling {x.name!r} does not hold where its joints are locked: {sides[0]:.6g} and {sides[1]:.6g}"
            raise ModelError(f"{text}; lock them where it holds, or remove it", element=x.name)
        _warn(f"coupling {x.name!r} is left out: all of its joints are locked")
    return tuple(related)


def _coordinates(d: Description, joint: int, value: float | ArrayLike) -> Array:
    """The coordinates to lock a joint at, checked."""
    kind, name = d.kind_of(joint), d.joint_names[joint]
    q = np.atleast_1d(real_array(f"the value of joint {name!r}", value))
    if q.shape != (kind.nq,):
        text = f"joint {name!r} is {kind.name} and has {kind.nq} coordinates; it cannot be locked at {q.size} numbers"
        raise ShapeError(text, given=q.shape, wanted=(kind.nq,))
    if not np.isfinite(q).all():
        raise ModelError(f"joint {name!r} cannot be locked at {q.tolist()}; give finite numbers", element=name)
    return kind.checked(q, name)


# -- numbers and expressions ------------------------------------------------------------------------------
def _numbers(d: Description) -> dict[str, Array]:
    """Copies of the arrays; those with bound numbers hold the expressions."""
    numbers: dict[str, Array] = {}
    for name in (*BODY_ARRAYS, *_PLACES, *_START, "gear", "pitch", "armature"):
        numbers[name] = np.array(getattr(d, name), dtype=np.float64)
    for (name, flat), expression in d.bindings.items():
        if name == "gravity":
            continue
        if numbers[name].dtype != object:
            numbers[name] = numbers[name].astype(object)
        numbers[name].reshape(-1)[flat] = expression
    return numbers


def _chosen_rows(
    d: Description, numbers: dict[str, Array], rows: dict[str, list[int]]
) -> tuple[dict[str, Array], dict[tuple[str, int], Expression]]:
    """The chosen rows as floats, and where their bound numbers now stand."""
    arrays: dict[str, Array] = {}
    bindings = {key: expression for key, expression in d.bindings.items() if key[0] == "gravity"}  # stays as it is
    for name in (*BODY_ARRAYS, *JOINT_ARRAYS, *_OTHERS):
        array = numbers.get(name)
        if array is None:
            array = getattr(d, name)
        array = array[rows[name]] if name in rows else array
        if array.dtype == object:
            array, bound = split_bindings(name, array, d.parameters)
            bindings.update(bound)
        arrays[name] = snapped(array) if name in ("ri", "rj") else array
    return arrays, bindings


def _refuse_bound(entries: Array, what: str) -> None:
    """A bound number that would have no place any more is an error that names its parameter."""
    for entry in np.asarray(entries, dtype=object).reshape(-1):
        if isinstance(entry, Expression):
            name = min(entry.names(), default="")
            raise ModelError(f"parameter {name!r} sets {what}; give that a plain number first", element=name)


# -- the parts of a merge -----------------------------------------------------------------------------------
def _poses(d: Description, numbers: dict[str, Array], joints: list[int]) -> dict[int, tuple[int, Array, Array]]:
    """For each body: the body that it becomes part of, and its rotation and origin there."""
    around = joints_around(d, joints)
    poses: dict[int, tuple[int, Array, Array]] = {}
    used: set[int] = set()
    # From ground outward, so that each group is entered at its body nearest to ground.
    for start in (GROUND, *span(d).body.tolist()):
        if start in poses:
            continue
        poses[start] = (start, np.eye(3), np.zeros(3))
        queue = deque([start])
        while queue:
            here = queue.popleft()
            root, r, p = poses[here]
            for j, there, backwards in around.get(here, ()):
                if j in used:
                    continue
                used.add(j)
                if there in poses:
                    name = d.joint_names[j]
                    raise ModelError(
                        f"joint {name!r} closes a loop of fixed joints; remove it: the others hold its bodies already",
                        element=name,
                    )
                near, far = ("j", "i") if backwards else ("i", "j")
                rn, pn, rf, pf = (numbers[x][j] for x in ("r" + near, "p" + near, "r" + far, "p" + far))
                across = rn @ rf.T
                poses[there] = (root, _exact(r @ across), p + r @ (pn - across @ pf))
                queue.append(there)
    return poses


def _exact(r: Array) -> Array:
    return r if np.asarray(r).dtype == object else snapped(r)


def _sum_inertias(
    d: Description, numbers: dict[str, Array], poses: dict[int, tuple[int, Array, Array]], wholes: list[int]
) -> tuple[float, Array, Array] | None:
    """Write the inertia of each whole on its kept body; the return value is ground's."""
    parts: dict[int, list[tuple[Any, Array, Array]]] = {}
    for b, (root, r, p) in poses.items():
        if root == b or not _weighs(d, numbers, b):
            continue
        inertia = r @ full_inertia(numbers["inertia"][b]) @ r.T
        parts.setdefault(root, []).append((numbers["mass"][b], p + r @ numbers["com"][b], inertia))
        if root == GROUND:
            for name in BODY_ARRAYS:
                _refuse_bound(numbers[name][b], f"the {name} of {d.body_names[b]!r}, which becomes part of ground")
    for b in wholes:
        if b in parts:
            if _weighs(d, numbers, b):
                whole = (numbers["mass"][b], numbers["com"][b], full_inertia(numbers["inertia"][b]))
                parts[b].insert(0, whole)
            for name, value in zip(BODY_ARRAYS, _packed(parts[b]), strict=True):
                _put(numbers, name, b, value)
    if GROUND not in parts:
        return d.ground_inertia
    if d.ground_inertia is not None:
        mass, com, inertia = d.ground_inertia
        parts[GROUND].insert(0, (mass, com, full_inertia(inertia)))
    return _packed(parts[GROUND])


def _weighs(d: Description, numbers: dict[str, Array], body: int) -> bool:
    """Whether a body has, or for some parameters may have, mass or inertia."""
    return bool(d.mass[body] != 0.0 or d.inertia[body].any()) or any(is_bound(numbers[x][body]) for x in BODY_ARRAYS)


def _packed(parts: list[tuple[Any, Array, Array]]) -> tuple[Any, Array, Array]:
    """Mass, centre and packed inertia about it, of parts given by mass, centre and inertia in one frame."""
    mass, com, inertia = combined_inertia(parts)
    return mass, com, pack_inertia(inertia)


def _move_places(d: Description, numbers: dict[str, Array], poses: dict[int, tuple[int, Array, Array]]) -> None:
    """Frames of joints and further frames on merged bodies, given on the wholes instead."""
    for r_name, p_name, bodies in (
        ("ri", "pi", d.parent),
        ("rj", "pj", d.child),
        ("frame_r", "frame_p", d.frames.body),
    ):
        for k, b in enumerate(bodies.tolist()):
            root, r, p = poses[b]
            if root != b:
                _put(numbers, p_name, k, p + r @ numbers[p_name][k])
                _put(numbers, r_name, k, _exact(r @ numbers[r_name][k]))


def _merged_frames(
    d: Description, numbers: dict[str, Array], poses: dict[int, tuple[int, Array, Array]], index: dict[int, int]
) -> Frames:
    """The frames, and one for each merged body; their numbers stay in `numbers`."""
    merged = [b for b in range(d.nb) if poses[b][0] != b]
    for name, part, shape in (("frame_r", 1, (3, 3)), ("frame_p", 2, (3,))):
        new = [numbers[name], *(np.asarray(poses[b][part]).reshape(1, *shape) for b in merged)]
        numbers[name] = np.concatenate(new)
    body = [index[poses[b][0]] for b in [*d.frames.body.tolist(), *merged]]
    return Frames(Names([*d.frames.names, *(d.body_names[b] for b in merged)]), np.array(body, np.int32))


def _place_wholes(
    d: Description, numbers: dict[str, Array], poses: dict[int, tuple[int, Array, Array]]
) -> NDArray[np.bool_]:
    """Put bodies that are not placed where a body placed that becomes part of them says; which are placed then."""
    placed = np.zeros(d.nb, bool) if d.start is None else d.start.placed.copy()
    for b, (root, r, p) in poses.items():
        if b in (root, GROUND) or root == GROUND or placed[root] or not placed[b]:
            continue
        turned = _exact(numbers["start_r"][b] @ r.T)
        _put(numbers, "start_r", root, turned)
        _put(numbers, "start_p", root, numbers["start_p"][b] - turned @ p)
        placed[root] = True
    return placed


def _put(numbers: dict[str, Array], name: str, row: int, value: Any) -> None:
    """A row replaced; an array that had no expressions takes them."""
    if numbers[name].dtype != object and np.asarray(value).dtype == object:
        numbers[name] = numbers[name].astype(object)
    numbers[name][row] = value
