"""What every test may use: a cache of its own, and quiet about what real robots' files lack."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

import rotation

# Object code made by tests goes to a directory of this run, so that tests never meet yesterday's code. The workers of
# a run inherit its name, so that what one has compiled the others load.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="linkwright-tests-")
    os.environ["LINKWRIGHT_CACHE"] = _CACHE.name


# Runs in the background of a shell ignore Ctrl-C, and so would the commands that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long a test takes says how busy the machine is.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

#: Rooms whose tests are about equations: that code compiled for users evaluates them is for the other rooms to test.
EQUATIONS = {"dynamics", "constraints", "results", "control", "studies", "sweeps", "design"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"rotating cases: LINKWRIGHT_TEST_SEED={rotation.SEED}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick-code", action="store_true", help="compile quickly, not well, for tests that are about equations"
    )


@pytest.fixture(autouse=True)
def _compiled_quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --quick-code, machine code as kernels that run seldom have it: the same text, none of LLVM's care."""
    about_equations = request.path.parent.name in EQUATIONS and not request.node.get_closest_marker("compiled")
    if about_equations and request.config.getoption("--quick-code"):
        from linkwright.kernels.llvm import compiler

        monkeypatch.setattr(compiler, "CARE", 0)
        monkeypatch.setenv("LINKWRIGHT_CACHE", str(Path(os.environ["LINKWRIGHT_CACHE"]) / "quick"))


@pytest.fixture(autouse=True)
def _quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Warnings are looked at by the tests that are about them."""
