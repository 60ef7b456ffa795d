"""The synthetic twin of RCV1: a small topic model of a newswire with similar statistics for a linear model.

It contains no real document or word: each constant of `Twin` is a number, or one row of quantiles, fitted to the
statistic of the real file that is named beside it.  ``docs/data.md`` shows how well the two agree.

A document has a class, a topic of that class and a length.  Its distinct words are drawn one after another, each from
its topic or, with a document-specific probability, from the common language, until it has that many.  Each word gets a
count, and the row is log TF-IDF of unit length, a_ij = (1 + ln tf_ij) ln(n / df_j) / norm.  The real values follow the
same formula: divided by ln(n / df), they are in the ratio 1 : 1 + ln 2 : 1 + ln 3 : ... within a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import kernel
from ..core.random import derive, key, normal, uniform
from .dataset import DataError
from .svmlight import Rows, in_order

__all__ = ["NAME", "SEED", "VERSION", "Twin", "generate", "in_parts", "topics"]

NAME = "rcv1-like (synthetic)"
VERSION = 4  # increase it when the matrix changes: cached copies are then regenerated
COLUMNS = 47_236
PART = 4096  # documents that are made together
SEED = 2004  # the year of the paper on RCV1-v2; other seeds are equally good
NOTE = "synthetic: a topic model fitted to statistics of RCV1, without any real document (docs/data.md)"

LEVELS = (
    0,
    0.01,
    0.05,
    0.1,
    0.25,
    0.4,
    0.5,
    0.6,
    0.75,
    0.9,
    0.95,
    0.99,
    0.999,
    1,
)  # of the quantiles of lengths


class Twin(NamedTuple):
    """Constants of the model, each with the statistic that it was fitted to."""

    n: int = 23_756  # rows
    d: int = COLUMNS
    positive: int = 11_830  # rows of class +1

    # Non-zeros of a row, by class: the real quantiles at LEVELS.  Interpolated between them on a log scale.
    lengths_positive: tuple[int, ...] = (7, 13, 18, 21, 30, 40, 47, 56, 74, 119, 149, 202, 330, 516)
    lengths_negative: tuple[int, ...] = (7, 14, 22, 28, 45, 64, 77, 92, 123, 171, 200, 272, 415, 618)

    # Rate of the r-th most frequent word, (r + flat)^-slope (1 + r / bend)^-steeper: the rank plot of column
    # frequencies, which is flat for the first few words, a power law up to about the bend, and steeper beyond it.
    flat: float = 5.5
    slope: float = 0.69
    bend: float = 1365.0
    steeper: float = 1.465
    words: int = 31_500  # 28,189 columns have an entry; the rarest words are never drawn, and 15,736 do not exist

    # Log rates of a word differ between classes and topics by normal numbers of these standard deviations ...
    topics: int = 6  # of equal size in each class: second and later singular values
    class_tilt: float = 1.33  # B_D(0), that is, the norm of the mean of b_i a_i
    topic_tilt: float = 3.0  # second and later singular values
    common: float = 0.06  # ... times (r / words)^common: log ratios of the classes spread less for frequent words
    rarity: float = 0.45  # s.d. over topics of a further power of all rates: largest singular value, ||mean of a_i||
    own: float = 3.2  # share of words from a document's own topic is U^(1 / own): accuracy, f*
    astray: float = 0.02  # probability that the topic is one of the other class: training error

    # Counts: P(tf >= k) = ((1 + shift) / (k + shift))^(burst - busier * share of documents with the word).
    burst: float = 2.85  # tf = 1, 2, 3, 4 in 73, 16, 5, 3 % of all entries
    busier: float = 4.2  # tf > 1 in 22 % of the entries of rare words, in 39 % of those of the most frequent
    shift: float = 0.5  # the tail of the counts: tf > 9 in 0.5 %


@kernel
def uniforms(stream, out):
    for i in range(out.size):
        out[i] = uniform(stream, i)


@kernel
def normals(stream, out):
    for i in range(out.size):
        out[i] = normal(stream, i)


@kernel
def _write(stream, first, topic_of, own_share, cumulative, power, shift, indptr, indices, counts):
    """Draw the distinct words of every document from ``first`` on, and their counts; each has its own stream."""
    language = cumulative.shape[0] - 1
    last_seen_in = np.full(cumulative.shape[1], -1, np.int64)
    for i in range(topic_of.size):
        document = derive(stream, first + i)
        draw = 0
        at = indptr[i]
        while at < indptr[i + 1]:
            source = topic_of[i] if uniform(document, draw) < own_share[i] else language
            word = np.searchsorted(cumulative[source], uniform(document, draw + 1), side="right")
            if last_seen_in[word] != i:
                last_seen_in[word] = i
                tail = 1.0 - uniform(document, draw + 2)
                indices[at] = word
                counts[at] = np.floor(min((1.0 + shift) * tail ** (-1.0 / power[word]) - shift, 1e6))
                at += 1
            draw += 3


def draw_array(kernel_: Any, seed: int, what: str, *shape: int) -> Any:
    """An array of random numbers; ``what`` names their stream."""
    out = np.empty(shape)
    kernel_(key(seed, what), out.reshape(-1))
    return out


def order(seed: int, what: str, size: int) -> Any:
    """A random permutation."""
    return np.argsort(draw_array(uniforms, seed, what, size), kind="stable")


def _lengths(model: Twin, labels: Any, seed: int) -> Any:
    """Number of distinct words of each document: the exact quantiles of its class, in random order."""
    lengths = np.empty(labels.size, np.int64)
    for label, table in ((1.0, model.lengths_positive), (-1.0, model.lengths_negative)):
        rows = np.flatnonzero(labels == label)
        level = (order(seed, f"lengths of {label:+.0f}", rows.size) + 0.5) / rows.size
        lengths[rows] = np.rint(np.exp(np.interp(level, LEVELS, np.log(table))))
    return lengths


def _rates(model: Twin, weight: Any, seed: int) -> Any:
    """Rates of all words: one row for each topic (those of class -1 first), the last for the language.

    They are scaled such that their mean over the documents, with ``weight`` for each topic, is the rate in the
    language: topics then do not change how often a word occurs.
    """
    rank = np.arange(1, model.words + 1.0)
    language = (rank + model.flat) ** -model.slope * (1.0 + rank / model.bend) ** -model.steeper
    language /= language.sum()
    side = np.repeat([-1.0, 1.0], model.topics)[:, None]
    tilt = model.topic_tilt * draw_array(normals, seed, "topics", 2 * model.topics, model.words)
    tilt += model.class_tilt * side * draw_array(normals, seed, "classes", model.words)
    tilt *= (rank / model.words) ** model.common
    tilt -= model.rarity * draw_array(normals, seed, "rarity", 2 * model.topics, 1) * np.log(language)
    rates = np.exp(tilt - tilt.max(axis=1, keepdims=True))
    rates *= language / (rates @ language)[:, None]
    rates *= language / (weight @ rates)
    return np.vstack([rates, language])


class _Plan(NamedTuple):
    """The numbers drawn for all documents before their words; rows of ``cumulative`` are topics, then the language."""

    model: Twin
    stream: Any
    labels: Any
    lengths: Any
    topic_of: Any
    own_share: Any
    cumulative: Any
    power: Any
    column_of: Any


def topics(model: Twin | None = None, seed: int = SEED) -> Any:
    """The topic of each document, from 0 on: those of class -1 come first."""
    model = Twin() if model is None else model
    labels = np.where(order(seed, "labels", model.n) < model.positive, 1.0, -1.0)
    return _topics(model, labels, seed)


def _topics(model: Twin, labels: Any, seed: int) -> Any:
    side = np.where(draw_array(uniforms, seed, "astray", model.n) < model.astray, -labels, labels)
    drawn = (draw_array(uniforms, seed, "topic of", model.n) * model.topics).astype(np.int64)
    return drawn + model.topics * (side > 0)


def _plan(model: Twin, seed: int) -> _Plan:
    longest = max(model.lengths_positive + model.lengths_negative)
    if not 10 * longest <= model.words <= model.d or not 0 < model.positive < model.n:
        raise DataError(
            f"twin: {model.words} words, {model.d} columns, {model.positive} of {model.n} rows positive; "
            f"give at least {10 * longest} words, as many columns or more, and rows of both classes"
        )
    labels = np.where(order(seed, "labels", model.n) < model.positive, 1.0, -1.0)
    lengths = _lengths(model, labels, seed)
    topic_of = _topics(model, labels, seed)
    weight = np.bincount(topic_of, weights=lengths, minlength=2 * model.topics) / lengths.sum()
    rates = _rates(model, weight, seed)
    own_share = draw_array(uniforms, seed, "own share", model.n) ** (1.0 / model.own)
    # share of documents with the word, for an average document drawn only from the language
    busy = -np.expm1(-1.2 * lengths.mean() * rates[-1])
    cumulative = np.cumsum(rates, axis=1)
    cumulative /= cumulative[:, -1:]
    power = np.maximum(model.burst - model.busier * busy, 1.0)
    column_of = order(seed, "columns", model.d)[: model.words].astype(np.int32)
    return _Plan(model, key(seed, "documents"), labels, lengths, topic_of, own_share, cumulative, power, column_of)


def _documents(plan: _Plan, first: int, stop: int) -> tuple[Any, Any, Any]:
    """The offset of each document's words, the words, and their counts."""
    indptr = np.concatenate([[0], np.cumsum(plan.lengths[first:stop])])
    words, counts = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    topic_of, own_share = plan.topic_of[first:stop], plan.own_share[first:stop]
    shift = plan.model.shift
    _write(plan.stream, first, topic_of, own_share, plan.cumulative, plan.power, shift, indptr, words, counts)
    return indptr, words, counts


