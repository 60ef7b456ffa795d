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


def wrong_shape(run):
    run.add(run.rows("p"), np.zeros((1, WORKERS, D + 1)))


def too_few_dimensions(run):
    run.set(run.x, np.zeros(D))


def whole_numbers(run):
    run.add(run.rows("p"), np.zeros((1, WORKERS, D), np.int64))


def number_for_a_vector(run):
    run.add(run.rows("p"), 1.0)


def copies_for_own(run):
    run.add(run.rows("p"), run.copies("known"))


def all_rows_into_the_model(run):
    run.add(run.x, run.rows("p"))


def gradients_into_the_model(run):
    run.add_loss_gradient(run.x, at=run.x)


def messages_into_a_shared_vector(run):
    run.add(run.x, run.compress(th.TopK(2), run.x), scale=-1.0)


def array_as_rate(run):
    run.add(run.x, run.x, np.ones(2))


def weights_of_another_shape(run):
    run.add(run.x, run.rows("p"), weights=np.ones((1, WORKERS + 1)))


def name_taken(run):
    run.array("p", (1, D), float)
    run.array("p", (2, D), float)


def phase_taken(run):
    run.compress(th.TopK(2), run.rows("p"))
    run.compress(th.TopK(3), run.rows("p"))


def sum_that_cannot_be(run):
    run.compress(th.TopK(2), run.rows("p"), reduce=True)


def gather_what_is_reduced(run):
    run.gather(run.compress(th.Identity(), run.rows("p"), reduce=True))


def broadcast_the_workers(run):
    run.broadcast(run.compress(th.TopK(2), run.rows("p")))


def store_of_two(run):
    run.stored("m", th.TopK(2))
    run.stored("m", th.RandK(2))


def compressor_too_large(run):
    run.compress(th.TopK(D + 1), run.x, phase="down")


def no_compressor(run):
    run.compress(3, run.x, phase="down")


def average_of_rows(run):
    run.add_to_average(run.rows("p"))


def own_of_rows(run):
    run.own(run.rows("p"))


def mixed_in_place(run):
    p = run.copies("p")
    run.add(p, p, weights=np.ones((WORKERS, WORKERS)))


def gradient_into_where_it_is_taken(run):
    p = run.rows("p")
    run.add_gradient(p, at=p)


def message_of_the_model_as_one_of_the_workers(run):
    run.add(run.rows("p"), run.compress(th.TopK(2), run.x, phase="down"))


def agreement_of_some(run):
    run.choose(2)
    run.compress(th.TernGrad(shared=True), run.rows("p"))


def too_many_clients(run):
    run.choose(WORKERS + 1)


def client_that_is_none(run):
    run.act(np.array([[0, WORKERS]]), np.ones(WORKERS))


def clients_out_of_order(run):
    run.act(np.array([[1, 0]]), np.ones(WORKERS))


def rounds_without_clients(run):
    run.act(np.array([[0, 1]]), np.ones(WORKERS))
    run.rates.round = 1
    run.act(np.array([[0, 1]]), np.ones(WORKERS))


def weights_of_some(run):
    run.act(np.array([[0, 1]]), np.ones(2))


def sum_with_absent_workers(run):
    run.choose(2)
    run.reduce(run.compress(th.Identity(), run.rows("p"), reduce=True))


def received(run):
    return run.gather(run.compress(th.TopK(2), run.rows("p")))


def indices_written(run):
    received(run).symbols.index[...] = 2**31 - 1


def counts_made_writable(run):
    received(run).symbols.count.flags.writeable = True


def another_compressor(run):
    received(run).compressor = th.Identity()


def a_copy_of_messages(run):
    run.add(run.x, copy.copy(received(run)))


def messages_of_another_run(run):
    FOREIGN.append(received(run))
    run.add(run.x, FOREIGN[0])


def stored_with_a_state(run):
    run.stored("m", th.TernGrad(shared=True))  # its kernels read a state, which a stored vector does not have


