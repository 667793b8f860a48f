"""Processes that are killed at any moment: what they wrote is whole, and the run goes on to the same numbers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import linkwright as lw
from rotation import SEED

GUARD = 300  # seconds after which something is taken to hang
TEXT = """MODEL pendulum
SYSTEM (DYNAMIC ANALYSIS, ending time = 20, print interval = 0.02, method = rk4, step = 5e-5);
GRAVITY (0, -9.81, 0);
BODY base (ground);
BODY bob (mass = 1, inertia = (0.1, 0.1, 0.1));
REVOLUTE JOINT hinge (triad = base, triad = (associated body = bob, origin = (0, 1, 0)));
INITIAL (hinge.angle = 1);
ENDMODEL
"""
#: The command line with checkpoints at every opportunity.
RUN = "from linkwright.simulation import checkpoint as keeper; keeper.EVERY = keeper.SHARE = 0.0; "
RUN += "import sys; from linkwright.cli.app import run; print('ready', flush=True); sys.exit(run(sys.argv[1:]))"


def started(*words: object) -> subprocess.Popen[bytes]:
    """The command line in a process of its own, once its modules are loaded."""
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def check_whole(folder: Path) -> None:
    """Whatever has a name in the folder is complete; parts have names that say so."""
    for file in folder.glob("*") if folder.exists() else ():
        if file.suffix == ".nc":
            assert lw.open(file).status
        elif file.suffix == ".html":
            assert file.read_text(encoding="utf-8").rstrip().endswith("</html>")
        elif file.suffix == ".csv":
            assert file.read_text().count("\n") == 1 + len(lw.open(folder / "pendulum.nc").time)
        else:
            assert file.suffix in (".checkpoint", ".part"), file


def test_a_run_that_is_killed_again_and_again_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    model = tmp_path / "pendulum.mks"
    model.write_text(TEXT)
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    with started("run", model, "-o", whole, "--csv") as process:
        process.communicate(timeout=GUARD)
        assert process.returncode == 0
    rng = np.random.default_rng(SEED)
    for last in (*([False] * 3), True):
        resume = ["--resume"] if (folder / "pendulum.checkpoint").exists() else []
        with started("run", model, "-o", folder, "--csv", *resume) as process:
            try:
                process.communicate(timeout=GUARD if last else rng.uniform(0.0, 1.5))
            except subprocess.TimeoutExpired:
                assert not last, "the run hangs"
                process.kill()
        check_whole(folder)
    assert process.returncode == 0
    expected, found = lw.open(whole / "pendulum.nc"), lw.open(folder / "pendulum.nc")
    np.testing.assert_array_equal(found.time, expected.time)
    np.testing.assert_array_equal(found.q, expected.q)
    assert (folder / "pendulum.csv").read_bytes() == (whole / "pendulum.csv").read_bytes()
    assert not (folder / "pendulum.checkpoint").exists()
