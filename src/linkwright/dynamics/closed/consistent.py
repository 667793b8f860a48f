"""Consistent states: coordinates that close the loops, and rates that keep them closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.constraints.accumulated_angles import check_driver_laws
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.newton import EXACT
from linkwright.constraints.tree_bodies import assembled, coordinates
from linkwright.dynamics.closed.redundancy import warned
from linkwright.errors import AssemblyError, KernelError, NameNotFound, ShapeError
from linkwright.kernels.foreign_arrays import on_device
from linkwright.model.description import Description
from linkwright.model.expression import Name
from linkwright.model.requested_analysis import System

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

ROUNDS = 50
#: What may be left of the equations: as sines, and as parts of the mechanism's length.
CLOSED = 1e-11
#: The same in units of the gap that rounded numbers leave in loops that repeat their equations.
NEARLY = 1e-8
FARTHEST = 0.5  # of one correction: rad, or a part of the mechanism's length


def assemble(mech: Mechanism, q: ArrayLike | None, fixed: Sequence[str], t: float) -> Floats:
    """The state nearest to a guess at which the mechanism is assembled, the joints in `fixed` kept as they are."""
    guess = mech.neutral() if q is None else one(q, mech.nq, "q")
    if isinstance(fixed, str):
        fixed = [fixed]
    d = mech.description
    joints = []
    for name in fixed:
        j = d.joint_names.position("joint", name)
        if name not in {joint.name for joint in mech.joints}:
            raise NameNotFound("tree joint", name, [joint.name for joint in mech.joints])
        joints.append(j)
    if q is None and d.start is not None:
        guess = as_drawn(mech)
    tolerance = (d.system or System()).assembly_tolerance
    try:
        state = assembled(mech.tree, guess, joints, t, tolerance)
    except AssemblyError:
        if tolerance is not None or mech.auxiliary.nearest.mechanism is mech:
            raise
        return assemble(warned(mech.auxiliary.nearest), q, fixed, t)
    if state.miss > EXACT * d.length_scale:  # what redundant loops leave open lets the least sum of squares slide
        near = warned(mech.auxiliary.nearest)
        if near is not mech:
            return assemble(near, q, fixed, t)
    return coordinates(mech.tree, state.q, guess)


def as_drawn(mech: Mechanism) -> Floats:
    """The tree's coordinates where the bodies are drawn, as near as they come."""
    return mech.programs.drawn.copy()


def project(mech: Mechanism, q: ArrayLike, v: ArrayLike | None, t: Any) -> tuple[Floats, Floats]:
    """The nearest q that closes the loops and the nearest v that keeps them closed, of any batch shape.

    Near is meant geometrically: shifts and turns of the bodies count, by their sizes; masses do not. States that are
    not finite become NaN; one that does not close is an AssemblyError, which tells its place in the batch.
    """
    states = real_array("q", q).copy()
    rates = np.zeros((*states.shape[:-1], mech.nv)) if v is None else real_array("v", v).copy()
    if not mech.closed:
        return mech.integrate(states, np.zeros(mech.nv)), rates
    mech = warned(mech.auxiliary.nearest)
    scaled = mech.auxiliary.weighed
    states = np.array(np.broadcast_to(states, (*np.broadcast_shapes(states.shape[:-1], np.shape(t)), mech.nq)))
    units, lengths = mech.programs.constraint_units, mech.programs.rate_units
    none = ~(np.isfinite(states).all(axis=-1) & np.isfinite(t))
    check_driver_laws(mech.description, np.broadcast_to(t, none.shape)[~none])
    done, best = np.array(none), np.full(none.shape, np.inf)
    for _ in range(ROUNDS):
        change, phi = scaled.kernels.position_correction(states, t)
        worst = np.max(np.abs(phi) / units, axis=-1, initial=0.0)
        done |= ~(worst < 0.5 * best) & (worst <= CLOSED)
        if done.all():
            break
        best = np.fmin(best, worst)
        # Far from closed loops a whole correction may overshoot. A state stays when it is closed, whatever others need.
        most = np.max(np.abs(change) / lengths, axis=-1, keepdims=True, initial=0.0)
        step = change * np.minimum(1.0, FARTHEST / np.maximum(most, 1e-300))
        states = mech.integrate(states, np.where(done[..., None], 0.0, step))
    else:
        units = mech.programs.gap_units
        done |= (np.max(np.abs(phi) / units, axis=-1, initial=0.0) <= NEARLY) & bool(mech.programs.gap)
        if not done.all():
            raise _open(mech, phi, done)
    states[none] = np.nan
    for _ in range(2):
        change, _ = scaled.kernels.velocity_projection(states, rates, t)
        rates = rates + change
    return states, rates


def _open(mech: Mechanism, phi: Floats, done: NDArray[np.bool_]) -> AssemblyError:
    """The error for the first state that is not closed."""
    at = tuple(int(k) for k in np.argwhere(~done)[0])
    sizes = np.abs(phi[at])
    worst = int(np.argmax(np.where(np.isfinite(sizes), sizes / mech.programs.constraint_units, np.inf)))
    name, left = mech.constraints[worst], float(sizes[worst])
    where = f"this q, state {list(at)} of the batch" if at else "this q"
    text = (
        f"the loops do not close from {where}: {name} is left open by {left:.3g}; "
        "start nearer, or use mech.assemble, which looks farther"
    )
    return AssemblyError(text, misses={name: left}, element=name)


def weighed(d: Description) -> Description:
    """The mechanism with bodies of equal mass and of inertias as their sizes: its mass metric is the geometric one."""
    sizes = Equations(d).sizes
    inertia = np.zeros((d.nb, 6))
    inertia[:, :3] = sizes[:, None] ** 2
    none = np.zeros(d.nj)
    bindings = {key: e for key, e in d.bindings.items() if key[0] not in ("mass", "com", "inertia", "armature")}
    return replace(
        d, mass=np.ones(d.nb), com=np.zeros((d.nb, 3)), inertia=inertia, armature=none, elements=(), bindings=bindings
    )


def weighed_by_parameters(d: Description) -> Description:
    """The same with the bodies' sizes as parameters, for mechanisms that differ in these: see `body_sizes`."""
    plain, sizes = weighed(d), body_sizes(d)
    bindings = {("inertia", 6 * k + i): Name(name) * Name(name) for k, name in enumerate(sizes) for i in range(3)}
    return replace(plain, parameters={**plain.parameters, **sizes}, bindings={**plain.bindings, **bindings})


def body_sizes(d: Description) -> dict[str, float]:
    """The sizes of the bodies, each as a parameter that is named after its body."""
    sizes = Equations(d).sizes.tolist()
    return {f"size of {name}": size for name, size in zip(d.body_names, sizes, strict=True)}


def checked_states(mech: Mechanism, method: str, **arrays: ArrayLike) -> list[Floats]:
    """States as arrays; those of the wrong shape are refused by the name of the method that was asked."""
    states = []
    for name, array in arrays.items():
        if on_device(array):
            raise KernelError(
                f"{method} of {mech.name!r} is computed in main memory, and {name} is on a GPU: give NumPy arrays"
            )
        states.append(real_array(f"{method}: {name}", array))
        shape, n = states[-1].shape, mech.nq if name == "q" else mech.nv
        if shape[-1:] != (n,):
            raise ShapeError(f"{method}: {name} has shape {shape}; needed is (..., {n})", given=shape, wanted=(n,))
    return states


def one(x: ArrayLike, n: int, name: str) -> Floats:
    """One state's vector of length n."""
    array = real_array(name, x)
    if array.shape != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; give ({n},)", given=array.shape, wanted=(n,))
    return array