def stored_of_another_run(run):
    FOREIGN.append(run.stored("s", th.TopK(2)))
    run.set(FOREIGN[0], run.rows("p"))


def a_rate_of_another_run(run):
    FOREIGN.append(run.rates.constant(0.5))
    run.scale(run.x, FOREIGN[0])


def a_compressor_changed_by_replace(run):
    run.compress(th.TopK(2)._replace(k=1.5), run.rows("p"))


def workers_written(run):
    run.active.index[...] = 10**9


def rows_written(run):
    run.order[...] = 10**9


def another_dimension(run):
    run.d = 10**6


def a_shape_changed(run):
    run.vector("v").shape = (D, 1, 1)
    run.add(run.x, run.vector("v"))


def a_shape_changed_after_the_first_use(run):
    v = run.vector("v")
    run.scale(v, 0.5)
    v.shape = (D, 1, 1)
    run.scale(v, 0.5)


def weights_reshaped(run):
    run.weight.shape = (1, WORKERS)
    run.add(run.x, received(run))


def sent_reshaped(run):
    run.sent.shape = (-1, 1)
    run.skip()


def batches_reshaped(run):
    run.setup.batches.shape = (1, -1)
    run.choose(2)


def nanoseconds_reshaped(run):
    run.nanoseconds.shape = (2, 2)  # which no operation reads, but the history


def owners_moved(run):
    run.active.index.base.resize(10**6)


def memory_moved(run):
    mine = np.ones((1, 1, D))
    run.add(run.x, mine)
    mine.resize((1, 1, 10**6), refcheck=False)


def half_precision(run):
    run.add(run.x, np.ones((1, 1, D), np.float16))


def big_endian(run):
    run.add(run.x, np.ones((1, 1, D), ">f8"))


def read_only_target(run):
    run.add(np.broadcast_to(1.0, (1, WORKERS, D)), run.x)


def a_subclass(run):
    run.add(run.x, np.ma.masked_array(np.ones((1, 1, D))))


def true_clients(run):
    run.choose(True)


def a_radius_that_is_no_number(run):
    run.project(run.x, np.nan)


def a_factor_that_is_a_string(run):
    run.add(run.vector("v"), run.x, keep="a")


def a_name_that_is_a_number(run):
    run.rows(3)


