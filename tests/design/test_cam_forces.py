"""Forces of cams against the statics of the contact, and against the dynamics of the mechanism with the same motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError

LIFT = [("100 deg", 0.02, "rise345"), ("160 deg", 0.02), ("280 deg", 0.0, "cycloidal")]
SWING = [("100 deg", 0.25, "rise345"), ("160 deg", 0.25), ("280 deg", 0.0, "cycloidal")]
CAMS = {
    "offset": (LIFT, lw.CamFollower(radius=0.008, offset=0.006)),
    "arm": (SWING, lw.CamFollower(radius=0.008, pivot=0.09, arm=0.07)),
    "face on an arm": (
        [("100 deg", 0.15, "rise345"), ("280 deg", 0.0, "cycloidal")],
        lw.CamFollower("flat", pivot=0.12, offset=0.005),
    ),
    "face": (LIFT, lw.CamFollower("flat")),
}


def crossed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.imag(np.conj(a) * b)


@pytest.mark.parametrize("clockwise", [False, True])
@pytest.mark.parametrize("case", CAMS)
def test_the_contact_holds_the_follower_and_turns_the_cam(case: str, clockwise: bool) -> None:
    motion, follower = CAMS[case]
    cam = lw.cam_profile(motion, 0.05, follower, clockwise=clockwise)
    load = 30.0 + 5.0 * np.cos(cam.angles)
    forces = cam.forces("300 rpm", mass=0.3, load=load, stiffness=400.0, preload=20.0)
    sense, speed = (-1.0 if clockwise else 1.0), 10 * np.pi
    assert forces.speed == pytest.approx(speed)
    turned = np.exp(1j * sense * cam.angles)
    point = (cam.profile @ [1.0, 1j]) * turned
    if follower.radius:
        normal = ((cam.pitch - cam.profile) @ [1.0, 1j]) * turned / follower.radius
    elif follower.oscillates:
        at = np.arcsin((0.05 - float(follower.offset)) / float(follower.pivot)) + cam.displacement
        normal = 1j * np.exp(-1j * at)
    else:
        normal = np.full(len(point), 1j)
    wanted = load + 400.0 * cam.displacement + 20.0 + 0.3 * speed**2 * cam.acceleration
    # The follower on an arm turns clockwise as its displacement grows.
    pushed = -crossed(point - float(follower.pivot), normal) if follower.oscillates else np.imag(normal)
    np.testing.assert_allclose(forces.contact * pushed, wanted, rtol=1e-11)
    np.testing.assert_allclose(forces.contact * crossed(point, normal), sense * forces.torque, atol=1e-11)


@pytest.mark.parametrize("case", ["offset", "arm"])
def test_the_mechanism_with_the_same_motion_takes_the_same_torque(case: str) -> None:
    motion, follower = CAMS[case]
    cam = lw.cam_profile(motion, 0.05, follower, count=36)
    with lw.Builder("cam") as b:
        b.gravity((0, 0, 0))
        b.joint("revolute", b.ground, b.body("shaft", 1.0, inertia=(0.01, 0.01, 0.01)), "crank")
        kind = "revolute" if follower.oscillates else "prismatic"
        b.joint(kind, b.ground, b.body("follower", 0.3, inertia=(0.3, 0.3, 0.3)), "slide")
        segments = [(np.radians(float(end.split()[0])), *after) for end, *after in motion]
        b.coupling("cam", ("slide", lambda crank: lw.cam(crank, 2 * np.pi, *segments)))
        b.joint_force("slide", lambda q: -(400.0 * q + 20.0))
    mech = b.build()
    speed = 31.0
    torque = cam.forces(speed, mass=0.3, stiffness=400.0, preload=20.0).torque
    names = [joint.name for joint in mech.joints]
    order = [names.index("crank"), names.index("slide")]
    q, v, a = np.zeros((3, 36, 2))
    q[:, order] = np.stack([cam.angles, cam.displacement], axis=1)
    v[:, order] = np.stack([np.ones(36), cam.velocity], axis=1) * speed
    a[:, order] = np.stack([np.zeros(36), cam.acceleration], axis=1) * speed**2
    tau = mech.inverse_dynamics(q, v, a)
    np.testing.assert_allclose((tau * v).sum(axis=1), torque * speed, atol=1e-9)  # the power of all that drives it


def test_the_follower_leaves_the_cam_above_a_speed() -> None:
    cam = lw.cam_profile(lambda angle: 0.01 * (1.0 - np.cos(angle)), 0.03, "flat")
    speed = cam.forces(0.0, mass=0.4, stiffness=2000.0, preload=40.0).lift_off_speed
    # At the top: 40 + 2000 · 0.02 = 0.4 · 0.01 ω².
    assert speed == pytest.approx(np.sqrt(80.0 / 0.004))
    slow, fast = (cam.forces(f * speed, mass=0.4, stiffness=2000.0, preload=40.0) for f in (0.999, 1.05))
    assert slow.lift_off == []
    assert slow.contact.min() > 0.0
    [(begin, end)] = fast.lift_off
    assert begin < np.pi < end
    assert fast.contact.min() < 0.0
    assert cam.forces(10.0, load=5.0).lift_off_speed == np.inf
    np.testing.assert_allclose(cam.forces(10.0, load=5.0).contact, 5.0)


def test_a_base_radius_for_a_pressure_angle_is_the_least() -> None:
    follower = lw.CamFollower(radius=0.008)
    cam = lw.cam_profile(lambda angle: 0.01 * (1.0 - np.cos(angle)), 0.03, follower)
    # tan φ = s′/(r + s) is h/√((r + h)² − h²) at most.
    exact = 0.01 * np.sqrt(1.0 + 1.0 / np.tan(np.radians(20.0)) ** 2) - 0.01 - 0.008
    assert cam.least_base_radius("20 deg") == pytest.approx(exact, rel=1e-5)
    assert cam.least_base_radius() == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"speed": -1.0}, "clockwise=True"),
        ({"speed": "3 m"}, "the unit|length"),
        ({"speed": 1.0, "mass": -1.0}, "the mass of a cam's follower is -1"),
        ({"speed": 1.0, "stiffness": np.nan}, "stiffness must be a finite number"),
        ({"speed": 1.0, "load": np.ones(5)}, r"load has shape \(5,\); give a number, or an array \(720,\)"),
        ({"speed": 1.0, "load": np.nan}, "load"),
    ],
)
def test_forces_of_what_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    cam = lw.cam_profile(LIFT, 0.05, "flat")
    with pytest.raises(LinkwrightError, match=message):
        cam.forces(**arguments)
    with pytest.raises(LinkwrightError, match="between 0 and 90°"):
        cam.least_base_radius("100 deg")
