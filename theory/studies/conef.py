"""Contractive error feedback (ConEF) against full precision, random blocks without memory, and error feedback.

Softmax regression on 16 workers that send 10 or 5 % of the coordinates, as one random block.  A memory is stored as a
plain array (error feedback), as a fresh count sketch (the talk's algorithm), as one fixed linear sketch (as in the
authors' code) or quantized (as the theory allows).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import rcv1_topics
from ..reporting.files import ConfigurationError
from .shared.conef_training import (
    EF,
    HALF,
    Options,
    best_outcomes,
    fixed,
    most_frequent,
    train,
    ways,
)
from .shared.problems import digits, topics_file

SWEPT, SWEEP_SEEDS = (EF, fixed(0.6), fixed(0.9)), 2


# --- the study --------------------------------------------------------------------------------------------------------


class Size(NamedTuple):
    """The data: name, rows, used columns, all columns, classes, and columns with an entry (for a sweep)."""

    name: str
    n: int
    columns: int
    features: int
    classes: int
    occurring: int


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """All methods at one share of communication, and, if the options ask for it, a sweep over the dimension."""
    file = topics_file(topics) if options.problem == "topics" else None
    source = digits() if file is None else rcv1_topics(file)
    if quick:
        options = options._replace(
            steps=min(options.steps, 60),
            seeds=min(options.seeds, 2),
            grid=options.grid[:2],
            momenta=options.momenta[-1:],
            features=min(options.features, 500),
            sweep=options.sweep[:2],
        )
    if options.share * min(options.features, source.d) * np.unique(source.y).size < 1:
        raise ConfigurationError(f"share: got {options.share!r}, allowed: at least one coordinate of a message")
    text = most_frequent(source, options.features)
    classes = np.unique(text.y).size
    d = text.d * classes
    chosen = ways(d, options.share)
    if quick:
        chosen = {name: way for name, way in chosen.items() if name != HALF and not name.startswith("iConEF")}
    rows = train(text, chosen, options, seed)
    last, swept = options.momenta[-1], []
    step = best_outcomes(row for row in rows if row.momentum == last)[EF].step
    for features in sorted({min(features, source.d) for features in options.sweep}):
        smaller = most_frequent(source, features)
        some = {name: ways(features * classes, options.share)[name] for name in SWEPT}
        few = options._replace(seeds=min(SWEEP_SEEDS, options.seeds), grid=(step,), momenta=(last,))
        swept += train(smaller, some, few, seed)
    occurring = int(np.unique(most_frequent(source, source.d).X.indices).size) if swept else 0
    size = Size("digits" if file is None else "RCV1's topics", text.n, text.d, source.d, classes, occurring)
    return {"rows": rows, "swept": swept, "chosen": list(chosen), "size": size, "options": options}
