"""Three ways to the same bits: a method's text in Python, the list of its calls replayed, a compiled loop in its place.

And a fourth that agrees to rounding: the text on sparse rows against the same text on dense ones.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.cluster import driver
from theory.cluster.driver import Driver, make_run
from theory.cluster.setup import prepare
from theory.cluster.simulator import Memory
from theory.methods.compiled_loops import DRAWN, FEW, LOOPS, TOGETHER, DrawnLoop, PlainLoop
from theory.methods.schedule_values import STRETCH
from theory.methods.schedules import Polynomial, Suffix
from theory.problems.base import add_loss_gradient
from theory.problems.linear import linear_problem, loss, row_product, slope
from theory.problems.matrix import add_row

EF = th.ErrorFeedback()
STEP = th.InverseTime(2.0, 0.1, 30.0)
FREE = th.Identity(sparse=True)
COSTS = ("step", "samples", "rounds", "bits_up", "bits_down", "message_bytes_up", "message_bytes_down")
RESULTS = ("x", "last", "funs", "memory", "replica_values", "replica_last")


# --- problems and comparisons -----------------------------------------------------------------------------------------


def sparse_data(n: int, d: int, density: float, seed: int = 7):
    """Rows of many lengths, one of them empty, with labels -1 and +1."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density, format="lil", random_state=seed)
    X[3] = 0.0
    X = X.tocsr()
    X.eliminate_zeros()
    X.data = rng.standard_normal(X.data.size)
    return X, np.where(rng.random(n) < 0.5, -1.0, 1.0)


@linear_problem
class Halved(NamedTuple):
    """A loss that the package does not have: (a'x - b)^2 / 4."""

    A: NamedTuple
    b: np.ndarray
    l2: float


@loss.register(Halved)
def _(problem, i, margin):
    return 0.25 * (margin - problem.b[i]) ** 2


@slope.register(Halved)
def _(problem, i, margin):
    return 0.5 * (margin - problem.b[i])


SMALL, WIDE = sparse_data(60, 150, 0.08), sparse_data(80, 700, 0.02)
DENSE = (np.random.default_rng(3).standard_normal((40, 16)), np.where(np.arange(40) % 3 == 0, -1.0, 1.0))
ROOT = np.random.default_rng(1).standard_normal((7, 7)) / 3.0
LINEAR = {
    "logistic": th.logistic(SMALL, l2=0.02),
    "ridge": th.ridge(SMALL, l2=0.02),
    "logistic, l2 = 0": th.logistic(SMALL, l2=0.0),
    "own loss": Halved(*th.ridge(SMALL, l2=0.02)[:3]),
}
NOISY = {
    "diagonal": th.quadratic(np.linspace(0.5, 2.0, 7), covariance=np.linspace(0.0, 1.0, 7), optimum=np.arange(7) / 7.0),
    "full": th.quadratic(np.linspace(0.5, 2.0, 7), covariance=ROOT @ ROOT.T),
    "longest": th.quadratic(np.linspace(0.5, 1.5, FEW), covariance=0.1),
}


def sgd(compressor=None, **options):
    """Parallel SGD with a step that changes."""
    return th.ParallelSGD(compressor, **{"step": STEP, **options})


def local(compressor=None, **options):
    """Local SGD."""
    return th.LocalSGD(compressor, **{"step": STEP, "local_steps": 3, **options})


def assert_same_bits(one, other, what: str = "") -> None:
    """All that a run returns, but for the seconds."""
    for name in RESULTS:
        if hasattr(one, name):
            a, b = getattr(one, name), getattr(other, name)
            assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), f"{what} {name}"
    for column in (*COSTS, "f"):
        assert one.history[column].tobytes() == other.history[column].tobytes(), f"{what} {column}"


def quick(cases, *slow: str) -> list:
    """Names for a parametrisation, of which some are slow: what takes long is to compile them."""
    assert set(slow) <= set(cases)
    return [pytest.param(name, marks=pytest.mark.full if name in slow else ()) for name in cases]


@contextmanager
def counted(loop):
    """The steps that a compiled loop takes meanwhile."""
    found, advance = [], loop.advance

    def count(self, start, stop):
        found.append(stop - start)
        return advance(self, start, stop)

    loop.advance = count
    try:
        yield found
    finally:
        loop.advance = advance


@contextmanager
def no_loops():
    """Meanwhile calls are listed and replayed, also where a loop would do."""
    loop, driver.fast_loop = driver.fast_loop, lambda run: None
    try:
        yield
    finally:
        driver.fast_loop = loop


