"""Arrays with named dimensions, labels and units, as plain data: what Datasets and NetCDF files are made of."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwright.model.body_motion import QUANTITIES

if TYPE_CHECKING:
    import xarray

    from linkwright.results.solution import Solution

AXES = ("x", "y", "z")
PARAMETERS = ("e0", "e1", "e2", "e3")
#: What a simulation keeps of the spanning tree at every time: its dimension, and what it is.
STATES = {
    "q": ("coordinate", "coordinates of the spanning tree"),
    "v": ("rate", "rates of the spanning tree"),
    "a": ("rate", "accelerations of the spanning tree"),
}


class Blocks(Protocol):
    """An array that is read block by block."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Rows of the array, and what they are."""


#: An array's dimensions, the array, and its attributes (units, long_name).
Variable = tuple[tuple[str, ...], NDArray[Any] | Blocks, Mapping[str, str]]


@dataclass(frozen=True)
class LabelledArrays:
    """Variables by name, `labels` (an xarray Dataset's coordinates) by name, and attributes of the whole."""

    variables: Mapping[str, Variable]
    labels: Mapping[str, Variable]
    attributes: Mapping[str, str]

    def dataset(self) -> xarray.Dataset:
        """The same as an xarray Dataset."""
        import xarray  # weight: xarray

        return xarray.Dataset(dict(self.variables), dict(self.labels), dict(self.attributes))

    def with_variables(self, variables: Mapping[str, Variable], **attributes: str) -> LabelledArrays:
        """The same with these `variables` and `attributes` behind those that there are."""
        return LabelledArrays({**self.variables, **variables}, self.labels, {**self.attributes, **attributes})

    def netcdf(self) -> memoryview:
        """The bytes of the file that `write` writes."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getbuffer()

    def write(self, target: BinaryIO) -> None:
        """Write the NetCDF 4 file, as `Dataset.to_netcdf` of xarray writes it, without the import of xarray (0.7 s).

        No variable gets a fill value: NaN stays NaN, and every number itself.
        """
        import h5netcdf  # weight: h5netcdf
        import h5py  # weight: h5py

        entries = {**self.variables, **self.labels}
        sizes = {name: n for dims, array, _ in entries.values() for name, n in zip(dims, array.shape, strict=True)}
        with h5netcdf.File(target, "w") as file:
            file.attrs.update(self.attributes)
            file.dimensions.update(sizes)
            for name, (dims, array, attributes) in entries.items():
                dtype = h5py.string_dtype() if array.dtype == object else array.dtype
                stored = file.create_variable(name, dims, dtype=dtype)
                stored.attrs.update(attributes)
                if name in self.variables and (labels := self._labels_beside(dims)):
                    stored.attrs["coordinates"] = labels
                if isinstance(array, np.ndarray):
                    stored[...] = array
                else:
                    for rows, block in array.blocks():
                        stored[rows] = block

    def _labels_beside(self, dimensions: tuple[str, ...]) -> str:
        """The labels along these dimensions that are none themselves, as the CF conventions name them."""
        along = (name for name, (dims, _, _) in self.labels.items() if dims != (name,) and {*dims} <= {*dimensions})
        return " ".join(sorted(along))


def texts(words: Any) -> NDArray[Any]:
    """Words as an array."""
    return np.array(list(words), dtype=object)


def motion_arrays(solution: Solution) -> LabelledArrays:
    """Every quantity of a solution with its dimensions, labels and units."""
    d = solution.description

    def marks(unit: str, text: str) -> dict[str, str]:
        """The attributes of numbers in SI, and the unit that the model would show them in, where it is another."""
        shown = d.units.shown(unit).text
        return {"units": unit, "long_name": text} | ({} if shown == unit else {"model_units": shown})

    variables: dict[str, Variable] = {}
    for name, (size, unit, text) in QUANTITIES.items():
        dimensions = ("time", "body", "axis" if size == 3 else "parameter")
        variables[name] = (dimensions, solution.arrays[name], marks(unit, text))
    variables["iterations"] = (("time",), solution.iterations, {"units": "1", "long_name": "Newton iterations"})
    labels: dict[str, Variable] = {
        "time": (("time",), solution.time, marks("s", "time")),
        "body": (("body",), texts(d.body_names), {"long_name": "body"}),
        "axis": (("axis",), texts(AXES), {"long_name": "axis of ground"}),
        "parameter": (("parameter",), texts(PARAMETERS), {"long_name": "Euler parameter"}),
    }
    if solution.series:
        units = [x.unit for x in solution.series.values()]
        table = np.stack([x.values for x in solution.series.values()], axis=1)
        text = f"forces and torques, in the units {', '.join(dict.fromkeys(units))}"
        variables["series"] = (("time", "name"), table, {"long_name": text})
        variables["unit"] = (("name",), texts(units), {"long_name": "unit of a series"})
        labels["name"] = (("name",), texts(solution.series), {"long_name": "name of a series"})
    if solution.states is not None:
        for name, (dimension, text) in STATES.items():
            variables[name] = (("time", dimension), getattr(solution.states, name), {"long_name": text})
    return LabelledArrays(variables, labels, {"title": d.name, "outcome": str(solution.status)})
