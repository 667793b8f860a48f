"""Examples are run, each in its own folder; their output and files are cached until their sources change."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 1200  # seconds
LARGEST = 4_000_000  # bytes of a file that an example writes
#: Words that make a long example short enough for a build.
WORDS = {"05_hanging_chain": ("--links", "1500")}


@dataclass(frozen=True)
class Ran:
    """The run of an example: whether it succeeded, its output, and the folder of its files."""

    stem: str
    ok: bool
    printed: str
    folder: Path
    anew: bool

    def left(self) -> list[Path]:
        """The files that the example wrote, by name."""
        return sorted(f for f in self.folder.iterdir() if f.is_file() and f.name != "run.json")

    @property
    def picture(self) -> Path | None:
        return self._named(".png")

    @property
    def animation(self) -> Path | None:
        return self._named(".html")

    def _named(self, ending: str) -> Path | None:
        path = self.folder / f"{self.stem}{ending}"
        return path if path.exists() else None


def digest(files: Iterable[Path], *words: str) -> str:
    """A hash of files and words."""
    h = hashlib.sha256()
    for part in (*words, sys.version):
        h.update(part.encode() + b"\0")
    for file in sorted(files):
        h.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return h.hexdigest()


def sources(root: Path) -> list[Path]:
    """The files that every example and notebook depends on: the package and the models."""
    package = root / "src" / "linkwright"
    inside = (
        f for f in package.rglob("*") if f.suffix in (".py", ".pyi", ".lark", ".js", ".css", ".html", ".mks", ".toml")
    )
    models = (root / "examples" / "models").glob("*")
    return [f for f in (*inside, *models) if f.is_file() and not {"__pycache__", "node_modules"} & set(f.parts)]


def environment(root: Path) -> dict[str, str]:
    """Of a process that uses the checkout's package."""
    path = os.pathsep.join([str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


def run(root: Path, example: Path, cache: Path, common: str) -> Ran:
    """Run an example, or take the cached run if nothing that it depends on has changed."""
    words = WORDS.get(example.stem, ())
    mark = digest([example], common, *words)
    stored = cache / example.stem
    known = _known(stored, mark)
    if known is not None:
        return Ran(example.stem, True, known, stored, anew=False)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(example), *words]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment(root), capture_output=True, encoding="utf-8", timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return Ran(example.stem, False, f"it took longer than {PATIENCE} s", stored, anew=True)
        if done.returncode:
            return Ran(example.stem, False, done.stderr.strip()[-4000:], stored, anew=True)
        shutil.rmtree(stored, ignore_errors=True)
        stored.mkdir(parents=True)
        out = Path(folder) / "out"
        for file in sorted(out.iterdir()) if out.is_dir() else ():
            if file.is_file() and file.stat().st_size <= LARGEST:
                shutil.copy(file, stored / file.name)
    printed = done.stdout.rstrip()
    (stored / "run.json").write_text(json.dumps({"digest": mark, "printed": printed}), encoding="utf-8")
    return Ran(example.stem, True, printed, stored, anew=True)


def _known(stored: Path, mark: str) -> str | None:
    """The output of an example in a run with the same sources."""
    try:
        record = json.loads((stored / "run.json").read_text(encoding="utf-8"))
        return str(record["printed"]) if record["digest"] == mark else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
