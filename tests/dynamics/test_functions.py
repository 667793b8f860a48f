"""The table of functions is whole: every row can be recorded, is typed by its name, and its arrays have meanings."""

from __future__ import annotations

import doctest
import inspect
from typing import get_args, get_type_hints

import numpy as np
import pytest

import linkwright as lw
from linkwright.dynamics import equilibrium, mechanism_base
from linkwright.dynamics.functions import ARRAYS, FORWARD_METHODS, FUNCTIONS, REFERENCES, FunctionName, Recorder
from linkwright.dynamics.methods import operation_counts
from linkwright.dynamics.methods.by_name import METHODS


def test_the_names_that_editors_complete_are_those_of_the_table():
    assert get_args(FunctionName) == tuple(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_recorder_that_a_row_names_is_there(name):
    row = FUNCTIONS[name]
    recorders = [x for x in vars(row).values() if isinstance(x, Recorder)]
    assert recorders
    assert all(callable(recorder.function) for recorder in recorders)


#: Functions that have a rolled form for trees; those of loop constraints alone have one of free bodies.
ROLLED = [name for name, row in FUNCTIONS.items() if row.rolls and (row.loops or "a" in (*row.inputs, *row.outputs))]


@pytest.mark.parametrize("name", ROLLED)
def test_a_function_that_rolls_is_recorded_as_a_loop_by_the_recorder_of_its_row(name):
    options = {"frame": "link3"} if "frame" in FUNCTIONS[name].options else {}
    mech = lw.chain(4)
    loop, straight = (mech.program(name, form=form, **options) for form in ("rolled", "unrolled"))
    assert any(getattr(statement, "items", 1) == 4 for statement in loop.statements)
    assert all(getattr(statement, "items", 1) == 1 for statement in straight.statements)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_array_of_a_row_has_a_meaning_with_its_unit(name):
    row = FUNCTIONS[name]
    assert all(array in ARRAYS for array in (*row.inputs, *row.outputs))
    assert row.sentence[0].islower() or not row.sentence[0].isalpha() or row.sentence[0] == "J"


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.plain])
def test_a_plain_function_is_a_method_with_its_inputs_first(name):
    parameters = list(inspect.signature(getattr(lw.Mechanism, name)).parameters)[1:]
    inputs = {"q": "q0"} if name == "difference" else {}
    assert parameters[: len(FUNCTIONS[name].inputs)] == [inputs.get(x, x) for x in FUNCTIONS[name].inputs]


@pytest.mark.parametrize("name", ["forward_dynamics", "reactions", "gear_forces", "constraint_forces"])
def test_options_of_a_row_are_taken_and_others_refused(name):
    mech = lw.chain(2)
    takes = FUNCTIONS[name].options
    assert "method" in takes
    with pytest.raises(lw.errors.ModelError, match="takes no option 'frame'"):
        mech.program(name, frame="link 1")


def test_literals_of_the_methods_are_the_values_that_they_take():
    assert set(FORWARD_METHODS) - {"assembly"} == set(METHODS)
    hints = get_type_hints(lw.Mechanism.jacobian, include_extras=True, localns={"ArrayLike": object})
    assert get_args(hints["reference"]) == REFERENCES


def test_options_of_load_are_those_of_the_readers():
    from linkwright.formats.mjcf.mjcf_reader import read_mjcf
    from linkwright.formats.mks.mks_reader import read_mks
    from linkwright.formats.sdf.sdf_reader import read_sdf
    from linkwright.formats.urdf import read_urdf, read_xacro
    from linkwright.mechanism import LoadOptions

    readers = (read_mks, read_urdf, read_sdf, read_mjcf, read_xacro)
    known = {
        p.name for reader in readers for p in inspect.signature(reader).parameters.values() if p.kind is p.KEYWORD_ONLY
    }
    assert known == set(LoadOptions.__annotations__)


@pytest.mark.parametrize("module", [equilibrium, mechanism_base, operation_counts], ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(module, extraglobs={"lw": lw, "np": np})
    assert tried
    assert not failed
