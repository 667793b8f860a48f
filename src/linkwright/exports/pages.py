"""The README of an export: what the function computes, how its arrays are laid out, what it costs, how to test it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwright.exports.folder import MARK
from linkwright.exports.subject import Subject, plain
from linkwright.exports.vectors import Vectors

_NAMES = {"mul": "products", "add": "sums", "sub": "differences", "div": "quotients", "neg": "changes of sign"}
_NAMES |= {"sin": "sines", "cos": "cosines", "sqrt": "square roots"}


def readme(subject: Subject, vectors: Vectors, *sections: tuple[str, Sequence[str]]) -> str:
    """The page: a heading, the sections of the language, then what is the same for all."""
    lines = [f"# {plain(subject.title)}", "", f"{_sentence(subject)} {MARK}; it needs nothing of it."]
    for title, body in (*sections, ("Arrays", _arrays(subject)), ("Test vector", _vector(vectors))):
        lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def _sentence(subject: Subject) -> str:
    outputs = ", ".join(f"`{b.name}`" for b in subject.program.outputs)
    inputs = ", ".join(f"`{b.name}`" for b in subject.program.inputs) or "nothing"
    more = "" if subject.dt is None else f" One Runge–Kutta step (order 4) of {subject.dt!r} s with `tau` held."
    return f"`{subject.name}` computes {outputs} from {inputs}.{more}"


def operations(subject: Subject) -> str:
    """How many operations one call takes at most, in words."""
    counts = sorted(subject.program.count().items(), key=lambda item: -item[1])
    listing = ", ".join(f"{number} {_NAMES.get(name, name)}" for name, number in counts)
    return f"At most {subject.operations} operations" + (f": {listing}." if listing else ".")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of a Markdown table."""
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]


def _arrays(subject: Subject) -> list[str]:
    rows = []
    for role, buffers in (("in", subject.program.inputs), ("out", subject.program.outputs)):
        for b in buffers:
            shape = " × ".join(map(str, b.shape)) or "one number"
            rows.append((role, f"`{b.name}`", shape, plain_cell(subject.meaning(b.name))))
    lines = [*table(("", "array", "shape", "what"), rows), "", "Arrays are row-major. SI units, radians."]
    order = subject.order()
    if order:
        lines += ["", "The order of the coordinates:", "", *table(("joint", "kind", "q", "v", "unit"), order[:200])]
        lines += [f"\nand {len(order) - 200} more."] if len(order) > 200 else []
    return lines


def plain_cell(text: str) -> str:
    return text.replace("|", "/")


def _vector(vectors: Vectors) -> list[str]:
    return [
        f"{vectors.cases} states with the results that Linkwright computes in float64. The error of an output is its "
        "largest difference over its largest number (over 1 where that is less); "
        f"the test passes up to {vectors.tolerance:.2g}. Rounding alone is expected to make about "
        f"{vectors.rounding:.1g}."
    ]
