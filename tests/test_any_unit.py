"""Mechanisms in other units of length, mass and time: what has no unit is the same, by every analysis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError
from rotation import some
from scaled_models import scaled
from unit_family import Asked, Unit, family

FOLDER = Path(__file__).parents[1] / "examples" / "models"
MODELS = sorted(path.name for path in FOLDER.iterdir())
#: Those whose programs compile in a few seconds.
SMALL = ["four_bar.mks", "four_bar.xml", "three_link.dh.toml", "double_four_bar.mks", "slider_crank.mks", "rssr.mks"]
CORNERS = [(1e-6, 1e-9), (1e-6, 1e9), (1e6, 1e-9), (1e6, 1e9)]
LONG = 12  # bodies beyond which the programs of dynamics are minutes in compiling: kinematics alone
TIMES = np.linspace(0.0, 0.4, 5)
CLOSE = 1e-6
#: What is less than this, of a length, an angle, or one of these a second, is rounding.
NOTHING = 1e-3


@cache
def model(name: str) -> lw.Mechanism:
    """An example with a mass and an inertia for bodies that have none, so that all of it can move."""
    mech = lw.load(FOLDER / name)
    d = mech.description
    none = d.mass <= 0.0
    if not none.any():
        return mech
    inertia = np.where(none[:, None], np.array([0.1, 0.1, 0.1, 0.0, 0.0, 0.0]) * d.length_scale**2, d.inertia)
    return lw.Mechanism(replace(d, mass=np.where(none, 1.0, d.mass), inertia=inertia, bindings={}))


def answers(name: str, length: float, mass: float) -> dict[str, Any]:
    """What each analysis gives, without units; what it refuses, by the kind of error."""
    mech = scaled(model(name), length, mass)
    long_q, long_v = mech.tree.shifts
    q_unit, v_unit = np.where(long_q, length, 1.0), np.where(long_v, length, 1.0)
    force, torque = mass * length, mass * length**2
    bodies = [body.name for body in mech.bodies]

    def analyse() -> Any:
        sol = lw.analyse(mech, times=TIMES)
        shifted = [getattr(sol, x)(b) / length for x in ("position", "velocity", "acceleration") for b in bodies]
        turned = [getattr(sol, x)(b) for x in ("angular_velocity", "angular_acceleration") for b in bodies]
        return np.array([*shifted, *turned])

    def simulate() -> Any:
        sol = lw.simulate(mech, TIMES[-1], saving=lw.Saving(times=TIMES))
        assert sol.status, sol.status
        return np.concatenate([sol.q / q_unit, sol.v / v_unit], axis=1)

    q, v = mech.initial_state()
    tau = np.random.default_rng(0).normal(size=mech.nv) * np.where(long_v, force, torque)
    asked: dict[str, Callable[[], Any]] = {
        "analyse": analyse,
        "assemble": lambda: mech.assemble() / q_unit,
        "initial state": lambda: np.concatenate([q / q_unit, v / v_unit]),
        "simulate": simulate,
        "equilibrium": lambda: mech.equilibrium().q / q_unit,
        "linearise": lambda: np.poly(mech.linearise(q, v, tau).eigenvalues).real,
        "reactions": lambda: mech.reactions(q, v, tau) / np.repeat([force, torque], 3),
    }
    if mech.nb > LONG:
        asked = {what: asked[what] for what in ("analyse", "assemble", "initial state")}
    found: dict[str, Any] = {}
    for what, ask in asked.items():
        try:
            found[what] = ask()
        except LinkwrightError as error:
            found[what] = type(error)
    return found


@cache
def in_metres(name: str) -> dict[str, Any]:
    return answers(name, 1.0, 1.0)


def check(name: str, length: float, mass: float) -> None:
    one, other = in_metres(name), answers(name, length, mass)
    for what, wanted in one.items():
        if isinstance(wanted, type):
            assert other[what] is wanted, what
        else:
            assert not isinstance(other[what], type), (what, other[what])
            allowed = CLOSE * max(NOTHING, float(np.abs(wanted).max(initial=0.0)))
            np.testing.assert_allclose(other[what], wanted, rtol=CLOSE, atol=allowed, err_msg=what)


@pytest.mark.parametrize(("name", "length", "mass"), some([(n, *c) for n in SMALL for c in CORNERS], 2))
def test_small_examples_move_alike_in_every_unit(name: str, length: float, mass: float) -> None:
    check(name, length, mass)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_example_moves_alike_in_every_unit(name: str) -> None:
    """At two opposite corners, by this run's seed; at one of them for models whose programs are long in compiling."""
    first = some([0, 1, 2, 3], 1)[0]
    corners = (CORNERS[first], CORNERS[-1 - first])
    for length, mass in corners[:1] if model(name).nb > 9 else corners:
        check(name, length, mass)


