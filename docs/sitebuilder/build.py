"""Builds the site: pages, examples and notebooks with their outputs, files that are linked."""

from __future__ import annotations

import ast
import html
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from sitebuilder import runs, text, theme
from sitebuilder.check import problems
from sitebuilder.notebooks import NotebookFailed, executed, shown
from sitebuilder.plan import BrokenLink, Page, Plan, example_title, plan, png_size, relative

MARK = ".linkwright-site"
HERE = Path(__file__).parent
THUMB = 480  # pixels


class Refused(Exception):
    """A folder that the builder must not replace."""


class Builder:
    """One build: its settings, its pages and its problems."""

    def __init__(
        self, root: Path, only: frozenset[str] | None, cache: Path, jobs: int, say: Callable[[str], None]
    ) -> None:
        self.root, self.cache, self.jobs, self.say = root, cache, jobs, say
        self.plan: Plan = plan(root, only)
        self.wrong: list[str] = []
        self.alone: set[str] = set()
        self.notebooks: list[tuple[Page, str]] = []  # with their first sentences

    def build(self, site: Path) -> list[str]:
        """Write the site in place of the one before; return its problems."""
        if site.exists() and not (site / MARK).exists() and any(site.iterdir()):
            raise Refused(f"{site} is not a site that was built here; name another folder, or remove it")
        site.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=site.parent, prefix=f".{site.name}-") as folder:
            new = Path(folder) / "site"
            new.mkdir()
            self._write(new)
            self.wrong += problems(new, frozenset(self.alone))
            if site.exists():
                site.rename(Path(folder) / "old")
            new.rename(site)
        return self.wrong

    def _write(self, site: Path) -> None:
        (site / MARK).write_text("made by docs/sitebuilder\n", encoding="utf-8")
        sheet = (HERE / "style.css").read_text(encoding="utf-8")
        (site / theme.STYLE).write_text(sheet + text.style(), encoding="utf-8")
        common = runs.digest(runs.sources(self.root))
        self._notebooks(site, common)
        self._examples(site, common)
        for name, page in self.plan.pages.items():
            if name.endswith(".md"):
                content = (self.root / name).read_text(encoding="utf-8")
                rendered = text.render(content, self._resolver(name), partial(self.plan.size, name))
                more = self._list_of_notebooks(page) if name == "docs/notebooks.md" else ""
                self._put(site, page, rendered.body + more, rendered.headings)
        for name in sorted(self.plan.files):
            self._file(site, name)
        for name in sorted(self.plan.images):
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.root / name, site / name)

    def _resolver(self, source: str) -> Callable[[str], str]:
        def resolve(link: str) -> str:
            try:
                return self.plan.resolve(source, link)
            except BrokenLink as error:
                self.wrong.append(str(error))
                return "#main"

        return resolve

    def _put(self, site: Path, page: Page, body: str, headings: Sequence[tuple[str, str]] = ()) -> None:
        target = site / page.target
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(theme.framed(self.plan, page, body, headings), encoding="utf-8")

    # -- examples -------------------------------------------------------------------------------------
    def _examples(self, site: Path, common: str) -> None:
        if "examples" not in self.plan.pages:
            return
        cache = self.cache / "examples"

        def one(example: Path) -> runs.Ran:
            ran = runs.run(self.root, example, cache, common)
            self.say(f"{example.stem}: {'failed' if not ran.ok else 'run' if ran.anew else 'as before'}")
            return ran

        with ThreadPoolExecutor(self.jobs) as pool:
            done = list(pool.map(one, self.plan.examples))
        cards = []
        for k, (example, ran) in enumerate(zip(self.plan.examples, done, strict=True)):
            page = self.plan.pages[example.relative_to(self.root).as_posix()]
            if not ran.ok:
                self.wrong.append(f"{example.name} failed:\n{ran.printed}")
            around = self.plan.examples[max(k - 1, 0) : k], self.plan.examples[k + 1 : k + 2]
            cards.append(self._example(site, page, example, ran, *around))
        intro = (
            "<h1>Examples</h1><p>Each is a script that was run when this page was built. Each asserts its outcome.</p>"
        )
        self._put(site, self.plan.pages["examples"], f'{intro}<div class="cards">{"".join(cards)}</div>')

    def _example(
        self, site: Path, page: Page, example: Path, ran: runs.Ran, before: list[Path], after: list[Path]
    ) -> str:
        """Write the page of an example; return its card for the gallery."""
        source = example.read_text(encoding="utf-8")
        about = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]
        folder = site / page.target.removesuffix(".html")
        parts = [f"<h1>{html.escape(page.title)}</h1><p>{html.escape(about)}</p>"]
        here = example.stem
        thumb = '<div class="blank"></div>'
        if ran.ok:
            folder.mkdir(parents=True, exist_ok=True)
            for file in ran.left():
                shutil.copy(file, folder / file.name)
                if file.suffix == ".html":
                    self.alone.add((folder / file.name).relative_to(site).as_posix())
            if ran.picture:
                wide, high = png_size(ran.picture) or (960, 540)
                shape = f'width="{wide}" height="{high}"'
                parts.append(f'<p><img src="{here}/{ran.picture.name}" {shape} alt="What the example draws"></p>')
                small = _thumbnail(ran.picture, folder / "thumb.png")
                thumb = f'<img src="{here}/{small}" alt="" loading="lazy">'
            if ran.animation:
                link = f"{here}/{ran.animation.name}"
                parts.append(
                    '<h2 id="animation">Animation</h2><iframe class="animation" sandbox="allow-scripts" '
                    f'loading="lazy" title="The animation" src="{link}"></iframe>'
                    f'<p><a href="{link}">On a page of its own</a></p>'
                )
            if ran.printed:
                parts.append(
                    f'<h2 id="printed">What it prints</h2><pre class="printed">{html.escape(ran.printed)}</pre>'
                )
            usual = {ran.picture, ran.animation}
            others = [file.name for file in ran.left() if file not in usual]
            if others:
                entries = ", ".join(f'<a href="{here}/{html.escape(n)}">{html.escape(n)}</a>' for n in others)
                parts.append(f"<p>The example also writes {entries}.</p>")
        else:
            parts.append('<p class="alarm">It failed when this page was built.</p>')
            parts.append(f'<pre class="printed">{html.escape(ran.printed)}</pre>')
        words = " ".join(runs.WORDS.get(example.stem, ()))
        command = f"python examples/{example.name} {words}".strip()
        parts.append(f'<h2 id="code">Code</h2><pre class="printed">{command}</pre>{text.code(source, "python")}')
        parts.append(_way(before, after))
        self._put(site, page, "\n".join(parts))
        name = html.escape(page.title)
        return f'<a class="card" href="{here}.html">{thumb}<b>{name}</b><span>{html.escape(about)}</span></a>'

    # -- notebooks ------------------------------------------------------------------------------------
    def _notebooks(self, site: Path, common: str) -> None:
        for notebook in self.plan.notebooks:
            name = notebook.relative_to(self.root).as_posix()
            page = self.plan.pages[name]
            try:
                notebook_run, anew = executed(self.root, notebook, self.cache / "notebooks", common)
            except NotebookFailed as error:
                self.wrong.append(f"{notebook.name} failed:\n{error}")
                self._put(
                    site, page, f'<h1>{html.escape(page.title)}</h1><p class="alarm">It failed when this was built.</p>'
                )
                continue
            self.say(f"{notebook.name}: {'run' if anew else 'as before'}")
            rendered = shown(notebook_run, self._resolver(name))
            self._put(site, page, f'<article class="notebook">{rendered.body}</article>', rendered.headings)
            first = next((c.source for c in notebook_run.cells if c.cell_type == "markdown"), "").partition("\n\n")[2]
            self.notebooks.append((page, first.partition("\n")[0]))

    def _list_of_notebooks(self, page: Page) -> str:
        entries = ""
        for other, about in self.notebooks:
            link = relative(page.target, other.target)
            entries += f'<li><a href="{link}">{html.escape(other.title)}</a>: {html.escape(about)}</li>'
        return f'<h2 id="executed">Executed notebooks</h2><ul>{entries}</ul>' if entries else ""

    # -- files ----------------------------------------------------------------------------------------
    def _file(self, site: Path, name: str) -> None:
        """A linked file on a page of its own."""
        path = self.root / name
        page = Page(name, f"files/{name}.html", path.name)
        content = path.read_text(encoding="utf-8", errors="replace")
        language = {".py": "python", ".c": "c", ".toml": "toml", ".urdf": "xml", ".xml": "xml"}.get(path.suffix, "text")
        self._put(site, page, f"<h1>{html.escape(name)}</h1>{text.code(content, language)}")


def _way(before: list[Path], after: list[Path]) -> str:
    parts = [f'<a href="{f.stem}.html">← {html.escape(example_title(f.stem))}</a>' for f in before]
    parts += ['<a href="index.html">All examples</a>']
    parts += [f'<a href="{f.stem}.html">{html.escape(example_title(f.stem))} →</a>' for f in after]
    return f'<nav class="way" aria-label="Examples">{" ".join(parts)}</nav>'


def _thumbnail(picture: Path, target: Path) -> str:
    """A small copy of a picture; the picture itself where it cannot be made smaller."""
    try:
        from PIL import Image
    except ImportError:
        return picture.name
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((THUMB, THUMB))
        small.save(target, optimize=True)
    return target.name
