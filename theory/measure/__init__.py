"""Estimators with confidence intervals."""

from .audit_rows import Audit, AuditTable
from .betting import betting_interval
from .compressor_audit import audit
from .damaged_messages import Damage, fuzz
from .data_diversity import DiversityFloor, conflict_degree, diversity_floor
from .diversity_estimates import (
    Diversity,
    DiversityAlong,
    DiversityIntervals,
    diversity,
    diversity_along,
)
from .inputs import INPUTS, input_vectors
from .intervals import (
    LEVEL,
    Interval,
    bernstein_interval,
    exactly,
    mean_interval,
    median_interval,
    ratio_interval,
    share_interval,
    student_interval,
)
from .lossless import Deflated, empirical_entropy, zlib_bits
from .monte_carlo import Moments, moments
from .privacy import sampled_privacy
from .search import known_worst, worst_vectors
from .slopes import loglog_slope
from .split_diversity import ClientDiversity, client_diversity
