"""The control step: its forms agree with each other and with the whole closed chain; failures have names, never NaN."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from plates import chain_torques, plate_at, plates

from linkwright.control import Corrected, LinkInertia, StepSettings, friction
from linkwright.control.loop.controller_base import Measured, Target
from linkwright.control.parallel.control_step import ControlStep, StepError
from linkwright.control.parallel.forward_kinematics import moved
from linkwright.control.parallel.leg_kinematics import SingularPose, Unreachable, legs_at, rotation_matrix
from linkwright.control.parallel.step_programs_c import Flag
from linkwright.errors import ArgumentError, ModelError, ShapeError
from linkwright.studies.manipulator.machine import SIX_LEG, machine

GEOMETRY = SIX_LEG
FORMS = ("serial", "simd", "threads", "pipelined")
STILL = np.zeros(6)


@pytest.fixture(scope="module")
def mech():
    return machine(GEOMETRY)


@pytest.fixture(scope="module")
def steps():
    made = {
        form: ControlStep(GEOMETRY, settings=StepSettings(form=form, threads=2 if form in FORMS[2:] else None))
        for form in FORMS
    }
    yield made
    for step in made.values():
        step.close()


def before(step, plate):
    """Tell a step what the sample before would have: the state that moves on to the plate's in one period."""
    period, v, a = step.period, plate.twist, plate.acceleration
    mean = v - 0.5 * period * a
    pose = np.array(moved(plate.pose, -period * mean[:3], -period * mean[3:]))
    step.reset(pose, v - period * a)
    step._state[13:19] = a


@pytest.mark.parametrize("form", FORMS[:3])
def test_torques_are_those_of_inverse_dynamics_of_the_whole_chain(mech, steps, form):
    step, some = steps[form], plates(GEOMETRY, 30)
    for plate, wanted in zip(some, chain_torques(mech, GEOMETRY, some), strict=True):
        before(step, plate)
        tau = step(plate.theta, plate.rate, plate.reference)
        assert np.abs(tau - wanted).max() <= 1e-9 * np.abs(wanted).max()
        np.testing.assert_allclose(step.twist, plate.twist, atol=1e-10)
        np.testing.assert_allclose(step.pose, plate.pose, atol=1e-11)
        assert step.report.iterations <= 2


def test_forms_agree_off_the_reference_with_gains_of_their_own():
    made = [
        ControlStep(GEOMETRY, [1e3, 2e3, 3e3, 4e3, 5e3, 6e3], np.arange(6) * 40.0, settings=StepSettings(form=f))
        for f in FORMS[:3]
    ]
    for plate in plates(GEOMETRY, 10):
        other = plate.reference.copy()
        other[:3] += 0.01
        other[3:7] = [np.cos(0.1), 0.0, np.sin(0.1), 0.0]
        other[7:] *= 0.5
        found = []
        for step in made:
            step.reset(plate.pose, plate.twist * 0.0)
            found.append(step(plate.theta, plate.rate, other))
        for tau in found[1:]:
            np.testing.assert_allclose(tau, found[0], rtol=1e-11, atol=1e-9)
    made[2].close()


def test_the_acceleration_is_resolved_from_errors_of_place_turn_and_speed(mech):
    plate = plates(GEOMETRY, 1, seed=4)[0]
    kp, kv = 900.0, 50.0
    step = ControlStep(GEOMETRY, kp, kv, settings=StepSettings(form="serial"))
    step.reset(plate.pose)
    axis, angle = np.array([0.6, 0.0, 0.8]), 0.2
    shift, speed = np.array([0.01, -0.02, 0.015]), plate.twist + 0.1
    e0, v = plate.pose[3], plate.pose[4:]
    c, s = np.cos(angle / 2), np.sin(angle / 2) * axis
    target = np.concatenate([plate.pose[:3] + shift, [c * e0 - s @ v], c * v + e0 * s + np.cross(s, v)])
    tau = step(plate.theta, plate.rate, (target, speed, plate.acceleration))
    wanted = plate.acceleration + kv * (speed - plate.twist) + kp * np.concatenate([shift, angle * axis])
    full = chain_torques(mech, GEOMETRY, [plate_at(GEOMETRY, plate.pose, plate.twist, wanted)])
    np.testing.assert_allclose(tau, full[0], rtol=1e-9)


