"""LLVM text of a function under construction: numbered values and labels, branches and loops."""

from __future__ import annotations

from collections.abc import Callable


class Writer:
    """The lines so far, and the label of the piece of code that is being written."""

    def __init__(self, current: str = "entry") -> None:
        self.lines: list[str] = []
        self.serial = 0
        self.current = current

    def fresh(self) -> str:
        """A new name of a value."""
        self.serial += 1
        return f"%x{self.serial}"

    def label(self, stem: str) -> str:
        """A new label."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def line(self, text: str) -> None:
        """Write an instruction that has no value."""
        self.lines.append(f"  {text}")

    def op(self, text: str) -> str:
        """Write an instruction; the name of its value."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin the code of a label."""
        self.lines.append(f"{label}:")
        self.current = label

    def branch(self, label: str) -> None:
        """Go to a label."""
        self.line(f"br label %{label}")

    def choose(self, condition: str, yes: str, no: str) -> None:
        """Go to one of two labels."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def loop(self, first: str, test: str, body: Callable[[str], None], following: Callable[[str], str]) -> None:
        """for i = first, following(i), ... while the comparison `test` of i holds: body(i); it may run no times."""
        head, inside, end = self.label("head"), self.label("inside"), self.label("end")
        before = self.current
        self.branch(head)
        self.start(head)
        i, at = self.fresh(), len(self.lines)
        self.lines.append("")  # the phi, once the last label is known
        self.choose(self.op(f"icmp {test.format(i)}"), inside, end)
        self.start(inside)
        body(i)
        after = following(i)
        self.lines[at] = f"  {i} = phi i64 [ {first}, %{before} ], [ {after}, %{self.current} ]"
        self.branch(head)
        self.start(end)

    def repeat(self, first: str, last: str, body: Callable[[str], None], step: int = 1) -> None:
        """for i = first, first + step, ... up to last (excluded): body(i); it may run no times."""
        test = f"{'slt' if step > 0 else 'sgt'} i64 {{}}, {last}"
        self.loop(first, test, body, lambda i: self.op(f"add i64 {i}, {step}"))

    def spread(self, value: str, lanes: int, kind: str = "double") -> str:
        """A number in every lane of a vector; itself for one lane."""
        if lanes == 1:
            return value
        t = f"<{lanes} x {kind}>"
        first = self.op(f"insertelement {t} poison, {kind} {value}, i32 0")
        return self.op(f"shufflevector {t} {first}, {t} poison, <{lanes} x i32> zeroinitializer")
