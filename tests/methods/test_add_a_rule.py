"""The feedback rule of the documentation does what its page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import theory as th

FILE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "leaky_feedback.py"


def leaky_feedback():
    spec = importlib.util.spec_from_file_location("leaky_feedback", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LeakyFeedback


def test_a_share_is_a_share():
    with pytest.raises(ValueError, match="share"):
        leaky_feedback()(1.5)


@pytest.mark.slow
def test_the_rule_of_the_page_is_its_pseudo_code():
    curvature, start, eta, share = np.array([0.5, 1.0, 1.5, 2.0, 3.0]), np.array([3.0, -2.0, 1.0, 0.5, -1.0]), 0.1, 0.5
    rule, top = leaky_feedback()(share), th.TopK(2)
    method = th.ParallelSGD(top, step=th.Constant(eta), feedback=rule)
    problem = th.quadratic(curvature, covariance=0.0)
    result = th.run(method, problem, workers=2, steps=7, x0=start, wire_dtype=np.float64)
    x, e = start.copy(), np.zeros(5)  # without noise both workers do the same
    for _ in range(7):
        p = eta * curvature * x + e
        sent = np.where(np.abs(p) >= np.sort(np.abs(p))[-2], p, 0.0)
        x, e = x - sent, share * (p - sent)
    assert np.allclose(result.x, x, atol=1e-13) and np.allclose(result.memory, [e, e], atol=1e-13)
    assert result.memory_bytes == 8 * 5


def test_the_page_names_bounds_and_claims_that_exist():
    page = (FILE.parents[1] / "feedback.md").read_text(encoding="utf-8")
    table = page[page.index("| rule | known results") :].split("\n\n")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert len(rows) == 6 and all(hasattr(th, row[0].strip(" `")) for row in rows)
    bounds = {name for row in rows for name in re.findall(r"`([a-z_0-9]+)`", row[2])}
    claims = {name for row in rows for name in re.findall(r"`([a-z0-9.-]+)`", row[3])}
    assert len(bounds) > 10 and not bounds - set(th.bounds.__all__)
    assert len(claims) > 8 and not claims - set(th.list_claims())
