"""Closed dynamics against a dense system of equations, made of poses, Jacobians, masses and bias forces alone.

The equations of every constraint are written here anew from the poses of named frames; their derivatives are taken by
complex steps and differences, never by the tape. Multipliers are compared by what they do, Gᵀλ, where they repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import solid

Floats = np.ndarray
METHODS = ("articulated-body", "virtual-work", "assembly", "mass-matrix")
STEP = 1e-30
Phi = Callable[[Callable[[str], Any], Any, Any], list]  # of poses by frame, q and t


@dataclass(frozen=True)
class Case:
    """A mechanism and its equations Φ, in the order of its multipliers."""

    mech: lw.Mechanism
    phi: Phi
    t: float = 0.3

    def residual(self, q: Floats, t: Any) -> Floats:
        def pose(frame: str) -> Floats:
            block = self.mech.program("pose", frame=frame).blocks[0]
            return np.array(block.evaluate([*q]), dtype=complex).reshape(4, 4)

        return np.array(self.phi(pose, q, t), dtype=complex)

    def along(self, q: Floats, v: Floats, dt: float = 0.0, t: float | None = None) -> Floats:
        """The rate of Φ for the rates v, and dt of time."""
        rate = self.mech.program("rate").blocks[0].evaluate([*q, *v])
        moved = q + 1j * STEP * np.array([float(x) for x in rate])
        return self.residual(moved, (self.t if t is None else t) + 1j * STEP * dt).imag / STEP

    def jacobian(self, q: Floats) -> Floats:
        return np.stack([self.along(q, e) for e in np.eye(self.mech.nv)], axis=1)

    def drift(self, q: Floats, v: Floats) -> Floats:
        """d(G v + Φ_t)/dt at constant v, by a difference of order 6."""
        h, weights = 2e-3, {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
        return sum(
            sign * w / h * self.along(self.mech.integrate(q, sign * n * h * v), v, 1.0, self.t + sign * n * h)
            for n, w in weights.items()
            for sign in (1, -1)
        )

    def state(self, seed: int = 0) -> tuple[Floats, Floats, Floats]:
        """q and v that satisfy Φ, by Newton's method on the equations here; and forces."""
        mech, rng = self.mech, np.random.default_rng(seed)
        q = mech.assemble(t=self.t)
        for _ in range(4):
            q = mech.integrate(q, -np.linalg.pinv(self.jacobian(q), rcond=1e-9) @ self.residual(q, self.t).real)
        assert np.abs(self.residual(q, self.t)).max() < 1e-12
        v = rng.normal(size=mech.nv)
        v = v - np.linalg.pinv(self.jacobian(q), rcond=1e-9) @ self.along(q, v, 1.0)
        return q, v, rng.normal(size=mech.nv)


def dense(case: Case, q: Floats, v: Floats, tau: Floats) -> tuple[Floats, Floats, Floats]:
    """a and λ of M a + h = tau + Gᵀλ, G a + (G v + Φ_t)˙ = 0; and G."""
    mech = case.mech
    m, h = mech.mass_matrix(q), mech.bias_forces(q, v, t=case.t)
    g, gamma = case.jacobian(q), case.drift(q, v)
    n = len(g)
    kkt = np.block([[m, -g.T], [g, np.zeros((n, n))]])
    x = np.linalg.lstsq(kkt, np.concatenate([tau - h, -gamma]), rcond=1e-11)[0]
    return x[: mech.nv], x[mech.nv :], g


# -- equations, as a person writes them ------------------------------------------------------------------------------
def point(i: Floats, j: Floats) -> Floats:
    """The origin of j in i."""
    return i[:3, :3].T @ (j[:3, 3] - i[:3, 3])


def pin(pose: Any, i: str, j: str) -> list:
    a, b = pose(i), pose(j)
    return [*point(a, b), a[:3, 0] @ b[:3, 2], a[:3, 1] @ b[:3, 2]]


def ball(pose: Any, i: str, j: str) -> list:
    return [*point(pose(i), pose(j))]


def distance(pose: Any, i: str, j: str) -> Any:
    d = pose(j)[:3, 3] - pose(i)[:3, 3]
    return np.sqrt(d @ d)


