"""xacro files are expanded by their own package, for those who say that they trust the file."""

import builtins

import pytest

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightError

TEXT = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="1"/>
<link name="base"/>
<link name="arm"><inertial><mass value="${2 * $(arg mass)}"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint>
</robot>"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(TEXT)
    return path


def test_a_xacro_file_is_read_with_its_arguments(file):
    pytest.importorskip("xacro", reason="the package xacro is not installed")
    m = lw.load(file, arguments={"mass": 3}, trust=True)
    assert m.bodies[0].mass == 6.0


def test_without_trust_nothing_of_it_is_run(file):
    file.write_text("<robot name='r'>${undefined}</robot>")
    with pytest.raises(FormatError, match=r"run as code .* trust=True"):
        lw.load(file)


def test_what_xacro_cannot_expand_is_told_in_a_line(file):
    pytest.importorskip("xacro", reason="the package xacro is not installed")
    file.write_text("<robot name='r' xmlns:xacro='http://www.ros.org/wiki/xacro'><link name='${nothing}'/></robot>")
    with pytest.raises(FormatError, match=r"xacro cannot expand it: .*nothing") as caught:
        lw.load(file, trust=True)
    assert "\n" not in str(caught.value)


def test_without_the_package_one_sentence_tells_how_to_get_it(file, monkeypatch):
    plain = builtins.__import__

    def without(name, *rest, **named):
        if name == "xacro":
            raise ImportError(name)
        return plain(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LinkwrightError, match="pip install xacro"):
        lw.load(file, trust=True)
