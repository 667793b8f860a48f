"""Closed dynamics with what acts on it: forces on joints that close loops, point forces, wrenches, shared coordinates,
free parameters; and states at which constraints repeat or contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import platform, solid
from linkwright.errors import ModelError
from linkwright.mechanism import Mechanism
from linkwright.model.description import Start
from linkwright.model.expression import Name

METHODS = ("articulated-body", "virtual-work", "assembly", "mass-matrix")
methods = pytest.mark.parametrize("method", METHODS)
Q, V = Name("q"), Name("v")


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


def accelerations(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The rates of the bodies' twists in ground's axes, by differences: what does not depend on where loops are cut."""
    h = 1e-5

    def twists(s: float) -> np.ndarray:
        there = mech.integrate(q, s * v + 0.5 * s * s * a)
        return np.stack([mech.twist(there, v + s * a, body, "aligned") for body in sorted(x.name for x in mech.bodies)])

    return (twists(h) - twists(-h)) / (2.0 * h)


def loop(cut: str, kinds: dict[str, str], add: Callable[[lw.Builder], None]) -> lw.Mechanism:
    """A spatial loop of four bodies, in which `cut` is the joint that closes it."""
    with lw.Builder("loop") as b:
        bodies = [solid(b, f"body{k}", 30 + k, 0.5) for k in range(5)]
        below: Any = b.ground
        for k, (name, kind) in enumerate(kinds.items()):
            axis = {"h": (0.3 * k, 1.0 - 0.4 * k, 0.5), "f": (1.0, 0.1 * k, 0.2)}
            last = k == len(kinds) - 1
            j = b.triad(b.ground, (0.9, 0.3, 0.1), **axis) if last else b.triad(bodies[k], **axis)
            i = b.triad(below, (0.5, 0.1 * k, 0.2) if k else (0, 0, 0), **axis)
            b.joint(kind, i, j, name, cut=name == cut)
            below = None if last else bodies[k]
        b.joint("prismatic", b.ground, bodies[4], "alone")
        add(b)
    return b.build()


KINDS = {"A": "universal", "B": "cylindrical", "C": "spherical", "D": "planar", "E": "cylindrical"}


def matching(first: lw.Mechanism, second: lw.Mechanism) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """One consistent state of a mechanism, in its coordinates when cut at two joints."""
    q = first.assemble()
    q, v = first.project(q, np.random.default_rng(1).normal(size=first.nv))
    poses = {body.name: first.pose(q, body.name) for body in first.bodies}
    d = second.description
    start = {name: poses[name] for name in d.body_names}
    drawn = Start(
        np.ones(d.nb, bool),
        np.array([start[n][:3, :3] for n in d.body_names]),
        np.array([start[n][:3, 3] for n in d.body_names]),
    )
    q2 = Mechanism(replace(d, start=drawn)).assemble()
    twists = np.concatenate([first.twist(q, v, body.name) for body in second.bodies])
    jacobian = np.concatenate([second.jacobian(q2, body.name) for body in second.bodies])
    v2 = np.linalg.lstsq(jacobian, twists, rcond=None)[0]
    assert relative(jacobian @ v2, twists) < 1e-9
    return (q, v), (q2, v2)


@pytest.mark.parametrize(("joint", "other"), [("A", "C"), ("B", "C"), ("C", "B"), ("D", "C"), ("E", "C")])
def test_a_force_on_a_joint_acts_alike_in_the_tree_and_on_the_loop(joint: str, other: str) -> None:
    """Springs and dampers on every rate of a joint, cut there or elsewhere."""

    def springs(b: lw.Builder) -> None:
        spherical = KINDS[joint] == "spherical"
        for k in range({"universal": 2, "cylindrical": 2, "spherical": 3, "planar": 3}[KINDS[joint]]):
            b.joint_force(joint, (-3.0 - k) * V if spherical else (-20.0 + k) * Q - (2.0 + k) * V, index=k)

    first, second = loop(joint, KINDS, springs), loop(other, KINDS, springs)
    assert first.loops == (joint,)
    (q, v), (q2, v2) = matching(first, second)
    one = accelerations(first, q, v, first.forward_dynamics(q, v, np.zeros(first.nv)))
    two = accelerations(second, q2, v2, second.forward_dynamics(q2, v2, np.zeros(second.nv)))
    assert relative(one, two) < 1e-6
    bare = loop(joint, KINDS, lambda b: None)
    without = accelerations(bare, q, v, bare.forward_dynamics(q, v, np.zeros(bare.nv)))
    assert relative(without, one) > 1e-2


