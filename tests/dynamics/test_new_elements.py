"""Every newer element at every door: what takes it agrees with an independent answer, what does not says so by name.

A refusal is a LinkwrightError that names the element in words of the language, never by the name of a class.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from formats.same_description import assert_same
from linkwright.errors import LinkwrightError, LinkwrightWarning
from linkwright.formats.mjcf.mjcf_writer import write_mjcf
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.sdf.sdf_writer import write_sdf
from linkwright.formats.urdf_writer import write_urdf
from new_elements import CASES

TIMES = np.linspace(0.0, 0.2, 5)
GEARS = ("spur", "internal", "rack", "bevel", "worm", "belt")
CURVES = ("point on curve", "curve on curve")
LOOPS = ("coupling", *GEARS, *CURVES)
CLASS = re.compile(r"\b[A-Z][a-z]+[A-Z]\w*")
LANGUAGES = {"c": ".c", "cuda": ".cu", "casadi": ".py", "jax": ".py", "sympy": ".py"}
WRITERS: dict[str, Callable[[Any], str]] = {"URDF": write_urdf, "SDF": write_sdf, "MJCF": write_mjcf}
#: The elements that each door refuses; it takes all others.
REFUSED = {
    "equations": (*LOOPS, "drawn in the plane"),
    "inverse_dynamics": (*LOOPS, "drawn in the plane", "friction"),
    "URDF": (*LOOPS, "bushing", "friction", "drawn in the plane"),
    "SDF": (*LOOPS, "bushing", "friction"),
    "MJCF": (*LOOPS, "bushing", "friction"),
}
every_element = pytest.mark.parametrize("name", CASES)
#: Programs of free motions take seconds to compile: those of curves are long, and all kinds of gears have the same.
SELDOM = (*CURVES, *(set(GEARS) - {"rack"}))
compiled = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SELDOM else n for n in CASES]
)


@cache
def driven(name: str) -> lw.Mechanism:
    """The mechanism with its drivers."""
    return lw.Mechanism(parse_mks(CASES[name].text()))


@cache
def free(name: str) -> lw.Mechanism:
    """The mechanism without its drivers."""
    return lw.Mechanism(parse_mks(CASES[name].free.text()))


def place(name: str) -> str:
    """The output of a case without its function: "tappet.y"."""
    return CASES[name].output.partition("(")[2].rstrip(")")


def outcome(sol: Any, name: str) -> float:
    """The output of a case, read from a motion."""
    where, _, axis = place(name).rpartition(".")
    return float(sol.position(where)[-1, "xyz".index(axis)])


def analysed(name: str, value: float) -> float:
    """The output of a case at a value of its parameter, by an analysis of its own."""
    return outcome(lw.analyse(driven(name).with_parameters(p=value)), name)


def refused(name: str, ask: Callable[[], Any]) -> str:
    """The text by which an element is refused, which names it."""
    with pytest.raises(LinkwrightError) as error:
        ask()
    text = str(error.value)
    assert f"'{CASES[name].element or 'c'}'" in text, text
    assert not CLASS.search(re.sub(r"'[^']*'", "", text).replace("TypeError", "")), text
    return text


def asked(door: str, name: str, ask: Callable[[], Any]) -> Any:
    """What a door gives, None where it refuses as it should."""
    if name in REFUSED[door]:
        refused(name, ask)
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        return ask()


@every_element
def test_millimetres_and_degrees_change_no_bit(name: str) -> None:
    si = lw.Mechanism(parse_mks(CASES[name].text(si=True)))
    assert_same(driven(name).description, si.description)
    one, other = lw.analyse(driven(name)), lw.analyse(si)
    assert one.status
    assert other.status
    assert one.series.keys() == other.series.keys()
    for series in one.series:
        assert np.array_equal(one.series[series].values, other.series[series].values), series
    assert np.array_equal(one.q, other.q)


@every_element
def test_a_written_model_is_the_same(name: str, tmp_path: Path) -> None:
    for mech in (driven(name), free(name)):
        file = tmp_path / "m.mks"
        file.write_text(write_mks(mech.description), encoding="utf-8")
        again = lw.load(file)
        assert_same(mech.description, again.description)
        assert again.description.units == mech.description.units


@pytest.mark.parametrize("name", GEARS)
def test_gears_with_larger_teeth_turn_as_they_are_drawn(name: str) -> None:
    """The ratio is that of the teeth, from the position that is drawn, whatever their size."""
    ratios = {"spur": -24 / 18, "internal": 24 / 60, "bevel": -20 / 30, "worm": 1 / 21, "belt": 20 / 40}
    for value in CASES[name].start * np.array([1.0, 1.01, 1.3]):
        mech = driven(name).with_parameters(p=value)
        sol = lw.analyse(mech)
        turn = np.radians(90.0) * sol.time
        assert np.allclose(sol.q, np.column_stack([turn, ratios.get(name, value) * turn]), rtol=0.0, atol=1e-12)
        assert "phase" not in write_mks(mech.description)


@every_element
def test_a_sweep_gives_what_separate_analyses_give(name: str) -> None:
    values = CASES[name].start * np.array([0.99, 1.0, 1.01])
    study = lw.sweep(driven(name), {"p": values.tolist()}, {"y": CASES[name].output})
    separate = [analysed(name, value) for value in values]
    assert np.ptp(separate) > 0.0
    assert np.allclose(study["y"], separate, rtol=1e-9, atol=0.0)


@every_element
def test_derivatives_by_its_parameter_are_those_of_differences(name: str) -> None:
    def ask() -> Any:
        return lw.sensitivities(driven(name), CASES[name].output, "p", times=TIMES)

    if name == "friction":
        refused(name, ask)
        return
    start, step = CASES[name].start, 1e-4 * CASES[name].start
    answer = ask()
    slope = (analysed(name, start + step) - analysed(name, start - step)) / (2.0 * step)
    assert np.allclose(answer.value(), analysed(name, start), rtol=1e-6, atol=0.0)
    assert np.allclose(answer.gradient(), slope, rtol=1e-4, atol=0.0)


@compiled
def test_derivatives_of_a_free_motion_are_those_of_differences(name: str) -> None:
    def ask(value: float = CASES[name].start) -> Any:
        return lw.sensitivities(free(name), CASES[name].output, {"p": value}, times=TIMES)

    if name == "friction":
        refused(name, ask)
        return
    if name in CURVES:
        with pytest.raises(LinkwrightError, match="parameters cannot be free"):
            ask()
        return
    start, step = CASES[name].start, 1e-4 * CASES[name].start
    slope = (ask(start + step).value() - ask(start - step).value()) / (2.0 * step)
    answer = ask()
    assert np.allclose(answer.value(), outcome(lw.analyse(free(name), times=TIMES), name), rtol=1e-7, atol=0.0)
    assert np.allclose(answer.gradient(), slope, rtol=1e-4, atol=0.0)


@every_element
def test_its_parameter_is_found_from_a_motion(name: str) -> None:
    start = CASES[name].start
    where, _, axis = place(name).rpartition(".")
    wanted = lw.analyse(driven(name).with_parameters(p=1.01 * start), times=TIMES)
    target = {place(name): wanted.position(where)[:, "xyz".index(axis)]}

    def ask() -> Any:
        return lw.optimise(driven(name), target, {"p": (0.97 * start, start, 1.03 * start)}, times=TIMES)

    if name == "friction":
        refused(name, ask)
        return
    best = ask()
    assert best.status
    assert np.isclose(best.parameters["p"], 1.01 * start, rtol=1e-6, atol=0.0)


@every_element
def test_a_tolerance_of_its_parameter_moves_the_output_by_its_derivative(name: str) -> None:
    def ask() -> Any:
        few = lw.ToleranceSettings(draws=0)
        return lw.tolerances(driven(name), CASES[name].output, {"p": "0.1 %"}, settings=few)

    if name == "friction":
        refused(name, ask)
        return
    start, step = CASES[name].start, 1e-3 * CASES[name].start
    change = (analysed(name, start + step) - analysed(name, start - step)) / 2.0
    assert np.isclose(ask().rss, abs(change), rtol=1e-3, atol=0.0)


@every_element
def test_the_page_shows_its_body(name: str, tmp_path: Path) -> None:
    page = lw.analyse(driven(name)).animate(tmp_path / "m.html")
    assert f'"{CASES[name].body}"' in page.read_text(encoding="utf-8")
    assert not CLASS.search(re.sub(r"<style>.*?</style>", "", free(name)._repr_html_(), flags=re.DOTALL))


@every_element
def test_equations_take_it_or_refuse_it(name: str) -> None:
    sheet = asked("equations", name, lambda: lw.equations(free(name)))
    if sheet is not None and name in ("bushing", "friction"):
        assert sheet.left_out == (f"{name} {CASES[name].element!r}",)


@every_element
def test_exports_take_it_or_refuse_it(name: str, tmp_path: Path) -> None:
    for language, ending in LANGUAGES.items():
        for function in ("forward_dynamics", "inverse_dynamics"):
            file = tmp_path / f"{function}_{language}{ending}"

            def ask(file: Path = file, function: Any = function, language: Any = language) -> Any:
                return lw.export(free(name), file, function, language)

            if function == "forward_dynamics" and name == "friction":
                refused(name, ask)
            elif function == "forward_dynamics":
                assert function in ask().files[file.name]
            else:
                exported = asked(function, name, ask)
                assert exported is None or function in exported.files[file.name]


@every_element
@pytest.mark.parametrize("language", WRITERS)
def test_files_of_robots_take_it_or_refuse_it(name: str, language: str) -> None:
    text = asked(language, name, lambda: WRITERS[language](free(name).description))
    assert text is None or f'"{CASES[name].body}"' in text


@compiled
def test_linearisation_is_that_of_differences(name: str) -> None:
    mech = free(name)
    q, v = mech.initial_state()
    if name == "friction":
        refused(name, lambda: mech.linearise(q, v))
        return
    system = mech.linearise(q, v)
    freedom = mech.dof().degrees_of_freedom
    assert system.A.shape == (2 * freedom, 2 * freedom)
    assert np.isfinite(system.A).all()
    assert np.array_equal(system.A[:freedom, freedom:], np.eye(freedom))


@compiled
def test_a_rollout_is_the_simulation(name: str) -> None:
    mech = free(name)
    q, v = mech.initial_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if name == "friction":
            refused(name, lambda: lw.rollout(mech, q, v, 1e-3, 10))
            return
        motion = lw.rollout(mech, q, v, 1e-3, 10)
    assert np.all(motion.ok)
    sol = lw.simulate(mech, 0.01)
    assert sol.status
    assert np.allclose(motion.q[-1], sol.q[-1], rtol=0.0, atol=1e-8)
