"""Mobility explained: the Grübler–Kutzbach count in the family of motions that a mechanism has, the undriven degrees of
freedom by joint and body, and the joints to relax so that no equation is redundant.

A family is the plane motions of one normal (λ = 3), the turns about one point (λ = 3), or all motions (λ = 6). A joint
holds as many of a body's degrees of freedom in a family as its Jacobian has rank on the family's twists. Parts that
hang together by single joints are counted apart, each in its own family: M = Σ (λ · moving bodies − held) − gears. A
point on a curve, or a curve on a curve, is one joint of the two bodies that it connects: a half joint (Kutzbach's j₂),
which holds one degree of freedom, or two if it rolls; the massless bodies inside it are not counted.

A set of equations can be left out without more freedom if, and only if, the left null vectors Nᵀ J = 0 are independent
on it. So relaxations are searched on N, and the choice is verified by the rank of J without these equations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constrained_motions import constrained_motions, joined
from linkwright.constraints.constraint_equations import Constraint, Equations, joint_frames
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.newton import Assembled
from linkwright.constraints.rank import independent_rows, unit_rows
from linkwright.constraints.undriven_motion import undriven
from linkwright.model.curve_elements import PointOnCurve, parts_of_curves
from linkwright.model.description import GROUND
from linkwright.model.mobility_report import FAMILIES, Family, JointRelaxation, LinkageCount, Mobility
from linkwright.model.quantities import Quantity, spoken

#: Up to so many entries of J mobility is explained; larger mechanisms have their degrees of freedom alone.
ENTRIES = 90_000
#: Twists within this part of their size of a family belong to it; and rows this far from dependent are independent.
WITHIN, INDEPENDENT = 1e-6, 1e-6
#: Sets of joints that are tried before the search takes one joint after another.
TRIALS, JOINTS = 3000, 4
_TILT = ("h axes parallel, about g", "h axes parallel, about f")
#: By kind, what a joint becomes when equations are left out: joints that are usual, and behind them the last resorts.
_RELAXED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "revolute": (("spherical", _TILT), ("cylindrical", ("meeting along h",))),
    "prismatic": (("cylindrical", ("no turn about h",)),),
    "universal": (("spherical", ("h axes perpendicular",)),),
    "cylindrical": (),
    "planar": (),
}
_LAST_RESORTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "revolute": (
        ("point-on-line", ("meeting along h", *_TILT)),
        ("pin-in-slot", ("meeting along f",)),
        ("pin-in-slot", ("meeting along g",)),
        ("universal", _TILT[:1]),
        ("universal", _TILT[1:]),
    ),
    "prismatic": (("point-on-line", ("no turn about h", *_TILT)),),
    "cylindrical": (("point-on-line", _TILT),),
    "planar": (("point-on-plane", _TILT),),
}


def explained(programs: Programs, state: Assembled, t: float, undriven_count: int, driven: int) -> Mobility | None:
    """The mobility at an assembled state; None for a mechanism that is too large to be explained."""
    e = programs.layout.equations
    if e.count * 6 * e.nb > ENTRIES:
        return None
    jacobian = programs.layout.dense(programs.evaluate(state.q, state.angles, t).jacobian, e.units)
    drivers = {row for k in e.drivers for row in range(int(e.first[k]), int(e.first[k + 1]))}
    rows = [row for row in range(e.count) if row not in drivers]
    held = jacobian[rows]
    tolerance = max(1e-8, float(np.sqrt(10.0 * programs.tolerance)))
    basis, dependent = independent_rows(held, tolerance)
    motions = _null_space(basis)
    counts = tuple(_counts(_Joints(e), state.q, jacobian, motions))
    relaxations, left = _relaxations((e, state.q), held, rows, len(dependent), tolerance)
    every_motion = _null_space(independent_rows(jacobian, tolerance)[0])
    return Mobility(
        counts,
        sum(c.group == "gear" for c in e.constraints),
        6 * e.nb - len(rows),
        undriven_count + driven,
        tuple(_driven(e)),
        undriven_count,
        tuple(undriven(e, state.q, every_motion)) if undriven_count else (),
        len(dependent),
        relaxations,
        left,
    )


def _null_space(basis: Floats) -> Floats:
    """An orthonormal basis (n, k) of what is orthogonal to orthonormal rows."""
    rank, n = basis.shape
    return np.asarray(np.linalg.svd(basis, full_matrices=True)[2][rank:].T) if rank else np.eye(n)


def _driven(e: Equations) -> Iterator[str]:
    """The drivers, each with what it drives."""
    for driver in e.description.drivers:
        if driver.kind == "joint":
            yield f"{spoken(e.description, Quantity('joint', (driver.target,), driver.index))} by {driver.name!r}"
        elif driver.kind == "absolute":
            yield f"{driver.target} by {driver.name!r}"
        else:
            yield f"the {driver.kind} between {driver.target} and {driver.other} by {driver.name!r}"


# -- counts ---------------------------------------------------------------------------------------------------------
class _Joints:
    """What holds the user's bodies together, by number: constraints, and contacts of curves as one joint each."""

    def __init__(self, e: Equations) -> None:
        self.e = e
        self.half: dict[int, tuple[tuple[int, ...], int]] = {}  # by the number of the first point on a curve
        self.inside: set[int] = set()  # massless bodies of these contacts
        hidden = set()
        for own, ends, equations in self._contacts():
            around = {k for k, c in enumerate(e.constraints) if c.group != "driver" and not own.isdisjoint(c.bodies)}
            known = {k for k in around if e.constraints[k].name in equations}
            if around == known:  # no statement of the model holds a body of the contact
                first = min(k for k in known if e.constraints[k].group == "point constraint")
                rolls = sum(e.constraints[k].form.size for k in known) - 6 * len(own) == 2
                self.half[first] = ends, 2 if rolls else 1
                hidden |= known - {first}
                self.inside |= own
        self.holding = [k for k, c in enumerate(e.constraints) if c.group not in ("gear", "driver") and k not in hidden]

    def _contacts(self) -> Iterator[tuple[set[int], tuple[int, ...], set[str]]]:
        """For each contact its massless bodies, the two bodies that it connects, and the names of its equations."""
        d = self.e.description
        points = {x.name: x for x in d.point_constraints if isinstance(x, PointOnCurve)}
        for x in points.values():
            if not x.contact:
                ends = d.frame_number(x.curve.place)[0], d.frame_number(x.point)[0]
                yield {d.frame_number(x.along)[0]}, ends, {x.name, x.along}
        for c in d.contacts:
            one, other = (d.frame_number(points[name].curve.place)[0] for name in (c.first, c.second))
            yield {d.frame_number(x)[0] for x in c.parts}, (one, other), {c.first, c.second, c.rolling, *c.parts}

    def bodies(self, k: int) -> tuple[int, ...]:
        """The bodies that it connects, −1 for ground."""
        return self.half[k][0] if k in self.half else self.e.constraints[k].bodies

    def size(self, k: int) -> int:
        """How many equations it is."""
        return self.half[k][1] if k in self.half else self.e.constraints[k].form.size

    def held(self, jacobian: Floats, k: int, twists: Floats) -> int:
        """How many degrees of freedom it takes away within a family."""
        return self.half[k][1] if k in self.half else _held(self.e, jacobian, k, twists)

    def slides(self, k: int) -> bool:
        """Whether it is a half joint."""
        return k in self.half and self.half[k][1] == 1


