"""The middle carries methods that it does not know: see shapes.py, where each is a text of at most forty lines."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import shapes
from ranks_job import require_same_bits, run_on_ranks


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    return run_on_ranks(shapes, tmp_path_factory.mktemp("shapes"))


@pytest.mark.parametrize("name", shapes.METHODS)
def test_same_bits_on_ranks_and_by_the_text(name, on_ranks):
    """Two ranks, the simulator, and the text run in Python in every round."""
    result, text = require_same_bits(shapes, name, on_ranks), shapes.train(name, fast=False)
    assert np.array_equal(result.x, text.x) and np.array_equal(result.memory, text.memory)
    assert result.fun < 0.8 * result.history["f"][0]


def test_the_result_is_the_mean_also_where_each_rank_has_one_model(on_ranks):
    assert np.array_equal(shapes.train("D-PSGD", workers=2).x, on_ranks["one worker on each rank"])


def test_a_callback_sees_the_mean_of_the_models(on_ranks):
    """Which takes all ranks, though rank 0 alone calls it."""
    seen = []
    shapes.train("D-PSGD", callback=lambda intermediate_result: seen.append(intermediate_result.last))
    assert len(seen) == 4 and np.array_equal(seen, on_ranks["means that a callback saw"])


def test_each_is_short_and_compiles_nothing_of_its_own():
    for cls in (shapes.DPSGD, shapes.ChocoSGD, shapes.Adam, shapes.FedAvg, shapes.EF21P):
        source, _ = inspect.getsourcelines(cls)
        assert len(source) <= 40 and not any("kernel" in line or "numba" in line for line in source), cls.__name__
