"""What the benchmarks share: tables in pages, one between a pair of marks a benchmark, and the machine's name."""

from __future__ import annotations

import platform
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


def replace_section(name: str, text: str, file: Path = RESULTS) -> None:
    """Put a benchmark's table between its marks; the rest of the file stays."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = file.read_text(encoding="utf-8")
    if start not in page or end not in page:
        raise SystemExit(f"{file.name} has no section {name!r}: add the lines {start} and {end} to it")
    before, rest = page.split(start, 1)
    _, after = rest.split(end, 1)
    file.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
