"""Which requests a mechanism answers, by which method, and in which form: unrolled, rolled, or over free bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from warnings import warn

from linkwright.base.arrays import Floats
from linkwright.base.checks import outside
from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import (
    COUPLED_METHOD,
    DEFAULT_METHOD,
    FORMS,
    FORWARD_METHODS,
    FREE_BODIES_METHOD,
    FREE_BODY_METHODS,
    FUNCTIONS,
    LOOP_METHODS,
    METHODS,
    REFERENCES,
    Method,
    Request,
)
from linkwright.dynamics.structure import Structure
from linkwright.errors import LinkwrightWarning, ModelError, NameNotFound
from linkwright.kernels.cache import stored_arrays

if TYPE_CHECKING:
    from linkwright.dynamics.closed.redundancy import Redundancy

UNROLL = Method.unrolls  # links up to which a recursion is unrolled
FEW_RATES = 12  # of closed mechanisms whose derivatives compile in seconds


class RequestRules(Structure):
    """The structure of a mechanism with the rules of its requests."""

    def check(self, request: Request) -> None:
        """Refuse options that the function does not take, and names that are not there, before anything is made."""
        takes = FUNCTIONS[request.function].options
        for option in ("method", "wrenches", "frame", "reference"):
            if getattr(request, option) and option not in takes:
                known = f"it takes {', '.join(takes)}" if takes else "it takes none of them"
                raise ModelError(f"{request.function} takes no option {option!r}; {known}")
        for option, known_values in (("method", FORWARD_METHODS), ("reference", REFERENCES), ("form", FORMS)):
            value = getattr(request, option)
            needed = option == "reference" and option in takes
            if (value or needed) and value not in known_values:
                raise NameNotFound(option, str(value), list(known_values))
        if len(set(request.free)) < len(request.free):
            raise ModelError(f"free={request.free} names a parameter twice")
        if "frame" in takes:
            self.tree.place(request.frame)
        self.shapes(request)
        self._check_method(request)

    def resolved(self, request: Request) -> Request:
        """The request with the method that it is answered by, where none is named."""
        if request.method or "method" not in FUNCTIONS[request.function].options:
            return request
        if self.rolls(request) and self.as_masses(request):
            return replace(request, method=FREE_BODIES_METHOD)
        return replace(request, method=COUPLED_METHOD if self.coupled else DEFAULT_METHOD)

    def _check_method(self, request: Request) -> None:
        """Refuse a method that would be dropped; where joints share coordinates, warn."""
        if request.method in ("", *FREE_BODY_METHODS) or not self.as_masses(request):
            pass
        elif self.rolls(request):
            most, what = METHODS[request.method].unrolls_by_name, "loops, drivers, gears or forces"
            why = f"is for at most {most} links where {what} act, and {self.description.name!r} has {self.tree.n}"
            if self.carried_by_constraints:
                why = "needs an inertia along the freedom of every joint, and loops or drivers alone move some links"
            elif request.form == "rolled" or self.rotors:
                why = f"has no rolled form where {what} act ({self.description.name!r}: {self.tree.n} links)"
            use = " or ".join(map(repr, FREE_BODY_METHODS))
            raise ModelError(f"method={request.method!r} {why}; use method={use}, or leave method out")
        if self.coupled and request.method not in ("", COUPLED_METHOD) and not self.rolls(request):
            follower = self.description.joint_names[self.description.mimics[0].follower]
            warn(
                f"method={request.method!r} is not used: joint {follower!r} shares the coordinate of another, so that "
                "the equations are solved by method='mass-matrix'",
                LinkwrightWarning,
                stacklevel=outside(),
            )

    def shapes(self, request: Request) -> dict[str, tuple[int, ...]]:
        """The inputs of a request, in order, with their shapes for one state."""
        x = self.tree.coordinates
        sizes: dict[str, tuple[int, ...]] = {"q": (x.nq,), "q1": (x.nq,)}
        sizes |= dict.fromkeys(("v", "a", "tau", "dv"), (x.nv,))
        spec = FUNCTIONS[request.function]
        shapes = {name: sizes[name] for name in spec.inputs}
        if request.wrenches:
            shapes["wrenches"] = (self.tree.n, 6)
        if spec.forces and self.needs_time:
            shapes["t"] = ()
        if request.free:
            for name in request.free:
                if name not in self.description.parameters:
                    raise NameNotFound("parameter", name, list(self.description.parameters))
            for (array, flat), expression in self.description.bindings.items():
                if array == "gear" and expression.names() & set(request.free):
                    follower = self.description.joint_names[self.description.mimics[flat // 2].follower]
                    name = min(expression.names() & set(request.free))
                    text = f"parameter {name!r} sets how joint {follower!r} follows another, and cannot be left free"
                    raise ModelError(text, element=name)
            shapes["p"] = (len(request.free),)
        return shapes

    def as_masses(self, request: Request) -> bool:
        """Whether its rolled form takes bodies as free masses and all joints as constraints."""
        spec = FUNCTIONS[request.function]
        if not (spec.closed and spec.rolls) or request.free:
            return False
        return spec.needs_loops or self.closed or self.coupled or bool(self.description.elements)

    def rolls(self, request: Request) -> bool:
        """Whether the answer is a loop over links: for many of them, or where the caller insists."""
        spec = FUNCTIONS[request.function]
        if self.as_masses(request):
            named = request.method not in ("", *FREE_BODY_METHODS)
            most = METHODS[request.method].unrolls_by_name if named else UNROLL
            long = self.tree.n > most or bool(self.rotors) or self.carried_by_constraints
            return request.form == "rolled" or (long and request.form != "unrolled")
        plain = not request.free and not (spec.forces and self.description.elements) and not self.coupled
        plain = plain and (spec.loops or not self.closed)
        able = spec.rolls and plain
        if request.form == "rolled" and not able:
            raise ModelError(f"{request.function} has no rolled form for this mechanism and these options")
        long = self.tree.n > (METHODS[request.method].unrolls if request.method else UNROLL)
        return able and (request.form == "rolled" or (long and request.form != "unrolled"))

    def check_recordable(self, request: Request) -> None:
        """Refuse what cannot be recorded for this mechanism; the request is `resolved`."""
        spec = FUNCTIONS[request.function]
        if self.closed and not spec.loops:
            self._check_closed(request)
        if spec.needs_loops and not self.closed:
            raise ModelError(f"{request.function} is for mechanisms with loops, ties or drivers; this one has none")
        if request.free and spec.closed and self.carried_by_constraints:
            text = f"loops or drivers alone move some links of {self.description.name!r}, and parameters cannot be free"
            raise ModelError(f"{text} there; give the links without mass a small one", element=self.description.name)
        if self.rolls(request) and self.as_masses(request):
            return
        if request.method and not self.coupled:
            self._check_inertias(request)
        if spec.dense and self.pairs > spec.dense:
            raise ModelError(
                f"{request.function} would lay out {self.pairs} pairs of related links, more than the {spec.dense} "
                "that can be compiled; "
                "for derivatives use products: mech.program('forward_dynamics').forward() and .reverse()"
            )

    def _check_closed(self, request: Request) -> None:
        """Refuse what cannot be answered for closed mechanisms."""
        first = self.closings[0]
        does = {"joint": "closes a loop", "driver": "prescribes a motion"}.get(first.group, "holds bodies together")
        instead = FUNCTIONS[request.function].instead
        if instead:
            text = f"{first} {does}; {request.function} is no single program then: {instead}"
            raise ModelError(text, element=first.name)
        if not FUNCTIONS[request.function].closed:
            text = f"{first} {does}; {request.function} is for mechanisms without loops, ties and drivers so far"
            raise ModelError(text, element=first.name)
        if request.method and request.method not in LOOP_METHODS:
            can = ", ".join(LOOP_METHODS[:-1]) + f" or {LOOP_METHODS[-1]}"
            text = f"{first} {does}; method={request.method!r} is for trees of joints alone, use {can}"
            raise ModelError(text, element=first.name)
        if self.rotors and not self.rolls(request):
            name = self.description.joint_names[self.rotors[0]]
            text = f"joint {name!r} has an armature but no coordinate, for it closes a loop"
            raise ModelError(f"{text}; cut the loop at another joint, or leave form= out", element=name)

    def _check_inertias(self, request: Request) -> None:
        """Refuse bodies whose inertia has no inverse, where the method starts from free bodies."""
        needed = METHODS[request.method].whole_inertias
        if needed == "never" or (needed == "with loops" and not self.closed):
            return
        from linkwright.dynamics.inertia_checks import without_whole_inertia  # for weight: code in a cache needs none

        position = without_whole_inertia(self.tree, self.regular, request.free)
        if position is not None:
            name = self.description.body_names[int(self.topology.body[position])]
            text = f"method={request.method!r} starts from free bodies; {name!r} has no mass, or no inertia about some"
            ways = "give it both, fix it to a body that has them, or use method='articulated-body'"
            raise ModelError(f"{text} axis; {ways}", element=name)

    @cached_property
    def redundancy(self) -> Redundancy:
        """Which of the equations of a closed mechanism repeat others."""
        # For weight: trees have no loop constraints, and a cache has the numbers of most mechanisms.
        from linkwright.dynamics.closed.redundancy import Redundancy

        def arrays() -> list[Floats]:
            from linkwright.dynamics.closed.closed_recorders import redundancy_of  # for weight

            return redundancy_of(self).arrays()

        return Redundancy.of_arrays(stored_arrays(self.description.digest, "redundancy", arrays))

    @cached_property
    def derivable(self) -> bool:
        """Whether the derivatives of forward dynamics can be laid out, and compiled within seconds."""
        few = self.pairs <= FUNCTIONS["forward_dynamics_derivatives"].dense and not self.carried_by_constraints
        return few and (not self.closed or (self.tree.coordinates.nv <= FEW_RATES and not self.rotors))

    @cached_property
    def carried_by_constraints(self) -> bool:
        """Whether a joint has no inertia along its freedom, and loops, rods or drivers determine its motion instead."""
        if not self.closed or self.regular.all():
            return False
        from linkwright.dynamics.closed.closed_recorders import (
            determined_by_constraints,  # for weight: most bodies are regular
        )

        return determined_by_constraints(self)
