"""The verbs put together, and what becomes of their errors: one line on stderr and an exit code, no traceback."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import getdoc
from typing import Annotated

import typer

from linkwright import __version__
from linkwright.cli.bench_verb import bench
from linkwright.cli.cam_verb import cam
from linkwright.cli.check_verb import check
from linkwright.cli.convert_verb import convert
from linkwright.cli.demo_verb import demo
from linkwright.cli.equations_verb import equations
from linkwright.cli.export_verb import export
from linkwright.cli.run_verb import run as run_model
from linkwright.cli.screen import Interrupted, as_options, print_error, print_text
from linkwright.cli.study_verb import study
from linkwright.cli.sweep_verb import sweep
from linkwright.cli.tolerances_verb import tolerances
from linkwright.cli.view_verb import view
from linkwright.errors import LinkwrightError, MksError

# Older releases of typer take this class from click, newer ones have their own.
_WrongWords: type[Exception] = typer.BadParameter.__bases__[0]

INTERRUPTED = 130

app = typer.Typer(
    name="linkwright",
    help="Mechanisms: analyse, simulate and animate a model; derive its equations; export code.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_model)
for verb in (check, view, equations, convert, export, sweep, tolerances, cam, study, demo, bench):
    app.command()(verb)
for command in app.registered_commands:  # typer would keep the line ends of a docstring's paragraphs
    text = getdoc(command.callback) or ""
    command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"linkwright {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="linkwright", standalone_mode=False)
    except MksError as error:
        print_text(str(error))
        count = len(error.problems)
        print_error(f"{error.file} cannot be read: {count} problem{'s' * (count != 1)}")
        return 1
    except LinkwrightError as error:
        print_error(as_options(str(error)))
        return 1
    except _WrongWords as error:
        return _print_usage(error)
    except Interrupted as interruption:
        print_error(str(interruption))
        return INTERRUPTED
    except (typer.Abort, KeyboardInterrupt):
        print_error("interrupted")
        return INTERRUPTED
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 1
    if code == INTERRUPTED:  # newer releases of typer end so, without a word
        print_error("interrupted")
    return code if isinstance(code, int) else 0


def _print_usage(error: Exception) -> int:
    context = getattr(error, "ctx", None)
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        if message:  # else the help is on the screen already
            print(message)
        return 2
    message = message.replace(". Did you mean", "; did you mean")  # as all other messages have it
    sentence = message[:1].lower() + message[1:].rstrip(".")
    command = context.command_path if context else "linkwright"
    print_error(f"{sentence}{' See' if sentence.endswith('?') else '; see'} {command} --help")
    return 2
