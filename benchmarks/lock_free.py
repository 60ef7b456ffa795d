"""Lock-free SGD: steps in a second on two threads, against one."""

from __future__ import annotations

import theory as th

from .pairing import Row, duration, in_turn

THREADS, K = 2, 50
STEPS = {"rand": 40_000, "top": 4_000, "plain": 200_000}  # of each thread in a turn: some 50 ms


def lock_free(given):
    """Parallel-Mem-SGD and plain SGD on threads that share x."""
    data, n, d = given.data, given.data.n, given.data.d
    problem = th.logistic(data, l2=1 / n)
    compressors = {"rand": th.RandK(K), "top": th.TopK(K), "plain": th.Identity(sparse=True)}
    for name, what, target in (
        ("rand", f"Parallel-Mem-SGD rand-{K}", ("at least", 1.6)),
        ("top", f"Parallel-Mem-SGD top-{K}", None),
        ("plain", "plain lock-free SGD", None),
    ):
        shift = d if name == "plain" else 10.0 * d / K
        method = th.ParallelSGD(
            compressors[name],
            step=th.InverseTime(c=2.0, mu=1 / n, shift=shift),
            feedback=th.NoFeedback() if name == "plain" else th.ErrorFeedback(),
        )
        seconds = in_turn(
            given.turns, one=timed(method, problem, 1, STEPS[name]), more=timed(method, problem, THREADS, STEPS[name])
        )
        one, more = seconds["one"], seconds["more"]
        steps = f"{duration(more / THREADS)} : {duration(one)} a step"
        yield Row(f"{what}: steps in a second, {THREADS} threads", "one thread", THREADS * one / more, target, steps)


def timed(method, problem, threads, steps):
    """Seconds, on the clock on the wall, in which every thread takes one step."""
    return lambda: th.run_lock_free(method, problem, threads=threads, steps=steps).seconds / steps
