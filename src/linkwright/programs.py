"""From a question about a mechanism to the program that answers it: which recursion, unrolled or rolled.

`Mechanism` asks with a `Request`; the answer is a `Program`. Up to `UNROLL` links a recursion is unrolled and its
constants folded; beyond, it is rolled into loops over links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.base.types import Floats
from linkwright.dynamics.functions import FORMS, FORWARD_METHODS, FUNCTIONS, REFERENCES, Request
from linkwright.errors import LinkwrightError, LinkwrightWarning, ModelError, NameNotFound
from linkwright.kernels import program_cache
from linkwright.kernels.cache import stored_arrays
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism.description import Description
from linkwright.mechanism.elements import laws_of
from linkwright.mechanism.frames import full_inertia
from linkwright.mechanism.kinds import KIND_LIST
from linkwright.mechanism.lengths import coordinate_units
from linkwright.mechanism.placement import placement_rotation
from linkwright.mechanism.topology import Topology, span
from linkwright.mechanism.tree import Tree
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import Chain
from linkwright.spatial.transform import Transform
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.constraints.central_layout import CentralLayout
    from linkwright.constraints.closings import Closing
    from linkwright.recursions.redundancy import Redundancy

NEAR_SIZE = 4.0  # a mechanism whose length is within this factor of another's is judged by the other's
NEAR_MASS = 1e3  # and one whose masses are within this
UNROLL = 64  # links up to which a recursion is unrolled
#: Methods whose code grows faster, or from more, are rolled earlier: compiling stays at a second or two.
UNROLL_EARLIER = {"triangular": 32, "mass-matrix": 24, "virtual-work": 32, "assembly": 32}
#: Links up to which a method that is asked for by name is unrolled where the rolled form has another: loops, drivers,
#: gears and force elements. Compiling stays below some ten seconds.
UNROLL_BY_NAME = {"mass-matrix": 96}
UNROLL_BY_NAME_AT_MOST = 256
#: The way in which bodies are taken as free masses and all joints as constraints: the rolled form of such mechanisms.
MASSES = "virtual-work"
#: The ways that have this form: one constraint after another, or in rounds of those that do not touch each other.
OF_MASSES = (MASSES, "assembly")
CLOSED_METHODS = ("articulated-body", "virtual-work", "assembly", "mass-matrix")  # those that can close loops
FREE_BODY_METHODS = ("virtual-work", "assembly")  # those that ask every body for a whole inertia, assembly with loops
#: Gaps of rounded numbers are measured by so many times themselves: they count as 2e-9 of the mechanism's length.
ROUNDED = 5e8
FEW_RATES = 12  # of closed mechanisms whose derivatives compile in seconds


#: What has a rolled form for mechanisms with loops, ties, drivers, couplings and force elements.
CLOSED = ("forward_dynamics", "constraint_forces", "closing", "settling")


@dataclass(frozen=True)
class RanksRequest:
    """Φ and G without units, at values of free parameters."""

    free: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Parametrised:
    """A mechanism's programs as those of its source, with the values of some parameters as data."""

    source: Maker
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


