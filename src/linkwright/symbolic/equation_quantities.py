"""The quantities of the equations of motion, one row each: what they are, how they are written, how they are computed.

Forms, printers and recursions read this table. The programs that it names are rows of `dynamics.functions`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """A row of the table. The vectors q, q̇, q̈ are counted by their dots: 0, 1, 2."""

    heading: str
    symbol: str = ""  # the name by which formulas write it; "" is the quantity's own name
    of: tuple[int, ...] = (0,)  # the vectors that it depends on
    times: int | None = None  # the vector that it multiplies in the equation of motion
    recursion: str = ""  # the name of its recursive form
    program: str = ""  # the function of the mechanism that the recursive form is the program of
    meaning: str = ""  # what the recursive form computes, as the beginning of a sentence


QUANTITIES = {
    "F": Quantity(
        "Driving forces",
        recursion="inverse_dynamics",
        program="inverse_dynamics",
        meaning="The joint forces F that the accelerations need",
    ),
    "ddq": Quantity(
        "Accelerations",
        recursion="forward_dynamics",
        program="forward_dynamics",
        meaning="The accelerations that the joint forces F cause",
    ),
    "M": Quantity("Mass matrix", times=2, recursion="mass_matrix", program="mass_matrix", meaning="The mass matrix M"),
    "C": Quantity("Coriolis and centrifugal matrix", of=(0, 1), times=1),
    "h": Quantity(
        "Coriolis and centrifugal forces",
        of=(0, 1),
        recursion="bias",
        program="bias_forces",
        meaning="The velocity products h, without gravity and force elements",
    ),
    # "f" alone would be taken for the size of Coulomb friction.
    "friction": Quantity("Friction forces", symbol="F_fric", of=(0, 1)),
    "springs": Quantity("Springs", symbol="F_spring"),
    "g": Quantity(
        "Gravity forces",
        recursion="gravity",
        program="gravity_forces",
        meaning="The joint forces g that hold against gravity",
    ),
    "Y": Quantity(
        "Regressor",
        recursion="regressor",
        program="inverse_dynamics",
        meaning="The regressor Y, by which F is linear in the inertial parameters",
    ),
    "kinetic_energy": Quantity("Kinetic energy", symbol="T"),
    "potential_energy": Quantity("Potential energy", symbol="U"),
    "lagrangian": Quantity("Lagrangian", symbol="L"),
}
#: The terms of the equation of motion F + d = M q̈ + h + friction + springs + g, in this order; C q̇ may stand for h.
MOTION = ("M", "h", "C", "friction", "springs", "g")
#: The parts of the equation as they are printed, and those that are printed on request.
PARTS = ("M", "h", "g", "friction", "springs")
MORE = ("C", "kinetic_energy", "potential_energy", "lagrangian")
#: All parts by their length, so that an interruption of the writing leaves the short ones.
SHORTEST_FIRST = ("friction", "springs", "potential_energy", "g", "M", "kinetic_energy", "lagrangian", "h", "C")
#: The letter of each recursive form's results.
RECURSIONS = {row.recursion: letter for letter, row in QUANTITIES.items() if row.recursion}
