"""`lw.tolerances`: stacks, four-bars and force models against closed forms, and clearances against explicit offsets."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from design_models import HANGING, OSCILLATOR, ROOT, SWINGING, loaded, rocker

import linkwright as lw

FOUR_BAR = ROOT / "examples" / "models" / "four_bar.mks"
WIPER = ROOT / "examples" / "models" / "windscreen_wiper.mks"
FEW = lw.ToleranceSettings(draws=0)
MANY = lw.ToleranceSettings(draws=20_000, seed=3)
MOST = lw.ToleranceSettings(draws=100_000, seed=3)

#: Three sliders one on the other: the last one is at a + b + c.
STACK = """
MODEL stack
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 1);
PARAMETER a = 10;
PARAMETER b = 20;
PARAMETER c = 30;
PARAMETER shade = 1;
BODY wall (ground);
BODY one (origin = (a, 0, 0));
BODY two (origin = (a + b, 0, 0));
BODY three (origin = (a + b + c, 0, 0));
TRIAD rail (associated body = wall, h = (1, 0, 0), f = (0, 1, 0));
TRIAD on_one (associated body = one, h = (1, 0, 0), f = (0, 1, 0));
TRIAD on_two (associated body = two, h = (1, 0, 0), f = (0, 1, 0));
TRIAD on_three (associated body = three, h = (1, 0, 0), f = (0, 1, 0));
TRANSLATIONAL JOINT first (triad = rail, triad = on_one);
TRANSLATIONAL JOINT second (triad = on_one, triad = on_two);
TRANSLATIONAL JOINT third (triad = on_two, triad = on_three);
DRIVER da (first.shift = a);
DRIVER db (second.shift = b);
DRIVER dc (third.shift = c);
SHAPE block (associated body = three, box = (shade, 1, 1));
ENDMODEL
"""

#: A plane slider-crank of joints that constrain the plane four times too often.
SLIDER = """
MODEL slider
SYSTEM (KINEMATIC ANALYSIS, ending time = 6, print interval = 0.5);
PARAMETER crank = 1;
PARAMETER rod = 3;
BODY base (ground);
BODY arm (origin = (0, 0, 0), f = (0, 1, 0));
BODY bar (origin = (0, crank, 0), f = (3, -1, 0));
BODY block (origin = (2.8, 0, 0));
TRIAD tip (associated body = arm, origin = (crank, 0, 0));
TRIAD end (associated body = bar, origin = (rod, 0, 0));
TRIAD rail (associated body = base, h = (1, 0, 0), f = (0, 1, 1));
TRIAD shoe (associated body = block, h = (1, 0, 0), f = (0, 1, 1));
REVOLUTE JOINT main (triad = base, triad = arm);
REVOLUTE JOINT big (triad = tip, triad = bar);
REVOLUTE JOINT small (triad = end, triad = block);
TRANSLATIONAL JOINT slide (triad = rail, triad = shoe);
DRIVER motor (main.angle = 1 + TIME);
ENDMODEL
"""

#: An arm of two links in the plane, held by drivers.
ARM = """
MODEL arm
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 1);
PARAMETER l1 = 2;
PARAMETER l2 = 1;
BODY base (ground);
BODY one;
BODY two;
TRIAD elbow (associated body = one, origin = (l1, 0, 0));
TRIAD hand (associated body = two, origin = (l2, 0, 0));
REVOLUTE JOINT a (triad = base, triad = one);
REVOLUTE JOINT b (triad = elbow, triad = two);
DRIVER da (a.angle = 0.4);
DRIVER db (b.angle = 0.7);
ENDMODEL
"""

STACK_SIZES = {"a": 0.1, "b": 0.2, "c": (-0.1, 0.3)}


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., lw.Mechanism]:
    return lambda text, **values: loaded(text, tmp_path, **values)


# -- stacks ------------------------------------------------------------------------------------------------------
def test_a_stack_has_the_sum_as_worst_case_and_the_root_of_the_sum_of_squares(model: Callable) -> None:
    stack = lw.tolerances(model(STACK), "length = final(three.x)", STACK_SIZES, settings=FEW)
    assert stack.nominal == pytest.approx(60.0, abs=1e-12)
    assert {name: x.half for name, x in stack.contributions.items()} == pytest.approx({"a": 0.1, "b": 0.2, "c": 0.2})
    worst = stack.worst_case
    assert (worst.low, worst.high) == pytest.approx((59.6, 60.6), abs=1e-12)
    assert worst.linear == pytest.approx((59.6, 60.6), abs=1e-12)
    assert worst.complete
    assert worst.vertices == 8
    assert worst.at_low == pytest.approx({"a": 9.9, "b": 19.8, "c": 29.9})
    assert stack.rss == pytest.approx(0.3, abs=1e-12)
    assert stack["length"].middle == pytest.approx(60.1, abs=1e-12)
    assert stack.contributions["a"].percent == pytest.approx(100 / 9)
    assert stack.monte_carlo is None


@pytest.mark.parametrize(
    ("law", "variance"), [("normal", 1 / 9), ("normal(2)", 1 / 4), ("uniform", 1 / 3), ("triangular", 1 / 6)]
)
def test_each_distribution_has_its_standard_deviation(model: Callable, law: str, variance: float) -> None:
    stack = lw.tolerances(model(STACK), "final(three.x)", STACK_SIZES, distributions=law, settings=MANY)
    assert stack.std == pytest.approx(0.3 * variance**0.5)
    drawn = stack.monte_carlo
    assert drawn is not None
    mean_error, std_error = drawn.errors
    assert abs(drawn.std - stack.std) < 4 * std_error
    assert abs(drawn.mean - 60.1) < 4 * mean_error
    assert std_error < 0.008 * stack.std
    disagreement = stack["final(three.x)"].disagreement
    assert disagreement is not None
    assert disagreement[0] == pytest.approx(drawn.std / stack.std - 1)


def test_distributions_by_name_leave_the_others_normal(model: Callable) -> None:
    laws = {"a": "uniform"}
    stack = lw.tolerances(model(STACK), "final(three.x)", {"a": 0.1, "b": 0.1}, distributions=laws, settings=FEW)
    deviations = {name: x.deviation for name, x in stack.contributions.items()}
    assert deviations == pytest.approx({"a": 0.1 / 3**0.5, "b": 0.1 / 3})


def test_texts_are_per_cent_angles_and_limits(model: Callable) -> None:
    mech = model(STACK)
    sizes = {"a": "1 %", "b": "±0.2", "c": "-0.1:0.3"}
    by_text = lw.tolerances(mech, "final(three.x)", sizes, settings=FEW)
    plain = lw.tolerances(mech, "final(three.x)", STACK_SIZES, settings=FEW)
    assert by_text.report() == plain.report()
    turned = lw.tolerances(mech, "cos(a)*final(one.x)", {"a": "0.5 deg"}, settings=FEW)
    assert turned.contributions["a"].dimension.upper == pytest.approx(np.radians(0.5))


def test_the_same_seed_draws_the_same_and_another_does_not(model: Callable) -> None:
    mech = model(STACK)
    samples = [
        lw.tolerances(mech, "final(three.x)", STACK_SIZES, settings=lw.ToleranceSettings(draws=50, seed=seed))
        for seed in (1, 1, 2)
    ]
    one, two, other = (x.monte_carlo.samples for x in samples if x.monte_carlo is not None)
    assert np.array_equal(one, two)
    assert not np.allclose(one, other)


def test_what_decides_nothing_has_the_contribution_zero(model: Callable) -> None:
    stack = lw.tolerances(model(STACK), "final(two.x)", {**STACK_SIZES, "shade": 0.2}, settings=FEW)
    assert stack.contributions["c"].half == 0.0
    assert stack.contributions["shade"].half == 0.0
    assert "c, shade decide nothing: their contributions are 0" in " ".join(stack["final(two.x)"].notes)


# -- four-bars ---------------------------------------------------------------------------------------------------
LENGTHS = {"crank": 1.0, "coupler": 3.0, "rocker": 2.5, "apart": 3.0}


def slopes(function: Callable[..., complex]) -> dict[str, float]:
    """The derivatives of a function of the lengths by a complex step."""
    return {n: float((function(**{**LENGTHS, n: LENGTHS[n] + 1e-30j})).imag / 1e-30) for n in LENGTHS}


@pytest.mark.parametrize("t", [0.7, 2.9])
def test_contributions_to_a_four_bars_angle_are_those_of_the_law_of_cosines(t: float) -> None:
    sizes = {"crank": 0.01, "coupler": 0.02, "rocker": 0.03, "apart": 0.01}
    times = [t - np.pi / 6, t + 0.1]
    report = lw.tolerances(FOUR_BAR, "lean = initial(d.angle)", sizes, times=times, settings=FEW)
    exact = slopes(lambda **x: rocker(t, x["crank"], x["coupler"], x["rocker"], x["apart"]))
    for name, size in sizes.items():
        assert report.contributions[name].derivative == pytest.approx(exact[name], rel=1e-9, abs=1e-11)
        assert report.contributions[name].half == pytest.approx(abs(exact[name]) * size, rel=1e-9)
    squares = {name: (exact[name] * size) ** 2 for name, size in sizes.items()}
    assert report.rss == pytest.approx(sum(squares.values()) ** 0.5, rel=1e-9)
    total = sum(squares.values())
    percent = {name: x.percent for name, x in report.contributions.items()}
    assert percent == pytest.approx({name: 100 * x / total for name, x in squares.items()}, rel=1e-8)
    assert list(percent.values()) == sorted(percent.values(), reverse=True)


def swing(crank: complex, coupler: complex, rocker: complex, apart: complex) -> complex:
    """The angle between the dead centres of a four-bar's rocker."""
    ends = [
        np.arccos((apart**2 + rocker**2 - (coupler + sign * crank) ** 2) / (2 * apart * rocker)) for sign in (1, -1)
    ]
    return complex(ends[0] - ends[1])


