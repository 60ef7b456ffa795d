"""Step sizes from theory, and warnings about steps that are too long or that touch every coordinate of sparse rows.

The step is that of the theorem that covers a method on a problem. Before a run, a warning says whether a step is too
long for the curvature of the problem. Another warning is about steps that touch every coordinate of sparse rows; it
names an alternative.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np

from .. import bounds
from ..bounds.closed_form import theorem
from ..compressors.closed_forms import delta, omega
from ..compressors.full_precision import Identity
from ..core import python_generic, require
from ..core.arguments import advise, outside
from ..core.settings import is_whole
from ..problems.base import dimension, support
from ..problems.constants import gradient_variance, lipschitz, max_lipschitz, strong_convexity
from ..problems.matrix import CSR
from ..problems.polyak_lojasiewicz import pl_constant
from .local.local_sgd import LocalSGD
from .memory.error_feedback import ErrorFeedback, NoFeedback, has_memory
from .memory.mem_sgd import mem_sgd
from .schedules import Constant, InverseTime, Last, as_step, step_size
from .server import Mean, Momentum, Projected, takes_the_step
from .sgd import ParallelSGD, averaging

# --- Warning for steps that touch every coordinate on sparse rows ----------------------------------------------------

UNNOTICED = 1000  # coordinates: for shorter vectors, a dense step costs about as much as a sparse one


class DenseStepWarning(UserWarning):
    """A step takes O(d) operations although the rows of the data are sparse.

    Examples
    --------
    >>> issubclass(DenseStepWarning, UserWarning)
    True
    """


def warn_of_dense_steps(method: Any, problem: Any, sparse: Any) -> None:
    """Warn if the rows are sparse and the steps are not, unless the caller is in the package or models are mixed."""
    A = getattr(problem, "A", None)
    dense = hasattr(method, "graph") or support(problem) == "all"  # whatever the method does
    if sparse is not None or dense or not isinstance(A, CSR) or A.columns < UNNOTICED:
        return
    entries = A.data.size / max(1, A.indptr.size - 1)
    text = f"a step touches all {A.columns} coordinates, though a row has {entries:.0f}: {_because(method)}"
    advise(text, DenseStepWarning, depth=3)


def _because(method: Any) -> str:
    """The cause of dense steps, and an alternative."""
    name = type(method.compressor).__name__
    if isinstance(method.compressor, Identity) and method.local_steps > 1:
        return "differences of models in full precision need them; those that TopK, RandK or RandomBlock send do not"
    if isinstance(method.compressor, Identity):
        extra = ", and without a memory, which stays 0" if has_memory(method.feedback) else ""
        return f"for full precision leave the compressor out, {type(method).__name__}(step=...){extra}"
    parts = (type(getattr(method, part)).__name__ for part in ("feedback", "server") if part in method._fields)
    name = f"{name} with {rest}" if (rest := " and ".join(parts)) else f"{type(method).__name__} with {name}"
    return f"{name} needs them; TopK, RandK or RandomBlock with ErrorFeedback do not"


# --- Warning for steps that are too long ------------------------------------------------------------------------------

GROWTH = 1e3  # a bound of the growth of E||x - x*||^2, up to which a decreasing step size may begin too long

POINTS = 200  # at which a step size is checked


class LongStepWarning(UserWarning):
    """The step size is above 2/S, S the expected smoothness of a step's gradient: steps move away from the minimum.

    For a method with its own theorem, the step size is above the longest step of that theorem, which allows no step if
    the compressor is not a contraction.

    Examples
    --------
    >>> issubclass(LongStepWarning, UserWarning)
    True
    """


def warn_of_long_steps(method: Any, problem: Any, steps: int, workers: int, batch: int) -> None:
    """Warn if the step size stays above 2/S, or starts so far above that x may grow by a factor of 1000.

    If a method has its own theorem, ``longest_step(problem, workers)``, the warning is about that.

    S is :func:`theory.bounds.expected_smoothness`; on quadratics E||x - x*||^2 grows in a step by at most
    1 + gamma L (gamma S - 2).  With momentum beta, 2 is replaced by 2 (1 + beta). L takes many passes over the data, so
    it is computed only if the step is above 2/L_max, which takes one pass.  There is no warning if the problem does not
    know its constants.
    """
    unrelated = takes_the_step(method.server) or not getattr(method, "descends", True)
    if outside(3) is None or unrelated:  # the steps of Adam do not depend on the curvature
        return
    server = method.server.server if isinstance(method.server, Projected) else method.server
    if hasattr(method, "longest_step"):
        told = _above_theorem(method, problem, workers)
        if told:
            advise(told, LongStepWarning, depth=3)
        return
    factor = 2.0 * (1.0 + (server.beta if isinstance(server, Momentum) else 0.0))
    added, first, last = _omega(method, problem), _size(method, 0), _size(method, max(0, steps - 1))
    try:
        largest = max_lipschitz(problem)
        if first * (1.0 + added) * largest <= factor:
            return
        L = lipschitz(problem)
    except (TypeError, ValueError, AttributeError):  # not known for problems of this class
        return
    if L == 0.0:  # no step is too long where f is linear
        return
    S = bounds.expected_smoothness(L, max(L, largest), batch=batch, workers=workers, omega=added)
    t = np.unique(np.geomspace(1, max(1, steps), POINTS).astype(np.int64)) - 1
    sizes = np.array([_size(method, int(step)) for step in t])
    growth = np.log1p(np.maximum(0.0, sizes * L * (sizes * S - factor)))
    total = float(growth[0] + np.sum((growth[1:] + growth[:-1]) / 2.0 * np.diff(t)))
    if last * S <= factor and total <= math.log(GROWTH):
        return
    begins = f"begins at {first:.3g}" if last < first else f"is {first:.3g}"
    advise(
        f"step: it {begins}, above {factor:g}/S = {factor / S:.3g} for this problem, batch and number of workers "
        f"(L = {L:.3g}, L_max = {largest:.3g}; S = bounds.expected_smoothness(...) = {S:.3g}): such steps move away "
        f"from the minimum; Constant({1.0 / S:.2g}) would do",
        LongStepWarning,
        depth=3,
    )


def _above_theorem(method: Any, problem: Any, workers: int) -> str:
    """The warning if the first step size is above the longest one of the method's theorem."""
    try:
        longest, first = float(method.longest_step(problem, workers)), _size(method, 0)
    except ZeroDivisionError:  # L = 0
        return ""
    except (TypeError, ValueError, AttributeError):  # constants that are not known
        return _no_contraction(method, problem)
    if first <= longest * (1.0 + 1e-9):
        return ""
    begins = "is" if _size(method, 1) == first else "begins at"
    return (
        f"step: it {begins} {first:.3g}, above {longest:.3g}, the step of the theorem of {type(method).__name__} on "
        "this problem with these workers (theory.theory_step), which does not cover longer ones"
    )


