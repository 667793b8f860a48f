"""The sampled loop: exact periods and delays, guards against bad commands, seeds, parameters, what is kept."""

import numpy as np
import pytest
from controlled import block, five_bar, five_bar_start, pendulum, planar_arm

import linkwright as lw
from linkwright.errors import ArgumentError, DtypeError, ModelError, NameNotFound, ShapeError


class Played:
    """Commands from a list, then the last one."""

    def __init__(self, *rows: object) -> None:
        self.rows = rows

    def step(self, k, t, measured):
        return self.rows[min(k, len(self.rows) - 1)]


class Law:
    """A command by a function of k, t and what is measured."""

    def __init__(self, function) -> None:
        self.step = function


def moved(forces: list[tuple[float, float]], mass: float = 2.0) -> float:
    """Where a block is after constant forces (duration, force), from rest at 0."""
    x = v = 0.0
    for h, f in forces:
        x, v = x + h * v + 0.5 * h * h * f / mass, v + h * f / mass
    return x


@pytest.mark.parametrize(
    ("delay", "forces"),
    [
        (0, [(0.1, 3.0), (0.1, -1.0), (0.1, 2.0), (0.1, 2.0)]),
        (1, [(0.1, 0.0), (0.1, 3.0), (0.1, -1.0), (0.1, 2.0)]),
        (2, [(0.1, 0.0), (0.1, 0.0), (0.1, 3.0), (0.1, -1.0)]),
        (0.25, [(0.025, 0.0), (0.1, 3.0), (0.1, -1.0), (0.175, 2.0)]),
        (1.5, [(0.1, 0.0), (0.05, 0.0), (0.1, 3.0), (0.1, -1.0), (0.05, 2.0)]),
    ],
)
def test_commands_act_after_whole_and_fractional_delays_exactly(delay: float, forces: list) -> None:
    run = lw.control.Loop(block(), Played([3.0], [-1.0], [2.0]), period=0.1, delay=delay).run(0.4, [0.0])
    assert abs(run.q[-1, 0] - moved(forces)) < 1e-14


def test_what_acts_before_the_first_command_is_given_or_told_by_the_controller() -> None:
    class Starts(Played):
        def start(self, measured):
            return [4.0]

    mech = block()
    given = lw.control.Loop(mech, Played([1.0]), period=0.1, delay=1).run(0.1, [0.0], tau0=[5.0])
    told = lw.control.Loop(mech, Starts([1.0]), period=0.1, delay=1).run(0.1, [0.0])
    assert abs(given.q[-1, 0] - moved([(0.1, 5.0)])) < 1e-14
    assert abs(told.q[-1, 0] - moved([(0.1, 4.0)])) < 1e-14


def test_a_controller_with_a_model_holds_the_weight_until_its_first_command_arrives() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    controller = lw.control.computed_torque(mech, 100.0, 20.0, lw.control.Hold(q[:2]), guess=q)
    run = lw.control.Loop(mech, controller, delay=2).run(0.1, q)
    assert np.abs(run.q - q).max() < 1e-6


def test_an_outer_loop_may_wrap_a_sum() -> None:
    mech = block()
    inner = lw.control.pid(mech, 50.0, 20.0, 0.0, lw.control.Hold([0.0]))
    shifted = lw.control.Corrected(
        inner + Played([0.5]), lambda k, t, measured, target: (target.x + 1.0, target.xd, target.xdd)
    )
    run = lw.control.Loop(mech, shifted).run(4.0, [0.0])
    assert abs(run.q[-1, 0] - 1.0 - 0.5 / 50.0) < 1e-4


class Spring:
    """A controller of no base class that follows a reference, with a step of its own."""

    def __init__(self, x: float) -> None:
        self.reference = lw.control.Hold([x])

    def follow(self, t, measured, target):
        return 50.0 * (target.x - measured.q) - 20.0 * measured.v

    def step(self, k, t, measured):
        return self.follow(t, measured, self.reference.at(t))


def shift(by: float):
    return lambda k, t, measured, target: (target.x + by, target.xd, target.xdd)


def test_an_outer_loop_reaches_a_leader_that_has_a_step_of_its_own() -> None:
    mech = block()
    summed = lw.control.friction(0.0, 0.0) + Spring(0.0)
    run = lw.control.Loop(mech, lw.control.Corrected(summed, shift(1.0))).run(0.01, [0.0])
    assert run.command[0] == pytest.approx([50.0])
    plain = lw.control.Loop(mech, summed).run(0.01, [0.0])
    assert plain.command[0] == pytest.approx([0.0])


