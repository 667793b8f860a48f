"""CUDA text of kernels with a thread per state: over a batch, and over the steps of a rollout.

Unlike `to_cuda`'s kernel it takes the data and columns of the program as arrays, and for every input the numbers
between two states (0: one for all states). Threads read their own rows: the caches put together what neighbours read,
as fast as moving the rows through shared memory. What they write is put together there, where rows are long.

The first inputs of the program are what is carried: its outputs, in their order, become them. Other inputs may have a
row for every call. So that a launch may do many calls, what is carried is stored on the way, after every so many calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright.errors import KernelError
from linkwright.kernels.c.block_functions import Function, loop_text
from linkwright.kernels.c.program_text import Lowering, Outside, cuda_dialect
from linkwright.tape.program import Program

BLOCK = 64  # threads
_TOGETHER = 10  # blocks on a processor at once that short programs in float32 are compiled for: 96 registers a thread
_SHORT = 3000  # operations
_WIDE = 16  # numbers in a row that threads of a block store together
_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking for more


@dataclass(frozen=True)
class StatesText:
    """A kernel `name(inputs, outputs, work if any, outside, steps of the inputs, count)`."""

    source: str
    name: str
    work: int  # numbers of work a state, interleaved over the states
    outside: tuple[Outside, ...]
    block: int = BLOCK  # threads in a block


def states_text(program: Program, precision: str) -> StatesText:
    """The kernel of a program over a batch."""
    return _States(program, None, cuda_dialect(precision, outside=True)).lowered()


class _States(Lowering):
    def lowered(self) -> StatesText:
        name = self.name
        driver = self.driver(f"{name}_state")
        block, staged = self._staged(driver)
        kernel = self._kernel(driver, block, staged)
        source = self.cuda_whole(["One thread per state."], [driver.text(self.dialect.static), "\n".join(kernel)])
        return StatesText(source, name, self.layout.size if self.step else 0, tuple(self.outside.values()), block)

    def _staged(self, driver: Function) -> tuple[int, list[int]]:
        """Threads in a block, and the outputs that they collect in shared memory, to store them side by side.

        A thread that stores a long row by itself writes to as many lines of memory as the row has numbers.
        """
        wide = [k for k in self.program.with_role("output") if k in driver.written]
        wide = [k for k in wide if self.program.buffers[k].size >= _WIDE]
        number = 8 if self.dialect.precision == "float64" else 4
        for block in (BLOCK, BLOCK // 2):
            staged, free = [], _SHARED // (number * block)
            for k in sorted(wide, key=lambda k: self.program.buffers[k].size):
                if (row := self._row(k)) <= free:
                    staged.append(k)
                    free -= row
            if len(staged) == len(wide):
                return block, staged
        return (block, staged) if staged else (BLOCK, [])

    def _row(self, k: int) -> int:
        """Numbers from row to row in shared memory: odd, so that neighbours' rows begin in other banks."""
        return self.program.buffers[k].size | 1

    def _kernel(self, driver: Function, block: int, staged: Sequence[int]) -> list[str]:
        index, real = self.dialect.index, self.dialect.real
        inputs = self.program.with_role("input")
        more = [*self.more_parameters(), *(f"{index} s_{k}" for k in inputs), f"{index} count"]
        signature = self.signature(*more, restrict="__restrict__ ")
        lines = [
            f'extern "C" __global__ void __launch_bounds__({self._bounds(block)}) {self.name}({signature})',
            "{",
            *(f"    __shared__ {real} t_{k}[{block * self._row(k)}];" for k in staged),
            f"    const {index} first = ({index})blockIdx.x * {block};",
            f"    const {index} state = first + threadIdx.x;",
            *(f"    (void){x};" for x in self.unused(driver)),
            *(f"    (void)s_{k};" for k in inputs if k not in driver.written),
        ]
        places = {self.names[k]: self._place(k, k in inputs) for k in driver.written}
        places |= {self.names[k]: f"t_{k} + threadIdx.x * {self._row(k)}" for k in staged}
        inside = (f"        {line}" for line in (*self.local_work(driver), self.call(driver, places)))
        lines += ["    if (state < count) {", *inside, "    }"]
        if staged:
            lines += [
                "    __syncthreads();",
                f"    const int here = count - first < {block} ? count - first : {block};",
            ]
        for k in staged:
            size, row = self.program.buffers[k].size, self._row(k)
            lines += [
                f"    for (int k = threadIdx.x; k < here * {size}; k += {block})",
                f"        {self.names[k]}[first * {size} + k] = t_{k}[k / {size} * {row} + k % {size}];",
            ]
        return [*lines, "}"]

    def _bounds(self, block: int) -> str:
        """More threads at a time hide the sines' and quotients' delays better than more registers, if few spill; where
        many do, a thread has all the registers that it can have.
        """
        short = sum(len(block.op) for block in self.program.blocks) <= _SHORT
        together = _TOGETHER * BLOCK // block if short and self.dialect.precision == "float32" else 1
        return f"{block}, {together}"

    def _place(self, k: int, is_input: bool) -> str:
        name = self.names[k]
        return f"{name} + state * {f's_{k}' if is_input else self.program.buffers[k].size}"


