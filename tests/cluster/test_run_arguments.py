"""What a text of one's own gives to the operations of a run is checked: kernels look at no bounds."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest

import theory as th

D, WORKERS = 5, 3
CENTRES = np.random.default_rng(0).standard_normal((WORKERS, D))
PROBLEM = th.function(lambda x: 0.5 * float(((x - CENTRES) ** 2).sum()), lambda x: x - CENTRES, d=D, n=WORKERS)

FOREIGN: list[Any] = []  # of a run that has ended


@th.method
class Text(NamedTuple):
    """A method whose round is a function."""

    text: object
    step: NamedTuple = th.Constant(0.1)
    compressor: NamedTuple = th.Identity()

    def round(self, run):
        self.text(run)


@th.method
class OwnModels(NamedTuple):
    """The same, with a model for each worker."""

    text: object
    step: NamedTuple = th.Constant(0.1)
    compressor: NamedTuple = th.Identity()
    models = "workers"

    def round(self, run):
        self.text(run)


def received(run):
    return run.gather(run.compress(th.TopK(2), run.rows("p")))


WRONG = {  # what the round of a method says
    "received(run).symbols.index[...] = 2 ** 31 - 1": "assignment destination is read-only",
    "received(run).symbols.count.flags.writeable = True": "cannot set WRITEABLE flag",
    "received(run).compressor = th.Identity()": "Messages.compressor: got Identity.*, allowed: nothing",
    "run.add(run.x, copy.copy(received(run)))": "allowed: nothing; it can only be read",
    "FOREIGN.append(received(run))\nrun.add(run.x, FOREIGN[0])": "x: got 'Messages that this run has not made'",
    "run.stored('m', th.TernGrad(shared=True))": (
        r"compressor: got TernGrad\(shared=True\), allowed: one that keeps nothing between messages"
    ),  # its kernels read a state, which a stored vector does not have
    "FOREIGN.append(run.stored('s', th.TopK(2)))\nrun.set(FOREIGN[0], run.rows('p'))": (
        "y: got 'Stored that this run has not made'"
    ),
    "FOREIGN.append(run.rates.constant(0.5))\nrun.scale(run.x, FOREIGN[0])": "scale: got 'a rate of another run'",
    "run.compress(th.TopK(2)._replace(k=1.5), run.rows('p'))": "k: got 1.5, allowed: an integer",
    "run.active.index[...] = 10 ** 9": "assignment destination is read-only",
    "run.order[...] = 10 ** 9": "assignment destination is read-only",
    "run.d = 10 ** 6": "run.d: got a new value, allowed: none",
    "run.vector('v').shape = (D, 1, 1)\nrun.add(run.x, run.vector('v'))": (
        "v, models: got 'an array whose shape, strides or dtype was changed in place'"
    ),
    "v = run.vector('v')\nrun.scale(v, 0.5)\nv.shape = (D, 1, 1)\nrun.scale(v, 0.5)": (
        r"run.add or run.set: y: got shape \(5, 1, 1\), allowed: shape"
    ),
    "run.weight.shape = (1, WORKERS)\nrun.add(run.x, received(run))": (
        "Accumulate: weight: got 'an array whose shape, strides or dtype was changed in place'"
    ),
    "run.sent.shape = (-1, 1)\nrun.skip()": (
        "run.sent: got 'an array whose shape, strides or dtype was changed in place'"
    ),
    "run.setup.batches.shape = (1, -1)\nrun.choose(2)": (
        "run.setup: got 'an array whose shape, strides or dtype was changed in place'"
    ),
    "run.nanoseconds.shape = (2, 2)": (
        "run.nanoseconds: got 'an array whose shape, strides or dtype was changed in place'"
    ),  # which no operation reads, but the history
    "run.active.index.base.resize(10 ** 6)": "'_Shown' object has no attribute 'resize'",
    "mine = np.ones((1, 1, D))\nrun.add(run.x, mine)\nmine.resize((1, 1, 10 ** 6), refcheck=False)": (
        "cannot resize an array"
    ),
    "run.add(run.x, np.ones((1, 1, D), np.float16))": (
        "run.add or run.set: x: got 'dtype float16', allowed: an array of floats, float64 or float32"
    ),
    "run.add(run.x, np.ones((1, 1, D), '>f8'))": "run.add or run.set: x: got 'dtype >f8', allowed: an array of floats",
    "run.add(np.broadcast_to(1.0, (1, WORKERS, D)), run.x)": (
        "Combine: Y: got an array that is read-only, allowed: one that can be written"
    ),
    "run.add(run.x, np.ma.masked_array(np.ones((1, 1, D))))": (
        "run.add or run.set: x: got 'MaskedArray', allowed: an array of floats"
    ),
    "run.choose(True)": "clients: got True, allowed: an integer from 1 to 3",
    "run.project(run.x, np.nan)": "radius: got nan, allowed: a number, at least 0",
    "run.add(run.vector('v'), run.x, keep='a')": "scale: got 'str', allowed: a number",
    "run.rows(3)": "name: got 3, allowed: a string",
    "run.add(run.rows('p'), np.zeros((1, WORKERS, D + 1)))": (
        r"x: got shape \(1, 3, 6\), allowed: shape \(1, 3, 5\), which is \(replicas, workers, d\) or \(1, 1, 5\)"
    ),
    "run.set(run.x, np.zeros(D))": r"x: got shape \(5,\), allowed: shape \(1, 1, 5\), which is",
    "run.gradient(run.x)": r"run.gradient: a run has no such operation; did you mean .*run.set_gradient\?",
    "run.compres(th.TopK(2), run.x)": r"did you mean run.compress\?",
    "run.average(run.x)": "models: got 'one', allowed: 'workers'",
    "run.add(run.rows('p'), np.zeros((1, WORKERS, D), np.int64))": "x: got .*, allowed: an array of floats",
    "run.add(run.rows('p'), 1.0)": "x: got 'float', allowed: an array of floats",
    "run.add(run.rows('p'), run.copies('known'))": r"x: .* run.own\(copies\)",
    "run.add(run.x, run.rows('p'))": r"x: got shape \(1, 3, 5\).* the mean over the workers is run.gather\(",
    "run.add_loss_gradient(run.x, at=run.x)": "p: got 'the array at itself'",
    "run.add(run.x, run.compress(th.TopK(2), run.x), scale=-1.0)": (
        r"y: got 'shape \(1, 1, 5\)', allowed: a vector for each of 3 senders"
    ),
    "run.add(run.x, run.x, np.ones(2))": "scale: got 'ndarray', allowed: a number",
    "run.add(run.x, run.rows('p'), weights=np.ones((1, WORKERS + 1)))": (
        r"weights: got 'shape \(1, 4\)', allowed: floats of shape \(1, 3\)"
    ),
    "run.array('p', (1, D), float)\nrun.array('p', (2, D), float)": "name: got 'p', allowed: another one",
    "run.compress(th.TopK(2), run.rows('p'))\nrun.compress(th.TopK(3), run.rows('p'))": (
        r"phase: got 'up', allowed: another name: TopK\(k=2\) uses"
    ),
    "run.compress(th.TopK(2), run.rows('p'), reduce=True)": "reduce: got True, allowed: False: messages of TopK",
    "run.gather(run.compress(th.Identity(), run.rows('p'), reduce=True))": (
        "phase: got 'up', allowed: one of the workers', without reduce"
    ),
    "run.broadcast(run.compress(th.TopK(2), run.rows('p')))": "phase: got 'up', allowed: 'down'",
    "run.stored('m', th.TopK(2))\nrun.stored('m', th.RandK(2))": (
        r"name: got 'm', allowed: another one: TopK\(k=2\) uses"
    ),
    "run.compress(th.TopK(D + 1), run.x, phase='down')": "k: got 6",
    "run.compress(3, run.x, phase='down')": "compressor: got 3, allowed: a compressor",
    "run.add_to_average(run.rows('p'))": r"X: got 'shape \(1, 3, 5\)', allowed: shape \(1, 1, 5\), as run.x has it",
    "run.own(run.rows('p'))": r"copies: .* what run.copies\(name\) gave",
    "p = run.copies('p')\nrun.add(p, p, weights=np.ones((WORKERS, WORKERS)))": "x: got 'the array y itself'",
    "p = run.rows('p')\nrun.add_gradient(p, at=p)": "p: got 'the array at itself'",
    "run.add(run.rows('p'), run.compress(th.TopK(2), run.x, phase='down'))": (
        r"y: got 'shape \(1, 3, 5\)', allowed: a vector for each of 1 senders"
    ),
    "run.choose(2)\nrun.compress(th.TernGrad(shared=True), run.rows('p'))": (
        "compressor: .* agree on nothing before they send"
    ),
    "run.choose(WORKERS + 1)": "clients: got 4, allowed: an integer from 1 to 3",
    "run.act(np.array([[0, WORKERS]]), np.ones(WORKERS))": "chosen: .* from 0 to 2, increasing",
    "run.act(np.array([[1, 0]]), np.ones(WORKERS))": "chosen: .* from 0 to 2, increasing",
    "run.act(np.array([[0, 1]]), np.ones(WORKERS))\n"
    "run.rates.round = 1\n"
    "run.act(np.array([[0, 1]]), np.ones(WORKERS))": "chosen: got '1 rounds'",
    "run.act(np.array([[0, 1]]), np.ones(2))": r"weights: got \(2,\), allowed: an array of shape \(3,\)",
    "run.choose(2)\nrun.reduce(run.compress(th.Identity(), run.rows('p'), reduce=True))": (
        r"topology: .* AllGather\(\) where workers are chosen"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_text_is_told_what_is_wrong(text):
    def act(run):
        exec(text, {**globals(), "copy": copy, "run": run})  # noqa: S102

    average = "uniform" if "add_to_average" in text else "last"
    method = type("Averaged", (Text,), {"average": average})(act)
    FOREIGN.clear()
    with pytest.raises((AttributeError, TypeError, ValueError), match=WRONG[text]):
        for _ in range(2):  # what is foreign was made by the first of two runs
            th.run(method, PROBLEM, workers=WORKERS, steps=2)


def test_messages_for_all_are_not_added_to_models_of_their_own():
    """On ranks, the rows of a process are fewer than the messages."""

    def text(run):
        run.add(run.x, run.gather(run.compress(th.TopK(2), run.rows("p"))))

    with pytest.raises(ValueError, match="y: got 'a vector of each worker'"):
        th.run(OwnModels(text), PROBLEM, workers=WORKERS, steps=2)


def test_a_name_stands_for_three_vectors():
    """That of a worker, that of the model, and what is known of all: one array would be two in one process alone."""

    def text(run):
        for made, value in ((run.rows("v"), 1.0), (run.vector("v"), 2.0), (run.copies("v"), 3.0)):
            made[:] = value
        assert (run.rows("v") == 1.0).all() and (run.vector("v") == 2.0).all() and (run.copies("v") == 3.0).all()

    th.run(Text(text), PROBLEM, workers=1, steps=1)


@pytest.mark.parametrize(
    "compressor",
    [th.TernGrad(shared=True), th.compressor(lambda v, key: np.round(v, 1))],
    ids=["agreed scale", "function"],
)
def test_the_model_sends_by_any_compressor(compressor):
    """A single sender agrees with itself, and a worker's key is not the model's: w follows x."""

    def text(run):
        w, difference = run.vector("w"), run.vector("difference")
        run.set(difference, run.x)
        run.add(difference, w, scale=-1.0)
        run.add(w, run.broadcast(run.compress(compressor, difference, phase="down")))
        assert np.abs(run.x - w).max() < 0.6
        run.scale(run.x, 0.9)

    result = th.run(Text(text), PROBLEM, workers=WORKERS, steps=60, x0=np.full(D, 0.5), wire_dtype=np.float64)
    assert result.history["bits_down"][-1] > 0


def test_who_is_absent_goes_on_in_its_shuffled_pass():
    """The rows of a worker do not depend on who acted before; and gradients of absent workers are not counted."""
    data = np.random.default_rng(1).standard_normal((30, D))
    problem = th.ridge((data, np.ones(30)), l2=0.1)

    def rows(chosen):
        seen = []

        def text(run):
            if chosen is not None:
                run.act(chosen, np.ones(WORKERS))
            run.add_loss_gradient(run.rows("p"), at=run.x)
            seen.append(run._rows[0, 1].copy())

        method = type("Shuffled", (Text,), {"sampling": "shuffle", "shards": "contiguous", "batch": 2})(text)
        result = th.run(method, problem, workers=WORKERS, steps=8, record_every=1)
        return seen, result.history["samples"]

    chosen = [[0], [0, 2], [1], [0, 1], [2], [1], [0], [1, 2]]
    (some, few), (everybody, many) = rows([np.array(c) for c in chosen]), rows(None)
    for t, present in enumerate(chosen):
        if 1 in present:
            assert np.array_equal(some[t], everybody[t])
    assert np.array_equal(np.diff(few), [2 * len(present) for present in chosen])
    assert np.array_equal(np.diff(many), [2 * WORKERS] * 8)


def test_a_server_within_a_server_may_use_numpy():
    """Its text is not read once and repeated, unless its class says so."""

    class Own(NamedTuple):
        def update(self, run, received):
            run.add(run.x, received, scale=-run.eta_received)
            run.x *= 0.5

    def last(**options):
        method = th.ParallelSGD(step=th.Constant(0.1), server=th.Projected(100.0, Own()))
        return th.run(method, PROBLEM, workers=WORKERS, steps=5, x0=np.ones(D), **options).x

    assert np.array_equal(last(), last(fast=False)) and np.abs(last()).max() < 0.2


def test_a_second_exchange_draws_other_numbers():
    """The errors of two messages of one round, or of two stored vectors, are independent."""
    pairs = []

    def text(run):
        p, q = run.rows("p"), run.rows("q")
        for v in (p, q):
            v[:] = 0.3
        for v, name in ((p, "first"), (q, "second")):
            run.add(v, run.compress(th.Bernoulli(0.5), v, phase=name), scale=-1.0)
        stored = run.stored("one", th.Bernoulli(0.5)), run.stored("two", th.Bernoulli(0.5))
        a, b = run.rows("a"), run.rows("b")
        for v, s in zip((a, b), stored, strict=True):
            v[:] = 0.3
            run.set(s, v)  # stored, compressed
            run.set(v, s)
        pairs.append([(v > 0.0).ravel() for v in (p, q, a, b)])

    th.run(Text(text), PROBLEM, workers=WORKERS, steps=100)
    coins = np.array(pairs, float)
    correlation = np.corrcoef(coins.transpose(1, 0, 2).reshape(4, -1))  # of 1,500 coins; 5 sigma are 0.13
    assert np.abs(correlation - np.eye(4)).max() < 0.13


def test_arrays_made_anew_in_every_round_are_not_cached():
    """A text may give temporary arrays to operations; what was bound for them is forgotten in time."""
    from theory.cluster import calls

    bound = []

    def text(run):
        run.add(run.x, np.ones((1, 1, D)), 1.0 / (1.0 + run.rates.now()))
        bound.append(len(run._bound))

    steps = 2 * calls.MOST_CACHED + 10
    result = th.run(Text(text), PROBLEM, workers=WORKERS, steps=steps)
    assert result.x == pytest.approx(np.full(D, (1.0 / np.arange(1, steps + 1)).sum()))
    assert max(bound) <= calls.MOST_CACHED
