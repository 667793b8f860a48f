"""The study's report: a page that says everything, data that can be read back, and a folder that is never half-made."""

import csv
import io
import json
import re
import sys
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console
from scipy.signal import cont2discrete, lfilter

import linkwright as lw
from linkwright import control
from linkwright.control.hinfinity.repeated_design import repeated_design
from linkwright.errors import LinkwrightError
from linkwright.studies.manipulator import report, report_data
from linkwright.studies.manipulator.experiments import Jump, Perturbed, Tracking, Wave, Waves
from linkwright.studies.manipulator.machine_figures import svg, sweep_figure
from linkwright.studies.manipulator.manipulator_study import Study, counted
from linkwright.studies.manipulator.rig import Rig, Variation
from linkwright.studies.manipulator.timing import PAPER, Timing

DT = 2e-3
VOID = {"meta", "img", "br", "link", "input"}
EVIL = "fixed K: <script>alert(1)</script> & the rest"


class Push:
    """A constant torque."""

    def step(self, k, t, measured):
        return [1.0]


def sampled_run():
    """A pendulum of a few samples stands in for the machine: the report asks a run for torques and its animation."""
    return control.Loop(lw.chain(1), Push(), period=0.05, torque_limit=0.5).run(0.3)


def tracking(run):
    time = DT * np.arange(100)
    wanted = np.stack([0.1 * time, 0.2 * time, 0.75 + time**2], axis=1)
    lag = {"pid": 5e-3, "dynamic": 2e-3, "friction": 1e-3}
    position = {law: wanted - [0.0, 0.0, shift] for law, shift in lag.items()}
    return Tracking(
        time=time,
        reference=wanted,
        position=position,
        moves={law: control.Move(shift, shift, shift, shift) for law, shift in lag.items()},
        path=dict(lag),
        rms=dict(lag),
        runs=dict.fromkeys(lag, run),
    )


def jump(run, t50, vibration):
    time = np.array([0.0, 0.02, 0.1, 0.2, 0.3, 0.42, 0.62])
    wanted = np.array([0.0, 5.0, 5.0, 5.0, -5.0, 0.0, 0.0])
    return Jump(time, wanted, 0.9 * wanted, t50, vibration, 0.01, run)


def design():
    """One real round on a known plant that rings at 16 Hz."""
    w = 2.0 * np.pi * 16.0
    b, a, _ = cont2discrete(([w * w], [1.0, 0.06 * w, w * w]), DT)

    def experiment(two):
        r = control.m_sequence(10, 1500, amplitude=1.0, hold=2)
        noise = 0.05 * np.random.default_rng(0).standard_normal(len(r))
        return control.Record(r, lfilter(np.ravel(b), a, r) + noise, DT, r=r)

    slow = ([100.0**2], [1.0, 200.0, 100.0**2])
    return repeated_design(experiment, slow, ([300.0], [1.0, 300.0]), dt=DT, rounds=1, orders=(2, 2, 1, 1, 1))


@pytest.fixture(scope="module")
def study():
    run = sampled_run()
    time = DT * np.arange(200)
    sine = np.sin(100.0 * time)
    timing = Timing(
        parts=dict.fromkeys(PAPER, (2.0, 1.0)),
        forms={"serial": 7.25, "simd": 3.5},
        corrections=(1.5, 3),
        counts={"sum of the parts": 4321, "one program": 1234},
        rate=10_000.0,
        late=np.linspace(0.1, 20.0, 50),
        took=np.linspace(3.0, 9.0, 50),
        missed=2,
    )
    plants = (
        Perturbed(Variation(1.1, 0.9, 1.2), (0.06, 2.0), (0.012, 0.5), (0.01, 0.4), 300.0),
        Perturbed(Variation(0.9, 1.1, 0.7), (0.05, 2.0), None, (0.02, 0.4), 260.0, EVIL),
    )
    many = Waves(np.array([4.0, 16.0, 40.0]), np.array([1.0, -3.0j, 0.2]), np.array([1.0, 1.0 - 0.5j, 0.6]))
    return Study(
        rig=Rig(),
        seed=0,
        straight=tracking(run),
        curve=tracking(run),
        without=jump(run, 0.0612, 3.0),
        design=design(),
        with_feedback=jump(run, 0.0123, 0.5),
        paper_response=jump(run, float("nan"), 0.6),
        wave=Wave(16.0, time, sine, 3.0 * sine, sine),
        sweep=many,
        plants=plants,
        timing=timing,
        seconds=12.0,
        notes=("a quick run: made up",),
    )


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    target = tmp_path_factory.mktemp("report") / "deep" / "one"
    assert report.write_report(study, target, reach_points=13) == target.resolve() / "index.html"
    return target


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "index.html").read_text(encoding="utf-8"))


