"""Euler parameters of any length are a rotation: no answer depends on their length, and a length of zero is NaN."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import pen_on_line, rssr, state
from linkwright.dynamics.functions import FORMS, FORWARD_METHODS, FUNCTIONS, LOOP_METHODS
from linkwright.errors import LinkwrightError
from linkwright.kernels.interpret.interpreter import run
from linkwright.model.joint_kinds import KINDS
from linkwright.spatial.rotation import quaternion_matrix

CLOSED_ALONE = ("position_correction", "velocity_projection", "constraint_forces", "actuator_forces", "joint_wrenches")
TREES_ALONE = ("inverse_dynamics", "reactions", "inverse_dynamics_derivatives", "gear_forces")  # as single programs
RATES = ("rate",)  # grows as the Euler parameters do
MADE = {
    "tree": lambda: lw.random_tree(4, 5, floating=True, joints=["spherical", "revolute", "free"]),
    "spherical loop": rssr,
    "free in a loop": pen_on_line,
}


def quaternions(mech: lw.Mechanism) -> list[slice]:
    """Where the Euler parameters are in q."""
    return [slice(j.q_slice.stop - 4, j.q_slice.stop) for j in mech.joints if not KINDS[j.kind].paired]


def stretched(mech: lw.Mechanism, q: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    longer = q.copy()
    for n, part in enumerate(quaternions(mech)):
        longer[:, part] *= lengths[:, n, None]
    return longer


def states(mech: lw.Mechanism, batch: int, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    near = np.tile(mech.assemble() if mech.closed else mech.neutral(), (batch, 1))
    far = 0.05 if mech.closed else 1.0
    vectors = dict(zip(("v", "a", "tau", "dv"), rng.standard_normal((4, batch, mech.nv)), strict=True))
    q, q1 = (mech.integrate(near, far * rng.standard_normal((batch, mech.nv))) for _ in range(2))
    if mech.closed:  # a motion that actuators produce
        vectors["tau"] *= mech.actuated
        vectors["a"] = mech.forward_dynamics(q, vectors["v"], vectors["tau"])
    weights = rng.uniform(0.5, 2.0, (batch, int(mech.actuated.sum())))
    size = np.full(batch, mech.programs.size)
    return {"q": q, "q1": q1, "t": np.zeros(batch), "weights": weights, "size": size, **vectors}


def answers(mech: lw.Mechanism, function: str, given: dict[str, np.ndarray], **options: str) -> list[np.ndarray] | None:
    """The outputs by NumPy; None where a mechanism has no such program."""
    if "frame" in FUNCTIONS[function].options:
        options["frame"] = mech.bodies[-1].name
    if "reference" in FUNCTIONS[function].options:
        options["reference"] = "world"
    try:
        program = mech.program(function, **options)
    except LinkwrightError:
        return None
    return run(program, [given[b.name] for b in program.inputs], len(given["q"]))


def asked(mech: lw.Mechanism, function: str) -> list[dict[str, str]]:
    methods = (LOOP_METHODS if mech.closed else FORWARD_METHODS) if "method" in FUNCTIONS[function].options else ("",)
    return [{"method": m, "form": form} for m in methods for form in FORMS]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_answer_depends_on_the_length_of_euler_parameters(made: str, function: str) -> None:
    mech = MADE[made]()
    given = states(mech, 3)
    lengths = np.random.default_rng(1).uniform(0.2, 5.0, (3, len(quaternions(mech))))
    longer = {**given, "q": stretched(mech, given["q"], lengths), "q1": stretched(mech, given["q1"], lengths[::-1])}
    tried = 0
    for options in asked(mech, function):
        unit, other = (answers(mech, function, x, **options) for x in (given, longer))
        if unit is None:
            continue
        tried += 1
        for x, y in zip(unit, other, strict=True):
            wanted = stretched(mech, x, lengths) if function in RATES else x
            assert np.isfinite(x).all()
            np.testing.assert_allclose(y, wanted, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max(initial=0.0)))
    assert tried or function in (TREES_ALONE if mech.closed else CLOSED_ALONE)


@pytest.mark.parametrize("made", MADE)
def test_euler_parameters_without_a_length_are_nan_in_their_state_alone(made: str) -> None:
    mech = MADE[made]()
    given = states(mech, 8)
    q = given["q"].copy()
    q[2, quaternions(mech)[0]] = 0.0
    v, tau = given["v"], given["tau"]
    for ask in (lambda q: mech.forward_dynamics(q, v, tau), mech.potential_energy):
        right, a = ask(given["q"]), ask(q)
        assert np.isnan(a[2]).all()
        np.testing.assert_array_equal(np.delete(a, 2, axis=0), np.delete(right, 2, axis=0))


def test_an_answer_is_nan_as_a_whole_also_where_it_is_zero_by_structure() -> None:
    """Gravity has no moment about an axis through a mass centre, whichever way the body is turned."""
    with lw.Builder("bodies") as b:
        for name, kind, com in (
            ("a", "free", (0.1, 0, 0)),
            ("b", "spherical", (0, 0, 0.2)),
            ("c", "revolute", (0, 0, 0)),
        ):
            b.joint(kind, b.ground, b.body(name, 1.0, com, (0.1, 0.2, 0.25)), f"joint {name}")
    mech = b.build()
    rng = np.random.default_rng(0)
    q, v = mech.integrate(mech.neutral(), rng.standard_normal(mech.nv)), rng.standard_normal(mech.nv)
    assert np.count_nonzero(mech.gravity_forces(q) == 0.0) >= 3
    for at in quaternions(mech):
        none = q.copy()
        none[at] = 0.0
        answers = (
            mech.gravity_forces(none),
            mech.bias_forces(none, v),
            mech.forward_dynamics(none, v, v),
            mech.inverse_dynamics(none, v, v),
        )
        for answer in answers:
            assert np.isnan(answer).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", [0.0, 1e-160, 1e160, 1e200, np.inf, np.nan])
def test_a_rotation_of_no_length_is_nan_without_a_warning(length: float) -> None:
    assert np.isnan(quaternion_matrix(length * np.array([0.5, -0.5, 0.5, 0.5]))).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", [0.0, 1e-200, 5.0, 1e200])
def test_initial_euler_parameters_are_refused_with_their_length_and_no_warning(length: float) -> None:
    mech = lw.random_tree(2, 1, floating=True)
    q = mech.neutral()
    q[3:7] = length * np.array([0.5, -0.5, 0.5, 0.5])
    with pytest.raises(LinkwrightError, match=rf"have length {length:g}; give 1".replace("+", r"\+")):
        lw.simulate(mech, 0.1, q0=q)


def test_a_rotation_is_one_at_every_length() -> None:
    e = np.random.default_rng(0).standard_normal((4, 50)) * np.logspace(-12, 12, 50)
    r = np.moveaxis(quaternion_matrix(e), -1, 0)
    np.testing.assert_allclose(np.swapaxes(r, 1, 2) @ r, np.broadcast_to(np.eye(3), r.shape), atol=1e-14)


def test_tangent_derivatives_of_a_stretched_state_are_those_of_the_unit_one() -> None:
    mech = lw.random_tree(3, 2, floating=True, joints=["spherical"])
    given = states(mech, 2)
    q, v, tau = given["q"][0], given["v"][0], given["tau"][0]
    longer = stretched(mech, q[None, :], np.full((1, len(quaternions(mech))), 3.0))[0]
    for one, other in zip(
        mech.forward_dynamics_derivatives(q, v, tau), mech.forward_dynamics_derivatives(longer, v, tau), strict=True
    ):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-10 * np.abs(one).max())
    step = 1e-6 * np.eye(mech.nv)
    ends = (mech.forward_dynamics(mech.integrate(np.tile(longer, (mech.nv, 1)), s), v, tau) for s in (step, -step))
    slope = np.subtract(*ends).T / 2e-6
    by_q = mech.forward_dynamics_derivatives(longer, v, tau)[0]
    np.testing.assert_allclose(by_q, slope, rtol=1e-5, atol=1e-6 * np.abs(slope).max())


def test_closed_mechanisms_take_euler_parameters_of_any_length_too() -> None:
    mech = rssr()
    q, v = state(mech, seed=2)
    tau = np.where(mech.actuated, np.random.default_rng(0).standard_normal(mech.nv), 0.0)
    a = mech.forward_dynamics(q, v, tau)
    longer = stretched(mech, q[None, :], np.full((1, 1), 4.0))[0]
    everything = {
        "inverse dynamics": lambda q: mech.inverse_dynamics(q, v, a),
        "reactions": lambda q: mech.reactions(q, v, tau),
        "linear model": lambda q: mech.linearise(q, v, tau).eigenvalues,
        "projection": lambda q: mech.project(q, v)[0],
        "rates": lambda q: mech.project(q, v)[1],
        "assembly": lambda q: mech.assemble(q),
    }
    for name, ask in everything.items():
        one = ask(q)
        np.testing.assert_allclose(ask(longer), one, rtol=1e-7, atol=1e-8 * np.abs(one).max(), err_msg=name)
