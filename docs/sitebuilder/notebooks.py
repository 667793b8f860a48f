"""Notebooks are executed, cached until their sources change, and shown with their rich outputs."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sitebuilder.runs import PATIENCE, digest, environment
from sitebuilder.text import Rendered, code, render

#: The forms of an output that are shown, the richest first.
KINDS = ("text/html", "image/svg+xml", "image/png", "text/plain")


class NotebookFailed(Exception):
    """A notebook with a cell that raised an error, and its text."""


def executed(root: Path, notebook: Path, cache: Path, common: str) -> tuple[Any, bool]:
    """The notebook with its outputs, and whether it was run again."""
    try:
        import nbformat
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient
        from nbclient.exceptions import CellControlSignal, DeadKernelError
    except ImportError as error:
        raise NotebookFailed(f"{error}; notebooks are run with: pip install 'linkwright[docs]'") from error

    mark = digest([notebook], common, "notebook")
    stored = cache / f"{notebook.stem}-{mark[:16]}.ipynb"
    if stored.exists():
        return nbformat.read(stored, as_version=4), False
    document = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": str(notebook.parent)}}
    with tempfile.TemporaryDirectory() as folder:
        # Over sockets in a folder that only its owner can enter: no port that others could reach.
        manager = AsyncKernelManager(
            kernel_name="python3",
            transport="ipc" if os.name == "posix" else "tcp",
            connection_file=str(Path(folder) / "kernel.json"),
        )
        client = NotebookClient(document, km=manager, timeout=PATIENCE, resources=place, shutdown_kernel="immediate")
        client.owns_km = True  # the client ends the kernel when it is done
        try:
            client.execute(env={**environment(root), "MPLBACKEND": "module://matplotlib_inline.backend_inline"})
        except (CellControlSignal, DeadKernelError, RuntimeError, TimeoutError) as error:
            raise NotebookFailed(str(error).strip()[-3000:]) from error
    cache.mkdir(parents=True, exist_ok=True)
    for old in cache.glob(f"{notebook.stem}-*.ipynb"):
        old.unlink()
    nbformat.write(document, stored)
    return document, True


def shown(notebook: Any, resolve: Callable[[str], str]) -> Rendered:
    """Its cells as HTML."""
    parts: list[str] = []
    headings: list[tuple[str, str]] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            rendered = render(cell.source, resolve)
            parts.append(rendered.body)
            headings += rendered.headings
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(code(cell.source + "\n", "python"))
            parts += [part for part in map(_output, cell.outputs) if part]
    return Rendered("\n".join(parts), headings)


def _output(output: Any) -> str:
    if output.output_type == "stream":
        return "" if output.name == "stderr" else _text(output.text)
    if output.output_type == "error":
        return _text(f"{output.ename}: {output.evalue}")
    for kind in KINDS:
        if kind in output.get("data", {}):
            value = output["data"][kind]
            value = value if isinstance(value, str) else "".join(value)
            if kind == "text/plain":
                return _text(value)
            if kind == "image/png":
                value = f'<img alt="a figure" src="data:image/png;base64,{html.escape("".join(value.split()))}">'
            return f'<div class="output">{value}</div>'
    return ""


def _text(text: str) -> str:
    return f'<pre class="printed">{html.escape(text.rstrip())}</pre>'
