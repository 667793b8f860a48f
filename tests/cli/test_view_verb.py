"""`linkwright view`: pages from solutions, and a server of one page."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command import linkwright, one_line

import linkwright as lw
from linkwright.cli.view_verb import server
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status


def solution(points: int = 3) -> Solution:
    d = lw.chain(2).description
    zeros = np.zeros((points, d.nb, 3))
    e = np.tile([1.0, 0, 0, 0], (points, d.nb, 1))
    more = {"status": Status(ok=True), "counters": Counters(), "iterations": np.zeros(points, int)}
    return Solution.of(d, np.arange(float(points)), zeros, e, zeros, zeros, zeros, zeros, **more)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A solution that opens; the tests here are not about the file."""
    monkeypatch.setattr(lw, "open", lambda path: solution())
    return tmp_path / "x.nc"


def test_the_page_is_written_beside_the_solution(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "view", saved)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(f"{saved.with_suffix('.html')}: ")
    assert saved.with_suffix(".html").read_bytes().startswith(b"<!doctype html>")


def test_the_page_is_written_where_asked_with_the_title_given(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert linkwright(capsys, "view", saved, "-o", tmp_path / "y.html", "--title", "Two links").code == 0
    assert "<title>Two links</title>" in (tmp_path / "y.html").read_text(encoding="utf-8")


def test_the_page_is_written_into_a_folder_as_run_does(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("new", "new"):
        assert linkwright(capsys, "view", saved, "-o", tmp_path / folder).code == 0
    assert (tmp_path / "new" / "x.html").read_bytes().startswith(b"<!doctype html>")
    (tmp_path / "taken").write_text("")
    assert "is a file; name a folder" in one_line(linkwright(capsys, "view", saved, "-o", tmp_path / "taken"))


def test_the_page_is_opened_on_request(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert linkwright(capsys, "view", saved, "--open").code == 0
    assert opened == [saved.with_suffix(".html").as_uri()]


def test_a_page_never_takes_the_place_of_its_solution(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--output" in one_line(linkwright(capsys, "view", saved, "-o", saved))


def test_an_empty_solution_is_one_line_of_error(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lw, "open", lambda path: solution(0))
    assert "no time points" in one_line(linkwright(capsys, "view", saved))


def test_a_file_that_is_not_there_is_one_line_of_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "gone.nc" in one_line(linkwright(capsys, "view", tmp_path / "gone.nc"))


@pytest.mark.parametrize("folder", [".", "/", ""])
def test_a_folder_is_one_line_of_error(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder; give a solution" in one_line(linkwright(capsys, "view", folder))


def test_a_model_is_to_be_run_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert "run it first" in one_line(linkwright(capsys, "view", "model.mks"))


@pytest.fixture
def port() -> Iterator[int]:
    with server(b"<!doctype html>a page") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running.server_port
        running.shutdown()
        thread.join()


def ask(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_server_gives_its_page(port: int) -> None:
    assert ask(port, "/") == (200, b"<!doctype html>a page")


@pytest.mark.parametrize("path", ["/x.nc", "/../etc/passwd"])
def test_the_server_gives_nothing_else(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404


def test_the_server_answers_to_this_machines_names_alone(port: int) -> None:
    assert ask(port, "/", "evil.example")[0] == 403
    assert ask(port, "/", "localhost")[0] == 200
