"""Programs side by side on waiting threads: the same answers, in order, and threads that end."""

import threading
import time

import numpy as np
import pytest

from linkwright.errors import KernelError, ShapeError
from linkwright.kernels.crew import Crew
from linkwright.tape import record

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
