"""Closed mechanisms as masses and constraints, rolled: against equations with multipliers, recursions, closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from multipliers import Motion, with_loops

import linkwright as lw
from linkwright.constraints import masses as central
from linkwright.constraints import split_elimination as pieces
from linkwright.dynamics.functions import LOOP_METHODS
from linkwright.dynamics.requests import UNROLL
from linkwright.errors import ModelError
from linkwright.kernels.interpret.interpreter import run
from linkwright.mechanism import Mechanism
from linkwright.model.elements import JointForce, joint_losses
from linkwright.model.expression import TIME, Name
from linkwright.model.joint_kinds import KINDS
from robots import relative

PAIRED = [kind for kind in KINDS if kind not in ("spherical", "free", "fixed")]


def state(mech: lw.Mechanism, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = mech.integrate(mech.neutral(), rng.standard_normal(mech.nv))
    v, tau = rng.standard_normal((2, mech.nv))
    return q, v, tau


# -- trees --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_trees_with_losses_and_armatures_move_as_articulated_bodies_do(seed: int) -> None:
    d = lw.random_tree(12, seed, joints=PAIRED).description
    armature = np.where(np.arange(d.nj) % 2, 0.2, 0.0)
    reversed_ones = np.arange(d.nj) % 3 == 1
    parent, child = np.where(reversed_ones, d.child, d.parent), np.where(reversed_ones, d.parent, d.child)
    plain = Mechanism(replace(d, armature=armature, parent=parent, child=child))
    law = -3.0 * Name("v") - 2.0 * Name("q")
    forces = tuple(JointForce(f"loss {n}", n, law) for n in plain.description.joint_names)
    mech = Mechanism(replace(plain.description, elements=forces))
    q, v, tau = state(mech, seed)
    push = np.random.default_rng(seed).standard_normal((mech.nb, 6))
    right, found = (
        mech.program("forward_dynamics", wrenches=True, form=form)(q, v, tau, push) for form in ("unrolled", "rolled")
    )
    assert relative(found, right) < 1e-11


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fixed"])
def test_a_chain_of_one_kind_moves_as_articulated_bodies_do(kind: str) -> None:
    d = lw.random_tree(4, 2, branching=1, joints=[kind]).description
    mech = Mechanism(replace(d, elements=joint_losses(d.joint_names[0], 1, 0.5, 0.0)))
    q, v, tau = state(mech, 2)
    right, found = (mech.program("forward_dynamics", form=form)(q, v, tau) for form in ("unrolled", "rolled"))
    assert relative(found, right) < 1e-11


def test_an_armature_on_a_spherical_joint_is_refused_by_name() -> None:
    d = lw.random_tree(3, 0, joints=["spherical"]).description
    losses = joint_losses(d.joint_names[0], 1, 0.5, 0.0)
    mech = Mechanism(replace(d, armature=np.array([0.0, 0.1, 0.0]), elements=losses))
    with pytest.raises(ModelError, match=r"is spherical and has an armature.*unrolled") as caught:
        mech.program("forward_dynamics", form="rolled")
    assert caught.value.element == d.joint_names[1]


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_joint_that_follows_another_moves_as_in_the_unrolled_form(kind: str) -> None:
    with lw.Builder("followers") as b:
        before = "ground"
        for k in range(4):
            body = b.body(f"link{k}", 1.0 + k, (0.1, 0.2, 0.3), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003))
            b.joint(
                kind if k in (1, 3) else "revolute", before, body, f"joint{k}", axis=(0.3, 1.0, k), at=(0.2, 0.0, 0.1)
            )
            before = body
        b.mimic("joint3", "joint1", ratio=-1.7, offset=0.4)
        b.joint_spring("joint3", 3.0, 0.1, 0.2)
    mech = b.build()
    q, v, tau = state(mech, 1)
    right, found = (mech.program("forward_dynamics", form=form)(q, v, tau) for form in ("unrolled", "rolled"))
    assert relative(found, right) < 1e-11


def test_forces_between_points_and_wrenches_act_as_in_the_unrolled_form() -> None:
    with lw.Builder("forces") as b:
        stiff = b.parameter("stiff", 30.0)
        before = "ground"
        for k in range(5):
            body = b.body(f"link{k}", 1.0 + k, (0.1, 0.2, 0.3), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003))
            b.joint("universal", before, body, f"joint{k}", axis=(0.3, 1.0, k), at=(0.2, 0.0, 0.1))
            b.spring(b.triad("ground", (k, 1.0, 0.0)), b.triad(body, (0.1, 0.0, k)), stiff * (k + 1), 0.5, 0.1 * k)
            before = body
        b.point_force("link1", "link4", 2.0 * Name("d") ** 2 - TIME * Name("dd"))
        tool = b.triad("link2", (0.1, 0.2, 0.3), h=(1, 1, 0), f=(0, 0, 1))
        b.applied_wrench(tool, (1.0, TIME, 2.0), (0.5, 0.1, 0.3))
        b.applied_wrench("link3", (1.0, 2.0, TIME**2), (0.5, 0.1, 0.3), axes="ground")
    mech = b.build()
    q, v, tau = state(mech, 1)
    unrolled, rolled = (mech.program("forward_dynamics", form=form) for form in ("unrolled", "rolled"))
    assert relative(rolled(q, v, tau, 0.7), unrolled(q, v, tau, 0.7)) < 1e-11
    # Springs differ by numbers alone: one block for all of them.
    laws = [s for s in rolled.statements if getattr(s, "items", 0) == 5 and s.order == "outward" and len(s.cases) == 1]
    assert len(laws) >= 1


# -- loops --------------------------------------------------------------------------------------------------
#: The kinds whose equations differ most; the others take as long.
FIRST = ("revolute", "screw")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k in FIRST else [pytest.mark.slow]) for k in KINDS if k != "free"]
)
def test_a_tree_closed_by_any_joint_obeys_the_equations_with_multipliers(kind: str) -> None:
    tree = lw.random_tree(9, 3, joints=["revolute", "universal", "spherical", "cylindrical"])
    q, v, tau = state(tree, 3)
    names = tree.description.body_names
    mech = with_loops(tree, q, [(kind, names[3], names[8]), (kind, "ground", names[6])], 5)
    Motion(mech).check(q, v, tau)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_loops_move_as_virtual_work_moves_them(seed: int) -> None:
    tree = lw.random_tree(10, seed, floating=True)
    q, v, tau = state(tree, seed)
    names = tree.description.body_names
    mech = with_loops(tree, q, [("spherical", names[4], names[9]), ("revolute", names[5], names[7])], seed)
    v = v + mech.program("velocity_projection", form="rolled")(q, v)[0]
    found = mech.program("forward_dynamics", form="rolled")(q, v, tau)
    assert relative(found, mech.forward_dynamics(q, v, tau, method="virtual-work")) < 1e-9


def tied(length: float, line: np.ndarray, plane: np.ndarray, offsets: np.ndarray) -> lw.Mechanism:
    """A chain of universal joints with a tie and a driver of every kind."""
    with lw.Builder("tied") as b:
        before = b.ground
        for k in range(6):
            body = b.body(f"link{k}", 1.0 + k, (0.1, 0.2, 0.0), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003))
            b.joint("universal", b.triad(before, (0.5, 0.1 * k, 0.0)), b.triad(body, h=(0, 1, 0)), f"joint{k}")
            before = body
        b.rod("ground", "link1", length)
        b.point_on_line(b.triad("ground", line, h=(1, 0, 0.2), f=(0, 1, 0)), "link3")
        b.point_on_plane(b.triad("link0", plane, h=(0.2, 1.0, 0.3), f=(0, 0, 1)), "link4")
        b.driver("joint", "joint0", offsets[0] + 0.5 * TIME + 0.2 * TIME**2)
        b.driver("distance", "link2", offsets[1] + 0.1 * TIME, other="link5")
        b.driver("absolute", "link5", offsets[2] + 0.3 * TIME**2, coordinate="x")
    return b.build()


def test_ties_and_drivers_obey_the_equations_with_multipliers() -> None:
    rng, t = np.random.default_rng(1), 0.3
    loose = tied(1.0, np.zeros(3), np.zeros(3), np.zeros(3))
    q = rng.standard_normal(loose.nq)
    x = [loose.pose(q, f"link{k}") for k in range(6)]
    on_first = np.linalg.solve(x[0], x[4])[:3, 3]
    laws = [0.5 * t + 0.2 * t * t, 0.1 * t, 0.3 * t * t]
    now = [q[0], np.linalg.norm(x[2][:3, 3] - x[5][:3, 3]), x[5][0, 3]]
    mech = tied(float(np.linalg.norm(x[1][:3, 3])), x[3][:3, 3], on_first, np.subtract(now, laws))
    motion = Motion(mech)
    assert np.abs(motion.ask("position_correction", q, t=t)[1]).max() < 1e-12
    motion.check(q, *rng.standard_normal((2, mech.nv)), t)


def test_a_mechanism_with_redundant_loops_obeys_the_equations_with_multipliers() -> None:
    n = 4
    mech = four_bars(n)
    q, v = swinging(mech, n, 0.3, 1.0)
    Motion(mech).check(q, v, np.random.default_rng(0).standard_normal(mech.nv))


# -- long mechanisms ------------------------------------------------------------------------------------------
def four_bars(n: int, thin: bool = False) -> lw.Mechanism:
    """n four-bars in a row, of rods of 1 m and 1 kg: the IFToMM problem."""
    inertia = (0.0 if thin else 1e-3, 1 / 12, 1 / 12)
    with lw.Builder(f"four_bars_{n}") as b:
        b.gravity((0.0, -9.81, 0.0))
        bars = [b.body(f"bar{k}", 1.0, (0.5, 0.0, 0.0), inertia) for k in range(n + 1)]
        for k, bar in enumerate(bars):
            b.joint("revolute", b.triad(b.ground, (k, 0, 0)), b.triad(bar), f"pivot{k}")
        for k in range(n):
            coupler = b.body(f"coupler{k}", 1.0, (0.5, 0.0, 0.0), inertia)
            b.joint("revolute", b.triad(bars[k], (1, 0, 0)), b.triad(coupler), f"near{k}")
            b.joint("revolute", b.triad(coupler, (1, 0, 0)), b.triad(bars[k + 1], (1, 0, 0)), f"far{k}", cut=True)
    return b.build()


def swinging(mech: lw.Mechanism, n: int, angle: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """All bars at one angle."""
    q, v = np.zeros(mech.nq), np.zeros(mech.nv)
    for name, count, sign in (("pivot", n + 1, 1.0), ("near", n, -1.0)):
        for k in range(count):
            joint = mech.joints[f"{name}{k}"]
            q[joint.q_slice], v[joint.v_slice] = sign * angle, sign * rate
    return q, v


@pytest.mark.parametrize("thin", [False, True], ids=["rods", "rods without an inertia about themselves"])
def test_two_hundred_four_bars_swing_as_one_pendulum(thin: bool) -> None:
    n, angle = 200, 1.1
    mech = four_bars(n, thin)
    q, v = swinging(mech, n, angle, 2.0)
    a = mech.forward_dynamics(q, v, np.zeros(mech.nv))
    right = -(0.5 * (n + 1) + n) * 9.81 * np.cos(angle) / ((n + 1) / 3 + n)
    assert np.allclose(np.abs(a), abs(right), rtol=1e-11)


def test_code_does_not_grow_with_the_number_of_loops() -> None:
    blocks = [
        sorted(block.digest for block in four_bars(n).program("forward_dynamics", form="rolled").blocks)
        for n in (20, 60)
    ]
    assert blocks[0] == blocks[1]


def test_work_grows_with_the_number_of_loops_alone() -> None:
    work = [sum(four_bars(n).program("forward_dynamics", form="rolled").count().values()) for n in (50, 100, 200)]
    assert (work[2] - work[1]) == pytest.approx(2.0 * (work[1] - work[0]), rel=0.02)


def fan(arms: int) -> tuple[lw.Mechanism, np.ndarray]:
    """Parallelograms side by side on one crank, and a position of it."""
    with lw.Builder(f"fan_{arms}") as b:
        b.gravity((0.0, -9.81, 0.0))
        part = {"mass": 1.0, "com": (0.5, 0.01, 0.02), "inertia": (0.01, 0.1, 0.1)}
        crank = b.body("crank", 2.0, (0.1, 0.2, 0.05 * arms), (1.0 + 0.1 * arms**2, 1.0 + 0.1 * arms**2, 0.2))
        b.joint("revolute", b.triad(b.ground), crank, "pivot")
        for k in range(arms):
            coupler, rocker = b.body(f"coupler{k}", **part), b.body(f"rocker{k}", **part)
            b.joint("revolute", b.triad(crank, (1.0, 0, 0.1 * k)), b.triad(coupler), f"near{k}")
            b.joint("revolute", b.triad(b.ground, (2.0, 0, 0.1 * k)), b.triad(rocker), f"end{k}")
            b.joint("revolute", b.triad(coupler, (2.0, 0, 0)), b.triad(rocker, (1.0, 0, 0)), f"far{k}", cut=True)
    mech = b.build()
    q = np.zeros(mech.nq)
    for joint in mech.joints:
        q[joint.q_slice] = -0.8 if joint.name.startswith("near") else 0.8
    return mech, q


@pytest.mark.parametrize("planar", [True, False], ids=["in the plane", "in space"])
def test_a_crank_with_many_joints_moves_as_one_piece(monkeypatch: pytest.MonkeyPatch, planar: bool) -> None:
    if not planar:
        monkeypatch.setattr(central, "plane", lambda tree: None)
    mech, q = fan(12)
    motion = Motion(mech)
    rng = np.random.default_rng(0)
    v, tau = rng.standard_normal((2, mech.nv))
    motion.check(q, v, tau)
    monkeypatch.setattr(pieces, "MANY", 1000)
    whole, _ = fan(12)
    v = v + motion.ask("velocity_projection", q, v)[0]
    right = Motion(whole).ask("forward_dynamics", q, v, tau)
    assert relative(motion.ask("forward_dynamics", q, v, tau), right) < 1e-11


def test_work_grows_with_the_number_of_joints_on_one_body_alone() -> None:
    work = [sum(fan(n)[0].program("forward_dynamics", form="rolled").count().values()) for n in (30, 60, 120)]
    assert (work[2] - work[1]) == pytest.approx(2.0 * (work[1] - work[0]), rel=0.05)


# -- methods by name ------------------------------------------------------------------------------------------
def test_methods_that_are_named_are_used_beyond_the_links_that_are_unrolled_by_default() -> None:
    n = UNROLL // 2 + 1
    mech = four_bars(n)
    q, v = swinging(mech, n, 0.4, 0.3)
    tau = np.sin(np.arange(mech.nv))
    right = mech.forward_dynamics(q, v, tau)
    programs = [mech.program("forward_dynamics", method=method) for method in LOOP_METHODS]
    assert len({program.digest for program in programs}) == len(LOOP_METHODS)
    for program in programs:
        assert relative(run(program, [x.reshape(1, -1) for x in (q, v, tau)], 1)[0][0], right) < 1e-10


@pytest.mark.parametrize("method", ["articulated-body", "mass-matrix"])
def test_a_method_that_cannot_be_used_is_refused_by_its_name_the_size_and_what_can(method: str) -> None:
    mech = four_bars(130)
    with pytest.raises(ModelError, match=f"method='{method}' .* has 261; use method='virtual-work'"):
        mech.forward_dynamics(*swinging(mech, 130, 0.4, 0.3), np.zeros(mech.nv), method=method)
    assert mech.program("forward_dynamics").digest == mech.program("forward_dynamics", method="virtual-work").digest


def test_a_method_that_is_named_has_no_silent_rolled_form() -> None:
    mech = four_bars(2)
    with pytest.raises(ModelError, match="method='mass-matrix' has no rolled form"):
        mech.program("forward_dynamics", method="mass-matrix", form="rolled")