def dead_centres(crank: float, coupler: float, rocker: float, apart: float) -> list[float]:
    """The angles of the crank at the dead centres, seen from the line between the pivots."""
    inward, outward = (
        np.arccos((apart**2 + (coupler + sign * crank) ** 2 - rocker**2) / (2 * apart * (coupler + sign * crank)))
        for sign in (-1, 1)
    )
    return sorted([float(outward), float(inward) + np.pi])


def test_the_swing_between_dead_centres_is_that_of_the_law_of_cosines() -> None:
    """At the dead centres themselves the derivative of the extreme is that of the motion's own."""
    sizes = {"crank": 0.01, "coupler": 0.01, "rocker": 0.01, "apart": 0.01}
    times = np.array(dead_centres(**LENGTHS)) - np.pi / 6
    report = lw.tolerances(FOUR_BAR, "swing = range(d.angle)", sizes, times=times, settings=MOST)
    assert report.nominal == pytest.approx(swing(**LENGTHS).real, abs=1e-9)
    exact = slopes(swing)
    for name in sizes:
        assert report.contributions[name].derivative == pytest.approx(exact[name], abs=1e-8)
    drawn = report.monte_carlo
    assert drawn is not None
    assert len(drawn.samples) == 100_000
    assert drawn.std == pytest.approx(report.std, rel=0.01)
    assert drawn.percentiles[99.865] - drawn.percentiles[0.135] == pytest.approx(2 * report.rss, rel=0.04)


