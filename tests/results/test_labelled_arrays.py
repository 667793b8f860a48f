"""NetCDF files are written without xarray, and are those that xarray writes."""

import io
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pytest
from xarray.backends import H5NetCDFStore

import linkwright as lw
from linkwright.results.labelled_arrays import LabelledArrays, motion_arrays, texts
from linkwright.sweeps.study_files import case_arrays

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"


def by_xarray(arrays: LabelledArrays) -> memoryview:
    buffer, data = io.BytesIO(), arrays.dataset()
    with h5netcdf.File(buffer, "w") as file:
        data.dump_to_store(H5NetCDFStore(file), encoding={name: {"_FillValue": None} for name in data.variables})
    return buffer.getbuffer()


def contents(file: memoryview) -> dict[str, Any]:
    """All that HDF5 has in a file: types, shapes, layouts, dimensions, numbers and attributes."""
    with h5py.File(io.BytesIO(file)) as group:
        found: dict[str, Any] = {name: _entry(variable) for name, variable in group.items()}
        found[""] = _attributes(group)
    return found


def _entry(variable: Any) -> tuple[Any, ...]:
    dimensions = [[scale.name for scale in dimension.values()] for dimension in variable.dims]
    layout = variable.dtype, variable.shape, variable.maxshape, variable.chunks, variable.fillvalue
    numbers = variable[...].tolist() if variable.dtype == object else variable[...].tobytes()
    return (layout, dimensions, numbers, _attributes(variable))


def _attributes(thing: Any) -> dict[str, Any]:
    references = ("DIMENSION_LIST", "REFERENCE_LIST")  # their order says when a variable was written
    names = [name for name in thing.attrs if name not in references]
    return {name: (h5py.h5a.open(thing.id, name.encode()).dtype, _plain(thing.attrs[name])) for name in names}


def _plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray) else x


def simulated() -> LabelledArrays:
    return motion_arrays(lw.simulate(lw.chain(2), t_end=0.1, q0=[0.5, 0.1]))


def with_forces() -> LabelledArrays:
    return motion_arrays(lw.analyse(lw.chain(2), times=[0.0, 0.1], analysis="dynamic"))


def prescribed() -> LabelledArrays:
    return motion_arrays(lw.analyse(MODELS / "slider_crank.mks"))


def swept() -> LabelledArrays:
    study = lw.sweep(MODELS / "four_bar.mks", {"coupler": [2.8, 9.0], "rocker": [2.4]}, ["pen.y"], times=[0.0, 0.5])
    arrays = case_arrays(study.task, study.plan, study._outputs)
    variables = {name: x for name, x in arrays.variables.items() if name != "ok"}
    return LabelledArrays(variables, arrays.labels, arrays.attributes)


@pytest.mark.parametrize("make", [simulated, with_forces, prescribed, swept])
def test_a_file_is_what_xarray_writes(make: Any) -> None:
    arrays = make()
    assert contents(arrays.netcdf()) == contents(by_xarray(arrays))


def test_odd_numbers_and_words_stay_themselves() -> None:
    numbers = np.array([np.nan, -0.0, np.inf, 9.969209968386869e36])
    arrays = LabelledArrays({"x": (("n",), numbers, {"long_name": "ü"})}, {"n": (("n",), texts("aüc∂"), {})}, {})
    with h5py.File(io.BytesIO(arrays.netcdf())) as group:
        assert group["x"][...].tobytes() == numbers.tobytes()
        assert group["n"].asstr()[...].tolist() == list("aüc∂")
    assert contents(arrays.netcdf()) == contents(by_xarray(arrays))


def test_an_empty_motion_is_written_too() -> None:
    empty = LabelledArrays({"x": (("time", "axis"), np.zeros((0, 3)), {})}, {"time": (("time",), np.zeros(0), {})}, {})
    assert contents(empty.netcdf()) == contents(by_xarray(empty))