def test_ahead_of_its_sample_the_pipelined_form_gives_the_torques_of_the_predicted_state(steps):
    step, plain = steps["pipelined"], steps["serial"]
    for plate in plates(GEOMETRY, 10):
        before(step, plate)
        before(plain, plate)
        # What is measured now does not act on these torques, only on the next.
        tau = step(plate.theta + 1e-3, plate.rate, plate.reference)
        wanted = plain(plate.theta, plate.rate, plate.reference)
        # A finite turn is not quite its twist times the period.
        np.testing.assert_allclose(tau, wanted, atol=1e-2 * np.abs(wanted).max())
        later = step(plate.theta, plate.rate, plate.reference)
        assert np.abs(later - wanted).max() > 0.05 * np.abs(wanted).max()


def test_pipelined_with_and_without_a_second_thread_are_one():
    one, two = (ControlStep(GEOMETRY, settings=StepSettings(form="pipelined", threads=n)) for n in (1, 2))
    for plate in plates(GEOMETRY, 5):
        for step in (one, two):
            step.reset(plate.pose, plate.twist)
        assert (one(*plate[3:]) == two(*plate[3:])).all()
        assert (one.pose == two.pose).all()
    two.close()


def test_without_rates_the_twist_is_the_change_of_the_pose():
    step = ControlStep(GEOMETRY, settings=StepSettings(form="serial", rates="difference"))
    speed, period = np.array([0.3, -0.2, 0.4, 0.0, 0.0, 0.0]), step.period
    for k in range(3):
        pose = GEOMETRY.home.copy()
        pose[:3] += k * period * speed[:3]
        theta = np.ascontiguousarray(legs_at(GEOMETRY, pose).angles[:, 0])
        step(theta, None, (pose, speed, STILL))
    np.testing.assert_allclose(step.twist, speed, atol=1e-9)
    with pytest.raises(ModelError, match="rates of the motors"):
        ControlStep(GEOMETRY)(theta, None, (pose, speed, STILL))


def shifted(by):
    pose = GEOMETRY.home.copy()
    pose[:3] += by
    return plate_at(GEOMETRY, pose, STILL, STILL)


@pytest.mark.parametrize("form", FORMS)
def test_without_rates_a_first_pose_off_the_reset_is_no_motion(form):
    plate = shifted([0.036, 0.0, 0.0])
    step = ControlStep(GEOMETRY, settings=StepSettings(form=form, rates="difference"))
    for _ in range(2):  # a run that starts anew begins so again
        for _ in range(2):
            tau = step(plate.theta, None, plate.reference)
            np.testing.assert_allclose(step.twist, STILL, atol=1e-8)
            assert np.abs(tau).max() < 4000.0
        step.start(None)
    step.reset(twist=[0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    step(plate.theta, None, plate.reference)
    np.testing.assert_allclose(step.twist, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    step.close()


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_without_rates_the_twist_after_a_lost_pose_is_the_last_that_is_known(form, hold):
    step = ControlStep(GEOMETRY, settings=StepSettings(form=form, rates="difference", hold=hold))
    speed, period, still = 0.4, step.period, np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.0])
    for k in range(8):
        plate = shifted([k * period * speed, 0.0, 0.0])
        theta = plate.theta.copy()
        if k in (4, 5):
            theta[2] = np.nan
            if hold:
                step(theta, None, plate.reference)
            else:
                with pytest.raises(StepError, match="the measured angle of motor 3 is not finite"):
                    step(theta, None, plate.reference)
        else:
            step(theta, None, plate.reference)
        if k > 0:
            np.testing.assert_allclose(step.twist, still, atol=1e-8)
    step.close()


def test_a_payload_is_carried():
    plate, own = plates(GEOMETRY, 1)[0], GEOMETRY.plate_inertia
    heavy = replace(GEOMETRY, plate_inertia=LinkInertia(own.mass + 70.0, own.com, own.moments))
    plain = ControlStep(heavy)
    plain.reset(plate.pose)
    wanted = plain(*plate[3:])
    for payload in (70.0, LinkInertia(70.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))):
        step = ControlStep(GEOMETRY, payload=payload)
        step.reset(plate.pose)
        np.testing.assert_allclose(step(*plate[3:]), wanted, rtol=1e-9)


