"""The fraction of workers to wait for, at arguments where its equation cancels or its bracket is long."""

import math

import pytest

from theory import bounds


@pytest.mark.parametrize("shift_rate", [1e-300, 1e-20, 1e-8, 0.1, 1.0, 30.0, 1e10, 1e100, 1e300])
def test_the_fastest_fraction_solves_its_equation_at_every_size(shift_rate):
    """y = -log(1 - kappa) solves e^y - 1 - y = s mu: about y^2/2 for a small one, and e^y for a large one."""
    kappa = bounds.fastest_fraction(shift_rate)
    if shift_rate < 1e-6:
        y = math.sqrt(2.0 * shift_rate)
        assert kappa == pytest.approx(y - 2.0 * y**2 / 3.0, rel=1e-6, abs=0.0)  # y^2/2 + y^3/6 = s mu, and 1 - e^-y
    elif shift_rate < 1e6:
        y = -math.log1p(-kappa)
        assert math.expm1(y) - y == pytest.approx(shift_rate, rel=1e-9)
    else:
        assert 1.0 - 2.0 / shift_rate - 1e-15 <= kappa <= 1.0
