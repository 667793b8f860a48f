"""The first bytes of HDF5 files: those of every version that NetCDF writers make pass, and none that claims more."""

import io

import h5py
import pytest

from linkwright.results.solution_files import SIZE, fault


def head(libver: str) -> bytearray:
    file = io.BytesIO()
    with h5py.File(file, "w", libver=libver) as made:
        made["x"] = [1.0, 2.0]
    return bytearray(file.getvalue()[:SIZE])


@pytest.mark.parametrize("libver", ["earliest", "v108", "v110", "latest"])
def test_what_the_library_writes_passes(libver):
    assert fault(bytes(head(libver))) == ""


@pytest.mark.parametrize(
    ("libver", "place", "word"),
    [
        ("earliest", 48, "damaged"),  # driver information
        ("earliest", 24, "damaged"),  # the base address
        ("earliest", 13, "damaged"),  # the size of addresses
        ("v110", 20, "damaged"),  # the extension
        ("v110", 9, "damaged"),
        ("earliest", 8, "superblock has version"),
        ("earliest", 0, "no NetCDF 4 file"),
    ],
)
def test_a_byte_that_is_another_is_told(libver, place, word):
    content = head(libver)
    content[place] ^= 0x60
    assert word in fault(bytes(content))


def test_a_file_that_is_too_short_is_told():
    assert "no NetCDF 4 file" in fault(bytes(head("earliest")[:40]))