def test_an_armature_on_a_loops_joint_is_one_in_the_tree() -> None:
    def with_rotor(cut: str) -> lw.Mechanism:
        d = loop(cut, KINDS, lambda b: None).description
        return Mechanism(replace(d, armature=np.where(np.array(d.joint_names) == "B", 0.4, 0.0)))

    first, second = with_rotor("B"), with_rotor("C")
    (q, v), (q2, v2) = matching(first, second)
    one = accelerations(first, q, v, first.forward_dynamics(q, v, np.zeros(first.nv)))
    two = accelerations(second, q2, v2, second.forward_dynamics(q2, v2, np.zeros(second.nv)))
    assert relative(one, two) < 1e-6


@methods
def test_point_forces_and_wrenches_act_on_loops(method: str) -> None:
    """M a + h − tau is in the range of Gᵀ, h with all forces; and the loop stays closed."""

    def forces(b: lw.Builder) -> None:
        b.point_force(b.triad("body0", (0.1, 0.2, 0.3)), b.triad("body3", (0.2, 0, 0)), 30.0 - 40.0 * Name("d"))
        b.applied_wrench("body2", (1.0, 2.0, 3.0), (0.1, 0.2, 0.3))

    mech = loop("C", KINDS, forces)
    q, v = mech.project(mech.assemble(), np.random.default_rng(1).normal(size=mech.nv))
    push, tau = np.random.default_rng(2).normal(size=(mech.nb, 6)), np.random.default_rng(3).normal(size=mech.nv)
    a = mech.forward_dynamics(q, v, tau, wrenches=push, method=method)
    h = mech.program("bias_forces", wrenches=True)(q, v, push)
    left = mech.mass_matrix(q) @ a + h - tau
    g = np.stack([mech.kernels.velocity_projection(q, e)[1] for e in np.eye(mech.nv)], axis=1)
    assert np.abs(g.T @ np.linalg.lstsq(g.T, left, rcond=None)[0] - left).max() < 1e-9
    s = 1e-4
    rates = [
        mech.kernels.velocity_projection(mech.integrate(q, k * s * v + 0.5 * (k * s) ** 2 * a), v + k * s * a)[1]
        for k in (1, -1)
    ]
    assert np.abs(rates[0] - rates[1]).max() / (2 * s) < 1e-5


