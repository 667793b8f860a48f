"""The README leads to every page and example, and says nothing twice in its list of commands."""

import re

from checkout import ROOT

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
