"""PowerSGD: one step of subspace iteration, with two factors that workers can average before decoding.

With M_i the matrix of worker i and one start Q for all of them::

    P = mean of M_i Q           (the opening)
    P^ = orth(P)
    Q = mean of M_i' P^         (the sum of the messages)
    receive P^ Q' = P^ P^' M,   M = mean of M_i

so that the result is the message of a single worker with M. A warm start uses the last Q. A cold start, and the first
step, use Gaussian numbers that are the same for all workers.  Only the range of Q matters: its columns are scaled to
unit length, which keeps P within the range of the floats, and zero columns (M had lower rank) are drawn again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import kernel, require, setting
from ...core.random import normal
from ...core.vectors import add_entry, entry
from ...wire.bits import read_floats, write_floats
from ..base import propose
from ..kernels.linear_algebra import check_shape, orthonormalize, require_shape, room, squarest
from ..registry import register


@setting
class PowerSGD(NamedTuple):
    """The matrix projected onto the range of its product with a start Q, which is an approximation of low rank.

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix; their product is the length of the vector.
    rank : int
        Number of columns of Q, from 1 to the smaller of rows and columns.
    warm : bool
        Start from the Q of the last step; otherwise from a new Gaussian one in every step.

    Notes
    -----
    Vogels, Karimireddy, Jaggi, "PowerSGD" (NeurIPS 2019), Algorithm 1.

    Examples
    --------
    >>> PowerSGD(rows=64, columns=10, rank=2)
    PowerSGD(rows=64, columns=10, rank=2, warm=True)
    """

    rows: int
    columns: int
    rank: int
    warm: bool = True

    def domain(self) -> None:
        """Reject values outside the domain."""
        require_shape(self)
        q = min(self.rows, self.columns)
        require(1 <= self.rank <= q, "rank", self.rank, f"an integer from 1 to min(rows, columns) = {q}")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        M = v.reshape(c.rows, c.columns).astype(float)
        Q = np.array([normal(stream, j) for j in range(c.columns * c.rank)]).reshape(c.columns, c.rank)
        U, s, _ = np.linalg.svd(M @ Q, full_matrices=False)
        P = U[:, s > 1e-10 * np.linalg.norm(s)]  # orthonormal, with the range of M Q
        return (P @ (P.T @ M)).ravel()

    def state_size(c, d):
        return (c.rows + c.columns) * c.rank + 1

    def capacity(c, d):
        return 0, (c.rows + c.columns) * c.rank, 0, 2 * c.columns * c.rank

    def shares_stream(c):
        return True

    def summed(c, d):
        return c.rows * c.rank, (c.rows + c.columns) * c.rank

    def opening(c, d):
        return c.rows * c.rank

    def propose(c, state, v, stream, numbers):
        r, Q = c.rank, start(c, state, stream)
        for i in range(c.rows):
            for k in range(r):
                numbers[i * r + k] = 0.0
            for j in range(c.columns):
                x = np.float64(entry(v, i * c.columns + j))
                for k in range(r):
                    numbers[i * r + k] += x * Q[j * r + k]

    def settle(c, d, state, numbers):
        first = c.columns * c.rank
        state[first] = 1.0
        for p in range(c.rows * c.rank):
            state[first + 1 + p] = numbers[p]

    def quantize(c, state, v, stream, symbols):
        r, first = c.rank, c.columns * c.rank
        P = state[first + 1 : first + 1 + c.rows * r]
        if state[first] == 0.0:
            propose(c, state, v, stream, P)
        state[first] = 0.0
        scale_by_power(P, -size_exponent(P))
        orthonormalize(P, c.rows, r)
        for p in range(c.rows * r):
            symbols.value[p] = P[p]
            P[p] = symbols.value[p]  # as the receiver has it
        Q = room(symbols.scratch, 0, c.columns * r)
        for p in range(Q.size):
            Q[p] = 0.0
        for i in range(c.rows):
            for j in range(c.columns):
                x = np.float64(entry(v, i * c.columns + j))
                for k in range(r):
                    Q[j * r + k] += x * P[i * r + k]
        for p in range(Q.size):
            symbols.value[c.rows * r + p] = Q[p]
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, (c.rows + c.columns) * r, 0

    def update_state(c, d, state, symbols):
        Q = state[: c.columns * c.rank]
        for p in range(Q.size):
            Q[p] = symbols.value[c.rows * c.rank + p] if c.warm else 0.0
        scale_by_power(Q, -size_exponent(Q))

    def accumulate(c, symbols, weight, out):
        r, second = c.rank, c.rows * c.rank
        for i in range(c.rows):
            for j in range(c.columns):
                total = 0.0  # summed before it is added: the receiver's float32 rounds once
                for k in range(r):
                    total += np.float64(symbols.value[i * r + k]) * symbols.value[second + j * r + k]
                add_entry(out, i * c.columns + j, weight * total)

    def fixed_bits(c, d, float_bits):
        return (c.rows + c.columns) * c.rank * float_bits

    def pack(c, symbols, d, buffer, cursor):
        return write_floats(buffer, cursor, symbols.value[: (c.rows + c.columns) * c.rank])

    def unpack(c, buffer, cursor, end, d, symbols):
        floats = (c.rows + c.columns) * c.rank
        if cursor + floats * 8 * symbols.value.itemsize > end:
            return -1
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, floats, 0
        return read_floats(buffer, cursor, symbols.value[:floats])

    def check(c, d: int) -> None:
        check_shape(c, d)

    def delta(c, d: int) -> float:
        if c.warm:
            raise TypeError(
                "PowerSGD(warm=True) has no delta: a start that is orthogonal to the rows of the matrix sends nothing; "
                "see PowerSGD(..., warm=False)"
            )
        # in expectation, the same number
        return bounds.best_rank_contraction(rows=c.rows, columns=c.columns, rank=c.rank)


# --- the plain reference ----------------------------------------------------------------------------------------------
# With an initial Gaussian Q; projection by LAPACK here, by Gram-Schmidt in the kernels: equal up to rounding.


# --- the fast path ----------------------------------------------------------------------------------------------------

# The state: Q (columns x rank, zero if there is none), whether P has been settled (1 or 0), P (rows x rank).


@kernel
def size_exponent(numbers):
    """The e for which numbers times 2**-e have their largest between 1/2 and 1; 0 if all are zero."""
    top = 0.0
    for p in range(numbers.size):
        top = max(top, abs(np.float64(numbers[p])))
    return math.frexp(top)[1]


@kernel
def scale_by_power(numbers, e):
    """``numbers *= 2**e``, in two steps since 2**e itself may be out of range."""
    half = e // 2
    first, second = math.ldexp(1.0, half), math.ldexp(1.0, e - half)
    for p in range(numbers.size):
        numbers[p] = numbers[p] * first * second


@kernel
def start(c, state, stream):
    """The start Q, with columns of unit length: that in the state, and Gaussian columns where there are none."""
    r = c.rank
    Q = np.empty(c.columns * r)
    for k in range(r):
        size = 0.0
        for j in range(c.columns):
            Q[j * r + k] = state[j * r + k] if c.warm else 0.0
            size += Q[j * r + k] * Q[j * r + k]
        if size < 1e-280:
            size = 0.0
            for j in range(c.columns):
                Q[j * r + k] = normal(stream, j * r + k)
                size += Q[j * r + k] * Q[j * r + k]
        size = 1.0 / math.sqrt(size)
        for j in range(c.columns):
            Q[j * r + k] *= size
    return Q


# --- closed forms -----------------------------------------------------------------------------------------------------


def _examples(d: int) -> list:
    rows, columns = squarest(d)
    return [PowerSGD(rows, columns, (columns + 2) // 3, warm) for warm in (True, False)]


register(PowerSGD, 33, _examples)
