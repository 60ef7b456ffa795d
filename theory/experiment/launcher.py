"""Which launcher started this process, and the communicator of its job."""

from __future__ import annotations

import os
from typing import Any

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
# An MPI launcher sets one of these in every process.
LAUNCHERS = (*RANKS[:-1], "PMI_SIZE", "MPI_LOCALRANKID", "PALS_RANKID")

SLURM = "SLURM_STEP_NUM_TASKS"


SIZES = (  # number of processes according to the launcher; Slurm's comes last, since mpirun may run inside it
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    SLURM,
)


def at_a_terminal() -> bool:
    """Whether this process has a controlling terminal, whatever its input and output; tasks of srun do not."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY))
    except OSError:
        return False
    return True


def processes() -> int:
    """Number of processes according to the launcher; 1 without a launcher.

    A shell from ``srun --ntasks=4 --pty bash`` also has Slurm's number, but is a single process.
    """
    name = next((name for name in SIZES if name in os.environ), None)
    if name is None or (name == SLURM and at_a_terminal()):
        return 1
    said = os.environ[name]
    return int(said) if said.isdecimal() else 1


def first() -> bool:
    """Whether this is rank 0 according to the launcher, or the only process."""
    told = (os.environ.get(name) for name in RANKS)
    return next((rank for rank in told if rank is not None), "0") == "0"


def world() -> Any:
    """COMM_WORLD if an MPI launcher started this process, else None: the only place where it is used.

    A launcher of another MPI than mpi4py's library starts independent processes: each would run the whole experiment
    and write a record.  This function prevents that.
    """
    started = processes()
    if started == 1 and not any(name in os.environ for name in LAUNCHERS):
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise SystemExit(f"started by an MPI launcher, but mpi4py finds no MPI library: {error}") from None
    if started > 1 and MPI.COMM_WORLD.Get_size() == 1:
        library = MPI.Get_library_version().split("\n")[0].strip()
        raise SystemExit(
            f"a launcher started {started} processes, and each is alone: it does not belong to the MPI library that "
            f"mpi4py found ({library}); use its own mpirun, or srun with another --mpi (docs/cluster.md)"
        )
    return MPI.COMM_WORLD
