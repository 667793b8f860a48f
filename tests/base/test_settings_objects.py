"""Settings objects: their fields are no keywords of a function, and the numbers of arguments that are left."""

import inspect

import pytest

import linkwright as lw
from linkwright.base.arguments import takes_settings
from linkwright.errors import LinkwrightError


@takes_settings(search=lw.Search)
def asked(model: str, *, times: int = 1, search: lw.Search | None = None) -> tuple[str, int]:
    """A function."""
    return model, times


def test_arguments_that_a_function_takes_are_passed_on() -> None:
    assert asked("a", times=2) == ("a", 2)
    assert list(inspect.signature(asked).parameters) == ["model", "times", "search"]


def test_a_moved_keyword_names_its_object_and_an_unknown_one_has_a_suggestion() -> None:
    with pytest.raises(
        LinkwrightError, match=r"asked takes no argument .starts.; give search=lw\.Search\(starts=\.\.\.\)"
    ):
        asked("a", starts=3)
    with pytest.raises(LinkwrightError, match="no argument named 'time'; did you mean 'times'"):
        asked("a", time=3)
    with pytest.raises(LinkwrightError, match=r"no argument named 'zz'; there are: model, times, search$"):
        asked("a", zz="x")


@pytest.mark.parametrize("function", [lw.sweep, lw.optimise, lw.sensitivities])
def test_a_function_with_settings_objects_has_nine_arguments_at_most(function: object) -> None:
    assert len(inspect.signature(function).parameters) <= 9
