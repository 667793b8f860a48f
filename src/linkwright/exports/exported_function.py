"""What is exported: a function of a mechanism or a step of it in time, with its inputs and outputs."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwright.base.arguments import check_names, positive_number
from linkwright.dynamics.functions import ARRAYS, FUNCTIONS, FunctionName
from linkwright.errors import LinkwrightError
from linkwright.kernels.c.spelling import function_name
from linkwright.model.joint_kinds import KINDS, JointKind
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.run_settings import refuse_immobile
from linkwright.simulation.step_parts import Composer, Parts
from linkwright.simulation.steps import Stages
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def step_program(mech: Mechanism, dt: float, free: Sequence[str] = ()) -> Program:
    """q, v, tau [, t] [, p] → q_next, v_next; closed mechanisms end at the nearest state that their loops allow."""
    refuse_immobile(mech)
    check_names("parameter", free, mech.parameters)
    factory = mech.programs
    parts = Parts(factory, free=tuple(free))
    b = Composer("step")
    q, v, tau = b.input("q", (parts.nq,)), b.input("v", (parts.nv,)), b.input("tau", (parts.nv,))
    t = b.input("t", ()) if factory.needs_time else b.number("t")
    parts.parameters(b)
    outputs = b.output("q_next", (parts.nq,)), b.output("v_next", (parts.nv,))
    h, t_end, a = b.number("h"), b.number("t_end"), b.spare("a", parts.nv)
    b.call(lambda: np.array(dt), [], [h])
    if not factory.needs_time:
        b.call(lambda: np.array(0.0), [], [t])
    b.call(lambda t: t + dt, [t], [t_end])
    seat = parts.seat(b)
    b.copy(parts.begin(b, q, v, t, tau), a)
    stages = Stages(b, parts, tableau_of("rk4"), [q, v, a, t, h], tau)
    stages.all()
    end_q, end_v = (seat.q, seat.v) if parts.plain else (b.spare("q_end", parts.nq), b.spare("v_end", parts.nv))
    b.copy(t_end, seat.t)
    stages.advance(stages.tableau.b, end_q, end_v)
    if not parts.plain:
        parts.project(b, end_q, end_v)
    b.copies((seat.q, seat.v), outputs)
    return b.build(single=False)


STEP = "step"


@dataclass(frozen=True)
class Subject:
    """A program with its name, and the mechanism that it was made of."""

    mech: Mechanism
    program: Program
    function: str
    name: str
    title: str
    free: tuple[str, ...] = ()
    dt: float | None = None

    @property
    def operations(self) -> int:
        """The most operations that one call takes."""
        return sum(self.program.count().values())

    def notes(self) -> list[str]:
        """What the numbers mean, as lines of plain text."""
        lines = [f"{b.name}: {self.meaning(b.name)}" for b in (*self.program.inputs, *self.program.outputs)]
        if self.dt is not None:
            lines.append(f"One step of the classic Runge-Kutta method of order 4, dt = {self.dt!r} s, tau held.")
        return [*lines, "", "The order of q and v:", *(f"    {row}" for row in self.rows())]

    def meaning(self, array: str) -> str:
        if array == "p":
            values = self.mech.parameters
            return "parameters: " + ", ".join(f"{plain(name)} (nominal {values[name]!r})" for name in self.free)
        return ARRAYS.get(array, array)

    def order(self) -> list[tuple[str, str, str, str, str]]:
        """(joint, kind, its places in q, its places in v, units), of the joints that have coordinates."""
        rows = []
        for joint in self.mech.joints:
            if joint.q_slice.stop > joint.q_slice.start and not joint.shares:
                unit = _units(KINDS[joint.kind])
                rows.append((plain(joint.name), joint.kind, _places(joint.q_slice), _places(joint.v_slice), unit))
        return rows

    def rows(self, most: int = 200) -> list[str]:
        rows = [f"q[{q}] v[{v}]  {name} ({kind}; {unit})" for name, kind, q, v, unit in self.order()]
        return [*rows[:most], *([f"and {len(rows) - most} more joints"] if len(rows) > most else [])]


def _units(kind: JointKind) -> str:
    """The units of a joint's coordinates, and of its rates where these are no derivatives of them."""
    if kind.paired:
        return ", ".join("m" if length else "rad" for length in kind.lengths[0])
    place, speed = ("x y z (m), ", "m/s, ") if kind.nq > 4 else ("", "")
    return f"{place}e0 e1 e2 e3; rates: {speed}rad/s in body axes"


def _places(part: slice) -> str:
    first, last = part.start, part.stop - 1
    return str(first) if first == last else f"{first}..{last}"


def subject(
    mech: Mechanism,
    function: str = "forward_dynamics",
    *,
    name: str | None = None,
    method: str | None = None,
    wrenches: bool = False,
    frame: str = "",
    reference: str = "",
    free: Sequence[str] = (),
    dt: float | None = None,
) -> Subject:
    """The program of a function, or of a step in time, under a name that every language takes."""
    check_names("function", (function,), (*FUNCTIONS, STEP))
    chosen = checked_name(("time_step" if function == STEP else function) if name is None else name)
    free = (free,) if isinstance(free, str) else tuple(free)
    if function != STEP:
        if dt is not None:
            raise LinkwrightError(f"dt is the length of a step; {function} has none (function='step' has)")
        asked: Any = {"method": method, "wrenches": wrenches, "frame": frame, "reference": reference, "free": free}
        program = mech.program(cast(FunctionName, function), **asked)
    else:
        if wrenches or frame or reference or method:
            raise LinkwrightError("a step takes dt and free parameters alone; leave method, frame and wrenches out")
        if dt is None:
            raise LinkwrightError("a step has a length; give it as dt=0.001 (s)")
        program = step_program(mech, positive_number("dt, the length of a step in s,", dt), free)
    title = f"{function} of {mech.name}"
    if not any(b.size for b in program.outputs):
        raise LinkwrightError(f"{title} has no numbers to give: the mechanism has nothing that it is about")
    return Subject(mech, program, function, chosen, title, free, dt)


def checked_name(name: str) -> str:
    """A name that C, C++, CUDA and Python all take for a function and a file; others are refused with a proposal."""
    proposal = function_name(name)
    if keyword.iskeyword(proposal) or proposal in _MODULES | _TAKEN:
        proposal = f"{proposal}_program"
    if name != proposal:
        raise LinkwrightError(f"{name!r} cannot be the name of a function in C and Python; try {proposal!r}")
    if len(name) > 200:
        raise LinkwrightError(f"a name of {len(name)} letters is too long; take at most 200")
    return name


#: Modules that a file of the same name would hide from the exported one.
_MODULES = frozenset({"casadi", "jax", "sympy", "numpy", "math", "json", "sys", "vectors", "test", "Arduino"})
#: Names that the modules give themselves.
_TAKEN = frozenset({"check", "lax", "jnp", "operator"})


def plain(text: str) -> str:
    """A name from a model as one line of plain text for comments and Markdown."""
    return re.sub(r"[^\w .,:;()\[\]+/=-]", "_", text)[:200]
