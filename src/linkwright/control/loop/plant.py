"""A mechanism as the plant of a sampled loop: a state, taken on under held forces by one call of native code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arrays import Floats
from linkwright.base.checks import finite_array
from linkwright.control.loop.frame_programs import frame_motion
from linkwright.errors import ModelError, NameNotFound
from linkwright.kernels.bound import bound
from linkwright.model.lengths import coordinate_units
from linkwright.simulation.initialise import MOVED, is_near
from linkwright.simulation.integrators import METHODS, STIFF, tableau_of
from linkwright.simulation.step_control import CLOSED
from linkwright.simulation.step_programs import HeldKernels

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


class Plant:
    """A mechanism's state q, v, its acceleration a and its joint forces tau, in arrays that stay where they are.

    Parameters in `free` get their values from `begin(parameters=...)`: plants that differ in them share their code.
    """

    def __init__(self, mech: Mechanism, method: str = "rk4", free: Sequence[str] = ()) -> None:
        if method not in METHODS or method == STIFF:
            raise NameNotFound("method", str(method), [m for m in METHODS if m != STIFF])
        if not mech.nv:
            raise ModelError(f"nothing moves in {mech.name!r}: it has no joint with a freedom", element=mech.name)
        known = mech.parameters
        for name in free:
            if name not in known:
                raise NameNotFound("parameter", str(name), list(known))
        closing = mech.auxiliary.closing_with_free(free)
        mech, self.closing_notes = closing.mechanism, closing.notes
        self.mech, self.free = mech, tuple(free)
        self.q, self.v, self.a = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv)
        self.tau, self.p = np.zeros(mech.nv), np.array([known[name] for name in self.free])
        self.summary = np.zeros(2)
        self.rounds = 0.0  # of projection, all together
        self._settings = np.zeros(3)
        self._next = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv)
        self._kernels = HeldKernels(mech, tableau_of(method), self.free)
        self._more = [self.p] if self.free else []
        inputs = [self.q, self.v, self._settings, self.tau, *self._more]
        self._run = bound(self._kernels.advance, inputs, [*self._next, self.summary])

    def begin(
        self,
        q: ArrayLike | None,
        v: ArrayLike | None,
        parameters: Mapping[str, float] | None = None,
        tau: ArrayLike = 0.0,
    ) -> list[str]:
        """Put the plant at the nearest state to this one, under forces tau (nv); what a person should know of it."""
        mech, notes = self.mech, list(self.closing_notes)
        self._set_parameters(parameters or {})
        if q is None:
            q, initial_rates = mech.initial_state()
            v = initial_rates if v is None else v
        rates = np.zeros(mech.nv) if v is None else v
        state = [finite_array("q0", q, (mech.nq,)).copy(), finite_array("v0", rates, (mech.nv,)).copy()]
        self.tau[:] = tau
        assembled = self._kernels.begin(*state, np.array(0.0), self.tau, *self._more)
        if mech.closed and not assembled[3][0] <= CLOSED and not self.free:
            assembled = self._kernels.begin(*mech.project(*state), np.array(0.0), self.tau)
        if mech.closed and not assembled[3][0] <= CLOSED:
            text = "the loops do not close from q0; give a state nearer to one that does, as mech.assemble finds it"
            raise ModelError(text)
        self.q[:], self.v[:], self.a[:] = assembled[:3]
        self.rounds = 0.0
        if not self.finite:
            raise ModelError("the acceleration at the start is no finite number; look at the forces and the masses")
        units = coordinate_units(mech.tree)
        if not is_near(self.q, state[0], units[0], MOVED):
            notes.append("q0 does not close the loops; the nearest coordinates that do were taken")
        if state[1].any() and not is_near(self.v, state[1], units[1], MOVED, rates=True):
            notes.append("v0 does not keep the loops closed; the nearest rates that do were taken")
        return notes

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        known = self.mech.parameters
        for name, value in parameters.items():
            if name not in self.free:
                if name not in known:
                    raise NameNotFound("parameter", str(name), list(known))
                text = f"parameter {name!r} is fixed in this plant; make it with free=({name!r}, ...)"
                raise ModelError(text, element=name)
            if not math.isfinite(value):
                raise ModelError(f"parameter {name!r} is {value}; give a finite number", element=name)
        self.p[:] = [float(parameters.get(name, known[name])) for name in self.free]

    def advance(self, t: float, length: float, steps: int) -> bool:
        """Go on from t by so many steps of equal length under `tau`; whether the state is good still.

        The state stays as it was if not; `summary` has the constraints' residual.
        """
        settings = self._settings
        settings[0], settings[1], settings[2] = t, length / steps, steps
        self._run()
        q, v, a = self._next
        residual = self.summary[0]
        if not (residual <= CLOSED and math.isfinite(q.dot(q) + v.dot(v) + a.dot(a))):
            return False
        self.rounds += self.summary[1]
        self.q[:], self.v[:], self.a[:] = q, v, a
        return True

    @property
    def finite(self) -> bool:
        """Whether the state has finite numbers only."""
        return all(bool(np.isfinite(x).all()) for x in (self.q, self.v, self.a))

    @property
    def failed(self) -> tuple[Floats, Floats, Floats]:
        """The state that was no good; numbers whose squares are none are infinite in it."""
        with np.errstate(over="ignore", invalid="ignore"):
            q, v, a = (np.where(np.isfinite(x * x), x, np.inf) for x in self._next)
        return q, v, a

    def observer(self, frame: str) -> tuple[Callable[[], None], Floats, Floats, Floats]:
        """A function that puts pose (4, 4), twist (6) and its rate (6) of a frame, in ground's axes, into arrays."""
        program = frame_motion(self.mech, frame, self.free)
        outputs = np.zeros((4, 4)), np.zeros(6), np.zeros(6)
        return program.bound([self.q, self.v, self.a, *self._more], list(outputs)), *outputs


def joint_positions(mech: Mechanism, joints: Any, what: str) -> tuple[tuple[str, ...], NDArray[np.int64], Any]:
    """Joints of one freedom by name, with the places of their coordinates in q and of their rates in v.

    None stands for all joints of one freedom that have an actuator.
    """
    if joints is None:
        actuated = mech.actuated
        single = [j for j in mech.joints if j.v_slice.stop - j.v_slice.start == 1 and not j.shares]
        names = [j.name for j in single if actuated[j.v_slice.start]]
        if not names:
            raise ModelError(f"no joint of {mech.name!r} has one freedom and an actuator; name them as {what}=(...)")
    else:
        names = [joints] if isinstance(joints, str) else [str(x) for x in joints]
        if not names:
            raise ModelError(f"{what} names no joint")
        if len(set(names)) < len(names):
            raise ModelError(f"{what}={tuple(names)} names a joint twice")
    chosen = [mech.joints[name] for name in names]
    for joint in chosen:
        if joint.v_slice.stop - joint.v_slice.start != 1:
            text = f"joint {joint.name!r} is {joint.kind}; {what} names joints of one freedom"
            raise ModelError(text, element=joint.name)
        if joint.shares:
            text = f"joint {joint.name!r} has no coordinate of its own: it follows {joint.mimics!r}"
            raise ModelError(f"{text}; name that one in {what}", element=joint.name)
    return tuple(names), np.array([j.q_slice.start for j in chosen]), np.array([j.v_slice.start for j in chosen])
