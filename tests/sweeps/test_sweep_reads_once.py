"""A study reads its model once in the process that starts it, and once in each worker process."""

import json
from collections import Counter
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.formats.mks import mks_reader as reader
from linkwright.sweeps.case_engine import Engine
from linkwright.sweeps.task import Task, make_task

MODELS = Path(__file__).parents[2] / "examples" / "models"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often texts of models are parsed, and files opened for them."""
    calls: Counter[str] = Counter()

    def counting(name: str) -> None:
        function = getattr(reader, name)

        def call(*arguments: object) -> object:
            calls[name] += 1
            return function(*arguments)

        monkeypatch.setattr(reader, name, call)

    for name in ("parse", "read_bytes", "_read"):
        counting(name)
    return calls


@pytest.mark.parametrize(
    ("file", "parameters", "builds"),
    [
        ("four_bar.mks", {"crank": [0.9, 1.0], "coupler": [2.9, 3.1]}, 2),
        ("slider_crank_parameters.mks", {"middle": [8.0, 8.1]}, 2),
        ("suspension.mks", {"k": [4e4, 5e4], "c": [3e3]}, 4),
    ],
)
def test_a_study_parses_its_model_once(file: str, parameters: dict, builds: int, counted: Counter[str]) -> None:
    study = lw.sweep(MODELS / file, parameters, times=[0.0, 0.1])
    assert study.ok.all(), study.reasons
    # Statements are gone through for the base and for values near it, which show what the reader alone knows; and for
    # the least and the largest values of what forces are made of, which the reader may refuse.
    assert counted == {"parse": 1, "read_bytes": 1, "_read": builds}


def test_a_study_of_a_mechanism_parses_the_text_that_workers_get_once(counted: Counter[str]) -> None:
    mech = lw.load(MODELS / "four_bar.mks")
    counted.clear()
    lw.sweep(mech, {"crank": [0.9, 1.0]}, "max(pen.x)", times=[0.0, 0.1])
    # What is written in the units of the model is read back before it counts.
    assert counted == {"parse": 2, "_read": 3}


def test_a_worker_parses_the_model_of_its_task_once(counted: Counter[str]) -> None:
    task = make_task(MODELS / "four_bar.mks", ["crank"], "max(pen.x)", times=[0.0, 0.1])
    plain = json.loads(json.dumps(task.plain()))
    counted.clear()
    engine = Engine(Task.of(plain))
    for values in ([[0.9], [1.0]], [[1.1]]):
        assert not any(engine.run(values).reasons)
    assert counted == {"parse": 1, "_read": 2}


def test_a_parameter_in_two_spellings_is_refused() -> None:
    with pytest.raises(LinkwrightError, match="swept twice"):
        lw.sweep(MODELS / "four_bar.mks", {"crank": [1.0], "Crank": [1.1]}, times=[0.0])
