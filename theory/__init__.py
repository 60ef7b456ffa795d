"""Communication-efficient distributed SGD: run it, count its bits, and check every number against its theorem.

>>> import theory as th
>>> problem = th.quadratic([1.0, 2.0], covariance=1.0, optimum=3.0)
>>> method = th.ParallelSGD(th.QSGD(s=4), step=th.Constant(0.1), batch=2)
>>> th.run(method, problem, workers=4, steps=100, seed=0).success
True
"""

import lazy_loader

# Loading everything takes longer than most calls: a name loads its subpackage when it is asked for.
_load, _names, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"


def __getattr__(name: str):
    try:
        return _load(name)
    except AttributeError:
        if name in __all__:  # the error is that of a subpackage
            raise
        import difflib

        near = difflib.get_close_matches(name, __all__, n=1) or [n for n in __all__ if n.lower() == name.lower()]
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module 'theory' has no attribute {name!r}{hint}") from None


def __dir__() -> list[str]:
    """What a user wants: all public names but those of warnings."""
    return [name for name in _names() if not name.endswith("Warning")]
