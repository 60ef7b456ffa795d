"""Running methods: in the simulator or on MPI ranks."""

from . import overlap as overlap  # registers how messages travel between ranks
from .calibration import (
    Calibration,
    calibrate,
    fit_network,
    load_network,
    save_calibration,
)
from .collectives import simulate_allgather, simulate_allreduce
from .cost_model import (
    NETWORKS,
    Network,
    allreduce_seconds,
    gather_seconds,
    reduce_seconds,
    round_seconds,
)
from .cr_psgd_catalyst import catalyst
from .round_cost import Cost, cost
from .run import HISTORY, run
from .show_step import show
from .stragglers import race, run_fastest_k
from .variance_reduction import qsvrg
from .watch import abort_on_error
from .zero import ZeroRun, run_zero
