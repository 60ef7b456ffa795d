"""Problems, servers, feedback rules and methods from outside the package on sparse rows: they say that they can."""

from __future__ import annotations

import inspect
import math
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.cluster.setup import prepare
from theory.core import setting
from theory.core.vectors import add_entry, entry
from theory.problems.base import add_loss_gradient
from theory.problems.linear import linear_problem
from theory.problems.matrix import as_matrix

D = 1200
ROWS = sp.random(60, D, 0.01, format="csr", random_state=0)
TARGET = np.sin(np.arange(60.0))
KEYWORDS = dict(workers=3, steps=200, seed=4, wire_dtype="float64", x0=np.cos(np.arange(D)) / 30.0)
STEP = th.Constant(0.5)


@linear_problem
@setting
class PseudoHuber(NamedTuple):
    """A loss of margins: the trait follows from its slope."""

    A: object
    b: np.ndarray
    l2: float

    curvature_bounds = (0.0, 1.0)

    def loss(problem, i, margin):
        return math.sqrt(1.0 + (margin - problem.b[i]) ** 2) - 1.0

    def slope(problem, i, margin):
        return (margin - problem.b[i]) / math.sqrt(1.0 + (margin - problem.b[i]) ** 2)


class Sums(NamedTuple):
    """Least squares whose gradients are written entry by entry."""

    A: object
    b: np.ndarray
    l2: float

    n = property(lambda self: self.b.size)
    d = property(lambda self: self.A.columns)
    dtype = property(lambda self: self.A.data.dtype)
    name = "sums"

    def rows(problem):
        return problem.b.size

    def dimension(problem):
        return problem.A.columns

    def regularization(problem):
        return problem.l2

    def value(problem, x):
        total = 0.0
        for i in range(problem.b.size):
            margin = 0.0
            for p in range(problem.A.indptr[i], problem.A.indptr[i + 1]):
                margin += problem.A.data[p] * entry(x, problem.A.indices[p])
            total += 0.5 * (margin - problem.b[i]) ** 2
        square = 0.0
        for j in range(problem.A.columns):
            square += entry(x, j) ** 2
        return total / problem.b.size + 0.5 * problem.l2 * square

    def gradient(problem, x, out):
        for j in range(out.size):
            out[j] = problem.l2 * x[j]
        for i in range(problem.b.size):
            add_loss_gradient(problem, i, 0, 1.0 / problem.b.size, x, out)

    def add_loss_gradient(problem, i, stream, weight, x, out):
        slope = -problem.b[i]
        for p in range(problem.A.indptr[i], problem.A.indptr[i + 1]):
            slope += problem.A.data[p] * entry(x, problem.A.indices[p])
        for p in range(problem.A.indptr[i], problem.A.indptr[i + 1]):
            add_entry(out, problem.A.indices[p], weight * slope * problem.A.data[p])


def everywhere(problem, i, stream, weight, x, out):
    for j in range(problem.A.columns):
        add_entry(out, j, weight)


def like_sums(name: str, **changes):
    """The class with some attributes changed; a problem's functions stand in its own body."""
    return setting(type(name, (Sums,), {k: v for k, v in vars(Sums).items() if inspect.isfunction(v)} | changes))


Stated = like_sums("Stated", support="row")
Wrong = like_sums("Wrong", support="row", add_loss_gradient=everywhere)
Whole = like_sums("Whole", support="all", add_loss_gradient=everywhere)
Sums = setting(Sums)


@setting
class Cautious(NamedTuple):
    """x = x - share eta g."""

    share: float

    listed = sparse_rows = True

    def update(self, run, received):
        run.scale(run.x, 1.0 - self.share * run.eta * run.local_l2)
        run.add(run.x, received, scale=-self.share * run.eta_received)


@setting
class Ball(NamedTuple):
    """A heavy ball with a name of its own for the velocity."""

    beta: float

    listed = sparse_rows = True
    state = ("drift",)

    def update(self, run, received):
        v = run.vector("drift")
        run.add(v, run.x, keep=self.beta, scale=-run.local_l2 * run.eta_sent)
        run.add(v, received, scale=-1.0)
        run.add(run.x, v, scale=run.eta_received)


@setting
class Plain(NamedTuple):
    """Error feedback, written again."""

    listed = sparse_rows = True

    def load(self, run):
        return run.memory()

    def store(self, run, p, message):
        run.add(p, message, scale=-1.0)

    def error(self, run):
        return run.read(run.memory())


@th.method
class Own(NamedTuple):
    """Parallel SGD, written again."""

    compressor: NamedTuple
    step: NamedTuple
    feedback: NamedTuple = th.ErrorFeedback()

    listed = sparse_rows = True

    def round(self, run):
        p = self.feedback.load(run)
        run.add_gradient(p, at=run.x, scale=run.eta)
        message = self.topology.compress(run, self.compressor, p)
        self.feedback.store(run, p, message)
        run.scale(run.x, 1.0 - run.eta * run.local_l2)
        run.add(run.x, self.topology.exchange(run, message), scale=-1.0)


def sgd(**keywords):
    return th.ParallelSGD(th.TopK(6), step=STEP, **keywords)