def test_monte_carlo_of_a_four_bar_is_that_of_the_closed_form() -> None:
    """The same draws through the law of cosines: every sample, and so mean, deviation and percentiles."""
    sizes = {"crank": 0.02, "rocker": 0.02}
    t = 1.1
    report = lw.tolerances(FOUR_BAR, "initial(d.angle)", sizes, times=[t - np.pi / 6, t], settings=MANY)
    plan = {name: lw.normal(LENGTHS[name], size / 3) for name, size in sizes.items()}
    sampling = lw.Sampling("random", cases=20_000, seed=3)
    study = lw.sweep(FOUR_BAR, plan, "crank + 0", sampling=sampling, times=[0.0])
    x, y = study["crank"] * np.cos(t) - 3.0, study["crank"] * np.sin(t)
    far = np.hypot(x, y)
    lengths = study["rocker"]
    exact = np.arctan2(y, x) - np.arccos((lengths**2 + far**2 - 9.0) / (2 * lengths * far))
    assert report.monte_carlo is not None
    assert np.abs(report.monte_carlo.samples - exact).max() < 1e-9


def test_second_derivatives_say_how_far_the_mean_moves(model: Callable) -> None:
    """x = l1 cos(…) + …: of an arm whose length and angle vary, h = ∂²/∂p² in closed form."""
    text = ARM.replace("PARAMETER l2", "PARAMETER turn = 0.4;\nPARAMETER l2").replace("= 0.4);", "= turn);")
    settings = lw.ToleranceSettings(draws=100_000, order=2)
    arm = lw.tolerances(model(text), "final(elbow.x)", {"turn": 0.6, "l1": 0.1}, settings=settings)
    one = arm["final(elbow.x)"]
    assert one.shift == pytest.approx(-0.5 * 2 * np.cos(0.4) * 0.2**2)
    assert one.curved == pytest.approx(0.5 * 2 * np.cos(0.4) * 0.36 + np.sin(0.4) * 0.06)
    drawn = one.monte_carlo
    assert drawn is not None
    assert one.shift is not None
    exact = 2 * np.cos(0.4) * np.exp(-0.5 * 0.2**2)  # the mean of a cosine of a normal angle
    assert drawn.mean == pytest.approx(exact, abs=4 * drawn.errors[0])
    assert abs(exact - (one.nominal + one.shift)) < 0.01 * abs(one.shift) + 1e-4
    corners = [(2 + s * 0.1) * np.cos(0.4 + u * 0.6) for s in (-1, 1) for u in (-1, 1)]
    assert (one.worst_case.low, one.worst_case.high) == pytest.approx((min(corners), max(corners)))
    assert any("not linear within the tolerances" in note for note in one.notes)


