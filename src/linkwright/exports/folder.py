"""A folder of files, written whole or not at all, and never over what it did not write itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from linkwright.base.files import atomic_folder, check_target
from linkwright.errors import LinkwrightError

README = "README.md"
MARK = "Written by Linkwright"  # what the README of every export says in its first lines


def check_folder(folder: Path, names: Mapping[str, str] | None = None, *, overwrite: bool = False) -> None:
    """Refuse a place that cannot become this folder; without names, only what is known before them."""
    if folder.exists() and not folder.is_dir():
        raise LinkwrightError(f"{folder}: is a file; give the name of a folder, or of a file such as model.c")
    if not folder.parent.is_dir():
        raise LinkwrightError(f"{folder}: there is no directory {folder.parent}; make it first")
    if not folder.exists() or names is None:
        return
    known = set(names)
    names_there = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir() or p.is_symlink())
    other = list(islice((name for name in names_there if name not in known), 4))  # the folder may be a large one
    if other and not overwrite:
        few = ", ".join(other[:3]) + (", …" if len(other) > 3 else "")
        raise LinkwrightError(
            f"{folder}: holds {few}, which is not of this export; give another folder, or overwrite=True "
            "(what has other names stays)"
        )
    taken = [name for name in names if (folder / name).exists()]
    if taken and not overwrite and not _ours(folder / README):
        raise LinkwrightError(
            f"{folder}: holds {', '.join(taken[:3])}, which no export wrote; give another folder, or overwrite=True"
        )
    for name in names:
        check_target(folder / name)


def _ours(readme: Path) -> bool:
    """Whether a README is that of an export."""
    try:
        with open(readme, encoding="utf-8") as file:
            return MARK in file.read(2000)
    except (OSError, UnicodeDecodeError):
        return False


def write_folder(folder: Path, files: Mapping[str, str], *, overwrite: bool = False) -> None:
    """Write the files beside their place, then move them there."""
    check_folder(folder, files, overwrite=overwrite)
    with atomic_folder(folder) as staging:
        for name, text in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
