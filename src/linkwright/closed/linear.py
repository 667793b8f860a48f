r"""Linear models about a state, on a mechanism's own degrees of freedom, and their modes.

Small motions are δq = Z y and δv = Z u + …, where Z is an orthonormal basis of the rates that the constraints allow:
ẋ = A x + B δτ with x = (y, u). Trees have Z = 1, and A from the exact derivatives of forward dynamics. Closed loops are
differentiated on their consistent states, by central differences of fourth order in one call of the compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.closed.consistent import project
from linkwright.closed.freedom import allowed, constraint_jacobian
from linkwright.errors import ModelError

if TYPE_CHECKING:
    from linkwright.model import Mechanism

Floats = NDArray[np.float64]
STEP = 2e-3  # of the differences, in rad, m and their rates
#: Loops left open by more than this, or opening so fast, are not differentiated.
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
        return f"<Mode {self.frequency:.6g} Hz, damping {self.damping:.3g}>"


@dataclass(frozen=True, eq=False)
class Linearised:
    """ẋ = A x + B δτ, x = (y, u), with δq = Z y and δv = Z u. Unpacks as A, B, modes."""

    A: Floats  # (2d, 2d)
    B: Floats  # (2d, nv)
    basis: Floats  # Z (nv, d)

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        return np.asarray(np.linalg.eigvals(self.A), dtype=np.complex128)

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The natural motions, slow ones first."""
        values, vectors = np.linalg.eig(self.A)
        found = []
        for k in np.lexsort((values.real, np.abs(values))):
            if values[k].imag < 0.0:
                continue
            shape = self.basis @ vectors[: self.basis.shape[1], k]
            largest = shape[np.argmax(np.abs(shape))] if len(shape) else 1.0
            found.append(Mode(complex(values[k]), np.asarray(shape / (largest or 1.0), dtype=np.complex128)))
        return tuple(found)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.A, self.B, self.modes))


def linearise(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    """The linear model about one state; a state that does not keep its loops closed is an error."""
    if not mech.closed and not mech.description.elements:
        return _tree(mech, q, v, tau, t)
    return _by_differences(mech, q, v, tau, t)


def _tree(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau, t=t)
    nv = mech.nv
    a = np.block([[-_turning(mech, v), np.eye(nv)], [by_q, by_v]])
    return Linearised(a, np.concatenate([np.zeros((nv, nv)), by_tau]), np.eye(nv))


def _turning(mech: Mechanism, v: Floats) -> Floats:
    """K of δq' = δv − K δq, where rates are seen from axes that turn."""
    k = np.zeros((mech.nv, mech.nv))
    for joint in mech.joints:
        at = joint.v_slice
        if joint.kind == "spherical" and joint.mimics is None:
            k[at, at] = _skew(v[at])
        elif joint.kind == "free":
            line, turn = v[at][:3], v[at][3:]
            k[at, at] = np.block([[_skew(turn), _skew(line)], [np.zeros((3, 3)), _skew(turn)]])
    return k


def _skew(w: Floats) -> Floats:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def _by_differences(mech: Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    _check(mech, q, v, t)
    g, _ = constraint_jacobian(mech, q, t)
    z = allowed(g)
    d, nv = z.shape[1], mech.nv
    sides = np.array([1.0, -1.0, 2.0, -2.0])
    moves = STEP * np.einsum("s,kx->skx", sides, np.eye(2 * d))  # (4, 2d, 2d)
    y, u = moves[..., :d] @ z.T, moves[..., d:] @ z.T
    here = np.broadcast_to(q, (*y.shape[:-1], len(q)))
    moved = mech.integrate(np.ascontiguousarray(here), np.ascontiguousarray(y))
    rates = np.ascontiguousarray(v + u)
    if mech.closed:
        moved, _ = project(mech, moved, None, t)
        g_there, phi_t = constraint_jacobian(mech, moved, t)
        wrong = np.einsum("...ij,...j->...i", g_there, rates) + phi_t
        rates = rates - np.einsum("...ij,...j->...i", np.linalg.pinv(g_there, rcond=1e-9), wrong)
    force = np.ascontiguousarray(np.broadcast_to(tau, rates.shape))
    acceleration = mech.forward_dynamics(moved, rates, force, t=t)
    away = mech.difference(np.ascontiguousarray(here), moved)
    drift = (rates - v - away @ _turning(mech, v).T) @ z
    change = np.concatenate([drift, (acceleration - mech.forward_dynamics(q, v, tau, t=t)) @ z], axis=-1)
    a = ((8.0 * (change[0] - change[1]) - (change[2] - change[3])) / (12.0 * STEP)).T
    still = mech.forward_dynamics(np.tile(q, (nv, 1)), np.tile(v, (nv, 1)), np.tile(tau, (nv, 1)), t=t)
    pushed = mech.forward_dynamics(np.tile(q, (nv, 1)), np.tile(v, (nv, 1)), tau + np.eye(nv), t=t)
    b = np.concatenate([np.zeros((d, nv)), z.T @ (pushed - still).T])
    return Linearised(a, b, z)


def _check(mech: Mechanism, q: Floats, v: Floats, t: float) -> None:
    if not mech.closed:
        return
    _, phi = mech._weighed._closing(q, t)
    _, rate = mech._weighed._settling(q, v, t)
    for what, values in (("q leaves {} open", phi), ("v opens {}", rate)):
        if np.max(np.abs(values), initial=0.0) > CONSISTENT:
            name = mech.constraints[int(np.argmax(np.abs(values)))]
            told = what.format(name)
            raise ModelError(f"{told}; take a consistent state: q, v = mech.project(q, v)", element=name)
