"""Gossip: a round's exchange between neighbours on ranks, and an epoch of D-PSGD in one process."""

from __future__ import annotations

import json
import warnings
from unittest import mock

import numpy as np

import theory as th

from .epochs import CLOCKS, driver
from .pairing import Row, in_turn, versus
from .ranks import start

WORKERS, ROUNDS = 8, 100  # rounds of a run, taken for an epoch in proportion
AGAINST = "bare Neighbor_alltoallv, twice"


def gossip(given):
    """Neighbours' exchange against bare calls; an epoch of D-PSGD against parallel SGD with dense messages."""
    yield from exchange(given)
    yield epoch(given)


def exchange(given):
    """What a gossip round does after packing, against the same two calls of mpi4py alone."""
    for n in (2, 8):
        text = start(n, "-m", "benchmarks.gossip_job", 5 * given.turns)
        for found in json.loads(text.strip().splitlines()[-1]):
            bare, calls, whole = (np.array(found[name]) for name in ("bare", "exchange", "round"))
            size = f"ring of {n} ranks, messages of {found['bytes'] / 1000:.0f} kB"
            yield Row(
                f"Gossip round between packing and unpacking, {size}",
                AGAINST,
                calls / bare,
                ("at most", 1.5),
                versus(calls, bare),
            )
            yield Row(
                "the same with checksums and unpacking", AGAINST, whole / bare, ("at most", 3.0), versus(whole, bare)
            )


def epoch(given) -> Row:
    """An epoch of both in one process: one gradient of every row, shared by the workers."""
    problem = th.logistic(given.data, l2=1 / given.data.n)
    share = given.data.n / (WORKERS * ROUNDS)

    def seconds(method):
        def run() -> float:
            with mock.patch.object(driver, "time", CLOCKS), warnings.catch_warnings():
                warnings.simplefilter("ignore", th.DenseStepWarning)  # dense on purpose, as gossip's messages are
                done = th.run(method, problem, workers=WORKERS, steps=ROUNDS, record_every=ROUNDS)
            return share * float(done.history["seconds"][-1])

        return run

    step = th.Constant(0.1)
    taken = in_turn(
        given.turns,
        ours=seconds(th.DPSGD(step=step, graph=th.Ring())),
        theirs=seconds(th.ParallelSGD(th.Identity(), step=step, exchange="gather")),
    )
    return Row(
        f"An epoch of D-PSGD, {WORKERS} workers on a ring, one process ({ROUNDS} rounds scaled up)",
        "parallel SGD, dense messages",
        taken["ours"] / taken["theirs"],
        ("at most", 3.0),
        versus(taken["ours"], taken["theirs"]),
    )
