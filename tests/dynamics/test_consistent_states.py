"""Consistent states: assembly from a guess, and projection of coordinates and rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, four_bar, platform, state
from linkwright.dynamics.closed.redundancy import constraint_jacobian
from linkwright.errors import AssemblyError, NameNotFound, ShapeError

MODELS = Path(__file__).parents[2] / "examples" / "models"


def gap(mech: lw.Mechanism, q: np.ndarray, first: str, second: str) -> float:
    return float(np.linalg.norm(mech.pose(q, first)[:3, 3] - mech.pose(q, second)[:3, 3]))


def with_pins(mech: lw.Mechanism) -> lw.Mechanism:
    """The four-bar with both sides of its loop joint named."""
    with lw.Builder("pins") as b:
        names = ("crank", "coupler", "rocker")
        crank, coupler, rocker = (b.body(n, 1.0, (0, 0, 0), (1, 1, 1)) for n in names)
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, (1, 0, 0)), coupler, "B")
        b.joint("revolute", b.triad(b.ground, (3, 0, 0)), rocker, "D")
        b.joint(
            "revolute", b.triad(coupler, (3, 0, 0), name="c1"), b.triad(rocker, (2.5, 0, 0), name="c2"), "C", cut=True
        )
    return b.build()


def test_assembly_closes_the_loop_and_keeps_what_is_fixed() -> None:
    mech = with_pins(four_bar())
    guess = np.zeros(3)
    for joint, value in (("A", 1.1), ("B", -0.7), ("D", 1.5)):
        guess[mech.joints[joint].q_slice] = value
    q = mech.assemble(guess, fixed=["A"])
    assert q[mech.joints["A"].q_slice] == pytest.approx(1.1, abs=1e-12)
    assert gap(mech, q, "c1", "c2") < 1e-11


def test_assembly_stays_in_the_turn_of_the_guess() -> None:
    mech = with_pins(four_bar())
    guess = np.zeros(3)
    for joint, value in (("A", 1.1), ("B", -0.7), ("D", 1.5)):
        guess[mech.joints[joint].q_slice] = value
    plain = mech.assemble(guess)
    assert mech.assemble(guess + 4.0 * np.pi) == pytest.approx(plain + 4.0 * np.pi, abs=1e-9)


def test_assembly_that_cannot_close_names_the_joint() -> None:
    with lw.Builder("short") as b:
        one, two = b.body("one", 1.0), b.body("two", 1.0)
        b.joint("revolute", b.ground, one, "A")
        b.joint("revolute", b.triad(b.ground, (5, 0, 0)), two, "B")
        b.joint("revolute", b.triad(one, (1, 0, 0)), b.triad(two, (1, 0, 0)), "C", cut=True)
    with pytest.raises(AssemblyError, match="'C'"):
        b.build().assemble()


def test_assembly_that_what_is_fixed_prevents_names_joints_as_the_model_does() -> None:
    mech = four_bar()
    fixed = [joint.name for joint in mech.joints]
    with pytest.raises(AssemblyError, match=r"joints 'A', .* as fixed: joint 'C' stays open.*free one of") as caught:
        mech.assemble(mech.assemble() + 1.0, fixed=fixed)
    assert "(fixed)" not in f"{caught.value} {caught.value.misses} {caught.value.element}"
    assert "length" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "arrays", "told"),
    [
        ("project", (3, 7), r"project: v has shape \(7,\); needed is \(..., 3\)"),
        ("project", (9,), "project: q has shape"),
        ("reactions", (3, 3, 9), "reactions: tau has shape"),
        ("reactions", (3, 9, 3), "reactions: v has shape"),
        ("inverse_dynamics", (3, 3, 9), "inverse_dynamics: a has shape"),
    ],
)
def test_a_wrong_shape_is_told_by_the_method_that_was_asked(method: str, arrays: tuple[int, ...], told: str) -> None:
    with pytest.raises(ShapeError, match=told):
        getattr(four_bar(), method)(*(np.zeros(n) for n in arrays))


def test_joints_to_fix_are_joints_of_the_tree() -> None:
    mech = four_bar()
    with pytest.raises(NameNotFound, match="'a'"):
        mech.assemble(fixed=["a"])
    with pytest.raises(NameNotFound, match="C"):
        mech.assemble(fixed=["C"])
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        mech.assemble(np.zeros(4))


@pytest.mark.parametrize("name", MECHANISMS)
def test_projected_states_are_consistent(name: str) -> None:
    mech = MECHANISMS[name]()
    rng = np.random.default_rng(1)
    q = mech.assemble(t=0.2)
    moved = mech.integrate(np.tile(q, (5, 1)), 0.02 * rng.normal(size=(5, mech.nv)))
    found, rates = mech.project(moved, rng.normal(size=(5, mech.nv)), t=0.2)
    _, phi = mech.kernels.position_correction(found, 0.2)
    g, phi_t = constraint_jacobian(mech, found, 0.2)
    assert np.abs(phi).max() < 1e-12
    assert np.abs(np.einsum("sij,sj->si", g, rates) + phi_t).max() < 1e-12


def test_projection_leaves_consistent_states_alone() -> None:
    mech = platform()
    q, v = state(mech)
    again, rates = mech.project(q, v)
    assert again == pytest.approx(q, abs=1e-12)
    assert rates == pytest.approx(v, abs=1e-11)


def test_projection_takes_the_least_change_of_the_bodies() -> None:
    """Any other change that the constraints ask for moves the bodies more."""
    mech = with_pins(four_bar())
    q = mech.assemble(np.array([1.1, 1.5, -0.7]))
    v = np.array([0.3, -0.2, 0.5])
    _, rates = mech.project(q, v)
    weighed = mech.auxiliary.weighed
    g, _ = constraint_jacobian(mech, q)
    free = np.linalg.svd(g)[2][np.linalg.matrix_rank(g, tol=1e-9) :].T
    assert free.shape[1] == 1
    metric = weighed.mass_matrix(q)
    assert free.T @ metric @ (rates - v) == pytest.approx(0.0, abs=1e-10)


def test_a_state_that_is_not_finite_is_projected_to_none_and_spoils_no_other() -> None:
    mech = four_bar()
    q = mech.assemble() + np.array([[0.01], [0.02], [-0.02]])
    v = np.ones((3, 3))
    right = mech.project(q[[0, 2]], v[[0, 2]])
    q[1] = np.nan
    found = mech.project(q, v)
    for whole, two in zip(found, right, strict=True):
        assert np.isnan(whole[1]).all()
        assert np.array_equal(whole[[0, 2]], two)
    assert np.isnan(mech.project(q[1])[0]).all()


def test_a_state_that_does_not_close_is_told_by_its_place_in_the_batch() -> None:
    """The coupler and the rocker are too short to meet where the driver has the crank."""
    with lw.Builder("short") as b:
        crank, rod, rocker = (b.body(n, 1.0, (0.1, 0, 0), (1, 1, 1)) for n in ("crank", "rod", "rocker"))
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, (1, 0, 0)), rod, "B")
        b.joint("revolute", b.triad(b.ground, (2, 0, 0)), rocker, "D")
        b.joint("revolute", b.triad(rod, (1, 0, 0)), b.triad(rocker, (1, 0, 0)), "C", cut=True)
        b.driver("joint", "A", lw.TIME, name="motor")
    mech = b.build()
    q = mech.assemble(t=1.0)
    with pytest.raises(AssemblyError, match=r"state \[2\] of the batch"):
        mech.project(np.tile(q, (3, 1)), t=np.array([1.0, np.nan, 3.1]))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_program_of_a_projection_gives_what_its_rounds_from_python_do(name: str) -> None:
    mech = MECHANISMS[name]()
    rng = np.random.default_rng(4)
    q = mech.integrate(np.tile(mech.assemble(t=0.2), (6, 1)), 0.1 * rng.normal(size=(6, mech.nv)))
    v = rng.normal(size=(6, mech.nv))
    right = mech.auxiliary.projector._careful(q.copy(), v.copy(), 0.2)
    whole, ones = mech.project(q, v, t=0.2), [mech.project(q[k], v[k], t=0.2) for k in range(6)]
    for part in range(2):
        assert whole[part] == pytest.approx(right[part], rel=1e-12, abs=1e-12)
        assert np.stack([one[part] for one in ones]) == pytest.approx(right[part], rel=1e-12, abs=1e-12)


def long_arm() -> lw.Mechanism:
    """So many links that programs are loops over them; the first is driven, and the last stays in a plane."""
    with lw.Builder("long arm") as b:
        before = b.frame(b.ground)
        for k in range(70):
            body = b.body(f"link{k}", 1.0, (0.05, 0.0, 0.0), (0.01, 0.01, 0.01))
            b.joint("revolute", before, body, f"j{k}")
            before = b.frame(body, np.eye(3), (0.1, 0.0, 0.0))
        b.driver("joint", "j0", 0.1 + 0.3 * lw.TIME)
        b.point_on_plane(b.triad(b.ground, (0.0, 0.3, 0.0), h=(0.0, 1.0, 0.0)), before, "wall")
    return b.build()


def test_a_projection_of_many_links_and_one_with_other_parameters_are_programs_too() -> None:
    double = lw.load(MODELS / "double_four_bar.mks").with_parameters(m=1.3)
    for mech in (long_arm(), double):
        q, v = mech.assemble(), np.ones(mech.nv)
        right = mech.auxiliary.projector._careful(q.copy(), v.copy(), 0.0)
        for one, other in zip(mech.project(q, v), right, strict=True):
            assert one == pytest.approx(other, rel=1e-11, abs=1e-11)


def test_states_that_close_do_not_take_the_careful_path(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = four_bar()
    q, v = state(mech)
    asked = []
    monkeypatch.setattr(type(mech.auxiliary.projector), "_careful", lambda *x: asked.append(x))
    mech.project(q + 0.01, v)
    mech.project(np.stack([q, q + 0.01]), v)
    mech.project(q)
    assert not asked
