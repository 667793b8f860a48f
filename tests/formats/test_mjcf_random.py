"""Random MJCF models have MuJoCo's mass matrix, bias, passive forces, actuators' forces and accelerations."""

from pathlib import Path

import numpy as np
import pytest
from mjcf_oracle import Oracle
from mjcf_random import Writer

import linkwright as lw

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")


def check(folder: Path, seed: int) -> None:
    text = Writer(seed).model()
    file = folder / "random.xml"
    file.write_text(text, encoding="utf-8")
    model = mujoco.MjModel.from_xml_path(str(file))
    rng = np.random.default_rng(seed)
    mech = lw.load(file, actuators="apply")
    controls = rng.normal(size=model.nu)
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, k) or f"actuator{k}" for k in range(model.nu)]
    mech = mech.with_parameters(**{f"ctrl_{n}": u for n, u in zip(names, controls.tolist(), strict=True)})
    oracle = Oracle(model, mech, actuators=True)
    oracle.d.ctrl[:] = controls
    q, v = oracle.random_state(rng)
    errors = oracle.errors(q, v, rng.normal(size=model.nv))
    assert max(errors.values()) < 1e-9, errors


# Between them these two have every element and attribute that the writer of random models knows.
@pytest.mark.parametrize("seed", [0, 3])
def test_a_random_model_moves_as_in_mujoco(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, *range(4, 60)])
def test_many_random_models_move_as_in_mujoco(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed)
