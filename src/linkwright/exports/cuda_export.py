"""A function as CUDA: a kernel with a thread per state, host functions that launch it, test program, CMake, README."""

from __future__ import annotations

from linkwright.exports.c_export import arrays_text, compared, plain_line
from linkwright.exports.export_folder import Vectors, operations, readme
from linkwright.exports.exported_function import Subject
from linkwright.kernels.c.program_text import cuda_text, cuda_work_size
from linkwright.kernels.c.source_and_header import PackageText, package_text
from linkwright.kernels.c.spelling import extents

_HOST = """#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>

#include "{name}.h"

/* Arrays on the device, in the order of a stream; nothing waits. */
extern "C" int {name}_launch({device}, void *stream)
{{
    if (count <= 0)
        return 0;
    void *arguments[] = {{{addresses}}};
    const unsigned blocks = (unsigned)((count + {block} - 1) / {block});
    return (int)cudaLaunchKernel((const void *){name}, dim3(blocks), dim3({block}), arguments, 0, (cudaStream_t)stream);
}}

/* Arrays of the host: copied there and back. */
extern "C" int {name}_host({host})
{{
    {real} *memory = 0;
    int error = 0;
    if (count <= 0)
        return 0;
    if ((error = (int)cudaMalloc((void **)&memory, sizeof({real}) * (size_t)count * {total})) != 0)
        return error;
{body}
    const int freed = (int)cudaFree(memory);
    return error ? error : freed;
}}
#endif
"""

_HEADER = """/*
{about}
 */
#ifndef LINKWRIGHT_{macro}_H
#define LINKWRIGHT_{macro}_H

{sizes}

#ifdef __cplusplus
extern "C" {{
#endif

/* `count` states, arrays of the device, in the order of `stream` (a cudaStream_t; NULL is the default one). */
int {name}_launch({device}, void *stream);

/* `count` states, arrays of the host: copied to the device and back; it waits. */
int {name}_host({host});

#ifdef __cplusplus
}}
#endif

#endif
"""

_TEST = """/* Runs {name} on the test vector and prints the worst error; the exit code is 0 if it is small enough. */
#include <stdio.h>

#include "{name}.h"
#include "vectors.h"

int main(void)
{{
{outputs}
    double worst = 0.0, error;
    int n;
    const int code = {name}_host({arguments}, VECTORS_CASES);
    if (code != 0) {{
        printf("{name}: CUDA error %d\\n", code);
        return 2;
    }}
    for (n = 0; n < VECTORS_CASES; ++n) {{
{compare}
    }}
    printf("{name}: %d states, worst error %.3g, allowed %.3g\\n", VECTORS_CASES, worst, VECTORS_TOLERANCE);
    return worst <= VECTORS_TOLERANCE ? 0 : 1;
}}
"""

_CMAKE = """# add_subdirectory() or FetchContent this folder, then: target_link_libraries(yours PRIVATE {name})
cmake_minimum_required(VERSION 3.18)
project({name} LANGUAGES CXX CUDA)

add_library({name} STATIC {name}.cu)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES CUDA_STANDARD 14 POSITION_INDEPENDENT_CODE ON)

# The test program, where this is the project that is built.
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  enable_testing()
  add_executable(test_{name} test_{name}.cu)
  target_link_libraries(test_{name} PRIVATE {name})
  add_test(NAME {name} COMMAND test_{name})
endif()
"""
BLOCK = 128  # threads


