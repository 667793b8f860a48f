"""The first bytes of an HDF5 file, looked at before the HDF5 library sees it: it allocates whatever they say."""

from __future__ import annotations

import struct

SIZE = 96  # bytes, of the longest
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_NOWHERE = 2**64 - 1


def fault(head: bytes) -> str:
    """What is wrong with the first SIZE bytes of a file that a NetCDF writer could have made; empty if nothing is.

    A block of driver information, and an extension of the superblock, are read whole, of any size that they claim;
    files of numbers have neither.
    """
    if not head.startswith(_SIGNATURE) or len(head) < SIZE:
        return "is no NetCDF 4 file"
    version = head[8]
    if version in (0, 1):
        sizes, start = (head[13], head[14]), 24 + 4 * version
        base, _, _, extra = struct.unpack_from("<4Q", head, start)
    elif version in (2, 3):
        sizes = head[9], head[10]
        base, extra = struct.unpack_from("<2Q", head, 12)
    else:
        return f"is no NetCDF 4 file that is read here (its superblock has version {version})"
    return "" if sizes == (8, 8) and (base, extra) == (0, _NOWHERE) else "is damaged in its first bytes"