def _counts(x: _Joints, q: Floats, jacobian: Floats, motions: Floats) -> Iterator[LinkageCount]:
    """The counts of parts; parts of the same family are one."""
    e = x.e
    merged: dict[tuple[Family, tuple[float, ...] | None], list[list[int]]] = {}
    for group in _components(x):
        whole = _family(x, q, jacobian, motions, group)
        parts = [group] if whole[0] != "spatial" else _blocks(x, group)
        for part in parts:
            family, about = whole if len(parts) == 1 else _family(x, q, jacobian, motions, part)
            key = None if about is None else tuple((np.round(about, 6) + 0.0).tolist())
            merged.setdefault((family, key), []).append(part)
    names = e.description.body_names
    joined = {b for k in x.holding for b in x.bodies(k)} | x.inside
    for (family, key), groups in merged.items():
        twists = _family_twists(e, q, family, None if key is None else np.array(key))
        every = [k for group in groups for k in group]
        held = sum(x.held(jacobian, k, twists) for k in every)
        moving = sum(len({b for k in group for b in x.bodies(k)}) - 1 for group in groups)
        bodies = dict.fromkeys(names[b] for k in every for b in x.bodies(k) if b >= 0)
        about3 = None if key is None else (key[0], key[1], key[2])
        half = sum(map(x.slides, every))
        yield LinkageCount(family, moving, len(every) - half, held, about3, tuple(bodies), half)
    loose = [names[b] for b in range(e.nb) if b not in joined]
    if loose:
        yield LinkageCount("spatial", len(loose), 0, 0, None, tuple(loose))


