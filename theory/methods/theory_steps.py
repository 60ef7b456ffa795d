"""Step sizes from theory: for a method, on a problem, the step of the theorem that covers it."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from .. import bounds
from ..bounds.theorems import theorem
from ..compressors.closed_forms import delta, omega
from ..core import python_generic, require
from ..core.settings import is_whole
from ..problems.base import dimension
from ..problems.constants import gradient_variance, lipschitz, strong_convexity
from ..problems.polyak_lojasiewicz import pl_constant
from .feedback import ErrorFeedback, NoFeedback
from .local_sgd import LocalSGD
from .recipes import mem_sgd
from .schedules import Constant, InverseTime, Last, as_step
from .server import Mean, Projected
from .sgd import ParallelSGD, averaging


class NoTheoremError(ValueError):
    """No theorem of the package gives a step size for this method on this problem.

    Examples
    --------
    >>> issubclass(NoTheoremError, ValueError)
    True
    """


class TheoryStep(NamedTuple):
    """A step size, and the theorem that it is of; it prints.

    Attributes
    ----------
    step : step size
        Such as ``Constant(0.1)``.
    formula : str
        The function of `theory.bounds` whose theorem it is.
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
        Its own step is not looked at: it may be ``"theory"``.
    problem : problem
        It must know the constants in question, as L and mu.
    workers : int
        Number of workers.

    Returns
    -------
    TheoryStep
        The step, the theorem's function in `theory.bounds`, and the step in its symbols; ``print`` adds source and
        assumptions.

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
    """The method with a step size that can be run: for "theory" that of its theorem, which is returned, too."""
    if isinstance(method.step, str):  # THEORY, the only text that is a step
        found = theory_step(method, problem, workers)
        return method._replace(step=found.step), found
    allowed = f"a step size: {type(method).__name__}(step=0.1), or run(..., step=0.1), or 'theory'"
    require(method.step is not None, "step", None, allowed, TypeError)
    given = method.step  # once: of methods without a step size it is a property
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
