"""All that is asked of one mechanism by eight threads at once, from its first call on: the bits of one thread alone.

And the bits are the same whatever the number of threads that share a batch, a rollout or a sweep.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

import linkwright as lw
import rotation
from crowd import at_once
from linkwright.dynamics.functions import FORWARD_METHODS, FUNCTIONS, REFERENCES
from linkwright.kernels import kernel as kernels
from linkwright.kernels import kernel as program_cache
from linkwright.kernels.llvm import compiler

CROWD = 8

#: An arm of three joints with a spring, a force in time and a parameter.
TREE = """
MODEL arm
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.2, print interval = 0.05);
PARAMETER heavy = 2;
GRAVITY (0, -9.81, 0);
BODY base (ground);
BODY upper (mass = heavy, com = (0.5, 0.1, 0), inertia = (0.1, 0.2, 0.25));
BODY lower (origin = (1, 0, 0), mass = 1, com = (0.4, 0, 0.1), inertia = (0.05, 0.1, 0.1));
BODY wheel (origin = (1.8, 0, 0), mass = 0.5, com = (0.1, 0, 0), inertia = (0.02, 0.02, 0.03));
TRIAD elbow (associated body = upper, origin = (1, 0, 0));
TRIAD wrist (associated body = lower, origin = (0.8, 0, 0), h = (0, 1, 0), f = (1, 0, 0));
TRIAD hub (associated body = wheel, h = (0, 1, 0), f = (1, 0, 0));
REVOLUTE JOINT a (triad = base, triad = upper);
REVOLUTE JOINT b (triad = elbow, triad = lower);
REVOLUTE JOINT c (triad = wrist, triad = hub);
SPRING coil (joint = b, stiffness = 30);
FORCE push (joint = a, law = 2*sin(3*TIME));
INITIAL (a.angle = 20 deg, b.rate = 1 rad/s);
ENDMODEL
"""

#: A four-bar that is set off by its crank; three of its equations are redundant.
CLOSED = """
MODEL four_bar
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.2, print interval = 0.05);
PARAMETER heavy = 2;
GRAVITY (0, -9.81, 0);
BODY base (ground);
BODY upper (f = (1, 0.5, 0), mass = 1, com = (0.5, 0, 0), inertia = (0.01, 0.1, 0.1));
BODY coupler (origin = (1, 0.5, 0), f = (1, 0.7, 0), mass = heavy, com = (1.5, 0, 0), inertia = (0.1, 2, 2));
BODY rocker (origin = (3, 0, 0), f = (0, 1, 0), mass = 1, com = (1, 0, 0), inertia = (0.01, 1, 1));
TRIAD right (associated body = base, origin = (3, 0, 0));
TRIAD tip (associated body = upper, origin = (1, 0, 0));
TRIAD far_end (associated body = coupler, origin = (3, 0, 0));
TRIAD top (associated body = rocker, origin = (2.5, 0, 0));
REVOLUTE JOINT a (triad = base, triad = upper);
REVOLUTE JOINT b (triad = tip, triad = coupler);
REVOLUTE JOINT c (triad = far_end, triad = top);
REVOLUTE JOINT d (triad = right, triad = rocker);
INITIAL (a.angle = 40 deg, a.rate = 1 rad/s);
ENDMODEL
"""
MODELS = {"tree": TREE, "closed": CLOSED}
#: What each mechanism refuses to answer, but for programs of functions that are no single program.
REFUSED = {
    "tree": {"constraint_forces {}"},
    "closed": {
        "forward_dynamics {'method': 'diagonal'}",
        "forward_dynamics {'method': 'triangular'}",
        "inverse_dynamics_derivatives {}",
        "lw.equations",
    },
}


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The answer to what a mechanism cannot be asked."""

    message: str


