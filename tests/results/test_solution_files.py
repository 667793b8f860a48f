"""Solutions written and read again, and files that are not what they should be."""

import contextlib
import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from motions import crank, crank_motion
from numpy.testing import assert_array_equal

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightError, LinkwrightWarning, ModelError
from linkwright.model.body_motion import QUANTITIES
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status

TIME = np.linspace(0.0, 1.0, 11)
MODEL = "MODEL crank;  # ü"
STATUS = Status(
    ok=False,
    message="the driver 'motor' cannot go on",
    reason="dead centre",
    time=0.1 + 0.2,
    element="motor",
    residual=float("inf"),
    notes=("passed a singular position", "ü"),
    advice="Shorten the coupler.",
)
COUNTERS = Counters(newton_iterations=2**40, tape_evaluations=3, linear_solves=4, substeps=5, points=11)


@pytest.fixture(autouse=True)
def language(monkeypatch: pytest.MonkeyPatch) -> None:
    """A modelling language of one model, so that these tests are about files alone."""

    def parse(text: str) -> Any:
        if text != MODEL:
            raise ModelError("line 1: no such model")
        return crank().description

    contents: dict[str, dict[str, Any]] = {
        "linkwright.formats.mks": {},
        "linkwright.formats.mks.mks_writer": {"write_mks": lambda d: MODEL},
        "linkwright.formats.mks.mks_reader": {"parse_mks": parse, "MAX_BYTES": 1000},
    }
    for name, content in contents.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.nc"
    crank_motion(TIME, status=STATUS, counters=COUNTERS).save(path)
    return path


def same(a: Solution, b: Solution) -> None:
    assert a.time.tobytes() == b.time.tobytes()
    for quantity in QUANTITIES:
        assert a.arrays[quantity].tobytes() == b.arrays[quantity].tobytes()
    assert_array_equal(a.iterations, b.iterations)


@pytest.mark.parametrize("points", [0, 1, 11])
def test_what_was_saved_is_opened_to_the_same_bits(points: int, tmp_path: Path) -> None:
    before = crank_motion(TIME[:points], status=STATUS, counters=COUNTERS)
    before.save(tmp_path / "x.nc")
    after = lw.open(tmp_path / "x.nc")
    same(before, after)
    assert after.status == STATUS
    assert after.counters == COUNTERS
    assert list(after.description.body_names) == ["crank", "block"]


def test_numbers_that_are_none_come_back_as_they_were(tmp_path: Path) -> None:
    whole = crank_motion(TIME)
    arrays = {name: array.copy() for name, array in whole.arrays.items()}
    arrays["acceleration"][3] = np.nan
    arrays["velocity"][4] = [-0.0, np.inf, 5e-324]
    status = Status(ok=True, time=float("nan"))
    before = Solution.of(
        whole.description, TIME, **arrays, status=status, counters=Counters(), iterations=whole.iterations
    )
    before.save(tmp_path / "x.nc")
    after = lw.open(tmp_path / "x.nc")
    same(before, after)
    assert after.status.time is not None
    assert np.isnan(after.status.time)


def test_any_reader_of_netcdf_finds_labels_and_units(file: Path) -> None:
    import xarray

    with xarray.open_dataset(file, engine="h5netcdf") as data:
        assert_array_equal(data.position.sel(body="crank", axis="x"), crank_motion(TIME).position("crank")[:, 0])
        assert data.velocity.attrs["units"] == "m/s"
        assert list(data.parameter.values) == ["e0", "e1", "e2", "e3"]
        assert "the driver 'motor' cannot go on" in data.attrs["outcome"]


def test_a_solution_that_was_opened_is_saved_to_the_same_bits(file: Path, tmp_path: Path) -> None:
    lw.open(file).save(tmp_path / "y.nc")
    same(lw.open(file), lw.open(tmp_path / "y.nc"))


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = file.read_bytes()
    with pytest.raises(LinkwrightError, match=r"cannot write .*x\.nc: No space left"):
        crank_motion(TIME).save(file)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["x.nc"]


