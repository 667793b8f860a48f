"""What every test may use: a cache of its own, and quiet about what real robots' files lack."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Object code made by tests goes to a directory of this run, so that tests never meet yesterday's code.
_CACHE = tempfile.TemporaryDirectory(prefix="linkwright-tests-")
os.environ["LINKWRIGHT_CACHE"] = _CACHE.name


@pytest.fixture(autouse=True)
def _quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Warnings are looked at by the tests that are about them."""
