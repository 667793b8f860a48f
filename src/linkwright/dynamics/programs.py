"""The program factory of a mechanism: which form of which recursion a request is recorded as, and its kernels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock, cached_property
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.requests import UNROLL, RequestRules
from linkwright.errors import LinkwrightError, ModelError
from linkwright.kernels import kernel as program_cache
from linkwright.kernels.kernel import Kernel
from linkwright.model.description import Description
from linkwright.tape.build import record as record_function
from linkwright.tape.program import Program
from linkwright.tape.scalar import has_scalars

if TYPE_CHECKING:
    from linkwright.dynamics.closed.redundancy import Redundancy


NEAR_SIZE = 4.0  # a mechanism whose length is within this factor of another's is judged by the other's
NEAR_MASS = 1e3  # and one whose masses are within this
#: Gaps of rounded numbers are measured by so many times themselves: they count as 2e-9 of the mechanism's length.
ROUNDED = 5e8
FURTHER = 256  # kernels of further programs that are kept


@dataclass(frozen=True, eq=False)
class Parametrised:
    """A mechanism's programs as those of its source, with the values of some parameters as data."""

    source: ProgramFactory
    names: tuple[str, ...]
    values: Floats

    def kernel(self, request: Any, record: Callable[[], Program], *, seldom: bool = False) -> Kernel:
        """The kernel of a program about the source with an input p of these parameters, at these values."""
        source, names = self.source, self.names
        declared = np.array([source.description.parameters[name] for name in names])
        shared = program_cache.kernel(
            source.description.digest,
            ("at values", request),
            lambda: record().with_data("p", declared),
            seldom=seldom,
            recent=True,
        )
        return shared.at("p", self.values)


