"""Force elements and the quantities that laws name: the step of each, written once.

A step is a function of frames on moving bodies and of `evaluate`, which gives the values of an element's laws. It does
not know whether it is run once an element with constants folded (`dynamics.recording_context`) or recorded once for all
elements of one structure and run in a loop (`constraints.rolled_elements`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.errors import ModelError
from linkwright.model.elements import AppliedWrench, Bushing, Element, PointForce, ReactionFriction
from linkwright.model.expression import Expression
from linkwright.model.joint_kinds import JointKind
from linkwright.model.quantities import Quantity
from linkwright.spatial.algebra import Array, dot, length
from linkwright.spatial.rotation import euler_parameters, left_jacobian_inverse_times, logarithm

#: The values of an element's laws, from the names that it adds to parameters, TIME and quantities.
Evaluate = Callable[[Mapping[str, Any]], Sequence[Any]]
Laws = tuple[Expression, ...]  # those of one element


@dataclass(frozen=True)
class BodyFrame:
    """A frame at the point p of a body, turned by R in it, where the body has origin x, axes r and twist w.

    The subclass of a traversal says how its twists and wrenches are written.
    """

    x: Array
    r: Array
    w: Array
    p: Array
    turn: Array | None

    @property
    def position(self) -> Array:
        return self.x + self.r @ self.p

    @property
    def axes(self) -> Array:
        return self.r @ self.turn

    @property
    def angular_velocity(self) -> Array:
        return self.r @ self.w[3:]

    @property
    def velocity(self) -> Array:
        """Of the frame's origin, in the traversal's axes of ground."""
        raise NotImplementedError

    def wrench(self, force: Array, moment: Array) -> Array:
        """A force and a moment at the frame, in the traversal's axes of ground, as a wrench on the body."""
        raise NotImplementedError

    def to_ground(self, vector: Array) -> Array:
        """A vector in the traversal's axes of ground, in ground's own."""
        return vector

    def from_ground(self, vector: Array) -> Array:
        """A vector in ground's own axes, in those that the traversal has for ground."""
        return vector


@dataclass(frozen=True)
class Action:
    """Elements with one step: step(evaluate, *frames) gives a number or wrench for each of its first frames' bodies."""

    laws: Sequence[Laws]
    frames: Sequence[tuple[str, ...]]
    step: Callable[..., tuple[Array, ...]]
    pushed: int = 1  # how many of the frames' bodies get a wrench
    turned: tuple[int, ...] = ()  # the frames whose axes are used


def actions(elements: Sequence[Element]) -> Iterator[Action]:
    """The force elements that act on bodies, those with one step together; refuses friction that follows reactions."""
    for e in elements:
        if isinstance(e, ReactionFriction):
            text = f"friction {e.name!r} follows the reaction of joint {e.joint!r}, which no compiled program holds; "
            text += "mech.forward_dynamics, inverse_dynamics, reactions, lw.simulate and lw.analyse take it; elsewhere "
            raise ModelError(text + "give its size, as in FRICTION f (joint = j, friction = 0.2)", element=e.name)
    points = [e for e in elements if isinstance(e, PointForce)]
    if points:
        yield Action([(e.law,) for e in points], [(e.first, e.second) for e in points], point_force, pushed=2)
    groups: dict[tuple[str, bool], list[AppliedWrench]] = {}
    for e in elements:
        if isinstance(e, AppliedWrench):
            groups.setdefault((e.axes, bool(e.reaction)), []).append(e)
    for (axes, reacts), members in groups.items():
        frames = [(e.frame, *((e.reaction,) if reacts else ()), *_frame_of_axes(e)) for e in members]
        step = _applied_wrench(axes != "ground", reacts)
        turned = (len(frames[0]) - 1,) if axes != "ground" else ()
        yield Action([e.laws for e in members], frames, step, 1 + reacts, turned)
    bushings = [e for e in elements if isinstance(e, Bushing)]
    if bushings:
        yield Action([e.laws for e in bushings], [e.places for e in bushings], bushing, pushed=2, turned=(0, 1))


def _frame_of_axes(element: AppliedWrench) -> tuple[str, ...]:
    return {"frame": (element.frame,), "ground": ()}.get(element.axes, (element.axes_of,))


