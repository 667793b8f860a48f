"""`lw.sweep` and `Study`: cases against `lw.analyse`, failures as rows, resuming, files, figures, words."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps import case_engine as work
from linkwright.sweeps.store import CHUNKS, DATASET, Store
from linkwright.sweeps.task import Batch, Task, make_task

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
FOUR_BAR = MODELS / "four_bar.mks"
VARIED = {"coupler": [2.8, 3.0, 9.0], "rocker": [2.4, 2.5]}
KEPT = ["reach = max(pen.x) - min(pen.x)", "pen.y", "sum = coupler + rocker"]
TIMES = np.linspace(0.0, 6.0, 25)


@pytest.fixture(scope="module")
def study() -> lw.Study:
    return lw.sweep(FOUR_BAR, VARIED, KEPT, times=TIMES)


def test_a_case_has_the_numbers_of_analyse(study: lw.Study) -> None:
    alone = lw.analyse(FOUR_BAR, times=TIMES, parameters={"coupler": 3.0, "rocker": 2.4})
    pen = alone.position("pen")
    row = study.data.isel(case=2)
    assert (float(row["coupler"]), float(row["rocker"])) == (3.0, 2.4)
    assert abs(float(row["reach"]) - np.ptp(pen[:, 0])) < 1e-9
    assert np.abs(row["pen.y"].values - pen[:, 1]).max() < 1e-9
    assert float(row["sum"]) == pytest.approx(5.4)
    assert np.abs(study.case(2).position("pen") - pen).max() < 1e-9


def test_cases_that_fail_are_rows_with_a_reason_and_the_rest_goes_on(study: lw.Study) -> None:
    assert study.ok.tolist() == [True] * 4 + [False] * 2
    assert study.failed["case"].values.tolist() == [4, 5]
    assert all("cannot be assembled" in str(x) for x in study.failed["reason"].values)
    assert np.isnan(study["reach"][4:]).all()
    assert study.reason_counts == [("the mechanism cannot be assembled at t = …", 2)]


def test_the_cause_why_motions_stopped_is_counted_with_the_names_in_it() -> None:
    study = lw.sweep(MODELS / "slider_crank_parameters.mks", {"crank_length": [0.1, 0.2, 7.0]}, "max(block.x)")
    assert study.reason_counts == [("stopped at t = …: driver 'd1' asks for what is out of reach", 2)]


def test_the_best_cases_come_first_and_failed_ones_never(study: lw.Study) -> None:
    small, large = study.best("reach", 10), study.best("reach", 2, largest=True)
    assert small.sizes["case"] == 4
    assert np.all(np.diff(small["reach"].values) > 0.0)
    assert large["reach"].values.tolist() == sorted(small["reach"].values, reverse=True)[:2]
    with pytest.raises(LinkwrightError, match=r"'pen\.y' is a series"):
        study.best("pen.y")
    with pytest.raises(LinkwrightError, match="did you mean 'reach'"):
        study.best("reech")


def test_a_grid_has_a_dimension_for_every_list(study: lw.Study) -> None:
    grid = study.grid()
    assert dict(grid["reach"].sizes) == {"coupler": 3, "rocker": 2}
    assert float(grid["reach"].sel(coupler=2.8, rocker=2.5)) == study["reach"][1]


def test_a_mechanism_gives_the_same_study_as_its_file(study: lw.Study) -> None:
    other = lw.sweep(lw.load(FOUR_BAR), VARIED, KEPT, times=TIMES)
    assert np.allclose(other["pen.y"], study["pen.y"], rtol=0, atol=1e-9, equal_nan=True)


@pytest.mark.compiled
def test_how_cases_are_divided_does_not_change_their_numbers(study: lw.Study) -> None:
    other = lw.sweep(FOUR_BAR, VARIED, KEPT, times=TIMES, execution=lw.Execution(chunk=1))
    assert np.array_equal(other["pen.y"], study["pen.y"], equal_nan=True)
    assert other.reasons == study.reasons


def test_functions_of_a_solution_are_outputs_too() -> None:
    def top(solution: lw.Solution) -> float:
        return float(solution.position("pen")[:, 1].max())

    found = lw.sweep(FOUR_BAR, {"coupler": [2.8, 3.0]}, {"top": top, "same": "max(pen.y)"}, times=TIMES)
    assert np.allclose(found["top"], found["same"], rtol=0, atol=1e-9)


def test_a_dependent_parameter_can_be_swept() -> None:
    task = make_task(MODELS / "crank_in_space.mks", ["reach"], ["block.x"])
    assert "reach" not in task.reader.mechanism().parameters  # it depends on others, until it is given a value
    assert task.reader.mechanism([0.19]).parameters["reach"] == 0.19
    assert Task.of(json.loads(json.dumps(task.plain()))).digest == task.digest


def test_a_file_holds_the_whole_study(study: lw.Study, tmp_path: Path) -> None:
    study.save(tmp_path / "s.nc")
    again = lw.Study.open(tmp_path / "s.nc")
    assert again.data.equals(study.data)
    assert again.reasons == study.reasons
    assert np.array_equal(again.case(1).time, TIMES)
    study.save(tmp_path / "s.csv")
    rows = (tmp_path / "s.csv").read_text().splitlines()
    assert rows[0] == "case,coupler,rocker,reach,sum,reason"
    assert float(rows[3].split(",")[3]) == study["reach"][2]
    with pytest.raises(LinkwrightError, match=r"is a study; lw\.Study\.open reads it"):
        lw.open(tmp_path / "s.nc")


@pytest.mark.parametrize("damage", ["cut", "text", "solution", "header", "missing"])
def test_a_file_that_is_no_study_is_told(study: lw.Study, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "s.nc"
    study.save(file)
    data = file.read_bytes()
    if damage == "solution":
        study.case(0).save(file)
    elif damage == "text":
        file.write_text("hello")
    elif damage == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "header":
        file.write_bytes(data.replace(b'"chunk": ', b'"chank": '))
    else:
        file.unlink()
    with pytest.raises(LinkwrightError, match=r"s\.nc: "):
        lw.Study.open(file)


def test_a_stored_study_is_resumed_chunk_by_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, seen = tmp_path / "s", []
    options: dict[str, Any] = {
        "times": TIMES,
        "store": lw.StudyFolder(folder, resume=True),
        "execution": lw.Execution(chunk=2),
    }
    kept = work.answer

    def interrupted(engine: Any, values: Any) -> Any:
        seen.append(len(values))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return kept(engine, values)

    monkeypatch.setattr(work, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lw.sweep(FOUR_BAR, VARIED, KEPT, **options)
    assert len(list((folder / CHUNKS).glob("0*.npz"))) == 2
    part = lw.Study.open(folder)
    assert part.reasons[4:] == ["not computed"] * 2
    assert "2 not computed yet" in repr(part)
    (folder / CHUNKS / "000001.npz").write_bytes(b"damaged")

    written: list[int] = []
    write = Store.write
    monkeypatch.setattr(Store, "write", lambda store, k, *rest: (written.append(k), write(store, k, *rest)))
    found = lw.sweep(FOUR_BAR, VARIED, KEPT, **options)
    assert (found.loaded, sorted(written)) == (2, [1, 2])
    assert seen == [2, 2, 2]  # what ended the first process might end this one too: others compute what is left
    assert sorted(f.name for f in folder.iterdir() if f.name != ".lock") == ["manifest.json", DATASET, "values.npy"]
    again = lw.sweep(FOUR_BAR, VARIED, KEPT, **options)
    assert (again.loaded, len(written)) == (6, 2)
    assert not (folder / CHUNKS).exists()
    assert again.data.equals(found.data)


def test_an_output_with_a_slash_in_its_name_is_saved_and_read(tmp_path: Path) -> None:
    study = lw.sweep(FOUR_BAR, {"coupler": [2.9, 3.0]}, ["pen.x/pen.y", "max(pen.x)/2"], times=TIMES)
    study.save(tmp_path / "s.nc")
    again = lw.Study.open(tmp_path / "s.nc")
    assert again.outputs == study.outputs == ("pen.x/pen.y", "max(pen.x)/2")
    assert np.array_equal(again["pen.x/pen.y"], study["pen.x/pen.y"])


def test_a_script_without_a_guard_can_use_processes(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    begin = "import linkwright as lw\nprint('begun', lw.sweep("
    script.write_text(
        f"{begin}{str(FOUR_BAR)!r}, {{'coupler': [2.9, 3.0]}}, times=[0.0], execution=lw.Execution(2, chunk=1)).ok)\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout.strip() == "begun [ True  True]", run.stderr


@pytest.mark.parametrize(
    "kind", [*(pytest.param(x, marks=pytest.mark.slow) for x in (None, "scatter")), "lines", "histogram", "series"]
)
def test_a_study_draws_itself(study: lw.Study, tmp_path: Path, kind: str | None) -> None:
    figure = study.plot(kind=kind, path=tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    wanted = {None: 2, "lines": 2, "scatter": 16, "histogram": 2, "series": 1}[kind]
    assert len(figure.axes) == wanted
    assert figure._repr_png_().startswith(b"\x89PNG")  # as a notebook shows it


def test_an_output_that_is_the_same_in_all_cases_can_be_drawn(study: lw.Study) -> None:
    arrays = {"same": 1.0 + 1e-16 * np.arange(6.0), "gone": np.full(6, np.nan)}
    flat = lw.Study(study.task, study.plan, Batch(arrays, [""] * 6))
    for kind in ("lines", "scatter", "histogram"):
        flat.plot(kind=kind).canvas.draw()


def test_a_coordinate_that_is_zero_but_for_rounding_is_not_drawn(tmp_path: Path) -> None:
    model = tmp_path / "slide.mks"
    model.write_text(
        "MODEL slide\nSYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.1);\nPARAMETER far = 1;\n"
        "BODY base (ground);\nBODY block (origin = (0, 0, 0));\n"
        "TRIAD rail (associated body = base, h = (1, 0, 0));\nTRIAD guide (associated body = block, h = (1, 0, 0));\n"
        "TRANSLATIONAL JOINT s (triad = rail, triad = guide);\nDRIVER d (s.shift = far*TIME);\nENDMODEL\n"
    )
    outputs = ["block.x", "noise = 1e-17*sin(100*TIME)*block.x", "small = 1e-6*block.x"]
    study = lw.sweep(model, {"far": [1.0, 2.0]}, outputs)
    assert [ax.get_ylabel() for ax in study.plot(kind="series").axes] == ["block.x", "small"]
    assert [ax.get_ylabel() for ax in study.plot("noise").axes] == ["noise"]


def test_a_figure_that_cannot_be_says_why(study: lw.Study, tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError, match="these outputs are series"):
        study.plot("pen.y", kind="lines")
    with pytest.raises(LinkwrightError, match="no output of this study is a series"):
        study.plot("reach", kind="series")
    with pytest.raises(LinkwrightError, match=r"ends in \.png"):
        study.plot(path=tmp_path / "s.txt")


def test_a_study_shows_itself(study: lw.Study) -> None:
    assert "6 cases: coupler: 3 values 2.8 … 9" in repr(study)
    assert "2 failed" in repr(study)
    html = study._repr_html_()
    assert "<td>reach</td>" in html
    assert "cannot be assembled" in html


@pytest.mark.parametrize("settings", [{"workers": 0}, {"workers": True}, {"chunk": 0}, {"chunk": 1.5}])
def test_a_number_of_processes_or_cases_is_whole(settings: dict[str, Any]) -> None:
    with pytest.raises(LinkwrightError, match=f"{next(iter(settings))} must be a whole number"):
        lw.Execution(**settings)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((FOUR_BAR, {"coupla": [1]}), {}, "no parameter named 'coupla'; did you mean 'coupler'"),
        ((FOUR_BAR, {"coupler": [3]}, ["max(pan.x)"]), {}, "did you mean 'pen'"),
        ((FOUR_BAR, {"coupler": [3]}, ["max(pen.x"]), {}, "max(pen.x"),
        ((FOUR_BAR, {"coupler": [3]}, ["a = pen.x", "a = pen.y"]), {}, "two outputs named 'a'"),
        ((FOUR_BAR, {"coupler": [3]}, {"\x1b": "pen.x"}), {}, "needs another name"),
        ((FOUR_BAR, {"coupler": [3]}, ["coupler = pen.x"]), {}, "has a name of a swept parameter"),
        ((FOUR_BAR, {"coupler": [3]}, []), {}, "without outputs"),
        ((FOUR_BAR, {"coupler": [3]}), {"on": "mars"}, "is no place to run a study"),
        ((FOUR_BAR, {"coupler": [3]}), {"workers": 0}, "give execution=lw.Execution(workers=...)"),
        ((FOUR_BAR, {"coupler": [3]}), {"resume": True}, "give store=lw.StudyFolder(resume=...)"),
        ((FOUR_BAR, {"coupler": [3]}), {"times": [1, 0]}, "finite numbers that grow"),
        ((FOUR_BAR, {"coupler": [3]}), {"analysis": "magic"}, "no analysis named 'magic'"),
        ((FOUR_BAR, {"coupler": [3]}), {"analysis": lw.AnalysisSettings(rtol=1e-6)}, "takes no 'rtol'"),
        ((FOUR_BAR, {"coupler": [3]}), {"sampling": lw.Sampling(fixed={"coupler": 2})}, "varies and is fixed too"),
        ((FOUR_BAR, {"coupler": [3]}), {"colour": 1}, "no argument named 'colour'"),
        ((FOUR_BAR, {"coupler": [3]}), {"rtol": 1e-6}, "give analysis=lw.AnalysisSettings(rtol=...)"),
        ((FOUR_BAR, {"coupler": [3]}), {"draws": 3}, "give sampling=lw.Sampling(draws=...)"),
        ((FOUR_BAR, {"coupler": [3]}), {"sampling": "sobol"}, "sampling must be lw.Sampling(...), not 'sobol'"),
        ((MODELS / "none.mks", {"coupler": [3]}), {}, "there is no such file"),
    ],
)
def test_a_wrong_question_is_answered_in_a_sentence(arguments: Any, options: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError) as error:
        lw.sweep(*arguments, **options)
    assert words in str(error.value)
