r"""Inverse dynamics of closed chains by the virtual cut (Nakamura, Yamane and others, section 2.1).

With the loops cut, Newton and Euler give the tree's forces τ_O. The rates that the constraints allow are W θ̇_G, for any
basis W, and those of the actuated joints S θ̇_G; the same power needs Sᵀ τ_A = Wᵀ τ_O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import exact_array, real_array
from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.redundancy import allowed, constraint_jacobian
from linkwright.errors import DtypeError, ModelError, ShapeError

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: What may be left of the forces that a motion asks for, as a part of those that cancel in them.
LEFT = 1e-8
#: Forces below this part of what weights, motion and force elements could exert are none.
NONE = 1e-12
#: Singular values below this part of the largest are none.
RANK = 1e-10
#: By how much accelerations may open the loops, as a part of what the rates themselves ask for.
OPEN = 1e-6


def inverse_dynamics(
    mech: Mechanism, q: Floats, v: Floats, a: Floats, tree: Floats, weights: Any, t: Any, out: Any = None
) -> Floats:
    """The forces of the actuated joints for the tree's forces `tree`; a state with what is not finite has none (NaN).

    Where there are more actuators than degrees of freedom, Σ weight·τ² is least; by default forces count as they are,
    and torques as forces with the mechanism's length as their arm.
    """
    if out is not None:
        _check_out(out, tree.shape)
    shape = tree.shape[:-1]
    bound = mech.forward_dynamics(q, v, np.zeros(mech.nv), t=t)  # accelerations that keep the loops
    cancel, could = _cancelling(mech, q, v, a, tree, t)
    q, a, bound, cancel = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in (q, a, bound, cancel))
    g, _ = constraint_jacobian(mech, np.ascontiguousarray(q), t)
    _check_accelerations(mech, g, a, bound, np.broadcast_to(could, shape))
    actuated, units = np.flatnonzero(mech.actuated), mech.programs.rate_units
    scale = 1.0 / np.sqrt(_weights(weights, units[actuated] / mech.programs.size))
    forces = np.zeros((*shape, mech.nv))
    known = np.asarray(np.isfinite(g).all(axis=(-2, -1)) & np.isfinite(tree + bound).all(axis=-1))
    for k in np.ndindex(*shape):
        if not known[k]:
            forces[k] = np.nan
            continue
        w, _ = allowed(mech, g[k])
        s = w[actuated]
        wanted = w.T @ tree[k]
        within = _range((s / units[actuated][:, None]).T)
        inverse = np.linalg.pinv(within.T @ (scale[:, None] * s).T, rcond=1e-15)
        tau = scale * (inverse @ (within.T @ wanted))
        left = wanted - s.T @ tau
        if np.linalg.norm(left) > LEFT * np.linalg.norm(np.abs(w).T @ cancel[k]):
            raise _unreachable(mech, (w / units[:, None]) @ left)
        forces[k][actuated] = tau
    if out is None:
        return forces
    out[...] = forces
    return cast(Floats, out)


def _range(matrix: Floats) -> Floats:
    """An orthonormal basis of what a matrix without units reaches."""
    basis, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(basis[:, sizes > RANK * sizes.max(initial=0.0)])


def _check_out(out: Any, wanted: tuple[int, ...]) -> None:
    if type(out) is not np.ndarray:
        out = exact_array("inverse_dynamics: out (tau)", out)
    if out is None or out.dtype != np.float64:
        what = str(getattr(out, "dtype", type(out).__name__))
        text = f"inverse_dynamics: out (tau) must be a float64 array, not {what}"
        raise DtypeError(text, given=what, wanted="float64")
    if out.shape != wanted:
        text = f"inverse_dynamics: out (tau) has shape {out.shape}; needed is {wanted}"
        raise ShapeError(text, given=out.shape, wanted=wanted)
    if not out.flags.writeable:
        raise ShapeError("inverse_dynamics: out (tau) is read-only; give a writable array")


def _cancelling(mech: Mechanism, q: Floats, v: Floats, a: Floats, tree: Floats, t: Any) -> tuple[Floats, Floats]:
    """(..., nv): the size of the terms whose sum the tree's forces are, and a floor for those that vanish singly.

    And (...): the largest acceleration (1/s²) that one of these forces alone would give its coordinate.
    """
    d, size, units = mech.description, mech.programs.size, mech.programs.rate_units
    bias, masses = np.abs(mech.bias_forces(q, v, t=t)), np.abs(mech.mass_matrix(q))
    moved = np.einsum("...ij,...j->...i", masses, np.abs(a))
    could = float(d.mass.sum()) * float(np.linalg.norm(d.gravity)) * size + mech.kinetic_energy(q, v)
    if d.elements:
        wrenches, forces = (np.abs(x) for x in mech.kernels.applied_forces(q, v, t))
        arms = np.ones(forces.shape[-1])
        for j, at in mech.tree.own_rates.items():
            arms[at] = np.where(d.kind_of(j).lengths[1], size, 1.0)
        could = could + (arms * forces).sum(axis=-1)
        could = could + (size * wrenches[..., :3] + wrenches[..., 3:]).sum(axis=(-2, -1))
    floor = (NONE / LEFT) * np.asarray(could)[..., None] / units
    cancel = np.asarray(np.abs(tree) + bias + moved + floor)
    inertia = np.einsum("...ii->...i", masses) * units
    fastest = np.where(inertia > 0.0, cancel / np.where(inertia > 0.0, inertia, 1.0), 0.0)
    return cancel, np.max(fastest, axis=-1, initial=0.0)


def _weights(weights: ArrayLike | None, units: Floats) -> Floats:
    """The weights of τ², as given or by default those of these units."""
    n = len(units)
    if weights is None:
        return units**2
    values = real_array("weights", weights)
    if values.shape != (n,):
        text = f"weights has shape {values.shape}; give ({n},), one for each actuated rate"
        raise ShapeError(text, given=values.shape, wanted=(n,))
    if not (np.isfinite(values) & (values > 0.0)).all():
        raise ModelError("weights of actuators must be positive numbers")
    return values


def _check_accelerations(mech: Mechanism, g: Floats, a: Floats, bound: Floats, could: Floats) -> None:
    """Accelerations that open a loop have no forces; `could` are those that forces singly would give."""
    units = mech.programs.constraint_units
    opening = np.einsum("...ij,...j->...i", g, a - bound) / units
    scale = (np.einsum("...ij,...j->...i", np.abs(g), np.abs(a) + np.abs(bound)) / units).max(axis=-1, initial=0.0)
    worst = np.abs(opening) > OPEN * np.maximum(scale, 1e-9 * could)[..., None]
    if worst.any():
        row = int(np.argmax(worst.reshape(-1, worst.shape[-1]).any(axis=0)))
        name = mech.constraints[row]
        text = (
            f"the accelerations a open {name}; give accelerations that keep the loops closed, "
            "such as those of forward_dynamics"
        )
        raise ModelError(text, element=name)


def _unreachable(mech: Mechanism, direction: Floats) -> ModelError:
    """The error for a motion that the actuators cannot produce."""
    size = np.abs(direction)
    names = []
    for joint in mech.joints:
        part = size[joint.v_slice]
        if part.size and float(part.max()) > 0.3 * float(size.max()):
            names.append(joint.name)
    shown = ", ".join(map(repr, names[:4])) + (" and more" if len(names) > 4 else "")
    text = (
        f"the actuators cannot produce this motion: no joint with an actuator works against the force along the motion "
        f"of {shown}; make one of these joints actuated, or hold them by a driver"
    )
    return ModelError(text, element=names[0] if names else None)
