"""Gears, racks and belts in mesh: their pitch geometry, by which they roll on each other, and whether it is drawn.

The constraint of a pair is Φ = rolled(r, p) − phase = 0, a function of the pose (r, p) of the second gear's frame in
the first's alone. Its rate is the relative velocity of both gears at the pitch point P along w, (v₁ − v₂)(P)·w, so that
its multiplier λ (N) is a force λ w on the first gear and −λ w on the second, both at P. w is the direction of the first
gear's circumference less tan β along its axis, where β is its helix angle, positive if right-handed; of a worm it is
tan γ along its circumference less its axis, where γ is the lead angle. Teeth mesh anew after every pitch: Φ counts
modulo the pitch, and large turns cost no precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Bools, Floats
from linkwright.errors import ModelError
from linkwright.model.description import GROUND, Description
from linkwright.model.drawing import drawn
from linkwright.model.elements import GearPair
from linkwright.model.expression import Expression, as_expression, simplified
from linkwright.spatial.algebra import Array, dot
from linkwright.tape.block import arctan2

#: How far axes may be from parallel, perpendicular or meeting, and pitch circles from touching, as parts.
FIT = 1e-3
#: The cone of a bevel gear has at most this angle.
CONE = math.radians(88.0)

PARALLEL: dict[str, float] = {"external": 1.0, "internal": -1.0, "belt": -1.0, "chain": -1.0, "crossed belt": 1.0}
BELTS = ("belt", "crossed belt", "chain")


def rolled(kind: str, r: Array, p: Array, numbers: Sequence[Any]) -> Any:
    """How far (m) the pitch circles have rolled on each other: constant while the gears mesh, but for whole teeth.

    `numbers` are those of `form_numbers` (the phase and the period are not used); over any scalar.
    """
    r1, r2, helix, s1, s2 = numbers[0], numbers[1], *numbers[3:6]
    z2 = r[:, 2]
    if kind == "rack":
        along = dot(z2, p)
        angle = arctan2(-s1 * z2[0], s1 * z2[1])
        across = p[2] - along * z2[2]
        return -r1 * angle - s1 * along + helix * across
    if kind in PARALLEL:
        external = PARALLEL[kind]
        there = r.T @ p  # the line of centres in the second's axes
        angles = arctan2(p[1], p[0]), s2 * arctan2(there[1], there[0])
        turned = -r1 * angles[0] - external * r2 * angles[1]
        if kind in BELTS:
            return turned
        share = r1 / (r1 + external * r2)  # P is this part of the way to the second's centre
        return turned + helix * (share * p[2] + (1.0 - share) * s2 * there[2])
    z1 = r[2, :]  # the first's axis in the second's axes
    normal = s1 * s2 * np.array([-z2[1], z2[0], 0.0 * z2[0]])  # e₁ × e₂; of a worm the line of centres
    normal = normal / np.sqrt(dot(normal, normal))
    if kind == "bevel":
        angles = s1 * arctan2(s2 * z2[1], s2 * z2[0]), s2 * arctan2(s1 * z1[1], s1 * z1[0])
        return -s1 * (r1 * angles[0] + r2 * angles[1] + dot(normal, p))
    back = -(r.T @ normal)
    angles = arctan2(normal[1], normal[0]), arctan2(back[1], back[0])
    around = np.array([-normal[1], normal[0]])  # the worm's circumference at the pitch point
    return -helix * r1 * angles[0] + r2 * s1 * angles[1] - helix * dot(around, p[:2]) + p[2]


def form_numbers(pair: GearPair) -> tuple[Expression, ...]:
    """The numbers of a pair's form: both pitch radii, phase, helix, the senses of both axes, and the period (m)."""
    slope = math.tan(pair.helix_angle)
    first, second = pair.teeth
    lead = abs(slope) if pair.kind == "worm" else 1.0
    other, pitch = (simplified(pair.radius * (lead * x / first)) for x in (second, 2.0 * math.pi))
    phase: Expression = as_expression(pair.phase or 0.0)
    if pair.drawn_radius is not None:
        phase = simplified(pair.radius * (pair.phase or 0.0) / pair.drawn_radius)
    return pair.radius, other, phase, *map(as_expression, (slope, *map(float, pair.senses))), pitch


def pair_radii(pair: GearPair, evaluated: Callable[[Expression], Any]) -> tuple[Any, Any]:
    """Both pitch radii (m), of expressions by `evaluated`; the second of a rack is 0."""
    first, second = form_numbers(pair)[:2]
    return evaluated(first), evaluated(second)


