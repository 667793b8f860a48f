"""Units in `.mks`: the same numbers inside, whatever the text is written in."""

import math

import numpy as np
import pytest

from linkwright.errors import FormatError, MksError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.values import constant
from linkwright.mechanism import Mechanism
from linkwright.model.units import UNITS, Units, unit


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("40 mm", 0.04),
        ("-40.7 mm", -0.0407),
        ("2.5 N/mm", 2500.0),
        ("30 rpm", math.pi),
        ("1 kN", 1000.0),
        ("0.2 kg*cm^2", 2e-5),
        ("9.81 m/s^2", 9.81),
        ("12 N*m", 12.0),
        ("12 Nm", 12.0),
        ("5 deg/s", 5 * (math.pi / 180)),
        ("0.1 N*s/mm", 100.0),
        ("7.85 g/cm^3", 7850.0),
        ("210 GPa", 2.1e11),
        ("3 inch", 0.0762),
        ("40 mm^2", 4e-5),  # the exponent is the unit's
        ("(40 mm)^2", 0.04**2),
        ("2 m^-1", 2.0),
        ("3 mm/rev", 0.003 / (2 * math.pi)),
        ("40 mm + 0.01 m", 0.05),
        ("60 mm/40 mm", 0.06 / 0.04),
        ("3 mm*m/mm", 0.003 * 1000),
        ("2*3 mm/ms", 6.0),
        ("2*3 N*s/mm", 6000.0),
    ],
)
def test_a_number_with_a_unit_is_in_si(text, number):
    assert constant(text).number == pytest.approx(number, rel=2e-16, abs=0.0)


def test_a_number_in_millimetres_has_the_bits_of_the_decimal_number_in_metres():
    rng = np.random.default_rng(3)
    for k in rng.integers(1, 10**6, 500):
        assert UNITS["mm"].si(k / 100) == float(f"{k}e-5")
        assert UNITS["g"].si(float(k)) == float(f"{k}e-3")
        assert unit("N/mm").si(k / 8) == k * 125.0


def test_a_number_is_found_again_in_its_unit():
    rng = np.random.default_rng(4)
    for name in ("mm", "inch", "g", "ms", "deg", "rpm", "N/mm", "kg*mm^2", "lb"):
        one = unit(name)
        for x in rng.integers(-99999, 99999, 100) / 1000:
            text = one.decimal(one.si(float(x)))
            assert text is not None
            assert one.si(float(text)) == one.si(float(x))
            assert len(text) <= len(repr(float(x)))
        for x in rng.normal(size=100):  # any number at all: what the text says is the number, or there is no text
            text = one.decimal(float(x))
            assert text is None or one.si(float(text)) == x


def test_units_of_a_model_are_put_together_by_its_force():
    mmks = Units(length="mm", angle="deg")
    texts = {"N/mm": unit("N/m"), "N*mm": unit("N*m"), "N*s/mm": unit("N*s/m"), "kg*mm^2": unit("kg*m^2")}
    texts |= {"mm/s^2": unit("m/s^2"), "deg/s": unit("rad/s"), "N": unit("N"), "1": unit("1")}
    for text, one in texts.items():
        assert mmks.of(one.dimension).text == text
    # millimetre, gram, millisecond and newton go together: no factor is left
    assert Units(length="mm", mass="g", time="ms").of(unit("N").dimension).is_si