def assert_loop_is_the_text(loop, method, problem, *, replicas: int = 1, text: bool = True, **keywords) -> None:
    """The loop takes every step of the run, and gives what the replayed list and the text in Python give."""
    keywords = {"workers": 3, "seed": 5, "replicas": replicas, **keywords}
    with counted(loop) as taken:
        by_loop = th.run(method, problem, **keywords)
    jobs, rest = divmod(sum(taken), int(by_loop.history["step"][-1]))  # replicas are shared out among threads
    assert jobs >= 1 and rest == 0, "the loop did not run"
    assert by_loop.status in (0, 1) and np.isfinite(by_loop.x).all()
    with no_loops(), counted(loop) as taken:
        assert_same_bits(by_loop, th.run(method, problem, **keywords), "replayed:")
    assert not taken
    if text:
        with counted(loop) as taken:
            assert_same_bits(by_loop, th.run(method, problem, fast=False, **keywords), "text:")
        assert not taken


def fitting(method, problem, **keywords):
    """The loop that takes the place of a method's text, or None."""
    run = make_run(prepare(method, problem, **{"workers": 3, "steps": 8, **keywords}), Memory())
    return next((loop for loop in LOOPS if loop.fits(run)), None)


# --- the compiled loops -----------------------------------------------------------------------------------------------

START = np.linspace(-0.3, 0.3, 150)
PLAIN = {
    "shuffle": ("logistic", {"sampling": "shuffle"}, {}),
    "contiguous": ("logistic", {"shards": "contiguous"}, {"workers": 7}),
    "by label, shuffle": ("logistic", {"shards": "by_label", "sampling": "shuffle", "average": "uniform"}, {}),
    "uniform": ("ridge", {"average": "uniform"}, {}),
    "quadratic": ("logistic", {"average": "quadratic"}, {"workers": 1}),
    "suffix": ("ridge", {"average": Suffix(40)}, {"x0": START}),
    "polynomial": ("own loss", {"average": Polynomial(3.0, 1.0)}, {"x0": START}),
    "constant": ("ridge", {"step": th.Constant(0.05), "sampling": "shuffle"}, {"record_every": 7}),
    "own loss": ("own loss", {}, {"workers": 2}),
    "no l2 term": ("logistic, l2 = 0", {"average": "uniform"}, {"workers": 2}),
    "no l2 term, full": ("logistic, l2 = 0", {"compress": "full", "compressor": FREE}, {}),
    "single precision": ("logistic", {"average": "uniform"}, {"dtype": "float32", "x0": START}),
    "single precision, ridge": ("ridge", {"sampling": "shuffle"}, {"dtype": "float32", "wire_dtype": "float64"}),
    "double on the wire": ("ridge", {"average": "quadratic"}, {"wire_dtype": "float64"}),
    "replicas": ("logistic", {"average": "uniform"}, {"replicas": 5}),
    "replicas, shuffle": ("ridge", {"sampling": "shuffle", "shards": "contiguous"}, {"replicas": 4}),
    "x shrinks": ("logistic", {"step": th.Constant(40.0), "average": "uniform"}, {"x0": START}),
}


@pytest.mark.parametrize("name", quick(PLAIN, "single precision, ridge", "double on the wire"))
def test_plain_loop_is_the_text(name):
    """Plain SGD on sparse rows in one loop: the bits of the text, and of its calls replayed."""
    which, options, keywords = PLAIN[name]
    assert_loop_is_the_text(PlainLoop, sgd(**options), LINEAR[which], **{"steps": 90, **keywords})


def test_plain_loop_is_the_text_over_many_steps():
    """Rows are drawn 512 together and rates filled in for 16,384 steps: the edges of both are crossed."""
    steps = STRETCH + DRAWN + 5
    method = sgd(average="quadratic", sampling="shuffle")
    assert_loop_is_the_text(PlainLoop, method, LINEAR["logistic"], steps=steps, text=False, record_every=3001)
    method = sgd(average="uniform", step=th.Constant(0.05))
    assert_loop_is_the_text(PlainLoop, method, LINEAR["ridge"], steps=2 * DRAWN + 1, workers=2)


