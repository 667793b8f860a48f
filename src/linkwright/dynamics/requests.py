"""What follows from a description for all of its programs, and which requests a mechanism answers, by which method
and in which form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import outside
from linkwright.base.arrays import Floats
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
    Function,
    Method,
    Request,
)
from linkwright.errors import LinkwrightWarning, ModelError, NameNotFound
from linkwright.kernels.llvm.compiler import stored_arrays
from linkwright.model.coupling_relation import couplings
from linkwright.model.curve_elements import check_no_curves
from linkwright.model.description import Description
from linkwright.model.elements import laws_of
from linkwright.model.joint_kinds import KIND_LIST
from linkwright.model.placements import coordinate_units, has_whole_inertia
from linkwright.model.topology import Topology, span
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array

if TYPE_CHECKING:
    from linkwright.constraints.constraint_equations import Constraint
    from linkwright.constraints.free_body_dynamics import CentralLayout
    from linkwright.dynamics.closed.redundancy import Redundancy


class Structure:
    """A description with what programs need to know of it, each computed when it is first used."""

    def __init__(self, description: Description) -> None:
        self.description = description

    # -- the tree ---------------------------------------------------------------------------------------
    @cached_property
    def topology(self) -> Topology:
        return span(self.description)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.description, self.topology)

    @property
    def pairs(self) -> int:
        """How many pairs of links are related, each with itself included."""
        return int(self.topology.depth.sum()) + self.tree.n

    @property
    def size(self) -> float:
        """A length that is typical for the mechanism."""
        return self.description.length_scale

    @cached_property
    def rate_units(self) -> Floats:
        """(nv,): the unit of each rate: the mechanism's length, or 1 for turns."""
        return coordinate_units(self.tree)[1]

    @cached_property
    def actuated(self) -> NDArray[np.bool_]:
        """(nv,): for every rate, whether it has an actuator; one that joints share, whether any of them has."""
        x, d = self.tree.coordinates, self.description
        mask = np.zeros(x.nv, bool)
        for i, j in enumerate(self.topology.joint.tolist()):
            if j not in d.passive:
                mask[x.v_at[i] : x.v_at[i] + d.kind_of(j).nv] = True
        return mask

    def gravity(self, free: Mapping[str, Any]) -> Array:
        """The acceleration of gravity, with the parameters in `free` recorded."""
        d = self.description
        entries = list(d.gravity.tolist())
        for k in range(3):
            expression = d.bindings.get(("gravity", k))
            if expression is not None and expression.names() & free.keys():
                entries[k] = expression.evaluate({**d.parameters, **free})
        return np.array(entries)

    def neutral(self) -> Floats:
        """The q at which every joint is at its zero."""
        x = self.tree.coordinates
        q = np.zeros(x.nq)
        for number, kind in enumerate(KIND_LIST):
            if kind.nq != kind.nv:
                at = x.q_at[self.tree.kind_numbers == number]
                q[at[:, None] + np.arange(kind.nq)] = kind.neutral()
        return q

    @cached_property
    def drawn(self) -> NDArray[np.float64]:
        """The tree's coordinates where the bodies are drawn, as near as they come; neutral where they are not."""
        d, q = self.description, self.neutral()
        if d.start is None:
            return q
        from linkwright.constraints.constraint_equations import Equations  # weight: constraints
        from linkwright.constraints.newton import start_state
        from linkwright.constraints.tree_bodies import coordinates

        return coordinates(self.tree, start_state(Equations(d)), q)

    # -- what takes part --------------------------------------------------------------------------------
    @cached_property
    def needs_time(self) -> bool:
        """Whether a force depends on TIME, or a driver does."""
        d = self.description
        laws = [law for e in d.elements for law in laws_of(e)]
        laws += [x.relation for x in couplings(d)]
        return bool(d.drivers) or any("TIME" in law.names() for law in laws)

    @property
    def has_pair_derivatives(self) -> bool:
        """Whether the recursion over pairs of bodies covers this mechanism."""
        return not self.description.elements

    @cached_property
    def coupled(self) -> bool:
        """Whether joints share coordinates."""
        return bool(self.tree.coordinates.follows.any())

    @cached_property
    def closed(self) -> bool:
        """Whether anything but the tree's own joints holds the bodies."""
        d = self.description
        return bool(d.point_constraints or d.drivers) or any(d.kind_of(j).nv < 6 for j in self.topology.loops)

    # -- loop constraints -------------------------------------------------------------------------------
    @cached_property
    def loop_constraints(self) -> tuple[Constraint, ...]:
        """What holds the bodies besides the tree's joints, in the order of the multipliers."""
        if not self.closed:
            return ()
        from linkwright.constraints.constraint_equations import loop_constraints  # weight: constraints

        return loop_constraints(self.description, self.topology)

    @cached_property
    def constraint_rows(self) -> list[tuple[Constraint, str]]:
        """Every equation that holds the tree's coordinates together: its constraint, and what it is about."""
        return [(constraint, name) for constraint in self.loop_constraints for name in constraint.form.names]

    @cached_property
    def constraint_units(self) -> Floats:
        """(m,): the unit of each of these equations: the mechanism's length, or 1 for angles and sines."""
        lengths = [flag for constraint in self.loop_constraints for flag in constraint.form.lengths]
        return np.where(np.array(lengths, dtype=bool), self.size, 1.0)

    def without_units(self, g: Floats) -> Floats:
        """G (..., m, nv) of these equations and rates, with lengths and shifts as parts of the mechanism's length."""
        return np.asarray(g * self.rate_units / self.constraint_units[:, None])

    @property
    def driven(self) -> NDArray[np.bool_]:
        """(m,): which of the constraint equations are drivers'."""
        return np.concatenate([np.full(c.form.size, c.group == "driver") for c in self.loop_constraints])

    @cached_property
    def rotors(self) -> list[int]:
        """The joints that close loops and have an armature: their rotors turn by what bodies do to each other."""
        return [j for j in self.topology.loops if self.description.armature[j]]

    @cached_property
    def masses(self) -> CentralLayout:
        """The bodies as free masses and all joints as constraints."""
        from linkwright.constraints.free_body_dynamics import CentralLayout  # weight: constraints
        from linkwright.constraints.masses import CentralEquations

        return CentralLayout(CentralEquations(self.tree))

    @cached_property
    def assembled_masses(self) -> CentralLayout:
        """The same, with constraints that do not touch each other eliminated side by side."""
        from linkwright.constraints.free_body_dynamics import CentralLayout  # weight: constraints

        return CentralLayout(self.masses.equations, in_rounds=True)

    # -- inertias ---------------------------------------------------------------------------------------
    @cached_property
    def regular(self) -> NDArray[np.bool_]:
        """Which bodies have a mass and an inertia about every axis."""
        return has_whole_inertia(self.description.mass, self.description.inertia)

    @cached_property
    def determined(self) -> bool:
        """Whether forces determine the acceleration of every joint of the spanning tree."""
        from linkwright.dynamics.inertia_checks import undetermined  # weight: recursions

        return bool(self.regular.all()) or undetermined(self.tree) is None

    def singular(self, position: int) -> ModelError:
        """The error for a joint whose acceleration no force determines."""
        d, t = self.description, self.topology
        joint, body = d.joint_names[int(t.joint[position])], d.body_names[int(t.body[position])]
        carried = np.abs(d.mass[t.body]) + np.abs(d.inertia[t.body]).sum(axis=1)
        for i in range(self.tree.n - 1, position, -1):
            if t.parent[i] >= 0:
                carried[t.parent[i]] += carried[i]
        weightless = carried[position] == 0
        what, give = ("carries no mass", "a mass") if weightless else ("has no inertia along its freedom", "an inertia")
        return ModelError(
            f"joint {joint!r} {what}, so forces do not determine its acceleration; "
            f"give {body!r} {give}, give the joint an armature, or lock it",
            element=joint,
        )