def test_outer_loops_may_be_nested_around_sums() -> None:
    inner = lw.control.Corrected(Spring(0.0), shift(1.0)) + lw.control.friction(0.0, 0.0)
    run = lw.control.Loop(block(), lw.control.Corrected(inner, shift(0.5))).run(0.01, [0.0])
    assert run.command[0] == pytest.approx([75.0])


def test_an_outer_loop_refuses_what_cannot_be_given_a_target() -> None:
    class Alone(lw.control.Controller):
        reference = lw.control.Hold([0.0])

        def step(self, k, t, measured):
            return [0.0]

    for inner in (Alone(), Alone() + Played([0.0])):
        with pytest.raises(ModelError, match=r"Alone .* has no follow\(t, measured, target\)"):
            lw.control.Corrected(inner, shift(1.0))


def test_the_plant_moves_as_a_simulation_with_the_same_steps() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    run = lw.control.Loop(mech, Played([0.3, -0.2]), period=2e-3, settings=lw.control.LoopSettings(substeps=4)).run(
        0.1, q
    )
    tau = np.zeros(mech.nv)
    tau[:2] = 0.3, -0.2
    sol = lw.simulate(mech, 0.1, q0=q, v0=np.zeros(mech.nv), tau=tau, method="rk4", dt=5e-4)
    assert np.allclose(run.q[-1], sol.q[-1], atol=1e-12)
    assert np.allclose(run.v[-1], sol.v[-1], atol=1e-11)
    assert np.allclose(run.a[-1], sol.a[-1], atol=1e-8)


def test_a_command_that_is_not_finite_never_reaches_the_plant() -> None:
    bad = Law(lambda k, t, m: [np.nan] if k in (3, 4) else [1.0 + k])
    run = lw.control.Loop(block(), bad, period=0.1).run(1.0, [0.0])
    assert run.status
    assert run.held == 2
    assert "2 times, first at t = 0.3 s" in str(run.status)
    assert np.isfinite(run.torque).all()
    assert np.array_equal(run.torque[3:5, 0], [3.0, 3.0])
    assert np.isnan(run.command[3:5]).all()


def test_too_many_in_a_row_stop_the_run_with_a_sentence() -> None:
    bad = Law(lambda k, t, m: [np.inf] if k > 5 else [1.0])
    run = lw.control.Loop(block(), bad, period=0.1, settings=lw.control.LoopSettings(patience=3)).run(2.0, [0.0])
    assert not run.status
    assert run.status.reason == "no finite force"
    assert "not finite 3 times in a row" in str(run.status)
    assert len(run) == 9
    assert np.isfinite(run.q).all()
    assert np.array_equal(run.torque[-1], [1.0])


def test_forces_are_cut_at_their_limit_and_counted() -> None:
    mech = planar_arm()
    swing = Law(lambda k, t, m: [10.0 if k < 3 else 1.0, -0.5])
    run = lw.control.Loop(mech, swing, period=0.01, torque_limit=[4.0, 2.0]).run(0.1, [0.0, 0.0])
    assert run.saturated == 3
    assert run.torque[:, 0].max() == 4.0
    assert run.command[:, 0].max() == 10.0
    assert "cut at their limit in 3 of 11 samples, first at t = 0 s, most often at 'shoulder'" in str(run.status)


def test_forces_change_no_faster_than_the_slew() -> None:
    run = lw.control.Loop(block(), Played([1.0]), period=0.1, settings=lw.control.LoopSettings(slew=2.0)).run(
        1.0, [0.0]
    )
    assert np.allclose(run.torque[:, 0], np.minimum(0.2 * np.arange(1, 12), 1.0))


def test_a_slew_goes_on_from_what_the_limit_let_through() -> None:
    command = Law(lambda k, t, m: [100.0 if k < 20 else -100.0])
    run = lw.control.Loop(
        block(), command, period=0.1, torque_limit=3.0, settings=lw.control.LoopSettings(slew=10.0)
    ).run(2.5, [0.0])
    assert run.torque[19, 0] == 3.0
    assert run.torque[20:24, 0] == pytest.approx([2.0, 1.0, 0.0, -1.0])


