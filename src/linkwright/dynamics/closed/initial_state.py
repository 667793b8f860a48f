"""The initial state that a model's initial conditions and constraints determine; the mechanisms and states that
stand beside a closed mechanism.

What is given is met. Everything else is as near to the drawing as it can be, and rates are as small as they can be.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.arguments import finite_number
from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock, cached_property
from linkwright.constraints.assembly_program import Assembler
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.newton import wrong_way
from linkwright.dynamics.closed import redundancy as rounding
from linkwright.dynamics.closed.closed_inverse import Actuators
from linkwright.dynamics.closed.closed_reactions import JointWrenches
from linkwright.dynamics.closed.consistent import as_drawn, body_sizes, weighed, weighed_by_parameters
from linkwright.dynamics.closed.contradictions import no_rates, no_state
from linkwright.dynamics.closed.initial_conditions import EXACT, Conditions, least_rates, rates_met, undetermined_rates
from linkwright.dynamics.closed.initial_search import Search
from linkwright.dynamics.closed.projection import Projector
from linkwright.dynamics.closed.singular import Regularity
from linkwright.dynamics.equilibrium import frozen
from linkwright.dynamics.joint_reactions import Reacting
from linkwright.errors import AssemblyError
from linkwright.model.body_motion import body_states, drawn_at
from linkwright.model.description import Description, sealed
from linkwright.model.model_checks import listed
from linkwright.model.quantities import spoken

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class InitialState:
    """q and v at which motion begins, which are not written to, and what a person should know of them."""

    q: Floats
    v: Floats
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sealed(self.q)
        sealed(self.v)


def initial_state(mech: Mechanism, t: float) -> InitialState:
    """The state at which motion begins.

    Raises ModelError where the initial conditions contradict each other or the constraints, and AssemblyError where
    the mechanism cannot be assembled.
    """
    nearest = mech.auxiliary.nearest
    if nearest.mechanism is not mech:
        state = nearest.mechanism.auxiliary.initial_state(t)
        return replace(state, notes=(*nearest.notes, *state.notes))
    if not mech.description.initial:
        q = _drawn(mech, t)
        return InitialState(*(mech.project(q, t=t) if mech.closed else (q, np.zeros(mech.nv))))
    conditions = Conditions(mech, t)
    q, apart = _placed(mech, conditions)
    v, missing = least_rates(conditions, q, conditions.rates)
    if not rates_met(conditions, conditions.rates, missing):
        raise no_rates(conditions, q, v)
    return InitialState(q, v, _rounded(conditions, apart, missing))


def placed(mech: Mechanism, t: float) -> Description:
    """The description with its bodies where its initial conditions have them, or as drawn if it has none."""
    return at_initial_state(mech, t)[0] if mech.description.initial else mech.description


def at_initial_state(mech: Mechanism, t: float) -> tuple[Description, tuple[str, ...]]:
    """The description with its bodies placed where the initial state has them, for motion that drivers prescribe.

    And what a person should know of it: rates that no driver determines are no part of such a motion.
    """
    state = mech.auxiliary.initial_state(t)
    mech = mech.auxiliary.nearest.mechanism
    d = mech.description
    conditions = Conditions(mech, t)
    undriven = [spoken(d, conditions.quantities[k]) for k in undetermined_rates(conditions, state.q)]
    text = f"the initial rate of {listed(undriven)} is left out: no driver determines it, and forces do not act here"
    notes = (*state.notes, text) if undriven else state.notes
    return drawn_at(d, body_states(d, state.q)), notes


def _drawn(mech: Mechanism, t: float) -> Floats:
    return mech.assemble(t=t) if mech.closed or mech.description.start is not None else mech.neutral()


def _placed(mech: Mechanism, c: Conditions) -> tuple[Floats, Floats]:
    """The q that meets the places, and by how much it does not (scaled)."""
    failure: AssemblyError | None = None
    try:
        drawn = _drawn(mech, c.t)
    except AssemblyError as error:  # what is given may lead where the drawing does not
        failure, drawn = error, as_drawn(mech)
    if not mech.closed and all(k in c.entries for k in c.places):
        q = c.direct(drawn, c.places)
        values = mech.kernels.initial_values(q, np.zeros(mech.nv))[0]
        apart = (c.wanted - values)[c.places] / c.units[c.places]
        if all(abs(x) <= c.rounding(k) for x, k in zip(apart, c.places, strict=True)):
            return q, apart
    if not c.places and failure is None:
        return drawn, np.zeros(0)
    equations = Equations(mech.description)
    search = Search(c, drawn, lambda q: not wrong_way(equations, body_states(mech.description, q)))
    nearest = search.best(c.places)
    if not search.meets(nearest, c.places):
        if failure is not None and not nearest.open <= search.open:
            raise failure
        raise no_state(search, c.places, nearest)
    return c.with_turns(nearest.q, c.places), nearest.apart


def _rounded(c: Conditions, places: Floats, rates: Floats) -> tuple[str, ...]:
    """A line for values that say more than there is freedom, and agree to their digits only."""
    notes = []
    for kind, some, apart in (("values", c.places, places), ("rates", c.rates, rates)):
        off = [k for k, x in zip(some, apart, strict=True) if abs(x) > 100.0 * EXACT * max(1.0, abs(c.wanted[k]))]
        if off:
            names = listed([spoken(c.mech.description, c.quantities[k]) for k in off])
            most = float(np.max(np.abs(apart)))
            notes.append(
                f"the initial {kind} of {names} agree with the others to {most:.1e} (rad, or parts of the mechanism's "
                "size): motion begins at the nearest state"
            )
    return tuple(notes)


STATES = 8  # initial states, by their times, that are kept


class Auxiliary:
    """What is derived from one mechanism; `source` is that of the mechanism whose parameters have other values."""

    def __init__(self, mech: Mechanism, source: Auxiliary | None) -> None:
        self.mech, self.source = mech, source
        self._initial_states: dict[float, InitialState] = {}
        self._lock = Lock()

    @cached_property
    def nearest(self) -> rounding.NearestClosed:
        """The mechanism that moves: this one, or the nearest whose loops close where rounded numbers do not."""
        return rounding.nearest_closed(self.mech)

    def nearest_with_free(self, parameters: Collection[str]) -> rounding.NearestClosed:
        """The same for programs that leave parameters free."""
        return rounding.with_free(self.mech, parameters)

    @cached_property
    def assembler(self) -> Assembler:
        """The assembly of the mechanism from guesses that need no second start."""
        return Assembler(self.mech.tree)

    @cached_property
    def reacting(self) -> Reacting:
        """The reactions of a closed mechanism along its motions."""
        return Reacting(self.mech)

    @cached_property
    def actuators(self) -> Actuators:
        """The inverse dynamics of a closed mechanism."""
        return Actuators(self.mech)

    @cached_property
    def joint_wrenches(self) -> JointWrenches:
        """The reactions of a closed mechanism at given states."""
        return JointWrenches(self.mech)

    @cached_property
    def projector(self) -> Projector:
        """The projection of a closed mechanism's states."""
        return Projector(self.mech)

    @cached_property
    def regularity(self) -> Regularity:
        """Whether positions of a closed mechanism are regular."""
        return Regularity(self.mech)

    @cached_property
    def frozen(self) -> Mechanism:
        """The mechanism with drivers that are at every time where they are, at rest."""
        if self.source is None:
            return type(self.mech)(frozen(self.mech.description))
        return self.source.frozen.with_parameters(**self.mech.programs.values)

    @cached_property
    def weighed(self) -> Mechanism:
        """The mechanism with geometry for masses."""
        if self.source is None:
            return type(self.mech)(weighed(self.mech.description))
        sizes = body_sizes(self.mech.description)
        return self.source.weighed_by_parameters.with_parameters(**self.mech.programs.values, **sizes)

    @cached_property
    def weighed_by_parameters(self) -> Mechanism:
        """The mechanism with geometry for masses, and the sizes of its bodies as parameters."""
        return type(self.mech)(weighed_by_parameters(self.mech.description))

    def initial_state(self, t: float) -> InitialState:
        """The state at which motion begins at a time, with what a person should know of it."""
        t = finite_number("t", t)
        state = self._initial_states.get(t)
        if state is None:
            state = initial_state(self.mech, t)
            with self._lock:
                if len(self._initial_states) >= STATES:
                    self._initial_states.clear()
                self._initial_states[t] = state
        return state