class ProgramFactory(RequestRules):
    """Makes the programs of one mechanism.

    One that has other values of the parameters `names` than its `source` uses the source's programs, where these are
    such that no answer depends on it: see `parametrised`.
    """

    def __init__(
        self, description: Description, source: ProgramFactory | None = None, names: Collection[str] = ()
    ) -> None:
        super().__init__(description)
        self.source, self.names = source, tuple(name for name in description.parameters if name in names)

    @property
    def values(self) -> dict[str, float]:
        """The parameters in which it differs from its source, with their values."""
        return {name: self.description.parameters[name] for name in self.names}

    def timed(self, request: Request) -> bool:
        """Whether the program of a request has an input t."""
        return FUNCTIONS[request.function].forces and self.needs_time

    # -- kernels and programs ---------------------------------------------------------------------------
    def kernel(self, request: Request) -> Kernel:
        """The kernel of a request, which is `resolved`."""
        self.check(request)
        if self.source is not None and not FUNCTIONS[request.function].numbers:
            return self.source.kernel(request)
        if self.parametrised is not None and not request.free:
            try:
                return self._kernel_at(self.parametrised, request)
            except LinkwrightError:
                pass  # what cannot leave parameters free is recorded for this mechanism, or refused by its own numbers
        form = "rolled" if self.rolls(request) else "unrolled"
        plain = (lambda: self.program(request)) if form == "rolled" else None
        digest = self.description.digest
        return program_cache.kernel(digest, (request, form), lambda: self.program(request, packed=True), plain=plain)

    def _kernel_at(self, parametrised: Parametrised, request: Request) -> Kernel:
        source = parametrised.source
        free = replace(request, free=self.names, ranks_hold=True)
        source.shapes(free)
        return parametrised.kernel(free, lambda: source.program(free, packed=True))

    def program(self, request: Request, *, packed: bool = False) -> Program:
        """Record the program of a request; a loop may be `packed` into less memory, without derivatives."""
        request = self.resolved(request)
        self.check_recordable(request)
        # weight: the recursions, which code from the cache does not need
        from linkwright.dynamics.recording_context import record, record_masses, record_rolled

        if not self.rolls(request):
            return record(self, request)
        return record_masses(self, request) if self.as_masses(request) else record_rolled(self, request, packed=packed)

    # -- the source's programs ----------------------------------------------------------------------------
    @cached_property
    def parametrised(self) -> Parametrised | None:
        """How programs of the source serve this mechanism; None where it has programs of its own.

        They do if recording this mechanism would fold the same zeros and find the same ranks of its constraints, and
        if its size is about the source's.
        """
        if self.source is None or not self._alike(self.source):
            return None
        return Parametrised(self.source, self.names, np.array(list(self.values.values())))

    def _alike(self, source: ProgramFactory) -> bool:
        d, other = self.description, source.description
        mass, other_mass = d.mass, other.mass
        same_size = 1.0 / NEAR_SIZE <= self.size / source.size <= NEAR_SIZE
        same_masses = np.all((mass <= NEAR_MASS * other_mass) & (other_mass <= NEAR_MASS * mass))
        if self.tree.n > UNROLL or not (same_size and same_masses):
            return False
        for (array, flat), expression in d.bindings.items():
            if expression.names().isdisjoint(self.names):
                continue
            values = (np.asarray(getattr(x, array)).reshape(-1)[flat] for x in (d, other))
            if array == "gear" or len({bool(value) for value in values}) > 1:
                return False
        if not np.array_equal(self.regular, source.regular) or self.rotors:
            return False
        return self.determined == source.determined and self._ranks_alike(source)

    def _ranks_alike(self, source: ProgramFactory) -> bool:
        if not self.closed:
            return True
        from linkwright.dynamics.closed.redundancy import Blocks  # weight: dynamics.closed, which trees do not need

        # What a driver of an angle asks depends on how its axes are drawn.
        forms, others = ([c.form.key for c in factory.loop_constraints] for factory in (self, source))
        if forms != others or source.gap or not source.redundancy.positions:
            return False
        sizes, ranks = [c.form.size for c in self.loop_constraints], self._redundancy_at(source)
        return not ranks.gap and Blocks(ranks, sizes).alike(Blocks(source.redundancy, sizes))

    # -- redundancy -------------------------------------------------------------------------------------
    @cached_property
    def gap_units(self) -> Floats:
        """(m,): the same as a measure of whether loops are closed: larger where rounded numbers leave a gap in loops
        that repeat their equations, so that what counts as closed elsewhere does there."""
        return self.constraint_units * max(1.0, ROUNDED * self.gap)

    @cached_property
    def gap(self) -> float:
        """What rounded numbers leave open in loops that repeat their equations, as a part of the mechanism's length;
        not known of mechanisms whose bodies are taken as free masses."""
        if not self.closed or self.tree.n > UNROLL or self.carried_by_constraints or self.parametrised is not None:
            return 0.0
        return self.redundancy.gap

    def _redundancy_at(self, source: ProgramFactory) -> Redundancy:
        """The same by programs of the source, at this mechanism's values of its parameters: to compare both."""
        from linkwright.dynamics.closed.redundancy import redundancy  # weight: dynamics.closed, which trees do not need

        request, units = ("ranks of constraints", self.names), source.rate_units
        nq, nv, k = source.tree.coordinates.nq, len(units), len(self.names)

        def recorded() -> Program:
            # weight: the recorders of closed mechanisms
            from linkwright.dynamics.closed.closed_recorders import residuals_of

            return record_function(residuals_of(source, self.names), nq, (), k)

        digest = source.description.digest
        residuals = program_cache.kernel(digest, request, recorded, seldom=True, recent=True)
        integrate = source.kernel(Request("integrate"))
        values = np.array(list(self.values.values()))

        def evaluate(q: Floats) -> tuple[Floats, Floats]:
            phi, g = residuals(q, np.zeros(len(q)), values)
            return phi, g

        return redundancy(evaluate, lambda q, change: integrate(q, change * units), self.drawn, self.driven, nv)


