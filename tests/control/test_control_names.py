"""The names of `lw.control` are what they say, whatever was imported before."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys

import pytest

import linkwright as lw
from linkwright.base.arguments import public_names
from linkwright.errors import ArgumentError


@pytest.mark.parametrize("name", lw.control.__all__)
def test_every_name_is_there_with_a_docstring_even_after_its_module(name: str) -> None:
    importlib.import_module(public_names(lw.control.__file__)[name])
    value = getattr(lw.control, name)
    assert callable(value)
    text = inspect.getdoc(value)
    assert text
    assert text[-1] in ".)`:"


@pytest.mark.parametrize("module", sorted(set(public_names(lw.control.__file__).values())))
def test_examples_in_docstrings_run(module: str) -> None:
    assert not doctest.testmod(importlib.import_module(module)).failed


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'hinfsyn'"):
        lw.control.hinfsyn  # noqa: B018  (reading it is the test)


def test_the_room_is_light_and_does_without_python_control() -> None:
    code = (
        "import sys; sys.modules['control'] = None\n"
        "import linkwright as lw\n"
        "lw.control; assert 'scipy' not in sys.modules\n"
        "G = lw.control.System([[-1.0]], [[1.0]], [[1.0]], [[0.0]])\n"
        "d = lw.control.mixed_sensitivity(G, W_T=1.0, W_S=2.0)\n"
        "try:\n    d.K\nexcept lw.errors.ModelError as e:\n    print(e)\n"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "linkwright[control]"' in run.stdout


ARM, STILL = lw.chain(1), lw.control.Hold([0.0])
MOVED = {
    "settings=lw.control.PidSettings(gravity=...)": lambda: lw.control.pid(ARM, 1.0, 1.0, 0.0, STILL, gravity=True),
    "settings=lw.control.ResolvedSettings(damped=...)": lambda: lw.control.resolved_acceleration(
        ARM, "link1", 1.0, 1.0, lw.control.Pose(), damped=True
    ),
    "settings=lw.control.HinfSettings(tolerance=...)": lambda: lw.control.mixed_sensitivity(1.0, 1.0, tolerance=1e-3),
    "settings=lw.control.HinfSettings(epsilon=...)": lambda: lw.control.hinf(1.0, 1, 1, epsilon=0.0),
    "settings=lw.control.IdentifySettings(starts=...)": lambda: lw.control.identify(None, starts=2),
    "settings=lw.control.RoundSettings(judge=...)": lambda: lw.control.repeated_design(
        None, 1.0, 1.0, dt=0.1, judge=abs
    ),
}


@pytest.mark.parametrize("where", MOVED)
def test_a_keyword_that_moved_is_an_error_that_names_its_settings(where: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(where)):
        MOVED[where]()
