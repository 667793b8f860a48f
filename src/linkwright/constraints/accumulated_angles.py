"""Angles that are accumulated over all their turns, and laws of drivers at given times."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Equations, Source, joint_frames, own_numbers
from linkwright.constraints.constraint_forms import between, near
from linkwright.errors import ModelError
from linkwright.model.coupling_relation import TURN, constant_changes, whole_turns
from linkwright.model.description import Description
from linkwright.model.expression import numeric_values
from linkwright.model.joint_kinds import Measure
from linkwright.model.topology import driven_coordinates, gear_order, initial_coordinates


def accumulated_angles(e: Equations, mechanisms: Iterable[Description], q: Floats, times: Iterable[float]) -> Floats:
    """(n, angles): the counted angles at states (n, nb, 7) of mechanisms that have these equations, at their times."""
    if not int(e.first_angle[-1]) or not len(q):
        return np.zeros((len(q), max(int(e.first_angle[-1]), 1)))
    rows = zip(mechanisms, q, times, strict=False)  # the mechanisms and times may be without end
    return np.stack([accumulated_at_start(e, d, state, t) for d, state, t in rows])


def accumulated_at_start(e: Equations, d: Description, q: Floats, t: float) -> Floats:
    """The counted angles of screws, gears and couplings at a drawn state of a mechanism that has the numbers of `d`.

    Whole turns come from the law of a driver on the joint, from its initial value, from a screw's shift, or through a
    gear or coupling from its other joints; where nothing tells them, the angle is the smallest.
    """
    angles = np.zeros(int(e.first_angle[-1]))
    stated = {**initial_coordinates(d, d.parameters), **driven_coordinates(d, {**d.parameters, "TIME": t})}
    known = {key: float(value) for key, value in stated.items()}

    def measure(j: int, index: int = 0) -> tuple[Measure, float]:
        """A coordinate of a joint, and its shift along the joint axis (z)."""
        r, p = between(*joint_frames(d, q, j))
        return d.kind_of(j).measures(r, p)[index], float(p[2])

    def coordinate(j: int, hint: float | None, index: int = 0) -> float:
        angle, shift = measure(j, index)
        if angle.shift is not None:
            return float(angle.shift)
        if (j, index) in known:
            hint = known[j, index]
        elif d.kind_of(j).name == "screw":
            hint = shift / float(d.pitch[j])
        return float(near(angle, 0.0 if hint is None else hint))

    places: list[int] = []  # of the angles of gears, in their order
    for k, c in enumerate(e.constraints):
        at = int(e.first_angle[k])
        if c.group == "gear":
            places.append(at)
        elif c.group == "joint" and c.form.turns:
            angles[at] = coordinate(c.source.joints[0], None)
    for k in gear_order(d, [j for j, index in known if index == 0]):
        m, at = d.mimics[k], places[k]
        if (m.follower, 0) in known and (m.leader, 0) not in known and m.ratio != 0.0:
            follower = coordinate(m.follower, None)
            leader = coordinate(m.leader, (follower - m.offset) / m.ratio)
        else:
            leader = coordinate(m.leader, None)
            follower = coordinate(m.follower, m.ratio * leader + m.offset)
        known.setdefault((m.leader, 0), leader)
        known.setdefault((m.follower, 0), follower)
        turning = [x for x, j in ((follower, m.follower), (leader, m.leader)) if measure(j)[0].shift is None]
        angles[at : at + len(turning)] = turning
    left = [(k, c.source) for k, c in enumerate(e.constraints) if c.source.relation is not None]
    while left:  # those first of which most is known
        unknown = [sum(key not in known for key in _angles(source)) for _, source in left]
        k, source = left.pop(int(np.argmin(unknown)))
        places_of = _coordinates(source)
        x = {key: coordinate(key[0], None, key[1]) for key in places_of}
        _turned_by_relation(source, x, known, own_numbers(e.constraints[k], d.parameters), t)
        angles[e.first_angle[k] : e.first_angle[k + 1]] = [x[key] for key in _angles(source)]
        known |= {key: x[key] for key in _angles(source)}
    return angles


Key = tuple[int, int]  # a joint and a coordinate's index


def _coordinates(source: Source) -> list[Key]:
    """The coordinates of a coupling."""
    assert source.relation is not None
    return [(source.joints[at], index) for at, index in source.relation.coordinates]


def _angles(source: Source) -> list[Key]:
    """Those that are angles."""
    assert source.relation is not None
    return [key for key, turns in zip(_coordinates(source), source.relation.turning, strict=True) if turns]


def _turned_by_relation(source: Source, x: dict[Key, float], known: Container[Key], p: list[float], t: float) -> None:
    """Give the first of a coupling's angles that nothing states the whole turns that its relation tells, if it does."""
    assert source.relation is not None
    keys, relation = _coordinates(source), source.relation
    loose = [k for k, turns in enumerate(relation.turning) if turns and keys[k] not in known]
    changes = constant_changes(relation, p) if loose else []
    k = next((k for k in loose if changes[k]), None)
    if k is not None:
        with np.errstate(all="ignore"):  # a guess may be where the relation has no value
            x[keys[k]] += TURN * float(whole_turns(relation, k, list(x.values()), p, t))


Flags = NDArray[np.bool_]


def undefined(d: Description, parameters: Mapping[str, Any], times: Floats) -> Iterator[tuple[str, Flags]]:
    """Each driver, and where its law has no finite value (..., times) for values (..., 1) of the parameters."""
    for driver in d.drivers:
        values = numeric_values(driver.law, {**parameters, "TIME": times})
        shape = np.broadcast_shapes(np.shape(values), times.shape)
        yield driver.name, ~np.isfinite(np.broadcast_to(values, shape))


def first_undefined(d: Description, times: Floats) -> tuple[int, str, str] | None:
    """The place of the first time (n,) at which a driver's law has no finite value, the driver, and a sentence."""
    places = [(int(np.argmax(bad)), name) for name, bad in undefined(d, d.parameters, times) if bad.any()]
    if not places:
        return None
    k, name = min(places, key=lambda place: place[0])
    return k, name, f"the law of driver {name!r} has no finite value at t = {times[k]:g}"


def check_driver_laws(d: Description, times: Floats) -> None:
    """Refuse times (n,) at one of which a driver's law has no finite value."""
    undefined = first_undefined(d, times)
    if undefined is not None:
        _, name, text = undefined
        raise ModelError(f"{text}; change the law or the times", element=name)
