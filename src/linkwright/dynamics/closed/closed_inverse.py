r"""Inverse dynamics of closed chains by the virtual cut (Nakamura, Yamane and others, section 2.1).

With the loops cut, Newton and Euler give the tree's forces τ_O. The rates that the constraints allow are W θ̇_G, for any
basis W, and those of the actuated joints S θ̇_G; the same power needs Sᵀ τ_A = Wᵀ τ_O.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import exact_array, real_array
from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.consistent import checked_states
from linkwright.dynamics.closed.redundancy import allowed, constraint_jacobian
from linkwright.dynamics.closed.straight_code import StraightCode
from linkwright.dynamics.functions import Request
from linkwright.errors import DtypeError, ModelError, ShapeError
from linkwright.model.description import sealed

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: What may be left of the forces that a motion asks for, as a part of those that cancel in them.
LEFT = 1e-8
#: Forces below this part of what weights, motion and force elements could exert are none.
NONE = 1e-12
#: Singular values below this part of the largest are none.
RANK = 1e-10
STRAIGHT = Request("actuator_forces")  # straight code
#: By how much accelerations may open the loops, as a part of what the rates themselves ask for; and the part of what
#: forces singly would give below which accelerations are none.
OPEN, ALONE = 1e-6, 1e-9


class Actuators(StraightCode):
    """The inverse dynamics of one closed mechanism: straight code, and the careful path for states that it leaves."""

    request, method = STRAIGHT, "inverse_dynamics"

    def __init__(self, mech: Mechanism) -> None:
        super().__init__(mech)
        units = mech.programs.rate_units[mech.programs.actuated]
        self.weights = sealed((units / mech.programs.size) ** 2)  # torques are forces with the length as their arm

    def forces(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: Any, wrenches: Any, weights: Any) -> Floats:
        """The forces of the actuated joints, as `Mechanism.inverse_dynamics` has them."""
        tau = self.at_once(q, v, a, self.weights, t=t) if wrenches is None and weights is None else None
        return self._checked(q, v, a, t, wrenches, weights) if tau is None else tau

    def plain(self, *arrays: ArrayLike, t: ArrayLike = 0.0) -> Floats:
        q, v, a, _ = arrays
        return self._checked(q, v, a, t, None, None)

    def _checked(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: Any, wrenches: Any, weights: Any) -> Floats:
        mech = self.mech
        arrays: list[Any] = checked_states(mech, "inverse_dynamics", q=q, v=v, a=a)
        applied = wrenches is not None
        arrays += [np.asarray(wrenches)] if applied else []
        shared = self.weights if weights is None else self._weights(weights)
        careful = partial(self._careful, weights=shared)
        if not self.straight:
            return careful(*arrays, t=t)
        request = replace(STRAIGHT, wrenches=applied)
        forces = mech.kernels.evaluate(request, *arrays[:3], shared, *arrays[3:], t=t)
        return self.completed(forces, arrays, [1, 1, 1, *[2] * applied, 1], t, careful)

    def _weights(self, weights: ArrayLike) -> Floats:
        """The weights of τ² that were given."""
        n = len(self.weights)
        values = real_array("weights", weights)
        if values.shape != (n,):
            text = f"weights has shape {values.shape}; give ({n},), one for each actuated rate"
            raise ShapeError(text, given=values.shape, wanted=(n,))
        if not (np.isfinite(values) & (values > 0.0)).all():
            raise ModelError("weights of actuators must be positive numbers")
        return values

    def _careful(self, q: Floats, v: Floats, a: Floats, *wrenches: Floats, t: Any, weights: Floats) -> Floats:
        """State by state, by singular values; a state with what is not finite has no forces (NaN)."""
        mech = self.mech
        tree = mech.kernels.evaluate(Request("tree_forces", "", bool(wrenches)), q, v, a, *wrenches, t=t)
        shape = tree.shape[:-1]
        bound = mech.forward_dynamics(q, v, np.zeros(mech.nv), t=t)  # accelerations that keep the loops
        cancel, could = _cancelling(mech, q, v, a, tree, t)
        q, a, bound, cancel = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in (q, a, bound, cancel))
        g, _ = constraint_jacobian(mech, np.ascontiguousarray(q), t)
        _check_accelerations(mech, g, a, bound, np.broadcast_to(could, shape))
        actuated, units = np.flatnonzero(mech.actuated), mech.programs.rate_units
        scale = 1.0 / np.sqrt(weights)
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
        return forces


def _range(matrix: Floats) -> Floats:
    """An orthonormal basis of what a matrix without units reaches."""
    basis, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(basis[:, sizes > RANK * sizes.max(initial=0.0)])


def stored(out: Any, forces: Floats) -> Floats:
    """The caller's array with the forces in it."""
    memory = out if type(out) is np.ndarray else exact_array("inverse_dynamics: out (tau)", out)
    if memory is None or memory.dtype != np.float64:
        what = str(getattr(memory, "dtype", type(memory).__name__))
        text = f"inverse_dynamics: out (tau) must be a float64 array, not {what}"
        raise DtypeError(text, given=what, wanted="float64")
    if memory.shape != forces.shape:
        text = f"inverse_dynamics: out (tau) has shape {memory.shape}; needed is {forces.shape}"
        raise ShapeError(text, given=memory.shape, wanted=forces.shape)
    if not memory.flags.writeable:
        raise ShapeError("inverse_dynamics: out (tau) is read-only; give a writable array")
    memory[...] = forces
    return cast(Floats, out)


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


def _check_accelerations(mech: Mechanism, g: Floats, a: Floats, bound: Floats, could: Floats) -> None:
    """Accelerations that open a loop have no forces; `could` are those that forces singly would give."""
    units = mech.programs.constraint_units
    opening = np.einsum("...ij,...j->...i", g, a - bound) / units
    scale = (np.einsum("...ij,...j->...i", np.abs(g), np.abs(a) + np.abs(bound)) / units).max(axis=-1, initial=0.0)
    worst = np.abs(opening) > OPEN * np.maximum(scale, ALONE * could)[..., None]
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
