"""Gear pairs in `.mks` and elsewhere: written, read, changed by parameters, studied, and refused by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from same_description import assert_same

import linkwright as lw
from gear_cases import IDS, PAIRS, Pair
from linkwright.errors import ModelError
from linkwright.formats.mjcf.mjcf_writer import write_mjcf
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.sdf.sdf_writer import write_sdf
from linkwright.formats.urdf_writer import write_urdf
from linkwright.model.description import Description

TRAIN = """MODEL train
SYSTEM ({analysis} ANALYSIS, starting time = 0, ending time = 1, print interval = 0.05);
GRAVITY (0, 0, 0);
PARAMETER m = 0.002;
BODY g (ground);
BODY sun (origin = (0, 0, 0), mass = 1, inertia = (1e-4, 1e-4, 2e-4));
BODY arm (origin = (0, 0, 0), mass = 1, inertia = (1e-4, 1e-4, 2e-4));
BODY planet (origin = (21*m, 0, 0), mass = 0.1, inertia = (1e-5, 1e-5, 2e-5));
TRIAD pin (associated body = arm, origin = (21*m, 0, 0));
REVOLUTE JOINT sun_shaft (triad = g, triad = sun);
REVOLUTE JOINT arm_shaft (triad = g, triad = arm);
REVOLUTE JOINT planet_pin (triad = pin, triad = planet);
GEAR inner (body = sun, body = planet, teeth = 24, teeth = 18, module = m);
GEAR outer (kind = internal, body = planet, body = g, teeth = 18, teeth = 60, module = m);
{more}ENDMODEL
"""


def train(analysis: str, more: str = "") -> lw.Mechanism:
    return lw.Mechanism(parse_mks(TRAIN.format(analysis=analysis, more=more)))


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_every_kind_is_written_as_it_is_read(pair: Pair) -> None:
    b = lw.Builder("pair")
    one, two = b.body("one", 1.0), b.body("two", 1.0)
    b.joint("revolute", b.ground, one, "first")
    kind = "prismatic" if pair.slides else "revolute"
    b.joint(kind, b.frame(b.ground, pair.turn, pair.centre), two, "second")
    b.place(one)
    b.place(two, pair.centre, rotation=pair.turn)
    b.gear_pair(one, two, pair.kind, name="drawn", **pair.keywords)
    b.gear_pair(one, two, pair.kind, name="shifted", phase=0.0011, **pair.keywords)
    b.rod(one, b.triad(b.ground, origin=(0.0, 0.0, 1.0)), 1.0)
    d = b.description()
    again = parse_mks(write_mks(d))
    pairs = [x for x in again.point_constraints if x.name in ("drawn", "shifted")]
    assert pairs == [x for x in d.point_constraints if x.name in ("drawn", "shifted")]
    assert write_mks(again) == write_mks(parse_mks(write_mks(again)))


def test_a_train_of_a_file_is_the_same_after_a_round_trip() -> None:
    mech = train("dynamic")
    assert_same(mech.description, parse_mks(write_mks(mech.description)))


@pytest.mark.parametrize("start", [0.0, 1.0, -2.5, 30.0])
def test_an_initial_angle_turns_the_train_from_its_drawing_into_mesh(start: float) -> None:
    mech = train("dynamic", f"INITIAL (sun_shaft.angle = {start}, sun_shaft.rate = 2);\n")
    q, v = mech.initial_state()
    np.testing.assert_allclose(v, np.array([1.0, 24 / 84, -24 / 84 * 60 / 18]) * 2.0, rtol=1e-9)
    teeth = np.array([24 * (q[0] - q[1]) + 18 * q[2], 18 * q[2] + 60 * q[1]]) / (2.0 * np.pi)
    np.testing.assert_allclose(teeth, np.round(teeth), atol=1e-9)
    np.testing.assert_allclose(q[0], start, atol=1e-9)


def accelerated(module: float) -> float:
    """The sun's acceleration by 0.1 N m: the planet moves on a circle of 21 modules."""
    arm = 24 / 84
    spin = arm * (1.0 - 60 / 18)
    return 0.1 / (2e-4 + arm**2 * (2e-4 + 0.1 * (21 * module) ** 2) + spin**2 * 2e-5)


def test_parameters_sweeps_and_slopes_take_the_module() -> None:
    mech = train("dynamic", "TORQUE push (joint = sun_shaft, law = 0.1);\n")
    state = np.array([0.3, 0.3 * 24 / 84, -0.3 * 24 / 84 * 60 / 18]), np.zeros(3), np.zeros(3)
    for one, module in ((mech, 0.002), (mech.with_parameters(m=0.003), 0.003)):
        np.testing.assert_allclose(one.forward_dynamics(*state)[0], accelerated(module), rtol=1e-9)
    modules, output = [0.0015, 0.002, 0.003], "speed = final(sun_shaft.rate)"  # after a second
    study = lw.sweep(mech, {"m": modules}, output)
    np.testing.assert_allclose(study.data["speed"], [accelerated(m) for m in modules], rtol=1e-6)
    slopes = lw.sensitivities(mech, output, ("m",))
    wanted = (accelerated(0.002 + 1e-6) - accelerated(0.002 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slopes.gradient("speed"), [wanted], rtol=1e-5)


@pytest.mark.parametrize("write", [write_urdf, write_sdf, write_mjcf])
def test_what_cannot_hold_teeth_refuses_them_by_name(write: Callable[[Description], str]) -> None:
    with pytest.raises(ModelError, match="gear pair 'inner'"):
        write(train("dynamic").description)


def test_equations_in_closed_form_refuse_teeth_by_name() -> None:
    with pytest.raises(ModelError, match="gear pair 'inner'"):
        lw.equations(train("dynamic"))


def test_a_locked_carrier_leaves_a_train_of_fixed_axes() -> None:
    mech = train("dynamic").lock({"arm_shaft": 0.0})
    a = mech.forward_dynamics(mech.neutral(), np.zeros(mech.nv), np.zeros(mech.nv))
    assert np.all(np.isfinite(a))
    assert mech.dof().left == 0  # the ring holds the planet, and the planet the sun