DRAWINGS = {
    "last": ("diagonal", {}, {}),
    "uniform": ("diagonal", {"average": "uniform"}, {"workers": 1}),
    "quadratic, full": ("full", {"average": "quadratic"}, {}),
    "suffix, full": ("full", {"average": Suffix(40)}, {"record_every": 13}),
    "polynomial": ("diagonal", {"average": Polynomial(3.0, 1.0), "step": th.Constant(0.2)}, {}),
    "radius": ("diagonal", {"radius": 0.5, "average": "uniform"}, {"workers": 2}),
    "radius, full": ("full", {"radius": 0.4, "step": th.Constant(0.2)}, {"replicas": 3}),
    "replicas": ("diagonal", {"average": "uniform"}, {"replicas": 6}),
    "replicas, full": ("full", {}, {"replicas": 4, "workers": 1, "record_every": 50}),
    "single precision": ("diagonal", {"average": "uniform"}, {"dtype": "float32"}),
    "single precision, full": ("full", {"radius": 0.5}, {"dtype": "float32", "replicas": 3}),
    "double on the wire": ("full", {"average": "uniform"}, {"wire_dtype": "float64", "replicas": 2}),
    "single, double on the wire": ("diagonal", {}, {"wire_dtype": "float64", "dtype": "float32"}),
    "the longest x": ("longest", {"average": "uniform"}, {"workers": 5}),
}


@pytest.mark.parametrize(
    "name", quick(DRAWINGS, "single precision, full", "double on the wire", "single, double on the wire")
)
def test_drawn_loop_is_the_text(name):
    """Plain SGD with drawn noise in one loop, many steps' noise at once: the bits of the text."""
    which, options, keywords = DRAWINGS[name]
    problem = NOISY[which]
    keywords = {"steps": 2 * TOGETHER + 3, "x0": np.linspace(0.2, 1.0, problem.d), **keywords}
    assert_loop_is_the_text(DrawnLoop, sgd(th.Identity(), **options), problem, **keywords)


def test_drawn_loop_is_the_text_over_many_steps():
    """More steps than rates are held at a time."""
    method = sgd(th.Identity(), average="quadratic", radius=0.9)
    steps = STRETCH + TOGETHER + 5
    assert_loop_is_the_text(DrawnLoop, method, NOISY["full"], steps=steps, text=False, record_every=5001, replicas=2)


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, PlainLoop),
        ({"batch": 2}, None),
        ({"momentum": 0.5}, None),
        ({"radius": 1.0}, None),
        ({"compressor": th.Identity()}, None),
        ({"compressor": FREE, "compress": "full"}, None),
        ({"compressor": th.TopK(5), "feedback": EF}, None),
        ({"batch": th.GrowingBatch(1.5)}, None),
    ],
)
def test_when_the_plain_loop_fits(options, expected):
    assert fitting(sgd(**options), LINEAR["logistic"]) is expected
    assert fitting(sgd(**options), th.nonconvex_logistic(SMALL, 0.02)) is None  # whose rows are not all there is
    assert fitting(sgd(**options), th.logistic(DENSE, l2=0.02)) is None


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, DrawnLoop),
        ({"radius": 1.0}, DrawnLoop),
        ({"batch": 2}, None),
        ({"momentum": 0.5}, None),
        ({"momentum": 0.5, "radius": 1.0}, None),
        ({"exchange": "gather"}, None),
        ({"feedback": EF}, None),
        ({"compressor": th.QSGD(3)}, None),
        ({"aggregation": "majority"}, None),
    ],
)
def test_when_the_drawn_loop_fits(options, expected):
    assert fitting(sgd(**options), NOISY["diagonal"]) is expected
    assert fitting(sgd(**options), th.quadratic(np.ones(FEW + 1), covariance=0.1)) is None
    assert fitting(sgd(**options), th.sine_quadratic(np.ones(5), 0.5, 1.0)) is None


def test_local_steps_have_no_loop():
    """Not even with one of them in a round: the average counts the workers' own iterates."""
    assert fitting(local(local_steps=1), LINEAR["logistic"]) is None
    assert fitting(local(local_steps=1), NOISY["diagonal"]) is None


def test_loops_name_their_tests():
    """What `show` prints of a loop can be run."""
    here = Path(__file__)
    for loop in LOOPS:
        file, _, test = loop.test.partition("::")
        assert (here.parents[2] / file).samefile(here) and test in globals()


# --- the replayed list ------------------------------------------------------------------------------------------------