class Page(HTMLParser):
    """A page taken apart: that elements close in order, its words, and what it refers to."""

    def __init__(self, text):
        super().__init__()
        self.source, self.open, self.words, self.tags, self.text = text, [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    def all(self, tag, name):
        return [attrs[name] for one, attrs in self.tags if one == tag and name in attrs]


@pytest.fixture
def undrawn(monkeypatch):
    """Reports without the time that figures take: these tests are about the folder."""
    monkeypatch.setattr(report, "_pictures", lambda study, scratch, points: ({}, {}))
    monkeypatch.setattr(report, "_page", lambda *given: "<!doctype html>")


# -- the page -------------------------------------------------------------------------------------------------------
def test_the_page_says_every_claim_and_whether_it_is_met(study, page):
    for claim in study.claims():
        for words in claim[:4]:
            assert " ".join(words.split()) in page.text
    met, judged = counted(study.claims())
    assert 0 < met < judged < len(study.claims())
    assert page.text.count("✓ met") == met
    assert page.text.count("✗ not met") == judged - met


def test_every_section_is_in_the_contents_and_every_link_leads_somewhere(folder, page):
    keys = page.all("section", "id")
    assert len(keys) == len(set(keys)) > 10
    for link in page.all("a", "href"):
        assert link[1:] in keys if link.startswith("#") else (folder / link).is_file()
    assert {f"#{key}" for key in keys} <= set(page.all("a", "href"))


def test_the_page_loads_nothing_but_the_animation_beside_it(page):
    assert not {"script", "link", "object", "embed"} & {tag for tag, _ in page.tags}
    assert page.all("iframe", "src") == ["animation.html"]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.all("img", "src"))
    assert not re.search("https?:", page.source)
    assert "url(" not in page.source
    assert "@import" not in page.source


def test_figures_are_drawings_with_words_and_load_nothing(page):
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(images) == 17
    for attrs in images:
        assert len(attrs["alt"]) > 20
        drawn = b64decode(attrs["src"].partition(",")[2])
        assert drawn.lstrip().startswith(b"<?xml")
        assert drawn.rstrip().endswith(b"</svg>")
        links = re.findall(rb'(?:href|src)="([^"]*)"', drawn)
        assert all(link.startswith((b"#", b"data:")) for link in links)
        assert b"<script" not in drawn


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_no_number_is_shown_as_not_a_number(study, page):
    text = page.text
    for claim in study.claims():  # whose words are the study's own
        text = text.replace(claim.found, "")
    assert not re.search(r"\b(?:nan|inf|None)\b", text)


def test_what_a_plant_says_of_itself_is_text_and_never_markup(page):
    assert " ".join(EVIL.split()) in page.text
    assert "<script" not in page.source


def test_the_worst_plant_is_marked(page):
    assert "worst with the same K" in page.text
    assert "worst with its own" in page.text


def test_the_rounds_and_times_are_told(study, page):
    one = study.design.rounds[0]
    assert f"{one.design.gamma_opt:.3g}" in page.text
    assert f"{one.order} of {one.full_order}" in page.text
    for words in ("7.25", "4,321", "2 steps ended after", "16.8 ms"):
        assert words in page.text


def test_the_page_says_how_to_run_it_again(page):
    assert "linkwright study parallel-manipulator --quick --seed 0 --plants 2" in page.text


def test_a_rig_of_ones_own_is_not_said_to_be_the_commands(study, page):
    own = replace(study, rig=Rig(noise=0.2))
    assert "the rig differs" in report._again_section(own, []).inside
    assert "the rig differs" not in page.text


def test_the_page_stays_small(folder):
    assert (folder / "index.html").stat().st_size < 5_000_000


# -- data -----------------------------------------------------------------------------------------------------------
def test_numbers_come_back_from_json_and_none_is_not_a_number(study, folder):
    text = (folder / "study.json").read_text(encoding="utf-8")

    def refuse(word):
        raise AssertionError(word)

    found = json.loads(text, parse_constant=refuse)
    assert found["claims"] == [claim._asdict() for claim in study.claims()]
    assert found["acceleration"]["without"]["t50"] == 0.0612
    assert found["acceleration"]["paper_response"]["t50"] is None
    assert found["plants"][1]["fixed"]["t50_ratio"] is None
    assert found["plants"][0]["fixed"]["t50_ratio"] == pytest.approx(0.2)
    assert found["straight"]["pid"]["delay"] == 5e-3
    assert found["design"]["rounds"][0]["gamma_opt"] == study.design.rounds[0].design.gamma_opt
    assert found["sweep"][1]["without"] == {"re": 0.0, "im": -3.0}
    assert found["timing"]["took"]["100 %"] == 9.0
    assert found["rig"]["drives"]["stiffness"] == study.rig.drives.stiffness