class Kernels:
    """The kernels of a mechanism's programs, each made once, and the answers that they give.

    They stand apart from the program factory, which is alive as long as a kernel may have to record its program.
    """

    def __init__(self, programs: ProgramFactory) -> None:
        self.programs = programs
        self._kernels: dict[Request, Kernel] = {}
        self._plain: dict[Request, Program] = {}
        self._further: OrderedDict[Hashable, Kernel] = OrderedDict()  # of programs that are no function of it
        self._lock = Lock()

    def evaluate(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Any:
        """The outputs of the program of a request for states of any batch shape, or for recorded scalars."""
        kernel = self.kernel(request)
        if has_scalars(*arrays):
            return (kernel.program if self.programs.source is None else self.programs.program(request))(*arrays)
        if self.programs.timed(request):
            return kernel(*arrays, t, out=out)
        if type(t) is not float:
            real_array(f"{request.function}: t", t)
        return kernel(*arrays, out=out)

    def kernel(self, request: Request) -> Kernel:
        """The kernel of a request, made once."""
        try:
            kernel = self._kernels.get(request)
        except TypeError:  # of a list or a dictionary, which cannot be looked up
            raise ModelError(f"{request.function} takes names as text: {request}") from None
        if kernel is not None:
            return kernel
        asked, request = request, self.programs.resolved(request)
        with self._lock:
            kernel = self._kernels.get(request)
            if kernel is None:
                kernel = self._kernels[request] = self.programs.kernel(request)
            self._kernels[asked] = kernel
        return kernel

    def further(
        self,
        request: Hashable,
        record: Callable[[], Program],
        *,
        parametrised: Parametrised | None = None,
        seldom: bool = False,
    ) -> Kernel:
        """The kernel of a program about the mechanism that is no function of it: a step in time, a frame's motion.

        The request tells the programs of a mechanism apart, in other processes by its `repr`. `record` makes the
        program where no cache has its code; `seldom` is for code that runs a few times. With `parametrised` the
        program is about its source, with the parameters as an input p. The last ones are kept.
        """
        with self._lock:
            key = request, parametrised is not None  # whether parameters are an input, or data
            kernel = self._further.get(key)
            if kernel is None:
                if parametrised is None:
                    kernel = program_cache.kernel(self.programs.description.digest, request, record, seldom=seldom)
                else:
                    kernel = parametrised.kernel(request, record, seldom=seldom)
                self._further[key] = kernel
                if len(self._further) > FURTHER:
                    self._further.popitem(last=False)
            else:
                self._further.move_to_end(key)
        return kernel

    def program(self, request: Request) -> Program:
        """The program with a place for every number; the kernel's may be packed, or have values as data."""
        request = self.programs.resolved(request)
        kernel = self.kernel(request)
        if not self.programs.rolls(request) and self.programs.source is None:
            return kernel.program
        with self._lock:
            if request not in self._plain:
                self._plain[request] = self.programs.program(request)
            return self._plain[request]

    # -- answers that are no methods of a mechanism -----------------------------------------------------
    def position_correction(self, q: ArrayLike, t: ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """The least change of q, in the mass metric, that closes the loops to first order; and what is open."""
        change, phi = self.evaluate(Request("position_correction"), q, t=t)
        return change, phi

    def velocity_projection(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """The least change of v, in the mass metric, that keeps the loops closed; and how they open."""
        change, rate = self.evaluate(Request("velocity_projection"), q, v, t=t)
        return change, rate

    def applied_forces(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """The wrenches of force elements on bodies (..., nb, 6), in their axes, and their forces on rates (..., nv)."""
        wrenches, forces = self.evaluate(Request("applied_forces"), q, v, t=t)
        return wrenches, forces

    def initial_values(self, q: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
        """What the initial conditions name, at a state, and how fast it changes."""
        values, slopes = self.evaluate(Request("initial_values"), q, v)
        return values, slopes
