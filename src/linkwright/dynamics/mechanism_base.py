"""What a mechanism is (sizes, bodies, joints, loops, frames, parameters), and how it answers: from a method's
request to arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import FUNCTIONS, ForwardMethod, FunctionName, ProgramForm, Reference, Request
from linkwright.dynamics.programs import Kernels, ProgramFactory
from linkwright.errors import AssemblyError, ModelError, NameNotFound
from linkwright.kernels.callpath import KnownCalls, Place, add_plain, array_or_number, suits
from linkwright.kernels.foreign_arrays import needs_program, on_device
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.trampoline import CONSTANT, TARGET
from linkwright.model.description import Description
from linkwright.model.mechanism_views import Body, DofReport, Joint, View, body_table, joint_table
from linkwright.model.tree import Tree
from linkwright.tape.program import Program
from linkwright.tape.scalar import has_scalars

if TYPE_CHECKING:
    from linkwright.kernels.cuda.known_launches import KnownLaunches
    from linkwright.mechanism import Mechanism


@cache
def _parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of a method's parameters after self, and the defaults of those that have one."""
    parameters = list(signature(method).parameters.values())[1:]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return tuple(p.name for p in parameters), defaults


class MechanismBase:
    """A description, its program factory and the kernels of its programs: what every method of `Mechanism` calls.

    >>> mech, q, v, tau = lw.chain(2), np.ones(2), np.zeros(2), np.zeros(2)
    >>> energy = mech.kinetic_energy(q, v) + mech.potential_energy(q)
    >>> mech.linearise(q).A.shape, mech.equilibrium(q).stable, mech.lock({"joint2": 0.3}).nv
    ((4, 4), True, 1)
    >>> da_dq, da_dv, da_dtau = mech.forward_dynamics_derivatives(q, v, tau)
    >>> dtau_dq, dtau_dv, dtau_da = mech.inverse_dynamics_derivatives(q, v, np.zeros(2))

    With a parameter and a driver:

    >>> b = lw.Builder()
    >>> length = b.parameter("length", 0.1)
    >>> hinge = b.joint("revolute", b.ground, b.body("bob", 1.0, com=(0, length, 0)), axis=(1, 0, 0))
    >>> motor = b.driver("joint", hinge, 2.0 * lw.TIME)
    >>> mech = b.build().with_parameters(length=0.2)
    >>> q, v = mech.initial_state(t=0.5)
    >>> q, v = mech.project(mech.assemble(q, t=0.5), v, t=0.5)
    >>> mech.constraint_forces(q, v, [0.0], t=0.5).round(3)
    array([1.06])
    >>> print(mech.dof())
    1 body, 1 coordinate, 1 rate: 1 degree of freedom, 1 driven, 0 undriven
    """

    def __init__(self, factory: ProgramFactory) -> None:
        self.description, self.programs = factory.description, factory
        self.kernels = Kernels(factory)
        self._known_calls: dict[Callable[..., Any], KnownCalls] = {}  # by method
        #: Those with arrays on a GPU, by method, number of arguments and names of options.
        self._device_calls: dict[tuple[Any, ...], DeviceCall] = {}

    # -- what it is -----------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """What the file or the builder calls it."""
        return self.description.name

    @property
    def nq(self) -> int:
        """How many coordinates the spanning tree has: the length of q."""
        return self.programs.tree.coordinates.nq

    @property
    def nv(self) -> int:
        """How many rates the spanning tree has: the length of v, a and tau."""
        return self.programs.tree.coordinates.nv

    @property
    def nb(self) -> int:
        """How many bodies move."""
        return self.description.nb

    @property
    def gravity(self) -> Floats:
        """The acceleration of gravity (3,) in m/s², in ground's axes; a copy."""
        return self.description.gravity.copy()

    @property
    def bodies(self) -> View[Body]:
        """The moving bodies, parents before children: body k is carried by joint k. By number or by name.

        Raises NameNotFound for a name that no body has.

        >>> lw.chain(3).bodies[0].mass
        1.0
        """
        return View(self.nb, self._body, self._body_position, body_table)

    @property
    def joints(self) -> View[Joint]:
        """The joints of the spanning tree, in the order of their coordinates. By number or by name.

        Each has a name, a kind, and the slices of q and v that are its own. Raises NameNotFound for a name that no
        joint of the tree has.

        >>> lw.chain(3).joints[2].q_slice
        slice(2, 3, None)
        """
        return View(self.nb, self._joint, self._joint_position, joint_table)

    @property
    def loops(self) -> tuple[str, ...]:
        """The names of the joints that close loops, which have no coordinates; none for a tree."""
        return tuple(self.description.joint_names[j] for j in self.programs.topology.loops)

    @property
    def closed(self) -> bool:
        """Whether loops, rods, point constraints or drivers constrain the spanning tree's coordinates."""
        return self.programs.closed

    @cached_property
    def constraints(self) -> tuple[str, ...]:
        """A line for each equation that constrains the tree's coordinates, in the order of `constraint_forces`.

        Each names its constraint and what it is about, as in "joint 'wrist': meeting along f"; none for a tree.
        """
        return tuple(f"{constraint}: {about}" for constraint, about in self.programs.constraint_rows)

    @property
    def tree(self) -> Tree:
        """The spanning tree in numbers."""
        return self.programs.tree

    @property
    def frames(self) -> tuple[str, ...]:
        """The names that `pose`, `jacobian` and `twist` take: bodies, further frames, ground."""
        d = self.description
        return (*d.body_names, *d.frames.names, d.ground_name)

    @property
    def actuated(self) -> NDArray[np.bool_]:
        """(nv,): for every rate, whether it has an actuator; one that joints share, whether any of them has.

        >>> lw.chain(2).actuated
        array([ True,  True])
        """
        return self.programs.actuated.copy()

    @property
    def parameters(self) -> dict[str, float]:
        """The values of the named numbers that `with_parameters` changes and `free=` leaves open; a copy."""
        return dict(self.description.parameters)

    def dof(self) -> DofReport:
        """Coordinates and degrees of freedom, as a `DofReport`.

        With loops, rods, point constraints or drivers they are by the rank of the constraint equations, for which the
        mechanism is assembled, and else by count. Of a mechanism that cannot be assembled, `problem` says why. The
        report's `mobility` explains them: the Grübler–Kutzbach count, what is driven, what is free, what is redundant.

        >>> print(lw.chain(2).dof())
        2 bodies, 2 coordinates, 2 rates: 2 degrees of freedom
        """
        d, t, x = self.description, self.programs.topology, self.programs.tree.coordinates
        equations = sum(6 - d.kind_of(j).nv for j in t.loops)
        counted = DofReport(d.nb, x.nq, x.nv, equations, int(x.follows.sum()))
        if not (t.loops or d.point_constraints or d.drivers):
            return counted
        try:
            placed = self._placed(0.0 if d.system is None else d.system.start)
        except ModelError as error:
            return replace(counted, problem=str(error))
        from linkwright.constraints.kinematics import freedom_of  # weight: constraints

        try:
            report, mobility = freedom_of(placed)
        except AssemblyError as error:
            return replace(counted, problem=str(error))
        counted = replace(counted, rank=report.rank, drivers=report.driven, left=report.left)
        return replace(counted, redundant=report.redundant, mobility=mobility)

    def _placed(self, t: float) -> Description:
        """The description with its bodies where the initial conditions have them."""
        return self.description

    def singular(self, q: ArrayLike, *, t: float = 0.0) -> list[tuple[str, str]]:
        """The constraints that depend on each other at `q` (nq,) and not around it, each with a direction in words.

        ("joint 'C'", "meeting along f"); nothing where the position is regular. `t` (s; 0) is the time of drivers.

        >>> lw.chain(2).singular([0.1, 0.2])
        []
        """
        from linkwright.dynamics.closed.singular import singular  # weight: the dynamics of loops

        return singular(cast("Mechanism", self), q, t) if self.closed else []

    def _body_position(self, name: str) -> int:
        return int(self.programs.topology.position[self.description.body_names.position("body", name)])

    def _joint_position(self, name: str) -> int:
        j = self.description.joint_names.position("joint", name)
        positions = np.flatnonzero(self.programs.topology.joint == j)
        if not len(positions):
            raise NameNotFound("tree joint", name, [joint.name for joint in self.joints[:2000]])
        return int(positions[0])

    def _body(self, i: int) -> Body:
        d, t = self.description, self.programs.topology
        b = int(t.body[i])
        up = int(t.parent[i])
        parent = d.body_name(int(t.body[up]) if up >= 0 else -1)
        joint = d.joint_names[int(t.joint[i])]
        return Body(d.body_names[b], float(d.mass[b]), d.com[b].copy(), d.inertia[b].copy(), parent, joint)

    def _joint(self, i: int) -> Joint:
        d, t, x = self.description, self.programs.topology, self.programs.tree.coordinates
        j = int(t.joint[i])
        kind = d.kind_of(j)
        q, v = int(x.q_at[i]), int(x.v_at[i])
        leader = next((d.joint_names[m.leader] for m in d.mimics if m.follower == j), None)
        return Joint(
            d.joint_names[j],
            kind.name,
            slice(q, q + kind.nq),
            slice(v, v + kind.nv),
            d.body_name(int(d.parent[j])),
            d.body_name(int(d.child[j])),
            float(d.lower[j]),
            float(d.upper[j]),
            float(d.velocity_limit[j]),
            float(d.effort_limit[j]),
            leader,
            bool(x.follows[i]),
        )

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {self.nb} bodies, nq = {self.nq}, nv = {self.nv}>"

    def _repr_html_(self) -> str:
        from linkwright.viewer.notebook import mechanism  # weight: viewer, whose drawings are for notebooks alone

        return mechanism(self)

    # -- calls ------------------------------------------------------------------------------------------
    def _learn(self, method: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Have calls of a method with arguments like these, of which it has answered one, take the short way."""
        names, _ = _parameters(method)
        passed = {**dict(zip(names, arguments, strict=False)), **options}
        row, kernel = FUNCTIONS[method.__name__], self._kernel_of(method, passed)
        ports = {name: k for k, name in enumerate(names[: len(row.inputs)])}
        ports |= {port.name: k for k, port in enumerate(kernel.inputs) if k >= len(row.inputs)}
        places = []
        for name, argument in passed.items():
            if name in ports and argument is not None:
                place = array_or_number(argument, kernel.inputs[ports[name]].shape, ports[name])
            elif name == "t":
                place = array_or_number(argument, (), -1)
            elif name == "out" and argument is not None:
                place = Place(TARGET)
            else:
                place = Place(CONSTANT, constant=argument) if argument is None or type(argument) is str else None
            if place is None:
                return
            places.append(place)
        if suits(kernel):
            self._known_calls[method].add(kernel, places, tuple(options))

    def _kernel_of(self, method: Callable[..., Any], passed: Mapping[str, Any]) -> Kernel:
        """The kernel that answers a method with these arguments by name."""
        every = {**_parameters(method)[1], **passed}
        texts = {name: every[name] for name in ("method", "frame", "reference") if every.get(name) is not None}
        return self.kernels.kernel(Request(method.__name__, wrenches=every.get("wrenches") is not None, **texts))

    def _learn_on_device(
        self, method: Callable[..., Any], key: tuple[Any, ...], arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        """Have calls of a method with arrays on a GPU, of which it has answered one, go to the kernel at once.

        The arguments are the kernel's inputs, and options but `out` are texts, None, or a time that no law needs.
        """
        names = _parameters(method)[0]
        kernel = self._kernel_of(method, {**dict(zip(names, arguments, strict=False)), **options})
        constants = {name: value for name, value in options.items() if name != "out"}
        plain = all(x is None or type(x) in (str, float) for x in constants.values())
        if plain and len(kernel.inputs) == len(arguments) and "device" in vars(kernel):
            self._device_calls[key] = DeviceCall(kernel.device.known, tuple(constants.items()))

    # -- programs ---------------------------------------------------------------------------------------
    def program(
        self,
        function: FunctionName,
        *,
        method: ForwardMethod | None = None,
        wrenches: bool = False,
        frame: str = "",
        reference: Reference | Literal[""] = "",
        free: Sequence[str] = (),
        form: ProgramForm | Literal[""] = "",
    ) -> Program:
        """The tape behind a method, as a `Program`.

        - `function`: the name of the method, as "forward_dynamics".
        - `method`: of forward dynamics, as for `Mechanism.forward_dynamics`; its default.
        - `wrenches`: whether wrenches on the bodies are an input; False.
        - `frame`, `reference`: of "pose", "jacobian" and "twist", as for those methods.
        - `free`: names of parameters, which become the entries of a last input p; none.
        - `form`: "unrolled" or "rolled" (a loop over links); by default what suits the number of links.

        Raises `NameNotFound` for an unknown name and `ModelError` for an option that the function does not take.

        >>> lw.chain(2).program("mass_matrix")([0.1, 0.2]).shape
        (2, 2)
        """
        if function not in FUNCTIONS:
            raise NameNotFound("function", function, list(FUNCTIONS))
        if "reference" in FUNCTIONS[function].options:
            reference = reference or "body"
        request = Request(function, method or "", wrenches, frame, reference, tuple(free), form)
        return self.kernels.program(request)

    def _array(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Floats:
        """The answer of a request with one output."""
        answer: Floats = self._answer(request, *arrays, t=t, out=out)
        return answer

    def _three(self, request: Request, *arrays: Any, t: Any) -> tuple[Floats, Floats, Floats]:
        """The answer of a request for derivatives."""
        in_columns = self.programs.by_directions(request.function) and not has_scalars(*arrays)
        if in_columns and not needs_program((*arrays, t)):
            # weight: the states of closed mechanisms
            from linkwright.dynamics.directional_derivatives import derivatives

            return derivatives(cast("Mechanism", self), request.function, *arrays, t=t)
        first, second, third = self._answer(request, *arrays, t=t)
        return first, second, third

    def _answer(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Any:
        """Run the program of a request; after the first call of one state, its method takes the short way."""
        answer = self.kernels.evaluate(request, *arrays, t=t, out=out)
        first = arrays[0]
        if request.function not in self.__dict__:
            if isinstance(first, np.ndarray):
                if first.ndim == 1:
                    self._shorten(request, arrays)
            elif on_device(first):
                self._shorten(request, arrays, on_device=True)
        return answer

    def _shorten(self, request: Request, arrays: Sequence[Any], *, on_device: bool = False) -> None:
        """Put a function that knows calls in front of the method that was called: a built-in one, where one suits."""
        name, row = request.function, FUNCTIONS[request.function]
        if not row.plain or has_scalars(*arrays) or sum(name in vars(kind) for kind in type(self).__mro__) > 1:
            return
        kernel = self.kernels.kernel(request)
        if suits(kernel):
            method = getattr(type(self), name)
            calls = KnownCalls(name, partial(_answer_and_learn, self, method), partial(method, self))
            # Of two threads that come here at once, both use what the first one made.
            calls = self._known_calls.setdefault(method, calls)
            if request == Request(name):
                add_plain(calls, kernel, len(row.inputs))
            self.__dict__[name] = calls.function
        elif on_device:
            self.__dict__[name] = partial(_answer_and_learn, self, getattr(type(self), name))


@dataclass(frozen=True)
class DeviceCall:
    """How a method was called with arrays on a GPU: its options besides `out`, and its kernel's known launches."""

    known: KnownLaunches
    constants: tuple[tuple[str, Any], ...]

    def __call__(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The answer, or None where the call is another one."""
        for name, constant in self.constants:
            option = options[name]
            if option is not constant and (type(option) is not type(constant) or option != constant):
                return None
        return self.known(arguments, options.get("out"))


def _answer_and_learn(mech: MechanismBase, method: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """A method's answer by a short way on a GPU that is known, or by its careful path; then calls like it are known."""
    key = (method, len(arguments), *options)
    known = mech._device_calls.get(key)
    if known is not None and (answer := known(arguments, options)) is not None:
        return answer
    answer = method(mech, *arguments, **options)
    if arguments:
        first = arguments[0]
        if type(first) is np.ndarray:
            if first.ndim == 1 and method in mech._known_calls:
                mech._learn(method, arguments, options)
        elif known is None and on_device(first):
            mech._learn_on_device(method, key, arguments, options)
    return answer
