"""Every MJCF file of the installed wheels does what the table in docs/mjcf.md says, and moves as in MuJoCo."""

import importlib.metadata
import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mjcf_oracle import Oracle

import linkwright as lw
from linkwright.errors import FormatError

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")

DOCS = Path(__file__).parents[2] / "docs"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("mjcf_table", DOCS / "mjcf_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = loaded()
#: gymnasium-robotics brings 50 MB and packages of its own: it comes with the benchmarks' peers.
HOMES = {name: TABLE.home(module) for name, module, _ in TABLE.WHEELS}
FILES = [(f, HOMES[name] / below) for name, _, below in TABLE.WHEELS if HOMES[name] for f in TABLE.models(HOMES[name])]
#: MuJoCo finds principal axes of meshes to 1e-10 or so, which small masses beyond them multiply.
LOOSE = {"kitchen_env_model.xml": 1e-8}


@pytest.mark.parametrize("wheel", TABLE.WHEELS, ids=lambda wheel: wheel[0])
def test_the_table_says_what_becomes_of_each_file(wheel: tuple[str, str, str]) -> None:
    name = wheel[0]
    if HOMES[name] is None:
        pytest.skip(f"{name} is not installed: pip install 'linkwright[bench]'")
    page = TABLE.written(TABLE.PAGE.read_text(encoding="utf-8"))
    version = importlib.metadata.version(name)
    if f"**{name} {version}**" not in page:
        pytest.skip(f"{name} {version} is not the version of the page: python docs/mjcf_table.py writes it anew")
    assert "\n".join(TABLE.rows(*wheel)) in page


def check(file: Path, shared: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            mech = lw.load(file, equality="ignore", folders=[shared])
        except FormatError:
            pytest.skip("is not a whole model: the table says so")
    oracle, rng = Oracle(mujoco.MjModel.from_xml_path(str(file)), mech), np.random.default_rng(0)
    q, v = oracle.random_state(rng)
    errors = oracle.errors(q, v, rng.normal(size=mech.nv))
    assert max(errors.values()) < LOOSE.get(file.name, 1e-9), errors


def test_the_model_with_which_mujoco_tests_itself_moves_as_in_mujoco() -> None:
    home = HOMES["mujoco"]
    assert home is not None
    check(home / "testdata" / "model.xml", home)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "shared"), FILES, ids=[f"{f.parts[-2]}/{f.name}" for f, _ in FILES])
def test_a_model_of_the_wheels_moves_as_in_mujoco(file: Path, shared: Path) -> None:
    check(file, shared)