QSGD, SKETCH = th.QSGD(7), th.CountSketch(width=8)
CONEF, ICONEF = th.ContractiveErrorFeedback, th.ImprovedContractiveErrorFeedback
REDUCED = th.RandK(5, shared=True)
RULES = {
    "none": th.NoFeedback(),
    "memory": EF,
    "partial": th.PartialErrorFeedback(0.3),
    "ConEF": CONEF(th.Natural()),
    "ConEF, beta": CONEF(QSGD, 0.4),
    "ConEF, sketch": CONEF(SKETCH),
    "iConEF 1": ICONEF(th.Natural(), version=1),
    "iConEF 2": ICONEF(th.Natural(), version=2),
    "linear sketch": th.LinearSketchFeedback(SKETCH, 0.8),
}
LISTS = {
    "momentum": sgd(QSGD, momentum=0.9),
    "momentum, memory, loss": sgd(th.TopK(4), momentum=0.9, feedback=EF, compress="loss"),
    "nesterov": sgd(QSGD, momentum=0.8, nesterov=True, average="uniform"),
    "nesterov, loss": sgd(th.TopK(4), momentum=0.8, nesterov=True, feedback=EF, compress="loss"),
    "majority": sgd(th.Sign(), aggregation="majority", step=th.Constant(0.01)),
    "majority, loss, radius": sgd(th.Sign(), aggregation="majority", compress="loss", radius=0.4),
    "radius": sgd(QSGD, radius=0.3, average="quadratic"),
    "radius, momentum": sgd(th.Identity(), radius=0.3, momentum=0.5),
    "batch, shuffle": sgd(QSGD, batch=3, sampling="shuffle", shards="by_label"),
    "growing": sgd(QSGD, batch=th.GrowingBatch(1.2)),
    "growing, shuffle": sgd(th.Identity(), batch=th.GrowingBatch(1.1, 2, "ceil"), sampling="shuffle"),
    "gather": sgd(th.Identity(), exchange="gather", average=Suffix(9)),
    "reduce": sgd(REDUCED, exchange="reduce", feedback=EF),
    "gather what could be reduced": sgd(REDUCED, exchange="gather", feedback=EF),
    "reduce a sketch": sgd(th.CountSketch(width=8), feedback=EF),
    "opening, maximum": sgd(th.TernGrad(shared=True), average="uniform"),
    "opening, buckets": sgd(th.Bucketed(th.TernGrad(shared=True), 8), feedback=EF),
    "opening, ConEF": sgd(th.TernGrad(shared=True), feedback=CONEF(th.Natural(), 0.5)),
    "opening, mean": sgd(th.PowerSGD(4, 4, 2), feedback=EF, momentum=0.5),
    "opening, mean, gathered": sgd(th.PowerSGD(4, 4, 2), feedback=EF, exchange="gather"),
    "local": local(th.Identity()),
    "local, memory": local(th.TopK(4), feedback=EF, average="quadratic"),
    "local, partial, batch": local(QSGD, feedback=th.PartialErrorFeedback(0.2), batch=2),
    "local, ConEF": local(th.TopK(4), feedback=CONEF(th.Natural()), average="uniform"),
    "local, growing, momentum": local(QSGD, batch=th.GrowingBatch(1.1), server=th.Momentum(0.5)),
    "local, shuffle, contiguous": local(REDUCED, sampling="shuffle", shards="contiguous"),
}
LISTS |= {f"{rule}, top-k": sgd(th.TopK(4), feedback=RULES[rule]) for rule in RULES}
LISTS |= {f"{rule}, QSGD": sgd(QSGD, feedback=RULES[rule], average="uniform") for rule in RULES}
SLOW = re.compile("nesterov, loss|reduce a|opening|iConEF|ConEF, (beta|sketch)|linear|local, (ConEF|partial|growing)")
SPARSE_LISTS = {
    "sparse, batch": sgd(batch=3, average="uniform"),
    "sparse, momentum": sgd(momentum=0.9, average="quadratic"),
    "sparse, radius": sgd(radius=0.1, sampling="shuffle"),
    "sparse, top-k": sgd(th.TopK(5)),
    "sparse, top-k, memory": sgd(th.TopK(5), feedback=EF, average="quadratic"),
    "sparse, top-k, partial": sgd(th.TopK(5), feedback=th.PartialErrorFeedback(0.3), batch=2),
    "sparse, top-k, memory, momentum": sgd(th.TopK(5), feedback=EF, momentum=0.9),
    "sparse, rand-k, memory, loss": sgd(th.RandK(9), feedback=EF, compress="loss"),
    "sparse, rand-k, reduced": sgd(th.RandK(9, shared=True), feedback=EF),
    "sparse, local": local(th.TopK(5), feedback=EF, batch=2),
    "sparse, dense messages": sgd(QSGD, feedback=EF),
}