def _no_contraction(method: Any, problem: Any) -> str:
    """The warning if a method estimates gradients from messages of a compressor that is not a contraction."""
    if not hasattr(method, "differences") or getattr(method, "takes_unbiased", False):
        return ""
    w = _omega(method, problem)
    try:
        delta(method.compressor, int(dimension(problem)))
    except (TypeError, ValueError):
        if w >= 1.0:
            return (
                f"compressor: {method.compressor!r} is no contraction, which the theorem of {type(method).__name__} "
                "assumes: the estimate of a gradient may move away from it, whatever the step"
            )
    return ""


def _size(method: Any, t: int) -> float:
    return float(step_size(method.step, t))


def _omega(method: Any, problem: Any) -> float:
    """The variance factor of messages without a memory; 0 where it is not known, or not of gradients."""
    if method.compressor is None or hasattr(method, "graph") or not isinstance(method.feedback, NoFeedback):
        return 0.0
    try:
        return float(omega(method.compressor, int(dimension(problem))))
    except (TypeError, ValueError):
        return 0.0


# --- Step sizes from theory ------------------------------------------------------------------------------------------


class NoTheoremError(ValueError):
    """No theorem of the package gives a step size for this method on this problem.

    Examples
    --------
    >>> issubclass(NoTheoremError, ValueError)
    True
    """