# -- models ---------------------------------------------------------------------------------------------------
BODIES = """BODY frame (ground);
BODY arm (origin = (0, 0, 0), com = ({crank}/2, 0, 0), mass = {arm}, inertia = ({i1}, {i2}, {i2}));
BODY block (origin = ({start}, 0, 0), mass = {block}, inertia = ({i2}, {i2}, {i2}));
TRIAD pin (associated body = arm, pqr = [(0, {crank}, 0), (0, {crank}, {one}), ({one}, {crank}, 0)]);
TRIAD rail (associated body = frame, h = (1, 0, 0), f = (0, 1, 0));
TRIAD guide (associated body = block, h = (1, 0, 0), f = (0, 1, 0));
REVOLUTE JOINT bearing (triad = frame, triad = arm, damping = {ct}, friction = {tq}, armature = {i1},
    lower = {a1}, upper = {a2}, velocity limit = {wl}, effort limit = {tq});
TRANSLATIONAL JOINT slide (triad = rail, triad = guide, lower = {l1}, upper = {l2}, damping = {c}, friction = {f},
    velocity limit = {vl}, effort limit = {f}, armature = {arm});
ROD coupler (triad = pin, triad = block, length = {rod});
DRIVER motor (bearing.angle = {a2} + {w}*TIME);
SPRING s (joint = slide, stiffness = {k}, rest = {l1}, damping = {c});
SPRING t (joint = bearing, stiffness = {kt}, rest = {a1}, damping = {ct});
SPRING u (triad = pin, triad = rail, stiffness = {k}, length = {l2});
STOP v (joint = slide, lower = {l1}, upper = {l2}, stiffness = {k}, damping = {cs});
FRICTION w (joint = slide, friction = {f}, speed = {vl});
ACTUATOR x (joint = slide, law = {f}*cos({w}*TIME), effort limit = {f});
FORCE y (triad = pin, force = ({f}, 0, -{f}), torque = (0, {tq}, 0));
GEAR rack (joint = pinion, joint = bearing, ratio = {r}, offset = {l1});
BODY bar (mass = {block}, inertia = ({i2}, {i2}, {i2}));
TRANSLATIONAL JOINT pinion (triad = (associated body = frame, origin = ({l2}, {l2}, 0)), triad = bar);
BODY nut (mass = {block}, inertia = ({i2}, {i2}, {i2}));
SCREW JOINT spindle (triad = frame, triad = nut, pitch = {p});
SHAPE b (associated body = arm, box = ({crank}, {l2}, {one}));
SHAPE c (associated body = nut, sphere = {one});
INITIAL (spindle.angle = {a2}, spindle.rate = {w}, block.vx = {vl});
GRAVITY (0, {g}, 0);
ENDMODEL
"""
SI = {
    "crank": "0.04", "rod": "0.1", "one": "1", "arm": "0.2", "block": "0.5", "i1": "0.0001", "i2": "0.006",
    "start": "0.092",
    "ct": "0.02", "c": "0.3", "tq": "0.5", "f": "7", "l1": "-0.005", "l2": "0.2", "vl": "3", "wl": "4", "k": "2500",
    "kt": "12.5", "cs": "0.25", "r": "0.02", "p": "0.003", "g": "-9.81", "a1": "-0.5", "a2": "1.25", "w": "0.75",
}  # fmt: skip
MMKS = {
    **SI, "crank": "40", "rod": "100", "one": "1000", "i1": "100", "i2": "6000", "ct": "20", "c": "0.0003",
    "tq": "500", "l1": "-5", "l2": "200", "vl": "3000", "k": "2.5", "kt": "12500", "cs": "0.00025", "r": "20",
    "p": "3", "g": "-9810", "start": "92",
}  # fmt: skip
MG = {
    **MMKS, "arm": "200", "block": "500", "i1": "100000", "i2": "6000000", "ct": "20000", "c": "0.3", "cs": "0.25",
    "vl": "3", "wl": "0.004", "g": "-0.00981", "w": "0.00075",
}  # fmt: skip
WITH_UNITS = {
    "crank": "(40 mm)", "rod": "(10 cm)", "one": "1000 mm", "arm": "200 g", "block": "0.5 kg", "i1": "1 kg*cm^2",
    "i2": "6e6 g*mm^2", "ct": "20 N*mm*s/rad", "c": "0.3 N*s/m", "tq": "500 N*mm", "f": "0.007 kN", "l1": "-5 mm",
    "l2": "200 mm", "vl": "3 mm/ms", "wl": "0.004 rad/ms", "k": "2.5 N/mm", "kt": "12500 N*mm/rad", "start": "92 mm",
    "cs": "0.00025 s/mm",
    "r": "2 cm", "p": "3 mm/rad", "g": "-9810 mm/s^2", "a1": "-0.5 rad", "a2": "1.25 rad", "w": "0.75 rad/s",
}  # fmt: skip


def written(numbers, system="", parameters=""):
    return parse_mks(f"MODEL m\nSYSTEM ({system or 'KINEMATIC ANALYSIS'});\n{parameters}{BODIES.format(**numbers)}")


UNIT_SYSTEMS = {
    "mm, kg, N, s": (MMKS, "length unit = mm"),
    "mm, g, N, ms": (MG, "length unit = mm, mass unit = g, force unit = N, time unit = ms"),
    "degrees, and all but angles per radian": (
        {**MMKS, "a1": "-0.5 rad", "a2": "1.25 rad", "w": "0.75 rad/s"},
        "length unit = mm, angle unit = degree",
    ),
    "each number with its unit": (
        WITH_UNITS,
        "length unit = inch, mass unit = lb, force unit = kN, angle unit = degree",
    ),
}


