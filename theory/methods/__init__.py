"""How x moves: methods, and what a worker does with what it did not send."""

from .feedback import ErrorFeedback, NoFeedback
from .lock_free import run_lock_free
from .mem_sgd import mem_sgd
from .parallel_sgd import ParallelSGD

__all__ = ["ErrorFeedback", "NoFeedback", "ParallelSGD", "mem_sgd", "run_lock_free"]
