"""Checkpoints: a run that was ended goes on to the same bits."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum, four_bar

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightError, ModelError
from linkwright.simulation import checkpoint as keeper
from linkwright.simulation.compiled_engines import Adaptive, Fixed
from linkwright.simulation.python_engine import Stiff
from run_settings import settings

RUNS = {
    "adaptive": (Adaptive, {}),
    "between": (Adaptive, {"method": "dop853", "interval": 0.01}),
    "fixed": (Fixed, {"method": "rk4", "dt": 1e-4}),
    "fixed, between": (Fixed, {"method": "rk4", "dt": 1e-4, "interval": 0.013}),
    "stiff": (Stiff, {"method": "radau", "rtol": 1e-6}),
}


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("time", "q", "v", "a"))


def event():
    return lw.Event(lambda t, q, v: q[1], name="folded")


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("mech", [double_pendulum(), four_bar()], ids=["tree", "closed"])
def test_an_interrupted_run_resumes_to_the_same_bits(monkeypatch, tmp_path, name, mech):
    engine, options = RUNS[name]
    options = {**options, "q0": SWUNG if mech.nq == 2 else None, "events": event()}
    monkeypatch.setattr("linkwright.simulation.compiled_engines.PIECE", 2e-4)  # many short calls
    whole = lw.simulate(mech, 2.0, **settings(**options))
    advance, calls = engine.advance, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == (2 if engine is Adaptive else 4):
            raise KeyboardInterrupt
        return advance(self)

    path = tmp_path / "run.lwc"
    with monkeypatch.context() as patch:
        patch.setattr(engine, "advance", interrupted)
        part = lw.simulate(mech, 2.0, **settings(checkpoint=path, **options))
    assert part.status.reason == "interrupted"
    assert part.time[-1] < 2.0
    resumed = lw.simulate(mech, 2.0, **settings(checkpoint=path, resume=True, **options))
    assert resumed.status.ok
    assert same(resumed, whole)
    assert resumed.counters == whole.counters
    assert [(e.name, e.time) for e in resumed.events] == [(e.name, e.time) for e in whole.events]


@pytest.mark.parametrize("mech", [double_pendulum(), four_bar()], ids=["tree", "closed"])
@pytest.mark.parametrize("options", [{}, {"method": "dop853"}, {"method": "rk4", "dt": 0.01}])
def test_a_run_whose_law_is_called_from_python_can_be_kept(monkeypatch, tmp_path, mech, options):
    monkeypatch.setattr(keeper, "EVERY", 0.0)
    monkeypatch.setattr(keeper, "SHARE", 0.0)

    def called(t, q, v):
        return -0.3 * v if t > 0.3 else -0.03 * v  # its jump makes steps be rejected

    path = tmp_path / "run.lwc"
    options = {**options, "q0": SWUNG if mech.nq == 2 else None}
    first = lw.simulate(mech, 1.0, tau=called, **settings(checkpoint=path, **options))
    again = lw.simulate(mech, 1.0, tau=called, **settings(checkpoint=path, resume=True, **options))
    assert first.status.ok
    assert "dt" in options or first.counters.rejected > 0
    assert same(first, again)
    assert first.counters == again.counters


def test_a_killed_process_resumes_to_the_same_bits(tmp_path):
    path = tmp_path / "run.lwc"
    script = textwrap.dedent(
        f"""
        import linkwright as lw
        from linkwright.simulation import checkpoint as keeper
        keeper.EVERY, keeper.SHARE = 0.0, 0.0
        print("ready", flush=True)
        options = dict(q0={SWUNG.tolist()}, method="rk4", dt=1e-4)
        lw.simulate(lw.chain(2), 400.0, saving=lw.Saving(interval=0.1, checkpoint={str(path)!r}), **options)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    deadline = time.monotonic() + 120.0
    began = None
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            began = began or path.stat().st_mtime_ns
            if path.stat().st_mtime_ns != began:  # written again: steps have been made
                break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.exists()
    options = {"q0": SWUNG.tolist(), "method": "rk4", "dt": 1e-4, "interval": 0.1}
    resumed = lw.simulate(lw.chain(2), 400.0, **settings(checkpoint=path, resume=True, **options))
    assert same(resumed, lw.simulate(lw.chain(2), 400.0, **settings(**options)))


