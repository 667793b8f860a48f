"""The command `linkwright`: one thin file per verb. It parses words and prints; the library does the work."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ends with SystemExit: 0 done, 1 the model or the work is at fault, 2 the words are."""
    try:
        from linkwright.cli.app import run  # weight: cli

        code = run(arguments)
    except KeyboardInterrupt:  # while the verbs were still being imported
        code = 130
    raise SystemExit(code)


__all__ = ["main"]
