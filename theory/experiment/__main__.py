"""Entry point of ``python -m theory.experiment``, on one process or on all ranks of an MPI launcher."""

import atexit
import ctypes
import gc
import os
import sys
import threading
from typing import NoReturn

from ..reporting.launcher import first, processes  # and nothing else before the settings that follow

# While modules and compiled code are loaded nothing is garbage, but by default Python spends a fifth of that time on
# looking for it.
gc.set_threshold(20_000, 20, 10)

if (ranks := processes()) > 1:
    # before NumPy is loaded: the threads of its BLAS wait by spinning, on processors of other ranks
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if first() and os.environ.get("THEORY_PROGRESS") != "0":
        print(f"starting {ranks} ranks", file=sys.stderr, flush=True)  # which load the package all at once
        if sys.dont_write_bytecode:
            print(
                "Python is told not to write bytecode (PYTHONDONTWRITEBYTECODE, or -B): every rank compiles all modules"
                "\nfrom source, and 8 ranks take about 1.6 times as long",
                file=sys.stderr,
                flush=True,
            )


def leave(code: int) -> NoReturn:
    """End this process without freeing compiled code, which takes 8 ranks two seconds; exit handlers run."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # it is where the shell closed it, ``>&-``
                stream.flush()
        except OSError:  # a full disk, of which `say` has told
            code = code or 1
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None:
        if mpi.Is_initialized() and not mpi.Is_finalized():
            mpi.Finalize()
        # MPICH tells its launcher in an exit handler of C that a rank is done; without it, the others are killed
        ctypes.PyDLL(None).exit(code)
    os._exit(code)


if __name__ == "__main__":
    from .cli import main

    leave(main())
