"""Communication-efficient distributed SGD: run it, count its bits, and hold every number against its theorem.

>>> import theory as th
>>> problem = th.quadratic([1.0, 2.0], covariance=1.0)
>>> method = th.ParallelSGD(th.QSGD(s=4), step=th.Constant(0.1), batch=2)
>>> th.run(method, problem, workers=4, steps=100, seed=0).success
True
"""

from . import bounds
from .claims import explain, list_claims, verify
from .cluster import abort_on_error, run
from .compressors import (
    QSGD,
    Bucketed,
    Identity,
    RandK,
    TopK,
    check,
    compress,
    compressor_examples,
    decode,
    delta,
    encode,
    expected_nonzeros,
    expected_payload_bits,
    omega,
    qsgd_bits,
)
from .data import DataError, Dataset, load_data
from .methods import ErrorFeedback, NoFeedback, ParallelSGD
from .plots import compare
from .problems import (
    accuracy,
    batch_bound,
    batch_gradient,
    gradient,
    gradient_diversity,
    gradient_variance,
    lipschitz,
    logistic,
    max_lipschitz,
    quadratic,
    ridge,
    sample_gradient,
    second_moment,
    solve,
    strong_convexity,
    value,
)
from .random import key, uniform
from .schedules import Constant, InverseTime, Polynomial, Suffix, Uniform
from .wire import WireError

__version__ = "0.1.0"

__all__ = [
    "QSGD",
    "Bucketed",
    "Constant",
    "DataError",
    "Dataset",
    "ErrorFeedback",
    "Identity",
    "InverseTime",
    "NoFeedback",
    "ParallelSGD",
    "Polynomial",
    "RandK",
    "Suffix",
    "TopK",
    "Uniform",
    "WireError",
    "abort_on_error",
    "accuracy",
    "batch_bound",
    "batch_gradient",
    "bounds",
    "check",
    "compare",
    "compress",
    "compressor_examples",
    "decode",
    "delta",
    "encode",
    "expected_nonzeros",
    "expected_payload_bits",
    "explain",
    "gradient",
    "gradient_diversity",
    "gradient_variance",
    "key",
    "lipschitz",
    "list_claims",
    "load_data",
    "logistic",
    "max_lipschitz",
    "omega",
    "qsgd_bits",
    "quadratic",
    "ridge",
    "run",
    "sample_gradient",
    "second_moment",
    "solve",
    "strong_convexity",
    "uniform",
    "value",
    "verify",
]