def turn(pose: Any, i: str, j: str) -> Any:
    """The angle about h from f of i to f of j, of both signs."""
    r = pose(i)[:3, :3].T @ pose(j)[:3, :3]
    return np.arctan(r[1, 0] / r[0, 0]) + (0.0 if r[0, 0].real > 0 else np.pi * (1.0 if r[1, 0].real >= 0 else -1.0))


# -- mechanisms ------------------------------------------------------------------------------------------------------
def triads(b: lw.Builder, k: str, i: Any, at: Any, j: Any, to: Any, **axes: Any) -> tuple[Any, Any]:
    """Named triads i…, j… of a joint."""
    return b.triad(i, at, **axes, name=f"i{k}"), b.triad(j, to, **axes, name=f"j{k}")


def four_bar(drivers: Callable[[lw.Builder], None] | None = None, lengths: Sequence[float] = (1, 3, 2.5, 3)) -> Any:
    """Four pins; `drivers` adds to it. The loop is cut at C."""
    crank, rod, rocker, base = lengths
    with lw.Builder("four-bar") as b:
        b.gravity((1.0, -9.0, 2.0))
        parts = [solid(b, n, k) for k, n in enumerate(("crank", "coupler", "rocker"))]
        b.place(parts[0], (0, 0, 0), f=(0.4, 1.0, 0))
        b.place(parts[1], (0.4, 1.0, 0), f=(3, 0.9, 0))
        b.place(parts[2], (base, 0, 0), f=(0.4, 2.4, 0))
        b.joint("revolute", *triads(b, "A", b.ground, (0, 0, 0), parts[0], (0, 0, 0)), "A")
        b.joint("revolute", *triads(b, "B", parts[0], (crank, 0, 0), parts[1], (0, 0, 0)), "B")
        b.joint("revolute", *triads(b, "D", b.ground, (base, 0, 0), parts[2], (0, 0, 0)), "D")
        b.joint("revolute", *triads(b, "C", parts[1], (rod, 0, 0), parts[2], (rocker, 0, 0)), "C", cut=True)
        if drivers is not None:
            drivers(b)
    return b.build()


def closed_four_bar() -> Case:
    return Case(four_bar(), lambda pose, q, t: pin(pose, "iC", "jC"))


def parallelogram() -> Case:
    """Two couplers between two cranks: one coupler and all equations across the plane are redundant."""

    def second(b: lw.Builder) -> None:
        more = solid(b, "second", 9)
        b.place(more, (0.5, 0.5, 0))
        b.joint("revolute", *triads(b, "E", "crank", (0.5, 0, 0), more, (0, 0, 0)), "E")
        b.joint("revolute", *triads(b, "F", more, (3, 0, 0), "rocker", (0.5, 0, 0)), "F", cut=True)

    mech = four_bar(second, (1, 3, 1, 3))
    return Case(mech, lambda pose, q, t: pin(pose, "iC", "jC") + pin(pose, "iF", "jF"))


def motor_of_a_tree_joint() -> Case:
    mech = four_bar(lambda b: b.driver("joint", "A", 1.2 + 0.3 * np.sin(2.0 * lw.TIME), name="motor"))
    return Case(mech, lambda pose, q, t: [*pin(pose, "iC", "jC"), q[0] - 1.2 - 0.3 * np.sin(2.0 * t)])


def motor_of_a_loops_joint() -> Case:
    mech = four_bar(lambda b: b.driver("joint", "C", -1.7 + 0.2 * np.sin(2.0 * lw.TIME), name="motor"))
    return Case(mech, lambda pose, q, t: [*pin(pose, "iC", "jC"), turn(pose, "iC", "jC") + 1.7 - 0.2 * np.sin(2.0 * t)])


def pulled_along_x() -> Case:
    def winch(b: lw.Builder) -> None:
        b.driver("absolute", b.triad("coupler", (1, 0.2, 0.1), name="hook"), 1.3 + 0.1 * lw.TIME**2, coordinate="x")

    mech = four_bar(winch)
    return Case(mech, lambda pose, q, t: [*pin(pose, "iC", "jC"), pose("hook")[0, 3] - 1.3 - 0.1 * t**2])


