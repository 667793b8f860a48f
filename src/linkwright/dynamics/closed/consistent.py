"""Consistent states: coordinates that close the loops, and rates that keep them closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
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
    nearest = None if joints else mech.auxiliary.assembler.coordinates(guess, t)
    if nearest is not None:
        return nearest
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
