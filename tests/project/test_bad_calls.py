"""Bad input, a row for each call: the exception's type, the argument that it names, and what it says is allowed.

From outside: the API, the command line, files of methods and studies, records, LIBSVM files, messages.
"""

from __future__ import annotations

import bz2
import gzip
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import theory as th
from theory import cluster, measure
from theory.data import DataError, load_data, make_dataset, require_binary
from theory.experiment import Configuration
from theory.experiment.cli import main
from theory.experiment.records import read_record
from theory.reporting.files import ConfigurationError, FileRefused, RecordError, read_toml
from theory.reporting.json_values import read_record as read_figure
from theory.studies.shared.configuration import StudyConfiguration, own_study
from theory.wire import WireError

X, Y = np.eye(4), [1, -1, 1, -1]
V = np.array([1.0, -3.0, 2.0])
QUADRATIC = th.quadratic(np.ones(4), covariance=0.0)
STEP = th.Constant(0.1)
METHOD = th.ParallelSGD(th.TopK(1), step=STEP)
REAL, FLOATS, COUNT = "real numbers", "float32 or float64", "an integer, at least 1"
FRAME = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "city": ["Bern", "Basel", "Bern", "Genf"]})


class Row(NamedTuple):
    """A call, the type of its exception, the argument that is named, and a part of what is said to be allowed."""

    call: Callable[[], Any]
    error: type[Exception]
    named: str
    allowed: str


def csr(indices=(0, 1, 2, 3), indptr=(0, 1, 2, 3, 4), data=None) -> Any:
    """A sparse matrix whose arrays were changed after it was made."""
    made = sp.csr_array(np.eye(4) if data is None else np.diag(data))
    made.indices, made.indptr = np.array(indices, made.indices.dtype), np.array(indptr, made.indptr.dtype)
    return made


def coo(row) -> Any:
    made = sp.coo_array(np.eye(4))
    made.coords = (np.array(row, np.int32), made.coords[1])
    return made


def logistic(X=X, y=Y, l2=0.1, **more) -> Any:
    return th.logistic((X, y), l2, **more)


def run(**changes) -> Any:
    given = {"method": METHOD, "problem": QUADRATIC, "workers": 1, "steps": 1} | changes
    return th.run(given.pop("method"), given.pop("problem"), **given)


def compress(v=V, **more) -> Any:
    return th.compress(th.TopK(1), v, **({"key": 0} | more))


def decode(**more) -> Any:
    return th.decode(th.encode(th.TopK(1), V, 0), **more)


# --- the API ----------------------------------------------------------------------------------------------------------

DATA = {
    "complex entries": Row(lambda: logistic(X * 1j), DataError, "X", REAL),
    "complex labels": Row(lambda: th.ridge((X, np.array(Y) * 1j), 0.1), DataError, "y", REAL),
    "complex sparse": Row(lambda: logistic(sp.csr_array(X * 1j)), DataError, "X", REAL),
    "objects": Row(lambda: logistic(X.astype(object)), DataError, "X", r"np.asarray\(..., float\)"),
    "texts among objects": Row(lambda: logistic(np.array([["a", 1]] * 4, object)), DataError, r"X.*'a' at", REAL),
    "texts": Row(lambda: logistic(X.astype(str)), DataError, r"X.*'1.0' at position \(0, 0\)", REAL),
    "dates": Row(lambda: logistic(np.zeros((4, 1), "M8[D]")), DataError, r"X.*datetime64", REAL),
    "a text column": Row(lambda: logistic(FRAME), DataError, "column 'city': got 'Bern' at position 0", REAL),
    "masked": Row(lambda: logistic(np.ma.masked_equal(X, 0)), DataError, "X", "without a mask"),
    "ragged": Row(lambda: logistic([[1], [1, 2], [1], [1]]), DataError, "X", "rows of one length"),
    "a vector": Row(lambda: logistic(np.ones(4)), DataError, "X", "a matrix of one row for each label"),
    "no rows": Row(lambda: logistic(np.ones((0, 3)), []), DataError, "no rows", "give some data"),
    "no columns": Row(lambda: logistic(np.ones((4, 0))), DataError, "no columns", "give some data"),
    "NaN": Row(lambda: logistic(X * np.nan), DataError, "entries are NaN", "drop those rows"),
    "Inf": Row(lambda: logistic(np.full((4, 2), np.inf)), DataError, "entries are NaN or inf", "drop those rows"),
    "1e308": Row(lambda: logistic(np.diag([1e308, 1, 1, 1])), DataError, "X.*1e.308", "squares can be summed"),
    "1e308 sparse": Row(lambda: logistic(csr(data=[1e308, 1, 1, 1])), DataError, "X", "squares can be summed"),
    "1e308 as a target": Row(lambda: th.ridge((X, [1e308, 1, 1, 1]), 0.1), DataError, "y", "squares can be summed"),
    "an index too large": Row(lambda: logistic(csr([0, 1, 2, 9])), DataError, "X: got the column index 9", "0 to 3"),
    "an index below 0": Row(lambda: logistic(csr([0, 1, 2, -1])), DataError, "X.*index -1", "0 to 3"),
    "decreasing indptr": Row(lambda: logistic(csr(indptr=[0, 3, 2, 3, 4])), DataError, "X.*indptr", "never decreases"),
    "indptr past the end": Row(lambda: logistic(csr(indptr=[0, 1, 2, 3, 9])), DataError, "X.*indptr", "never decrease"),
    "indptr below 0": Row(lambda: logistic(csr(indptr=[-4, 1, 2, 3, 4])), DataError, "X.*indptr", "never decreases"),
    "csc out of range": Row(lambda: logistic(csr([0, 1, 2, 7]).T), DataError, "X.*row index 7", "0 to 3"),
    "coo out of range": Row(lambda: logistic(coo([0, 1, 2, 8])), DataError, "X.*row index 8", "0 to 3"),
    "labels for other rows": Row(lambda: logistic(y=[1, -1]), DataError, "labels of shape", "one label for each row"),
    "labels in a column": Row(lambda: logistic(y=np.ones((4, 1))), DataError, "labels of shape", "one label for each"),
    "no label": Row(lambda: logistic(y=[None, 1, 1, 1]), DataError, "y: got None at position 0", REAL),
    "one class": Row(lambda: logistic(y=[1, 1, 1, 1]), DataError, "data has one class", "needs two"),
    "three classes": Row(lambda: logistic(y=[0, 1, 2, 1]), DataError, "3 different labels", "two classes are needed"),
    "three texts": Row(lambda: logistic(y=list("abca")), DataError, "y: got 3 different texts", "or two texts"),
    "texts to fit": Row(lambda: th.ridge((X, list("abab")), 0.1), DataError, "y: got 'a' at position 0", REAL),
    "texts and numbers": Row(lambda: logistic(y=np.array(["a", 1, 1, "a"], object)), DataError, "y: got 'a'", REAL),
    "X without y": Row(lambda: th.logistic(X, 0.1), ValueError, "data: got 'ndarray'", r"a pair \(X, y\)"),
    "three of a pair": Row(lambda: th.logistic((X, Y, 1), 0.1), ValueError, "data", r"a pair \(X, y\)"),
    "no data": Row(lambda: th.logistic(None, 0.1), ValueError, "data", r"a pair \(X, y\)"),
    "l2 as a truth": Row(lambda: logistic(l2=True), ValueError, "l2: got True", "a number"),
    "l2 as a text": Row(lambda: logistic(l2="1"), ValueError, "l2: got '1'", "a number"),
    "l2 complex": Row(lambda: logistic(l2=1j), ValueError, "l2", "a number"),
    "l2 NaN": Row(lambda: logistic(l2=np.nan), ValueError, "l2", "a finite number, at least 0"),
    "l2 below 0": Row(lambda: logistic(l2=-1.0), ValueError, "l2", "a finite number, at least 0"),
    "integers": Row(lambda: logistic(dtype=int), ValueError, "dtype: got 'int64'", FLOATS),
    "no type": Row(lambda: logistic(dtype="nonsense"), ValueError, "dtype: got 'nonsense'", FLOATS),
    "swapped bytes": Row(lambda: logistic(dtype=">f8"), ValueError, "dtype", FLOATS),
    "a name that is none": Row(lambda: make_dataset(X, Y, 3), DataError, "name: got 3", "a text"),
    "complex curvatures": Row(lambda: th.quadratic([1j], covariance=0.0), ValueError, "diagonal", REAL),
    "curvatures as texts": Row(lambda: th.quadratic(["a"], covariance=0.0), ValueError, "diagonal: got 'a'", REAL),
    "curvatures of 1e308": Row(lambda: th.quadratic([1e308] * 2, covariance=0.0), ValueError, "diagonal", "squares"),
    "a concave one": Row(lambda: th.quadratic([-1.0], covariance=0.0), ValueError, "diagonal", "numbers, at least 0"),
    "a variance below 0": Row(lambda: th.quadratic([1.0], covariance=-1.0), ValueError, "covariance", "at least 0"),
    "a complex variance": Row(lambda: th.quadratic([1.0], covariance=1j), ValueError, "covariance", REAL),
    "a text optimum": Row(lambda: th.quadratic([1.0], covariance=0.0, optimum="a"), ValueError, "optimum", REAL),
    "x as texts": Row(lambda: th.value(QUADRATIC, ["a"] * 4), ValueError, "x", REAL),
    "x complex": Row(lambda: th.value(QUADRATIC, np.ones(4) * 1j), ValueError, "x", REAL),
    "x NaN": Row(lambda: th.value(QUADRATIC, np.full(4, np.nan)), ValueError, "x", "finite numbers"),
    "x too long": Row(lambda: th.value(QUADRATIC, np.ones(5)), ValueError, "x", r"shape \(4,\)"),
    "d as a truth": Row(lambda: th.function(np.sum, np.sign, d=True), ValueError, "d: got True", COUNT),
    "nothing to load": Row(lambda: load_data(None), DataError, "name_or_path: got None", "the path of a file"),
    "a number to load": Row(lambda: load_data(3), DataError, "name_or_path: got 3", "the path of a file"),
    "no such file": Row(lambda: load_data("/nowhere/x.svm"), DataError, "no file /nowhere/x.svm", "give the path"),
    "no such data": Row(lambda: load_data("rcv2"), DataError, 'unknown data set "rcv2"', "did you mean rcv1"),
    "a path with NUL": Row(lambda: load_data("a\0b"), DataError, "unknown data set", "give the path"),
    "an endless device": Row(lambda: load_data("/dev/zero"), DataError, "no file /dev/zero", "give the path|Give the"),
    "shards to a number": Row(lambda: th.shard("digits", 3), DataError, "out: got 3", "the path of a folder to make"),
    "shards to no path": Row(lambda: th.shard("digits", "a\0b"), DataError, "out: got 'a", "the path of a folder"),
    "columns as a truth": Row(lambda: load_data("digits", n_features=True), DataError, "n_features", "an integer"),
    "a seed as a truth": Row(lambda: load_data("digits").split(0.5, True), DataError, "seed is True", "non-negative"),
}

RUNS = {
    "workers as a truth": Row(lambda: run(workers=True), ValueError, "workers: got True", COUNT),
    "workers as a float": Row(lambda: run(workers=1.0), ValueError, "workers: got 1.0", COUNT),
    "no workers": Row(lambda: run(workers=0), ValueError, "workers", COUNT),
    "2**40 workers": Row(lambda: run(workers=2**40), ValueError, "workers", "an integer, at most 16777216"),
    "2**40 replicas": Row(lambda: run(replicas=2**40), ValueError, "replicas", "an integer, at most 16777216"),
    "steps as a truth": Row(lambda: run(steps=True), ValueError, "steps: got True", COUNT),
    "2**63 steps": Row(lambda: run(steps=2**63), ValueError, "steps", f"an integer, at most {2**53}"),
    "2**63 samples": Row(lambda: run(steps=None, samples=2**63), ValueError, "samples", "an integer, at most"),
    "2**53 steps of 8": Row(lambda: run(steps=2**53, workers=8), ValueError, "steps", "gradients of all workers"),
    "a row of 2**30 steps": Row(lambda: run(steps=2**30, record_every=1), ValueError, "record_every", "up to 16777216"),
    "steps and samples": Row(lambda: run(samples=3), ValueError, "steps, samples and epochs", "exactly one"),
    "neither": Row(lambda: run(steps=None), ValueError, "steps, samples and epochs", "exactly one"),
    "rows as a truth": Row(lambda: run(record_every=True), ValueError, "record_every: got True", COUNT),
    "a seed as a text": Row(lambda: run(seed="3"), ValueError, "seed: got '3'", r"0 to 2\*\*64 - 1"),
    "seeds as texts": Row(lambda: run(seed=["1", "2"]), ValueError, "seed: got '1'", r"0 to 2\*\*64 - 1"),
    "a list of a kind": Row(lambda: th.listing(["graphs"]), ValueError, r"kind: got \['graphs'\]", "methods, "),
    "a seed as a float": Row(lambda: run(seed=0.5), ValueError, "seed: got 0.5", r"0 to 2\*\*64 - 1"),
    "a complex start": Row(lambda: run(x0=np.ones(4) * 1j), ValueError, "x0: got complex", REAL),
    "a start of nothing": Row(lambda: run(x0=[None] * 4), ValueError, "x0: got None at position 0", REAL),
    "a ragged start": Row(lambda: run(x0=[[1], [1, 2]]), ValueError, "x0", "rows of one length"),
    "a start too long": Row(lambda: run(x0=np.ones(5)), ValueError, "x0", r"shape \(4,\)"),
    "an infinite start": Row(lambda: run(x0=np.full(4, np.inf)), ValueError, "x0", "finite numbers"),
    "integers in x": Row(lambda: run(dtype=int), ValueError, "dtype: got 'int64'", FLOATS),
    "halves on the wire": Row(lambda: run(wire_dtype=np.float16), ValueError, "wire_dtype", FLOATS),
    "no function to call": Row(lambda: run(callback=3), TypeError, "callback: got 3", "a function"),
    "yes and no": Row(lambda: run(compression_error="no"), ValueError, "compression_error", "True or False"),
    "fast as a text": Row(lambda: run(fast="no"), ValueError, "fast: got 'no'", "True or False"),
    "a class": Row(lambda: run(method=th.ParallelSGD), TypeError, "method", "a method, such as"),
    "a method's name": Row(lambda: run(method="sgd"), TypeError, "method: got 'sgd'", "a method, such as"),
    "a problem's name": Row(lambda: run(problem="rcv1"), TypeError, "problem", "a problem, from logistic"),
    "no communicator": Row(lambda: run(comm=3), TypeError, "comm: got 3", "a communicator"),
    "a graph of True": Row(lambda: th.mixing(th.Ring(), True), ValueError, "workers: got True", COUNT),
    "a complex matrix": Row(lambda: th.mixing(th.MixingMatrix(np.eye(2) * 1j), 2), ValueError, "matrix", REAL),
}

