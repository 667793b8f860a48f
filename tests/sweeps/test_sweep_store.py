"""A study's folder: goes on from what is good, refuses what is of another study, and is never half written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps.plan import Plan, make_plan
from linkwright.sweeps.store import CHUNKS, Store
from linkwright.sweeps.study import Study
from linkwright.sweeps.task import Batch, Task

TASK = Task("MODEL m", ("x",), (("y", "max(b.x)"),), "kinematic", (0.0, 1.0))


def plan(n: int = 6, chunk: int = 2) -> Plan:
    return make_plan({"x": np.arange(n, dtype=float)}, chunk=chunk)


def batch(index: int) -> Batch:
    return Batch({"y": np.array([index, 0.5]), "z": np.full((2, 3), float(index))}, ["", "stuck at ünit 7"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two of three chunks."""
    store = Store.begin(tmp_path / "s", TASK, plan())
    for k in (0, 2):
        store.write(k, batch(k))
    store.release()
    return tmp_path / "s"


def resumed(folder: Path, task: Task = TASK, cases: Plan | None = None, **options: Any) -> Store:
    store = Store.begin(folder, task, cases or plan(), resume=True, **options)
    store.release()
    return store


def test_what_was_written_is_read_back(folder: Path) -> None:
    found = resumed(folder).stored()
    assert sorted(found) == [0, 2]
    assert list(found[2].arrays) == ["y"]  # what is no output of this study is left out
    assert np.array_equal(found[2].arrays["y"], [2.0, 0.5])
    assert found[2].reasons == ["", "stuck at ünit 7"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text", "renamed", "compressed", "objects"])
def test_a_damaged_chunk_is_as_if_it_were_not_there(folder: Path, damage: str) -> None:
    file = folder / CHUNKS / "000002.npz"
    data = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        at = bytes(data).find(np.array([2.0, 0.5]).tobytes())
        data[at] ^= 1
        file.write_bytes(data)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "text":
        file.write_text("not a chunk")
    elif damage == "renamed":
        os.replace(folder / CHUNKS / "000000.npz", file)
    elif damage == "compressed":
        with np.load(file) as old:
            np.savez_compressed(file, **dict(old))
    else:
        with np.load(file) as old:
            np.savez(file, **{**dict(old), "a0": np.array([{}, {}], dtype=object)})
    assert 2 not in resumed(folder).stored()


def test_chunks_of_another_study_are_not_taken(folder: Path, tmp_path: Path) -> None:
    other = Store.begin(tmp_path / "other", TASK, make_plan({"x": np.arange(6.0) + 1}, chunk=2))
    os.replace(folder / CHUNKS / "000000.npz", other.folder / CHUNKS / "000000.npz")
    other.release()
    assert other.stored() == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outputs": (("y", "min(b.x)"),)}, "differs in the outputs"),
        ({"model": "MODEL n"}, "differs in the model"),
        ({"times": (0.0, 2.0)}, "differs in the times"),
        ({"settings": {"rtol": 1e-6}}, "differs in the settings"),
        ({"functions": {"f": len}}, "differs in the functions"),
    ],
)
def test_another_task_is_refused_with_what_differs(folder: Path, change: dict[str, Any], words: str) -> None:
    fields = {name: getattr(TASK, name) for name in Task.__dataclass_fields__}
    with pytest.raises(LinkwrightError, match=f"holds another study, which {words}; give the same to go on"):
        resumed(folder, Task(**{**fields, **change}))


def test_a_function_with_another_number_in_it_is_another_function(tmp_path: Path) -> None:
    def within(limit: float) -> Any:
        return lambda solution: max(x for x in (solution[0], limit))

    def task(function: Any) -> Task:
        return Task(TASK.model, TASK.names, TASK.outputs, TASK.analysis, TASK.times, functions={"f": function})

    first = task(within(2.0)).digest
    assert task(within(2.0)).digest == first
    assert task(within(3.0)).digest != first
    assert task(lambda x: 2.0 * x[0]).digest != task(lambda x: 3.0 * x[0]).digest


def test_other_values_are_refused_and_other_chunks_only_where_asked_for(folder: Path) -> None:
    with pytest.raises(LinkwrightError, match="differs in the number of cases, the values of 'x';"):
        resumed(folder, cases=plan(8))
    assert resumed(folder, cases=plan(6, 3)).plan.chunk == 2
    with pytest.raises(LinkwrightError, match="differs in the chunk size"):
        resumed(folder, cases=plan(6, 3), chunked=True)


def test_draws_that_a_newer_library_would_make_differently_stay_as_they_were(tmp_path: Path) -> None:
    drawn = make_plan({"x": lw.normal(1, 0.1)}, lw.Sampling(cases=6), chunk=2)
    Store.begin(tmp_path / "s", TASK, drawn).release()
    newer = Plan(drawn.names, drawn.values + 1e-3, drawn.recipe, drawn.chunk)
    assert np.array_equal(resumed(tmp_path / "s", cases=newer).plan.values, drawn.values)