# -- small mechanisms of every sort, far smaller, larger, lighter, faster and slower --------------------------------
#: Times are no round numbers, lest a driver's rate looks like degrees.
UNITS = [
    *(Unit(length=x) for x in (1e-9, 1e-6, 1e6, 1e9)),
    *(Unit(mass=x) for x in (1e-12, 1e12)),
    *(Unit(time=x) for x in (1.7e-3, 3.1e6)),
    *(Unit(1e-9, 1e-12, 1.7e-3), Unit(1e9, 1e12, 3.1e6), Unit(1e-9, 1e12, 3.1e6), Unit(1e9, 1e-12, 1.7e-3)),
]
DRIVEN = ("driven slider-crank", "driven tree", "cam and roller")
STOPPED = ("drivers that contradict", "a slide out of reach", "a law that jumps", "a law with a corner")
FREE = ("geared slider-crank", "slider-crank", "tree with springs")
QUESTIONS = {
    **dict.fromkeys(DRIVEN, ("kinematic", "analyse", "reactions", "dynamics", "equilibrium", "linearise")),
    **dict.fromkeys(FREE, ("analyse", "assemble", "state", "reactions", "dynamics", "equilibrium", "linearise")),
    "rubbing pendulum": ("analyse", "assemble", "state", "reactions", "dynamics", "equilibrium"),
    "carriage": ("equilibrium", "equilibria", "linearise", "simulate"),
    **dict.fromkeys(STOPPED, ("kinematic",)),
}
FAMILY = [(name, unit) for name in QUESTIONS for unit in UNITS]


def agree(one: Any, other: Any, about: str) -> None:
    """Numbers to `CLOSE` of the largest of their kind, and words as they are."""
    if isinstance(one, dict):
        for key, value in one.items():
            agree(value, other[key], f"{about}: {key}")
    elif isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray), (about, other)
        allowed = CLOSE * max(NOTHING, float(np.abs(one).max(initial=0.0)))
        np.testing.assert_allclose(other, one, rtol=0.0, atol=allowed, err_msg=about)
    else:
        assert one == other, about


@cache
def in_si(name: str) -> dict[str, Any]:
    asked = Asked(family(name), Unit())
    found = {question: getattr(asked, question)() for question in QUESTIONS[name]}
    assert not any(isinstance(answer, type) for answer in found.values()), found
    return found


@pytest.mark.parametrize(("name", "unit"), some(FAMILY, 4), ids=str)
def test_small_mechanisms_answer_alike_in_units_far_from_si(name: str, unit: Unit) -> None:
    """Motion, forces, messages, rest and modes: 1e-9 … 1e9 m, 1e-12 … 1e12 kg, 1e-3 … 1e6 s."""
    asked = Asked(family(name), unit)
    for question, wanted in in_si(name).items():
        agree(wanted, getattr(asked, question)(), f"{question} in {unit}")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_small_mechanism_answers_alike_in_every_unit(name: str) -> None:
    for unit in UNITS:
        test_small_mechanisms_answer_alike_in_units_far_from_si(name, unit)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(40), 2))
def test_random_geared_mechanisms_answer_alike_in_every_unit(seed: int) -> None:
    """Kinematics and reactions of the mechanisms of `coupled_mechanisms`: gears, ties, screws, loops in space."""
    units = [Unit(), *some(UNITS[-4:], 1)]
    one, other = (Asked(family(str(seed)), unit) for unit in units)
    for question in ("kinematic", "assemble", "state", "reactions"):
        agree(getattr(one, question)(), getattr(other, question)(), f"{question} of {seed} in {units[1]}")