def test_files_are_those_that_the_numbers_name(folder):
    named = json.loads((folder / "study.json").read_text(encoding="utf-8"))["files"]
    there = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert there == set(named)


def test_series_come_back_from_csv(study, folder):
    with (folder / "data" / "straight.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(study.straight.time)
    z = np.array([float(row["pid_z_m"]) for row in rows])
    assert np.allclose(z, study.straight.position["pid"][:, 2], rtol=1e-8)


def test_what_a_plant_lacks_is_empty_in_csv(folder):
    with (folder / "data" / "plants.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["fixed_t50_s"] == ""
    assert rows[1]["why"] == EVIL


def test_plain_data_has_no_arrays_and_no_infinities():
    given = {1: np.array([1.0, np.inf]), "z": 1 + 2j, "n": np.int64(3), "v": Variation()}
    assert report_data.plain(given) == {
        "1": [1.0, None],
        "z": {"re": 1.0, "im": 2.0},
        "n": 3,
        "v": {"mass": 1.0, "stiffness": 1.0, "friction": 1.0},
    }


def test_the_same_figure_is_the_same_bytes(study):
    assert svg(sweep_figure, study.sweep) == svg(sweep_figure, study.sweep)


# -- the folder -----------------------------------------------------------------------------------------------------
def test_a_folder_with_other_things_is_refused_and_left_alone(study, tmp_path, undrawn):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(LinkwrightError, match="not empty and holds no earlier report"):
        report.write_report(study, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_overwriting_leaves_what_is_not_the_reports(study, tmp_path, undrawn):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "index.html").write_text("old")
    report.write_report(study, tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "index.html").read_text() != "old"


def test_an_earlier_report_is_replaced_with_what_it_had_more(study, tmp_path, undrawn):
    target = tmp_path / "one"
    report.write_report(study, target)
    (target / "data" / "notes.txt").write_text("mine")
    assert (target / "data" / "plants.csv").exists()
    report.write_report(replace(study, plants=()), target)
    assert not (target / "data" / "plants.csv").exists()
    assert (target / "data" / "notes.txt").exists()
    assert json.loads((target / "study.json").read_text(encoding="utf-8"))["plants"] == []


def test_a_forged_list_of_files_removes_nothing_outside(study, tmp_path, undrawn):
    target, other = tmp_path / "one", tmp_path / "precious.csv"
    target.mkdir()
    other.write_text("mine")
    forged = {"format": report_data.FORMAT, "files": ["../precious.csv", "data/../../precious.csv", 3, str(other)]}
    (target / "study.json").write_text(json.dumps(forged))
    report.write_report(study, target)
    assert other.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"format": "something else"}'])
def test_a_file_of_the_same_name_is_no_earlier_report(tmp_path, text):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(LinkwrightError, match="no earlier report"):
        report.check_folder(tmp_path)


@pytest.mark.parametrize("new", [True, False])
def test_a_report_that_fails_leaves_nothing_behind(study, tmp_path, monkeypatch, new):
    def fail(*given):
        raise RuntimeError("no ink")

    target = tmp_path / "one"
    if not new:
        target.mkdir()
    monkeypatch.setattr(report, "_pictures", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        report.write_report(study, target)
    assert list(tmp_path.rglob("*")) == ([] if new else [target])


def test_a_disk_that_is_full_is_a_sentence(study, tmp_path, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "_pictures", full)
    with pytest.raises(LinkwrightError, match=r"cannot write .*one: No space left on device"):
        report.write_report(study, tmp_path / "one")


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "one"
    file.write_text("mine")
    for place in (file, file / "deeper"):
        with pytest.raises(LinkwrightError, match="is a file"):
            report.check_folder(place)


def test_a_folder_where_the_page_goes_is_refused_even_when_overwriting(tmp_path):
    (tmp_path / "index.html").mkdir()
    with pytest.raises(LinkwrightError, match="is a folder where the report has a file"):
        report.check_folder(tmp_path, overwrite=True)


def test_without_matplotlib_there_is_one_sentence_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LinkwrightError, match=r'pip install "linkwright\[control\]"'):
        report.check_folder(tmp_path)


# -- the terminal ---------------------------------------------------------------------------------------------------
def test_the_summary_has_every_claim(study):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report.summary(study))
    shown = console.export_text()
    for claim in study.claims():
        assert claim.what in shown
    assert "✗ NO" in shown
    assert "a quick run: made up" in shown
