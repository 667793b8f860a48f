"""Linkages whose rank is the same everywhere move through every position, whichever rows are nearly dependent there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.kernels.interpret.interpreter import run
from redundant_linkages import (
    SOLID,
    Oracle,
    bennett_rows,
    bricard_rows,
    goldberg_rows,
    line_symmetric_rows,
    loop,
    parallelogram,
    sarrus,
    scissors,
)
from robots import relative

METHODS = ("articulated-body", "virtual-work", "assembly", "mass-matrix")

LINKAGES: dict[str, tuple[Callable[[], lw.Mechanism], int]] = {  # with the seed of a guess that leads to a position
    "bennett": (lambda: loop("bennett", bennett_rows(0.4, 0.6, 1.1)), 0),
    "bricard, trihedral": (lambda: loop("bricard", bricard_rows()), 0),
    "bricard, line-symmetric": (lambda: loop("symmetric", line_symmetric_rows()), 0),
    "goldberg": (lambda: loop("goldberg", goldberg_rows()), 0),
    "sarrus": (sarrus, -1),
    "scissors of two stages": (lambda: scissors(2), -1),
    "scissors of three stages": (lambda: scissors(3), -1),
}


def start(mech: lw.Mechanism, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A closed position and rates of its one freedom."""
    oracle = Oracle(mech)
    if seed < 0:  # as drawn
        q = np.zeros(mech.nq)
    else:
        for attempt in range(seed, seed + 40):
            guess = np.random.default_rng(attempt).uniform(-2.0, 2.0, mech.nq)
            try:
                q = oracle.closed(guess)
                break
            except AssertionError:
                continue
    z = oracle.freedom(q)[:, 0]
    return q, z * np.sign(z[np.argmax(np.abs(z))])


def by_numpy(mech: lw.Mechanism, method: str, *arrays: np.ndarray) -> np.ndarray:
    program = mech.program("forward_dynamics", method=method)
    return run(program, arrays, len(arrays[0]))[0]


@pytest.mark.parametrize("name", LINKAGES)
def test_a_redundant_linkage_moves_as_least_squares_and_lagrange_say_wherever_it_comes(name: str) -> None:
    make, seed = LINKAGES[name]
    mech = make()
    q0, z = start(mech, seed)
    speed = 1.5 if seed < 0 else 4.0
    ends = {}
    for rtol in (1e-6, 1e-9, 1e-12):
        sol = lw.simulate(mech, t_end=0.35 if seed < 0 else 1.5, q0=q0, v0=speed * z, rtol=rtol)
        assert sol.status, (rtol, str(sol.status))
        energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q)
        scale = mech.kinetic_energy(sol.q, sol.v).max()
        assert np.ptp(energy) < 3e3 * max(rtol, 1e-12) * scale
        ends[rtol] = sol.q[-1]
    assert np.abs(ends[1e-9] - ends[1e-12]).max() < 1e-5
    oracle = Oracle(mech)
    some = np.unique(np.linspace(0, len(sol.time) - 1, 12).astype(int))
    q, v = sol.q[some], sol.v[some]
    tau = np.tile(0.1 * np.cos(np.arange(mech.nv)), (len(some), 1))
    right = np.array([oracle.acceleration(*state) for state in zip(q, v, tau, strict=True)])
    for method in METHODS:
        assert relative(by_numpy(mech, method, q, v, tau), right) < 1e-8, method


