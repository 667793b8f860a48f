"""`make docs`: build the site, list what was run, and fail with the names of the problems."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sitebuilder.build import Builder, Refused

ROOT = Path(__file__).resolve().parents[2]


def _say(line: str) -> None:
    sys.stdout.write(f"  {line}\n")  # in one piece: several examples run at once
    sys.stdout.flush()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="sitebuilder", description="Build the static site of the documentation.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--out", type=Path, help="folder of the site; `site` in the checkout if missing")
    parser.add_argument("--cache", type=Path, help="outputs of earlier runs; `.site-cache` in the checkout if missing")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these examples and notebooks alone, by their stems")
    parser.add_argument("--quick", action="store_true", help="pages alone: no example and no notebook is run")
    parser.add_argument("--jobs", type=int, default=2, help="examples at one time")
    options = parser.parse_args(words)
    root: Path = options.root.resolve()
    out, cache = options.out or root / "site", options.cache or root / ".site-cache"
    only = frozenset() if options.quick else None if options.only is None else frozenset(options.only)
    since = time.perf_counter()
    try:
        builder = Builder(root, only, cache.absolute(), max(1, options.jobs), _say)
        wrong = builder.build(out.absolute())
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{out / 'index.html'}: {len(builder.plan.pages)} pages in {time.perf_counter() - since:.0f} s")
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