def test_a_plant_that_blows_up_ends_with_what_was_computed_and_why() -> None:
    mech = pendulum()
    run = lw.control.Loop(mech, Law(lambda k, t, m: [1e4 * m.v[0] + 1.0]), period=0.01).run(10.0, [0.1])
    assert not run.status
    assert run.status.reason == "no value"
    assert "joint 'hinge'" in str(run.status)
    assert "unstable loop" in str(run.status)
    assert 2 < len(run) < 1000
    assert np.isfinite(run.q).all()


def test_a_controller_that_raises_ends_the_run_at_its_time() -> None:
    def fail(k, t, measured):
        if k == 4:
            raise ZeroDivisionError("by nothing")
        return [1.0]

    run = lw.control.Loop(block(), Law(fail), period=0.1).run(1.0, [0.0])
    assert run.status.reason == "controller failed"
    assert "at t = 0.4 s" in str(run.status)
    assert "ZeroDivisionError: by nothing" in str(run.status)
    assert len(run) == 5


def test_forces_of_the_wrong_shape_are_told() -> None:
    run = lw.control.Loop(block(), Played([1.0, 2.0])).run(0.1, [0.0])
    assert not run.status
    assert "the loop has 1 drive," in str(run.status)
    run = lw.control.Loop(block(), Played("text")).run(0.1, [0.0])
    assert "no array of 1 forces" in str(run.status)


@pytest.mark.parametrize(
    ("later", "text"),
    [([1.0, 2.0], "'load' had 3 numbers and now has 2"), (1.0, "now has 1"), (["heavy"] * 3, "'load' is ['heavy'")],
)
def test_a_signal_that_changes_its_width_ends_the_run_by_its_name(later: object, text: str) -> None:
    class Tells(Played):
        def step(self, k, t, measured):
            self.signals = {"load": [1.0, 2.0, 3.0] if k < 3 else later}
            return [1.0]

    run = lw.control.Loop(block(), Tells(), period=0.1).run(1.0, [0.0])
    assert run.status.reason == "controller failed"
    assert text in str(run.status)
    assert len(run) == 4


def test_the_controller_sees_no_state_unless_it_is_asked_for() -> None:
    seen = []
    watch = Law(lambda k, t, m: (seen.append(m.state is None), [0.0])[1])
    mech = block()
    lw.control.Loop(mech, watch).run(0.01, [0.0])
    lw.control.Loop(mech, watch, sensors="exact").run(0.01, [0.0])
    assert seen == [True] * 5 + [False] * 5


def noisy(seed: int) -> lw.Solution:
    mech = pendulum()
    sensors = [lw.control.Accelerometer("tip", noise=0.1)]
    encoders = lw.control.Encoder(counts=5000, noise=1e-4)
    damp = Law(lambda k, t, m: -0.3 * m.v - 0.01 * m.signals["tip.acceleration"][:1])
    return lw.control.Loop(
        mech, damp, encoders=encoders, sensors=sensors, settings=lw.control.LoopSettings(seed=seed)
    ).run(0.2, [0.5])


def test_a_run_is_the_same_to_the_bit_from_the_same_seed() -> None:
    first, second, other = noisy(3), noisy(3), noisy(4)
    for name in first.series:
        assert np.array_equal(first.series[name].values, second.series[name].values)
    assert np.array_equal(first.q, second.q)
    assert not np.array_equal(first.q, other.q)


def test_a_loop_runs_again_from_the_start() -> None:
    mech = block()
    loop = lw.control.Loop(mech, lw.control.pid(mech, 50.0, 20.0, 30.0, lw.control.Hold([1.0])), delay=0.5)
    first, second = loop.run(0.1, [0.0]), loop.run(0.1, [0.0])
    assert np.array_equal(first.q, second.q)
    assert np.array_equal(first.command, second.command)


def test_plants_with_other_parameters_share_one_compiled_plant() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    loop = lw.control.Loop(mech, Played([0.3, -0.2]), settings=lw.control.LoopSettings(free=("m",)))
    for m in (0.7, 1.0, 1.6):
        run = loop.run(0.05, q, parameters={"m": m})
        other = lw.control.Loop(five_bar(m), Played([0.3, -0.2])).run(0.05, q)
        assert np.allclose(run.q, other.q, atol=1e-12)
    assert np.allclose(loop.run(0.05, q).q, lw.control.Loop(mech, Played([0.3, -0.2])).run(0.05, q).q, atol=1e-12)


