"""Methods with the parameters of their theorems, as settings of `ParallelSGD`, and methods of a user.

Mem-SGD and CR-PSGD with the parameters of their theorems, as settings of `ParallelSGD`.

EF-Adam, ConEF-Adam, EF-LAMB and ConEF-LAMB, as settings of `ParallelSGD`.

In all of them a worker compresses its gradient with what it did not send before, p = g + e, and every worker gives the
mean of the messages to Adam or LAMB as if it were the gradient.  :class:`OneBitAdam` is a method of its own.

User-defined methods: a NamedTuple with a round function, to which everything else is added.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from .. import bounds
from ..compressors.closed_forms import delta, for_workers
from ..compressors.sparsifiers.random_k import of_length
from ..core import require, setting
from ..problems.base import check_problem, dimension
from ..problems.constants import lipschitz, strong_convexity
from ..problems.polyak_lojasiewicz import pl_constant
from .adaptive.adam import LAMB, Adam
from .memory.contractive import ContractiveErrorFeedback
from .memory.error_feedback import ErrorFeedback
from .rates import Rate
from .schedules import Constant, GrowingBatch, InverseTime
from .server import Mean
from .sgd import ParallelSGD, check_parts, choose_feedback
from .topology import AllGather
from .types import Run

# --- Mem-SGD and CR-PSGD with the parameters of their theorems, as settings of `ParallelSGD` -------------------------

ALPHA = 5.0  # Remark 2.5 of Mem-SGD

CONDITION = "((alpha + 1) d/k + rho)/(rho + 1) <= shift, rho = 4 alpha/((alpha - 4) (alpha + 1)^2)"


def mem_sgd(
    problem: Any,
    compressor: NamedTuple,
    *,
    alpha: float | None = None,
    shift: float | None = None,
    **options: Any,
) -> ParallelSGD:
    """Mem-SGD: sparsified SGD with memory, with the step sizes and the average of its theorem.

    Step sizes 8/(mu (a + t)), memory, and the average with the weights (a + t)^2, where mu is the problem's and the
    shift a satisfies the theorem's condition.

    Parameters
    ----------
    problem : problem
        Strongly convex.
    compressor : compressor
        One that contracts, such as ``TopK(10)`` or ``RandK(10)``; the theorem's k is delta * d.
    alpha : float, optional
        The theorem's parameter, above 4.  By default 5 if the shift is chosen, and for a given shift the largest that
        it allows (``bounds.mem_sgd_alpha``).
    shift : float, optional
        a, above 1.  By default the smallest that the theorem allows (``bounds.mem_sgd_shift``, the correct reading).
    **options
        Other fields of `ParallelSGD`, such as ``batch``, ``shards`` or ``sampling``; the theorem is about
        ``sampling="iid"``.

    Returns
    -------
    ParallelSGD
        Algorithm 1 with one worker; with N, each has its own memory and the theorem still holds
        (:func:`theory.bounds.mem_sgd`).

    Raises
    ------
    ValueError
        If the problem is not strongly convex, or the shift is too small: for the given alpha or, if at most 1, for
        every alpha.  The message states the condition and the smallest shift.
    TypeError
        If the compressor has no known contraction.

    Notes
    -----
    ``theory.mem_sgd`` makes the method; ``theory.bounds.mem_sgd`` is the theorem's bound for it.

    Any shift above 1 is allowed by some alpha above 4, so the paper's own a = d/k is; the bound then has the factor
    4 alpha/(alpha - 4), with alpha about 4.15.  With steps 2/(mu (a + t)) instead, as in the paper's experiments, no
    theorem is claimed: ``mem_sgd(...)._replace(step=InverseTime(2.0, mu, a))``.

    Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", NeurIPS 2018, Algorithm 1 and Theorem 2.4.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.logistic((np.eye(4), [1, -1, 1, -1]), l2=0.5)
    >>> mem_sgd(problem, th.TopK(1), shift=4.0).step
    InverseTime(c=8.0, mu=0.5, shift=4.0)
    >>> round(mem_sgd(problem, th.TopK(1)).step.shift, 3)
    15.786
    """
    check_problem(problem)
    d = int(dimension(problem))
    k, mu = delta(compressor, d) * d, strong_convexity(problem)
    require(mu > 0, "problem", f"mu = {mu:g}", "a strongly convex one: give it an l2 term")
    if shift is None:
        shift = bounds.mem_sgd_shift(d, k, ALPHA if alpha is None else alpha)
    else:
        least = 1.0 if alpha is None else bounds.mem_sgd_shift(d, k, alpha)
        allowed = "more than 1" if alpha is None else f"at least {least:.6g}"
        known = "for some alpha > 4" if alpha is None else f"for alpha = {alpha:g}"
        require(
            shift > 1.0 and shift >= least,
            "shift",
            shift,
            f"{allowed}: Mem-SGD's theorem asks {CONDITION}, {known}, here with d/k = {d / k:g}",
        )
    chosen = {"step": InverseTime(8.0, mu, shift), "feedback": ErrorFeedback(), "average": "quadratic"}
    return ParallelSGD(compressor, **(chosen | options))


def cr_psgd(
    problem: Any,
    compressor: NamedTuple | None = None,
    *,
    samples: int | None = None,
    first: int = 1,
    rho: float | None = None,
    step: float | None = None,
    mu: float | None = None,
    radius: float = math.inf,
    **options: Any,
) -> ParallelSGD:
    """CR-PSGD: parallel SGD whose batches grow geometrically, with the parameters of its theorem.

    Every worker averages floor(rho^t first) gradients at step t = 0, 1, ..., until its budget is used up.

    Parameters
    ----------
    problem : problem
        Smooth, with the Polyak-Lojasiewicz (PL) condition.
    compressor : compressor, optional
        Of the messages; the theorem is about full precision, which is the default.
    samples : int, optional
        T, the budget of gradients of each worker that the run will have.  If given, a warning is issued if it ends
        before the batch grows.
    first : int
        B_1, the first batch.
    rho : float, optional
        Growth of the batches, in (1, 1/(1 - nu)), nu = step mu (2 - L step); ``bounds.optimal_rho`` by default, which
        exists unless mu = L and the step is 1/L.
    step : float, optional
        Step size, below 2/L; 1/L by default.
    mu : float, optional
        The PL constant; by default ``pl_constant(problem).mu``.
    radius : float
        After every step, x is projected onto the ball of this radius around 0; infinite for none.  Logistic regression
        without an l2 term has a PL constant on a ball only.
    **options
        Other fields of `ParallelSGD`, such as ``feedback`` or ``sampling``.

    Returns
    -------
    ParallelSGD
        For :func:`theory.run`, with ``samples=T``.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for rho the message names the interval.
    TypeError or ValueError
        If no PL constant is known for the problem; see :func:`theory.pl_constant`.

    Warns
    -----
    UserWarning
        If the budget ends before the batch grows at all, since L/mu is large.

    Notes
    -----
    ``theory.cr_psgd`` makes the method; ``theory.bounds.cr_psgd_rate`` is the theorem's bound.

    Yu, Jin, "On the computation and communication complexity of parallel SGD with dynamic batch sizes for stochastic
    non-convex optimization", ICML 2019, Algorithm 1.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic([3.0, 4.0], covariance=1.0)
    >>> method = cr_psgd(problem)
    >>> method.batch
    GrowingBatch(rho=2.0, first=1, rounding='floor')
    >>> result = th.run(method, problem, workers=2, samples=100)  # batches 1, 2, 4, 8, 16, 32
    >>> int(result.history["rounds"][-1]), int(result.history["samples"][-1])
    (6, 126)
    """
    check_problem(problem)
    L = lipschitz(problem)
    mu = pl_constant(problem, radius if radius < math.inf else None).mu if mu is None else float(mu)
    limit = bounds.growth_limit(mu, L, step)
    if rho is None:
        require(
            limit < math.inf,
            "rho",
            rho,
            "any number above 1: give rho=, as none is best where one exact step"
            " would reach the minimum (q = 1 - nu = 0)",
        )
        rho = bounds.optimal_rho(mu, L, step)
    rho = float(rho)
    require(1.0 < rho < limit, "rho", rho, f"a number in (1, 1/(1 - nu)) = (1, {limit:.6g})")
    if samples is not None:
        require(isinstance(samples, int) and samples >= first, "samples", samples, f"at least first = {first}")
        if samples > first and bounds.growing_batches(samples, rho, first)[-1] == first:
            warnings.warn(
                f"cr_psgd: with L/mu = {L / mu:.3g} the growth is rho = {rho:.9g}, and {samples} gradients for each "
                f"worker end before the batch of {first} grows: this is parallel SGD",
                stacklevel=2,
            )
    size = Constant(1.0 / L if step is None else step)
    return ParallelSGD(compressor, step=size, batch=GrowingBatch(rho, first), radius=radius, **options)


# --- EF-Adam, ConEF-Adam, EF-LAMB and ConEF-LAMB, as settings of `ParallelSGD` ---------------------------------------


def ef_adam(
    compressor: NamedTuple, step: NamedTuple, *, server: NamedTuple | None = None, **options: Any
) -> ParallelSGD:
    """EF-Adam: error feedback on the gradient, and Adam of what was sent.

    Parameters
    ----------
    compressor : compressor
        Of the gradients, such as ``RandomBlock(k)``.
    step : Constant or InverseTime
        Step sizes.
    server : Adam, optional
        ``Adam()`` by default.
    **options
        Other fields of `ParallelSGD`, such as ``batch``.

    Returns
    -------
    ParallelSGD

    Notes
    -----
    The memory is in units of the gradient: Adam applies the step size.  The package has no rate for it; one for AMSGrad
    with error feedback is in Li, Karimi, Li, "On distributed adaptive optimization with gradient compression" (ICLR
    2022).  With Adam's variance frozen (:class:`OneBitAdam`) it is preconditioned momentum SGD with error feedback.

    Examples
    --------
    >>> import theory as th
    >>> th.ef_adam(th.TopK(2), th.Constant(0.01)).feedback
    ErrorFeedback()
    """
    return ParallelSGD(compressor, step=step, feedback=ErrorFeedback(), server=server or Adam(), **options)


def conef_adam(
    compressor: NamedTuple,
    error_compressor: NamedTuple,
    step: NamedTuple,
    *,
    beta: float = 0.0,
    server: NamedTuple | None = None,
    **options: Any,
) -> ParallelSGD:
    """ConEF-Adam: as EF-Adam, with the memory stored compressed.

    Parameters
    ----------
    compressor : compressor
        Of the gradients.
    error_compressor : compressor
        Of the memory, without bias; see :class:`ContractiveErrorFeedback`.
    step : Constant or InverseTime
        Step sizes.
    beta : float
        The share of the memory that is not fed back in every step.
    server : Adam, optional
        ``Adam()`` by default.
    **options
        Other fields of `ParallelSGD`, such as ``batch``.

    Returns
    -------
    ParallelSGD

    Notes
    -----
    Li, Zheng, Raman, Shrivastava, "Contractive error feedback for gradient compression", arXiv 2312.08538.  The sketch
    with a fixed hash of the released code is the rule :class:`LinearSketchFeedback`:
    ``ef_adam(...)._replace(feedback=LinearSketchFeedback(sketch, beta))``.

    Examples
    --------
    >>> import theory as th
    >>> th.conef_adam(th.TopK(2), th.HalfPrecision(), th.Constant(0.01)).feedback.error_compressor
    HalfPrecision()
    """
    rule = ContractiveErrorFeedback(error_compressor, beta)
    return ParallelSGD(compressor, step=step, feedback=rule, server=server or Adam(), **options)


def ef_lamb(
    compressor: NamedTuple, step: NamedTuple, *, server: NamedTuple | None = None, **options: Any
) -> ParallelSGD:
    """EF-LAMB: error feedback on the gradient, and LAMB of what was sent.

    Parameters
    ----------
    compressor : compressor
        Of the gradients.
    step : Constant or InverseTime
        Step sizes.
    server : LAMB, optional
        ``LAMB()`` by default, with the layers of the problem.
    **options
        Other fields of `ParallelSGD`, such as ``batch``.

    Returns
    -------
    ParallelSGD

    Examples
    --------
    >>> import theory as th
    >>> th.ef_lamb(th.TopK(2), th.Constant(0.01)).server.beta2
    0.999
    """
    return ef_adam(compressor, step, server=server or LAMB(), **options)


def conef_lamb(
    compressor: NamedTuple,
    error_compressor: NamedTuple,
    step: NamedTuple,
    *,
    beta: float = 0.0,
    server: NamedTuple | None = None,
    **options: Any,
) -> ParallelSGD:
    """ConEF-LAMB: as EF-LAMB, with the memory stored compressed.

    Parameters
    ----------
    compressor : compressor
        Of the gradients.
    error_compressor : compressor
        Of the memory, without bias; see :class:`ContractiveErrorFeedback`.
    step : Constant or InverseTime
        Step sizes.
    beta : float
        The share of the memory that is not fed back in every step.
    server : LAMB, optional
        ``LAMB()`` by default, with the layers of the problem.
    **options
        Other fields of `ParallelSGD`, such as ``batch``.

    Returns
    -------
    ParallelSGD

    Examples
    --------
    >>> import theory as th
    >>> th.conef_lamb(th.TopK(2), th.HalfPrecision(), th.Constant(0.01)).server.eps
    1e-06
    """
    return conef_adam(compressor, error_compressor, step, beta=beta, server=server or LAMB(), **options)


# --- User-defined methods --------------------------------------------------------------------------------------------

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
    """Reject what is neither None nor a number above 0 and at most 1."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    require(value is None or (number and 0.0 < value <= 1.0), name, value, "a number above 0 and at most 1")


def for_these_workers(method: Any, workers: int, d: int = 0) -> Any:
    """The method with its compressor for this number of workers, and for vectors of length d."""
    if "compressor" not in method._fields or method.compressor is None:
        return method
    return method._replace(compressor=for_workers(of_length(method.compressor, d), workers))