EF = {"feedback": th.ErrorFeedback()}
LINEAR = {kind: th.ridge((matrix, TARGET), l2=0.02) for kind, matrix in (("few", ROWS), ("all", ROWS.toarray()))}
CASES = {
    "problem of margins": (sgd(**EF), PseudoHuber),
    "problem of margins, momentum": (sgd(momentum=0.5, **EF), PseudoHuber),
    "server": (sgd(server=Cautious(0.5), **EF), th.ridge),
    "server, projected": (sgd(server=th.Projected(0.3, Cautious(0.5))), th.ridge),
    "server with a vector": (sgd(server=Ball(0.5), **EF), th.ridge),
    "outer step": (sgd(server=th.OuterStep(0.7, 0.5, True), **EF), th.ridge),
    "outer step, local": (
        th.LocalSGD(th.TopK(6), step=STEP, local_steps=4, server=th.OuterStep(1.5), **EF),
        th.ridge,
    ),
    "feedback rule": (sgd(feedback=Plain()), th.ridge),
    "method": (Own(th.TopK(6), STEP), th.ridge),
}


OTHERS = [name for name in CASES if name != "problem of margins, momentum"]  # which compiles, for 8 s


@pytest.mark.parametrize("name", [*OTHERS, pytest.param("problem of margins, momentum", marks=pytest.mark.full)])
def test_sparse_rows_agree_with_dense_ones(name):
    method, kind = CASES[name]
    few, all_ = (
        kind((m, TARGET), l2=0.02) if kind is th.ridge else kind(as_matrix(m, np.float64), TARGET, 0.02)
        for m in (ROWS, ROWS.toarray())
    )
    assert prepare(method, few, **KEYWORDS).sparse is not None and prepare(method, all_, **KEYWORDS).sparse is None
    assert_close(th.run(method, few, **KEYWORDS), th.run(method, all_, **KEYWORDS))


def assert_close(a, b):
    for name in ("x", "last", "memory"):
        mine, other = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-10 * np.abs(other).max(), err_msg=name)
    np.testing.assert_array_equal(a.history["bits_up"], b.history["bits_up"])


@setting
class Astray(NamedTuple):
    """Sums that sparse rows do not have."""

    what: str

    listed = sparse_rows = True
    state = ("drift",)

    def update(self, run, received):
        v = run.vector("drift")
        if self.what == "forgets":
            run.add(v, received, keep=0.0)
        elif self.what == "doubles":
            run.add(v, v)
        else:
            run.scale(run.memory(), 0.5)


@pytest.mark.parametrize(
    "what, told",
    [
        ("forgets", "keep: got 0.0, allowed: on sparse rows with a velocity, a number other than 0"),
        ("doubles", "x: got .*, allowed: on sparse rows run.x"),
        ("scales the memory", r"x: got .run.memory\(\).*, allowed: on sparse rows run.x"),
    ],
)
def test_sums_that_sparse_rows_do_not_have_are_refused(what, told):
    with pytest.raises((ValueError, TypeError), match=f"^{told}"):
        th.run(sgd(server=Astray(what), **EF), LINEAR["few"], **KEYWORDS)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_problem_that_states_its_support_keeps_short_lists(batch):
    method, A = sgd(batch=batch, **EF), as_matrix(ROWS, np.float64)
    entries = int(np.diff(ROWS.indptr).max())
    results = {}
    for kind, length in ((Stated, min(D, batch * entries)), (Sums, D)):
        rows = prepare(method, kind(A, TARGET, 0.02), **KEYWORDS).sparse
        assert (rows.longest, rows.exact) == (length, kind is Stated)
        results[kind] = th.run(method, kind(A, TARGET, 0.02), **KEYWORDS)
    dense = th.run(method, LINEAR["all"], **KEYWORDS)
    for result in results.values():
        assert_close(result, dense)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_wrong_support_ends_the_run_and_writes_nothing_beyond_its_list(batch):
    """Gradients of d entries, where a row has a few; a memory has room for all of them."""
    A = as_matrix(ROWS, np.float64)
    result = th.run(sgd(batch=batch), Wrong(A, TARGET, 0.02), **KEYWORDS | {"steps": 2})
    assert not result.success and np.isnan(result.last).any()
    kept, dense = (th.run(sgd(batch=batch, **EF), kind(A, TARGET, 0.02), **KEYWORDS) for kind in (Wrong, Whole))
    assert_close(kept, dense)


def test_a_problem_that_touches_everything_has_dense_rows():
    assert prepare(sgd(**EF), Whole(as_matrix(ROWS, np.float64), TARGET, 0.02), **KEYWORDS).sparse is None
    wrong = like_sums("Odd", support="rows")(as_matrix(ROWS, np.float64), TARGET, 0.02)
    with pytest.raises((ValueError, TypeError), match="support: got 'rows'"):
        prepare(sgd(**EF), wrong, **KEYWORDS)


def test_a_server_that_breaks_its_promise_is_refused():
    class Broken(Cautious):
        def update(self, run, received):
            run.add(run.vector("g"), received)

    class Clipped(Cautious):
        def update(self, run, received):
            run.project(run.x, 1.0)

    with pytest.raises(ValueError, match="name: got 'g'"):
        th.run(sgd(server=Broken(0.5), **EF), LINEAR["few"], **KEYWORDS)
    with pytest.raises(ValueError, match="project: got 'Clipped'"):
        th.run(sgd(server=Clipped(0.5)), LINEAR["few"], **KEYWORDS)


def test_what_a_server_cannot_do_is_said_by_its_class():
    class Vote(Cautious):
        with_memory = False  # and nothing of its coordinates, so that it is not divided

    with pytest.raises(ValueError, match="with a memory"):
        sgd(server=Vote(0.5), **EF)
    with pytest.raises(ValueError, match="each coordinate alone"):
        th.Sharded(Vote(0.5))
