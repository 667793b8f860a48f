"""The six-leg manipulator: closed forms, balances and the same machine from its model file."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.control.parallel.leg_kinematics import SingularPose, Unreachable, check_reach, leg_jacobians, legs_at
from linkwright.errors import ModelError, ShapeError
from linkwright.studies.manipulator.machine import SIX_LEG, Drives, leg_joints, machine, state

MODEL = Path(__file__).parents[2] / "examples" / "models" / "six_leg.mks"
GEOMETRY = SIX_LEG
ROD = SIX_LEG.rod_inertia


@cache
def rigid(holder: int = 1) -> lw.Mechanism:
    return machine(GEOMETRY, holder=holder)


@cache
def elastic() -> lw.Mechanism:
    return machine(GEOMETRY, drives=Drives())


def somewhere(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A pose near home, a twist and an acceleration of the plate."""
    rng = np.random.default_rng(seed)
    pose = GEOMETRY.home + np.r_[rng.uniform(-0.1, 0.1, 3), 0.0, rng.uniform(-0.1, 0.1, 3)]
    return pose, rng.normal(size=6), 5.0 * rng.normal(size=6)


def cranks(mech: lw.Mechanism) -> list[int]:
    return [mech.joints[f"crank{leg}"].v_slice.start for leg in range(1, 7)]


def test_the_rigid_machine_has_six_degrees_of_freedom_and_the_elastic_one_twelve() -> None:
    for mech, rates, left in ((rigid(), 31, 6), (elastic(), 37, 12)):
        report = mech.dof()
        assert mech.nv == rates
        assert report.loop_equations == 25
        assert report.left == left
        assert report.redundant == ()


def test_joints_have_their_names_and_only_the_driven_ones_an_actuator() -> None:
    names = {name for leg in range(1, 7) for name in leg_joints(leg)}
    assert {j.name for j in rigid().joints} | set(rigid().loops) == names
    driven = [[j.name for j in mech.joints if mech.actuated[j.v_slice].all()] for mech in (rigid(), elastic())]
    assert sorted(driven[0]) == [f"crank{k}" for k in range(1, 7)]
    assert sorted(driven[1]) == [f"motor{k}" for k in range(1, 7)]


@pytest.mark.parametrize("seed", range(4))
def test_the_closed_form_closes_the_loops_and_moves_the_plate_as_asked(seed: int) -> None:
    pose, twist, acceleration = somewhere(seed)
    for mech in (rigid(), elastic()):
        q, v, a = state(mech, GEOMETRY, pose, twist, acceleration)
        assert np.abs(mech.kernels.position_correction(q)[1]).max() < 1e-12
        assert np.abs(mech.kernels.velocity_projection(q, v)[1]).max() < 1e-12
        assert np.allclose(mech.pose(q, "plate")[:3, 3], pose[:3], rtol=0, atol=1e-13)
        assert np.allclose(mech.twist(q, v, "plate", "aligned"), twist, rtol=0, atol=1e-12)
    mech = rigid()
    q, v, a = state(mech, GEOMETRY, pose, twist, acceleration)
    h = 1e-5
    later, earlier = (mech.twist(q + s * h * v + h * h / 2 * a, v + s * h * a, "plate", "aligned") for s in (1, -1))
    assert np.allclose((later - earlier) / (2 * h), acceleration, rtol=0, atol=1e-6)


