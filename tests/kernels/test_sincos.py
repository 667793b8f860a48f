"""The sines and cosines of kernels against 80-bit floats and mpmath, in units of the last place."""

import ctypes

import mpmath
import numpy as np
import pytest

from compilers import find, shared_library
from cuda_shim import WORDS
from linkwright.kernels.c.program_text import cuda_text
from linkwright.kernels.llvm.compiler import load, object_code
from linkwright.kernels.llvm.module_text import llvm_text
from linkwright.kernels.sincos import HALF_PI, LIMIT, WIDE_HALF_PI, WIDE_LIMIT
from linkwright.tape.build import record

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
WIDTHS = [1, 2, 4, 8]


@pytest.fixture(scope="module")
def entries():
    """Machine code for each width: x → sin x, cos x."""
    program = record(lambda x: np.array([np.sin(x[0]), np.cos(x[0])]), 1)
    codes = {w: object_code(llvm_text(program, "kernel", w, 1)) for w in WIDTHS}
    return {w: load(code, "kernel") for w, code in codes.items()}


def sincos(entries, x, width=8):
    """(n, 2): sines and cosines of n numbers, n a multiple of 8."""
    x, y, scratch = np.ascontiguousarray(x), np.empty((len(x), 2)), np.empty(64)
    ptrs = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    ENTRY(entries[width].address)(ptrs, (ctypes.c_int64 * 2)(1, 2), scratch.ctypes.data, len(x))
    return y


def exactly(x):
    """Sines and cosines as multiple-precision numbers."""
    with mpmath.workprec(200):
        return [(mpmath.sin(v), mpmath.cos(v)) for v in map(mpmath.mpf, x.tolist())]


def error(y, exact):
    """The largest error in units of the last place of the exact value."""
    worst = mpmath.mpf(0)
    for row, pair in zip(y.tolist(), exact, strict=True):
        for got, right in zip(row, pair, strict=True):
            worst = max(worst, abs(got - right) / float(np.spacing(abs(float(right)))))
    return float(worst)


def extended_error(y, x):
    """The same with 80-bit floats, for many numbers."""
    x = x.astype(np.longdouble)
    exact = np.stack([np.sin(x), np.cos(x)], 1)
    return float(np.max(np.abs(y - exact) / np.spacing(np.abs(exact.astype(np.float64)))))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("reach", [1.0, 7.0, 1e3, LIMIT, 5e5])
def test_sines_and_cosines_are_within_two_units_in_the_last_place(entries, reach, width):
    x = np.random.default_rng(width).uniform(-reach, reach, 2000)
    assert error(sincos(entries, x, width), exactly(x)) < 1.6


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="this machine's long double is no longer than a double")
@pytest.mark.parametrize("reach", [1.0, 7.0, 1e3, 5e5])
def test_a_million_sines_and_cosines_are_within_two_units(entries, reach):
    x = np.random.default_rng(0).uniform(-reach, reach, 1 << 18)
    assert extended_error(sincos(entries, x), x) < 1.6


