"""Outputs that are read when they are asked for, as variables of xarray: what is sliced alone is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from linkwright.base.arrays import Longs
from linkwright.errors import ModelError
from linkwright.results.labelled_arrays import LabelledArrays
from linkwright.sweeps.stored_outputs import StoredColumn


class _Array(BackendArray):
    """A column by its cases, or by the points of a grid of cases, whose axes come last."""

    def __init__(self, column: StoredColumn, grid: Longs | None = None) -> None:
        self.column, self.grid = column, grid
        self.dtype = column.dtype
        self.shape = column.shape if grid is None else (*column.shape[1:], *grid.shape)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._at)

    def _at(self, key: tuple[Any, ...]) -> Any:
        if self.grid is None:
            keys, cases = key[1:], np.arange(self.shape[0])[key[0]]
            numbers = self.column.at(np.atleast_1d(cases), keys)
            return numbers.reshape(cases.shape + numbers.shape[1:])
        others = len(self.shape) - self.grid.ndim
        cases = self.grid
        for axis in range(cases.ndim - 1, -1, -1):
            cases = cases[(slice(None),) * axis + (key[others + axis],)]
        numbers = self.column.at(cases.reshape(-1), key[:others])
        return np.moveaxis(numbers, 0, -1).reshape(numbers.shape[1:] + cases.shape)


def lazy(dimensions: tuple[str, ...], column: StoredColumn, attributes: Any, grid: Longs | None = None) -> Variable:
    """A variable of a column, whose numbers are not read yet."""
    variable = Variable(dimensions, indexing.LazilyIndexedArray(_Array(column, grid)), attributes)
    if grid is None:
        variable.encoding["preferred_chunks"] = {dimensions[0]: column.outputs.size}
    return variable


def lazy_dataset(labelled: LabelledArrays) -> Dataset:
    """The dataset of labelled arrays, some of which are in files."""
    variables: dict[str, Any] = dict(labelled.variables)
    for name, (dimensions, column, attributes) in labelled.variables.items():
        if isinstance(column, StoredColumn):
            variables[name] = lazy(dimensions, column, attributes)
    return Dataset(variables, dict(labelled.labels), dict(labelled.attributes))


def lazy_grid(data: Dataset, columns: Mapping[str, StoredColumn], varied: Sequence[str]) -> Dataset:
    """The cases of a dataset as a grid of the parameters that vary; the outputs in `columns` are not read yet.

    It is `data.set_index(case=varied).unstack("case")`, which would have all outputs in memory, and more than once.
    """
    levels, codes = zip(*(np.unique(data[name].values, return_inverse=True) for name in varied), strict=True)
    grid = np.full(tuple(map(len, levels)), -1)
    grid[codes] = np.arange(data.sizes["case"])
    if grid.size != data.sizes["case"] or grid.min() < 0:
        raise ModelError("a list of this study has a value twice, so the cases are no grid; use study.data")
    variables: dict[str, Any] = {}
    for name, variable in data.data_vars.items():
        dimensions = (*(str(x) for x in variable.dims if x != "case"), *varied)
        if name in columns:
            variables[str(name)] = lazy(dimensions, columns[str(name)], variable.attrs, grid)
        else:
            variables[str(name)] = (dimensions, variable.values[grid], variable.attrs)
    labels = {"time": data["time"], **dict(zip(varied, levels, strict=True))}
    return Dataset(variables, labels, data.attrs)
