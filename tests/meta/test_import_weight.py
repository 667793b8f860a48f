"""`import linkwright` stays light: heavy libraries come in when they are used."""

from pathlib import Path

from checkout import ROOT, python

HEAVY = ("scipy", "xarray", "sympy", "matplotlib", "casadi", "jax", "cupy", "pinocchio", "typer", "rich", "lxml")


def loaded_after(code: str) -> set[str]:
    result = python("-c", f"{code}\nimport sys\nprint(*sys.modules)")
    assert result.returncode == 0, result.stderr
    return {name.split(".")[0] for name in result.stdout.split()}


def test_importing_the_package_imports_no_heavy_library() -> None:
    assert not loaded_after("import linkwright") & {*HEAVY, "llvmlite"}


def test_dynamics_need_no_heavy_library() -> None:
    code = "import linkwright as lw\nlw.chain(3).forward_dynamics([0.1] * 3, [0.2] * 3, [0.3] * 3)"
    assert not loaded_after(code) & set(HEAVY)


def test_recording_and_differentiating_need_no_heavy_library() -> None:
    code = "import linkwright as lw\nlw.record(lambda x: (x * x).sum(), 3).jacobian()([1.0, 2.0, 3.0])"
    assert not loaded_after(code) & set(HEAVY)


def test_a_table_of_numbers_needs_no_parser() -> None:
    row = '{"a": 0.3, "alpha": 0.0, "d": 0.1, "theta": 0.0, "mass": 1.0, "inertia": (0.1, 0.1, 0.1)}'
    assert "lark" not in loaded_after(f"import linkwright as lw\nlw.from_dh([{row}]).mass_matrix([0.2])")


def test_reading_a_robot_needs_nothing_of_the_network_and_no_constraints() -> None:
    path = ROOT / "examples" / "models" / "arm.urdf"
    code = f"import linkwright as lw\nlw.load({str(path)!r})"
    assert not loaded_after(code) & {"ssl", "http", "socket", "email"}
    rooms = python("-c", f"{code}\nimport sys\nprint(*sys.modules)").stdout.split()
    assert not [name for name in rooms if name.startswith(("linkwright.constraints.", "linkwright.dynamics.methods."))]


def test_opening_a_study_needs_no_parser() -> None:
    assert "lark" not in loaded_after("import linkwright as lw\nlw.Study, lw.Stepping, lw.AnalysisSettings")


def test_running_a_model_to_its_page_needs_no_tables_of_xarray(tmp_path: Path) -> None:
    model = ROOT / "examples" / "models" / "slider_crank.mks"
    words = ["run", str(model), "-o", str(tmp_path)]
    code = f"from linkwright.cli.app import run\nassert run({words!r}) == 0"
    assert not loaded_after(code) & {"scipy", "xarray", "pandas", "dask", "sympy", "matplotlib", "lxml", "http"}
