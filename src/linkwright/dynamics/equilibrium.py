"""Equilibria, where a mechanism stays at rest; linear models about a state with their modes; and how notebooks show
both.

On the mechanism's own degrees of freedom, f(y) is the acceleration from rest and K = ∂f/∂y. The steps
(1/δ − K) y = f follow a heavily damped fall while δ is small, and are Newton's as it grows. What falls away from where
it is has eigenvalues of K above zero, and 1/δ stays above these: beyond, steps would lead back up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import counted
from linkwright.base.arrays import Floats
from linkwright.base.html import ROWS, beside, heading, line, number, shown, table
from linkwright.base.locks import cached_property
from linkwright.constraints.accumulated_angles import check_driver_laws
from linkwright.dynamics.closed.consistent import one
from linkwright.dynamics.closed.redundancy import allowed, constraint_jacobian, inverse, warned
from linkwright.dynamics.directional_derivatives import derivative_along
from linkwright.dynamics.functions import Request
from linkwright.errors import LinkwrightError, ModelError
from linkwright.model.coupling_relation import timed_couplings
from linkwright.model.description import Description
from linkwright.model.elements import Coupling
from linkwright.model.expression import Call, Expression, Name, replaced
from linkwright.model.joint_kinds import KINDS

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def linearised_html(model: Linearised) -> str:
    """The output for a linear model: its sizes and its modes."""
    n, inputs = model.A.shape[0], model.B.shape[1]
    title = heading("linear model", f"ẋ = A x + B δτ: {counted(n, 'state')}, {counted(inputs, 'input')}")
    return shown(title, _modes(model))


def equilibrium_html(state: Equilibrium) -> str:
    """The output for a state of rest."""
    title = heading("equilibrium", "stable" if state.stable else "unstable: a small motion grows")
    q = ((f"q[{k}]", float(x)) for k, x in enumerate(state.q[:ROWS]))
    work = f"{counted(state.iterations, 'iteration')}; accelerations left: {state.acceleration:.1e}"
    return shown(
        title, beside(table(("coordinate", "value"), q, len(state.q)), _modes(state.linear)), line(work, soft=True)
    )


def _modes(model: Linearised) -> str:
    if not len(model.A):
        return line("nothing moves")
    if len(model.A) > 400:
        return line("its modes: model.modes", soft=True)
    least = 1e-7 * max(abs(mode.value) for mode in model.modes)  # what is less is the rounding of a zero
    rows = (
        (float(mode.frequency), round(float(mode.damping), 9) + 0.0, _complex(mode.value, least))
        if abs(mode.value) > least
        else (0.0, 0.0, "0")
        for mode in model.modes[:ROWS]
    )
    return table(("frequency (Hz)", "damping ratio", "eigenvalue (1/s)"), rows, len(model.modes))


def _complex(value: complex, least: float) -> str:
    """A complex number; parts that are less than the least are none."""
    real, imaginary = (x if abs(x) > least else 0.0 for x in (value.real, value.imag))
    if not imaginary:
        return number(real)
    return f"{number(real) if real else ''} ± {number(abs(imaginary))}i".strip()


#: Loops left open by more than this, or opening by more than this part of the rates, are not differentiated.
CONSISTENT = 1e-7


@dataclass(frozen=True, eq=False)
class Mode:
    """A natural motion e^(value·t): one of each conjugate pair."""

    value: complex  # 1/s
    shape: NDArray[np.complex128]  # (nv,): how the tree's coordinates take part, the largest 1

    @property
    def frequency(self) -> float:
        """Of its oscillation, in Hz."""
        return abs(self.value.imag) / (2.0 * np.pi)

    @property
    def damping(self) -> float:
        """The damping ratio: 1 for motions that do not oscillate, negative for those that grow."""
        size = abs(self.value)
        return -self.value.real / size if size else 0.0

    def __repr__(self) -> str:
        # What rounding leaves of no damping is written as a zero, and without a sign.
        return f"<Mode {self.frequency:.6g} Hz, damping {round(self.damping, 12) + 0.0:.3g}>"


@dataclass(frozen=True, eq=False)
class Linearised:
    """ẋ = A x + B δτ, x = (y, u), with δq = Z y and δv = Z u, as they are seen along Z. Unpacks as A, B, modes.

    d are the mechanism's own degrees of freedom, nv the rates of its spanning tree, whose units y and u have for trees.

    >>> a, b, modes = lw.chain(2).linearise([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    >>> a.shape, b.shape, len(modes) <= 4
    ((4, 4), (4, 2), True)
    """

    A: Floats  # (2d, 2d)
    B: Floats  # (2d, nv)
    basis: Floats  # Z (nv, d)
    projection: Floats  # P (d, nv): y = P δq and u = P δv; P Z = 1

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """(2d,): the eigenvalues of A (1/s)."""
        return np.asarray(np.linalg.eigvals(self.A), dtype=np.complex128)

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The natural motions, slow ones first."""
        values, vectors = np.linalg.eig(self.A)
        modes = []
        for k in np.lexsort((values.real, np.abs(values))):
            if values[k].imag < 0.0:
                continue
            shape = self.basis @ vectors[: self.basis.shape[1], k]
            largest = shape[np.argmax(np.abs(shape))] if len(shape) else 1.0
            modes.append(Mode(complex(values[k]), np.asarray(shape / (largest or 1.0), dtype=np.complex128)))
        return tuple(modes)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.A, self.B, self.modes))

    def _repr_html_(self) -> str:

        return linearised_html(self)


