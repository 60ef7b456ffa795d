"""All closed forms in one list, which `theory.bounds` reads at its first use."""

# ruff: noqa: F403

from .adaptive import *
from .batches.diversity import *
from .batches.growing import *
from .batches.growing_noise import *
from .batches.limits import *
from .batches.rates import *
from .cost.collectives import *
from .cost.time_to_accuracy import *
from .delay.late import *
from .delay.stragglers import *
from .differences.diana import *
from .differences.econtrol import *
from .differences.ef21 import *
from .differences.muon import *
from .graphs.compressed import *
from .graphs.gossip import *
from .local.clients import *
from .local.local_sgd import *
from .local.streaming import *
from .memory.contractive import *
from .memory.error_feedback import *
from .memory.exact_rates import *
from .memory.mem_sgd import *
from .memory.sketched import *
from .privacy import *
from .quantizers.codes import *
from .quantizers.compositions import *
from .quantizers.geometric_levels import *
from .quantizers.qsgd import *
from .quantizers.rotations import *
from .quantizers.sign import *
from .quantizers.ternary import *
from .quantizers.training import *
from .robust import *
from .sgd.averages import *
from .sgd.bottou_curtis_nocedal import *
from .sgd.polyak_lojasiewicz import *
from .sgd.rates import *
from .sparsifiers.optimal import *
from .sparsifiers.random_and_top_k import *
from .sparsifiers.spectral import *

_RESULTS = {name for name, value in globals().items() if isinstance(value, type) and hasattr(value, "_fields")}
__all__ = sorted(
    {name for name, value in globals().items() if callable(value) and hasattr(value, "theorem")} | _RESULTS
)