SETTINGS = {
    "a step NaN": Row(lambda: th.Constant(np.nan), ValueError, "eta", "a finite number above 0"),
    "a step as a text": Row(lambda: th.Constant("0.1"), ValueError, "eta: got '0.1'", "a number"),
    "a step as a truth": Row(lambda: th.Constant(True), ValueError, "eta: got True", "a number"),
    "a complex step": Row(lambda: th.Constant(1j), ValueError, "eta", "a number"),
    "a name to compress": Row(lambda: th.ParallelSGD("topk", step=STEP), TypeError, "compressor", "such as TopK"),
    "a class to compress": Row(lambda: th.ParallelSGD(th.TopK, step=STEP), TypeError, "compressor", "such as TopK"),
    "a batch as a truth": Row(lambda: METHOD._replace(batch=True).domain(), ValueError, "batch: got True", COUNT),
    "no batch": Row(lambda: th.ParallelSGD(step=STEP, batch=0), ValueError, "batch: got 0", COUNT),
    "2**63 in a batch": Row(lambda: th.ParallelSGD(step=STEP, batch=2**63), ValueError, "batch", "at most 100000000"),
    "a rule's name": Row(lambda: th.ParallelSGD(step=STEP, feedback="ef"), TypeError, "feedback", "such as Error"),
    "a server's name": Row(lambda: th.ParallelSGD(step=STEP, server="adam"), TypeError, "server", "such as Momentum"),
    "an unknown field": Row(lambda: th.ParallelSGD(stepp=STEP), TypeError, "'stepp'", "did you mean step"),
    "k as a truth": Row(lambda: th.TopK(True), ValueError, "k: got True", "an integer"),
    "k as a text": Row(lambda: th.TopK("3"), ValueError, "k: got '3'", "an integer"),
    "k of 2**63": Row(lambda: th.TopK(2**63), ValueError, "k", "an integer of 64 bits"),
    "half a k": Row(lambda: th.TopK(1.5), ValueError, "k: got 1.5", "an integer"),
    "no k": Row(lambda: th.RandK(0), ValueError, "k: got 0", COUNT),
    "2**62 levels": Row(lambda: th.QSGD(2**62), ValueError, "s", r"1 to 2\*\*24"),
    "unbiased as a text": Row(lambda: th.RandK(1, unbiased="no"), ValueError, "unbiased: got 'no'", "True or False"),
    "unbiased as 2": Row(lambda: th.RandK(1, unbiased=2), ValueError, "unbiased: got 2", "True or False"),
}

VECTORS = {
    "complex": Row(lambda: compress(V * 1j), TypeError, "v: got 'complex128'", FLOATS),
    "objects": Row(lambda: compress(V.astype(object)), TypeError, "v: got 'object'", FLOATS),
    "texts": Row(lambda: compress(np.array(["a"])), TypeError, "v: got 'str32'", FLOATS),
    "halves": Row(lambda: compress(V.astype(np.float16)), TypeError, "v: got 'float16'", FLOATS),
    "swapped bytes": Row(lambda: compress(V.astype(">f8")), TypeError, "v.*bytes in another order", FLOATS),
    "masked": Row(lambda: compress(np.ma.masked_equal(V, 2.0)), ValueError, "v", "without a mask"),
    "a matrix": Row(lambda: compress(np.ones((3, 1))), ValueError, "v: got '2 dimensions'", "one dimension"),
    "ragged": Row(lambda: compress([[1.0], [1.0, 2.0]]), ValueError, "v: got rows of different lengths", "one length"),
    "NaN": Row(lambda: compress(V * np.nan), ValueError, "v: got 'nan at position 0'", "finite numbers"),
    "1e308": Row(lambda: th.compress(th.QSGD(4), np.full(3, 1e308), 0), ValueError, "v", "smaller numbers"),
    "no wire": Row(lambda: compress(wire_dtype="foo"), ValueError, "wire_dtype: got 'foo'", FLOATS),
    "another out": Row(lambda: compress(out=np.ones(3, np.float32)), ValueError, "out", "of float64, length 3"),
    "out to read": Row(lambda: compress(out=np.broadcast_to(1.0, 3)), ValueError, "out", "contiguous, writable"),
    "a key as a float": Row(lambda: compress(key=0.5), ValueError, "key: got 0.5", r"0 to 2\*\*64 - 1"),
    "k beyond d": Row(lambda: th.compress(th.TopK(9), V, 0), ValueError, "k: got 9", "at most the length"),
    "no compressor": Row(lambda: th.encode("topk", V, 0), TypeError, "c: got 'topk'", "a compressor, such as"),
}

MESSAGES = {
    "no bytes": Row(lambda: th.decode("hello"), TypeError, "message: got str", "bytes"),
    "nothing": Row(lambda: th.decode(b""), WireError, "message", "too short"),
    "noise": Row(lambda: th.decode(b"th\x02" + bytes(range(60))), WireError, "message", "altered|truncated"),
    "another length": Row(lambda: decode(d=4), WireError, "message", "the receiver's d = 4"),
    "longer than allowed": Row(lambda: decode(max_d=2), WireError, "message", "up to max_d = 2"),
    "another compressor": Row(lambda: decode(compressor=th.TopK(2)), WireError, "message", "the receiver's TopK"),
    "no compressor": Row(lambda: decode(compressor="topk"), TypeError, "compressor: got 'topk'", "a compressor"),
    "d as a truth": Row(lambda: decode(d=True), ValueError, "d: got True", COUNT),
    "d below 0": Row(lambda: decode(d=-1), ValueError, "d: got -1", COUNT),
    "max_d as a text": Row(lambda: decode(max_d="a"), ValueError, "max_d: got 'a'", COUNT),
    "no type": Row(lambda: decode(dtype="foo"), ValueError, "dtype: got 'foo'", FLOATS),
    "cut": Row(lambda: th.decode(th.encode(th.TopK(1), V, 0)[:-1]), WireError, "message", "truncated or altered"),
    "longer": Row(lambda: th.decode(th.encode(th.TopK(1), V, 0) + b"x"), WireError, "message", "truncated or altered"),
}

TABLE = {"data": DATA, "run": RUNS, "setting": SETTINGS, "vector": VECTORS, "message": MESSAGES}


def refused(row: Row) -> None:
    with pytest.raises(row.error, match=f"(?s)({row.named}).*({row.allowed})") as raised:
        row.call()
    assert type(raised.value) is row.error


@pytest.mark.parametrize("row", [pytest.param(r, id=f"{t}: {n}") for t, rows in TABLE.items() for n, r in rows.items()])
def test_a_bad_call_is_refused(row):
    refused(row)


# --- calls as they are written: what is said, by the exception's type -------------------------------------------------

ROWS, NOISY = th.ridge((X, Y), 0.1), th.quadratic([1.0, 4.0], covariance=1.0)
SGD, MEM_SGD = th.ParallelSGD(step=STEP), th.ParallelSGD(th.TopK(1), STEP, th.ErrorFeedback())
LOCAL = th.LocalSGD(step=STEP, local_steps=4)
SATURATING = th.saturating_quadratic(np.ones(4), covariance=0.25)


def two_ones(*_) -> Any:
    """What is no vector of the right length."""
    return np.ones(2)


def train(method, problem=ROWS, **changes) -> Any:
    return th.run(method, problem, **({"workers": 2, "steps": 4} | changes))


def remembers(feedback) -> Any:
    return run(method=th.ParallelSGD(th.RandK(2), STEP, feedback))


def serves(server, exchange="gather") -> Any:
    return run(method=th.ParallelSGD(None, STEP, exchange=exchange, server=server), workers=4)


def lock_free(**changes) -> Any:
    given = {"compressor": th.TopK(1), "step": STEP, "feedback": th.ErrorFeedback()} | changes
    return th.run_lock_free(th.ParallelSGD(**given), NAMES["SPARSE"], threads=1, steps=5)


def by_catalyst(**changes) -> Any:
    return th.catalyst(SATURATING, **({"workers": 4, "samples": 100} | changes))


def fastest(**changes) -> Any:
    given = {"workers": 3, "fastest": 2, "rounds": 2, "step": 0.1, "times": th.ShiftedExponential(0.0, 1.0)}
    return th.run_fastest_k(th.quadratic([1.0], covariance=1.0), **(given | changes))


def comparison(**changes) -> Any:
    given = {"methods": [SGD], "problem": QUADRATIC, "workers": 1, "steps": 2} | changes
    return th.compare(given.pop("methods"), given.pop("problem"), **given)


def round_time(**changes) -> Any:
    given = {"method": SGD, "d": 100, "ranks": 4, "message_bytes": 40.0} | changes
    return th.round_seconds(th.NETWORKS["10 Gbit/s"], given.pop("method"), given.pop("d"), **given)


def largest_batch(**options) -> Any:
    return StudyConfiguration.from_dict({"study": "largest-batch", **options})


