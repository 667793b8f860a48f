"""Denavit–Hartenberg tables, against the product of the conventions' own matrices."""

import warnings

import numpy as np
import pytest
import sympy

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightWarning, ModelError, NameNotFound
from linkwright.formats import dh
from linkwright.formats.dh import from_dh, read_dh
from linkwright.formats.model_files import read
from linkwright.model.expression import Name
from linkwright.model.parameter_cases import with_parameters


def homogeneous(r=None, p=(0, 0, 0)):
    x = np.eye(4)
    x[:3, :3] = np.eye(3) if r is None else r
    x[:3, 3] = p
    return x


def about_x(angle):
    c, s = np.cos(angle), np.sin(angle)
    return homogeneous([[1, 0, 0], [0, c, -s], [0, s, c]])


def about_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return homogeneous([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def along(x=0.0, z=0.0):
    return homogeneous(p=(x, 0, z))


TEXTBOOK = {
    "standard": lambda a, alpha, d, theta: about_z(theta) @ along(z=d) @ along(x=a) @ about_x(alpha),
    "modified": lambda a, alpha, d, theta: about_x(alpha) @ along(x=a) @ about_z(theta) @ along(z=d),
}
ROWS = [
    {"a": 0.1, "alpha": 0.3, "d": 0.2, "theta": 0.4, "kind": "revolute"},
    {"a": -0.2, "alpha": -np.pi / 2, "d": 0.5, "theta": -0.7, "kind": "P"},
    {"a": 0.3, "alpha": 1.1, "d": -0.1, "theta": 0.0, "kind": "R"},
]


def poses(d, q):
    """The pose of each link frame of a chain."""
    at, found = np.eye(4), []
    for j, x in enumerate(q):
        motion = about_z(x) if d.kind_of(j).name == "revolute" else along(z=x)
        at = at @ homogeneous(d.ri[j], d.pi[j]) @ motion @ np.linalg.inv(homogeneous(d.rj[j], d.pj[j]))
        found.append(at)
    return found


def expected(rows, q, convention):
    at, found = np.eye(4), []
    for row, x in zip(rows, q, strict=True):
        turning = row["kind"] != "P"
        theta, shift = row["theta"] + x * turning, row["d"] + x * (not turning)
        at = at @ TEXTBOOK[convention](row["a"], row["alpha"], shift, theta)
        found.append(at)
    return found


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_body_frames_are_the_frames_of_the_convention(convention):
    q = np.array([0.3, -0.25, 1.2])
    found = poses(from_dh(ROWS, convention), q)
    np.testing.assert_allclose(found, expected(ROWS, q, convention), atol=1e-14)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_symbols_are_parameters_whose_values_move_the_frames(convention):
    symbols = [{"a": "a1", "alpha": "t", "d": "d1", "theta": "o", "kind": "R"}, {**ROWS[1], "d": sympy.Symbol("d2")}]
    d = from_dh(symbols, convention, parameters={"a1": 0.4})
    assert dict(d.parameters) == {"a1": 0.4, "t": 1.0, "d1": 1.0, "o": 1.0, "d2": 1.0}
    moved = with_parameters(d, {"a1": 0.6, "t": 0.2, "d1": -0.3, "o": 0.9, "d2": 0.7})
    rows = [{"a": 0.6, "alpha": 0.2, "d": -0.3, "theta": 0.9, "kind": "R"}, {**ROWS[1], "d": 0.7}]
    q = np.array([0.5, 0.1])
    np.testing.assert_allclose(poses(moved, q), expected(rows, q, convention), atol=1e-14)


def test_a_row_may_be_a_sequence():
    by_name = from_dh([{**ROWS[0], "mass": 2.0, "com": (1, 2, 3), "inertia": (1, 1, 1)}])
    by_place = from_dh([(0.1, 0.3, 0.2, 0.4, "R", 2.0, (1, 2, 3), np.eye(3))])
    assert by_name.digest == by_place.digest


def test_quarter_turns_are_exact():
    d = from_dh([(1.0, np.pi / 2, 0.0, -np.pi / 2)], "modified")
    assert set(np.unique(d.ri)) == {-1.0, 0.0, 1.0}


def test_sympy_numbers_and_expressions_are_taken_over():
    length = sympy.Symbol("length")
    d = from_dh([{"a": length, "alpha": sympy.pi / 2, "com": (-length / 2, sympy.sin(length) ** 2, 0)}])
    moved = with_parameters(d, {"length": 0.5})
    np.testing.assert_allclose(moved.com[0], [-0.25, np.sin(0.5) ** 2, 0.0])
    assert moved.pj[0, 0] == -0.5


def test_products_of_inertia_start_at_zero_so_that_a_symbolic_tensor_is_possible():
    d = from_dh([{"mass": Name("m"), "inertia": ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")}])
    assert d.inertia[0].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert {flat for array, flat in d.bindings if array == "inertia"} == set(range(6))


def test_a_symbolic_matrix_of_inertia_is_the_same_as_six_symbols():
    x, y, z, p = sympy.symbols("x y z p")
    full = from_dh([{"inertia": sympy.Matrix([[x, p, 0], [p, y, 0], [0, 0, z]])}])
    assert full.digest == from_dh([{"inertia": (x, y, z, p, 0, 0)}]).digest


def test_d_may_name_a_symbol():
    assert from_dh([{"d": "d"}]).parameters == {"d": 1.0}


def test_a_symbol_may_have_a_minus_sign():
    d = from_dh([{"a": "-l", "com": ("-x", 0, 0)}], "modified", parameters={"l": 0.3, "x": 0.1})
    assert (d.pi[0, 0], d.com[0, 0]) == (-0.3, -0.1)


def test_gravity_may_be_a_symbol_and_is_earths_unless_given():
    rows = [{"mass": 1.0, "com": (1, 0, 0)}]
    assert from_dh(rows, gravity=(0, "-g", 0)).gravity.tolist() == [0.0, -9.81, 0.0]
    moon = from_dh(rows, gravity=(0, "-g", 0), parameters={"g": 1.62})
    assert moon.gravity.tolist() == [0.0, -1.62, 0.0]
    assert with_parameters(moon, {"g": 3.7}).gravity.tolist() == [0.0, -3.7, 0.0]


def test_gravity_stays_a_symbol_when_a_joint_is_locked():
    rows = [{"a": 0.5, "mass": 1.0}, {"mass": 1.0, "com": (0.2, 0, 0)}]
    locked = lw.from_dh(rows, gravity=(0, "-g", 0)).lock({"joint2": 0.3})
    assert locked.with_parameters(g=1.62).gravity.tolist() == [0.0, -1.62, 0.0]


def test_motor_inertia_stands_on_the_diagonal_of_the_mass_matrix():
    arm = lw.from_dh([{"mass": 2.0, "com": (0.5, 0, 0), "armature": "J1"}], parameters={"J1": 0.3})
    assert arm.mass_matrix([0.7])[0, 0] == pytest.approx(2.0 * 0.25 + 0.3)


@pytest.mark.parametrize("given", [(0.4, 0.2), ("V1", "f1"), ("V1", 0.2), (0.4, "f1")], ids=str)
def test_damping_and_friction_act_against_the_rate(given):
    symbols = {name: x for name, x in {"V1": 0.4, "f1": 0.2}.items() if name in given}
    row = {"mass": 1.0, "com": (0.5, 0, 0), "damping": given[0], "friction": given[1]}
    arm = lw.from_dh([row], gravity=(0, 0, 0), parameters=symbols)
    v = 0.013
    assert arm.inverse_dynamics([0.1], [v], [0.0])[0] == pytest.approx(0.4 * v + 0.2 * np.tanh(v / 0.01))


def test_an_inertia_measured_with_errors_may_be_let_pass():
    row = {"mass": 1.0, "inertia": (0.066, 0.0125, 0.086)}
    with pytest.raises(ModelError, match="no body can have the inertia"):
        from_dh([row])
    assert from_dh([row | {"unphysical": True}]).inertia[0, :3].tolist() == [0.066, 0.0125, 0.086]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one row"),
        ([{"a": "2*"}], r"a of 'link1' is '2\*'; give a number, a symbol or an expression"),
        ([{"a": "__import__('os')"}], "give a number, a symbol or an expression"),
        ([{"a": "f(l)"}], "there is no function 'f'"),
        ([{"a": "3 qq"}], "there is no unit 'qq'"),
        ([{"a": "3 kg"}], "a of 'link1' is '3 kg', a mass; expected a length"),
        ([{"alpha": "3 mm"}], "alpha of 'link1' is '3 mm', a length; expected an angle"),
        ([{"a": "90 deg"}], "a of 'link1' is '90 deg', an angle"),
        ([{"a": None}], "a of 'link1' is None"),
        ([{"a": float("nan")}], "a of 'link1' is nan"),
        ([(0, 0)], "row 1 has 2 entries"),
        (["abcd"], "row 1 is 'abcd'"),
        ([{"mass": -1.0}], "negative mass"),
        ([{"inertia": (1, 1, 3)}], "no body can have the inertia of 'link1'"),
        ([{"com": (1, 2)}], "com of 'link1' needs 3 numbers, 2 given"),
        ([{"damping": -0.1}], "joint 'joint1' has the negative damping"),
        ([{"damping": "V", "friction": -0.1}], r"friction of 'link1' is -0\.1; give it a value of 0 or more"),
        ([{"damping": "-V"}], r"damping of 'link1' is .*V.* = -1; give it a value of 0 or more"),
        ([{"friction": "v"}], "'v' is a variable of this law .* rename the parameter"),
        ([{"armature": -1.0}], "negative armature"),
        ([{"unphysical": 1}], "unphysical of row 1 is 1; give true or false"),
        ([{"inertia": ("I", 1, 1), "unphysical": True}], "has symbols and is unphysical"),
        ([{"a": sympy.gamma(sympy.Symbol("x"))}], "the function gamma"),
    ],
)
def test_a_wrong_table_is_told_with_the_row(rows, message):
    with pytest.raises(ModelError, match=message):
        from_dh(rows)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"alfa": 1}], {}, "no column of row 1 named 'alfa'; did you mean 'alpha'"),
        ([{"kind": "revolut"}], {}, "did you mean 'revolute'"),
        ([{"a": "l"}], {"parameters": {"length": 1.0}}, "no symbol in the table named 'length'"),
        ([{}], {"convention": "modern"}, "no DH convention named 'modern'"),
    ],
)
def test_a_wrong_name_is_told_with_the_near_ones(rows, options, message):
    with pytest.raises(NameNotFound, match=message):
        from_dh(rows, **options)


