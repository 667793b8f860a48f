"""A block cut in two by what depends on its last inputs."""

import numpy as np

from linkwright.tape.build import trace
from linkwright.tape.split_block import split


def test_the_two_parts_give_what_the_whole_does():
    def function(x, y):
        a = np.sin(x[0]) * x[1]
        return np.array([a * y[0] + x[2], a, y[1], 3.0, x[1], y[0] * y[1] - 2.0])

    block, _, _ = trace(function, [(3,), (2,)])
    once, each = split(block, 2)
    x, y = [0.3, -1.2, 2.0], [0.7, 5.0]
    middle = once.evaluate(x)
    assert once.n_inputs == 3
    assert "sin" not in each.count()
    np.testing.assert_array_equal(each.evaluate([*middle, *y]), block.evaluate([*x, *y]))
