"""What a controller is: something that is started and then asked for forces at every sample; sums and outer loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, ShapeError


class Target(NamedTuple):
    """What a reference asks for at a time: position, velocity and acceleration."""

    x: Floats
    xd: Floats
    xdd: Floats


class Reference(Protocol):
    """A motion to follow."""

    def at(self, t: float) -> Target:
        """Position, velocity and acceleration at a time."""


class State(NamedTuple):
    """The true state of the plant, which sensors="exact" lets a controller see."""

    q: Floats
    v: Floats
    a: Floats


@dataclass(slots=True)
class Measured:
    """What a controller measures at a sample: never the true state, unless the loop was asked for it.

    - `period`: the time between samples (s).
    - `q`, `v`: the measured coordinates (rad, m) and rates of the joints with encoders.
    - `applied`: the forces that the actuators were last given (as wide as there are drives). `cut`: what slew and
      saturation took off the last command.
    - `joints`, `drives`: names of what q and the forces are of.
    - `signals`: what further sensors give, by their names.
    - `state`: the true q, v and a with sensors="exact", else None.

    >>> import numpy as np, linkwright as lw
    >>> measured = lw.control.Measured(1e-3, np.array([0.1]), np.zeros(1), np.zeros(1), np.zeros(1))
    >>> lw.control.pid(lw.chain(1), 20.0, 2.0, 0.0, lw.control.Hold([0.0])).step(0, 0.0, measured).tolist()
    [-2.0]

    The arrays are those of the loop: copy what is to stay. A `Loop` makes it and gives it to its controller.
    """

    period: float
    q: Floats
    v: Floats
    applied: Floats
    cut: Floats
    joints: tuple[str, ...] = ()
    drives: tuple[str, ...] = ()
    signals: dict[str, Floats] = field(default_factory=dict)
    state: State | None = None


class Controller:
    """A controller: `start` once, then `step` at every sample, which gives the force of each drive.

    What follows a reference defines `follow(t, measured, target)` instead of `step`, so that an outer loop can change
    the target (`Corrected`). Controllers add up: `dynamic + lw.control.friction(...)`.

    >>> import numpy as np, linkwright as lw
    >>> class Damper(lw.control.Controller):
    ...     def step(self, k, t, measured):
    ...         return -2.0 * measured.v
    >>> bool(lw.control.Loop(lw.chain(1), Damper()).run(0.1).status)
    True
    >>> arm = lw.chain(1)
    >>> tracking = lw.control.computed_torque(arm, 100.0, 20.0, lw.control.Hold([0.0]))
    >>> sol = lw.simulate(arm, 0.1, q0=[0.1], tau=tracking.law())
    >>> measured = lw.control.Measured(1e-3, np.array([0.1]), np.zeros(1), np.zeros(1), np.zeros(1))
    >>> before = tracking.start(measured)
    >>> forces = tracking.step(0, 0.0, measured), tracking.follow(0.0, measured, lw.control.Hold([0.0]).at(0.0))

    A `Loop` calls `start`, then `step` or `follow`. Their arguments: `k`, the number of the sample, from 0 on; `t`, its
    time (s); `measured`, a `Measured`; `target`, x, ẋ and ẍ (n each), or None where no reference is followed.

    A class that defines neither raises `NotImplementedError` in a run; `law` of one that has none raises `ModelError`.
    """

    reference: Reference | None = None
    #: In a sum, the controller that follows the reference; and of that one, the rates (n) that it wants of the joints.
    leader: Any = None
    desired_rates: Floats | None = None

    def start(self, measured: Measured) -> Any:
        """Prepare for a run; may give the forces that act before the first command arrives."""
        return None

    def follow(self, t: float, measured: Measured, target: Target | None) -> Any:
        """The forces for a target."""
        raise NotImplementedError(f"{type(self).__name__} must define step or follow")

    def step(self, k: int, t: float, measured: Measured) -> Any:
        """The forces for sample k at time t."""
        return self.follow(t, measured, self.reference.at(t) if self.reference is not None else None)

    @property
    def signals(self) -> Mapping[str, Any]:
        """Numbers and arrays of the last step that a record of the run should have, by name."""
        return {}

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """A function tau(t, q, v) of the whole state, for `lw.simulate`: of controllers without memory."""
        raise ModelError(f"{type(self).__name__} keeps something between samples, or has no law; run it in a Loop")

    def __add__(self, other: Any) -> Controller:
        return Sum((*_parts(self), *_parts(other)))

    def __radd__(self, other: Any) -> Controller:
        return Sum((*_parts(other), *_parts(self)))


def _parts(one: Any) -> tuple[Any, ...]:
    if isinstance(one, Sum):
        return one.parts
    if not hasattr(one, "step"):
        raise ModelError(f"a controller has start(measured) and step(k, t, measured); {one!r} has not")
    return (one,)


class Sum(Controller):
    """Controllers whose forces add up; the first that has a reference is the one that an outer loop corrects."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts
        self.leader = next((x for x in parts if getattr(x, "reference", None) is not None), None)
        self.reference = None if self.leader is None else self.leader.reference
        for x in parts:
            if isinstance(x, Controller) and x is not self.leader:
                x.leader = self.leader

    def start(self, measured: Measured) -> Any:
        """Start all of them."""
        return _total([x.start(measured) for x in self.parts if hasattr(x, "start")])

    def follow(self, t: float, measured: Measured, target: Target | None) -> Any:
        """The sum of their forces, for the target those of the leader and of all that have no reference."""
        if self.leader is not None:
            check_follows(self.leader)
        return self._sum(round(t / measured.period), t, measured, target, self.leader)

    def step(self, k: int, t: float, measured: Measured) -> Any:
        """The sum of their forces."""
        return self._sum(k, t, measured, None if self.reference is None else self.reference.at(t), None)

    def _sum(self, k: int, t: float, measured: Measured, target: Target | None, led: Any) -> Any:
        """`led` is given the target even if it has a step of its own, which would ask its own reference."""
        forces = []
        for x in self.parts:
            may_follow = isinstance(x, Controller) and (x is self.leader or x.reference is None)
            follows = x is led or (may_follow and type(x).step is Controller.step)
            forces.append(x.follow(t, measured, target) if follows else x.step(k, t, measured))
        return _total(forces)

    @property
    def signals(self) -> Mapping[str, Any]:
        """The signals of all parts."""
        return {name: value for x in self.parts for name, value in getattr(x, "signals", {}).items()}

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """The sum of their laws."""
        laws = [x.law() for x in self.parts]
        return lambda t, q, v: sum(law(t, q, v) for law in laws)


