"""The mechanisms and states that stand beside a mechanism when loops are closed, each found once."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from linkwright.base.checks import finite_number
from linkwright.base.locks import Lock, cached_property
from linkwright.dynamics.closed import rounding
from linkwright.dynamics.closed.consistent import body_sizes, weighed, weighed_by_parameters
from linkwright.dynamics.closed.initial_state import InitialState, initial_state
from linkwright.dynamics.equilibrium import frozen
from linkwright.dynamics.joint_reactions import Reacting

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

STATES = 8  # initial states, by their times, that are kept


class Auxiliary:
    """What is derived from one mechanism; `source` is that of the mechanism whose parameters have other values."""

    def __init__(self, mech: Mechanism, source: Auxiliary | None) -> None:
        self.mech, self.source = mech, source
        self._initial_states: dict[float, InitialState] = {}
        self._lock = Lock()

    @cached_property
    def closing(self) -> rounding.Closing:
        """The mechanism that moves: this one, or the nearest whose loops close where rounded numbers do not."""
        return rounding.closing(self.mech)

    def closing_with_free(self, parameters: Collection[str]) -> rounding.Closing:
        """The same for programs that leave parameters free."""
        return rounding.with_free(self.mech, parameters)

    @cached_property
    def reacting(self) -> Reacting:
        """The reactions of a closed mechanism along its motions."""
        return Reacting(self.mech)

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