def pulled_by_a_winch() -> Case:
    def winch(b: lw.Builder) -> None:
        eye = b.triad(b.ground, (0.5, -1.0, 0.3), name="eye")
        hook = b.triad("coupler", (1, 0.2, 0.1), name="hook")
        b.driver("distance", eye, 2.3 + 0.1 * np.sin(lw.TIME), other=hook)

    def phi(pose: Any, q: Any, t: Any) -> list:
        return [*pin(pose, "iC", "jC"), distance(pose, "eye", "hook") - 2.3 - 0.1 * np.sin(t)]

    return Case(four_bar(winch), phi)


def turned_about_h() -> Case:
    def law(b: lw.Builder) -> None:
        b.driver("angle", "crank", 0.3 * lw.TIME - 1.0, other="rocker", name="spread")

    mech = four_bar(law)
    return Case(mech, lambda pose, q, t: [*pin(pose, "iC", "jC"), turn(pose, "crank", "rocker") - 0.3 * t + 1.0])


def turned_in_space() -> Case:
    """The angle between axes of bodies on a ball."""
    with lw.Builder("gimbal") as b:
        one, two = solid(b, "one", 3), solid(b, "two", 4)
        b.place(two, (0.5, 0.4, 0.3), h=(1, 0.2, 0.3), f=(0, 1, 0))
        b.joint("spherical", b.ground, one, "first")
        b.joint("spherical", b.triad(one, (0.5, 0.4, 0.3)), two, "second")
        b.driver("angle", one, 1.0 + 0.2 * lw.TIME, other=two, axes=("f", "h"))

    def phi(pose: Any, q: Any, t: Any) -> list:
        return [np.arccos(pose("one")[:3, 0] @ pose("two")[:3, 2]) - 1.0 - 0.2 * t]

    return Case(b.build(), phi)


def spatial_rod() -> Case:
    with lw.Builder("slider with rod") as b:
        crank, block = solid(b, "crank", 5), solid(b, "block", 6)
        b.place(block, (2.6, 0.1, 0.2))
        b.joint("revolute", b.ground, crank, "bearing")
        along = {"h": (1.0, 0.0, 0.1), "f": (0.0, 1.0, 0.0)}
        b.joint("prismatic", b.triad(b.ground, (0, 0, 0.2), **along), b.triad(block, **along), "slide")
        ends = b.triad(crank, (0.3, 0.8, 0.1), name="near"), b.triad(block, (0, 0, 0.1), name="far")
        b.rod(*ends, 2.5, "rod")
    return Case(b.build(), lambda pose, q, t: [distance(pose, "near", "far") - 2.5])


def rssr() -> Case:
    with lw.Builder("rssr") as b:
        crank, coupler, rocker = (solid(b, n, 10 + k) for k, n in enumerate(("crank", "coupler", "rocker")))
        b.place(coupler, (1, 0, 0))
        b.place(rocker, (2.8, 0.2, 0))
        b.joint("revolute", b.ground, crank, "A")
        b.joint("spherical", b.triad(crank, (1, 0, 0)), coupler, "B")
        b.joint("revolute", *triads(b, "D", b.ground, (2.8, 0.2, 0), rocker, (0, 0, 0), h=(0.2, 1, 0.3)), "D")
        b.joint("spherical", *triads(b, "C", coupler, (2.2, 0, 0), rocker, (0, 0, 1.4)), "C", cut=True)
    return Case(b.build(), lambda pose, q, t: ball(pose, "iC", "jC"))


def points() -> Case:
    """A tip on a line of a moving body, and a free puck in a plane of another."""
    with lw.Builder("points") as b:
        upper, lower, puck = (solid(b, n, 50 + k) for k, n in enumerate(("upper", "lower", "puck")))
        b.place(upper, (0, 0, 0))
        b.place(lower, (1, 0, 0))
        b.place(puck, (0.3, 0.4, 0.9))
        b.joint("universal", b.triad(b.ground), b.triad(upper, h=(0, 1, 0)), "shoulder")
        b.joint("spherical", b.triad(upper, (1, 0, 0)), b.triad(lower), "elbow")
        b.joint("free", b.ground, puck, "loose")
        rail = b.triad(b.ground, (1.4, 0.9, 0.2), h=(0.3, 0.1, 1.0), name="rail")
        b.point_on_line(rail, b.triad(lower, (0.4, 0.9, 0.1), name="tip"), "on rail")
        table = b.triad(lower, (0, 0, 0.5), h=(0.2, 0.1, 1), name="table")
        b.point_on_plane(table, b.triad(puck, (0.1, 0.1, 0.2), name="foot"), "on table")

    def phi(pose: Any, q: Any, t: Any) -> list:
        return [*point(pose("rail"), pose("tip"))[:2], point(pose("table"), pose("foot"))[2]]

    return Case(b.build(), phi)