def mesh_gap(d: Description, pair: GearPair, r: Floats, p: Floats) -> tuple[float, float]:
    """How far (m) a pair is from its mesh at a pose of the second frame in the first, and its first pitch radius."""
    numbers = [float(x.evaluate(d.parameters)) for x in form_numbers(pair)]
    beyond = (float(rolled(pair.kind, r, p, numbers)) - numbers[2]) / numbers[-1]
    return abs(beyond - round(beyond)) * numbers[-1], numbers[0]


def separates(pair: GearPair) -> bool:
    """Whether the teeth of a pair press its gears apart, or a chain pulls its wheels together."""
    return pair.pressure_angle != 0.0 or pair.kind == "chain"


# -- the pitch point ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class PitchPoint:
    """Where two gears meet, in ground's axes: the point (..., 3), and the separating force on the second gear for a
    multiplier of 1 (..., 3), which does no work."""

    point: Floats
    separating: Floats


def pitch_point(pair: GearPair, radii: tuple[Any, Any], first: Frames, second: Frames) -> PitchPoint:
    """The pitch point of a pair whose frames have axes (..., 3, 3) and origins (..., 3) in ground's axes."""
    (axes, origin), (others, to) = first, second
    (r1, r2), (s1, s2) = radii, pair.senses
    z1, z2, d = axes[..., 2], others[..., 2], to - origin
    slope = _separating_part(pair)
    if pair.kind in PARALLEL:
        centres = _unit(_without(d, z1))
        if pair.kind in BELTS:
            inclined = (r1 + PARALLEL[pair.kind] * r2) / _size(d)
            pull = np.sqrt(1.0 - inclined**2) if pair.kind == "chain" else 0.0
            return PitchPoint(origin + r1 * centres, -np.asarray(pull)[..., None] * centres)
        external = PARALLEL[pair.kind]
        share = r1 / (r1 + external * r2)
        return PitchPoint(origin + share * d, external * slope * centres)
    if pair.kind == "rack":
        foot = _unit(_without(_without(d, z2), z1))
        return PitchPoint(origin + r1 * foot, slope * foot)
    e1, e2 = s1 * z1, s2 * z2
    normal = np.cross(e1, e2)
    if pair.kind == "worm":
        centres = _unit(d)
        return PitchPoint(origin + r1 * centres, slope * centres)
    k, sine = _dot(e1, e2), _size(normal)
    apex = origin + ((_dot(d, e1) - k * _dot(d, e2)) / sine**2)[..., None] * e1
    arm = (r2 * e1 + r1 * e2) / sine[..., None]
    return PitchPoint(apex + arm, slope * _unit(_without(e2, _unit(arm))))


def _separating_part(pair: GearPair) -> float:
    """The separating force of teeth as a part of the multiplier."""
    return math.tan(pair.pressure_angle) / math.cos(pair.helix_angle)


def tooth_forces(pair: GearPair, force: Floats) -> Iterator[tuple[str, Floats]]:
    """What teeth exert besides their force (N) along the circumference, by name: the separating force, and along the
    axis of the first of helical gears."""
    if pair.pressure_angle:
        yield "separating", _separating_part(pair) * np.abs(force)
    if pair.helix_angle and pair.kind != "worm":
        yield "axial", -math.tan(pair.helix_angle) * force


# -- the drawing --------------------------------------------------------------------------------------------------
Frames = tuple[Floats, Floats]  # axes (..., 3, 3) and origins (..., 3), in ground's axes
Misfit = tuple[Bools, Callable[[int], str]]  # which cases have it, and what to say of one of them


def fitted(d: Description) -> Description:
    """The description with the phases and senses of gear pairs as they are drawn; an error where one cannot mesh."""
    if not has_gear_pairs(d):
        return d
    frames = check_meshes(d)
    constraints = tuple(
        _as_drawn(d, x, *((r[0], p[0]) for r, p in map(frames, x.places))) if isinstance(x, GearPair) else x
        for x in d.point_constraints
    )
    return replace(d, point_constraints=constraints)


def has_gear_pairs(d: Description) -> bool:
    """Whether gears mesh in a mechanism."""
    return any(isinstance(constraint, GearPair) for constraint in d.point_constraints)


def check_meshes(d: Description) -> Callable[[str], Frames]:
    """Refuse gears that cannot mesh where the bodies are drawn; the frames there, by name."""
    r, p = drawn(d)
    frames = frames_at(d, r[None], p[None])
    for pair, bad, text in misfits(d, frames, lambda x: float(x.evaluate(d.parameters))):
        if bad.any():
            raise ModelError(f"gear pair {pair.name!r} cannot mesh: {text(0)}", element=pair.name)
    return frames