def linearise(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    """The linear model about one state; a state that does not keep its loops closed is an error."""
    mech = warned(mech.auxiliary.nearest)
    _check(mech, q, v, t)
    by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau, t=t)
    if mech.closed and not np.isfinite(by_q).all() and np.isfinite(np.concatenate([q, v, tau])).all():
        raise _singular(mech, q, t)
    g, _ = constraint_jacobian(mech, q, t)
    z, p = allowed(mech, g)
    by_y = by_q @ z
    if mech.closed and v.any():
        by_y = by_y - by_v @ inverse(mech, g) @ _open_rates(mech, q, v, z, t)
    d = z.shape[1]
    a = np.block([[-p @ _turning(mech, v) @ z, np.eye(d)], [p @ by_y, p @ by_v @ z]])
    return Linearised(a, np.concatenate([np.zeros((d, mech.nv)), p @ by_tau]), z, p)


def _singular(mech: Mechanism, q: Floats, t: float) -> ModelError:
    """The error for a position without a linear model."""
    names = list(dict.fromkeys(name for name, _ in mech.singular(q, t=t)))
    does = "depends" if len(names) == 1 else "depend"
    what = f": {' and '.join(names)} {does} on the other joints there" if names else ""
    text = f"q is a singular position, where accelerations have no derivatives{what}; linearise about another position"
    return ModelError(text, element=names[0] if names else None)


def _open_rates(mech: Mechanism, q: Floats, v: Floats, z: Floats, t: float) -> Floats:
    """D (m, d): how the constraints' rates G v + Φ_t change as q moves along the columns of Z."""
    kernels = mech.auxiliary.weighed.kernels
    request = Request("velocity_projection", form="rolled")
    moves = mech.kernels.evaluate(Request("rate"), q, np.ascontiguousarray(z.T))
    time = [t] if kernels.programs.timed(request) else []
    return np.asarray(derivative_along(kernels, request, "q", output=1)(q, v, *time, moves).T)


def _turning(mech: Mechanism, v: Floats) -> Floats:
    """K of δq' = δv − K δq, where rates are seen from axes that turn."""
    k, x = np.zeros((mech.nv, mech.nv)), mech.tree.coordinates
    for i, joint in enumerate(mech.joints):
        if not x.follows[i]:
            k[joint.v_slice, joint.v_slice] = KINDS[joint.kind].turning(v[joint.v_slice])
    return k


def _check(mech: Mechanism, q: Floats, v: Floats, t: float) -> None:
    if not mech.closed:
        return
    check_driver_laws(mech.description, np.array([t]))
    units = mech.programs.constraint_units
    _, phi = mech.auxiliary.weighed.kernels.position_correction(q, t)
    _, rate = mech.auxiliary.weighed.kernels.velocity_projection(q, v, t)
    asked = np.max(
        np.abs(mech.auxiliary.weighed.kernels.velocity_projection(q, np.zeros(mech.nv), t)[1]) / units, initial=0.0
    )
    pace = max(float(asked), float(np.max(np.abs(v) / mech.programs.rate_units, initial=0.0)))
    for what, values, most in (("q leaves {} open", phi, 1.0), ("v opens {}", rate, pace)):
        sizes = np.abs(values) / units
        if np.max(sizes, initial=0.0) > CONSISTENT * most:
            name = mech.constraints[int(np.argmax(sizes))]
            fault = what.format(name)
            raise ModelError(f"{fault}; take a consistent state: q, v = mech.project(q, v)", element=name)


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
    """A state of rest: its coordinates q (nq,), the linear model about it, and how it was reached.

    >>> state = lw.chain(2).equilibrium([0.1, -0.1])
    >>> state.q.shape, state.linear.A.shape
    ((2,), (4, 4))
    """

    q: Floats
    linear: Linearised
    iterations: int
    acceleration: float  # the largest of the joints that is left (rad/s² or m/s²)

    @property
    def stable(self) -> bool:
        """Whether no small motion grows."""
        values = self.linear.eigenvalues
        return not np.any(values.real > GROWS * np.abs(values).max(initial=0.0))

    def _repr_html_(self) -> str:

        return equilibrium_html(self)


def equilibrium(mech: Mechanism, q: Floats | None, tau: Floats | None, t: float) -> Equilibrium:
    """A state of rest near q, under gravity, the force elements, tau and the drivers as they stand at time t."""
    mech = warned(mech.auxiliary.nearest)
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
    """The mechanism with drivers and couplings that are at every time where they are, at rest.

    Their laws are of ⌊TIME·2²⁰⁰⌋/2²⁰⁰: no other number than TIME, but one whose rate is zero.
    """
    stepped = Call("floor", (Name("TIME") * 2.0**200,)) / 2.0**200
    by: dict[Expression, Expression] = {Name("TIME"): stepped}
    still = tuple(
        replace(x, left=replaced(x.left, by), right=replaced(x.right, by)) if isinstance(x, Coupling) else x
        for x in d.point_constraints
    )
    drivers = tuple(replace(x, law=replaced(x.law, by)) for x in d.drivers)
    return replace(d, drivers=drivers, point_constraints=still)


def at_rest(d: Description) -> bool:
    """Whether no driver or coupling moves the mechanism by itself."""
    return not (d.drivers or timed_couplings(d))


def _still(mech: Mechanism) -> Mechanism:
    if at_rest(mech.description):
        return mech
    return mech.auxiliary.frozen
