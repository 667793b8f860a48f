"""Every writer on a disk that is full, or read-only: prints what each says. Run by test_disks.py, on a small disk.

disk.py FOLDER full|read-only
"""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import linkwright as lw
from linkwright.cli.app import run
from linkwright.errors import LinkwrightError

warnings.simplefilter("ignore")
disk, fault = Path(sys.argv[1]), sys.argv[2]
OLD = b"what was there"
TEXT = """MODEL pendulum
SYSTEM ({1} ANALYSIS, ending time = 1, print interval = 0.1);
BODY base (ground);
BODY bob (mass = 1, inertia = (0.1, 0.1, 0.1));
REVOLUTE JOINT hinge (triad = base, triad = (associated body = bob, origin = (0, 1, 0)));
{0}
ENDMODEL
"""
models = Path(tempfile.mkdtemp())
MODEL, DRIVEN = models / "pendulum.mks", models / "driven.mks"
MODEL.write_text(TEXT.format("", "DYNAMIC"))
DRIVEN.write_text(TEXT.format("DRIVER d (hinge.angle = TIME);", "KINEMATIC"))
mech = lw.chain(2)
motion = lw.simulate(mech, 2.0, q0=[0.3, -0.2], saving=lw.Saving(interval=0.01))


def command(*words: object) -> None:
    """A command line that must end in one sentence."""
    if run([str(word) for word in words]):
        raise LinkwrightError("the command failed")


def checkpointed(path: Path) -> None:
    """A new file: only a checkpoint is replaced by one."""
    solution = lw.simulate(mech, 0.1, q0=[0.3, -0.2], saving=lw.Saving(checkpoint=path))
    if not solution.status:
        assert len(solution), "what was computed is kept"
        raise LinkwrightError(solution.status.message)


WRITERS = {
    "x.nc": motion.save,
    "x.csv": motion.to_csv,
    "x.png": lambda path: motion.plot(path=path),
    "x.svg": lambda path: motion.plot(path=path),
    "x.html": motion.animate,
    "x.lwp": lambda path: lw.record(np.sin, (40,)).save(path),
    "x.urdf": lambda path: command("convert", MODEL, path),
    "x.tex": lambda path: command("equations", MODEL, "--latex", path),
    "x.c": lambda path: command("export", MODEL, "--function", "forward_dynamics", "-o", path),
    "x.lwc": checkpointed,
    "run": lambda path: command("run", MODEL, "-o", path, "--csv", "--plot"),
    "motion": lambda path: command("run", DRIVEN, "-o", path, "--csv", "--plot"),
}


def names() -> list[str]:
    return sorted(str(path.relative_to(disk)) for path in disk.rglob("*"))


for name in WRITERS:
    if Path(name).suffix not in ("", ".lwc"):
        (disk / name).write_bytes(OLD)
if fault == "full":
    with open(disk / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
else:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
before = names()
for name, write in WRITERS.items():
    target = disk / name
    try:
        write(target)
        print("|", name, "WRITTEN")
    except LinkwrightError as error:
        print("|", name, "refused:", " ".join(str(error).split()))
    if target.is_file() and target.read_bytes() != OLD:
        print("|", name, "CHANGED")
made = [name for name in ("run", "motion") if (disk / name).exists()]  # folders for results, which have none
before = sorted([*before, *made])
if names() != before:
    print("| LEFT", sorted(set(names()) ^ set(before)))
if fault == "full":
    # Room for the beginning of a file alone: it is at the end that writing fails.
    os.truncate(disk / "filler", (disk / "filler").stat().st_size - 16384)
    for name in ("x.nc", "x.csv", "x.html"):
        try:
            WRITERS[name](disk / name)
            print("|", name, "WRITTEN")
        except LinkwrightError as error:
            if "No space left" not in str(error) or (disk / name).read_bytes() != OLD or names() != before:
                print("|", name, "LOST", error)
    (disk / "filler").unlink()
    for name in ("x.nc", "x.csv", "x.html", "x.lwp"):
        WRITERS[name](disk / name)
        if (disk / name).read_bytes() in (b"", OLD):
            print("|", name, "NOT WRITTEN")
print("end")
