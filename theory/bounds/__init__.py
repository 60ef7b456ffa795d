"""Closed forms: every formula of the package has its home here, as a pure function of numbers.

A docstring states, in this order: setting, statement, kind (identity, tight, upper, lower, rate), source, arguments
with their domain, what is raised outside it, an example.  One convention throughout: ``delta`` is the contraction,
error <= (1 - delta)||v||^2; ``omega`` is the variance factor of an unbiased compressor.
"""

from .averages import (
    averaged_second_moment,
    averaged_variance,
    sgd_average,
    sgd_uniform_average,
    sgd_weighted_average,
)
from .coding import elias_length, qsgd_code_length, qsgd_unary_length
from .memory import memory_error, memory_error_schedule
from .memsgd import mem_sgd, mem_sgd_alpha, mem_sgd_memory, mem_sgd_shift, mem_sgd_weight_sum
from .minibatch import batch_bound, minibatch_second_moment, minibatch_step
from .quantization import (
    qsgd_inf_variance,
    qsgd_nonzeros,
    qsgd_nonzeros_exact,
    qsgd_variance,
    qsgd_variance_attained,
    qsgd_variance_exact,
)
from .sgd import (
    sgd_constant_step,
    sgd_constant_step_exact,
    sgd_constant_step_floor,
    sgd_inverse_time,
    sgd_inverse_time_exact,
)
from .sparsification import rand_k_contraction, rand_k_variance, top_k_contraction

__all__ = [
    "averaged_second_moment",
    "averaged_variance",
    "batch_bound",
    "elias_length",
    "mem_sgd",
    "mem_sgd_alpha",
    "mem_sgd_memory",
    "mem_sgd_shift",
    "mem_sgd_weight_sum",
    "memory_error",
    "memory_error_schedule",
    "minibatch_second_moment",
    "minibatch_step",
    "qsgd_code_length",
    "qsgd_inf_variance",
    "qsgd_nonzeros",
    "qsgd_nonzeros_exact",
    "qsgd_unary_length",
    "qsgd_variance",
    "qsgd_variance_attained",
    "qsgd_variance_exact",
    "rand_k_contraction",
    "rand_k_variance",
    "sgd_average",
    "sgd_constant_step",
    "sgd_constant_step_exact",
    "sgd_constant_step_floor",
    "sgd_inverse_time",
    "sgd_inverse_time_exact",
    "sgd_uniform_average",
    "sgd_weighted_average",
    "top_k_contraction",
]
