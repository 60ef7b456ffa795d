"""Running methods: in the simulator or on MPI ranks."""

from . import mpi as mpi  # registers how messages travel between ranks
from .cost.calibration import Calibration, calibrate, fit_network, load_network, save_calibration
from .cost.collectives import simulate_allgather, simulate_allreduce
from .cost.network import NETWORKS, Network, allreduce_seconds, gather_seconds, reduce_seconds, round_seconds
from .cost.round import Cost, cost
from .failures import abort_on_error
from .run import HISTORY, run
from .show_step import show
from .stages import catalyst, qsvrg
from .stragglers import race, run_fastest_k
from .zero import ZeroRun, run_zero
