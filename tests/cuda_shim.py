"""CUDA text compiled as C++ and run on the CPU: a launch takes its arguments as CUDA's driver does.

The threads of a block run one after another, or side by side where they wait for each other.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from compilers import find, shared_library

#: CUDA's words for a compiler of C++.
WORDS = """
#include <math.h>
#define __global__
#define __device__
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
static inline int __double2loint(double x) { long long bits; __builtin_memcpy(&bits, &x, 8); return (int)bits; }
"""
SHIM = f"""{WORDS}
struct Place {{ unsigned x; }};
static Place blockIdx, blockDim;
static thread_local Place threadIdx;
"""
# Only for kernels whose threads wait for each other: g++ reads these headers for twice as long as a kernel.
WAITING = """
#include <barrier>
#include <thread>
#include <vector>
static std::barrier<> *waiting;
#define __syncthreads() waiting->arrive_and_wait()
"""
# What a walk carries is set before it is read, which g++ cannot see through the switches.
FLAGS = ["-std=c++20", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized", "-Wno-unknown-pragmas"]
KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([\d, ]+\) )?(\w+)\(([^)]*)\)')


def launcher(name: str, parameters: list[str], together: bool) -> str:
    types = [p.replace("__restrict__", "").rpartition("*") for p in parameters]
    kinds = [f"{kind}*" if star else rest.rpartition(" ")[0] for kind, star, rest in types]
    call = f"{name}({', '.join(f'*({kind} *)arguments[{k}]' for k, kind in enumerate(kinds))});"
    loop = f"for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x) {call}"
    if together:
        loop = f"""std::barrier<> meeting(block);
        waiting = &meeting;
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < block; ++t)
            threads.emplace_back([=] {{ threadIdx.x = t; {call} }});
        for (auto &thread : threads)
            thread.join();"""
    return f"""
extern "C" void launch_{name}(unsigned grid, unsigned block, void **arguments)
{{
    blockDim.x = block;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {{
        {loop}
    }}
}}
"""


@cache
def library(source: str) -> ctypes.CDLL:
    # An early return in a thread of a block that waits would hang: such kernels have none.
    together = "__syncthreads" in source
    text = SHIM + (WAITING if together else "") + source
    for name, parameters in KERNEL.findall(source):
        text += launcher(name, [p.strip() for p in parameters.split(",")], together)
    with tempfile.TemporaryDirectory() as folder:
        return shared_library(text, Path(folder), find("g++", "clang++", "c++"), [*FLAGS, "-O1"], ".cpp")


def launch(source: str, name: str, grid: int, block: int, arguments: list[int | np.integer]) -> None:
    """Run a kernel; its arguments are addresses and 64-bit numbers."""
    words = (ctypes.c_int64 * len(arguments))(*(int(x) for x in arguments))
    first = ctypes.addressof(words)
    pointers = (ctypes.c_void_p * len(arguments))(*(first + 8 * k for k in range(len(arguments))))
    library(source)[f"launch_{name}"](ctypes.c_uint(grid), ctypes.c_uint(block), pointers)
