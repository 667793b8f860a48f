r"""Joints with clearance: a mechanism whose joint frames are moved by parameters of their own, which are zero.

The frame of a joint on its parent's body is moved across the joint's axis by (x, y) of its axes f and g, or tilted by
angles about f and g, R(ξ, η) = R Rx(ξ) Ry(η). The parameters are of the description, so that derivatives by them,
analyses with them and studies of them are those of every other parameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.base.arguments import check_names, free_name
from linkwright.base.arrays import Floats
from linkwright.design.recorded_functions import Evaluator
from linkwright.errors import ModelError
from linkwright.mechanism import Mechanism
from linkwright.model.description import Description
from linkwright.model.elements import split_bindings
from linkwright.model.expression import Name
from linkwright.outputs.derivatives import Series
from linkwright.spatial.algebra import Array

#: Kinds of joints that turn about or slide along one axis, across which their frames can be moved.
KINDS = ("revolute", "prismatic", "cylindrical")
RANK = 1e-9  # of the largest singular value, what counts as none
OPENS = 1e-6  # of what a movement changes, the part that no motion of the bodies takes up


@dataclass(frozen=True)
class Play:
    """How the frame of a joint can be moved: the parameters, and along which directions of its axes f and g.

    `along` are the parameters of each direction, `size` and `angle` those of a vector in the plane of two directions.
    `directions` (2, m) are unit vectors.
    """

    joint: str
    tilts: bool
    along: tuple[str, ...]
    directions: Floats
    size: str
    angle: str

    def moved(self) -> Array:
        """(2,): how far along, or about, f and g, as expressions."""
        parts: list[Any] = [Name(name) for name in self.along]
        if len(parts) == 2:
            size: Any = Name(self.size)
            angle: Any = Name(self.angle)
            parts = [parts[0] + size * np.cos(angle), parts[1] + size * np.sin(angle)]
        return np.asarray(self.directions.astype(object) @ np.array(parts, dtype=object))

    @property
    def parameters(self) -> tuple[str, ...]:
        """All of its parameters."""
        return (*self.along, self.size, self.angle) if len(self.along) == 2 else self.along


def with_clearances(
    mech: Mechanism, wanted: Sequence[tuple[str, bool]], series: Series, times: Floats
) -> tuple[Mechanism, list[Play]]:
    """The mechanism with parameters for the clearances of joints, and what these are.

    `wanted` are joints by name, and whether the clearance is a tilt. Of the two directions of a clearance those remain
    in which the frame can be moved without opening redundant constraints: of a plane mechanism those of its plane.
    `series` and `times` are those of the analysis.
    """
    if not wanted:
        return mech, []
    plays: list[Play] = []
    for joint, tilts in wanted:
        taken = {*mech.description.parameters, *(name for play in plays for name in play.parameters)}
        plays.append(_play(mech.description, joint, tilts, taken))
    whole = _parametrised(mech, plays)
    if not whole.programs.closed:
        return whole, plays
    plays = [replace(play, **_free_directions(whole, play, series, times)) for play in plays]
    return _parametrised(mech, plays), plays


def _play(d: Description, joint: str, tilts: bool, taken: set[str]) -> Play:
    if d.joint_names.find(joint) is None:
        check_names("joint", [joint], list(d.joint_names[:2000]))
    kind = d.kind_of(d.joint_names.position("joint", joint)).name
    if kind not in KINDS:
        text = f"joint {joint!r} is {kind}, and clearances are of {', '.join(KINDS)} joints"
        raise ModelError(
            f"{text}; leave it out, or give the origin of its frame as parameters with tolerances", element=joint
        )
    stem = re.sub(r"[^A-Za-z0-9_]", "_", joint)
    stem = f"{stem if stem[:1].isalpha() else f'joint_{stem}'}_{'tilt' if tilts else 'clearance'}"
    x, y, size, angle = (free_name(f"{stem}_{part}", taken) for part in ("x", "y", "size", "angle"))
    return Play(joint, tilts, (x, y), np.eye(2), size, angle)


def _parametrised(mech: Mechanism, plays: Sequence[Play]) -> Mechanism:
    """The mechanism whose joint frames are moved as these clearances say."""
    d = mech.description
    parameters = {**d.parameters, **{name: 0.0 for play in plays for name in play.parameters}}
    bindings = dict(d.bindings)
    rows: dict[str, dict[int, Array]] = {"pi": {}, "ri": {}}
    for play in sorted(plays, key=lambda x: x.tilts):  # a frame is moved along its axes, and then tilted
        j = d.joint_names.position("joint", play.joint)
        r = _row(d, "ri", j)
        f, g = play.moved()
        if play.tilts:
            rows["ri"][j] = r @ _turn(0, f) @ _turn(1, g)
        else:
            rows["pi"][j] = _row(d, "pi", j) + r[:, 0] * f + r[:, 1] * g
    for array, by_joint in rows.items():
        for j, entries in by_joint.items():
            first = j * entries.size
            for k in range(first, first + entries.size):
                bindings.pop((array, k), None)
            bound = split_bindings(array, entries, parameters)[1]
            bindings.update({(array, first + k): expression for (_, k), expression in bound.items()})
    return type(mech)(replace(d, parameters=parameters, bindings=bindings))


def _row(d: Description, name: str, j: int) -> Array:
    """The numbers of a joint in an array, or the expressions that they come from."""
    numbers = np.array(getattr(d, name)[j], dtype=object)
    first = j * numbers.size
    entries = [d.bindings.get((name, first + k), x) for k, x in enumerate(numbers.reshape(-1))]
    return np.array(entries, dtype=object).reshape(numbers.shape)


def _turn(axis: int, angle: Any) -> Array:
    """The rotation about an axis of a frame."""
    k, m = (axis + 1) % 3, (axis + 2) % 3
    r = np.eye(3).astype(object)
    r[k, k], r[k, m], r[m, k], r[m, m] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
    return r


def _free_directions(mech: Mechanism, play: Play, series: Series, times: Floats) -> dict[str, Any]:
    """The directions of a clearance that the motion of the bodies takes up, and their parameters.

    The position with the most of them counts: others may be dead centres.
    """
    evaluator = Evaluator(mech, play.along, series, times)
    values = np.zeros(2)
    by_rate, by_parameter = evaluator.constraint_slopes()
    most = np.zeros((2, 0))
    for t in dict.fromkeys((float(times[0]), float(times[len(times) // 3]))):
        q, v = mech.initial_state(t=t)
        at = np.array([t]), values, q, v
        g, slopes = np.asarray(by_rate(*at)), np.asarray(by_parameter(*at))
        u, s, _ = np.linalg.svd(g)
        outside = u[:, int((s > RANK * s.max(initial=0.0)).sum()) :]
        _, opening, directions = np.linalg.svd(outside.T @ slopes)
        size = max(float(np.linalg.norm(slopes, 2)), 1e-300)
        closed = directions[int((opening > OPENS * size).sum()) :].T
        most = closed if closed.shape[1] > most.shape[1] else most
    if most.shape[1] == 2:
        return {}
    if not most.shape[1]:
        what = "tilt" if play.tilts else "clearance"
        raise ModelError(
            f"the {what} of joint {play.joint!r} opens constraints that are redundant, in every direction; use joints "
            "that constrain less, or leave it out",
            element=play.joint,
        )
    along = np.round(most, 12) + 0.0
    along = along * (1.0 if along[np.argmax(np.abs(along))] > 0.0 else -1.0)
    return {"along": play.along[:1], "directions": along}
