"""The files that a model names, read only where that is allowed: in the model's folder and in folders the caller names.

    folder = Folder.of("robot/model.xml", folders=["/robots/common"])
    root = folder.parse()                                    # the model file itself
    with folder.open("parts/arm.xml", element) as part:      # `element`: the XML element that names it, for errors
        part.root                                            # parsed, like the model; `folder.open` inside nests
    path = folder.find("meshes/hand.stl", element)           # a file that is only looked up, such as a mesh

Names are looked up from the folder of the file that is being read, then from the model's own folder, then from the
folders that the caller named. What leads outside of these (an absolute path, `..`, a symbolic link) is refused, as
are files that include themselves, directly or in a ring, and more files, bytes or elements in all than a model can
need. Nothing outside is opened; errors do not say either whether it exists.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from linkwright.base.arguments import shortened
from linkwright.errors import FormatError, ModelError
from linkwright.formats.model_files import MAX_BYTES, read_bytes
from linkwright.formats.xml import MAX_ELEMENTS, Budget, parse_bytes

MAX_FILES = 1000
MAX_DEPTH = 32


@dataclass(frozen=True)
class Part:
    """A file of a model: its path, and the root of what is in it."""

    path: Path
    root: Any


class Folder:
    """Where a model's files may be; it counts what is read from there."""

    def __init__(self, model: Path, roots: Sequence[Path]) -> None:
        self.model = model
        self._roots = list(roots)  # real paths: the model's own folder first
        self._stack: list[Path] = [Path(os.path.realpath(model))]
        self._budget = Budget(MAX_ELEMENTS, MAX_BYTES)
        self._files = 0

    @classmethod
    def of(cls, model: str | os.PathLike[str], folders: Sequence[str | os.PathLike[str]] = ()) -> Folder:
        """The folder of a model file, and further folders whose files it may use."""
        if isinstance(folders, str | os.PathLike):
            folders = [folders]
        roots = []
        for folder in (Path(model).parent, *map(Path, folders)):
            if not folder.is_dir():
                raise ModelError(f"folders: {str(folder)!r} is no folder; name one that is there", element=str(folder))
            roots.append(Path(os.path.realpath(folder)))
        return cls(Path(model), roots)

    @property
    def file(self) -> str:
        """The file that is being read, as errors show it."""
        return str(self.model) if len(self._stack) == 1 else str(self._stack[-1])

    @property
    def here(self) -> Path:
        """The folder of the file that is being read."""
        return self._roots[0] if len(self._stack) == 1 else self._stack[-1].parent

    def parse(self) -> Any:
        """The root element of the model file."""
        return parse_bytes(read_bytes(self.model, MAX_BYTES), str(self.model), self._budget)

    @contextmanager
    def open(self, name: str, element: Any = None) -> Iterator[Part]:
        """A file that the one being read includes; inside the block, that file is the one being read."""
        path = self.find(name, element)
        if path in self._stack:
            ring = " → ".join(one.name for one in [*self._stack[self._stack.index(path) :], path])
            raise self._fail(f"{shortened(name)} includes itself: {ring}; remove one of these includes", element, name)
        if len(self._stack) >= MAX_DEPTH:
            text = f"{shortened(name)} is included more than {MAX_DEPTH} files deep; flatten the files"
            raise self._fail(text, element, name)
        data = self._bytes(path, name, element)
        self._stack.append(path)
        try:
            yield Part(path, parse_bytes(data, str(path), self._budget))
        finally:
            self._stack.pop()

    def exists(self, name: str, element: Any = None) -> bool:
        """Whether a file of this name is where the model may read; what leads outside is not there."""
        try:
            self.find(name, element)
        except FormatError:
            return False
        return True

    def find(self, name: str, element: Any = None, *, base: str | os.PathLike[str] | None = None) -> Path:
        """The real path of a file that the model names; `base` is a folder to look in first (meshdir), as text."""
        path = os.path.join(base, name) if base is not None and str(base) and not _is_absolute(name) else name
        outside, shown = False, shortened(name)
        if not path or "\0" in path:
            raise self._fail(f"names the file {shown}, which no file can be called", element, name)
        folders = tuple(dict.fromkeys((self.here, *self._roots)))
        for folder in folders:
            # Drives and shares of other systems are no paths here. Links are followed from allowed places only, so
            # that nothing outside is even looked at.
            lexical = Path(os.path.normpath(path if _is_absolute(path) else folder / path))
            real = Path(os.path.realpath(lexical)) if self._inside(lexical) else lexical
            if not self._inside(real):
                outside = True
            elif self._regular(real, name, element):
                return real
        if outside:
            how = "an absolute path" if _is_absolute(name) else "a path that leads there by '..' or a link"
            text = f"names the file {shown}, outside of the model's folder ({how}); if it is to be trusted, name its "
            text += "folder: lw.load(..., folders=[...]), or linkwright convert --folder"
            raise self._fail(text, element, name)
        where = ", ".join(map(str, folders))
        raise self._fail(f"names the file {shown}, which is not in {where}", element, name)

    def _inside(self, path: Path) -> bool:
        return any(path == root or root in path.parents for root in self._roots)

    def _regular(self, path: Path, name: str, element: Any) -> bool:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return False
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            text = f"names {shortened(name)}, which is a device or a pipe; only plain files are read"
            raise self._fail(text, element, name)
        return stat.S_ISREG(mode)

    def _bytes(self, path: Path, name: str, element: Any) -> bytes:
        self._files += 1
        if self._files > MAX_FILES:
            text = (
                f"names more than {MAX_FILES} files in all (the last is {shortened(name)}); a model never needs so many"
            )
            raise self._fail(text, element, name)
        return read_bytes(path, MAX_BYTES)

    def _fail(self, message: str, element: Any, name: str) -> FormatError:
        line = None if element is None else element.sourceline
        return FormatError(message, file=self.file, line=line, element=name)


def _is_absolute(name: str) -> bool:
    """Absolute here, or on any other system: drives and shares are never inside a model's folder."""
    windows = PureWindowsPath(name)
    return PurePosixPath(name).is_absolute() or bool(windows.drive) or name.startswith("\\")