# -- clearances --------------------------------------------------------------------------------------------------
def explicit(joint_triad: str) -> str:
    """The four-bar with offsets of a frame as parameters."""
    text = FOUR_BAR.read_text()
    x = {"crank_tip": "crank", "coupler_end": "coupler", "right": "apart"}[joint_triad]
    line = f"{joint_triad}"
    before = next(row for row in text.splitlines() if row.startswith("TRIAD") and row.split()[1] == line)
    after = before.replace(f"origin = ({x}, 0, 0)", f"origin = ({x} + ex, ey, 0)")
    assert after != before
    offsets = "PARAMETER ex = 0;\nPARAMETER ey = 0;\nPARAMETER crank = 1;"
    return text.replace(before, after).replace("PARAMETER crank = 1;", offsets)


@pytest.mark.parametrize(("joint", "frame"), [("b", "crank_tip"), ("c", "coupler_end"), ("d", "right")])
def test_a_clearance_is_an_offset_of_the_joints_frame_in_its_worst_direction(
    model: Callable, joint: str, frame: str
) -> None:
    texts = ["high = max(pen.y)", "lean = final(d.angle)"]
    times = np.linspace(0, 5, 26)
    report = lw.tolerances(FOUR_BAR, texts, clearances={joint: 0.03}, times=times, settings=FEW)
    offset = model(explicit(frame))
    exact = lw.sensitivities(offset, texts, ["ex", "ey"], times=times)
    for name in ("high", "lean"):
        part = report[name].contributions[f"clearance of {joint}"]
        gradient = exact.gradient(name)
        assert part.derivative == pytest.approx(np.linalg.norm(gradient), rel=1e-9)
        assert part.half == pytest.approx(0.03 * np.linalg.norm(gradient), rel=1e-9)
        direction = gradient / np.linalg.norm(gradient)
        assert part.direction is not None
        assert [np.cos(part.direction), np.sin(part.direction)] == pytest.approx(direction.tolist(), abs=1e-9)
        worst = report[name].worst_case
        ex, ey = (0.03 * direction).tolist()
        moved = lw.sensitivities(offset, texts, {"ex": ex, "ey": ey}, times=times)
        assert worst.high == pytest.approx(moved.value(name), abs=1e-10)