def march_text(program: Program, precision: str) -> StatesText:
    """A kernel `name(inputs, last, kept, work if any, given, steps, count, calls, every)`.

    `last` takes what is carried at the end, `kept` (null: not wanted) what it is after each `every` calls and after the
    last. Steps, in numbers: of each input from state to state and from call to call; of each of `kept` from state to
    state and from row to row.
    """
    sizes = [[b.size for b in side] for side in (program.inputs, program.outputs)]
    if sizes[0][: len(sizes[1])] != sizes[1]:
        raise KernelError(f"{program.name} does not carry its outputs {sizes[1]} to its first inputs {sizes[0]}")
    return _March(program, None, cuda_dialect(precision, outside=True)).lowered()


class _March(_States):
    def _staged(self, driver: Function) -> tuple[int, list[int]]:
        return BLOCK, []

    def _bounds(self, block: int) -> str:
        """All registers: what spills here is read again in every step, and more threads at a time do not hide it."""
        return f"{block}, 1"

    def _kernel(self, driver: Function, block: int, staged: Sequence[int]) -> list[str]:
        names, real, index = self.names, self.dialect.real, self.dialect.index
        inputs, outputs = self.program.with_role("input"), self.program.with_role("output")
        carried = list(zip(inputs, outputs, strict=False))
        sizes = {k: self.program.buffers[k].size for k in (*inputs, *outputs)}
        arguments = [f"const {real} *{names[k]}" for k in inputs]
        arguments += [f"{real} *last_{k}" for k in outputs] + [f"{real} *kept_{k}" for k in outputs]
        arguments += self.more_parameters()
        arguments += [f"{index} {word}_{k}" for word in ("state", "call") for k in inputs]
        arguments += [f"{index} {word}_{k}" for word in ("state", "row") for k in outputs]
        arguments += [f"{index} {word}" for word in ("count", "calls", "every")]
        lines = [
            f'extern "C" __global__ void __launch_bounds__({self._bounds(block)}) {self.name}({", ".join(arguments)})',
            "{",
            f"    const {index} state = ({index})blockIdx.x * blockDim.x + threadIdx.x;",
            *(f"    (void)call_{k};" for k, _ in carried),
            *(f"    (void){names[k]}; (void)state_{k}; (void)call_{k};" for k in inputs if k not in driver.written),
            "    if (state >= count)",
            "        return;",
        ]
        lines += [f"    {line}" for line in self.local_work(driver)]
        for k, out in carried:
            lines += [f"    {real} now_{k}[{max(sizes[k], 1)}], next_{out}[{max(sizes[k], 1)}];"]
            lines += self._copied(sizes[k], f"now_{k}[k] = {names[k]}[state * state_{k} + k];", 1)
        places = {names[k]: f"now_{k}" for k, _ in carried}
        places |= {names[k]: f"{names[k]} + state * state_{k} + call * call_{k}" for k in inputs[len(carried) :]}
        places |= {names[k]: f"next_{k}" for k in outputs}
        lines += [
            f"    {index} left = every;",
            f"    for ({index} call = 0; call < calls; ++call) {{",
            f"        {self.call(driver, places)}",
            *(x for k, out in carried for x in self._copied(sizes[k], f"now_{k}[k] = next_{out}[k];", 2)),
            "        if (--left && call + 1 < calls)",
            "            continue;",
            "        left = every;",
        ]
        for k, out in carried:
            lines += [f"        if (kept_{out}) {{"]
            lines += self._copied(sizes[k], f"kept_{out}[state * state_{out} + k] = now_{k}[k];", 3)
            lines += [f"            kept_{out} += row_{out};", "        }"]
        lines += ["    }"]
        for k, out in carried:
            lines += self._copied(sizes[k], f"last_{out}[state * {sizes[k]} + k] = now_{k}[k];", 1)
        return [*lines, "}"]

    def _copied(self, size: int, line: str, depth: int) -> list[str]:
        return [f"{'    ' * depth}{text}" for text in loop_text(self, size, line)]
