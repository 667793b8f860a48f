"""Everything that reads gives an answer or one of our errors; and the fuzzer sees what does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rotation
from fuzz import driver, targets, work
from fuzz.targets import BY_NAME, TARGETS, Target, regressions

INPUTS = 12  # of a target, times its share


def test_odd_inputs_are_read_or_refused(tmp_path):
    """Some hundred inputs for every reader, by the seed of this run; `make fuzz` tries as many as there is time for."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--count", str(INPUTS), "--seed", str(rotation.SEED), "--failures", tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("name", "path"), [(t.name, path) for t in TARGETS for path in regressions(t.name)], ids=lambda x: Path(x).name
)
def test_what_was_found_once_is_read_or_refused(tmp_path, name, path):
    target = BY_NAME[name]
    target.prepare(tmp_path)
    begin = time.process_time()
    outcome, text = work.verdict(target, path.read_bytes(), tmp_path)
    assert not outcome.startswith("!"), text
    assert time.process_time() - begin < work.SLOW


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_members_of_the_corpus_are_read(tmp_path, target):
    """What readers refuse at once leads no further into them."""
    target.prepare(tmp_path)
    refused = {"design-outputs": 2}  # argmax and forces have no derivatives
    outcomes = [work.verdict(target, data, tmp_path) for data in target.corpus()]
    assert len([outcome for outcome in outcomes if outcome[0] != "read"]) <= refused.get(target.name, 0), outcomes


def test_a_seed_gives_the_same_inputs():
    for target in map(BY_NAME.__getitem__, ("mks", "mjcf", "manifest", "chunk", "checkpoint", "solution")):
        first = [target.input(7, k) for k in range(100)]
        assert [target.input(7, k) for k in reversed(range(100))] == first[::-1], target.name


# -- the fuzzer itself --------------------------------------------------------------------------------------------
def test_every_target_has_its_turn_however_short_the_time():
    def slow(data, folder):
        time.sleep(0.01)

    several = [Target(f"slow {k}", slow, lambda: [b"abc"], lambda rng, data, corpus: data) for k in range(4)]
    for seconds in (0.8 * driver.SLICE, 1e-3):
        tallies = driver.fuzz(several, 1, seconds=seconds, tell=lambda line: None)
        assert min(tally.tried for tally in tallies.values()) > 0


def planted(run):
    """A target that breaks a promise at its third input."""

    def reader(data, folder):
        if data == target.input(1, 2):
            run()

    target = Target("planted", reader, lambda: [b"abc"], lambda rng, data, corpus: data + rng.randbytes(8))
    return target


def tried(target, tmp_path):
    found = driver.fuzz([target], 1, count=6, failures=tmp_path, tell=lambda line: None)["planted"]
    assert found.tried == 6
    return found.findings


def division():
    return 1 // 0


def leak():
    leak.held = bytearray(b"x") * (2 * work.GROWTH)


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (division, "!ZeroDivisionError"),
        (lambda: os.abort(), "!crash"),
        (lambda: bytearray(2 * work.MEMORY), "!MemoryError"),
        (leak, "!memory"),
        (lambda: sys.exit(), "!SystemExit"),
    ],
    ids=["exception", "crash", "memory", "leak", "exit"],
)
def test_a_broken_promise_is_found_and_its_input_kept(monkeypatch, tmp_path, run, outcome):
    monkeypatch.setattr(work, "GROWTH", 2**26)
    target = planted(run)
    (finding,) = tried(target, tmp_path)
    assert finding.outcome == outcome
    assert finding.file is not None
    assert finding.file.read_bytes() == target.input(1, finding.number)


def spin():
    while True:
        pass


@pytest.mark.parametrize("run", [spin, lambda: time.sleep(3600)], ids=["spinning", "waiting"])
def test_what_never_ends_is_found(monkeypatch, tmp_path, run):
    monkeypatch.setattr(driver, "SLOW", 0.1)
    monkeypatch.setattr(driver, "WAIT", 3.0)
    (finding,) = tried(planted(run), tmp_path)
    assert finding.outcome == "!hang"


def test_our_errors_are_no_findings(tmp_path):
    from linkwright.errors import FormatError

    def refuse():
        raise FormatError("is not read")

    assert tried(planted(refuse), tmp_path) == []


def test_regressions_are_of_targets_that_there_are():
    folders = {path.name for path in targets.REGRESSIONS.iterdir()} if targets.REGRESSIONS.is_dir() else set()
    assert folders <= set(BY_NAME)