def bits(answer: Any) -> Any:
    """An answer as plain data that is equal where all of its bits are."""
    if isinstance(answer, np.ndarray | np.generic):
        return answer.shape, str(answer.dtype), answer.tobytes()
    if isinstance(answer, lw.Solution):
        return [bits(answer.data[name].values) for name in answer.data.data_vars], bits(answer.status)
    if dataclasses.is_dataclass(answer):
        return {field.name: bits(getattr(answer, field.name)) for field in dataclasses.fields(answer)}
    if isinstance(answer, dict):
        return {name: bits(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [bits(value) for value in answer]
    assert answer is None or isinstance(answer, str | int | float | complex), type(answer)
    return answer


def state(mech: lw.Mechanism, seed: int) -> dict[str, np.ndarray]:
    """The arrays of the table's inputs, by their names."""
    q, v = mech.initial_state()
    rng = np.random.default_rng(seed)
    tau, dv = rng.normal(size=(2, mech.nv))
    q, v = mech.project(mech.integrate(q, 0.05 * rng.normal(size=mech.nv)), v + rng.normal(size=mech.nv))
    a = mech.forward_dynamics(q, v, tau)  # loops stay closed
    arrays = {"q": q, "v": v, "a": a, "tau": tau, "dv": dv, "q1": mech.integrate(q, 0.1 * dv), "t": np.array(0.3)}
    weights = rng.uniform(0.5, 2.0, int(mech.actuated.sum()))
    return {**arrays, "weights": weights, "size": np.array(mech.programs.size)}


def options(name: str, mech: lw.Mechanism) -> list[dict[str, Any]]:
    """Every way in which a function of the table is asked for, but for wrenches."""
    row = FUNCTIONS[name]
    ways: list[dict[str, Any]] = [{}]
    if "frame" in row.options:
        ways = [{"frame": "lower" if "lower" in mech.frames else "coupler"}]
    if "reference" in row.options:
        ways = [{**way, "reference": reference} for way in ways for reference in REFERENCES]
    if "method" in row.options:
        ways += [{"method": method} for method in FORWARD_METHODS]
    return ways


def asked_of_program(mech: lw.Mechanism, name: str, given: dict[str, np.ndarray], way: dict[str, Any]) -> Any:
    """The answer of a function of the table, by its program."""
    program = mech.program(name, **way)  # type: ignore[arg-type]
    return program(*(given[buffer.name] for buffer in program.inputs))


def asked_of_method(mech: lw.Mechanism, name: str, given: dict[str, np.ndarray], way: dict[str, Any]) -> Any:
    """The answer of a function of the table, by its method: twice, since a second call takes the short way."""
    row, method = FUNCTIONS[name], getattr(mech, name)
    frame = [way["frame"]] if "frame" in way else []
    further = {key: value for key, value in way.items() if key != "frame"}
    arguments = [given[key] for key in row.inputs]
    batch = [np.stack([x, x]) for x in arguments]
    answers = [method(*arguments, *frame, **further) for _ in range(2)]
    return [*answers, method(*batch, *frame, **further)]


def questions(reference: lw.Mechanism, seed: int) -> dict[str, Callable[[lw.Mechanism], Any]]:
    """What is asked, by name: every function of the table, and what mechanisms and the package do with them.

    Each seed has a state of its own.
    """
    given = state(reference, seed)
    q, v, wrenches = given["q"], given["v"], np.random.default_rng(seed).normal(size=(reference.nb, 6))
    asked: dict[str, Callable[[lw.Mechanism], Any]] = {}
    for name, row in FUNCTIONS.items():
        for way in options(name, reference):
            title = f"{name} {way}"
            asked[f"program of {title}"] = lambda m, name=name, way=way: asked_of_program(m, name, given, way)
            takes = "method" not in way or name == "forward_dynamics"
            if hasattr(lw.Mechanism, name) and takes:
                asked[title] = lambda m, name=name, way=way: asked_of_method(m, name, given, way)
        if "wrenches" in row.options and name in ("forward_dynamics", "inverse_dynamics"):
            arguments = [given[key] for key in row.inputs]
            asked[f"{name} with wrenches"] = lambda m, name=name, x=arguments: getattr(m, name)(*x, wrenches=wrenches)
    states = np.tile(q, (3, 1)), np.tile(v, (3, 1))
    asked |= {
        "assemble": lambda m: m.assemble(),
        "assemble from a guess": lambda m: m.assemble(q + 0.01, ["a"]),
        "project": lambda m: m.project(q + 0.01, v),
        "initial_state": lambda m: m.initial_state(),
        "neutral": lambda m: m.neutral(),
        "dof": lambda m: m.dof(),
        "constraints": lambda m: m.constraints,
        "singular": lambda m: m.singular(q),
        "equilibrium": lambda m: m.equilibrium(),
        "linearise": lambda m: (*m.linearise(q, v),),
        "with_parameters": lambda m: m.with_parameters(heavy=3.0 + seed).forward_dynamics(q, v, given["tau"]),
        "lw.analyse": lw.analyse,
        "lw.simulate": lambda m: lw.simulate(m, 0.1, q0=q, v0=v),
        "lw.simulate by steps": lambda m: lw.simulate(m, 0.1, q0=q, v0=v, method="rk4", dt=0.01),
        "lw.rollout": lambda m: lw.rollout(m, *states, 0.01, 5),
        "lw.equations": lambda m: lw.equations(m).latex(),
        "lw.sensitivities": lambda m: lw.sensitivities(
            m, "final(a.angle)", {"heavy": 2.0 + seed}, analysis=lw.AnalysisSettings(dt=0.05)
        ),
        "lw.sweep": lambda m: lw.sweep(m, {"heavy": [1.0, 2.0 + seed]}, "end = final(a.angle)").data["end"].values,
    }
    return asked


def mechanism(text: str) -> lw.Mechanism:
    from linkwright.formats.mks.mks_reader import parse_mks

    return lw.Mechanism(parse_mks(text))


def answered(question: Callable[[Any], Any], mech: lw.Mechanism | None) -> Any:
    """The bits of an answer, or the refusal."""
    try:
        return bits(question(mech))
    except lw.errors.LinkwrightError as error:
        return Refusal(str(error))


def cold(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """As in a process that has compiled nothing."""
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(cache))
    monkeypatch.setattr(program_cache, "_kernels", WeakValueDictionary())
    monkeypatch.setattr(program_cache, "_recent", OrderedDict())


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads take turns often, so that one is seldom left alone with what it changes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_eight_threads_get_the_answers_of_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "CARE", 0)  # races do not ask how fast the code is
    cold(monkeypatch, tmp_path / "before")
    reference = mechanism(MODELS[name])
    asked = [questions(reference, seed) for seed in range(CROWD)]
    cold(monkeypatch, tmp_path / "many")
    shared = mechanism(MODELS[name])

    def work(k: int) -> dict[str, Any]:
        """All questions: half of the threads ask the same at the same time, the others in orders of their own."""
        order = list(asked[k])
        if k % 2:
            random.Random(rotation.SEED + k).shuffle(order)
        return {title: answered(asked[k][title], shared) for title in order}

    answers = at_once(work, CROWD)
    cold(monkeypatch, tmp_path / "one")
    alone = mechanism(MODELS[name])
    right = [{title: answered(question, alone) for title, question in asked[k].items()} for k in range(CROWD)]
    refused = {title for title, answer in right[0].items() if isinstance(answer, Refusal)}
    assert {title for title in refused if not title.startswith("program of")} == REFUSED[name]
    assert [(title, k) for k in range(CROWD) for title in right[k] if answers[k][title] != right[k][title]] == []


# -- how many threads share the work ---------------------------------------------------------------------------
@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Even small batches are divided, whatever cores there are."""
    monkeypatch.setattr(kernels, "THREAD_WORK", 1)
    yield
    lw.set_threads(None)


def batches(mech: lw.Mechanism, states: int) -> dict[str, Callable[[], Any]]:
    """What takes many states at once: every function of the table, rollouts, sweeps."""
    given = [state(mech, seed) for seed in range(4)]
    stacked = {name: np.stack([given[k % 4][name] for k in range(states)]) for name in given[0]}
    stacked["tau"] = stacked["tau"] + np.linspace(0.0, 1.0, states)[:, None]
    asked: dict[str, Callable[[], Any]] = {}
    for name in FUNCTIONS:
        for way in options(name, mech):
            title = f"{name} {way}"
            asked[title] = lambda name=name, way=way: asked_of_program(mech, name, stacked, way)
    q, v, values = stacked["q"], stacked["v"], np.linspace(1.0, 3.0, states)
    ends = "end = final(a.angle)"
    return asked | {
        "lw.rollout": lambda: lw.rollout(mech, q, v, 0.01, 5),
        "lw.rollout in shorter steps": lambda: lw.rollout(mech, q, v, 0.01, 5, method="dop853"),
        "lw.rollout of parameters": lambda: lw.rollout(mech, q, v, 0.01, 5, parameters={"heavy": values}),
        "lw.sweep": lambda: lw.sweep(mech, {"heavy": values}, ends).data["end"].values,
        "lw.sweep in chunks": lambda: (
            lw.sweep(mech, {"heavy": values}, ends, execution=lw.Execution(chunk=7)).data["end"].values
        ),
    }


@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_answers_have_the_same_bits_whatever_the_number_of_threads(name: str) -> None:
    states = 4 * compiler.lanes() + 3
    asked = batches(mechanism(MODELS[name]), states)
    answers = {}
    for count in (1, 2, 3, 5):
        lw.set_threads(count)
        answers[count] = {title: answered(lambda _, ask=ask: ask(), None) for title, ask in asked.items()}
    assert not [title for title in asked if title.startswith("lw.") and isinstance(answers[1][title], Refusal)]
    for count in answers:
        assert [title for title in asked if answers[count][title] != answers[1][title]] == [], f"{count} threads"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_study_has_the_same_bits_in_one_process_and_in_two(name: str) -> None:
    mech, values = mechanism(MODELS[name]), {"heavy": np.linspace(1.0, 3.0, 12)}
    here, there = (
        lw.sweep(mech, values, ["a.angle"], execution=lw.Execution(workers, chunk=3)) for workers in (None, 2)
    )
    assert here.ok.all()
    assert bits(here.data["a.angle"].values) == bits(there.data["a.angle"].values)
