r"""Linear models about a state, on a mechanism's own degrees of freedom, and their modes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.counted_angles import check_driver_laws
from linkwright.dynamics.closed.allowed_motions import allowed, constraint_jacobian, inverse
from linkwright.dynamics.closed.consistent import project
from linkwright.dynamics.closed.rounding import warned
from linkwright.errors import ModelError
from linkwright.model.joint_kinds import KINDS

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

State = tuple[Floats, Floats, Floats, float]  # q, v, tau and t
STEP = 2e-3  # of the differences, in rad and in the mechanism's size, and of rates as parts of the mechanism's pace
SHORTER = 1.0 / 30.0  # each further try
AGREE, TRIES = 1e-6, 3  # what two tries may differ by, as a part of the largest entry; and how many there are
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
    """ẋ = A x + B δτ, x = (y, u), with δq = Z y and δv = Z u, as they are seen along Z. Unpacks as A, B, modes."""

    A: Floats  # (2d, 2d)
    B: Floats  # (2d, nv)
    basis: Floats  # Z (nv, d)
    projection: Floats  # P (d, nv): y = P δq and u = P δv; P Z = 1

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
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
        from linkwright.dynamics.report_views import linearised_html  # for its weight: tables are for notebooks alone

        return linearised_html(self)


def linearise(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    """The linear model about one state; a state that does not keep its loops closed is an error."""
    mech = warned(mech.auxiliary.closing)
    _check(mech, q, v, t)
    return _exact(mech, q, v, tau, t) if mech.programs.derivable else _by_differences(mech, q, v, tau, t)


def _exact(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau, t=t)
    if mech.closed and not np.isfinite(by_q).all() and np.isfinite(np.concatenate([q, v, tau])).all():
        raise _singular(mech, q, t)
    g, _ = constraint_jacobian(mech, q, t)
    z, p = allowed(mech, g)
    by_y = by_q @ z
    if mech.closed and v.any():
        by_y = by_y - by_v @ inverse(mech, g) @ _rates_opened(mech, q, v, z, t)
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


def _rates_opened(mech: Mechanism, q: Floats, v: Floats, z: Floats, t: float) -> Floats:
    """D (m, d): how the constraints' rates G v + Φ_t change as q moves along the columns of Z.

    They are as smooth as sines of the coordinates, whatever the forces are.
    """
    # The columns of Z need not be of one unit: each is followed by as much as its largest part allows.
    unit = _column_units(mech, z)
    moves = np.einsum("s,xk->skx", STEP * _SIDES, z * unit)
    here = np.ascontiguousarray(np.broadcast_to(q, (*moves.shape[:-1], len(q))))
    moved = mech.integrate(here, np.ascontiguousarray(moves))
    _, rates = mech.auxiliary.weighed.kernels.velocity_projection(moved, np.broadcast_to(v, moves.shape), t)
    return np.asarray(_slope(rates).T / unit)


_SIDES = np.array([1.0, -1.0, 2.0, -2.0])


def _slope(values: Floats) -> Floats:
    """The derivative by central differences of fourth order, from values at `STEP` times `_SIDES`."""
    return np.asarray((8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * STEP))


def _turning(mech: Mechanism, v: Floats) -> Floats:
    """K of δq' = δv − K δq, where rates are seen from axes that turn."""
    k, x = np.zeros((mech.nv, mech.nv)), mech.tree.coordinates
    for i, joint in enumerate(mech.joints):
        if not x.follows[i]:
            k[joint.v_slice, joint.v_slice] = KINDS[joint.kind].turning(v[joint.v_slice])
    return k


