"""A full disk and a read-only one: nothing is half written, nothing that was there is lost, the process lives on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("disk.py")
GUARD = 600  # seconds after which something is taken to hang
#: A mount that no other process sees, and that goes with the process: of a user without rights, where that is allowed.
MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'


def on_a_small_disk(folder: Path, size: str, *words: object) -> subprocess.CompletedProcess[str]:
    """A command with a small disk of its own at a folder; skips where none can be mounted."""
    if shutil.which("unshare") is None:
        pytest.skip("a small disk cannot be mounted: there is no unshare")
    folder.mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"]
    trial = subprocess.run([*alone, "64k", folder, "true"], capture_output=True, text=True, check=False)
    if trial.returncode:
        pytest.skip(f"a small disk cannot be mounted: {trial.stderr.strip()}")
    return subprocess.run(
        [*alone, size, folder, *map(str, words)], capture_output=True, text=True, timeout=GUARD, check=False
    )


REASON = {"full": "No space left on device", "read-only": "ead-only"}


@pytest.mark.parametrize("fault", REASON)
def test_every_writer_refuses_a_disk_that_takes_nothing_and_leaves_what_was_there(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "disk"
    outcome = on_a_small_disk(folder, "6m", "env", f"PYTHONPATH={_path()}", sys.executable, SCRIPT, folder, fault)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    *lines, end = outcome.stdout.splitlines()
    lines = [line.removeprefix("| ") for line in lines if line.startswith("| ")]
    assert end == "end"
    assert [line.split()[0] for line in lines] == list(NAMES), outcome.stdout
    for line in lines:
        assert line.split()[1] == "refused:", outcome.stdout
        if "the command failed" not in line:
            assert REASON[fault] in line
    assert outcome.stderr.count(REASON[fault]) >= 4  # of the command lines
    assert "Traceback" not in outcome.stderr


NAMES = ("x.nc", "x.csv", "x.png", "x.svg", "x.html", "x.lwp", "x.urdf", "x.tex", "x.c", "x.lwc", "run", "motion")


def _path() -> str:
    return os.pathsep.join(filter(None, sys.path))
