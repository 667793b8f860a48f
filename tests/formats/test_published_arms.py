"""The arms in examples/models: that they load, and that PUMA 560 has the dynamics that its measurers published.

Armstrong, Khatib and Burdick (1986) give the mass matrix and gravity of the arm in closed form, with the coefficients
I1 … I23 and g1 … g5 as numbers of three digits: formulas and numbers that nobody of this project wrote.
"""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
import robots

MODELS = Path(__file__).parents[2] / "examples" / "models"
MOTORS = (1.14, 4.71, 0.827, 0.2, 0.179, 0.193)
#: I1 … I23 as published.
COEFFICIENTS = (
    1.43, 1.75, 1.38, 0.690, 0.372, 0.333, 0.298, -0.134, 0.0238, -0.0213, -0.0142, -0.0110, -0.00379, 0.00164,
    0.00125, 0.00124, 0.000642, 0.000431, 0.000300, -0.000202, -0.000100, -0.000058, 0.00004,
)  # fmt: skip
GRAVITY = (-37.2, -8.44, 1.02, 0.249, -0.0282)


def published(q):
    """The mass matrix's entries by place, and the gravity forces, as the paper writes them."""
    i = dict(enumerate(COEFFICIENTS, 1))
    # The two coefficients of joint 1 that hold Izz1, Ixx2 and Iyy2 do not follow from the paper's own table of
    # moments (1.43 and 1.38 are printed); these two are its definitions with that table.
    carried = 4.8 + 0.82 + 0.34 + 0.09
    i[3] = 0.524 - 0.130 + 17.4 * (0.068**2 - 0.006**2) + carried * 0.4318**2
    i[1] = 0.35 + 0.130 + 0.0125 + 17.4 * ((0.2435 - 0.016) ** 2 + 0.006**2) + carried * 0.1501**2
    i[1] += 4.8 * (0.014**2 + 2 * 0.1501 * 0.014) + 1.25 * 0.0203**2 + 0.0018
    s2, s3, s4, s5 = np.sin(q[1:5])
    c2, c3, c4, c5 = np.cos(q[1:5])
    s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    wrist = i[20] * s4**2 * s5**2 + i[21] * s4**2 + 2 * (i[15] * c5 + i[22] * c4 * s5)
    bent = i[16] * (s3 * c5 + c3 * c4 * s5)
    turned = i[8] * c23 + i[13] * s23 - i[15] * c23 * s4 * s5 + i[18] * (s23 * c4 * s5 - c23 * c5)
    turned += i[19] * s23 * s4 * c4 + i[20] * s4 * (s23 * c4 * c5**2 + c23 * s5 * c5) + i[22] * s23 * s4 * s5
    m11 = MOTORS[0] + i[1] + i[3] * c2**2 + i[7] * s23**2 + i[10] * s23 * c23 + i[11] * s2 * c2
    m11 += i[20] * (s5**2 * (s23**2 * (1 + c4**2) - 1) - 2 * s23 * c23 * c4 * s5 * c5) + i[21] * s23**2 * c4**2
    m11 += 2 * (i[5] * c2 * s23 + i[12] * c2 * c23 + i[15] * (s23**2 * c5 + s23 * c23 * c4 * s5))
    m11 += 2 * i[16] * c2 * (s23 * c5 + c23 * c4 * s5) + 2 * i[18] * s4 * s5
    m11 += 2 * i[22] * (s23 * c23 * c5 + c23**2 * c4 * s5)
    entries = {
        (0, 0): m11,
        (0, 1): i[4] * s2 + i[9] * c2 + i[16] * s2 * s4 * s5 + turned,
        (0, 2): turned,
        (1, 1): MOTORS[1] + i[2] + i[6] + 2 * (i[5] * s3 + i[12] * c3 + bent) + wrist,
        (1, 2): i[5] * s3 + i[6] + i[12] * c3 + bent + wrist,
        (2, 2): MOTORS[2] + i[6] + wrist,
        (2, 4): i[15] * c4 * c5 + i[17] * c4 + i[22] * s5,
        (3, 3): MOTORS[3] + i[14] - i[20] * s5**2,
        (4, 4): MOTORS[4] + i[17],
        (5, 5): MOTORS[5] + i[23],
    }
    lower_arm = GRAVITY[1] * s23 + GRAVITY[3] * c23 + GRAVITY[4] * (s23 * c5 + c23 * c4 * s5)
    g2 = GRAVITY[0] * c2 + GRAVITY[2] * s2 + lower_arm
    g5 = GRAVITY[4] * (c23 * s5 + s23 * c4 * c5)
    return entries, {1: g2, 2: lower_arm, 4: g5}


def test_puma_has_the_mass_matrix_and_gravity_that_were_published():
    puma = lw.load(MODELS / "puma560.dh.toml")
    for q in np.random.default_rng(560).uniform(-np.pi, np.pi, (50, 6)):
        entries, gravity = published(q)
        m, g = puma.mass_matrix(q), puma.gravity_forces(q)
        for place, value in entries.items():
            assert m[place] == pytest.approx(value, abs=0.005), place  # half a unit of every last digit
        for joint, value in gravity.items():
            assert g[joint] == pytest.approx(value, abs=0.06), joint


def test_panda_is_the_robot_of_its_urdf():
    table, robot = lw.load(MODELS / "panda.dh.toml"), lw.load(robots.find("panda.urdf"))
    q = np.random.default_rng(7).uniform(-1, 1, robot.nq)
    for k in range(1, 8):
        np.testing.assert_allclose(table.pose(q[:7], f"link{k}"), robot.pose(q, f"panda_link{k}"), atol=1e-12)
    for array in ("mass", "com", "inertia"):  # the seventh link carries a hand there
        np.testing.assert_array_equal(getattr(table.description, array)[:6], getattr(robot.description, array)[:6])


@pytest.mark.parametrize(
    ("name", "joints", "symbols"),
    [("three_link", 3, 11), ("puma560", 6, 0), ("panda", 7, 71), ("arm_8r", 8, 87), ("planar_10r", 10, 40)],
)
def test_every_arm_loads_and_moves(name, joints, symbols):
    mech = lw.load(MODELS / f"{name}.dh.toml")
    assert (mech.nq, len(mech.parameters)) == (joints, symbols)
    q, v, tau = np.random.default_rng(1).uniform(-1, 1, (3, joints))
    a = mech.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(mech.inverse_dynamics(q, v, a), tau, atol=1e-9)


def test_the_three_links_of_the_example_have_its_mass_matrix():
    mech = lw.load(MODELS / "three_link.dh.toml")
    p = mech.parameters
    q = np.array([0.3, 0.5, -0.8])
    m = mech.mass_matrix(q)
    reach2, reach3 = p["lg2"] * np.cos(q[1]), p["l2"] * np.cos(q[1]) + p["lg3"] * np.cos(q[1] + q[2])
    assert m[0, 0] == pytest.approx(p["m2"] * reach2**2 + p["m3"] * reach3**2)
    g = mech.gravity_forces(q)
    assert g[1] == pytest.approx(p["g"] * (p["m2"] * reach2 + p["m3"] * reach3))
