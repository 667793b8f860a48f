"""The report's sections about the machine, the control step's time, positions under three controllers, and reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from linkwright.studies.manipulator.experiments import Tracking
from linkwright.studies.manipulator.machine_figures import LAWS
from linkwright.studies.manipulator.report_data import computer, percentiles
from linkwright.studies.manipulator.report_parts import (
    Section,
    columns,
    escaped,
    judged,
    listed,
    number,
    paragraph,
    picture,
    table,
    thousands,
)
from linkwright.studies.manipulator.rig import COMPENSATION, DYNAMIC, PID, Rig
from linkwright.studies.manipulator.timing import PAPER, PAPER_PARALLEL, Timing

if TYPE_CHECKING:
    from linkwright.studies.manipulator.manipulator_study import Claim, Study

Pictures = Mapping[str, bytes]
LINKS = {
    "crank_inertia": "1: crank (driven)",
    "universal_inertia": "2: cross of the universal joint",
    "rod_inertia": "3: rod",
    "first_cross_inertia": "4: first cross of the spherical joint",
    "second_cross_inertia": "5: second cross",
    "plate_inertia": "endplate",
}
DRIVES = {
    "stiffness": ("stiffness of a gear", "N m/rad", "rigid"),
    "damping": ("its damping", "N m s/rad", "rigid"),
    "rotor_inertia": ("inertia of a rotor, seen at the crank", "kg m²", "none"),
    "motor_coulomb": ("Coulomb friction of a motor", "N m", "none"),
    "motor_static": ("its static friction", "N m", "none"),
    "motor_viscous": ("its viscous friction", "N m s/rad", "none"),
    "crank_coulomb": ("Coulomb friction of a crank", "N m", "none"),
    "crank_viscous": ("its viscous friction", "N m s/rad", "none"),
    "passive_coulomb": ("Coulomb friction of a passive joint", "N m", "none"),
    "passive_viscous": ("its viscous friction", "N m s/rad", "none"),
    "friction_speed": ("regularisation velocity (76 % of the Coulomb friction there)", "rad/s", "–"),
    "stribeck_speed": ("Stribeck velocity", "rad/s", "–"),
}


FORMS = {
    "serial": "leg after leg",
    "simd": "six legs in the lanes of vector registers",
    "threads": "legs shared out to threads",
    "pipelined": "pipelined as in the paper's fig. 4",
}


def claims_section(claims: Sequence[Claim]) -> Section:
    """The claims of the paper beside the results."""
    rows = [(c.what, c.paper, c.found, c.bound, judged(c.met)) for c in claims]
    shown = table(columns("what", "paper", "here", "bound", "result"), rows, cards=True)
    return Section("claims", "What the paper says, and what was found", "", shown)


# -- the machine ----------------------------------------------------------------------------------------------------
def machine_section(study: Study, pictures: Pictures) -> Section:
    """The machine's numbers, the plant's, and what the controller does not know."""
    rig, g = study.rig, study.rig.geometry
    sizes = [
        ("crank", f"{g.crank:g} m", "uniform rod of link 1: √(12 I/m)"),
        ("rod", f"{g.rod:g} m", "uniform rod of link 3"),
        ("radius of the wrist points", f"{g.plate_radius:g} m", "disc of the endplate's inertia"),
        ("half angle of a pair of wrist points", f"{np.degrees(g.plate_half_angle):g}°", "chosen"),
        ("radius of the base", f"{g.base_radius:g} m", "chosen for a well-conditioned Jacobian S = ∂θ/∂x"),
        ("half angle of a pair of base points", f"{np.degrees(g.base_half_angle):g}°", "chosen"),
        ("crank angle from the radial direction", f"{np.degrees(g.crank_turn):g}°", "chosen"),
        ("height of the endplate at home", f"{g.home_height:g} m", "chosen"),
    ]
    inside = paragraph(
        "Six legs of six revolute joints carry the endplate; the first joint of each is driven. The paper's drawings "
        "are lost: masses and moments are its table 3, lengths are what uniform links of those moments have."
    )
    inside += picture(
        pictures["machine"],
        "Two line drawings of the machine at home, from the side and from above: six driven cranks at the base, six "
        "rods, a hexagonal endplate above them.",
        "The machine at home. Squares are driven joints, circles the universal and spherical ones; legs are "
        "numbered 1–6.",
    )
    heads = columns("link", numbers=("mass (kg)", "Ixx (kg m²)", "Iyy (kg m²)", "Izz (kg m²)"))
    inside += table(
        heads, _links(rig), caption="Table 3, about the centres of mass; x lies along crank and rod (its z)"
    )
    inside += table(
        columns("dimension", numbers=["value"], after=["from"]), sizes, caption="Dimensions inferred or chosen"
    )
    return Section("machine", "The machine", "table 3, figs 5 and 6", inside + _plant(rig))


def _links(rig: Rig) -> list[tuple[str, ...]]:
    links = {words: getattr(rig.geometry, name) for name, words in LINKS.items()}
    return [(words, f"{x.mass:.2f}", *(f"{moment:.3g}" for moment in x.moments)) for words, x in links.items()]


def _plant(rig: Rig) -> str:
    rows = []
    for entry in fields(rig.drives):
        words, unit, model = DRIVES.get(entry.name, (entry.name.replace("_", " "), "", "–"))
        rows.append((words, number(getattr(rig.drives, entry.name), 4), unit, model))
    inside = "<h3>The plant, and what the controller's model lacks</h3>\n"
    inside += paragraph(
        "The plant is the closed chain with rotors behind elastic gears and friction on every joint. The controller "
        "takes the machine for rigid, without rotors and without friction."
    )
    inside += table(columns("of the plant", numbers=["value"], after=["unit", "controller's model"]), rows)
    late = "1 period" if rig.delay == 1 else f"{rig.delay:g} periods"
    inside += listed(
        [
            f"sampled every {1e3 * rig.period:g} ms; a command acts {late} after its sample",
            f"encoders of {rig.counts:,.0f} counts in a turn of the crank",
            f"an accelerometer on the endplate with noise of {rig.noise:g} m/s²",
            f"torques cut at ± {rig.torque_limit:,.0f} N m",
            f"dynamic control: K<sub>P</sub> = {number(DYNAMIC[0])} 1/s², K<sub>V</sub> = {DYNAMIC[1]:g} 1/s; PID of "
            f"the endplate: {number(PID[0])} N/m, {number(PID[1])} N s/m, {number(PID[2])} N/(m s); friction "
            f"compensation: {COMPENSATION[0]:g} N m and {COMPENSATION[1]:g} N m s/rad at the driven joints; all as in "
            "the paper",
        ]
    )
    return inside


def reach_section(pictures: Pictures, sentences: Mapping[str, str]) -> Section:
    """Workspace and conditions."""
    inside = paragraph(
        "S takes the plate's twist to the motors' rates, W to all rates of a leg. A low condition means that the "
        "machine moves equally well in all directions."
    )
    words = {
        "reach_xz": ("a vertical plane through home", "x and z"),
        "reach_tilt": ("tilts at home", "the tilts about x and y"),
    }
    for name, (where, axes) in words.items():
        if name in pictures:
            alt = f"Three maps over {axes}: what ends the workspace, the condition of S, the condition of W."
            caption = f"Over {where}: what ends the workspace, and the conditions of S and W. "
            caption += f"{escaped(_capital(sentences[name]))}."
            inside += picture(pictures[name], alt, caption, broad=True)
    return Section("reach", "Workspace and singular poses", "", inside)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# -- time -----------------------------------------------------------------------------------------------------------
def timing_section(timing: Timing, pictures: Pictures) -> Section:
    """Tables 1 and 2 beside ours, operation counts, latency."""
    inside = paragraph(
        "One control step: forward kinematics from the driven angles, then for each leg inverse kinematics, resolved "
        "acceleration, Newton–Euler and Jacobian, then the transformation of torques. The paper's computer had four "
        f"Pentium Pro processors of 200 MHz; this one: {escaped(str(computer()['processor']))}."
    )
    rows: list[tuple[str, ...]] = []
    kinds = {}
    for part, paper in PAPER.items():
        serial, lanes = timing.parts.get(part, (float("nan"), float("nan")))
        if part == "whole step":
            kinds[len(rows)] = "sum"
        faster = 1e3 * paper / serial if serial > 0.0 else float("nan")
        rows.append((part, f"{paper:.2f}", number(serial), number(lanes), number(faster)))
    heads = columns("part", numbers=("paper (ms)", "serial (µs)", "six lanes (µs)", "serial, times faster"))
    inside += table(heads, rows, kinds=kinds, caption="Table 1: the parts of a step on one processor")
    forms = [
        ("paper, one processor", number(1e3 * PAPER["whole step"], 4)),
        ("paper, four processors", number(1e3 * PAPER_PARALLEL, 4)),
        *((f"here, {FORMS.get(form, form)}", number(time)) for form, time in timing.forms.items()),
    ]
    heads = columns("form", numbers=["one step (µs)"])
    inside += table(heads, forms, caption="Table 2: a whole step; here called from Python")
    mean, most = timing.corrections
    inside += paragraph(f"Newton iterations of the forward kinematics: {mean:.3g} per step on average, {most} at most.")
    counts = [(name, f"{count:,}") for name, count in timing.counts.items()]
    inside += table(columns("of one leg", numbers=["operations"]), counts, caption="Operations, and what sharing saves")
    inside += _latency(timing, pictures)
    return Section("time", "The control step's time", "tables 1 and 2", inside)


def _latency(timing: Timing, pictures: Pictures) -> str:
    late, took = percentiles(timing.late), percentiles(timing.took)
    if not late or not took:
        return ""
    steps, period = len(timing.took), 1e6 / timing.rate
    heads = columns("", numbers=list(late))
    rows = [
        ("began late by (µs)", *(number(x) for x in late.values())),
        ("took (µs)", *(number(x) for x in took.values())),
    ]
    lost = "no step" if not timing.missed else f"{timing.missed:,} step{'s' * (timing.missed > 1)}"
    caption = (
        f"{steps:,} steps at {timing.rate:,.0f} Hz under the ordinary scheduler: {lost} ended after the next one's "
        f"time. Both axes are logarithmic."
    )
    shown = picture(
        pictures["latency"],
        f"Histogram of how late {steps:,} steps began and how long they took, with the period of {period:g} µs.",
        caption,
    )
    return "<h3>Latency</h3>\n" + shown + table(heads, rows, caption="Percentiles over all steps")


# -- positions ------------------------------------------------------------------------------------------------------
def straight_section(up: Tracking, pictures: Pictures) -> Section:
    """Figure 8."""
    p, d = up.moves["pid"], up.moves["dynamic"]
    inside = paragraph("Up with 10 m/s² for 0.1 s, against it for 0.1 s, then still.")
    inside += picture(
        pictures["straight"],
        "Height and its error over time under PID and under dynamic control, beside the reference.",
        f"Dynamic control follows {thousands(d.delay)} ms late, PID {thousands(p.delay)} ms; it passes its end by "
        f"{thousands(d.overshoot)} mm against {thousands(p.overshoot)} mm, and stops {thousands(d.steady_error)} mm "
        f"away against {thousands(p.steady_error)} mm. What is left is friction, which the controller does not know.",
    )
    return Section("straight", "Straight up: PID and dynamic control", "fig. 8", inside + _moves(up, along="z"))


def friction_section(rig: Rig, up: Tracking, pictures: Pictures) -> Section:
    """Figure 10."""
    d, f = up.moves["dynamic"], up.moves["friction"]
    inside = paragraph(
        f"The same motion with {COMPENSATION[0]:g} N m of static and {COMPENSATION[1]:g} N m s/rad of viscous friction "
        "added to the driven joints' torques."
    )
    inside += picture(
        pictures["friction"],
        "Height and its error over time under dynamic control with and without friction compensation.",
        f"The rms error goes from {thousands(d.rms_error)} to {thousands(f.rms_error)} mm, the error at the end from "
        f"{thousands(d.steady_error)} to {thousands(f.steady_error)} mm. The motors stick at "
        f"{number(rig.drives.motor_static, 4)} N m, far more than what is compensated, so an error remains, as in the "
        "paper.",
    )
    return Section("friction", "Friction compensation", "fig. 10", inside)


def curve_section(around: Tracking, pictures: Pictures) -> Section:
    """Figure 9."""
    path = around.path
    inside = paragraph("A quarter of a circle in the horizontal plane in 0.4 s.")
    inside += picture(
        pictures["curve"],
        "Left the path from above, right the distance from the reference over time, of all three controllers.",
        f"Under PID the plate leaves the path by up to {thousands(path['pid'])} mm, as nothing holds it against the "
        f"centrifugal force but the error itself; dynamic control, which computes that force, by "
        f"{thousands(path['dynamic'])} mm. The distance in time, right, is larger: it holds the delay too.",
    )
    return Section("curve", "The curve", "fig. 9", inside + _moves(around, along="the chord"))


def _moves(one: Tracking, along: str) -> str:
    heads = columns("controller", numbers=("delay (ms)", "overshoot", "steady error", "rms error", "from the path"))
    rows = []
    for law, move in one.moves.items():
        sizes = (move.overshoot, move.steady_error, move.rms_error, one.path[law])
        name = LAWS[law].label if law in LAWS else law
        rows.append((name, thousands(move.delay), *(thousands(x) for x in sizes)))
    return table(heads, rows, caption=f"Along {along}; lengths in mm")
