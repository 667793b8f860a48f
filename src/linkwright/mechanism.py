"""`Mechanism`: what a mechanism does, as thin methods; and where mechanisms come from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import path_text, real_array, shown
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import ForwardMethod, Reference, Request
from linkwright.dynamics.mechanism_base import MechanismBase
from linkwright.dynamics.programs import ProgramFactory
from linkwright.errors import LinkwrightError, ModelError
from linkwright.formats.model_files import read
from linkwright.model import builder, generators
from linkwright.model.description import Description
from linkwright.model.mechanism_views import Body, DofReport, Joint
from linkwright.model.merge import lock
from linkwright.model.model_checks import alike
from linkwright.model.parameter_cases import with_parameters
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.dynamics.closed.initial_state import Auxiliary
    from linkwright.dynamics.equilibrium import Equilibrium, Linearised
    from linkwright.dynamics.reaction_friction import ReactionFrictions


class Mechanism(MechanismBase):
    """A mechanism: what it is (`bodies`, `joints`, `frames`) and what it does (the methods). SI units, radians.

    Arguments of the methods, and what they return, have any leading batch shape:

    - `q` (..., nq), `v` and `a` (..., nv): coordinates, rates and accelerations of the spanning tree.
    - `tau` (..., nv): joint forces (N, N m). `t` (...): the time (s) of laws and drivers; 0.
    - `wrenches` (..., nb, 6): force, then torque, on every body in its frame; none. `frame`: a name of `frames`.
    - `out`: the array to write to, of the shape of what is returned; a new one.

    Methods raise `ShapeError` and `DtypeError` for other arrays, `NameNotFound` for unknown names, and `ModelError`.

    >>> mech = lw.chain(2)
    >>> q, v, tau = mech.neutral() + 0.1, np.ones(2), np.zeros(2)
    >>> a = mech.forward_dynamics(q, v, tau)
    >>> M, h, g = mech.mass_matrix(q), mech.bias_forces(q, v), mech.gravity_forces(q)
    >>> np.allclose(M @ a + h, tau) and np.allclose(mech.inverse_dynamics(q, v, a), tau)
    True
    >>> pose, J = mech.pose(q, "link2"), mech.jacobian(q, "link2")
    >>> np.allclose(J @ v, mech.twist(q, v, "link2")) and np.allclose(mech.difference(q, mech.integrate(q, v)), v)
    True
    >>> mech.center_of_mass(q).shape, mech.momentum(q, v).shape, mech.reactions(q, v, tau).shape
    ((3,), (6,), (2, 6))
    """

    def __init__(
        self, description: Description, *, source: Mechanism | None = None, names: Collection[str] = ()
    ) -> None:
        """Of a `description`; with `source`, of one that differs from it in the values of the parameters `names`."""
        super().__init__(ProgramFactory(description, None if source is None else source.programs, names))
        self._source = source

    def __getstate__(self) -> tuple[Description, Mechanism | None, tuple[str, ...]]:
        """Copied and pickled as its description: code belongs to one process."""
        return self.description, self._source, self.programs.names

    def __setstate__(self, state: tuple[Description, Mechanism | None, tuple[str, ...]]) -> None:
        description, source, names = state
        Mechanism.__init__(self, description, source=source, names=names)

    def with_parameters(self, **values: float) -> Self:
        """The same mechanism with other `values` of its parameters, by name, in SI units and radians. Programs that
        take these parameters as inputs serve all values: the first one compiles them, others nothing.
        """
        description, names = with_parameters(self.description, values), {*self.programs.names, *values}
        return type(self)(description, source=(self._source or self) if names else None, names=names)

    def lock(self, joints: Mapping[str, float | ArrayLike]) -> Self:
        """The mechanism with `joints`, {name: value in rad or m}, held; their bodies become one with their parents."""
        if not isinstance(joints, Mapping):
            raise ModelError(f"lock takes joints with their values, as in {{'elbow': 0.3}}, not {joints!r}")
        return type(self)(lock(self.description, joints))

    # -- coordinates ----------------------------------------------------------------------------------
    def neutral(self) -> Floats:
        """The `q` (nq,) at which every joint is at its zero."""
        return self.programs.neutral()

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Floats:
        """The q reached from `q` (..., nq) by rates `dv` (..., nv) held for unit time, on each joint's manifold."""
        return self._array(Request("integrate"), q, dv)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Floats:
        """The dv (..., nv) for which `integrate(q0, dv)` is q1; of `q0` and `q1` (..., nq)."""
        return self._array(Request("difference"), q0, q1)

    # -- consistent states ------------------------------------------------------------------------------
    def assemble(self, q_guess: ArrayLike | None = None, fixed: Sequence[str] = (), *, t: float = 0.0) -> Floats:
        """The q nearest to `q_guess`, by default the drawing, at which the mechanism is assembled; joints named in
        `fixed` stay as guessed. Raises AssemblyError, which names what cannot be assembled. Arguments: see `Mechanism`.
        """
        from linkwright.dynamics.closed.consistent import assemble  # weight: dynamics.closed

        return assemble(self, q_guess, fixed, t)

    def project(self, q: ArrayLike, v: ArrayLike | None = None, *, t: ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """The nearest q that closes the loops and the nearest v, to 0 if not given, that keeps them closed: near in the
        bodies' places and turns, by their sizes; masses do not count. Arguments: see `Mechanism`.
        """
        if self.closed:
            return self.auxiliary.projector.states(q, v, t)
        from linkwright.dynamics.closed.consistent import checked_states  # weight: dynamics.closed

        states, *rates = checked_states(self, "project", q=q, **({} if v is None else {"v": v}))
        rate = rates[0].copy() if rates else np.zeros((*states.shape[:-1], self.nv))
        return self.integrate(states, np.zeros(self.nv)), rate

    def initial_state(self, *, t: float = 0.0) -> tuple[Floats, Floats]:
        """q and v at which motion begins: as the model's initial conditions, its drawing and its constraints say. What
        is given is held; the rest is as near to the drawing as it can be, and rates are the least possible.
        Arguments: see `Mechanism`.
        """
        from linkwright.dynamics.closed.redundancy import warned  # weight: dynamics.closed

        state = warned(self.auxiliary.nearest).auxiliary.initial_state(t)
        return state.q.copy(), state.v.copy()

    @cached_property
    def auxiliary(self) -> Auxiliary:
        """The mechanisms and states that are derived from this one where loops are closed."""
        from linkwright.dynamics.closed.initial_state import Auxiliary  # weight: dynamics.closed

        return Auxiliary(self, None if self._source is None else self._source.auxiliary)

    @cached_property
    def friction(self) -> ReactionFrictions | None:
        """The frictions that follow reactions, or None."""
        from linkwright.dynamics.reaction_friction import frictions_of  # weight: few mechanisms have any

        return frictions_of(self, None if self._source is None else self._source.friction)

    def _placed(self, t: float) -> Description:
        from linkwright.dynamics.closed.initial_state import placed  # weight: dynamics.closed

        return placed(self, t)

    # -- dynamics ---------------------------------------------------------------------------------------
    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        t: ArrayLike = 0.0,
        wrenches: ArrayLike | None = None,
        method: ForwardMethod | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """The joint accelerations (..., nv) that `tau` and `wrenches` cause.

        `method` is "articulated-body" (the default), "diagonal", "triangular", "mass-matrix", "virtual-work" or
        "assembly". All but "diagonal" and "triangular" take loops, rods and drivers, for q and v that satisfy them.
        Where these or force elements act on over 64 links the default is "virtual-work", which like "assembly" takes
        any number of them. Joints that share coordinates are solved by "mass-matrix", the default there.
        Arguments: see `Mechanism`.
        """
        if self.friction is not None:
            return self.friction.forward(q, v, tau, t, wrenches, method, out)
        request = Request("forward_dynamics", method or "", wrenches is not None)
        applied = () if wrenches is None else (wrenches,)
        return self._array(request, q, v, tau, *applied, t=t, out=out)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        t: ArrayLike = 0.0,
        wrenches: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """The joint forces (..., nv) that the accelerations `a` need; with loops those of the actuated joints, zero
        elsewhere. Where loops leave fewer degrees of freedom than there are actuators, Σ weight·tau² is least:
        `weights` has one number for each actuated rate; by default forces count as they are, and torques as forces with
        the mechanism's length as their arm. A motion that the actuators cannot produce is an error that says which.
        Arguments: see `Mechanism`.
        """
        if self.friction is not None:
            return self.friction.inverse(q, v, a, t, wrenches, weights, out)
        if self.closed:
            tau = self.auxiliary.actuators.forces(q, v, a, t, wrenches, weights)
            if out is None:
                return tau
            from linkwright.dynamics.closed.closed_inverse import stored  # weight: dynamics.closed

            return stored(out, tau)
        if weights is not None:
            text = f"weights share forces among the actuators of loops, and {self.name!r} has none; leave weights out"
            raise ModelError(text, element=self.name)
        applied = () if wrenches is None else (wrenches,)
        return self._array(Request("inverse_dynamics", "", wrenches is not None), q, v, a, *applied, t=t, out=out)

    def equilibrium(
        self, q_guess: ArrayLike | None = None, *, tau: ArrayLike | None = None, t: float = 0.0
    ) -> Equilibrium:
        """An equilibrium (`q`, `stable`) near `q_guess` (drawing), stable if possible. Arguments: see `Mechanism`."""
        from linkwright.dynamics.equilibrium import equilibrium  # weight: dynamics.closed

        guess, force = (None if x is None else real_array(name, x) for name, x in (("q_guess", q_guess), ("tau", tau)))
        return equilibrium(self if self.friction is None else self.friction.bare, guess, force, t)

    def linearise(
        self, q: ArrayLike, v: ArrayLike | None = None, tau: ArrayLike | None = None, *, t: float = 0.0
    ) -> Linearised:
        """A, B and modes about one state (v = 0, tau = 0), on the degrees of freedom. Arguments: see `Mechanism`."""
        from linkwright.dynamics.closed.consistent import one  # weight: dynamics.closed
        from linkwright.dynamics.equilibrium import linearise  # weight: dynamics.closed

        rates = np.zeros(self.nv) if v is None else one(v, self.nv, "v")
        force = np.zeros(self.nv) if tau is None else one(tau, self.nv, "tau")
        return linearise(self, one(q, self.nq, "q"), rates, force, t)

    def mass_matrix(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """M (..., nv, nv) at `q`. Arguments: see `Mechanism`."""
        return self._array(Request("mass_matrix"), q, out=out)

    def bias_forces(self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike = 0.0, out: Floats | None = None) -> Floats:
        """h (..., nv) of M a + h = tau: velocity products, gravity and force elements. Arguments: see `Mechanism`."""
        return self._array(Request("bias_forces"), q, v, t=t, out=out)

    def gravity_forces(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """The joint forces (..., nv) that hold the mechanism still against gravity. Arguments: see `Mechanism`."""
        return self._array(Request("gravity_forces"), q, out=out)

    def reactions(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, t: ArrayLike = 0.0) -> Floats:
        """(..., nb, 6): the wrench of joint k on body k, at the body frame in its axes, its drive included: tau, forces
        and drivers on its own coordinates, less its armature's resistance, without what gears exert. With loops, those
        of `mech.loops` follow, each on its child's body, or on its parent's where the child is ground. Where
        constraints are redundant it is the solution of least norm: force² + (moment / size of the mechanism)², summed
        over all joints at their points. Arguments: see `Mechanism`.
        """
        if self.friction is not None:
            return self.friction.reactions(q, v, tau, t)
        if not self.closed:
            return self._array(Request("reactions"), q, v, tau, t=t)
        return self.auxiliary.joint_wrenches.wrenches(q, v, tau, t)

    def constraint_forces(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, t: ArrayLike = 0.0) -> Floats:
        """λ (..., m) of M a + h = tau + Gᵀ λ, one for each of `constraints`: what joints that close loops, rods, point
        constraints, gears, couplings and drivers exert, in N (of distances) and N m (of angles). Where constraints are
        redundant it is one solution of many, and not that of `reactions`; the accelerations are the same with each.
        Arguments: see `Mechanism`.
        """
        if self.friction is not None:
            return self.friction.constraint_forces(q, v, tau, t)
        return self._array(Request("constraint_forces"), q, v, tau, t=t)

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, t: ArrayLike = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """∂a/∂q, ∂a/∂v, ∂a/∂tau (..., nv, nv); q varies in tangent space, as `integrate` moves it. Of a closed
        mechanism they are NaN at a singular position and beside it, where rounding would be most of them.
        Arguments: see `Mechanism`.
        """
        return self._three(Request("forward_dynamics_derivatives"), q, v, tau, t=t)

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, t: ArrayLike = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """∂tau/∂q, ∂tau/∂v, ∂tau/∂a (..., nv, nv); q varies in tangent space. Arguments: see `Mechanism`."""
        return self._three(Request("inverse_dynamics_derivatives"), q, v, a, t=t)

    # -- kinematics -------------------------------------------------------------------------------------
    def pose(self, q: ArrayLike, frame: str) -> Floats:
        """The pose (..., 4, 4) of a frame in ground. Arguments: see `Mechanism`."""
        return self._array(Request("pose", frame=frame), q)

    def jacobian(self, q: ArrayLike, frame: str, reference: Reference = "body") -> Floats:
        """(..., 6, nv): the frame's twist is J v, by the `reference` "body" (the default) at the frame's origin in its
        axes, "aligned" at its origin in ground axes, "world" at ground's origin in ground axes.
        Arguments: see `Mechanism`.
        """
        request = Request("jacobian", frame=frame, reference=reference)
        return self._array(request, q)

    def twist(self, q: ArrayLike, v: ArrayLike, frame: str, reference: Reference = "body") -> Floats:
        """A frame's twist (..., 6), velocity (m/s) first; `reference`: see `jacobian`. Arguments: see `Mechanism`."""
        request = Request("twist", frame=frame, reference=reference)
        return self._array(request, q, v)

    # -- energies ---------------------------------------------------------------------------------------
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> Floats:
        """The kinetic energy (...) in J. Arguments: see `Mechanism`."""
        return self._array(Request("kinetic_energy"), q, v)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """The energy (...) in gravity, in J, zero at ground's origin. Arguments: see `Mechanism`."""
        return self._array(Request("potential_energy"), q)

    def center_of_mass(self, q: ArrayLike) -> Floats:
        """The centre of mass (..., 3) of the moving bodies (m), in ground. Arguments: see `Mechanism`."""
        return self._array(Request("center_of_mass"), q)

    def momentum(self, q: ArrayLike, v: ArrayLike) -> Floats:
        """(..., 6): linear momentum, then angular about the centre of mass; ground axes. Arguments: see `Mechanism`."""
        return self._array(Request("momentum"), q, v)


__all__ = ["Body", "DofReport", "Joint", "Mechanism"]


class Builder(builder.Builder):
    """A mechanism described call by call; `build()` gives it. In a `with` block, its end checks the whole.

    `name` is that of the mechanism ("mechanism"), `ground` that of ground ("ground").

    >>> with lw.Builder("pendulum") as b:
    ...     hinge = b.joint("revolute", b.ground, b.body("bob", 1.0, com=(0, 0, -0.3)), axis=(0, 1, 0))
    >>> b.build().mass_matrix([0.0]).round(2)
    array([[0.09]])
    """

    def build(self) -> Mechanism:
        """The mechanism described so far. Raises `ModelError` where it is incomplete or no body can have an inertia."""
        return Mechanism(self.description())


class LoadOptions(TypedDict, total=False):
    """The options of model files; each format takes those of its reader."""

    parameters: Mapping[str, float | str]
    base: Literal["fixed", "floating"]
    mimic: Literal["follow", "independent"]
    fixed: Literal["merge", "keep"]
    friction: Literal["ignore", "apply"]
    angles: Literal["exact turns", "as written"]
    equality: Literal["hold", "ignore"]
    actuators: Literal["mark", "apply"]
    keyframe: str | int
    folders: Sequence[str | PathLike[str]]
    trust: bool
    arguments: Mapping[str, Any]


def load(path: str | PathLike[str], **options: Unpack[LoadOptions]) -> Mechanism:
    r"""The mechanism in the file `path`; `options` are those of its format, by the end of its name.

    - `.mks`: parameters={name: value}, none. `.dh.toml` takes no options.
    - `.urdf`: base="fixed" or "floating", mimic="follow" or "independent", fixed="merge" or "keep", friction="ignore"
      or "apply"; of these the first is the default. `.xacro`: also trust=True and arguments={name: value}.
    - `.sdf`, `.world`: base (as the file has it), fixed, friction ("apply"), angles="exact turns" or "as written",
      folders of models.
    - `.xml`: MJCF (fixed, equality="hold" or "ignore", friction ("apply"), actuators="mark" or "apply", keyframe,
      folders), URDF or SDF by its outermost element.

    Raises `FormatError` for a file that cannot be read and `ModelError` for a mechanism that is not possible.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = pathlib.Path(folder, "a.dh.toml").write_text('convention = "standard"\nlink = [{ a = 0.3 }]')
    ...     mech = lw.load(f"{folder}/a.dh.toml")
    """
    file = path_text("a model file", path)
    description = read(file, **options)
    names = [name for name in options.get("parameters") or () if name in description.parameters]
    source = _source(file, description, names, options) if names else None
    return Mechanism(description) if source is None else Mechanism(description, source=source, names=names)


def mechanism_of(model: Any, parameters: Mapping[str, float] | None = None) -> Mechanism:
    """A mechanism itself, or the one in a file, with other values of its parameters where they are given."""
    if isinstance(model, Mechanism):
        return model.with_parameters(**parameters) if parameters else model
    if not isinstance(model, str | PathLike):
        hint = "; call its build() first" if hasattr(model, "build") else ""
        raise ModelError(f"give a mechanism or the path of a model file, not {shown(model)}{hint}")
    # The reader alone knows the parameters that depend on others.
    return load(model, parameters=parameters) if parameters else load(model)


def _source(file: str, description: Description, names: Sequence[str], options: LoadOptions) -> Mechanism | None:
    """The mechanism with the file's own values, if other values of parameters are all that it differs in."""
    declared: LoadOptions = {**options}
    del declared["parameters"]
    try:
        source = read(file, **declared)
        changed = with_parameters(source, {name: description.parameters[name] for name in names})
    except LinkwrightError:  # the file needs these values, or makes other parts with them
        return None
    same = alike(changed, description) and changed.bindings == description.bindings
    return Mechanism(source) if same else None


def from_dh(rows: Any, convention: Literal["standard", "modified"] = "standard", **options: Any) -> Mechanism:
    """A serial mechanism from Denavit–Hartenberg `rows`: a, alpha, d, theta, kind, mass, com, inertia (SI, radians),
    numbers or symbols; `convention` is "standard" or "modified", `options` are parameters={symbol: value}, gravity
    (m/s²) and name. Raises `NameNotFound` for another column, kind or convention, and `ModelError` for other rows.

    >>> lw.from_dh([{"a": "l1", "mass": 1.0}], parameters={"l1": 0.3}).with_parameters(l1=0.5).mass_matrix([0.0])
    array([[0.25]])
    """
    from linkwright.formats.dh import from_dh as described  # weight: tomllib

    return Mechanism(described(rows, convention=convention, **options))


def chain(n: int, joint: str = "revolute") -> Mechanism:
    """`n` equal links of 0.1 m and 1 kg, on joints of the kind `joint` ("revolute"), axes alternately x and y. Raises
    `NameNotFound` for another kind, `ModelError` for another n.

    >>> mech = lw.chain(3, "spherical")
    """
    return Mechanism(generators.chain(n, joint))


def tree(n: int, branching: int = 2, joint: str = "revolute") -> Mechanism:
    """`n` such links, each carrying `branching` others (2), on joints of the kind `joint` ("revolute"); raises as
    `chain`.

    >>> mech = lw.tree(7)
    """
    return Mechanism(generators.tree(n, branching, joint))


def random_tree(n: int, seed: int | None = 0, branching: float = 2.0, **options: Any) -> Mechanism:
    """`n` links with random parents, placements, inertias and joint kinds; the same for the same `seed` (0).
    `branching` is about how many children a parent has (2.0); `options` are joints, the kinds to draw from (all), and
    floating (False), for a first body with a free joint. Raises as `chain`.

    >>> mech = lw.random_tree(5, seed=1, joints=["revolute"], floating=True)
    """
    return Mechanism(generators.random_tree(n, seed, branching, **options))


def load_program(path: str | PathLike[str]) -> Program:
    """The program in the file `path`, which `Program.save` wrote. Raises `FormatError` for another file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lw.record(np.sin, 3).save(f"{folder}/sines")
    ...     sines = lw.load_program(f"{folder}/sines")
    """
    from linkwright.tape.program_files import load as program_of  # weight: zipfile

    return program_of(path)