TOML = """
name = "two bars"
convention = "standard"
gravity = [0, -9.81, 0]
[parameters]
l1 = 0.4
[[link]]
a = "l1"
mass = 1.0
com = [-0.2, 0, 0]
inertia = [0.01, 0.02, 0.02]
[[link]]
a = 0.3
kind = "P"
"""


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "two.dh.toml"
        path.write_text(text)
        return path

    return write


def test_a_toml_file_is_the_same_table(toml):
    d = read(toml(TOML))
    rows = [
        {"a": "l1", "mass": 1.0, "com": (-0.2, 0, 0), "inertia": (0.01, 0.02, 0.02)},
        {"a": 0.3, "kind": "prismatic"},
    ]
    assert d.digest == from_dh(rows, gravity=(0, -9.81, 0), parameters={"l1": 0.4}).digest
    assert d.name == "two bars"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = = 1", "is not TOML.*line 1"),
        ('convention = "standard"', r"no \[\[link\]\]"),
        ("[[link]]\na = 1", "does not say its convention"),
        (TOML.replace("gravity", "gravty"), "did you mean 'gravity'"),
        (TOML.replace('kind = "P"', 'kind = "Q"'), r"two\.dh\.toml: no joint kind \(in row 2\)"),
        (TOML.replace("l1 = 0.4", 'l1 = "long"'), "parameter 'l1' is 'long'"),
    ],
)
def test_a_wrong_toml_file_is_a_format_error_that_names_it(toml, text, message):
    with pytest.raises(FormatError, match=message) as caught:
        read_dh(toml(text))
    assert caught.value.file.endswith("two.dh.toml")


