"""Recorded scalars: what folds away, what is recorded once, how NumPy's functions reach them, what they refuse."""

import math

import numpy as np
import pytest

from linkwright.errors import RecordingError
from linkwright.tape import block as F
from linkwright.tape.block import Recorder
from linkwright.tape.build import record, trace
from linkwright.tape.operations import Table


@pytest.fixture
def rec():
    return Recorder()


@pytest.fixture
def xy(rec):
    return rec.input(0), rec.input(1)


def operations(function, *shapes) -> dict[str, int]:
    return record(function, *shapes).count()


# -- folding ------------------------------------------------------------------------------------------------
def test_constants_fold_to_constant_scalars_and_not_to_floats(rec):
    result = (rec.constant(2.0) * 3.0 + 1.0) / 2.0
    assert type(result) is type(rec.zero)
    assert result.value == 3.5


def test_zero_and_one_leave_no_operation(xy):
    x, y = xy
    assert x + 0.0 is x
    assert 0.0 + x is x
    assert x - 0.0 is x
    assert x * 1.0 is x
    assert x / 1.0 is x
    assert x**1 is x
    assert (x * 0.0).value == 0.0
    assert (0.0 / y).value == 0.0
    assert (x**0).value == 1.0


def test_a_scalar_minus_or_over_itself_is_a_constant(xy):
    x, _ = xy
    assert (x - x).value == 0.0
    assert (x / x).value == 1.0


def test_signs_move_outward_and_meet(xy):
    x, y = xy
    assert (-x).__neg__() is x
    assert (-x) * (-y) is x * y
    assert x + (-y) is x - y
    assert x - (-y) is x + y
    assert (-x) / (-y) is x / y
    assert (-x) * 3.0 is -(x * 3.0)
    assert x * -3.0 is -(x * 3.0)


def test_a_difference_is_recorded_in_one_order(xy):
    x, y = xy
    forward = x - y
    assert -(y - x) is forward
    assert repr(y - x).startswith("<recorded neg")


def test_even_and_odd_functions_take_signs_out(xy):
    x, _ = xy
    assert np.cos(-x) is np.cos(x)
    assert abs(-x) is abs(x)
    assert np.sin(-x) is -np.sin(x)
    assert np.tan(-x) is -np.tan(x)
    assert (-x).sign() is -(x.sign())


def test_factors_of_a_product_are_put_together(xy):
    x, _ = xy
    assert 2.0 * (3.0 * x) is 6.0 * x
    assert (x / 4.0) * 4.0 is x


def test_factors_are_not_put_together_where_that_would_under_or_overflow(rec, xy):
    small = (xy[0] * 1e-200) * 1e-200
    large = (xy[0] * 1e200) * 1e200
    assert small.value is None
    assert large.value is None


def test_division_of_constants_is_exact(rec):
    assert (rec.constant(49.0) / rec.constant(49.0)).value == 1.0


def test_division_by_a_tiny_constant_stays_a_division():
    assert operations(lambda x: x / 1e-310, ()) == {"div": 1}


def test_negative_zero_is_zero(rec, xy):
    assert rec.constant(-0.0) is rec.zero
    assert math.copysign(1.0, (-rec.zero).value) == 1.0
    assert xy[0] + -0.0 is xy[0]


def test_all_nan_constants_are_one_node(rec):
    before = len(rec.nodes)
    first, second = rec.constant(float("nan")), rec.constant(float("nan"))
    assert first is second
    assert len(rec.nodes) == before + 1
    assert math.isnan((first + 1.0).value)


def test_infinite_constants_fold_as_numpy_has_them(rec):
    infinite = rec.constant(math.inf)
    assert math.isnan((infinite * rec.zero).value)
    assert math.isnan((infinite - infinite).value)
    assert (1.0 / infinite).value == 0.0


@pytest.mark.parametrize("function", [np.sqrt, np.log])
def test_a_constant_outside_a_domain_folds_to_nan_as_in_numpy(rec, function):
    with np.errstate(invalid="ignore"):
        assert math.isnan(function(rec.constant(-1.0)).value)


def test_an_overflowing_constant_folds_to_infinity(rec):
    with np.errstate(all="ignore"):
        assert np.exp(rec.constant(1e4)).value == math.inf
        assert np.log(rec.zero).value == -math.inf


def test_powers_of_constants_are_real_or_nan(rec):
    assert math.isnan((rec.constant(-8.0) ** (1.0 / 3.0)).value)
    assert (rec.constant(-2.0) ** 3).value == -8.0


