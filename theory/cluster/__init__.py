"""Where the workers live: in this process, or on MPI ranks."""

from .mpi import abort_on_error
from .run import HISTORY, run

__all__ = ["HISTORY", "abort_on_error", "run"]
