"""The control step as one C99 file for a controller without Python."""

from __future__ import annotations

from linkwright.base.arrays import Floats
from linkwright.control.parallel.forward import ROUNDS
from linkwright.control.parallel.hexapod import Hexapod
from linkwright.control.parallel.step_program import STATE
from linkwright.kernels.c.spelling import function_name
from linkwright.tape.program import Program


def c_file(program: Program, name: str, geometry: Hexapod, gains: Floats) -> str:
    """The program's text, and around it the step that keeps its own state and memory."""
    counts = sorted(program.count().items(), key=lambda entry: -entry[1])
    most = ", ".join(f"{number} {operation}" for operation, number in counts)
    worst = f" * At most {sum(program.count().values())} operations a step, with all {ROUNDS} corrections: {most}.\n */"
    name = function_name(name)
    text = program.to_c(name=name).replace(" */", worst, 1)
    home = ", ".join(repr(float(x)) for x in geometry.home)
    numbers = ", ".join(repr(float(x)) for x in gains)
    return f"""{text}
/* The step with fixed memory of its own: {name}_start once, at rest, then {name}_next every period.
 *
 * theta, rate: the motors' angles (rad) and rates (rad/s). reference: x, y, z (m) and Euler parameters of the plate,
 * its velocity and angular velocity, its acceleration and angular acceleration, in ground's axes. tau: torques (N m).
 * report: flags, corrections, residual (m), evenness of S, then of six legs the reach left (m), that of the reference
 * (m), the cosine of the wrist's middle angle. {name}_next returns the flags:
 * 1 no pose found, 2 jumped, 4 S singular, 8 reference out of reach, 16 a leg singular, 32 not finite,
 * 64 the reference's Euler parameters are not of length 1.
 * With a flag, tau holds the torques of the step before. For one thread. */
static const double {name}_home[7] = {{{home}}};
static const double {name}_gains[13] = {{{numbers}}};
static double {name}_state[{STATE}];
static double {name}_room[{name}_WORK];

void {name}_start(const double *pose)
{{
    for (int k = 0; k < {STATE}; ++k)
        {name}_state[k] = k < 7 ? (pose ? pose[k] : {name}_home[k]) : 0.0;
}}

int {name}_next(const double *theta, const double *rate, const double *reference, double *tau, double *report)
{{
    double state[{STATE}];
    {name}(theta, rate, {name}_state, reference, {name}_gains, tau, state, report, {name}_room);
    for (int k = 0; k < {STATE}; ++k)
        {name}_state[k] = state[k];
    return (int)report[0];
}}
"""
