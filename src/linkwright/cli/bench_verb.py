"""`linkwright bench`: run the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from linkwright.base.arguments import check_names
from linkwright.cli.screen import console
from linkwright.errors import LinkwrightError

HOME = Path(__file__).resolve().parents[3]


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Which ones, by name.", show_default="all of them")] = None,
) -> None:
    """Run the benchmarks beside their peers; they are scripts in the folder benchmarks/ of a checkout."""
    scripts = scripts_by_name()
    if not scripts:
        raise LinkwrightError(
            "the benchmarks are not installed with the package; they are in the folder benchmarks/ of a checkout, "
            "where `make bench` runs them"
        )
    check_names("benchmark", names or (), scripts)
    failed = []
    for name in names or scripts:
        console().print(f"benchmarks/{name}.py", style="bold")
        sys.stdout.flush()
        if subprocess.run([sys.executable, str(scripts[name])], cwd=HOME, check=False).returncode:
            failed.append(name)
    if failed:
        raise LinkwrightError(f"these benchmarks failed: {', '.join(failed)}")


def scripts_by_name() -> dict[str, Path]:
    """The scripts to run, by name: those that do something when run, which leaves out what they share."""
    files = sorted((HOME / "benchmarks").glob("*.py")) if (HOME / "pyproject.toml").exists() else []
    return {file.stem: file for file in files if '__name__ == "__main__"' in file.read_text(encoding="utf-8")}