def test_a_clearance_of_a_tree_moves_the_hand_in_any_direction(model: Callable) -> None:
    clearances = {"b": 0.02}
    report = lw.tolerances(model(ARM), ["x = final(hand.x)", "y = final(hand.y)"], clearances=clearances, settings=MANY)
    for name, axis in (("x", 0.0), ("y", np.pi / 2)):
        part = report[name].contributions["clearance of b"]
        assert part.derivative == pytest.approx(1.0, abs=1e-12)
        assert part.direction == pytest.approx(axis - 0.4, abs=1e-9)  # the elbow's frame is turned by 0.4
        assert report[name].worst_case.high - report[name].nominal == pytest.approx(0.02, abs=1e-12)
        drawn = report[name].monte_carlo
        assert drawn is not None
        assert report[name].std == pytest.approx(0.01)  # of a disc's coordinate: half its radius
        assert abs(drawn.std - 0.01) < 4 * drawn.errors[1]
        assert np.abs(drawn.samples - report[name].nominal).max() <= 0.02 + 1e-12


def test_a_pin_at_the_rim_is_always_its_radius_away(model: Callable) -> None:
    clearances = {"b": lw.Clearance(0.02, spread="rim")}
    text = "off = (final(hand.x) - 1)^2"
    settings = lw.ToleranceSettings(draws=20_000)
    report = lw.tolerances(
        model(ARM), ["final(hand.x)", "final(hand.y)", text], clearances=clearances, settings=settings
    )
    x, y = (report[name].monte_carlo for name in ("final(hand.x)", "final(hand.y)"))
    assert x is not None
    assert y is not None
    middle = [report[name].nominal for name in ("final(hand.x)", "final(hand.y)")]
    away = np.hypot(x.samples - middle[0], y.samples - middle[1])
    assert np.abs(away - 0.02).max() < 1e-12
    assert report["final(hand.x)"].std == pytest.approx(0.02 / 2**0.5)
    assert abs(x.std - 0.02 / 2**0.5) < 4 * x.errors[1]


def test_the_guide_of_a_plane_slider_crank_is_loose_in_the_plane_alone(model: Callable) -> None:
    """Across the plane the other joints would open; the rail's f is at 45°, and so is the plane's direction."""
    report = lw.tolerances(model(SLIDER), "final(block.x)", clearances={"slide": 0.01}, settings=MANY)
    part = report.contributions["clearance of slide"]
    # x = r cos φ + √(l² − (r sin φ − y)²), with y = the offset
    angle, height = 7.0, 0.0
    lift = np.sin(angle) - height
    exact = lift / np.sqrt(9 - lift**2)
    assert part.derivative == pytest.approx(abs(exact), rel=1e-9)
    assert abs(np.degrees(part.direction or 0.0)) % 90 == pytest.approx(45.0)
    assert part.deviation == pytest.approx(0.01 * abs(exact) / 3**0.5)
    assert "across it, redundant constraints would open" in report.notes[0]
    drawn = report.monte_carlo
    assert drawn is not None
    assert drawn.failed == 0
    assert abs(drawn.std - report.std) < 4 * drawn.errors[1]


def test_a_tilt_turns_what_hangs_on_a_guide(model: Callable) -> None:
    """A block at a shift of 60 along a guide that may be tilted by 0.01 in any direction is off by 60 sin 0.01."""
    tilt = {"first": lw.Clearance(tilt=0.01)}
    report = lw.tolerances(model(STACK), "off = final(three.y)", clearances=tilt, settings=FEW)
    part = report.contributions["tilt of first"]
    assert part.derivative == pytest.approx(60.0, rel=1e-12)
    assert report.worst_case.high == pytest.approx(60 * np.sin(0.01), rel=1e-9)
    both = lw.tolerances(
        model(STACK), "final(three.y)", clearances={"first": lw.Clearance(0.5, "0.01 rad")}, settings=FEW
    )
    halves = {name: x.half for name, x in both.contributions.items()}
    assert halves == pytest.approx({"tilt of first": 0.6, "clearance of first": 0.5})