NAMES = globals() | {name: getattr(th, name) for name in dir(th)}
NAMES |= {
    "Configuration": Configuration,
    "require_binary": require_binary,
    "cluster": cluster,
    "measure": measure,
    "inf": np.inf,
    "nan": np.nan,
    "run": run,
    "GROWING": SGD._replace(batch=th.GrowingBatch(3.0, first=5)),
    "BY_LABEL": LOCAL._replace(step="theory", average="quadratic", shards="by_label"),
    "LAYERS": (slice(0, 2), slice(2, 4)),
    "NETWORK": th.two_layer((X, Y), 2),
    "NONCONVEX": th.nonconvex_logistic((X, Y), 0.1),
    "SKETCH": th.CountSketch(2, hash=th.BALANCED),
    "SPARSE": th.logistic((sp.csr_array(X), Y), 0.1),
}
CALLS: dict[type, dict[str, str]] = {
    ValueError: {
        "softmax((np.ones((1025, 1)), np.arange(1025.0)), 0.1)": "data.*2 to 1024 different",
        "quadratic([1.0] * 2, covariance=[[0, 1], [0, 0]])": "covariance.*C = C'",
        "shard('digits', 'out', workers=True)": "workers: got True.*an integer, at least 1",
        "shard('digits', 'out', workers=0)": "workers: got 0, allowed: an integer, at least 1",
        "shard('digits', 'out', threads=0)": "threads: got 0",
        "shard('rcv1-like', 'out', rows=1)": "rows: got 1, allowed: an integer, at least 2",
        "shard('digits', 'out', zero_based=1)": "zero_based: got 1",
        "check_gradient(quadratic([1.0], 0.0), seed=-1)": "seed: got -1.*integer, at least 0",
        "compare(ParallelSGD(step=0.1), quadratic([1.0], 0.0), workers=1, steps=2, epsilon='a')": (
            "epsilon: got 'a'.*a number"
        ),
        "ParallelSGD(TopK(1), step='0.1')": "step: got .0.1..*such as Constant",
        "ParallelSGD(TopK(1), step=-0.1)": "step: got -0.1.*a number above 0",
        # runs
        "run(replicas=2, callback=print)": "callback",
        "run(replicas=2, compression_error=True)": "compression_error: got True, allowed: False with replicas",
        "run(method=ParallelSGD(TopK(5), STEP))": "k",
        "run(method=SGD._replace(average=Suffix(99)))": "average",
        "run(method=SGD._replace(shards='contiguous'))": "shards.*no rows",
        "train(SGD._replace(shards='contiguous'), workers=5)": "workers",
        "run(seed=-1)": "seed: got -1, allowed: an integer from 0",
        "run(seed=True)": "seed: got True, allowed: an integer from 0",
        "run(seed=2**64)": "seed: got .*, allowed: an integer from 0",
        "run(seed=[1, 1])": "seed: got",
        "run(checkpoint='new', every=0)": "every: got 0",
        "run(checkpoint='new', every='soon')": "every: got 'soon', allowed: a number of steps",
        "run(checkpoint='new', every=True)": "every: got True",
        "run(patience=-1.0)": "patience: got -1.0, allowed: seconds",
        "run(patience=nan)": "patience: got nan",
        "run(patience=10**400)": "patience: got .* allowed: seconds",
        "run(dtype='\\ud800')": "dtype: got .*, allowed: float32 or float64",
        "train(GROWING, steps=None, samples=2**40)": "batch: got .*, allowed: up to 100000000",
        "robust_mean(Median(), np.ones((6, 2)), t=2**63)": "t: got 9223372036854775808",
        "robust_mean(Median(), [[10**400, 1.0]])": "messages: got .*, allowed: real numbers",
        "proximal(QUADRATIC, [10**400] * 4, 1.0)": "centre: got .*, allowed: real numbers",
        "check_gradient(QUADRATIC, [10**400] * 4)": "x0: got .*, allowed: real numbers",
        "by_catalyst(workers=10**400)": "workers: got",
        "by_catalyst(first=1e308)": "first: got 1e.308, allowed: an integer",
        "by_catalyst(theta=10**400)": "theta: got .*, allowed: a number",
        "run(resume='new')": "resume: got 'new', allowed: a folder with a checkpoint",
        "run(resume=solve(ridge((X, Y), 1.0)))": "resume: got 'a result without a state'",
        "run(seed=[1, 2], checkpoint='folder')": "checkpoint: got 'folder', allowed: None with several seeds",
        "run(target={'loss': 1.0})": "target: got",
        "run(target={})": "target: got {}",
        "run(target=-1.0)": "target: gap: got -1.0",
        "run(target='soon')": "target: gap: got 'soon'",
        "run(tol=0.0)": "tol: got 0.0",
        "run(tol=1.0, target={'gradient_norm': 1.0})": "tol: got 1.0",
        "run(target=1.0, replicas=2, record_every=None)": "tol and target",
        "run(step=0.0)": "step: got 0.0",
        "run(step='best')": 'step: got .best., allowed: a number, .* or "theory"',
        "run(steps=None, epochs=1)": "epochs: got 1, allowed: nothing, where a problem has no rows",
        "run(verbose='yes')": "verbose: got 'yes'",
        "run(method=SGD._replace(batch=-3))": "batch",
        "run(method=SGD._replace(radius=-1.0))": "radius",
        "train(LOCAL, steps=10)": "steps: got 10, allowed: a multiple of local_steps = 4",
        "train(LOCAL, steps=None, samples=3)": "samples: got 3, allowed: at least 4",
        "train(GROWING, steps=None, samples=4)": "samples: got 4, allowed: at least 5",
        "train(GROWING, steps=100)": "batch: got '.* at step .*', allowed: integers from 1 to 100000000",
        "train(GROWING._replace(sampling='shuffle'))": "batch: got 135, allowed: at most the rows of a worker, 4",
        "train(LocalSGD(PowerSGD(2, 2, rank=1), STEP, local_steps=2))": "compressor: got PowerSGD",
        "train(VRMARINA(RandK(1, True), STEP, p=0.5), QUADRATIC)": "a mean of n functions",
        "train(DIANA(PermK(3), STEP))": r"workers: got 2, allowed: 0, or 3|workers: got 3, allowed: 0, or 2",
        "train(DIANA(scaled(PermK(2), 4), STEP))": "within another one",
        "train(FedAvg(step=STEP, clients=3))": "clients",
        "train(FedAvg(step=STEP, shards=Split(np.arange(3), np.arange(1, 4))))": "shards",
        "train(AsyncSGD(step=STEP, speeds=(1.0, 2.0)), workers=4)": "speeds",
        "train(DCDPSGD(TernGrad(shared=True), STEP), workers=4)": "TernGrad.*combine nothing",
        "train(DCDPSGD(PowerSGD(2, 2, rank=1), STEP), workers=4)": "PowerSGD.*combine nothing",
        "train(DPSGD(step=STEP))": "at least 3",
        "train(DPSGD(step=STEP), workers=4, x0=np.ones((3, 4)))": r"\(4, 4\)",
        "train(ChocoSGD(TopK(1), STEP, gamma=1.5), workers=4)": "gamma",
        "lock_free(compressor=QSGD(3))": "compressor: got QSGD.*allowed: TopK",
        "lock_free(compressor=RandK(3, shared=True))": "compressor: got RandK.*not shared",
        "lock_free(compressor=TopK(5))": "k: got 5",
        "lock_free(feedback=NoFeedback())": "feedback: got NoFeedback",
        "lock_free(feedback=PartialErrorFeedback(0.9))": "feedback: got PartialErrorFeedback",
        "lock_free(feedback=ContractiveErrorFeedback(Natural()))": "feedback: got ContractiveErrorFeedback",
        "lock_free(step=InverseTime(1.0, 1.0, 9.0), average='quadratic')": "average: got 'quadratic', allowed: 'last'",
        "lock_free(momentum=0.5)": "momentum and aggregation: got .0.5",
        "lock_free(compressor=Identity(), feedback=NoFeedback(), aggregation='majority')": "aggregation: got",
        "lock_free(shards='contiguous')": "shards: got 'contiguous'",
        "lock_free(exchange='gather')": "exchange: got 'gather'",
        "lock_free(compress='loss', step=Constant(50.0))": r"step: got 'eta \* l2 up to 5'",
        "run_lock_free(MEM_SGD, SPARSE, threads=0, steps=5)": "threads: got 0",
        "run_lock_free(MEM_SGD, SPARSE, threads=1, steps=2.5)": "steps: got 2.5",
        "run_lock_free(MEM_SGD, SPARSE, threads=1, steps=5, record_every=0)": "record_every: got 0",
        "run_lock_free(MEM_SGD, SPARSE, threads=1, steps=5, clock='wall')": "clock: got 'wall', allowed: 'thread'",
        "run_lock_free(MEM_SGD, SPARSE, threads=1, steps=5, x0=np.zeros(3))": "x0: got 'shape .3,",
        "run_lock_free(MEM_SGD, SPARSE, threads=1, steps=5, x0=np.full(4, nan))": "x0: got 'NaN or Inf'",
        "mem_sgd(SPARSE, TopK(1), shift=1.0)": r"shift: got 1.0, allowed: more than 1: .*\(alpha \+ 1\) d/k.*alpha > 4",
        "mem_sgd(SPARSE, TopK(1), shift=2.0, alpha=5.0)": "shift: got 2.0, allowed: at least .*alpha = 5.*d/k = 4",
        "mem_sgd(SPARSE, TopK(1), alpha=4.0)": "alpha: got 4.0, allowed: a number above 4",
        "mem_sgd(SPARSE, TopK(5))": "k: got 5",
        "mem_sgd(logistic((np.eye(3), [1, -1, 1]), l2=0.0), TopK(1))": "problem: got 'mu = 0'",
        "qsvrg(ROWS, workers=2, epochs=0)": "epochs: got .*, allowed: ",
        "qsvrg(ridge((X[:2], Y[:2]), 0.0), workers=2, epochs=1)": "problem: got .*, allowed: ",
        "qsvrg(QUADRATIC, workers=2, epochs=1)": "problem: got .*, allowed: ",
        "qsvrg(ROWS, workers=2, epochs=1, x0=[1.0])": "x0: got .*, allowed: ",
        "qsvrg(ROWS, workers=2, epochs=1, inner=0)": "inner: got .*, allowed: ",
        "by_catalyst(theta=1.0)": "theta: got .*, allowed: .*above L = 1",
        "by_catalyst(rho=2.5)": r"rho: got .*, allowed: .*\(1, 1/\(1 - nu\)\) = \(1, 2\)",
        "by_catalyst(rho=1.0)": r"rho: got .*, allowed: .*\(1, 2\)",
        "by_catalyst(samples=3)": "samples: got .*, allowed: .*at least workers = 4",
        "by_catalyst(samples=15, first=2)": r"samples: got .*, allowed: .*workers \* first\*\*2 = 16",
        "by_catalyst(step=0.6)": r"step: got .*, allowed: .*\(0, 2 / lipschitz = 0.5\)",
        "by_catalyst(x0=[1.0])": "x0: got .*, allowed: .*shape",
        "by_catalyst(x0=np.full(4, nan))": "x0: got .*, allowed: .*finite",
        "by_catalyst(record_every=0)": "record_every: got .*, allowed: .*at least 1",
        "cr_psgd(quadratic([1.0, 4.0], 1.0), rho=1.4)": r"rho: got .*, allowed: .*\(1, 1/\(1 - nu\)\) = \(1, 1.33333\)",
        "cr_psgd(quadratic([1.0, 4.0], 1.0), rho=0.9)": r"rho: got .*, allowed: .*\(1, 1.33333\)",
        "cr_psgd(quadratic([1.0, 4.0], 1.0), samples=3, first=4)": "samples: got .*, allowed: .*at least first = 4",
        "cr_psgd(quadratic([1.0, 4.0], 1.0), step=0.5)": r"step: got .*, allowed: .*\(0, 2 / lipschitz = 0.5\)",
        "cr_psgd(quadratic([1.0, 4.0], 1.0), mu=5.0)": r"mu: got .*, allowed: .*a number in \(0, lipschitz = 4\]",
        "cr_psgd(quadratic([4.0, 4.0], 1.0))": "rho: got .*, allowed: .*any number above 1: give rho=",
        "cr_psgd(logistic((np.eye(2), [1, -1]), 0.0))": "l2",
        "arrivals(FixedTime(), workers=2, rounds=0)": "rounds",
        "fastest(fastest=4)": "fastest: got 4",
        "fastest(workers=0)": "workers: got 0",
        "fastest(rounds=0)": "rounds: got 0",
        "fastest(step=0.0)": "step: got 0",
        "fastest(weights='none')": "weights: got 'none'",
        "fastest(weights='inclusion', times=Pareto(2.0), speeds=[1, 2, 3])": "weights: got 'inclusion'",
        "fastest(speeds=[1, 2])": "speeds: got",
        "fastest(speeds=[1, 2, 0])": "speeds: got 0",
        "fastest(shards='by_label')": "shards: got 'by_label'",
        "fastest(x0=[0.0, 1.0])": "x0: got",
        "fastest(x0=[nan])": "x0: got 'NaN",
        "fastest(seed=-1)": "seed: got -1",
        "fastest(record_every=0)": "record_every: got 0",
        "fastest(batch=0)": "batch: got 0",
        "comparison(x='bit')": "did you mean 'bits'",
        "comparison(x='epochs')": "allowed",
        "comparison(methods=[])": "at least one",
        "comparison(labels=['one', 'two'])": "one for each",
        "comparison(samples=2)": "exactly one of the three",
        "comparison(steps=None)": "exactly one of the three",
        "round_time(d=-1)": "d: got -1, allowed: ",
        "round_time(d=1.5)": "d: got 1.5, allowed: ",
        "round_time(d='100')": "d: got '100', allowed: ",
        "round_time(ranks=0)": "ranks: got 0, allowed: ",
        "round_time(workers=0)": "workers: got 0, allowed: ",
        "round_time(workers=6)": "workers: got 6, allowed: ",
        "round_time(message_bytes=-1.0)": "message_bytes: got -1.0, allowed: ",
        "round_time(message_bytes=inf)": "message_bytes: got inf, allowed: ",
        "simulate_allreduce('rings', np.ones((2, 2)))": "algorithm: got 'rings'",
        "simulate_allreduce('ring', np.ones(2))": "vectors: got",
        "cluster.gather_seconds(Network(1.0, 1.0), 0, 1)": "ranks: got 0",
        "cluster.reduce_seconds(Network(1.0, 1.0), 2, -1)": "size: got -1",
        "cluster.run_zero(NETWORK, stage=4)": "stage: got 4",
        "cluster.run_zero(NETWORK, stage=True)": "stage: got True",
        "cluster.run_zero(NETWORK, stage=np.array([1, 2]))": "stage: got",
        "cluster.run_zero(NETWORK, step=inf)": "step: got inf",
        "cluster.run_zero(NETWORK, step=-1.0)": "step: got -1.0",
        "cluster.run_zero(NETWORK, share=0.01)": "share: got 0.01, .*smallest slice",
        "cluster.run_zero(NETWORK, share=0.0)": "share: got 0.0",
        "cluster.run_zero(NETWORK, share=1.5)": "share: got 1.5",
        "cluster.run_zero(NETWORK, seed=-1)": "seed: got -1",
        "cluster.run_zero(NETWORK, workers=0)": "workers: got 0",
        "cluster.run_zero(NETWORK, workers=13)": "workers: got 13",
        "cluster.run_zero(NETWORK, memory='no')": "memory: got 'no'",
        "cluster.run_zero(NETWORK, steps=0)": "steps: got 0",
        "worst_case('sgd', 3)": "method: got 'sgd'.*compressed-gd",
        "worst_case('gd', 0)": "steps: got 0",
        "worst_case('gd', 2.0)": "steps: got 2.0",
        "worst_case('local-gd', 3)": "steps: got 3.*multiple of 2",
        "worst_case('gd', 1, momentum=0.5)": "options: got 'momentum'",
        "worst_case('gd', 1, step=-1.0)": "step: got -1.0",
        "worst_case('gd', 1, s=0.3)": "s: got 0.3",
        "worst_case('ef', 1, s=1.0)": "s: got 1.0",
        "worst_case('ef', 1, constants=[(2.0, 1.0)])": r"constants: got \(2.0, 1.0\)",
        "worst_case('ef', 1, constants=[])": "constants",
        "worst_case('proximal', 1, constants=[(1.0, 4.0)])": "constants.*L infinite",
        "worst_case('ef', 1, constants=[(1.0, inf)])": "constants.*L finite",
        "worst_case('ef', 1, workers=0)": "workers: got 0",
        # methods
        "ParallelSGD(step=STEP, sampling='iidd')": "sampling",
        "ParallelSGD(step=STEP, shards='label')": "shards",
        "ParallelSGD(step=STEP, compress='all')": "compress",
        "ParallelSGD(step=STEP, average='median')": "average",
        "ParallelSGD(step=STEP, average='quadratic')": "average.*shift",
        "ParallelSGD(step=STEP, batch=1.5)": "batch: got 1.5",
        "ParallelSGD(step=STEP, batch=STEP)": "batch: got Constant",
        "ParallelSGD(step=STEP, radius=0.0)": "radius: got 0.0",
        "ParallelSGD(TopK(1), STEP, ErrorFeedback(), radius=1.0)": "radius: got 1.0",
        "ParallelSGD(step=STEP, topology=ReduceScatter())": "topology",
        "ParallelSGD(Sign(), STEP, ErrorFeedback(), server=Sharded(Majority()))": (
            "server: got Sharded.*, allowed: Mean, Momentum or Adam with a memory"
        ),
        "LocalSGD(step=STEP, local_steps=0)": "local_steps: got 0",
        "LocalSGD(step=STEP, local_steps=2, average='best')": "average: got 'best'",
        "LocalSGD(step=STEP, local_steps=2, shards='mine')": "shards: got 'mine'",
        "GrowingBatch(1.0)": "rho: got 1.0",
        "GrowingBatch(inf)": "rho: got inf",
        "GrowingBatch(1.5, first=0)": "first: got 0",
        "GrowingBatch(1.5, rounding='up')": "rounding: got 'up'",
        "Sharded(LAMB())": "server",
        "Sharded(Projected(1.0))": "server",
        "Sharded(Sharded())": "server",
        "FedAvg(step=STEP, clients=0)": "clients",
        "FedProx(step=STEP, mu=-1.0)": "mu",
        "EF21SGDM(TopK(2), STEP, momentum=0.0)": "momentum: got 0.0, allowed: a number above 0",
        "StreamingDiLoCo(step=STEP, fragments=0)": "fragments: got 0, allowed: an integer, at least 1",
        "StreamingDiLoCo(step=STEP, local_steps=2, delay=2)": "delay: got 2, allowed: an integer, at most 1",
        "StreamingDiLoCo(step=STEP, blend=1.0)": "blend: got 1.0, allowed: a number from 0 to below 1",
        "StreamingDiLoCo(step=STEP, server=Adam())": "server: got Adam.*, allowed: OuterStep",
        "EFBV(TopK(2), STEP, lam=2.0)": "lam: got 2.0, allowed",
        "EControl(TopK(2), STEP, control=2.0)": "control: got 2.0, allowed",
        "EF21Muon(TopK(2), STEP, 0.0)": "momentum: got 0.0, allowed: a number above 0",
        "EF21Muon(TopK(2), STEP, norm='l2')": "norm: got 'l2', allowed: 'spectral', 'sign'",
        "EF21Muon(TopK(2), STEP, norm=((3, 0),))": "or shapes as",
        "EF21Muon(TopK(2), STEP, iterations=-1)": "iterations: got -1, allowed: an integer, at least 0",
        "CLAG(step=STEP, trigger=-1.0)": "trigger: got -1.0, allowed",
        "DIANA(TopK(1), STEP, alpha=1.5)": "above 0 and at most 1",
        "MARINA(TopK(1), STEP, p=0)": "above 0 and at most 1",
        "AsyncSGD(step=STEP, speeds=(1.0, 0.0))": "speeds",
        "ChocoSGD(TopK(1), STEP, gamma='x')": "gamma: got 'x', allowed: a number",
        "ContractiveErrorFeedback(SKETCH, beta=-0.1)": "beta",
        "PartialErrorFeedback(1.1)": "beta",
        "LinearSketchFeedback(SKETCH, beta=1.1)": "beta",
        "LinearSketchFeedback(CountSketch(4, rows=3, median=True))": "sketch",
        "ImprovedContractiveErrorFeedback(SKETCH, version=3)": "version",
        "remembers(ContractiveErrorFeedback(CountSketch(5)))": "error_compressor",
        "remembers(ImprovedContractiveErrorFeedback(CountSketch(2, rows=3)))": "error_compressor",
        "remembers(LinearSketchFeedback(CountSketch(5)))": "sketch",
        "remembers(ContractiveErrorFeedback(PowerSGD(2, 2, 1)))": "error_compressor",
        "Adam(beta1=1.0)": "beta1",
        "Adam(rate=0.0)": "rate",
        "Adam(eps=-1.0)": "eps",
        "Adam(decay=-1.0)": "decay",
        "LAMB(low=2.0, high=1.0)": "high",
        "LAMB(layers=(2, 3))": "layers",
        "OuterStep(nesterov=True)": "nesterov",
        "OneBitAdam(STEP, 0)": "warmup",
        "OneBitAdam(STEP, 1, beta2=1.0)": "beta2",
        "OneBitAdam(STEP, 1, eps=-1.0)": "eps",
        "OneBitAdam(STEP, 1, feedback=ContractiveErrorFeedback(Natural()))": (
            "feedback: got ContractiveErrorFeedback.*, allowed: ErrorFeedback"
        ),
        "serves(LAMB(layers=(slice(0, 2.5),)))": "layers",
        "serves(LAMB(layers=LAYERS[:1]))": "layers",
        "serves(LAMB(layers=LAYERS[::-1]))": "layers",
        "TrimmedMean(-1)": "f: got ",
        "Krum(0.5)": "f: got ",
        "MultiKrum(1, 0)": "m: got ",
        "Bucketing(0, Median())": "s: got ",
        "CenteredClipping(0.0)": "radius: got ",
        "GeometricMedian(tolerance=0.0)": "tolerance: got ",
        "Attacked(Mean(), SignFlip(), (1, 1))": "attackers: got ",
        "Scaling(inf)": "factor: got ",
        "robust_mean(TrimmedMean(2), np.ones((4, 2)))": "less than half",
        "robust_mean(Krum(2), np.ones((6, 2)))": r"2 f \+ 2 < 6",
        "robust_mean(MultiKrum(1, 6), np.ones((6, 2)))": "at most N - f = 5",
        "robust_mean(Bucketing(2, TrimmedMean(2)), np.ones((6, 2)))": "less than half of the 3",
        "robust_mean(Median(), np.ones((6, 2)), centre=[nan, 0.0])": "centre",
        "robust_mean(Median(), np.ones(6))": "messages",
        "serves(Median(), exchange='auto')": "exchange: .*'gather'",
        "serves(Attacked(Mean(), SignFlip(), 4))": "fewer than all of the 4",
        "serves(Attacked(Mean(), Mimic(3), 2))": "target",
        "serves(Attacked(Mean(), ALIE(), 3))": "z: .*where 3 of 4",
        "serves(Attacked(Mean(), Attack(two_ones)))": "function: got 'shape",
        "serves(TrimmedMean(2))": "f: got 2",
        "mixing(Ring(), 2)": "at least 3 on a ring",
        "mixing(Torus(), 8)": "height",
        "mixing(Hypercube(), 6)": "power of 2",
        "mixing(Edges([(0, 1), (2, 3)]), 4)": "connected",
        "mixing(Edges([(0, 7)]), 4)": "pairs of workers",
        "mixing(Edges([(0.5, 1)]), 4)": r"graph: got the edge \(0.5, 1\), allowed: a pair of integers",
        "mixing(Edges([(0, 1, 2)]), 4)": r"graph: got the edge \(0, 1, 2\)",
        "mixing(MixingMatrix(np.eye(3)), 4)": "shape",
        "mixing(MixingMatrix(np.eye(4)), 4)": "connected",
        "mixing(MixingMatrix(np.roll(np.eye(4), 1, axis=0)), 4)": "not symmetric",
        "mixing(MixingMatrix(np.array([[0.5, 0.4], [0.4, 0.5]])), 2)": "row 0.*sums to 1|sum 0.9 in row 0",
        "mixing(MixingMatrix(np.array([[1.5, -0.5], [-0.5, 1.5]])), 2)": "no weight below 0",
        "mixing(MixingMatrix(np.array([[0.0, 1.0], [1.0, 0.0]])), 2)": "eigenvalue -1",
        "mixing(MixingMatrix(np.array([[nan, 1.0], [1.0, 0.0]])), 2)": "finite",
        "Network(-1.0, 0.0)": "alpha: got -1",
        "Network(1.0, inf)": "beta: got inf",
        "Pareto(0.0)": "shape: got 0",
        "ShiftedExponential(1.0, 0.0)": "rate: got 0",
        "ScaledSign(0)": "norm",
        "ScaledSign(3)": "norm",
        # data and problems
        "Split(np.array([0, 0]), np.array([1, 2]))": "order",
        "Split(np.array([0, 1]), np.array([0, 2]))": "ends",
        "Split([0, 1], np.array([2]))": "order",
        "split(load_data('digits'), workers=4, alpha=0.0)": "alpha",
        "split(load_data('digits'), by='colour', workers=4)": "by",
        "split(load_data('digits'), by=[1, 2], workers=4)": "by",
        "quadratic([], 1.0)": "diagonal: got 'shape",
        "quadratic([1.0, nan], 1.0)": "diagonal",
        "quadratic([1.0, 1.0], [1.0, 1.0, 1.0])": "covariance: got 'shape",
        "quadratic([1.0, 1.0], [[1.0, 2.0], [2.0, 1.0]])": "covariance.*the eigenvalue -1",
        "quadratic([1.0, 1.0], 1.0, [0.0, 0.0, 0.0])": "optimum: got 'shape",
        "saturating_quadratic([1.0, -1.0], 1.0)": "diagonal: got -1.0",
        "gradient(ROWS, np.full(4, inf))": "x: got 'NaN or Inf'",
        "sample_gradient(ROWS, 4, np.zeros(4))": "indices: got .4., allowed: row",
        "batch_gradient(ROWS, [-1], np.zeros(4))": "indices: got .-1.",
        "batch_gradient(ROWS, [], np.zeros(4))": "at least one row",
        "batch_gradient(ROWS, [0.5], np.zeros(4))": "integers",
        "solve(ROWS, 0.0)": "tolerance: got 0.0",
        "solve(logistic((X, Y), 0.0))": "no certificate.*l2 = 0.*allowed: l2 > 0",
        "solve(ridge((np.hstack([X, X]), Y), 0.0))": "no certificate.*l2 = 0.*allowed: l2 > 0",
        "solve(ridge((X[:2], Y[:2]), 0.0))": "no certificate.*l2 = 0.*allowed: l2 > 0",
        "function(np.sum, np.sign, d=0)": "d: got 0",
        "function(np.sum, np.sign, d=6, n=-1)": "n: got -1",
        "function(np.sum, np.sign, d=6, l2=-1.0)": "l2: got -1.0",
        "train(MEM_SGD, function(np.sum, two_ones, d=6))": "gradient: got .shape",
        "compress(compressor(two_ones), np.ones(3), 0)": "function: got .shape",
        "sine_valley(0.0)": "residual: got 0.0",
        "sine_valley('1')": "residual: got '1'",
        "sine_valley(1.0, [1.0, 1.0, 1.0])": "covariance",
        "sine_valley(1.0, dtype=np.int64)": "dtype: got 'int64'",
        "sine_quadratic([-1.0], 0.0)": "diagonal: got -1.0",
        "value(sine_valley(), [1.0, 2.0, 3.0])": "x: got 'shape",
        "PolyakLojasiewicz(0.0)": "mu: got 0.0",
        "pl_constant(logistic((X, Y), 0.0)).mu": "pl_constant.* l2 = 0, allowed: .* radius=R",
        "pl_constant(logistic((X, Y), 0.0), radius=0.0)": "radius: got 0.0",
        "pl_constant(softmax((X, Y), 0.0))": "a Softmax with l2 = 0",
        "pl_constant(quadratic([0.0, 0.0], 1.0))": "f is constant",
        "pl_constant(quadratic([1.0], 1.0), radius=1.0)": "radius: got 1.0",
        "DropConnect(1.0)": "drop: got 1.0, allowed: a probability, from 0 to below 1",
        "DropConnect(-0.1)": "drop: got -0.1",
        "Langevin(-1.0)": "deviation: got -1.0",
        "Langevin(inf)": "deviation: got inf",
        "two_layer((X, Y), 0)": "width: got 0, allowed: an integer from 1",
        "two_layer((X, Y), 2.5)": "width: got 2.5, allowed: an integer",
        "two_layer((X, Y), 70_000)": "width: got 70000",
        "two_layer((X, Y), 2, activation='sine')": "activation: got 'sine', allowed: one of 'tanh', 'relu'",
        "two_layer((X, Y), 2, l2=-1.0)": "l2: got -1.0",
        "two_layer((X, [1, 1, 1, 1]), 2)": "1 different labels",
        "value(NETWORK, np.zeros(3))": r"shape \(12,\)",
        "nonconvex_logistic((X, Y), -1.0)": "weight: got -1.0",
        "nonconvex_logistic((X, Y), nan)": "weight: got nan",
        "nonconvex_logistic((X, Y), '1')": "weight: got '1'",
        "solve(NONCONVEX)": "NonconvexLogistic is not convex",
        "gradient(NONCONVEX, np.zeros(3))": "x: got 'shape",
        "NONCONVEX._replace(losses=ROWS).domain()": "losses: got",
        "softmax((X, [1, 1, 1, 1]), 0.1)": "data: got '1 different labels in data', allowed: 2 to 1024",
        "softmax((X, Y), -0.1)": "l2: got -0.1",
        "value(softmax((X, Y), 0.1), np.zeros(3))": r"shape \(8,\)",
        # measurements, keys and messages
        "audit(TopK(3), d=30, inputs=['gauss'])": "inputs: got 'gauss'",
        "audit(TopK(3), d=30, inputs=np.ones(3))": "of length d = 30",
        "audit(TopK(3), d=30, inputs={'zero': np.zeros(30)})": "not zero",
        "audit(TopK(3), d=30, samples=1)": "samples: got 1",
        "audit(TopK(3), d=2.5)": "d: got 2.5",
        "audit(TopK(3), d=2)": "k: got 3",
        "measure.client_diversity(ROWS, 'shared', workers=2)": "shards",
        "measure.client_diversity(ROWS, 'contiguous', workers=9)": "workers",
        "measure.client_diversity(ROWS, 'contiguous', workers=2, x=np.ones(3))": "x: got",
        "measure.client_diversity(QUADRATIC, 'contiguous', workers=2)": "problem",
        "measure.diversity(ROWS, np.ones(4), samples=127)": "samples: got 127, allowed: None, or an integer, at",
        "measure.diversity(ROWS, np.ones(4), samples=1e4)": "samples: got 10000.0",
        "measure.diversity(ROWS, np.ones(4), samples=128, level=1.0)": "level: got 1.0",
        "measure.diversity(ROWS, np.ones(4), np.ones(2))": r"x: got 'shape \(2,\)', allowed: shape \(4,\)",
        "measure.diversity_floor(ROWS)": "l2: got 0.1, allowed: 0: l2 x is part of every gradient",
        "measure.diversity_floor(ridge((np.zeros((2, 3)), [1.0, 2.0]), 0.0))": "problem: got 'rows that are all zero'",
        "measure.moments(QSGD(3), np.zeros(3), 10)": "v: ",
        "measure.moments(QSGD(3), np.array([1.0, nan]), 10)": "v: ",
        "measure.moments(QSGD(3), np.ones((2, 2)), 10)": "v: ",
        "measure.moments(TopK(5), np.ones(3), 10)": "k",
        "key(-1)": "integers from 0",
        "key(2**64)": "integers from 0",
        "encode(TopK(1), V, -1)": r"key: got -1, allowed: an integer from 0 to 2\*\*64 - 1",
        "compress(TopK(1), V, True)": r"key: got True, allowed: an integer from 0 to 2\*\*64 - 1",
        "encode(TopK(1), V, 'rounding')": r"key: got 'rounding', allowed: an integer from 0 to 2\*\*64 - 1",
        "compress(TopK(1), V, 2**64)": r"key: got .*, allowed: an integer from 0 to 2\*\*64 - 1",
        # compressors
        "encode(QSGD(3), np.array([1.0, 2.0, -inf], np.float32), 0)": "-inf at position 2",
        "encode(TopK(3), np.ones((3, 3)), 0)": "v: .*one dimension",
        "encode(TopK(4), np.ones(3), 0)": "k: got 4, allowed: at most the length of the vector, 3",
        "compress(RandK(4), np.ones(3), 0)": "k: got 4",
        "compress(Bucketed(TopK(2), 4), np.ones(5), 0)": "bucket of 1",
        "compress(Bucketed(RandK(5), 4), np.ones(8), 0)": "bucket of 4",
        "compress(QSGD(3), np.ones(0), 0)": "v: got .shape .0,.",
        "compress(Identity(), np.array([1e300]), 0)": "wire_dtype=np.float64",
        "encode(QSGD(3), np.full(9, 1e39), 0)": "wire_dtype=np.float64",
        "compress(RandK(1, unbiased=True), np.full(9, 1e38), 0)": "wire_dtype=np.float64",
        "compress(QSGD(1), np.full(100, 1e38, np.float32), 0)": "overflow",
        "compress(TopK(1), V, 0, wire_dtype=np.float16)": "wire_dtype: got",
        "compress(TopK(1), V, 0, out=np.empty(2))": "out: got",
        "compress(Composed(TopK(4), RandK(3)), np.ones(9), 0)": "may send 3 values",
        "compress(Composed(TopK(4), Identity(sparse=True)), np.ones(9), 0)": "may send 1 values",
        "compress(Private(PowerSGD(2, 2, 1), 1.0, 1.0), np.ones(4), 0)": "without a state",
        "encode(EntropyCoded(TopK(5)), np.ones(4), 0)": "at most the length",
        "check(ByLayer(8, Identity(), Identity()), 8)": "size: got 8, allowed: less than the length of the vector, 8",
        "check(ByLayer(5, Identity(), TopK(4)), 8)": "ByLayer: rest, on 3 coordinates: k: got 4",
        "compress(BestRank(3, 4, 1), np.ones(13), 0)": r"rows \* columns = 13",
        "encode(PowerSGD(3, 4, 1), np.ones(11), 0)": r"rows \* columns = 11",
        "QSGD(0)": "s: got 0",
        "QSGD(2**25)": "s: got",
        "QSGD(2, 1.0)": "norm: got 1.0",
        "QSGD(2.5)": "s: got 2.5",
        "QSGD(bits=1)": "bits: got 1",
        "QSGD(bits=4, s=7)": "one of them",
        "TopK(0)": "k: got 0",
        "RandK(-1)": "k: got -1",
        "Bucketed(QSGD(1), 0)": "size: got 0",
        "Scaled(QSGD(7), 0.0)": "factor: got",
        "Scaled(QSGD(7), 1.5)": "factor: got",
        "Scaled(QSGD(7), nan)": "factor: got",
        "Private(QSGD(7), 0.0, 1.0)": "clip: got",
        "Private(QSGD(7), inf, 1.0)": "clip: got",
        "Private(QSGD(7), 1.0, -1.0)": "noise: got",
        "ByLayer(0, Identity(), Identity())": "size: got 0",
        "NUQSGD(-1)": "s: got",
        "NUQSGD(3, 0.0)": "ratio: got",
        "NUQSGD(3, 1.0)": "ratio: got",
        "NUQSGD(3, 0.5, 1.0)": "norm: got",
        "NUQSGD(200)": "ratio: got",
        "NUQSGD(2001, 0.999999)": "s: got",
        "NUQSGD(3, nan)": "ratio: got",
        "NUQSGDReleased(1)": "bits: got",
        "NUQSGDReleased(8)": "bits: got",
        "NaturalDithering(0)": "s: got",
        "NaturalDithering(121)": "s: got",
        "Ternary(0.0)": "scale: got",
        "Ternary(inf)": "scale: got",
        "ClippedTernGrad(0.0)": "clip: got",
        "RandomBlock(0)": "k: got",
        "Bernoulli(0.0)": "p: got",
        "Bernoulli(1.5)": "p: got",
        "Bernoulli(nan)": "p: got",
        "Ultra(0.0)": "k: got",
        "Ultra(1.0)": "k: got",
        "Threshold(0.0)": "size: got",
        "Threshold(inf)": "size: got",
        "Threshold(1.5, relative=True)": "size: got",
        "OptimalSparsifier()": "budget",
        "OptimalSparsifier(-1.0)": "budget",
        "OptimalSparsifier(inf)": "budget",
        "OptimalSparsifier(3.0, 0.5)": "budget",
        "OptimalSparsifier(variance=nan)": "variance",
        "OptimalSparsifier(variance=0.5, rounds=2)": "rounds",
        "OptimalSparsifier(3.0, rounds=-1)": "rounds",
        "SpectralAtomo(3, 4, 0.0)": "budget: got 0.0",
        "SpectralAtomo(3, 4, 3.5)": r"min\(rows, columns\) = 3",
        "SpectralAtomo(0, 4, 1.0)": "rows: got 0",
        "BestRank(3, 4, 4)": "rank: got 4",
        "PowerSGD(3, 0, 1)": "columns: got 0",
        "PowerSGD(3, 4, 0)": "rank: got 0",
        "QuantizedSpectrum(3, 4, 0)": "s: got 0",
        "DelayedSGD(step=STEP, delay=True)": "delay",
        "DelayedSGD(step=STEP, delay=65)": "delay",
        "grade(TopK(1), 'pl.gd.strongly-convex')": "a claim that measures the messages of a compressor",
        "grade(TopK(1), 'qsgd.varience')": "the nearest are",
        "measure.sampled_privacy(1.0, 1.0, clients=9, workers=8)": "clients",
        "measure.sampled_privacy(1.0, 1.0, clients=0, workers=8)": "clients",
        "measure.sampled_privacy(1.0, 1.0, share=0.5, clients=2, workers=8)": "share: got 0.5, allowed: left out",
        "measure.sampled_privacy(-1.0, 1.0)": "epsilon",
        "measure.sampled_privacy(1.0, 0.0)": "noise",
        "measure.sampled_privacy(1.0, 1.0, share=1.5)": "share",
        "measure.sampled_privacy(1.0, 1.0, steps=0)": "steps",
        "run(steps=None, epochs=inf)": "epochs: got inf, allowed: a finite number",
        "run(steps=None, epochs=1e300)": "epochs: got",
        "run(step=inf)": "eta: got inf, allowed: a finite number",
        "run(steps=10**6000)": "steps: got an integer of 19932 bits",
        "run(seed=10**6000)": "seed: got an integer of 19932 bits",
        "run(step=10**6000)": "eta: got an integer of 19932 bits",
        "run(checkpoint='x' * 5000)": "File name too long",
        "check_gradient(function(np.sum, lambda x, rng: x, d=6))": "problem: got .*only samples",
        "check_gradient(ROWS, direction='some')": "direction: got 'some'",
        "check_gradient(ROWS, [1.0])": "x: got .shape",
        "lipschitz(function(np.sum, np.sign, d=6))": "lipschitz: got None",
        "pl_constant(ridge((np.zeros((2, 2)), [1.0, 2.0]), 0.0))": "a matrix of zeros",
        "measure.sampled_privacy(1.0, 1.0, clients=2)": "workers: got None",
        "measure.sampled_privacy(1.0, 1.0, workers=2)": "clients: got None",
    },
    TypeError: {
        "cluster.run_zero(QUADRATIC)": "network: got",
        "cluster.run_zero(NETWORK, server=Momentum(0.9))": "server: got",
        "run(resume=3)": "resume: got 3, allowed: a folder of checkpoints, or a result",
        "run(worker=1)": "run: got the argument 'worker', did you mean workers",
        "show(SGD, 'digits')": "problem",
        "comparison(problem=None, recrd_every=1)": "compare: got the argument 'recrd_every', did you mean record_every",
        "train(DPSGD(step=STEP, graph='ring'), workers=4)": "graph",
        "train(ChocoSGD(QSGD(1), STEP), workers=4)": "",  # no contraction is known: give gamma
        "remembers(ImprovedContractiveErrorFeedback(compressor(two_ones)))": "compressor",
        "run_lock_free(TopK(3), SPARSE, threads=1, steps=5)": "method: got TopK",
        "run_lock_free(MEM_SGD, QUADRATIC, threads=1, steps=5)": "problem: got 'Quadratic'",
        "mem_sgd(SPARSE, RandK(3, unbiased=True))": "not meant to contract",
        "mem_sgd('rcv1', TopK(3))": "problem: got 'rcv1'",
        "cr_psgd(SATURATING)": "SaturatingQuadratic does not satisfy the Polyak-Lojasiewicz inequality",
        "cluster.race(3, workers=1, fastest=1, rounds=1)": "times: got 3",
        "run_fastest_k(3, workers=1, fastest=1, rounds=1, step=1.0, times=Pareto(1.0))": "problem: got",
        "run(method=ParallelSGD(TopK(3)))": "step: got None",
        "ParallelSGD(10, STEP)": "compressor",
        "ParallelSGD(step=STEP, feedback=None)": "feedback",
        "FedAvg(step=STEP, down=3)": "down",
        "EF21BC(TopK(2), STEP, down=3)": "down: got 3, allowed: a compressor",
        "EF21P(TopK(2), STEP, up='all')": "up: got 'all', allowed: a compressor",
        "AsyncSGD(step=STEP, times=2.0)": "times",
        "ContractiveErrorFeedback(0.1)": "error_compressor",
        "LinearSketchFeedback(TopK(3))": "sketch",
        "NNM(1, Mean())": "inner: got ",
        "Robust(Median(), Krum(1))": "server: got ",
        "Attacked(Mean(), 'sign flip')": "attack: got ",
        "robust_mean(Mean(), np.ones((6, 2)))": "rule: got Mean",
        "function(1.0, np.sign, d=6)": "value: got 1.0",
        "compressor(3)": "function: got 3",
        "compress(Bucketed(compressor(two_ones), 4), np.ones(8), 0)": "compressor",
        "pl_constant(SATURATING)": "pl_constant.*SaturatingQuadratic does not satisfy|SaturatingQuadratic does not sat",
        "pl_constant(NONCONVEX).mu": "stationary points",
        "pl_constant(np.ones(3))": "problem: got 'ndarray', allowed: a problem",
        "diversified(ROWS, TopK(2))": r"mechanism: got TopK\(k=2\), allowed: DropConnect",
        "diversified(ROWS, Langevin(1.0), shared=2)": "shared: got 2",
        "diversified(QUADRATIC, Langevin(1.0))": "problem: got 'Quadratic'",
        "diversified(diversified(ROWS, Langevin(1.0)), Langevin(1.0))": "problem: got 'Div",
        "measure.diversity(QUADRATIC, np.ones(4), np.ones(4))": "other: got .* allowed: None",
        "measure.diversity(diversified(ROWS, Langevin(1.0)), np.ones(4), np.ones(4))": "other: got .* allowed: None",
        "measure.diversity_floor(QUADRATIC)": "problem: got 'Quadratic', allowed: a problem with a data matrix",
        "lipschitz(NETWORK)": "a TwoLayer network has none",
        "max_lipschitz(NETWORK)": "a TwoLayer network has none",
        "strong_convexity(NETWORK)": "a TwoLayer network has none",
        "pl_constant(NETWORK)": "a TwoLayer network has none",
        "solve(NETWORK)": "a TwoLayer network has none",
        "measure.diversity('rcv1', [0.0])": "problem: got 'rcv1', allowed: a problem, such as logistic",
        "cr_psgd('rcv1')": "problem: got 'rcv1', allowed: a problem, such as logistic",
        "run(method=np.zeros(3))": "method: got .*, allowed: a method, such as ParallelSGD",
        "catalyst('rcv1', workers=1, samples=10)": "problem: got 'rcv1', allowed: a problem, such as logistic",
        "pl_constant('rcv1')": "problem: got 'rcv1', allowed: a problem, such as logistic",
        "proximal('rcv1', [0.0], 1.0)": "problem: got 'rcv1', allowed: a problem, such as logistic",
        "value('rcv1', [0.0])": "problem: got 'rcv1', allowed: a problem, such as logistic",
        "decode(None)": "message: got NoneType, allowed: bytes",
        "decode([1, 2])": "message: got list, allowed: bytes",
        "key(0, 1.5)": "integers and strings",
        "key(0, True)": "integers and strings",
        "encode(TopK(3), np.ones(3, int), 0)": "float32 or float64",
        "encode(TopK(3), np.ones(3, np.float16), 0)": "float32 or float64",
        "compress(3, np.ones(3), 0)": "a compressor",
        "Bucketed(3, 4)": "a compressor",
        "EntropyCoded(EntropyCoded(QSGD(7)))": "symbols can be coded",
        "EntropyCoded(Bucketed(EntropyCoded(QSGD(7)), 8))": "symbols can be coded",
        "EntropyCoded(Bucketed(Bucketed(QSGD(7), 4), 8))": "symbols can be coded",
        "EntropyCoded(3)": "symbols can be coded",
        "ByLayer(3, Identity(), 3)": "rest: got 3",
        "by_layer(NETWORK, PowerSGD(12, 8, 1))": "make: got 'PowerSGD'",
        "by_layer(NETWORK, lambda rows, columns: 7)": "make: got 7",
        "Composed(QSGD(7), QSGD(7))": "one of Bernoulli, Identity, RandK, RandomBlock, Threshold, TopK",
        "Scaled(3, 0.5)": "inner: got",
        "TopK(n=3)": "TopK: got the argument 'n', allowed: k",
        "QSGD(4, codes=Elias())": "did you mean code?",
        "grade(3, 'qsgd.variance')": "compressor: got 3",
    },
    DataError: {
        "shard('digits', 'out', workers=1798)": "workers: got 1798, allowed: at most the number of rows, 1797",
        "shard('nothing.svm', 'out')": "no file nothing.svm",
        "shard('digits', 'out', rows=5)": "rows: got 5 for digits, allowed for synthetic data: rcv1-like, eps",
        "shard(Dataset(X, np.ones(4), 'four', 'regression'), 'out', rows=5)": "rows: got 5 for data in mem",
        "shard('digits', 'out', n_features=63)": "digits has 64 columns, not 63",
        "shard(None, 'out')": "name_or_path: got None.*the path of a",
        "load_data('digits').split('a', 0)": "fraction is 'a'.*between 0 and 1",
        "nonconvex_logistic((X, np.arange(4)), 0.1)": "different labels",
        "logistic(Dataset(X, np.array([0.0, 1, 1, 0]), 'own', 'binary'), 0.1)": "labels 0, 1",
        "split(load_data('digits'), by='topic', workers=4)": "topics",
        "load_data('digit')": "did you mean .*digits.*known are .rcv1-like",
        "load_data('rcv1_like')": "did you mean .*rcv1-like.*known are .rcv1-like",
        "load_data('RCV1')": "did you mean .*rcv1.*known are .rcv1-like",
        "load_data('breast')": "did you mean .*breast_cancer.*known are .rcv1-like",
        "load_data('qqqq')": 'unknown data set "qqqq": known are',
        "load_data('digits', n_features=0)": "n_features is",
        "load_data('digits', n_features=2.5)": "n_features is",
        "load_data('digits', n_features=2**40)": "n_features is",
        "load_data('digits', n_features=7)": "digits has 64 columns, not 7",
        "load_data('digits').split(0, 0)": "fraction",
        "load_data('digits').split(1, 0)": "fraction",
        "load_data('digits').split(nan, 0)": "fraction",
        "load_data('digits').split(1e-4, 0)": "one part empty",
        "load_data('digits').split(1 - 1e-4, 0)": "one part empty",
        "load_data('digits').split(0.5, -1)": "seed",
        "load_data('digits').split(0.5, 1.5)": "seed",
        "wilson_data(1)": "rows is 1; give an integer, at least 2",
        "wilson_data(2.5)": "rows is 2.5; give an integer, at least 2",
        "wilson_data(True)": "rows is True; give an integer, at least 2",
        "require_binary(Dataset(X, np.array([0.0, 1.0, 1.0, 0.0]), 'raw', 'binary'))": "-1 and .1 are needed",
        "load_data('x' * 5000)": "allowed: names that a file can have",
        "load_data('\\udcff.svm')": "no file ..udcff.svm",
    },
    WireError: {
        "decode(bytes([*(m := encode(TopK(1), V, 0))[:-1], m[-1] ^ 1]))": "message.*checksum",
    },
    th.NoTheoremError: {
        "theory_step(ParallelSGD(TopK(1), 'theory'), NOISY, 4)": "biased",
        "theory_step(ParallelSGD(TopK(1), 'theory', ErrorFeedback()), NOISY, 4)": "quadratic.* has Mem-SGD's theorem",
        "theory_step(ParallelSGD(step='theory', momentum=0.9), NOISY, 4)": "Momentum",
        "theory_step(ParallelSGD(step='theory', sampling='shuffle'), NOISY, 4)": "without replacement",
        "theory_step(ParallelSGD(QSGD(4), 'theory', shards='by_label'), NOISY, 4)": "rows of their own",
        "theory_step(BY_LABEL, NOISY, 4)": "rows of their own",
        "theory_step(LOCAL._replace(step='theory'), NOISY, 4)": "average='quadratic'",
        "theory_step(ParallelSGD(step='theory', average='quadratic'), NOISY, 4)": "any step",
        "theory_step(GradientTracking(step=1.0, graph=Ring())._replace(step='theory'), NOISY, 4)": "GradientTracking",
        "theory_step(DIANA(RandK(1, True), 'theory', alpha=1.0), QUADRATIC, 3)": r"alpha = 1 above 1/\(1 \+ omega\)",
        "theory_step(DASHA(RandK(1, True), 'theory', a=0.5), QUADRATIC, 3)": r"a = 0.5 in place of 1/\(1 \+ 2 omega\)",
        "theory_step(DIANA(RandK(1, True), 'theory'), SATURATING, 3)": "without strong convexity",
        "theory_step(ProxSkip('theory'), saturating_quadratic(4, 0.0), 3)": "without strong convexity",
        "theory_step(VRMARINA(RandK(1, True), 'theory', sampling='shuffle'), ROWS, 3)": "drawn independently",
        "theory_step(VRMARINA(RandK(1, True), 'theory', p=0.5), QUADRATIC, 3)": "drawn independently",
        "theory_step(MARINA(RandK(1, True), 'theory'), ROWS, 3)": "noisy gradients",
        "theory_step(EF21SGDM(TopK(1), 'theory', sampling='shuffle'), ROWS, 3)": "without replacement",
    },
    ConfigurationError: {
        "Configuration.from_dict({'worker': 3})": "did you mean workers",
        "Configuration.from_dict({'workers': [2, 2]})": "workers",
        "Configuration.from_dict({'workers': []})": "workers",
        "Configuration.from_dict({'steps': True})": "steps",
        "Configuration.from_dict({'l2': -1.0})": "l2",
        "Configuration.from_dict({'l2': nan})": "l2",
        "Configuration.from_dict({'seed': -1})": "seed",
        "Configuration.from_dict({'methods': []})": "methods",
        "Configuration.from_dict({'methods': [3]})": "methods",
        "Configuration.from_dict({'data': ''})": "data",
        "Configuration.from_dict({'c': None})": "c",
        "largest_batch(files='a9a')": "files",
        "largest_batch(bundled=[1])": "bundled",
        "largest_batch(copies=[1])": "copies",
        "largest_batch(passes=[])": "passes",
        "largest_batch(passes=[0.0])": "passes",
        "largest_batch(factor=1.0)": "factor",
        "largest_batch(seeds=2)": "seeds",
        "largest_batch(most=1)": "most",
        "largest_batch(goal=1.0)": "goal",
    },
}
FORMULA_NAMES = {name: getattr(th.bounds, name) for name in th.bounds.__all__} | {
    "np": np,
    "inf": np.inf,
    "nan": np.nan,
    "BCN": {"mu": 1.0, "lipschitz": 2.0, "step": 0.1, "noise": 1.0},
    "GROWING": {"mu": 1.0, "lipschitz": 4.0, "variance": 3.0, "workers": 2, "gap": 5.0},
    "NOISE": {"step": 0.25, "curvature": 1.0, "lipschitz": 4.0, "noise": 1.0, "gap": 1.0},
    "ONE": {"step_sizes": [1.0], "diagonal": [1.0], "variance": 1.0, "start": 0.0},
    "RAW": {"batch": 2, "step": 0.1, "second_moment": 1.0, "batch_bound": 2.0},
    "SMOOTH": {"steps": 1, "lipschitz": 2.0, "variance": 1.0, "distance": 1.0},
    "LOCAL": dict(mu=1.0, lipschitz=2.0, local_steps=4, second_moment=2.0, variance=1.0, distance=1.0),
    "MEM_SGD": dict(mu=1.0, lipschitz=2.0, second_moment=1.0, distance=1.0, d=10, k=5, shift=14.0),
    "UNIT": {"mu": 1.0, "second_moment": 1.0},
}
FORMULAS = {  # of theory.bounds: the argument that is named
    "optimal_probabilities([1.0, -3.0, 2.0], np.array([1.0, 2.0]))": r"budget: got array\(\[1., 2.\]\)",
    "qsgd_variance(0, 4)": "d",
    "qsgd_variance(10, 0)": "s",
    "qsgd_variance_exact([1.0], 4, norm=1)": "norm",
    "qsgd_nonzeros_exact([nan], 4)": "v",
    "elias_length(0)": "k",
    "rand_k_variance(10, 11)": "k",
    "rand_k_contraction(10, 0)": "k",
    "top_k_contraction(10, 2.5)": "k",
    "memory_error(0.0, 1.0, 1.0)": "delta",
    "memory_error(0.5, 1.0, 1.0, form='paper', steps=3)": "steps",
    "memory_error_schedule(0.5, [-1.0], 1.0)": "steps",
    "mem_sgd_shift(10, 1, alpha=4.0)": "alpha",
    "mem_sgd_alpha(10, 1, shift=1.0)": "shift",
    "mem_sgd_memory(10, 1, 1.0, 1.0)": "shift",
    "mem_sgd(100, **MEM_SGD, alpha=50.0)": "alpha",
    "mem_sgd(100, **MEM_SGD | {'lipschitz': 0.5})": "lipschitz",
    "sgd_constant_step(1, mu=1.0, step=0.6, second_moment=1.0, distance=1.0)": "step",
    "sgd_constant_step_floor(1.0, 2.0, 1.0)": "step",
    "sgd_inverse_time(1, mu=1.0, second_moment=1.0)": "steps",
    "sgd_inverse_time_exact(1, mu=0.0, variance=1.0)": "mu",
    "sgd_uniform_average(0, mu=1.0, second_moment=1.0)": "steps",
    "sgd_weighted_average(1, mu=1.0, second_moment=-1.0)": "second_moment",
    "sgd_average([1.0], [0.0], mu=1.0, second_moment=1.0)": "weights",
    "sgd_average([0.0], [1.0], mu=1.0, second_moment=1.0)": "step_sizes",
    "averaged_variance(2.0, 1.0, workers=1)": "second_moment",
    "averaged_second_moment(1.0, 2.0, workers=0)": "workers",
    "minibatch_second_moment(1.0, 2.0, 1)": "second_moment",
    "sgd_steps_for(accuracy=0.6, distance=1.0, **UNIT)": "accuracy",
    "sgd_steps_for(accuracy=0.1, distance=-1.0, **UNIT)": "distance",
    "sgd_steps_for(accuracy=0.1, distance=1.0, floor_share=1.0, **UNIT)": "floor_share",
    "sgd_scaled_inverse_time(steps=1, c=0.5, **UNIT)": "c",
    "sgd_scaled_inverse_time(steps=1, c=1.0, form='quoted', **UNIT)": "distance",
    "sgd_smooth_last(steps=5, lipschitz=0.5, **UNIT)": "lipschitz",
    "sgd_suffix_average(steps=5, alpha=1.0, **UNIT)": "alpha",
    "sgd_uniform_average_lower(steps=2.5)": "steps",
    "sgd_uniform_average_logarithm(c=0.0)": "c",
    "polyak_ruppert(hessian=[1.0, 0.0], covariance=1.0)": "hessian",
    "polyak_ruppert(hessian=[1.0, 2.0], covariance=[1.0])": "covariance",
    "polyak_ruppert(hessian=[1.0], covariance=[-1.0])": "covariance",
    "quadratic_moments_exact(**ONE | dict(variance=-1.0))": "variance",
    "quadratic_moments_exact(**ONE | dict(start=[0, 0]))": "start",
    "quadratic_moments_exact(**ONE | dict(step_sizes=[nan]))": "step_sizes",
    "quadratic_average_exact(weights=[1, 1], **ONE)": "weights",
    "quadratic_average_exact(weights=[0], **ONE)": "weights",
    "bottou_constant_step_floor(**BCN | dict(step=0.6))": "step",
    "bottou_constant_step_floor(**BCN | dict(mu=3.0))": "mu",
    "bottou_constant_step_floor(second=0.5, **BCN)": "second",
    "bottou_constant_step(steps=-1, gap=1.0, **BCN)": "steps",
    "bottou_decreasing_step_plan(mu=1.0, lipschitz=0.5)": "lipschitz",
    "bottou_decreasing_step(steps=1, mu=1.0, lipschitz=2.0, noise=1.0, gap=1.0, beta=1.0, shift=9.0)": "beta",
    "sgd_smooth_convex_with_step(step=0.5, **SMOOTH)": "step",
    "sgd_smooth_convex_step(**SMOOTH | dict(variance=0.0))": "variance",
    "minibatch_convex(5, **RAW, distance=1.0)": "gradients",
    "minibatch_convex(4, **RAW | {'batch_bound': 0.5}, distance=1.0)": "batch_bound",
    "minibatch_convex(4, **RAW | {'batch': 1.5}, distance=1.0)": "batch",
    "minibatch_convex(4, **RAW, distance=0.0)": "distance",
    "minibatch_strongly_convex(4, **RAW | {'step': 0.3}, mu=1.0, distance=1.0)": "batch",
    "minibatch_pl(4, **RAW, smoothness=1.0, mu=2.0, gap=1.0)": "mu",
    "minibatch_smooth(4, **RAW, smoothness=1.0, gap=-1.0)": "gap",
    "minibatch_convex_schedule(0.0, batch=1, second_moment=1.0, distance=1, batch_bound=1)": "accuracy",
    "minibatch_strongly_convex_schedule(2.0, batch=1, mu=1.0, second_moment=1.0, distance=1.0, "
    "batch_bound=1)": "accuracy",
    "minibatch_smooth_schedule(inf, batch=1, smoothness=1.0, second_moment=1.0, gap=1.0, batch_bound=1)": "accuracy",
    "minibatch_pl_schedule(0.1, batch=1, smoothness=1.0, mu=0.0, second_moment=1.0, gap=1.0, batch_bound=1)": "mu",
    "largest_batch(2.0, -1.0)": "delta",
    "largest_batch(nan)": "batch_bound",
    "minibatch_worst_case(-0.1, passes=1.0, step=0.1, mu=1.0, second_moment=1.0)": "delta",
    "minibatch_worst_case(0.1, passes=0.0, step=0.1, mu=1.0, second_moment=1.0)": "passes",
    "sphere_quadratic_floor(20, 0.1, 1.0)": "batch",
    "sphere_quadratic_delta(20.0, 0.1, 1.0)": "batch",
    "sphere_quadratic_distance(1, batch=0, step=0.1, mu=1.0, distance=1.0)": "batch",
    "kink_cycle(20, 0.1, 1.0, 1.0)": "batch",
    "kink_cycle(2, 0.1, 1.0, 0.0)": "slope",
    "signed_slopes_gap(2, batch=2, step=0.1, slope=1.0, spread=-1.0, distance=1.0, last=0.0)": "spread",
    "local_sgd_fixed_point([1.0, 3.0], [0.0, 1.0], step=1.0, local_steps=9)": "step",
    "local_sgd_fixed_point([1.0], [0.0], step=0.1, local_steps=0)": "local_steps",
    "local_sgd_fixed_point([1.0, 2.0], [0.0], step=0.1, local_steps=1)": "minimisers",
    "local_sgd_fixed_point([[[1.0, 1.0], [0.0, 1.0]]], [[0.0, 0.0]], step=0.1, local_steps=1)": "curvatures",
    "local_sgd_fixed_point([1.0], [nan], step=0.1, local_steps=1)": "minimisers",
    "median_deviation(4, 1)": "workers",
    "median_deviation(5, 3)": "bad",
    "median_deviation(5, -1)": "bad",
    "normal_median_variance(2)": "workers",
    "ring_gossip_factor(2)": "workers",
    "least_bits(5, 1.1)": "delta",
    "least_unbiased_bits(5, -0.1)": "omega",
    "pareto_order_mean(3, 1, shape=2.0, scale=-1.0)": "scale: got -1",
    "fastest_k(3, shape=-1.0)": "shape: got -1",
    "inclusion_probabilities(5, [1.0, 2.0])": "k: got 5",
    "gossip_gap(None, 16)": "graph: got None",
    "growing_batch_limit(0.5, curvature=0, lipschitz=2.0)": "curvature: got 0",
    "pl_contraction(2.0, 1.0)": "mu",
    "pl_contraction(0.0, 1.0)": "mu",
    "growth_limit(1.0, 2.0, 1.0)": "step",
    "optimal_rho(1.0, 1.0)": "step",
    "optimal_rho(49.0, 49.0)": "step",
    "cr_psgd_geometric(3, rho=4 / 3, **GROWING)": "rho",
    "cr_psgd_rate(30, rho=1.0, **GROWING)": "rho",
    "cr_psgd_rate(3, first=4, **GROWING)": "samples",
    "cr_psgd((1, 0), **GROWING)": "batches",
    "growing_batches(9, 1.0)": "rho",
    "growing_batches(3, 2.0, 4)": "samples",
    "shrinking_noise(3, **NOISE | {'step': 0.3}, decay=0.5)": "step",
    "shrinking_noise(3, **NOISE, decay=1.5)": "decay",
    "shrinking_noise_recursion(3, **NOISE, decay=0.5, alignment=1.0, length=0.5)": "length",
    "growing_batch_gradients(0.1, tau=1.2, **NOISE)": "tau",
    "growing_batch_gradients(1.0, tau=1.1, **NOISE)": "accuracy",
    "inexact_gradients(1, mu=3.0, lipschitz=2.0, error=1.0, decay=0.5, gap=1.0)": "mu",
    "batch_error(3, 1.0, 2)": "n",
    "catalyst_factor(1.0, 1.0)": "theta",
    "catalyst(2, (), lipschitz=1.0, variance=1.0, gap=1.0)": "batches",
    "catalyst_budget(3, 4)": "samples",
    "local_sgd(9, **LOCAL, shift=31.0)": "shift",
    "local_sgd(9, **LOCAL | {'variance': 3.0})": "variance",
    "local_sgd_deviation_exact(-1, step=0.1, curvature=1.0, variance=1.0)": "since",
    "local_steps_limit(3, 4)": "samples",
    "allreduce_cost('ring', 0, 1)": "ranks: got 0",
    "allreduce_cost('ring', 2, -1)": "words: got -1",
    "ring_doubling_crossover(6, alpha=1, beta=1)": "ranks: got 6",
    "ring_doubling_crossover(4, alpha=1, beta=0)": "beta: got 0",
    "gather_break_even(1)": "ranks: got 1",
    "CollectiveCost(1, 1, 1).seconds(-1, 0)": "alpha: got -1",
    "exponential_order_mean(3, 4, shift=0, rate=1)": "k: got 4",
    "exponential_order_mean(3, 1, shift=0, rate=0)": "rate: got 0",
    "pareto_order_mean(3, 0, shape=1)": "k: got 0",
    "pareto_order_variance(3, 1, shape=-1)": "shape: got -1",
    "fastest_fraction(-0.1)": "shift_rate: got -0.1",
    "feedback_floor(0.5, step=0.1, spread=3.0)": "spread: got 3.0, allowed: 0 for one worker",
    "fastest_k(3)": "rate: got None, allowed: exactly one of rate and shape",
    "fastest_k(2, shape=0.4)": "shape: got 0.4",
    "fastest_rounds(0.0, 1, mu=1, step=1, variance=1, distance=1)": "accuracy: got 0",
    "inclusion_probabilities(1, [1.0, 0.0])": r"rates: got \[1.0, 0.0\]",
    "inclusion_probabilities(1, np.ones(21))": "rates: got",
    "horvitz_thompson_weights([0.5, 0.0])": "probabilities: got",
    "sgd_iterations(3.0, mu=1, second_moment=2, distance=1)": "accuracy: got 3",
    "compressed_distance(-1, mu=1, step=1, variance=1, distance=1)": "steps: got -1",
    "best_batch(0, 1, row=1, rest=1)": "gradient_squared: got 0",
    "utilisation(0, row=1, rest=1)": "batch: got 0",
    "ring_speed_up(2, work=0, words=1, alpha=1, beta=1)": "work: got 0",
    "ring_best_ranks(work=1, words=1, alpha=-1, beta=1)": "alpha: got -1",
    "drop_connect_factor(1.0)": "drop: got 1.0",
    "langevin_factor(-0.1, 2, 1.0)": "deviation: got -0.1",
    "langevin_factor(0.1, 2, 0.0)": "second_moment: got 0.0",
    "quantized_factor(0.5, 1.0)": "mean_norm_product: got 0.5",
    "mechanism_batch_bound(0.5, 2.0)": "batch_bound: got 0.5",
    "mechanism_batch_bound(2.0, 0.5)": "factor: got 0.5",
    "mechanism_batch_bound(2.0, 2.0, 0)": "n: got 0",
    "mechanism_rounds(inf, 2.0)": "batch_bound: got inf",
    "glm_batch_bound(3, 2.0, 1.0)": "smallest_row: got 2.0",
    "glm_batch_bound(3, 0.0, 0.0)": "spectral: got 0.0",
    "conflict_batch_bound(3, 3)": "degree: got 3, allowed: an integer, at most n - 1 = 2",
    "random_features_batch_bound(3, 3, form='guaranteed', failure=0.0)": "failure: got 0.0",
    "random_features_batch_bound(3, 4, form='printed')": "n: got 3, allowed: at least d = 4",
    "stability_step(1.0, batch=2, batch_bound=0.9)": "batch_bound: got 0.9",
    "stability_step(1.0, batch=2, batch_bound=2.0, mu=1.5)": "mu: got 1.5",
    "stability_step(1.0, batch=2, batch_bound=2.0, form='printed')": "n: got None",
    "sgd_stability(10, n=0, step=0.1, lipschitz=1.0)": "n: got 0",
    "sgd_stability_strongly_convex(n=3, mu=1.0, lipschitz=1.0, smoothness=0.5)": "smoothness: got 0.5",
    "generalization_gap(1.0, gradients=1, step=0.1, lipschitz=1.0, failure=1.1)": "failure: got 1.1",
    "minibatch_second_moment(2.0, 1.0, batch=5, n=4)": "n: got 4, .* at least batch = 5",
    "pl_gd(1, mu=2.0, lipschitz=1.0, step=0.1, gap=1.0)": "lipschitz: got 1.0",
    "pl_gd(1, mu=1.0, lipschitz=2.0, step=1.0, gap=1.0)": "step: got 1.0",
    "pl_gd(-1, mu=1.0, lipschitz=2.0, step=0.5, gap=1.0)": "steps: got -1",
    "pl_sgd_floor(mu=1.0, lipschitz=2.0, step=0.6, second_moment=1.0)": "step: got 0.6",
    "logistic_curvature(-1.0)": "margin: got -1.0",
    "strong_convexity_gap(-1.0, mu=1.0)": "gradient_squared: got -1.0",
    "pl_sgd_step(1.0, lipschitz=1.0, step=0.5, gradient_squared=4.0, second_moment=3.0)": "second_moment: got 3.0",
    "qsgd_variance('1000', 4)": "d: got '1000'",
    "bottou_decreasing_step(1, mu=1.0, lipschitz=2.0, noise=1.0, gap=0.0, beta=2.0, shift=1.0)": "shift: got 1.0",
    "private_floor(2.0, 1.0, 1.0, 1.0, 1, 1)": "step",
    "dcgd_rate(1, step=0.1, mu=1.0, distance=1.0, omega=1.0, workers=2, at_minimum=1.0, split=0.5)": "split: got 0.5",
    "sgd_suffix_average(5, alpha=0.5, mu=1.0, second_moment=1.0)": r"alpha: got 0\.5, .* here 2\.5",
    "sampled_fedavg_gap([0.0, 0.0], [1.0, 2.0], step=0.1, local_steps=1, rounds=1, clients=1)": "curvatures",
    "conef_memory(1.0, 0.9, 0.1, 1.0)": r"theta: got 1\.0, .* kappa = 1\.8 .*1/residual - 1 = 0\.111111",
    "conef_memory_exact(1.0, 0.9, 0.9, 0.1, 1.0)": "theta",
    "partial_memory(0.05, 0.9, 0.9, 0.1, 1.0)": r"theta: got .* that is .* beta\^2\) < 1",
    "sphere_quadratic_floor(3, 0, 1.0)": "step: got 0",
    "exact_feedback_rate(1.5, 2.0)": "delta: got 1.5",
    "exact_feedback_rate(0.5, 0.5)": "kappa: got 0.5",
    "qsgd_flat_entropy(15, 4)": "s",
    "mem_sgd_counted_bits(method='qsgd', d=10, number=0)": "number",
    "mem_sgd_counted_bits(method='qsgd', d=10, number=25)": "number",
    "mem_sgd_counted_bits(method='qsgd', d=10, number=None)": "number",
    "mem_sgd_counted_bits(method='qsgd', d=10, number=2, nonzeros=0.0)": "nonzeros",
    "mem_sgd_counted_bits(method='qsgd', d=10, number=2, nonzeros=11.0)": "nonzeros",
    "mem_sgd_counted_bits('entries', 10, 11)": "number",
    "ternary_variance_exact([2.0], 1.0)": "scale",
    "chord_variance([1.0], [0.0, 0.5])": "levels",
    "chord_variance([1.0], [0.0, 0.5, 0.5, 1.0])": "levels",
    "nuqsgd_variance(10, 3, 0.3, form='2^(2s+1)')": "ratio",
    "nuqsgd_variance(10, 3, form='other')": "form",
    "bernoulli_variance(0.0)": "p",
    "ultra_contraction(10, 1.0)": "k",
    "ultra_variance(0, 0.5)": "d",
    "threshold_contraction(10, 1.5)": "size",
    "optimal_probabilities([1.0])": "budget: got None, allowed: exactly one of budget and variance",
    "optimal_probabilities([1.0], budget=1.0, variance=1.0)": "budget: got 1.0, allowed: exactly",
    "optimal_probabilities([1.0], budget=0.0)": "budget",
    "optimal_probabilities([inf], budget=1.0)": "v",
    "greedy_probabilities([1.0], 1.0, 0)": "rounds",
    "sparsifier_variance([1.0, 2.0], [0.5])": "p",
    "sparsifier_variance([1.0], [0.0])": "p",
    "optimal_variance(10, 0.0)": "budget",
    "sparsity_lemma(0.0, 1)": "rho",
    "sparsified_iterations(2.0)": "p",
    "sparsified_distance(1, 1.0, 3.0, 1.0, 1.0, 0.5)": "step",
    "atomo_probabilities([nan], 1)": "values",
    "ternary_budget([0.0])": "values",
    "atomo_variance([1.0], 0.0)": "budget",
    "ternary_budget([1.0], 0.5)": "norm",
    "spectral_atomo_variance(0, 3, 1.0)": "rows",
    "spectral_atomo_variance(3, 3, 4.0)": "budget",
    "best_rank_contraction(3, 4, 4)": "rank",
    "best_rank_error([1.0, 2.0], 1.5)": "rank",
    "power_sgd_cold_error([-1.0, 2.0], 1)": "singular_values",
    "power_sgd_halko([1.0, 1.0, 1.0], 2)": "rank",
    "power_sgd_halko([1.0, 1.0, 1.0], 3, 2)": "target",
    "power_sgd_warm_factor([1.0, 1.0], 2)": "rank",
    "power_sgd_warm_factor([1.0, 0.0, 0.0], 2)": "rank",
    "spectral_beats_entrywise([1.0], [0.0], 1, 1)": "entries",
}