def test_a_finished_run_is_resumed_at_its_end(tmp_path):
    path = tmp_path / "run.lwc"
    mech = double_pendulum()
    first = lw.simulate(mech, 0.5, q0=SWUNG, saving=lw.Saving(checkpoint=path))
    again = lw.simulate(mech, 0.5, q0=SWUNG, saving=lw.Saving(checkpoint=path, resume=True))
    assert same(first, again)
    assert again.status.ok


@pytest.mark.parametrize("how", [{}, {"method": "rk4", "dt": 1e-3}, {"method": "rk4", "dt": 1e-3, "interval": 0.01}])
def test_a_run_that_an_event_ended_stays_ended(tmp_path, how):
    path = tmp_path / "run.lwc"
    mech = double_pendulum()
    options = {"q0": SWUNG, "events": lw.Event(lambda t, q, v: q[0] - 1.0, terminal=True, name="low"), **how}
    first = lw.simulate(mech, 5.0, **settings(checkpoint=path, **options))
    again = lw.simulate(mech, 5.0, **settings(checkpoint=path, resume=True, **options))
    assert first.status.reason == again.status.reason == "event"
    assert same(first, again)


@pytest.mark.parametrize(
    ("changed", "what"),
    [({"rtol": 1e-6}, "rtol"), ({"method": "dop853"}, "method"), ({"tau": [1.0, 0.0]}, "tau"), ({"q0": [0, 0]}, "q0")],
)
def test_a_checkpoint_of_another_run_is_refused_with_what_differs(tmp_path, changed, what):
    path = tmp_path / "run.lwc"
    lw.simulate(double_pendulum(), 0.1, q0=SWUNG, saving=lw.Saving(checkpoint=path))
    with pytest.raises(ModelError, match=f"another run: its .*{what}"):
        lw.simulate(double_pendulum(), 0.1, **settings(**{"q0": SWUNG, "checkpoint": path, "resume": True, **changed}))


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    path = tmp_path / "run.lwc"
    lw.simulate(double_pendulum(), 0.1, saving=lw.Saving(checkpoint=path))
    with pytest.raises(ModelError, match="its model differs"):
        lw.simulate(lw.chain(3), 0.1, saving=lw.Saving(checkpoint=path, resume=True))


