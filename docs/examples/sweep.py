"""The cells of a sweep on an executor.  Each is measured once, and after a kill the same command goes on.

python sweep.py submitit cell-*.toml                     here; with cluster="slurm" as a job array
mpirun -n 3 python -m mpi4py.futures sweep.py mpi cell-*.toml      on all ranks but the first
"""

import os
import subprocess
import sys


def measure(cell):
    """Measure a cell in a process of its own, which belongs to no job of MPI."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "PMIX", "OMPI", "HYDI"))}
    command = [sys.executable, "-m", "theory.experiment", "figures", cell, "--figures", "sweep"]
    subprocess.run(command, check=True, env=alone)


if __name__ == "__main__":
    name, *cells = sys.argv[1:]
    if name == "submitit":
        import submitit

        executor = submitit.AutoExecutor(folder="logs", cluster="local")
        executor.update_parameters(timeout_min=60, slurm_array_parallelism=8)
        for job in executor.map_array(measure, cells):
            job.result()
    else:
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as executor:
            list(executor.map(measure, cells))