@pytest.mark.parametrize(
    ("error", "call", "said"), [pytest.param(e, c, s, id=c) for e, rows in CALLS.items() for c, s in rows.items()]
)
def test_a_bad_call_is_refused_by_name(error, call, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=f"(?s){said}") as raised:
        eval(call, NAMES)  # noqa: S307
    assert type(raised.value) is error and not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", FORMULAS)
def test_a_formula_names_what_is_outside_its_domain(call):
    said = FORMULAS[call]
    with pytest.raises(ValueError, match=f"(?s)^{said if ':' in said else f'{said}: got .*, allowed: '}"):
        eval(call, FORMULA_NAMES)  # noqa: S307


# --- files ------------------------------------------------------------------------------------------------------------

FIRST = '{"kind":"experiment","x":1}\n'
DEEP = "[" * 100_000
ROWS_OF_TEXT = "".join(f"{(-1) ** i} {i + 1}:{i * 0.37}\n" for i in range(3000)).encode()


def flipped(whole: bytes) -> bytes:
    """With other bits in the middle."""
    middle = len(whole) // 2
    return whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]


SVM = {  # the content of a file: what the error says of it, and what is allowed
    "empty": (b"", "the file is empty", "give some data"),
    "blank": (b"\n# nothing\n", "no rows", "give some data"),
    "binary": (b"1 1:1\n\0\n", "a binary file", "label index:value"),
    "HTML": (b"<html>", "an HTML or XML page", "label index:value"),
    "JSON": (b'{"a": 1}', "JSON", "label index:value"),
    "a zip": (b"PK\x03\x04zzzz", "a zip archive", "plain, gzip or bzip2"),
    "an archive twice": (gzip.compress(gzip.compress(b"1 1:1\n")), "inside an archive", "plain, gzip or bzip2"),
    "CSV": (b"1,2,3\n", "line 1.*looks like CSV", "dump_svmlight_file"),
    "a text label": (b"1 1:1\nabc 1:1\n", "line 2.*'abc'", "label index:value"),
    "no number": (b"nan 1:1\n", "line 1: 'nan'", "drop the row"),
    "an infinite value": (b"1 1:inf\n", "line 1: '1:inf'", "drop the row"),
    "beyond float64": (b"1 1:1e400\n", "line 1: '1:1e400'", "drop the row"),
    "1e308": (b"1 1:1e308\n-1 1:1\n", "X: got the magnitude 1e", "squares can be summed"),
    "index 0": (b"1 0:1\n", "line 1: index below 1", "zero_based=True"),
    "index -1": (b"1 -1:1\n", "line 1: index below 1", "zero_based=True"),
    "index 1e12": (
        b"1 1:1\n1 1000000000000:1\n",
        "line 2.*'1000000000000:1'",
        "past 2147483647, the most that an index may be",
    ),
    "index 1e30": (b"1 " + b"9" * 30 + b":1\n", "line 1", "past 2147483647, the most that an index may be"),
    "no colon": (b"1 1\n", "expected index:value, found '1'", "label index:value"),
    "no value": (b"1 1:\n", "expected a number after the colon", "label index:value"),
    "no index": (b"1 :3\n", "expected index:value", "label index:value"),
    "two colons": (b"1 1:2:3\n", "expected a number after the colon", "label index:value"),
    "hexadecimal": (b"1 0x1:1\n", "expected index:value", "label index:value"),
    "other digits": ("1 1:\u0661\n".encode(), "expected a number", "label index:value"),
    "UTF-16": ("1 1:1\n".encode("utf-16"), "text in UTF-16", "label index:value"),
    "labels only": (b"1\n-1\n", "not one index:value", "n_features="),
    "no sum": (b"1 1:1e308 1:1e308\n-1 1:1\n", "1 of the entries are NaN or infinite", "drop"),
    "a part of an index": (b"1 1.5:2\n", "expected index:value, found '1.5:2'", "label index:value"),
    "no label": (b"1:2 3:4\n", "expected a label, found '1:2'", "label index:value"),
    "words": (b"the quick brown fox\n", "expected a label, found 'the'", "label index:value"),
    "two labels": (b"3,7 1:1 2:1\n", "several labels", "choose one"),
    "a PDF": (b"%PDF-1.7\n%\xe2\xe3", "PDF", "label index:value|give"),
    "xz": (b"\xfd7zXZ\x00...", "xz", "plain, gzip or bzip2"),
    "an array": (b"\x93NUMPY\x01\x00", "NumPy", "give"),
    "HTML in gzip": (gzip.compress(b"<html>"), "HTML", "label index:value"),
    "a flipped gzip": (flipped(gzip.compress(ROWS_OF_TEXT)), "truncated or damaged", "download or copy it again"),
    "a flipped bzip2": (flipped(bz2.compress(ROWS_OF_TEXT)), "truncated or damaged", "download or copy it again"),
    "a tenth of a gzip": (gzip.compress(ROWS_OF_TEXT)[:1000], "truncated or damaged", "download or copy it again"),
    "a tenth of a bzip2": (bz2.compress(ROWS_OF_TEXT)[:1000], "truncated or damaged", "download or copy it again"),
    "a cut gzip": (gzip.compress(b"1 1:1\n" * 1000)[:-9], "truncated or damaged", "download or copy it again"),
    "a cut bzip2": (bz2.compress(b"1 1:1\n" * 1000)[:-9], "truncated or damaged", "download or copy it again"),
}
RECORDS = {
    "empty": (b"", "record.jsonl is empty"),
    "another first line": (b'{"kind":"result","run":"a"}\n', "the first line is of kind 'result'"),
    "no JSON": (FIRST.encode() + b"xx\n" + FIRST.encode(), "line 2: not a line of a record"),
    "lists": (b"[1]\n[2]\n", "line 1: not a line of a record"),
    "bytes": (bytes(range(256)) + b"\n", "line 1: not a line of a record"),
    "deep": (f"{FIRST}{DEEP}\n{FIRST}".encode(), "line 2: not a line of a record"),
    "a number of 10,000 digits": (b'{"kind":"experiment","x":' + b"9" * 10_000 + b"}\n", "line 1: not a line"),
    "a history of no run": (f'{FIRST}{{"kind":"history","step":1}}\n{FIRST}'.encode(), "line 2: not a line"),
    "a run that is a list": (f'{FIRST}{{"kind":"result","run":[1]}}\n{FIRST}'.encode(), "line 2: not a line"),
    "an end of no status": (f'{FIRST}{{"kind":"end"}}\n'.encode(), "line 2: not a line"),
    "texts in a history": (f'{FIRST}{{"kind":"history","run":"a","step":"x"}}\n'.encode(), "history of run 'a'"),
    "other columns": (
        f'{FIRST}{{"kind":"history","run":"a","f":1}}\n{{"kind":"history","run":"a"}}\n'.encode(),
        "history of run 'a'.*different columns",
    ),
    "2**99 steps": (f'{FIRST}{{"kind":"history","run":"a","step":1e30}}\n'.encode(), "history of run 'a'"),
}
FIGURES = {
    "no JSON": ("xx", "it is not JSON"),
    "deep": (DEEP, "it is not JSON"),
    "a list": ("[]", "figure, how, seconds, versions, found are its keys"),
    "a newer format": ({"format": 9}, "of format 9, and this version reads 1"),
    "nothing found": ({"found": 3}, "found is '3'"),
    "no way how": ({"how": 3}, "how is '3'"),
    "no figure": ({"figure": 3}, "figure is '3'"),
    "a broken array": ({"found": {"a": {"!array": [1]}}}, "--fresh measures again"),
}
SCRIPTS = {
    "no Python": ("x = [1,\n", "cannot be run: SyntaxError.*line 1"),
    "an error": ("x = 1\nraise OSError('gone')\n", r"cannot be run: OSError: gone \(line 2\)"),
    "an end": ("import sys\nsys.exit(0)\n", r"cannot be run: SystemExit: 0 \(line 2\)"),
    "no study": ("x = 1\n", "there is no function collect, which a study must have"),
}
STUDIES = {
    "another key": ({"sed": 3}, "unknown key 'sed': did you mean seed"),
    "a seed below 0": ({"seed": -3}, r"seed: got -3, allowed: an integer from 0 to 2\*\*62 - 1"),
    "a seed as a truth": ({"seed": True}, "seed: got True, allowed: an integer"),
    "data of a number": ({"data": 3}, "data: got 3, allowed: a string"),
    "no study": ({"study": "spectra"}, "unknown study 'spectra': did you mean spectrum"),
}


