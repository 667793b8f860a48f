"""What a caller must know of a program, kept on disk beside its code: names, shapes, scratch sizes, amount of work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from linkwright.base.checks import check_memory
from linkwright.tape.program import Buffer, Program

Shape = tuple[int, ...]


class Port(NamedTuple):
    """An input or output: its name, its shape for one state, and how many numbers that is."""

    name: str
    shape: Shape
    size: int

    @classmethod
    def of(cls, buffer: Buffer) -> Port:
        return cls(buffer.name, tuple(buffer.shape), buffer.size)


@dataclass(frozen=True)
class Signature:
    """What a caller must know of a program: names and shapes for one state, scratch sizes, amount of work."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    single: bool
    scratch: dict[int, int]
    work: int
    data: tuple[str, ...]  # the names of the program's data, in the order of their numbers
    columns: int  # and how many columns follow these

    @classmethod
    def of(cls, program: Program, widths: Sequence[int]) -> Signature:
        from linkwright.kernels.llvm.module_text import (
            scratch_size,  # for weight: signatures from the cache need no text
        )

        for output in program.outputs:
            what = f"{program.name}: {output.name} of shape {tuple(output.shape)}"
            check_memory(what, output.size, "take a smaller mechanism")
        return cls(
            program.name,
            tuple(map(Port.of, program.inputs)),
            tuple(map(Port.of, program.outputs)),
            program.returns_one,
            {w: scratch_size(program, w) for w in widths},
            sum(program.count().values()),
            tuple(b.name for b in program.buffers if b.role == "data"),
            len(program.columns),
        )

    def dumps(self) -> bytes:
        return json.dumps(self.__dict__).encode()

    @classmethod
    def loads(cls, text: bytes) -> Signature:
        raw = json.loads(text)
        for side in ("inputs", "outputs"):
            raw[side] = tuple(Port(name, tuple(shape), size) for name, shape, size in raw[side])
        raw["scratch"] = {int(w): n for w, n in raw["scratch"].items()}
        raw["data"] = tuple(map(str, raw["data"]))
        return cls(**raw)