@pytest.mark.parametrize("factor", [1, 2], ids=["quarter turns", "half turns"])
def test_zeros_are_met_to_the_last_place(entries, factor):
    """Doubles next to multiples of π/2: what is left of them after reduction is as small as it gets."""
    turns = np.unique(np.geomspace(1, 318_000 / factor, 1500).astype(int)) * factor
    with mpmath.workprec(100):
        x = np.array([float(mpmath.pi / 2 * int(n)) for n in turns])
    # The worst double below 5·10⁵ for each of sine and cosine, found by trying all.
    hard = [45.553093477052, 91.106186954104, 321307.9594422229, 490807.8786776798, 11661.591930125313]
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.inf), hard, np.negative(hard)])
    x = x[: len(x) // 8 * 8]
    assert error(sincos(entries, x), exactly(x)) < 1.6


def test_angles_next_to_the_fast_paths_limit_are_right(entries):
    x = np.array([LIMIT, np.nextafter(LIMIT, 0), np.nextafter(LIMIT, np.inf), LIMIT - 0.5])
    x = np.concatenate([x, -x])
    for width in WIDTHS:
        assert error(sincos(entries, x, width), exactly(x)) < 1.6


@pytest.mark.parametrize("width", WIDTHS)
def test_large_arguments_go_to_the_c_library(entries, width):
    x = np.array([6.6e4, -1e6, 1e15, -1e22, 1.7976931348623157e308, 2.0**1000, 5e5, -7e4])
    np.testing.assert_array_equal(sincos(entries, x, width), np.stack([libm("sin", x), libm("cos", x)], 1))


def libm(name, x):
    function = getattr(ctypes.CDLL(None), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return np.array([function(v) for v in x])


@pytest.mark.parametrize("width", WIDTHS)
def test_infinities_and_nan_give_nan_in_their_own_lane_alone(entries, width):
    x = np.array([np.inf, 0.3, -np.inf, 1e10, np.nan, -2.0, 0.0, 40.0])
    y = sincos(entries, x, width)
    bad = ~np.isfinite(x)
    assert np.isnan(y[bad]).all()
    near = np.where(np.abs(x) < LIMIT, x, 0.0)
    alone = sincos(entries, near, width)
    same = np.abs(x) < LIMIT
    np.testing.assert_array_equal(y[same], alone[same])  # to the bit, whatever the neighbours are


def test_small_angles_are_exact(entries):
    x = np.array([0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-9, -1e-9, 2.0**-30])
    y = sincos(entries, x)
    np.testing.assert_array_equal(y[:, 0], np.sin(x))
    np.testing.assert_array_equal(y[:, 1], 1.0)


def test_the_parts_of_half_pi_add_up():
    with mpmath.workprec(300):
        rest = mpmath.pi / 2 - sum(map(mpmath.mpf, HALF_PI))
        assert abs(rest) < mpmath.mpf(2) ** -128
    for part, place in zip(HALF_PI[:2], (36, 73), strict=True):
        assert (part * 2.0**place).is_integer()


@pytest.fixture(scope="module")
def of_cuda(tmp_path_factory):
    """The function of CUDA's text on the CPU: x → sin x, cos x."""
    text = cuda_text(record(lambda x: np.array([np.sin(x), np.cos(x)]), (), name="pair"))
    start = text.index("static __device__ void pair_sincos")
    function = text[start : text.index("\n}\n", start) + 3]
    text = f'{WORDS}{function}extern "C" void run(double x, double *y) {{ pair_sincos(x, y, y + 1); }}\n'
    library = shared_library(text, tmp_path_factory.mktemp("sincos"), find("g++", "clang++", "c++"), ["-O1"], ".cpp")

    def run(x):
        y = np.empty((len(x), 2))
        for row, number in zip(y, x.tolist(), strict=True):
            library.run(ctypes.c_double(number), ctypes.c_void_p(row.ctypes.data))
        return y

    return run


@pytest.mark.parametrize("reach", [1.0, 7.0, 1e3, LIMIT, 1e9, 0.999 * WIDE_LIMIT])
def test_cudas_text_is_within_two_units_in_the_last_place_beside_multiples_of_a_quarter_turn_too(of_cuda, reach):
    rng = np.random.default_rng(1)
    with mpmath.workprec(200):
        quarters = [float(k * mpmath.pi / 2) for k in rng.integers(-int(0.6 * reach) - 1, int(0.6 * reach) + 1, 500)]
    x = np.concatenate([rng.uniform(-reach, reach, 1500), quarters])
    assert error(of_cuda(x), exactly(x)) < 1.6


def test_cudas_text_gives_nan_where_angles_mean_nothing(of_cuda):
    x = np.array([np.nan, np.inf, -np.inf, WIDE_LIMIT, -WIDE_LIMIT, 1e300])
    assert np.isnan(of_cuda(x)).all()
    assert np.isfinite(of_cuda(np.array([np.nextafter(WIDE_LIMIT, 0.0), 0.0, 5e-324]))).all()


def test_half_pi_of_cudas_text_is_the_number_to_three_doubles():
    with mpmath.workprec(400):
        assert abs(mpmath.pi / 2 - sum(map(mpmath.mpf, WIDE_HALF_PI))) < mpmath.mpf(2) ** -155
