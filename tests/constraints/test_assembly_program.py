"""Assembly as one program leads where the rounds from Python lead, and leaves to them what needs more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, Floats, four_bar, geared_wheels
from coupled_mechanisms import draw
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.tree_bodies import assembled, coordinates
from linkwright.errors import AssemblyError
from redundant_linkages import bennett_rows, loop
from rotation import some


def from_python(mech: lw.Mechanism, guess: Floats, t: float) -> Floats:
    """The nearest assembled q by rounds that are called from Python."""
    return coordinates(mech.tree, assembled(mech.tree, guess, [], t, None).q, guess)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_program_leads_where_rounds_from_python_lead(name: str) -> None:
    mech, rng = MECHANISMS[name](), np.random.default_rng(2)
    drawn = mech.assemble(t=0.1)
    for far in (0.0, 0.05, 0.4):
        guess = mech.integrate(drawn, far * rng.normal(size=mech.nv) * mech.programs.rate_units)
        q = mech.auxiliary.assembler.coordinates(guess, 0.1)
        assert q is not None
        assert q == pytest.approx(from_python(mech, guess, 0.1), rel=1e-11, abs=1e-11)


#: Random mechanisms that have no screws, and without their gears can be assembled at 0.3 s.
PLAIN = (2, 6, 9, 13, 15, 17, 27, 32, 42, 49, 50, 55, 56, 57)


@pytest.mark.parametrize("seed", some(PLAIN, 4))
def test_random_mechanisms_are_assembled_alike(seed: int) -> None:
    mech = lw.Mechanism(replace(draw(seed).mech.description, mimics=()))
    drawn = mech.assemble(t=0.3)
    step = 0.05 * np.random.default_rng(seed).normal(size=mech.nv) * mech.programs.rate_units
    guess = mech.integrate(drawn, step)
    q = mech.auxiliary.assembler.coordinates(guess, 0.3)
    assert q is not None
    assert q == pytest.approx(from_python(mech, guess, 0.3), rel=1e-10, abs=1e-10)


def test_a_redundant_linkage_in_space_is_assembled_alike() -> None:
    mech = loop("bennett", bennett_rows(0.4, 0.6, 1.1))
    guess = np.array([1.4, -3.7, -1.4])
    q = mech.auxiliary.assembler.coordinates(guess, 0.0)
    assert q is not None
    assert q == pytest.approx(from_python(mech, guess, 0.0), rel=1e-9, abs=1e-9)


def test_turns_of_a_guess_are_kept() -> None:
    mech = four_bar()
    q = mech.assemble()
    turned = q + 2.0 * np.pi * np.array([3.0, -1.0, 0.0])
    assert mech.assemble(turned) == pytest.approx(turned, abs=1e-10)


def test_a_warm_assembly_does_not_come_to_the_rounds_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = four_bar(drive=True)
    q = mech.assemble(t=0.2)
    asked: list[object] = []
    monkeypatch.setattr(Kinematics, "assemble", lambda *x: asked.append(x))
    assert mech.assemble(q, t=0.2) == pytest.approx(q, abs=1e-12)
    assert not asked


def test_gears_and_joints_that_are_fixed_take_the_rounds_from_python() -> None:
    assert geared_wheels(loop=True).auxiliary.assembler.coordinates(np.zeros(3), 0.0) is None
    mech = four_bar()
    q = mech.assemble()
    q[mech.joints["A"].q_slice] += 0.1
    assert mech.assemble(q, fixed=["A"])[0] == pytest.approx(q[0], abs=1e-12)


def test_what_cannot_be_assembled_is_told_as_ever() -> None:
    with lw.Builder("short") as b:
        one, two = (b.body(n, 1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.2)) for n in "ab")
        b.joint("revolute", b.ground, one, "A")
        b.joint("revolute", b.triad(b.ground, (5, 0, 0)), b.triad(two), "D")
        b.joint("revolute", b.triad(one, (1, 0, 0)), b.triad(two, (1, 0, 0)), "C", cut=True)
    mech = b.build()
    assert mech.auxiliary.assembler.coordinates(np.zeros(2), 0.0) is None
    with pytest.raises(AssemblyError, match="cannot be assembled"):
        mech.assemble()