def test_the_drawing_is_home() -> None:
    for mech in (rigid(), elastic()):
        q = mech.assemble()
        assert np.abs(mech.kernels.position_correction(q)[1]).max() < 1e-12
        assert np.allclose(q, state(mech, GEOMETRY, GEOMETRY.home)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_inverse_dynamics_does_not_depend_on_the_leg_that_holds_the_plate(seed: int) -> None:
    found = []
    for holder in (1, 4):
        mech = rigid(holder)
        q, v, a = state(mech, GEOMETRY, *somewhere(seed))
        tau = mech.inverse_dynamics(q, v, a)
        assert np.allclose(mech.forward_dynamics(q, v, tau), a, rtol=0, atol=1e-10)
        found.append(tau[cranks(mech)])
    assert np.allclose(*found, rtol=0, atol=1e-9)


def test_torques_are_those_of_virtual_work_by_the_leg_jacobians() -> None:
    # M, h and the rates are the tree's; W comes from the axes and points of the legs alone.
    mech = rigid()
    pose, twist, acceleration = somewhere(7)
    q, v, a = state(mech, GEOMETRY, pose, twist, acceleration)
    inverse = np.linalg.inv(leg_jacobians(GEOMETRY, legs_at(GEOMETRY, pose), pose[:3]))
    rows = {name: inverse[leg, k] for leg in range(6) for k, name in enumerate(leg_joints(leg + 1))}
    w = np.array([rows[j.name] for j in mech.joints])
    s = np.array([rows[f"crank{k}"] for k in range(1, 7)])
    wanted = np.linalg.solve(s.T, w.T @ (mech.mass_matrix(q) @ a + mech.bias_forces(q, v)))
    assert np.allclose(mech.inverse_dynamics(q, v, a)[cranks(mech)], wanted, rtol=1e-10, atol=1e-9)


def test_at_rest_the_base_carries_the_weight() -> None:
    g = GEOMETRY
    mech = rigid()
    q, v, a = state(mech, g, g.home)
    tau = mech.inverse_dynamics(q, v, a)
    reactions = mech.reactions(q, v, tau)
    legs = [k for k, j in enumerate([*(j.name for j in mech.joints), *mech.loops]) if j.startswith("crank")]
    up = sum((mech.pose(q, f"arm{leg}")[:3, :3] @ reactions[k, :3])[2] for leg, k in enumerate(legs, 1))
    parts = (g.crank_inertia, g.universal_inertia, g.rod_inertia, g.first_cross_inertia, g.second_cross_inertia)
    mass = 6 * sum(part.mass for part in parts) + g.plate_inertia.mass
    assert np.isclose(up, mass * g.gravity, rtol=1e-12)
    # Raising the plate by dz turns each crank by dz / (dz/dθ): all six do the same share of lifting all weights.
    h = 1e-6
    ups, downs = (state(mech, g, g.home + np.eye(7)[2] * dz)[0] for dz in (h, -h))
    lifted = (mech.potential_energy(ups) - mech.potential_energy(downs)) / (ups - downs)[cranks(mech)].sum()
    assert np.allclose(tau[cranks(mech)], lifted, rtol=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_power_balances_with_friction_and_springs(seed: int) -> None:
    mech = elastic()
    rng = np.random.default_rng(seed)
    q, v, _ = state(mech, GEOMETRY, *somewhere(seed), torques=rng.normal(100.0, 50.0, 6))
    motors = [mech.joints[f"motor{k}"].v_slice.start for k in range(1, 7)]
    v[motors] += rng.normal(size=6)
    tau = np.zeros(mech.nv)
    tau[motors] = rng.normal(0.0, 300.0, 6)
    a = mech.forward_dynamics(q, v, tau)
    h = 1e-5
    after, before = (
        (mech.kinetic_energy(x, v + s * h * a), mech.potential_energy(x))
        for s in (1, -1)
        for x in [q + s * h * v + h * h / 2 * a]
    )
    gained = (sum(after) - sum(before)) / (2 * h)
    p = mech.parameters
    lost = 0.0
    names = [j.name for j in mech.joints]
    rates = dict(zip(names, v, strict=True))
    rates |= _loop_rates(mech, q, v)
    for name, rate in rates.items():
        kind = name[:5] if name[:5] in ("motor", "crank") else "passive"
        lost += rate * (p[f"{kind}_coulomb"] * np.tanh(rate / p["friction_speed"]) + p[f"{kind}_viscous"] * rate)
    stored = 0.0
    for leg in range(1, 7):
        at = [names.index(f"{kind}{leg}") for kind in ("motor", "crank")]
        twist, speed = q[at[0]] - q[at[1]], v[at[0]] - v[at[1]]
        stored += (p["stiffness"] * twist + p["damping"] * speed) * speed
    assert np.isclose(gained, tau @ v - lost - stored, rtol=1e-6)


def _loop_rates(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """The rates of the joints that close loops, from the spins of the plate and the inner crosses."""
    found = {}
    for name in mech.loops:
        leg = name[1]
        spin = mech.twist(q, v, "plate", "aligned")[3:] - mech.twist(q, v, f"inner{leg}", "aligned")[3:]
        found[name] = float(spin @ mech.pose(q, f"inner{leg}")[:3, 0])
    return found


def test_the_model_file_is_the_same_machine() -> None:
    file = lw.load(MODEL)
    free = lw.Mechanism(replace(file.description, drivers=()))
    mech = rigid()
    assert [j.name for j in free.joints] == [j.name for j in mech.joints]
    assert free.loops == mech.loops
    for seed in range(2):
        q, v, a = state(mech, GEOMETRY, *somewhere(seed))
        tau = mech.inverse_dynamics(q, v, a)
        for one, other in (
            (free.pose(q, "plate"), mech.pose(q, "plate")),
            (free.kernels.position_correction(q)[1], mech.kernels.position_correction(q)[1]),
            (free.mass_matrix(q), mech.mass_matrix(q)),
            (free.bias_forces(q, v), mech.bias_forces(q, v)),
            (free.inverse_dynamics(q, v, a), tau),
            (free.forward_dynamics(q, v, tau), a),
        ):
            assert np.allclose(one, other, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(other).max()))


def test_the_model_file_rests_where_the_geometry_has_home() -> None:
    still = lw.load(MODEL, parameters={"bob": 0.0, "twist": 0.0, "wobble": 0.0})
    q = still.assemble()
    assert np.allclose(still.pose(q, "plate")[:3, 3], GEOMETRY.home[:3], rtol=0, atol=1e-12)


def test_parameters_change_the_plant() -> None:
    mech = elastic()
    q = state(mech, GEOMETRY, GEOMETRY.home)[0]
    heavy = mech.with_parameters(plate_mass=36.0, payload=10.0, stiffness=1e5)
    assert np.isclose(heavy.bodies["plate"].mass, 46.0)
    assert np.allclose(heavy.bodies["plate"].inertia, 1.2 * mech.bodies["plate"].inertia)
    assert not np.allclose(heavy.mass_matrix(q), mech.mass_matrix(q))
    with pytest.raises(ModelError, match=r"Drives\.stiffness must be a number greater than zero, not -1"):
        Drives(stiffness=-1.0)
    with pytest.raises(ModelError, match="one of the legs 1 to 6"):
        machine(GEOMETRY, holder=0)


def test_an_unreachable_pose_names_the_leg_what_it_lacks_and_what_to_try() -> None:
    pose = GEOMETRY.home + np.eye(7)[0] * 0.9
    with pytest.raises(Unreachable, match=r"leg \d cannot reach .* mm too far .* bring the plate nearer") as caught:
        state(rigid(), GEOMETRY, pose)
    legs = legs_at(GEOMETRY, pose)
    assert caught.value.leg == 1 + int(np.argmax(legs.short))
    # From a crank that points to the wrist point, the rod is that much too short.
    leg = caught.value.leg - 1
    assert np.isclose(np.linalg.norm(legs.wrists[leg] - legs.knees[leg]), GEOMETRY.rod + caught.value.short)
    with pytest.raises(Unreachable, match=r"at pose \(1,\)"):
        state(rigid(), GEOMETRY, np.stack([GEOMETRY.home, pose]))


def test_a_stretched_leg_is_singular_and_says_so() -> None:
    # The plate rises until crank and rod of all legs are in line.
    low, high = GEOMETRY.home_height, 2.0
    for _ in range(80):
        middle = (low + high) / 2
        pose = np.r_[0.0, 0.0, middle, 1.0, 0.0, 0.0, 0.0]
        low, high = (middle, high) if not legs_at(GEOMETRY, pose).short.any() else (low, middle)
    with pytest.raises(SingularPose, match=r"crank and rod are in line.*cannot follow") as caught:
        state(rigid(), GEOMETRY, np.r_[0.0, 0.0, low, 1.0, 0.0, 0.0, 0.0], np.ones(6))
    assert caught.value.which == "W"
    assert caught.value.condition > 1e6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"crank": -1.0}, "crank, a length in metres, must be a number greater than zero, not -1"),
        ({"rod": 0.0}, "rod, a length in metres, must be"),
        ({"home_height": "high"}, "home_height, a length in metres, must be a number, not 'high'"),
        ({"crank_turn": np.nan}, "crank_turn, an angle in radians, must be a finite number"),
        (
            {"rod_inertia": ROD._replace(mass=-1.0)},
            "mass of rod_inertia, in kg, must be a number greater than zero",
        ),
        (
            {"rod_inertia": ROD._replace(moments=(1.0, -1.0, 1.0))},
            "moments of rod_inertia must not be negative",
        ),
        ({"pairs": (0.0, 1.0)}, r"pairs, 3 angles in radians, has shape \(2,\)"),
    ],
)
def test_dimensions_that_cannot_be_are_refused_by_name(given: dict, said: str) -> None:
    with pytest.raises((ModelError, ShapeError), match=said):
        replace(SIX_LEG, **given)


def test_what_a_leg_lacks_is_told_in_metres_where_it_is_much() -> None:
    g = SIX_LEG
    for far, unit in ((0.9, r"\d mm too far"), (3.0, r"\d m too far")):
        pose = g.home + np.array([far, 0, 0, 0, 0, 0, 0])
        assert (legs_at(g, pose).short > 0).any()
        with pytest.raises(Unreachable, match=unit):
            check_reach(g, legs_at(g, pose))
