"""The pages of the site, their addresses, and the headings of the navigation."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: Headings of the navigation and their pages in order; a page of `docs/` that is not here is under "More".
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": ("README.md", "examples", "docs/notebooks.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    "Mechanisms": ("mks", "repetition", "builder", "formats", "mjcf", "conventions"),
    "Motion": (
        "kinematics",
        "linkages",
        "closed",
        "couplings",
        "curves",
        "gears",
        "forces",
        "machines",
        "simulation",
        "results",
        "viewer",
    ),
    "Equations and control": ("equations", "control", "sampled", "identification", "hinfinity", "manipulator"),
    "Studies and export": ("sweep", "design", "tolerances", "cams", "export", "gpu"),
    "Inside": ("architecture", "tape", "complexity", "agreement", "benchmarks/RESULTS.md"),
}
TITLES = {"README.md": "Overview", "examples": "Examples", "docs/notebooks.md": "Notebooks"}


class BrokenLink(Exception):
    """A broken link: its page and its target."""


@dataclass(frozen=True)
class Page:
    """A page of the site: what it is made from, its address in the site, and its name in the navigation."""

    source: str
    target: str
    title: str


@dataclass
class Plan:
    """The pages by their sources, the navigation, and the files that pages lead to."""

    root: Path
    pages: dict[str, Page] = field(default_factory=dict)
    sections: dict[str, list[Page]] = field(default_factory=dict)
    examples: list[Path] = field(default_factory=list)
    notebooks: list[Path] = field(default_factory=list)
    files: set[str] = field(default_factory=set)  # shown as they are, on pages of their own
    images: set[str] = field(default_factory=set)  # copied

    def size(self, source: str, link: str) -> tuple[int, int] | None:
        """Width and height of a picture that a page shows, where the file states them."""
        path = self.root / posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        return png_size(path) if path.suffix == ".png" and path.is_file() else None

    def resolve(self, source: str, link: str) -> str:
        """A link of one source as a link of its page: relative, to pages, to files' pages, to images."""
        path, mark, anchor = link.partition("#")
        here = self.pages[source].target
        if not path:
            return link
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if wanted.startswith("..") or not (self.root / wanted).exists():
            raise BrokenLink(f"{source} links to {link}, and there is no {wanted}")
        if wanted in self.pages:
            target = self.pages[wanted].target
        elif (self.root / wanted).is_dir():
            raise BrokenLink(f"{source} links to {link}, a folder; link to a file in it")
        elif wanted.lower().endswith((".png", ".svg", ".jpg", ".jpeg", ".gif")):
            self.images.add(wanted)
            target = wanted
        else:
            self.files.add(wanted)
            target = f"files/{wanted}.html"
        return relative(here, target) + mark + anchor


def png_size(path: Path) -> tuple[int, int] | None:
    """Width and height of a PNG picture."""
    with path.open("rb") as file:
        head = file.read(24)
    if not head.startswith(b"\x89PNG") or len(head) < 24:
        return None
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def relative(here: str, there: str) -> str:
    """The way from one page to another."""
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


def plan(root: Path, only: frozenset[str] | None = None) -> Plan:
    """The plan for a checkout; `only` names the examples and notebooks to show, by their stems."""
    site = Plan(root)

    def wanted(path: Path) -> bool:
        return only is None or path.stem in only

    site.examples = [f for f in sorted((root / "examples").glob("[0-9]*.py")) if wanted(f)]
    site.notebooks = [f for f in sorted((root / "docs" / "notebooks").glob("*.ipynb")) if wanted(f) and _can(root, f)]
    sources = {"README.md": "index.html"}
    for path in [*sorted((root / "docs").glob("*.md")), *_others(root)]:
        name = path.relative_to(root).as_posix()
        sources[name] = f"{name.removesuffix('.md')}.html"
    for name, target in sources.items():
        site.pages[name] = Page(name, target, TITLES.get(name) or first_heading((root / name).read_text("utf-8")))
    if (root / "examples").is_dir():
        site.pages["examples"] = Page("examples", "examples/index.html", TITLES["examples"])
    for example in site.examples:
        name = example.relative_to(root).as_posix()
        site.pages[name] = Page(name, f"{name.removesuffix('.py')}.html", example_title(example.stem))
    for notebook in site.notebooks:
        name = notebook.relative_to(root).as_posix()
        site.pages[name] = Page(name, f"{name.removesuffix('.ipynb')}.html", example_title(notebook.stem))
    site.sections = _sections(site)
    return site


def first_heading(text: str) -> str:
    """The title of a Markdown text."""
    heading = re.search(r"^# +(.+?)\s*$", text, re.MULTILINE)
    return heading[1].replace("`", "") if heading else "Untitled"


def example_title(stem: str) -> str:
    """`06_slider_crank` is "Slider crank"."""
    words = re.sub(r"^\d+_", "", stem).replace("_", " ")
    return words[:1].upper() + words[1:]


def _can(root: Path, notebook: Path) -> bool:
    """Whether the package has the public names that a notebook needs."""
    needs = json.loads(notebook.read_text("utf-8"))["metadata"].get("linkwright", {}).get("needs", [])
    names = root / "src" / "linkwright" / "__init__.pyi"
    public = names.read_text("utf-8") if names.exists() else ""
    return all(f" as {name}\n" in public for name in needs)


def _others(root: Path) -> Iterator[Path]:
    names = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md")
    return (root / name for name in names if (root / name).exists())


def _sections(site: Plan) -> dict[str, list[Page]]:
    sections: dict[str, list[Page]] = {}
    placed = set()
    for heading, names in SECTIONS.items():
        full = [name if "/" in name or name in site.pages else f"docs/{name}.md" for name in names]
        sections[heading] = [site.pages[name] for name in full if name in site.pages]
        placed |= set(full)
    others = [page for name, page in site.pages.items() if name.endswith(".md") and name not in placed]
    return {heading: pages for heading, pages in {**sections, "More": others}.items() if pages}