def test_a_rotation_vector_may_stand_for_euler_parameters():
    plate = plates(GEOMETRY, 1)[0]
    e = plate.pose[3:]
    angle = 2.0 * np.arccos(e[0])
    vector = np.concatenate([plate.pose[:3], angle * e[1:] / np.linalg.norm(e[1:])])
    found = []
    for pose in (plate.pose, vector):
        step = ControlStep(GEOMETRY, settings=StepSettings(form="serial"))
        step.reset(pose)
        found.append(step(plate.theta, plate.rate, (pose, plate.twist, plate.acceleration)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


class Sample(NamedTuple):
    q: np.ndarray
    v: np.ndarray


def test_in_a_loop_it_follows_its_reference_tells_what_it_wants_and_starts_anew():
    some = plates(GEOMETRY, 2)

    class Jumping:
        def at(self, t):
            return some[int(t)].pose, some[int(t)].twist, some[int(t)].acceleration

    step = ControlStep(GEOMETRY, reference=Jumping())
    step.reset(some[0].pose)
    first = step.step(0, 0.0, Sample(some[0].theta, some[0].rate))
    np.testing.assert_allclose(step.desired_rates, some[0].rate, rtol=1e-9)
    np.testing.assert_allclose(step.signals["plate.pose"], some[0].pose, atol=1e-11)
    step(some[0].theta, some[0].rate, some[0].reference)
    step.start(None)
    assert step.desired_rates is None
    assert (step.step(0, 0.0, Sample(some[0].theta, some[0].rate)) == first).all()
    with pytest.raises(ModelError, match="follows a reference"):
        ControlStep(GEOMETRY).step(0, 0.0, Sample(some[0].theta, some[0].rate))


def test_with_friction_in_a_sum_it_is_given_the_corrected_target():
    class Home:
        def at(self, t):
            return Target(GEOMETRY.home, STILL, STILL)

    still, kp = home(), 900.0
    step = ControlStep(GEOMETRY, kp, reference=Home())
    lifted = np.array([0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.0])
    outer = Corrected(step + friction(0.0, 0.0), lambda k, t, m, x: (x.x + lifted, STILL, STILL))
    sample = Measured(step.period, still.theta, still.rate, np.zeros(6), np.zeros(6))
    outer.start(sample)
    wanted = ControlStep(GEOMETRY, kp)(still.theta, still.rate, (GEOMETRY.home + lifted, STILL, STILL))
    np.testing.assert_allclose(outer.step(0, 0.0, sample), wanted)


# -- trouble -----------------------------------------------------------------------------------------------
def home():
    return plate_at(GEOMETRY, GEOMETRY.home, STILL, STILL)


@pytest.mark.parametrize("form", FORMS)
def test_a_reference_out_of_reach_names_the_leg_and_by_how_much(form):
    plate, step = home(), ControlStep(GEOMETRY, settings=StepSettings(form=form))
    far = GEOMETRY.home.copy()
    far[2] += 0.8
    with pytest.raises(Unreachable, match=r"reference is out of reach: leg \d .* mm too far") as error:
        step(plate.theta, plate.rate, (far, STILL, STILL))
    assert error.value.leg in range(1, 7)
    assert error.value.short > 0.01
    assert Flag.UNREACHABLE in step.report.flags
    # The step goes on from where it was.
    assert np.isfinite(step(*plate[3:])).all()
    step.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["theta", "rate", "reference"])
def test_held_torques_and_the_pose_stay_finite_whatever_comes_in(form, bad, where):
    plate, step = home(), ControlStep(GEOMETRY, settings=StepSettings(form=form, hold=True))
    step(*plate[3:])
    last = step(*plate[3:])
    given = {name: getattr(plate, name).copy() for name in ("theta", "rate", "reference")}
    given[where][1] = bad
    for _ in range(3):
        held = step(**{"theta_rate" if name == "rate" else name: x for name, x in given.items()})
        assert step.report.flags
        assert (held == last).all()
        assert np.isfinite(step._state).all()
        assert np.isfinite(step._numbers).all()
    np.testing.assert_allclose(step(*plate[3:]), last, rtol=1e-3)
    step.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", [1.2, 0.0])
def test_a_reference_of_euler_parameters_that_are_not_unit_is_told(form, factor):
    plate = plates(GEOMETRY, 1)[0]
    step, held = (ControlStep(GEOMETRY, settings=StepSettings(form=form, hold=hold)) for hold in (False, True))
    for one in (step, held):
        one.reset(plate.pose)
        last = one(*plate[3:])
    wrong = plate.reference.copy()
    wrong[3:7] *= factor
    with pytest.raises(StepError, match=f"reference's Euler parameters have the length {factor:g}; give unit"):
        step(plate.theta, plate.rate, wrong)
    assert (held(plate.theta, plate.rate, wrong) == last).all()
    assert Flag.NO_TURN in held.report.flags
    for one in (step, held):
        one.close()


def test_a_reference_that_is_not_finite_is_told():
    plate, step = home(), ControlStep(GEOMETRY)
    for k in (0, 4, 9, 15):
        wrong = plate.reference.copy()
        wrong[k] = np.nan
        with pytest.raises(StepError, match="reference has numbers that are not finite"):
            step(plate.theta, plate.rate, wrong)


def test_angles_that_fit_no_pose_are_told_with_the_miss():
    plate, step = home(), ControlStep(GEOMETRY)
    with pytest.raises(StepError, match=r"no pose of the plate fits .* reset\(pose\)") as error:
        step(plate.theta + np.array([2.0, -2.0, 0.0, 1.5, 0.0, 0.0]), plate.rate, plate.reference)
    assert Flag.LOST in error.value.report.flags
    assert (step.pose == GEOMETRY.home).all()


def test_angles_that_jump_are_told():
    step = ControlStep(GEOMETRY)
    pose = GEOMETRY.home.copy()
    pose[:3] += [0.0, 0.0, 0.13]
    plate = plate_at(GEOMETRY, pose, STILL, STILL)
    with pytest.raises(StepError) as error:
        step(*plate[3:])
    assert error.value.report.flags & (Flag.JUMPED | Flag.LOST)
    step.reset(pose)
    assert np.isfinite(step(*plate[3:])).all()


def folded_wrist():
    """A pose turned so that the first leg's sixth axis lies along the fourth."""
    pose = np.concatenate([GEOMETRY.home[:3], [np.sqrt(0.5), 0.0, 0.0, -np.sqrt(0.5)]])
    for _ in range(200):
        axis, wanted = rotation_matrix(pose[3:]) @ GEOMETRY.frames[0][:, 0], legs_at(GEOMETRY, pose).axes[0, 3]
        miss = 0.3 * np.cross(axis, wanted) * np.sign(axis @ wanted)
        pose = np.array(moved(pose, np.zeros(3), miss))
    return pose


def test_a_wrist_at_ninety_degrees_names_its_leg():
    pose = folded_wrist()
    plate = plate_at(GEOMETRY, GEOMETRY.home, STILL, STILL)
    theta = np.ascontiguousarray(legs_at(GEOMETRY, pose).angles[:, 0])
    step = ControlStep(GEOMETRY)
    step.reset(pose)
    with pytest.raises(SingularPose, match="leg 1 is singular here: its wrist") as error:
        step(theta, plate.rate, (pose, STILL, STILL))
    assert error.value.leg == 1
    assert step.report.evenness > 0.1  # the machine itself is not


def test_a_pose_where_the_motors_lose_a_direction_is_told():
    # All rods in planes through the vertical axis: no motor holds the plate's turn about it.
    geometry = replace(SIX_LEG, crank_turn=0.0, base_half_angle=np.deg2rad(30.0), plate_half_angle=np.deg2rad(30.0))
    theta = np.ascontiguousarray(legs_at(geometry, geometry.home).angles[:, 0])
    step = ControlStep(geometry)
    with pytest.raises((SingularPose, StepError)) as error:
        step(theta, STILL, (geometry.home, STILL, STILL))
    assert isinstance(error.value, SingularPose)
    assert error.value.which == "S"
    held = ControlStep(geometry, settings=StepSettings(hold=True))
    assert np.isfinite(held(theta, STILL, (geometry.home, STILL, STILL))).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"settings": {"form": "parallel"}}, "'serial'"),
        ({"settings": {"rates": "none"}}, "'difference'"),
        ({"period": 0.0}, "time between two steps"),
        ({"kp": -1.0}, "kp must be finite"),
        ({"kv": [1.0, 2.0]}, "one number, or 6 of them"),
        ({"payload": -3.0}, "mass in kg"),
        ({"settings": {"form": "threads", "threads": 7}}, "1 to 6"),
        ({"form": "serial"}, r"no argument 'form'; give settings=lw\.control\.StepSettings\(form="),
    ],
)
def test_bad_options_are_refused(options, text):
    settings = options.pop("settings", {})
    with pytest.raises((ModelError, ShapeError, ArgumentError), match=text):
        ControlStep(GEOMETRY, settings=StepSettings(**settings), **options)


