"""Where things are in a checkout, and how a script of it is run on its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "linkwright"


def python(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run this interpreter on the checkout's package, and give what it printed."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "PYTHONWARNINGS": "error::DeprecationWarning"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def python_blocks(page: Path) -> list[str]:
    """The Python blocks of a Markdown page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