def point_force(evaluate: Evaluate, first: BodyFrame, second: BodyFrame) -> tuple[Array, Array]:
    """The wrenches on two bodies of a force along the line between points of them."""
    line = second.position - first.position
    distance = length(line)
    unit = line / distance
    law = evaluate({"d": distance, "dd": dot(unit, second.velocity - first.velocity)})[0]
    return first.wrench(-law * unit, np.zeros(3)), second.wrench(law * unit, np.zeros(3))


def _applied_wrench(turned: bool, reacts: bool) -> Callable[..., tuple[Array, ...]]:
    def applied_wrench(evaluate: Evaluate, at: BodyFrame, *others: BodyFrame) -> tuple[Array, ...]:
        """The wrench of six laws, in the axes of the last frame or of ground, and its opposite on another body."""
        laws = np.array(evaluate({}))
        parts = laws[:3], laws[3:]
        force, moment = (others[-1].axes @ part if turned else at.from_ground(part) for part in parts)
        wrench = at.wrench(force, moment)
        if not reacts:
            return (wrench,)
        # The opposite wrench acts at the same point in space, so that the two together are nothing.
        return wrench, shifted(others[0], at.position).wrench(-force, -moment)

    return applied_wrench


def bushing(evaluate: Evaluate, first: BodyFrame, second: BodyFrame) -> tuple[Array, Array]:
    """The wrenches of a bushing on its two bodies: opposite, at the second frame's origin."""
    force, torque = (first.axes @ part for part in bushing_load(evaluate, first, second))
    return shifted(first, second.position).wrench(-force, -torque), second.wrench(force, torque)


def bushing_load(evaluate: Evaluate, first: BodyFrame, second: BodyFrame) -> tuple[Array, Array]:
    """The force and the torque of a bushing on its second frame, in the axes of the first."""
    k, k_turn, c, c_turn, preload, preload_torque = np.array(evaluate({})).reshape(6, 3)
    axes = first.axes
    line = second.position - first.position
    # ṙ in the first frame's axes, which turn: the velocity of the second origin over the first body.
    slip = second.velocity - shifted(first, second.position).velocity
    theta = logarithm(euler_parameters(axes.T @ second.axes))
    omega = axes.T @ (second.angular_velocity - first.angular_velocity)
    force = preload - k * (axes.T @ line) - c * (axes.T @ slip)
    # J(θ)ᵀ = J(−θ)
    torque = preload_torque - left_jacobian_inverse_times(-theta, k_turn * theta) - c_turn * omega
    return force, torque


def shifted(frame: BodyFrame, position: Array) -> BodyFrame:
    """A frame of the same body whose origin is at a position in space."""
    return replace(frame, p=frame.r.T @ (position - frame.x))


def measuring(quantity: Quantity) -> Callable[..., tuple[Array, ...]]:
    """The step that measures a place or a distance, or its rate, from the frames that the quantity names."""

    def place(evaluate: Evaluate, frame: BodyFrame) -> tuple[Array, ...]:
        if not quantity.rate:
            return (frame.to_ground(frame.position)[quantity.index : quantity.index + 1],)
        vector = frame.velocity if quantity.index < 3 else frame.angular_velocity
        return (frame.to_ground(vector)[quantity.index % 3 : quantity.index % 3 + 1],)

    def distance(evaluate: Evaluate, first: BodyFrame, second: BodyFrame) -> tuple[Array, ...]:
        line = second.position - first.position
        measured = length(line)
        if quantity.rate:
            measured = dot(line, second.velocity - first.velocity) / measured
        return (np.array([measured]),)

    return place if quantity.kind == "place" else distance


@dataclass(frozen=True)
class LoopCoordinate:
    """A coordinate of a joint that closes a loop, and its rate; `push` is the wrench of a unit force along it.

    The wrench acts on the child at the frame of the joint on it, in the axes of that frame.
    """

    value: Any  # None where the joint's coordinates are neither angles nor shifts
    rate: Any
    push: Array

    def force(self, evaluate: Evaluate) -> Any:
        """The force of a law on this coordinate."""
        coordinate = {} if self.value is None else {"q": self.value}
        return evaluate({**coordinate, "v": self.rate})[0]


def loop_coordinate(kind: JointKind, pitch: Any, index: int, r: Array, p: Array, w: Array) -> LoopCoordinate:
    """A joint's coordinate where its frames have this pose and relative twist, both of the second in the first."""
    push = kind.dual(kind.terms_between(r, p), pitch)[:, index]
    return LoopCoordinate(kind.coordinate(index, r, p, pitch) if kind.paired else None, dot(push, w), push)
