"""Closed mechanisms rolled and unrolled: two ways that share no arithmetic, free masses and recursions on trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, four_bar, platform, solid, state
from linkwright.mechanism import Mechanism
from linkwright.model.description import Frames, Names
from linkwright.model.elements import AppliedWrench, Bushing, JointForce, Mimic, PointForce
from linkwright.model.expression import Name, Number
from linkwright.model.quantities import Quantity
from robots import relative


def two_four_bars(ratio: float, joints: tuple[str, str], drive: bool = False) -> lw.Mechanism:
    """Two four-bars side by side whose joints (follower, leader) are geared."""
    with lw.Builder("two four-bars") as b:
        b.gravity((1.0, -9.0, 2.0))
        for n in range(2):
            crank, coupler, rocker = (solid(b, f"{name}{n}", k + 3 * n) for k, name in enumerate("abc"))
            b.place(crank, (0, 0, n), f=(0.4, 1.0, 0))
            b.place(coupler, (0.4, 1.0, n), f=(3, 0.9, 0))
            b.place(rocker, (3, 0, n), f=(0.4, 2.4, 0))
            b.joint("revolute", b.triad(b.ground, (0, 0, n)), b.triad(crank), f"A{n}")
            b.joint("revolute", b.triad(crank, (1, 0, 0)), b.triad(coupler), f"B{n}")
            b.joint("revolute", b.triad(b.ground, (3, 0, n)), b.triad(rocker), f"D{n}")
            b.joint("revolute", b.triad(coupler, (3, 0, 0)), b.triad(rocker, (2.5, 0, 0)), f"C{n}", cut=True)
        if drive:
            b.driver("joint", "A0", 1.0 + 0.5 * lw.TIME)
    mech = b.build()
    d = mech.description
    follower, leader = (d.joint_names.position("joint", name) for name in joints)
    return Mechanism(replace(d, mimics=(Mimic(follower, leader, ratio, 0.0, "gear"),)))


def with_forces(mech: lw.Mechanism, *joints: str) -> lw.Mechanism:
    """The mechanism with springs and dampers on joints."""
    law = 4.0 * (0.3 - Name("q")) - 0.7 * Name("v")
    forces = tuple(JointForce(f"spring {name}", name, law * (1.0 + k)) for k, name in enumerate(joints))
    return Mechanism(replace(mech.description, elements=forces))


def bent() -> lw.Mechanism:
    """A spatial four-bar closed by a universal joint."""
    with lw.Builder("bent") as b:
        crank, coupler, rocker = (solid(b, n, 10 + k) for k, n in enumerate(("crank", "coupler", "rocker")))
        b.place(crank, (0, 0, 0))
        b.place(coupler, (1, 0, 0))
        b.place(rocker, (2.8, 0.2, 0))
        b.joint("revolute", b.triad(b.ground), b.triad(crank), "A")
        b.joint("spherical", b.triad(crank, (1, 0, 0)), b.triad(coupler), "B")
        b.joint("revolute", b.triad(b.ground, (2.8, 0.2, 0), h=(0.2, 1, 0.3)), b.triad(rocker, h=(0.2, 1, 0.3)), "D")
        cross = b.triad(coupler, (2.2, 0, 0), h=(0, 1, 0)), b.triad(rocker, (0, 0, 1.4), h=(1, 0, 0), f=(0, 1, 0))
        b.joint("universal", *cross, "C", cut=True)
    return b.build()


def with_laws_of_quantities(mech: lw.Mechanism, joint: str, loop: str, bodies: tuple[str, str]) -> lw.Mechanism:
    """Forces of every kind whose laws name coordinates, places and distances elsewhere, and their rates."""
    first, second = bodies
    angle, speed = Quantity("joint", (joint,)), Quantity("joint", (joint,), rate=True)
    nearest, constraint_rate = Quantity("joint", (loop,)), Quantity("joint", (loop,), rate=True)
    height, sinking = Quantity("place", (first,), 1), Quantity("place", (first,), 1, True)
    turning = Quantity("place", (second,), 5, True)
    apart, parting = Quantity("distance", (first, second)), Quantity("distance", (first, second), 0, True)
    elements = (
        JointForce("a", joint, nearest * 2.0 - constraint_rate * speed + height),
        JointForce("b", loop, angle * sinking - 3.0 * Name("q") + apart**2),
        PointForce("c", first, "ground", parting * 2.0 - Name("d") * turning),
        PointForce("d", second, "ground", parting * 3.0 - Name("d") * turning),
        AppliedWrench("e", first, (angle, height, apart, speed, parting, turning), "ground"),
        AppliedWrench("f", first, (angle, height, apart, speed, parting, turning), "other", second, second),
        AppliedWrench("g", second, (apart,) * 6, "frame", "", first),
        Bushing("h", first, second, tuple(Number(0.3 + 0.1 * k) for k in range(18))),
    )
    return Mechanism(replace(mech.description, elements=elements))


CASES: dict[str, Callable[[], lw.Mechanism]] = {
    **MECHANISMS,
    "cranks geared": lambda: two_four_bars(2.0, ("A1", "A0"), True),
    "what closes a loop follows a crank": lambda: two_four_bars(0.5, ("C1", "A0")),
    "a crank follows what closes a loop": lambda: two_four_bars(0.5, ("A1", "C0")),
    "both close loops": lambda: two_four_bars(-1.0, ("C1", "C0")),
    "springs on joints that close loops": lambda: with_forces(four_bar(), "A", "C"),
    "laws of quantities in a plane": lambda: with_laws_of_quantities(four_bar(), "A", "C", ("coupler", "rocker")),
    "laws of quantities in space": lambda: with_laws_of_quantities(bent(), "A", "C", ("coupler", "rocker")),
    "springs on prismatic joints": lambda: with_forces(platform(), *(f"leg{k}" for k in range(6))),
}


#: Those that show nothing that the others do not show at all.
FURTHER = {
    "driven four-bar",
    "rssr",
    "platform",
    "pen on line",
    "both close loops",
    "a crank follows what closes a loop",
    "laws of quantities in space",
    "springs on prismatic joints",
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in FURTHER else []) for n in CASES])
def test_both_forms_move_a_closed_mechanism_alike(name: str) -> None:
    mech = CASES[name]()
    t = 0.2
    rng = np.random.default_rng(1)
    q, v = state(mech, t) if not mech.description.mimics else (mech.neutral() + 0.3, rng.normal(size=mech.nv))
    tau = rng.normal(size=mech.nv)

    def ask(function: str, *arrays: np.ndarray) -> list[np.ndarray]:
        programs = [mech.program(function, form=form) for form in ("unrolled", "rolled")]
        clock = [t] if len(programs[0].inputs) > len(arrays) else []
        return [program(*arrays, *clock) for program in programs]

    unrolled, rolled = ask("forward_dynamics", q, v, tau)
    assert relative(rolled, unrolled) < 1e-9
    # What constraints do to the coordinates is unique where their forces are not.
    basis = np.eye(mech.nv)
    still = ask("velocity_projection", q, 0.0 * v)[0][1]
    slope = np.stack([ask("velocity_projection", q, e)[0][1] - still for e in basis], axis=1)
    forces = ask("constraint_forces", q, v, tau)
    assert relative(slope.T @ forces[1], slope.T @ forces[0]) < 1e-9
    for one, other in zip(*ask("velocity_projection", q, v + rng.normal(size=mech.nv)), strict=True):
        assert relative(other, one) < 1e-8
    near = mech.integrate(q, 1e-3 * rng.normal(size=mech.nv))
    (dv, phi), (dv_rolled, phi_rolled) = ask("position_correction", near)
    assert np.abs(phi - phi_rolled).max() < 1e-12
    if np.linalg.matrix_rank(slope, 1e-6) == len(slope):
        assert relative(dv_rolled, dv) < 1e-8


@pytest.mark.parametrize("form", ["unrolled", "rolled"])
def test_a_spring_whose_ends_a_joint_holds_together_does_nothing(form: str) -> None:
    mech = four_bar()
    d = mech.description
    joint = d.joint_names.position("joint", "B")
    ends = [(int(d.parent[joint]), d.pi[joint]), (int(d.child[joint]), d.pj[joint])]
    frames = Frames(
        Names(["one", "other"]),
        np.array([body for body, _ in ends], np.int32),
        np.stack([np.eye(3)] * 2),
        np.stack([p for _, p in ends]),
    )
    spring = PointForce("spring", "one", "other", -100.0 * Name("d") - 2.0 * Name("dd"))
    sprung = Mechanism(replace(d, frames=frames, elements=(*d.elements, spring)))
    q, v = state(mech, 0.0)
    found = [m.program("forward_dynamics", form=form)(q, v, np.zeros(m.nv)) for m in (mech, sprung)]
    assert np.allclose(*found)


def test_an_armature_does_not_mind_where_its_loop_is_cut() -> None:
    """A parallelogram, whose joints' angles are one angle or its negative."""
    angle, rate = 0.7, 1.3
    found = []
    for cut in ("far", "last"):
        with lw.Builder("parallelogram") as b:
            b.gravity((0.0, -9.81, 0.0))
            first, coupler, second = (solid(b, name, k) for k, name in enumerate("abc"))
            joints = [
                ("first", b.triad(b.ground), b.triad(first), 0.2),
                ("near", b.triad(first, (1, 0, 0)), b.triad(coupler), 0.3),
                ("far", b.triad(coupler, (2, 0, 0)), b.triad(second, (1, 0, 0)), 0.5),
                ("last", b.triad(b.ground, (2, 0, 0)), b.triad(second), 0.7),
            ]
            for name, i, j, armature in joints:
                b.joint("revolute", i, j, name, armature=armature, cut=name == cut)
        mech = b.build()
        q, v = np.zeros(mech.nq), np.zeros(mech.nv)
        for joint in mech.joints:
            sign = -1.0 if joint.name == "near" else 1.0
            q[joint.q_slice], v[joint.v_slice] = sign * angle, sign * rate
        found.append(mech.forward_dynamics(q, v, np.zeros(mech.nv))[mech.joints["first"].v_slice])
    assert relative(found[0], found[1]) < 1e-11


