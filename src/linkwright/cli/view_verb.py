"""`linkwright view`: a saved motion as a page to look at."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import linkwright as lw
from linkwright.cli.screen import console, made_folder, printed_warnings
from linkwright.errors import LinkwrightError
from linkwright.formats.model_files import ENDINGS

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer


def view(
    solution: Annotated[Path, typer.Argument(help="A solution: a .nc file.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The folder for the page, or its name, in .html.", show_default="beside the solution"
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's title.", show_default="the model's name")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page on this machine until Ctrl-C.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the motion in SOLUTION as one HTML page that needs nothing else, and say where it is."""
    if solution.is_dir():
        raise LinkwrightError(f"{solution}: is a folder; give a solution, a .nc file")
    if solution.name.lower().endswith(ENDINGS):
        raise LinkwrightError(
            f"{solution}: is a model; run it first (linkwright run), then view the .nc file it writes"
        )
    target = solution.with_suffix(".html") if output is None else output
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        target = output / solution.with_suffix(".html").name
    if (output or target).absolute() == solution.absolute():
        raise LinkwrightError(f"{solution}: the page would take the place of the solution; name another with --output")
    with printed_warnings():
        motion = lw.open(solution)
        if output is not None and target != output:
            made_folder(output)
        page = motion.animate(target, title=title)
    console().print(f"{page}: {page.stat().st_size / 1e6:.1f} MB; open it in any browser", soft_wrap=True)
    if serve:
        with server(page.read_bytes()) as running:
            address = f"http://127.0.0.1:{running.server_port}/"
            console().print(f"{address} until Ctrl-C", soft_wrap=True)
            if open_:
                webbrowser.open(address)
            try:
                running.serve_forever()
            except KeyboardInterrupt:
                console().print("stopped")
    elif open_:
        webbrowser.open(page.absolute().as_uri())


def server(page: bytes, port: int = 0) -> ThreadingHTTPServer:
    """A server of one page, for this machine alone, on a free port unless one is given."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # weight: http, ssl

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Another name in front of this address is another site's attempt to read the page.
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if host not in ("127.0.0.1", "localhost"):
                return self.send_error(403)
            if self.path.split("?", 1)[0] not in ("/", "/index.html"):
                return self.send_error(404)
            self.send_response(200)
            for name, value in (
                ("Content-Type", "text/html; charset=utf-8"),
                ("Content-Length", str(len(page))),
                ("Cache-Control", "no-store"),
                ("X-Content-Type-Options", "nosniff"),
                ("X-Frame-Options", "DENY"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
