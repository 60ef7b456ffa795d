"""A job for mpirun: worst cases on ranks; prints what each left, and a digest of the last iterate.

Usage: ``mpirun -n R python tests/worst_job.py WORKERS``.
"""

from __future__ import annotations

import hashlib
import json
import sys

import theory as th

CASES = [("gd", 3), ("compressed-gd", 2), ("ef", 4), ("ef21", 4), ("heavy-ball", 4), ("ef-different", 3)]
CASES += [("local-gd", 4), ("proximal", 3)]


def reached(workers: int, comm=None) -> dict:
    """Of each case what was left, what the semidefinite program says, bits, and the last iterate."""
    found = {}
    for method, steps in CASES:
        worst = th.worst_case(method, steps, workers=workers)
        result = worst.run(comm=comm)
        bits = int(result.history["bits_up"][-1])
        last = hashlib.sha256(result.last.tobytes()).hexdigest()[:16]
        found[f"{method}.{steps}"] = [worst.left(result, comm), worst.value, bits, last]
    return found


if __name__ == "__main__":
    from mpi4py import MPI

    answer = reached(int(sys.argv[1]), MPI.COMM_WORLD)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(json.dumps(answer))
