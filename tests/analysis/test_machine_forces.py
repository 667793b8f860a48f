"""The forces of machines against closed forms, hand integration, and Newton's and Euler's equations of the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.model.joint_kinds import KINDS, JointKind, bearing_loads

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
R, L, SPEED = 0.05, 0.18, 20.0
PISTON, ROD, PIN = (
    0.8,
    0.6,
    0.3,
)  # kg: of a piston, of a rod with its centre a third from the pin, at the crank's radius
SLIDING, TURNING = PISTON + ROD / 3, PIN + 2 * ROD / 3
TURN = 2 * np.pi / SPEED
CYCLE = np.linspace(0, TURN, 49)
Floats = NDArray[np.float64]


def engine(angles: tuple[float, ...] = (0.0,), *, gravity: float = 0.0, gas: bool = False) -> lw.Mechanism:
    """In-line cylinders along x, whose throws stand at these angles, 0.1 m apart."""
    with lw.Builder("engine") as b:
        b.gravity((0, -gravity, 0))
        pins = [R * np.array([np.cos(x), np.sin(x)]) for x in angles]
        com = PIN * np.sum(pins, axis=0) / (len(angles) * PIN + 2.0)
        crank = b.body("crank", len(angles) * PIN + 2.0, com=(*com, 0.0), inertia=(0.02, 0.02, 0.03))
        b.joint("revolute", b.ground, crank, "shaft")
        for k, (x, y) in enumerate(pins):
            z, far = 0.1 * k, x + np.sqrt(L**2 - y**2)
            spin = ROD * (L / 3) * (2 * L / 3)  # as two point masses have it
            rod = b.body(f"rod{k}", ROD, com=(L / 3, 0, 0), inertia=(1e-6, spin, spin))
            b.place(rod, (x, y, z), f=(far - x, -y, 0))
            piston = b.body(f"piston{k}", PISTON, inertia=(0.001,) * 3)
            b.place(piston, (far, 0, z))
            b.joint("cylindrical", crank, rod, f"big{k}", at=(x, y, z), drawn=True)
            b.joint("spherical", rod, piston, f"small{k}", at=(far, 0, z), drawn=True)
            b.joint("prismatic", b.ground, piston, f"slide{k}", at=(far, 0, z), axis=(1, 0, 0), drawn=True)
            if gas:
                b.joint_force(f"slide{k}", lambda t: -500.0 * np.exp(np.cos(SPEED * t)), name=f"gas{k}")
        b.driver("joint", "shaft", SPEED * lw.TIME, name="motor")
    return b.build()


def piston_acceleration(x: Floats) -> Floats:
    s, c = np.sin(x), np.cos(x)
    root = np.sqrt(L**2 - (R * s) ** 2)
    return -(SPEED**2) * (R * c + R**2 * (c**2 - s**2) / root + (R**2 * s * c) ** 2 / root**3)


def test_a_single_cylinder_shakes_by_the_exact_acceleration_of_its_piston() -> None:
    forces = lw.machine_forces(engine(gravity=9.81), times=CYCLE)
    x = SPEED * CYCLE
    turning = TURNING * R * SPEED**2 * np.stack([np.cos(x), np.sin(x), 0 * x], axis=1)
    turning[:, 0] -= SLIDING * piston_acceleration(x)
    assert np.allclose(forces.shaking_force, turning, atol=1e-10)
    weight = (2.0 + PIN + ROD + PISTON) * 9.81
    assert np.allclose(forces.ground_force - forces.shaking_force, [0, -weight, 0], atol=1e-10)


@pytest.mark.parametrize("throws", [(0.0, np.pi), pytest.param((0.0, np.pi, np.pi, 0.0), marks=pytest.mark.slow)])
def test_an_in_line_engine_balances_primary_forces_and_adds_up_secondary_ones(throws: tuple[float, ...]) -> None:
    """An in-line four has four times the secondary force of one cylinder, in its middle."""
    one = lw.machine_forces(engine(), times=CYCLE[:-1]).shaking_force[:, 0]
    forces = lw.machine_forces(engine(throws), times=CYCLE[:-1])
    single, four = np.fft.rfft(one) / 48, np.fft.rfft(forces.shaking_force[:, 0]) / 48
    assert abs(four[1]) < 1e-12 * abs(single[2])
    assert np.allclose(four[2::2], len(throws) * single[2::2], atol=1e-12)
    assert np.abs(forces.shaking_force[:, 1:]).max() < 1e-11
    if len(throws) == 2:
        return
    middle = 0.15 * forces.shaking_force[:, 0]
    assert np.allclose(forces.shaking_moment, np.stack([0 * middle, middle, 0 * middle], axis=1), atol=1e-11)


def test_what_joints_exert_on_ground_is_the_whole_force_and_moment() -> None:
    mech = engine((0.3, 1.9), gravity=9.81, gas=True)
    forces = lw.machine_forces(mech, times=CYCLE)
    total = np.zeros((49, 6))
    for name, at in (("shaft", (0, 0, 0)), ("slide0", None), ("slide1", None)):
        load = forces.joints[name]
        x = np.array(at) if at else forces.solution.position("piston" + name[-1])
        total -= np.concatenate([load.force, load.moment + np.cross(x, load.force)], axis=1)
    assert np.allclose(total, np.concatenate([forces.ground_force, forces.ground_moment], axis=1), atol=1e-8)


def test_a_force_from_outside_reaches_the_ground() -> None:
    with lw.Builder("lever") as b:
        b.gravity((0, 0, 0))
        lever = b.body("lever", 1.0, inertia=(0.1,) * 3)
        b.joint("revolute", b.ground, lever, "pivot")
        b.triad(lever, (0.5, 0, 0), name="tip")
        b.triad(b.ground, (1, 0, 0), name="post")
        b.applied_wrench("tip", force=(0, 10, 0), axes="frame")
        b.driver("joint", "pivot", 0.5 * np.pi * lw.TIME, name="motor")
    forces = lw.machine_forces(b.build(), times=[0.0, 1.0], about="post")
    assert np.allclose(forces.ground_force, [[0, 10, 0], [-10, 0, 0]], atol=1e-12)
    assert np.allclose(forces.ground_moment[:, 2], [10 * (0.5 - 1), 5], atol=1e-12)
    assert np.allclose(forces.shaking_force, 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_shaking_of_any_tree_is_how_its_momentum_changes(seed: int) -> None:
    mech = lw.random_tree(5, seed=seed)
    rng = np.random.default_rng(seed)
    q, v = mech.integrate(mech.neutral(), rng.normal(size=mech.nv)), rng.normal(size=mech.nv)
    h = 1e-4
    settings = {"rtol": 1e-12, "saving": lw.Saving(times=h * np.arange(5))}
    sol = lw.simulate(mech, 4 * h, q0=q, v0=v, **settings)
    forces = lw.machine_forces(sol)
    centre = mech.center_of_mass(sol.q)
    mass = mech.description.mass.sum()
    rate = (centre[1] - 2 * centre[2] + centre[3]) / h**2 * mass
    size = np.abs(forces.shaking_force).max()
    assert np.allclose(forces.shaking_force[2], -rate, atol=1e-4 * size + 1e-4)
    assert np.allclose(forces.ground_force - forces.shaking_force, mass * mech.description.gravity)


# -- motor and flywheel ---------------------------------------------------------------------------------------------
def press(law: object, *, inertia: float = 0.4) -> lw.Mechanism:
    with lw.Builder("press") as b:
        b.gravity((0, 0, 0))
        b.joint("revolute", b.ground, b.body("shaft", 5.0, inertia=(inertia,) * 3), "crank")
        b.driver("joint", "crank", 10.0 * lw.TIME, name="motor")
        b.joint_force("crank", law, name="work")
    return b.build()


def test_a_punch_press_needs_the_flywheel_of_the_textbook() -> None:
    """600 N m over 36° of a turn: ΔE = T α (1 − α / 2π), from the end of a stroke to the start of the next."""
    mech = press(lambda q: lw.where(lw.greater(q, 1.0), lw.where(lw.less(q, 1.0 + np.pi / 5), -600.0, 0.0), 0.0))
    forces = lw.machine_forces(mech, times=np.linspace(0, 0.2 * np.pi, 20), fluctuation=0.1)
    energy = 600 * np.pi / 5 * 0.9
    assert forces.motor.mean == pytest.approx(60, rel=1e-8)
    assert forces.motor.peak == pytest.approx(600)
    assert forces.motor.rms == pytest.approx(600 * np.sqrt(0.1), rel=1e-8)
    assert forces.flywheel.energy == pytest.approx(energy, rel=1e-8)
    assert forces.flywheel.inertia == pytest.approx(energy / (0.1 * 100), rel=1e-8)
    assert forces.flywheel.added == pytest.approx(energy / 10 - 0.4, rel=1e-8)
    assert forces.flywheel.fastest == pytest.approx(1.0, abs=1e-7)
    assert forces.flywheel.slowest == pytest.approx(1.0 + np.pi / 5, abs=1e-7)


def test_extremes_of_the_energy_do_not_depend_on_the_times_asked_for() -> None:
    few, many = (lw.machine_forces(engine(gas=True), times=np.linspace(0, TURN, n), fluctuation=0.05) for n in (3, 200))
    assert few.flywheel.energy == pytest.approx(many.flywheel.energy, rel=1e-9)
    assert few.motor.greatest == pytest.approx(many.motor.greatest, rel=1e-6)
    assert np.max(many.motor.torque) <= many.motor.greatest[1] < np.max(many.motor.torque) * 1.001


@pytest.mark.parametrize("backwards", [False, True])
def test_the_flywheel_keeps_the_speed_of_a_simulation(backwards: bool) -> None:
    """Under the mean torque alone the speed varies by the fluctuation, but for terms of its square."""
    sign = -1.0 if backwards else 1.0
    law = lambda q: -sign * (20.0 + 30.0 * np.sin(q) * sign + 10.0 * np.cos(2 * q))  # noqa: E731
    with lw.Builder("slow") as b:
        b.gravity((0, 0, 0))
        b.joint("revolute", b.ground, b.body("shaft", 5.0, inertia=(0.4,) * 3), "crank")
        b.driver("joint", "crank", sign * 10.0 * lw.TIME, name="motor")
        b.joint_force("crank", law, name="work")
    forces = lw.machine_forces(b.build(), times=np.linspace(0, 0.2 * np.pi, 9), fluctuation=0.02)
    wheel = forces.flywheel
    with lw.Builder("free") as b:
        b.gravity((0, 0, 0))
        b.joint("revolute", b.ground, b.body("shaft", 5.0, inertia=(wheel.inertia,) * 3), "crank")
        b.joint_force("crank", law, name="work")
        b.initial("crank", wheel.fastest, rate=sign * 10.1)
    tau = [forces.motor.mean]
    sol = lw.simulate(b.build(), t_end=0.63, tau=tau, saving=lw.Saving(interval=0.001))
    assert np.ptp(sol.v) / 10.0 == pytest.approx(0.02, rel=0.02)


# -- reactions without the drive ------------------------------------------------------------------------------------
def test_bearings_of_a_driven_hinge_and_a_driven_slide_carry_all_but_the_drive() -> None:
    text = """MODEL lift
    GRAVITY (0, -10);
    BODY base (ground); BODY sledge (mass = 3, inertia = (0.1, 0.1, 0.1), com = (0.2, 0));
    BODY arm (mass = 1, inertia = (0.1, 0.1, 0.1), com = (0.5, 0));
    SLIDER rail (body = base, body = sledge, at = (0, 0), axis = (3, 4, 0));
    HINGE pivot (body = sledge, body = arm, at = (0, 0));
    DRIVER lift (rail.shift = 0.5*TIME^2); DRIVER swing (pivot.angle = 0);
    ENDMODEL"""
    forces = lw.machine_forces(lw.Mechanism(parse_mks(text)), times=[0.0, 0.5], crank="rail")
    rail, pivot = forces.joints["rail"], forces.joints["pivot"]
    assert np.allclose(rail.force, np.array([0.6 * 4, 0.8 * 4 + 40, 0]))
    assert np.allclose(rail.bearing_force @ [0.6, 0.8, 0], 0, atol=1e-12)
    assert np.allclose(rail.bearing_force @ [-0.8, 0.6, 0], 40 * 0.6)
    assert np.allclose(rail.moment, rail.bearing_moment)
    assert np.allclose(pivot.moment[:, 2], 0.5 * (10 + 0.8))
    assert np.allclose(pivot.bearing_moment, 0, atol=1e-12)
    assert np.allclose(pivot.force, pivot.bearing_force)
    assert forces.motor.unit == "N"
    assert np.allclose(forces.motor.torque, 4 + 40 * 0.8)


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.nv], ids=lambda kind: kind.name)
def test_bearing_loads_take_away_the_drive_and_do_no_work_along_the_freedom(kind: JointKind) -> None:
    """Of T τ and any wrench that the joint holds, Q n, what is left is Q n."""
    rng = np.random.default_rng(3)
    q = kind.neutral() + 0.3 * rng.normal(size=kind.nq)
    if not kind.paired:
        q[-4:] /= np.linalg.norm(q[-4:])
    terms = kind.terms(q, 0.2)
    subspace, dual = (np.asarray(x(terms, 0.2), float) for x in (kind.subspace, kind.dual))
    loads = np.asarray(kind.complement(terms, 0.2), float) @ rng.normal(size=(6 - kind.nv, 2))
    driven = loads + dual @ rng.normal(size=(kind.nv, 2))
    assert np.allclose(bearing_loads(subspace, dual, driven), loads, atol=1e-13)
    batch = bearing_loads(np.stack([subspace] * 3), np.stack([dual] * 3), np.stack([driven] * 3))
    assert np.allclose(batch, loads, atol=1e-13)


# -- static balance -------------------------------------------------------------------------------------------------
def test_a_force_balanced_four_bar_has_constant_energy_and_does_not_shake() -> None:
    """Berkof and Lowen: the coupler's mass counts to its pins, and crank and rocker are balanced with it."""
    a, b_, c, d = 0.1, 0.3, 0.25, 0.32
    m, part = 1.2, 0.4  # of the coupler; where its centre is
    with lw.Builder("four-bar") as b:
        b.gravity((0, -9.81, 0))
        reach = np.hypot(a, d)  # the crank upright, from its pin to the rocker's pivot
        corner = np.arccos((reach**2 + c**2 - b_**2) / (2 * reach * c))
        x = np.arctan2(-a, d) + np.pi - corner
        pin, far = np.array([0, a, 0]), np.array([d, 0, 0]) + c * np.array([np.cos(x), np.sin(x), 0])
        crank = b.body("crank", 2.0, com=(0, -m * (1 - part) * a / 2.0, 0), inertia=(0.02,) * 3)
        coupler = b.body("coupler", m, com=(part * b_, 0, 0), inertia=(0.02,) * 3)
        b.place(coupler, pin, f=far - pin)
        rocker = b.body("rocker", 3.0, com=(-m * part * c / 3.0, 0, 0), inertia=(0.05,) * 3)
        b.place(rocker, (d, 0, 0), f=far - [d, 0, 0])
        for name, one, two, at in (
            ("shaft", b.ground, crank, (0, 0, 0)),
            ("A", crank, coupler, tuple(pin)),
            ("B", coupler, rocker, tuple(far)),
            ("pivot", b.ground, rocker, (d, 0, 0)),
        ):
            b.joint("revolute", one, two, name, at=at, drawn=True)
        b.driver("joint", "shaft", 7.0 * lw.TIME, name="motor")
    forces = lw.machine_forces(b.build(), times=np.linspace(0, 0.9, 31))
    assert np.ptp(forces.static.energy) < 1e-12
    assert np.abs(forces.shaking_force).max() < 1e-11
    assert np.abs(forces.static.holding["motor"].values).max() < 1e-11
    assert forces.static.balanced
    assert "; balanced\n" in forces.report()


