"""The speed table: ``python -m benchmarks``.

Times differ from machine to machine and from minute to minute; ratios taken in turn in one run differ less.  So most
rows are ratios, and nothing here is a test.
"""

import os

# a user's Python writes bytecode; else each process compiles all modules
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
ENVIRONMENT = dict(os.environ)  # as it was otherwise: what the flagship is started with
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
for _name in THREADS:  # before NumPy is imported
    os.environ[_name] = "1"
