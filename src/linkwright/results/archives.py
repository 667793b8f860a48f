"""Arrays out of archives that nobody vouches for: none is larger than its file, and nothing in one is run."""

from __future__ import annotations

import zipfile
from typing import Any

from numpy.typing import NDArray

from linkwright.base.arrays import array_of

#: What reading a damaged archive, or a text in it, may raise.
DAMAGE = (
    zipfile.BadZipFile,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    RecursionError,
    MemoryError,
    OverflowError,
)


def plain_array(archive: zipfile.ZipFile, name: str, size: int) -> NDArray[Any] | None:
    """The array of a name in an archive of so many bytes; none where it is packed, so that it might be any size."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > size:
        return None
    return array_of(archive.read(info))


def fits_shape(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether a shape is the wanted one, where None is any number."""
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))
