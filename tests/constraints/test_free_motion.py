"""Motion that the constraints leave free: of least norm and the derivative of itself, or held as in the paper."""

from pathlib import Path

import numpy as np
import pytest
from linkages import differences, four_bar, kinematics, matrices

import linkwright as lw
from linkwright.constraints.model_warnings import model_table
from linkwright.model.expression import TIME

SAMPLE = Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks"


def sample_in_closed_form(t):
    """Crank angle and its two rates, block's x and its two rates: |crank tip − block| = 10, crank 6."""
    x, xd, xdd = 8 + 3 * np.sin(t), 3 * np.cos(t), -3 * np.sin(t)
    c = (x**2 + 36 - 100) / (12 * x)
    cd, cdd = _chain(lambda y: (y**2 - 64) / (12 * y), x, xd, xdd)
    angle = np.arccos(c)
    s = np.sin(angle)
    rate = -cd / s
    second = -(cdd + c * rate**2) / s
    return angle, rate, second, x, xd, xdd


def _chain(f, x, xd, xdd):
    """f(x) = (x − 64/x)/12 has these derivatives by x."""
    first, second = (1 + 64 / x**2) / 12, -128 / x**3 / 12
    return first * xd, second * xd**2 + first * xdd


@pytest.fixture(scope="module", params=["minimum-norm", "pivoting"])
def sample(request):
    return lw.analyse(SAMPLE, freedom=request.param)


def test_the_paper_s_sample_moves_as_its_closed_form(sample):
    angle, rate, second, x, xd, xdd = sample_in_closed_form(sample.time)
    tip = sample.position("sph1pend1")
    np.testing.assert_allclose(tip, 6 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1), atol=1e-9)
    np.testing.assert_allclose(sample.position("block"), np.stack([x, 0 * x, 0 * x], 1), atol=1e-9)
    np.testing.assert_allclose(sample.velocity("block")[:, 0], xd, atol=1e-9)
    np.testing.assert_allclose(sample.acceleration("block")[:, 0], xdd, atol=1e-9)
    np.testing.assert_allclose(sample.angular_velocity("pend1")[:, 2], rate, atol=1e-9)
    np.testing.assert_allclose(sample.angular_acceleration("pend1")[:, 2], second, atol=1e-9)


def test_the_sample_s_coupler_does_not_spin(sample):
    along = sample.position("sph2pend2") - sample.position("sph1pend2")
    spin = np.sum(sample.angular_velocity("pend2") * along, axis=1) / 10.0
    assert np.max(np.abs(spin)) < 1e-9
    spin_rate = np.sum(sample.angular_acceleration("pend2") * along, axis=1) / 10.0
    assert np.max(np.abs(spin_rate)) < 1e-9


def test_the_sample_has_one_freedom_which_moves_the_coupler():
    k = kinematics(lw.load(SAMPLE))
    report = k.freedom(k.assemble(0.0, 1e-3), 0.0)
    assert (report.coordinates, report.equations, report.rank, report.left) == (18, 17, 17, 1)
    assert report.redundant == ()
    assert report.moving == ("pend2",)


# -- a chain that can reach its target in many ways -----------------------------------------------------------------
LAWS = {"x": 1.3 + 0.2 * np.sin(TIME), "y": 0.4 * np.sin(1.3 * TIME), "z": 0.2 * np.cos(TIME)}