def gears(cut: Sequence[str], *, ratio: float = -2.0, offset: float = 0.4) -> Case:
    """Two wheels on swinging arms, the first following the second; those in `cut` are held by loops."""
    with lw.Builder("gears") as b:
        for k, name in enumerate(("first", "second")):
            carrier, wheel = solid(b, f"{name} carrier", 75 + k), solid(b, name, 70 + k)
            axis = {"h": (0.1, 1, 0.2)}
            b.joint("revolute", b.triad(b.ground, (2.0 * k, 0, 0), **axis), b.triad(carrier, **axis), f"{name} arm")
            if name in cut:
                b.joint("cylindrical", b.triad(carrier), b.triad(wheel), f"{name} hub")
            b.joint("revolute", *triads(b, name, carrier, (0, 0, 0), wheel, (0, 0, 0)), name, cut=name in cut)
        b.mimic("first", "second", ratio, offset, name="mesh")
    mech = b.build()
    angle = {n: (lambda pose, n=n: turn(pose, f"i{n}", f"j{n}")) for n in ("first", "second")}

    def phi(pose: Any, q: Any, t: Any) -> list:
        loops = [x for n in ("first", "second") if n in cut for x in pin(pose, f"i{n}", f"j{n}")]
        return [*loops, angle["first"](pose) - ratio * angle["second"](pose) - offset]

    return Case(mech, phi)


CASES: dict[str, Callable[[], Case]] = {
    "four-bar": closed_four_bar,
    "parallelogram": parallelogram,
    "motor of a tree joint": motor_of_a_tree_joint,
    "motor of a loop's joint": motor_of_a_loops_joint,
    "pulled along x": pulled_along_x,
    "pulled by a winch": pulled_by_a_winch,
    "turned about h": turned_about_h,
    "turned in space": turned_in_space,
    "spatial rod": spatial_rod,
    "rssr": rssr,
    "points on a line and a plane": points,
    "a gear led by a tree joint": lambda: gears(("first",)),
    "a gear that leads a loop": lambda: gears(("second",)),
    "a gear between two loops": lambda: gears(("first", "second")),
    "a slow gear between two loops": lambda: gears(("first", "second"), ratio=0.5),
}
case = cache(lambda name: CASES[name]())
cases = pytest.mark.parametrize("name", list(CASES))