def _by_differences(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    g, _ = constraint_jacobian(mech, q, t)
    z, p = allowed(mech, g)
    d, nv = z.shape[1], mech.nv
    scale, pace, best = 1.0, _pace(mech, (q, v, tau, t), z), np.inf
    a = shorter = _differences(mech, (q, v, tau, t), (z, p), scale, pace)
    for _ in range(TRIES):
        scale *= SHORTER
        longer, shorter = shorter, _differences(mech, (q, v, tau, t), (z, p), scale, pace)
        apart = float(np.abs(shorter - longer).max(initial=0.0))
        if apart < best:  # of the two, longer steps have less of rounding
            best, a = apart, longer
        if best <= AGREE * float(np.abs(a).max(initial=0.0)):
            break
    many = [np.tile(x, (nv, 1)) for x in (q, v, tau)]
    pushed = mech.forward_dynamics(many[0], many[1], many[2] + np.eye(nv), t=t)
    change = pushed - mech.forward_dynamics(many[0], many[1], many[2], t=t)
    return Linearised(a, np.concatenate([np.zeros((d, nv)), p @ change.T]), z, p)


def _column_units(mech: Mechanism, z: Floats) -> Floats:
    """(d,): how far to go along each column of Z, so that its largest part is 1 rad or the mechanism's length."""
    return np.asarray(1.0 / np.maximum(np.abs(z / mech.programs.rate_units[:, None]).max(axis=0, initial=0.0), 1e-300))


def _pace(mech: Mechanism, state: State, z: Floats) -> float:
    """How fast things happen around a state (1/s): its rates, or the root of its accelerations and stiffnesses."""
    (q, v, tau, t), units = state, mech.programs.rate_units
    y = STEP * (z * _column_units(mech, z)).T
    pushed = _pushed(mech, state, y, np.zeros_like(y))[2]
    here = mech.forward_dynamics(q, v, tau, t=t)
    stiff = np.max(np.abs(pushed - here) / units, initial=0.0) / STEP
    squares = max(float(stiff), float(np.max(np.abs(here) / units, initial=0.0)))
    pace = max(float(np.max(np.abs(v) / units, initial=0.0)), float(np.sqrt(squares)))
    return pace if np.isfinite(pace) and pace > 0.0 else 1.0


def _differences(mech: Mechanism, state: State, basis: tuple[Floats, Floats], scale: float, pace: float) -> Floats:
    """A at q, v, tau and t, on Z and P, by steps that are so much shorter than `STEP`."""
    (q, v, tau, t), (z, p) = state, basis
    d = z.shape[1]
    unit = scale * _column_units(mech, z)
    both = np.concatenate([unit, pace * unit])
    moves = np.einsum("s,kx->skx", STEP * _SIDES, np.diag(both))  # (4, 2d, 2d)
    moved, rates, acceleration = _pushed(mech, state, moves[..., :d] @ z.T, moves[..., d:] @ z.T)
    away = mech.difference(np.ascontiguousarray(np.broadcast_to(q, moved.shape)), moved)
    drift = (rates - v - away @ _turning(mech, v).T) @ p.T
    change = np.concatenate([drift, (acceleration - mech.forward_dynamics(q, v, tau, t=t)) @ p.T], axis=-1)
    return np.asarray(_slope(change).T / both)


def _pushed(mech: Mechanism, state: State, y: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
    """The consistent states beside one, moved by y (..., nv) and faster by u, and their accelerations."""
    q, v, tau, t = state
    here = np.ascontiguousarray(np.broadcast_to(q, (*y.shape[:-1], len(q))))
    moved = mech.integrate(here, np.ascontiguousarray(y))
    rates = np.ascontiguousarray(v + u)
    if mech.closed:
        moved, _ = project(mech, moved, None, t)
        g, phi_t = constraint_jacobian(mech, moved, t)
        wrong = np.einsum("...ij,...j->...i", g, rates) + phi_t
        rates = rates - np.einsum("...ij,...j->...i", inverse(mech, g), wrong)
    force = np.ascontiguousarray(np.broadcast_to(tau, rates.shape))
    return moved, rates, mech.forward_dynamics(moved, rates, force, t=t)


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