def test_arrays_of_the_wrong_shape_and_poses_that_are_none_are_refused():
    plate, step = home(), ControlStep(GEOMETRY)
    for form in ("serial", "pipelined"):
        with pytest.raises(ShapeError):
            ControlStep(GEOMETRY, settings=StepSettings(form=form, threads=1))(
                plate.theta[:5], plate.rate, plate.reference
            )
    with pytest.raises(ShapeError, match="19 numbers"):
        step(plate.theta, plate.rate, "up")
    with pytest.raises(ModelError, match="unit"):
        step(plate.theta, plate.rate, (np.ones(7), STILL, STILL))
    with pytest.raises(Unreachable):
        step.reset(np.array([0.0, 0.0, 3.0, 1.0, 0.0, 0.0, 0.0]))


# -- C -----------------------------------------------------------------------------------------------------
def library(folder, text, care="-O1"):
    """C text compiled without a warning, and loaded."""
    compiler = next((path for name in ("gcc", "clang", "cc") if (path := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("no C compiler: none of gcc, clang, cc is on the PATH")
    source, made = folder / "step.c", folder / "step.so"
    source.write_text(text)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", care, "-shared", "-fPIC"]
    done = subprocess.run([compiler, *flags, source, "-o", made, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(made))


def pointer(x):
    return ctypes.c_void_p(x.ctypes.data)


def test_the_c_file_compiles_without_a_warning_and_gives_the_same(tmp_path, steps):
    plain = steps["serial"]
    code = library(tmp_path, plain.to_c())
    tau, report = np.zeros(6), np.zeros(22)
    for plate in plates(GEOMETRY, 10):
        plain.reset(plate.pose)
        code.control_step_start(pointer(plate.pose))
        for _ in range(3):
            wanted = plain(*plate[3:])
            flag = code.control_step_next(
                pointer(plate.theta), pointer(plate.rate), pointer(plate.reference), pointer(tau), pointer(report)
            )
            assert flag == 0
            np.testing.assert_allclose(tau, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    theta = plate.theta.copy()
    theta[0] = np.nan
    held = tau.copy()
    flag = code.control_step_next(
        pointer(theta), pointer(plate.rate), pointer(plate.reference), pointer(tau), pointer(report)
    )
    assert flag == Flag.LOST
    assert (tau == held).all()
    reference = plate.reference.copy()
    reference[3:7] *= 1.2
    flag = code.control_step_next(
        pointer(plate.theta), pointer(plate.rate), pointer(reference), pointer(tau), pointer(report)
    )
    assert flag & Flag.NO_TURN
    assert (tau == held).all()


def test_the_c_file_without_rates_begins_at_rest_and_cleans_its_name(tmp_path):
    step = ControlStep(GEOMETRY, settings=StepSettings(form="serial", rates="difference"))
    code = library(tmp_path, step.to_c("1 x;"), "-O0")
    tau, report, plate, none = np.zeros(6), np.zeros(22), shifted([0.036, 0.0, 0.0]), np.zeros(6)
    code.x1_x_start(None)
    for _ in range(2):
        wanted = step(plate.theta, None, plate.reference)
        code.x1_x_next(*map(pointer, (plate.theta, none, plate.reference, tau, report)))
        np.testing.assert_allclose(tau, wanted, rtol=1e-9)
    assert np.abs(tau).max() < 4000.0


def test_the_c_file_needs_nothing_and_says_its_worst_count(steps):
    text = steps["serial"].to_c()
    assert re.findall(r"#include (\S+)", text) == ["<math.h>"]
    assert "malloc" not in text
    most = int(re.search(r"At most (\d+) operations per step", text).group(1))
    assert most == sum(steps["serial"].program().count().values())


def test_a_payload_that_is_no_mass_is_told() -> None:
    with pytest.raises(ModelError, match="payload is 'x'; give a mass in kg"):
        ControlStep(GEOMETRY, payload="x")
