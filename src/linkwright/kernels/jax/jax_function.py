"""Programs as functions of JAX arrays: on the CPU XLA calls their kernels, elsewhere JAX's own operations run.

A program is a primitive of JAX, whose derivative is another one, linear in its tangents. Both run programs of the tape:
the tangents are those of `Program.forward`, and what JAX transposes is `Program.reverse`. These have derivatives in
their turn. Where the tape cannot differentiate a program, JAX differentiates its operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal
from warnings import warn

import numpy as np

from linkwright.base.arguments import outside
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightWarning, RecordingError, ShapeError
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.c.spelling import identifier
from linkwright.kernels.interpret.conversions import imported
from linkwright.kernels.jax.handler import doubt, target
from linkwright.kernels.jax.jax_interpreter import in_operations
from linkwright.kernels.variant import lanes, native
from linkwright.tape.build import record
from linkwright.tape.program import Program

Side = Literal["tangent", "adjoint"]
_OTHER: dict[Side, Side] = {"tangent": "adjoint", "adjoint": "tangent"}


def to_jax(program: Program, *, machine_code: bool = True) -> Callable[..., Any]:
    """A function of JAX arrays for one state; it can be jitted, mapped and differentiated, also in reverse.

    It returns the arguments' precision (JAX makes float64 only with `jax_enable_x64`). Machine code computes in float64
    and JAX's operations in the arguments' precision; without `machine_code`, these run on the CPU too.
    """
    jax = imported("jax")
    rules = _rules(jax) if machine_code and native() and program.outputs else None
    callee = Callee(program)

    def function(*arrays: Any) -> Any:
        jnp = jax.numpy
        if len(arrays) != len(program.inputs):
            raise ShapeError(
                f"program {program.name} takes {len(program.inputs)} arrays, not {len(arrays)}",
                given=len(arrays),
                wanted=len(program.inputs),
            )
        for array, buffer in zip(arrays, program.inputs, strict=True):
            if jnp.shape(array) != buffer.shape:
                raise ShapeError(
                    f"{buffer.name} of program {program.name} has shape {buffer.shape}, not {jnp.shape(array)}",
                    given=jnp.shape(array),
                    wanted=buffer.shape,
                )
        operands = [jnp.asarray(array) for array in arrays]
        dtype = jnp.result_type(float, *operands)
        operands = [x.astype(dtype) for x in operands]
        if rules is not None and dtype in (np.float32, np.float64):
            outputs = rules.call(callee, operands, dtype)
        else:
            outputs = in_operations(program, jax, operands)
        return outputs[0] if program.returns_one else tuple(outputs)

    function.__name__ = identifier(program.name)
    return function


class Callee:
    """A program that JAX calls, and its derivatives; equal to those of equal programs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inputs, self.outputs = ([b.shape for b in x] for x in (program.inputs, program.outputs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and other.program.digest == self.program.digest

    def __hash__(self) -> int:
        return hash(self.program.digest)

    def __repr__(self) -> str:
        return self.program.name

    @cached_property
    def tangent(self) -> Callee | None:
        """(inputs, their tangents) → tangents of the outputs; None where the tape cannot give it."""
        return self._derivative(self.program.forward)

    @cached_property
    def adjoint(self) -> Callee | None:
        """(inputs, adjoints of the outputs) → adjoints of the inputs; None where the tape cannot give it."""
        return self._derivative(self.program.reverse)

    def _derivative(self, make: Callable[[], Program]) -> Callee | None:
        try:
            both = make()
        except RecordingError:
            return None
        hidden = both.with_role("output")[: len(self.outputs)]
        buffers = tuple(replace(b, role="temporary") if k in hidden else b for k, b in enumerate(both.buffers))
        return Callee(Program(both.name, buffers, both.blocks, both.columns, both.statements, single=False))

    def on(self, side: Side) -> Callee:
        """The derivative of one sort, which is there."""
        callee = self.tangent if side == "tangent" else self.adjoint
        assert callee is not None
        return callee

    def batch(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The axes that stand before those of one state, in all arrays that have any."""
        leads = (shape[: len(shape) - len(port)] for shape, port in zip(shapes, self.inputs, strict=True))
        return max(leads, key=len, default=())

    def in_operations(self, jax: Any, *arrays: Any) -> tuple[Any, ...]:
        """JAX's own operations, over the batch."""
        function = partial(in_operations, self.program, jax)
        batch = self.batch([a.shape for a in arrays])
        mapped = [0 if len(a.shape) > len(shape) else None for a, shape in zip(arrays, self.inputs, strict=True)]
        for _ in batch:
            function = jax.vmap(function, in_axes=(mapped,))
        return tuple(function(list(arrays)))


class _Rules:
    """The two primitives of one JAX, and what they are under its transformations."""

    def __init__(self, jax: Any) -> None:
        from jax.extend.core import Primitive  # weight: JAX
        from jax.interpreters import ad, batching, mlir, xla  # weight: JAX

        self.jax, self.numpy, self.ad = jax, jax.numpy, ad
        self.whole, self.linear = Primitive("linkwright"), Primitive("linkwright_linear")
        for primitive in (self.whole, self.linear):
            primitive.multiple_results = True
            primitive.def_impl(partial(xla.apply_primitive, primitive))
            primitive.def_abstract_eval(self.shapes)
            batching.primitive_batchers[primitive] = partial(self.batched, primitive)
            mlir.register_lowering(primitive, mlir.lower_fun(self.operations, multiple_results=True))
            mlir.register_lowering(primitive, self.machine_code, platform="cpu")
        ad.primitive_jvps[self.whole] = self.differentiated
        ad.primitive_jvps[self.linear] = self.linear_differentiated
        ad.primitive_transposes[self.linear] = self.transposed

    def call(self, callee: Callee, arrays: Sequence[Any], dtype: Any) -> Any:
        """The outputs for arrays of one state, of this floating-point type."""
        return self.whole.bind(*arrays, callee=callee, side=None, dtype=np.dtype(dtype))

    # -- one primitive or the other: `side` is the derivative of the callee that runs, None for itself --------
    def shapes(self, *avals: Any, callee: Callee, side: Side | None, dtype: Any) -> list[Any]:
        """What comes out."""
        runs = callee.on(side) if side else callee
        batch = runs.batch([a.shape for a in avals])
        return [self.jax.core.ShapedArray((*batch, *shape), dtype) for shape in runs.outputs]

    def operations(self, *arrays: Any, callee: Callee, side: Side | None, dtype: Any) -> tuple[Any, ...]:
        """On devices other than CPUs."""
        runs = callee.on(side) if side else callee
        return runs.in_operations(self.jax, *arrays)

    def machine_code(self, ctx: Any, *operands: Any, callee: Callee, side: Side | None, dtype: Any) -> Any:
        """On CPUs: a call of the kernel, whose code is loaded now."""
        runs = callee.on(side) if side else callee
        batch = runs.batch([a.shape for a in ctx.avals_in])
        states = math.prod(batch) if all(isinstance(n, int) for n in batch) else None
        name = target(self.jax, compiled(runs.program), runs.program.digest, states)
        return self.jax.ffi.ffi_lowering(name)(ctx, *operands)

    def batched(self, primitive: Any, arrays: Sequence[Any], axes: Sequence[Any], **what: Any) -> Any:
        """Under `vmap`: one more axis before the others; arrays without any stay the same for all states."""
        jnp = self.numpy
        runs = what["callee"].on(what["side"]) if what["side"] else what["callee"]
        size = next(a.shape[axis] for a, axis in zip(arrays, axes, strict=True) if axis is not None)
        rest = [a if axis is None else jnp.moveaxis(a, axis, 0) for a, axis in zip(arrays, axes, strict=True)]
        inner = runs.batch([a.shape[axis is not None :] for a, axis in zip(rest, axes, strict=True)])
        operands = []
        for array, axis, shape in zip(rest, axes, runs.inputs, strict=True):
            plain = len(array.shape) - (axis is not None) == len(shape)  # of one state, but for the new axis
            if axis is not None and plain:
                array = array.reshape(size, *(1 for _ in inner), *shape)
            if axis is not None or not plain:
                array = jnp.broadcast_to(array, (size, *inner, *shape))
            operands.append(array)
        outputs = primitive.bind(*operands, **what)
        return outputs, [0] * len(outputs)

    # -- derivatives -------------------------------------------------------------------------------------
    def differentiated(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, callee: Callee, side: None, dtype: Any
    ) -> Any:
        """The outputs, and their tangents by the linear primitive."""
        outputs = self.whole.bind(*primals, callee=callee, side=side, dtype=dtype)
        return outputs, self.pushed(callee, primals, tangents, dtype)

    def linear_differentiated(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, callee: Callee, side: Side, dtype: Any
    ) -> Any:
        """The same in the linear arguments, and the tangent of the derivative's program in the others."""
        n = len(callee.inputs)
        what = {"callee": callee, "side": side, "dtype": dtype}
        outputs = self.linear.bind(*primals, **what)
        runs, parts = callee.on(side), []
        if not all(map(self.vanishes, tangents[n:])):
            moved = self.full(runs.inputs[n:], tangents[n:], dtype)
            parts.append(self.linear.bind(*primals[:n], *moved, **what))
        if not all(map(self.vanishes, tangents[:n])):
            parts.append(self.pushed(runs, primals, [*tangents[:n], *(None for _ in tangents[n:])], dtype))
        return outputs, [sum(terms[1:], terms[0]) for terms in zip(*parts, strict=True)]

    def pushed(self, callee: Callee, primals: Sequence[Any], tangents: Sequence[Any], dtype: Any) -> Any:
        """The tangents of the outputs."""
        moved = self.full(callee.inputs, tangents, dtype)
        if callee.tangent is not None:
            return self.linear.bind(*primals, *moved, callee=callee, side="tangent", dtype=dtype)
        moved = [self.numpy.broadcast_to(t, p.shape) for t, p in zip(moved, primals, strict=True)]
        return self.jax.jvp(partial(callee.in_operations, self.jax), tuple(primals), tuple(moved))[1]

    def transposed(self, cotangents: Sequence[Any], *arrays: Any, callee: Callee, side: Side, dtype: Any) -> Any:
        """The cotangents of the linear arguments that are asked for."""
        n = len(callee.inputs)
        known, linear = arrays[:n], arrays[n:]
        runs = callee.on(side)
        ends = self.full(runs.outputs, cotangents, dtype)
        if side == "adjoint" or callee.adjoint is not None:
            pulled = self.linear.bind(*known, *ends, callee=callee, side=_OTHER[side], dtype=dtype)
        else:
            batch = runs.batch([x.aval.shape if self.ad.is_undefined_primal(x) else x.shape for x in arrays])
            whole = [self.numpy.broadcast_to(x, (*batch, *s)) for x, s in zip(known, callee.inputs, strict=True)]
            ends = [self.numpy.broadcast_to(x, (*batch, *s)) for x, s in zip(ends, callee.outputs, strict=True)]
            pulled = self.jax.vjp(partial(callee.in_operations, self.jax), *whole)[1](tuple(ends))
        answers: list[Any] = [None] * n
        for argument, cotangent in zip(linear, pulled, strict=True):
            wanted = self.ad.is_undefined_primal(argument)
            answers.append(self.fitted(cotangent, argument.aval.shape) if wanted else None)
        return answers

    def fitted(self, cotangent: Any, shape: tuple[int, ...]) -> Any:
        """Of an argument that is the same for all states, the sum over the states."""
        more = len(cotangent.shape) - len(shape)
        return cotangent.sum(range(more)) if more > 0 else self.numpy.broadcast_to(cotangent, shape)

    def vanishes(self, tangent: Any) -> bool:
        return tangent is None or type(tangent) is self.ad.Zero

    def full(self, shapes: Sequence[Any], tangents: Sequence[Any], dtype: Any) -> list[Any]:
        """Tangents as arrays: those that vanish are the same zeros for every state."""
        return [
            self.numpy.zeros(shape, dtype) if self.vanishes(t) else t for t, shape in zip(tangents, shapes, strict=True)
        ]

    # -- a test ------------------------------------------------------------------------------------------
    def as_expected(self) -> bool:
        """Whether calls of a small program, of one state and of more, give NumPy's numbers."""
        jnp = self.numpy
        callee = Callee(record(lambda x, y: (x * y[0] + 1.0, y - 2.0 * x[0]), 3, 2))
        dtype = jnp.result_type(float)

        def function(x: Any, y: Any) -> Any:
            return self.call(callee, [x, y], dtype)

        states = lanes() + 1
        x, y = jnp.linspace(-1.0, 1.0, 3 * states).reshape(states, 3), jnp.array([0.5, 3.0])
        with self.jax.ensure_compile_time_eval(), self.jax.default_device(self.jax.devices("cpu")[0]):
            x, y = (jnp.asarray(a, dtype) for a in (x, y))
            one = self.jax.jit(function)(x[1], y)
            many = self.jax.jit(self.jax.vmap(function, in_axes=(0, None)))(x, y)
        vectors, constants = np.asarray(x, np.float64), np.asarray(y, np.float64)
        wanted = vectors * constants[0] + 1.0, constants - 2.0 * vectors[:, :1]
        pairs = [*zip(one, (w[1] for w in wanted), strict=True), *zip(many, wanted, strict=True)]
        return all(np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)


@cache
def _rules(jax: Any) -> _Rules | None:
    """The primitives, or None with a warning where this JAX cannot call machine code."""
    reason = doubt(jax)
    if not reason:
        try:
            rules = _Rules(jax)
            if rules.as_expected():
                return rules
            reason = "a trial call gave other numbers than NumPy"
        except (ImportError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            reason = f"a trial call failed ({error})"
    warn(f"programs run in JAX's own operations, which are slower: {reason}", LinkwrightWarning, stacklevel=outside())
    return None