def test_a_spring_without_free_length_balances_a_lever_though_its_energy_in_gravity_varies() -> None:
    with lw.Builder("lamp") as b:
        b.gravity((0, -10, 0))
        arm = b.body("arm", 2.0, com=(0.3, 0, 0), inertia=(0.1,) * 3)
        b.joint("revolute", b.ground, arm, "pivot")
        b.triad(arm, (0.1, 0, 0), name="eye")
        b.triad(b.ground, (0, 0.2, 0), name="hook")
        b.spring("eye", "hook", 2.0 * 10 * 0.3 / (0.1 * 0.2), 0.0)
        b.driver("joint", "pivot", lw.TIME, name="hand")
    forces = lw.machine_forces(b.build(), times=np.linspace(-1, 1, 9))
    assert np.ptp(forces.static.energy) > 1
    assert np.abs(forces.static.holding["hand"].values).max() < 1e-12
    assert forces.static.balanced


def test_counterweights_take_what_turns_and_half_of_what_slides() -> None:
    forces = lw.machine_forces(engine(), times=CYCLE)
    best = forces.counterweight()
    assert best.moment == pytest.approx((TURNING + SLIDING / 2) * R, rel=1e-12)
    assert best.direction == pytest.approx([-1, 0, 0], abs=1e-12)
    assert best.position(0.07) == pytest.approx([-0.07, 0, 0], abs=1e-12)
    assert best.mass(0.1) == pytest.approx(10 * best.moment)
    assert best.after < best.before


