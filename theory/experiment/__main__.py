"""Entry point of ``python -m theory.experiment``, on one process or on all ranks of an MPI launcher."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
