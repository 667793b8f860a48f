"""Gears, racks and screws of any ratio: the rank of the equations, the forces of drivers, and assembly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw

HEAD = """SYSTEM ({analysis} ANALYSIS, starting time = 0, ending time = 1, print interval = 0.5);
GRAVITY (0, 0, 0);
BODY base (ground);
"""


def loaded(folder: Path, text: str) -> lw.Mechanism:
    path = folder / "model.mks"
    path.write_text(text)
    return lw.load(str(path))


KINDS = {"revolute": ("REVOLUTE", "angle"), "prismatic": ("TRANSLATIONAL", "shift")}


def pair(ratio: float, driven: int, kinds: tuple[str, str], rate: float, scale: float = 1.0) -> str:
    """Two bodies on ground with a gear between their joints, one of them driven by rate·TIME²/2."""
    text = "MODEL pair\n" + HEAD.format(analysis="INVERSE DYNAMIC")
    for k, kind in enumerate(kinds):
        inertia = (0.3 + k) * scale**2
        text += f"BODY b{k} (origin = ({k * scale}, 0, 0), mass = 2, inertia = ({inertia}, {inertia}, {inertia}));\n"
        text += f"TRIAD t{k} (associated body = base, origin = ({k * scale}, 0, 0));\n"
        text += f"{KINDS[kind][0]} JOINT j{k} (triad = t{k}, triad = b{k});\n"
    text += f"GEAR g (joint = j1, joint = j0, ratio = {ratio!r});\nTORQUE load (joint = j1, law = 20);\n"
    coordinate = KINDS[kinds[driven]][1]
    return text + f"DRIVER d (j{driven}.{coordinate} = {rate / 2!r}*TIME^2);\nENDMODEL\n"


@pytest.mark.parametrize("driven", [0, 1])
@pytest.mark.parametrize("ratio", [1e-8, -1e-5, 1.0, 1e5, -1e8])
def test_a_driver_on_either_joint_of_a_gear_of_any_ratio_leaves_nothing_free(
    ratio: float, driven: int, tmp_path: Path
) -> None:
    fastest = max(abs(ratio), 1.0)  # of the two, which turns by half a radian
    rate = (abs(ratio) if driven else 1.0) / fastest
    sol = lw.analyse(loaded(tmp_path, pair(ratio, driven, ("revolute", "revolute"), rate)))
    assert sol.status, str(sol.status)
    first, second = (rate / ratio, rate) if driven else (rate, ratio * rate)
    mesh = -0.3 * first / ratio if driven else 1.3 * second - 20.0
    drive = 1.3 * second - 20.0 - mesh if driven else 0.3 * first + ratio * mesh
    np.testing.assert_allclose(sol.series["g.torque"].values, mesh, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sol.series["d.torque"].values, drive, rtol=1e-9)
    for body, rate_of in (("b0", first), ("b1", second)):
        np.testing.assert_allclose(sol.angular_acceleration(body)[:, 2], rate_of, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("ratio", [1e-6, 1e6])
@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ("prismatic", "revolute")])
def test_a_rack_and_its_pinion_are_driven_by_one_driver_in_any_unit(
    kinds: tuple[str, str], ratio: float, scale: float, tmp_path: Path
) -> None:
    ratio = ratio * scale if kinds[1] == "prismatic" else ratio / scale
    for driven in (0, 1):
        mech = loaded(tmp_path, pair(ratio, driven, kinds, 1e-3 / max(abs(ratio), 1.0), scale))
        assert mech.dof().left == 0


@pytest.mark.parametrize("coordinate", ["j.angle", "b.z"])
@pytest.mark.parametrize("pitch", [1e-8, 1e-5, 1e5, 1e8])
def test_a_screw_of_any_pitch_is_driven_by_its_angle_or_by_its_shift(
    pitch: float, coordinate: str, tmp_path: Path
) -> None:
    amount = 0.5 if (coordinate == "j.angle") == (pitch < 1.0) else 0.5 * min(pitch, 1.0 / pitch)
    text = "MODEL screw\n" + HEAD.format(analysis="INVERSE DYNAMIC")
    text += "BODY b (mass = 2, inertia = (0.3, 0.3, 0.3));\nTRIAD t (associated body = base);\n"
    text += f"SCREW JOINT j (triad = t, triad = b, pitch = {pitch!r});\n"
    text += f"DRIVER d ({coordinate} = {amount!r}*TIME^2);\nENDMODEL\n"
    mech = loaded(tmp_path, text)
    assert mech.dof().left == 0


FOUR_BAR = """MODEL four
SYSTEM (DYNAMIC ANALYSIS, starting time = 0, ending time = 0.5, print interval = 0.1);
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY crank (origin = (0, 0, 0), com = (0.5, 0, 0), mass = 1, inertia = (0.1, 0.1, 0.1));
BODY coupler (origin = (1, 0, 0), com = (1, 0, 0), mass = 1, inertia = (0.2, 0.2, 0.2));
BODY rocker (origin = (3, 0, 0), com = (0.7, 0, 0), mass = 1, inertia = (0.2, 0.2, 0.2));
BODY wheel (origin = (5, 0, 0), mass = 1, inertia = (0.5, 0.5, 0.5));
TRIAD ga (associated body = g, origin = (0, 0, 0));
TRIAD gd (associated body = g, origin = (3, 0, 0));
TRIAD gw (associated body = g, origin = (5, 0, 0));
TRIAD c2 (associated body = crank, origin = (1, 0, 0));
TRIAD k2 (associated body = coupler, origin = (2.6, 0, 0));
TRIAD r2 (associated body = rocker, origin = (1.9, 0, 0));
REVOLUTE JOINT A (triad = ga, triad = crank);
REVOLUTE JOINT B (triad = c2, triad = coupler);
REVOLUTE JOINT C (triad = k2, triad = r2);
REVOLUTE JOINT D (triad = gd, triad = rocker%s);
REVOLUTE JOINT W (triad = gw, triad = wheel);
GEAR gear (joint = W, joint = D, ratio = %r);
INITIAL (A.angle = 1.0);
TORQUE load (joint = W, law = 5);
ENDMODEL
"""


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_a_fast_wheel_on_the_rocker_moves_alike_whichever_joint_closes_the_loop(ratio: float, tmp_path: Path) -> None:
    runs = []
    for cut in ("", ", cut"):
        mech = loaded(tmp_path, FOUR_BAR % (cut, ratio))
        mech.assemble()  # from the drawing, without the initial value
        runs.append(lw.analyse(mech))
        assert runs[-1].status, str(runs[-1].status)
        wheel, rocker = (runs[-1].angular_velocity(body)[:, 2] for body in ("wheel", "rocker"))
        np.testing.assert_allclose(wheel, ratio * rocker, rtol=1e-9)
    for body in ("crank", "rocker", "wheel"):
        one, other = (sol.angular_velocity(body)[:, 2] for sol in runs)
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(other).max())