def _components(x: _Joints) -> list[list[int]]:
    """The constraints of bodies that hang together without ground."""
    leader = list(range(x.e.nb))

    def root(b: int) -> int:
        while leader[b] != b:
            leader[b] = leader[leader[b]]
            b = leader[b]
        return b

    for k in x.holding:
        moving = [b for b in x.bodies(k) if b != GROUND]
        for b in moving[1:]:
            leader[root(b)] = root(moving[0])
    groups: dict[int, list[int]] = {}
    for k in x.holding:
        groups.setdefault(root(max(x.bodies(k))), []).append(k)
    return list(groups.values())


def _blocks(x: _Joints, group: Sequence[int]) -> list[list[int]]:
    """The biconnected parts of the graph of bodies and constraints: loops with a body in common alone are apart."""
    around: dict[int, list[tuple[int, int]]] = {}
    for k in group:
        one, other = x.bodies(k)[0], x.bodies(k)[-1]
        around.setdefault(one, []).append((k, other))
        around.setdefault(other, []).append((k, one))
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    blocks: list[list[int]] = []
    for first in around:
        if first in order:
            continue
        order[first] = low[first] = len(order)
        edges: list[int] = []
        stack = [(first, -1, iter(around[first]))]
        while stack:
            body, came, neighbours = stack[-1]
            edge, other = next(neighbours, (-1, -2))
            if edge < 0:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    low[above] = min(low[above], low[body])
                    if low[body] >= order[above]:
                        start = edges.index(came)
                        blocks.append(edges[start:])
                        del edges[start:]
            elif edge != came and other not in order:
                order[other] = low[other] = len(order)
                edges.append(edge)
                stack.append((other, edge, iter(around[other])))
            elif edge != came and order[other] < order[body]:
                edges.append(edge)
                low[body] = min(low[body], order[other])
    return blocks


def _family(
    x: _Joints, q: Floats, jacobian: Floats, motions: Floats, group: Sequence[int]
) -> tuple[Family, Floats | None]:
    """The family of motions of a part, with the normal or the centre.

    Where every joint moves within a family alone, the part does wherever it goes; else its motions at the state decide.
    """
    bodies = sorted({b for k in group for b in x.bodies(k)})
    e = x.e
    for family, about in _candidates(e, q, group):
        twists = _family_twists(e, q, family, about)
        if all(FAMILIES[family] - x.held(jacobian, k, twists) == 6 - x.size(k) for k in group):
            return family, about
    joints = [k for k in group if e.constraints[k].group == "joint"]
    if len(group) >= len(bodies) and joints:
        for family, about in _candidates(e, q, group):
            if _moves_within(e, q, motions, bodies, _family_twists(e, q, family, about)):
                return family, about
    return "spatial", None


