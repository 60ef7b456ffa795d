"""A step of a worker with memory on 10**7 float32, in copies of the same array: the texts that a run calls."""

from __future__ import annotations

import numpy as np

import theory as th
from theory.compressors.base import state_size
from theory.compressors.doors import make_symbols
from theory.dispatch import kernel
from theory.methods.feedback import store_bytes
from theory.methods.layout import DenseMemory, new_dense, new_memory, recall, retain, write_message
from theory.methods.remembering import Remembering

from .pairing import Row, clocked, in_turn, versus

AGAINST = "np.copyto of the array"


@kernel
def _start(layout, x, compressor, wire):
    return new_memory(layout, x, 1, compressor, wire)


@kernel
def _step(memory, x, gradient, eta, compressor, state, symbols, stream, coin):
    p = recall(memory, 0, x, 0.0)
    for j in range(p.size):
        p[j] += eta * gradient[j]
    write_message(memory, p, compressor, state, stream, symbols)
    retain(memory, 0, p, compressor, symbols, coin)


class Worker:
    """One worker with its memory: p = eta g + e, the message's symbols, and what is kept of p."""

    def __init__(self, compressor, feedback, gradient):
        d, wire = gradient.size, np.empty(0, np.float32)
        layout = DenseMemory()
        if feedback != th.ErrorFeedback():
            layout = Remembering(feedback, *store_bytes(feedback, compressor, d, 32), False)
        self.x = new_dense(np.zeros(d, np.float32), False, False)
        self.memory = _start(layout, self.x, compressor, wire)
        self.compressor, self.gradient, self.t = compressor, gradient, 0
        self.symbols, self.state = make_symbols(compressor, d, np.float32), np.zeros(state_size(compressor, d))

    def step(self):
        """One step; the random numbers are new in each."""
        keys = np.uint64(th.key(0, "benchmark", self.t)), np.uint64(th.key(1, "benchmark", self.t))
        _step(self.memory, self.x, self.gradient, np.float32(0.1), self.compressor, self.state, self.symbols, *keys)
        self.t += 1


def feedback(given, d=10**7):
    """Error feedback with the usual compressors, and with a memory that is held compressed."""
    gradient = np.random.default_rng(0).standard_normal(d, dtype=np.float32)
    target, top = np.zeros_like(gradient), th.TopK(d // 100)
    contestants = [
        ("10⁷ float32: a step of error feedback, top 1 %", top, th.ErrorFeedback(), 5.0),
        ("the same with QSGD, 4 bits", th.QSGD(7), th.ErrorFeedback(), 4.5),
        ("contractive error feedback, top 1 %, one row of 10⁵", top,
         th.ContractiveErrorFeedback(th.CountSketch(10**5)), 18.0),
        ("the same with the memory in half precision", top, th.ContractiveErrorFeedback(th.HalfPrecision()), None),
        ("linear sketch, top 1 %, one row of 10⁵", top, th.LinearSketchFeedback(th.CountSketch(10**5), 0.99), None),
    ]  # fmt: skip
    calls = {what: clocked(Worker(c, rule, gradient).step) for what, c, rule, _ in contestants}
    seconds = in_turn(given.turns, copy=clocked(lambda: np.copyto(target, gradient), 3), **calls)
    for what, _, _, bound in contestants:
        limit = None if bound is None else ("at most", bound)
        yield Row(what, AGAINST, seconds[what] / seconds["copy"], limit, versus(seconds[what], seconds["copy"]))