@pytest.mark.parametrize(
    "name", ["mm, kg, N, s", "degrees, and all but angles per radian", "each number with its unit"]
)
def test_every_attribute_has_the_bits_of_the_model_in_si(name):
    si, other = written(SI), written(*UNIT_SYSTEMS[name])
    assert other.digest == si.digest
    assert other.shapes == si.shapes
    assert other.drivers == si.drivers
    assert other.elements == si.elements


def test_a_law_without_units_is_in_the_model_s_units_as_a_whole():
    si, other = written(SI), written(*UNIT_SYSTEMS["mm, g, N, ms"])
    for name in ("mass", "com", "inertia", "pi", "pj", "pitch", "lower", "upper", "damping", "friction", "armature"):
        assert np.array_equal(getattr(si, name), getattr(other, name)), name
    assert np.array_equal(si.velocity_limit, other.velocity_limit)
    assert np.array_equal(si.gravity, other.gravity)
    for one, two in zip(si.elements, other.elements, strict=True):
        if one.name != "x":  # whose law has TIME in it, there in milliseconds
            assert one == two
    for t in (0.0, 0.3, 1.7):
        laws = [next(e for e in d.elements if e.name == "x").law for d in (si, other)]
        names = {"TIME": t, "q": 0.1, "v": 0.2}
        assert laws[0].evaluate(names) == pytest.approx(laws[1].evaluate(names), rel=1e-15)
        drivers = [d.drivers[0].law.evaluate({"TIME": t}) for d in (si, other)]
        assert drivers[0] == pytest.approx(drivers[1], rel=1e-15)


HINGE = """BODY g (ground);
BODY a (mass = 1 kg, inertia = (1 kg*m^2, 1 kg*m^2, 1 kg*m^2));
TRANSLATIONAL JOINT j (triad = g, triad = a);
"""


@pytest.mark.parametrize("system", ["length unit = m", "length unit = mm", "length unit = inch, time unit = ms"])
@pytest.mark.parametrize(
    "law",
    [
        "-2.5 N/mm*(j.shift - 3 mm) - 0.1 N*s/mm*j.rate",
        "5 N*sin(30 rpm*TIME) + if(TIME < 0.5 s, 1 N, 0)",
        "-2.5 N/mm*max(0, j.shift - 3 mm)*step(TIME, 0 s, 0, 1 s, 1)",
        "table(TIME, (0 s, 0 N), (0.4 s, 3 N), (1 s, 1 N))*cos(j.shift/(20 mm))",
        "1 N*(j.shift/(20 mm))^2 + 1 N*sqrt((j.rate*1 s/(1 m))^2 + 1)",
    ],
)
def test_a_law_with_units_is_the_same_in_every_model(law, system):
    def read(text):
        return (
            parse_mks(f"MODEL m\nSYSTEM ({text});\n{HINGE}FORCE f (joint = j, law = {law});\nENDMODEL").elements[0].law
        )

    assert read(system) == read("KINEMATIC ANALYSIS")


def test_a_law_without_units_has_coordinates_in_the_model_s_units():
    text = "MODEL m\nSYSTEM (length unit = mm, time unit = ms);\n" + HINGE
    law = parse_mks(text + "FORCE f (joint = j, law = 3*TIME - 2*j.shift - 0.5*j.rate);\nENDMODEL").elements[0].law
    names = {"TIME": 0.2, "q": 0.005, "v": 4.0}  # 200 ms, 5 mm, 4 mm/ms
    assert law.evaluate(names) == pytest.approx(3 * 200 - 2 * 5 - 0.5 * 4, rel=1e-15)


def test_a_parameter_without_a_unit_takes_that_of_its_place():
    text = "MODEL m\nSYSTEM (length unit = mm);\nPARAMETER n = 40;\n" + HINGE
    text += "TRIAD t (associated body = a, origin = (n, n/2, 0));\nSPRING s (joint = j, stiffness = n);\nENDMODEL"
    d = parse_mks(text)
    assert dict(d.parameters) == {"n": 40.0}
    assert d.frames.p.tolist() == [[0.04, 0.02, 0.0]]
    assert d.elements[0].law.evaluate({"n": 40.0, "q": 1.0, "v": 0.0}) == -40000.0
    moved = Mechanism(d).with_parameters(n=50.0).description
    assert moved.frames.p.tolist() == [[0.05, 0.025, 0.0]]


