"""Paper 4's arm of three links, term by term as texts in the order of `linkwright.symbolic.formulas.polynomial_forms`.

The paper gathers terms by l2; here they are multiplied out, and in each the factors stand as number, parameters by
name, rates, cosine or sine.
"""

from pathlib import Path

import pytest
import sympy

import linkwright as lw
from linkwright.symbolic.equations_of_motion import Equations

MODEL = Path(__file__).parents[2] / "examples/models/three_link.dh.toml"

#: As printed in section 4 of the paper.
PRINTED = {
    ("M", 1, 1): [
        "1/2*l2^2*m3",
        "1/2*lg2^2*m2",
        "1/2*lg3^2*m3",
        "1/2*l2^2*m3*cos(2*theta2)",
        "1/2*lg2^2*m2*cos(2*theta2)",
        "l2*lg3*m3*cos(theta3)",
        "l2*lg3*m3*cos(2*theta2 + theta3)",
        "1/2*lg3^2*m3*cos(2*(theta2 + theta3))",
    ],
    ("M", 1, 2): [],
    ("M", 1, 3): [],
    ("M", 2, 2): ["l2^2*m3", "lg2^2*m2", "lg3^2*m3", "2*l2*lg3*m3*cos(theta3)"],
    ("M", 2, 3): ["lg3^2*m3", "l2*lg3*m3*cos(theta3)"],
    ("M", 3, 3): ["lg3^2*m3"],
    ("h", 1): [
        "-l2^2*m3*dtheta1*dtheta2*sin(2*theta2)",
        "-lg2^2*m2*dtheta1*dtheta2*sin(2*theta2)",
        "-2*l2*lg3*m3*dtheta1*dtheta2*sin(2*theta2 + theta3)",
        "-lg3^2*m3*dtheta1*dtheta2*sin(2*(theta2 + theta3))",
        "-l2*lg3*m3*dtheta1*dtheta3*sin(theta3)",
        "-l2*lg3*m3*dtheta1*dtheta3*sin(2*theta2 + theta3)",
        "-lg3^2*m3*dtheta1*dtheta3*sin(2*(theta2 + theta3))",
    ],
    ("h", 2): [
        "-2*l2*lg3*m3*dtheta2*dtheta3*sin(theta3)",
        "1/2*l2^2*m3*dtheta3^2*sin(2*theta2)",
        "1/2*lg2^2*m2*dtheta3^2*sin(2*theta2)",
        "l2*lg3*m3*dtheta3^2*sin(2*theta2 + theta3)",
        "1/2*lg3^2*m3*dtheta3^2*sin(2*(theta2 + theta3))",
    ],
    ("h", 3): [
        "1/2*l2*lg3*m3*dtheta1^2*sin(theta3)",
        "1/2*l2*lg3*m3*dtheta1^2*sin(2*theta2 + theta3)",
        "1/2*lg3^2*m3*dtheta1^2*sin(2*(theta2 + theta3))",
        "l2*lg3*m3*dtheta2^2*sin(theta3)",
    ],
    ("g", 1): [],
    ("g", 2): ["g*lg2*m2*cos(theta2)", "g*lg3*m3*cos(theta2 + theta3)"],
    ("g", 3): ["g*lg3*m3*cos(theta2 + theta3)"],
}
#: Where the paper is wrong, and what is right.
RIGHT = {
    ("h", 2): [
        "1/2*l2^2*m3*dtheta1^2*sin(2*theta2)",
        "1/2*lg2^2*m2*dtheta1^2*sin(2*theta2)",
        "l2*lg3*m3*dtheta1^2*sin(2*theta2 + theta3)",
        "1/2*lg3^2*m3*dtheta1^2*sin(2*(theta2 + theta3))",
        "-2*l2*lg3*m3*dtheta2*dtheta3*sin(theta3)",
        "-l2*lg3*m3*dtheta3^2*sin(theta3)",
    ],
    ("g", 2): ["g*l2*m3*cos(theta2)", "g*lg2*m2*cos(theta2)", "g*lg3*m3*cos(theta2 + theta3)"],
}


