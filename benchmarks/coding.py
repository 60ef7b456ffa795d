"""Compressing 10**7 float32, in copies of the same array."""

from __future__ import annotations

import numpy as np

import theory as th
from theory.compressors.base import compress_into, max_payload_bits, new_symbols, quantize, state_size
from theory.compressors.codec import decode_payload, encode_payload

from .pairing import Row, clocked, in_turn, versus
from .references import numpy_qsgd

AGAINST = "np.copyto of the array"


class Bench:
    """A compressor with the memory that it needs, made before the clock runs, as ``encode`` and ``decode`` make it."""

    def __init__(self, c, v):
        self.c, self.v, self.d = c, v, v.size
        self.symbols = new_symbols(c, v.size, np.empty(0, np.float32))
        self.state, self.stream = np.zeros(state_size(c, v.size)), np.uint64(th.key(0, "benchmark"))
        self.out, self.buffer, self.size = np.zeros_like(v), None, 0

    def through(self):
        """A vector becomes the restored vector."""
        compress_into(self.c, self.state, self.v, self.stream, self.symbols, self.out)

    def quantize(self):
        """A vector becomes symbols."""
        quantize(self.c, self.state, self.v, self.stream, self.symbols)

    def packed(self):
        """A vector becomes bits, and the bits become the restored vector."""
        if self.buffer is None:
            self.buffer = np.zeros(max_payload_bits(self.c, self.d, 32) // 8 + 16, np.uint8)
        self.buffer[: self.size // 8 + 1] = 0  # what was written the last time
        self.size = encode_payload(self.c, self.state, self.v, self.stream, self.symbols, self.buffer, 0)
        assert decode_payload(self.c, self.buffer, 0, self.size, self.symbols, self.out) == self.size


def torch_top(v, k):
    """torch.topk of the magnitudes on one thread, or None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    tensor = torch.from_numpy(v)
    return lambda: torch.topk(tensor.abs(), k, sorted=False)


def _most(bound):
    return "at most", bound


def coding(given, d=10**7):
    """Every kind of compressor on a long vector, and what else there is to do the same."""
    v = np.random.default_rng(0).standard_normal(d, dtype=np.float32)
    target, k = np.zeros_like(v), d // 100
    through, around = "vector to restored vector", "vector to bits and back to the vector"
    top, qsgd, generator = Bench(th.TopK(k), v), Bench(th.QSGD(7), v), np.random.default_rng(0)
    largest, elias, torch = th.QSGD(7, norm=np.inf), th.QSGD(7, norm=np.inf, code=th.Elias()), torch_top(v, k)
    contestants = [
        (f"10⁷ float32: QSGD, 4 bits: {through}", qsgd.through, _most(2.2)),
        ("the same in buckets of 512", Bench(th.Bucketed(th.QSGD(7), 512), v).through, _most(3.0)),
        (f"NUQSGD, 4 bits: {through}", Bench(th.NUQSGD(6), v).through, _most(2.5)),
        (f"TernGrad: {through}", Bench(th.TernGrad(), v).through, _most(2.3)),
        (f"natural compression: {through}", Bench(th.Natural(), v).through, _most(2.3)),
        (f"scaled sign: {through}", Bench(th.ScaledSign(), v).through, _most(2.0)),
        (f"random 1 %: {through}", Bench(th.RandK(k), v).through, _most(1.5)),
        ("top 1 %, exact: vector to indices and values", top.quantize, _most(3.5)),
        ("the same to the restored vector", top.through, None),
        (f"optimal sparsifier, 1 %: {through}", Bench(th.OptimalSparsifier(d / 100), v).through, None),
        (f"count sketch, one row of 10⁵: {through}", Bench(th.CountSketch(10**5), v).through, _most(12.0)),
        (f"QSGD, 4 bits: {around}", qsgd.packed, _most(4.4)),
        (f"scaled sign: {around}", Bench(th.ScaledSign(), v).packed, None),
        ("QSGD by the largest entry, in Elias codes, there and back", Bench(elias, v).packed, _most(40.0)),
        ("the same in the entropy coder", Bench(th.EntropyCoded(largest), v).packed, _most(30.0)),
        ("for comparison: NumPy's argpartition, top 1 %", lambda: np.argpartition(np.abs(v), d - k)[d - k :], None),
        (f"for comparison: QSGD in plain NumPy, {through}", lambda: numpy_qsgd(v, 7, generator), None),
        ("for comparison: torch.topk of 1 %", torch, None),
    ]
    calls = {what: clocked(call) for what, call, _ in contestants if call is not None}
    seconds = in_turn(given.turns, copy=clocked(lambda: np.copyto(target, v), 3), **calls)
    for what, call, bound in contestants:
        if call is None:
            yield Row(f"{what}: not installed (the extra peers)", AGAINST, np.full(1, np.nan))
        else:
            yield Row(what, AGAINST, seconds[what] / seconds["copy"], bound, versus(seconds[what], seconds["copy"]))