def _candidates(e: Equations, q: Floats, group: Sequence[int]) -> Iterator[tuple[Family, Floats]]:
    """Normals and centres that the axes of the joints suggest."""
    axes, points, slides = [], [], []
    for k in group:
        c = e.constraints[k]
        if c.group != "joint":
            continue
        kind = e.description.kind_of(c.source.joints[0]).name
        r, p = joint_frames(e.description, q, c.source.joints[0])[0]
        if kind in ("revolute", "cylindrical", "planar", "screw"):
            axes.append(r[:, 2])
            points.append(p)
        elif kind == "prismatic":
            slides.append(r[:, 2])
        elif kind == "spherical":
            yield "spherical", p
    normals = axes[:1]
    if not axes and len(slides) > 1:
        across = np.cross(slides[0], slides[int(np.argmax([np.linalg.norm(np.cross(slides[0], s)) for s in slides]))])
        normals = [across / np.linalg.norm(across)] if np.linalg.norm(across) > WITHIN else []
    for normal in normals:
        snapped = np.where(np.abs(normal) < 1e-12, 0.0, normal)
        yield "planar", snapped * (1.0 if snapped[int(np.argmax(np.abs(snapped)))] > 0.0 else -1.0)
    if len(axes) > 1:
        across_axes = [np.eye(3) - np.outer(h, h) for h in axes]
        m, b = sum(across_axes), sum(a @ p for a, p in zip(across_axes, points, strict=True))
        if np.linalg.cond(m) < 1e8:
            centre = np.linalg.solve(m, b)
            yield "spherical", np.where(np.abs(centre) < 1e-12 * e.size, 0.0, centre)


def _family_twists(e: Equations, q: Floats, family: Family, about: Floats | None) -> Floats:
    """(nb, 6, λ): the twists of every body at its origin, by the units of J."""
    identity = np.broadcast_to(np.eye(6), (e.nb, 6, 6))
    twists = identity.copy()
    if family == "planar":
        assert about is not None
        first = np.cross(about, np.eye(3)[int(np.argmin(np.abs(about)))])
        first /= np.linalg.norm(first)
        twists = np.zeros((e.nb, 6, 3))
        twists[:, :3, 0], twists[:, :3, 1], twists[:, 3:, 2] = first, np.cross(about, first), about
    elif family == "spherical":
        assert about is not None
        twists = np.zeros((e.nb, 6, 3))
        twists[:, 3:] = np.eye(3)
        for axis in range(3):
            twists[:, :3, axis] = np.cross(np.eye(3)[axis], q[:, :3] - about)
    return twists / e.units[:, :, None]


def _held(e: Equations, jacobian: Floats, k: int, twists: Floats) -> int:
    """How many degrees of freedom a constraint takes away within a family."""
    moving = [b for b in e.constraints[k].bodies if b != GROUND]
    rows = jacobian[e.rows(k)][:, 6 * moving[-1] : 6 * moving[-1] + 6]
    if e.constraints[k].form.size == 0:
        return 0
    family = twists[moving[-1]]
    restricted = unit_rows(rows) @ (family / np.linalg.norm(family, axis=0))
    return int(np.linalg.matrix_rank(restricted, tol=WITHIN))


def _moves_within(e: Equations, q: Floats, motions: Floats, bodies: Sequence[int], twists: Floats) -> bool:
    """Whether the bodies' motions relative to the first of them, at the state, are all within a family."""
    if not motions.shape[1]:
        return False
    y = motions.reshape(e.nb, 6, -1)
    moving = [b for b in bodies if b != GROUND]
    base = None if GROUND in bodies else moving[0]
    for b in moving:
        relative = y[b].copy()
        if base is not None:
            v, w = (part * e.units[base, 0 if k == 0 else 3, None] for k, part in enumerate((y[base][:3], y[base][3:])))
            arm = q[b, :3] - q[base, :3]
            carried = np.concatenate([v + np.cross(w.T, arm).T, w])
            relative = relative - carried / e.units[b][:, None]
        within = np.linalg.lstsq(twists[b], relative, rcond=None)[0]
        if np.abs(relative - twists[b] @ within).max() > WITHIN:
            return False
    return bool(np.abs(y[moving]).max() > WITHIN)


# -- relaxations ----------------------------------------------------------------------------------------------------
Choice = tuple[JointRelaxation, tuple[int, ...]]


