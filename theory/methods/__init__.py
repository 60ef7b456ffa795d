"""How x moves: methods, and what a worker does with what it did not send."""

from .catalyst import catalyst
from .contractive import ContractiveErrorFeedback
from .cr_psgd import cr_psgd
from .feedback import ErrorFeedback, NoFeedback
from .frontier import BiasedErrorCompressorWarning, FrontierWarning
from .improved_contractive import ImprovedContractiveErrorFeedback
from .linear_sketch import LinearSketchFeedback
from .local_sgd import LocalSGD
from .lock_free import run_lock_free
from .mem_sgd import mem_sgd
from .parallel_sgd import ParallelSGD
from .partial import PartialErrorFeedback

__all__ = [
    "BiasedErrorCompressorWarning",
    "ContractiveErrorFeedback",
    "ErrorFeedback",
    "FrontierWarning",
    "ImprovedContractiveErrorFeedback",
    "LinearSketchFeedback",
    "LocalSGD",
    "NoFeedback",
    "ParallelSGD",
    "PartialErrorFeedback",
    "catalyst",
    "cr_psgd",
    "mem_sgd",
    "run_lock_free",
]
