"""Kernels that run a few times only."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.kernels import kernel as kernels
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.llvm import compiler
from linkwright.kernels.variant import native

pytestmark = pytest.mark.skipif(not native(), reason="machine code is off")


@pytest.fixture
def levels(monkeypatch, tmp_path):
    """The levels at which code is compiled, one after another."""
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_LONG", 500)
    found, compiled = [], compiler.object_code

    def noted(text, *, level=2):
        found.append(level)
        return compiled(text, level=level)

    monkeypatch.setattr(compiler, "object_code", noted)
    return found


@pytest.mark.parametrize(("links", "level"), [(2, 2), (7, 0)])
def test_long_code_that_runs_seldom_is_compiled_quickly(levels, links, level):
    program = lw.chain(links).program("forward_dynamics")
    Kernel(f"seldom {links}", lambda: program, seldom=True).variant(1)
    assert levels == [level]


def test_code_that_is_compiled_quickly_gives_the_same(levels):
    mech = lw.chain(7)
    rng = np.random.default_rng(8)
    given = [rng.uniform(-1.0, 1.0, 7) for _ in range(3)]
    quick = Kernel("seldom", lambda: mech.program("forward_dynamics"), seldom=True)
    well = Kernel("often", lambda: mech.program("forward_dynamics"))
    np.testing.assert_allclose(quick(*given), well(*given), rtol=1e-10)
    assert levels == [0, 2]
