"""How x moves: methods, and what a worker does with what it did not send."""

from .feedback import ErrorFeedback, NoFeedback
from .parallel_sgd import ParallelSGD

__all__ = ["ErrorFeedback", "NoFeedback", "ParallelSGD"]
