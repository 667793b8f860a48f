"""Recorded data are checked before they are used; each fault is a sentence that names the row."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import DataError, ExcitationError, NameNotFound

N = 200


@pytest.fixture
def signals() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(N), rng.standard_normal(N)


def written(path: Path, columns: dict[str, object], separator: str = ",") -> Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([separator.join(columns), *(separator.join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_file_gives_the_numbers_that_were_written(tmp_path, signals, separator) -> None:
    u, y = signals
    file = written(tmp_path / "a.csv", {"t": np.round(0.002 * np.arange(N), 6), "torque": u, "angle": y}, separator)
    record = lw.control.Record.read(file, u="torque", y="angle")
    np.testing.assert_array_equal(record.u, u)
    np.testing.assert_array_equal(record.y, y)
    assert record.dt == pytest.approx(0.002)


def test_times_with_few_digits_are_even(tmp_path, signals) -> None:
    t = np.round(np.arange(N) / 300.0, 4)  # differences are 0.0033 and 0.0034
    record = lw.control.Record.from_times(t, *signals)
    assert record.dt == pytest.approx(1 / 300, rel=1e-2)


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path, signals) -> None:
    file = written(tmp_path / "a.csv", {"t": np.arange(N), "torque": signals[0], "angle": signals[1]})
    with pytest.raises(NameNotFound, match="did you mean 'torque'"):
        lw.control.Record.read(file, u="torqe", y="angle")


@pytest.mark.parametrize(
    ("text", "told"), [("", "is empty"), ("nan", "is nan"), ("1e999", "is 1e999"), ("x1", "is 'x1', no number")]
)
def test_a_field_that_is_no_number_names_line_and_column(tmp_path, signals, text, told) -> None:
    u = [str(x) for x in signals[0]]
    u[41] = text
    file = written(tmp_path / "a.csv", {"t": np.arange(N), "u": u, "y": signals[1]})
    with pytest.raises(DataError, match=f"line 43, column 'u' {told}") as error:
        lw.control.Record.read(file)
    assert (error.value.row, error.value.column) == (43, "u")


def test_code_in_a_field_is_only_text(tmp_path, signals) -> None:
    u = [str(x) for x in signals[0]]
    u[3] = "__import__('os').getcwd()"
    with pytest.raises(DataError, match="no number"):
        lw.control.Record.read(written(tmp_path / "a.csv", {"t": np.arange(N), "u": u, "y": signals[1]}))


def test_a_short_row_is_named(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("u,y\n1,2\n3\n")
    with pytest.raises(DataError, match="line 3 has 1 fields, and the head names 2"):
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "must name the columns"),
        (b"u,u\n1,2\n", "each once"),
        (b"u,y\n", "no rows"),
        (b"u,y\n\xff\xfe,1\n", "as CSV"),
        (b'u,y\n"1,2\n', "as CSV"),
    ],
)
def test_a_file_that_is_no_table_says_so(tmp_path, content, told) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=told):
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("linkwright.control.identification.records.MOST_BYTES", 10)
    (tmp_path / "a.csv").write_text("u,y\n1,2\n3,4\n")
    with pytest.raises(DataError, match="at most 10 are read"):
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_comments_do_not_decide_what_parts_the_fields(tmp_path, signals, separator) -> None:
    file = written(tmp_path / "a.csv", {"u": signals[0], "y": signals[1]}, separator)
    file.write_text('# made by "x, y, z; version 2,\n\n' + file.read_text() + "  # the, end\n")
    record = lw.control.Record.read(file, dt=1.0)
    np.testing.assert_array_equal(record.y, signals[1])
    file.write_text(file.read_text() + separator.join("1x") + "\n")
    with pytest.raises(DataError, match=f"line {N + 5}, column 'y'"):
        lw.control.Record.read(file, dt=1.0)


@pytest.mark.parametrize("text", ["1_0", "\u0661", "0x10"])
def test_what_only_python_calls_a_number_is_none(tmp_path, signals, text) -> None:
    u = [text, *signals[0][1:]]
    with pytest.raises(DataError, match=r"line 2, column 'u' is .*, no number"):
        lw.control.Record.read(written(tmp_path / "a.csv", {"u": u, "y": signals[1]}), dt=1.0)


def test_a_decimal_comma_is_told_from_a_gap(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("u;y\n1,5;2\n")
    with pytest.raises(DataError, match=r"'1,5', no number: decimals are written with a point, 1\.5") as error:
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)
    assert "gap" not in str(error.value)
    (tmp_path / "a.csv").write_text("u,y\n1,5,2,5\n")
    with pytest.raises(DataError, match=r"4 fields, and the head names 2.*with points"):
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)


def test_a_field_and_a_line_have_a_longest_length(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("linkwright.control.identification.records.LONGEST_FIELD", 20)
    monkeypatch.setattr("linkwright.control.identification.records.LONGEST_LINE", 60)
    (tmp_path / "a.csv").write_text(f"u,y,more\n1,2,{'x' * 21}\n")
    with pytest.raises(DataError, match="line 2, column 'more' has 21 characters; at most 20"):
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)
    (tmp_path / "a.csv").write_text("u,y\n1," + "2" * 60)
    with pytest.raises(DataError, match="line 2 is longer than 60 characters"):
        lw.control.Record.read(tmp_path / "a.csv", dt=1.0)


def test_reading_takes_no_more_memory_than_the_file_has_bytes(tmp_path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{a!r},{b!r},{a!r},{b!r},{a!r}\n" for a, b in rng.standard_normal((20_000, 2)).tolist())
    file = tmp_path / "a.csv"
    file.write_text("u,y,a,b,c\n" + rows)
    lw.control.Record.read(file, dt=1.0)  # what is imported on the way does not count
    tracemalloc.start()
    lw.control.Record.read(file, dt=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < file.stat().st_size


def test_a_gap_and_uneven_sampling_name_the_row(signals) -> None:
    t = 0.002 * np.arange(N)
    gap = t.copy()
    gap[50:] += 0.006
    with pytest.raises(DataError, match="a gap of 3 samples at row 50") as error:
        lw.control.Record.from_times(gap, *signals)
    assert error.value.row == 50
    uneven = t.copy()
    uneven[70] += 0.0004
    with pytest.raises(DataError, match="uneven sampling at row 70"):
        lw.control.Record.from_times(uneven, *signals)
    back = t.copy()
    back[20] = back[19]
    with pytest.raises(DataError, match="time does not go on at row 20"):
        lw.control.Record.from_times(back, *signals)


def test_uneven_times_can_be_put_on_an_even_grid() -> None:
    rng = np.random.default_rng(1)
    t = np.sort(np.arange(400) * 0.01 + rng.uniform(0, 0.002, 400))
    record = lw.control.Record.from_times(t, np.sin(t), np.cos(t), dt=0.01, uneven="interpolate")
    np.testing.assert_allclose(record.u, np.sin(t[0] + record.time), atol=1e-4)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda u, y: (np.where(np.arange(N) == 17, np.nan, u), y), r"u is nan at row 17"),
        (lambda u, y: (u, np.where(np.arange(N) == 3, np.inf, y)), r"y is inf at row 3"),
        (lambda u, y: (u[:-1], y), "equally many"),
        (lambda u, y: (np.ones(N), y), "constant"),
        (lambda u, y: (u[:5], y[:5]), "too short"),
        (lambda u, y: (u[:, None], y), r"u\[:, 0\]"),
        (lambda u, y: (["a"] * N, y), "not an array of numbers"),
    ],
)
def test_arrays_that_cannot_be_used_say_why(signals, change, told) -> None:
    u, y = change(*signals)
    with pytest.raises(DataError, match=told):
        lw.control.Record(u, y, 0.01)


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_sines_are_persistently_exciting_of_twice_their_number(lines) -> None:
    u = lw.control.multisine(400, 0.01, (3.0, 30.0), lines=lines, periods=3)
    record = lw.control.Record(u, u, 0.01)
    assert record.excitation(20)[0] == 2 * lines
    with pytest.raises(ExcitationError, match=f"order {2 * lines} only") as error:
        record.require_excitation(2 * lines + 1)
    assert (error.value.order, error.value.wanted) == (2 * lines, 2 * lines + 1)
    assert record.require_excitation(2 * lines) > 0


def test_an_m_sequence_excites_every_order() -> None:
    u = lw.control.m_sequence(8)
    assert lw.control.Record(u, u, 1.0).excitation(50) == (50, pytest.approx(1.0, abs=0.9))


def test_trends_are_removed_and_parts_are_cut(signals) -> None:
    t = np.arange(N)
    record = lw.control.Record(signals[0] + 3.0 + 0.1 * t, signals[1] - 5.0, 0.1)
    assert abs(record.detrend().y.mean()) < 1e-12
    assert np.abs(np.polyfit(t, record.detrend("linear").u, 1)).max() < 1e-12
    first, rest = record.split(0.75)
    assert (len(first), len(rest)) == (150, 50)
    np.testing.assert_array_equal(np.concatenate([first.y, rest.y]), record.y)


def test_decimating_keeps_slow_sines_and_removes_what_would_fold() -> None:
    t = np.arange(4000) * 1e-3
    slow, fast = np.sin(2 * np.pi * 3 * t), np.sin(2 * np.pi * 97 * t)
    record = lw.control.Record(slow + fast, slow, 1e-3).decimate(10)
    assert record.dt == pytest.approx(1e-2)
    np.testing.assert_allclose(record.u[20:-20], slow[::10][20:-20], atol=2e-3)
    finer = lw.control.Record(slow, slow, 1e-3).resample(4e-4)
    np.testing.assert_allclose(finer.u, np.sin(2 * np.pi * 3 * finer.time), atol=1e-6)
    with pytest.raises(DataError, match="no whole factor"):
        record.resample(1.5e-2)


def test_a_record_does_not_change_with_the_arrays_it_was_made_of(signals) -> None:
    u, y = signals
    record = lw.control.Record(u, y, 0.1)
    before = record.u[0]
    u[0] += 1.0
    assert record.u[0] == before


def test_a_table_without_a_head_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bare.csv"
    file.write_text("\n".join(f"{k},{k % 3},{k % 5}" for k in range(20)))
    with pytest.raises(DataError, match=r"the first line is no head, it reads '0,0,0'"):
        lw.control.Record.read(file)


def test_the_time_column_of_our_own_tables_is_found(tmp_path: Path) -> None:
    arm = lw.chain(2)
    controller = lw.control.pid(arm, 1.0, 1.0, reference=lw.control.Sine([0.0, 0.0], [0.1, 0.0], 5.0))
    run = lw.control.Loop(arm, controller, period=2e-3).run(0.1)
    run.to_csv(tmp_path / "run.csv")
    first = run.drives[0]
    record = lw.control.Record.read(tmp_path / "run.csv", f"{first}.command [N m]", f"{first}.encoder [rad]")
    assert record.dt == pytest.approx(2e-3)
    assert repr(record).startswith("Record: 51 samples every 0.002 s")
