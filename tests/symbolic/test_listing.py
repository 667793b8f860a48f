"""The recursive form as texts: LaTeX, Markdown and a web page by the printers of all forms."""

import pytest
from pages import Reader

import linkwright as lw
from linkwright.mechanism import Mechanism
from linkwright.symbolic.printing.printed_sheet import RECURSIONS
from linkwright.symbolic.recursive.recursive_form import recursive


def scara() -> Mechanism:
    rows = [
        {"a": "l1", "alpha": 0.0, "d": 0.1, "theta": 0.0, "mass": "m1", "com": ("x1", 0.0, 0.0)},
        {"a": "θ", "alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": 1.5, "com": (0.1, "q", 0.0)},
        {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "kind": "prismatic", "mass": "p", "com": (0.0, 0.0, 0.2)},
    ]
    values = {"l1": 0.4, "m1": 2.0, "x1": -0.2, "θ": 0.3, "q": 0.05, "p": 0.7}
    return lw.from_dh(rows, convention="standard", parameters=values)


@pytest.mark.parametrize("quantity", RECURSIONS)
def test_the_web_page_has_every_step_and_the_symbols(quantity: str) -> None:
    form = recursive(scara(), quantity)
    page = form.html()
    read = Reader(page)
    assert {link.removeprefix("#") for link in read.links} == read.targets
    known = {step.symbol for step in form.steps}
    other = {s for s, x in zip(form.names, form.steps.results, strict=True) if s not in known and s != x}
    zeros = {s for s, x in zip(form.names, form.steps.results, strict=True) if x == 0.0 and len(form.shape) == 2}
    assert page.count('<div class="entry') == len(known) + len(other - zeros)
    assert form.cost[0] in page
    assert all(f"<code>{name}</code>" in page for name in form.parameters)


def test_the_page_of_equations_in_steps_is_that_of_the_steps() -> None:
    eq = lw.equations(scara())
    assert eq.html("recursive") == eq.recursive().html()


def test_names_are_written_as_in_the_other_forms() -> None:
    rows = [{"a": "lg2", "alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": "m_arm", "com": (0.1, 0.0, 0.0)}]
    mech = lw.from_dh(rows, convention="standard", parameters={"lg2": 0.3, "m_arm": 1.0})
    for text in (recursive(mech).latex(), recursive(mech).markdown()):
        assert "l_{g2}" in text
        assert r"m_{\mathrm{arm}}" in text


def test_zeros_of_a_matrix_go_without_saying_and_are_told() -> None:
    text = recursive(scara(), "mass_matrix").latex(document=True)
    assert "M_{13}" not in text
    assert "Entries of M that are not listed are zero." in text


def test_entries_beyond_nine_have_a_comma() -> None:
    assert "M_{10,11}" in recursive(lw.random_tree(12, 1), "mass_matrix", free=()).latex()


def test_what_turns_by_euler_parameters_says_so() -> None:
    with lw.Builder("ball") as b:
        arm = b.body("arm", 1.0, (0.1, 0.0, 0.2), (0.1, 0.1, 0.1))
        b.joint("spherical", b.ground, arm, "ball")
    form = recursive(b.build(), "inverse_dynamics", coordinates="theta")
    (note,) = [n for n in form.notes if "Euler" in n]
    assert "last four theta" in note
    assert "dtheta are velocities in the body's frame" in note
    assert "yaw, pitch and roll" in note
    for text in (form.python(), form.c(), form.latex(document=True), form.markdown(), form.html()):
        assert "Euler parameters" in text


def test_plain_text_has_a_line_for_each_step_and_result() -> None:
    form = recursive(scara())
    lines = form.text().splitlines()
    for symbol in [*(step.symbol for step in form.steps), *form.names]:
        assert sum(line.startswith(f"  {symbol.name} = ") for line in lines) == 1
    assert lines[0].endswith(form.cost[-1])


def test_one_of_a_kind_is_in_the_singular() -> None:
    mech = lw.from_dh([{"mass": 1.0, "damping": 0.1}], gravity=(0, 0, 0))
    eq = lw.equations(mech)
    assert repr(eq) == "<Equations of 'DH table': 1 coordinate, 0 terms>"
    assert ": 1 list of 1. No operations." in eq.python()
    assert eq.recursive().cost == ("1 operation: 1 multiplication.",)
    assert "0.1*dq1" in eq.recursive().text()
