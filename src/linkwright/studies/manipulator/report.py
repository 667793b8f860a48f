"""The study's report: a folder with one page of figures and numbers, the animation, and all data beside them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwright.base.files import atomic_folder
from linkwright.errors import LinkwrightError
from linkwright.studies.manipulator import figures_design
from linkwright.studies.manipulator import machine_figures as figures
from linkwright.studies.manipulator.manipulator_study import counted
from linkwright.studies.manipulator.report_data import FORMAT, document, tables, versions
from linkwright.studies.manipulator.report_feedback import (
    before_section,
    design_section,
    feedback_section,
    identification_section,
    plants_section,
    sine_section,
    torque_section,
)
from linkwright.studies.manipulator.report_machine import (
    claims_section,
    curve_section,
    friction_section,
    machine_section,
    reach_section,
    straight_section,
    timing_section,
)
from linkwright.studies.manipulator.report_parts import Cell, Section, columns, escaped, frame, paragraph, table
from linkwright.studies.manipulator.rig import Rig
from linkwright.studies.manipulator.workspace import PLANES, Plane, reach_map

if TYPE_CHECKING:
    from rich.console import RenderableType

    from linkwright.studies.manipulator.manipulator_study import Study

PAGE, ANIMATION, NUMBERS, DATA = "index.html", "animation.html", "study.json", "data"
TITLE = "Parallel manipulator: dynamic control and H∞ acceleration feedback"
REACH: tuple[Plane, ...] = (PLANES[1], PLANES[3])  # of the maps: a vertical plane, and tilts
#: What is in the files, by their names without endings and numbers.
WORDS = {
    "straight": "positions straight up, by controller",
    "curve": "positions along the curve, by controller",
    "acceleration": "measured accelerations and motor torques for ± 5 m/s²",
    "sine": "measured accelerations for the sine",
    "sweep": "gain and phase at each frequency",
    "round_record": "record of an identification experiment",
    "round_response": "measured and modelled frequency response, band, coherence",
    "plants": "perturbed plants: t50 and vibration",
    "animation": "the machine in motion",
    "study": "every number of this page",
}
_NUMBER = re.compile(r"\d+")
_OURS = re.compile(rf"{DATA}/[a-z0-9_]+\.csv")
_LARGEST = 50_000_000  # bytes of a study.json that is looked into


def write_report(
    study: Study, folder: str | os.PathLike[str], *, overwrite: bool = False, reach_points: int = 141
) -> Path:
    """Write the report of a study into a folder and give the path of its page, `index.html`.

    Beside the page lie `animation.html` (the machine under acceleration feedback), `study.json` (every number) and
    CSV files in `data`. All is made in a temporary folder first: what fails leaves nothing behind. An earlier report
    there is replaced; a folder with anything else in it is refused unless `overwrite`, which replaces files of these
    names and leaves all others. `reach_points` are those of the maps of reach along an axis.
    """
    target = check_folder(folder, overwrite=overwrite)
    before = (_earlier(target) or {}).get("files")
    with atomic_folder(target) as staging:
        names = _write(study, staging, reach_points)
    for name in before if isinstance(before, list) else []:  # data that an earlier report had and this one has not
        if isinstance(name, str) and name not in names and _OURS.fullmatch(name):
            (target / name).unlink(missing_ok=True)
    return target / PAGE


def check_folder(folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """The folder of a report, links followed; whatever would stop the report from being written is an error now."""
    figures.need_matplotlib()
    target = Path(folder).expanduser().resolve()
    nearest = next(place for place in (target, *target.parents) if place.exists())
    if not nearest.is_dir():
        raise LinkwrightError(f"{nearest} is a file, and the report is a folder; give another name")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise LinkwrightError(f"cannot write to {nearest}: permission denied; give another folder for the report")
    if nearest != target:
        return target
    for name in (PAGE, ANIMATION, NUMBERS):
        if (target / name).is_dir():
            raise LinkwrightError(f"{target / name} is a folder where the report has a file; give another folder")
    if (target / DATA).exists() and not (target / DATA).is_dir():
        raise LinkwrightError(f"{target / DATA} is a file where the report has a folder; give another folder")
    if not overwrite and any(target.iterdir()) and _earlier(target) is None:
        raise LinkwrightError(
            f"{target} is not empty and holds no earlier report; give another folder, or ask for overwriting, which "
            "replaces only files of the report's names"
        )
    return target


def summary(study: Study) -> RenderableType:
    """The table of claims with the study's notes, for a terminal."""
    from rich.console import Group  # weight: rich
    from rich.table import Table  # weight: rich
    from rich.text import Text  # weight: rich

    claims = study.claims()
    shown = Table("what", "paper", "here", "bound", "met", title="Parallel manipulator")
    for claim in claims:
        met = Text("–") if claim.met is None else Text("✓ yes", "green") if claim.met else Text("✗ NO", "bold red")
        shown.add_row(*(Text(part) for part in claim[:4]), met)
    good, all_ = counted(claims)
    lines = [f"{good} of {all_} met, in {study.seconds:.0f} s, seed {study.seed}", *study.notes]
    return Group(shown, *(Text(line) for line in lines))


# -- the folder -------------------------------------------------------------------------------------------------------
def _earlier(folder: Path) -> dict[str, Any] | None:
    """The numbers of the report that a folder holds, if it holds one."""
    file = folder / NUMBERS
    try:
        if file.stat().st_size > _LARGEST:
            return None
        numbers = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return numbers if isinstance(numbers, dict) and numbers.get("format") == FORMAT else None


