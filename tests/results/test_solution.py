"""What a solution tells of bodies, triads and ground, against closed forms."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motions import FINISHED, GAIN, RADIUS, SPEED, about_z, angle, crank, crank_motion
from numpy.testing import assert_allclose, assert_array_equal

import linkwright as lw
from linkwright.errors import DtypeError, LinkwrightError, ModelError, NameNotFound, ShapeError
from linkwright.model.body_motion import QUANTITIES
from linkwright.model.description import Trace
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix

TIME = np.linspace(0.0, 1.5, 31)


@pytest.fixture(scope="module")
def solution() -> Solution:
    return crank_motion(TIME)


def test_a_body_gives_its_own_rows(solution: Solution) -> None:
    for quantity in QUANTITIES:
        assert_array_equal(getattr(solution, quantity)("crank"), solution.arrays[quantity][:, 0])
        assert_array_equal(getattr(solution, quantity)("block"), solution.arrays[quantity][:, 1])


def test_a_triad_moves_as_a_point_on_a_circle(solution: Solution) -> None:
    # The tip is at a radius of its own, ahead of the crank's x axis by a constant angle.
    reach, ahead = np.hypot(RADIUS + 0.2, 0.1), np.arctan2(0.1, RADIUS + 0.2)
    theta, w = angle(TIME) + ahead, SPEED + GAIN * TIME
    zero = 0.0 * theta
    out = np.stack([np.cos(theta), np.sin(theta), zero], axis=1)
    along = np.stack([-np.sin(theta), np.cos(theta), zero], axis=1)
    assert_allclose(solution.position("tip"), reach * out + [0.0, 0.0, 0.3], atol=1e-14)
    assert_allclose(solution.velocity("tip"), reach * w[:, None] * along, atol=1e-13)
    assert_allclose(solution.acceleration("tip"), reach * (GAIN * along - (w**2)[:, None] * out), atol=1e-12)


def test_a_triad_turns_with_its_body(solution: Solution) -> None:
    tip = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # columns f = y, g = z, h = x
    found = np.moveaxis(euler_parameters_matrix(solution.orientation("tip").T), -1, 0)
    assert_allclose(found, about_z(angle(TIME)) @ tip, atol=1e-14)
    assert_array_equal(solution.angular_velocity("tip"), solution.angular_velocity("crank"))
    assert_array_equal(solution.angular_acceleration("tip"), solution.angular_acceleration("crank"))


def test_the_orientation_of_a_triad_keeps_its_sign_through_whole_turns(solution: Solution) -> None:
    e = solution.orientation("tip")
    assert angle(TIME[-1]) > np.pi
    assert np.all(np.sum(e[1:] * e[:-1], axis=1) > 0.5)


def test_ground_and_its_triads_stay(solution: Solution) -> None:
    assert_array_equal(solution.position("ground"), np.zeros((31, 3)))
    assert_array_equal(solution.orientation("ground"), np.tile([1.0, 0.0, 0.0, 0.0], (31, 1)))
    assert_allclose(solution.position("mark"), np.tile([1.0, 2.0, 3.0], (31, 1)), rtol=1e-15)
    for quantity in ("velocity", "acceleration", "angular_velocity", "angular_acceleration"):
        assert_array_equal(getattr(solution, quantity)("mark"), np.zeros((31, 3)))


def test_an_unknown_name_offers_close_ones(solution: Solution) -> None:
    with pytest.raises(NameNotFound, match="did you mean 'crank'"):
        solution.position("crnk")
    with pytest.raises(NameNotFound, match=r"no joint named 'pivto'.*'pivot'"):
        solution.joint("pivto")
    with pytest.raises(ModelError, match="by its name, not by 3"):
        solution.velocity(3)  # type: ignore[arg-type]


def test_what_is_given_can_be_changed_without_changing_the_solution(solution: Solution) -> None:
    with pytest.raises(ValueError, match="read-only"):
        solution.time[0] = 1.0
    for name in ("crank", "tip", "ground"):
        for quantity in QUANTITIES:
            before = getattr(solution, quantity)(name).copy()
            getattr(solution, quantity)(name)[:] = 7.0
            assert_array_equal(getattr(solution, quantity)(name), before)


@pytest.mark.parametrize("points", [0, 1])
def test_a_solution_of_no_or_one_point_answers_everything(points: int) -> None:
    short = crank_motion(TIME[:points])
    assert len(short) == points
    for quantity, (size, _, _) in QUANTITIES.items():
        assert getattr(short, quantity)("tip").shape == (points, size)
        assert short.data[quantity].shape == (points, 2, size)
    assert short.q.shape == short.v.shape == (points, 2)
    assert short.joint("pivot").shape == (points, 1)
    assert f"{points} point" in repr(short)


def test_arrays_of_other_shapes_are_refused_by_name() -> None:
    d, none = crank().description, np.zeros((2, 2, 3))
    rest = {"status": Status(ok=True), "counters": Counters(), "iterations": np.zeros(2, int)}
    with pytest.raises(ShapeError, match=r"orientation has shape \(2, 2, 3\); give \(2, 2, 4\)"):
        Solution.of(d, [0.0, 1.0], none, none, none, none, none, none, **rest)
    with pytest.raises(ShapeError, match=r"time has shape \(\)"):
        Solution.of(d, 0.0, none, none, none, none, none, none, **rest)
    with pytest.raises(ShapeError, match="not an array of one shape"):
        Solution.of(d, [0.0, [1.0]], none, none, none, none, none, none, **rest)
    with pytest.raises(DtypeError, match="position has dtype complex128"):
        Solution.of(d, [0.0, 1.0], none * 1j, none, none, none, none, none, **rest)


def test_its_text_tells_the_model_the_span_and_the_outcome() -> None:
    status = Status(ok=False, reason="lock-up", time=1.6, element="motor")
    assert repr(crank_motion(TIME, status=status)) == (
        "<Solution 'crank and block': 2 bodies, 31 points, t = 0 … 1.5 s; stopped at t = 1.6 s: lock-up at 'motor'.>"
    )


def test_the_mechanism_has_the_coordinates_that_q_has(solution: Solution) -> None:
    assert isinstance(solution.mechanism, lw.Mechanism)
    assert solution.q.shape == (31, solution.mechanism.nq)
    assert_allclose(solution.mechanism.pose(solution.q, "tip")[:, :3, 3], solution.position("tip"), atol=1e-14)


def test_the_data_have_labels_and_units(solution: Solution) -> None:
    data = solution.data
    assert dict(data.sizes) == {"time": 31, "body": 2, "axis": 3, "parameter": 4}
    assert_array_equal(data.position.sel(body="crank", axis="y"), solution.position("crank")[:, 1])
    assert_array_equal(data.orientation.sel(body="crank", parameter="e3"), solution.orientation("crank")[:, 3])
    assert {name: data[name].attrs["units"] for name in ("time", "velocity", "angular_acceleration")} == {
        "time": "s",
        "velocity": "m/s",
        "angular_acceleration": "rad/s^2",
    }
    assert all("long_name" in data[name].attrs for name in data.variables)


def test_a_csv_file_reads_back_to_the_same_bits(solution: Solution, tmp_path: Path) -> None:
    solution.to_csv(tmp_path / "x.csv")
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, np.array(rows, dtype=float).T, strict=True))
    assert_array_equal(columns["time [s]"], TIME)
    assert_array_equal(columns["crank.x [m]"], solution.position("crank")[:, 0])
    assert_array_equal(columns["crank.e3"], solution.orientation("crank")[:, 3])
    assert_array_equal(columns["crank.vy [m/s]"], solution.velocity("crank")[:, 1])
    assert_array_equal(columns["crank.alpha_z [rad/s^2]"], solution.angular_acceleration("crank")[:, 2])
    assert len(head) == 1 + 2 * 19 + 2 * 3
    assert_array_equal(columns["pivot.angle [rad]"], solution.joint("pivot")[:, 0])
    assert_array_equal(columns["pivot.acceleration [rad/s^2]"], solution.joint_acceleration("pivot")[:, 0])
    assert_array_equal(columns["slide.rate [m/s]"], solution.joint_rate("slide")[:, 0])


def test_a_csv_file_has_the_traced_points_each_under_its_own_head(solution: Solution, tmp_path: Path) -> None:
    traced = replace(solution.description, traces=(Trace("curve", "tip"), Trace("crank", "tip")))
    more = {"status": FINISHED, "counters": Counters(), "iterations": solution.iterations}
    Solution.of(traced, TIME, **solution.arrays, **more).to_csv(tmp_path / "x.csv")
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, np.array(rows, dtype=float).T, strict=True))
    assert len(columns) == len(head)
    for name in ("curve.ay [m/s^2]", "crank.ay [m/s^2] (2)"):
        assert_array_equal(columns[name], solution.acceleration("tip")[:, 1])


def test_a_csv_file_of_named_places_has_their_columns_alone(solution: Solution, tmp_path: Path) -> None:
    solution.to_csv(tmp_path / "x.csv", names=["tip"])
    head = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert len(head) == 1 + 19
    assert all(column.startswith("tip.") for column in head[1:])


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(solution: Solution, tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError, match=r"cannot write .*missing.*x\.csv"):
        solution.to_csv(tmp_path / "missing" / "x.csv")
    with pytest.raises(LinkwrightError, match="is a folder"):
        solution.to_csv(tmp_path)
    assert not list(tmp_path.iterdir())


def test_euler_parameters_of_a_matrix_lose_no_digits() -> None:
    rng = np.random.default_rng(1)
    e = rng.standard_normal((4, 2000))
    e[:, :4] = np.eye(4)  # half turns about each axis
    e[:, 4:1000] *= 10.0 ** rng.uniform(-9.0, 0.0, (4, 996))  # near half turns and near none
    e /= np.linalg.norm(e, axis=0)
    e *= np.where(e[0] < 0.0, -1.0, 1.0)
    found = euler_parameters(euler_parameters_matrix(e))
    same = np.where(np.sum(found * e, axis=0) < 0.0, -1.0, 1.0)
    assert_allclose(found * same, e, atol=1e-15)