def _weighted(plan: _Plan, with_word: Any, indptr: Any, words: Any, values: Any) -> Any:
    """The rows of documents, from their words and counts, and the number of documents that have each word."""
    np.log(values, out=values)
    values += 1.0
    rarity = np.log((plan.model.n + 1.0) / np.maximum(with_word, 1))  # n + 1: a word in all documents counts a little
    values *= rarity[words]
    norms = np.sqrt(np.add.reduceat(values * values, indptr[:-1]))
    values /= np.repeat(norms, np.diff(indptr))
    narrow = indptr.astype(np.int32)
    X = sp.csr_array((values, plan.column_of[words], narrow), shape=(narrow.size - 1, plan.model.d))
    X.sort_indices()
    X.has_canonical_format = True
    return X


def in_parts(n: int, threads: int, progress: Callable[[float], object], seed: int = SEED) -> Iterator[Rows]:
    """The twin with another number of rows and the same share of each class, in pieces.

    Words are drawn twice, the first time to count the documents with each word.  The result does not depend on the
    number of threads, bit for bit.
    """
    model = Twin()
    plan = _plan(model._replace(n=n, positive=min(n - 1, max(1, round(n * model.positive / model.n)))), seed)
    parts, with_word = range(0, n, PART), np.zeros(model.words, np.int64)

    def count(first: int) -> Any:
        return np.bincount(_documents(plan, first, min(n, first + PART))[1], minlength=model.words)

    def make(first: int) -> Rows:
        X = _weighted(plan, with_word, *_documents(plan, first, min(n, first + PART)))
        return Rows(plan.labels[first : first + PART], np.diff(X.indptr), X.indices, X.data, 0)

    for k, found in enumerate(in_order(count, parts, threads)):
        with_word += found
        progress(0.4 * k / len(parts))
    for k, rows in enumerate(in_order(make, parts, threads)):
        progress(0.4 + 0.6 * k / len(parts))
        yield rows


def generate(model: Twin | None = None, seed: int = SEED) -> Any:
    """Generate the twin.

    The same model and seed give the same bits on one machine; ``exp`` and ``log`` may round differently on another.

    Parameters
    ----------
    model : Twin, optional
        Constants; the fitted ones by default.
    seed : int
        Non-negative.

    Returns
    -------
    X : csr_array, shape (n, d)
        Unit rows, float64, canonical.
    y : ndarray, shape (n,)
        -1 and +1.
    notes : tuple of str
        Says that it is synthetic.

    Raises
    ------
    DataError
        If there are fewer columns than words, or too few words for the number of distinct words of a document.

    Examples
    --------
    >>> X, y, _ = generate(Twin(n=50, positive=20, topics=2))
    >>> X.shape, int((y > 0).sum()), bool(np.allclose((X * X).sum(axis=1), 1.0))
    ((50, 47236), 20, True)
    """
    plan = _plan(Twin() if model is None else model, seed)
    indptr, words, counts = _documents(plan, 0, plan.model.n)
    with_word = np.bincount(words, minlength=plan.model.words)
    return _weighted(plan, with_word, indptr, words, counts), plan.labels, (NOTE,)
