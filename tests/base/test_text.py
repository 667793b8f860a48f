"""Names made unique and texts made short, as every room has them."""

import pytest

from linkwright.base.arguments import first_few, free_name, numbered_name, shortened


@pytest.mark.parametrize(
    ("taken", "name"),
    [((), "arm"), (("arm",), "arm_2"), (("arm", "arm_2", "arm_4"), "arm_3")],
)
def test_a_free_name_is_the_stem_or_the_first_with_a_number(taken, name):
    assert free_name("arm", set(taken), "_") == name


def test_a_numbered_name_counts_from_one_or_from_where_it_is_asked_to():
    assert numbered_name("rod", {"rod1", "rod3"}) == "rod2"
    assert numbered_name("rod", {"rod1", "rod3"}, 3) == "rod4"


def test_a_long_text_ends_in_an_ellipsis():
    assert shortened("a" * 80) == repr("a" * 80)
    assert shortened("abcdef", 3) == "'abc…'"


def test_of_many_names_the_first_few_are_listed():
    assert first_few(["a", "b", "c"], 2) == "a, b and 1 more"