OPTIONS: dict[str, list[dict]] = {  # of studies: options outside their domain, one in each; it is named
    "conef": [{"share": 1.0}, {"grid": []}, {"grid": ["1"]}, {"sweep": [0]}, {"problem": "pictures"}, {"seeds": 0}],
    "conef-table-1": [{"grid": [-1.0]}, {"decrease": 1.0}, {"parts": 0}, {"part": 3}],
    "choose": [{"workers": 1}, {"batches": (8, 4)}, {"accuracies": (0.1, 0.2)}, {"seeds": 0}],
    "gossip": [{"workers": (8,)}, {"workers": ()}, {"rounds": 5}, {"table": 2}, {"seeds": 0}],
    "lock-free": [{"threads": n} for n in ((2, 1), (2,), 2)] + [{"goal": 0.0}, {"repeats": 0}, {"gamma": -1.0}],
    "mem-sgd": [{"problem": "rvc1"}, {"rates": ()}, {"delay": 0.0}, {"seeds": 0}, {"epochs": 2.5}]
    + [{"ks": ks} for ks in ((0, 1), (2, 1), 3)],
    "network-compressors": [{"tasks": ["pictures"]}, {"bits": [1]}, {"ranks": [0]}, {"shares": [1.5]}, {"grid": []}],
    "network-adaptive": [
        {"adaptive": []},
        {"share": 1.0},
        {"savings": [0]},
        {"warmup": 0.0},
        {"bits": 1},
        {"eps": 0.0},
    ],
    "network-cr-psgd": [{"rho": 1.0}, {"local": [1]}, {"samples": 8}],
    "network-questions": [{"rows": 3}, {"share": 0.0}, {"seeds": 0}],
    "time-to-accuracy": [{"workers": (2, 4)}, {"batches": (8, 2)}, {"batch": 7}, {"accuracy": 1.0}, {"seeds": 0}],
}


