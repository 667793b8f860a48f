"""Arithmetic on vectors of any length, unrolled or in loops."""

from __future__ import annotations

import numpy as np
import pytest

from linkwright.simulation.step_parts import LONG, WIDTH, Composer


@pytest.mark.parametrize("n", [1, LONG, LONG + 1, LONG + WIDTH, 8 * WIDTH * 13 + 3])
def test_entries_and_sums_are_the_same_for_short_and_long_vectors(n):
    b = Composer("sums")
    x, y, h = b.input("x", (n,)), b.input("y", (n,)), b.input("h", ())
    out = b.output("out", (2, n))
    total, largest = b.output("total", ()), b.output("other", ())
    rows = [out.part(0, (n,)), out.part(n, (n,))]
    b.each(lambda x, y, h: (x + h * y, x * y), [x, y], [h], rows)
    b.total(lambda x, y, h: (h * (x @ y), x @ x), [x, y], [h], [total, largest])
    program = b.build(single=False)
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    found = program(x, y, np.array(0.3))
    np.testing.assert_allclose(found[0], [x + 0.3 * y, x * y], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found[1:], [0.3 * (x @ y), x @ x], rtol=1e-12, atol=1e-13)


def test_long_vectors_do_not_make_more_code():
    def size(n):
        b = Composer("moved")
        x, out = b.input("x", (n,)), b.output("out", (n,))
        b.each(lambda x: 2.0 * x + 1.0, [x], [], [out])
        return sum(len(block.outputs) for block in b.build().blocks)

    assert size(100 * LONG) <= 2 * WIDTH
