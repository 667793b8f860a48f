"""The files that a model names are looked for where it may look, and nowhere else."""

import os

import pytest

from linkwright.errors import FormatError, ModelError
from linkwright.formats import includes
from linkwright.formats.includes import Folder


@pytest.fixture
def place(tmp_path):
    """A model's folder with a file in it, and a file outside."""
    inside = tmp_path / "model"
    (inside / "parts").mkdir(parents=True)
    (inside / "model.xml").write_text("<m/>")
    (inside / "parts" / "arm.xml").write_text("<arm/>")
    (tmp_path / "secret.xml").write_text("<secret/>")
    return inside


def opened(place, name, folders=()):
    with Folder.of(place / "model.xml", folders).open(name) as part:
        return part.root.tag


def test_a_file_beside_the_model_is_read(place):
    assert opened(place, "parts/arm.xml") == "arm"
    assert opened(place, "parts/../parts/arm.xml") == "arm"
    assert opened(place, str(place / "parts/arm.xml")) == "arm"


@pytest.mark.parametrize("name", ["../secret.xml", "parts/../../secret.xml", "{root}/secret.xml", "C:\\secret.xml"])
def test_a_path_out_of_the_folder_is_refused(place, name):
    with pytest.raises(FormatError, match=r"outside of the model's folder .*; if it is to be trusted, name its folder"):
        opened(place, name.format(root=place.parent))


@pytest.mark.parametrize("target", ["secret.xml", "nothing.xml"])
def test_what_is_outside_and_what_is_not_there_are_told_alike(place, target):
    with pytest.raises(FormatError) as caught:
        opened(place, f"../{target}")
    assert "which is not in" not in str(caught.value)


def test_a_symbolic_link_out_of_the_folder_is_refused(place):
    os.symlink(place.parent / "secret.xml", place / "link.xml")
    os.symlink(place.parent, place / "up")
    for name in ("link.xml", "up/secret.xml"):
        with pytest.raises(FormatError, match="outside of the model's folder"):
            opened(place, name)


def test_a_folder_that_the_caller_names_may_be_read(place):
    assert opened(place, "../secret.xml", [place.parent]) == "secret"
    assert opened(place, "secret.xml", [place.parent]) == "secret"


def test_a_folder_that_is_not_there_is_told(place):
    with pytest.raises(ModelError, match="'/nowhere' is no folder"):
        Folder.of(place / "model.xml", ["/nowhere"])


def test_a_pipe_is_not_opened(place):
    os.mkfifo(place / "pipe.xml")
    with pytest.raises(FormatError, match="a device or a pipe"):
        opened(place, "pipe.xml")


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000, "parts"])
def test_names_that_are_no_files_are_told_in_a_line(place, name):
    with pytest.raises(FormatError) as caught:
        opened(place, name)
    assert len(str(caught.value)) < 600


def test_names_are_looked_up_beside_the_file_that_has_them(place):
    (place / "parts" / "hand.xml").write_text("<hand/>")
    folder = Folder.of(place / "model.xml")
    with folder.open("parts/arm.xml"), folder.open("hand.xml") as part:
        assert part.path == place / "parts" / "hand.xml"
    assert folder.here == place


def test_a_file_that_includes_itself_in_a_ring_is_refused(place):
    folder = Folder.of(place / "model.xml")
    with folder.open("parts/arm.xml"), pytest.raises(FormatError, match=r"model\.xml → arm\.xml → model\.xml"):
        folder.open("../model.xml").__enter__()


def test_files_and_elements_are_counted_over_all_includes(place, monkeypatch):
    monkeypatch.setattr(includes, "MAX_FILES", 3)
    folder = Folder.of(place / "model.xml")
    for _ in range(3):
        with folder.open("parts/arm.xml"):
            pass
    with pytest.raises(FormatError, match="names more than 3 files in all"):
        folder.open("parts/arm.xml").__enter__()
    monkeypatch.setattr(includes, "MAX_ELEMENTS", 2)
    folder = Folder.of(place / "model.xml")
    folder.parse()
    with folder.open("parts/arm.xml"):
        pass
    with pytest.raises(FormatError, match="elements"):
        folder.open("parts/arm.xml").__enter__()
