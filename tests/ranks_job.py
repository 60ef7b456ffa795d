"""Compare runs on ranks with those of the simulator, for all methods of a module in one job.

The module has METHODS, by name, PARTS (what of a result is compared) and ``train(name, comm=None)``.

Usage: ``mpirun -n R python tests/ranks_job.py PATH-OF-MODULE FILE``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

import theory as th

COSTS = ("samples", "rounds", "bits_up", "bits_down", "message_bytes_up", "message_bytes_down", "f")
OF_EACH_RANK = ("memory", "models")  # the rows of the rank's workers


def run_on_ranks(module, folder: Path, ranks: int = 2):
    """What all methods of a module give on so many ranks."""
    from conftest import run_mpi

    done = run_mpi(ranks, __file__, module.__file__, folder / "found.npz", timeout=500)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "found.npz")


def require_same_bits(module, name: str, found):
    """The result of the simulator, which must be that of the ranks."""
    result = module.train(name)
    for part in module.PARTS:
        assert np.array_equal(getattr(result, part), found[f"{name}, {part}"]), part
    for column in COSTS:
        assert np.array_equal(result.history[column], found[f"{name}, {column}"]), column
    return result


def main(path: Path, file: str) -> None:
    """Rank 0 writes what all have found."""
    from mpi4py import MPI

    sys.path.insert(0, str(path.parent))
    module, world = importlib.import_module(path.stem), MPI.COMM_WORLD
    with th.abort_on_error(world):
        found = module.more(world) if hasattr(module, "more") else {}
        for name in module.METHODS:
            result = module.train(name, comm=world)
            for part in module.PARTS:
                value = getattr(result, part)
                found[f"{name}, {part}"] = np.concatenate(world.allgather(value)) if part in OF_EACH_RANK else value
            found |= {f"{name}, {column}": result.history[column] for column in COSTS}
        if world.Get_rank() == 0:
            np.savez(file, **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