def test_whole_powers_become_products():
    assert operations(lambda x: x**5, ()) == {"mul": 3}
    assert operations(lambda x: x**-2, ()) == {"mul": 1, "div": 1}
    assert operations(lambda x: x**0.5, ()) == {"sqrt": 1}
    assert operations(lambda x: x**2.5, ()) == {"pow": 1}
    assert operations(lambda x: x**math.inf, ()) == {"pow": 1}


def test_a_where_with_a_known_condition_takes_its_side(rec, xy):
    x, y = xy
    assert rec.constant(1.0).where(x, y) is x
    assert rec.zero.where(x, y) is y
    assert (x < y).where(x, x) is x


def test_a_table_that_is_zero_everywhere_folds_away(xy):
    line = Table.spline([0.0, 1.0], [0.0, 2.0])
    assert xy[0].table(line.derivative().derivative()).value == 0.0


# -- one node a value ---------------------------------------------------------------------------------------
def test_equal_operations_are_one_node(xy):
    x, y = xy
    assert x * y is y * x
    assert x + y is y + x
    assert np.sin(x + y) is np.sin(y + x)
    assert np.arctan2(x, y) is not np.arctan2(y, x)


def test_what_the_outputs_do_not_need_is_left_out():
    def f(x):
        np.exp(x) * 7.0
        return np.sin(x)

    assert operations(f, 3) == {"sin": 3}


def test_recording_is_reproducible():
    def f(a, b):
        return np.linalg.norm(a @ b) + np.sum(a)

    assert record(f, (3, 3), (3, 3)).digest == record(f, (3, 3), (3, 3)).digest


# -- NumPy on object arrays -----------------------------------------------------------------------------------
UNARY = [
    np.sin, np.cos, np.tan, np.exp, np.log, np.sqrt, np.arctan, np.arcsin, np.arccos, np.sinh, np.cosh, np.tanh,
    np.square, np.reciprocal, np.negative, np.positive, np.abs, np.fabs, np.floor, np.deg2rad, np.rad2deg,
    np.radians, np.degrees, np.log10, np.conjugate,
]  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_numpy_s_function_of_one_array_is_recorded(function):
    x = np.array([0.1, 0.45, 0.83])
    block, _, _ = trace(function, [(3,)])
    np.testing.assert_allclose(np.array(block.evaluate(x)), function(x), rtol=1e-14)


@pytest.mark.parametrize("function", [np.arctan2, np.hypot, np.power, np.add, np.divide, np.subtract, np.multiply])
def test_numpy_s_function_of_two_arrays_is_recorded(function):
    x, y = np.array([0.1, 0.45, 0.83]), np.array([1.4, -0.2, 0.6])
    block, _, _ = trace(function, [(3,), (3,)])
    np.testing.assert_allclose(np.array(block.evaluate([*x, *y])), function(x, y), rtol=1e-14)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a @ b,
        lambda a, b: np.sum(a * b, axis=0),
        lambda a, b: np.linalg.norm(a) * np.ones(3),
        lambda a, b: np.cross(a[0], b[1]),
        lambda a, b: np.outer(a[0], b[1]),
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        lambda a, b: np.trace(a) + np.prod(b[0]),
        lambda a, b: np.block([[a, b], [b.T, np.eye(3)]]),
        lambda a, b: np.stack([a[0], b[:, 1], np.zeros(3)]),
        lambda a, b: np.dot(a[0], b[0]) * np.mean(a),
        lambda a, b: np.cumsum(a[0]) - 1 + np.float64(2.0) * b[0] / 3,
    ],
)
def test_array_expressions_give_what_they_give_on_floats(function):
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3))
    block, shapes, _ = trace(function, [(3, 3), (3, 3)])
    wanted = function(a, b)
    assert shapes == [np.shape(wanted)]
    np.testing.assert_allclose(
        np.reshape(block.evaluate([*a.ravel(), *b.ravel()]), np.shape(wanted)), wanted, rtol=1e-13
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.where(F.greater(x, 0.0), x, 2.0 * x),
        lambda x: F.minimum(x, 0.3) + F.maximum(x[0], x),
        lambda x: F.sign(x) + F.floor(10 * x) + F.absolute(x),
        lambda x: F.where(F.greater_equal(x, x[1]), 1.0, F.where(F.less(x, -0.2), 2.0, 3.0)),
        lambda x: F.where(F.equal(x, x[1]), 1.0, 0.0) + F.where(F.less_equal(x, 0.1), 5.0, 6.0),
        lambda x: F.where(x[0] == x[1], 1.0, 2.0) + F.where(x[1] != 0.4, 5.0, 6.0) + F.where(x[3], 7.0, 8.0),
        lambda x: F.arctan2(x, 2.0),
        lambda x: F.table(x, Table.spline([-1.0, 0.0, 1.0], [0.5, -1.0, 2.0])),
    ],
)
def test_the_tape_s_own_functions_work_on_floats_and_on_scalars(function):
    x = np.array([-0.7, 0.1, 0.4, 0.0])
    block, _, _ = trace(function, [(4,)])
    np.testing.assert_allclose(np.array(block.evaluate(x)), function(x), rtol=1e-14)


