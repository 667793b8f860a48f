"""The `.mks` writer keeps the units of a model, and what is read back is the same to the last bit."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from same_description import assert_same

import linkwright as lw
from linkwright.errors import LinkwrightWarning
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.model.description import Description
from linkwright.model.units import Units

MODELS = sorted((Path(__file__).parents[2] / "examples" / "models").glob("*.mks"))
SPOKEN = (
    Units(length="mm", mass="g", time="ms", angle="deg"),
    Units(length="inch", mass="lb", force="lbf", time="min"),
    Units(angle="deg"),
)
RICH = """MODEL rich
SYSTEM (KINEMATIC ANALYSIS, ending time = 100, print interval = 10, assembly tolerance = 1e-6,
        length unit = mm, mass unit = g, time unit = ms, angle unit = degree);
PARAMETER n = 40;
PARAMETER crank = 40 mm;
PARAMETER k = 2.5 N/mm;
PARAMETER twice = 2*crank;
PARAMETER phi = 30 deg;
BODY g (ground, mass = 3, com = (1, 2, 3), inertia = (1, 1, 1));
BODY a (mass = n, com = (crank/2, n/2, 1 inch), inertia = (1e4, 1e4, 1e4));
BODY b (pqr = [(n, 0, 0), (n, 1, 0), (n, 0, 1)], mass = 3 lb, inertia = (1 kg*cm^2, 2e5, 2e5));
BODY c (origin = (100, 0, 0), mass = 10, inertia = (1e4,1e4,1e4));
REVOLUTE JOINT ra (triad = g, triad = a, lower = -170, upper = 130 deg, damping = 5, friction = 3,
    velocity limit = 0.01, effort limit = 1e5, armature = 300);