def test_clearances_of_a_lens_and_of_a_bridge_have_the_same_parts(tmp_path: Path) -> None:
    """A mechanism a thousand times smaller or larger has the same percentages."""
    text = WIPER.read_text()
    lengths = ("crank", "coupler", "lever", "apart", "link", "lever2", "apart2", "blade", "blade2")
    sizes, pins = {"crank": 5e-5, "lever": "0.1 %", "apart": 2e-4}, {"pin_a": 2e-5, "pin_d": 1e-5}
    mech = lw.load(WIPER)
    shares = []
    for scale in (1.0, 1e-3, 1e3):
        file = tmp_path / f"wiper{len(shares)}.mks"
        file.write_text(text)
        model = lw.load(file, parameters={name: scale * mech.parameters[name] for name in lengths})
        scaled = {name: x if isinstance(x, str) else scale * x for name, x in sizes.items()}
        loose = {name: scale * x for name, x in pins.items()}
        report = lw.tolerances(
            model, "range(wiper2.angle)", scaled, clearances=loose, times=np.linspace(0, 0.95, 61), settings=FEW
        )
        shares.append({name: x.percent for name, x in report.contributions.items()})
    assert shares[1] == pytest.approx(shares[0], rel=1e-6)
    assert shares[2] == pytest.approx(shares[0], rel=1e-6)


# -- forces ------------------------------------------------------------------------------------------------------
def test_an_equilibrium_has_the_slopes_of_its_moments(model: Callable) -> None:
    """c θ = −m g l cos θ."""
    report = lw.tolerances(
        model(HANGING),
        "final(hinge.angle)",
        {"m": 0.1, "c": "2 %", "arm": 0.005},
        settings=lw.ToleranceSettings(draws=8),
    )
    angle, m, c, arm, g = report.nominal, 3.0, 40.0, 0.5, 9.81
    assert c * angle == pytest.approx(-m * g * arm * np.cos(angle), rel=1e-8)
    stiffness = c - m * g * arm * np.sin(angle)
    exact = {"m": -g * arm * np.cos(angle), "c": -angle, "arm": -m * g * np.cos(angle)}
    for name, moment in exact.items():
        assert report.contributions[name].derivative == pytest.approx(moment / stiffness, rel=1e-7)


def test_a_simulation_has_the_slopes_of_its_closed_form(model: Callable) -> None:
    """x = s (cos ωt + 2/ω sin ωt) at 1.5 s."""
    analysis = lw.AnalysisSettings("dynamic", method="rk4", dt=0.005)
    report = lw.tolerances(
        model(OSCILLATOR),
        "final(block.x)",
        {"m": 0.02, "k": 0.5, "start": 0.01},
        analysis=analysis,
        settings=lw.ToleranceSettings(draws=400, seed=2),
    )

    def x(m: complex, k: complex, start: complex) -> complex:
        omega = np.sqrt(k / m)
        return complex(start * (np.cos(1.5 * omega) + 2 / omega * np.sin(1.5 * omega)))

    at = {"m": 2.0, "k": 50.0, "start": 0.3}
    assert report.nominal == pytest.approx(x(**at).real, rel=1e-5)
    for name in at:
        exact = x(**{**at, name: at[name] + 1e-30j}).imag / 1e-30
        assert report.contributions[name].derivative == pytest.approx(exact, rel=1e-4)
    drawn = report.monte_carlo
    assert drawn is not None
    assert abs(drawn.std - report.std) < 4 * drawn.errors[1] + 0.01 * report.std


def test_a_loose_pin_of_a_simulated_four_bar_is_an_offset_of_its_frame(model: Callable) -> None:
    analysis = lw.AnalysisSettings("dynamic", method="rk4", dt=0.01)
    options = {"analysis": analysis, "times": [0.0, 0.1]}
    report = lw.tolerances(model(SWINGING), "final(a.angle)", clearances={"b": 1e-3}, **options, settings=FEW)
    text = SWINGING.replace("origin = (crank, 0, 0));", "origin = (crank + ex, ey, 0));")
    text = text.replace("PARAMETER heavy", "PARAMETER ex = 0;\nPARAMETER ey = 0;\nPARAMETER heavy")
    gradient = lw.sensitivities(model(text), "final(a.angle)", ["ex", "ey"], **options).gradient()
    part = report.contributions["clearance of b"]
    assert part.derivative == pytest.approx(np.linalg.norm(gradient), rel=1e-9)
    assert part.direction == pytest.approx(np.arctan2(gradient[1], gradient[0]), abs=1e-9)


