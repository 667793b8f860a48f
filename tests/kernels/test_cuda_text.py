"""CUDA text without a GPU: compiled as C++ with the few words of CUDA defined away, its threads run in turn."""

import ctypes
import ctypes.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sample_programs as samples

from compilers import find, pointer, shared_library
from cuda_shim import WORDS
from linkwright.errors import KernelError
from linkwright.kernels.c import program_text
from linkwright.kernels.c.program_text import cuda_text, cuda_work_size, function_name
from linkwright.kernels.cuda.item_threads import items_text
from linkwright.kernels.cuda.state_threads import states_text
from linkwright.kernels.interpret.interpreter import run
from linkwright.tape.build import record

SHIM = f"{WORDS}static struct {{ unsigned x; }} blockIdx, blockDim, threadIdx;\n"
BLOCK = 4


def launcher(program, real, work):
    """A function that runs a kernel's threads one after another, for arrays given as one list of addresses."""
    types = [f"const {real} *"] * len(program.inputs) + [f"{real} *"] * (len(program.outputs) + work)
    arguments = ", ".join(f"({kind})arrays[{k}]" for k, kind in enumerate(types))
    return f"""
extern "C" void launch(void **arrays, long long count)
{{
    blockDim.x = {BLOCK};
    for (blockIdx.x = 0; blockIdx.x * {BLOCK} < count; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < {BLOCK}; ++threadIdx.x)
            {function_name(program.name)}({", ".join(x for x in (arguments, "count") if x)});
}}
"""


def launch(program, folder, inputs, batch, precision="float64"):
    work = cuda_work_size(program)
    real = {"float64": "double", "float32": "float"}[precision]
    text = SHIM + cuda_text(program, precision=precision) + launcher(program, real, work > 0)
    # What a walk carries is set before it is read, which g++ cannot see through the switches.
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized", "-O1"]
    library = shared_library(text, folder, find("g++", "clang++", "c++"), flags, ".cpp")
    arrays = [x.astype(precision) for x in inputs]
    arrays += [np.full((batch, b.size), np.nan, dtype=precision) for b in program.outputs]
    outputs = arrays[len(inputs) :]
    if work:
        arrays.append(np.full(work * batch, np.nan, dtype=precision))
    addresses = (ctypes.c_void_p * len(arrays))(*(pointer(a) for a in arrays))
    library.launch(addresses, ctypes.c_longlong(batch))
    return outputs


@pytest.mark.parametrize("name", samples.ALL)
def test_the_kernel_gives_what_numpy_gives(name, tmp_path):
    program, batch = samples.ALL[name](), 2 * BLOCK + 1
    inputs = samples.arguments(program, batch)
    results = launch(program, tmp_path, inputs, batch)
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["tree_scan", "walk", "newton", "cholesky", "lu", "least-norm", "ltl", "overlapping"])
def test_large_temporaries_lie_interleaved_in_a_global_array(name, tmp_path, monkeypatch):
    monkeypatch.setattr(program_text, "LOCAL", 0)
    program, batch = samples.ALL[name](), 7
    assert "* step" in cuda_text(program)
    inputs = samples.arguments(program, batch)
    results = launch(program, tmp_path, inputs, batch)
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_values_that_cross_a_cut_lie_interleaved_too(tmp_path, monkeypatch):
    monkeypatch.setattr(program_text, "LOCAL", 0)
    program, batch = samples.long_block(20_000), 3
    assert cuda_work_size(program) > 0
    inputs = samples.arguments(program, batch)
    results = launch(program, tmp_path, inputs, batch)
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize("name", ["smooth", "tree_scan", "walk", "cholesky", "ltl", "least-norm"])
def test_float32_kernels_compute_in_float32(name, tmp_path):
    program, batch = samples.ALL[name](), 5
    text = cuda_text(program, precision="float32")
    assert "double" not in text
    inputs = samples.arguments(program, batch)
    results = launch(program, tmp_path, inputs, batch, "float32")
    for wanted, got in zip(run(program, inputs, batch), results, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)


def test_float32_has_numpys_corners_too(tmp_path):
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -1.0, 1.5]
    inputs = [np.array(np.meshgrid(values, values, [0.25, np.nan, 0.0], [2.0])).reshape(4, -1).T.copy()]
    program = samples.corners()
    results = launch(program, tmp_path, inputs, len(inputs[0]), "float32")
    for wanted, got in zip(run(program, inputs, len(inputs[0])), results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_sine_and_a_cosine_of_one_angle_are_one_call():
    program = record(lambda x: np.array([np.sin(x), np.cos(x), np.sin(2.0 * x)]), (), name="pair")
    _, _, body = cuda_text(program).partition("pair_f0")
    assert body.count("sincos(") == 1
    assert body.count(" sin(") == 1
    assert "cos(" not in body.replace("sincos(", "")


def test_an_unknown_precision_is_refused():
    with pytest.raises(KernelError, match="float16"):
        cuda_text(samples.smooth(), precision="float16")


def everything(precision):
    """Every kernel; only a short one of the long block, which takes nvcc half a minute."""
    programs = {**{name: make() for name, make in samples.ALL.items()}, "long_block": samples.long_block(100)}
    texts = [cuda_text(p, f"{name}_{precision}", precision) for name, p in programs.items()]
    # The back-end's kernels are named as the programs are.
    for name, p in programs.items():
        texts.append(states_text(replace(p, name=f"{name}_{precision}_batch"), precision).source)
        texts.append(items_text(replace(p, name=f"{name}_{precision}_items"), precision).source)
    return "\n".join(texts)


@pytest.mark.slow
def test_nvcc_accepts_the_text(tmp_path):
    source = tmp_path / "kernels.cu"
    source.write_text(everything("float64") + everything("float32"))
    command = [find("nvcc"), "--ptx", "-Werror", "all-warnings", str(source), "-o", str(tmp_path / "kernels.ptx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[:4000]


def test_nvrtc_accepts_the_text():
    """CuPy compiles with NVRTC, which has no header files."""
    roots = [Path("/usr/local/cuda/lib64"), *(Path(p) / "nvidia" for p in sys.path if p)]
    found = [str(p) for root in roots if root.is_dir() for p in sorted(root.rglob("libnvrtc.so*"))]
    place = ctypes.util.find_library("nvrtc") or next(iter(found), None)
    if place is None:
        pytest.skip("no NVRTC: neither a CUDA toolkit nor the package nvidia-cuda-nvrtc has libnvrtc.so")
    nvrtc = ctypes.CDLL(place)
    handle = ctypes.c_void_p()
    text = everything("float64") + everything("float32")
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(handle), text.encode(), b"kernels.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(b"--std=c++14")
    status = nvrtc.nvrtcCompileProgram(handle, 1, options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(handle, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(handle, log)
    assert status == 0, log.value.decode()[:4000]
