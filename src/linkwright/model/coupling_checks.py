"""What no coupling can be: relations of other things than joint coordinates, and those that relate nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from linkwright.errors import ModelError
from linkwright.model.elements import Coupling
from linkwright.model.expression import numeric_values
from linkwright.model.joint_kinds import JointKind

#: A relation that changes by less between two states, as a part of its terms, does not change at all.
_CHANGE = 1e-12
_SAMPLES = 64
#: The least and the largest factor of a relation: what all its terms may be multiplied by.
_FACTORS = 1e-100, 1e6


def check_coupling(coupling: Coupling, kind_of: Callable[[str], JointKind], parameters: Mapping[str, float]) -> None:
    """Refuse a coupling that names rates, places or joints without plain coordinates, or that relates no coordinates.

    `kind_of` gives the kind of a joint by its name.
    """
    check_coordinates(coupling, kind_of)
    if not coupling.coordinates:
        text = f"coupling {coupling.name!r} names no coordinate; write one of a joint, such as hinge.angle"
        raise ModelError(text, element=coupling.name)
    with np.errstate(all="ignore"):  # a value that is not finite is looked at
        _check_factor(coupling, parameters)
        _check_dependence(coupling, parameters)


def check_coordinates(coupling: Coupling, kind_of: Callable[[str], JointKind]) -> None:
    """Refuse what a coupling names besides coordinates of joints, and joints without plain ones."""
    name = coupling.name
    for x in coupling.coordinates:
        if x.kind != "joint" or x.rate:
            what = "the rate" if x.kind == "joint" else "the place" if x.kind == "place" else "the distance"
            what = "the velocity" if x.rate and x.kind != "joint" else what
            text = f"coupling {name!r} names {what} {x}; couplings relate coordinates of joints, parameters and TIME"
            raise ModelError(text, element=name)
        kind = kind_of(x.of[0])
        if not kind.paired or not kind.nv:
            has = "does not move" if not kind.nv else "has no plain coordinates"
            text = f"coupling {name!r} names joint {x.of[0]!r}, which is {kind.name} and {has}; "
            raise ModelError(text + "name coordinates of other joints", element=name)
        if not 0 <= x.index < kind.nv:
            text = f"coupling {name!r} names coordinate {x.index} of joint {x.of[0]!r}, which is {kind.name}; "
            raise ModelError(f"{text}it has {kind.nv}, counted from 0", element=name)


def _check_dependence(coupling: Coupling, parameters: Mapping[str, float]) -> None:
    """Refuse a relation with the same value at all coordinates, and one that has none."""
    rng, name = np.random.default_rng(0), coupling.name
    scales = np.repeat([1e-3, 1.0, 10.0, 1e3], _SAMPLES // 4)
    names = {x.key: scales * rng.uniform(-1.0, 1.0, _SAMPLES) for x in coupling.coordinates}
    sides = [
        np.broadcast_to(numeric_values(side, {**parameters, **names, "TIME": 0.3}), _SAMPLES)
        for side in (coupling.left, coupling.right)
    ]
    phi, size = sides[0] - sides[1], np.abs(sides[0]) + np.abs(sides[1])
    finite = np.isfinite(phi)
    if not finite.any():
        text = f"coupling {name!r} has no finite value at any coordinates that were tried; correct its relation"
        raise ModelError(text, element=name)
    if np.ptp(phi[finite]) <= _CHANGE * float(size[finite].max()):
        if np.abs(phi[finite]).max() <= _CHANGE * float(size[finite].max()):
            text = f"coupling {name!r} holds whatever its coordinates are, so that it relates nothing; remove it"
        else:
            text = f"coupling {name!r} does not depend on its coordinates, so that nothing can make it hold; correct it"
        raise ModelError(text, element=name)


def _check_factor(coupling: Coupling, parameters: Mapping[str, float]) -> None:
    """Refuse a relation that is multiplied by a number so large or small that its equation drowns all others."""
    rng = np.random.default_rng(1)
    near = {x.key: rng.uniform(-1.0, 1.0, _SAMPLES) for x in coupling.coordinates}
    step, slopes = 1e-3, []
    for x in coupling.coordinates:
        ends = [
            numeric_values(coupling.relation, {**parameters, **near, x.key: near[x.key] + s * step, "TIME": 0.3})
            for s in (-0.5, 0.5)
        ]
        slope = np.abs(np.broadcast_to(ends[1] - ends[0], _SAMPLES)) / step
        slopes.append(float(np.max(slope, where=np.isfinite(slope), initial=0.0)))
    least, most = min(slopes), max(slopes)
    low, high = _FACTORS
    if least > high or (0.0 < most < low):
        factor, do = (least, "divide") if least > high else (most, "multiply")
        text = f"coupling {coupling.name!r} changes by {factor:.1g} for each radian or metre of a coordinate; {do} "
        text += f"both sides by 1e{abs(round(math.log10(factor)))}, which leaves the motion as it is"
        raise ModelError(text, element=coupling.name)