def test_a_folder_with_a_study_is_not_begun_again_unless_asked(folder: Path) -> None:
    with pytest.raises(LinkwrightError, match="holds a study already; resume=True"):
        Store.begin(folder, TASK, plan())
    store = Store.begin(folder, TASK, plan(), overwrite=True)
    assert store.stored() == {}
    store.release()


def test_a_folder_with_other_files_and_a_file_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(LinkwrightError, match="holds other files and no study"):
            Store.begin(tmp_path, TASK, plan(), overwrite=overwrite)
    with pytest.raises(LinkwrightError, match="there is a file of this name"):
        Store.begin(tmp_path / "thesis.txt", TASK, plan())
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert os.listdir(tmp_path) == ["thesis.txt"]


@pytest.mark.parametrize("name", ["chunks/000001.npz", "manifest.json", ".draft.part", "values.npy"])
def test_files_of_others_with_a_studys_names_are_left_alone(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"name": "an extension of a browser"}')
    with pytest.raises(LinkwrightError, match="choose an empty folder"):
        Store.begin(tmp_path, TASK, plan(), overwrite=True)
    assert file.read_text() == '{"name": "an extension of a browser"}'


def test_a_driver_killed_as_it_began_leaves_a_folder_to_begin_in(tmp_path: Path) -> None:
    (tmp_path / CHUNKS).mkdir()
    for name in (".lock", "values.npy", ".manifest.json.01234567.part"):
        (tmp_path / name).write_text("")
    store = Store.begin(tmp_path, TASK, plan(), resume=True)
    store.release()
    assert sorted(os.listdir(tmp_path)) == [".lock", CHUNKS, "manifest.json", "values.npy"]


def test_what_others_put_beside_chunks_stays_when_these_go(folder: Path) -> None:
    (folder / CHUNKS / "notes.txt").write_text("mine")
    store = Store.begin(folder, TASK, plan(), overwrite=True)
    store.write(0, batch(0))
    store.drop_chunks()
    store.release()
    assert os.listdir(folder / CHUNKS) == ["notes.txt"]


@pytest.mark.parametrize("content", ["", "{}", '{"format": "linkwright study", "version": 1}', "[" * 5000])
def test_a_damaged_manifest_is_told(folder: Path, content: str) -> None:
    (folder / "manifest.json").write_text(content)
    with pytest.raises(LinkwrightError, match=r"manifest\.json: .*(anew|damaged)"):
        resumed(folder)


def altered(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    """The text of a manifest with an entry changed."""

    def text(manifest: str) -> str:
        plain = json.loads(manifest)
        change(plain)
        return json.dumps(plain)

    return text


ODD_MANIFESTS: dict[str, tuple[Callable[[str], str], str]] = {
    "no text": (lambda text: "", "is damaged"),
    "no object": (lambda text: "null", "does not have the entries of a study's manifest"),
    "a list": (lambda text: "[1]", "does not have the entries of a study's manifest"),
    "nested": (lambda text: "[" * 200_000 + "]" * 200_000, "is damaged"),
    "long number": (lambda text: text.replace('"chunk": ', '"chunk": 1' + 5000 * "0"), "is damaged"),
    "huge chunks": (altered(lambda m: m["plan"].update(chunk=10**18)), "does not fit the values"),
    "negative chunks": (altered(lambda m: m["plan"].update(chunk=-1)), "has no plan of a study"),
    "no plan": (altered(lambda m: m.update(plan=None)), "does not have the entries"),
    "no task": (altered(lambda m: m.update(task=None)), "has no task of a study"),
    "odd analysis": (altered(lambda m: m["task"].update(analysis="x\x1b[31m")), "no analysis named"),
    "odd times": (altered(lambda m: m["task"].update(times=["x"])), "has no task of a study"),
    "odd names": (altered(lambda m: m["task"].update(names=["a\nb"])), "does not fit the values"),
    "of another version": (altered(lambda m: m.update(version=2)), "is not of the format"),
}


@pytest.mark.parametrize("case", ODD_MANIFESTS)
def test_an_odd_manifest_is_named_with_what_to_do(folder: Path, case: str) -> None:
    change, words = ODD_MANIFESTS[case]
    file = folder / "manifest.json"
    file.write_text(change(file.read_text()))
    for read in (lambda: Study.open(folder), lambda: resumed(folder)):
        with pytest.raises(LinkwrightError) as caught:
            read()
        message = str(caught.value)
        assert message.startswith(f"{file}: ")
        assert words in message
        assert message.endswith("overwrite=True begins the study anew")
        assert "object is not" not in message


def test_names_of_a_study_are_shown_on_one_line(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_text(altered(lambda m: m["task"].update(outputs=[["a\nb\x1b[31m", "x"]]))(file.read_text()))
    assert repr(Study.open(folder)).endswith(r"outputs a\nb\x1b[31m>")
