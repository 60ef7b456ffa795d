"""Entry point of ``python -m theory.experiment``, on one process or on all ranks of an MPI launcher."""

import atexit
import os
import sys
import threading

from .launcher import first, processes

if (
    ranks := processes()
) > 1:  # before NumPy is loaded: the threads of its BLAS wait by spinning, on processors of other ranks
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if first() and os.environ.get("THEORY_PROGRESS") != "0":
        print(f"starting {ranks} ranks", file=sys.stderr, flush=True)  # which load the package all at once


def leave(code: int) -> None:
    """End this process when all that runs at exit has run, without freeing compiled code: 8 ranks would need 2 s."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    from .cli import main

    leave(main())