@pytest.fixture(scope="module")
def arm() -> Equations:
    return lw.equations(MODEL, coordinates="theta")


@pytest.mark.parametrize("place", PRINTED, ids=lambda p: "".join(map(str, p)))
def test_each_entry_has_the_printed_terms_or_their_correction(arm, place):
    assert arm.terms(place[0], *place[1:]) == RIGHT.get(place, PRINTED[place])


def test_viscous_friction_is_a_diagonal_matrix_times_the_rates(arm):
    assert [arm.terms("friction", k) for k in (1, 2, 3)] == [["V1*dtheta1"], ["V2*dtheta2"], ["V3*dtheta3"]]


def test_the_printed_g2_is_what_centres_with_the_homogeneous_coordinate_0_give(arm):
    # The program of the paper writes the centres as (x, y, z, 0): T then turns them and does not move them, and what
    # frames are apart, l2 here, is lost.
    d = arm.derivation.dynamics
    g = d.algebra.vector(d.model.gravity)
    lost = d.ring.zero
    for mass, t in zip(d.masses, d.transforms, strict=True):
        turned = [d.ring.reduced(sum(r * c for r, c in zip(row[:3], mass.mc, strict=True))) for row in t]
        lost = lost - sum(a * b for a, b in zip(g, turned, strict=True))
    made = arm._forms.collected(d.ring.derivative(d.ring.reduced(lost), 1))
    assert _values(made) == _sum(PRINTED["g", 2])


def test_the_printed_h2_makes_power_out_of_nothing(arm):
    # q̇ᵀ(½ Ṁ q̇ − h) = 0 for every motion. The paper's h2 has dθ3² where dθ1² belongs, and lacks −l2 lg3 m3 sin θ3 dθ3².
    q, dq = list(arm.q), list(arm.dq)
    change = sum((arm.M.diff(x) * v for x, v in zip(q, dq, strict=True)), sympy.zeros(3))
    parameters = map(sympy.Symbol, ("l2", "lg2", "lg3", "m2", "m3"))
    point = {s: sympy.Rational(k + 2, 7) for k, s in enumerate([*q, *dq, *parameters])}

    def power(h):
        return sympy.N((arm.dq.T * (change * arm.dq / 2 - h))[0].subs(point), 30, chop=True)

    printed = arm.h.copy()
    printed[1] = _sum(PRINTED["h", 2])
    assert abs(power(arm.h)) < 1e-25
    assert abs(power(printed)) > 1e-3
    mended = printed[1].subs(sympy.Symbol("dtheta3") ** 2, sympy.Symbol("dtheta1") ** 2)
    mended -= sympy.sympify("l2*lg3*m3*dtheta3**2*sin(theta3)")
    assert sympy.expand(mended - arm.h[1], trig=False).subs(point).evalf(30, chop=True) == pytest.approx(0, abs=1e-25)


def test_the_paper_program_tilts_the_second_axis_the_other_way():
    # α = −π/2 in the program, 90° in the table; with the first, turning θ2 lowers the arm and gravity's forces change
    # their sign, and the printed g has the sign of the table.
    rows = [
        {"mass": "m1", "com": (0, 0, "lg1")},
        {"alpha": -sympy.pi / 2, "mass": "m2", "com": ("lg2", 0, 0)},
        {"a": "l2", "mass": "m3", "com": ("lg3", 0, 0)},
    ]
    other = lw.equations(lw.from_dh(rows, "modified", gravity=(0, 0, "-g")), coordinates="theta")
    assert other.terms("g", 3) == ["-g*lg3*m3*cos(theta2 + theta3)"]


def _sum(terms: list[str]) -> sympy.Expr:
    return sum((sympy.sympify(t.replace("^", "**")) for t in terms), sympy.Integer(0))


def _values(formula) -> sympy.Expr:
    from linkwright.symbolic.printing.sympy_out import to_sympy

    return to_sympy(formula)
