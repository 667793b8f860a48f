"""Every public numeric function of a mechanism, for one state and a batch, on five mechanisms, beside Pinocchio.

    python benchmarks/calls.py [--only TEXT] [--write]

A row is a function with its options. A cell has the time of one state, its ratio to Pinocchio's best Python way to the
same, and the time of a state in a batch of 1,000 on one core; "py" marks calls of one state that run Python functions
when they are warm, all others run none. `--write` puts the table into benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import platform
import sys
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from speed_table import interleaved, python_functions, seconds_of, shown_time
from table import cpu, replace_section

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import linkwright as lw
from linkwright.errors import LinkwrightError
from robots import Twin, find

MODELS = Path(__file__).parents[1] / "examples" / "models"
#: Mechanisms with loops, by their files.
CLOSED = {"four-bar": "four_bar.xml", "six legs": "six_leg.mks"}
BATCH = 1_000
Call = Callable[[], Any]


class Subject:
    """A mechanism with states, for one and for a batch; and its twin in Pinocchio, if it has one."""

    def __init__(self, name: str) -> None:
        self.name, self.twin = name, None
        robots = {"arm": ("ur5_robot.urdf", "fixed"), "quadruped": ("anymal.urdf", "floating")}
        robots["humanoid"] = ("talos_reduced.urdf", "floating")
        if name in robots:
            file, base = robots[name]
            self.twin = Twin(find(file), base)
            self.mech = self.twin.mech
            self.q, self.v, self.a = self.twin.states(BATCH)
        else:
            self.mech = lw.load(MODELS / CLOSED[name])
            q, v = self.mech.initial_state()
            self.q, self.v = np.tile(q, (BATCH, 1)), np.tile(v, (BATCH, 1))
            self.a = self.mech.forward_dynamics(self.q, self.v, np.zeros_like(self.v))
        self.tau = self.a if self.twin else np.zeros_like(self.v)
        self.frame = self.mech.bodies[len(self.mech.bodies) - 1].name
        self.wrenches = np.ones((BATCH, self.mech.nb, 6))

    def calls(self, *, batch: bool) -> dict[str, Call]:
        """Our calls, for one state or for a batch."""
        return our_calls(self.mech, self.frame, Arrays(self, batch=batch))


class Arrays:
    """The arrays of a call: of one state, in memory of their own, or of a batch."""

    def __init__(self, subject: Subject, *, batch: bool) -> None:
        def taken(array: Any) -> Any:
            return array if batch else array[0].copy()

        self.q, self.v, self.a, self.tau = map(taken, (subject.q, subject.v, subject.a, subject.tau))
        self.wrenches, self.out = taken(subject.wrenches), np.empty_like(self.v)


def our_calls(mech: Any, frame: str, x: Arrays) -> dict[str, Call]:
    """Every call, with the options that it is made with."""
    q, v, a, tau, wrenches, out = x.q, x.v, x.a, x.tau, x.wrenches, x.out
    method = "articulated-body"
    return {
        "forward_dynamics": lambda: mech.forward_dynamics(q, v, tau),
        "forward_dynamics(out=)": lambda: mech.forward_dynamics(q, v, tau, out=out),
        "forward_dynamics(method=, out=)": lambda: mech.forward_dynamics(q, v, tau, method=method, out=out),
        "forward_dynamics(wrenches=, t=)": lambda: mech.forward_dynamics(q, v, tau, wrenches=wrenches, t=0.0),
        "inverse_dynamics": lambda: mech.inverse_dynamics(q, v, a),
        "mass_matrix": lambda: mech.mass_matrix(q),
        "bias_forces": lambda: mech.bias_forces(q, v),
        "gravity_forces": lambda: mech.gravity_forces(q),
        "reactions": lambda: mech.reactions(q, v, tau),
        "constraint_forces": lambda: mech.constraint_forces(q, v, tau),
        "forward_dynamics_derivatives": lambda: mech.forward_dynamics_derivatives(q, v, tau),
        "inverse_dynamics_derivatives": lambda: mech.inverse_dynamics_derivatives(q, v, a),
        "pose": lambda: mech.pose(q, frame),
        "jacobian": lambda: mech.jacobian(q, frame),
        "twist": lambda: mech.twist(q, v, frame),
        "kinetic_energy": lambda: mech.kinetic_energy(q, v),
        "potential_energy": lambda: mech.potential_energy(q),
        "center_of_mass": lambda: mech.center_of_mass(q),
        "momentum": lambda: mech.momentum(q, v),
        "integrate": lambda: mech.integrate(q, v),
        "difference": lambda: mech.difference(q, q),
        "project": lambda: mech.project(q, v),
    }


def peer_call(subject: Subject, row: str) -> Call | None:
    """Pinocchio's best way from Python to the same, on arrays that it takes as they are."""
    if subject.twin is None:
        return None
    import pinocchio as pin

    twin = subject.twin
    model, data = twin.model, twin.data
    q, v, a = twin.pin_q(subject.q[0]), twin.pin_v(subject.v[0]), twin.pin_v(subject.a[0])
    frame, local = model.getFrameId(subject.frame), pin.ReferenceFrame.LOCAL

    def pose() -> Any:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, frame)

    def twist() -> Any:
        pin.forwardKinematics(model, data, q, v)
        return pin.getFrameVelocity(model, data, frame, local)

    calls: dict[str, Call] = {
        "inverse_dynamics": lambda: pin.rnea(model, data, q, v, a),
        "mass_matrix": lambda: pin.crba(model, data, q),
        "bias_forces": lambda: pin.nonLinearEffects(model, data, q, v),
        "gravity_forces": lambda: pin.computeGeneralizedGravity(model, data, q),
        "forward_dynamics_derivatives": lambda: pin.computeABADerivatives(model, data, q, v, a),
        "inverse_dynamics_derivatives": lambda: pin.computeRNEADerivatives(model, data, q, v, a),
        "pose": pose,
        "jacobian": lambda: pin.computeFrameJacobian(model, data, q, frame, local),
        "twist": twist,
        "kinetic_energy": lambda: pin.computeKineticEnergy(model, data, q, v),
        "potential_energy": lambda: pin.computePotentialEnergy(model, data, q),
        "center_of_mass": lambda: pin.centerOfMass(model, data, q),
        "momentum": lambda: pin.computeCentroidalMomentum(model, data, q, v),
        "integrate": lambda: pin.integrate(model, q, v),
        "difference": lambda: pin.difference(model, q, q),
    }
    if row.startswith("forward_dynamics(") or row == "forward_dynamics":
        return lambda: pin.aba(model, data, q, v, a)
    return calls.get(row)


