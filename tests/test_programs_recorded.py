"""What is asked a second time is not recorded again: counted for every verb, in one process and in the next."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("counted_programs.py")
#: Verb → call → what was counted.
Counts = dict[str, dict[str, dict[str, int]]]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Counts, Counts]:
    """The counts of a process that finds an empty cache, and of one that comes after it."""
    environment = {**os.environ, "LINKWRIGHT_CACHE": str(tmp_path_factory.mktemp("cache"))}
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        counts.append(json.loads(done.stdout))
    return counts[0], counts[1]


def warm(counts: Counts, *calls: str) -> dict[str, dict[str, int]]:
    """What these calls recorded or compiled after all, by verb and call."""
    every = {f"{verb}: {call}": count for verb, by_call in counts.items() for call, count in by_call.items()}
    return {name: count for name, count in every.items() if name.endswith(calls) and any(count.values())}


def test_what_nobody_has_asked_before_is_recorded_and_compiled(processes: tuple[Counts, Counts]) -> None:
    cold = [verb for verb, calls in processes[0].items() if all(calls["first call"].values())]
    # These ask for what `run` has compiled.
    warm_already = ["analyse", "assemble", "assemble with parameters"]
    assert [verb for verb in processes[0] if verb not in cold] == warm_already


def test_a_second_call_and_a_new_object_of_the_same_file_record_nothing(processes: tuple[Counts, Counts]) -> None:
    assert warm(processes[0], "second call", "new object") == {}


def test_a_second_process_records_nothing(processes: tuple[Counts, Counts]) -> None:
    assert warm(processes[1], "first call", "second call", "new object", "new value") == {}


def test_a_new_value_of_a_parameter_compiles_nothing(processes: tuple[Counts, Counts]) -> None:
    verbs = {"run", "run a simulation", "analyse", "simulate with parameters", "assemble with parameters", "sweep"}
    assert verbs | {"optimise", "Loop with parameters"} < {
        verb for verb, calls in processes[0].items() if "new value" in calls
    }
    assert warm(processes[0], "new value") == {}