#: Links up to which a recursion is unrolled. Closed mechanisms are 6 × as fast unrolled there (ladder of four-bars, 63
#: links: 2.6 µs and 15 µs), but beyond straight code would compile for more than some 6 s (loops: 1 s).
UNROLL = Method.unrolls
FEW_RATES = 12  # of closed mechanisms whose derivatives, all of them laid out, compile in seconds
#: Rates of trees up to which derivatives are one program. Beyond, the first call would take more than some 5 s, or each
#: call longer than by directions. Seconds and microseconds by one program and by directions: forward dynamics 2.3 s and
#: 318 µs, 0.4 s and 486 µs (chain of 96), 6.6 s and 455 µs, 2.7 s and 660 µs (random tree, 122 rates), 3.7 s and
#: 1290 µs, 0.4 s and 1300 µs (chain of 160); inverse dynamics 6 s and 37 µs, 1.2 s and 130 µs (chain of 48).
WHOLE_MATRICES = {"forward_dynamics_derivatives": 96, "inverse_dynamics_derivatives": 40}
#: The same with force elements and with gears: 2.3 s and 14 µs, 0.9 s and 190 µs (12 rates); 10 s and 78 µs, 1 s and
#: 310 µs (24 rates).
WHOLE_BY_TAPE = 16
#: The same of closed mechanisms. Ladders of four-bars: 4.4 s and 22 µs, 0.4 s and 171 µs (33 rates); 7.5 s and 55 µs,
#: 0.4 s and 330 µs (49 rates).
WHOLE_OF_LOOPS = 36


