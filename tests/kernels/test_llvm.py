"""The LLVM lowering, one state at a time and in lanes, against NumPy; memory around arrays is watched."""

import ctypes

import numpy as np
import pytest
import sample_programs as samples

import linkwright.tape.functions as F
from linkwright.kernels import llvm_backend
from linkwright.kernels.llvm_text import SEGMENT, llvm_text, scratch_size
from linkwright.kernels.numpy_backend import run
from linkwright.tape import ProgramBuilder, Table, record, trace
from linkwright.tape.program import ITEM, Copy, Each, Loop, Solve, Walk, Zero

GUARD = 7.5e77
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
#: (states at a time, doubles a register holds): one state without and with packed sines, and lanes.
SHAPES = [(1, 1), (1, 4), (1, 8), (2, 2), (4, 4), (8, 8)]


def pointers(arrays):
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))


def guarded(count, fill=np.nan):
    """An array with a guard before and behind it, and the array's own part."""
    memory = np.full(count + 16, GUARD)
    memory[8 : 8 + count] = fill
    return memory, memory[8 : 8 + count]


def intact(memory):
    return (memory[:8] == GUARD).all() and (memory[-8:] == GUARD).all()


def compute(program, inputs, batch, width, pack, shared=()):
    """The outputs (batch, size) of compiled code; the inputs numbered in `shared` are one row for all states."""
    address = llvm_backend.load(llvm_backend.object_code(llvm_text(program, "kernel", width, pack)), "kernel")
    kept = [np.ascontiguousarray(x) for x in inputs]
    given = [x.copy() for x in kept]
    data = [b.data for b in program.buffers if b.role == "data"] + list(program.columns)
    memories = [guarded(batch * b.size) for b in program.outputs]
    watch, scratch = guarded(scratch_size(program, width))
    strides = [0 if k in shared else b.size for k, b in enumerate(program.inputs)]
    strides += [b.size for b in program.outputs]
    table = pointers([*given, *(part for _, part in memories), *data])
    ENTRY(address)(table, (ctypes.c_int64 * len(strides))(*strides), scratch.ctypes.data, batch)
    for before, after in zip(kept, given, strict=True):
        np.testing.assert_array_equal(before, after)
    assert intact(watch)
    assert all(intact(memory) for memory, _ in memories)
    return [part.reshape(batch, b.size) for (_, part), b in zip(memories, program.outputs, strict=True)]


def check(program, inputs=None, batch=8, rtol=1e-11, shapes=SHAPES, atol=1e-13):
    inputs = samples.arguments(program, batch) if inputs is None else inputs
    wanted = run(program, inputs, batch)
    for width, pack in shapes:
        for k, (got, right) in enumerate(zip(compute(program, inputs, batch, width, pack), wanted, strict=True)):
            np.testing.assert_allclose(got, right, rtol=rtol, atol=atol, err_msg=f"output {k}, width {width}, pack {pack}")


@pytest.mark.parametrize("name", samples.ALL)
def test_llvm_gives_what_numpy_gives(name):
    check(samples.ALL[name]())
