"""REPEAT, PART, USE and arrays make the model that is written without them, to the last bit."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from same_description import assert_same

import linkwright as lw
from linkwright.errors import FormatError, MksError, ModelError, NameNotFound
from linkwright.formats.mks.expansion import expanded
from linkwright.formats.mks.mks_reader import ModelText, parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.mks.parser import parse
from linkwright.formats.mks.syntax import Problems
from linkwright.model.builder import Builder
from linkwright.model.description import Description
from linkwright.outputs.output_functions import named_quantity
from linkwright.outputs.output_language import output_of

MODELS = Path(__file__).resolve().parents[2] / "examples/models"
CHAIN = """MODEL chain
PARAMETER n = 4; PARAMETER L = 0.1;
BODY link[0] (ground);
REPEAT i = 1 .. n {
  BODY link[i] (mass = i, com = ((i - 1/2)*L, 0, 0), inertia = (0.1, 0.1, 0.1));
  HINGE joint[i] (body = link[i-1], body = link[i], at = ((i-1)*L, 0), damping = 0.1*i);
  SPRING spring[i] (joint = joint[i], stiffness = 2^i);
}
GEAR follow (joint = joint[n], joint = joint[1], ratio = 2);
INITIAL (joint[n-2].angle = 0.1);
ENDMODEL"""
LEGS = """MODEL legs
PARAMETER L = 0.5; PARAMETER r = [1, 2*L, L^2]; PARAMETER p = [(0, 0, 0), (1, 0, L), (2, 0)];
BODY frame (ground);
PART leg (base, at, length = 2*L, paint = red) {
  PARAMETER half = length/2;
  BODY foot (mass = 1, inertia = (1, 1, 1), com = (half, 0, 0));
  HINGE hip (body = base, body = foot, at = at);
  SHAPE bar (associated body = foot, box = (length, 0.1, 0.1), colour = paint);
  REPEAT k = 1 … 2 { TRIAD t[k] (associated body = foot, origin = (k*half, 0)); }
  USE toe AS big (of = foot, at = at); FORCE push (triad = big.nail, force = (0, hip.angle, t[2].y));
}
PART toe (of, at) { BODY nail (mass = 1); WELD fix (body = of, body = nail, at = at); TRACE path (triad = nail); }
REPEAT j = 1 ... 3 {
  USE leg AS leg[j] (base = frame, at = p[j], length = r[j]);
  DRIVER d[j] (leg[j].hip.angle = j*TIME);
}
ROD rod (triad = leg[1].big.nail, triad = leg[3].t[2], length = 3);
FORCE f (triad = leg[2].t[1], triad = leg[1].t[1], law = distance(leg[2].big.nail, frame) + leg[3].hip.rate);
ENDMODEL"""


FEET, HEADS = (-10, 10, 110, 130, 230, 250), (-50, 50, 70, 170, 190, 290)  # degrees, of the platform of the page
NESTED = "".join(f"PART a{k} {{ USE a{k + 1} AS u; }}" for k in range(60)) + "PART a60 { BODY b; } USE a0 AS x;"
DOUBLED = "".join(f"PARAMETER a{k} = a{k - 1}+a{k - 1};" for k in range(1, 60))


def chain_in_full(n: int) -> str:
    """CHAIN without REPEAT."""
    text = "MODEL chain PARAMETER L = 0.1; BODY link0 (ground);\n"
    for i in range(1, n + 1):
        text += f"BODY link{i} (mass = {i}, com = (({i} - 1/2)*L, 0, 0), inertia = (0.1, 0.1, 0.1));\n"
        text += f"HINGE joint{i} (body = link{i - 1}, body = link{i}, at = (({i}-1)*L, 0), damping = 0.1*{i});\n"
        text += f"SPRING spring{i} (joint = joint{i}, stiffness = 2^{i});\n"
    text += f"GEAR follow (joint = joint{n}, joint = joint1, ratio = 2); INITIAL (joint{n - 2}.angle = 0.1); ENDMODEL"
    for i in range(n + 1):
        for name in ("link", "joint", "spring"):
            text = text.replace(f"{name}{i}", f'"{name}[{i}]"')
    return text


def legs_in_full() -> str:
    """LEGS without PART."""
    text = "MODEL legs PARAMETER L = 0.5; BODY frame (ground);\n"
    for j, at, length in ((1, "(0, 0, 0)", "1"), (2, "(1, 0, L)", "2*L"), (3, "(2, 0)", "L^2")):
        foot, hip, nail = (f'"leg[{j}].{name}"' for name in ("foot", "hip", "big.nail"))
        half = f"({length})/2"
        text += f"BODY {foot} (mass = 1, inertia = (1, 1, 1), com = ({half}, 0, 0)); BODY {nail} (mass = 1);\n"
        text += f"HINGE {hip} (body = frame, body = {foot}, at = {at});\n"
        text += f'SHAPE "leg[{j}].bar" (associated body = {foot}, box = ({length}, 0.1, 0.1), colour = red);\n'
        for k in (1, 2):
            text += f'TRIAD "leg[{j}].t[{k}]" (associated body = {foot}, origin = ({k}*({half}), 0));\n'
        text += f'WELD "leg[{j}].big.fix" (body = {foot}, body = {nail}, at = {at});\n'
        text += f'TRACE "leg[{j}].big.path" (triad = {nail});\n'
        text += f'FORCE "leg[{j}].push" (triad = {nail}, force = (0, {hip}.angle, "leg[{j}].t[2]".y));\n'
        text += f'DRIVER "d[{j}]" ({hip}.angle = {j}*TIME);\n'
    text += 'ROD rod (triad = "leg[1].big.nail", triad = "leg[3].t[2]", length = 3);\n'
    text += 'FORCE f (triad = "leg[2].t[1]", triad = "leg[1].t[1]", law = distance("leg[2].big.nail", frame)'
    return text + ' + "leg[3].hip".rate); ENDMODEL'


def sorted_names(d: Description) -> tuple[list[str], ...]:
    return sorted(d.body_names), sorted(d.joint_names), sorted(d.frames.names)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_a_repeat_is_the_model_written_out(n):
    assert_same(parse_mks(CHAIN, parameters={"n": n}), parse_mks(chain_in_full(n)))


def test_parts_are_the_model_written_out():
    d, full = parse_mks(LEGS), parse_mks(legs_in_full())
    assert sorted_names(d) == sorted_names(full)
    assert sorted(write_mks(d).splitlines()) == sorted(write_mks(full).splitlines())


@pytest.mark.parametrize("text", [CHAIN, LEGS], ids=["chain", "legs"])
def test_what_is_written_is_the_expanded_model_to_the_last_bit(text):
    d = parse_mks(text)
    written = write_mks(d)
    assert "REPEAT" not in written
    assert_same(d, parse_mks(written))
    assert write_mks(parse_mks(written)) == written


def test_names_with_plain_numbers_are_written_without_quotes():
    written = write_mks(parse_mks(CHAIN))
    assert "BODY link[2] (" in written
    assert "triad = link[1]" in written
    assert 'BODY "leg[2].foot" (' in write_mks(parse_mks(LEGS))


@pytest.mark.parametrize(
    "dots", ["1..4", "1 .. 4", "1 ... 4", "1…n", "1. .. n", "n-3 ... 2*n/2", "min(1, n) .. abs(-4)"]
)
def test_a_range_is_two_dots_three_or_an_ellipsis(dots):
    assert_same(parse_mks(CHAIN.replace("1 .. n", dots)), parse_mks(CHAIN))


def test_a_range_that_ends_before_it_begins_repeats_nothing():
    text = "MODEL m PARAMETER n = 1; BODY g (ground); BODY a; REPEAT i = 2 .. n { BODY b[i]; } ENDMODEL"
    assert list(parse_mks(text).body_names) == ["a"]


def test_indices_nest_and_names_take_several():
    text = """MODEL grid BODY g (ground);
    REPEAT i = 1 .. 3 { REPEAT k = i .. 3 {
      BODY node[i, k] (mass = 10*i + k);
    } }
    ENDMODEL"""
    d = parse_mks(text)
    assert list(d.body_names) == ["node[1,1]", "node[1,2]", "node[1,3]", "node[2,2]", "node[2,3]", "node[3,3]"]
    assert d.mass.tolist() == [11, 12, 13, 22, 23, 33]
    assert_same(parse_mks(write_mks(d)), d)


def test_arrays_hold_numbers_vectors_and_expressions_with_units():
    text = """MODEL m SYSTEM (length unit = mm); PARAMETER s = 3;
    PARAMETER x = [10, 20 mm, 2*s, -1 cm]; PARAMETER p = [(1, 2), (3, s, 5)]; PARAMETER k = 2;
    BODY g (ground); BODY a (origin = (x[1], x[k], x[3])); BODY b (origin = p[k], mass = p[2, 3]);
    BODY c (origin = (x[4], x[2]^2/(1 mm), p[1,2]*x[k]));
    ENDMODEL"""
    d = parse_mks(text)
    assert d.start is not None
    assert d.start_p.tolist() == [[0.01, 0.02, 0.006], [0.003, 0.003, 0.005], [-0.01, 0.4, 0.04]]
    assert d.mass.tolist() == [0, 5, 0]
    assert dict(d.parameters) == {"s": 3.0}  # x[k] is text: k is part of it


def test_a_number_of_repetitions_is_set_when_a_model_is_read():
    text = ModelText(CHAIN)
    assert len(text.description({"n": "2*3"}).body_names) == 6
    assert len(text.description().body_names) == 4
    assert text.parameter_values({"n": 9}) == {"n": 9.0, "L": 0.1}
    mechanism = lw.Mechanism(text.description())
    assert dict(mechanism.parameters) == {"L": 0.1}
    with pytest.raises(NameNotFound, match="no parameter named 'n'"):
        mechanism.with_parameters(n=5)
    with pytest.raises(MksError, match=r"a REPEAT counts in whole numbers, and this is 2\.5"):
        text.description({"n": 2.5})


def test_an_array_has_no_other_values_from_outside():
    with pytest.raises(FormatError, match="'r' is an array, whose values are in the text"):
        parse_mks(LEGS, parameters={"r": 1.0})


def test_places_depend_on_indices_and_on_parameters():
    mechanism = lw.Mechanism(parse_mks(LEGS))
    moved = mechanism.with_parameters(L=0.7)
    assert_same(moved.description, parse_mks(LEGS, parameters={"L": 0.7}), elements=False)


def test_names_of_a_part_are_its_own_and_others_those_of_the_model():
    text = """MODEL m BODY base (ground); BODY red (mass = 1);
    PART one (colour = gold) {
      BODY red (mass = 2, colour = red);  # a colour
      BODY base (mass = 3, colour = colour);
      HINGE "a b" (body = base, body = red, at = (0, 0)); SPRING s (joint = "a b", stiffness = 3);
      REPEAT colour = 1 .. 2 { BODY arm[colour] (mass = colour); }
    }
    USE one AS x; HINGE h (body = base, body = x.arm[2], at = (0, 0)); WELD w (body = red, body = x.base, at = (0, 0));
    ENDMODEL"""
    d = parse_mks(text)
    assert list(d.body_names) == ["red", "x.red", "x.base", "x.arm[1]", "x.arm[2]"]
    assert list(d.joint_names) == ["x.a b", "h", "w", "red_free", "x.arm[1]_free"]
    assert dict(d.colors) == {"x.red": "#ff0000", "x.base": "#ffd700"}
    assert [x.joint for x in d.elements] == ["x.a b"]


def test_a_family_of_names_is_passed_to_a_part():
    text = """MODEL m BODY g (ground); REPEAT i = 1 .. 3 { BODY a[i]; BODY b[i]; }
    PART pins (of) { REPEAT i = 2 .. 3 { HINGE pin[i] (body = of[i-1], body = of[i], at = (i, 0)); } }
    USE pins AS a (of = a); USE pins AS b (of = b);
    DRIVER d (b.pin[3].angle = TIME); ENDMODEL"""
    d = parse_mks(text)
    assert list(d.joint_names)[:4] == ["a.pin[2]", "a.pin[3]", "b.pin[2]", "b.pin[3]"]
    assert d.body_names[d.parent[3]] == "b[2]"
    assert d.drivers[0].target == "b.pin[3]"


def test_texts_without_repetitions_are_left_alone():
    text = (MODELS / "stewart.mks").read_text(encoding="utf-8")
    parsed = parse(Problems(text, ""))
    assert expanded(parsed, Problems(text, ""), {}).parsed is parsed
    written = write_mks(parse_mks(CHAIN))
    parsed = parse(Problems(written, ""))
    assert expanded(parsed, Problems(written, ""), {}).parsed is parsed


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("REPEAT i = 1 .. 200 { REPEAT k = 1 .. 200 { BODY b[i,k]; } }", "repeats 200 times; all REPEATs together"),
        ("REPEAT i = 1 .. 300 { REPEAT k = 1 .. 90 { BODY b[i,k]; BODY c[i,k]; } }", "more than 30000 statements"),
        ("PARAMETER x = [" + "1, " * 2000 + "1]; REPEAT i = 1 .. 30000 { BODY b[i] (mass = x); }", "more than a model"),
        ("REPEAT a0 = 1 .. 2 {" + DOUBLED + "}", "too large when the values are put in"),
        ("REPEAT i = 1 .. 2 {" * 30, "more than 20 REPEATs one inside the other"),
        (
            "".join(f"PARAMETER n{k} = n{k + 1};" for k in range(999)) + "REPEAT i = 1 .. n0 { BODY b[i]; }",
            "operations",
        ),
        (NESTED, "more than 40 parts and REPEATs one inside the other"),
        ("REPEAT i = 1 .. 1e300 { BODY b[i]; }", "this is too large"),
        ("PARAMETER n = n; REPEAT i = 1 .. n { BODY b[i]; }", "operations to compute"),
    ],
)
def test_repetitions_are_bounded(body, message):
    with pytest.raises(MksError, match=message):
        parse_mks(f"MODEL m BODY g (ground); {body} ENDMODEL")


def test_two_thousand_links_are_within_the_bounds():
    text = CHAIN.replace("SPRING", "TORQUE").replace("stiffness", "law")
    problems = Problems(text, "")
    statements = expanded(parse(problems), problems, {"n": 2_000.0}).parsed.statements
    assert not problems
    assert len(statements) == 3 * 2000 + 5


def test_outputs_plots_and_pages_take_the_names(tmp_path):
    text = CHAIN.replace("GEAR follow (joint = joint[n], joint = joint[1], ratio = 2);", "").replace(
        "INITIAL", "REPEAT i = 1 .. n { DRIVER turn[i] (joint[i].angle = i*TIME); } INITIAL"
    )
    text = text.replace("INITIAL (joint[n-2].angle = 0.1);", "SYSTEM (KINEMATIC ANALYSIS, ending time = 1);")
    mechanism = lw.Mechanism(parse_mks(text))
    sol = lw.analyse(mechanism)
    turns = np.cumsum([1, 2, 3, 4])
    pin = 0.1 * np.array([np.cos(turns[:3]).sum(), np.sin(turns[:3]).sum()])
    origin = sol.position("link[4]")[-1, :2]  # where ground's is as drawn, 0.3 m before the pin
    assert np.allclose(origin + 0.3 * np.array([np.cos(turns[3]), np.sin(turns[3])]), pin, atol=1e-9)
    study = lw.sweep(mechanism, {"L": [0.1, 0.2]}, outputs=["max(link[3].x)", "r = final(distance(link[2], link[4]))"])
    assert np.allclose(study.data["r"].values[1], 2 * study.data["r"].values[0])
    assert sol.plot(["link[2]", "joint[3]"])
    page = tmp_path / "page.html"
    sol.animate(page)
    assert "link[4]" in page.read_text(encoding="utf-8")
    sol.save(tmp_path / "x.nc")
    assert np.array_equal(lw.open(tmp_path / "x.nc").position("link[4]"), sol.position("link[4]"))


def test_outputs_take_the_names_of_parts():
    d = parse_mks(LEGS)
    names = ["leg[2].big.nail.x", "leg[1].hip.angle", "distance(leg[1].foot, leg[3].t[2])", "leg[3].t[2].vy"]
    assert [output_of(d, "one", x).names for x in names] == [{x} for x in names]
    assert named_quantity(parse_mks(LEGS), "distance(leg[1].foot, leg[3].t[2])").name == names[2]


def test_a_part_of_a_builder_gives_the_names_of_use():
    text = """MODEL walker PARAMETER L = 0.5; BODY ground (ground);
    PART leg (at) {
      BODY foot (mass = 1, inertia = (1, 1, 1)); HINGE hip (body = ground, body = foot, at = (at, 0));
      TRIAD tip (associated body = foot, origin = (L, 0)); SPRING soft (joint = hip, stiffness = 3, rest = 0);
    }
    REPEAT k = 1 .. 2 { USE leg AS leg[k] (at = k); }
    ROD rod (triad = leg[1].tip, triad = leg[2].tip, length = L); ENDMODEL"""
    b = Builder("walker")
    length = b.parameter("L", 0.5)
    for k in (1, 2):
        with b.part(f"leg[{k}]"):
            b.body("foot", 1.0, inertia=(1, 1, 1))
            b.joint("revolute", "ground", "foot", "hip", at=(k, 0, 0), drawn=True)
            b.triad("foot", (length, 0, 0), name="tip")
            b.joint_spring("hip", 3.0, name="soft")
    b.rod("leg[1].tip", "leg[2].tip", length, "rod")
    assert write_mks(b.description()) == write_mks(parse_mks(text))


def test_parts_of_a_builder_nest_and_close():
    b = Builder("m")
    with b.part("arm"), b.part("hand"):
        b.body("palm", 1.0)
    with b.part("arm"):
        b.joint("revolute", "ground", "hand.palm", "wrist")
    b.body("palm", 1.0)
    b.joint("fixed", "palm", "arm.hand.palm", "w")
    assert list(b.description().body_names) == ["arm.hand.palm", "palm"]
    assert list(b.description().joint_names) == ["arm.wrist", "w"]
    with pytest.raises(ModelError, match="a part needs a name"), b.part(" "):
        pass


def test_the_models_of_the_page_are_read():
    page = (MODELS.parents[1] / "docs/repetition.md").read_text(encoding="utf-8")
    models = [part for part in page.split("```") if part.strip().startswith("MODEL")]
    assert [len(parse_mks(text).body_names) for text in models] == [11, 13]


def test_six_legs_of_a_platform_have_their_lengths():
    page = (MODELS.parents[1] / "docs/repetition.md").read_text(encoding="utf-8")
    text = next(part for part in page.split("```") if "MODEL platform" in part)
    assert len(text[text.index("PART") : text.index("ENDMODEL")].splitlines()) <= 12
    sol = lw.analyse(lw.Mechanism(parse_mks(text)), times=[0.0, 1.0, 2.5])
    assert sol.status
    for i in range(1, 7):
        ends = sol.position(f"leg[{i}].upper") - sol.position(f"leg[{i}].lower")
        foot, head = (np.radians(x) for x in (FEET[i - 1], HEADS[i - 1]))
        drawn = math.hypot(0.6 * math.cos(head) - math.cos(foot), 0.6 * math.sin(head) - math.sin(foot), 1.2)
        assert np.allclose(np.linalg.norm(ends, axis=1), drawn + 0.1 * np.sin(sol.time + i), atol=1e-9)


def test_a_chain_of_two_hundred_links_is_a_rod_when_it_is_straight():
    text = """MODEL chain
    PARAMETER n = 200; PARAMETER L = 0.1; PARAMETER m = 2;
    BODY link[0] (ground);
    REPEAT i = 1 .. n {
      BODY link[i] (origin = ((i-1)*L, 0), com = (L/2, 0, 0), mass = m, inertia = (0, m*L^2/12, m*L^2/12));
      HINGE joint[i] (body = link[i-1], body = link[i], at = ((i-1)*L, 0));
    }
    ENDMODEL"""
    mechanism = lw.Mechanism(parse_mks(text))
    assert mechanism.nq == 200
    inertia = mechanism.mass_matrix(np.zeros(200))[0, 0]
    assert np.isclose(inertia, 200 * 2 * (200 * 0.1) ** 2 / 3, rtol=1e-12)
    assert np.isclose(mechanism.with_parameters(L=0.2, m=1).mass_matrix(np.zeros(200))[0, 0], 2 * inertia, rtol=1e-12)


def test_a_study_cannot_sweep_how_much_is_repeated(tmp_path):
    (tmp_path / "m.mks").write_text(CHAIN.replace("INITIAL", "# "), encoding="utf-8")
    with pytest.raises(ModelError, match="'n' says how much is repeated in the model, which is fixed when it is read"):
        lw.sweep(tmp_path / "m.mks", {"n": [1, 2]}, outputs=["final(link[1].x)"], times=[0.0], analysis="dynamic")
    assert (
        ModelText(CHAIN).repetition({"n": 5})
        == "REPEAT and USE make 15 statements; n = 5 is fixed when the model is read"
    )
    assert ModelText(write_mks(parse_mks(CHAIN))).repetition() == ""


def test_the_scissor_lift_is_five_stages_in_25_lines():
    text = (MODELS / "scissor_lift.mks").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    d = parse_mks(text)
    assert (len(d.body_names), len(d.joint_names)) == (12, 17)
    assert len(parse_mks(text, parameters={"n": 20}).body_names) == 42


TEXTS = sorted([*MODELS.glob("*.mks"), *(MODELS.parents[1] / "tests/fuzz/corpus/mks").glob("*.mks")])
_OUTSIDE = re.compile(r"\s*(system|parameter|gravity)\b", re.I)


def parts_of(text: str) -> tuple[str, str, str]:
    """MODEL and its name, what a PART cannot have in it, and all other statements."""
    comments = r'("[^"\n]*")|#[^\n]*|//[^\n]*|/\*.*?\*/'
    text = re.sub(comments, lambda match: match[1] or " ", text, flags=re.S)
    model, name, body = re.match(r'\s*(model)\s+("[^"]*"|\w+)\s*;?(.*)\bendmodel', text, re.I | re.S).groups()
    statements = [s for s in body.split(";") if s.strip()]
    outside = [s for s in statements if _OUTSIDE.match(s)]
    inside = [s for s in statements if not _OUTSIDE.match(s)]
    return f"{model} {name}\n", ";".join([*outside, ""]), ";".join([*inside, ""])


@pytest.mark.parametrize("file", [f for f in TEXTS if "{" not in f.read_text(encoding="utf-8")], ids=lambda f: f.stem)
def test_every_statement_may_stand_in_a_repeat_and_in_a_part(file):
    """All models there are, within a REPEAT of one round, and as a PART that is used once."""
    head, outside, inside = parts_of(file.read_text(encoding="utf-8"))
    plain = parse_mks(f"{head}{outside}{inside}ENDMODEL", folder=str(file.parent))
    once = parse_mks(f"{head}{outside}REPEAT zz = 1 .. 1 {{ {inside} }} ENDMODEL", folder=str(file.parent))
    assert_same(plain, once)
    used = parse_mks(f"{head}{outside}PART all {{ {inside} }} USE all AS u; ENDMODEL", folder=str(file.parent))
    assert [name.removeprefix("u.") for name in used.body_names] == list(plain.body_names)
    assert written_without("u.", used) == written_without("", plain)


def test_parts_without_parameters_may_have_parentheses():
    text = "MODEL m BODY g (ground); PART p{} {{ BODY a (mass = 1); }} USE p AS x{}; USE p AS y; ENDMODEL"
    plain = parse_mks(text.format("", ""))
    for head, use in (("()", ""), ("", " ( )"), ("()", "()")):
        assert_same(plain, parse_mks(text.format(head, use)))


def written_without(prefix: str, d: Description) -> list[str]:
    """The text of a description without a prefix of names, quotes and line breaks."""
    return " ".join(write_mks(d).replace(f'"{prefix}', "").replace('"', "").split()).split(";")
