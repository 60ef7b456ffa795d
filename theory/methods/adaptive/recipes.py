"""EF-Adam, ConEF-Adam, EF-LAMB and ConEF-LAMB, as settings of `ParallelSGD`.

In all of them a worker compresses the sum p = g + e of its gradient and its memory, and every worker passes the mean of
the messages to Adam or LAMB in place of the gradient. :class:`OneBitAdam` is a separate method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..adaptive.adam import LAMB, Adam
from ..memory.contractive import ContractiveErrorFeedback
from ..memory.error_feedback import ErrorFeedback
from ..sgd import ParallelSGD


def ef_adam(
    compressor: NamedTuple, step: NamedTuple, *, server: NamedTuple | None = None, **options: Any
) -> ParallelSGD:
    """EF-Adam: error feedback on the gradient, and Adam applied to the messages.

    Parameters
    ----------
    compressor : compressor
        Compressor of the gradients, such as ``RandomBlock(k)``.
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
    The memory is in units of the gradient: Adam applies the step size.  The package has no rate for this method; one
    for AMSGrad with error feedback is in Li, Karimi, Li, "On distributed adaptive optimization with gradient
    compression" (ICLR 2022).  With Adam's variance frozen (:class:`OneBitAdam`) it is preconditioned momentum SGD with
    error feedback.

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
    """ConEF-Adam: EF-Adam with a compressed memory.

    Parameters
    ----------
    compressor : compressor
        Compressor of the gradients.
    error_compressor : compressor
        Unbiased compressor of the memory; see :class:`ContractiveErrorFeedback`.
    step : Constant or InverseTime
        Step sizes.
    beta : float
        The fraction of the memory that is not fed back in a step.
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
    with a fixed hash in the released code is the rule :class:`LinearSketchFeedback`:
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
    """EF-LAMB: error feedback on the gradient, and LAMB applied to the messages.

    Parameters
    ----------
    compressor : compressor
        Compressor of the gradients.
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
    """ConEF-LAMB: EF-LAMB with a compressed memory.

    Parameters
    ----------
    compressor : compressor
        Compressor of the gradients.
    error_compressor : compressor
        Unbiased compressor of the memory; see :class:`ContractiveErrorFeedback`.
    step : Constant or InverseTime
        Step sizes.
    beta : float
        The fraction of the memory that is not fed back in a step.
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