def test_a_counterweight_balances_a_lever_against_gravity() -> None:
    with lw.Builder("barrier") as b:
        b.gravity((0, -10, 0))
        b.joint(
            "revolute", b.ground, b.body("boom", 4.0, com=(1.5, 0.2, 0), inertia=(3.0,) * 3), "pivot", at=(0.1, 0, 0)
        )
        b.driver("joint", "pivot", lw.TIME, name="motor")
    forces = lw.machine_forces(b.build(), times=np.linspace(0, 1.5, 11))
    best = forces.counterweight("pivot", "gravity")
    assert best.moment * best.direction == pytest.approx([-4 * 1.5, -4 * 0.2, 0])
    assert best.after < 1e-12 < best.before
    assert "potential energy (range)" in str(best)


# -- units, reports, errors -----------------------------------------------------------------------------------------
def test_in_millimetres_and_grams_the_numbers_are_the_same_bits() -> None:
    text = (MODELS / "engine.mks").read_text()
    other = text.replace("INVERSE DYNAMIC ANALYSIS", "length unit = mm, mass unit = g, INVERSE DYNAMIC ANALYSIS")
    for si, mm in (
        ("0, -9.81", "0, -9810"),
        ("4e-4, 4e-4, 4e-4", "4e5, 4e5, 4e5"),
        ("(6e-3, 6e-3, 1e-2)", "(6e6, 6e6, 1e7)"),
    ):
        other = other.replace(si, mm)
    other = other.replace("(1e-5, rod", "(1e4, rod")
    times = np.linspace(0, 0.04, 21)
    one, two = (lw.machine_forces(lw.Mechanism(parse_mks(x)), times=times, fluctuation=0.02) for x in (text, other))
    assert one.series.keys() == two.series.keys()
    for name, x in one.series.items():
        assert np.array_equal(x.values, two.series[name].values), name
    assert one.flywheel == two.flywheel or vars(one.flywheel) == vars(two.flywheel)