TRIAD rail (associated body = g, origin = (0, 1, 2), h = (1, 0, 0));
TRIAD onb (associated body = b, h = (1, 0, 0));
TRANSLATIONAL JOINT tb (triad = rail, triad = onb, lower = -50, upper = 0.3 m, damping = 0.01, armature = 2);
SCREW JOINT sc (triad = g, triad = c, pitch = 5 mm/rev);
GEAR ge (joint = tb, joint = ra, ratio = 12, offset = 3);
TRIAD tip (associated body = a, origin = (twice, 0, 3 mm + crank/2));
TRIAD far (associated body = c, origin = (10, 0, 0));
SPRING s1 (joint = sc, stiffness = 20 N*mm/deg, rest = 10, damping = 4);
SPRING s2 (triad = tip, triad = far, stiffness = k, length = n, damping = 0.1 N*s/mm);
TORQUE t1 (joint = sc, law = 5*sin(TIME) - 20*sc.angle - 2*a.wz + ra.rate);
FORCE f1 (joint = tb, law = -2 N/mm*(tb.shift - 3 mm) + 5 N*sin(30 rpm*TIME));
FORCE f2 (joint = tb, law = -2*tb.shift + TIME);
FORCE f3 (triad = tip, force = (1, TIME, 3 kN), torque = (0, 2, 5 N*m));
FORCE f4 (triad = tip, triad = far, law = -0.3*(distance(tip, far) - 20) + table(TIME, (0, 0), (50, 3), (100, 0)));
STOP st (joint = tb, lower = -40, upper = 40, stiffness = 3, damping = 2);
FRICTION fr (joint = ra, friction = 4, speed = 2);
ACTUATOR ac (joint = sc, law = 3*TIME, effort limit = 50);
INITIAL (sc.angle = phi, tb.rate = 3 mm/s, c.z = 2);
SHAPE sh (triad = tip, box = (crank, 2*n, 5));
SHAPE ba (triad = tip, sphere = 3);
ENDMODEL
"""


def read(text: str) -> Description:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        return parse_mks(text)


def test_units_of_system_and_of_numbers_are_written_as_they_were() -> None:
    d = read(RICH)
    text = write_mks(d)
    again = read(text)
    assert_same(d, again)
    assert again.units == d.units
    assert write_mks(again) == text
    for statement in (
        "length unit = mm, mass unit = g, time unit = ms",
        "angle unit = degree",
        "PARAMETER crank = 40 mm;",
        "PARAMETER n = 40;",
        "mass = n, com = (crank/2, n/2, 25.4)",
        "lower = -170, upper = 130, velocity limit = 0.01",
        "stiffness = 20 N*mm/deg, rest = 10, damping = 4",
        "stiffness = k, length = n, damping = 0.1 N*s/mm",
        "law = 5*sin(TIME) - 20*sc.angle - 2*a.wz + ra.rate",
        "law = (-2 N/mm)*(tb.shift - 3 mm) + 5 N*sin(30 rpm*TIME)",
        "law = -2*tb.shift + TIME",
        "force = (1, TIME, 3 kN), torque = (0, 2, 5 N*m)",
        "ratio = 12, offset = 3",
        "INITIAL (sc.angle = phi, tb.rate = 3 mm/s, c.z = 2)",
        "box = (crank, 2*n, 5)",
        "assembly tolerance = 1e-06",
    ):
        assert statement in text


@pytest.mark.parametrize(
    "relation",
    [
        "a.angle = 2*b.angle",
        "a.angle + b.angle = 3*sin(s.shift)",
        "s.shift = 40 mm*sin(a.angle)",
        "s.shift + 2 = 5*a.angle",
    ],
)
def test_couplings_keep_their_relation(relation: str) -> None:
    text = f"""MODEL m
    SYSTEM (length unit = mm, angle unit = degree);
    BODY g (ground);
    BODY x (mass = 1, inertia = (1, 1, 1));
    BODY y (mass = 1, inertia = (1, 1, 1));
    BODY z (mass = 1, inertia = (1, 1, 1));
    HINGE a (body = g, body = x, at = (0, 0));
    HINGE b (body = g, body = y, at = (9, 0));
    SLIDER s (body = g, body = z, at = (0, 9), axis = (1, 0));
    COUPLING c ({relation});
    ENDMODEL"""
    d = read(text)
    again = read(write_mks(d))
    assert_same(d, again)
    assert again.units == d.units
    assert f"COUPLING c ({relation})" in write_mks(d)


@pytest.mark.parametrize("units", SPOKEN, ids=["mm g ms deg", "inch lb lbf min", "deg"])
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_any_model_is_written_in_any_units(path: Path, units: Units) -> None:
    si = read(path.read_text(encoding="utf-8"))
    d = replace(si, units=replace(units, parameters=si.units.parameters))
    text = write_mks(d)
    again = read(text)
    assert_same(d, again)
    assert again.units.declared == units.declared
    assert f"angle unit = {'degree' if units.angle == 'deg' else 'radian'}" in text or units.angle == "rad"


def test_laws_of_a_builder_are_written_in_the_models_units_too() -> None:
    with lw.Builder("m") as b:
        k = b.parameter("k", 300.0)
        arm = b.body("arm", 1.0, com=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
        b.joint("prismatic", b.ground, arm, "slide")
        b.joint_force("slide", lambda q, v, t: -k * q - 2.0 * v + np.sin(3.0 * t), name="push")
        b.initial("slide", 0.1)
    d = replace(b.description(), units=Units(length="mm", time="ms", parameters=(("k", "N/mm"),)))
    text = write_mks(d)
    again = read(text)
    assert_same(d, again)
    assert again.units == d.units
    assert "PARAMETER k = 0.3 N/mm" in text
    assert "sin(3*(TIME/(1 s)))" in text


def test_a_model_without_units_is_written_without_any() -> None:
    d = read("MODEL m BODY g (ground); BODY b (mass = 1); HINGE h (body = g, body = b, at = (0, 0)); ENDMODEL")
    assert "unit" not in write_mks(d)


def test_results_in_a_file_keep_the_units_of_their_model(tmp_path: Path) -> None:
    model = "BODY g (ground); BODY b (mass = 1, inertia = (1, 1, 1)); HINGE h (body = g, body = b, at = (40, 0));"
    d = read(f"MODEL m SYSTEM (length unit = mm, angle unit = degree); {model} ENDMODEL")
    sol = lw.simulate(lw.Mechanism(d), 0.1)
    sol.save(tmp_path / "m.nc")
    again = lw.open(tmp_path / "m.nc")
    assert again.description.units == sol.description.units
    assert again.description.units.length == "mm"
