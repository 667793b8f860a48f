"""The README leads to every page and example, and says nothing twice; the page of the Builder has all its methods."""

import re

from checkout import ROOT

import linkwright as lw

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_and_example_can_be_found_from_the_readme() -> None:
    links = set(re.findall(r"\]\(([^)#]+)", README))
    pages = {
        str(path.relative_to(ROOT))
        for folder, ending in (("docs", "md"), ("examples", "py"))
        for path in (ROOT / folder).glob(f"*.{ending}")
    }
    assert pages - links == set()


def test_no_command_is_listed_twice() -> None:
    block = README.split("## Command line")[1].split("```")[1]
    commands = [line.split("#")[0].strip() for line in block.splitlines() if line.startswith("linkwright")]
    assert len(commands) > 5
    assert len(set(commands)) == len(commands)


def test_models_of_the_commands_exist_or_are_written_by_a_line_before() -> None:
    block = README.split("## Command line")[1].split("```")[1]
    written: set[str] = set()
    for line in block.splitlines():
        paths = [word for word in line.split("#")[0].split() if "/" in word]
        for path in paths[:1]:
            assert (ROOT / path).exists() or path in written, line
        if line.startswith("linkwright run "):
            written.add(f"out/{paths[0].rsplit('/')[-1].split('.')[0]}.nc")


def test_the_page_of_the_builder_names_every_method() -> None:
    page = (ROOT / "docs" / "builder.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)", page))
    assert {name for name in dir(lw.Builder) if not name.startswith("_")} - named == set()