def test_a_parameter_with_a_unit_takes_values_in_any_unit_of_its_dimension():
    text = "MODEL m\nSYSTEM (length unit = mm);\nPARAMETER crank = 40 mm;\n" + HINGE
    text += "TRIAD t (associated body = a, origin = (crank, crank + 5 mm, 0));\nENDMODEL"
    for value in ("45 mm", "4.5 cm", 0.045, "0.045 m"):
        d = parse_mks(text, parameters={"crank": value})
        assert d.frames.p.tolist() == [[0.045, 0.045 + 0.005, 0.0]]
    for value, message in (
        ("45", "crank is a length: write 45 mm"),
        ("45 kg", "crank is a length, and this is a mass"),
        ("45 deg", "crank is a length, and this is an angle"),
        ("sin(3 mm)", "sin takes an angle or a plain number"),
        ("45 qq", "there is no unit 'qq'"),
    ):
        with pytest.raises(FormatError, match=message):
            parse_mks(text, parameters={"crank": value})


def test_units_of_angle_alone_leave_a_law_without_other_units_as_it_was():
    law = "-20*(h.angle - 30 deg) - 2*(h.rate - 5 deg/s) + 3*sin(2*TIME + 10 deg)"
    text = "BODY g (ground); BODY a (mass = 1); REVOLUTE JOINT h (triad = g, triad = a);"
    text = f"{text}TORQUE f (joint = h, law = {law});\nENDMODEL"
    one = parse_mks("MODEL m\n" + text).elements[0].law
    two = parse_mks("MODEL m\nSYSTEM (angle unit = degree);\n" + text).elements[0].law
    assert one == two
    assert "000" not in str(one)


def test_a_name_that_is_a_parameter_is_no_unit():
    text = f"MODEL m\nPARAMETER s = 2;\n{HINGE}DRIVER d (angle(g, a) = 6 deg/s*TIME);\nENDMODEL"
    assert parse_mks(text).drivers[0].law.evaluate({"TIME": 1.0, "s": 2.0}) == math.radians(6) / 2


