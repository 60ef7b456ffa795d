"""Which MPI launcher started this process, by its environment; this module loads nothing, so it can come first."""

import os

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