@pytest.mark.parametrize("name", SVM)
def test_a_bad_data_file_is_refused(name, fresh_cache, tmp_path):
    path = tmp_path / "some.svm"
    content, said, allowed = SVM[name]
    path.write_bytes(content)
    refused(Row(lambda: load_data(path), DataError, said, allowed))
    assert not list(fresh_cache.rglob("*.npy")) or name in ("no sum", "1e308")


@pytest.mark.parametrize("name", RECORDS)
def test_a_bad_record_is_refused(name, tmp_path):
    content, said = RECORDS[name]
    (tmp_path / "record.jsonl").write_bytes(content)
    with pytest.raises(RecordError, match=said):
        read_record(tmp_path)


@pytest.mark.parametrize("name", FIGURES)
def test_a_bad_record_of_a_figure_is_refused(name, tmp_path):
    content, said = FIGURES[name]
    whole = {"format": 1, "figure": "x", "how": {}, "seconds": 1, "versions": {}, "found": {}}
    (tmp_path / "x.json").write_text(content if isinstance(content, str) else json.dumps(whole | content))
    with pytest.raises(RecordError, match=f"x.json.*{said}"):
        read_figure(tmp_path / "x.json")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_bad_file_of_a_study_is_refused(name, tmp_path):
    content, said = SCRIPTS[name]
    path = tmp_path / "my_bad_study.py"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=said):
        own_study(str(path))