class TheoryStep(NamedTuple):
    """A step size and its theorem, as a record that can be printed.

    Attributes
    ----------
    step : step size
        Such as ``Constant(0.1)``.
    formula : str
        The function of `theory.bounds` with the theorem.
    how : str
        The step in the theorem's symbols.
    """

    step: NamedTuple
    formula: str
    how: str

    def __str__(self) -> str:
        told = theorem(getattr(bounds, self.formula))
        source = f", {told.source.rstrip('.')}" if told.source else ""
        assumed = f"; it assumes: {told.setting}" if told.setting else ""
        return f"{self.step!r}: {self.how}, of bounds.{self.formula}{source}{assumed}"


@python_generic
def theory_step(method: Any, problem: Any, workers: int) -> TheoryStep:
    """The step size of the theorem that covers a method on a problem.

    Parameters
    ----------
    method : ParallelSGD, LocalSGD or another method
        Its own step is ignored and may be ``"theory"``.
    problem : problem
        It must know the constants of the theorem, such as L and mu.
    workers : int
        Number of workers.

    Returns
    -------
    TheoryStep
        The step, the theorem's function in `theory.bounds`, and the step in its symbols; ``print`` adds the source and
        the assumptions.

    Raises
    ------
    NoTheoremError
        A ``ValueError``: no theorem of the package gives a step for it; the message says why.
    TypeError or ValueError
        If the problem does not know a constant of the theorem.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic([1.0, 4.0], covariance=1.0)
    >>> found = th.theory_step(th.ParallelSGD(th.RandK(1, unbiased=True), step="theory"), problem, workers=2)
    >>> found.step, found.formula  # 1/(L (1 + omega/N)), omega = d/k - 1
    (Constant(eta=0.16666666666666666), 'bottou_constant_step')
    """
    own = getattr(type(method), "theory_step", None)  # stated by `traits`
    if own is not None:
        return own(method, problem, workers)
    raise NoTheoremError(f"step: no theorem of the package gives a step for {type(method).__name__}; give a number")


def with_theory_step(method: Any, problem: Any, workers: int) -> tuple[Any, TheoryStep | None]:
    """The method with a step size that can be run: for "theory" that of its theorem, which is also returned."""
    if isinstance(method.step, str):  # THEORY, the only text that is a step
        found = theory_step(method, problem, workers)
        return method._replace(step=found.step), found
    allowed = f"a step size: {type(method).__name__}(step=0.1), or run(..., step=0.1), or 'theory'"
    require(method.step is not None, "step", None, allowed, TypeError)
    given = method.step  # read once: for methods without a step size it is a property
    step = as_step(given)
    return (method if step is given else method._replace(step=step)), None


def exact_gradients(problem: Any) -> bool:
    """Whether every stochastic gradient is the gradient, at two points without structure."""
    points = np.random.Generator(np.random.Philox(0)).standard_normal((2, int(dimension(problem))))
    return all(float(gradient_variance(problem, point)) == 0.0 for point in points)


def covered(condition: object, why: str) -> None:
    """Raise `NoTheoremError` unless a condition of the theorem holds."""
    if not condition:
        raise NoTheoremError(f"step: no theorem of the package covers this: {why}; give a number")


