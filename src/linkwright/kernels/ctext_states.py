"""CUDA text of the kernel that the CUDA back-end runs over a batch: a thread a state.

Unlike `to_cuda`'s kernel it takes the data and columns of the program as arrays, and for every input the numbers
between two states (0: one for all states). The rows of a block's states are moved together: neighbouring threads
read neighbouring numbers, and hand them on through shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.kernels.ctext import Lowering, Outside, cuda_dialect
from linkwright.kernels.ctext_block import Function
from linkwright.tape.program import Program

BLOCK = 64  # threads
_SHARED = 32 * 1024  # bytes of shared memory that a block may take
_BYTES = {"float64": 8, "float32": 4}


@dataclass(frozen=True)
class StatesText:
    """A kernel `name(inputs, outputs, work if any, given, steps of the inputs, count)` in blocks of `BLOCK`."""

    source: str
    name: str
    work: int  # numbers of work a state, interleaved over the states
    given: tuple[Outside, ...]


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
        names, real, index = self.names, self.dialect.real, self.dialect.index
        inputs = self.with_role("input")
        more = [f"{real} *__restrict__ work"] if self.step else []
        more += [f"{given.kind}__restrict__ {name}" for name, given in self.outside.items()]
        more += [f"{index} s_{k}" for k in inputs]
        signature = self.signature(*more, f"{index} count", restrict="__restrict__ ")
        staged = self._staged(driver)
        first = f"({index})blockIdx.x * {BLOCK}"
        lines = [
            f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.name}({signature})',
            "{",
            f"    const {index} first_state = {first}, state = first_state + threadIdx.x;",
            *(f"    (void){x};" for x in self.unused(driver)),
            *(f"    (void)s_{k};" for k in inputs if k not in driver.written),
        ]
        passed = {names[k]: self._place(k, k in inputs) for k in driver.written}
        passed |= {"work": "work + state" if self.step else "work", "step": "count"}
        passed |= {name: name for name in self.outside}
        if staged:
            room = sum(pitch for _, pitch in staged.values())
            lines += [
                f"    __shared__ {real} shared_rows[{room * BLOCK}];",
                f"    const int states_here = count - first_state < {BLOCK} ? (int)(count - first_state) : {BLOCK};",
            ]
        for k, (at, pitch) in staged.items():
            passed[names[k]] = f"shared_rows + {at * BLOCK} + threadIdx.x * {pitch}"
            if k in inputs:
                n = self.program.buffers[k].size
                target = f"shared_rows[{at * BLOCK} + {_spread(n, pitch)}]"
                dense = self._move(k, f"{target} = {names[k]}[first_state * {n} + e_0];")
                sparse = self._move(k, f"{target} = {names[k]}[(first_state + e_0 / {n}) * s_{k} + e_0 % {n}];")
                lines += [f"    if (s_{k} == {n}) {{", *(f"    {x}" for x in dense)]
                lines += ["    } else {", *(f"    {x}" for x in sparse), "    }"]
        if any(k in inputs for k in staged):
            lines.append("    __syncthreads();")
        local = [f"{real} work[{self.layout.size}];"] if "work" in driver.uses and not self.step else []
        call = f"{driver.name}({', '.join(passed[x] for _, x in driver.parameters())});"
        lines += ["    if (state < count) {", *(f"        {line}" for line in (*local, call)), "    }"]
        outgoing = [k for k in staged if k not in inputs]
        if outgoing:
            lines.append("    __syncthreads();")
        for k in outgoing:
            at, pitch = staged[k]
            n = self.program.buffers[k].size
            source = f"shared_rows[{at * BLOCK} + {_spread(n, pitch)}]"
            lines += self._move(k, f"{names[k]}[first_state * {n} + e_0] = {source};")
        return [*lines, "}"]

    def _place(self, k: int, is_input: bool) -> str:
        name = self.names[k]
        return f"{name} + state * {f's_{k}' if is_input else self.program.buffers[k].size}"

    def _move(self, k: int, line: str) -> list[str]:
        """Move the numbers of the block's rows; unrolled, so that all loads are under way at once."""
        n = self.program.buffers[k].size
        return [
            "    #pragma unroll",
            f"    for (int k = 0; k < {n}; ++k) {{",
            f"        const int e_0 = k * {BLOCK} + threadIdx.x;",
            f"        if (e_0 < states_here * {n})",
            f"            {line}",
            "    }",
        ]

    def _staged(self, driver: Function) -> dict[int, tuple[int, int]]:
        """The arrays that go through shared memory, the short ones first: where each begins and its pitch.

        An odd pitch lets the threads of a warp read their own rows from different banks.
        """
        found: dict[int, tuple[int, int]] = {}
        at = 0
        sizes = {k: self.program.buffers[k].size for k in driver.written}
        for k, n in sorted(sizes.items(), key=lambda item: item[1]):
            pitch = n | 1
            if n > 1 and (at + pitch) * BLOCK * _BYTES[self.dialect.precision] <= _SHARED:
                found[k] = (at, pitch)
                at += pitch
        return found


def _spread(n: int, pitch: int) -> str:
    return "e_0" if n == pitch else f"e_0 / {n} * {pitch} + e_0 % {n}"
