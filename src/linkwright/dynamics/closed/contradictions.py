"""Why initial conditions cannot be met: which values and constraints contradict, and the nearest state that exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.initial_conditions import Conditions, least_rates, rates_met
from linkwright.dynamics.closed.initial_search import Candidate, Search
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.model_checks import listed
from linkwright.model.quantities import Quantity, spoken, with_unit

#: Up to so many values each is left out in turn, to see which are in each other's way.
LEFT_OUT = 12
#: Constraints with less than this part of the largest share in a contradiction are not named.
SHARE = 1e-3
#: Slopes below this part are those of an extreme, which a search does not meet exactly.
FLAT = 1e-4
#: The most constraints that an error names.
NAMED = 4


def no_state(search: Search, some: Sequence[int], nearest: Candidate) -> ModelError:
    """The error for places that no state has; `nearest` misses them least."""
    c = search.c

    def can(few: Sequence[int]) -> bool:
        start = search.nearest(nearest.q, few)  # what misses little without a value meets the others from there
        return search.meets(start, few) or search.meets(search.best(few, 1), few)

    guilty, alone = _contradicting(some, can)
    values = c.measured(nearest.q[None])[0][0]
    values = values - np.where(c.whole_turns, 2.0 * np.pi * np.round((values - c.wanted) / (2.0 * np.pi)), 0.0)
    chosen = [list(some).index(k) for k in guilty]
    r = c.residuals(nearest.q[None], guilty)
    holding = _holding(c, r.g[0], r.slopes[0].T @ nearest.apart[chosen], float(np.linalg.norm(nearest.apart[chosen])))
    return _error(c, guilty, alone, values, holding, "value")


def no_rates(c: Conditions, q: Floats, v: Floats) -> ModelError:
    """The error for rates that no motion has at a state; v misses them least."""

    def can(few: Sequence[int]) -> bool:
        return rates_met(c, few, least_rates(c, q, few)[1])

    guilty, alone = _contradicting(c.rates, can)
    slopes = c.measured(q[None])[1][0]
    values = slopes @ v
    scaled = slopes[guilty] * c.columns / c.units[guilty][:, None]
    missing = (c.wanted - values)[guilty] / c.units[guilty]
    holding = _holding(c, c.constraint_rates(q)[0], scaled.T @ missing, float(np.linalg.norm(missing)))
    return _error(c, guilty, alone, values, holding, "rate")


def _contradicting(some: Sequence[int], can: Callable[[Sequence[int]], bool]) -> tuple[list[int], bool]:
    """The values without any one of which the others can be met, or those that cannot be met each by itself.

    And whether they are of the second kind. Of many values, all.
    """
    if len(some) == 1 or len(some) > LEFT_OUT:
        return list(some), len(some) == 1
    guilty = [k for k in some if can([i for i in some if i != k])]
    if len(guilty) == 1:
        return guilty, not can(guilty)
    alone = [] if guilty else [k for k in some if not can([k])]
    return guilty or alone or list(some), bool(alone)


def _holding(c: Conditions, g: Floats, pull: Floats, apart: float) -> list[str]:
    """The constraints that hold a state back when values pull at it, drivers first: those with multipliers.

    None where values are as far as the joints alone let them be, `apart` from what is asked: nothing pulls there.
    """
    if not len(g) or float(np.linalg.norm(pull)) <= FLAT * apart:
        return []
    multipliers = np.abs(np.linalg.lstsq(g.T, pull, rcond=1e-8)[0]) * np.linalg.norm(g, axis=1)
    shares: dict[str, tuple[bool, float]] = {}
    for (constraint, _), size in zip(c.mech.programs.constraint_rows, multipliers.tolist(), strict=True):
        before = shares.get(str(constraint), (True, 0.0))[1]
        shares[str(constraint)] = constraint.group != "driver", max(before, size)
    most = max(size for _, size in shares.values())
    named = [name for name, (_, size) in shares.items() if size > SHARE * most]
    return sorted(named, key=lambda name: shares[name][0])


def _error(
    c: Conditions, guilty: Sequence[int], alone: bool, values: Floats, holding: Sequence[str], kind: str
) -> ModelError:
    d = c.mech.description
    names = [spoken(d, c.quantities[k]) for k in guilty]
    wanted = {k: with_unit(d, c.quantities[k], float(c.wanted[k])) for k in guilty}
    nearest = {k: with_unit(d, c.quantities[k], float(values[k])) for k in guilty}
    state = ", ".join(f"{name} = {nearest[k]}" for name, k in zip(names, guilty, strict=True))
    driver = next((x for k in guilty if (x := _driver_of(d, c.quantities[k]))), None)
    if len(guilty) == 1 and driver is not None:
        k = guilty[0]
        text = f"the initial {kind} of {names[0]!r} is not what driver {driver!r} says: {wanted[k]} against "
        return ModelError(f"{text}{nearest[k]} at t = {c.t:g}; leave it out, or the driver", element=names[0])
    many = "s" if len(guilty) > 1 else ""
    if alone or len(guilty) == 1:
        typed = ", ".join(wanted.values())
        blockers = holding or _moving_joints(c, guilty) or ["its joints"]
        verb = "does" if len(blockers) == 1 and blockers[0] != "its joints" else "do"
        text = f"the initial {kind}{many} of {listed(names)} cannot be met: "
        text += f"{first_few(blockers, NAMED)} {verb} not allow {typed}"
        advice = f"correct {'them' if many else 'it'}, or leave {'them' if many else 'it'} out"
    else:
        text = f"the initial {kind}s of {listed(names)} contradict each other"
        text += f", with what {first_few(holding, NAMED)} allow{'s' * (len(holding) == 1)}" if holding else ""
        advice = "leave one of them out, or correct it"
    return ModelError(f"{text}; the nearest state that exists has {state}; {advice}", element=names[0])


def _driver_of(d: Description, x: Quantity) -> str | None:
    """The driver of a joint's coordinate."""
    of = (x.kind, x.of[0], x.index)
    return next((driver.name for driver in d.drivers if (driver.kind, driver.target, driver.index) == of), None)


def _moving_joints(c: Conditions, some: Sequence[int]) -> list[str]:
    """The joints of the tree that move what is named."""
    rng, n = np.random.default_rng(0), c.mech.nv
    slopes = c.measured(c.moved(c.mech.neutral()[None], rng.uniform(-1.0, 1.0, (1, n))))[1][0][list(some)]
    moves = np.abs(slopes).max(axis=0) > 0.0
    return [f"joint {joint.name!r}" for joint in c.mech.joints if moves[joint.v_slice].any()]
