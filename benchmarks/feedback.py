"""A step of a worker with memory on 10**7 float32, in copies of the same array: the texts that a run calls."""

from __future__ import annotations

from itertools import count

import numpy as np

import theory as th
from theory.cluster.calls import list_calls
from theory.cluster.driver import make_run
from theory.cluster.setup import prepare
from theory.cluster.simulator import Memory

from .pairing import Row, clocked, in_turn, versus

AGAINST = "np.copyto of the array"


class Worker:
    """One worker with its memory: p = eta g + e, the message's symbols, and what is stored of p."""

    def __init__(self, compressor, rule, gradient):
        method = th.ParallelSGD(compressor, step=th.Constant(0.1), feedback=rule)
        problem = th.quadratic(np.ones(gradient.size), covariance=0.0)
        setup = prepare(method, problem, workers=1, steps=1, dtype=np.float32)
        run, g = make_run(setup, Memory()), gradient[None, None]

        def text(run):
            p = rule.load(run)
            run.add(p, g, scale=run.eta)
            rule.store(run, p, run.compress(compressor, p))

        self._run, self._calls, self._steps = run, list_calls(run, text), count()
        run.rates.stretch(0, 1)

    def step(self):
        """One step; the random numbers are new in each."""
        t = next(self._steps)
        for call in self._calls:
            call(t)


def feedback(given, d=10**7):
    """Error feedback with the usual compressors, and with a memory that is held compressed."""
    gradient = np.random.default_rng(0).standard_normal(d, dtype=np.float32)
    target, top = np.zeros_like(gradient), th.TopK(d // 100)
    contestants = [
        ("10⁷ float32: a step of error feedback, top 1 %", top, th.ErrorFeedback(), 5.0),
        ("the same with QSGD, 4 bits", th.QSGD(7), th.ErrorFeedback(), 4.0),
        (
            "contractive error feedback, top 1 %, one row of 10⁵",
            top,
            th.ContractiveErrorFeedback(th.CountSketch(10**5)),
            18.0,
        ),
        ("the same with the memory in half precision", top, th.ContractiveErrorFeedback(th.HalfPrecision()), None),
        ("linear sketch, top 1 %, one row of 10⁵", top, th.LinearSketchFeedback(th.CountSketch(10**5), 0.99), None),
    ]
    calls = {what: clocked(Worker(c, rule, gradient).step) for what, c, rule, _ in contestants}
    seconds = in_turn(given.turns, copy=clocked(lambda: np.copyto(target, gradient), 3), **calls)
    for what, _, _, bound in contestants:
        limit = None if bound is None else ("at most", bound)
        yield Row(what, AGAINST, seconds[what] / seconds["copy"], limit, versus(seconds[what], seconds["copy"]))