BAD = {
    "length_for_an_angle": ("DRIVER d (h.angle = 30 mm);", "expected an angle (as 5 rad), and '30 mm' is a length"),
    "angle_for_a_length": ("DRIVER d (a.x = 30 deg);", "expected a length (as 5 m), and '30 deg' is an angle"),
    "length_and_mass": ("PARAMETER p = 3 mm + 2 kg;", "'2 kg' is a mass, and '3 mm' beside it is a length"),
    "sine_of_a_length": ("PARAMETER p = sin(3 mm);", "sin takes an angle or a plain number, and '3 mm' is a length"),
    "no_such_unit": ("PARAMETER p = 3 mmm;", "there is no unit 'mmm'; did you mean 'mm'?"),
    "torque_for_a_force": ("SPRING s (joint = h, stiffness = 5 N/mm);", "expected a torque (as 5 N*m), and '5 N/mm'"),
    "hertz_for_a_rate": ("INITIAL (h.rate = 5 Hz);", "give its angle too, as 5 rad/s"),
    "pitch_without_its_turn": (
        "BODY b (mass = 1); SCREW JOINT x (triad = g, triad = b, pitch = 5 mm);",
        "expected a pitch, and '5 mm' is a length: give its angle too, as 5 m/rad",
    ),
    "unit_of_a_ratio": (
        "GEAR n (joint = h, joint = i, ratio = 3 deg);",
        "expected a plain number, and '3 deg' is an angle",
    ),
    "mass_of_a_body": ("BODY b (mass = 3 N);", "expected a mass (as 5 kg), and '3 N' is a force"),
    "inertia": ("BODY b (inertia = (1 kg, 1 kg, 1 kg));", "expected an inertia (as 5 kg*m^2), and '1 kg' is a mass"),
    "divided_by_a_unit": ("PARAMETER p = 6/3 mm/s;", "needs parentheses around the number and its unit"),
    "exponent_of_a_unit": ("PARAMETER p = 3 mm^0.5;", "the exponent of a unit is a whole number up to 9"),
    "length_to_a_parameter": ("PARAMETER n = 2; PARAMETER p = (3 mm)^n;", "the exponent of a length must be a number"),
    "exponent_with_a_unit": ("PARAMETER p = 2^(3 mm);", "an exponent is a plain number, and this is a length"),
    "time_in_a_position": (
        "DRIVER d (a.x = 3 mm*sin(2 s));",
        "sin takes an angle or a plain number, and '2 s' is a time",
    ),
    "rate_for_a_position": (
        "DRIVER d (h.angle = 3 rad/s);",
        "expected an angle (as 5 rad), and '3 rad/s' is an angular vel",
    ),
    "compared": ("DRIVER d (a.x = if(TIME*3 mm/s < 2 kg, 1, 2));", "they do not go together"),
    "too_large": ("PARAMETER p = 1e308 km;", "this number is too large"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_unit_that_does_not_fit_is_an_error_at_its_place(name):
    statement, message = BAD[name]
    text = (
        "MODEL m\nBODY g (ground);\nBODY a (mass = 1);\nBODY c (mass = 1);\nREVOLUTE JOINT h (triad = g, triad = a);\n"
    )
    text += f"REVOLUTE JOINT i (triad = g, triad = c);\n{statement}\nENDMODEL"
    with pytest.raises(MksError) as caught:
        parse_mks(text)
    shown = str(caught.value)
    assert message in shown
    assert ":7:" in shown
    assert "^" in shown


MIXED = {
    "bare_beside_a_unit": ("ROD r (triad = g, triad = a, length = 30 + 5 mm);", "every term a unit (as 5 mm), or none"),
    "in_a_law": ("FORCE f (joint = j, law = -2 N/mm*(j.shift - 3));", "every term a unit (as 5 mm), or none"),
    "factor_in_a_law": ("FORCE f (joint = j, law = -2*(j.shift - 3 mm));", "expected a force (as 5 N), and"),
    "time_in_milliseconds": ("DRIVER d (j.shift = 3 mm*sin(2*TIME));", "and '2*TIME' is a time"),
    "direction": ("TRIAD t (associated body = a, h = (1 mm, 2, 0));", "every term a unit (as 5 mm), or none"),
    "table": ("DRIVER d (j.shift = table(TIME, (0, 0 mm), (1, 2 mm)));", "every term a unit (as 5 ms), or none"),
}


@pytest.mark.parametrize("name", MIXED)
def test_terms_with_and_without_units_do_not_mix_where_the_model_is_not_in_si(name):
    statement, message = MIXED[name]
    with pytest.raises(MksError) as caught:
        parse_mks(f"MODEL m\nSYSTEM (length unit = mm, time unit = ms);\n{HINGE}{statement}\nENDMODEL")
    assert message in str(caught.value)
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("length unit = kg", "the length unit is 'kg', which is a mass; write one such as mm"),
        ("length unit = mmm", "which is no unit; did you mean 'mm'?"),
        ("time unit = 3", "the time unit is a unit, such as ms"),
        ("force unit = mm", "the force unit is 'mm', which is a length; write one such as N"),
        ("angle unit = mm", "the angle unit is 'mm', which is a length; write one such as degree"),
        ("length unit = mm, length unit = m", "is there twice"),
        ("ending time = 3 mm", "expected a time (as 5 s), and '3 mm' is a length"),
        ("relative tolerance = 3 mm", "expected a plain number, and '3 mm' is a length"),
    ],
)
def test_a_unit_of_the_model_that_is_none_is_an_error(system, message):
    with pytest.raises(MksError) as caught:
        parse_mks(f"MODEL m\nSYSTEM (KINEMATIC ANALYSIS, {system});\n{HINGE}ENDMODEL")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "equation",
    [
        "j.shift = 20 mm*h.angle + 3 mm",
        "j.shift - 20 mm*h.angle = 3 mm",
        "h.angle = j.shift/(20 mm) + 30 deg",
        "h.angle - j.shift/(20 mm) = 30 deg",
    ],
)
def test_a_coupling_with_units_is_the_same_in_every_model(equation):
    def read(system):
        text = f"MODEL m\nSYSTEM ({system});\n{HINGE}BODY b (mass = 1 kg);\nREVOLUTE JOINT h (triad = g, triad = b);\n"
        return parse_mks(f"{text}COUPLING c ({equation});\nENDMODEL").digest

    assert read("length unit = mm, angle unit = degree") == read("KINEMATIC ANALYSIS")


def test_a_coupling_without_units_relates_numbers_in_the_model_s_units():
    text = (
        f"MODEL m\nSYSTEM (length unit = mm);\n{HINGE}BODY b (mass = 1 kg);\nREVOLUTE JOINT h (triad = g, triad = b);\n"
    )
    one = parse_mks(f"{text}COUPLING c (j.shift = 20*h.angle + 3);\nENDMODEL").point_constraints[0]
    other = parse_mks(f"{text}COUPLING c (j.shift - 20*h.angle = 3);\nENDMODEL").point_constraints[0]
    for names in ({"j.q0": 0.02 * 0.3 + 0.003, "h.q0": 0.3}, {"j.q0": 0.1, "h.q0": 0.2}):
        gap = names["j.q0"] - 0.02 * names["h.q0"] - 0.003
        for coupling in (one, other):
            assert coupling.left.evaluate(names) - coupling.right.evaluate(names) == pytest.approx(gap, abs=1e-15)