def test_a_report_has_its_tables_and_writes_them(tmp_path: Path) -> None:
    forces = lw.machine_forces(MODELS / "engine.mks", fluctuation=0.02, times=np.linspace(0, 0.04, 41))
    text = forces.report()
    for words in ("shaking force (N)", "driver's torque (N m)", "without its drive", "kg m² for a fluctuation of 0.02"):
        assert words in text
    assert "<table>" in forces._repr_html_()
    assert "shaking force up to" in repr(forces)
    forces.save(tmp_path / "forces.csv")
    rows = (tmp_path / "forces.csv").read_text().splitlines()
    assert len(rows) == 42
    assert rows[0].startswith("time [s],shaking_force.x [N]")
    forces.plot(tmp_path / "forces.png")
    assert (tmp_path / "forces.png").stat().st_size > 10_000
    with pytest.raises(LinkwrightError, match=r"written as \.csv"):
        forces.save(tmp_path / "forces.txt")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fluctuation": 0.0}, "fluctuation is 0.0; give the coefficient"),
        ({"fluctuation": -1}, "above zero"),
        ({"fluctuation": float("nan")}, "above zero"),
        ({"fluctuation": "small"}, "fluctuation is 'small'"),
        ({"fluctuation": 0.05, "times": np.linspace(0, 0.7 * TURN, 9)}, "makes 0.7 turns; end at 0.314159265 s"),
        ({"about": "piston0"}, "which moves; moments on ground are about a fixed point"),
        ({"crank": "slide0"}, "'slide0' is no driven joint; add DRIVER"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(options: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        lw.machine_forces(engine(), **{"times": CYCLE, **options})  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_suggestions() -> None:
    with pytest.raises(NameNotFound, match="shaft"):
        lw.machine_forces(engine(), times=CYCLE, crank="shafd")
    with pytest.raises(NameNotFound, match="post"):
        lw.machine_forces(engine(), times=CYCLE, about="post")


def test_a_mechanism_without_masses_or_a_driven_crank_is_refused() -> None:
    with lw.Builder("empty") as b:
        b.joint("revolute", b.ground, b.body("shaft"), "crank")
        b.driver("joint", "crank", lw.TIME, name="motor")
    with pytest.raises(LinkwrightError, match="no body of 'empty' has a mass"):
        lw.machine_forces(b.build(), times=[0.0, 1.0])
    sol = lw.simulate(lw.chain(2), t_end=0.1, q0=[0.3, 0.1], saving=lw.Saving(interval=0.05))
    forces = lw.machine_forces(sol)
    with pytest.raises(ModelError, match=r"no joint of .* is driven; add a DRIVER"):
        _ = forces.motor
    with pytest.raises(ModelError, match="there is no flywheel: no joint"):
        lw.machine_forces(sol, fluctuation=0.1)
    with pytest.raises(ModelError, match="leave times and parameters out"):
        lw.machine_forces(sol, times=[0.0])


def test_a_flywheel_needs_constant_speed_and_a_torque_that_returns() -> None:
    with lw.Builder("uneven") as b:
        b.joint("revolute", b.ground, b.body("shaft", 5.0, inertia=(0.1,) * 3), "crank")
        b.driver("joint", "crank", lw.TIME + 0.1 * np.sin(lw.TIME), name="motor")
    with pytest.raises(ModelError, match=r"at constant speed; 'crank' turns at 0.9 to 1.1 rad/s"):
        lw.machine_forces(b.build(), times=np.linspace(0, 2 * np.pi, 9), fluctuation=0.1)
    half = press(lambda q: -10.0 * np.sin(0.5 * q) ** 2 - np.cos(0.5 * q))
    with pytest.raises(ModelError, match="end where the machine begins again"):
        lw.machine_forces(half, times=np.linspace(0, 0.2 * np.pi, 9), fluctuation=0.1)
    assert lw.machine_forces(half, times=np.linspace(0, 0.4 * np.pi, 9), fluctuation=0.1).flywheel.inertia > 0


def test_several_driven_cranks_are_named_by_the_reason() -> None:
    with lw.Builder("two") as b:
        for name in ("left", "right"):
            b.joint("revolute", b.ground, b.body(f"{name} disc", 5.0, inertia=(0.1,) * 3), name)
            b.driver("joint", name, lw.TIME, name=f"{name} motor")
    forces = lw.machine_forces(b.build(), times=[0.0, 1.0])
    with pytest.raises(
        ModelError, match="several joints of 'two' are driven: left, right; name the motor's, as in crank='left'"
    ):
        _ = forces.motor
    assert lw.machine_forces(b.build(), times=[0.0, 1.0], crank="right motor").motor.joint == "right"