def test_every_signal_is_in_the_series_and_in_the_file(tmp_path) -> None:
    run = noisy(1)
    names = ["hinge.command", "hinge.torque", "hinge.encoder", "hinge.encoder_rate", "tip.acceleration.z"]
    assert set(names) <= set(run.series)
    assert run.series["hinge.encoder"].unit == "rad"
    run.save(tmp_path / "run.nc")
    kept = lw.open(tmp_path / "run.nc")
    assert np.array_equal(kept.series["hinge.torque"].values, run.torque[:, 0])
    assert run.data["series"].sel(name="tip.acceleration.x").shape == (len(run),)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"period": 0.0}, ModelError, "period, the time between two samples in s, must be a number greater than zero"),
        ({"settings": {"substeps": 0}}, ModelError, "substeps must be a whole number"),
        ({"delay": -1}, ModelError, "delay is a number of periods"),
        ({"drives": ["slid"]}, NameNotFound, "slide"),
        ({"drives": ["slide", "slide"]}, ModelError, "twice"),
        ({"torque_limit": [1.0, 2.0]}, ShapeError, "torque_limit has shape"),
        ({"torque_limit": -1.0}, ModelError, "greater than zero"),
        ({"sensors": "all"}, ModelError, "'exact'"),
        ({"encoders": "fine"}, ModelError, "counts a turn"),
        ({"settings": {"free": ("mass",)}}, NameNotFound, "parameter named 'mass'"),
        ({"settings": {"method": "radau"}}, NameNotFound, "method named 'radau'"),
        ({"settings": {"slew": 0.0}}, ModelError, "slew must be"),
    ],
)
def test_bad_options_are_told_before_anything_runs(options: dict, error: type, text: str) -> None:
    settings = options.pop("settings", {})
    with pytest.raises(error, match=text):
        lw.control.Loop(block(), Played([0.0]), settings=lw.control.LoopSettings(**settings), **options)


@pytest.mark.parametrize("name", ["substeps", "method", "slew", "seed", "free", "patience"])
def test_a_setting_among_the_main_arguments_is_an_error_that_names_the_settings(name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"no argument '{name}'; give settings=lw\.control\.LoopSettings\({name}="):
        lw.control.Loop(block(), Played([0.0]), **{name: 3})
    with pytest.raises(TypeError, match="no argument named 'sede'"):
        lw.control.Loop(block(), Played([0.0]), sede=3)


def test_bad_beginnings_are_told() -> None:
    loop = lw.control.Loop(block(), Played([0.0]))
    with pytest.raises(ShapeError, match=r"q0 has shape \(2,\)"):
        loop.run(0.1, [0.0, 1.0])
    for tau0 in ([1.0, 2.0], 1.0):
        with pytest.raises(ShapeError, match=r"tau0, one force a drive, has shape .* give \(1,\)"):
            loop.run(0.1, [0.0], tau0=tau0)
    with pytest.raises(DtypeError, match=r"tau0.* has dtype"):
        loop.run(0.1, [0.0], tau0=["up"])
    with pytest.raises(ModelError, match=r"tau0.* has entries that are not finite numbers"):
        loop.run(0.1, [0.0], tau0=[np.nan])
    with pytest.raises(ModelError, match="t_end"):
        loop.run(0.0, [0.0])
    with pytest.raises(ModelError, match="fixed in this plant"):
        loop.run(0.1, [0.0], parameters={"m": 3.0})
    with pytest.raises(ModelError, match="has start"):
        lw.control.Loop(block(), object())


def test_an_interrupted_loop_does_not_speak_of_checkpoints() -> None:
    class Stopped:
        def step(self, k, t, measured):
            if k == 3:
                raise KeyboardInterrupt
            return [0.0]

    run = lw.control.Loop(block(), Stopped()).run(0.1, [0.0])
    assert run.status.reason == "interrupted"
    assert "samples so far are kept" in str(run.status)
    assert "checkpoint" not in str(run.status)


def test_a_period_that_is_no_number_is_told() -> None:
    with pytest.raises(ModelError, match="period, the time between two samples in s, must be a number"):
        lw.control.Loop(block(), Played([1.0]), period="a")
