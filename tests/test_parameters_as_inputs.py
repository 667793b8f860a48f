"""Mechanisms with other values of their parameters, which run the programs of their source with the values as data,
against the same mechanisms with programs of their own."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, state
from coupled_mechanisms import draw
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.errors import ModelError
from linkwright.kernels.kernel import Kernel
from linkwright.model.elements import AppliedWrench, Rod
from linkwright.model.expression import Expression, Name, Number
from redundant_linkages import bennett_rows, loop
from rotation import some
from run_settings import settings
from scaled_models import Scale

MODELS = Path(__file__).parents[1] / "examples" / "models"
S = Name("s")
NUMBERS = ("mass", "com", "inertia", "pi", "pj", "pitch", "armature", "damping", "friction", "gravity")


def between(one: Expression, other: Expression) -> Expression:
    """The first law at s = 0, the other at s = 1."""
    return one * (Number(1.0) - S) + other * S


def with_all_numbers_bound(mech: lw.Mechanism, length: float = 1.5, mass: float = 0.6) -> lw.Mechanism:
    """The mechanism with a parameter s at 0; at s = 1 all lengths and masses are so many times as large."""
    d, e = mech.description, Scale(mech.description, length, mass).description()
    arrays = [(name, getattr(d, name), getattr(e, name)) for name in NUMBERS]
    arrays.append(("frame_p", d.frames.p, e.frames.p))
    if d.start is not None and e.start is not None:
        arrays.append(("start_p", d.start.p, e.start.p))
    bindings = {
        (name, flat): Number(float(x)) + S * Number(float(y - x))
        for name, one, other in arrays
        for flat, (x, y) in enumerate(zip(np.ravel(one), np.ravel(other), strict=True))
        if x or y
    }

    def element(one: Any, other: Any) -> Any:
        if isinstance(one, AppliedWrench):
            return replace(one, laws=tuple(map(between, one.laws, other.laws)))
        return replace(one, law=between(one.law, other.law))

    def constraint(one: Any, other: Any) -> Any:
        return replace(one, length=between(one.length, other.length)) if isinstance(one, Rod) else one

    return lw.Mechanism(
        replace(
            d,
            parameters={"s": 0.0},
            bindings=bindings,
            elements=tuple(map(element, d.elements, e.elements)),
            drivers=tuple(replace(x, law=between(x.law, y.law)) for x, y in zip(d.drivers, e.drivers, strict=True)),
            point_constraints=tuple(map(constraint, d.point_constraints, e.point_constraints)),
            initial=tuple(
                replace(x, value=between(x.value, y.value)) for x, y in zip(d.initial, e.initial, strict=True)
            ),
        )
    )


def close(one: Any, other: Any, what: str = "") -> None:
    """Two answers are the same to rounding; numbers of these mechanisms are about one."""
    if isinstance(other, tuple):
        for x, y in zip(one, other, strict=True):
            close(x, y, what)
        return
    size = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * max(size, 1e-3), err_msg=what)


def kernel_or_refusal(mech: lw.Mechanism, request: Request) -> Kernel | str:
    try:
        kernel = mech.kernels.kernel(mech.programs.resolved(request))
        kernel.signature  # noqa: B018  (by now it is recorded, or refused)
    except ModelError as error:
        return str(error)
    return kernel


def same_answers(source: lw.Mechanism, s: float) -> int:
    """Compare all functions of the table at a state; how many there are that both answer."""
    mech = source.with_parameters(s=s)
    own = lw.Mechanism(mech.description)
    assert mech.programs.parametrised is not None
    assert own.programs.parametrised is None
    q, v = state(own) if own.closed else (own.neutral(), np.zeros(own.nv))
    random = np.random.default_rng(3)
    if not own.closed:
        q, v = own.integrate(q, random.normal(size=own.nv)), random.normal(size=own.nv)
    inputs = {"q": q, "v": v, "q1": own.integrate(q, 0.1 * v), "dv": 0.1 * v, "t": np.array(0.0)}
    inputs |= {name: random.normal(size=own.nv) for name in ("a", "tau")}
    inputs["weights"] = random.uniform(0.5, 2.0, int(own.actuated.sum()))
    inputs["size"] = np.array(own.programs.size)
    if own.closed:  # a motion that actuators produce
        inputs["a"] = own.forward_dynamics(q, v, np.where(own.actuated, inputs["tau"], 0.0))
    answered = 0
    for function, row in FUNCTIONS.items():
        options: dict[str, Any] = {"frame": own.bodies[own.nb - 1].name} if "frame" in row.options else {}
        if "reference" in row.options:
            options["reference"] = "aligned"
        one, other = (kernel_or_refusal(each, Request(function, **options)) for each in (mech, own))
        if isinstance(other, str):
            assert one == other
            continue
        assert isinstance(one, Kernel)
        given = [inputs[port.name] for port in other.inputs]
        close(one(*given), other(*given), function)
        batch = [np.stack([x] * 9) for x in given]
        close(one(*batch), other(*batch), function)
        answered += 1
    return answered


@pytest.mark.parametrize("seed", range(6))
def test_every_function_of_a_tree_answers_as_with_its_own_programs(seed: int) -> None:
    assert same_answers(with_all_numbers_bound(lw.random_tree(5, seed)), 1.0) >= 20


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_function_of_a_closed_mechanism_answers_as_with_its_own_programs(name: str) -> None:
    assert same_answers(with_all_numbers_bound(MECHANISMS[name]()), 1.0) >= 18


@pytest.mark.parametrize("seed", some(range(200), 6))
def test_random_mechanisms_with_elements_and_couplings_answer_as_with_their_own_programs(seed: int) -> None:
    source = with_all_numbers_bound(draw(seed).mech)
    mech = source.with_parameters(s=0.5)
    own = lw.Mechanism(mech.description)
    random = np.random.default_rng(seed)
    q, v = own.initial_state()
    tau = random.normal(size=own.nv)
    close(mech.initial_state(), (q, v))
    close(mech.forward_dynamics(q, v, tau, t=0.1), own.forward_dynamics(q, v, tau, t=0.1))
    close(mech.mass_matrix(q), own.mass_matrix(q))


@pytest.mark.parametrize("name", ["four-bar", "platform", "slider with rod"])
def test_consistent_states_equilibria_linear_models_and_reactions_are_those_of_its_own_programs(name: str) -> None:
    mech = with_all_numbers_bound(MECHANISMS[name]()).with_parameters(s=1.0)
    own = lw.Mechanism(mech.description)
    q, v = state(own)
    tau = np.ones(own.nv)
    close(mech.assemble(), own.assemble())
    close(mech.project(q + 0.01, v), own.project(q + 0.01, v))
    close(mech.reactions(q, v, tau), own.reactions(q, v, tau))
    close(
        mech.inverse_dynamics(q, v, own.forward_dynamics(q, v, tau)),
        own.inverse_dynamics(q, v, own.forward_dynamics(q, v, tau)),
    )
    close(np.sort_complex(mech.linearise(q, v, tau).eigenvalues), np.sort_complex(own.linearise(q, v, tau).eigenvalues))


@pytest.mark.parametrize("options", [{}, {"conserve": "energy"}, {"method": "radau"}, {"method": "rk4", "dt": 1e-3}])
def test_simulations_are_those_of_its_own_programs(options: dict[str, Any]) -> None:
    mech = with_all_numbers_bound(MECHANISMS["four-bar"]()).with_parameters(s=1.0)
    one = lw.simulate(mech, t_end=0.3, rtol=1e-10, **settings(interval=0.01, **options))
    other = lw.simulate(lw.Mechanism(mech.description), t_end=0.3, rtol=1e-10, **settings(interval=0.01, **options))
    assert one.status.ok
    np.testing.assert_allclose(one.q, other.q, atol=1e-8)


def test_rollouts_and_laws_are_those_of_its_own_programs() -> None:
    mech = with_all_numbers_bound(lw.chain(3)).with_parameters(s=1.0)
    own = lw.Mechanism(mech.description)
    q0 = np.random.default_rng(0).normal(size=(9, 3))
    one, other = (lw.rollout(x, q0, np.zeros((9, 3)), 1e-3, 50) for x in (mech, own))
    np.testing.assert_allclose(one.q, other.q, atol=1e-12)
    one, other = (lw.simulate(x, t_end=0.2, q0=q0[0], tau=lambda t, q, v: -0.1 * v - q) for x in (mech, own))
    np.testing.assert_allclose(one.q[-1], other.q[-1], atol=1e-10)


def test_two_values_share_code_and_not_numbers_also_by_the_short_way_of_a_call() -> None:
    source = with_all_numbers_bound(lw.chain(3))
    q, v, tau = np.ones(3), np.ones(3), np.zeros(3)
    mechanisms = [source.with_parameters(s=s) for s in (0.25, 0.5)]
    right = [lw.Mechanism(m.description).forward_dynamics(q, v, tau) for m in mechanisms]
    for _ in range(3):
        for mech, answer in zip(mechanisms, right, strict=True):
            close(mech.forward_dynamics(q, v, tau), answer)
    kernels = [m.kernels.kernel(m.programs.resolved(Request("forward_dynamics"))) for m in mechanisms]
    assert kernels[0].variant(1).code is kernels[1].variant(1).code
    assert type(mechanisms[0].forward_dynamics).__name__ == "builtin_function_or_method"


def test_a_value_of_a_value_is_one_of_the_source() -> None:
    source = lw.load(MODELS / "double_four_bar.mks") if (MODELS / "double_four_bar.mks").exists() else None
    assert source is not None
    names = list(source.parameters)[:2]
    first, second = ({name: source.parameters[name] * 1.01} for name in names)
    twice = source.with_parameters(**first).with_parameters(**second)
    once = source.with_parameters(**second, **first)
    assert twice.description.digest == once.description.digest
    assert twice.programs.names == once.programs.names
    assert twice.programs.source is source.programs


def test_copied_and_pickled_mechanisms_keep_their_values_and_their_source() -> None:
    mech = with_all_numbers_bound(lw.chain(2)).with_parameters(s=1.0)
    q = np.ones(2)
    for other in (copy.copy(mech), copy.deepcopy(mech), pickle.loads(pickle.dumps(mech))):
        assert other.programs.parametrised is not None
        close(other.mass_matrix(q), mech.mass_matrix(q))
    kernel = mech.kernels.kernel(mech.programs.resolved(Request("mass_matrix")))
    close(pickle.loads(pickle.dumps(kernel))(q), mech.mass_matrix(q))


def pendulum(mass: float = 1.0, arm: float = 0.5) -> lw.Mechanism:
    with lw.Builder("pendulum") as b:
        m, r = b.parameter("m", mass), b.parameter("r", arm)
        rod = b.body("rod", mass=m, com=(r, 0.0, 0.0))
        b.joint("revolute", b.triad(b.ground, h=(0, 1, 0)), b.triad(rod, h=(0, 1, 0)), "hinge")
    return b.build()


@pytest.mark.parametrize("values", [{"m": 0.0}, {"r": 0.0}])
def test_a_value_that_takes_the_inertia_of_a_joint_is_refused_by_name(values: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="'hinge'"):
        pendulum().with_parameters(**values).forward_dynamics([0.1], [0.0], [0.0])


def test_a_source_that_cannot_be_asked_itself_is_no_hindrance() -> None:
    mech = pendulum(mass=0.0).with_parameters(m=2.0)
    a = mech.forward_dynamics([0.3], [0.0], [0.0])
    close(a, lw.Mechanism(mech.description).forward_dynamics([0.3], [0.0], [0.0]))


@pytest.mark.parametrize("length", [1e-6, 1e6])
def test_a_mechanism_of_another_size_is_judged_by_its_own(length: float) -> None:
    mech = with_all_numbers_bound(MECHANISMS["four-bar"](), length=length).with_parameters(s=1.0)
    assert mech.programs.parametrised is None
    assert lw.simulate(mech, t_end=0.05).status.ok


def test_a_bar_that_opens_redundant_loops_is_no_value_of_the_same_programs() -> None:
    rows = bennett_rows(0.4, 0.6, 1.1)
    source = loop("bennett", rows)
    bound = with_all_numbers_bound(source)
    d = bound.description
    first = int(np.flatnonzero(np.ravel(d.pi))[0])
    tilted = replace(d, bindings={("pi", first): Number(float(np.ravel(d.pi)[first])) * (Number(1.0) + S)})
    mech = lw.Mechanism(tilted).with_parameters(s=0.3)
    assert mech.programs.parametrised is None


def test_a_file_read_with_other_values_runs_the_programs_of_the_file() -> None:
    path = MODELS / "four_bar.mks"
    own = lw.load(path)
    name, value = next(iter(own.parameters.items()))
    mech = lw.load(path, parameters={name: value * 1.01})
    assert mech.programs.source is not None
    assert mech.programs.source.description.digest == own.description.digest
    assert mech.parameters[name] == value * 1.01


def tilted(angle: float) -> lw.Mechanism:
    """Two bodies and a driver of the angle between two frames, whose axes are parallel at an angle of 0."""
    with lw.Builder("tilted") as b:
        e = b.parameter("e", angle)
        one, two = (b.body(name, 1.0, (0.5, 0.1, 0.1), (0.1, 0.2, 0.3)) for name in ("one", "two"))
        b.place(one, (0, 0, 0))
        b.place(two, (1, 0, 0))
        b.joint("revolute", b.triad(b.ground), b.triad(one), "A")
        b.joint("spherical", b.triad(one, (1, 0, 0)), b.triad(two), "B")
        first = b.triad(b.ground, name="first")
        second = b.triad(two, h=(0, np.sin(e), np.cos(e)), name="second")
        b.driver("angle", first, 0.8 + 0.3 * lw.TIME, other=second, name="d")
    return b.build()


@pytest.mark.parametrize(("before", "after"), [(0.01, 0.6), (0.6, 0.01)])
def test_a_driver_of_an_angle_asks_what_its_own_axes_say(before: float, after: float) -> None:
    mech = tilted(before).with_parameters(e=after)
    own = lw.Mechanism(mech.description)
    q, v = state(own)
    close(mech.forward_dynamics(q, v, np.zeros(mech.nv)), own.forward_dynamics(q, v, np.zeros(mech.nv)))
    close(mech.project(q + 0.01, v), own.project(q + 0.01, v))


@pytest.mark.parametrize("first", ["values", "open"])
def test_parameters_of_rollouts_and_values_of_the_mechanism_are_told_apart(first: str) -> None:
    mech = pendulum().with_parameters(r=2.0)
    own = lw.Mechanism(mech.description)
    rolled = {
        "values": lambda m: lw.rollout(m, np.ones((3, 1)), np.zeros((3, 1)), 0.01, 5).q,
        "open": lambda m: (
            lw.rollout(m, np.ones((3, 1)), np.zeros((3, 1)), 0.01, 5, parameters={"r": [1.0, 2.0, 3.0]}).q
        ),
    }
    for name in sorted(rolled, key=lambda name: name != first):
        close(rolled[name](mech), rolled[name](own))


def test_another_gear_ratio_has_ranks_of_its_own() -> None:
    with lw.Builder("geared parallelogram") as b:
        g = b.parameter("g", 2.0)
        bodies = [b.body(name, 1.0, (0.5, 0, 0), (0.1, 0.2, 0.3)) for name in ("crank", "coupler", "rocker")]
        crank, coupler, rocker = bodies
        along = np.array([0.5, 1.0, 0.0]) / np.hypot(0.5, 1.0)
        b.place(crank, (0, 0, 0), f=along)
        b.place(coupler, along, f=(1, 0, 0))
        b.place(rocker, (2, 0, 0), f=along)
        for name, i, at, j, to in (
            ("A", b.ground, (0, 0, 0), crank, (0, 0, 0)),
            ("B", crank, (1, 0, 0), coupler, (0, 0, 0)),
            ("D", b.ground, (2, 0, 0), rocker, (0, 0, 0)),
            ("C", coupler, (2, 0, 0), rocker, (1, 0, 0)),
            ("E", b.ground, (2, 0, 0), rocker, (0, 0, 0)),
        ):
            b.joint("revolute", b.triad(i, at), b.triad(j, to), name, cut=name in "CE")
        b.mimic("E", "A", g, (1 - g) * float(np.arctan2(1.0, 0.5)))
    mech = b.build().with_parameters(g=1.0)
    own = lw.Mechanism(mech.description)
    rows = range(sum(c.form.size for c in own.programs.loop_constraints))
    assert mech.programs.redundancy.rank(rows) == own.programs.redundancy.rank(rows) == 2
    assert mech.programs.parametrised is None


def test_the_time_of_an_initial_state_may_be_any_number() -> None:
    mech = MECHANISMS["driven four-bar"]()
    for t in (0.0, np.array(0.0), np.float32(0.0), 0):
        np.testing.assert_array_equal(mech.initial_state(t=t)[0], mech.initial_state()[0])


def test_models_with_parameters_run_the_same_programs_with_other_values() -> None:
    tried = []
    for path in sorted(MODELS.glob("*.mks")):
        source = lw.load(path)
        bindings = source.description.bindings
        gears = {name for (array, _), law in bindings.items() if array == "gear" for name in law.names()}
        values = {name: value for name, value in source.parameters.items() if name not in gears}
        if values and not source.programs.gap:
            assert source.with_parameters(**values).programs.parametrised is not None, path.name
            tried.append(path.name)
    assert len(tried) >= 12, tried