WRONG = {
    indices_written: "assignment destination is read-only",
    counts_made_writable: "cannot set WRITEABLE flag",
    another_compressor: "Messages.compressor: got Identity.*, allowed: nothing",
    a_copy_of_messages: "allowed: nothing; it can only be read",
    messages_of_another_run: "x: got 'Messages that this run has not made'",
    stored_with_a_state: r"compressor: got TernGrad\(shared=True\), allowed: one that keeps nothing between messages",
    stored_of_another_run: "y: got 'Stored that this run has not made'",
    a_rate_of_another_run: "scale: got 'a rate of another run'",
    a_compressor_changed_by_replace: "k: got 1.5, allowed: an integer",
    workers_written: "assignment destination is read-only",
    rows_written: "assignment destination is read-only",
    another_dimension: "run.d: got another value, allowed: none",
    a_shape_changed: "v, models: got 'an array whose shape, strides or dtype was changed in place'",
    a_shape_changed_after_the_first_use: r"Combine: Y: got 'shape \(5, 1, 1\)', allowed: shape",
    weights_reshaped: "Accumulate: weight: got 'an array whose shape, strides or dtype was changed in place'",
    sent_reshaped: "run.sent: got 'an array whose shape, strides or dtype was changed in place'",
    batches_reshaped: "run.setup: got 'an array whose shape, strides or dtype was changed in place'",
    nanoseconds_reshaped: "run.nanoseconds: got 'an array whose shape, strides or dtype was changed in place'",
    owners_moved: "'_Shown' object has no attribute 'resize'",
    memory_moved: "cannot resize an array",
    half_precision: "Combine: X: got 'dtype float16', allowed: an array of floats, float64 or float32",
    big_endian: "Combine: X: got 'dtype >f8', allowed: an array of floats",
    read_only_target: "Combine: Y: got an array that is read-only, allowed: one that can be written",
    a_subclass: "Combine: X: got 'MaskedArray', allowed: an array of floats",
    true_clients: "clients: got True, allowed: an integer from 1 to 3",
    a_radius_that_is_no_number: "radius: got nan, allowed: a number, at least 0",
    a_factor_that_is_a_string: "scale: got 'str', allowed: a number",
    a_name_that_is_a_number: "name: got 3, allowed: a string",
    wrong_shape: r"X: got 'shape \(1, 3, 6\)', allowed: shape \(1, 3, 5\) or \(1, 1, 5\)",
    too_few_dimensions: r"X: got 'shape \(5,\)', allowed: shape \(1, 1, 5\)",
    whole_numbers: "X: got .*, allowed: an array of floats",
    number_for_a_vector: "X: got 'float', allowed: an array of floats",
    copies_for_own: r"X: .* run.own\(copies\)",
    all_rows_into_the_model: r"X: got 'shape \(1, 3, 5\)', allowed: shape \(1, 1, 5\)",
    gradients_into_the_model: "p: got 'the array at itself'",
    messages_into_a_shared_vector: r"y: got 'shape \(1, 1, 5\)', allowed: a vector for each of 3 senders",
    array_as_rate: "scale: got 'ndarray', allowed: a number",
    weights_of_another_shape: r"weights: got 'shape \(1, 4\)', allowed: floats of shape \(1, 3\)",
    name_taken: r"name: got 'p', allowed: another one",
    phase_taken: r"phase: got 'up', allowed: another name: TopK\(k=2\) uses",
    sum_that_cannot_be: "reduce: got True, allowed: False: messages of TopK",
    gather_what_is_reduced: "phase: got 'up', allowed: one of the workers', without reduce",
    broadcast_the_workers: "phase: got 'up', allowed: 'down'",
    store_of_two: r"name: got 'm', allowed: another one: TopK\(k=2\) uses",
    compressor_too_large: "k: got 6",
    no_compressor: "compressor: got 3, allowed: a compressor",
    average_of_rows: r"X: got 'shape \(1, 3, 5\)', allowed: shape \(1, 1, 5\), as run.x has it",
    own_of_rows: r"copies: .* what run.copies\(name\) gave",
    mixed_in_place: "x: got 'the array y itself'",
    gradient_into_where_it_is_taken: "p: got 'the array at itself'",
    message_of_the_model_as_one_of_the_workers: r"y: got 'shape \(1, 3, 5\)', allowed: a vector for each of 1 senders",
    agreement_of_some: "compressor: .* agree on nothing before they send",
    too_many_clients: "clients: got 4, allowed: an integer from 1 to 3",
    client_that_is_none: "chosen: .* from 0 to 2, increasing",
    clients_out_of_order: "chosen: .* from 0 to 2, increasing",
    rounds_without_clients: "chosen: got '1 rounds'",
    weights_of_some: r"weights: got \(2,\), allowed: an array of shape \(3,\)",
    sum_with_absent_workers: r"topology: .* AllGather\(\) where workers are chosen",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text.__name__)
def test_a_text_is_told_what_is_wrong(text):
    average = "uniform" if text is average_of_rows else "last"
    method = type("Averaged", (Text,), {"average": average})(text)
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


def test_arrays_made_anew_in_every_round_are_not_kept():
    """A text may give temporary arrays to operations; what was bound for them is forgotten in time."""
    from theory.cluster import calls

    bound = []

    def text(run):
        run.add(run.x, np.ones((1, 1, D)), 1.0 / (1.0 + run.rates.now()))
        bound.append(len(run._bound))

    steps = 2 * calls.KEPT + 10
    result = th.run(Text(text), PROBLEM, workers=WORKERS, steps=steps)
    assert result.x == pytest.approx(np.full(D, (1.0 / np.arange(1, steps + 1)).sum()))
    assert max(bound) <= calls.KEPT