def test_joints_that_share_a_coordinate_close_loops_too() -> None:
    """A four-bar whose rocker follows a wheel on ground at twice its angle."""

    def build(coupled: bool) -> lw.Mechanism:
        with lw.Builder("geared four-bar") as b:
            crank, coupler, rocker, wheel = (solid(b, n, k) for k, n in enumerate(("crank", "coupler", "rocker", "w")))
            b.place(coupler, (1, 0, 0), f=(1, 1, 0))
            b.place(rocker, (3, 0, 0), f=(-0.2, 1, 0))
            b.joint("revolute", "ground", wheel, "wheel")
            b.joint("revolute", "ground", crank, "A")
            b.joint("revolute", b.triad(crank, (1, 0, 0)), coupler, "B")
            b.joint("revolute", b.triad("ground", (3, 0, 0)), rocker, "D")
            b.joint("revolute", b.triad(coupler, (3, 0, 0)), b.triad(rocker, (2.5, 0, 0)), "C", cut=True)
            if coupled:
                b.mimic("D", "wheel", 2.0, 0.1)
        return b.build()

    mech, free = build(True), build(False)
    q, v = mech.project(mech.assemble(), np.random.default_rng(0).normal(size=mech.nv))
    tau = np.array([0.5, -1.0, 2.0])
    a = mech.forward_dynamics(q, v, tau)
    # In the free one, a generalised force may hold D to the wheel: Gᵀ has one more column.
    whole, rates, acc = (
        np.array([x[0], x[1], x[2], 2.0 * x[0] + extra]) for x, extra in ((q, 0.1), (v, 0.0), (a, 0.0))
    )
    order = [[j.name for j in free.joints].index(n) for n in ("wheel", "A", "B", "D")]
    names = [j.name for j in mech.joints if j.mimics is None]
    assert names == ["wheel", "A", "B"]
    put = np.argsort(order)
    whole, rates, acc = whole[put], rates[put], acc[put]
    left = free.mass_matrix(whole) @ acc + free.bias_forces(whole, rates)
    left[order[0]] -= tau[0]
    left[order[1]] -= tau[1]
    left[order[2]] -= tau[2]
    g = np.stack([free.kernels.velocity_projection(whole, e)[1] for e in np.eye(4)], axis=1)
    share = np.zeros(4)
    share[order[3]], share[order[0]] = 1.0, -2.0
    g = np.concatenate([g, share[None]])
    assert np.abs(g.T @ np.linalg.lstsq(g.T, left, rcond=1e-10)[0] - left).max() < 1e-9
    bias = mech.forward_dynamics(q, v, 0.0 * tau)
    assert np.abs((a - bias) @ (mech.mass_matrix(q) @ (a - bias)) - (a - bias) @ tau).max() < 1e-9


@methods
@pytest.mark.parametrize("function", ["forward_dynamics", "constraint_forces"])
def test_a_platform_on_six_legs_has_the_same_forces_by_all_methods(method: str, function: str) -> None:
    mech = platform()
    q, v = mech.project(mech.assemble(), 0.3 * np.random.default_rng(5).normal(size=mech.nv))
    tau = np.random.default_rng(6).normal(size=mech.nv)
    found = mech.program(function, method=method)(q, v, tau)
    assert relative(found, mech.program(function)(q, v, tau)) < 1e-9


def test_a_parallelogram_swings_as_its_closed_form_says() -> None:
    """Two uniform rods of mass m and length l carry a beam of mass M: θ̈ (2m/3 + M) l = −(m + M) g sin θ."""
    m, beam, length, g, theta = 1.3, 2.1, 0.7, 9.81, 0.6
    inertia = m * length**2 / 12.0
    with lw.Builder("swing") as b:
        b.gravity((0.0, -g, 0.0))
        for k in range(2):
            b.body(f"rod{k}", m, (0.0, -length / 2, 0.0), (inertia, 1e-4, inertia))
            b.joint("revolute", b.triad("ground", (1.1 * k, 0.0, 0.0)), f"rod{k}", f"top{k}")
        b.body("beam", beam, (0.4, 0.03, 0.0), (0.1, 0.1, 0.1))
        b.joint("revolute", b.triad("rod0", (0.0, -length, 0.0)), "beam", "left")
        b.joint("revolute", b.triad("beam", (1.1, 0.0, 0.0)), b.triad("rod1", (0.0, -length, 0.0)), "right", cut=True)
    mech = b.build()
    names = [j.name for j in mech.joints]
    q = np.array([{"top0": theta, "top1": theta, "left": -theta}[n] for n in names])
    a = mech.forward_dynamics(q, np.zeros(3), np.zeros(3))
    expected = -(m + beam) * g * np.sin(theta) / ((2.0 * m / 3.0 + beam) * length)
    assert a[names.index("top0")] == pytest.approx(expected, rel=1e-12)
    assert a[names.index("left")] == pytest.approx(-expected, rel=1e-12)


# -- reactions ---------------------------------------------------------------------------------------------------------
def test_reactions_do_not_depend_on_where_a_loop_without_redundancy_is_cut() -> None:
    first, second = loop("C", KINDS, lambda b: None), loop("D", KINDS, lambda b: None)
    (q, v), (q2, v2) = matching(first, second)
    one, two = first.reactions(q, v, np.zeros(first.nv)), second.reactions(q2, v2, np.zeros(second.nv))
    for name in ("A", "B"):
        k, n = ([j.name for j in mech.joints].index(name) for mech in (first, second))
        assert relative(one[k], two[n]) < 1e-8


