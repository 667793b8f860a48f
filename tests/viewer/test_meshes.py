"""Mesh files: the same tetrahedron in three forms, and files that are not what they should be."""

from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from linkwright.errors import FormatError
from linkwright.formats import mesh_files as meshes
from linkwright.formats.mesh_files import Mesh, read_mesh
from mesh_files import CORNERS, FACES, binary_stl


def ascii_stl() -> bytes:
    lines = ["solid tetrahedron"]
    for face in FACES:
        lines += ["facet normal 0 0 0", " outer loop", *("  vertex {:g} {:g} {:g}".format(*CORNERS[k]) for k in face)]
        lines += [" endloop", "endfacet"]
    return "\n".join([*lines, "endsolid"]).encode()


def obj() -> bytes:
    corners = ["v {:g} {:g} {:g}".format(*x) for x in CORNERS]
    return "\n".join(
        ["# four corners", *corners, "vn 0 0 1", "f 1/1/1 3/1/1 2", "f 1 2 4", "f -3 -2 -1", "f 1 4 3"]
    ).encode()


def triangles(mesh: Mesh) -> set[frozenset[tuple[float, ...]]]:
    return {frozenset(tuple(mesh.vertices[k].tolist()) for k in face) for face in mesh.triangles}


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.stl", binary_stl()), ("b.STL", binary_stl(b"solid or so it says")), ("c.stl", ascii_stl()), ("d.obj", obj())],
)
def test_every_form_of_a_mesh_gives_the_same_triangles(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    mesh = read_mesh(str(tmp_path), name)
    assert len(mesh.vertices) == 4
    assert triangles(mesh) == {frozenset(tuple(CORNERS[k].tolist()) for k in face) for face in FACES}


def test_a_face_of_many_corners_becomes_a_fan(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    assert_array_equal(read_mesh(str(tmp_path), "a.obj").triangles, [[0, 1, 2], [0, 2, 3]])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.stl", b"", "no STL mesh"),
        ("a.stl", binary_stl()[:-1], "no STL mesh"),
        ("a.stl", b"solid x\nvertex 0 0 0\nvertex 1 0 0\nendsolid", "not three per triangle"),
        ("a.stl", b"solid x\nvertex 0 0 zero\nvertex 1 0 0\nvertex 0 1 0\nendsolid", "no STL mesh"),
        ("a.stl", b"solid x\nendsolid", "no triangles"),
        ("a.stl", ascii_stl().replace(b"vertex 1", b"vertex inf"), "not finite"),
        ("a.obj", b"v 0 0 0\nf 1 2 3", "corners that are not there"),
        ("a.obj", b"v 0 0\n", "three numbers"),
        ("a.dae", b"<COLLADA/>", "not a mesh that is read"),
    ],
)
def test_a_bad_mesh_is_told_with_its_file(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=told) as error:
        read_mesh(str(tmp_path), name)
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize("name", ["/etc/passwd", "package://robot/a.stl", "C:\\a.stl", "\\\\server\\a.stl"])
def test_a_mesh_lies_beside_its_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="relative to the model file"):
        read_mesh(str(tmp_path), name)


@pytest.mark.parametrize("name", ["gone.stl", ".", "a\0b.stl"])
def test_a_mesh_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError):
        read_mesh(str(tmp_path), name)


def test_a_mesh_of_too_many_triangles_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshes, "MAX_TRIANGLES", 3)
    for name, content in (("a.stl", binary_stl()), ("b.obj", obj())):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match="4 triangles"):
            read_mesh(str(tmp_path), name)


def test_a_mesh_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshes, "MAX_BYTES", 100)
    (tmp_path / "a.stl").write_bytes(binary_stl())
    with pytest.raises(FormatError, match="coarser"):
        read_mesh(str(tmp_path), "a.stl")


def test_blank_lines_in_a_text_are_looked_at_once(tmp_path: Path) -> None:
    """As many as these would take minutes if each were looked at again from the next one."""
    facet = "facet normal 0 0 1\nouter loop\n\tvertex 0 0 0\n VERTEX 1 0 0\r\nvertex 0\t1 0\nendloop\nendfacet\n"
    (tmp_path / "a.stl").write_bytes(b"solid a\n" + b"\n " * 200_000 + facet.encode() + b"endsolid a\n")
    mesh = read_mesh(str(tmp_path), "a.stl")
    assert_array_equal(mesh.vertices[mesh.triangles[0]], CORNERS[:3])


def test_a_number_of_a_million_digits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_text("solid a\n" + "vertex 0 0 0\n" * 2 + f"vertex {'1' * 10**6} 0 0\n")
    with pytest.raises(FormatError, match="a number of 1000000 digits"):
        read_mesh(str(tmp_path), "a.stl")
