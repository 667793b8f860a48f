"""What a prompt, `print` and a notebook show of equations and what is made of them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import linkwright as lw
from linkwright.symbolic.formulas.formula import Block, Sum

MODEL = Path(__file__).parents[2] / "examples" / "models" / "three_link.dh.toml"


@pytest.fixture(scope="module")
def eq() -> lw.Equations:
    return lw.equations(MODEL)


def test_a_formula_is_printed_as_text(eq: lw.Equations) -> None:
    assert str(eq.base.relations["mx2R"]) == "mx2 + l2*m3"
    assert str(Sum()) == "0"


def test_a_block_is_printed_entry_by_entry(eq: lw.Equations) -> None:
    lines = str(eq.block("M")).splitlines()
    assert [line.split(" = ")[0] for line in lines] == ["M11", "M12", "M13", "M22", "M23", "M33"]
    assert lines[-1] == "M33 = lg3^2*m3"
    assert str(eq.block("g")).startswith("g1 = 0\ng2 = ")
    assert str(eq.block("potential_energy")).startswith("potential_energy = ")


def test_the_upper_half_of_a_large_symmetric_matrix_is_printed_once() -> None:
    lines = str(Block("M", (12, 12), (Sum(),) * 144, symmetric=True)).splitlines()
    assert len(lines) == 12 * 13 // 2
    assert "M1,12 = 0" in lines
    assert not any(line.startswith("M12,1 ") for line in lines)


def test_base_parameters_are_printed_as_a_list(eq: lw.Equations) -> None:
    lines = str(eq.base).splitlines()
    assert lines[0] == "15 base parameters of 30 inertial ones"
    assert "  mx2R = mx2 + l2*m3" in lines
    assert lines[-1].startswith("without influence: m1, ")


def test_a_prompt_shows_one_line_that_says_what_it_is(eq: lw.Equations) -> None:
    shown = [eq.block("M"), eq.regressor, eq.base, eq.linearise(), eq.recursive(), eq.equilibria()]
    assert [repr(x) for x in shown] == [
        "<Block M: 3 × 3 formulas>",
        "<Regressor of 'three links': Y has 3 rows and 30 columns>",
        "<BaseParameters of 'three links': 15 in place of 30 inertial ones, exact>",
        "<Linearisation of 'three links' along any motion: 3 coordinates, 6 states>",
        f"<Recursive inverse_dynamics of 'three links': {len(list(eq.recursive()))} steps, {eq.recursive().count}>",
        "<Equilibria: 4 points, 4 exact, 3 unstable, 1 neutral>",
    ]


def test_a_notebook_draws_what_is_short(eq: lw.Equations) -> None:
    for x in (eq, eq.block("M"), eq.base):
        made = ElementTree.fromstring(f"<body>{x._repr_html_()}</body>")
        assert list(made.iter("math"))
        assert len(list(made.iter("msub"))) > 2
    assert len(list(ElementTree.fromstring(eq.equilibria()._repr_html_()).iter("tr"))) == 5
    for latex in (eq._repr_latex_(), eq.block("h")._repr_latex_(), eq.base.relations["mx2R"]._repr_latex_()):
        assert latex is not None
        assert latex.startswith(r"$\displaystyle ")


def test_a_notebook_draws_a_linear_model_and_says_a_state_of_rest(eq: lw.Equations) -> None:
    rest = eq.equilibria()[0]
    assert rest._repr_html_() == "<p>q1 = any, q2 = pi/2, q3 = 0: unstable, 2 modes grow</p>"
    made = ElementTree.fromstring(rest.linearised()._repr_html_())
    assert {"𝑴", "𝑲"} <= {x.text for x in made.iter("mi")}
    assert "<math" not in lw.equations(lw.chain(4)).linearise()._repr_html_()


def test_a_notebook_says_in_a_line_what_is_long() -> None:
    long = lw.equations(lw.chain(4), literal="inertial")
    for x in (long, long.block("M")):
        assert "<math" not in x._repr_html_()
    assert long._repr_html_().startswith("<div><p>Equations of ")
    assert long._repr_latex_() is None
    assert long.block("M")._repr_latex_() is None


def test_names_from_files_are_no_markup_in_a_notebook() -> None:
    with lw.Builder("<b>arm</b>") as b:
        b.joint("revolute", b.ground, b.body("bob", 1.0, (0, 0, -1.0)), axis=(0, 1, 0))
    assert "<b>" not in lw.equations(b.build())._repr_html_()