def _write(study: Study, folder: Path, points: int) -> list[str]:
    """Write everything into a new folder; the names of the files, the page last."""
    (folder / DATA).mkdir()
    names = []
    for name, text in tables(study).items():
        (folder / DATA / name).write_text(text, encoding="utf-8", newline="")
        names.append(f"{DATA}/{name}")
    study.with_feedback.run.animate(folder / ANIMATION, title="± 5 m/s² with acceleration feedback")
    names += [ANIMATION, NUMBERS, PAGE]
    numbers = {**document(study), "files": names}
    text = json.dumps(numbers, allow_nan=False, ensure_ascii=False, indent=1)
    (folder / NUMBERS).write_text(text + "\n", encoding="utf-8", newline="")
    shown, sentences = _pictures(study, folder, points)
    (folder / PAGE).write_text(_page(study, shown, sentences, names), encoding="utf-8", newline="")
    return names


# -- the page ---------------------------------------------------------------------------------------------------------
def _pictures(study: Study, scratch: Path, points: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """All figures as SVG, and a sentence about each map."""
    svg, up, alone, fed = figures.svg, study.straight, study.without, study.with_feedback
    shown = {
        "machine": svg(figures.machine_figure, study.rig.geometry),
        "straight": svg(figures.height_figure, up, ("pid", "dynamic")),
        "friction": svg(figures.height_figure, up, ("dynamic", "friction")),
        "curve": svg(figures.curve_figure, study.curve),
        "before": svg(figures.jump_figure, (figures.WITHOUT, alone)),
        "jump": svg(figures.jump_figure, (figures.WITHOUT, alone), (figures.WITH, fed)),
        "slow": svg(figures.slow_figure, alone, fed, study.paper_response),
        "torque": svg(figures.torque_figure, study.rig.torque_limit, up, alone, fed),
        "wave": svg(figures.wave_figure, study.wave),
        "sweep": svg(figures.sweep_figure, study.sweep),
        "latency": svg(figures.latency_figure, study.timing),
    }
    if study.plants:
        shown["plants"] = svg(figures.plants_figure, study.plants)
    for one in study.design.rounds:
        shown[f"bode{one.number}"] = svg(figures_design.bode_figure, one)
        shown[f"weights{one.number}"] = svg(figures_design.weights_figure, one)
        shown[f"loop{one.number}"] = svg(figures_design.loop_figure, one)
    sentences = {}
    for plane in REACH:
        reach, file = reach_map(study.rig.geometry, plane, points=points), scratch / f"reach_{plane}.svg"
        with figures.look():
            reach.plot(file)
        shown[f"reach_{plane}"], sentences[f"reach_{plane}"] = figures.short(file.read_bytes()), str(reach)
        file.unlink()
    return shown, sentences


def _page(study: Study, shown: dict[str, bytes], sentences: dict[str, str], names: Iterable[str]) -> str:
    claims = study.claims()
    good, all_ = counted(claims)
    lead = paragraph(
        "The experiments of Nakamura, Yamane, Okada and Komine on a six-leg parallel manipulator, repeated on a "
        "simulated plant with the faults that the real one had: friction, elastic drives, sampling, noise. A model of "
        "the rigid machine controls it in real time; the residual dynamics (delay and resonance) are "
        "identified, and an H∞ compensator with two degrees of freedom removes them. "
        f"{'All' if good == all_ else good} of {all_} claims are met."
    )
    sections = [
        claims_section(claims),
        _animation_section(),
        machine_section(study, shown),
        timing_section(study.timing, shown),
        straight_section(study.straight, shown),
        curve_section(study.curve, shown),
        friction_section(study.rig, study.straight, shown),
        before_section(study, shown),
        identification_section(study, shown),
        design_section(study, shown),
        feedback_section(study, shown),
        sine_section(study, shown),
        *([plants_section(study, shown)] if study.plants else []),
        torque_section(study, shown),
        reach_section(shown, sentences),
        _again_section(study, names),
    ]
    return frame(TITLE, lead, [f"This is {note}." if note.startswith("a ") else note for note in study.notes], sections)


def _animation_section() -> Section:
    inside = (
        f'<iframe class="screen" src="{ANIMATION}" title="Animation of the machine" loading="lazy"></iframe>\n'
        + paragraph(
            f'The machine follows ± 5 m/s² with acceleration feedback: <a href="{ANIMATION}">the animation on a page '
            "of its own</a>. It can be turned, slowed down and stopped."
        )
    )
    return Section("animation", "The machine in motion", "", inside)


def _again_section(study: Study, names: Iterable[str]) -> Section:
    quick = any(note.startswith("a quick run") for note in study.notes)
    words = ["linkwright study parallel-manipulator", *(["--quick"] if quick else []), f"--seed {study.seed}"]
    if len(study.plants) != (4 if quick else 20):
        words.append(f"--plants {len(study.plants)}")
    same = study.rig == Rig(seed=study.seed)
    other = "" if same else " (the rig differs from the default one: give <code>run_study</code> that of the numbers)"
    inside = paragraph(
        f"All random numbers come from the seed {study.seed}: noise, M-sequences and perturbations are the same in "
        f"every run, times are not. The study took {study.seconds:.0f} s{other}."
    )
    inside += f"<pre>{escaped(' '.join(words))}</pre>\n"
    inside += paragraph(escaped(", ".join(f"{name} {version}" for name, version in versions().items())) + ".")
    shown = ((name, WORDS.get(_NUMBER.sub("", Path(name).stem), "")) for name in names if name != PAGE)
    rows = [(Cell(f'<a href="{escaped(name)}">{escaped(name)}</a>'), words) for name, words in shown]
    inside += "<h3>Data</h3>\n" + table(columns("file", "what"), rows)
    return Section("again", "Running it again, and the data", "", inside)
