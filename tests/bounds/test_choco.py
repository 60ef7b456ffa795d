"""The best consensus step of CHOCO-Gossip, also where hardly anything is sent."""

import numpy as np
import pytest

from theory import bounds
from theory.methods.graphs.weights import Complete, Hypercube, Ring, mixing


@pytest.mark.parametrize("kept", [1.0, 0.3, 5e-5, 1e-9])
@pytest.mark.parametrize("graph, workers", [(Ring(), 8), (Hypercube(), 8), (Complete(), 4)])
def test_no_other_consensus_step_is_better(graph, workers, kept):
    values = np.linalg.eigvalsh(mixing(graph, workers).matrix)
    best = float(bounds.choco_best_gamma(values, kept))
    found = float(bounds.choco_factor(values, kept, best))
    assert found < 1.0, "it diverges"
    near = [g for g in (0.5 * best, 0.9 * best, 1.1 * best, 2.0 * best, 0.01 * kept) if g <= 1.0]
    assert all(found <= float(bounds.choco_factor(values, kept, g)) + 1e-12 * kept for g in near)


def test_the_factor_of_a_small_share_is_below_1_by_its_multiple():
    """For kept -> 0 everything is linear in kept: a tenth of it gains a tenth."""
    values = np.linalg.eigvalsh(mixing(Ring(), 8).matrix)
    gains = [-np.log(float(bounds.choco_factor(values, k, 0.75 * k))) / k for k in (1e-4, 1e-5, 1e-6)]
    assert np.ptp(gains) < 1e-3 * gains[0] and gains[0] > 0.3