@pytest.mark.parametrize("damage", ["missing", "empty", "text", "cut", "flipped", "packed"])
def test_a_damaged_checkpoint_is_told_so(tmp_path, damage):
    path = tmp_path / "run.lwc"
    lw.simulate(double_pendulum(), 0.1, q0=SWUNG, saving=lw.Saving(checkpoint=path))
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "packed":
        with zipfile.ZipFile(path) as old:
            parts = {name: old.read(name) for name in old.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name, part in parts.items():
                new.writestr(name, part)
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        path.write_bytes({"empty": b"", "text": b"hello", "cut": content[:middle], "flipped": flipped}[damage])
    with pytest.raises(FormatError, match="leave resume out"):
        lw.simulate(double_pendulum(), 0.1, q0=SWUNG, saving=lw.Saving(checkpoint=path, resume=True))


@pytest.mark.parametrize(
    ("name", "value"),
    [("control", np.zeros(3)), ("last_q", np.zeros((2, 2))), ("q", np.zeros((1, 2))), ("t", np.array(["a"]))],
)
def test_a_checkpoint_that_was_made_up_is_told_so(tmp_path, name, value):
    path = tmp_path / "run.lwc"
    lw.simulate(double_pendulum(), 0.1, q0=SWUNG, saving=lw.Saving(checkpoint=path))
    parts = dict(np.load(path, allow_pickle=False))
    parts[name] = value
    with open(path, "wb") as file:
        np.savez(file, **parts)
    with pytest.raises(FormatError, match="leave resume out"):
        lw.simulate(double_pendulum(), 0.1, q0=SWUNG, saving=lw.Saving(checkpoint=path, resume=True))


@pytest.mark.parametrize(
    "options", [{}, {"method": "rk4", "dt": 0.01}, {"method": "radau", "rtol": 1e-4}, {"interval": 0.05}]
)
@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["q"].__setitem__((-1, 0), np.nan),
        lambda p: p["last_t"].__setitem__(0, 0.0123),
        lambda p: p["t"].__setitem__(-1, 0.2),
        lambda p: p["control"].__setitem__(1, np.nan) if "control" in p else p["last_a"].__setitem__((0, 0), np.inf),
        lambda p: p["control"].__setitem__(1, 0.0) if "control" in p else p["last_t"].__setitem__(0, -1.0),
        lambda p: p.update({n: p[n][:0] for n in ("t", "q", "v", "a")}),
    ],
    ids=["no number", "last time", "after the end", "control", "no step", "no rows"],
)
def test_a_checkpoint_that_does_not_fit_its_run_is_told_so(tmp_path, options, change):
    path = tmp_path / "run.lwc"
    options = {"q0": SWUNG, "checkpoint": path, **options}
    lw.simulate(double_pendulum(), 0.1, **settings(**options))
    parts = dict(np.load(path, allow_pickle=False))
    change(parts)
    with open(path, "wb") as file:
        np.savez(file, **parts)
    with pytest.raises(FormatError, match="leave resume out"):
        lw.simulate(double_pendulum(), 0.1, **settings(resume=True, **options))


@pytest.mark.parametrize("done", [b"0.0", b"1" + 400 * b"0", b"NaN", b"true", b"1e999", b"-1"])
def test_a_number_of_steps_that_cannot_be_is_told_so(tmp_path, done):
    path = tmp_path / "run.lwc"
    options = {"q0": SWUNG, "method": "rk4", "dt": 0.01, "checkpoint": path}
    lw.simulate(double_pendulum(), 0.1, **settings(**options))
    parts = dict(np.load(path, allow_pickle=False))
    header = re.sub(rb'"done": [^}]*', b'"done": ' + done, parts["header"].tobytes())
    parts["header"] = np.frombuffer(header, np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **parts)
    with pytest.raises(FormatError, match="leave resume out"):
        lw.simulate(double_pendulum(), 0.1, **settings(resume=True, **options))


@pytest.mark.parametrize("first_ends", [True, False])
def test_events_of_one_name_do_not_confuse_a_resumed_run(tmp_path, first_ends):
    events = [lw.Event(lambda t, q, v, x=x: q[0] - x, x == 1.1 and first_ends, name="low") for x in (1.0, 1.1)]
    options = {"q0": SWUNG, "events": events, "checkpoint": tmp_path / "run.lwc"}
    first = lw.simulate(double_pendulum(), 1.0, **settings(**options))
    again = lw.simulate(double_pendulum(), 1.0, **settings(resume=True, **options))
    assert [e.name for e in first.events][:2] == ["low", "low (2)"]
    assert first.status.reason == again.status.reason == ("event" if first_ends else "finished")
    assert same(first, again)


def test_a_checkpoint_of_other_events_is_refused(tmp_path):
    path = tmp_path / "run.lwc"
    one, other = (lw.Event(lambda t, q, v, x=x: q[0] - x, name="low") for x in (1.0, 2.0))
    lw.simulate(double_pendulum(), 0.1, events=one, saving=lw.Saving(checkpoint=path))
    with pytest.raises(ModelError, match="its events differ"):
        lw.simulate(double_pendulum(), 0.1, events=other, saving=lw.Saving(checkpoint=path, resume=True))