SPARSE_RANDOM = [name for name in SPARSE_LISTS if "rand-k" in name]


def assert_list_is_the_text(method, problem, **keywords) -> None:
    """A list that is replayed, and the text in Python."""
    keywords = {"workers": 4, "steps": 24, "seed": 2, "x0": np.linspace(-0.2, 0.3, problem.d), **keywords}
    with no_loops():
        assert_same_bits(th.run(method, problem, **keywords), th.run(method, problem, fast=False, **keywords))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", quick(LISTS, *filter(SLOW.match, LISTS)))
def test_replayed_list_is_the_text(name):
    """Dense rows: every feedback rule, server, topology and schedule."""
    assert_list_is_the_text(LISTS[name], th.logistic(DENSE, l2=0.02))


@pytest.mark.parametrize(
    "name",
    quick(SPARSE_LISTS, "sparse, top-k", "sparse, top-k, memory, momentum", *SPARSE_RANDOM),
)
def test_replayed_list_is_the_text_on_sparse_rows(name):
    """The same where rows are sparse."""
    method, problem = SPARSE_LISTS[name], LINEAR["logistic"]
    assert (prepare(method, problem, workers=4, steps=24).sparse is not None) == (name != "sparse, dense messages")
    assert_list_is_the_text(method, problem)


MANY = (
    "momentum, memory, loss",
    "radius",
    "partial, top-k",
    "local, memory",
    "ConEF, top-k",
    "growing",
    "opening, maximum",
    "opening, mean",
)


@pytest.mark.parametrize("name", quick(MANY, "opening, maximum", "opening, mean"))
def test_replayed_list_is_the_text_for_replicas(name):
    """Several replicas side by side, the first of which is the run by itself."""
    method, problem = LISTS[name], th.logistic(DENSE, l2=0.02)
    assert_list_is_the_text(method, problem, replicas=5)
    one, many = (th.run(method, problem, workers=4, steps=24, seed=2, replicas=r) for r in (1, 5))
    assert one.x.tobytes() == many.x[0].tobytes() and one.last.tobytes() == many.last[0].tobytes()


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["none, QSGD", "memory, top-k", "local, memory", "nesterov", "radius", "opening, mean"]
)
def test_replayed_list_is_the_text_in_single_precision(name):
    """With float32 in vectors, and float64 in messages."""
    problem = th.logistic(DENSE, l2=0.02)
    assert_list_is_the_text(LISTS[name], problem, dtype="float32")
    assert_list_is_the_text(LISTS[name], problem, wire_dtype="float64")


@pytest.mark.full
@pytest.mark.parametrize("name", ["sparse, top-k, memory", "sparse, momentum", "sparse, local", "sparse, radius"])
def test_replayed_list_is_the_text_on_sparse_rows_in_single_precision(name):
    """The same on sparse rows."""
    assert_list_is_the_text(SPARSE_LISTS[name], LINEAR["logistic"], dtype="float32")


def test_a_list_is_replayed_in_one_piece():
    """Where nothing in the text is Python's, and the list is as long as what is called."""
    run = make_run(prepare(sgd(th.TopK(4), feedback=EF), th.logistic(DENSE, l2=0.02), workers=4, steps=8), Memory())
    calls = Driver(run)._calls
    names = "Combine Draw Gradient Keys Quantize Measure Accumulate Accumulate"
    assert [call.name for call in calls] == names.split()
    assert all(call.addresses is not None for call in calls) and len(Driver(run)._pieces) == 1
    assert Driver(run, listed=False)._pieces == []


# --- sparse rows against dense ones -----------------------------------------------------------------------------------

