"""``python -m theory.experiment``: comparison of methods on data and ranks, with costs, bounds and a record."""

import lazy_loader

# Every rank of a job starts with this: a name loads its module when it is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
