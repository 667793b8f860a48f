r"""Equilibrium: where a mechanism stays at rest, found by a damped Newton method that goes to the stable one.

On the mechanism's own degrees of freedom, f(y) is the acceleration from rest and K = ∂f/∂y. The steps
(1/δ − K) y = f follow a heavily damped fall while δ is small, and are Newton's as it grows. What falls away from where
it is has eigenvalues of K above zero, and 1/δ stays above these: beyond, steps would lead back up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.consistent import one
from linkwright.dynamics.closed.rounding import warned
from linkwright.errors import LinkwrightError, ModelError
from linkwright.model.description import Description
from linkwright.model.expression import Call, Name, replaced

if TYPE_CHECKING:
    from linkwright.dynamics.linear_model import Linearised
    from linkwright.mechanism import Mechanism

ITERATIONS = 300
REST = 1e-10  # what counts as no acceleration, as a part of the largest that was met, or of gravity
NEAR = 1e-12  # an equilibrium nearer than this, in rad and as a part of the mechanism's length, is reached
FALL = 0.2  # of rad, or of the mechanism's length: a step where no stiffness tells how far to go
SLOW = 1e-9  # eigenvalues of K below this part of the largest are none
FARTHEST = 0.3  # of one step: rad, and at first the same part of the mechanism's length
FASTER = 2.0  # by which shifts may be longer after a step that was not too long
#: A mode that grows faster than this part of the fastest one makes an equilibrium unstable.
GROWS = 1e-6


class NoEquilibrium(LinkwrightError):
    """No state of rest was found; `q` is where the search ended, `acceleration` what is left there."""

    def __init__(self, message: str, q: Floats, acceleration: float) -> None:
        super().__init__(message)
        self.q, self.acceleration = q, acceleration


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A state of rest: its coordinates, the linear model about it, and how it was found."""

    q: Floats
    linear: Linearised
    iterations: int
    acceleration: float  # the largest that is left

    @property
    def stable(self) -> bool:
        """Whether no small motion grows."""
        values = self.linear.eigenvalues
        return not np.any(values.real > GROWS * np.abs(values).max(initial=0.0))

    def _repr_html_(self) -> str:
        from linkwright.dynamics.report_views import equilibrium_html  # for its weight: tables are for notebooks alone

        return equilibrium_html(self)


def equilibrium(mech: Mechanism, q: Floats | None, tau: Floats | None, t: float) -> Equilibrium:
    """A state of rest near q, under gravity, the force elements, tau and the drivers as they stand at time t."""
    mech = warned(mech.auxiliary.closing)
    still = _still(mech)
    force = np.zeros(mech.nv) if tau is None else one(tau, mech.nv, "tau")
    if mech.closed:
        q = still.assemble(q, t=t)
    elif q is None:
        q = mech.neutral()
    q = one(q, mech.nq, "q")
    none, units = np.zeros(mech.nv), mech.programs.rate_units
    limits = FARTHEST * units
    shift = mech.tree.shifts[1]
    most, delta = float(np.linalg.norm(mech.description.gravity)) / mech.description.length_scale, 0.0
    left = np.inf
    for k in range(ITERATIONS):
        linear = still.linearise(q, none, force, t=t)
        z, d = linear.basis, linear.basis.shape[1]
        push = still.forward_dynamics(q, none, force, t=t)
        # Of trees Z is 1, and its columns have the units of the coordinates.
        size = np.abs(z / units[:, None]).max(axis=0, initial=0.0)
        f = size * (linear.projection @ push)
        before, left = left, float(np.max(np.abs(push) / units, initial=0.0))
        stiffness = size[:, None] * linear.A[d:, :d] / size
        if not (np.isfinite(left) and np.isfinite(stiffness).all()):
            raise ModelError("forces have no finite value on the way to equilibrium; start elsewhere")
        most = max(most, left)
        if left <= max(REST * most, NEAR * float(np.abs(np.linalg.eigvals(stiffness)).max(initial=0.0))):
            return Equilibrium(q, linear, k, float(np.max(np.abs(push), initial=0.0)))
        delta = _delta(stiffness, min(delta * before / left, 10.0 * delta) if delta else 0.0, FALL / most)
        y = np.linalg.lstsq(np.eye(d) / delta - stiffness, f, rcond=1e-13)[0]
        move = z @ (y / size)
        too_long = float(np.max(np.abs(move) / limits, initial=0.0))
        q = still.integrate(q, move / max(too_long, 1.0))
        # Where a step is not too long for what falls, shifts may be longer the next time: a sag has no size of its own.
        limits[shift] *= FASTER if left <= before else 1.0 / FASTER
        limits[shift] = np.maximum(limits[shift], FARTHEST * units[shift])
        if mech.closed:
            q = still.project(q, t=t)[0]
    worst = int(np.argmax(np.abs(push) / units))
    name = next(joint.name for joint in mech.joints if joint.v_slice.start <= worst < joint.v_slice.stop)
    text = (
        f"no equilibrium was found in {ITERATIONS} steps: "
        f"joint {name!r} still accelerates by {np.abs(push[worst]):.3g}; "
        "start nearer to it, hold what moves freely, or simulate with damping"
    )
    raise NoEquilibrium(text, q, float(np.abs(push).max()))


def _delta(stiffness: Floats, wanted: float, fall: float) -> float:
    """δ as wanted, but at least the square of the slowest time, and less than where a fall would be turned back.

    Where nothing tells how fast things happen it is `fall`.
    """
    values = np.linalg.eigvals(stiffness)
    sizes = np.abs(values)
    known = sizes[sizes > SLOW * sizes.max(initial=0.0)]
    least = 1.0 / float(known.min()) if len(known) else fall
    return min(max(least, wanted), 0.5 / max(float(values.real.max(initial=0.0)), 1e-300))


def frozen(d: Description) -> Description:
    """The mechanism with drivers that are at every time where they are, at rest.

    Their laws are of ⌊TIME·2²⁰⁰⌋/2²⁰⁰: no other number than TIME, but one whose rate is zero.
    """
    stepped = Call("floor", (Name("TIME") * 2.0**200,)) / 2.0**200
    return replace(d, drivers=tuple(replace(x, law=replaced(x.law, {Name("TIME"): stepped})) for x in d.drivers))


def _still(mech: Mechanism) -> Mechanism:
    if not mech.description.drivers:
        return mech
    return mech.auxiliary.frozen
