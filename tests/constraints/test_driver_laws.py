"""Laws that have no finite value at a time: every verb refuses by name, and none with an error of Python's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.cli.app import run
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.model.expression import TIME, Name, Number, numeric_values

HINGE = """MODEL hinge
SYSTEM ({kind} ANALYSIS, ending time = 0.1, print interval = 0.05);
PARAMETER L = 1;
BODY g (ground);
BODY rod (mass = 1, com = (1, 0, 0), inertia = (0.1, 0.1, 0.1));
REVOLUTE JOINT hinge (triad = g, triad = rod);
{rest}
ENDMODEL
"""
DRIVER = "DRIVER d (hinge.angle = {});"
#: Division, roots, powers, logarithms and what grows beyond numbers; of parameters alone, too.
LAWS = [
    "1/TIME",
    "log(TIME)",
    "(TIME - 1)**0.5",
    "sqrt(TIME - 1)",
    "TIME**(-0.5)",
    "exp(1e6*(1 - TIME))",
    "TIME/(L - 1)",
    "(L - 2)**0.5*TIME",
    "step(TIME, L - 1, 0, 0, 1)",
]
VERBS: dict[str, Callable[[lw.Mechanism], Any]] = {
    "assemble": lambda mech: mech.assemble(),
    "project": lambda mech: mech.project([0.1]),
    "project a batch": lambda mech: mech.project([[0.1], [0.2]], t=[1.0, 0.0]),
    "initial_state": lambda mech: mech.initial_state(),
    "linearise": lambda mech: mech.linearise([0.0]),
    "equilibrium": lambda mech: mech.equilibrium(),
    "analyse": lambda mech: lw.analyse(mech, analysis="kinematic", times=[0.0, 0.1]),
    "simulate": lambda mech: lw.simulate(mech, 0.1),
}


def hinge(rest: str, kind: str = "DYNAMIC") -> lw.Mechanism:
    return lw.Mechanism(parse_mks(HINGE.format(rest=rest, kind=kind)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_driver_whose_law_has_no_value_is_named_by_every_verb(verb: str, law: str) -> None:
    with pytest.raises(ModelError, match=r"the law of driver 'd' has no finite value at t = [01]; change the law"):
        VERBS[verb](hinge(DRIVER.format(law)))


@pytest.mark.parametrize("kind", ["KINEMATIC", "DYNAMIC", "INVERSE DYNAMIC", "STATIC"])
@pytest.mark.parametrize("law", ["1/TIME", "log(TIME)", "(TIME - 1)**0.5"])
def test_check_refuses_what_run_refuses_without_a_warning_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, law: str
) -> None:
    file = tmp_path / "hinge.mks"
    file.write_text(HINGE.format(rest=DRIVER.format(law), kind=kind))
    for verb in ("check", "run"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            assert run([verb, str(file)]) == 1
        assert "the law of driver 'd' has no finite value at t = 0" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("law", ["TIME/(L - 1)", "1/(L - 1)", "(L - 2)**0.5 + TIME", "1/TIME"])
def test_a_force_whose_law_has_no_value_is_named(law: str) -> None:
    with pytest.raises(ModelError, match="the law of force 't' has no finite value at the start"):
        lw.simulate(hinge(f"TORQUE t (joint = hinge, law = {law});"), 0.1)


def test_a_branch_that_is_not_taken_may_divide_by_zero() -> None:
    mech = hinge("TORQUE t (joint = hinge, law = if(L > 1, TIME/(L - 1), 3));")
    assert mech.forward_dynamics([0.0], [0.0], [0.0]) == pytest.approx([3 / 1.1])


def test_values_of_an_expression_are_those_of_floating_point_arithmetic() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numeric_values(1 / TIME, {"TIME": 0.0}) == np.inf
        assert np.isnan(numeric_values(Number(0.0) / Number(0.0), {}))
        assert np.isnan(numeric_values(Name("x") ** 0.5, {"x": -1.0}))
        assert numeric_values(Name("x") ** 2, {"x": 1e200}) == np.inf
        assert numeric_values(1 / TIME, {"TIME": np.array([0.0, 2.0])}).tolist() == [np.inf, 0.5]


def test_an_angle_that_no_float_holds_in_degrees_is_an_angle() -> None:
    assert hinge("INITIAL (hinge.angle = 1e308);").initial_state()[0] == pytest.approx([1e308])


#: Numbers whose quotients, squares or turns no float holds: they come to least squares and eigenvalues as NaN.
EXTREME = {
    "a rate that is infinite": "DRIVER d (hinge.angle = TIME/(TIME - 1e-320)); INITIAL (wrist.angle = 1);",
    "turns beyond number": "DRIVER d (hinge.angle = 0); INITIAL (wrist.angle = -1e308); "
    "GEAR g2 (joint = wrist, joint = hinge, ratio = -2);",
    "a mass beyond number": "TORQUE t (joint = wrist, law = 0.5); INITIAL (wrist.angle = -1e308);",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["KINEMATIC", "DYNAMIC", "INVERSE DYNAMIC", "STATIC"])
@pytest.mark.parametrize("what", EXTREME)
def test_numbers_beyond_arithmetic_end_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, kind: str
) -> None:
    wrist = "BODY hand (mass = 1e200, inertia = (1, 1, 1)); REVOLUTE JOINT wrist (triad = rod, triad = hand);"
    file = tmp_path / "arm.mks"
    file.write_text(HINGE.format(rest=wrist + EXTREME[what], kind=kind))
    for words in (["check", str(file)], ["run", str(file), "-o", str(tmp_path / "out")]):
        code = run(words)  # it raises nothing
        assert code == 0 or "error: " in capsys.readouterr().err