# -- Bennett's linkage, in closed form --------------------------------------------------------------------------------
def bennett(theta: float, rate: float, alpha: float, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, q' and the part of q'' that is not q' θ'': tan(θ₁/2) tan(θ₂/2) = sin(½(β + α)) / sin(½(β − α))."""
    k, t = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2), np.tan(theta / 2)
    slope = -k * (1 + t * t) / (t * t + k * k)
    bend = k * t * (1 + t * t) * (1 - k * k) / (t * t + k * k) ** 2
    return (
        np.array([theta, 2 * np.arctan2(k, t), -theta]),
        np.array([1.0, slope, -1.0]),
        np.array([0.0, bend, 0.0]) * rate**2,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("alpha", "beta"), [(0.6, 1.1), (0.3, 1.5), (1.2, 0.4)])
def test_accelerations_of_bennetts_linkage_are_right_to_rounding_at_and_beside_its_flat_position(
    method: str, alpha: float, beta: float
) -> None:
    mech, tau, rate = loop("bennett", bennett_rows(0.4, alpha, beta)), np.array([0.4, -0.3, 0.2]), 1.7
    states, right = [], []
    for theta in (1.2, 1e-2, 1e-4, 1e-6, 1e-7, -1e-8, 0.0):
        q, s, c = bennett(theta, rate, alpha, beta)
        m, h = mech.mass_matrix(q), mech.bias_forces(q, rate * s)
        states.append((q, rate * s, tau))
        right.append(s * (s @ (tau - h - m @ c)) / (s @ m @ s) + c)
    a = by_numpy(mech, method, *(np.array(x) for x in zip(*states, strict=True)))
    assert np.abs(a - right).max() < 1e-12 * np.abs(right).max()


def lagrange(mech: lw.Mechanism, theta: float, rate: float, tau: np.ndarray) -> tuple[np.ndarray, ...]:
    """q, v and a of Bennett's linkage of twists 0.6 and 1.1, by Lagrange's equation of its one freedom."""
    q, s, c = bennett(theta, rate, 0.6, 1.1)
    m, h = mech.mass_matrix(q), mech.bias_forces(q, rate * s)
    return q, rate * s, s * (s @ (tau - h - m @ c)) / (s @ m @ s) + c


@pytest.mark.parametrize("method", [*METHODS, "beyond 64 links", "beyond 64 links, assembly"])
def test_accelerations_of_an_open_loop_are_off_by_the_gap_and_no_more_beside_a_flat_position(method: str) -> None:
    """As those of the stages of a step: what is nearly zero there must not count as a further equation."""
    alone, tau, rng = loop("bennett", bennett_rows(0.4, 0.6, 1.1)), np.array([0.4, -0.3, 0.2]), np.random.default_rng(1)
    mech = loop("bennett", bennett_rows(0.4, 0.6, 1.1), beside=70) if "beyond" in method else alone
    at = [mech.joints[f"joint{k}"].v_slice.start for k in range(3)]
    name = {"beyond 64 links": None, "beyond 64 links, assembly": "assembly"}.get(method, method)
    for gap in (1e-12, 1e-10, 1e-8, 1e-6):
        for theta in (0.1, 1e-2, 1e-3, 1e-4, 1e-5, 0.0):
            near, speed, right = lagrange(alone, theta, 1.7, tau)
            q, v, force = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv)
            q[at], v[at] = near + gap * rng.uniform(-1, 1, 3), speed + gap * rng.uniform(-1, 1, 3)
            force[at] = tau
            a = mech.forward_dynamics(q, v, force, method=name)[at]
            assert np.abs(a - right).max() < 20.0 * gap + 1e-13, (gap, theta)


@pytest.mark.parametrize("method", ["rk45", "dop853"])
def test_bennetts_linkage_in_a_mechanism_beyond_64_links_passes_its_flat_position(method: str) -> None:
    mech = loop("bennett", bennett_rows(0.4, 0.6, 1.1), gravity=(0.0, 0.0, 0.0), beside=62)
    at = [mech.joints[f"joint{k}"].v_slice.start for k in range(3)]
    q, v = np.zeros(mech.nq), np.zeros(mech.nv)
    q[at], s, _ = bennett(0.4, 3.0, 0.6, 1.1)
    v[at] = -3.0 * s
    for rtol in (1e-6, 1e-9, 1e-12):
        sol = lw.simulate(mech, 0.5, q0=q, v0=v, rtol=rtol, method=method)
        assert sol.status, str(sol.status)
        right = np.array([bennett(theta, 0.0, 0.6, 1.1)[0] for theta in sol.q[:, at[0]]])
        assert sol.q[-1, at[0]] < -0.4
        assert np.abs(np.angle(np.exp(1j * (sol.q[:, at] - right)))).max() < 1e-9
        energy = mech.kinetic_energy(sol.q, sol.v)
        assert np.ptp(energy) < max(rtol, 1e-11) * energy[0]


def test_a_driven_bennett_linkage_is_analysed_through_its_flat_position() -> None:
    with lw.Builder("driven") as b:
        before = b.frame("ground")
        rows = bennett_rows(0.4, 0.6, 1.1)
        for k, (a, twist, _) in enumerate(rows):
            c, s = np.cos(twist), np.sin(twist)
            r, p = np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]]), np.array([a, 0.0, 0.0])
            if k < 3:
                body = b.body(f"link{k}", 1.0, *SOLID)
                b.joint("revolute", before, body, f"joint{k}")
                before = b.frame(body, r, p)
            else:
                b.joint("revolute", before, b.frame("ground", r.T, -r.T @ p), "last", cut=True)
        b.driver("joint", "joint0", 0.5 - lw.TIME, name="crank")
    times = np.array([0.0, 0.25, 0.4, 0.49, 0.499, 0.4999, 0.49999, 0.5, 0.50001, 0.6, 1.0])
    sol = lw.analyse(b.build(), times=times)
    alone = loop("bennett", rows)

    def tip(theta: float) -> np.ndarray:
        """Where the third link's frame is."""
        return alone.pose(bennett(theta, 0.0, 0.6, 1.1)[0], "link2")[:3, 3]

    step = 1e-3
    near = np.array([[tip(0.5 - t + k * step) for k in range(-3, 4)] for t in times])
    first, second = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60.0, np.array([2, -27, 270, -490, 270, -27, 2]) / 180.0
    np.testing.assert_allclose(sol.position("link2"), near[:, 3], atol=1e-12)
    np.testing.assert_allclose(sol.velocity("link2"), -np.einsum("k,tkx->tx", first, near) / step, atol=1e-10)
    np.testing.assert_allclose(sol.acceleration("link2"), np.einsum("k,tkx->tx", second, near) / step**2, atol=1e-8)


def test_bennetts_flat_position_is_not_singular_and_has_derivatives() -> None:
    alpha, beta, tau = 0.6, 1.1, np.zeros(3)
    mech = loop("bennett", bennett_rows(0.4, alpha, beta))
    q, s, _ = bennett(0.0, 0.0, alpha, beta)
    assert mech.singular(q) == []
    by_q, _, by_tau = mech.forward_dynamics_derivatives(q, 0.0 * s, tau)
    m = mech.mass_matrix(q)
    np.testing.assert_allclose(by_tau, np.outer(s, s) / (s @ m @ s), atol=1e-12)
    step, ends = 1e-4, []
    for side in (1.0, -1.0):
        there = bennett(side * step, 0.0, alpha, beta)[0]
        ends.append(mech.forward_dynamics(there, 0.0 * s, tau))
    np.testing.assert_allclose(by_q @ s, (ends[0] - ends[1]) / (2 * step), atol=1e-6)
    assert np.isfinite(mech.linearise(q, 0.0 * s, tau).A).all()


@pytest.mark.parametrize(("digits", "rtol"), [(4, 1e-6), (5, 1e-9), (5, 1e-12), (7, 1e-12)])
def test_a_loop_whose_rounded_lengths_leave_a_gap_is_simulated_nearly_as_the_exact_one(
    digits: int, rtol: float
) -> None:
    q, s, _ = bennett(0.7, 3.0, 0.6, 1.1)
    rounded, exact = (loop("bennett", bennett_rows(0.4, 0.6, 1.1, n)) for n in (digits, None))
    sol = lw.simulate(rounded, t_end=3.0, q0=q, v0=3.0 * s, rtol=rtol, saving=lw.Saving(interval=0.1))
    assert sol.status, str(sol.status)
    right = lw.simulate(exact, t_end=3.0, q0=q, v0=3.0 * s, rtol=1e-10, saving=lw.Saving(interval=0.1))
    assert np.abs(sol.q - right.q).max() < 100.0 * 10.0**-digits
    assert any("redundant loops are open by" in note for note in sol.status.notes)
    assert not right.status.notes
    closed, _ = rounded.project(q, s)
    assert np.abs(closed - q).max() < 10.0 * 10.0**-digits


def test_bennetts_linkage_keeps_its_energy_for_a_minute_in_free_motion() -> None:
    mech = loop("bennett", bennett_rows(0.4, 0.6, 1.1), gravity=(0.0, 0.0, 0.0))
    q, s, _ = bennett(0.7, 3.0, 0.6, 1.1)
    drift = {}
    for rtol, conserve in ((1e-6, "energy"), (1e-6, None), (1e-12, None)):
        sol = lw.simulate(mech, t_end=60.0, q0=q, v0=3.0 * s, rtol=rtol, stepping=lw.Stepping(conserve=conserve))
        assert sol.status, str(sol.status)
        energy = mech.kinetic_energy(sol.q, sol.v)
        drift[rtol, conserve] = np.abs(energy / energy[0] - 1.0).max()
    assert drift[1e-6, "energy"] < 1e-10
    assert drift[1e-12, None] < 1e-8
    assert 1e-5 < drift[1e-6, None] < 1e-1  # what it is without: rates are then no better than rtol in each step


# -- several loops that repeat each other's equations -----------------------------------------------------------------
def three_cranks() -> lw.Mechanism:
    """Parallel cranks, one beside the line of the two others: flat, each loop alone is singular, and together not."""
    with lw.Builder("three cranks") as b:
        b.gravity((0.0, -9.81, 0.0))
        coupler = b.body("coupler", 2.0, (1.0, 0.1, 0.0), (0.1, 0.1, 0.2))
        for k, foot in enumerate(((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.7, 0.5, 0.0))):
            crank = b.body(f"crank{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
            b.joint("revolute", b.triad(b.ground, foot), b.triad(crank), f"foot{k}")
            b.joint("revolute", b.triad(crank, (1, 0, 0)), b.triad(coupler, foot), f"pin{k}", cut=k > 0)
    return b.build()


@pytest.mark.parametrize("method", METHODS)
def test_cranks_that_determine_each_other_pass_where_each_loop_alone_is_singular(method: str) -> None:
    mech, rate = three_cranks(), 2.0
    ways = np.zeros(mech.nv)
    for name, sign in (("foot0", 1.0), ("foot1", 1.0), ("foot2", 1.0), ("pin0", -1.0)):
        ways[mech.joints[name].v_slice] = sign
    angles = np.array([0.8, 1e-3, 1e-5, 1e-7, 0.0])
    q, v, tau = angles[:, None] * ways, np.tile(rate * ways, (len(angles), 1)), np.zeros((len(angles), mech.nv))
    inertia = 3 * (0.1 + 1.0 * 0.25) + 2.0
    weight = 9.81 * (3 * 1.0 * 0.5 + 2.0)
    right = -(weight * np.cos(angles) / inertia)[:, None] * ways
    assert np.abs(by_numpy(mech, method, q, v, tau) - right).max() < 1e-10
    assert mech.singular(q[-1]) == []


# -- positions that are singular --------------------------------------------------------------------------------------
#: Angles and rates from which cranks turn over or swing through both flat positions.
STARTS = ((-0.7, 6.0), (-0.3, 6.5), (0.4, 5.0), (1.1, 7.0), (-1.2, 8.0), (0.9, -6.0))


def swung(way: np.ndarray, angle: float, rate: float, times: np.ndarray) -> np.ndarray:
    """(T, 2 nv): q and v of the parallelogram, whose cranks are one pendulum."""
    pull = 9.81 * 2.0 / (2 * 0.35 + 1.0)
    sol = solve_ivp(
        lambda t, y: [y[1], -pull * np.cos(y[0])],
        (0.0, times[-1]),
        [angle, rate],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
        t_eval=times,
    )
    return np.concatenate([np.outer(sol.y[0], way), np.outer(sol.y[1], way)], axis=1)


@pytest.mark.parametrize("method", ["rk45", "dop853"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-14])
def test_a_parallelogram_passes_its_flat_positions_at_every_tolerance(method: str, rtol: float) -> None:
    mech, way = parallelogram()
    for angle, rate in STARTS:
        sol = lw.simulate(mech, t_end=5.0, q0=angle * way, v0=rate * way, rtol=rtol, method=method)
        assert sol.status, (angle, rate, str(sol.status))
        assert np.ptp(np.sign(np.sin(sol.q @ way / 3.0))) > 0  # it went through
        energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q)
        assert np.ptp(energy) < max(300.0 * rtol, 1e-9) * mech.kinetic_energy(sol.q, sol.v).max()
        assert np.abs(sol.q - np.outer(sol.q @ way / 3.0, way)).max() < 1e-8  # on the branch of equal cranks


def no_force(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array([0.0 * float(x) for x in v])  # float() cannot be recorded


@pytest.mark.parametrize(
    ("method", "rtol", "tau"),
    [
        ("radau", 1e-6, None),
        ("radau", 1e-9, None),
        ("radau", 1e-6, no_force),
        ("rk45", 1e-9, no_force),
        ("rk45", 1e-12, no_force),
        ("dop853", 1e-12, no_force),
    ],
)
def test_implicit_steps_and_python_laws_pass_a_flat_position_too(method: str, rtol: float, tau: object) -> None:
    mech, way = parallelogram()
    times = np.linspace(0.0, 1.0, 11)
    for angle, rate in STARTS[:2]:
        sol = lw.simulate(
            mech, 1.0, q0=angle * way, v0=rate * way, rtol=rtol, method=method, tau=tau, saving=lw.Saving(times=times)
        )
        assert sol.status, (angle, rate, str(sol.status))
        right = swung(way, angle, rate, times)
        assert np.abs(np.concatenate([sol.q, sol.v], axis=1) - right).max() < max(1e3 * rtol, 1e-8)


def test_what_is_asked_for_within_a_crossing_is_as_exact_as_the_steps() -> None:
    mech, way = parallelogram()
    times = np.linspace(0.0, 1.0, 401)
    event = lw.Event(lambda t, q, v: q[0] - 0.02, name="beyond")
    for angle, rate in STARTS[:2]:
        right = swung(way, angle, rate, times)
        sol = lw.simulate(
            mech, 1.0, q0=angle * way, v0=rate * way, rtol=1e-12, events=event, saving=lw.Saving(times=times)
        )
        assert np.abs(sol.q - right[:, :3]).max() < 1e-9
        assert np.abs(sol.v - right[:, 3:]).max() < 1e-7
        assert np.abs(sol.events[0].q[0] - 0.02) < 1e-10


@pytest.mark.parametrize("method", ["rk45", "dop853", "radau", "a Python law"])
def test_bennetts_linkage_passes_its_flat_position_by_every_method(method: str) -> None:
    alpha, beta = 0.6, 1.1
    mech = loop("bennett", bennett_rows(0.4, alpha, beta), gravity=(0.0, 0.0, 0.0))
    q, s, _ = bennett(0.4, 3.0, alpha, beta)
    law, name = (no_force, "rk45") if method == "a Python law" else (None, method)
    for rtol in (1e-6, 1e-9) if method == "radau" else (1e-6, 1e-12):
        sol = lw.simulate(mech, 0.5, q0=q, v0=-3.0 * s, rtol=rtol, method=name, tau=law)
        assert sol.status, str(sol.status)
        assert sol.q[-1, 0] < -0.4
        right = np.array([bennett(theta, 0.0, alpha, beta)[0] for theta in sol.q[:, 0]])
        assert np.abs(np.angle(np.exp(1j * (sol.q - right)))).max() < 1e-8
        energy = mech.kinetic_energy(sol.q, sol.v)
        assert np.ptp(energy) < max(300.0 * rtol, 1e-10) * energy[0]


def test_steps_before_a_mechanism_that_locks_up_are_no_crossing() -> None:
    """A rocker that a driver leads beyond its reach."""
    with lw.Builder("rocker") as b:
        b.gravity((0.0, -9.81, 0.0))
        first, coupler, second = (b.body(n, 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for n in "abc")
        b.joint("revolute", b.triad(b.ground), b.triad(first), "first")
        b.joint("revolute", b.triad(first, (1, 0, 0)), b.triad(coupler), "near")
        b.joint("revolute", b.triad(b.ground, (2.5, 0, 0)), b.triad(second), "last")
        b.joint("revolute", b.triad(coupler, (1.2, 0, 0)), b.triad(second, (1.4, 0, 0)), "far", cut=True)
        b.driver("joint", "first", 1.2 + lw.TIME, name="d")
    mech = b.build()
    sol = lw.simulate(mech, 3.0, rtol=1e-9)
    assert not sol.status
    reach = np.arccos((1.0 + 2.5**2 - 2.6**2) / (2 * 1.0 * 2.5))  # coupler and rocker in one line
    assert abs(1.2 + sol.time[-1] - reach) < 1e-6


def test_derivatives_are_right_beside_a_singular_position_and_nan_where_rounding_spoils_them() -> None:
    mech, way = parallelogram()
    none, stiffness = np.zeros(3), 9.81 * 2.0 / (2 * 0.35 + 1.0)
    for theta in (1.0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 0.0):
        by_q, by_v, by_tau = mech.forward_dynamics_derivatives(theta * way, 2.0 * way, none)
        if theta < 1e-5:
            assert np.isnan(by_q).all()
            assert np.isnan(by_v).all()
            assert np.isnan(by_tau).all()
        elif not np.isnan(by_q).any():
            np.testing.assert_allclose(by_q @ way, stiffness * np.sin(theta) * way, atol=1e-6)
        assert theta < 1e-3 or np.isfinite(by_q).all()


def test_a_linear_model_about_a_singular_position_is_refused_with_the_joint_that_depends() -> None:
    mech, way = parallelogram()
    with pytest.raises(ModelError, match=r"singular position.*joint 'far'"):
        mech.linearise(0.0 * way, 0.0 * way, np.zeros(3))
    assert mech.singular(0.0 * way)
    assert not mech.singular(0.7 * way)