@pytest.mark.parametrize("joints", [("A0", "C1"), ("C0", "C1"), ("C0", "A1")])
def test_a_gear_of_ratio_zero_holds_its_follower_whatever_the_leader_does(joints: tuple[str, str]) -> None:
    free = two_four_bars(1.0, ("A0", "A1"))
    free = Mechanism(replace(free.description, mimics=()))
    q = free.assemble([1.2 if joint.name in ("A0", "A1") else 0.4 for joint in free.joints], fixed=["A0", "A1"])
    coupler, rocker = (np.arctan2(*free.pose(q, body)[[1, 0], [0, 0]]) for body in ("b0", "c0"))
    d = free.description
    follower, leader = (d.joint_names.position("joint", name) for name in joints)
    offset = 1.2 if joints[0] == "A0" else float(rocker - coupler)
    mech = Mechanism(replace(d, mimics=(Mimic(follower, leader, 0.0, offset, "gear"),)))
    moves = np.array([joint.name.endswith("1") for joint in mech.joints])
    v, tau = np.zeros(mech.nv), np.arange(1.0, 1.0 + mech.nv)
    right = np.where(moves, free.forward_dynamics(q, v, tau), 0.0)
    assert np.abs(right[moves]).max() > 1.0
    for form in ("unrolled", "rolled"):
        assert np.allclose(mech.program("forward_dynamics", form=form)(q, v, tau), right, atol=1e-9), form