def test_a_model_too_large_to_read_again_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printer = sys.modules["linkwright.formats.mks.mks_writer"]
    monkeypatch.setattr(printer, "write_mks", lambda d: "x" * 1001)
    with pytest.warns(LinkwrightWarning, match=r"x\.nc is written, but its model is too large"):
        crank_motion(TIME).save(tmp_path / "x.nc")
    assert (tmp_path / "x.nc").exists()


def test_meshes_are_looked_for_beside_the_file(file: Path) -> None:
    assert lw.open(file).description.folder == str(file.parent)


# -- files that are not what they should be ------------------------------------------------------------
def refused(path: Path, match: str) -> None:
    with pytest.raises(FormatError, match=match) as caught:
        lw.open(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.file == str(path)


def test_what_is_no_file_of_ours_is_refused_with_a_word(tmp_path: Path) -> None:
    refused(tmp_path / "missing.nc", "there is no such file; give one")
    refused(tmp_path, "is no file; give one that Solution.save wrote")
    for name, content in {"empty": b"", "text": b"MODEL crank;\n", "zeros": bytes(4096)}.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, "is no NetCDF 4 file; give one that Solution.save wrote")
    with h5py.File(tmp_path / "other.nc", "w") as other:
        other["position"] = np.zeros(3)
    refused(tmp_path / "other.nc", "has no variable 'header': it is not a solution")


def test_a_file_cut_short_anywhere_is_refused(file: Path) -> None:
    content = file.read_bytes()
    for size in np.linspace(0, len(content) - 1, 60).astype(int):
        file.write_bytes(content[:size])
        refused(file, "cut short|no NetCDF")


def header(**values: Any) -> Callable[[Any], None]:
    """A header with other values; None takes one away."""

    def change(group: Any) -> None:
        old = json.loads(group["header"][...].tobytes())
        content(json.dumps({k: v for k, v in {**old, **values}.items() if v is not None}))(group)

    return change


def status(**values: Any) -> Callable[[Any], None]:
    def change(group: Any) -> None:
        old = json.loads(group["header"][...].tobytes())["status"]
        header(status={**old, **values})(group)

    return change


def content(text: str) -> Callable[[Any], None]:
    def change(group: Any) -> None:
        del group["header"]
        group["header"] = np.frombuffer(text.encode(), np.uint8)

    return change


def variable(name: str, **options: Any) -> Callable[[Any], None]:
    def change(group: Any) -> None:
        del group[name]
        if options:
            group.create_dataset(name, **options)

    return change


def link(name: str, target: Any) -> Callable[[Any], None]:
    def change(group: Any) -> None:
        del group[name]
        group[name] = target

    return change


def group_in_place(group: Any) -> None:
    del group["velocity"]
    group.create_group("velocity")


def virtual(group: Any) -> None:
    del group["velocity"]
    layout = h5py.VirtualLayout((11, 2, 3), np.float64)
    layout[...] = h5py.VirtualSource("other.h5", "x", (11, 2, 3))
    group.create_virtual_dataset("velocity", layout)