def misfits(
    d: Description, frames: Callable[[str], Frames], evaluated: Callable[[Expression], Any]
) -> Iterator[tuple[GearPair, Bools, Callable[[int], str]]]:
    """What may keep each gear pair from meshing in n cases: whether it does (n,), and what to say of a case."""
    for pair in d.point_constraints:
        if isinstance(pair, GearPair):
            first, second = map(frames, pair.places)
            for bad, text in _misfits(pair, pair_radii(pair, evaluated), first, second):
                yield pair, bad, text


def frames_at(
    d: Description, r: Floats, p: Floats, array: Callable[[str], Floats] | None = None
) -> Callable[[str], Frames]:
    """The frame of a name where the bodies are at r (n, nb, 3, 3) and p (n, nb, 3); `array` gives those of n cases."""
    array = array or (lambda name: np.asarray(getattr(d, name), dtype=np.float64)[None])

    def frame(name: str) -> Frames:
        body, k = d.frame_number(name)
        axes, origin = np.eye(3)[None], np.zeros((1, 3))
        if k is not None:
            axes, origin = array("frame_r")[:, k], array("frame_p")[:, k]
        if body == GROUND:
            return axes, origin
        return r[:, body] @ axes, p[:, body] + np.einsum(
            "nij,nj->ni", r[:, body], np.broadcast_to(origin, p[:, body].shape)
        )

    return frame


def _as_drawn(d: Description, pair: GearPair, first: Frames, second: Frames) -> GearPair:
    """The pair with its senses, and with its phase unless it is given, for frames (3, 3) and (3)."""
    r, p = first[0].T @ second[0], first[0].T @ (second[1] - first[1])
    pair = replace(pair, senses=_senses(pair.kind, r, p))
    if pair.phase is not None:
        return pair
    numbers = [float(x.evaluate(d.parameters)) for x in form_numbers(replace(pair, phase=0.0))]
    phase = float(rolled(pair.kind, r, p, numbers))
    phase -= numbers[-1] * round(phase / numbers[-1])
    # Teeth that grow stay as far from mesh as they were, in parts of their pitch.
    return replace(pair, phase=phase, drawn_radius=numbers[0] if phase and pair.radius.names() else None)


def _senses(kind: str, r: Floats, p: Floats) -> tuple[int, int]:
    """The senses of both axes: those of bevel gears point from where the axes meet to the gears; the second of parallel
    axes is that of the first. The first of a rack is the sense of its travel, of a worm of its line of centres."""
    z1, z2 = np.array([0.0, 0.0, 1.0]), r[:, 2]
    if kind in PARALLEL:
        return 1, _sign(z2[2])
    if kind == "rack":
        return _sign(float(np.cross(z1, p) @ z2)), 1
    if kind == "worm":
        return _sign(float(np.cross(z1, z2) @ p)), 1
    k = float(z2[2])
    before = (p[2] - k * (z2 @ p)) / (1.0 - k * k), (k * p[2] - z2 @ p) / (1.0 - k * k)
    size = FIT * float(np.linalg.norm(p)) + 1e-300
    first, second = (1 if abs(x) < size else -_sign(float(x)) for x in before)  # a frame where the axes meet: its h
    return first, second


def _sign(x: float) -> int:
    return -1 if x < 0.0 else 1


def _misfits(pair: GearPair, radii: tuple[Any, Any], first: Frames, second: Frames) -> Iterator[Misfit]:
    """What keeps gears from meshing as drawn, for frames (n, 3, 3) and (n, 3) and radii (n,) or single ones."""
    (axes, origin), (others, to) = first, second
    z1, z2, d = axes[..., 2], others[..., 2], to - origin
    r1, r2 = (np.broadcast_to(x, d.shape[:-1]) for x in radii)
    size = r1 + r2
    yield ~(np.isfinite(size) & (r1 > 0.0)), lambda k: f"a pitch radius of {r1[k]:g} m is no positive length"
    cosine = _dot(z1, z2)
    angle = np.degrees(np.arccos(np.clip(np.abs(cosine), 0.0, 1.0)))
    turn = "give frames whose h axes are the axes of the gears"
    yield from (_of_parallel if pair.kind in PARALLEL else _CROSSED[pair.kind])(pair, r1, r2, z1, z2, d, angle, turn)


def _of_parallel(
    pair: GearPair, r1: Floats, r2: Floats, z1: Floats, z2: Floats, d: Floats, angle: Floats, turn: str
) -> Iterator[Misfit]:
    yield np.sin(np.radians(angle)) > FIT, lambda k: f"its axes are at {angle[k]:.4g}° and should be parallel; {turn}"
    yield _out_of_plane(_dot(d, z1), r1 + r2)
    centres = _size(_without(d, z1))
    if pair.kind in BELTS:
        text = "m apart, and their radii are"
        yield (
            centres <= r1 + r2,
            lambda k: f"its wheels overlap: they are {centres[k]:.6g} {text} {r1[k]:.6g} and {r2[k]:.6g} m",
        )
        return
    external = pair.kind == "external"
    wanted = r1 + r2 if external else np.abs(r1 - r2)
    names = "r₁ + r₂" if external else "|r₁ − r₂|"
    yield _same_teeth(r1, r2) if not external else (np.zeros_like(r1, dtype=bool), str)
    yield _distance(centres, wanted, r1 + r2, names)


