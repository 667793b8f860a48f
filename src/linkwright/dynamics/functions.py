"""The functions of a mechanism, one row each: inputs, outputs, options, what takes part, how it is recorded.

Everything that asks about a function reads this table: the methods and their checks, the recorders, exports, the
command line and the documentation. It does not record: recorders are named here and imported when they are called,
since code that a cache has needs no recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

#: The ways to forward dynamics; the first is the default.
ForwardMethod = Literal["articulated-body", "diagonal", "triangular", "mass-matrix", "virtual-work", "assembly"]
#: Where a twist or a Jacobian is taken: at the frame in its axes, at ground's origin, at the frame in ground's axes.
Reference = Literal["body", "world", "aligned"]
#: A program with every link's arithmetic laid out, or a loop over links.
ProgramForm = Literal["unrolled", "rolled"]

FORWARD_METHODS: tuple[ForwardMethod, ...] = get_args(ForwardMethod)
REFERENCES: tuple[Reference, ...] = get_args(Reference)
FORMS: tuple[ProgramForm, ...] = get_args(ProgramForm)


@dataclass(frozen=True)
class Method:
    """What is known of a method of forward dynamics besides its recursion."""

    unrolls: int = 64  # links up to which its recursion is unrolled: where its code grows faster, compiling stays short
    #: Links up to which the method, asked for by name, is unrolled where loops, drivers, gears or force elements act:
    #: compiling stays below some ten seconds. Beyond, only methods with `free_bodies` have a form.
    unrolls_by_name: int = 256
    loops: bool = False  # whether loops, rods and drivers can take part
    free_bodies: bool = False  # whether its rolled form takes bodies as free masses and all joints as constraints
    whole_inertias: Literal["never", "always", "with loops"] = "never"  # when it asks every body for a whole inertia


METHODS: dict[str, Method] = {
    "articulated-body": Method(loops=True),
    "diagonal": Method(),
    "triangular": Method(unrolls=32),
    "virtual-work": Method(unrolls=32, loops=True, free_bodies=True, whole_inertias="always"),
    "assembly": Method(unrolls=32, loops=True, free_bodies=True, whole_inertias="with loops"),
    "mass-matrix": Method(unrolls=24, unrolls_by_name=96, loops=True),
}
DEFAULT_METHOD = FORWARD_METHODS[0]
COUPLED_METHOD = "mass-matrix"  # the method for joints that share coordinates
FREE_BODIES_METHOD = "virtual-work"  # the method of the rolled form over free bodies, where none is named
LOOP_METHODS = tuple(name for name, method in METHODS.items() if method.loops)
FREE_BODY_METHODS = tuple(name for name, method in METHODS.items() if method.free_bodies)

FunctionName = Literal[
    "forward_dynamics",
    "inverse_dynamics",
    "tree_forces",
    "actuator_forces",
    "bias_forces",
    "gravity_forces",
    "mass_matrix",
    "reactions",
    "joint_wrenches",
    "gear_forces",
    "constraint_forces",
    "position_correction",
    "velocity_projection",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "applied_forces",
    "pose",
    "jacobian",
    "twist",
    "kinetic_energy",
    "potential_energy",
    "center_of_mass",
    "momentum",
    "integrate",
    "difference",
    "rate",
    "force_values",
    "initial_values",
]


@dataclass(frozen=True)
class Request:
    """What is asked: a function of the mechanism and its options."""

    function: str
    method: str = ""
    wrenches: bool = False
    frame: str = ""
    reference: str = ""
    free: tuple[str, ...] = ()
    form: str = ""  # "unrolled" or "rolled" where the caller insists
    ranks_hold: bool = False  # constraints have the same ranks at all values that free parameters will have


_CLOSED = "closed.closed_recorders"


@dataclass(frozen=True)
class Recorder:
    """A function of `dynamics.recorders`, or of another module beside it, by its name; imported when it is called."""

    name: str
    module: str = "recorders"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    @property
    def function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(f"linkwright.dynamics.{self.module}"), self.name)
        return function


@dataclass(frozen=True)
class Function:
    """A row of the table.

    `record` records it from a `dynamics.recording_context.Context`, laid out or rolled alike.
    """

    sentence: str  # what it gives, for a person
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    record: Recorder
    whole: Recorder | None = None  # records the whole program in place of `record`; None where that one is to
    rolls: bool = False  # whether it has a rolled form of trees, or of free bodies
    #: Links up to which it is unrolled where no method is named: benchmarks/forms.py has calls and compiling. At 64,
    #: inverse dynamics in loops takes 1.1 × of straight code's time in chains and 0.9 × in trees of all joint kinds.
    unrolls: int = 64
    dense: int = 0  # related pairs of links beyond which it is refused, 0 for none
    over_rates: int = 0  # the same where it is recorded over rates, 0 for functions that never are
    forces: bool = False  # whether force elements take part
    loops: bool = False  # whether the spanning tree's answer holds for closed loops too
    closed: bool = False  # whether loops, rods and drivers take part; if it rolls, bodies are free masses then
    needs_loops: bool = False  # whether it is for mechanisms with loops, rods or drivers alone
    numbers: bool = True  # whether it depends on the mechanism's numbers, and not on the kinds of its joints alone
    options: tuple[str, ...] = ()
    plain: bool = True  # whether the method of this name is this function and no more: its calls have a short way
    instead: str = ""  # what to ask of a closed mechanism, which answers by its method alone


_LOOPS = "for mechanisms with loops, rods or drivers"

FUNCTIONS: dict[str, Function] = {
    "forward_dynamics": Function(
        "the joint accelerations that joint forces and wrenches on bodies cause",
        ("q", "v", "tau"),
        ("a",),
        Recorder("forward_dynamics"),
        rolls=True,
        forces=True,
        closed=True,
        options=("method", "wrenches"),
    ),
    "inverse_dynamics": Function(
        "the joint forces that joint accelerations need",
        ("q", "v", "a"),
        ("tau",),
        Recorder("inverse_dynamics"),
        rolls=True,
        forces=True,
        options=("wrenches",),
        instead="call mech.inverse_dynamics, or take the program 'tree_forces' of the spanning tree alone",
    ),
    "tree_forces": Function(
        "the same of the spanning tree, without its loop constraints",
        ("q", "v", "a"),
        ("tau",),
        Recorder("inverse_dynamics"),
        rolls=True,
        forces=True,
        loops=True,
        options=("wrenches",),
        plain=False,
    ),
    "actuator_forces": Function(
        f"the forces of actuated joints that joint accelerations need, or NaN near singular positions and for motions "
        f"that no such forces cause, {_LOOPS}",
        ("q", "v", "a", "weights"),
        ("tau",),
        Recorder("actuator_forces", "closed.actuator_forces"),
        forces=True,
        closed=True,
        needs_loops=True,
        options=("wrenches",),
        plain=False,
    ),
    "bias_forces": Function(
        "h of M a + h = tau: velocity products, gravity and force elements",
        ("q", "v"),
        ("h",),
        Recorder("bias_forces"),
        rolls=True,
        forces=True,
        loops=True,
        options=("wrenches",),
    ),
    "gravity_forces": Function(
        "the joint forces that hold the mechanism still against gravity",
        ("q",),
        ("g",),
        Recorder("gravity_forces"),
        rolls=True,
        unrolls=128,  # there 2 × as fast, compiled in 1 s
        loops=True,
    ),
    "mass_matrix": Function("the mass matrix M", ("q",), ("M",), Recorder("mass_matrix"), rolls=True, loops=True),
    "reactions": Function(
        "the wrench of each joint on its body, at the body frame in its axes",
        ("q", "v", "tau"),
        ("wrenches",),
        Recorder("reactions"),
        dense=200_000,
        forces=True,
        options=("method", "wrenches"),
        instead="call mech.reactions, or take the program 'constraint_forces'",
    ),
    "joint_wrenches": Function(
        f"the wrench of each joint on its body, those that close loops included, or NaN near singular positions, "
        f"{_LOOPS}",
        ("q", "v", "tau", "size"),
        ("wrenches",),
        Recorder("joint_wrenches", "closed.joint_wrenches"),
        forces=True,
        closed=True,
        needs_loops=True,
        plain=False,
    ),
    "gear_forces": Function(
        "the force of each gear on its follower's coordinate",
        ("q", "v", "tau"),
        ("forces",),
        Recorder("gear_forces"),
        forces=True,
        options=("method",),
        plain=False,
        instead="take the series of an analysis, or the program 'constraint_forces'",
    ),
    "constraint_forces": Function(
        f"the multipliers λ of M a + h = tau + Gᵀ λ, {_LOOPS}",
        ("q", "v", "tau"),
        ("lambda",),
        Recorder("constraint_forces", _CLOSED),
        rolls=True,
        forces=True,
        closed=True,
        needs_loops=True,
        options=("method", "wrenches"),
    ),
    "position_correction": Function(
        f"the least change of q that closes the loops to first order, and what is open, {_LOOPS}",
        ("q",),
        ("dv", "phi"),
        Recorder("position_correction", _CLOSED),
        rolls=True,
        forces=True,
        closed=True,
        needs_loops=True,
        options=("method",),
        plain=False,
    ),
    "velocity_projection": Function(
        f"the least change of v that keeps the loops closed, and how fast they open, {_LOOPS}",
        ("q", "v"),
        ("dv", "rate"),
        Recorder("velocity_projection", _CLOSED),
        rolls=True,
        forces=True,
        closed=True,
        needs_loops=True,
        options=("method",),
        plain=False,
    ),
    "inverse_dynamics_derivatives": Function(
        "∂tau/∂q, ∂tau/∂v and ∂tau/∂a; q varies in tangent space",
        ("q", "v", "a"),
        ("dtau_dq", "dtau_dv", "M"),
        Recorder("inverse_dynamics_derivatives"),
        dense=5_000,
        forces=True,
    ),
    "forward_dynamics_derivatives": Function(
        "∂a/∂q, ∂a/∂v and ∂a/∂tau; q varies in tangent space",
        ("q", "v", "tau"),
        ("da_dq", "da_dv", "da_dtau"),
        Recorder("derivatives", _CLOSED),
        whole=Recorder("forward_dynamics_derivatives"),
        dense=5_000,
        over_rates=20_000,
        forces=True,
        closed=True,
    ),
    "applied_forces": Function(
        "the wrenches of force elements on bodies, and their forces on each joint's own rates",
        ("q", "v"),
        ("wrenches", "forces"),
        Recorder("applied_forces"),
        forces=True,
        loops=True,
        plain=False,
    ),
    "pose": Function(
        "the pose of a frame in ground",
        ("q",),
        ("pose",),
        Recorder("pose"),
        rolls=True,
        loops=True,
        options=("frame",),
    ),
    "jacobian": Function(
        "J of a frame, whose twist is J v",
        ("q",),
        ("jacobian",),
        Recorder("jacobian"),
        dense=200_000,
        loops=True,
        options=("frame", "reference"),
    ),
    "twist": Function(
        "the twist of a frame",
        ("q", "v"),
        ("twist",),
        Recorder("twist"),
        rolls=True,
        loops=True,
        options=("frame", "reference"),
    ),
    "kinetic_energy": Function(
        "the kinetic energy", ("q", "v"), ("energy",), Recorder("kinetic_energy"), rolls=True, loops=True
    ),
    "potential_energy": Function(
        "the energy in gravity, zero at ground's origin",
        ("q",),
        ("energy",),
        Recorder("potential_energy"),
        rolls=True,
        unrolls=256,  # there 2 × as fast, compiled in 0.5 s
        loops=True,
    ),
    "center_of_mass": Function(
        "the centre of mass of the moving bodies, in ground",
        ("q",),
        ("center",),
        Recorder("center_of_mass"),
        rolls=True,
        unrolls=256,  # there 2 × as fast, compiled in 0.5 s
        loops=True,
    ),
    "momentum": Function(
        "linear momentum, and angular momentum about the centre of mass, in ground's axes",
        ("q", "v"),
        ("momentum",),
        Recorder("momentum"),
        rolls=True,
        loops=True,
    ),
    "integrate": Function(
        "the q reached from q by rates held for a unit of time",
        ("q", "dv"),
        ("q",),
        Recorder("integrate"),
        rolls=True,
        loops=True,
        numbers=False,
    ),
    "difference": Function(
        "the rates that lead from one q to another in a unit of time",
        ("q", "q1"),
        ("dv",),
        Recorder("difference"),
        rolls=True,
        loops=True,
        numbers=False,
    ),
    "rate": Function(
        "the time derivative of q",
        ("q", "v"),
        ("rate",),
        Recorder("coordinate_rates"),
        rolls=True,
        loops=True,
        numbers=False,
        plain=False,
    ),
    "force_values": Function(
        "the value of each force element's law",
        ("q", "v"),
        ("forces",),
        Recorder("force_values"),
        forces=True,
        loops=True,
        plain=False,
    ),
    "initial_values": Function(
        "what the initial conditions name, and how fast it changes",
        ("q", "v"),
        ("values", "slopes"),
        Recorder("initial_values"),
        loops=True,
        plain=False,
    ),
}

#: What each array holds, with its unit.
ARRAYS = {
    "q": "joint coordinates: rad and m, Euler parameters e0..e3 (scalar first)",
    "q1": "joint coordinates of the second state, as q",
    "v": "joint rates: rad/s and m/s",
    "a": "joint accelerations: rad/s² and m/s²",
    "tau": "joint forces: N m and N",
    "h": "joint forces that hold the state without acceleration: N m and N",
    "g": "joint forces that hold the weight: N m and N",
    "dv": "rates held for a unit of time: rad and m",
    "M": "mass matrix: kg m², kg m and kg",
    "size": "a length that is typical for the mechanism: m",
    "weights": "weights of the squares of the actuated joints' forces",
    "t": "time: s",
    "wrenches": "force (N) and moment (N m) on each body, in its own axes",
    "forces": "forces: N m and N",
    "lambda": "multipliers of the constraint equations: N m and N",
    "phi": "the constraint equations' values: rad and m",
    "values": "the quantities of the initial conditions: rad and m",
    "slopes": "their rates: rad/s and m/s",
    "da_dq": "∂a/∂q, by changes of q as rates make them",
    "da_dv": "∂a/∂v",
    "da_dtau": "∂a/∂tau",
    "dtau_dq": "∂tau/∂q, by changes of q as rates make them",
    "dtau_dv": "∂tau/∂v",
    "pose": "the frame's pose in ground: a 4 × 4 matrix",
    "jacobian": "the frame's twist (linear first) for each unit rate",
    "twist": "the frame's velocity (m/s) and angular velocity (rad/s)",
    "energy": "energy: J",
    "center": "centre of mass in ground's axes: m",
    "momentum": "linear (kg m/s) and angular momentum (kg m²/s)",
    "q_next": "joint coordinates after the step, as q",
    "v_next": "joint rates after the step, as v",
    "rate": "time derivative of q",
}
