"""Ctrl-C ends every long call within seconds, and the next call works."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ROOT, run_group

import theory as th
from theory.cluster import stragglers
from theory.core import interrupts
from theory.core.interrupts import Stopped, Stretches, uninterrupted
from theory.measure import monte_carlo

LIMIT = 30.0  # seconds; half a second was measured
RNG = np.random.default_rng(0)
ROWS = th.logistic((RNG.standard_normal((200, 50)), np.where(np.arange(200) % 2, 1.0, -1.0)), l2=0.1)
MEMORY = th.ParallelSGD(th.TopK(3), step=0.01, feedback=th.ErrorFeedback())
LONG = {
    "one run": lambda: th.run(MEMORY, ROWS, workers=4, steps=10**9, record_every=10**9),
    "replicas": lambda: th.run(MEMORY, ROWS, workers=4, steps=10**7, replicas=20),
    "threads without locks": lambda: th.run_lock_free(MEMORY, ROWS, threads=2, steps=10**10),
}


@pytest.fixture(autouse=True)
def heard():
    """A job in the background ignores Ctrl-C, and its processes do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("what", LONG)
def test_a_long_call_stops_and_the_next_one_works(what):
    th.run(MEMORY, ROWS, workers=4, steps=1)
    th.run_lock_free(MEMORY, ROWS, threads=2, steps=1)
    ended = threading.Event()

    def press():
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait(LIMIT)  # a thread that ends at once may take the signal with it

    begin = time.monotonic()
    threading.Timer(1.0, press).start()
    with pytest.raises(KeyboardInterrupt):
        LONG[what]()
    ended.set()
    assert time.monotonic() - begin < LIMIT
    assert th.run(MEMORY, ROWS, workers=4, steps=3).nit == 3


COMPILES = """
import os, signal, threading, time, numpy as np, theory as th
def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(2.0)  # a thread that ends at once may take the signal with it
problem = th.quadratic(np.ones(4), covariance=1.0)
def run():
    return th.run(th.ParallelSGD(th.QSGD(3), step=0.1), problem, workers=2, steps=3).nit
stops = 0
for delay in (0.5, 1.0, 2.0):
    try:
        threading.Timer(delay, press).start()
        while True:
            run()
    except KeyboardInterrupt:
        stops += 1
print(stops, run())
"""


@pytest.mark.slow
def test_no_function_is_left_half_compiled(fresh_cache):
    done = run_group([sys.executable, "-c", COMPILES], timeout=300, env={"PYTHONPATH": ROOT})
    assert done.stdout == "3 3\n", done.stderr


def test_a_signal_is_heard_at_the_end_of_the_outermost_context():
    heard = []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted():
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
            heard.append("whole")
    assert heard == ["whole"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_all_of_a_range_is_done_once_in_stretches():
    done, stretches = [], Stretches()

    def work(start, stop):
        stop = min(stop, start + 100)  # rates are filled in up to there
        done.extend(range(start, stop))
        return stop

    stretches.over(3, 1000, work)
    assert done == list(range(3, 1000))
    stretches.stopped.set()
    with pytest.raises(Stopped):
        stretches.over(0, 1, work)


def test_a_race_is_drawn_in_stretches_with_the_same_times(monkeypatch):
    known = dict(workers=4, fastest=2, rounds=1000, seed=0)
    whole, drawn, draw = stragglers.race(th.Pareto(3.0), **known), [], stragglers._race
    monkeypatch.setattr(interrupts, "PAUSE", 1e-9)
    monkeypatch.setattr(stragglers, "_race", lambda *given: drawn.append(given[3:5]) or draw(*given))
    pieces = stragglers.race(th.Pareto(3.0), **known)
    assert len(drawn) > 100 and all(np.array_equal(*pair) for pair in zip(whole, pieces, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_moments_are_drawn_in_stretches_with_the_same_numbers(threads, monkeypatch):
    v, drawn, draw = np.arange(1.0, 9.0), [], monte_carlo.sample
    whole = monte_carlo.moments(th.QSGD(4), v, 20_000, threads=threads)
    monkeypatch.setattr(interrupts, "PAUSE", 1e-9)
    monkeypatch.setattr(monte_carlo, "sample", lambda *given: drawn.append(given[4]) or draw(*given))
    pieces = monte_carlo.moments(th.QSGD(4), v, 20_000, threads=threads)
    assert len(drawn) > 100 and all(np.array_equal(*pair) for pair in zip(whole, pieces, strict=True))