def _same_teeth(r1: Floats, r2: Floats) -> Misfit:
    return np.abs(r1 - r2) <= FIT * (
        r1 + r2
    ), lambda k: f"both pitch radii are {r1[k]:.6g} m; a ring has more teeth than the gear inside it"


def _distance(centres: Floats, wanted: Floats, size: Floats, names: str) -> Misfit:
    return (
        ~(np.abs(centres - wanted) <= FIT * size),
        lambda k: (
            f"its centres are {centres[k]:.6g} m apart and {names} is {wanted[k]:.6g} m; "
            "move a centre, or change the module, teeth or radii"
        ),
    )


def _out_of_plane(gap: Floats, size: Floats) -> Misfit:
    return (
        np.abs(gap) > FIT * size,
        lambda k: (
            f"its origins are {abs(float(gap[k])):.4g} m apart along an axis; give frames in the plane "
            "where the teeth meet"
        ),
    )


def _of_rack(
    pair: GearPair, r1: Floats, r2: Floats, z1: Floats, z2: Floats, d: Floats, angle: Floats, turn: str
) -> Iterator[Misfit]:
    across = "h of the rack's frame is its direction of travel"
    yield np.cos(np.radians(angle)) > FIT, lambda k: f"its axes are at {angle[k]:.4g}° and should be at 90°; {across}"
    beside = _without(d, z2)
    yield _out_of_plane(_dot(beside, z1), r1)
    centres = _size(_without(beside, z1))
    yield (
        ~(np.abs(centres - r1) <= FIT * r1),
        lambda k: (
            f"the pitch line is {centres[k]:.6g} m from the centre and the pitch radius is {r1[k]:.6g} m; "
            "give the rack a frame on its pitch line"
        ),
    )


def _of_bevel(
    pair: GearPair, r1: Floats, r2: Floats, z1: Floats, z2: Floats, d: Floats, angle: Floats, turn: str
) -> Iterator[Misfit]:
    normal = np.cross(z1, z2)
    sine = _size(normal)
    yield sine < 0.02, lambda k: f"its axes are at {angle[k]:.4g}° and should meet; {turn}"
    gap = np.abs(_dot(normal, d)) / np.where(sine > 0.0, sine, 1.0)
    yield gap > FIT * (r1 + r2), lambda k: f"its axes pass each other at {gap[k]:.4g} m and should meet; {turn}"
    with np.errstate(all="ignore"):
        k12 = _dot(z1, z2)
        before = (_dot(d, z1) - k12 * _dot(d, z2)) / sine**2, (k12 * _dot(d, z1) - _dot(d, z2)) / sine**2
        least = FIT * _size(d)
        sides = [np.where(np.abs(x) < least, 1.0, -np.sign(x)) for x in before]
        k12 = k12 * sides[0] * sides[1]
        cones = [np.degrees(np.arctan2(sine, other / one + k12)) for one, other in ((r1, r2), (r2, r1))]
    steep = np.maximum(*cones)
    yield (
        steep > math.degrees(CONE),
        lambda k: (
            f"its cones have {cones[0][k]:.4g}° and {cones[1][k]:.4g}°; each must be below 88°: change teeth or axes"
        ),
    )


def _of_worm(
    pair: GearPair, r1: Floats, r2: Floats, z1: Floats, z2: Floats, d: Floats, angle: Floats, turn: str
) -> Iterator[Misfit]:
    yield np.cos(np.radians(angle)) > FIT, lambda k: f"its axes are at {angle[k]:.4g}° and should be at 90°; {turn}"
    for axis in (z1, z2):
        yield _out_of_plane(_dot(d, axis), r1 + r2)
    yield _distance(_size(d), r1 + r2, r1 + r2, "r₁ + r₂")


_CROSSED = {"rack": _of_rack, "bevel": _of_bevel, "worm": _of_worm}


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.sum(a * b, axis=-1))


def _size(a: Floats) -> Floats:
    return np.asarray(np.linalg.norm(a, axis=-1))


def _unit(a: Floats) -> Floats:
    return np.asarray(a / _size(a)[..., None])


def _without(a: Floats, unit: Floats) -> Floats:
    """What of vectors is perpendicular to units."""
    return np.asarray(a - _dot(a, unit)[..., None] * unit)