def reaching_arm(followed):
    """An arm of four joints in space whose tip is carried around by so many of its coordinates."""
    with lw.Builder("reaching arm") as b:
        before, at = b.ground, (0.0, 0.0, 0.0)
        for k, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0.3)]):
            body = b.body(f"link{k}")
            b.joint("revolute", before, body, f"joint{k}", axis=axis, at=at)
            before, at = body, (0.6 - 0.1 * k, 0.1 * k, 0.05)
        b.place("link1", (0.6, 0.0, 0.05), rotation=[[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
        b.place("link2", (1.0, 0.1, -0.3), rotation=[[0.8, 0, -0.6], [0, 1, 0], [0.6, 0, 0.8]])
        b.triad(before, origin=(0.3, 0.1, 0.2), name="tip")
        for coordinate in list(LAWS)[:followed]:
            b.driver("absolute", "tip", LAWS[coordinate], coordinate=coordinate)
    return b.build()


@pytest.fixture(scope="module")
def reaching():
    return reaching_arm(3)


BODIES = ["link0", "link1", "link2", "link3"]


@pytest.mark.parametrize("t", [0.4, 2.1])
def test_velocity_and_acceleration_are_the_derivatives_of_the_positions(reaching, t):
    """The whole way there in common steps, then a fine grid around."""

    def around(times):
        found = lw.analyse(reaching, times=np.concatenate([np.linspace(0.0, times[0], 21)[:-1], times]))
        assert found.status, found.status
        return _Last(found, len(times))

    differences(around, BODIES, t)


class _Last:
    """The last points of a solution."""

    def __init__(self, sol, n):
        self.sol, self.n = sol, n

    def __getattr__(self, name):
        return lambda *args: getattr(self.sol, name)(*args)[-self.n :]


def test_the_free_motion_does_not_depend_on_the_print_interval(reaching):
    coarse = lw.analyse(reaching, times=np.linspace(0.0, 4.0, 11))
    fine = lw.analyse(reaching, times=np.linspace(0.0, 4.0, 161))
    for name in BODIES:
        np.testing.assert_allclose(coarse.position(name), fine.position(name)[::16], atol=1e-9)
        np.testing.assert_allclose(coarse.orientation(name), fine.orientation(name)[::16], atol=1e-9)
        np.testing.assert_allclose(coarse.velocity(name), fine.velocity(name)[::16], atol=1e-8)
        np.testing.assert_allclose(coarse.acceleration(name), fine.acceleration(name)[::16], atol=1e-7)


def weighed_jacobian(k, q, t):
    """J, the laws' rates and W⁻¹ of a mechanism at a state: shifts count 1, turns the square of the body's size."""
    e, layout = k.equations, k.programs.layout
    angles = np.zeros(max(int(e.first_angle[-1]), 1))
    laws, parts, phi, _, _ = k.programs.evaluate(q, angles, np.array([t]), np.zeros((e.nb, 6)))
    rates = np.zeros(e.count)
    for c in e.drivers:
        rates[e.first[c]] = laws[c, 1]
    inverse = np.ones((e.nb, 6))
    inverse[:, 3:] = e.sizes[:, None] ** -2.0
    return layout.dense(parts), rates, inverse.reshape(-1), phi


def test_the_velocity_is_the_one_of_least_weighed_norm(reaching):
    k = kinematics(reaching)
    motion = k.motion(np.linspace(0.0, 2.0, 9))
    for q, v, t in zip(motion.q, motion.v, motion.times, strict=True):
        j, rates, inverse, _ = weighed_jacobian(k, q, t)
        root = np.sqrt(inverse)
        least = root * (np.linalg.pinv(j * root) @ rates)
        np.testing.assert_allclose(v.reshape(-1), least, atol=1e-10)


def held(sol, k, left):
    """For each step, how many independent coordinates of the free motion kept their values to the last bit."""
    q = np.concatenate([np.concatenate([sol.position(n), sol.orientation(n)], axis=1) for n in BODIES], axis=1)
    found = []
    for q0, q1, t in zip(q, q[1:], sol.time, strict=False):
        j = weighed_jacobian(k, q0.reshape(-1, 7), t)[0]
        free = np.linalg.svd(j)[2][-left:].reshape(left, -1, 6)
        rates = np.zeros((left, len(BODIES), 7))
        for n, e in enumerate(q0.reshape(-1, 7)[:, 3:]):
            g = np.array([[-e[1], e[0], -e[3], e[2]], [-e[2], e[3], e[0], -e[1]], [-e[3], -e[2], e[1], e[0]]])
            rates[:, n, :3], rates[:, n, 3:] = free[:, n, :3], 0.5 * free[:, n, 3:] @ g
        found.append(int(np.linalg.matrix_rank(rates.reshape(left, -1)[:, q0 == q1], tol=1e-6)))
    return found


@pytest.mark.parametrize("followed", [3, 2])
def test_pivoting_holds_as_many_coordinates_as_there_is_freedom_left_and_least_norm_none(followed):
    mech, left = reaching_arm(followed), 4 - followed
    times, k = np.linspace(0.0, 0.5, 11), kinematics(mech)
    sol = lw.analyse(mech, times=times, freedom="pivoting")
    assert sol.status, sol.status
    assert held(sol, k, left) == [left] * 10
    assert held(lw.analyse(mech, times=times), k, left) == [0] * 10


def test_steps_of_pivoting_are_smooth_where_what_is_held_changes():
    """Here it changes ten times, and the free velocity with it; none of these steps needs to be halved."""
    sol = lw.analyse(reaching_arm(2), times=np.linspace(0.0, 4.0, 41), freedom="pivoting")
    assert sol.status, sol.status
    assert sol.status.notes == ("2 undriven degrees of freedom: link0, link1, link2, link3",)
    assert sol.counters.substeps == 41


def test_pivoting_follows_the_drivers_and_its_velocities_obey_the_constraints(reaching):
    sol = lw.analyse(reaching, times=np.linspace(0.0, 0.5, 11), freedom="pivoting")
    q = np.concatenate([np.concatenate([sol.position(n), sol.orientation(n)], axis=1) for n in BODIES], axis=1)
    np.testing.assert_allclose(sol.position("tip")[:, 0], 1.3 + 0.2 * np.sin(sol.time), atol=1e-9)
    k = kinematics(reaching)
    for q1, v1, t in zip(q, _twists(sol), sol.time, strict=True):
        jacobian, rates, _, phi = weighed_jacobian(k, q1.reshape(4, 7), t)
        np.testing.assert_allclose(jacobian @ v1, rates, atol=1e-9)
        assert np.max(np.abs(phi)) < 1e-9


def _twists(sol):
    return np.concatenate([np.concatenate([sol.velocity(n), sol.angular_velocity(n)], axis=1) for n in BODIES], axis=1)


# -- bodies that nothing moves --------------------------------------------------------------------------------------
def test_bodies_without_constraints_or_drivers_stay_where_they_are_drawn():
    with lw.Builder("loose") as b:
        b.place(b.body("stone"), (1.0, 2.0, 3.0), rotation=[[0, -1, 0], [1, 0, 0], [0, 0, 1]])
        b.joint("free", b.ground, "stone")
    sol = lw.analyse(b.build(), times=[0.0, 0.5, 1.0])
    assert sol.status
    np.testing.assert_array_equal(sol.position("stone"), [[1.0, 2.0, 3.0]] * 3)
    np.testing.assert_allclose(matrices(sol.orientation("stone")), [[[0, -1, 0], [1, 0, 0], [0, 0, 1]]] * 3, atol=1e-15)
    np.testing.assert_array_equal(sol.velocity("stone"), 0.0)


def test_a_mechanism_without_drivers_is_assembled_and_stays():
    mech = four_bar((1.0, 3.0, 2.5, 3.0), None, 0.9, off=np.full((3, 3), 0.1), turn=(0.2, -0.2, 0.1))
    sol = lw.analyse(mech, times=[0.0, 1.0])
    k = kinematics(mech)
    start = k.assemble(0.0, 1e-3)
    assert start.miss < 1e-10
    assert k.freedom(start, 0.0).left == 1
    np.testing.assert_allclose(sol.position("rocker")[1], sol.position("rocker")[0], atol=1e-12)
    np.testing.assert_array_equal(sol.angular_velocity("crank"), 0.0)


def test_the_sample_is_counted_as_in_the_paper():
    table = model_table(lw.load(SAMPLE).description)
    assert (table.coordinates, table.equations, table.degrees_of_freedom) == (28, 27, 1)
    assert [row.equations for row in table.rows] == [4, 6, 5, 3, 3, 5, 1]
