"""What a C function costs: bytes of code and stack, by the compiler of this machine, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror")
_SECONDS = 60.0
_LONG = 30_000  # operations beyond which compiling takes too long to be done unasked


@dataclass(frozen=True)
class Size:
    """Bytes of code and constants, and the most stack of a call besides that of the mathematical library."""

    compiler: str
    text: int
    stack: int | None


def measured(sources: Mapping[str, str], name: str, operations: int = 0) -> Size | None:
    """The size of `name`.c, compiled alone with `FLAGS`; None without a compiler, or where it fails."""
    compiler = next((path for word in ("gcc", "clang", "cc") if (path := shutil.which(word))), None)
    if compiler is None or operations > _LONG:
        return None
    with tempfile.TemporaryDirectory(prefix="linkwright-") as temporary:
        folder = Path(temporary)
        for file, source in sources.items():
            (folder / file).write_text(source, encoding="utf-8")
        for more in (["-fstack-usage"], []):
            done = _run([compiler, *FLAGS, *more, "-c", f"{name}.c", "-o", f"{name}.o"], folder)
            if done is not None:
                break
        else:
            return None
        usage = folder / f"{name}.su"
        stack = _stack(usage.read_text(encoding="utf-8"), name) if usage.exists() else None
        text = _text(folder / f"{name}.o")
        version = (_run([compiler, "--version"], folder) or "").split("\n")[0]
        return Size(re.sub(r"[^\w .,()+~-]", "", version), text, stack) if text is not None else None


def _run(words: list[str], folder: Path) -> str | None:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _text(file: Path) -> int | None:
    tool = shutil.which("size")
    table = _run([tool, file.name], file.parent) if tool else None
    rows = [line.split() for line in (table or "").splitlines()]
    numbers = rows[1][:2] if len(rows) > 1 and len(rows[1]) > 2 else []
    return int(numbers[0]) if numbers and numbers[0].isdigit() else None


def _stack(usage: str, name: str) -> int | None:
    """The function, one of the functions that it calls, and a solver or table under that: more never stand at once."""
    frame, calls, helpers = 0, [0], [0]
    for line in usage.splitlines():
        place, number, *_ = line.split("\t")
        if not number.isdigit():
            return None
        function = place.rsplit(":", 1)[-1]
        if function == name:
            frame = int(number)
        elif re.fullmatch(rf"{re.escape(name)}_f\d+(_\d+)?", function):
            calls.append(int(number))
        elif function != f"{name}_simulink":
            helpers.append(int(number))
    return frame + max(calls) + max(helpers)
