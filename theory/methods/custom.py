"""User-defined methods: a NamedTuple with a round function, to which the package adds everything else."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

from ..compressors.closed_forms import for_workers
from ..compressors.sparsifiers.random_and_top_k import of_length
from ..core import require, setting
from .schedule_values import Rate
from .server import Mean
from .sgd import ParallelSGD, check_parts, choose_feedback
from .topology import AllGather
from .types import Run

T = TypeVar("T")

PARTS = ("feedback", "batch", "average", "sampling", "shards", "compress", "exchange", "server", "topology")

DEFAULTS = {"server": Mean(), "topology": AllGather()}  # choices of ParallelSGD

QUESTIONS = ("local_steps", "result")


def method(cls: type[T]) -> type[T]:
    """Make a method from a NamedTuple with ``round(run)``, one round for all workers at once.

    It needs the fields ``compressor`` and ``step``.  The feedback, batch, average, sampling, shards, compress,
    server and topology are the defaults of `ParallelSGD` unless the class has a field of that name.

    ``models = "workers"`` gives each worker its own model, ``run.x[:, w]``; the result is then their mean.
    The round function runs in every round, in Python; with ``listed = True`` it runs once and its calls are replayed,
    so it must call only operations of the run.

    Parameters
    ----------
    cls : type
        A NamedTuple.

    Returns
    -------
    type
        The same class, a setting.

    Raises
    ------
    TypeError
        Unless it has a ``round``, a ``compressor`` and a ``step``.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> from typing import NamedTuple
    >>> @method
    ... class SignDescent(NamedTuple):
    ...     step: NamedTuple
    ...     compressor: NamedTuple = th.Identity()
    ...     def round(self, run):
    ...         p = run.scratch()
    ...         run.set_gradient(p, at=run.x)
    ...         run.sign(p)
    ...         run.add(run.x, run.gather(run.compress(self.compressor, p)), scale=-run.eta)
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> th.run(SignDescent(th.Constant(0.25)), problem, workers=2, steps=3, x0=np.array([2.0, -1.0])).x
    array([ 1.25, -0.25])
    """
    made = cast(type, setting(cls))
    for name in ("round", "compressor", "step"):
        if not hasattr(made, name):
            raise TypeError(f"{made.__name__}: got no {name}, allowed: a NamedTuple with round, compressor and step")
    for name in PARTS:
        if not hasattr(made, name):
            setattr(made, name, DEFAULTS.get(name, ParallelSGD._field_defaults[name]))
    for name, given in (
        *((name, vars(ParallelSGD)[name]) for name in QUESTIONS),
        ("step_factors", _step_factors),
        ("settled", _settled),
        ("domain", check_method),
    ):
        if not hasattr(made, name):
            setattr(made, name, given)
    return cast(type[T], made)


def _step_factors(self: Any, run: Run) -> tuple[Rate, Rate]:
    """The factors before and after compression: 1 and the step size."""
    return run.rates.constant(1.0), run.eta


def _settled(self: Any, problem: Any) -> Any:
    """The same method with defaults and "auto" resolved."""
    made = {"feedback": choose_feedback(self.feedback, self.compressor)}
    made |= {name: default for name, default in DEFAULTS.items() if getattr(self, name) is None}
    return self._replace(**{name: value for name, value in made.items() if name in self._fields})


def check_method(self: Any) -> None:
    """Reject values outside the domain."""
    check_parts(self)
    require(self.local_steps >= 1, "local_steps", self.local_steps, "an integer, at least 1")


def check_share(name: str, value: Any) -> None:
    """Reject a value that is neither None nor a number above 0 and at most 1."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    require(value is None or (number and 0.0 < value <= 1.0), name, value, "a number above 0 and at most 1")


def for_these_workers(method: Any, workers: int, d: int = 0) -> Any:
    """The method with its compressor for this number of workers, and for vectors of length d."""
    if "compressor" not in method._fields or method.compressor is None:
        return method
    return method._replace(compressor=for_workers(of_length(method.compressor, d), workers))
