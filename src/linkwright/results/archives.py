"""Arrays out of archives that nobody vouches for: none is larger than its file, and nothing in one is run."""

from __future__ import annotations

import io
import tokenize
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What reading a damaged archive, or a text in it, may raise.
DAMAGE = (
    zipfile.BadZipFile,
    tokenize.TokenError,  # NumPy takes an array's header for Python's text
    SyntaxError,
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
    found = np.lib.format.read_array(io.BytesIO(archive.read(info)), allow_pickle=False)
    return np.ascontiguousarray(found)