def test_reading_dispatches_on_the_ending(tmp_path):
    for ending in (".xml", ".sdf"):
        (tmp_path / f"m{ending}").write_text("")
        with pytest.raises(FormatError, match="the file is empty"):
            read(tmp_path / f"m{ending}")
    (tmp_path / "m.step").write_text("")
    with pytest.raises(FormatError, match=r"ending in '\.step' are not read"):
        read(tmp_path / "m.step")
    with pytest.raises(FormatError, match=r"gone\.urdf: there is no such file"):
        read(tmp_path / "gone.urdf")
    with pytest.raises(FormatError, match="is a folder"):
        read(tmp_path)


def test_an_option_that_the_format_does_not_take_is_named(toml, tmp_path):
    with pytest.raises(FormatError, match="the option 'base' is not one of this format's, which takes no options"):
        read(toml(TOML), base="floating")
    (tmp_path / "m.urdf").write_text("<robot/>")
    with pytest.raises(FormatError, match=r"'bass' is not .* takes base, mimic, fixed"):
        read(tmp_path / "m.urdf", bass="fixed")


HEAD = 'convention = "standard"\n'
ENTRIES = {
    "a truth value for a mass": (HEAD + "[[link]]\na = 1\nmass = true", "mass of 'link1' is True; give a number"),
    "a truth value in a centre": (HEAD + "[[link]]\ncom = [0, true, 0]", "com of 'link1' is True"),
    "a truth value in gravity": (HEAD + "gravity = [0, 0, true]\n[[link]]\na = 1", r"gravity is \[0, 0, True\]"),
    "half a gravity": (HEAD + "gravity = [0, 1]\n[[link]]\na = 1", "gravity needs 3 numbers, 2 given"),
    "half a sum in gravity": (HEAD + "gravity = [0, 0, 'g+']\n[[link]]\na = 1", r"gravity is 'g\+'; give a number"),
    "a gravity of one name": (HEAD + "gravity = 'g'\n[[link]]\na = 1", "gravity is 'g'; give three numbers or symbols"),
    "brackets without end": ("x = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
    "a list for a kind": (HEAD + '[[link]]\nkind = ["R"]', r"joint kind \(in row 1\)"),
    "a number for a link's name": (HEAD + "[[link]]\na = 1\n[[link]]\nname = 5", "name of row 2 is 5; give a text"),
    "a number for the name": ("name = 5\n" + HEAD + "[[link]]\na = 1", "name is 5; give a text"),
    "a number beyond floats": (HEAD + f"[[link]]\na = {10**400}", "a of 'link1' is 1000"),
    "a number of too many digits": (HEAD + f"[[link]]\na = {'1' * 5000}", "is not TOML"),
    "a parameter beyond floats": (HEAD + f"[[link]]\na = 'l'\n[parameters]\nl = {10**400}", "too large"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_another_type_is_named(toml, entry):
    text, message = ENTRIES[entry]
    with pytest.raises(FormatError, match=message):
        read_dh(toml(text))


def test_a_truth_value_is_no_number_in_python_either():
    with pytest.raises(ModelError, match="mass of 'link1' is True"):
        from_dh([{"mass": True}])


def test_a_file_that_no_model_needs_is_refused(toml, monkeypatch):
    monkeypatch.setattr(dh, "MAX_BYTES", 2**20)
    with pytest.raises(FormatError, match="larger than 1 MB"):
        read_dh(toml("#" * (2**20 + 1)))


def test_an_unphysical_row_stays_when_other_parameters_change() -> None:
    row = {"a": 0.3, "alpha": 0.0, "d": 0.0, "theta": 0.0, "com": (0.1, 0.0, 0.0)}
    rows = [
        {**row, "mass": "m", "inertia": (1.0, 0.1, 0.1), "unphysical": True},
        {**row, "mass": 1.0, "inertia": ("I", 0.1, 0.1)},
    ]
    mech = lw.from_dh(rows, parameters={"m": 2.0, "I": 0.1})
    assert mech.with_parameters(m=3.0).description.mass[0] == 3.0
    with pytest.raises(ModelError, match="no body can have the inertia of 'link2'"):
        mech.with_parameters(I=5.0)


# -- values as text -----------------------------------------------------------------------------------------------
def in_toml(tmp_path, entry):
    path = tmp_path / "arm.dh.toml"
    path.write_text(f'convention = "modified"\nlink = [{{ {entry}, mass = 1.0, com = [0.1, 0.2, 0.3] }}]\n')
    return read_dh(path)


@pytest.mark.parametrize("angle", ['"90 deg"', "90 deg", "+90.0 deg", '"90°"', '"pi/2"', '"1.5707963267948966 rad"'])
def test_a_quarter_turn_may_be_written_in_degrees_or_by_pi(tmp_path, angle):
    d = in_toml(tmp_path, f"alpha = {angle}")
    assert d.ri[0].tolist() == [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    assert not d.parameters


def test_pi_is_a_number_unless_it_is_given_a_value():
    assert from_dh([{"alpha": "pi"}]).parameters == {}
    assert from_dh([{"a": "pi"}], parameters={"pi": 0.5}).parameters == {"pi": 0.5}


def test_an_entry_may_be_a_formula_of_symbols(tmp_path):
    d = in_toml(tmp_path, 'a = "2*l + l1/4"')
    assert d.parameters == {"l": 1.0, "l1": 1.0}
    assert d.pi[0].tolist() == [2.25, 0.0, 0.0]
    assert d.bindings["pi", 0].evaluate({"l": 0.3, "l1": 0.2}) == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("angle", "near"), [("1.5708", 90), ("-1.57", -90), ("3.1416", 180), ("0.785398", 45), ('"1.5708"', 90)]
)
def test_a_rounded_part_of_a_turn_is_warned_of(tmp_path, angle, near):
    with pytest.warns(LinkwrightWarning, match=rf'alpha of \'link1\' is .* nearly {near}° .* write "{near} deg"'):
        in_toml(tmp_path, f"alpha = {angle}")


def test_an_angle_of_many_turns_is_asked_for_its_unit(tmp_path):
    with pytest.warns(LinkwrightWarning, match=r'theta of .* is 90 rad; write "90 deg"'):
        in_toml(tmp_path, "theta = 90")


@pytest.mark.parametrize("entry", ["alpha = 1.5707963267948966", "alpha = 1.3", "alpha = 1.5712345", "a = 1.5708"])
def test_other_numbers_are_taken_without_a_word(tmp_path, entry):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_toml(tmp_path, entry)


@pytest.mark.parametrize("key", ["a" + ".a" * 30_000, "[" + "a . " * 30_000 + "a]", '"a".' * 30_000 + "a"])
def test_keys_of_very_many_parts_are_refused_before_they_are_read(tmp_path, key):
    """60 kB of these would take 10 s and gigabytes."""
    (tmp_path / "deep.dh.toml").write_text(f"convention = 'standard'\n{key} = 1\n")
    with pytest.raises(FormatError, match="more than 30 parts"):
        lw.load(tmp_path / "deep.dh.toml")