#: What there is in place of code that would be too long.
_PRODUCTS = "; call its method with arrays in main memory, or use products: mech.program(...).forward() and .reverse()"
_INSTEAD = {"jacobian": "; mech.twist has its product with v", **dict.fromkeys(WHOLE_MATRICES, _PRODUCTS)}


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
        sizes |= {"weights": (int(self.actuated.sum()),), "size": ()}
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
        if self.as_masses(request):
            named = request.method not in ("", *FREE_BODY_METHODS)
            most = METHODS[request.method].unrolls_by_name if named else UNROLL
            long = self.tree.n > most or bool(self.rotors) or self.carried_by_constraints
            return request.form == "rolled" or (long and request.form != "unrolled")
        able = self.can_roll(request)
        if request.form == "rolled" and not able:
            raise ModelError(f"{request.function} has no rolled form for this mechanism and these options")
        row = METHODS[request.method] if request.method else FUNCTIONS[request.function]
        long = self.tree.n > row.unrolls
        return able and (request.form == "rolled" or (long and request.form != "unrolled"))

    def can_roll(self, request: Request) -> bool:
        """Whether it has a rolled form."""
        spec = FUNCTIONS[request.function]
        if self.as_masses(request):
            return True
        plain = not request.free and not (spec.forces and self.description.elements) and not self.coupled
        return spec.rolls and plain and (spec.loops or not self.closed)

    def check_recordable(self, request: Request) -> None:
        """Refuse what cannot be recorded for this mechanism; the request is `resolved`."""
        spec = FUNCTIONS[request.function]
        if self.closed and not spec.loops:
            self._check_closed(request)
        if spec.needs_loops and not self.closed:
            raise ModelError(f"{request.function} is for mechanisms with loops, rods or drivers; this one has none")
        if request.free and spec.closed and self.carried_by_constraints:
            check_no_curves(self.description.point_constraints)
            text = f"loops or drivers alone move some links of {self.description.name!r}, and parameters cannot be free"
            raise ModelError(f"{text} there; give the links without mass a small one", element=self.description.name)
        if self.rolls(request) and self.as_masses(request):
            return
        if request.method and not self.coupled:
            self._check_inertias(request)
        if 0 < (most := self._most_pairs(spec)) < self.pairs:
            text = f"{request.function} would lay out {self.pairs} pairs of related links, more than the {most} "
            raise ModelError(f"{text}that can be compiled{_INSTEAD.get(request.function, '')}")

    def _most_pairs(self, spec: Function) -> int:
        """How many pairs of related links a function is recorded for; 0 for any number."""
        over_rates = spec.over_rates and self.has_pair_derivatives and not self.coupled
        return spec.over_rates if over_rates else spec.dense

    def _check_closed(self, request: Request) -> None:
        """Refuse what cannot be answered for closed mechanisms."""
        first = self.loop_constraints[0]
        does = {"joint": "closes a loop", "driver": "prescribes a motion"}.get(first.group, "holds bodies together")
        instead = FUNCTIONS[request.function].instead
        if instead:
            text = f"{first} {does}; {request.function} is no single program then: {instead}"
            raise ModelError(text, element=first.name)
        if not FUNCTIONS[request.function].closed:
            text = f"{first} {does}; {request.function} is for mechanisms without loop constraints and drivers so far"
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
        from linkwright.dynamics.inertia_checks import without_whole_inertia  # weight: recursions

        position = without_whole_inertia(self.tree, self.regular, request.free)
        if position is not None:
            name = self.description.body_names[int(self.topology.body[position])]
            text = f"method={request.method!r} starts from free bodies; {name!r} has no mass, or no inertia about some"
            ways = "give it both, fix it to a body that has them, or use method='articulated-body'"
            raise ModelError(f"{text} axis; {ways}", element=name)

    @cached_property
    def redundancy(self) -> Redundancy:
        """Which of the equations of a closed mechanism repeat others."""
        from linkwright.dynamics.closed.redundancy import Redundancy  # weight: dynamics.closed, which trees do not need

        def arrays() -> list[Floats]:
            # weight: the recorders of closed mechanisms, where no cache has the numbers
            from linkwright.dynamics.closed.closed_recorders import redundancy_of

            return redundancy_of(self).arrays()

        return Redundancy.of_arrays(stored_arrays(self.description.digest, "redundancy", arrays))

    def by_directions(self, function: str) -> bool:
        """Whether derivatives are computed column by column: where one program of all is slower, or there is none."""
        nv = self.tree.coordinates.nv
        if not self.closed:
            plain = self.has_pair_derivatives and not self.coupled
            return nv > (WHOLE_MATRICES[function] if plain else WHOLE_BY_TAPE)
        if not FUNCTIONS[function].closed:
            return False
        if nv > WHOLE_OF_LOOPS or self.rotors or self.carried_by_constraints:
            return True
        # weight: the recorders of closed mechanisms
        from linkwright.dynamics.closed.closed_derivatives import covers

        return nv > FEW_RATES and not covers(self)

    @cached_property
    def carried_by_constraints(self) -> bool:
        """Whether a joint has no inertia along its freedom, and loops, rods or drivers determine its motion instead."""
        if not self.closed or self.regular.all():
            return False
        # weight: the recorders of closed mechanisms
        from linkwright.dynamics.closed.closed_recorders import determined_by_constraints

        return determined_by_constraints(self)
