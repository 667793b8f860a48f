"""Arrays from bytes: those that NumPy wrote come back, and no header is believed that the bytes do not bear out."""

import io

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkwright.base.arrays import array_of

PLAIN = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"


def written(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def headed(text: bytes, body: bytes = b"\0" * 16, version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + (len(text) + 1).to_bytes(2, "little") + text + b"\n" + body


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<i4", ">i8", "|u1", "<u2", "|i1"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (1, 2, 3)])
def test_what_numpy_writes_comes_back(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
    for one in (array, np.array(array, order="F")):
        found = array_of(written(one))
        assert_array_equal(found, array)
        assert found.shape == shape
        assert found.dtype == array.dtype.newbyteorder("=")
        assert found.flags.c_contiguous


def test_a_plain_header_is_believed():
    assert_array_equal(array_of(headed(PLAIN)), np.zeros(2))


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"('", b"(" * 500, PLAIN[:-1], PLAIN.replace(b"}", b"} + 1"), PLAIN.replace(b"2", b"-2")),
        *(PLAIN.replace(b"2", size) for size in (b"3", b"1", b"2 2", b"2,,2", b"9" * 30, b"4294967296, 4294967296")),
        *(PLAIN.replace(b"(2,)", shape) for shape in (b"2", b"(0, 99999999999999999999)", b"(1,) * 2", b"()")),
        *(PLAIN.replace(b"<f8", kind) for kind in (b"|O", b"<U4", b"<c16", b"<M8[s]", b"<f16", b"|V8", b"<f3")),
    ],
)
def test_another_header_is_refused(text):
    with pytest.raises(ValueError, match="an array"):
        array_of(headed(text))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", headed(PLAIN)[:-1], headed(PLAIN) + b"\0"])
def test_bytes_that_are_missing_or_too_many_are_refused(content):
    with pytest.raises(ValueError, match="an array"):
        array_of(content)


def test_later_versions_of_the_format_are_refused():
    with pytest.raises(ValueError, match="an array"):
        array_of(headed(PLAIN, version=b"\x02\x00"))
