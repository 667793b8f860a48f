"""States of rest."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import four_bar, platform
from linkwright.dynamics.equilibrium import NoEquilibrium, frozen
from linkwright.kernels import kernel as program_cache
from linkwright.kernels.kernel import Kernel
from linkwright.model.elements import JointForce
from linkwright.model.expression import Name


def test_a_chain_comes_to_hang_straight_down() -> None:
    mech = lw.chain(5)
    found = mech.equilibrium(np.full(5, 0.9))
    assert found.stable
    height = mech.potential_energy(found.q)
    assert height == pytest.approx(-9.81 * sum(0.1 * k + 0.05 for k in range(5)), rel=1e-9)


def test_standing_on_its_head_is_rest_but_not_stable() -> None:
    with lw.Builder("pendulum") as b:
        b.joint("revolute", b.ground, b.body("bob", 1.0, (0, 0, -1), (0.1, 0.1, 0.1)), "j", axis=(0, 1, 0))
    mech = b.build()
    assert not mech.equilibrium(np.array([np.pi])).stable
    assert mech.equilibrium(np.array([np.pi - 0.1])).stable


@pytest.mark.parametrize("bars", [1, 2])
@pytest.mark.parametrize(
    "length", [1e-3, 0.1, 100.0, *(pytest.param(x, marks=pytest.mark.slow) for x in (0.02, 1.0, 10.0))]
)
@pytest.mark.parametrize("away", [0.5, 0.01])
def test_pendulums_of_any_length_fall_from_beside_the_top(length: float, away: float, bars: int) -> None:
    with lw.Builder("pendulum") as b:
        below, inertia = b.ground, np.array([1.0, 1.0, 1e-3]) * length**2 / 12.0
        for k in range(bars):
            bar = b.body(f"bar{k}", 1.0, (0, 0, -0.5 * length), tuple(inertia))
            b.joint("revolute", below, bar, f"j{k}", axis=(0, 1, 0), at=(0, 0, -length if k else 0.0))
            below = bar
    mech = b.build()
    start = np.zeros(bars)
    start[0] = np.pi - away
    found = mech.equilibrium(start)
    assert found.stable
    assert mech.pose(found.q, f"bar{bars - 1}")[2, 2] == pytest.approx(1.0, abs=1e-9)


def test_a_spring_balances_a_weight() -> None:
    with lw.Builder("scale") as b:
        b.joint("prismatic", b.ground, b.body("pan", 2.0, (0, 0, 0), (1, 1, 1)), "slide")
        b.joint_spring("slide", 100.0, rest=0.3)
    assert b.build().equilibrium().q == pytest.approx([0.3 - 2.0 * 9.81 / 100.0], abs=1e-10)


def sprung_platform() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    """The platform on springs in its legs; where its legs stand in q, and their lengths without force."""
    mech = platform()
    at = np.array([mech.joints[f"leg{k}"].q_slice.start for k in range(6)])
    rest = mech.assemble()[at] + 0.05
    springs = tuple(JointForce(f"spring{k}", f"leg{k}", -2000.0 * (Name("q") - float(rest[k]))) for k in range(6))
    return lw.Mechanism(replace(mech.description, elements=springs)), at, rest


@pytest.mark.parametrize("sprung", [False, True])
def test_at_rest_a_closed_mechanism_has_no_acceleration_and_the_least_energy_nearby(sprung: bool) -> None:
    mech, at, rest = sprung_platform() if sprung else (four_bar(), np.zeros(0, int), np.zeros(0))
    found = mech.equilibrium()
    assert found.stable
    assert np.abs(mech.forward_dynamics(found.q, np.zeros(mech.nv), np.zeros(mech.nv))).max() < 1e-7
    z = found.linear.basis
    beside = np.random.default_rng(0).normal(size=(20, z.shape[1]))
    moves = 0.02 * beside / np.linalg.norm(beside, axis=1, keepdims=True) @ z.T
    near = mech.project(mech.integrate(found.q, moves))[0]

    def energy(q: np.ndarray) -> np.ndarray:
        return mech.potential_energy(q) + 1000.0 * np.sum((q[..., at] - rest) ** 2, axis=-1)

    assert np.all(energy(near) > energy(found.q) + 1e-6)


def test_what_falls_for_ever_has_no_equilibrium() -> None:
    with lw.Builder("stone") as b:
        b.joint("free", b.ground, b.body("stone", 1.0, (0, 0, 0), (1, 1, 1)), "loose")
    with pytest.raises(NoEquilibrium, match="loose"):
        b.build().equilibrium()


def held() -> lw.Mechanism:
    """An arm that a driver turns and a bob that hangs from it."""
    with lw.Builder("held") as b:
        arm = b.body("arm", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
        bob = b.body("bob", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, arm, "j", axis=(0, 1, 0))
        b.joint("revolute", arm, bob, "k", axis=(0, 1, 0), at=(1, 0, 0))
        b.driver("joint", "j", 0.4 * lw.TIME + 0.1 * np.sin(3.0 * lw.TIME), name="motor")
    return b.build()


def test_drivers_stand_still_for_it() -> None:
    """A driven joint holds the crank where its law has it at the time asked for."""
    mech = held()
    for t in (2.0, 1e-3, -0.7):
        angle = 0.4 * t + 0.1 * np.sin(3.0 * t)
        assert mech.equilibrium(np.array([angle, 0.3]), t=t).q == pytest.approx([angle, -angle], abs=1e-9)


def test_equilibria_at_many_times_share_their_code(monkeypatch) -> None:
    mech, made = held(), []

    def counted(*arguments, **options):
        made.append(arguments)
        return Kernel(*arguments, **options)

    monkeypatch.setattr(program_cache, "_kernels", WeakValueDictionary())  # none of other tests' kernels
    monkeypatch.setattr(program_cache, "Kernel", counted)
    mech.equilibrium(t=0.1)
    before = len(made)
    assert before
    for t in (0.2, 0.3):
        mech.equilibrium(t=t)
    assert len(made) == before


@pytest.mark.parametrize("t", [0.0, 1e-9, 0.3, 12.7, 1e6, -4.4])
def test_frozen_drivers_have_their_value_and_no_rate(t: float) -> None:
    mech = held()
    still = lw.Mechanism(frozen(mech.description))
    q = mech.project(np.array([0.4 * t, 0.2]), t=t)[0]
    assert still.kernels.position_correction(q, t)[1] == pytest.approx(np.zeros(1), abs=1e-9)
    assert mech.kernels.velocity_projection(q, np.zeros(2), t)[1][0] == pytest.approx(
        -0.4 - 0.3 * np.cos(3.0 * t), abs=1e-6
    )
    assert still.kernels.velocity_projection(q, np.zeros(2), t)[1][0] == 0.0


@pytest.mark.parametrize("stiffness", [20.0, 0.02, 2e-6])
def test_a_sag_of_any_length_is_found(stiffness):
    with lw.Builder("sag") as b:
        b.joint("prismatic", b.ground, b.body("mass", mass=1.0), "slide")
        b.joint_spring("slide", stiffness=stiffness)
    mech = b.build()
    assert mech.equilibrium().q == pytest.approx([-9.81 / stiffness], rel=1e-9)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_an_equilibrium_is_as_exact_in_every_size(size):
    """A pendulum on a slide, each held by a spring; the same gravity for all sizes."""
    with lw.Builder("hanging") as b:
        slide = b.body("slide", mass=1.0)
        arm = b.body("arm", mass=2.0, com=(0.3 * size, 0, 0), inertia=0.01 * size**2 * np.eye(3))
        b.joint("prismatic", b.ground, slide, "slide")
        hinge = b.triad(slide, (0.1 * size, 0, 0), h=(0, 1, 0)), b.triad(arm, h=(0, 1, 0))
        b.joint("revolute", *hinge, "hinge")
        b.joint_spring("slide", stiffness=50.0 / size)
        b.joint_spring("hinge", stiffness=7.0 * size)
    mech = b.build()
    slide, angle = mech.equilibrium().q
    assert slide == pytest.approx(-3.0 * 9.81 * size / 50.0, rel=1e-9)
    # The moment of the weight about the hinge, 2 g 0.3 cos(angle), is what the spring holds.
    assert 2.0 * 9.81 * 0.3 * np.cos(angle) == pytest.approx(7.0 * abs(angle), rel=1e-9)
