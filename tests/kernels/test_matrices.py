"""Derivatives of kernels are those of their programs; programs and their code come from the cache where it has them."""

import uuid
from collections.abc import Callable

import numpy as np
import pytest

import linkwright as lw
from linkwright.kernels.kernel import Kernel
from linkwright.tape.build import record
from linkwright.tape.program import Program


def straight() -> Program:
    """x, p → two numbers that leave some entries of their Jacobian out."""
    return record(lambda x, p: np.array([np.sin(x[0]) * p[1], x[1] * x[1] * p[0] * p[0]]), 2, 2)


def looping() -> Program:
    """q, v, a → forces, by a loop over links."""
    return lw.chain(3).program("inverse_dynamics", form="rolled")


def never() -> Program:
    """A recorder that is not asked."""
    raise AssertionError("recorded again")


@pytest.mark.parametrize("recorded", [straight, looping])
def test_a_kernels_jacobian_is_its_programs_and_is_recorded_once(recorded: Callable[[], Program]) -> None:
    program, identity = recorded(), uuid.uuid4().hex
    arrays = [np.linspace(0.3, 0.9, port.size).reshape(port.shape) for port in program.inputs]
    wanted = program.jacobian(0, 1)
    for recorder in (lambda: program, never):
        jacobian = Kernel(identity, recorder).jacobian(0, 1)
        np.testing.assert_array_equal(jacobian(*arrays), wanted(*arrays))
        assert jacobian.shape == wanted.shape
        assert jacobian.tangent == wanted.tangent


def test_second_derivatives_and_tangents_of_a_kernel_are_its_programs_and_recorded_once() -> None:
    program, identity = straight(), uuid.uuid4().hex
    total = record(lambda x: np.array([x[0] * x[0] * np.exp(x[1])]), 2)
    x, p = np.array([0.4, 0.7]), np.array([2.0, 3.0])
    for recorders in ((lambda: program, lambda: total), (never, never)):
        kernel, number = Kernel(identity, recorders[0]), Kernel(f"{identity} total", recorders[1])
        again = kernel.jacobian(0, 1).program.jacobian(0, 1)
        np.testing.assert_array_equal(again(x, p), program.jacobian(0, 1).program.jacobian(0, 1)(x, p))
        np.testing.assert_array_equal(number.hessian()(x), total.hessian()(x))
        np.testing.assert_array_equal(kernel.forward(x, p, p, x), program.forward()(x, p, p, x))


def test_two_requests_with_the_same_program_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from linkwright.kernels.llvm import compiler

    texts, compiled = [], compiler.object_code
    monkeypatch.setattr(compiler, "object_code", lambda text, **level: texts.append(text) or compiled(text, **level))
    number = float(uuid.uuid4().int % 10**9)  # a program that no other test has
    for _ in range(2):
        kernel = Kernel(uuid.uuid4().hex, lambda: record(lambda x: x * number, 1))
        assert kernel(np.ones(1)) == [number]
    assert len(texts) == 1
