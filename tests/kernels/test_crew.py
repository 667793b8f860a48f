"""Programs side by side on waiting threads: the same answers, in order, and threads that end."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from linkwright.errors import KernelError, ShapeError
from linkwright.kernels.thread_crew import Crew
from linkwright.tape.build import record

double = record(lambda x: 2.0 * x, 3)
square = record(lambda x: x * x, 3)
total = record(lambda a, b: a + b, 3, 3)


def crew_threads():
    return [t for t in threading.enumerate() if t.name == "linkwright crew"]


def ended(before, patience=5.0):
    until = time.monotonic() + patience
    while len(crew_threads()) > before and time.monotonic() < until:
        time.sleep(0.001)
    return len(crew_threads()) <= before


def test_what_comes_before_is_there_for_the_parts_and_theirs_for_what_comes_after():
    x, y = np.zeros(3), np.zeros(3)
    parts, result = [np.zeros(3), np.zeros(3)], np.zeros(3)
    with Crew(2) as crew:
        run = crew.plan(
            [(double, [y], [parts[0]]), (square, [y], [parts[1]])],
            before=(double, [x], [y]),
            after=(total, parts, [result]),
        )
        for k in range(500):
            x[:] = [k, 1.0, -k]
            run()
            assert (result == 4.0 * x + 4.0 * x * x).all()


def test_a_crew_of_one_needs_no_thread():
    before = len(crew_threads())
    x, y = np.arange(3.0), np.zeros(3)
    Crew(1).plan([(double, [x], [y])])()
    assert (y == 2.0 * x).all()
    assert len(crew_threads()) == before


def test_a_closed_crew_ends_its_threads_and_starts_again():
    before = len(crew_threads())
    x, y, z = np.arange(3.0), np.zeros(3), np.zeros(3)
    crew = Crew(2)
    run = crew.plan([(double, [x], [y]), (square, [x], [z])])
    run()
    crew.close()
    assert ended(before)
    x[:] = 7.0
    run()
    assert (y == 14.0).all()
    assert (z == 49.0).all()
    crew.close()
    assert ended(before)


def test_a_crew_that_nobody_has_ends_its_threads():
    before = len(crew_threads())
    x, y, z = np.arange(3.0), np.zeros(3), np.zeros(3)
    crew = Crew(2)
    run = crew.plan([(double, [x], [y]), (square, [x], [z])])
    run()
    del crew, run
    assert ended(before)


def test_wrong_numbers_of_threads_parts_and_shapes_are_refused():
    with pytest.raises(KernelError, match="at least 1"):
        Crew(0)
    x = np.zeros(3)
    with pytest.raises(KernelError, match="as many parts"):
        Crew(2).plan([(double, [x], [x.copy()])])
    with pytest.raises(ShapeError, match="contiguous float64"):
        Crew(1).plan([(double, [x], [np.zeros(4)])])


OPEN_CREW = """
import numpy as np
from linkwright.kernels.thread_crew import Crew
from linkwright.tape.build import record

x, y, z = np.arange(3.0), np.zeros(3), np.zeros(3)
crew = Crew(2)
run = crew.plan([(record(lambda x: 2.0 * x, 3), [x], [y]), (record(lambda x: x * x, 3), [x], [z])])
run()
"""


def python(text):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_process_ends_with_a_crew_open():
    done = python(OPEN_CREW + "print(z.sum())")
    assert (done.returncode, done.stdout, done.stderr) == (0, "5.0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_starts_threads_of_its_own_and_the_parents_go_on():
    child = """
import os, sys
child = os.fork()
x[:] = 7.0 if child else 3.0
run()
good = (y == 2.0 * x).all() and (z == x * x).all()
if child:
    good = good and os.waitpid(child, 0)[1] == 0
sys.exit(0 if good else 1)
"""
    done = python(OPEN_CREW + child)
    assert (done.returncode, done.stderr) == (0, "")
