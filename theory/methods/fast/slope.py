"""The derivative of a loss, called by its address, so that the lock-free loop is compiled once for all problems."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic

from ...core import kernel
from ...core.argument_layout import at, compiled_for
from ...problems.margins import slope


def _slope_entry(pointer, i, margin):
    return slope(at(pointer), i, margin)


_entry = kernel(_slope_entry, no_cpython_wrapper=True)


def slope_address(problem: Any) -> int:
    """Address of ``(pointer to the problem, i, margin) -> slope``, compiled for problems of this type."""
    address, result = compiled_for(_entry, typeof(problem), types.int64, types.float64)
    if result != types.float64:
        raise TypeError(f"slope of {type(problem).__name__}: returns {result}, allowed: float64")
    return address


@intrinsic
def slope_at(typing_context, code, data, i, margin):
    """The slope of loss i at a margin, by the addresses of code and problem."""

    def generate(context, builder, signature, arguments):
        number, real = ir.IntType(64), ir.DoubleType()
        function = ir.FunctionType(real, [number, number, real])
        target = builder.inttoptr(arguments[0], function.as_pointer())
        return builder.call(target, arguments[1:])

    return types.float64(types.int64, types.int64, types.int64, types.float64), generate
