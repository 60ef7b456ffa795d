"""Communication-efficient distributed SGD: run it, count its bits, and check every number against its theorem.

>>> import theory as th
>>> problem = th.quadratic([1.0, 2.0], covariance=1.0, optimum=3.0)
>>> method = th.ParallelSGD(th.QSGD(s=4), step=th.Constant(0.1), batch=2)
>>> th.run(method, problem, workers=4, steps=100, seed=0).success
True
"""

import lazy_loader

# Loading everything takes longer than most calls: a name loads its room when it is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
