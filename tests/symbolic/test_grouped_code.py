"""Code of the grouped form: every symbol has its value, and the numbers are those of the recursion."""

import ctypes
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.mechanism import Mechanism
from linkwright.symbolic.derivation.literal import literal

Q, V = np.array([0.3, -0.8]), np.array([0.7, -1.1])


def arm() -> Mechanism:
    """Two links whose axes are at 37°, with friction, a motor and a spring."""
    with lw.Builder("two") as b:
        lead = math.radians(37)
        up = b.body("up", 2.0, (0.1, 0.0, 0.3), (0.1, 0.2, 0.3))
        out = b.body("out", 1.0, (0.1, 0.2, 0.0), (0.1, 0.3, 0.2))
        first = b.joint("revolute", b.ground, up, "first", armature=0.2, axis=(0.0, 0.0, 1.0))
        axis = (0.0, math.sin(lead), math.cos(lead))
        second = b.joint("revolute", up, out, "second", at=(0.3, 0.0, 0.1), axis=axis)
        b.joint_damper(first, b.parameter("grease", 0.3))
        b.joint_friction(second, 0.4)
        b.joint_spring(second, b.parameter("k", 5.0), 0.2)
    return Mechanism(literal(b.build().description, "inertial"))


def test_every_symbol_of_the_grouped_form_has_a_value() -> None:
    sheet = lw.equations(arm()).sheet("grouped")
    assert {"k", "grease", "f2", "mx1", "J1"} <= sheet.values.keys()
    assert any(name.startswith("alpha") for name in sheet.values)
    assert [name for name, value in sheet.values.items() if value is None] == []


def test_python_of_the_grouped_form_is_inverse_dynamics() -> None:
    mech = arm()
    space: dict[str, Any] = {}
    exec(compile(lw.equations(mech).python("grouped"), "emitted", "exec"), space)
    q, v = Q.tolist(), V.tolist()
    assert np.array(space["M"](q)) == pytest.approx(mech.mass_matrix(Q), abs=1e-12)
    found = np.array(space["h"](q, v)) + space["g"](q) + space["friction"](q, v) + space["springs"](q)
    assert found == pytest.approx(mech.inverse_dynamics(Q, V, np.zeros(2)), abs=1e-12)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_c_of_the_grouped_form_is_inverse_dynamics(tmp_path: Path) -> None:
    mech = arm()
    source, library = tmp_path / "two.c", tmp_path / "two.so"
    source.write_text(lw.equations(mech).c("grouped"), encoding="ascii")
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    code = ctypes.CDLL(str(library))
    values = ctypes.c_double.in_dll(code, "two_values")  # the first of the model's own values
    total = np.zeros(2)
    for name, given in {"h": (Q, V), "g": (Q,), "friction": (Q, V), "springs": (Q,)}.items():
        out = (ctypes.c_double * 2)()
        getattr(code, f"two_{name}")(*((ctypes.c_double * 2)(*x) for x in given), ctypes.byref(values), out)
        total += np.array(out)
    assert total == pytest.approx(mech.inverse_dynamics(Q, V, np.zeros(2)), abs=1e-12)