SHAPE = (11, 2, 3)
DEFECTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "no header": (variable("header"), "has no variable 'header'"),
    "no JSON": (content("{"), "a header that is no JSON"),
    "no ASCII": (content('"ü"'), "a header that is no JSON"),
    "nested": (content("[" * 100_000), "a header that is no JSON"),
    "a list": (content("[]"), "a header that is not of the format"),
    "endless number": (content("9" * 5000), "a header that is no JSON"),
    "words in place of bytes": (variable("header", data=np.zeros(3)), "'header' of type float64"),
    "no model": (header(model=None), "has no model"),
    "model a number": (header(model=1), "has no model"),
    "other model": (header(model="x"), r"a model that cannot be read \(line 1: no such model\)"),
    "other format": (header(format="movie"), "not of the format 'linkwright solution'"),
    "newer version": (header(version=2), "has the format version 2, written by .*; update Linkwright"),
    "version a word": (header(version="1"), "which is none"),
    "version zero": (header(version=0), "which is none"),
    "version true": (header(version=True), "which is none"),
    "status a list": (header(status=[]), "words on its status that are not"),
    "status more": (status(more=1), "words on its status that are not"),
    "status empty": (header(status={}), "words on its status that are not"),
    "ok a word": (status(ok="yes"), "words on its status that are not"),
    "note a number": (status(notes=[1]), "words on its status that are not"),
    "time a word": (status(time="soon"), "words on its status that are not"),
    "residual a list": (status(residual=[]), "words on its status that are not"),
    "element a number": (status(element=3), "words on its status that are not"),
    "no counters": (header(counters=None), "counters that are not"),
    "count a word": (header(counters={"points": "many"}), "counts 'points' as 'many'"),
    "count negative": (header(counters={"points": -1}), "counts 'points' as -1"),
    "other bodies": (header(bodies=["a", "b"]), "names other bodies"),
    "bodies a number": (header(bodies=2), "names other bodies"),
    "no velocity": (variable("velocity"), "has no variable 'velocity'"),
    "wrong shape": (variable("velocity", data=np.zeros((11, 3, 2))), r"'velocity' of shape \(11, 3, 2\) where"),
    "wrong rank": (variable("time", data=np.zeros((11, 1))), r"'time' of shape \(11, 1\) where"),
    "scalar": (variable("time", data=0.0), r"'time' of shape \(\) where"),
    "shapeless": (variable("time", data=h5py.Empty("f8")), "'time' without a shape"),
    "fewer times": (variable("time", data=np.zeros(10)), "where .10, 2, 3. is needed"),
    "whole numbers": (variable("velocity", data=np.zeros(SHAPE, int)), "'velocity' of type int64"),
    "half precision": (variable("velocity", data=np.zeros(SHAPE, "f4")), "'velocity' of type float32"),
    "references": (variable("velocity", shape=SHAPE, dtype=h5py.ref_dtype), "'velocity' of type object"),
    "huge": (variable("time", shape=(10**12,), dtype="f8", chunks=(1024,)), "packed or cut short"),
    "huge and whole": (variable("time", shape=(10**12,), dtype="f8"), "packed or cut short"),
    "packed": (variable("velocity", data=np.zeros(SHAPE), compression="gzip"), "packed or cut short"),
    "endless time": (variable("time", data=np.full(11, np.nan)), "times that are no numbers"),
    "soft link": (link("velocity", h5py.SoftLink("/position")), "a link in place of the variable 'velocity'"),
    "external link": (link("velocity", h5py.ExternalLink("y.nc", "/position")), "a link in place of the variable"),
    "group": (group_in_place, "a group in place of the variable 'velocity'"),
    "virtual": (virtual, "keeps the variable 'velocity' in another file"),
    "raw": (variable("velocity", shape=SHAPE, dtype="f8", external=[("raw", 0, 528)]), "in another file"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_named_with_the_file(defect: str, file: Path) -> None:
    change, match = DEFECTS[defect]
    with h5py.File(file, "r+") as group:
        change(group)
    refused(file, match)


def test_bytes_changed_anywhere_give_an_answer_or_a_format_error(file: Path) -> None:
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(content)
        for at in rng.integers(len(content), size=int(rng.integers(1, 6))):
            changed[at] = rng.integers(256)
        file.write_bytes(changed)
        with contextlib.suppress(FormatError):
            same(lw.open(file), lw.open(file))


def test_numbers_of_the_other_byte_order_are_read(file: Path) -> None:
    wanted = crank_motion(TIME).velocity("crank")
    with h5py.File(file, "r+") as group:
        data = group["velocity"][...]
        del group["velocity"]
        group.create_dataset("velocity", data=data.astype(">f8"))
    assert_array_equal(lw.open(file).velocity("crank"), wanted)