def cuda_files(subject: Subject, vectors: Vectors, precision: str) -> dict[str, str]:
    """The files by their names."""
    name, program = subject.name, subject.program
    # The names of arrays are the same in C and CUDA.
    text = package_text(program, name, precision)
    work = cuda_work_size(program)
    words = _words(text, work)
    notes = [f"{name} of {len(text.inputs)} inputs, written by Linkwright.", ""]
    notes += [f"    in   {a.name}{extents(a.shape)}" for a in text.inputs]
    notes += [f"    out  {a.name}{extents(a.shape)}" for a in text.outputs]
    notes += [f"    work: {work} numbers per state, {work} * count in all"] if work else []
    notes += [
        "",
        "Arrays are (count, n), row-major; outputs must not overlap inputs. The functions give cudaError_t.",
        "",
    ]
    notes += [plain_line(line) for line in subject.notes()]
    about = "\n".join(f" * {line.replace('*/', '* /')}".rstrip() for line in notes)
    sizes = "\n".join(f"#define {a.macro} {a.size}" for a in (*text.inputs, *text.outputs))
    sizes += f"\n#define {text.macros}_WORK {work}"
    compare = compared(text, " + n * {}")
    arguments = [f"VECTORS_{a.name}" for a in text.inputs] + [f"got_{a.name}" for a in text.outputs]
    outputs = [f"    static {text.real} got_{a.name}[VECTORS_CASES * {max(1, a.size)}];" for a in text.outputs]
    test = _TEST.format(
        name=name, outputs="\n".join(outputs), arguments=", ".join(arguments), compare="\n".join(compare)
    )
    return {
        f"{name}.cu": cuda_text(program, name, precision) + "\n" + _HOST.format(**words),
        f"{name}.h": _HEADER.format(about=about, macro=text.macros, sizes=sizes, **words),
        f"test_{name}.cu": test,
        "vectors.h": arrays_text(text, vectors, precision),
        "CMakeLists.txt": _CMAKE.format(name=name),
        "README.md": readme(
            subject,
            vectors,
            ("Call", _call(text, words, work)),
            ("Cost", [operations(subject) + " A thread computes a state."]),
            ("Build and test", _build(name)),
        ),
    }


def _words(text: PackageText, work: int) -> dict[str, str]:
    real = text.real
    arrays = [(f"const {real} *", a) for a in text.inputs] + [(f"{real} *", a) for a in text.outputs]
    host = [*(f"{kind}{a.name}" for kind, a in arrays), "long long count"]
    device = [*host[:-1], *([f"{real} *work"] if work else []), "long long count"]
    passed = [*(a.name for _, a in arrays), *(["work"] if work else []), "count"]
    places, at, body = [], 0, []
    for _, a in arrays:
        places.append(f"memory + count * {at}")
        at += a.size
    room = [f"memory + count * {at}"] if work else []
    for (_, a), place in zip(arrays[: len(text.inputs)], places, strict=False):
        body += _copied(a.size, real, place, a.name, "cudaMemcpyHostToDevice")
    body += ["    if (!error)", f"        error = {text.name}_launch({', '.join([*places, *room])}, count, 0);"]
    for (_, a), place in zip(arrays[len(text.inputs) :], places[len(text.inputs) :], strict=True):
        body += _copied(a.size, real, a.name, place, "cudaMemcpyDeviceToHost")
    return {
        "name": text.name,
        "real": real,
        "block": str(BLOCK),
        "host": ", ".join(host),
        "device": ", ".join(device),
        "addresses": ", ".join(f"&{x}" for x in passed),
        "total": str(max(1, at + work)),
        "body": "\n".join(body),
    }


def _copied(size: int, real: str, target: str, source: str, way: str) -> list[str]:
    if not size:
        return []
    return [
        "    if (!error)",
        f"        error = (int)cudaMemcpy({target}, {source}, sizeof({real}) * (size_t)count * {size}, {way});",
    ]


def _call(text: PackageText, words: dict[str, str], work: int) -> list[str]:
    lines = [
        "```c",
        f'#include "{text.name}.h"',
        "",
        f"int {text.name}_launch({words['device']}, void *stream);   /* arrays of the device */",
        f"int {text.name}_host({words['host']});   /* arrays of the host */",
        "```",
        "",
        f"`count` states at once: arrays are (count, n), row-major. Both give a `cudaError_t`, 0 for success. The "
        f"kernel itself is `{text.name}`, in blocks of any size; NVRTC compiles the file too, without the host's part.",
    ]
    if work:
        lines += ["", f"`work` has {work} numbers per state, {work} · count in all, which need no value and keep none."]
    return lines


def _build(name: str) -> list[str]:
    return [
        "```sh",
        f"nvcc -O2 {name}.cu test_{name}.cu -o test_{name} && ./test_{name}",
        "cmake -B build && cmake --build build && ctest --test-dir build   # the same",
        "```",
    ]
