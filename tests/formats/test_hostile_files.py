"""Files made to do harm are refused with a sentence, within a bounded memory, by every reader of XML.

All are read by one process whose address space is limited; its processor time is limited too, far above need.
"""

import subprocess
import sys

import pytest

from linkwright.errors import FormatError
from linkwright.formats.model_files import read

MEMORY = 1400 * 2**20  # of which Python and its libraries take 600 to 900 MB
SECONDS = 120

PROGRAM = f"""
import resource, sys, warnings
warnings.simplefilter("ignore")
from linkwright.errors import LinkwrightError
from linkwright.formats.model_files import read
import linkwright.formats.urdf, linkwright.formats.sdf.sdf_reader, linkwright.formats.mjcf.mjcf_reader
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
for path in sys.argv[1:]:
    try:
        read(path)
    except LinkwrightError as error:
        print(error)
    else:
        print("it was read")
"""
HEAD = {
    "urdf": ("<robot name='r'>", "</robot>"),
    "sdf": ("<sdf version='1.7'><model name='m'>", "</model></sdf>"),
    "xml": ("<mujoco><worldbody>", "</worldbody></mujoco>"),
}
FORMATS = list(HEAD)


def written(path, parts):
    head, tail = HEAD[path.suffix[1:]]
    with open(path, "w") as file:
        file.writelines([head, *parts, tail])
    return path


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is said about each file, by its name."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = [folder / name for name in make(folder)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    return {path.name: line for path, line in zip(paths, lines, strict=True)}


def make(folder):
    for kind in FORMATS:
        yield written(folder / f"deep.{kind}", ["<a>" * 10**6, "</a>" * 10**6]).name
        yield written(folder / f"siblings.{kind}", ["<a/>" * 10**7]).name
        with open(folder / f"large.{kind}", "wb") as file:
            # A hole in the file stands for the rest: what counts is that it is not read.
            file.write(f"{HEAD[kind][0]}<link name='".encode() + b"x" * 2**20)
            file.truncate(2**30)
        yield f"large.{kind}"
    many = (f'a{k}="" ' for k in range(200_000))
    yield written(folder / "attributes.urdf", ["<link ", *many, "/>"]).name
    yield written(folder / "name.sdf", ["<link name='", "x" * (30 * 2**20), "'/>"]).name
    inertial = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
    links = (f"<link name='l{k}'>{inertial}</link>" for k in range(1001))
    ends = (f"<parent link='l{k}'/><child link='l{k + 1}'/>" for k in range(1000))
    joints = (f"<joint name='j{k}' type='continuous'>{end}</joint>" for k, end in enumerate(ends))
    yield written(folder / "honest.urdf", [*links, *joints]).name
    # Each includes the next one twice: 2¹⁸ files if all were read.
    for k in range(18):
        twice = (f"<include><uri>m{k + 1}.sdf</uri><name>{n}</name></include>" for n in "ab")
        written(folder / f"m{k}.sdf", ["<link name='l'/>", *twice])
    written(folder / "m18.sdf", ["<link name='l'/>"])
    yield "m0.sdf"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_million_nested_elements_are_refused(told, kind):
    assert "nested more than 500 deep" in told[f"deep.{kind}"]


@pytest.mark.parametrize("kind", FORMATS)
def test_ten_million_siblings_are_refused(told, kind):
    assert "more than 1,000,000 elements" in told[f"siblings.{kind}"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_gigabyte_of_names_is_refused(told, kind):
    assert "is larger than 64 MB" in told[f"large.{kind}"]


def test_a_tag_of_very_many_attributes_is_refused(told):
    assert "attributes" in told["attributes.urdf"]


def test_a_name_of_thirty_megabytes_is_refused(told):
    assert "larger than 8 MB" in told["name.sdf"]


def test_files_that_include_each_other_exponentially_are_refused(told):
    assert "names more than 1000 files in all" in told["m0.sdf"]


def test_a_model_of_many_links_is_read_within_the_same_memory(told):
    assert told["honest.urdf"] == "it was read"


@pytest.mark.parametrize("tag", ["<include file='bad.xml'/>", "<include file='other.xml'/>"])
def test_mjcf_files_that_include_themselves_are_refused(tmp_path, tag):
    (tmp_path / "other.xml").write_text("<mujoco><include file='bad.xml'/></mujoco>")
    (tmp_path / "bad.xml").write_text(f"<mujoco>{tag}</mujoco>")
    with pytest.raises(FormatError, match="includes itself"):
        read(tmp_path / "bad.xml")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sdf", "<include><uri>{}</uri></include>"),
        ("sdf", "<include><uri>file://{}</uri></include>"),
        ("sdf", "<include><uri>model://../../../../../../../..{}</uri></include>"),
        ("xml", "<include file='{}'/>"),
        ("xml", "<include file='../../../../../../../..{}'/>"),
    ],
)
def test_nothing_outside_of_the_folder_is_included(tmp_path, kind, text):
    (tmp_path / "in").mkdir()
    secret = written(tmp_path / f"secret.{kind}", [])
    with pytest.raises(FormatError, match="outside of the model's folder"):
        read(written(tmp_path / "in" / f"bad.{kind}", [text.format(secret)]))


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e400", "1_0", "٣", "0x10"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("urdf", "<link name='a'><inertial><mass value='{}'/></inertial></link>"),
        ("sdf", "<link name='a'><inertial><mass>{}</mass></inertial></link>"),
        ("xml", "<body><joint/><inertial pos='0 0 0' mass='{}' diaginertia='1 1 1'/></body>"),
    ],
)
def test_numbers_that_are_none_are_refused(tmp_path, kind, text, number):
    with pytest.raises(FormatError, match=r"bad\.[a-z]+:1: "):
        read(written(tmp_path / f"bad.{kind}", [text.format(number)]))
