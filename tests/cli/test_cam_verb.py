"""`linkwright cam`: what it prints, writes and refuses."""

from pathlib import Path

import numpy as np
import pytest
from command import linkwright, one_line

import linkwright as lw

MOTION = "cam(angle, 360 deg, (100 deg, 20 mm, rise345), (170 deg, 20 mm), (280 deg, 0, rise345))"
ROLLER = ("--base", "40 mm", "--roller", "8 mm", "--offset", "5 mm")


def test_a_cam_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("cam.dxf", "cam.csv", "cam.png", "cam.svg")]
    outcome = linkwright(
        capsys, "cam", MOTION, *ROLLER, "--count", 360, "--unit", "m", *(w for f in files for w in ("--out", f))
    )
    assert outcome.code == 0, outcome.err
    follower = lw.CamFollower(radius=0.008, offset=0.005)
    profile = lw.cam_profile(MOTION, 0.04, follower, count=360)
    assert outcome.out.startswith(profile.report())
    assert f"{files[0]}: the profile" in outcome.out
    assert f"{files[2]}: the figure" in outcome.out
    table = np.genfromtxt(files[1], delimiter=",", names=True)
    np.testing.assert_array_equal(table["profile_x_m"], profile.profile[:, 0])
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert b"<circle" in files[3].read_bytes()


def test_followers_and_cams_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert "flat follower that translates" in linkwright(capsys, "cam", MOTION, "--base", "60 mm").out
    assert "knife follower" in linkwright(capsys, "cam", MOTION, "--base", "0.06", "--knife", "--clockwise").out
    swing = MOTION.replace("20 mm", "12 deg")
    arm = ("--base", "40 mm", "--roller", "8 mm", "--pivot", "90 mm", "--arm", "70 mm")
    assert "oscillates, motion from 0 to 12°" in linkwright(capsys, "cam", swing, *arm).out
    quick = (MOTION.replace("(100 deg", "(35 deg"), "--base", "40 mm")
    refused = linkwright(capsys, "cam", *quick)
    assert refused.code == 1
    assert "undercut from" in refused.err
    assert "undercut from" in linkwright(capsys, "cam", *quick, "--anyway").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((MOTION, "--base", "0"), "base_radius is 0 m"),
        (("3 x", "--base", "40 mm"), "the motion of the cam is '3 x'"),
        ((MOTION, *ROLLER, "--knife"), "--roller and --knife exclude each other"),
        ((MOTION, *ROLLER, "--arm", "3 kg"), "the arm of the follower is '3 kg'"),
        ((MOTION, *ROLLER, "--out", "cam.step"), "is written as .dxf, .svg, .csv, .png, .pdf"),
        ((MOTION, *ROLLER, "--unit", "kg", "--out", "cam.dxf"), "'kg', which is a mass"),
    ],
)
def test_what_it_refuses(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = linkwright(capsys, "cam", *words)
    assert message in one_line(outcome)
    assert list(tmp_path.iterdir()) == []