@theory_step.register
def _(method: ParallelSGD, problem: Any, workers: int) -> TheoryStep:
    method = method.settled(problem)
    server = method.server.server if isinstance(method.server, Projected) else method.server
    covered(isinstance(server, Mean), f"the server {type(server).__name__}")
    covered(method.sampling == "iid", "rows that are drawn without replacement")
    added, kept = (_factor(form, method.compressor, int(dimension(problem))) for form in (omega, delta))
    covered(added == 0.0 or method.compress == "full", "compress='loss' with lossy messages")
    if isinstance(method.feedback, ErrorFeedback):
        return _with_memory(problem, workers, method.compressor, kept, method.average)
    covered(isinstance(method.feedback, NoFeedback), f"the feedback rule {type(method.feedback).__name__}")
    if added is None:
        return _biased(problem, workers, kept, method.average)
    covered(
        added == 0.0 or method.shards == "shared", "lossy messages without memory, of workers with rows of their own"
    )
    if not is_whole(method.batch):
        covered(added == 0.0, "a growing batch with lossy messages")
        covered(pl_constant(problem).mu > 0, "a growing batch without a PL constant")
        return TheoryStep(Constant(1.0 / lipschitz(problem)), "cr_psgd_rate", "1/L")
    covered(method.average != "quadratic", "a quadratic average without memory, whose theorem holds for any step")
    step = 1.0 / (lipschitz(problem) * (1.0 + added / workers))
    of_last = isinstance(averaging(method), Last) and _convexity(problem) > 0
    name = "bottou_constant_step" if of_last else "quantized_sgd_smooth"
    how = "1/L" if added == 0.0 else "1/(L (1 + omega/N))"
    return TheoryStep(Constant(step), name, how if exact_gradients(problem) else f"{how}, down to a floor of the noise")


def _with_memory(problem: Any, workers: int, compressor: Any, kept: float | None, average: Any) -> TheoryStep:
    """Error feedback: exact gradients on one worker, else Mem-SGD with its average."""
    covered(kept, "a compressor with a memory and without a known contraction")
    assert kept is not None
    mu = _convexity(problem)
    covered(mu > 0, "error feedback without strong convexity")
    if average == "last":
        covered(
            workers == 1 and exact_gradients(problem),
            "error feedback whose result is the last iterate, with noise or several workers "
            "(average='quadratic' has Mem-SGD's theorem)",
        )
        step = bounds.exact_feedback_step(kept, mu=mu, lipschitz=lipschitz(problem))
        return TheoryStep(Constant(step), "exact_feedback_step", "2/(L + mu) (1 - s)/(1 + s), s = sqrt(1 - delta)")
    covered(average == "quadratic", f"error feedback with average={average!r}")
    return TheoryStep(cast(Any, mem_sgd(problem, compressor)).step, "mem_sgd", "8/(mu (a + t)), alpha = 5")


def _biased(problem: Any, workers: int, kept: float | None, average: Any) -> TheoryStep:
    """A contraction without memory, of exact gradients on one worker."""
    why = "a biased compressor without memory, but for exact gradients on one worker"
    covered(kept and workers == 1 and average == "last" and exact_gradients(problem), why)
    assert kept is not None
    mu = _convexity(problem)
    covered(mu > 0, "a biased compressor without memory or strong convexity")
    step = bounds.compressed_descent_step(kept, mu=mu, lipschitz=lipschitz(problem))
    return TheoryStep(Constant(step), "compressed_descent_step", "2/((1 - s) mu + (1 + s) L), s = sqrt(1 - delta)")


@theory_step.register
def _(method: LocalSGD, problem: Any, workers: int) -> TheoryStep:
    method, d = method.settled(problem), int(dimension(problem))
    plain = isinstance(method.server, Mean) and _factor(omega, method.compressor, d) == 0.0
    covered(plain, "local steps with compressed messages, or another server than Mean")
    covered(method.average == "quadratic", "local steps without average='quadratic'")
    alike = method.sampling == "iid" and method.shards == "shared"
    covered(alike, "local steps of workers with rows of their own, or drawn without replacement")
    mu, H = _convexity(problem), method.local_steps
    covered(mu > 0, "local steps without strong convexity")
    shift = bounds.local_sgd_shift(mu, lipschitz(problem), H)
    return TheoryStep(InverseTime(4.0, mu, shift), "local_sgd", "4/(mu (a + t)), a = max(16 L/mu, H)")


def _factor(form: Any, compressor: Any, d: int) -> float | None:
    try:
        return float(form(compressor, d))
    except (TypeError, ValueError):  # none is known
        return None


def _convexity(problem: Any) -> float:
    try:
        return float(strong_convexity(problem))
    except (TypeError, ValueError):
        return 0.0