def test_joints_whose_names_differ_in_signs_alone_have_clearances_of_their_own(model: Callable) -> None:
    text = ARM.replace("JOINT a ", 'JOINT "a b" ').replace("JOINT b ", "JOINT a_b ")
    text = text.replace("da (a.angle", 'da ("a b".angle').replace("db (b.angle", "db (a_b.angle")
    report = lw.tolerances(model(text), "final(hand.x)", clearances={"a b": 0.01, "a_b": 0.02}, settings=FEW)
    assert {name: x.half for name, x in report.contributions.items()} == pytest.approx(
        {"clearance of a_b": 0.02, "clearance of a b": 0.01}
    )


def test_a_motors_torque_has_differences_and_no_derivatives(model: Callable) -> None:
    """τ = m g l cos θ of an arm that is held: linear in m, and l enters as m l."""
    held = HANGING.replace("STATIC", "INVERSE DYNAMIC").replace("SPRING coil (joint = hinge, stiffness = c);", "")
    mech = model(held.replace("ENDMODEL", "DRIVER hold (hinge.angle = 0.3);\nENDMODEL"))
    text, sizes = "final(hold.torque)", {"m": 0.1, "arm": 0.01}
    settings = lw.ToleranceSettings(derivatives="differences", draws=500)
    report = lw.tolerances(mech, text, sizes, settings=settings)
    exact = {"m": 9.81 * 0.5 * np.cos(0.3), "arm": 3 * 9.81 * np.cos(0.3)}
    assert {n: abs(x.derivative) for n, x in report.contributions.items()} == pytest.approx(exact, rel=1e-7)
    load = 3.1 * 9.81 * 0.51 * np.cos(0.3)
    assert max(abs(report.worst_case.low), abs(report.worst_case.high)) == pytest.approx(load, rel=1e-7)
    with pytest.raises(lw.errors.ModelError, match=r"derivatives='differences'"):
        lw.tolerances(mech, text, sizes)


def test_differences_and_derivatives_agree_on_clearances(model: Callable) -> None:
    sizes, clearances = {"crank": 1e-4}, {"b": 1e-4}
    settings = lw.ToleranceSettings(derivatives="differences", draws=0)
    texts, times = "max(pen.y)", np.linspace(0, 5, 26)
    differences = lw.tolerances(FOUR_BAR, texts, sizes, clearances=clearances, times=times, settings=settings)
    exact = lw.tolerances(FOUR_BAR, texts, sizes, clearances=clearances, times=times, settings=FEW)
    for name, x in exact.contributions.items():
        assert differences.contributions[name].derivative == pytest.approx(x.derivative, rel=1e-5)


# -- the report --------------------------------------------------------------------------------------------------
def test_a_report_is_text_html_csv_json_and_a_figure(model: Callable, tmp_path: Path) -> None:
    settings = lw.ToleranceSettings(draws=200, seed=5)
    report = lw.tolerances(model(STACK), ["length = final(three.x)", "final(two.x)"], STACK_SIZES, settings=settings)
    text = report.report()
    assert "length = final(three.x): 60" in text
    assert "worst case, all 8 vertices" in text
    assert "Monte Carlo, 99.73 % of 200" in text
    assert "standard deviation" in text
    assert "<table>" in report._repr_html_()
    assert "root sum of squares" in repr(report)
    report.save(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("output,dimension,kind,nominal,lower,upper,distribution,derivative")
    report.save(tmp_path / "t.json", samples=True)
    saved = json.loads((tmp_path / "t.json").read_text())["outputs"][0]
    drawn = report["length"].monte_carlo
    assert drawn is not None
    assert saved["monte_carlo"]["samples"] == drawn.samples.tolist()
    assert saved["rss"] == report["length"].rss
    report.plot(path=tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert len(report.plot("length").axes) == 3
    assert report.outputs == ["length", "final(two.x)"]
    assert len(report) == len(list(report)) == 2