@pytest.mark.parametrize("name", STUDIES)
def test_a_bad_configuration_of_a_study_is_refused(name):
    content, said = STUDIES[name]
    with pytest.raises(ConfigurationError, match=said):
        StudyConfiguration.from_dict({"study": "spectrum"} | content)


@pytest.mark.parametrize(("study", "options"), [(study, one) for study, rows in OPTIONS.items() for one in rows])
def test_an_option_of_a_study_outside_its_domain_is_refused(study, options):
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        StudyConfiguration.from_dict({"study": study} | options)


def test_devices_and_endless_files_are_no_configuration(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot read /dev/zero: path: got '/dev/zero', allowed: an ordinary"):
        read_toml("/dev/zero")
    (tmp_path / "long.toml").write_text("# " + "x" * 2**20)
    with pytest.raises(ConfigurationError, match="allowed: up to 1048576 bytes"):
        read_toml(tmp_path / "long.toml")
    with pytest.raises(RecordError, match="cannot read /dev/zero"):
        read_figure("/dev/zero")


# --- arrays of a record -----------------------------------------------------------------------------------------------


def record_with(tmp_path, name: str, content: bytes) -> Any:
    folder = tmp_path / "record"
    folder.mkdir()
    (folder / "record.jsonl").write_text(FIRST)
    (folder / name).write_bytes(content)
    return read_record(folder)


def npy(shape, dtype="<f8", body=b"") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + body


def archive(tmp_path, content: bytes, how=zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(tmp_path / "made.zip", "w", how) as made:
        made.writestr("x.npy", content)
    return (tmp_path / "made.zip").read_bytes()


def test_arrays_of_a_record_are_what_its_bytes_hold(tmp_path):
    good = record_with(tmp_path, "a.npz", archive(tmp_path, npy((2,), body=np.array([1.0, 2.0]).tobytes())))
    assert good.arrays("a")["x"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("content", "how", "said"),
    [
        (npy((10**12,)), zipfile.ZIP_STORED, r"x.npy says \(1000000000000,\) of float64, which it does not hold"),
        (npy((2**40, 2**40)), zipfile.ZIP_STORED, "which it does not hold"),
        (npy((1,), "|O", b"\x80\x04N."), zipfile.ZIP_STORED, "of object, which it does not hold"),
        (npy((2**20,), body=bytes(2**23)), zipfile.ZIP_DEFLATED, "x.npy is compressed; arrays of a record are not"),
        (b"\x93NUMPY", zipfile.ZIP_STORED, "holds no arrays"),
        (b"", zipfile.ZIP_STORED, "holds no arrays"),
    ],
    ids=["1e12 numbers", "2**80 numbers", "a pickle", "a bomb", "half a header", "nothing"],
)
def test_arrays_that_a_record_cannot_hold_are_refused(content, how, said, tmp_path):
    with pytest.raises(RecordError, match=said):
        record_with(tmp_path, "a.npz", archive(tmp_path, content, how)).arrays("a")


def test_a_record_stays_in_its_folder(tmp_path):
    outside = tmp_path / "secret.npz"
    np.savez(outside, x=np.ones(2))
    record = record_with(tmp_path, "b.npz", b"no archive")
    with pytest.raises(RecordError, match="b.npz holds no arrays"):
        record.arrays("b")
    with pytest.raises(RecordError, match=r"has no \.\._secret-\w+.npz"):
        record.arrays("../secret")
    (record.folder / "a.npz").symlink_to(outside)
    with pytest.raises(RecordError, match="leads outside of its record"):
        record.arrays("a")
    other = tmp_path / "other"
    other.mkdir()
    (other / "record.jsonl").symlink_to(record.folder / "record.jsonl")
    with pytest.raises(RecordError, match="leads outside of its record"):
        read_record(other)


@pytest.mark.parametrize("more", ["", '"data":3,"constants":{},"ranks":"two"'])
def test_a_record_that_lacks_something_is_not_drawn(more, capsys, tmp_path):
    first = FIRST.replace('"x":1', more or '"x":1')
    (tmp_path / "record.jsonl").write_text(first + '{"kind":"result","run":"a"}\n')
    with pytest.raises(SystemExit):
        main(["plot", str(tmp_path)])
    assert "is not a complete record: " in capsys.readouterr().err


# --- the command line -------------------------------------------------------------------------------------------------

LINES = {  # what is said; none of these may load data or solve anything
    "nosuch": "unknown command 'nosuch'",
    "--nosuch": "unrecognized arguments: --nosuch",
    "--data nowhere.svm": "data: no file nowhere.svm; .*Give the path",
    "--data rcv1-lik": 'data: unknown data set "rcv1-lik": did you mean rcv1-like',
    "--methods topk(k=abc)": "TopK: k: got abc, allowed: a number, inf, or the letter k",
    "--methods topk(k=1.5)": "TopK: k: got 1.5, allowed: an integer",
    "--methods topk(k=True)": "TopK: k: got True, allowed: an integer",
    "--methods topk(k=0)": "TopK: k: got 0, allowed: an integer, at least 1",
    "--methods topk(q=3)": "TopK: got the argument 'q', allowed: k",
    "--methods ef21": "EF21: got no 'compressor', allowed: a value of each argument that has no default",
    "--methods topk(1,2)": r"TopK: .*takes 2 positional arguments but 3 were given",
    "--methods topk(k=10": "this cannot be read; write it like topk",
    "--methods topk(k=__import__('os'))": r"TopK: k: got __import__\('os'\), allowed: a number",
    "--methods bucketed(inner=qsdg(7),size=3)": "unknown name 'qsdg': did you mean .*QSGD",
    "--methods topkk": "unknown method 'topkk': did you mean topk or top-k",
    "--methods topk(k=3)+memry": "unknown name 'memry': did you mean memory",
    "--methods topk(k=3)+memory+memory": "allowed: one feedback for each method",
    "--methods topk(k=3)+local(0)": r"local\(h\) with an integer h, at least 1",
    "--methods qsgd-99": "got 99 bits, allowed: 2 to 16",
    "--methods top-0": "got K = 0, allowed: 1 to the dimension",
    "--methods top-99999999999999999999": "got K = 99999999999999999999, allowed: 1 to the dimension",
    "--methods nowhere.py": "path: got .*nowhere.py', allowed: a Python file that exists",
    "--methods ,": "methods: got ',', allowed: at least one name",
    "--steps 0": "steps: got 0, allowed: an integer of at least 1",
    "--steps 1e3": "argument --steps: invalid int value: '1e3'",
    "--steps 9223372036854775808": r"steps: got 9223372036854775808, allowed: .*up to 2\*\*53",
    "--workers 0": "workers: got 0, allowed: an integer of at least 1",
    "--workers 99999999999": "workers: got 99999999999, allowed: .*to 16777216",
    "--batch 99999999999999": "batch: got 99999999999999, allowed: .*to 100000000",
    "--seed -1": r"seed: got -1, allowed: an integer from 0 to 2\*\*63 - 1",
    "--l2 nan": "l2: got nan, allowed: a number above 0",
    "--l2 x": "argument --l2: invalid float value: 'x'",
    "--problem svm": "problem: got 'svm', allowed: one of auto, logistic",
    "--features 0": "features: got 0, allowed: an integer of at least 1",
    "--repeats 0": "repeats: got 0, allowed: an integer of at least 1",
    "--out /proc/nowhere": "out: cannot write to /proc/nowhere",
    "--config nowhere.toml": "cannot read nowhere.toml: No such file",
    "--config .": "cannot read .: Is a directory",
    "--config /dev/zero": "cannot read /dev/zero: .*allowed: an ordinary file",
    "run --config nosuch": "no file and no configuration 'nosuch': known are",
    "study nosuch": "unknown study 'nosuch': known are",
    "study --seed -1": r"--seed: got -1, allowed: 0 to 2\*\*62 - 1",
    "study spectrum --topics nowhere": "--topics: there is no file nowhere",
    "study nowhere.py": "path: got 'nowhere.py', allowed: a Python file that exists",
    "figures nosuch": "unknown figure 'nosuch': known are",
    "figures --record nowhere flagship": "cannot read nowhere: No such file",
    "plot nowhere": "nowhere is not a record",
    "plot .": "is not a record: it has no record.jsonl",
    "verify nosuch": "unknown claim 'nosuch'",
    "verify qsgd.variance --seed -1": r"--seed: got -1, allowed: 0 to 2\*\*63 - 1",
    "verify nowhere.py": "allowed: a Python file that exists",
    "audit nosuch": "unknown compressor 'nosuch': known are",
    "audit QSGD --d 0": "--d: got 0, allowed: 1 to 1,000,000",
    "audit QSGD -j 0": "-j: got 0, allowed: at least 1",
    "explain nosuch": "unknown claim 'nosuch'",
    "explain topk.contractoin": "did you mean topk.contraction",
    "warm nosuch": "unknown 'nosuch': known are",
    "list graph": "did you mean graphs",
    "atlas --solve ef.5": "--solve: got ef.5, allowed:",
    "audit QSDG": "did you mean QSGD",
    "--methods qsgd4": "did you mean qsgd-4",
    "--stepss 3": "did you mean --steps",
    "--json nowhere/x.json": "--json: there is no folder nowhere",
    "--every often --checkpoint new": "--every: got 'often', allowed: a number of steps",
    "--every 0": "--every: got 0, allowed: a number of steps, at least 1",
    "--resume nowhere": "--resume: got nowhere, allowed: a folder with checkpoints",
    "--patience -1": "--patience: got -1.0, allowed: seconds",
    "warm -j 0": "-j: got 0",
    "lst": "unknown command 'lst': did you mean list",
    "run --method sgd": "did you mean --methods",
    "explain": "ID",
    "study nuqsg": "did you mean nuqsgd",
    "verify --html nowhere/l.html": "--html: there is no folder nowhere",
    "verify --html same.json": "--html: and --json both name same.json",
    "verify --errata nowhere --refuted": "--errata: there is no folder nowhere",
    "verify topk.contraction --errata .": "--refuted",
    "verify topk.contraction --badge nowhere/b.svg": "--badge: there is no folder nowhere",
    "audit nowhere.py": "path: got 'nowhere.py', allowed: a Python file that exists",
    "--methods signum": r"got no step, allowed: one of its own, such as signum\(step=0.001\)",
    "--methods qsgd(s=[1])": "QSGD",
    "--methods identity+attacked(topk(3),alie)": "Attacked: server: got TopK",
    "--methods identity+attacked(median,median)": "Attacked: attack: got Median",
    "--methods identity+trimmedmean(-1)": "TrimmedMean: f: got -1",
    "--methods bucketed(nothing(3),5)": "unknown name 'nothing'",
    "--methods identity+local(2)+local(4)": "local",
    "--methods identity+local(True)": "local",
    "--methods identity+local(2,x=3)": "local",
    "calibrate": "started as one process; a network needs at least two",
}


@pytest.mark.parametrize("line", LINES)
def test_a_bad_command_line_is_refused_before_the_work(line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for work in ("theory.data.load_data", "theory.experiment.flagship.measure_constants"):
        monkeypatch.setattr(work, lambda *_, work=work, **__: pytest.fail(f"{work} was called"))
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    out, said = capsys.readouterr()
    assert ended.value.code == 2 and len(said.splitlines()) == 1
    assert out == "" or line.startswith("--out")
    assert re.search(f"error: .*{LINES[line]}", said), said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--methods topk(k=999)", "k: got 999, allowed: at most the length of the vector, 64"),
        ("--methods top-100", "k: got 100, allowed: at most the length of the vector, 64"),
        ("--methods sgd,topk(k=3)+local(500)", "got 500 local steps, allowed: at most the 120 steps"),
        ("--problem softmax --methods powersgd(rank=9,rows=8,columns=7)", "rows|columns"),
        ("--features 5", "digits has 64 columns, not 5"),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_solving(line, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("theory.experiment.flagship.measure_constants", lambda *_: pytest.fail("solves"))
    with pytest.raises(SystemExit):
        main(["--data", "digits", *line.split()])
    assert re.search(said, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_the_table_has_its_rows():
    tables = (*TABLE.values(), SVM, RECORDS, FIGURES, SCRIPTS, STUDIES, LINES)
    assert sum(map(len, tables)) >= 150
    assert issubclass(FileRefused, ValueError) and issubclass(DataError, ValueError)
