"""CUDA exports: on the CPU with the words of CUDA defined away, and by nvcc where it is."""

import re
from pathlib import Path

import pytest
from export_tools import MODELS, passes, run, tool

import linkwright as lw

STUB = Path(__file__).with_name("cuda_runtime_stub.h")


def on_the_cpu(folder: Path, name: str) -> Path:
    """The test program, with a stub for the runtime whose launches call the kernel thread by thread."""
    source = (folder / f"{name}.cu").read_text()
    found = re.search(rf'extern "C" __global__ void {name}\(([^)]*)\)', source)
    assert found
    kinds = []
    for parameter in found[1].replace("__restrict__", "").split(","):
        kind, star, name_alone = parameter.rpartition("*")
        kinds.append(f"{kind}*" if star else name_alone.rpartition(" ")[0])
    call = ", ".join(f"*({kind} *)arguments[{k}]" for k, kind in enumerate(kinds))
    thread = f"static void stub_thread(void **arguments) {{ {name}({call}); }}\n"
    (folder / "cuda_runtime.h").write_text(STUB.read_text())
    main = f'#include "cuda_runtime.h"\n#include "{name}.cu"\n{thread}#include "test_{name}.cu"\n'
    (folder / "all.cpp").write_text(main)
    flags = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized", "-I."]
    done = run([tool("g++", "c++"), *flags, "all.cpp", "-o", "built", "-lm"], folder)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "built"


@pytest.mark.parametrize(
    ("function", "precision", "allowed"),
    [("forward_dynamics", "float64", 1e-12), ("mass_matrix", "float32", 1e-5)],
)
def test_the_host_function_gives_the_test_vector(function: str, precision: str, allowed: float, tmp_path: Path) -> None:
    lw.export(MODELS / "arm.urdf", tmp_path / "out", function, "cuda", precision=precision)
    assert passes(on_the_cpu(tmp_path / "out", function)) <= allowed


def test_work_of_long_programs_is_given_by_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkwright.kernels.c.program_text.LOCAL", 0)
    lw.export(MODELS / "governor.mks", tmp_path / "out", "step", "cuda", dt=1e-3)
    assert "double *work, long long count, void *stream" in (tmp_path / "out" / "time_step.h").read_text()
    assert passes(on_the_cpu(tmp_path / "out", "time_step")) <= 1e-12


@pytest.mark.slow
def test_nvcc_compiles_the_folder(tmp_path: Path) -> None:
    lw.export(MODELS / "arm.urdf", tmp_path / "out", to="cuda")
    command = [
        tool("nvcc"),
        "-O1",
        "-Werror",
        "all-warnings",
        "forward_dynamics.cu",
        "test_forward_dynamics.cu",
        "-o",
        "built",
    ]
    done = run(command, tmp_path / "out")
    assert done.returncode == 0, (done.stdout + done.stderr)[:3000]