class Maker:
    """Makes the programs of one mechanism.

    One that has other values of the parameters `names` than its `source` uses the source's programs, where these are
    such that no answer depends on it: see `parametrised`.
    """

    def __init__(self, description: Description, source: Maker | None = None, names: Collection[str] = ()) -> None:
        self.description = description
        self.source, self.names = source, tuple(name for name in description.parameters if name in names)

    @cached_property
    def parametrised(self) -> Parametrised | None:
        """How programs of the source serve this mechanism; None where it has programs of its own.

        They do if recording this mechanism would fold the same zeros and find the same ranks of its constraints, and
        if its size is about the source's.
        """
        if self.source is None or not self._alike(self.source):
            return None
        values = np.array([self.description.parameters[name] for name in self.names])
        return Parametrised(self.source, self.names, values)

    def _alike(self, source: Maker) -> bool:
        d, other = self.description, source.description
        if self.tree.n > UNROLL or not self._same_size(source):
            return False
        for (array, flat), expression in d.bindings.items():
            if expression.names().isdisjoint(self.names):
                continue
            values = (np.asarray(getattr(x, array)).reshape(-1)[flat] for x in (d, other))
            if array == "gear" or len({bool(value) for value in values}) > 1:
                return False
        if not np.array_equal(self._regular, source._regular) or self.rotors or not self._same_masses(source):
            return False
        return self.determined == source.determined and self._ranks_alike(source)

    @cached_property
    def determined(self) -> bool:
        """Whether forces tell the acceleration of every joint of the spanning tree."""
        from linkwright.recursions.determined import undetermined

        return bool(self._regular.all()) or undetermined(self.tree) is None

    def _same_size(self, source: Maker) -> bool:
        return 1.0 / NEAR_SIZE <= self.size / source.size <= NEAR_SIZE

    def _same_masses(self, source: Maker) -> bool:
        own, other = self.description.mass, source.description.mass
        return bool(np.all((own <= NEAR_MASS * other) & (other <= NEAR_MASS * own)))

    def _ranks_alike(self, source: Maker) -> bool:
        from linkwright.recursions.redundancy import Blocks

        if not self.closed:
            return True
        # What a driver of an angle asks depends on how its axes are drawn.
        forms, others = ([c.form.key for c in maker.closings] for maker in (self, source))
        if forms != others or source.gap or not source.redundancy.positions:
            return False
        sizes, ranks = [c.form.size for c in self.closings], self._redundancy_at(source)
        return not ranks.gap and Blocks(ranks, sizes).alike(Blocks(source.redundancy, sizes))

    @cached_property
    def topology(self) -> Topology:
        return span(self.description)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.description, self.topology)

    @cached_property
    def constraint_rows(self) -> list[tuple[Closing, str]]:
        """Every equation that holds the tree's coordinates together: its constraint, and what it is about."""
        return [(closing, name) for closing in self.closings for name in closing.form.names]

    @cached_property
    def constraint_units(self) -> Floats:
        """(m,): the unit of each of these equations: the mechanism's length, or 1 for angles and sines."""
        lengths = [flag for closing in self.closings for flag in closing.form.lengths]
        return np.where(np.array(lengths, dtype=bool), self.size, 1.0)

    @cached_property
    def closing_units(self) -> Floats:
        """(m,): the same as a measure of whether loops are closed: larger where rounded numbers leave a gap in loops
        that repeat their equations, so that what counts as closed elsewhere does there."""
        return self.constraint_units * max(1.0, ROUNDED * self.gap)

    @cached_property
    def gap(self) -> float:
        """What rounded numbers leave open in loops that repeat their equations, as a part of the mechanism's length;
        not known of mechanisms whose bodies are taken as free masses."""
        if self.tree.n > UNROLL or self.carried_by_constraints or self.parametrised is not None:
            return 0.0
        return self.redundancy.gap

    @cached_property
    def rate_units(self) -> Floats:
        """(nv,): the unit of each rate: the mechanism's length, or 1 for turns."""
        return coordinate_units(self.tree)[1]

    def without_units(self, g: Floats) -> Floats:
        """G (..., m, nv) of these equations and rates, with lengths and shifts as parts of the mechanism's length."""
        return np.asarray(g * self.rate_units / self.constraint_units[:, None])

    @property
    def needs_time(self) -> bool:
        """Whether a force depends on TIME, or a driver does."""
        laws = (law for e in self.description.elements for law in laws_of(e))
        return bool(self.description.drivers) or any("TIME" in law.names() for law in laws)

    @property
    def has_pair_derivatives(self) -> bool:
        """Whether the recursion over pairs of bodies covers this mechanism."""
        return not self.description.elements and all(kind.steady for kind in set(self.tree.kinds))

    @property
    def coupled(self) -> bool:
        """Whether joints share coordinates."""
        return bool(self.tree.coordinates.follows.any())

    @cached_property
    def closed(self) -> bool:
        """Whether anything but the tree's own joints holds the bodies."""
        d = self.description
        return bool(d.ties or d.drivers) or any(d.kind_of(j).nv < 6 for j in self.topology.loops)

    @cached_property
    def derivable(self) -> bool:
        """Whether the derivatives of forward dynamics can be laid out, and compiled within seconds."""
        few = self._pairs <= FUNCTIONS["forward_dynamics_derivatives"].dense and not self.carried_by_constraints
        return few and (not self.closed or (self.tree.coordinates.nv <= FEW_RATES and not self.rotors))

    @property
    def _pairs(self) -> int:
        """How many pairs of links are related, each with itself included."""
        return int(self.topology.depth.sum()) + self.tree.n

    @property
    def size(self) -> float:
        """A length that is typical for the mechanism."""
        return self.description.length_scale

    @cached_property
    def closings(self) -> tuple[Closing, ...]:
        """What holds the bodies besides the tree's joints, in the order of the multipliers."""
        from linkwright.constraints.closings import closings

        return closings(self.description, self.topology) if self.closed else ()

    @property
    def driven(self) -> NDArray[np.bool_]:
        """(m,): which of the constraint equations are drivers'."""
        return np.concatenate([np.full(c.form.size, c.group == "driver") for c in self.closings])

    @cached_property
    def redundancy(self) -> Redundancy:
        """Which of the equations of a closed mechanism repeat others."""
        from linkwright.recursions.redundancy import Redundancy

        def arrays() -> list[NDArray[np.float64]]:
            from linkwright.closed_recipes import redundancy_of

            return redundancy_of(self).arrays()

        return Redundancy.of_arrays(stored_arrays(self.description.digest, "redundancy", arrays))

    def _redundancy_at(self, source: Maker) -> Redundancy:
        """The same by programs of the source, at this mechanism's values of its parameters: to compare both."""
        from linkwright.recursions.redundancy import redundancy

        request, units = RanksRequest(self.names), source.rate_units
        nq, nv, k = source.tree.coordinates.nq, len(units), len(self.names)

        def record() -> Program:
            from linkwright.closed_recipes import residuals_of
            from linkwright.tape.build import record

            return record(residuals_of(source, self.names), nq, (), k)

        digest = source.description.digest
        residuals = program_cache.kernel(digest, request, record, seldom=True, recent=True)
        integrate = source.kernel(Request("integrate"))
        values = np.array([self.description.parameters[name] for name in self.names])

        def evaluate(q: Floats) -> tuple[Floats, Floats]:
            phi, g = residuals(q, np.zeros(len(q)), values)
            return phi, g

        return redundancy(evaluate, lambda q, change: integrate(q, change * units), self.drawn, self.driven, nv)

    @cached_property
    def drawn(self) -> NDArray[np.float64]:
        """The tree's coordinates where the bodies are drawn, as near as they come; neutral where they are not."""
        from linkwright.constraints.assembled import start_state
        from linkwright.constraints.equations import Equations
        from linkwright.constraints.tree_states import coordinates

        x = self.tree.coordinates
        q = np.zeros(x.nq)
        for i, kind in enumerate(self.tree.kinds):
            if not x.follows[i]:
                q[int(x.q_at[i]) : int(x.q_at[i]) + kind.nq] = kind.neutral()
        d = self.description
        return q if d.start is None else coordinates(self.tree, start_state(Equations(d)), q)

    @cached_property
    def masses(self) -> CentralLayout:
        """The bodies as free masses and all joints as constraints."""
        from linkwright.constraints.central import CentralEquations
        from linkwright.constraints.central_layout import CentralLayout

        return CentralLayout(CentralEquations(self.tree))

    @cached_property
    def assembled_masses(self) -> CentralLayout:
        """The same, with constraints that do not touch each other eliminated side by side."""
        from linkwright.constraints.central_layout import CentralLayout

        return CentralLayout(self.masses.equations, in_rounds=True)

    def gravity(self, free: Mapping[str, Any]) -> Array:
        d = self.description
        entries = list(d.gravity.tolist())
        for k in range(3):
            expression = d.bindings.get(("gravity", k))
            if expression is not None and expression.names() & free.keys():
                entries[k] = expression.evaluate({**d.parameters, **free})
        return np.array(entries)

    def singular(self, position: int) -> ModelError:
        """The error for a joint whose acceleration no force tells."""
        d, t = self.description, self.topology
        joint, body = d.joint_names[int(t.joint[position])], d.body_names[int(t.body[position])]
        carried = np.abs(d.mass[t.body]) + np.abs(d.inertia[t.body]).sum(axis=1)
        for i in range(self.tree.n - 1, position, -1):
            if t.parent[i] >= 0:
                carried[t.parent[i]] += carried[i]
        weightless = carried[position] == 0
        what, give = ("carries no mass", "a mass") if weightless else ("has no inertia along its freedom", "an inertia")
        return ModelError(
            f"joint {joint!r} {what}, so forces do not tell its acceleration; "
            f"give {body!r} {give}, give the joint an armature, or lock it",
            element=joint,
        )

    # -- programs -----------------------------------------------------------------------------------------
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
            return replace(request, method=MASSES)
        return replace(request, method="mass-matrix" if self.coupled else FORWARD_METHODS[0])

    def _check_method(self, request: Request) -> None:
        """Refuse a method that would be dropped; where joints share coordinates, warn."""
        if request.method in ("", *OF_MASSES) or not self.as_masses(request):
            pass
        elif self.rolls(request):
            most, what = UNROLL_BY_NAME.get(request.method, UNROLL_BY_NAME_AT_MOST), "loops, drivers, gears or forces"
            why = f"is for at most {most} links where {what} act, and {self.description.name!r} has {self.tree.n}"
            if self.carried_by_constraints:
                why = "needs an inertia along the freedom of every joint, and loops or drivers alone move some links"
            elif request.form == "rolled" or self.rotors:
                why = f"has no rolled form where {what} act ({self.description.name!r}: {self.tree.n} links)"
            use = " or ".join(map(repr, OF_MASSES))
            raise ModelError(f"method={request.method!r} {why}; use method={use}, or leave method out")
        if self.coupled and request.method not in ("", "mass-matrix") and not self.rolls(request):
            follower = self.description.joint_names[self.description.mimics[0].follower]
            warn(
                f"method={request.method!r} is not used: joint {follower!r} shares the coordinate of another, so that "
                "the equations are solved by method='mass-matrix'",
                LinkwrightWarning,
                stacklevel=5,
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

    def program(self, request: Request, *, packed: bool = False) -> Program:
        """Record the program of a request; a loop may be `packed` into less memory, without derivatives."""
        spec, request = FUNCTIONS[request.function], self.resolved(request)
        if self.closed and not spec.loops:
            self._check_closed(request)
        if request.function in ("constraint_forces", "closing", "settling") and not self.closed:
            raise ModelError(f"{request.function} is for mechanisms with loops, ties or drivers; this one has none")
        if request.free and spec.closed and self.carried_by_constraints:
            text = f"loops or drivers alone move some links of {self.description.name!r}, and parameters cannot be free"
            raise ModelError(f"{text} there; give the links without mass a small one", element=self.description.name)
        if self.rolls(request) and self.as_masses(request):
            from linkwright.dynamics.recording import record_masses

            return record_masses(self, request)
        if request.method in FREE_BODY_METHODS and not self.coupled and (self.closed or request.method != "assembly"):
            self._refuse_singular_inertias(request.method, request.free)
        if spec.dense and self._pairs > spec.dense:
            raise ModelError(
                f"{request.function} would lay out {self._pairs} pairs of related links, more than the {spec.dense} "
                "that can be compiled; "
                "for derivatives use products: mech.program('forward_dynamics').forward() and .reverse()"
            )
        from linkwright.dynamics.recording import record, record_rolled

        return record_rolled(self, request, packed=packed) if self.rolls(request) else record(self, request)

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
        if request.method and request.method not in CLOSED_METHODS:
            can = ", ".join(CLOSED_METHODS[:-1]) + f" or {CLOSED_METHODS[-1]}"
            text = f"{first} {does}; method={request.method!r} is for trees of joints alone, use {can}"
            raise ModelError(text, element=first.name)
        if self.rotors and not self.rolls(request):
            name = self.description.joint_names[self.rotors[0]]
            text = f"joint {name!r} has an armature but no coordinate, for it closes a loop"
            raise ModelError(f"{text}; cut the loop at another joint, or leave form= out", element=name)

    @cached_property
    def _regular(self) -> NDArray[np.bool_]:
        """Which bodies have a mass and an inertia about every axis."""
        d = self.description
        xx, yy, zz, xy, xz, yz = d.inertia.T
        volume = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
        return np.asarray((d.mass > 0.0) & (volume > 1e-12 * (xx + yy + zz) ** 3))

    @cached_property
    def carried_by_constraints(self) -> bool:
        """Whether a joint has no inertia along its freedom, and loops, rods or drivers determine its motion instead."""
        if not self.closed or self._regular.all():
            return False
        from linkwright.closed_recipes import determined_by_constraints

        return determined_by_constraints(self)

    @cached_property
    def rotors(self) -> list[int]:
        """The joints that close loops and have an armature: their rotors turn by what bodies do to each other."""
        return [j for j in self.topology.loops if self.description.armature[j]]

    def _refuse_singular_inertias(self, method: str, free: Sequence[str]) -> None:
        """These methods begin with free bodies: what moves on a joint has an inertia that can be inverted.

        Inertias that depend on free parameters are not known here.
        """
        d, t = self.description, self.topology
        moves = np.array([kind.nv > 0 for kind in KIND_LIST])[d.kind[t.joint]]
        doubt = np.flatnonzero(moves & ~self._regular[t.body])
        riders: dict[int, list[int]] = {}
        for i in np.flatnonzero(~moves & (t.parent >= 0)).tolist() if len(doubt) else ():
            riders.setdefault(int(t.parent[i]), []).append(i)
        unknown = self._bodies_with(free)
        for i in doubt.tolist():
            if not _invertible(*self._rigid(i, riders)) and not unknown & self._together(i, riders):
                name = d.body_names[int(t.body[i])]
                text = f"method={method!r} starts from free bodies; {name!r} has no mass, or no inertia about some axis"
                ways = "give it both, fix it to a body that has them, or use method='articulated-body'"
                raise ModelError(f"{text}; {ways}", element=name)

    def _bodies_with(self, free: Sequence[str]) -> set[int]:
        """The bodies whose mass or inertia depends on one of these parameters."""
        names, width = set(free), {"mass": 1, "com": 3, "inertia": 6}
        bound = self.description.bindings.items() if names else ()
        return {flat // width[array] for (array, flat), e in bound if array in width and e.names() & names}

    def _together(self, i: int, riders: Mapping[int, list[int]]) -> set[int]:
        """The bodies of a link and of those fixed to it."""
        return {int(self.topology.body[i])}.union(*(self._together(k, riders) for k in riders.get(i, ())))

    def _rigid(self, i: int, riders: Mapping[int, list[int]]) -> tuple[float, Array, Array]:
        """Mass, first moment and packed inertia at the link frame, of a link and those fixed to it."""
        record = self.tree.record(i)
        mass, moment, inertia = float(record["mass"][0]), record["moment"], record["inertia"]
        for k in riders.get(i, ()):
            rider = self.tree.record(k)
            x = Transform(Chain(placement_rotation(rider, turning=False)), rider["p"])
            m, h, j = x.rigid(*self._rigid(k, riders))
            mass, moment, inertia = mass + m, moment + h, inertia + j
        return mass, moment, inertia

    def as_masses(self, request: Request) -> bool:
        """Whether its rolled form takes bodies as free masses and all joints as constraints."""
        if request.function not in CLOSED or request.free:
            return False
        special = self.closed or self.coupled or bool(self.description.elements)
        return special or request.function != "forward_dynamics"

    def rolls(self, request: Request) -> bool:
        """Whether the answer is a loop over links: for many of them, or where the caller insists."""
        spec = FUNCTIONS[request.function]
        if self.as_masses(request):
            named = request.method not in ("", *OF_MASSES)
            most = UNROLL_BY_NAME.get(request.method, UNROLL_BY_NAME_AT_MOST) if named else UNROLL
            long = self.tree.n > most or bool(self.rotors) or self.carried_by_constraints
            return request.form == "rolled" or (long and request.form != "unrolled")
        plain = not request.free and not (spec.forces and self.description.elements) and not self.coupled
        plain = plain and (spec.loops or not self.closed)
        able = spec.rolls and plain
        if request.form == "rolled" and not able:
            raise ModelError(f"{request.function} has no rolled form for this mechanism and these options")
        long = self.tree.n > UNROLL_EARLIER.get(request.method, UNROLL)
        return able and (request.form == "rolled" or (long and request.form != "unrolled"))


def _invertible(mass: float, moment: Array, inertia: Array) -> bool:
    """Whether a rigid inertia has an inverse that means something in floating point."""
    if mass <= 0.0:
        return False
    c = moment / mass
    central = full_inertia(inertia) - mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    return bool(np.linalg.eigvalsh(central)[0] > 1e-12 * inertia[:3].sum())
