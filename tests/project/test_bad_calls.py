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
from theory.data import DataError, load_data, make_dataset
from theory.experiment.cli import main
from theory.experiment.records import read_record
from theory.reporting.figure_records import read_record as read_figure
from theory.reporting.files import ConfigurationError, FileRefused, RecordError, read_toml
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
    "1025 classes": Row(
        lambda: th.softmax((np.ones((1025, 1)), np.arange(1025.0)), 0.1), ValueError, "data", "2 to 1024 different"
    ),
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
    "no covariance": Row(
        lambda: th.quadratic([1.0] * 2, covariance=[[0, 1], [0, 0]]), ValueError, "covariance", "C = C'"
    ),
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
    "shards of nothing": Row(
        lambda: th.shard(None, "/nowhere/out"), DataError, "name_or_path: got None", "the path of a"
    ),
    "shards to a number": Row(lambda: th.shard("digits", 3), DataError, "out: got 3", "the path of a folder to make"),
    "shards to no path": Row(lambda: th.shard("digits", "a\0b"), DataError, "out: got 'a", "the path of a folder"),
    "True shards": Row(
        lambda: th.shard("digits", "/nowhere/out", workers=True), ValueError, "workers: got True", COUNT
    ),
    "columns as a truth": Row(lambda: load_data("digits", n_features=True), DataError, "n_features", "an integer"),
    "a share as a text": Row(
        lambda: load_data("digits").split("a", 0), DataError, "fraction is 'a'", "between 0 and 1"
    ),
    "a seed as a truth": Row(lambda: load_data("digits").split(0.5, True), DataError, "seed is True", "non-negative"),
}

RUNS = {
    "workers as a truth": Row(lambda: run(workers=True), ValueError, "workers: got True", COUNT),
    "workers as a float": Row(lambda: run(workers=1.0), ValueError, "workers: got 1.0", COUNT),
    "no workers": Row(lambda: run(workers=0), ValueError, "workers", COUNT),
    "2**40 workers": Row(lambda: run(workers=2**40), ValueError, "workers", "an integer, at most 16777216"),
    "2**40 replicas": Row(lambda: run(replicas=2**40), ValueError, "replicas", "an integer, at most 16777216"),
    "replicas as a truth": Row(lambda: run(replicas=True), ValueError, "replicas: got True", COUNT),
    "steps as a truth": Row(lambda: run(steps=True), ValueError, "steps: got True", COUNT),
    "steps as a text": Row(lambda: run(steps="10"), ValueError, "steps: got '10'", COUNT),
    "2**63 steps": Row(lambda: run(steps=2**63), ValueError, "steps", f"an integer, at most {2**53}"),
    "2**63 samples": Row(lambda: run(steps=None, samples=2**63), ValueError, "samples", "an integer, at most"),
    "2**53 steps of 8": Row(lambda: run(steps=2**53, workers=8), ValueError, "steps", "gradients of all workers"),
    "a row of 2**30 steps": Row(lambda: run(steps=2**30, record_every=1), ValueError, "record_every", "up to 16777216"),
    "steps and samples": Row(lambda: run(samples=3), ValueError, "steps, samples and epochs", "exactly one"),
    "neither": Row(lambda: run(steps=None), ValueError, "steps, samples and epochs", "exactly one"),
    "rows as a truth": Row(lambda: run(record_every=True), ValueError, "record_every: got True", COUNT),
    "a seed as a text": Row(lambda: run(seed="3"), ValueError, "seed: got '3'", r"0 to 2\*\*64 - 1"),
    "seeds as texts": Row(lambda: run(seed=["1", "2"]), ValueError, "seed: got '1'", r"0 to 2\*\*64 - 1"),
    "a seed below 0 for a check": Row(
        lambda: th.check_gradient(th.quadratic([1.0], 0.0), seed=-1), ValueError, "seed: got -1", "integer, at least 0"
    ),
    "a goal as a text": Row(
        lambda: th.compare(th.ParallelSGD(step=0.1), th.quadratic([1.0], 0.0), workers=1, steps=2, epsilon="a"),
        ValueError,
        "epsilon: got 'a'",
        "a number",
    ),
    "a list of a kind": Row(lambda: th.listing(["graphs"]), ValueError, r"kind: got \['graphs'\]", "methods, "),
    "a seed as a float": Row(lambda: run(seed=0.5), ValueError, "seed: got 0.5", r"0 to 2\*\*64 - 1"),
    "a complex start": Row(lambda: run(x0=np.ones(4) * 1j), ValueError, "x0: got complex", REAL),
    "a start of texts": Row(lambda: run(x0="abcd"), ValueError, "x0: got 'abcd'", REAL),
    "a start of nothing": Row(lambda: run(x0=[None] * 4), ValueError, "x0: got None at position 0", REAL),
    "a ragged start": Row(lambda: run(x0=[[1], [1, 2]]), ValueError, "x0", "rows of one length"),
    "a start too long": Row(lambda: run(x0=np.ones(5)), ValueError, "x0", r"shape \(4,\)"),
    "an infinite start": Row(lambda: run(x0=np.full(4, np.inf)), ValueError, "x0", "finite numbers"),
    "integers in x": Row(lambda: run(dtype=int), ValueError, "dtype: got 'int64'", FLOATS),
    "no type of x": Row(lambda: run(dtype="foo"), ValueError, "dtype: got 'foo'", FLOATS),
    "no type on the wire": Row(lambda: run(wire_dtype="foo"), ValueError, "wire_dtype: got 'foo'", FLOATS),
    "halves on the wire": Row(lambda: run(wire_dtype=np.float16), ValueError, "wire_dtype", FLOATS),
    "no function to call": Row(lambda: run(callback=3), TypeError, "callback: got 3", "a function"),
    "yes and no": Row(lambda: run(compression_error="no"), ValueError, "compression_error", "True or False"),
    "fast as a text": Row(lambda: run(fast="no"), ValueError, "fast: got 'no'", "True or False"),
    "a class": Row(lambda: run(method=th.ParallelSGD), TypeError, "method", "a method, such as"),
    "a method's name": Row(lambda: run(method="sgd"), TypeError, "method: got 'sgd'", "a method, such as"),
    "a problem's name": Row(lambda: run(problem="rcv1"), TypeError, "problem", "a problem, from logistic"),
    "no communicator": Row(lambda: run(comm=3), TypeError, "comm: got 3", "a communicator"),
    "threads as a truth": Row(
        lambda: th.run_lock_free(th.ParallelSGD(step=STEP), th.ridge((X, Y), 0.1), threads=True, steps=1),
        ValueError,
        "threads: got True",
        COUNT,
    ),
    "a graph of True": Row(lambda: th.mixing(th.Ring(), True), ValueError, "workers: got True", COUNT),
    "a complex matrix": Row(lambda: th.mixing(th.MixingMatrix(np.eye(2) * 1j), 2), ValueError, "matrix", REAL),
}