# -- parameters --------------------------------------------------------------------------------------------------------
@methods
def test_free_parameters_reach_ties_and_laws_of_drivers(method: str) -> None:
    with lw.Builder("rod") as b:
        length, place, speed = b.parameter("length", 2.5), b.parameter("place", 0.8), b.parameter("speed", 0.4)
        crank, block, third = (solid(b, n, k) for k, n in enumerate(("crank", "block", "third")))
        b.place(block, (2.6, 0.1, 0.2))
        b.joint("revolute", b.ground, crank, "bearing")
        b.joint("prismatic", b.triad(b.ground, h=(1, 0, 0), f=(0, 1, 0)), b.triad(block, h=(1, 0, 0), f=(0, 1, 0)), "x")
        b.joint("spherical", b.triad(block, (0, 0.5, 0)), third, "hook")
        b.rod(b.triad(crank, (0.3, place, 0.1)), b.triad(block, (0, 0, 0.1)), length, "rod")
        b.driver("absolute", b.triad(third, (0.3, 0.1, 0.2)), 0.1 * np.sin(speed * lw.TIME), coordinate="z")
    mech = b.build()
    values = {"length": 2.6, "place": 0.75, "speed": 0.9}
    changed = mech.with_parameters(**values)
    q, v = changed.project(changed.assemble(t=0.3), np.random.default_rng(0).normal(size=mech.nv), t=0.3)
    tau, t = np.array([1.0, 0.5, 0.1, 0.2, 0.3]), np.array(0.3)
    for function, given in (
        ("forward_dynamics", (q, v, tau)),
        ("constraint_forces", (q, v, tau)),
        ("velocity_projection", (q, v)),
    ):
        program = mech.program(function, method=method, free=tuple(values))
        right = changed.program(function, method=method)(*given, t)
        found = program(*given, t, np.array(list(values.values())))
        for one, two in zip(*((x,) if isinstance(x, np.ndarray) else x for x in (found, right)), strict=True):
            assert relative(one, two) < 1e-11


