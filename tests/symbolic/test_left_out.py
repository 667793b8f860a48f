"""Forces that closed forms do not have are told wherever the formulas go."""

from __future__ import annotations

import pytest

import linkwright as lw

NAMES = ("force 'tether'", "wrench 'wind'")


@pytest.fixture(scope="module")
def eq() -> lw.Equations:
    with lw.Builder("kite") as b:
        arm = b.body("arm", b.parameter("m", 2.0), (0, 0, -0.5), (0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, arm, "pivot", axis=(0, 1, 0))
        post, tip = b.triad(b.ground, (1.0, 0, 0), name="post"), b.triad(arm, (0, 0, -1.0), name="tip")
        b.spring(post, tip, 5.0, 1.0, name="tether")
        b.applied_wrench(arm, (1.0, 0, 0), name="wind")
    return lw.equations(b.build())


@pytest.mark.parametrize("form", ["collected", "recursive"])
@pytest.mark.parametrize("language", ["latex", "python", "c", "markdown", "html"])
def test_every_printer_names_them(eq: lw.Equations, language: str, form: str) -> None:
    written = getattr(eq, language)(form)
    for name in ("tether", "wind"):
        assert name in written
    assert ("Not in these equations" in written) is (form == "collected")
    assert ("which the closed forms do not have" in written) is (form == "recursive")


def test_equilibria_say_that_they_are_without_them(eq: lw.Equations) -> None:
    found = eq.equilibria()
    assert len(found) == 2
    for text in (found.notes[0], str(found)):
        assert all(name in text for name in NAMES)
    assert "mech.equilibrium(q0) counts every force" in found.notes[0]


def test_a_linear_model_says_that_it_is_without_them(eq: lw.Equations) -> None:
    linear = eq.linearise({"q1": 0})
    for text in (linear.notes[0], str(linear)):
        assert all(name in text for name in NAMES)


def test_steps_say_that_they_have_them_where_they_do(eq: lw.Equations) -> None:
    assert eq.recursive().notes[0] == f"With {', '.join(NAMES)}, which the closed forms do not have."
    assert not any("closed forms" in note for note in eq.recursive("mass_matrix").notes)


def test_nothing_is_told_where_every_force_is_in_them() -> None:
    eq = lw.equations(lw.chain(2))
    assert eq.linearise().notes == ()
    assert not any("Without" in note for note in eq.equilibria().notes)
