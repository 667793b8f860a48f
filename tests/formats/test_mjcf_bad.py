"""Bad MJCF: each fault has an error that names the element and its line, and says what to do."""

import re
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.mjcf.mjcf_settings import ATTRIBUTES, SECTIONS

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")

BODY = '<body name="b"><joint name="j"/><geom size=".1"/></body>'
OTHER = '<body name="c"><joint name="k"/><geom size=".1"/></body>'


def world(inside: str) -> str:
    return f"<worldbody>\n{inside}\n</worldbody>"


FAULTS = {
    "nothing that moves": ("<worldbody/>", "nothing in it moves", 1),
    "composite": (world('<body><composite type="cable"/></body>'), "<composite>.*not read.*write its bodies out", 2),
    "flexcomp": (world('<flexcomp name="f"/>'), "<flexcomp> 'f'.*flexible", 2),
    "replicate": (world(f'<replicate count="3">{BODY}</replicate>'), "<replicate>.*save the whole model", 2),
    "attach": (world('<attach model="m" prefix="p"/>'), "<attach>.*save the whole model", 2),
    "flexible": (f'<deformable>\n<flex name="x"/></deformable>{world(BODY)}', "<flex> 'x'.*<deformable>", 2),
    "plugins": (f'<extension>\n<plugin plugin="p"/></extension>{world(BODY)}', "<plugin>.*programs", 2),
    "unknown element": (world("<body><wheel/></body>"), "<wheel>.*does not belong", 2),
    "NaN": (world('<body pos="0 nan 0"/>'), "<body>.*not finite", 2),
    "too large": (world('<body pos="0 1e400 0"/>'), "not finite", 2),
    "words": (world('<body name="x" pos="0 left 0"/>'), "<body> 'x'.*not a list of numbers", 2),
    "count": (world('<body pos="0 0"/>'), "has 2 numbers; 3 wanted", 2),
    "zero quaternion": (world('<body quat="0 0 0 0"/>'), "no direction", 2),
    "two orientations": (world('<body euler="0 0 1" zaxis="0 0 1"/>'), "twice, by zaxis and euler", 2),
    "zero axis": (world('<body><joint name="j" axis="0 0 0"/></body>'), "<joint> 'j'.*zero axis", 2),
    "kind of joint": (world('<body><joint type="screw"/></body>'), "not one of hinge, slide, ball, free", 2),
    "range": (world('<body><joint range="1 -1"/></body>'), "range=.*swap", 2),
    "massless": (world('<body name="b"><joint/></body>'), "<body> 'b'.*no mass", 2),
    "negative mass": (world('<body><freejoint/><geom size="1" mass="-1"/></body>'), "<geom>.*negative", 2),
    "size": (world('<body><freejoint/><geom type="box" size="1 2"/></body>'), "needs 3 positive numbers", 2),
    "impossible": (
        world('<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'),
        "principal moments.*balanceinertia",
        2,
    ),
    "free inside": (world('<body><body><freejoint name="f"/></body></body>'), "<freejoint> 'f'.*child of the world", 2),
    "after a ball": (world('<body><joint name="x" type="ball"/><joint name="y"/></body>'), "'y'.*after ball joint", 2),
    "twice": (world(f"{BODY}\n{BODY}"), "<body> 'b'.*already, on line 2", 3),
    "world": (world('<body name="world"/>'), "rename it", 2),
    "class": (world('<body><joint class="none"/></body>'), "no default class 'none'", 2),
    "mesh": (world('<body><freejoint/><geom type="mesh" mesh="m"/></body>'), "mesh='m' is no mesh", 2),
    "global": (f'<compiler coordinate="global"/>{world(BODY)}', "coordinate='global'", 1),
    "sequence": (f'<compiler eulerseq="xyw"/>{world(BODY)}', "eulerseq", 1),
    "polynomial": (
        f'{world(BODY + OTHER)}<equality><joint name="e" joint1="j" joint2="k" polycoef="0 1 2"/></equality>',
        "<joint> 'e'.*not linear.*equality='ignore'",
        3,
    ),
    "tendon equality": (f'{world(BODY)}<equality><tendon name="e" tendon1="t"/></equality>', "'e'.*not read", 3),
    "no body": (f'{world(BODY)}<equality><connect body1="x" anchor="0 0 0"/></equality>', "body1='x' is no body", 3),
    "no joint": (f'{world(BODY)}<actuator><motor name="m" joint="x"/></actuator>', "<motor> 'm'.*joint='x' is no", 3),
    "no drive": (f'{world(BODY)}<actuator><motor name="m"/></actuator>', "<motor> 'm'.*drives nothing", 3),
    "spring and damper": (world('<body><joint name="j" springdamper="1 1"/></body>'), "'j'.*springdamper", 2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_with_its_element_and_line(tmp_path: Path, fault: str) -> None:
    inside, message, line = FAULTS[fault]
    file = tmp_path / "bad.xml"
    file.write_text(f"<mujoco>{inside}</mujoco>", encoding="utf-8")
    with pytest.raises(FormatError, match=f"(?s)bad.xml.*{message}") as told:
        lw.load(file)
    assert told.value.line == line


def test_a_part_is_told_from_a_model(tmp_path: Path) -> None:
    file = tmp_path / "part.xml"
    file.write_text("<mujocoinclude/>", encoding="utf-8")
    with pytest.raises(FormatError, match="to be included by another file"):
        lw.load(file)


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text('<x>\n\n<body pos="inf 0 0"/></x>', encoding="utf-8")
    file = tmp_path / "model.xml"
    file.write_text('<mujoco><worldbody><include file="arm.xml"/></worldbody></mujoco>', encoding="utf-8")
    with pytest.raises(FormatError, match=r"arm\.xml:3: <body>: pos"):
        lw.load(file)


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    file.write_text('<mujoco><include file="model.xml"/></mujoco>', encoding="utf-8")
    with pytest.raises(FormatError, match="includes itself"):
        lw.load(file)


def test_an_option_that_is_none_is_told(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    file.write_text(f"<mujoco>{world(BODY)}</mujoco>", encoding="utf-8")
    with pytest.raises(FormatError, match="equality='loose' must be 'hold' or 'ignore'"):
        lw.load(file, equality="loose")
    with pytest.raises(FormatError, match="no keyframe 'home'"):
        lw.load(file, keyframe="home")


def test_a_word_that_mjcf_does_not_have_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    body = '<body><joint name="j" stifness="3"/><geom size=".1"/></body>'
    file.write_text(f"<mujoco><default><joint armatur='1'/></default>{world(body)}<equalities/></mujoco>")
    meant = r"armatur= of <joint> \(armature\?\).*stifness= of <joint> 'j' \(stiffness\?\) on line 2.*\(equality\?\)"
    with pytest.warns(LinkwrightWarning, match=meant):
        lw.load(file)


def test_every_attribute_that_mujoco_has_is_known() -> None:
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        opened = re.match(r"^( *)(\S+) \(.\)(.*)$", line)
        if opened:
            path[len(opened[1]) // 3 :] = [opened[2].replace("(world)body", "body")]
        words = (opened[3] if opened else line).split()
        section = path[1] if len(path) > 1 else "compiler"
        if "composite" in path[:-1]:  # not read, and its joint is no joint of a body
            continue
        if section in ("compiler", "option", "default", "body", "equality", "tendon", "actuator"):
            assert set(words) <= ATTRIBUTES.get(path[-1], set(words)), path
        assert section in (*SECTIONS, "body")


def test_free_bodies_whose_frames_mujoco_turns_are_told(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    free = "<body name='{}'><freejoint {}/><geom size='.1' pos='1 0 0'/></body>"
    both = free.format("b", "align='true'") + free.format("c", "")
    file.write_text(f"<mujoco>{world(both)}</mujoco>")
    with pytest.warns(LinkwrightWarning, match=r"frames of 'b' to their centres of mass"):
        lw.load(file)


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("".join(f"<default class='c{k}'/>" for k in range(4001)), "more than 4000 elements in <default>"),
        (f"<geom pos='1 2 3{' ' * 1000}'/>", "pos= has 1005 letters"),
    ],
)
def test_defaults_that_make_every_element_dear_are_refused(tmp_path: Path, inside: str, told: str) -> None:
    file = tmp_path / "model.xml"
    file.write_text(f"<mujoco><default>{inside}</default>{world(BODY)}</mujoco>")
    with pytest.raises(FormatError, match=told):
        lw.load(file)


def test_one_mesh_file_is_not_read_under_very_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkwright.formats.mjcf.inertias.MAX_FILES", 3)
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    meshes = "".join(f"<mesh name='m{k}' file='a.obj'/>" for k in range(4))
    geoms = "".join(f"<geom type='mesh' mesh='m{k}'/>" for k in range(4))
    file = tmp_path / "model.xml"
    file.write_text(f"<mujoco><asset>{meshes}</asset>{world(f'<body><joint/>{geoms}</body>')}</mujoco>")
    with pytest.raises(FormatError, match="<mesh> 'm3': is one of more than 3 meshes"):
        lw.load(file)
