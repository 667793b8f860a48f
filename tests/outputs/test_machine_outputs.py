"""Forces of machines as outputs: the torque of a motor is one; of others the error says how a study has them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError

SPEED, TIMES = 10.0, np.linspace(0.0, 0.2 * np.pi, 33)[:-1]


def stirrer(body: str = "arm") -> lw.Mechanism:
    with lw.Builder("stirrer") as b:
        arm = b.body(body, mass=2.0, com=(b.parameter("r", 0.1), 0.0, 0.0), inertia=(0.01, 0.01, 0.02))
        b.gravity((0.0, -10.0, 0.0))
        b.joint("revolute", b.ground, arm, "shaft")
        b.driver("joint", "shaft", SPEED * lw.TIME, name="motor")
    return b.build()


def test_a_study_has_the_torque_of_the_motor_by_its_text_and_the_shaking_force_by_a_function() -> None:
    """m g r cos φ for the motor, m r ω² on ground."""
    radii = np.array([0.1, 0.2, 0.4])
    settings = {"times": TIMES, "analysis": "inverse dynamic"}
    outputs = {"rms": "rms(motor.torque)", "most": "max(motor.torque)"}
    study = lw.sweep(stirrer(), {"r": radii}, outputs=outputs, **settings)  # type: ignore[arg-type]
    assert np.allclose(study.data.most, 2.0 * 10.0 * radii, rtol=1e-12)
    assert np.allclose(study.data.rms, 2.0 * 10.0 * radii / np.sqrt(2.0), rtol=1e-12)
    by_function = {"peak": lambda sol: abs(lw.machine_forces(sol).shaking_force).max()}
    study = lw.sweep(stirrer(), {"r": radii}, outputs=by_function, **settings)  # type: ignore[arg-type]
    assert np.allclose(study.data.peak, 2.0 * radii * SPEED**2, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max(shaking_force.x)", r"'shaking_force' is no output; .*abs\(lw\.machine_forces\(sol\)\.shaking_force\)"),
        ("max(norm(shaking_force))", r"'shaking_force' is no output"),
        ("range(ground_moment.z)", r"lambda sol: abs\(lw\.machine_forces\(sol\)\.ground_moment\)\.max\(\)"),
        ("max(shaft.bearing_mx)", r"\.joints\['shaft'\]\.bearing_moment\)\.max\(\)"),
        ("max(shaft.bearing_fy)", r"\.joints\['shaft'\]\.bearing_force\)\.max\(\)"),
    ],
)
def test_what_machine_forces_have_is_refused_with_the_way_to_it(text: str, words: str) -> None:
    for ask in (
        lambda: lw.sweep(stirrer(), {"r": [0.1]}, outputs=[text], times=TIMES),
        lambda: lw.optimise(stirrer(), text, {"r": (0.1, 0.2)}, times=TIMES),
    ):
        with pytest.raises(ModelError, match=words):
            ask()


def test_other_unknown_words_and_bodies_of_such_a_name_have_their_own_errors() -> None:
    with pytest.raises(ModelError, match="no body, frame or joint named 'shaking'"):
        lw.sweep(stirrer(), {"r": [0.1]}, outputs=["max(shaking.x)"], times=TIMES)
    with pytest.raises(ModelError, match="'shaking_force' has no 'mass'; it has x, y, z"):
        lw.sweep(stirrer("shaking_force"), {"r": [0.1]}, outputs=["max(shaking_force.mass)"], times=TIMES)
    with pytest.raises(ModelError, match="joint 'shaft' is revolute and has no 'bearing'"):
        lw.sweep(stirrer(), {"r": [0.1]}, outputs=["max(shaft.bearing)"], times=TIMES)