def _relaxations(
    placed: tuple[Equations, Floats], held: Floats, rows: Sequence[int], redundant: int, tolerance: float
) -> tuple[tuple[JointRelaxation, ...], int]:
    """Joints to replace by others with more freedom, and how many equations are redundant after that."""
    if not redundant:
        return (), 0
    e, q = placed
    null = np.linalg.svd(unit_rows(held), full_matrices=True)[0][:, -redundant:]
    at = {row: place for place, row in enumerate(rows)}
    inside = set(parts_of_curves(e.description.point_constraints))
    joints = [
        c
        for c in e.constraints
        if c.group == "joint" and c.name not in inside and e.description.kind_of(c.source.joints[0]).name in _RELAXED
    ]
    driven = {e.description.joint_names[j] for k in e.drivers for j in e.constraints[k].source.joints}
    joints = sorted((c for c in joints if c.name not in driven), key=lambda c: GROUND in c.bodies)
    usual, every = ([_choices(e, q, c, at, last_resort=last) for c in joints] for last in (False, True))
    chosen = next((fewest for choices in (usual, every) if (fewest := _fewest(choices, null))), [])
    if not chosen:
        chosen = max((_one_by_one(choices, null) for choices in (usual, every)), key=_freed)
    gone = {place for _, places in chosen for place in places}
    left = [place for place in range(len(rows)) if place not in gone]
    basis, dependent = independent_rows(held[left], tolerance)
    if len(basis) != len(rows) - redundant:  # the verification: no freedom may come with it
        return (), redundant
    return tuple(relaxation for relaxation, _ in chosen), len(dependent)


def _freed(chosen: Sequence[Choice]) -> int:
    return sum(relaxation.freed for relaxation, _ in chosen)


def _choices(e: Equations, q: Floats, c: Constraint, at: dict[int, int], *, last_resort: bool) -> list[Choice]:
    """What a joint may become, with the places of the equations that are then left out."""
    j = c.source.joints[0]
    kind, first = e.description.kind_of(j).name, int(e.first[e.constraints.index(c)])
    choices = []
    for other, names in (*_RELAXED[kind], *(_LAST_RESORTS.get(kind, ()) if last_resort else ())):
        places = tuple(at[first + c.form.names.index(name)] for name in names)
        motions = joined(constrained_motions(e, q, c, names))
        choices.append((JointRelaxation(c.name, kind, other, len(places), motions), places))
    return choices


def _independent(null: Floats, chosen: Sequence[Choice]) -> bool:
    """Whether the equations can be left out without more freedom."""
    places = [place for _, group in chosen for place in group]
    if len(places) > null.shape[1]:
        return False
    sizes = np.linalg.svd(null[places], compute_uv=False)
    return bool(sizes[-1] > INDEPENDENT)


def _fewest(choices: Sequence[list[Choice]], null: Floats) -> list[Choice]:
    """The fewest joints whose equations are just the redundant ones; none where the search does not find them."""
    if null.shape[1] > 3 * JOINTS:
        return []
    useful = [joint for options in choices if (joint := [x for x in options if _independent(null, [x])])]
    trials = 0
    for count in range(1, JOINTS + 1):
        for joints in combinations(useful, count):
            for picked in _picked(joints):
                trials += 1
                if trials > TRIALS:
                    return []
                if _freed(picked) == null.shape[1] and _independent(null, picked):
                    return picked
    return []


def _picked(joints: Sequence[list[Choice]]) -> Iterator[list[Choice]]:
    """Every way to take one choice of each joint."""
    if not joints:
        yield []
        return
    for choice in joints[0]:
        for others in _picked(joints[1:]):
            yield [choice, *others]


def _one_by_one(choices: Sequence[list[Choice]], null: Floats) -> list[Choice]:
    """Joints one after another, each with the most equations that may go."""
    chosen: list[Choice] = []
    for options in choices:
        fitting = next((x for x in options if _independent(null, [*chosen, x])), None)
        if fitting is not None:
            chosen.append(fitting)
        if _freed(chosen) == null.shape[1]:
            break
    return chosen
