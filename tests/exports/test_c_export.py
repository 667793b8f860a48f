"""C exports: compiled as strangers would compile them, they give Python's numbers."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_tools import C99, CPP, MODELS, STRICT, built, library, passes, pointers, run, tool

import linkwright as lw
from robots import find

SIX = {"arm.urdf": MODELS / "arm.urdf", "UR5": "ur5_robot.urdf"}


def six_joints(which: str) -> lw.Mechanism:
    mech = lw.load(SIX[which] if which == "arm.urdf" else find(SIX[which]))
    assert mech.nv == 6
    return mech


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> tuple[lw.Mechanism, Path]:
    mech, folder = six_joints("arm.urdf"), tmp_path_factory.mktemp("exported") / "arm"
    lw.export(mech, folder)
    return mech, folder


@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
@pytest.mark.parametrize("which", SIX)
def test_a_six_joint_arm_in_c_gives_the_numbers_of_python(which: str, tmp_path: Path) -> None:
    mech = six_joints(which)
    lw.export(mech, tmp_path / "out")
    call = library(tmp_path / "out", "forward_dynamics").forward_dynamics
    rng = np.random.default_rng(3)
    for _ in range(200):
        q, v, tau = rng.uniform(-3, 3, 6), rng.standard_normal(6), 10 * rng.standard_normal(6)
        got, wanted = np.full(6, np.nan), mech.forward_dynamics(q, v, tau)
        call(*pointers(q, v, tau, got))
        assert np.abs(got - wanted).max() <= 1e-12 * max(1.0, np.abs(wanted).max())


def test_the_test_program_passes_in_c_and_in_cpp(arm: tuple[lw.Mechanism, Path]) -> None:
    _, folder = arm
    assert passes(built(folder, *C99)) <= 1e-12
    assert passes(built(folder, *CPP, compiler=("g++", "c++"))) <= 1e-12


def test_the_test_program_fails_where_the_function_is_wrong(arm: tuple[lw.Mechanism, Path], tmp_path: Path) -> None:
    shutil.copytree(arm[1], tmp_path / "wrong")
    source = tmp_path / "wrong" / "forward_dynamics.c"
    source.write_text(source.read_text().replace("sin(x_", "cos(x_", 1))
    done = run([built(tmp_path / "wrong")], tmp_path)
    assert done.returncode == 1


def test_the_object_has_no_data_that_changes_and_calls_no_heap(arm: tuple[lw.Mechanism, Path]) -> None:
    _, folder = arm
    run([tool("gcc", "cc"), *STRICT, *C99, "-c", "forward_dynamics.c", "-o", "alone.o"], folder)
    numbers = run([tool("size"), "alone.o"], folder).stdout.splitlines()[1].split()
    assert numbers[1:3] == ["0", "0"]
    undefined = {line.split()[-1] for line in run([tool("nm"), "-u", "alone.o"], folder).stdout.splitlines()}
    assert undefined <= {"sin", "cos", "sincos", "_GLOBAL_OFFSET_TABLE_"}


def test_flat_vectors_give_what_the_arrays_give(arm: tuple[lw.Mechanism, Path]) -> None:
    mech, folder = arm
    u, y = np.random.default_rng(1).uniform(-1, 1, 18), np.zeros(6)
    library(folder, "forward_dynamics").forward_dynamics_simulink(*pointers(u, y))
    np.testing.assert_allclose(y, mech.forward_dynamics(u[:6], u[6:12], u[12:]), rtol=1e-12)


def test_the_readme_says_order_operations_size_and_stack(arm: tuple[lw.Mechanism, Path]) -> None:
    mech, folder = arm
    text = (folder / "README.md").read_text()
    for joint in mech.joints:
        if joint.kind != "fixed":
            assert f"| {joint.name} | {joint.kind} | {joint.q_slice.start} |" in text
    assert f"At most {sum(mech.program('forward_dynamics').count().values())} operations" in text
    assert "bytes of code" in text
    assert "bytes of stack" in text


CASES = {
    "derivatives": ("arm.urdf", "forward_dynamics_derivatives", {}),
    "step": ("arm.urdf", "step", {"dt": 1e-3}),
    "closed": ("governor.mks", "forward_dynamics", {}),
    "closed step": ("governor.mks", "step", {"dt": 1e-3}),
    "in time": ("suspension.mks", "forward_dynamics", {}),
    "parameters": ("pendulum.mks", "forward_dynamics", {"free": True}),
}


SLOW = ("derivatives", "closed step", "in time")


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.slow) if c in SLOW else c for c in CASES])
def test_other_functions_pass_their_tests_too(case: str, tmp_path: Path) -> None:
    model, function, options = CASES[case]
    mech = lw.load(MODELS / model)
    if options.get("free"):
        options = {"free": list(mech.parameters)[:1]}
    made = lw.export(mech, tmp_path / "out", function, name="answer", **options)
    assert passes(built(tmp_path / "out")) <= 1e-12
    assert ("p" in [b.name for b in made.subject.program.inputs]) == ("free" in options)


def test_float32_is_float32_throughout(tmp_path: Path) -> None:
    lw.export(MODELS / "arm.urdf", tmp_path / "out", precision="float32")
    assert "double" not in (tmp_path / "out" / "forward_dynamics.c").read_text()
    assert passes(built(tmp_path / "out", *C99, "-Wdouble-promotion")) <= 1e-5


def test_float32_of_numbers_beyond_it_is_refused_with_its_error(tmp_path: Path) -> None:
    with lw.Builder("planets") as b:
        place: Any = "ground"
        for name in ("first", "second"):
            body = b.body(name, 1e40, (0.0, 0.0, 0.5), (1e39, 1e39, 1e38))  # more than float32 holds
            b.joint("revolute", place, body, axis=(1.0, 0.0, 0.0), at=(0.0, 0.0, 1.0))
            place = body
    with pytest.raises(lw.errors.LinkwrightError, match=r"in float32.*precision='float64'"):
        lw.export(b.build(), tmp_path / "out", precision="float32")
    assert not list(tmp_path.iterdir())


ARDUINO = """
#include <stdio.h>
#include <string>
struct Port {
    void begin(long) {}
    template <class T> void print(T x) { put(x); }
    template <class T> void println(T x) { put(x); puts(""); }
    void put(double x) { printf("%g", x); }
    void put(const char *x) { printf("%s", x); }
};
static Port Serial;
static unsigned long micros() { return 0; }
static void delay(unsigned long) {}
"""


def test_an_arduino_library_has_a_sketch_that_tests_it(tmp_path: Path) -> None:
    folder = tmp_path / "arm"
    lw.export(MODELS / "arm.urdf", folder, "inverse_dynamics", arduino=True)
    properties = dict(line.split("=", 1) for line in (folder / "library.properties").read_text().splitlines())
    assert properties["includes"] == "inverse_dynamics.h"
    assert properties["architectures"] == "*"
    sketch = folder / "examples" / "inverse_dynamics" / "inverse_dynamics.ino"
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    main = tmp_path / "main.cpp"
    main.write_text(f'#include "Arduino.h"\n#include "{sketch}"\nint main() {{ setup(); loop(); }}\n')
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'src'}", f"-I{tmp_path}"]
    source = folder / "src" / "inverse_dynamics.c"
    object_file = tmp_path / "inverse_dynamics.o"
    done = run([tool("gcc"), *STRICT, *C99, "-c", source, "-o", object_file], tmp_path)
    assert done.returncode == 0, done.stderr
    done = run([tool("g++"), *flags, main, object_file, "-o", tmp_path / "sketch", "-lm"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "good" in run([tmp_path / "sketch"], tmp_path).stdout


def test_cmake_takes_the_folder_as_a_part_of_a_project(arm: tuple[lw.Mechanism, Path], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        '#include "forward_dynamics.h"\nint main(void) { return FORWARD_DYNAMICS_SIZE_q - 6; }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(user LANGUAGES C)\n"
        f"add_subdirectory({arm[1]} arm)\nadd_executable(user main.c)\n"
        "target_link_libraries(user PRIVATE forward_dynamics)\n"
    )
    assert run([tool("cmake"), "-B", "build"], tmp_path).returncode == 0
    done = run([tool("cmake"), "--build", "build"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run([tmp_path / "build" / "user"], tmp_path).returncode == 0


def test_a_step_is_that_of_a_rollout(tmp_path: Path) -> None:
    mech = lw.load(MODELS / "arm.urdf")
    lw.export(mech, tmp_path / "out", "step", dt=0.01, name="onward")
    call = library(tmp_path / "out", "onward").onward
    rng = np.random.default_rng(2)
    q, v, tau = rng.uniform(-1, 1, 6), rng.standard_normal(6), rng.standard_normal(6)
    found = lw.rollout(mech, q, v, 0.01, 5, tau=tau, method="rk4")
    work = np.zeros(10_000)
    for _ in range(5):
        q_next, v_next = np.zeros(6), np.zeros(6)
        call(*pointers(q, v, tau, q_next, v_next, work))
        q, v = q_next, v_next
    np.testing.assert_allclose(q, found.q[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(v, found.v[-1], rtol=0, atol=1e-11)
