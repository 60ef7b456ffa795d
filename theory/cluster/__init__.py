"""Running methods: in the simulator or on MPI ranks."""

from . import mpi as mpi  # registers how messages travel between ranks
from .cost.calibration import Calibration, calibrate, fit_network, load_network, save_calibration
from .cost.collectives import simulate_allgather, simulate_allreduce
from .cost.network import NETWORKS, Network, allreduce_seconds, gather_seconds, reduce_seconds, round_seconds
from .cost.round import Cost, cost
from .recipes import catalyst, qsvrg
from .run import HISTORY, run
from .show_step import show
from .stragglers import race, run_fastest_k
from .watch import abort_on_error
from .zero import ZeroRun, run_zero
