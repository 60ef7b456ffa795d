"""The problem of docs/your-problem.md: its gradient is that of its value, and its entry point refuses nonsense.

The page itself, which runs it, is run by test_docs_code.py.
"""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest
from conftest import ROOT

import theory as th

FILE = ROOT / "docs" / "examples" / "phase_retrieval.py"


@pytest.fixture(scope="module")
def PhaseRetrieval():  # noqa: N802
    spec = importlib.util.spec_from_file_location("phase_retrieval", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PhaseRetrieval


def test_value_and_gradient_are_those_of_numpy(PhaseRetrieval):
    rng = np.random.default_rng(0)
    A, b, x, l2 = rng.standard_normal((7, 3)), rng.random(7), rng.standard_normal(3), 0.3
    problem, margins = PhaseRetrieval(A, b, l2), A @ x
    assert th.value(problem, x) == pytest.approx(np.mean((margins**2 - b) ** 2) / 4 + l2 / 2 * x @ x, rel=1e-12)
    each = ((margins**2 - b) * margins)[:, None] * A + l2 * x
    assert np.allclose(th.gradient(problem, x), each.mean(axis=0), rtol=1e-12, atol=0)
    assert np.allclose(th.sample_gradient(problem, 4, x), each[4], rtol=1e-12, atol=0)
    assert np.allclose(th.batch_gradient(problem, [1, 1, 6], x), each[[1, 1, 6]].mean(axis=0), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("A", "b", "l2", "name"),
    [
        (np.ones(3), np.ones(3), 0.0, "A"),
        (np.ones((2, 2)), np.ones(3), 0.0, "b"),
        (np.ones((2, 2)), np.array([1.0, math.nan]), 0.0, "A and b"),
        (np.ones((2, 2)), np.ones(2), -1.0, "l2"),
    ],
)
def test_what_is_no_problem_is_refused(PhaseRetrieval, A, b, l2, name):
    with pytest.raises(ValueError, match=f"^{name}: got"):
        PhaseRetrieval(A, b, l2)


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "your-problem.md").read_text(encoding="utf-8")
    assert "<!-- file: examples/phase_retrieval.py -->" in page