SELECTORS = {
    "top-k": th.TopK(8),
    "rand-k": th.RandK(8),
    "rand-k, unbiased": th.RandK(350, unbiased=True),
    "rand-k, shared": th.RandK(8, shared=True),
    "block": th.RandomBlock(8),
    "Bernoulli": th.Bernoulli(0.8),
    "ultra": th.Ultra(0.5),
    "non-zeros": FREE,
}
WAYS = {
    "no memory": {},
    "no memory, loss": {"compress": "loss", "average": "uniform"},
    "memory": {"feedback": EF, "average": "quadratic"},
    "memory, loss, batch": {"feedback": EF, "compress": "loss", "batch": 3, "sampling": "shuffle"},
    "partial": {"feedback": th.PartialErrorFeedback(0.3)},
    "partial, loss": {"feedback": th.PartialErrorFeedback(0.3), "compress": "loss"},
    "momentum": {"momentum": 0.9, "average": "uniform"},
    "momentum, loss": {"momentum": 0.9, "nesterov": True, "compress": "loss"},
    "momentum, memory": {"momentum": 0.8, "feedback": EF},
    "momentum, memory, loss": {"momentum": 0.8, "nesterov": True, "feedback": EF, "compress": "loss", "batch": 2},
    "momentum, partial": {"momentum": 0.5, "feedback": th.PartialErrorFeedback(0.3), "average": "uniform"},
    "radius": {"radius": 0.3, "average": "uniform"},
    "radius, loss": {"radius": 0.3, "compress": "loss", "average": Suffix(300)},
    "radius, momentum": {"radius": 0.3, "momentum": 0.5, "compress": "loss", "average": "uniform"},
    "local": {"local_steps": 4},
    "local, memory": {"local_steps": 4, "feedback": EF, "batch": 2},
}
QUICK = {
    "top-k": ("no memory", "memory", "partial", "momentum, memory", "radius", "local, memory", "memory, loss, batch"),
    "rand-k": ("memory",),
    "rand-k, shared": ("memory",),
    "Bernoulli": ("memory",),
    "non-zeros": ("no memory, loss", "momentum, loss", "radius, loss", "radius, momentum"),
}


def pairs() -> list:
    """Selectors and ways; most are slow, for what takes long is to compile them."""
    found = []
    for selector in SELECTORS:
        for way in WAYS:
            plain = "feedback" in WAYS[way] or ("local" not in way and WAYS[way].get("compress") != "loss")
            if selector == "non-zeros" and plain:
                continue  # of a memory, or with an l2 term, nearly all entries are non-zeros
            marks = () if way in QUICK.get(selector, ()) else pytest.mark.full
            found.append(pytest.param(selector, way, marks=marks, id=f"{selector}-{way}"))
    return found


@pytest.mark.parametrize("selector, way", pairs())
def test_sparse_rows_agree_with_dense_ones(selector, way):
    """1,000 steps on sparse rows and on the same matrix with its zeros: the same entries are sent."""
    method = (local if "local" in way else sgd)(SELECTORS[selector], **WAYS[way])
    l2 = 0.0 if selector == "non-zeros" and "local" in way else 0.02  # otherwise each worker's l2 term is compressed
    X, y = WIDE
    keywords = dict(workers=3, steps=1000, seed=4, wire_dtype="float64", x0=np.sin(np.arange(X.shape[1])) / 30.0)
    problems = th.logistic((X, y), l2=l2), th.logistic((X.toarray(), y), l2=l2)
    assert prepare(method, problems[0], **keywords).sparse is not None
    assert prepare(method, problems[1], **keywords).sparse is None
    few, all_ = (th.run(method, problem, **keywords) for problem in problems)
    assert few.status == all_.status and few.history["step"][-1] == all_.history["step"][-1] == 1000
    for column in COSTS:
        np.testing.assert_array_equal(few.history[column], all_.history[column], column)
    for name in ("x", "last", "memory"):
        a, b = getattr(few, name), getattr(all_, name)
        assert np.linalg.norm(a - b) <= 1e-10 * np.linalg.norm(b), name
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10 * np.abs(b).max(), err_msg=name)
    np.testing.assert_allclose(few.history["f"], all_.history["f"], rtol=1e-10)


@linear_problem
class TwiceTheSlope(NamedTuple):
    """Least squares whose stochastic gradients are its own: twice the slope."""

    A: object
    b: np.ndarray
    l2: float


@loss.register(TwiceTheSlope)
def _(problem, i, margin):
    return 0.5 * (margin - problem.b[i]) ** 2


@slope.register(TwiceTheSlope)
def _(problem, i, margin):
    return margin - problem.b[i]


@add_loss_gradient.register(TwiceTheSlope)
def _(problem, i, stream, weight, x, out):
    add_row(problem.A, i, 2.0 * weight * slope(problem, i, row_product(x, problem.A, i)), out)


def test_a_problem_with_gradients_of_its_own_has_no_plain_loop():
    """The loop multiplies the row by the slope; a class that registers other gradients gets those."""
    X = sp.random(40, 30, 0.2, format="csr", random_state=1)
    problem = TwiceTheSlope(*th.ridge((X, np.linspace(-1.0, 1.0, 40)), l2=0.1)[:3])
    method = th.ParallelSGD(step=th.Constant(0.1))
    fast, text = (th.run(method, problem, workers=2, steps=20, fast=fast).x for fast in (True, False))
    assert np.array_equal(fast, text)