# -- singular, redundant, contradictory --------------------------------------------------------------------------------
def flat(lengths: tuple[float, float, float, float]) -> lw.Mechanism:
    crank, rod, rocker, base = lengths
    with lw.Builder("flat") as b:
        b.gravity((0.0, -9.81, 0.0))
        for k, name in enumerate(("crank", "coupler", "rocker")):
            b.body(name, 1.0 + k, (0.4, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.joint("revolute", "ground", "crank", "A")
        b.joint("revolute", b.triad("crank", (crank, 0, 0)), "coupler", "B")
        b.joint("revolute", b.triad("ground", (base, 0, 0)), "rocker", "D")
        b.joint("revolute", b.triad("coupler", (rod, 0, 0)), b.triad("rocker", (rocker, 0, 0)), "C", cut=True)
    return b.build()


@methods
def test_a_stretched_linkage_has_finite_accelerations(method: str) -> None:
    """All bars on one line: the loop's equations lose a rank, nothing is divided by it."""
    mech = flat((1.0, 2.0, 1.0, 2.0))
    a = mech.forward_dynamics(np.zeros(3), np.zeros(3), np.array([1.0, 0.0, 0.0]), method=method)
    assert np.isfinite(a).all()


@methods
def test_a_linkage_just_past_the_line_keeps_closed(method: str) -> None:
    mech = flat((1.0, 2.0, 1.0, 2.0))
    q = np.array([1e-3, 0.0, 0.0])
    q[[j.name for j in mech.joints].index("D")] = 1e-3
    q[[j.name for j in mech.joints].index("B")] = -1e-3
    a = mech.forward_dynamics(q, np.zeros(3), np.array([1.0, 0.0, 0.0]), method=method)
    g = np.stack([mech.kernels.velocity_projection(q, e)[1] for e in np.eye(3)], axis=1)
    assert np.abs(g @ a).max() < 1e-9 * np.abs(a).max()


@methods
def test_an_open_loop_has_finite_accelerations(method: str) -> None:
    mech = flat((1.0, 3.0, 2.5, 3.0))
    a = mech.forward_dynamics(np.array([0.3, 1.0, 2.0]), np.ones(3), np.zeros(3), method=method)
    assert np.isfinite(a).all()


@methods
def test_drivers_that_contradict_a_loop_leave_numbers(method: str) -> None:
    with lw.Builder("twice") as b:
        b.body("arm", 1.0, (0.4, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.joint("revolute", "ground", "arm", "A")
        b.driver("joint", "A", lw.TIME, name="one")
        b.driver("joint", "A", 2.0 * lw.TIME, name="two")
    a = b.build().forward_dynamics(np.array([0.3]), np.zeros(1), np.zeros(1), t=0.3, method=method)
    assert np.isfinite(a).all()


def test_a_gear_between_loops_whose_turns_nothing_counts_is_refused() -> None:
    with lw.Builder("gears") as b:
        for k in range(2):
            arm, wheel = solid(b, f"arm{k}", k), solid(b, f"wheel{k}", 5 + k)
            b.joint("revolute", b.triad("ground", (k, 0, 0)), arm, f"arm joint {k}")
            b.joint("cylindrical", arm, wheel, f"hub{k}")
            b.joint("revolute", arm, wheel, f"bearing{k}", cut=True)
        b.mimic("bearing0", "bearing1", 1.5, name="mesh")
    with pytest.raises(ModelError, match=r"gear 'mesh' joins two joints that close loops.*cut another joint than"):
        b.build().program("forward_dynamics")


def test_ties_and_drivers_refuse_the_methods_of_trees() -> None:
    with lw.Builder("arm") as b:
        b.body("arm", 1.0, (0.4, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.joint("revolute", "ground", "arm", "A")
        b.driver("joint", "A", lw.TIME, name="motor")
    with pytest.raises(ModelError, match=r"driver 'motor' prescribes a motion; method='diagonal'.*articulated-body"):
        b.build().program("forward_dynamics", method="diagonal")


def test_a_tree_has_no_constraint_forces() -> None:
    with pytest.raises(ModelError, match="constraint_forces is for mechanisms with loops"):
        lw.chain(3).program("constraint_forces")


# -- turns -------------------------------------------------------------------------------------------------------------
@methods
def test_a_nut_falls_down_its_screw_through_any_number_of_turns(method: str) -> None:
    """θ̈ = −m g p / (I + m p²), the screw closing a loop beside a cylindrical joint."""
    mass, pitch, inertia = 2.0, 0.05, 0.03
    with lw.Builder("nut") as b:
        b.body("nut", mass, (0.0, 0.0, 0.0), (0.1, 0.1, inertia))
        b.joint("cylindrical", "ground", "nut", "bore")
        b.joint("screw", "ground", "nut", "thread", pitch=pitch, cut=True)
    mech = b.build()
    expected = -mass * 9.81 * pitch / (inertia + mass * pitch**2)
    for angle in (0.3, 3.5, 40.0, -25.0):
        q, v = np.array([angle, pitch * angle]), np.array([1.0, pitch])
        assert np.abs(mech.kernels.position_correction(q)[1]).max() < 1e-14
        a = mech.forward_dynamics(q, v, np.zeros(2), method=method)
        assert a == pytest.approx([expected, pitch * expected], rel=1e-10)


def test_a_gear_of_a_loop_counts_the_turns_of_its_leader() -> None:
    with lw.Builder("gears") as b:
        first, second = solid(b, "first", 1), solid(b, "second", 2)
        b.joint("revolute", "ground", first, "leader")
        b.joint("cylindrical", "ground", second, "bore")
        b.joint("revolute", "ground", second, "follower", cut=True)
        b.mimic("follower", "leader", 2.5, 0.3)
    mech = b.build()
    for leader in (0.1, 5.0, -31.0):
        q = np.array([leader, 2.5 * leader + 0.3, 0.0])
        assert np.abs(mech.kernels.position_correction(q)[1]).max() < 1e-13
        _, phi = mech.kernels.position_correction(q + np.array([0.0, 0.2, 0.0]))
        assert phi[-1] == pytest.approx(0.2, abs=1e-13)