def test_a_block_in_float32_rounds_constants_comparisons_and_tables_to_it():
    spline = Table.spline([-1.0, 0.0, 1.0], [0.5, -1.0, 2.0])
    x = np.array([-0.7, 0.1], dtype=np.float32)
    block, _, _ = trace(
        lambda x: np.array([x[0] / 3.0, x[0] * 1e40, F.greater(x[0], 0.0) / 3.0, F.table(x[0], spline) + 1e-9]), [(1,)]
    )
    with np.errstate(over="ignore"):
        values = block.evaluate([x], np.float32)
    assert [value.dtype for value in values] == [np.float32] * 4
    third = np.float32(1.0) / np.float32(3.0)
    np.testing.assert_array_equal(values[0], x / np.float32(3.0))
    np.testing.assert_array_equal(values[1], [-np.inf, np.inf])
    np.testing.assert_array_equal(values[2], [0.0, third])
    np.testing.assert_array_equal(values[3], spline(x).astype(np.float32))


def test_an_array_beside_a_scalar_broadcasts(xy):
    x, _ = xy
    array = np.array([1.0, 2.0])
    for result in (x + array, array - x, x * array, x / array, x**array):
        assert result.shape == (2,)


def test_tanh_has_its_slope_at_zero_and_does_not_overflow():
    tanh = record(np.tanh, ())
    slope = tanh.forward()
    value, one = slope(0.0, 1.0)
    assert (value, one) == (0.0, 1.0)
    value, none = slope(400.0, 1.0)
    assert (value, none) == (1.0, 0.0)
    assert slope(-400.0, 1.0)[0] == -1.0


# -- what is refused --------------------------------------------------------------------------------------------
def test_the_truth_of_a_recorded_scalar_is_an_error_that_names_where():
    with pytest.raises(RecordingError, match=r"lw\.where"):
        record(lambda x: x if x > 0 else -x, ())


def test_comparing_arrays_by_a_sign_is_an_error_that_names_less():
    with pytest.raises(RecordingError, match=r"lw\.less"):
        record(lambda x: F.where(x > 0.0, x, -x), 2)


def test_equality_is_recorded_and_not_silently_false():
    with pytest.raises(RecordingError, match=r"lw\.where"):
        record(lambda x: 1.0 if x == 0 else x, ())


def test_numpy_s_maximum_of_recorded_scalars_is_an_error_that_names_ours():
    with pytest.raises(RecordingError, match=r"lw\.maximum"):
        record(lambda x: np.maximum(x[0], x[1]), 2)


def test_writing_into_zeros_is_an_error_that_says_how_to_build_arrays():
    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        return y

    with pytest.raises(RecordingError, match=r"np\.array, np\.stack or np\.block"):
        record(f, 2)


def test_scalars_of_two_recordings_do_not_mix():
    theirs = Recorder().input(0)
    with pytest.raises(RecordingError, match="another recording"):
        record(lambda x: x + theirs, ())


@pytest.mark.parametrize("thing", ["3", None, 1j, [1.0, 2.0]])
def test_what_is_not_a_number_is_refused_by_name(xy, thing):
    with pytest.raises(RecordingError, match=type(thing).__name__):
        xy[0] + thing


def test_division_by_a_constant_zero_is_an_error_while_recording(xy):
    with pytest.raises(ZeroDivisionError, match="recorded constant zero"):
        xy[0] / 0.0


def test_a_program_that_is_inlined_may_divide_by_what_is_zero_there():
    quotient = record(lambda x, y: x / y, (), ())
    inlined = record(lambda x: quotient(x, 0.0), ())
    assert [float(inlined(x)) for x in (2.0, -2.0)] == [np.inf, -np.inf]
    assert np.isnan(inlined(0.0))


def test_a_function_that_returns_no_numbers_is_refused():
    with pytest.raises(RecordingError, match="not an array of numbers"):
        record(lambda x: "nothing", ())


def test_the_garbage_collector_is_on_again_after_recording():
    import gc

    record(np.sin, 3)
    assert gc.isenabled()
    with pytest.raises(RecordingError):
        record(lambda x: bool(x), ())
    assert gc.isenabled()
