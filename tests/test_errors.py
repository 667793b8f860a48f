"""Errors carry their data, also from one process to another."""

import pickle

import pytest

from linkwright import errors

CARRYING = {
    "a model": errors.ModelError("no body", element="arm"),
    "a file": errors.FormatError("is empty", file="a.urdf", line=3, element="arm"),
    "a name": errors.NameNotFound("joint", "elbwo", ["elbow", "wrist"]),
    "a shape": errors.ShapeError("q has shape (2,)", given=(2,), wanted=(3,)),
    "an argument": errors.ArgumentError("no such argument", argument="dt"),
    "an assembly": errors.AssemblyError("cannot be assembled", misses={"loop": 0.1}, element="loop"),
    "an input": errors.ExcitationError("too poor", order=1, wanted=2),
    "a model that is unstable": errors.UnstableModelError("unstable", model={"poles": [2.0]}),
    "memory": errors.MemoryLimitError("too large", needed=5, available=2),
    "a design": errors.DesignError("no controller", modes=(1j,), history=(1.0, 2.0)),
}


@pytest.mark.parametrize("name", CARRYING)
def test_an_error_comes_back_from_another_process_with_its_data(name: str) -> None:
    error = CARRYING[name]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
