"""Triangles of mesh files: binary and ASCII STL, and OBJ. Files are untrusted: sizes are bounded, nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import FormatError

MAX_BYTES = 64_000_000
MAX_TRIANGLES = 250_000
LONGEST_NUMBER = 100  # letters
#: A line of text STL. Blanks are not line breaks here, so that a place is looked at once, whatever the file has.
_CORNER = re.compile(rb"^[ \t]*vertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Corners (n, 3) in the file's own coordinates, and triangles (m, 3) of them."""

    vertices: NDArray[np.float32]
    triangles: NDArray[np.uint32]

    @property
    def bytes(self) -> int:
        return self.vertices.nbytes + self.triangles.nbytes


def read_mesh(folder: str, file: str) -> Mesh:
    """The mesh in a file beside a model; a FormatError says why it cannot be drawn."""
    if "://" in file or PurePosixPath(file).is_absolute() or PureWindowsPath(file).anchor:
        raise FormatError("is not a path relative to the model file; give the mesh as one", file=file)
    path = Path(folder) / file
    try:
        if not path.is_file():
            raise FormatError("there is no such mesh file; put it there, or correct the path", file=str(path))
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"is over {MAX_BYTES // 10**6} MB; draw a coarser mesh", file=str(path))
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"cannot be read ({error}); see its name and its rights", file=str(path)) from error
    ending = path.suffix.lower()
    if ending not in (".stl", ".obj"):
        raise FormatError(f"{ending or 'no ending'} is not a mesh that is read; give .stl or .obj", file=str(path))
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
            mesh = _obj(content) if ending == ".obj" else _stl(content)
    except (ValueError, IndexError, OverflowError) as error:
        raise FormatError(f"is no {ending[1:].upper()} mesh ({error}); write it anew", file=str(path)) from error
    if not len(mesh.triangles):
        raise FormatError("has no triangles; write it anew", file=str(path))
    if len(mesh.triangles) > MAX_TRIANGLES:
        text = f"has {len(mesh.triangles):,} triangles; draw one of at most {MAX_TRIANGLES:,}"
        raise FormatError(text, file=str(path))
    if not np.isfinite(mesh.vertices).all():
        raise FormatError("has corners that are not finite; write it anew", file=str(path))
    return mesh


def _stl(content: bytes) -> Mesh:
    # Binary files may start with "solid" too; their length decides.
    if len(content) >= 84:
        count = int.from_bytes(content[80:84], "little")
        if len(content) == 84 + 50 * count:
            facets = np.frombuffer(content, np.dtype([("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")]), count, 84)
            return _joined(facets["v"].reshape(-1, 3))
    if not content.lstrip()[:5].lower() == b"solid":
        raise ValueError("neither binary of the right length nor text that starts with 'solid'")
    corners = _CORNER.findall(content)
    if len(corners) % 3:
        raise ValueError(f"{len(corners)} corners are not three per triangle")
    return _joined(np.array([[_number(word) for word in corner] for corner in corners]).reshape(-1, 3))


def _number(word: bytes) -> float:
    if len(word) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(word)} digits")
    return float(word)


def _joined(corners: NDArray[np.floating]) -> Mesh:
    """Equal corners made one."""
    if len(corners) > 3 * MAX_TRIANGLES:
        return Mesh(corners.astype(np.float32), np.arange(len(corners), dtype=np.uint32).reshape(-1, 3))
    vertices, index = np.unique(corners.astype(np.float32), axis=0, return_inverse=True)
    return Mesh(vertices, index.reshape(-1, 3).astype(np.uint32))


def _obj(content: bytes) -> Mesh:
    vertices: list[tuple[float, float, float]] = []
    triangles: list[tuple[int, int, int]] = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0] == "v":
            if len(words) < 4:
                raise ValueError(f"line {number}: a corner has three numbers")
            vertices.append((float(words[1]), float(words[2]), float(words[3])))
        elif words[0] == "f":
            corners = [int(word.split("/", 1)[0]) for word in words[1:]]
            # Numbers count from 1; negative ones count back from the last corner so far.
            face = [c - 1 if c > 0 else len(vertices) + c for c in corners]
            if len(face) < 3 or not all(0 <= c < len(vertices) for c in face):
                raise ValueError(f"line {number}: a face names corners that are not there")
            triangles += [(face[0], face[k], face[k + 1]) for k in range(1, len(face) - 1)]
            if len(triangles) > MAX_TRIANGLES:
                break
    return Mesh(np.array(vertices, np.float32).reshape(-1, 3), np.array(triangles, np.uint32).reshape(-1, 3))
