"""Closed forms: every formula of the package, as a pure function of numbers.

A docstring states, in this order: setting, statement, kind (identity, tight, upper, lower, rate), source, arguments
with their domain, what is raised outside it, an example.  One convention throughout: ``delta`` is the contraction,
error <= (1 - delta)||v||^2; ``omega`` is the variance factor of an unbiased compressor.
"""

# ruff: noqa: F403

from typing import Any

from .adaptive import *
from .atomo import *
from .averages import *
from .batch_limits import *
from .batch_rates import *
from .batch_schedules import *
from .bottou_curtis_nocedal import *
from .choco import *
from .coding import *
from .collectives import *
from .composition import *
from .conef_rates import *
from .contractive import *
from .cr_psgd_catalyst import *
from .delay import *
from .difference_gossip import *
from .difference_rates import *
from .diversity import *
from .dpsgd import *
from .dynamic_batches import *
from .elias import *
from .exact_feedback_rates import *
from .federated import *
from .feedback_rates import *
from .gossip import *
from .growing_noise import *
from .level_set import *
from .lloyd_max import *
from .local_steps import *
from .mechanisms import *
from .memory import *
from .memory_stability import *
from .memsgd import *
from .memsgd_bits import *
from .minibatch import *
from .multilevel import *
from .natural import *
from .nonuniform import *
from .nuqsgd import *
from .outer_steps import *
from .partial_feedback import *
from .polyak_lojasiewicz import *
from .privacy import *
from .qsvrg import *
from .quadratic_moments import *
from .quantization import *
from .quantized_sgd import *
from .ridge import *
from .robust import *
from .rotations import *
from .rounds import *
from .sgd import *
from .sgd_averages import *
from .sgd_smooth import *
from .sgd_steps import *
from .sign import *
from .sign_momentum import *
from .sketch import *
from .sketched_memory import *
from .sparsification import *
from .sparsified_sgd import *
from .sparsifiers import *
from .spectral import *
from .stability import *
from .stragglers import *
from .ternary import *
from .terngrad import *
from .time_to_accuracy import *
from .tradeoff import *
from .unbiased_differences import *
from .zero import *

_RESULTS = {name for name, value in globals().items() if isinstance(value, type) and hasattr(value, "_fields")}
__all__ = sorted(
    {name for name, value in globals().items() if callable(value) and hasattr(value, "theorem")} | _RESULTS
)


def __dir__() -> list[str]:
    return __all__  # the formulas alone


def __getattr__(name: str) -> Any:
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
