"""`friction`: forces that make up for static and viscous friction of joints, added to any controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.base.checks import positive_number
from linkwright.control.loop.controller import Controller, Measured, Target, gains
from linkwright.control.loop.plant import joint_positions
from linkwright.errors import ModelError, NameNotFound

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def friction(
    static: ArrayLike = 0.0,
    viscous: ArrayLike = 0.0,
    *,
    velocity_scale: float = 0.01,
    joints: Sequence[str] | str | None = None,
    of: Literal["measured", "reference"] = "measured",
    mech: Mechanism | None = None,
) -> Friction:
    """Compensation static·tanh(ω/velocity_scale) + viscous·ω (N m, N m s/rad; velocity_scale in rad/s) of joints.

    Add it to a controller: `dynamic + lw.control.friction(60.0, 100.0)`. ω is the measured rate, or with
    of="reference" the one that the controller beside it wants, which has no noise and is ahead of the motion. `joints`
    are names out of the loop's encoders or drives (all of them by default). mech is needed for `law` alone.
    """
    return Friction(static, viscous, velocity_scale, joints, of, mech)


class Friction(Controller):
    """See `friction`."""

    def __init__(
        self, static: ArrayLike, viscous: ArrayLike, scale: float, joints: Any, of: str, mech: Mechanism | None
    ) -> None:
        self.scale = positive_number("velocity_scale, a rate in rad/s,", scale)
        if of not in ("measured", "reference"):
            raise NameNotFound("rate", str(of), ["measured", "reference"])
        self.joints = None if joints is None else ((joints,) if isinstance(joints, str) else tuple(joints))
        self.static, self.viscous, self.of, self.mech = static, viscous, of, mech
        if self.joints is not None:
            gains("static", static, len(self.joints))
            gains("viscous", viscous, len(self.joints))
        self._static, self._viscous = np.zeros(0), np.zeros(0)

    def start(self, measured: Measured) -> Any:
        """Find the named joints among those of the loop."""
        n = len(measured.applied)
        if len(measured.q) != n:
            text = f"{len(measured.q)} joints are measured and {n} driven; friction needs one measured for each drive"
            raise ModelError(text)
        self._static, self._viscous = np.zeros(n), np.zeros(n)
        at = list(range(n))
        if self.joints is not None:
            at = [_position(name, measured) for name in self.joints]
        self._static[at], self._viscous[at] = (
            gains(name, x, len(at)) for name, x in (("static", self.static), ("viscous", self.viscous))
        )

    def follow(self, t: float, measured: Measured, target: Target | None) -> Floats:
        """The forces against friction."""
        rates: Any = measured.v
        if self.of == "reference":
            rates = None if self.leader is None else self.leader.desired_rates
            if rates is None or np.shape(rates) != measured.v.shape:
                text = "friction(of='reference') is added behind a controller that knows the rates it wants"
                raise ModelError(f"{text}: computed_torque, resolved_acceleration or pid of joints")
        return np.asarray(self._static * np.tanh(rates / self.scale) + self._viscous * rates)

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """tau(t, q, v), of the joints' own rates; in NumPy syntax, so that it can be recorded."""
        if self.mech is None:
            raise ModelError("a law of friction needs the mechanism; give mech=...")
        names, _, at = joint_positions(self.mech, self.joints, "joints")
        static, viscous = (np.zeros(self.mech.nv) for _ in range(2))
        static[at], viscous[at] = gains("static", self.static, len(names)), gains("viscous", self.viscous, len(names))
        scale = self.scale
        return lambda t, q, v: static * np.tanh(v / scale) + viscous * v


def _position(name: str, measured: Measured) -> int:
    for names in (measured.joints, measured.drives):
        if name in names:
            return names.index(name)
    raise NameNotFound("measured or driven joint", name, [*measured.joints, *measured.drives])