def ratio(name: str, row: str) -> tuple[float, float, float]:
    """Seconds of one state, ours and Pinocchio's, and their ratio."""
    subject = Subject(name)
    ours, theirs = subject.calls(batch=False)[row], peer_call(subject, row)
    assert theirs is not None
    for _ in range(3):
        ours()
    a, b = interleaved([ours, theirs])
    return a, b, a / b


def cell(subject: Subject, row: str) -> str:
    """A cell of the table."""
    one, batch = (subject.calls(batch=batch)[row] for batch in (False, True))
    try:
        for _ in range(3):
            one()
        batch()
    except LinkwrightError:
        return "–"
    theirs = peer_call(subject, row)
    times = interleaved([one] if theirs is None else [one, theirs])
    text = shown_time(times[0])
    if theirs is not None:
        text += f" ({times[0] / times[1]:.2f})"
    if functions := python_functions(one):
        text += f" py {functions}"
    return f"{text}; {shown_time(seconds_of(batch, times=5) / BATCH)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lw.set_threads(1)
    subjects = [Subject(name) for name in ("arm", "quadruped", "humanoid", *CLOSED)]
    heads = [f"{s.name} ({s.mech.nv})" for s in subjects]
    lines = ["| call | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for row in subjects[0].calls(batch=False):
        if options.only in row:
            lines.append(f"| `{row}` | " + " | ".join(cell(subject, row) for subject in subjects) + " |")
            print(lines[-1], flush=True)
    if options.write:
        head = f"{date.today()}, {cpu()}, Python {platform.python_version()}, NumPy {np.__version__}; one core."
        replace_section("calls", "\n".join([head, "", *lines]))


if __name__ == "__main__":
    main()
