"""Estimators with confidence intervals."""

from .audit_messages import Audit, AuditTable, Deflated, empirical_entropy, zlib_bits
from .compressor_audit import audit
from .damaged_messages import Damage, fuzz
from .data_diversity import ClientDiversity, DiversityFloor, client_diversity, conflict_degree, diversity_floor
from .diversity_estimates import Diversity, DiversityAlong, DiversityIntervals, diversity, diversity_along
from .inputs import INPUTS, input_vectors, known_worst, worst_vectors
from .intervals import (
    LEVEL,
    Interval,
    bernstein_interval,
    betting_interval,
    exactly,
    mean_interval,
    median_interval,
    ratio_interval,
    share_interval,
    student_interval,
)
from .monte_carlo import Moments, moments
from .privacy import sampled_privacy
from .slopes import loglog_slope
