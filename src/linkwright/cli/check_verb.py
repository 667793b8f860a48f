"""`linkwright check`: read a model and print what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from linkwright.base.arguments import counted, first_few
from linkwright.cli.run_verb import table
from linkwright.cli.screen import (
    Arguments,
    Base,
    Fixed,
    Folders,
    Followers,
    Settings,
    Trust,
    assignments,
    console,
    file_options,
    grid,
    load,
    model_table,
    print_warning,
)
from linkwright.errors import on_one_line
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.requested_analysis import System, idle_settings
from linkwright.model.units import unit

if TYPE_CHECKING:
    from rich.table import Table

    from linkwright.mechanism import Mechanism
    from linkwright.model.mechanism_views import DofReport
    from linkwright.model.mobility_report import Mobility

FEW = 8  # loops of four links that are printed
_SMALL = 1e-12  # of the largest eigenvalue of the mass matrix


def check(
    model: Annotated[
        Path,
        typer.Argument(help="A model file: .mks, .urdf, .sdf, .xml (MJCF), .xacro or .dh.toml.", show_default=False),
    ],
    set_: Settings = None,
    base: Base = None,
    mimic: Followers = None,
    fixed: Fixed = None,
    folder: Folders = None,
    trust: Trust = False,
    argument: Arguments = None,
) -> None:
    """Read MODEL and print its bodies, joints, coordinates and degrees of freedom, and what is odd about it."""
    from linkwright.analysis.analyse import ready  # weight: analysis
    from linkwright.formats.mks.mks_reader import ModelText  # weight: lark

    files = file_options(folder, trust, argument)
    loaded = load(model, base=base, mimic=mimic, fixed=fixed, parameters=assignments(set_) or None, **files)
    mechanism = loaded.mechanism
    screen = console()
    screen.print(on_one_line(mechanism.name), style="bold")
    screen.print(model_table(mechanism))
    screen.print()
    if constrained(mechanism):
        screen.print(table(mechanism.description))
        screen.print()
    report = mechanism.dof()
    for line in summary(mechanism, report):
        screen.print(line, soft_wrap=True)
    if report.mobility is not None:
        screen.print()
        screen.print(mobility_table(report.mobility))
        screen.print()
        for line in report.mobility.conclusions():
            screen.print(line, soft_wrap=True)
    warnings = loaded.warnings
    if constrained(mechanism):
        for line in _freedom(mechanism, report):
            screen.print(line, soft_wrap=True)
    elif not any("singular" in warning for warning in warnings):
        warnings = [*warnings, *oddities(mechanism)]
    if str(model).lower().endswith(".mks"):
        line = ModelText.of_file(model).repetition(assignments(set_))
        screen.print(line, soft_wrap=True, end="\n" if line else "")
    for line in _remarks(mechanism):
        screen.print(line, soft_wrap=True)
    for warning in warnings:
        print_warning(warning)
    for note in ready(mechanism):  # or the error that the analysis would end with
        print_warning(note)


def _remarks(mechanism: Mechanism) -> list[str]:
    """What SYSTEM sets in vain, and what of the model is hardly meant."""
    from linkwright.constraints.kinematic_motion import times_of  # weight: constraints
    from linkwright.constraints.model_warnings import remarks  # weight: constraints

    d = mechanism.description
    if d.system is None:
        return remarks(d, "kinematic")
    s = d.system
    times = times_of(s.start, s.end, s.interval)
    return [*idle_settings(s, s.analysis), *remarks(d, s.analysis, times, mechanism.tree)]


def constrained(mechanism: Mechanism) -> bool:
    """Whether there is more to satisfy than the joints of a tree."""
    d = mechanism.description
    return bool(mechanism.loops or d.point_constraints or d.drivers)


def _freedom(mechanism: Mechanism, report: DofReport) -> list[str]:
    """How well the mechanism can be assembled, its undriven degrees of freedom, and what is redundant, if its mobility
    does not say that already."""

    from linkwright.analysis.grashof import four_link_loops, loop_sentences  # weight: analysis
    from linkwright.analysis.planar_chain import Chain
    from linkwright.constraints.kinematics import Kinematics  # weight: constraints
    from linkwright.dynamics.closed.initial_state import placed  # weight: dynamics

    explained = report.mobility is not None and bool(report.mobility.relaxations)
    d = mechanism.description
    system = d.system or System()
    kinematics = Kinematics(placed(mechanism, system.start))
    state = kinematics.assemble(system.start, system.assembly_tolerance)
    rounds = counted(state.iterations, "iteration")
    metre, second = d.units.shown("m"), d.units.shown("s")
    at = f"t = {second.of(system.start):g} {second.text}"
    lines = [f"assembled to {metre.of(state.miss):.1e} {metre.text} at {at}, in {rounds}"]
    loops = loop_sentences(four_link_loops(Chain(d), state.q), d)
    lines += loops[:FEW]
    lines += [f"… and {len(loops) - FEW} more sizes of loops of four links"] if len(loops) > FEW else []
    return lines + kinematics.freedom(state, system.start).sentences(redundant=not explained)


def mobility_table(mobility: Mobility) -> Table:
    """The counts of degrees of freedom, how each is counted, and what is driven, undriven and redundant."""
    return grid(("mobility", "counted by", "number"), *mobility.rows(), right=(2,), fold=True)


def summary(mechanism: Mechanism, report: DofReport) -> list[str]:
    """What is not in the table, a line each."""
    moving = sum(body.mass for body in mechanism.bodies)
    units = mechanism.description.units
    mass, falling = units.shown("kg"), units.shown("m/s^2")
    gravity = ", ".join(f"{falling.of(g):g}" for g in mechanism.gravity)
    unit = falling.text.replace("^2", "²")
    lines = [f"{report}", f"moving mass: {mass.of(moving):.4g} {mass.text}, gravity: ({gravity}) {unit}"]
    bodies = {body.name for body in mechanism.bodies}
    inside = parts_of_curves(mechanism.description.point_constraints)
    if inside:
        text = counted(
            len(inside), "of these bodies is massless and brought", "of these bodies are massless and brought"
        )
        lines.append(f"{text} along by curves: {first_few(inside, 8)}")
    frames = [name for name in mechanism.frames if name not in bodies]
    if frames:
        lines.append(f"further frames: {', '.join(frames)}")
    if mechanism.loops:
        lines.append(f"loops closed by: {', '.join(mechanism.loops)}")
    lines += force_lines(mechanism)
    if mechanism.parameters:
        written = dict(units.parameters)
        known = (f"{name} = {_in(x, written.get(name))}" for name, x in mechanism.parameters.items())
        lines.append(f"parameters: {', '.join(known)}")
    return lines


def _in(value: float, text: str | None) -> str:
    """A value as the model has it: in the unit that it was written in, if it had one."""
    if text is None:
        return f"{value:g}"
    return f"{unit(text).from_si(value):g} {text}"


def force_lines(mechanism: Mechanism) -> list[str]:
    """Forces, the initial state, bodies without mass where they matter, and what SYSTEM asks for."""
    # weight: the description, which --help needs not
    from linkwright.model.elements import AppliedWrench, JointForce, ReactionFriction
    from linkwright.model.expression import numeric_values
    from linkwright.model.model_checks import listed
    from linkwright.model.quantities import dimension_of, spoken
    from linkwright.model.units import Units

    d, lines = mechanism.description, []
    forces = []
    for e in d.elements:
        if isinstance(e, JointForce | ReactionFriction):
            forces.append(f"{e.name} on {e.joint}")
        elif isinstance(e, AppliedWrench):
            forces.append(f"{e.name} at {e.frame}" + (f" against {e.reaction}" if e.reaction else ""))
        else:
            forces.append(f"{e.name} between {e.first} and {e.second}")
    if forces:
        lines.append(f"forces: {first_few(forces, 20)}")
    if d.initial:
        values = []
        for x in d.initial:
            shown = d.units.shown(Units().of(dimension_of(d, x.quantity)).text)
            number = shown.of(float(numeric_values(x.value, d.parameters)))
            values.append(f"{spoken(d, x.quantity)} = {number:.6g} {shown.text}")
        lines.append(f"initial conditions: {', '.join(values)}")
    kind = d.system.analysis if d.system is not None else "kinematic"
    if kind != "kinematic" or forces or d.initial:
        massless = parts_of_curves(d.point_constraints)  # which need no mass
        bare = [name for name, mass in zip(d.body_names, d.mass, strict=True) if mass == 0.0 and name not in massless]
        if bare:
            lines.append(f"without a mass, which dynamics may ask for: {listed(bare)}")
    if d.system is not None and kind != "kinematic":
        s = d.system
        how = f" by {s.method}" if kind == "dynamic" else ""
        second = d.units.shown("s")
        lines.append(f"{kind} analysis{how}, t = {second.of(s.start):g} … {second.of(s.end):g} {second.text}")
    return lines


def oddities(mechanism: Mechanism) -> list[str]:
    """What is allowed, and yet will surprise: here, directions in which nothing has inertia."""
    from linkwright.simulation.termination import joint_of_rate  # weight: simulation

    if not mechanism.nv:
        return ["nothing moves: every joint is fixed"]
    if mechanism.loops:  # there is no one mass matrix to look at
        return []
    values, vectors = np.linalg.eigh(mechanism.mass_matrix(mechanism.neutral()))
    if values[0] > _SMALL * values[-1]:
        return []
    name = joint_of_rate(mechanism, int(np.argmax(np.abs(vectors[:, 0]))))
    return [
        f"the mass matrix is singular at the neutral position: what joint {name!r} moves has no inertia, so that "
        "forward dynamics is not finite; give its bodies a mass, or lock it"
    ]
