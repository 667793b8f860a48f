"""`Mechanism`: a description with its questions as methods, each a thin call to a compiled program.

`q, v, a, tau` are joint-space position, velocity, acceleration and force, of any leading batch shape. Twists and
wrenches are linear part first, in body axes unless said otherwise. SI units, radians.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.errors import AssemblyError, ModelError, NameNotFound
from linkwright.kernels.callpath import shortcut
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism.description import Description
from linkwright.mechanism.kinds import KIND_LIST
from linkwright.mechanism.merge import lock
from linkwright.programs import FORWARD_METHODS, SPECS, Maker, Request
from linkwright.tape.program import Program
from linkwright.tape.scalar import is_recorded
from linkwright.views import Body, DofReport, Joint, View

Floats = NDArray[np.float64]


class Mechanism:
    """A mechanism: what it is (`bodies`, `joints`, `frames`) and what it does (the methods)."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self._maker = Maker(description)
        self._kernels: dict[Request, Kernel] = {}
        self._quick: dict[str, Callable[..., Floats]] = {}  # forward dynamics of one state by its methods
        self._programs: dict[Request, Program] = {}
        self._kept: dict[Any, Any] = {}  # what is made of it elsewhere and lasts as long as it
        self._lock = threading.Lock()

    def __getstate__(self) -> Description:
        """Copied and pickled as its description: code belongs to one process."""
        return self.description

    def __setstate__(self, description: Description) -> None:
        Mechanism.__init__(self, description)

    # -- what it is -----------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """What the file or the builder calls it."""
        return self.description.name

    @property
    def nq(self) -> int:
        """Coordinates of the spanning tree."""
        return self._maker.tree.coordinates.nq

    @property
    def nv(self) -> int:
        """Rates of the spanning tree."""
        return self._maker.tree.coordinates.nv

    @property
    def nb(self) -> int:
        """Moving bodies."""
        return self.description.nb

    @property
    def gravity(self) -> Floats:
        """The acceleration of gravity, in ground axes."""
        return self.description.gravity.copy()

    @property
    def bodies(self) -> View[Body]:
        """The moving bodies, parents before children: body k is carried by joint k."""
        return View(self.nb, self._body, self._body_position)

    @property
    def joints(self) -> View[Joint]:
        """The joints of the spanning tree, in the order of their coordinates."""
        return View(self.nb, self._joint, self._joint_position)

    @property
    def loops(self) -> tuple[str, ...]:
        """The joints that close loops."""
        return tuple(self.description.joint_names[j] for j in self._maker.topology.loops)

    @property
    def frames(self) -> tuple[str, ...]:
        """The names that `pose`, `jacobian` and `twist` take: bodies, further frames, ground."""
        d = self.description
        return (*d.body_names, *d.frames.names, d.ground_name)

    @property
    def actuated(self) -> NDArray[np.bool_]:
        """For every rate, whether it has an actuator."""
        x, t, d = self._maker.tree.coordinates, self._maker.topology, self.description
        mask = np.ones(x.nv, bool)
        for i, j in enumerate(t.joint.tolist()):
            if j in d.passive:
                mask[x.v_at[i] : x.v_at[i] + d.kind_of(j).nv] = False
        return mask

    @property
    def parameters(self) -> dict[str, float]:
        """The named numbers that `with_parameters` changes and `free=` leaves open."""
        return dict(self.description.parameters)

    def with_parameters(self, **values: float) -> Mechanism:
        """The same mechanism with other values of its parameters."""
        return Mechanism(self.description.with_parameters(values))

    def lock(self, joints: Mapping[str, float | ArrayLike]) -> Mechanism:
        """The mechanism with these joints held at these values: `mech.lock({"elbow": 0.3})`.

        Their bodies become one with their parents.
        """
        if not isinstance(joints, Mapping):
            raise ModelError(f"lock takes joints with their values, as in {{'elbow': 0.3}}, not {joints!r}")
        return Mechanism(lock(self.description, joints))

    def dof(self) -> DofReport:
        """Coordinates and degrees of freedom; with loops, ties or drivers by the rank of their equations, which needs
        the mechanism assembled, and else by count. A mechanism that does not go together has its `problem` told."""
        d, t, x = self.description, self._maker.topology, self._maker.tree.coordinates
        equations = sum(6 - d.kind_of(j).nv for j in t.loops)
        counted = DofReport(d.nb, x.nq, x.nv, equations, int(x.follows.sum()))
        if not (t.loops or d.ties or d.drivers):
            return counted
        from linkwright.constraints.kinematics import freedom_of

        try:
            found = freedom_of(d)
        except AssemblyError as error:
            return replace(counted, problem=str(error))
        return replace(counted, rank=found.rank, drivers=found.driven, left=found.left, redundant=found.redundant)

    def _body_position(self, name: str) -> int:
        return int(self._maker.topology.position[self.description.body_names.position("body", name)])

    def _joint_position(self, name: str) -> int:
        j = self.description.joint_names.position("joint", name)
        found = np.flatnonzero(self._maker.topology.joint == j)
        if not len(found):
            raise NameNotFound("tree joint", name, [joint.name for joint in self.joints[:2000]])
        return int(found[0])

    def _name(self, body: int) -> str:
        return self.description.body_names[body] if body >= 0 else self.description.ground_name

    def _body(self, i: int) -> Body:
        d, t = self.description, self._maker.topology
        b = int(t.body[i])
        up = int(t.parent[i])
        parent = self._name(int(t.body[up]) if up >= 0 else -1)
        joint = d.joint_names[int(t.joint[i])]
        return Body(d.body_names[b], float(d.mass[b]), d.com[b].copy(), d.inertia[b].copy(), parent, joint)

    def _joint(self, i: int) -> Joint:
        d, t, x = self.description, self._maker.topology, self._maker.tree.coordinates
        j = int(t.joint[i])
        kind = d.kind_of(j)
        q, v = int(x.q_at[i]), int(x.v_at[i])
        leader = next((d.joint_names[m.leader] for m in d.mimics if m.follower == j), None)
        return Joint(
            d.joint_names[j],
            kind.name,
            slice(q, q + kind.nq),
            slice(v, v + kind.nv),
            self._name(int(d.parent[j])),
            self._name(int(d.child[j])),
            float(d.lower[j]),
            float(d.upper[j]),
            float(d.velocity_limit[j]),
            float(d.effort_limit[j]),
            leader,
        )

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {self.nb} bodies, nq = {self.nq}, nv = {self.nv}>"

    # -- programs -------------------------------------------------------------------------------------
    def program(
        self,
        function: str,
        *,
        method: str | None = None,
        wrenches: bool = False,
        frame: str = "",
        reference: str = "",
        free: Sequence[str] = (),
        form: str = "",
    ) -> Program:
        """The tape behind a method; parameters in `free` become the entries of a last input p.

        `form` is "unrolled" or "rolled" (a loop over links), by default what suits the number of links.
        """
        if function not in SPECS:
            raise NameNotFound("function", function, list(SPECS))
        takes = SPECS[function].options
        if "method" in takes:
            method = method or FORWARD_METHODS[0]
        if "reference" in takes:
            reference = reference or "body"
        request = Request(function, method or "", wrenches, frame, reference, tuple(free), form)
        kernel = self._kernel(request)
        if not self._maker.rolls(request):
            return kernel.program
        # The kernel's own is packed.
        with self._lock:
            if request not in self._programs:
                self._programs[request] = self._maker.program(request)
            return self._programs[request]

    def _kernel(self, request: Request) -> Kernel:
        kernel = self._kernels.get(request)
        if kernel is not None:
            return kernel
        with self._lock:
            kernel = self._kernels.get(request)
            if kernel is not None:
                return kernel
            self._maker.check(request)
            form = "rolled" if self._maker.rolls(request) else "unrolled"
            identity = f"{self.description.digest} {request} {form}"
            maker = self._maker  # not the mechanism: it dies with its last name, and its kernels' memory with it
            kernel = self._kernels[request] = Kernel(identity, lambda: maker.program(request, packed=True))
        return kernel

    def _array(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Floats:
        """The answer of a request with one output."""
        answer: Floats = self._answer(request, *arrays, t=t, out=out)
        return answer

    def _three(self, request: Request, *arrays: Any, t: Any) -> tuple[Floats, Floats, Floats]:
        """The answer of a request with three outputs."""
        first, second, third = self._answer(request, *arrays, t=t)
        return first, second, third

    def _answer(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Any:
        """Run the program of a request; after the first plain call of one state, take the short way."""
        kernel = self._kernel(request)
        if is_recorded(*arrays):
            return kernel.program(*arrays)
        if self._maker.needs_time and SPECS[request.function].forces:
            return kernel(*arrays, t, out=out)
        name = request.function
        plain = request == _PLAIN.get(name) and name not in self.__dict__
        other = request == Request("forward_dynamics", request.method) and request.method != FORWARD_METHODS[0]
        if other and request.method not in self._quick and _one_state(arrays) and kernel.signature.work < _LONG:
            quick = shortcut(kernel, partial(type(self)._array, self, request), name)
            if quick is not None:
                self._quick[request.method] = quick
        if plain and _one_state(arrays):
            careful = partial(getattr(type(self), name), self)
            quick = shortcut(kernel, careful, name)
            if quick is not None:
                self.__dict__[name] = quick
        return kernel(*arrays, out=out)

    # -- coordinates ----------------------------------------------------------------------------------
    def neutral(self) -> Floats:
        """The q at which every joint is at its zero."""
        x, tree = self._maker.tree.coordinates, self._maker.tree
        q = np.zeros(x.nq)
        for number, kind in enumerate(KIND_LIST):
            if kind.nq != kind.nv:
                at = x.q_at[tree.kind_numbers == number]
                q[at[:, None] + np.arange(kind.nq)] = kind.neutral()
        return q

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Floats:
        """The q reached from q by the rates dv held for a unit of time (each joint on its own manifold)."""
        return self._array(Request("integrate"), q, dv)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Floats:
        """The dv for which `integrate(q0, dv)` is q1."""
        return self._array(Request("difference"), q0, q1)

    # -- dynamics ---------------------------------------------------------------------------------------
    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        t: ArrayLike = 0.0,
        wrenches: ArrayLike | None = None,
        method: str = "articulated-body",
        out: Floats | None = None,
    ) -> Floats:
        """The joint accelerations that tau (and wrenches (..., nb, 6) on the bodies) cause.

        Closed loops need method "virtual-work" or "assembly", and q and v that close them.
        """
        if wrenches is None and out is None and method in self._quick:
            return self._quick[method](q, v, tau)
        request = Request("forward_dynamics", method, wrenches is not None)
        given = () if wrenches is None else (wrenches,)
        return self._array(request, q, v, tau, *given, t=t, out=out)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        t: ArrayLike = 0.0,
        wrenches: ArrayLike | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """The joint forces that the accelerations a need."""
        request = Request("inverse_dynamics", "", wrenches is not None)
        given = () if wrenches is None else (wrenches,)
        return self._array(request, q, v, a, *given, t=t, out=out)

    def mass_matrix(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """M (..., nv, nv)."""
        return self._array(Request("mass_matrix"), q, out=out)

    def bias_forces(self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike = 0.0, out: Floats | None = None) -> Floats:
        """h of M a + h = tau: velocity products, gravity and force elements."""
        return self._array(Request("bias_forces"), q, v, t=t, out=out)

    def gravity_forces(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """The joint forces that hold the mechanism still against gravity."""
        return self._array(Request("gravity_forces"), q, out=out)

    def reactions(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, t: ArrayLike = 0.0) -> Floats:
        """(..., nb, 6): the wrench of joint k on body k, at the body frame in its axes, drive included."""
        return self._array(Request("reactions", "articulated-body"), q, v, tau, t=t)

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, t: ArrayLike = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """∂a/∂q, ∂a/∂v, ∂a/∂tau (..., nv, nv); q varies in tangent space, as `integrate` moves it."""
        return self._three(Request("forward_dynamics_derivatives"), q, v, tau, t=t)

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, t: ArrayLike = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """∂tau/∂q, ∂tau/∂v, ∂tau/∂a (..., nv, nv); q varies in tangent space."""
        return self._three(Request("inverse_dynamics_derivatives"), q, v, a, t=t)

    # -- kinematics -------------------------------------------------------------------------------------
    def pose(self, q: ArrayLike, frame: str) -> Floats:
        """The pose (..., 4, 4) of a frame in ground."""
        return self._array(Request("pose", frame=frame), q)

    def jacobian(self, q: ArrayLike, frame: str, reference: str = "body") -> Floats:
        """(..., 6, nv): the frame's twist is J v.

        Reference "body": at the frame's origin in its axes; "aligned": at its origin in ground axes;
        "world": at ground's origin in ground axes.
        """
        request = Request("jacobian", frame=frame, reference=reference)
        return self._array(request, q)

    def twist(self, q: ArrayLike, v: ArrayLike, frame: str, reference: str = "body") -> Floats:
        """The twist (..., 6) of a frame; the references are those of `jacobian`."""
        request = Request("twist", frame=frame, reference=reference)
        return self._array(request, q, v)

    # -- energies ---------------------------------------------------------------------------------------
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> Floats:
        """The kinetic energy (...)."""
        return self._array(Request("kinetic_energy"), q, v)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """The energy (...) in gravity, zero at ground's origin."""
        return self._array(Request("potential_energy"), q)

    def center_of_mass(self, q: ArrayLike) -> Floats:
        """The centre of mass (..., 3) of the moving bodies, in ground."""
        return self._array(Request("center_of_mass"), q)

    def momentum(self, q: ArrayLike, v: ArrayLike) -> Floats:
        """(..., 6): linear momentum, and angular momentum about the centre of mass, in ground axes."""
        return self._array(Request("momentum"), q, v)


_LONG = 1_000_000  # operations from which the way to a kernel does not count, and threads may share its work


def _one_state(arrays: Sequence[Any]) -> bool:
    return isinstance(arrays[0], np.ndarray) and arrays[0].ndim == 1


#: The requests of plain calls, which have a native shortcut.
_PLAIN = {
    "forward_dynamics": Request("forward_dynamics", FORWARD_METHODS[0]),
    **{
        name: Request(name)
        for name in SPECS
        if name not in ("forward_dynamics", "pose", "jacobian", "twist", "reactions", "rate")
    },
    "reactions": Request("reactions", FORWARD_METHODS[0]),
}

__all__ = ["Body", "DofReport", "Joint", "Mechanism"]
