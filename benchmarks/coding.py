"""Compressing 10**7 float32, in copies of the same array."""

from __future__ import annotations

import numpy as np

import theory as th
from theory.compressors.base import (
    compress_into,
    max_payload_bits,
    new_symbols,
    pack,
    payload_bits,
    quantize,
    state_size,
    unpack,
)

from .pairing import Row, clocked, in_turn, versus

AGAINST = "np.copyto of the array"


class Bench:
    """A compressor with all the room it wants, made before the clock runs."""

    def __init__(self, c, v):
        self.c, self.v, self.d = c, v, v.size
        self.symbols = new_symbols(c, v.size, np.empty(0, np.float32))
        self.state, self.stream = np.zeros(state_size(c, v.size)), np.uint64(th.key(0, "benchmark"))
        self.out, self.buffer = np.zeros_like(v), None

    def through(self):
        """A vector becomes the restored vector."""
        compress_into(self.c, self.state, self.v, self.stream, self.symbols, self.out)

    def quantize(self):
        """A vector becomes symbols."""
        quantize(self.c, self.state, self.v, self.stream, self.symbols)

    def packed(self):
        """A vector becomes bits, and the bits become symbols again."""
        if self.buffer is None:
            self.buffer = np.zeros(max_payload_bits(self.c, self.d, 32) // 8 + 16, np.uint8)
        self.quantize()
        size = int(payload_bits(self.c, self.symbols, self.d))
        self.buffer[: size // 8 + 1] = 0
        pack(self.c, self.symbols, self.d, self.buffer, 0)
        unpack(self.c, self.buffer, 0, size, self.d, self.symbols)


def coding(given, d=10**7):
    """QSGD and top 1 % on a long vector."""
    v = np.random.default_rng(0).standard_normal(d, dtype=np.float32)
    target = np.zeros_like(v)
    qsgd, buckets, top = Bench(th.QSGD(7), v), Bench(th.Bucketed(th.QSGD(7), 512), v), Bench(th.TopK(d // 100), v)
    contestants = {
        "qsgd": (qsgd.through, "QSGD, 4 bits: vector to restored vector", ("at most", 3.0)),
        "buckets": (buckets.through, "the same in buckets of 512", None),
        "top": (top.quantize, "top 1 %, exact: vector to indices and values", ("at most", 4.0)),
        "restored": (top.through, "the same to the restored vector", None),
        "packed": (qsgd.packed, "QSGD, 4 bits: vector to bits and back to levels", None),
    }
    calls = {name: clocked(call) for name, (call, _, _) in contestants.items()}
    seconds = in_turn(2 * given.turns, copy=clocked(lambda: np.copyto(target, v), 3), **calls)
    for name, (_, what, bound) in contestants.items():
        yield Row(f"10⁷ float32: {what}" if name == "qsgd" or name == "top" else what, AGAINST,
                  seconds[name] / seconds["copy"], bound, versus(seconds[name], seconds["copy"]))  # fmt: skip
