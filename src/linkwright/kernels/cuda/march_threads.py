"""CUDA text of a march: each thread calls a program again and again, every time from what the last call left.

The first inputs of the program are what is carried: its outputs, in their order, become them. Other inputs may have a
row for every call. So that a launch may do many calls, what is carried is stored on the way, after every so many calls.
"""

from __future__ import annotations

from linkwright.errors import KernelError
from linkwright.kernels.c.block_functions import Function
from linkwright.kernels.c.program_text import cuda_dialect
from linkwright.kernels.cuda.state_threads import BLOCK, StatesText, _States
from linkwright.tape.program import Program


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
    def _bounds(self) -> str:
        """All registers: what spills here is read again in every step, and more threads at a time do not hide it."""
        return str(BLOCK)

    def _kernel(self, driver: Function) -> list[str]:
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
            f'extern "C" __global__ void __launch_bounds__({self._bounds()}) {self.name}({", ".join(arguments)})',
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
        pad = "    " * depth
        head = f"for ({self.dialect.index} k = 0; k < {size}; ++k)"
        return [f"{pad}{head}", f"{pad}    {line}"] if size else []


__all__ = ["BLOCK", "march_text"]
