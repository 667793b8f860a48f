"""Run a command line inside the test, and small models for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from linkwright.cli.app import run

ARM = Path(__file__).resolve().parents[2] / "examples" / "models" / "arm.urdf"

LINK = '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LINK += "</inertial></link>"
JOINT = '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><axis xyz="0 0 1"/></joint>'


def urdf(*parts: str) -> str:
    return f'<robot name="sample">{"".join(parts)}</robot>'


SWING = urdf(LINK.format("base"), LINK.format("bob"), JOINT.format("pivot", "continuous", "base", "bob"))


@dataclass
class Outcome:
    """What a command line left: its exit code, and what it printed where."""

    code: int
    out: str
    err: str


def linkwright(capsys: pytest.CaptureFixture[str], *words: object) -> Outcome:
    """Run `linkwright words...`."""
    capsys.readouterr()
    code = run([str(word) for word in words])
    out, err = capsys.readouterr()
    return Outcome(code, out, err)


def one_line(outcome: Outcome) -> str:
    """The error of a command line that failed as it should: one line, no traceback, nothing else printed."""
    assert outcome.out == ""
    assert outcome.err.startswith("error: "), outcome.err
    assert outcome.err.count("\n") == 1, outcome.err
    return outcome.err.removeprefix("error: ").strip()