def relative(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


@cases
def test_accelerations_solve_the_equations_of_motion(name: str) -> None:
    c = case(name)
    q, v, tau = c.state()
    a, _, _ = dense(c, q, v, tau)
    for method in METHODS:
        assert relative(c.mech.forward_dynamics(q, v, tau, t=c.t, method=method), a) < 2e-9, method


@cases
def test_all_methods_give_one_answer(name: str) -> None:
    c = case(name)
    q, v, tau = c.state(1)
    first, *others = (c.mech.forward_dynamics(q, v, tau, t=c.t, method=method) for method in METHODS)
    for other in others:
        assert relative(other, first) < 1e-10


@cases
def test_multipliers_balance_the_accelerations(name: str) -> None:
    """M a + h − tau = Gᵀλ, with G of the equations as written here, whose order and scale are the multipliers'."""
    c = case(name)
    q, v, tau = c.state(2)
    m, h, g = c.mech.mass_matrix(q), c.mech.bias_forces(q, v, t=c.t), c.jacobian(q)
    for method in METHODS:
        program = c.mech.program("constraint_forces", method=method)
        given = (q, v, tau, np.array(c.t)) if len(program.inputs) == 4 else (q, v, tau)
        a = c.mech.forward_dynamics(q, v, tau, t=c.t, method=method)
        assert relative(g.T @ program(*given), m @ a + h - tau) < 1e-9, method


@cases
def test_closing_takes_phi_away_and_says_what_it_was(name: str) -> None:
    c = case(name)
    q = c.mech.integrate(c.state()[0], 1e-3 * np.random.default_rng(3).normal(size=c.mech.nv))
    dv, phi = c.mech.kernels.position_correction(q, c.t)
    assert np.abs(phi - c.residual(q, c.t).real).max() < 1e-13
    g, m = c.jacobian(q), c.mech.mass_matrix(q)
    # Least in the metric of M: M dv is a combination of the rows of G.
    assert relative(g.T @ np.linalg.lstsq(g.T, m @ dv, rcond=1e-10)[0], m @ dv) < 1e-9
    for _ in range(3):
        q = c.mech.integrate(q, c.mech.kernels.position_correction(q, c.t)[0])
    assert np.abs(c.residual(q, c.t)).max() < 1e-13


@cases
def test_settling_makes_the_least_change_of_rates(name: str) -> None:
    c = case(name)
    q, _, v = c.state()
    dv, rate = c.mech.kernels.velocity_projection(q, v, c.t)
    assert np.abs(rate - c.along(q, v, 1.0)).max() < 1e-12
    assert np.abs(c.along(q, v + dv, 1.0)).max() < 1e-10
    g, m = c.jacobian(q), c.mech.mass_matrix(q)
    assert relative(g.T @ np.linalg.lstsq(g.T, m @ dv, rcond=1e-10)[0], m @ dv) < 1e-9


@cases
def test_power_goes_into_energy(name: str) -> None:
    """tau·v − λ·Φ_t is the rate of the energy, which is differentiated along the motion."""
    c = case(name)
    q, v, tau = c.state(4)
    a = c.mech.forward_dynamics(q, v, tau, t=c.t)
    h, phi_t = 1e-4, c.along(q, 0.0 * v, 1.0)

    def energy(s: float) -> float:
        there, rates = c.mech.integrate(q, s * v + 0.5 * s * s * a), v + s * a
        return float(c.mech.kinetic_energy(there, rates) + c.mech.potential_energy(there))

    rate = (8.0 * (energy(h) - energy(-h)) - energy(2 * h) + energy(-2 * h)) / (12.0 * h)
    given = tau @ v - c.mech.constraint_forces(q, v, tau, t=c.t) @ phi_t
    assert rate == pytest.approx(given, rel=1e-6, abs=1e-6)


#: One of each sort; the others take as long.
SHORT = ("four-bar", "motor of a tree joint", "spatial rod", "a gear led by a tree joint")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in SHORT else [pytest.mark.slow]) for n in CASES])
def test_derivatives_of_accelerations_are_their_differences(name: str) -> None:
    """Along states that keep the constraints closed, where repeated equations repeat; forces may change in any way."""
    c = case(name)
    q, v, tau = c.state(5)
    mech, g = c.mech, c.jacobian(q)
    by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau, t=c.t)
    _, sizes, rows = np.linalg.svd(g)
    allowed = rows[int(np.sum(sizes > 1e-9 * sizes[0])) :].T

    def settled(dq: Floats, dv: Floats) -> tuple[Floats, Floats]:
        there = mech.integrate(q, dq)
        for _ in range(3):
            there = mech.integrate(there, mech.kernels.position_correction(there, c.t)[0])
        return there, v + dv + mech.kernels.velocity_projection(there, v + dv, c.t)[0]

    def check(dq: Floats, dv: Floats) -> None:
        """A difference of accelerations against the derivatives along the way that it went."""
        h = 1e-4
        (q1, v1), (q2, v2) = settled(h * dq, h * dv), settled(-h * dq, -h * dv)
        a1, a2 = (mech.forward_dynamics(*there, tau, t=c.t) for there in ((q1, v1), (q2, v2)))
        way_q, way_v = (mech.difference(q, q1) - mech.difference(q, q2)) / (2.0 * h), (v1 - v2) / (2.0 * h)
        assert relative(by_q @ way_q + by_v @ way_v, (a1 - a2) / (2.0 * h)) < 1e-5

    for move in allowed.T:
        check(move, np.zeros(mech.nv))
        check(np.zeros(mech.nv), move)
    base = mech.forward_dynamics(q, v, tau, t=c.t)
    pushed = np.stack([mech.forward_dynamics(q, v, tau + e, t=c.t) - base for e in np.eye(mech.nv)], axis=1)
    assert relative(by_tau, pushed) < 1e-9