SETTINGS = {
    "a step NaN": Row(lambda: th.Constant(np.nan), ValueError, "eta", "a number above 0"),
    "a step as a text": Row(lambda: th.Constant("0.1"), ValueError, "eta: got '0.1'", "a number"),
    "a step as a truth": Row(lambda: th.Constant(True), ValueError, "eta: got True", "a number"),
    "a complex step": Row(lambda: th.Constant(1j), ValueError, "eta", "a number"),
    "a text for a step": Row(
        lambda: th.ParallelSGD(th.TopK(1), step="0.1"), ValueError, "step: got .0.1.", "such as Constant"
    ),
    "a step below 0": Row(
        lambda: th.ParallelSGD(th.TopK(1), step=-0.1), ValueError, "step: got -0.1", "a number above 0"
    ),
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
    "array for a number": Row(
        lambda: th.bounds.optimal_probabilities(V, np.array([1.0, 2.0])),
        ValueError,
        r"budget: got array\(\[1., 2.\]\)",
        "a number",
    ),
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
    "a flipped bit": Row(
        lambda: th.decode(bytes([*(m := th.encode(th.TopK(1), V, 0))[:-1], m[-1] ^ 1])),
        WireError,
        "message",
        "checksum",
    ),
}

TABLE = {"data": DATA, "run": RUNS, "setting": SETTINGS, "vector": VECTORS, "message": MESSAGES}


def refused(row: Row) -> None:
    with pytest.raises(row.error, match=f"(?s)({row.named}).*({row.allowed})") as raised:
        row.call()
    assert type(raised.value) is row.error


@pytest.mark.parametrize("row", [pytest.param(r, id=f"{t}: {n}") for t, rows in TABLE.items() for n, r in rows.items()])
def test_a_bad_call_is_refused(row):
    refused(row)


# --- files ------------------------------------------------------------------------------------------------------------

FIRST = '{"kind":"experiment","x":1}\n'
DEEP = "[" * 100_000
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
        "134217728 columns, .*; state n_features",
    ),
    "index 1e30": (b"1 " + b"9" * 30 + b":1\n", "line 1", "134217728 columns, .*; state n_features"),
    "no colon": (b"1 1\n", "expected index:value, found '1'", "label index:value"),
    "no value": (b"1 1:\n", "expected a number after the colon", "label index:value"),
    "no index": (b"1 :3\n", "expected index:value", "label index:value"),
    "two colons": (b"1 1:2:3\n", "expected a number after the colon", "label index:value"),
    "hexadecimal": (b"1 0x1:1\n", "expected index:value", "label index:value"),
    "other digits": ("1 1:\u0661\n".encode(), "expected a number", "label index:value"),
    "UTF-16": ("1 1:1\n".encode("utf-16"), "a binary file", "label index:value"),
    "labels only": (b"1\n-1\n", "not one index:value", "n_features="),
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


@pytest.mark.parametrize("name", SVM)
def test_a_bad_data_file_is_refused(name, tmp_path):
    path = tmp_path / "some.svm"
    content, said, allowed = SVM[name]
    path.write_bytes(content)
    refused(Row(lambda: load_data(path), DataError, said, allowed))


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
    with pytest.raises(RecordError, match=r"has no \.\._secret.npz"):
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
    assert "is not a whole record: " in capsys.readouterr().err


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
    "--methods topk(1,2)": r"TopK: .*takes 2 positional arguments but 3 were given",
    "--methods topk(k=10": "this cannot be read; write topk",
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
    "warm nosuch": "unknown 'nosuch': known are",
    "calibrate": "started as one process; a network needs at least two",
}


@pytest.mark.parametrize("line", LINES)
def test_a_bad_command_line_is_refused_before_the_work(line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for work in ("theory.data.load_data", "theory.experiment.flagship.measure_constants"):
        monkeypatch.setattr(work, lambda *_, work=work, **__: pytest.fail(f"{work} was called"))
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert re.search(f"(?s){LINES[line]}", said), said
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
