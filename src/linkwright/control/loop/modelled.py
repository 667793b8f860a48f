"""What controllers with a model share: the model's state from what is measured, and the law of the whole state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Controller, Measured, Reference, Target
from linkwright.control.loop.posture import ModelState


class Modelled(Controller):
    """A controller with a `ModelState`, which is brought up to date before forces are computed from it.

    Its model may differ from the plant. If the loop shows the true state of a mechanism as large as the model, that is
    taken; else the model follows the measured joints.
    """

    def __init__(self, state: ModelState, reference: Reference | None) -> None:
        self.state, self.reference = state, reference

    def start(self, measured: Measured) -> Any:
        """Find the model's first state; the forces that hold the motion as it was before."""
        self.state.started = False
        return self.follow(-measured.period, measured, self.before(measured))

    def before(self, measured: Measured) -> Target | None:
        """What the reference asked for a period before the first sample."""
        return None if self.reference is None else self.reference.at(-measured.period)

    def see(self, measured: Measured) -> None:
        """Bring the model's state up to date."""
        true, state = measured.state, self.state
        if true is not None and true.q.shape == state.q.shape and true.v.shape == state.v.shape:
            state.set(true.q, true.v)
        else:
            state.update(measured.q, measured.v)

    def follow(self, t: float, measured: Measured, target: Target | None) -> Any:
        """The forces for a target, from what is measured."""
        self.see(measured)
        return self.forces(t, target)

    def forces(self, t: float, target: Target | None) -> Floats:
        """The forces (n) for a target, at the model's state."""
        raise NotImplementedError

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """tau(t, q, v) of the model's whole state, for `lw.simulate`: the same law without sampling."""
        state, at = self.state, self.state.v_places

        def tau(t: float, q: Any, v: Any) -> Floats:
            state.set(np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64))
            forces = np.zeros(state.mech.nv)
            forces[at] = self.forces(float(t), None if self.reference is None else self.reference.at(float(t)))
            return forces

        return tau