def test_who_forgets_to_resume_loses_nothing(monkeypatch, tmp_path):
    path = tmp_path / "run.lwc"
    options = {"q0": SWUNG, "checkpoint": path}
    advance, calls = Adaptive.advance, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(Adaptive, "advance", interrupted)
        lw.simulate(double_pendulum(), 20.0, **settings(**options))
    content = path.read_bytes()
    with pytest.raises(ModelError, match="resume=True"):
        lw.simulate(double_pendulum(), 20.0, **settings(**options))
    assert path.read_bytes() == content
    for name in ("run.lwc.old", "run.lwc.old2"):  # another run keeps it aside, and so does the next
        other = lw.simulate(double_pendulum(), 0.1 + 0.1 * len(name), **settings(**options))
        assert name in other.status.notes[0]
    assert (tmp_path / "run.lwc.old").read_bytes() == content
    assert lw.simulate(double_pendulum(), 0.1 + 0.1 * len("run.lwc.old2"), **settings(**options)).status.notes == ()


@pytest.mark.parametrize("numbers", ["[]", '{"done": 99}', '{"done": -1}', '{"done": "x"}', "{}", '{"other": 1}'])
def test_a_checkpoint_with_other_numbers_is_told_so(tmp_path, numbers):
    path = tmp_path / "run.lwc"
    options = {"q0": SWUNG, "method": "rk4", "dt": 0.01, "checkpoint": path}
    lw.simulate(double_pendulum(), 0.1, **settings(**options))
    parts = dict(np.load(path, allow_pickle=False))
    header = parts["header"].tobytes().replace(b'"numbers": {"done": 10}', b'"numbers": ' + numbers.encode())
    parts["header"] = np.frombuffer(header, np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **parts)
    with pytest.raises(FormatError, match="leave resume out"):
        lw.simulate(double_pendulum(), 0.1, **settings(resume=True, **options))


def test_a_full_disk_ends_the_run_and_keeps_what_was_computed(monkeypatch, tmp_path):
    monkeypatch.setattr(keeper, "EVERY", 0.0)
    monkeypatch.setattr(keeper, "SHARE", 0.0)
    write, calls = keeper.write_checkpoint, []

    def full(*arguments):
        calls.append(1)
        if len(calls) < 3:
            write(*arguments)
            return
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise LinkwrightError("cannot write: No space left on device") from error

    monkeypatch.setattr(keeper, "write_checkpoint", full)
    sol = lw.simulate(double_pendulum(), 50.0, q0=SWUNG, saving=lw.Saving(checkpoint=tmp_path / "run.lwc"))
    assert sol.status.reason == "disk full"
    assert not sol.status
    assert sol.time[-1] == sol.status.time > 0.0
    assert "No space" in sol.status.message


def test_a_place_that_cannot_be_written_is_an_error_before_the_run(tmp_path):
    with pytest.raises(LinkwrightError, match="folder"):
        lw.simulate(double_pendulum(), 1.0, saving=lw.Saving(checkpoint=tmp_path / "none" / "run.lwc"))
    with pytest.raises(ModelError, match="checkpoint"):
        lw.simulate(double_pendulum(), 1.0, saving=lw.Saving(resume=True))


def test_a_file_that_is_no_checkpoint_is_not_replaced(tmp_path):
    mech, run = double_pendulum(), {"t_end": 0.1, "q0": SWUNG}
    np.savez(tmp_path / "data.npz", x=np.zeros(3))
    (tmp_path / "precious.mks").write_text("BODY a (mass = 1)")
    os.mkfifo(tmp_path / "pipe")
    for name, told in (("data.npz", "no checkpoint"), ("precious.mks", "no checkpoint"), ("pipe", "is a pipe")):
        before = (tmp_path / name).lstat()
        with pytest.raises(LinkwrightError, match=told):
            lw.simulate(mech, **settings(checkpoint=tmp_path / name, **run))
        after = (tmp_path / name).lstat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    (tmp_path / "empty").touch()
    for name in ("new", "new", "empty"):
        assert lw.simulate(mech, **settings(checkpoint=tmp_path / name, **run)).status
