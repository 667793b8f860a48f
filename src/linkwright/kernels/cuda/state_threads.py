"""CUDA text of the kernel that the CUDA back-end runs over a batch: a thread a state.

Unlike `to_cuda`'s kernel it takes the data and columns of the program as arrays, and for every input the numbers
between two states (0: one for all states). Threads read their own rows: the caches put together what neighbours read,
as fast as moving the rows through shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.kernels.c.block_functions import Function
from linkwright.kernels.c.program_text import Lowering, Outside, cuda_dialect
from linkwright.tape.program import Program

BLOCK = 64  # threads
_TOGETHER = 10  # blocks on a processor at once that short programs in float32 are compiled for: 96 registers a thread
_SHORT = 3000  # operations


@dataclass(frozen=True)
class StatesText:
    """A kernel `name(inputs, outputs, work if any, outside, steps of the inputs, count)` in blocks of `BLOCK`."""

    source: str
    name: str
    work: int  # numbers of work a state, interleaved over the states
    outside: tuple[Outside, ...]


def states_text(program: Program, precision: str) -> StatesText:
    """The kernel of a program over a batch."""
    return _States(program, None, cuda_dialect(precision, outside=True)).lowered()


class _States(Lowering):
    def lowered(self) -> StatesText:
        name = self.name
        driver = self.driver(f"{name}_state")
        kernel = self._kernel(driver)
        source = self.cuda_whole(["One thread a state."], [driver.text(self.dialect.static), "\n".join(kernel)])
        return StatesText(source, name, self.layout.size if self.step else 0, tuple(self.outside.values()))

    def _kernel(self, driver: Function) -> list[str]:
        index = self.dialect.index
        inputs = self.program.with_role("input")
        more = [*self.more_parameters(), *(f"{index} s_{k}" for k in inputs), f"{index} count"]
        signature = self.signature(*more, restrict="__restrict__ ")
        first = f"({index})blockIdx.x * {BLOCK}"
        lines = [
            f'extern "C" __global__ void __launch_bounds__({self._bounds()}) {self.name}({signature})',
            "{",
            f"    const {index} state = {first} + threadIdx.x;",
            *(f"    (void){x};" for x in self.unused(driver)),
            *(f"    (void)s_{k};" for k in inputs if k not in driver.written),
        ]
        call = self.call(driver, {self.names[k]: self._place(k, k in inputs) for k in driver.written})
        inside = (f"        {line}" for line in (*self.local_work(driver), call))
        lines += ["    if (state < count) {", *inside, "    }"]
        return [*lines, "}"]

    def _bounds(self) -> str:
        """More threads at a time hide the sines' and quotients' delays better than more registers, if few spill."""
        short = sum(len(block.op) for block in self.program.blocks) <= _SHORT
        return f"{BLOCK}, {_TOGETHER}" if short and self.dialect.precision == "float32" else str(BLOCK)

    def _place(self, k: int, is_input: bool) -> str:
        name = self.names[k]
        return f"{name} + state * {f's_{k}' if is_input else self.program.buffers[k].size}"
