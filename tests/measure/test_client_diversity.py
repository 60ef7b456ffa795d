"""How much clients differ: their gradients one by one in NumPy, and the splits in their order."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th
from theory.measure import client_diversity, diversity


def test_it_is_the_spread_of_the_gradients_of_clients():
    data = th.load_data("digits")
    problem, x = th.logistic((data.X / 16.0, data.y), l2=0.1), np.linspace(-0.3, 0.2, 64)
    split = th.split(data, workers=7, alpha=0.4, seed=1)
    found = client_diversity(problem, split, workers=7, x=x)
    X, y = np.asarray((data.X / 16.0).toarray() if hasattr(data.X, "toarray") else data.X / 16.0), data.y
    slopes = -y / (1.0 + np.exp(y * (X @ x)))
    each = slopes[:, None] * X + 0.1 * x  # the gradient of every row
    owner = np.empty(len(y), int)
    owner[split.order] = np.repeat(np.arange(7), split.sizes)
    mine = np.stack([each[owner == k].mean(axis=0) for k in range(7)])
    weight = split.sizes / len(y)
    spread = weight @ ((mine - each.mean(axis=0)) ** 2).sum(axis=1)
    assert found.zeta2 == pytest.approx(spread, rel=1e-9)
    assert found.batch_bound == pytest.approx(1.0 + spread / (each.mean(axis=0) ** 2).sum(), rel=1e-9)


def test_splits_differ_as_they_say_and_no_more_than_rows():
    data = th.load_data("digits")
    problem = th.logistic((data.X / 16.0, data.y), l2=0.01)
    known = {"workers": 8}
    kinds = th.split(data, workers=8, alpha=100.0), th.split(data, workers=8, alpha=0.3), th.split(data, workers=8)
    even, uneven, by_label = (client_diversity(problem, kind, **known) for kind in kinds)
    assert even.zeta2 < 0.3 * uneven.zeta2 and uneven.zeta2 < by_label.zeta2
    assert by_label.batch_bound <= diversity(problem, np.zeros(64)).batch_bound
