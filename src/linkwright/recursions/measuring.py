"""The quantities that laws name, measured at a state: coordinates of joints, places, distances and their rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from linkwright.mechanism.elements import Element, Initial, JointForce, PointForce
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.quantities import Quantity
from linkwright.recursions.closure import joint_pair, loop_link, measured
from linkwright.recursions.kinematics import GROUND_POSE, poses, twists
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array, cross, dot, length


class Finder(Protocol):
    """Where joints and frames are in the tree."""

    @property
    def joint_positions(self) -> Mapping[str, int]: ...
    def place(self, name: str, free: Mapping[str, Any] | None = None) -> tuple[int, Array, Array]: ...


def measure(
    traversal: Unrolled, wanted: Sequence[Quantity], finder: Finder, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of quantities, by their keys; poses are computed only where one needs them.

    The angle of a joint that closes a loop is between −π and π.
    """
    joints = finder.joint_positions
    state = _State(traversal, any(x.rate for x in wanted))
    values: dict[str, Any] = {}
    for quantity in wanted:
        k = quantity.index
        if quantity.kind == "joint" and quantity.of[0] in joints:
            link = traversal.links[joints[quantity.of[0]]]
            values[quantity.key] = (link.v if quantity.rate else link.q)[k]
        elif quantity.kind == "joint":
            values[quantity.key] = state.closing(quantity, parameters)
        elif quantity.kind == "place":
            position, _, p = finder.place(quantity.of[0], parameters)
            values[quantity.key] = (state.motion(position, p) if quantity.rate else state.origin(position, p))[k]
        else:
            ends = [finder.place(name, parameters) for name in quantity.of]
            line = state.origin(ends[1][0], ends[1][2]) - state.origin(ends[0][0], ends[0][2])
            distance = length(line)
            if quantity.rate:
                a, b = (state.motion(position, p)[:3] for position, _, p in ends)
                distance = dot(line, b - a) / distance
            values[quantity.key] = distance
    return values


class _State:
    """Poses and twists of the links, computed at the first question."""

    def __init__(self, traversal: Unrolled, moving: bool) -> None:
        self.traversal, self.moving, self.ready = traversal, moving, False

    def _row(self, position: int) -> Mapping[str, Array]:
        if not self.ready:
            self.traversal.outward(poses, GROUND_POSE)
            if self.moving:
                self.traversal.outward(twists, {"w": np.zeros(6)})
            self.ready = True
        return self.traversal.rows[position] if position >= 0 else {**GROUND_POSE, "w": np.zeros(6)}

    def origin(self, position: int, p: Array) -> Array:
        """A point of a link, in ground."""
        row = self._row(position)
        return row["x"] + row["r"] @ p

    def motion(self, position: int, p: Array) -> Array:
        """The velocity of a point of a link, and the link's angular velocity, in ground's axes."""
        row = self._row(position)
        w, r = row["w"], row["r"]
        return np.concatenate([r @ (w[:3] + cross(w[3:], p)), r @ w[3:]])

    def closing(self, quantity: Quantity, parameters: Mapping[str, Any]) -> Any:
        """A coordinate or rate of a joint that closes a loop, from the poses and twists of its triads."""
        self._row(-1)
        joint = self.traversal.tree.description.joint_names.position("joint", quantity.of[0])
        link, frames = loop_link(self.traversal, joint, parameters), joint_pair(self.traversal, joint, parameters)
        if not quantity.rate:
            return measured(link.kind, link.pitch, frames.r, frames.p, quantity.index)
        return link.joint_rates(link.kind.terms_between(frames.r, frames.p), frames.w)[quantity.index]


Measured = Callable[[Sequence[Quantity]], Mapping[str, Any]]


def initial_values(initial: Sequence[Initial], measured: Measured) -> tuple[Array, Array]:
    """What initial conditions name, and how fast it changes; a rate that is named counts as both."""
    wanted = [x.quantity for x in initial]
    rates = [replace(x, rate=True) for x in wanted]
    found = measured(tuple(dict.fromkeys((*wanted, *rates))))
    values, slopes = ([found[x.key] for x in some] for some in (wanted, rates))
    return np.array(values), np.array(slopes)


def force_values(elements: Sequence[Element], names: Mapping[str, Any], measured: Measured) -> Array:
    """The forces of joint laws and of laws between points, in the order of the description."""
    own: list[tuple[Expression, dict[str, Quantity]]] = []
    for e in elements:
        if isinstance(e, JointForce):
            rate = Quantity("joint", (e.joint,), e.index, True)
            mine = {"v": rate, "q": replace(rate, rate=False)}
        elif isinstance(e, PointForce):
            rate = Quantity("distance", (e.first, e.second), 0, True)
            mine = {"dd": rate, "d": replace(rate, rate=False)}
        else:
            continue
        own.append((e.law, {name: x for name, x in mine.items() if name in e.law.names()}))
    found = measured(tuple(dict.fromkeys(x for _, mine in own for x in mine.values())))
    values = [law.evaluate({**names, **{name: found[x.key] for name, x in mine.items()}}) for law, mine in own]
    return np.array(values)