def check_follows(one: Any) -> None:
    """Refuse a controller that an outer loop could not correct, as it cannot be given a target."""
    if isinstance(one, Sum):
        check_follows(one.leader)
        return
    follow = getattr(one, "follow", None)
    if getattr(follow, "__func__", follow) in (None, Controller.follow):
        name = type(one).__name__
        raise ModelError(
            f"{name} follows a reference of its own and has no follow(t, measured, target), so that a corrected target "
            f"would not reach it; give {name} a follow"
        )


def _total(forces: list[Any]) -> Any:
    arrays = [np.asarray(x, dtype=np.float64) for x in forces if x is not None]
    return sum(arrays[1:], arrays[0]) if arrays else None


class Corrected(Controller):
    """An outer loop: what `inner` is to follow goes through `correct(k, t, measured, target) -> target` first.

    `correct` may be an object with `start(measured)` besides; it may change any of x, ẋ and ẍ. Acceleration feedback
    is of this kind: it compares what an accelerometer measures with target.xdd and gives a corrected ẍ.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> inner = lw.control.computed_torque(arm, 100.0, 20.0, lw.control.Hold([0.0]))
    >>> ahead = lw.control.Corrected(inner, lambda k, t, measured, target: (target.x + 0.1, target.xd, target.xdd))
    >>> round(float(lw.control.Loop(arm, ahead, sensors="exact").run(2.0).q[-1, 0]), 2)
    0.1

    Raises `ModelError` where the inner controller follows no reference, or cannot be given a target.
    """

    def __init__(self, inner: Controller, correct: Callable[[int, float, Measured, Target], Any]) -> None:
        if getattr(inner, "reference", None) is None:
            raise ModelError("the inner controller follows no reference; give it one, or correct another controller")
        check_follows(inner)
        self.inner, self.correct = inner, correct
        self.reference = inner.reference
        self._corrected: Target | None = None

    def start(self, measured: Measured) -> Any:
        """Start the correction and the inner controller."""
        held = None
        for part in (self.correct, self.inner):
            begin = getattr(part, "start", None)
            held = None if begin is None else begin(measured)
        return held

    def follow(self, t: float, measured: Measured, target: Target | None) -> Any:
        """The inner controller's forces for a target that is corrected first."""
        assert target is not None
        self._corrected = Target(*self.correct(round(t / measured.period), t, measured, target))
        return self.inner.follow(t, measured, self._corrected)

    @property
    def signals(self) -> Mapping[str, Any]:
        """The signals of the inner controller and of the correction, and the corrected acceleration."""
        corrected = {} if self._corrected is None else {"corrected.xdd": self._corrected.xdd}
        return {**getattr(self.inner, "signals", {}), **getattr(self.correct, "signals", {}), **corrected}


def one_or_each(name: str, numbers: Any, n: int) -> Floats:
    """A number for each of n directions or drives: one for all, or n of them."""
    array = real_array(name, numbers)
    if array.shape not in ((), (n,)):
        text = f"{name} has shape {array.shape}; give one number, or {n} of them"
        raise ShapeError(text, given=array.shape, wanted=(n,))
    return np.array(np.broadcast_to(array, (n,)))


def gains(name: str, numbers: Any, n: int) -> Floats:
    """A gain for each of n directions: one number for all, or n of them."""
    array = one_or_each(name, numbers, n)
    if not np.isfinite(array).all() or (array < 0.0).any():
        raise ModelError(f"{name} must be finite and not negative, not {numbers!r}")
    return array


def check_target(target: Target | None, n: int, what: str) -> None:
    """Refuse a reference of the wrong width before it is followed."""
    if target is None:
        raise ModelError(f"{what} follows a reference; give reference=...")
    for part, x in zip(Target._fields, target, strict=True):
        if np.shape(x) != (n,):
            text = f"the reference's {part} has shape {np.shape(x)}; {what} needs ({n},)"
            raise ShapeError(text, given=np.shape(x), wanted=(n,))
